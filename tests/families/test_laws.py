"""What every conjugate family owes, on random members of each."""

import numpy as np
import pytest
from families.members import CASES

from skvbem.families import FAMILIES
from skvbem.families.parallel_generator import ParallelGenerator

approx = pytest.approx
EPS = np.finfo(float).eps


@pytest.fixture
def cases(any_family, rng):
    return [CASES[any_family](rng) for _ in range(40)]


def scale_of(case, statistics):
    """Size of the terms that a KL or an increment is a sum of, nats."""
    posterior = case.prior + statistics
    natural = np.maximum(abs(posterior.expected_natural()), abs(case.prior.expected_natural()))
    return (abs(statistics) * natural).sum(axis=0) + 1


def test_every_family_has_random_members():
    assert set(CASES) == set(FAMILIES)


def test_expected_natural_parameters_are_the_gradient_of_the_log_normalizer(cases):
    for case in cases:
        coordinates, expected = case.coordinates, case.prior.expected_natural()
        assert expected.shape == coordinates.shape
        for cell, h in enumerate(case.steps):

            def rise(k, cell=cell, h=h, case=case):
                """A(c + k h) - A(c - k h)."""
                step = np.zeros_like(case.coordinates)
                step[cell] = k * h
                return case.at(case.coordinates - step).log_normalizer_increment(2 * step)

            slope = (8 * rise(1) - rise(2)) / (12 * h)
            assert np.all(abs(slope - expected[cell]) <= 1e-7 * abs(expected[cell]) + 1e-9 + 1e-12 / h)


def test_the_increment_is_a_difference_of_log_normalizers(cases):
    for prior, statistics, *_ in cases:
        before, after = prior.log_normalizer(), (prior + statistics).log_normalizer()
        assert before.shape == statistics.shape[1:]
        assert prior.log_normalizer_increment(statistics) == approx(after - before, abs=1e-8)  # of terms of 1e6


def test_kl_is_zero_between_equals_and_positive_between_others(cases):
    for prior, _, _, more, *_ in cases:
        assert np.all(prior.kl(prior) == 0)
        assert np.all((prior + more).kl(prior) > 0)


def test_kl_is_positive_between_any_two(cases):
    """Whichever has more mass: KL(prior || posterior) as well."""
    for prior, _, _, more, other, _, at in cases:
        assert np.all(prior.kl(prior + more) > 0)
        assert np.all(prior.kl(at(other)) >= -1e-8)


def test_kl_is_the_mean_log_ratio_of_the_densities(cases, rng):
    """By Monte Carlo, in standard errors; whatever the measure."""
    n = 2000
    for case in cases[:12]:
        _, _, coordinates, more, *_, at = case
        q, p = at(np.repeat(coordinates + more, n, axis=1)), at(np.repeat(coordinates, n, axis=1))
        point = q.sample(rng)
        if np.isinf(q.natural(point)).any():
            continue
        for basis in ("natural", "probability"):
            ratio = (q.log_density(point, basis) - p.log_density(point, basis)).reshape(-1, n)
            error = ratio.std(axis=1) / np.sqrt(n)
            assert np.all(abs(ratio.mean(axis=1) - (case.prior + more).kl(case.prior)) < 5 * error + 1e-6)


def test_draws_have_the_expected_natural_parameters(cases, rng):
    n = 4000
    for case in cases[:12]:
        *_, at = case
        many = at(np.repeat(case.coordinates + case.more, n, axis=1))
        drawn = many.natural(many.sample(rng)).reshape(*case.coordinates.shape, n)
        if np.isinf(drawn).any():
            continue
        error = drawn.std(axis=-1) / np.sqrt(n)
        expected = (case.prior + case.more).expected_natural()
        assert np.all(abs(drawn.mean(axis=-1) - expected) <= 6 * error + 1e-9 * abs(expected))


def test_members_side_by_side_draw_what_each_draws_alone(cases, rng):
    """From generators of their own, which are then at the same place."""
    for case in cases:
        seeds = rng.integers(2**32, size=case.coordinates.shape[1]).tolist()
        rngs = [np.random.default_rng(seed) for seed in seeds]
        together = case.prior.natural(case.prior.sample(ParallelGenerator(rngs)))
        for lane, seed in enumerate(seeds):
            alone, own = case.at(case.coordinates[:, lane]), np.random.default_rng(seed)
            assert together[:, lane] == approx(alone.natural(alone.sample(own)), rel=1e-9, abs=0.0, nan_ok=True)
            assert rngs[lane].bit_generator.state == own.bit_generator.state
    with pytest.raises(ValueError, match="1 generators for 3 lanes"):
        case.prior.sample(ParallelGenerator(rngs[:1]))


def test_members_are_valid_and_what_no_data_could_give_is_not(cases):
    for case in cases:
        prior, statistics, coordinates, *_, at = case
        assert prior.is_valid.shape == coordinates.shape[1:]
        assert prior.is_valid.all()
        assert (prior + statistics).is_valid.all()
        for cell in range(len(coordinates)):
            wrong = coordinates.copy()
            wrong[cell, 0] = np.nan
            assert at(wrong).is_valid.tolist() == [False, True, True]
        assert not at(-coordinates).is_valid.any()


def test_statistics_add_in_any_order(cases):
    for prior, statistics, *_, at in cases:
        parts, zero = [0.5 * statistics, 0.25 * statistics, 0.25 * statistics], at(np.zeros_like(statistics))
        together = (prior + statistics).statistics_above(zero)
        rounding = 4 * EPS * (abs(together) + abs(statistics))
        for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
            one_by_one = prior
            for k in order:
                one_by_one = one_by_one + parts[k]
            assert np.all(abs(one_by_one.statistics_above(zero) - together) <= rounding)


def test_what_was_added_can_be_read_off(cases):
    for prior, statistics, coordinates, *_ in cases:
        rounding = 4 * EPS * abs(coordinates + statistics).max()
        assert (prior + statistics).statistics_above(prior) == approx(statistics, abs=rounding)


def test_the_evidence_of_data_is_that_of_a_part_times_that_of_the_rest_after_it(cases):
    for case in cases:
        prior, statistics, *_ = case
        first = 0.3 * statistics
        in_two = prior.log_evidence(first) + (prior + first).log_evidence(statistics - first)
        whole = prior.log_evidence(statistics)
        assert np.all(abs(in_two - whole) <= 1e-11 * abs(whole) + 1e-10 + 1e-13 * scale_of(case, statistics))


def test_no_data_are_certain(cases):
    for prior, statistics, *_ in cases:
        assert np.all(prior.log_evidence(np.zeros_like(statistics)) == 0)


def test_members_side_by_side_are_members_alone(cases):
    for case in cases:
        prior, statistics, coordinates, *_, at = case
        posterior, unit = prior + statistics, scale_of(case, statistics)
        for k in range(coordinates.shape[1]):
            alone = at(np.ascontiguousarray(coordinates[:, k]))
            counted = statistics[:, k]
            assert alone.log_normalizer() == approx(prior.log_normalizer()[k], abs=1e-8)  # of terms of 1e6
            together = prior.log_evidence(statistics)[k]
            assert alone.log_evidence(counted) == approx(together, rel=1e-12, abs=1e-13 * unit[k])
            assert (alone + counted).kl(alone) == approx(posterior.kl(prior)[k], rel=1e-9, abs=1e-13 * unit[k])
            assert alone.expected_natural() == approx(prior.expected_natural()[:, k], rel=1e-13, abs=1e-13)


def test_one_prior_serves_many_statistics(cases):
    """A prior without the trailing axis takes statistics with one."""
    for case in cases:
        _, statistics, coordinates, *_, at = case
        alone, unit = at(np.ascontiguousarray(coordinates[:, 0])), scale_of(case, statistics)
        together, kl = alone.log_evidence(statistics), (alone + statistics).kl(alone)
        assert together.shape == statistics.shape[1:]
        for k in range(statistics.shape[1]):
            one, size = statistics[:, k], 1e-12 * unit.max()
            assert together[k] == approx(alone.log_evidence(one), rel=1e-12, abs=size)
            assert kl[k] == approx((alone + one).kl(alone), rel=1e-9, abs=size)


def test_the_mode_is_where_the_density_of_its_basis_does_not_rise(cases, rng):
    """Along every direction of the unconstrained coordinates, for both measures."""
    for case in cases[:15]:
        *_, at = case
        posterior = at((case.coordinates + case.more)[:, 0] * 1.0)
        for basis in ("natural", "probability"):
            try:
                mode = posterior.mode(basis)
            except ValueError:
                continue
            free, top = posterior.to_unconstrained(mode), float(posterior.log_density(mode, basis))
            assert len(free) == posterior.n_free_parameters
            for _ in range(12):
                aside = posterior.from_unconstrained(free + 1e-3 * rng.normal(size=free.shape))
                assert float(posterior.log_density(aside, basis)) <= top + 1e-12 * scale_of(case, case.more).max()


def test_unconstrained_coordinates_come_back(cases, rng):
    for case in cases:
        prior = case.prior + case.more
        free = rng.normal(size=(prior.n_free_parameters, case.coordinates.shape[1]))
        again = prior.to_unconstrained(prior.from_unconstrained(free))
        assert again == approx(free, rel=1e-9, abs=1e-9)


def test_the_natural_measure_is_volume_in_unconstrained_coordinates(cases, rng):
    """The density is the Gaussian of its curvature there, as the data become many: Laplace's formula gives A."""
    for case in cases[:8]:
        *_, at = case
        many = at((case.coordinates + case.more)[:, 0] * 1e4)
        mode = many.mode()
        free, d = many.to_unconstrained(mode), many.n_free_parameters
        top = many.log_density(mode)

        def loss(step, many=many, free=free, top=top):
            return float(top - many.log_density(many.from_unconstrained(free + step)))

        h = np.full(d, 1e-3)
        for _ in range(3):
            h = 0.3 * h / np.sqrt([loss(step) + loss(-step) for step in np.diag(h)])
        curvature = [[loss(a + b) - loss(a - b) - loss(b - a) + loss(-a - b) for a in np.diag(h)] for b in np.diag(h)]
        curvature = np.array(curvature) / (4 * np.outer(h, h))
        laplace = float(top) + d / 2 * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(curvature)[1]
        assert laplace == approx(0.0, abs=0.05)  # a wrong measure is off by ln 2 at the least


def test_data_are_most_likely_at_the_most_likely_point(cases, rng):
    """No other point near it gives them more."""
    for case in cases[:15]:
        prior = case.prior
        best = prior.most_likely(case.more)
        free, top = prior.to_unconstrained(best), prior._inner(case.more, prior.natural(best))
        for size in (1e-3, 0.3):
            aside = prior.from_unconstrained(free + size * rng.normal(size=free.shape))
            assert np.all(prior._inner(case.more, prior.natural(aside)) <= top + 1e-12 * abs(top) + 1e-12)


def test_derivatives_by_unconstrained_coordinates_are_those_of_differences(cases, rng):
    """First ones of the natural parameters, second ones of their product with coordinates."""
    for case in cases[:15]:
        prior, weights, h = case.at((case.coordinates + case.more)[:, 0] * 1.0), case.more[:, 0], 1e-5
        free = prior.to_unconstrained(prior.mode()) + 0.1 * rng.normal(size=prior.n_free_parameters)
        steps = h * np.eye(len(free))

        def natural(free, prior=prior):
            return prior.natural(prior.from_unconstrained(free))

        def gradient(free, prior=prior, weights=weights):
            return weights @ prior.jacobian(prior.from_unconstrained(free))

        jacobian, information = (
            np.stack([(f(free + e) - f(free - e)) / (2 * h) for e in steps], axis=1) for f in (natural, gradient)
        )
        point = prior.from_unconstrained(free)
        found = prior.jacobian(point)
        assert found == approx(jacobian, abs=1e-9 * (1 + abs(found).max()))
        found = prior.information(point, weights)
        assert found == approx(-information, abs=1e-9 * (1 + abs(found).max()))
        some = rng.permutation(len(free))[: 1 + len(free) // 2]
        assert prior.information(point, weights, some).tolist() == found[np.ix_(some, some)].tolist()
        for of in (some, np.arange(len(free))):
            sign, log_det = np.linalg.slogdet(prior.information(point, prior.coordinates, of))
            if sign > 0:
                assert prior.log_det_information(point, prior.coordinates, of) == approx(log_det, abs=1e-8)
                diagonal = np.log(np.diag(prior.information(point, prior.coordinates, of))).sum()
                assert prior.log_det_information(point, prior.coordinates, of, True) == approx(diagonal, abs=1e-8)


def test_points_come_back_from_natural_parameters(cases, rng):
    for case in cases:
        prior = case.prior + case.more
        natural = prior.natural(prior.mode())
        assert prior.natural(prior.from_natural(natural)) == approx(natural, rel=1e-9, abs=1e-9)


def test_shifted_coordinates_give_the_density_with_respect_to_the_parameters(cases, rng):
    """Up to a factor, which is the same at all points."""
    for case in cases[:15]:
        prior = case.at((case.coordinates + case.more)[:, 0] * 1.0)
        free = prior.to_unconstrained(prior.mode())
        found = []
        for _ in range(4):
            point = prior.from_unconstrained(free + 0.3 * rng.normal(size=free.shape))
            measure = prior.log_density(point, "probability") - prior.log_density(point)
            found.append(measure - prior.probability_shift @ prior.natural(point))
        assert found == approx(np.full(4, found[0]), rel=1e-9, abs=1e-8)
