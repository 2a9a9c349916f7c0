"""Normal-Gamma and Normal-Wishart distributions against SciPy, many digits and each other."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from scipy import stats

from skvbem.errors import NoInteriorModeError
from skvbem.families import NormalGamma, NormalWishart, hyperpriors, normal_wishart
from skvbem.families.hyperpriors import WishartHyperprior
from skvbem.families.normal_gamma import VARIANCE_FLOOR
from skvbem.families.parallel_generator import ParallelGenerator

approx = pytest.approx
SIZES = 10.0 ** np.arange(-6, 13, 3)


def wishart(mean, kappa, dof, scale, shared=False):
    return NormalWishart.from_parameters(mean, kappa, dof, scale, shared=shared)


def data(rng, n, d, weight=None):
    """Rows, and their statistics for one component."""
    x = rng.normal(size=(n, d))
    weight = np.ones(n) if weight is None else weight
    square = ((weight[:, None] * x).T @ x)[np.triu_indices(d)]
    return x, np.concatenate([[weight.sum(), weight.sum()], weight @ x, square])


def log_normalizer(kappa, dof, mean, scale):
    """A in many digits, of one mean and precision; the scale a matrix."""
    d = len(mean)
    gammas = sum(mpmath.loggamma((dof - i) / 2) for i in range(d)) + mpf(d * (d - 1)) / 4 * mpmath.log(mpmath.pi)
    of_mean = mpf(d) / 2 * mpmath.log(2 * mpmath.pi / kappa)
    return of_mean + gammas - dof / 2 * (mpmath.log(mpmath.det(scale)) + d * mpmath.log(mpmath.pi))


def precise(prior, u):
    """(evidence, KL of the posterior) in many digits, of one component."""
    d = prior.n_features
    kappa, dof = mpf(float(prior.mean_precision[0])), mpf(float(prior.degrees_of_freedom[0]))
    cells = [mpf(float(x)) for x in prior.coordinates]
    added = [mpf(float(x)) for x in u]

    def member(cells):
        kappa, dof = cells[:2]
        total = mpmath.matrix(cells[2 : 2 + d])
        square = mpmath.matrix(d, d)
        for value, (i, j) in zip(cells[2 + d :], zip(*np.triu_indices(d))):
            square[int(i), int(j)] = square[int(j), int(i)] = value
        return kappa, dof, total / kappa, square - total * total.T / kappa

    before, after = member(cells), member([c + a for c, a in zip(cells, added)])
    evidence = log_normalizer(*after) - log_normalizer(*before)
    kappa, dof, mean, scale = after
    precision = dof * scale**-1
    weighted = precision * mean
    log_det = sum(mpmath.digamma((dof - i) / 2) for i in range(d)) + d * mpmath.log(2) - mpmath.log(mpmath.det(scale))
    natural = [-((mean.T * weighted)[0] + d / kappa) / 2, (log_det - d * mpmath.log(2 * mpmath.pi)) / 2, *weighted]
    natural += [-precision[int(i), int(j)] / (2 if i == j else 1) for i, j in zip(*np.triu_indices(d))]
    inner = sum(a * b for a, b in zip(added, natural))
    return evidence, inner - evidence, sum(abs(a * b) for a, b in zip(added, natural))


@pytest.mark.parametrize("kappa", SIZES)
@pytest.mark.parametrize("above", SIZES)
def test_evidence_and_kl_keep_their_digits(kappa, above, rng):
    """Degrees of freedom from just above d - 1 to 1e12, relative to the terms that each is a sum of.

    A mean known to 1 / sqrt(kappa) stands about as near the origin: where it does not, squares of it hide the scale.
    """
    for d in (1, 3):
        root = rng.normal(size=(d, d + 2))
        dof = d - 1 + above
        mean = rng.normal(size=(1, d)) / np.sqrt(1 + kappa)
        prior = wishart(mean, [kappa], [dof], (root @ root.T * max(dof, 1.0))[None])
        for n, weight in ((1, None), (6, None), (4, np.array([1e-3, 2.0, 5e4, 1.0]))):
            _, u = data(rng, n, d, weight)
            with mpmath.workdps(60):
                evidence, kl, terms = (float(x) for x in precise(prior, u))
            condition = np.linalg.cond(prior.scale[..., 0] if d == 1 else root @ root.T)
            size = 1e-15 * condition * (terms + abs(evidence) + u[0] * 30)
            assert float(prior.log_evidence(u)) == approx(evidence, rel=1e-11, abs=size)
            assert float((prior + u).kl(prior)) == approx(kl, rel=1e-9, abs=4 * size)


def test_one_dimension_is_the_normal_gamma(rng):
    """Both of its shapes are the Normal-Wishart of one dimension: a mean for each precision, or several that share."""
    mean, kappa, dof, scale = rng.normal(size=(3, 1)), *rng.uniform(0.5, 4, size=(3, 3, 1))
    gamma = NormalGamma.from_parameters(mean, kappa, dof, scale)
    matrix = wishart(mean, kappa[:, 0], dof[:, 0], scale[:, :, None])
    u = np.concatenate([data(rng, 5, 1)[1] for _ in range(3)])
    assert matrix.coordinates == approx(gamma.coordinates)
    for one, other in ((matrix, gamma), (matrix + u, gamma + u)):
        assert one.log_normalizer() == approx(other.log_normalizer())
        assert one.expected_natural() == approx(other.expected_natural())
    assert matrix.log_evidence(u) == approx(gamma.log_evidence(u))
    shared = NormalGamma.from_parameters(mean.T, kappa.T, dof[:1], scale[:1])
    tied = wishart(mean, kappa[:, 0], dof[:1, 0], scale[:1, :, None], shared=True)
    assert tied.log_normalizer() == approx(shared.log_normalizer())


def test_densities_are_scipys(rng):
    d = 3
    root = rng.normal(size=(2, d, d + 1))
    block = wishart(rng.normal(size=(2, d)), [0.5, 3.0], [4.5, 9.0], root @ root.swapaxes(1, 2))
    point = block.sample(rng)
    total = 0.0
    for k in range(2):
        inverse = np.linalg.inv(block.scale[k])
        total += stats.wishart(block.degrees_of_freedom[k], inverse).logpdf(point.precision[k])
        covariance = np.linalg.inv(block.mean_precision[k] * point.precision[k])
        total += stats.multivariate_normal(block.mean[k], covariance).logpdf(point.mean[k])
    assert float(block.log_density(point, "probability")) == approx(total)
    gamma = NormalGamma.from_parameters(rng.normal(size=(2, 3)), np.full((2, 3), 0.7), [[4.0], [2.0]], [[1.0], [6.0]])
    point = gamma.sample(rng)
    rate, shape = gamma.scale / 2, gamma.degrees_of_freedom / 2
    total = stats.gamma(shape, scale=1 / rate).logpdf(point.precision).sum()
    total += stats.norm(gamma.mean, 1 / np.sqrt(gamma.mean_precision * point.precision)).logpdf(point.mean).sum()
    assert float(gamma.log_density(point, "probability")) == approx(total)


def test_the_evidence_is_that_of_a_multivariate_t(rng):
    """Of one row, whatever the prior."""
    for d in (1, 2, 4):
        root = rng.normal(size=(d, d + 1))
        prior = wishart(rng.normal(size=(1, d)), [0.3], [d + 1.5], (root @ root.T)[None])
        x, u = data(rng, 1, d)
        shape = prior.scale[0] * (1 + 1 / 0.3) / 2.5
        assert float(prior.log_evidence(u)) == approx(stats.multivariate_t(prior.mean[0], shape, 2.5).logpdf(x[0]))


def test_linear_maps_of_the_data_do_not_move_the_natural_mode(rng):
    """Nor its density: the natural measure is the same after them. The other measure is not."""
    d, turn = 3, rng.normal(size=(3, 3))
    root = rng.normal(size=(d, d + 1))
    block = wishart(rng.normal(size=(1, d)), [2.0], [4.0], (root @ root.T)[None])
    turned = wishart(block.mean @ turn.T, [2.0], [4.0], (turn @ block.scale[0] @ turn.T)[None])
    mode, of_turned = block.mode(), turned.mode()
    assert of_turned.mean == approx(mode.mean @ turn.T)
    back = turn.T @ of_turned.precision[0] @ turn
    assert back == approx(mode.precision[0])
    assert turned.log_density(of_turned) == approx(block.log_density(mode) + 0.0)
    assert turned.log_density(of_turned, "probability") != approx(block.log_density(mode, "probability"))


def test_modes_of_the_probability_basis_need_enough_degrees_of_freedom():
    eye = np.eye(3)
    with pytest.raises(
        NoInteriorModeError, match=r"Normal-Wishart distribution with degrees of freedom of 3 .* than 3"
    ):
        wishart([[0.0] * 3], [1.0], [3.0], [eye]).mode("probability")
    tied = wishart(np.zeros((4, 3)), np.ones(4), [3.0], [eye], shared=True)
    assert tied.mode("probability").precision[0] == approx(3 * eye)  # 3 + 4 - 3 - 1 degrees of freedom
    with pytest.raises(NoInteriorModeError, match=r"Normal-Gamma distribution with degrees of freedom of 1 .* than 1"):
        NormalGamma.from_parameters([[0.0]], [[1.0]], [[1.0]], [[1.0]]).mode("probability")


def test_most_likely_points_have_a_floor_and_a_default():
    prior = wishart(np.zeros((3, 2)), np.ones(3), np.full(3, 2.0), np.tile(np.eye(2), (3, 1, 1)))
    flat = np.zeros(7), np.array([4.0, 4.0, 4.0, 8.0, 4.0, 8.0, 16.0])  # no data; four at (1, 2)
    line = np.array([2.0, 2.0, 0.0, 0.0, 2.0, 0.0, 0.0])  # at (1, 0) and (-1, 0)
    point = prior.most_likely(np.concatenate([*flat, line]))
    assert point.mean.tolist() == [[0, 0], [1, 2], [0, 0]]
    assert point.precision[0] == approx(np.eye(2))
    assert point.precision[1] == approx(1e6 * np.eye(2), rel=1e-6)
    assert point.precision[2] == approx(np.diag([1.0, 1e6]), rel=1e-6)


def test_coordinates_of_no_density_are_seen():
    """Such as an extrapolation may reach: NaN, and lanes beside it untouched."""
    good = wishart([[0.0, 0.0]], [1.0], [2.0], [np.eye(2)]).coordinates
    bad = good.copy()
    bad[4] = -1.0
    lanes = NormalWishart(np.stack([good, bad, good], axis=1), 2)
    assert lanes.is_valid.tolist() == [True, False, True]
    assert np.isnan(lanes.log_normalizer()).tolist() == [False, True, False]
    u = np.repeat(data(np.random.default_rng(0), 3, 2)[1][:, None], 3, axis=1)
    assert np.isnan(lanes.log_evidence(u)).tolist() == [False, True, False]


def test_draws_have_wishart_moments(rng):
    n = 20_000
    scale = np.array([[2.0, 0.5], [0.5, 1.0]])
    block = wishart([[1.0, -1.0]], [4.0], [5.0], [scale])
    many = NormalWishart(np.repeat(block.coordinates[:, None], n, axis=1), 2)
    point = many.sample(rng)
    assert point.precision[0].mean(axis=-1) == approx(5 * np.linalg.inv(scale), rel=0.05)
    assert point.mean[0].mean(axis=-1) == approx([1.0, -1.0], abs=0.03)
    # E of the covariance is scale / (dof - d - 1)
    assert np.cov(point.mean[0]) == approx(scale / 2 / 4, rel=0.1)


def _of_many(d, n_components, batch, shared, rng):
    """A batch of Normal-Wishart distributions, and statistics of rows that components share."""
    n_precisions = 1 if shared else n_components
    scale = np.zeros((n_precisions, d, d, *batch))
    for place in np.ndindex(n_precisions, *batch):
        root = rng.normal(size=(d, d + 2))
        scale[(place[0], slice(None), slice(None), *place[1:])] = root @ root.T
    family = NormalWishart.from_parameters(
        rng.normal(size=(n_components, d, *batch)),
        rng.gamma(2.0, size=(n_components, *batch)),
        d - 0.5 + rng.gamma(3.0, size=(n_precisions, *batch)),
        scale,
        shared=shared,
    )
    rows = rng.normal(size=(3 * d + 8, d))
    upper = np.triu_indices(d)
    features = np.column_stack([np.ones(len(rows)), rows, (rows[:, :, None] * rows[:, None, :])[:, *upper]])
    sums = np.einsum("rc,rk...->kc...", features, rng.random((len(rows), n_components, *batch)))
    if shared:
        of_means = sums[:, : 1 + d].reshape(-1, *batch)
        return family, np.concatenate([of_means, sums[:, :1].sum(axis=0), sums[:, 1 + d :].sum(axis=0)])
    return family, np.concatenate([sums[:, :1], sums], axis=1).reshape(-1, *batch)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("batch", [(), (5,), (2, 3)])
@pytest.mark.parametrize(("d", "n_components"), [(1, 1), (1, 3), (2, 2), (5, 3), (20, 2)])
def test_few_columns_are_as_many(d, n_components, batch, shared, rng, monkeypatch):
    """Compiled loops of few columns, and LAPACK's of many, say the same."""
    family, statistics = _of_many(d, n_components, batch, shared, rng)

    def said(family):
        return {
            "is_valid": family.is_valid,
            "log_normalizer": family.log_normalizer(),
            "expected_natural": family.expected_natural(),
            "increment": family.log_normalizer_increment(statistics),
            "most_likely": family.natural_of_most_likely(statistics),
            "are_spikes": family.are_spikes(statistics),
        }

    few = said(family)
    assert family._above(VARIANCE_FLOOR, statistics)[1].all()
    monkeypatch.setattr(normal_wishart, "MAX_COLUMNS", 0)
    monkeypatch.setattr(normal_wishart, "_MAX_COLUMNS_OF_LIKELY", 0)
    for name, wanted in said(replace(family)).items():
        assert few[name] == approx(wanted, rel=1e-9, abs=1e-10), name
        assert np.shape(few[name]) == np.shape(wanted), name
    assert np.all(few["is_valid"])
    assert not np.any(few["are_spikes"])


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("d", "n_components"), [(1, 1), (1, 3), (2, 2), (5, 3), (20, 2)])
def test_few_columns_are_drawn_as_many(d, n_components, shared, rng, monkeypatch):
    """Precisions and the scale that they share, from the same streams."""
    family, _ = _of_many(d, n_components, (5,), shared, rng)
    root, squares = rng.normal(size=(d, d + 2)), family.square_cells
    prior = WishartHyperprior(d + 1.5, root @ root.T, 2.5, squares, len(family.coordinates))
    streams = rng.integers(0, 2**64, size=(4, 5), dtype=np.uint64)

    def drawn():
        draws = ParallelGenerator(streams.copy())
        natural = replace(family).draw_natural(draws)
        return natural, prior.draw(natural, draws), draws.streams

    few = drawn()
    for module in (normal_wishart, hyperpriors):
        monkeypatch.setattr(module, "MAX_COLUMNS", 0)
    many = drawn()
    assert few[0] == approx(many[0], rel=1e-7, abs=1e-9 * np.abs(many[0]).max())
    assert few[1] == approx(many[1], rel=1e-7, abs=1e-9 * np.abs(many[1]).max())
    assert (few[2] == many[2]).all()


@pytest.mark.parametrize("shared", [False, True])
def test_lanes_with_a_spike_are_alone_looked_at_again(shared, rng):
    family, statistics = _of_many(3, 2, (4,), shared, rng)
    one_row = np.concatenate([[1.0, 1.0], np.ones(3), np.ones(6)])
    if shared:
        one_row = np.concatenate([np.ones(4), np.ones(4), [2.0], 2 * np.ones(6)])
    statistics[: len(one_row), 2] = one_row
    natural, spikes = family.natural_of_most_likely(statistics), family.are_spikes(statistics)
    assert spikes.any(axis=0).tolist() == [False, False, True, False]
    for lane in range(4):
        alone = np.ascontiguousarray(statistics[:, lane])
        assert natural[:, lane] == approx(family.natural_of_most_likely(alone), rel=1e-12)
        np.testing.assert_array_equal(spikes[:, lane], family.are_spikes(alone))


@pytest.mark.parametrize("shared", [False, True])
def test_one_member_of_a_batch_that_is_no_density_says_so(shared, rng):
    family, statistics = _of_many(3, 2, (6,), shared, rng)
    coordinates = family.coordinates.copy()
    kappa, degrees, _, square = family._split(np.arange(len(coordinates)))
    coordinates[kappa[-1], 1] = -0.5
    coordinates[degrees[-1], 2] = 1.9
    coordinates[square[-1, 0], 3] = -1.0
    coordinates[square[-1, -1], 4] = np.nan
    broken = replace(family, coordinates=coordinates)
    assert broken.is_valid.tolist() == [True, False, False, False, False, True]
    assert np.isnan(broken.log_normalizer()).tolist() == [False, True, True, True, True, False]
    right = [0, 5]
    assert broken.expected_natural()[:, right] == approx(family.expected_natural()[:, right], rel=1e-12)
    removed = family.log_normalizer_increment(-statistics)
    assert np.isnan(removed).all()


def test_what_is_kept_is_nobody_elses(rng):
    family, _ = _of_many(2, 2, (3,), False, rng)
    natural, log_normalizer = family.expected_natural(), family.log_normalizer()
    natural += 1.0
    log_normalizer += 1.0
    assert family.expected_natural() == approx(natural - 1.0)
    assert family.log_normalizer() == approx(log_normalizer - 1.0)


def test_a_variance_at_the_floor_is_seen(rng):
    """Where one is near the floor, eigenvalues decide."""
    family, statistics = _of_many(2, 2, (3,), False, rng)
    rows = rng.normal(size=(30, 2)) * [1.0, 1e-4]
    flat = np.concatenate(
        [[30.0, 30.0], rows.sum(axis=0), (rows[:, :, None] * rows[:, None, :]).sum(axis=0)[[0, 0, 1], [0, 1, 1]]]
    )
    statistics[: len(flat), 1] = flat
    assert family.are_spikes(statistics).tolist() == [[False, True, False], [False, False, False]]
    point = family.most_likely(statistics)
    assert family.natural_of_most_likely(statistics) == approx(family.natural(point), rel=1e-12)
    assert np.linalg.eigvalsh(point.precision[0, :, :, 1]).max() == approx(1 / VARIANCE_FLOOR)
