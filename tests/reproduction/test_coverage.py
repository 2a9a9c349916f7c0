"""What holds of the coverage of intervals of factor analyses, linear dynamical systems and points, in their records."""

import numpy as np
import pytest
from reproduction import linear_system_coverage, loadings_coverage, point_coverage
from reproduction.coverage import check_draws_hold, check_once, check_study

#: Studies, by the page of the guide that shows their tables.
STUDIES = {"factors.rst": loadings_coverage.STUDY, "state_space.rst": linear_system_coverage.STUDY}
METHODS = ("draws", "linear_response")
# Noises that are a small share of their columns: this prior counts as two steps of nothing but noise.
DRAWN_BY_PRIORS = {"two states, rate 1": {"noises"}}
PROBLEMS = [pytest.param(study, name, id=name) for study in STUDIES.values() for name in study.problems]


def records_of(study, name):
    return [each for each in study.read() if each["problem"] == name]


@pytest.mark.parametrize(("study", "name"), PROBLEMS)
def test_draws_hold_as_often_as_they_say(study, name):
    records = records_of(study, name)
    check_draws_hold(records, set(records[-1]["held"]["draws"]) - DRAWN_BY_PRIORS.get(name, set()))


@pytest.mark.parametrize(("study", "name"), PROBLEMS)
def test_linear_response_holds_nearly_as_much_as_draws(study, name):
    """Of nominal 95 %. It knows no skewness; no fit is refused."""
    held = [each["held"] for each in records_of(study, name)]
    assert all(each["linear_response"] for each in held)
    for what in held[-1]["draws"]:
        by_draws, found = (np.sum([each[method][what] for each in held], axis=0) for method in METHODS)
        assert abs(found[2] / found[3] - by_draws[2] / by_draws[3]) < 0.05, what


@pytest.mark.parametrize("study", STUDIES.values())
def test_a_simulation_again(study):
    """But for rounding, by which a draw may lie on the other side of the truth."""
    before = min(study.read(), key=lambda each: each["n_sweeps"])
    again = study.measured(before["problem"], before["n"], before["seed"])
    for method, of_method in before["held"].items():
        for what, counts in of_method.items():
            assert np.abs(np.subtract(again["held"][method][what], counts)).max() <= 1


@pytest.mark.parametrize("study", STUDIES.values())
def test_simulations_are_recorded_once(study):
    check_once(study.read(), study.problems)


def test_fits_of_points_are_recorded_once():
    check_once(point_coverage.read(), point_coverage.PROBLEMS)


@pytest.mark.parametrize(("page", "study"), [*STUDIES.items(), ("intervals.rst", point_coverage)])
def test_the_pages_show_the_records(page, study):
    check_study(page, study)
