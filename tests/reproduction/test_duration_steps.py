"""What holds of times and memory of steps with durations, in the record of a run."""

from pathlib import Path

import numpy as np
from reproduction import duration_steps
from reproduction.pages import check_page
from reproduction.records import read_record

LINES = read_record(duration_steps.RECORD)
PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "durations.rst"


def test_fifty_ages_take_less_than_twelve_steps_and_little_memory():
    ratios, peaks = duration_steps.ratios(LINES), {line["chain"]: line["peak"] for line in LINES}
    assert list(ratios) == [*duration_steps.FAMILIES, duration_steps.PEER]
    assert max(ratios.values()) < 12
    assert max(peaks[name] for name in duration_steps.FAMILIES) < 100


def test_the_page_shows_the_record():
    check_page(PAGE, duration_steps.table_rows(LINES))


def test_a_step_of_each_chain_can_be_taken():
    X = duration_steps.counts(np.random.default_rng(1))[:2_000]
    assert all(duration_steps.step_of(durations, X)() > 0 for durations in duration_steps.FAMILIES.values())
