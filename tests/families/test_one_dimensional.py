"""Families of one integrated number against quadrature, printed maxima, and limits."""

import numpy as np
import pytest
from families.members import CASES
from scipy import stats
from scipy.special import gammaln, i0e

from skvbem.datasets import load_earthquakes
from skvbem.errors import NoInteriorModeError
from skvbem.families import DirectionConcentration, ShapeRate, SizeProbability
from skvbem.families.one_dimensional import trapezoid

approx = pytest.approx
INTEGRATED = ["direction_concentration", "shape_rate", "size_probability"]
#: Times between failures of an air conditioning, in hours [Proschan 1963].
FAILURES = np.array([3.0, 5, 7, 18, 43, 85, 91, 98, 100, 130, 230, 487])
ANGLES = np.array([-0.596, 0.345, -2.81, 0.05, 1.41, -0.77])
COUNTS = np.array([0.0, 0, 1, 3, 3, 11])


def of_times(times, largest_shape=1e6):
    unit = times.mean()
    prior = ShapeRate.from_parameters(1, [1.0], [largest_shape])
    return prior, np.array([0, 0, len(times), times.sum() / unit, np.log(times / unit).sum()]), -np.log(times).sum()


def of_angles(angles, largest=1e6):
    prior = DirectionConcentration.from_parameters(1, [largest])
    base = -len(angles) * np.log(2 * np.pi)
    return prior, np.array([0, 0, len(angles), np.cos(angles).sum(), np.sin(angles).sum()]), base


def of_counts(counts):
    knots = np.unique(counts[counts > 0])
    prior = SizeProbability.from_parameters(1, [counts.mean()], [1.0], knots)
    weights = [(counts == knot).sum() for knot in knots]
    return prior, np.array([0, 0, len(counts), counts.sum(), *weights]), -gammaln(counts + 1).sum()


def evidence(prior, statistics, base):
    """Log evidence of data, nats."""
    return float(prior.log_evidence(statistics)) + base


@pytest.mark.parametrize("family", INTEGRATED)
@pytest.mark.parametrize("share", [0.0, 1e-3, 0.05, 0.3, 1.0, 100.0])
def test_integrals_do_not_hang_on_the_number_of_nodes(family, share, monkeypatch):
    cases = [CASES[family](np.random.default_rng(seed)) for seed in range(15)]
    priors = [case.coordinates[:, :1] for case in cases]  # the first member is without data
    values = [case.at(prior + share * case.more).log_normalizer() for case, prior in zip(cases, priors)]
    monkeypatch.setattr(trapezoid, "_N_WIDE", 513)
    monkeypatch.setattr(trapezoid, "_N_NARROW", 257)
    for case, prior, before in zip(cases, priors, values):
        finer = case.at(prior + share * case.more).log_normalizer()
        assert before == approx(finer, abs=1e-10 + 1e-13 * abs(share * case.more).sum())


@pytest.mark.parametrize("family", INTEGRATED)
def test_lanes_that_share_components_have_the_integrals_that_each_has_alone(family):
    """Components are integrated once, whatever lanes they stand in; wide and narrow ones side by side."""
    case = CASES[family](np.random.default_rng(0))
    prior, more = case.coordinates[:, :1], case.more[:, :1] * np.array([0.0, 1.0, 1.0, 0.3, 0.0, 100.0])
    more[: len(more) // 2, 2] *= 1.5  # one component differs, or half of the features of one
    alone = [case.at(prior + more[:, [lane]]) for lane in range(more.shape[1])]
    together = case.at(prior + more)
    members, which = together._distinct
    assert len(members.feature) < len(which)
    assert together.log_normalizer() == approx(np.concatenate([one.log_normalizer() for one in alone]), rel=1e-15)
    natural = np.concatenate([one.expected_natural() for one in alone], axis=1)
    assert together.expected_natural() == approx(natural, rel=1e-14, abs=1e-14)


def double_integral(log_density, first, second):
    """ln of the integral of a density over a grid of evenly spaced points, nats."""
    values = log_density(first[:, None], second)
    top = values.max()
    return top + np.log(np.exp(values - top).sum() * (first[1] - first[0]) * (second[1] - second[0]))


def log_prior(log_x, most):
    """ln of the prior density of ln x, whose end these grids do not reach, nats."""
    return log_x - 2 * np.logaddexp(0, log_x) + np.log1p(1 / most)


def test_gamma_is_the_double_integral():
    n, total, logs = len(FAILURES), FAILURES.sum() / FAILURES.mean(), np.log(FAILURES / FAILURES.mean()).sum()

    def log_density(log_shape, log_rate):
        shape, rate = np.exp(log_shape), np.exp(log_rate)
        of_prior = log_prior(log_shape, 1e6) + stats.gamma.logpdf(rate, 1 + shape) + log_rate
        return of_prior + n * (shape * log_rate - gammaln(shape)) + shape * logs - rate * total

    wanted = double_integral(log_density, np.linspace(-6, 4, 500), np.linspace(-6, 4, 500)) - np.log(FAILURES).sum()
    assert evidence(*of_times(FAILURES)) == approx(wanted, abs=1e-6)


def test_von_mises_is_the_double_integral():
    def log_density(log_kappa, direction):
        kappa = np.exp(log_kappa)
        of_angles = kappa[..., None] * np.cos(ANGLES - direction[:, None]) if direction.ndim == 1 else None
        return (
            log_prior(log_kappa, 1e6)
            - np.log(2 * np.pi)
            + (of_angles - np.log(2 * np.pi * i0e(kappa))[..., None] - kappa[..., None]).sum(axis=-1)
        )

    directions = np.linspace(-np.pi, np.pi, 200, endpoint=False)
    wanted = double_integral(log_density, np.linspace(-25, 13.8155, 1500), directions)
    assert evidence(*of_angles(ANGLES)) == approx(wanted, abs=1e-6)


def test_negative_binomial_is_the_double_integral():
    def log_density(log_size, log_odds):
        size, p = np.exp(log_size), 1 / (1 + np.exp(-log_odds))
        of_prior = log_prior(log_size, np.inf) + stats.beta.logpdf(p, 1, 1 + size / COUNTS.mean())
        of_counts = sum(stats.nbinom.logpmf(count, size, 1 - p) for count in COUNTS)
        return of_prior + of_counts + np.log(p) + np.log1p(-p)

    wanted = double_integral(log_density, np.linspace(-12, 14, 500), np.linspace(-20, 12, 600))
    assert evidence(*of_counts(COUNTS)) == approx(wanted, abs=1e-5)


def test_maxima_are_the_printed_ones():
    prior, statistics, base = of_times(FAILURES)
    point = prior.most_likely(statistics)
    assert point.shape.item() == approx(0.7065, abs=5e-5)
    assert statistics @ prior.natural(point) + base == approx(-67.64542, abs=5e-6)
    assert evidence(*of_times(FAILURES, 1e12)) == approx(-70.62108, abs=5e-6)


def test_sizes_of_poisson_counts_are_at_the_end():
    """Counts that spread less than Poisson counts: the most likely size is as large as one may be."""
    prior, statistics, base = of_counts(np.array([2.0, 3, 3, 4]))
    point = prior.most_likely(statistics)
    poisson = stats.poisson(3.0).logpmf([2, 3, 3, 4]).sum()
    assert statistics @ prior.natural(point) + base == approx(poisson, abs=1e-9)
    assert prior.mode().size.item() < np.inf


def test_equal_numbers_have_finite_evidence():
    """A density has no bound there; the resolution of the prior is one."""
    for n in (2, 50, 5000):
        most = n * np.log(1e3 * np.sqrt(n))
        assert -3 * n < evidence(*of_times(np.full(n, 7.0))) + n * np.log(7.0) < most
        assert -3 * n < evidence(*of_angles(np.full(n, 0.3))) < most


def test_turns_of_all_angles_and_whole_turns_change_nothing():
    first = evidence(*of_angles(ANGLES))
    assert evidence(*of_angles(ANGLES + 1.234)) == approx(first, abs=1e-12)
    assert evidence(*of_angles(ANGLES + 2 * np.pi)) == approx(first, abs=1e-12)


def test_units_of_numbers_shift_the_evidence_by_their_logarithm():
    scaled = evidence(*of_times(FAILURES * 60))
    assert scaled == approx(evidence(*of_times(FAILURES)) - 12 * np.log(60), abs=1e-9)


def test_far_tails_are_finite():
    prior, statistics, _ = of_angles(np.array([1.0, 1.0 + 1e-7, 1.0 - 1e-7]))
    assert np.isfinite(prior.log_evidence(statistics))
    assert (prior + statistics).is_valid
    huge = SizeProbability.from_parameters(1, [1e9], [1.0], [1e9])
    cells = np.array([0, 0, 3.0, 3e9, 3.0])
    assert np.isfinite((huge + cells).expected_natural()).all()
    for size in (1e-6, 1e6, 1e12):
        computed = huge.natural(huge.from_unconstrained(np.array([np.log(size), 0.0])))[4]
        assert computed == approx(float(log_ratio(size, 1e9)), rel=1e-13)


def log_ratio(size, count):
    """ln Gamma(count + size) - ln Gamma(size), with fifty digits."""
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 50
    return mpmath.loggamma(mpmath.mpf(count) + size) - mpmath.loggamma(mpmath.mpf(size))


@pytest.mark.parametrize("family", INTEGRATED)
def test_quantiles_are_those_of_draws(family):
    case = CASES[family](np.random.default_rng(3))
    member = case.single()
    drawn = np.log(member.draws(20_000, np.random.default_rng(0))[0])
    for probability in (0.05, 0.5, 0.9):
        below = (drawn < np.log(member.quantiles_of_x(probability))[..., None]).mean(axis=-1)
        assert below == approx(np.full(below.shape, probability), abs=0.015)


def test_von_mises_quantiles_are_scipys():
    concentration, probability = np.array([1e-8, 0.5, 30.0, 1e5]), np.array([0.1, 0.8, 0.4, 0.999])
    computed = trapezoid.von_mises_quantile(concentration, probability)
    for kappa, p, angle in zip(concentration, probability, computed):
        t = np.linspace(-np.pi, angle, 400_001) if kappa < 100 else np.linspace(-0.1, angle, 400_001)
        density = np.exp(-2 * kappa * np.sin(t / 2) ** 2) / (2 * np.pi * i0e(kappa))
        assert np.trapezoid(density, t) == approx(p, abs=1e-5)


def test_counts_of_earthquakes_are_overdispersed():
    counts = np.asarray(load_earthquakes().data, dtype=float).ravel()
    prior, statistics, base = of_counts(counts)
    assert evidence(prior, statistics, base) > stats.poisson(counts.mean()).logpmf(counts).sum() + 25


def test_no_interior_mode_is_refused():
    with pytest.raises(NoInteriorModeError, match="size and probability"):
        of_counts(COUNTS)[0].mode("probability")


def test_weights_between_counts_are_signed_and_cells_of_counts_belong_together():
    prior = SizeProbability.from_parameters(1, unit=[2.0], weight=[1.0], knots=[1.0, 2.0, 3.0, 4.2, 6.0, 7.8])
    assert prior.signed.tolist() == [False] * 7 + [True] * 3
    alike = np.ones(10, dtype=bool)
    assert prior.known_cells(alike).all()
    alike[2] = False
    assert not prior.known_cells(alike).any()
