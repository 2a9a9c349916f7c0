"""Latents that hold numbers: against factor analyzers, linear dynamical systems, published values and quadrature."""

import numpy as np
import pandas as pd
import pytest
from laws.latent_numbers import compiled, log_evidence, network

from skvbem import StructureSearchCV, VBFactorAnalysis, VBMixture, VBNetwork
from skvbem.emissions import FactorGaussian, Regression
from skvbem.models.mixed_network.capabilities import capabilities_of, identifiable_dimension
from skvbem.models.mixed_network.symmetries import NumberSymmetries


def bounds_from(model, data, statistics, n_steps=5000):
    """Bounds of all steps until they stand still."""
    prior, bounds = model.prior, []
    for _ in range(n_steps):
        posterior = prior + statistics
        natural = posterior.expected_natural()
        outcome = model.expect(natural, data)
        divergence = (natural * statistics).sum(axis=0) - posterior.log_normalizer() + prior.log_normalizer()
        bounds.append(float((outcome.log_normalizer - divergence)[0]))
        if len(bounds) > 3 and bounds[-1] - bounds[-2] < 1e-13:
            break
        statistics = outcome.statistics
    return np.array(bounds)


def drawn_start(model, data, rng):
    """Statistics under parameters drawn from the prior."""
    natural = model.prior.natural(model.prior.sample(rng))[:, None]
    return model.expect(natural, data).statistics


def best_bound(model, data, n_starts=6, n_steps=5000):
    """The best bound of several starts; no step lowers it."""
    best = -np.inf
    for seed in range(n_starts):
        start = drawn_start(model, data, np.random.default_rng(seed))
        bounds = bounds_from(model, data, start, n_steps)
        assert np.all(np.diff(bounds) > -1e-10)
        best = max(best, bounds[-1])
    return best


PAIRS = np.array([[0.3, 0.5], [-1.2, -0.9], [1.5, 1.1]])


@pytest.mark.parametrize(
    ("parents", "bound"),
    [
        ({"f": [], "x": ["f"], "y": ["f"]}, -11.757012660),
        ({"x": [], "f": ["x"], "y": ["f"]}, -12.735616835),
    ],
)
def test_bounds_are_those_of_another_program(parents, bound):
    """Bounds of three rows of two columns, computed elsewhere; there f below x had a constant."""
    model = network(parents, hidden="f", has_constant=bool(parents["f"]))
    data = compiled(model, {"x": PAIRS[:, 0], "y": PAIRS[:, 1]})
    assert best_bound(model, data) == pytest.approx(bound, abs=2e-8)


def test_an_unrolled_linear_dynamical_system_has_its_bounds():
    """Six steps of one state and two columns, with gaps, as a network whose blocks are tied by adding statistics."""
    steps = np.array([[0.5, -0.2], [1, 0.3], [np.nan, 0.9], [1.8, np.nan], [1.1, 0.8], [0.2, np.nan]])
    parents = {}
    for t in range(6):
        parents |= {f"h{t}": [f"h{t - 1}"] if t else [], f"a{t}": [f"h{t}"], f"b{t}": [f"h{t}"]}
    model = network(parents, hidden={f"h{t}" for t in range(6)}, shape=2.0, rate=1.0, intercept=False)
    values = {f"{column}{t}": steps[[t], j] for t in range(6) for j, column in enumerate("ab")}
    data = compiled(model, values)
    nodes = model.layout.names[model.layout.n_tables :]
    tied = [[k for k, node in enumerate(nodes) if node[0] == kind and (kind != "h" or node != "h0")] for kind in "hab"]

    def posterior(sums):
        blocks = [model.prior.blocks[1 + group[0]] for group in tied]
        return blocks, [block + of for block, of in zip(blocks, sums)]

    means = np.array([0.5, 1, 1, 1.5, 1, 0])
    squares = means**2 + 1
    sums = [np.array([squares[:-1].sum(), (means[1:] * means[:-1]).sum(), 5.0, squares[1:].sum()])]
    for column in steps.T:
        seen, y = ~np.isnan(column), np.nan_to_num(column)
        sums.append(np.array([squares[seen].sum(), (y * means).sum(), seen.sum(), y @ y]))
    bounds = []
    for _ in range(400):
        blocks, after = posterior(sums)
        natural = np.zeros(model.n_cells)
        parts = model.prior.split(natural)
        for k, block in enumerate(model.prior.blocks[1:]):
            parts[1 + k][:] = block.expected_natural()
        divergence = 0.0
        for group, block, of, added in zip(tied, blocks, after, sums):
            expected = of.expected_natural()
            divergence += expected @ added - of.log_normalizer() + block.log_normalizer()
            for k in group:
                parts[1 + k][:] = expected
        outcome = model.expect(natural[:, None], data)
        bounds.append(float(outcome.log_normalizer[0] - divergence))
        of_blocks = model.prior.split(outcome.statistics[:, 0])[1:]
        sums = [sum(of_blocks[k] for k in group) for group in tied]
    assert bounds[:3] == pytest.approx([-14.557793858813, -14.164296598578, -14.070497277041], abs=1e-10)
    assert bounds[-1] == pytest.approx(-14.020662159811, abs=1e-9)


@pytest.mark.parametrize("n_classes", [1, 2])
@pytest.mark.parametrize("holes", [0.0, 0.15])
def test_a_number_above_all_columns_is_a_factor(n_classes, holes):
    """Bounds are those of a factor analyzer, or of a mixture of two of them, with the same priors."""
    rng = np.random.default_rng(0)
    kind, factor = rng.integers(0, n_classes, 60), rng.normal(size=60)
    loadings = np.array([[1.0, 0.8, -0.7, 0.5], [-0.5, 0.9, 0.6, -0.8]])
    X = loadings[kind] * factor[:, None] + rng.normal(scale=0.6, size=(60, 4)) + 4 * kind[:, None] * [1, 0, 1, 0]
    X[rng.random(X.shape) < holes] = np.nan
    frame = pd.DataFrame(X, columns=list("abcd"))
    emission = FactorGaussian(1, relevance="fixed", noise_prior=(1.0, 0.5), mean_precision_prior=1.0)
    options = {"random_state": 0, "tol": 1e-11}
    of_mixture = VBMixture(n_classes, emission=emission, weight_concentration_prior=1.0, **options).fit(frame)
    variance = frame.var(ddof=0)
    emissions = [
        (f"node {c}", Regression(coefficient_precision_prior=1.0, degrees_of_freedom_prior=2.0,
                                 variance_prior=0.5 * float(variance[c])), [c]) for c in "abcd"
    ]  # fmt: skip
    latents = {"f": "number"} | ({"k": 2} if n_classes == 2 else {})
    edges = [(latent, f"node {c}") for latent in latents for c in "abcd"]
    of_network = VBNetwork(edges, latents=latents, emission=emissions, prior=1.0, **options).fit(frame)
    assert of_network.lower_bound_ == pytest.approx(of_mixture.lower_bound_, abs=1e-8)
    if n_classes == 1:
        priors = {"relevance": "fixed", "noise_prior": (1.0, 0.5), "mean_precision_prior": 1.0}
        analysis = VBFactorAnalysis(1, **priors, **options).fit(frame)
        assert analysis.lower_bound_ == pytest.approx(of_network.lower_bound_, abs=1e-8)
        scores, factors = of_network.latent_means(frame)[:, 0], analysis.transform(frame)[:, 0]
        assert scores == pytest.approx(np.sign(scores @ factors) * factors, abs=1e-4)


TINY = (
    ({"f": [], "y": ["f"]}, {}, ()),
    ({"x": [], "f": ["x"], "y": ["f"]}, {}, ()),
    ({"x": [], "f": ["x"], "y": ["f", "x"]}, {}, ()),
    ({"k": [], "f": [], "y": ["f", "k"]}, {"k": 2}, ()),
    ({"k": [], "f": ["k"], "y": ["f"]}, {"k": 2}, ()),
    ({"k": [], "x": ["k"], "f": ["k"], "y": ["f", "x"]}, {"k": 2}, ()),
    ({"c": [], "x": [], "f": ["c", "x"], "y": ["f"]}, {"c": 2}, ("c",)),
    ({"k": [], "c": ["k"], "f": ["c"], "y": ["f"], "x": ["k"]}, {"k": 2, "c": 2}, ("c",)),
)


@pytest.mark.parametrize("seed", range(100))
def test_bounds_lie_below_evidences_of_tiny_networks(seed):
    """One hundred networks of two or three rows: hidden classes enumerated, slopes of hidden numbers integrated."""
    rng = np.random.default_rng(seed)
    parents, sizes, observed = TINY[seed % len(TINY)]
    n, shape, rate = 2 + seed // len(TINY) % 2, rng.uniform(0.8, 2.5), rng.uniform(0.3, 1.5)
    model = network(parents, hidden="f", sizes=sizes, shape=shape, rate=rate)
    numbers = {node: rng.normal(size=n) for node in parents if node in "xy"}
    codes = {node: rng.integers(0, sizes[node], n).astype(np.int8) for node in observed}
    data = compiled(model, numbers, codes)
    evidence = log_evidence(parents, sizes, numbers | codes, shape, rate)
    bound = best_bound(model, data, n_starts=2, n_steps=100)
    assert bound < evidence
    assert bound > evidence - 8.0  # a bound of nothing would hold, too


def test_a_hidden_number_without_children_changes_nothing():
    """Neither do rows that say nothing of its children."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(30, 2)), columns=["x", "y"])
    alone = VBNetwork([("x", "y")], random_state=0).fit(X)
    beside = VBNetwork([("x", "y"), ("x", "f")], latents={"f": "number"}, random_state=0).fit(X)
    assert beside.lower_bound_ == pytest.approx(alone.lower_bound_, abs=1e-9)


@pytest.fixture(scope="module")
def two_abilities():
    """Six columns of two hidden numbers, one of which is above all, and a class."""
    rng = np.random.default_rng(2)
    numbers, kind = rng.normal(size=(80, 2)), rng.integers(0, 2, 80)
    X = numbers @ rng.normal(size=(2, 6)) + rng.normal(scale=0.4, size=(80, 6)) + 3 * kind[:, None] * (np.arange(6) < 3)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame.iloc[4, 2] = np.nan
    edges = [("k", c) for c in "abc"] + [("u", c) for c in "abcdef"] + [("v", c) for c in "abc"]
    return frame, edges


def fitted(frame, edges, **options):
    """A network of a class and two hidden numbers."""
    latents = {"k": 2, "u": "number", "v": "number"}
    return VBNetwork(edges, latents=latents, random_state=0, tol=1e-9, **options).fit(frame)


def test_units_weights_and_orders_make_no_difference(two_abilities):
    """Columns in other units move the bound by the logarithm of these; weights count as repeated rows do."""
    frame, edges = two_abilities
    bound = fitted(frame, edges).lower_bound_
    units = np.array([10.0, 0.1, 3.0, 1.0, 200.0, 1e-3])
    scaled = fitted(frame * units + 7.0 * units, edges)
    n_cells = frame.notna().sum().to_numpy()
    assert scaled.lower_bound_ + n_cells @ np.log(units) == pytest.approx(bound, abs=1e-5)
    assert fitted(frame.iloc[::-1], edges).lower_bound_ == pytest.approx(bound, abs=1e-5)
    assert fitted(frame[list("fcdeab")], edges).lower_bound_ == pytest.approx(bound, abs=1e-5)


def test_symmetries_change_neither_likelihood_nor_prior(two_abilities):
    """Signs of hidden numbers, in each state of the class that all of their children know."""
    frame, edges = two_abilities
    model = fitted(frame, edges)
    assert model.get_feature_names_out().tolist() == ["k_0", "k_1", "u", "v"]
    assert model.transform(frame) == pytest.approx(np.hstack([model.predict_proba(frame), model.latent_means(frame)]))
    network, data = model.fitted.model, model.fitted.rows(model.fitted.groups.values(_table(frame)))
    cells, signs = NumberSymmetries(network).listed(1000)
    assert len(cells) == 2 * 4  # u has a sign, v has one in each state of k
    rng = np.random.default_rng(0)
    natural = network.prior.natural(network.prior.sample(rng))
    points = (signs * natural[cells]).T
    compiled_rows = network.compile(data)
    log_z = network.expect(points, compiled_rows).log_normalizer
    assert log_z == pytest.approx(np.full(len(cells), log_z[0]), abs=1e-9)
    densities = [float(network.prior.log_density_as_prior(network.prior.from_natural(each))) for each in points.T]
    assert densities == pytest.approx([densities[0]] * len(cells), abs=1e-9)
    assert np.unique(points.round(9), axis=1).shape[1] == len(cells)
    relabelings = capabilities_of(network).relabelings
    assert relabelings.log_n_relabelings(("k",)) == pytest.approx(np.log(2 * len(cells)))
    statistics, points = model.fitted.statistics[None], points[:, :3]
    sums = relabelings.relabelings(("k",)).log_sums(1e-3 * statistics, points)[0]
    assert sums == pytest.approx(np.full(3, sums[0]), abs=1e-9)
    nearest = relabelings.relabelings(("k",)).nearest(statistics[0], points)
    assert nearest == pytest.approx(np.repeat(nearest[:, :1], 3, axis=1), abs=1e-9)


def _table(frame):
    from skvbem.reading.tables import read_table

    return read_table(frame, "VBNetwork")


def test_alike_numbers_trade_places():
    """Two numbers above the same columns have an order, besides signs, and the first explains most."""
    rng = np.random.default_rng(3)
    strong, weak = rng.normal(size=(2, 120, 1))
    X = 3 * strong * [1, -1, 1, 0, 0, 1] + weak * [0, 1, 0, -1, 1, 0] + rng.normal(scale=0.4, size=(120, 6))
    edges = [(h, f"x{j}") for h in "fg" for j in range(6)]
    fits = [VBNetwork(edges, latents=dict.fromkeys("fg", "number"), random_state=seed).fit(X) for seed in range(3)]
    assert NumberSymmetries(fits[0].fitted.model).log_n == pytest.approx(np.log(8))
    for fit in fits:
        scores = fit.latent_means(X)
        assert np.corrcoef(scores.T, [strong[:, 0], weak[:, 0]])[0, 2] == pytest.approx(1.0, abs=0.05)
        for h in range(2):
            slopes = np.array([fit.parameters_[f"x{j}"]["coefficients"][0, 0, h] for j in range(6)])
            in_units = slopes / X.std(axis=0)
            assert in_units[np.abs(in_units).argmax()] > 0


def test_answers_about_hidden_numbers(two_abilities):
    """A number as evidence, as a question, and in rows that are drawn, against the joint normal distribution."""
    frame, _ = two_abilities
    edges = [("f", c) for c in "abc"]
    X = frame[list("abc")]
    model = VBNetwork(edges, latents={"f": "number"}, method="ml", random_state=0).fit(X)
    parameters = model.parameters_
    means = np.array([parameters[c]["intercepts"][0, 0] for c in "abc"])
    slopes = np.array([parameters[c]["coefficients"][0, 0, 0] for c in "abc"])
    noise = np.array([parameters[c]["variances"][0, 0] for c in "abc"])
    answer = model.query("f", {"a": 2.0, "b": -1.0})
    precision = 1 + (slopes[:2] ** 2 / noise[:2]).sum()
    mean = (slopes[:2] / noise[:2] * (np.array([2.0, -1.0]) - means[:2])).sum() / precision
    assert (answer.mean, answer.standard_deviation) == pytest.approx((mean, precision**-0.5), rel=1e-8)
    given = model.query("c", {"f": 1.5})
    assert (given.mean, given.standard_deviation**2) == pytest.approx((means[2] + 1.5 * slopes[2], noise[2]), rel=1e-8)
    rows, _ = model.sample(4000, random_state=0, given={"f": 1.5})
    assert rows["c"].mean() == pytest.approx(given.mean, abs=5 * given.standard_deviation / 4000**0.5)
    assert model.transform(X) == pytest.approx(model.latent_means(X))
    assert model.get_feature_names_out().tolist() == ["f"]
    scores, deviations = model.latent_means(X, return_std=True)
    seen = X.notna().to_numpy()
    precision = 1 + (seen * slopes**2 / noise).sum(axis=1)
    expected = np.nan_to_num((X.to_numpy() - means) * slopes / noise).sum(axis=1) / precision
    assert scores[:, 0] == pytest.approx(expected, abs=1e-8)
    assert deviations[:, 0] == pytest.approx(precision**-0.5, rel=1e-8)


def test_maximum_likelihood_is_that_of_the_joint_normal_distribution():
    """Where x drives a hidden number that drives three columns, no other parameters are more likely."""
    from scipy.optimize import minimize
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(4)
    x = rng.normal(size=80)
    f = 1.5 * x + rng.normal(size=80)
    X = np.column_stack([x, f[:, None] * [1.0, -0.5, 2.0] + rng.normal(size=(80, 3))])
    edges = [("x0", "f"), *(("f", f"x{j}") for j in (1, 2, 3))]
    model = VBNetwork(edges, latents={"f": "number"}, method="ml", random_state=0, tol=1e-12, max_iter=5000).fit(X)

    def minus_log_likelihood(theta):
        slope, loadings, noise = theta[0], theta[1:4], np.exp(theta[4:7])
        variance = X[:, 0].var()
        total = slope**2 * variance + 1
        covariance = np.outer(loadings, loadings) * total + np.diag(noise)
        cross = slope * variance * loadings
        joint = np.block([[np.array([[variance]]), cross[None]], [cross[:, None], covariance]])
        return -multivariate_normal(X.mean(axis=0), joint).logpdf(X).sum()

    best = minimize(minus_log_likelihood, [1.0, 1.0, -0.5, 1.5, 0, 0, 0], method="BFGS", options={"gtol": 1e-7})
    assert model.log_likelihood_ == pytest.approx(-best.fun, abs=1e-5)


@pytest.mark.parametrize(
    ("n_columns", "n_numbers", "d"), [(2, 1, 5), (3, 1, 9), (4, 1, 12), (4, 2, 14), (5, 2, 19), (6, 2, 23), (6, 3, 27)]
)
def test_dimensions_are_those_of_factor_analysis(n_columns, n_numbers, d):
    """Means, loadings up to rotations, and noises, but no more than means and covariances have."""
    X = np.random.default_rng(5).normal(size=(60, n_columns))
    latents = {f"h{k}": "number" for k in range(n_numbers)}
    edges = [(h, f"x{j}") for h in latents for j in range(n_columns)]
    model = VBNetwork(edges, latents=latents, random_state=0, n_init=1, tol=0.1).fit(X)
    assert identifiable_dimension(model.fitted.model, ()) == d
    rotations = n_numbers * (n_numbers - 1) // 2
    assert model.n_free_parameters_ == n_columns * (2 + n_numbers) - rotations


def test_a_search_over_hidden_numbers():
    """Two groups of columns have a number each; the search knows them apart, and from a class."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(150, 2))
    X = np.repeat(numbers, 3, axis=1) * [1, 0.8, -0.7, 1, 0.9, 0.6] + rng.normal(scale=0.5, size=(150, 6))
    frame = pd.DataFrame(X, columns=list("abcdef"))
    pairs, one = [("u", c) for c in "abc"] + [("v", c) for c in "def"], [("u", c) for c in "abcdef"]
    both = {"u": "number", "v": "number"}
    grid = [
        {"latents": [{"u": "number"}], "structure": [one]},
        {"latents": [both], "structure": [pairs, [*one, *(("v", c) for c in "abcdef")]]},
    ]
    search = StructureSearchCV(VBNetwork(random_state=0, n_init=2), grid).fit(frame)
    assert search.best_params_ == {"latents": both, "structure": pairs}
    assert search.structure_posterior_.max() > 0.99
    kinds = [{"latents": {"u": kind}} for kind in ("number", 2, 3)]
    three = StructureSearchCV(VBNetwork(random_state=0), {"latents": [each["latents"] for each in kinds]}).fit(
        frame[list("abc")]
    )
    assert three.best_params_ == kinds[0]
