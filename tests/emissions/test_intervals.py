"""Measurements known as intervals, against the definition, quadrature, and numbers of record."""

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import logsumexp

import skvbem
from skvbem import VBHMM, VBMixture
from skvbem.datasets import load_faithful
from skvbem.emissions import Censored, Gaussian, Interval, ZeroInflated, interval_cells
from skvbem.emissions.interval_cells import OwnIntervals, log_mass_and_moments
from skvbem.emissions.intervals import draw_between, log_t_mass

approx = pytest.approx

WAITS = np.asarray(load_faithful().data, dtype=float)[:, 1:]
# Standardized; means N(0, 1/tau), tau ~ Gamma(1, 1/2): bounds of K components where waits below 60 are known as such
# alone, and of waits in classes that end at 50, 60, 70, 80 and 90; the evidences of K = 1 by quadrature.
BELOW_60 = {1: -364.56369, 2: -324.41425, 3: -328.94023}
IN_CLASSES = {1: -475.18418, 2: -452.74963, 3: -457.27184}
EVIDENCE_BELOW_60, EVIDENCE_IN_CLASSES = -364.28600, -475.03183


def known(made, **options):
    """An emission with the prior of the record, in the units of the waits."""
    prior = {"mean_prior": [WAITS.mean()], "covariance_prior": [WAITS.var()]}
    return made(mean_precision_prior=1.0, degrees_of_freedom_prior=2.0, **prior, **options)


def fitted(X, emission, n_components=1, n_init=1, **options):
    model = VBMixture(n_components, emission=emission, n_init=n_init, random_state=0, tol=1e-10)
    return model.fit(X, **options)


def in_classes(waits, *ends):
    """Pairs of ends, NaN where one is open."""
    ends = np.array([np.nan, *ends, np.nan])
    number = np.searchsorted(ends[1:-1], waits.ravel(), side="right")
    return np.column_stack([ends[number], ends[number + 1]])


# --- the normal distribution between two ends -------------------------------------------------------------------------


def between(low, high, n_moments=2):
    """Of standard normal probabilities, the logarithms (n,) and the first moments (n_moments, n)."""
    cells = OwnIntervals(np.array([low], dtype=float), np.array([high], dtype=float))
    (log_mass,), (moments,) = log_mass_and_moments(cells, np.zeros((1, 1)), np.ones((1, 1)), n_moments)
    return log_mass, moments


ENDS = [
    *[(-np.inf, -1), (-np.inf, 3), (-1, 2), (-3, 8), (-8, 3), (5, 6), (-2, 2), (-7, -6.5), (4, np.inf)],
    *[(0.3, 0.3001), (0, 0.99), (6, 6.16), (-0.5, 0.49)],  # narrow
]


@pytest.mark.parametrize(("low", "high"), ENDS)
def test_mass_and_moments_are_those_of_quadrature(low, high):
    log_mass, moments = between([float(low)], [float(high)], 4)
    low, high = max(low, -12.0), min(high, 12.0)
    nodes, weights = np.polynomial.legendre.leggauss(200)
    z, weights = (low + high) / 2 + (high - low) / 2 * nodes, weights * (high - low) / 2
    density = weights * stats.norm.pdf(z)
    assert log_mass[0] == approx(np.log(density.sum()), abs=1e-12)
    assert moments[:, 0] == approx([density @ z**k / density.sum() for k in (1, 2, 3, 4)], rel=1e-11, abs=1e-13)


def test_far_tails_are_finite():
    far = np.array([38.0, 50.0, 1e3, 1e6])
    log_mass, moments = between(far, np.full(4, np.inf))
    assert log_mass == approx(stats.norm.logsf(far), rel=1e-12)
    assert moments[0] == approx(far + 1 / far - 2 / far**3, rel=1e-6)
    assert (moments[1] - moments[0] ** 2)[:3] == approx(far[:3] ** -2, rel=1e-2)
    assert np.isfinite(between(-far - 1, -far, 4)[1]).all()
    drawn = draw_between(np.repeat(far, 3), np.full(12, np.inf), np.tile([0.1, 0.5, 0.9], 4))
    assert (drawn >= np.repeat(far, 3)).all()
    near = draw_between(np.full(3, 5.0), np.full(3, np.inf), np.array([0.1, 0.5, 0.9]))
    assert near == approx(stats.norm.isf(np.array([0.1, 0.5, 0.9]) * stats.norm.sf(5.0)), rel=1e-9)
    assert log_t_mass(np.array([1e5]), np.array([np.inf]), np.array([3.0]))[0] == approx(stats.t(3).logsf(1e5))


def test_intervals_of_any_width_are_those_of_quadrature(rng):
    """Many at once, wide and narrow ones side by side, and cells that are none."""
    low = rng.choice([-1, 1], 1000) * 10 ** rng.uniform(-2, 1.5, 1000)
    width = 10 ** rng.uniform(-5, 1, 1000)
    low[::7] = np.nan
    log_mass, moments = between(low, low + width, 4)
    nodes, weights = np.polynomial.legendre.leggauss(400)
    z = low[:, None] + width[:, None] / 2 * (nodes + 1)
    at = np.where(np.abs(low) < np.abs(low + width), low, low + width)
    at = np.where((low < 0) & (low + width > 0), 0.0, at)  # where the density is highest
    density = np.exp((at[:, None] - z) * (at[:, None] + z) / 2) * weights
    there, total = ~np.isnan(low), density.sum(axis=1)
    expected = np.log(total * width / 2) - at**2 / 2 - np.log(2 * np.pi) / 2
    assert log_mass[there] == approx(expected[there], rel=1e-12, abs=1e-12)
    for k, moment in enumerate(moments, 1):
        assert moment[there] == approx(((density * z**k).sum(axis=1) / total)[there], rel=1e-10, abs=1e-12)
    assert not log_mass[~there].any()
    assert not moments[:, ~there].any()
    assert np.array_equal(between(low, low + width)[1], moments[:2])


def test_intervals_that_rows_share_are_those_row_by_row(rng, monkeypatch):
    """Likelihoods, statistics of sums and of rows, covariances, and predictions."""
    pairs = np.stack([rng.integers(-3, 1, (60, 2)), rng.integers(1, 4, (60, 2))], axis=2).astype(float)
    pairs[rng.random((60, 2)) < 0.2, 0] = -np.inf
    pairs[rng.random((60, 2)) < 0.2] = np.nan
    pairs[:10, 0] = rng.normal(size=(10, 1))
    X = pairs.reshape(60, 4)
    made = Interval([0.0, 0.0], 1.0, 2.0, [1.0, 1.0])
    emission = made.for_data(X)
    prior = emission.default_prior(3, **made.prior_options(emission, ["x0", "x1", "x2", "x3"]))
    responsibilities = rng.dirichlet(np.ones(3), size=60)
    points = np.repeat(rng.normal(size=(60, 2)), 2, axis=1)
    seen = emission.step(prior.expected_natural(), emission.prepare(points))
    total = seen.zeros()
    seen.add(emission.prepare(points), responsibilities, total)
    natural = (prior + seen.statistics(total)).expected_natural()

    def asked(few):
        monkeypatch.setattr(interval_cells, "_MAX_SHARED_INTERVALS", few)
        table = emission.prepare(X)
        assert isinstance(table.cells, OwnIntervals) == (few == 0)
        step = emission.step(natural, table)
        total = step.zeros()
        for rows in (slice(0, 20), slice(20, 60)):
            step.add(table[rows], responsibilities[rows], total)
        return [
            np.concatenate([step.log_likelihood(table[:20]), step.log_likelihood(table[20:])]),
            *(step.statistics(total), step.of_rows(table), step.hidden_covariance(table, responsibilities)),
            emission.log_predictive(table, prior),
        ]

    for shared, own in zip(asked(1024), asked(0)):
        assert np.isfinite(own).all()
        assert shared == approx(own, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("n_columns", [1, 5, 19])
@pytest.mark.parametrize("kind", ["wide", "narrow", "far", "any"])
def test_rows_have_the_sums_of_their_cells(n_columns, kind, rng):
    """One logarithm for each row: far tails, open ends, narrow cells and cells that are none, one beside the other."""
    shape = n_columns, 700
    low = {"far": 25.0, "any": 8.0}.get(kind, 1.5) * rng.standard_t(3, size=shape)
    high = low + (10 ** rng.uniform(-4, -1, shape) if kind == "narrow" else 3 * rng.exponential(size=shape))
    if kind == "any":
        high[rng.random(shape) < 0.3] = np.inf
        low[rng.random(shape) < 0.1] = -np.inf
        low[np.isinf(low) & np.isinf(high)] = 0.0
        low[rng.random(shape) < 0.2] = np.nan
        low[:, :10] = np.nan
    mean, unit, peak = (
        rng.normal(size=(3, n_columns)),
        rng.exponential(size=(3, n_columns)) + 0.2,
        rng.normal(size=(3, n_columns)),
    )
    cells = OwnIntervals(low, high)
    by_cell, of_cells = log_mass_and_moments(cells, mean, unit)
    of_rows, moments = cells.log_masses(mean, unit, peak)
    assert of_rows == approx(cells.of_rows(by_cell, peak), rel=1e-12, abs=1e-12)
    assert moments == approx(of_cells, rel=1e-12, abs=1e-12)
    there = ~np.isnan(low).ravel()
    assert not moments[..., ~there].any()
    for rows in (slice(256, 300), rng.integers(700, size=300)):
        assert np.array_equal(cells[rows].log_masses(mean, unit, peak)[0], of_rows[:, rows])


def test_narrow_intervals_are_points():
    width = 1e-9
    log_mass, moments = between([2.0], [2.0 + width], 4)
    assert log_mass[0] == approx(stats.norm.logpdf(2.0) + np.log(width), abs=1e-7)
    assert moments[:, 0] == approx(2.0 ** np.arange(1, 5))
    mass = log_t_mass(np.array([2.0]), np.array([2.0 + width]), np.array([3.0]))
    assert mass[0] == approx(stats.t(3).logpdf(2.0) + np.log(width), abs=1e-7)


# --- fits -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_components", BELOW_60)
def test_bounds_are_those_of_record(n_components):
    waits = np.where(WAITS == 60, 60 + 1e-9, WAITS)  # an hour is known
    model = fitted(waits, known(Censored, below=60.0), n_components, n_init=5)
    volume = np.count_nonzero(waits > 60) * np.log(WAITS.std())
    assert model.lower_bound_ + volume == approx(BELOW_60[n_components], abs=2e-5)
    pairs = in_classes(WAITS, 50, 60, 70, 80, 90)
    model = fitted(pairs, known(Interval), n_components, n_init=5)
    assert model.lower_bound_ == approx(IN_CLASSES[n_components], abs=2e-5)


def test_evidences_are_those_of_quadrature():
    pairs = in_classes(WAITS, 50, 60, 70, 80, 90)
    model = fitted(pairs, known(Interval))
    assert model.log_evidence(pairs, kind="laplace").value == approx(EVIDENCE_IN_CLASSES, abs=0.03)
    sampled = model.log_evidence(pairs, kind="importance", random_state=0)
    assert sampled.value == approx(EVIDENCE_IN_CLASSES, abs=0.03)


def test_the_bound_of_tiny_data_is_below_the_evidence():
    pairs = np.array([[np.nan, -0.5], [0.2, 0.2], [0.5, np.nan], [-0.1, 1.4]])
    emission = Interval([0.0], 1.0, 2.0, [1.0])
    mean, log_tau = np.linspace(-12, 12, 1201)[:, None], np.linspace(-9, 6, 601)
    deviation = np.exp(-log_tau / 2)
    law = stats.norm(mean, deviation)
    density = stats.norm(0, deviation).logpdf(mean) + stats.expon(scale=2.0).logpdf(np.exp(log_tau)) + log_tau
    density = density + law.logcdf(-0.5) + law.logpdf(0.2) + law.logsf(0.5)
    with np.errstate(divide="ignore"):
        density = density + np.log(law.cdf(1.4) - law.cdf(-0.1))
    exact = logsumexp(density) + np.log(24 / 1200 * 15 / 600)
    assert exact - 1.0 < fitted(pairs, emission).lower_bound_ < exact


def test_most_likely_parameters_are_those_of_tobit():
    def loss(free):
        law = stats.norm(free[0], np.exp(free[1]))
        return -np.where(WAITS > 60, law.logpdf(WAITS), law.logcdf(60)).sum()

    best = optimize.minimize(loss, [70.0, 2.5], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-10})
    model = VBMixture(1, emission=Censored(below=60), method="ml", tol=1e-13, max_iter=3000, random_state=0).fit(WAITS)
    assert model.score(WAITS) * len(WAITS) == approx(-best.fun, abs=1e-6)
    assert model.parameters_["censored"]["means"][0, 0] == approx(best.x[0], abs=1e-3)


def test_without_intervals_it_is_the_gaussian(rng):
    X = rng.normal(size=(40, 2)) + 4 * rng.integers(2, size=(40, 1))
    X[rng.random(X.shape) < 0.1] = np.nan
    expected = fitted(X, Gaussian("diag"), 2).lower_bound_
    assert fitted(X, Censored(), 2).lower_bound_ == approx(expected, rel=1e-12)
    assert fitted(np.repeat(X, 2, axis=1), Interval(), 2).lower_bound_ == approx(expected, rel=1e-12)
    width = 1e-6
    rounded = np.stack([X - width / 2, X + width / 2], axis=-1).reshape(40, 4)
    n_points = np.count_nonzero(~np.isnan(X))
    assert fitted(rounded, Interval(), 2).lower_bound_ == approx(expected + n_points * np.log(width), abs=1e-4)


def test_weights_are_repeats_and_units_are_those_of_points(rng):
    X = rng.normal(size=(30, 1))
    weight = rng.integers(1, 4, size=30)
    model = fitted(X, Censored(above=0.8), sample_weight=weight)
    again = fitted(np.repeat(X, weight, axis=0), Censored(above=0.8))
    assert again.lower_bound_ == approx(model.lower_bound_, rel=1e-9)
    volume = weight[X.ravel() < 0.8].sum() * np.log(50.0)
    scaled = fitted(X * 50, Censored(above=40.0), sample_weight=weight)
    assert scaled.lower_bound_ == approx(model.lower_bound_ - volume, rel=1e-9)
    written = np.where(X > 0.8, 1.1, X)  # what is written beyond a limit says nothing more
    assert fitted(written, Censored(above=0.8), sample_weight=weight).lower_bound_ == model.lower_bound_


def test_a_chain_beside_other_columns(rng, tmp_path):
    state = np.arange(120) // 20 % 2
    measured = rng.normal(5.0 * state, 1.0)
    low = np.floor(rng.normal(4.0 * state, 1.0))
    X = np.column_stack([measured, low, low + 1, rng.poisson(2.0, 120) * (rng.random(120) < 0.7)])
    X[rng.random(120) < 0.1, 0] = np.nan
    X[low < -1, 1], X[low > 5, 2] = np.nan, np.nan
    emission = [("dose", Censored(below=0.0), 0), ("class", Interval(), [1, 2]), ("catches", ZeroInflated(), 3)]
    chain = VBHMM(2, emission=emission, n_init=2, random_state=0).fit(X)
    assert np.sort(chain.parameters_["dose"]["means"].ravel()) == approx([0, 5], abs=0.6)
    assert np.sort(chain.parameters_["class"]["means"].ravel()) == approx([0, 4], abs=0.6)
    forecast = chain.forecast(X, 1)
    assert forecast.lower["x0"] < forecast.expected["x0"] < forecast.upper["x0"]
    filled = chain.impute(X)
    assert np.isfinite(filled).all()
    assert (filled[:, 1] <= filled[:, 2]).all()
    skvbem.save(chain, tmp_path / "chain")
    assert skvbem.load(tmp_path / "chain").score(X) == chain.score(X)
    drawn, _ = chain.sample(500, random_state=0)
    assert np.array_equal(drawn[:, 1], drawn[:, 2])
    again = VBHMM(2, emission=emission, method="map", n_init=2, random_state=0).fit(X)
    assert np.sort(again.parameters_["dose"]["means"].ravel()) == approx([0, 5], abs=0.6)


def test_what_makes_no_intervals_is_refused():
    with pytest.raises(ValueError, match="There are 3 columns"):
        VBMixture(emission=Interval()).fit(np.ones((4, 3)))
    with pytest.raises(ValueError, match="A lower end, 2, is above its upper end, 1"):
        VBMixture(emission=Interval()).fit([[0.0, 1.0], [2.0, 1.0]])
    with pytest.raises(ValueError, match="The 'below' parameter of Censored must be under 'above'"):
        VBMixture(emission=Censored(2, 1)).fit([[0.0], [1.0]])
    with pytest.raises(ValueError, match="The 'above' parameter of Censored must be a number"):
        VBMixture(emission=Censored(above="much")).fit([[0.0], [1.0]])
