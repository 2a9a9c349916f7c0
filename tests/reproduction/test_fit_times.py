"""What holds of the times of default fits, in the record of a run, and the smallest case of that run again."""

from pathlib import Path

import numpy as np
import pytest
from reproduction import fit_times
from reproduction.pages import check_page

PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "optima.rst"
RECORDS = fit_times.read()


def test_a_case_again():
    """Likelihoods are as they were; times are those of the machine."""
    record = fit_times.measured("300 x 4", n_rounds=1)
    assert record["gain"][0] == pytest.approx(RECORDS["b68e45a"]["300 x 4"]["gain"][0], abs=0.02)
    assert all(record[name][0] > 0 for name in ("seconds", "peer_seconds", "vb_seconds"))


def test_clumps_are_the_same_each_time():
    X = fit_times.clumps(300, 4, 3)
    assert X.shape == (300, 4)
    assert np.array_equal(X, fit_times.clumps(300, 4, 3))


@pytest.mark.parametrize("label", RECORDS)
def test_our_likelihood_is_never_below(label):
    assert RECORDS[label].keys() <= {*fit_times.CASES, fit_times.AUTO}
    for case, record in RECORDS[label].items():
        assert min(record.get("gain", [0.0])) > -1e-2, case


def test_the_page_shows_the_record():
    for records in RECORDS.values():
        check_page(PAGE, fit_times.table(records))


def test_threads_of_blas_change_no_time():
    """Of default fits of 100 000 x 10, in one process, in two that overlap in threads, and in two workers."""
    for kind, turns in fit_times.read(fit_times.THREADS).items():
        installed, one = (np.sum([turn[side] for turn in turns], axis=0) for side in ("installed", "one"))
        assert (installed < 1.1 * one).all(), kind
        assert all(turn["as_before"] for turn in turns)
