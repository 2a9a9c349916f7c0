"""What holds of the choice of covariance types, in the record of a run, and a part of that run again."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from reproduction import covariance_types as study
from reproduction.pages import check_page

approx = pytest.approx
PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "optima.rst"
RECORDS = study.read()


def test_a_data_set_again():
    old = RECORDS["fixed", "tied", 5, 0]
    new = study.measured("tied", 5, 0, "fixed", n_draws=0)
    assert study.choice(new["bounds"]) == study.choice(old["bounds"]) == "tied"


@pytest.mark.parametrize("kind", study.TYPES)
def test_components_are_apart(kind):
    rng = np.random.default_rng(0)
    covariances = study.drawn_covariances(kind, 5, rng)
    means = study.drawn_means(covariances, rng)
    for a, b in combinations(range(study.N_COMPONENTS), 2):
        away = means[a] - means[b]
        within = (covariances[a] + covariances[b]) / 2
        assert away @ np.linalg.inv(within) @ away >= 4.0


@pytest.mark.parametrize("kind", study.TYPES)
def test_covariances_are_of_their_type(kind):
    covariances = study.drawn_covariances(kind, 5, np.random.default_rng(0))
    is_diagonal = all(np.count_nonzero(each - np.diag(np.diag(each))) == 0 for each in covariances)
    assert is_diagonal == (kind in ("diag", "spherical"))
    assert (len(np.unique(covariances[0].diagonal())) == 1) == (kind == "spherical")
    assert np.array_equal(covariances[0], covariances[1]) == (kind == "tied")


def test_their_mean_is_the_identity():
    """Of precisions that is exact: degrees of freedom times the scale."""
    rng = np.random.default_rng(0)
    full = np.mean([np.linalg.inv(study.drawn_covariances("full", 3, rng)[0]) for _ in range(4000)], axis=0)
    assert full == approx(5 * np.eye(3), abs=0.3)
    diag = np.mean([1 / np.diagonal(study.drawn_covariances("diag", 3, rng)[0]) for _ in range(4000)], axis=0)
    assert diag == approx(3 * np.ones(3), abs=0.15)


def test_lead_and_choice():
    values = {"full": -10.0, "tied": -3.0, "diag": -4.5, "spherical": -20.0}
    assert (study.choice(values), study.lead(values)) == ("tied", approx(1.5))


@pytest.mark.parametrize("emission", {emission: None for emission, *_ in RECORDS})
def test_the_record_is_complete(emission):
    draws = {draw for one, _, _, draw in RECORDS if one == emission}
    keys = {key for key in RECORDS if key[0] == emission}
    assert keys == {(emission, kind, d, draw) for kind in study.TYPES for d in study.N_COLUMNS for draw in draws}


@pytest.mark.parametrize("emission", {emission: None for emission, *_ in RECORDS})
def test_the_choice_is_right_where_the_evidence_leads(emission):
    """In nine of ten data sets at least."""
    *_, (_, _, led, _, right, _) = study.table(RECORDS, emission)
    assert int(right) >= 0.9 * int(led)


def test_the_page_shows_the_record():
    for emission in {emission for emission, *_ in RECORDS}:
        check_page(PAGE, study.table(RECORDS, emission))
