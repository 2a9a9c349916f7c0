"""The record of numbers of states: what the guide says of it, and that a chain leads to the same line."""

from pathlib import Path

import pytest
from reproduction import auto_chains as study
from reproduction.records import read_record

GUIDE = Path(__file__).parents[2] / "doc" / "user_guide" / "sequences.rst"


def test_the_guide_says_what_is_on_record():
    lines = read_record(study.RESULTS)
    assert sorted(line["number"] for line in lines) == list(range(study.N_CHAINS))
    found = study.summary(lines)
    assert found["mode"] == found["best"] == 1.0
    assert found["right"] + found["too few"] == pytest.approx(1.0)
    if GUIDE.exists():
        text = GUIDE.read_text("utf-8")
        assert f"in {100 * found['seconds']:.0f} % of their CPU time" in text
        assert (
            f"best number {found['sure']:.2f} on average, and {100 * found['right']:.0f} %".replace(" 0.", " .") in text
        )


def test_a_chain_on_record_is_fitted_again():
    line = next(line for line in read_record(study.RESULTS) if line["number"] == 2)
    X, k, name, options = study.simulated(2)
    assert (k, name, sum(map(len, X))) == (line["states"], line["emission"], line["steps"])
    auto, _ = study.fitted("auto", X, options, 2)
    assert auto.n_components_ == line["auto"]
    assert auto.lower_bound_ == pytest.approx(line["bound"], abs=study.SAME)
