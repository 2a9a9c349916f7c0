"""Probabilities of covariates of membership, in the record of a full run, and a table of it again."""

from pathlib import Path

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


def test_the_page_has_the_sums_of_the_record():
    page = " ".join((Path(__file__).parents[2] / "doc" / "user_guide" / "membership.rst").read_text().split())
    _, few, many = ([round(float(x)) for x in row[2:6]] for row in [(0,) * 6, *list(study.rows_of_drawn())[1:]])
    assert f"200 rows {few[0]} covariates had slopes, and their probabilities summed to {few[1]} ± {few[3]}" in page
    assert f"1000 rows to {many[1]} ± {many[3]}, and {many[0]} had" in page
    _, few, many = study.rows_of_fixed()
    assert f"the others {few[3][1:]} on average with 200 rows ({few[5][1:]} by BIC)" in page
    assert f"and {many[3][1:]} with 1000 ({many[5][1:]})" in page
