"""The laws of conjugate families, `skvbem.testing.check_family`, on random members of each."""

from pathlib import Path

import numpy as np
import pytest
from families.members import CASES

from skvbem.families import FAMILIES
from skvbem.testing import check_family
from skvbem.testing.families import LAWS

#: Families whose normalizers are integrals, each of which takes a hundred times as long as a formula.
INTEGRATED = {"direction_concentration", "shape_rate", "size_probability"}


@pytest.fixture
def cases(any_family, rng):
    return [CASES[any_family](rng) for _ in range(5 if any_family in INTEGRATED else 40)]


def hold(law, cases, rng):
    for case in cases:
        assert check_family(case, laws=[law], rng=rng).held == (law,)


def test_every_family_has_random_members():
    assert set(CASES) == set(FAMILIES)


def test_every_law_is_tried():
    text = Path(__file__).read_text("utf-8")
    assert [law for law in LAWS if f'hold("{law}", ' not in text] == []


def test_expected_natural_parameters_are_the_gradient_of_the_log_normalizer(cases, rng):
    hold("expected_natural_is_the_gradient", cases, rng)


def test_the_increment_is_a_difference_of_log_normalizers(cases, rng):
    hold("increment_is_a_difference_of_log_normalizers", cases, rng)


def test_kl_is_zero_between_equals_and_positive_between_others(cases, rng):
    hold("kl_is_zero_between_equals_and_positive_between_others", cases, rng)


def test_kl_is_positive_between_any_two(cases, rng):
    hold("kl_is_positive_between_any_two", cases, rng)


def test_kl_is_the_mean_log_ratio_of_the_densities(cases, rng):
    hold("kl_is_the_mean_log_ratio_of_the_densities", cases[:12], rng)


def test_draws_have_the_expected_natural_parameters(cases, rng):
    hold("draws_have_the_expected_natural_parameters", cases[:12], rng)


def test_draws_of_one_density_are_those_of_as_many_members_that_are_it(cases):
    for case in cases:
        one = case.single()
        many = case.at(np.repeat(one.coordinates[:, None], 3, axis=1)).sample(np.random.default_rng(0))
        drawn = one.draws(3, np.random.default_rng(0))
        np.testing.assert_allclose(one.natural(drawn), one.natural(many), rtol=1e-9, atol=1e-12)


def test_members_side_by_side_draw_what_each_draws_alone(cases, rng):
    hold("parallel_members_draw_what_each_draws_alone", cases, rng)


def test_members_are_valid_and_what_no_data_could_give_is_not(cases, rng):
    hold("members_are_valid_and_what_no_data_could_give_is_not", cases, rng)


def test_statistics_add_in_any_order(cases, rng):
    hold("statistics_add_in_any_order", cases, rng)


def test_what_was_added_can_be_read_off(cases, rng):
    hold("what_was_added_can_be_read_off", cases, rng)


def test_the_evidence_of_data_is_that_of_a_part_times_that_of_the_rest_after_it(cases, rng):
    hold("evidence_of_data_is_that_of_a_part_times_that_of_the_rest", cases, rng)


def test_no_data_are_certain(cases, rng):
    hold("no_data_are_certain", cases, rng)


def test_members_side_by_side_are_members_alone(cases, rng):
    hold("parallel_members_are_members_alone", cases, rng)


def test_one_prior_serves_many_statistics(cases, rng):
    hold("one_prior_serves_many_statistics", cases, rng)


def test_the_mode_is_where_the_density_of_its_basis_does_not_rise(cases, rng):
    hold("mode_is_where_the_density_of_its_basis_does_not_rise", cases[:15], rng)


def test_unconstrained_coordinates_come_back(cases, rng):
    hold("unconstrained_coordinates_come_back", cases, rng)


def test_the_natural_measure_is_volume_in_unconstrained_coordinates(cases, rng):
    hold("natural_measure_is_volume_in_unconstrained_coordinates", cases[:8], rng)


def test_data_are_most_likely_at_the_most_likely_point(cases, rng):
    hold("data_are_most_likely_at_the_most_likely_point", cases[:15], rng)


def test_derivatives_by_unconstrained_coordinates_are_those_of_differences(cases, rng):
    hold("derivatives_by_unconstrained_coordinates_are_differences", cases[:15], rng)


def test_points_come_back_from_natural_parameters(cases, rng):
    hold("points_come_back_from_natural_parameters", cases, rng)


def test_shifted_coordinates_give_the_density_with_respect_to_the_parameters(cases, rng):
    hold("shifted_coordinates_give_the_density_of_the_parameters", cases[:15], rng)
