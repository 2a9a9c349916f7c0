"""The laws of emissions, `skvbem.testing.check_emission`, on random problems of each."""

from pathlib import Path

import pytest
from emissions.members import PROBLEMS

from skvbem.emissions import COVARIANCE_TYPES, EMISSIONS
from skvbem.testing import check_emission
from skvbem.testing.emissions import LAWS

GAPS = [0.0, 0.35]


@pytest.fixture(params=PROBLEMS)
def make(request):
    return PROBLEMS[request.param]


@pytest.fixture(params=GAPS, ids=["whole", "gaps"])
def gaps(request):
    return request.param


@pytest.fixture
def problems(make, gaps, rng):
    return [make(rng, gaps=gaps) for _ in range(12)]


def hold(law, problems, rng):
    for problem in problems:
        (report,) = check_emission(problem, laws=[law], rng=rng)
        assert report.held == (law,)


def test_every_emission_has_problems():
    without_a_name = {"censored", "interval", "log_normal"}  # parameters, pairs of columns, a name like another's
    assert set(PROBLEMS) == {*EMISSIONS, *COVARIANCE_TYPES, *without_a_name, "independent"} - {"gaussian"}


def test_every_law_is_tried():
    """Laws of specifications among them, on those of users."""
    files = [*Path(__file__).parent.glob("test_*.py"), Path(__file__).parents[1] / "test_testing.py"]
    text = "".join(file.read_text("utf-8") for file in files)
    assert [law for law in LAWS if f'"{law}"' not in text] == []


def test_at_a_point_the_log_likelihood_is_that_of_the_definition(problems, rng):
    hold("at_a_point_the_log_likelihood_is_the_definition", problems, rng)


def test_a_row_without_observed_cells_says_nothing(make, rng):
    hold("rows_without_cells_say_nothing", [make(rng, gaps=0.4) for _ in range(5)], rng)


def test_statistics_and_log_likelihoods_of_blocks_are_those_of_the_whole(problems, rng):
    hold("blocks_add_up_to_the_whole", problems, rng)


def test_restarts_side_by_side_are_restarts_alone(problems, rng):
    hold("parallel_restarts_are_restarts_alone", problems[:6], rng)


def test_responsibilities_may_be_stored_either_way(problems, rng):
    hold("responsibilities_may_be_stored_either_way", problems[:4], rng)


def test_weights_are_repeats(problems, rng):
    hold("weights_are_repeats", problems, rng)


def test_nothing_hidden_the_bound_is_the_evidence_and_the_product_of_the_predictions(problems, rng):
    conjugate = [problem for problem in problems if problem.conjugate]
    hold("bound_of_one_component_is_the_product_of_predictions", conjugate, rng)


def test_predictions_side_by_side_are_those_of_each_component(problems, rng):
    hold("parallel_predictions_are_those_of_each_component", problems[:6], rng)


@pytest.mark.parametrize("name", ["full", "diag", "exponential", "regression", "categorical", "bernoulli", "poisson"])
def test_predictions_sum_to_one(name, gaps, rng):
    hold("predictions_sum_to_one", [PROBLEMS[name](rng, gaps=gaps)], rng)


@pytest.mark.parametrize("name", ["full", "diag", "exponential", "regression", "poisson"])
def test_filled_cells_are_means_of_predictions(name, gaps, rng):
    hold("filled_cells_are_means_of_predictions", [PROBLEMS[name](rng, gaps=gaps) for _ in range(2)], rng)


def test_components_may_change_places(problems, rng):
    hold("components_may_change_places", problems[:6], rng)


def test_rows_in_the_order_advised_are_the_same_rows(make, rng):
    hold("rows_in_the_order_advised_are_the_same_rows", [make(rng, n_rows=60, gaps=0.4)], rng)


def test_draws_have_the_point_as_their_most_likely_one(make, rng):
    hold("draws_have_the_point_as_their_most_likely_one", [make(rng)], rng)


def test_filled_rows_keep_what_was_observed(make, rng):
    hold("filled_rows_keep_what_was_observed", [make(rng, gaps=0.4) for _ in range(4)], rng)


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name != "independent"])
def test_priors_of_weighted_rows_are_those_of_repeated_rows(name, rng):
    hold("priors_of_weighted_rows_are_those_of_repeated_rows", [PROBLEMS[name](rng, gaps=0.2)], rng)


def test_drawn_completions_have_the_expected_statistics(make, rng):
    hold("drawn_completions_have_the_expected_statistics", [make(rng, gaps=0.35)], rng)


def test_places_tell_rows_apart_and_know_no_unit(problems, rng):
    hold("seeding_coordinates_are_those_of_each_row", problems, rng)


def test_quantiles_are_those_of_draws_of_the_posterior(make, rng):
    for _ in range(2):
        hold("quantiles_are_those_of_draws_of_the_posterior", [make(rng, gaps=0.2)], rng)


def test_blocks_prepared_with_the_survey_of_all_are_blocks_of_the_whole_table(problems, rng):
    hold("blocks_prepared_with_the_survey_of_all_are_blocks_of_the_whole", problems, rng)


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name not in ("categorical", "independent")])
def test_units_of_blocks_are_those_of_the_whole_table(name, gaps, rng):
    hold("units_of_blocks_are_those_of_the_whole_table", [PROBLEMS[name](rng, n_rows=50, gaps=gaps)], rng)


def test_statistics_of_rows_add_up(problems, rng):
    hold("statistics_of_rows_add_up", problems, rng)


@pytest.mark.parametrize("name", ["full", "tied", "factor"])
def test_fits_end_at_no_saddle(name, rng):
    hold("fits_end_at_no_saddle", [PROBLEMS[name](rng, gaps=0.35)], rng)


def test_what_is_hidden_varies_as_draws_do(problems, rng):
    hold("what_is_hidden_varies_as_draws_do", problems[:3], rng)
