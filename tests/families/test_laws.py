"""What every conjugate family owes, on random members of each."""

import numpy as np
import pytest
from families.members import CASES

from skvbem.families import FAMILIES

approx = pytest.approx


@pytest.fixture
def cases(any_family, rng):
    return [CASES[any_family](rng) for _ in range(40)]


def test_every_family_has_random_members():
    assert set(CASES) == set(FAMILIES)


def test_expected_natural_parameters_are_the_gradient_of_the_log_normalizer(cases):
    for prior, _, coordinates, at in cases:
        expected = prior.expected_natural()
        assert expected.shape == coordinates.shape
        for cell in range(len(coordinates)):
            h = 1e-3 * coordinates[cell]

            def rise(k, cell=cell, h=h, coordinates=coordinates, at=at):
                """A(c + k h) - A(c - k h)."""
                step = np.zeros_like(coordinates)
                step[cell] = k * h
                return at(coordinates - step).log_normalizer_increment(2 * step)

            slope = (8 * rise(1) - rise(2)) / (12 * h)
            assert slope == approx(expected[cell], rel=1e-7, abs=1e-9)


def test_the_increment_is_a_difference_of_log_normalizers(cases):
    for prior, statistics, *_ in cases:
        before, after = prior.log_normalizer(), (prior + statistics).log_normalizer()
        assert before.shape == statistics.shape[1:]
        assert prior.log_normalizer_increment(statistics) == approx(after - before, abs=1e-8)  # of terms of 1e6


def test_kl_is_zero_between_equals_and_positive_between_others(cases):
    for prior, statistics, *_ in cases:
        assert np.all(prior.kl(prior) == 0)
        assert np.all((prior + (statistics + 1)).kl(prior) > 0)


def test_kl_is_positive_between_any_two(cases, rng):
    """Whichever has more mass: KL(prior || posterior) as well."""
    for prior, statistics, coordinates, at in cases:
        assert np.all(prior.kl(prior + (statistics + 1)) > 0)
        assert np.all(prior.kl(at(rng.permutation(coordinates))) >= -1e-8)


def test_statistics_add_in_any_order(cases):
    for prior, statistics, _, at in cases:
        parts, zero = [0.5 * statistics, 0.25 * statistics, 0.25 * statistics], at(np.zeros_like(statistics))
        together = (prior + statistics).statistics_above(zero)
        for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
            one_by_one = prior
            for k in order:
                one_by_one = one_by_one + parts[k]
            assert one_by_one.statistics_above(zero) == approx(together, rel=1e-14)


def test_what_was_added_can_be_read_off(cases):
    for prior, statistics, coordinates, _ in cases:
        rounding = 4 * np.finfo(float).eps * (coordinates + statistics).max()
        assert (prior + statistics).statistics_above(prior) == approx(statistics, abs=rounding)


def test_the_evidence_of_data_is_that_of_a_part_times_that_of_the_rest_after_it(cases):
    for prior, statistics, *_ in cases:
        first = 0.3 * statistics
        in_two = prior.log_evidence(first) + (prior + first).log_evidence(statistics - first)
        assert in_two == approx(prior.log_evidence(statistics), rel=1e-11, abs=1e-10)


def test_no_data_are_certain(cases):
    for prior, statistics, *_ in cases:
        assert np.all(prior.log_evidence(np.zeros_like(statistics)) == 0)


def test_members_side_by_side_are_members_alone(cases):
    for prior, statistics, coordinates, at in cases:
        posterior = prior + statistics
        for k in range(coordinates.shape[1]):
            alone = at(np.ascontiguousarray(coordinates[:, k]))
            counted = statistics[:, k]
            assert alone.log_normalizer() == approx(prior.log_normalizer()[k], abs=1e-8)  # of terms of 1e6
            assert alone.log_evidence(counted) == approx(prior.log_evidence(statistics)[k], rel=1e-12, abs=1e-12)
            assert (alone + counted).kl(alone) == approx(posterior.kl(prior)[k], rel=1e-9, abs=1e-10)
            assert np.array_equal(alone.expected_natural(), prior.expected_natural()[:, k])


def test_one_prior_serves_many_statistics(cases):
    """A prior without the trailing axis takes statistics with one."""
    for _, statistics, coordinates, at in cases:
        alone = at(np.ascontiguousarray(coordinates[:, 0]))
        together = alone.log_evidence(statistics)
        assert together.shape == statistics.shape[1:]
        for k in range(statistics.shape[1]):
            assert together[k] == approx(alone.log_evidence(statistics[:, k]), rel=1e-12, abs=1e-12)
            assert (alone + statistics).kl(alone)[k] == approx(
                (alone + statistics[:, k]).kl(alone), rel=1e-9, abs=1e-10
            )
