"""Probabilities of covariates of membership, in the record of a full run, and a table of it again."""

import numpy as np
import pytest
from reproduction import covariate_selection as study


@pytest.mark.parametrize("n", study.SIZES)
def test_probabilities_of_covariates_are_calibrated(n):
    """As many covariates are selected as their probabilities sum to, overall and where these are small or large."""
    lines = study.lines_of("drawn", n)
    assert len(lines) >= 200
    difference, error = study.calibration(lines)
    assert abs(difference) < 2 * error
    p = np.array([line["bound"] for line in lines])
    selected = np.array([[at in line["selected"] for at in range(study.N_COVARIATES)] for line in lines])
    for low, high in ((0.0, 0.2), (0.2, 0.8), (0.8, 1.001)):
        of = (p >= low) & (p < high)
        error = np.sqrt((p[of] * (1 - p[of])).sum())
        assert abs(selected[of].sum() - p[of].sum()) < 3 * error


@pytest.mark.parametrize("n", study.SIZES)
def test_a_true_covariate_among_others_is_seen(n):
    lines = study.lines_of("one true", n)
    assert len(lines) >= 50
    p = np.array([line["bound"] for line in lines])
    assert p[:, 0].min() > 0.9
    assert p[:, 1:].mean() < 0.2


def test_a_table_of_the_record_again():
    line = study.lines_of("drawn", 200)[0]
    X, selected = study.table("drawn", 200, line["seed"])
    assert selected == line["selected"]
    assert study.probabilities(X, line["seed"]) == pytest.approx(line["bound"], abs=2e-3)
