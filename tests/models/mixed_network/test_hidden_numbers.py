"""Networks whose rows hide numbers that have observed children: against quadrature, and against published values."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from skvbem import VBNetwork
from skvbem.emissions import Gaussian
from skvbem.emissions.regression import RegressionEmission
from skvbem.families import Regression
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.graphs.dag import DAG
from skvbem.models.mixed_network.data import MixedRows
from skvbem.models.mixed_network.enumeration import log_evidence_by_enumeration
from skvbem.models.mixed_network.information import score_covariance
from skvbem.models.mixed_network.model import MixedNetwork
from skvbem.models.mixed_network.queries import Predictive

ROWS = np.array([[0.3, 0.5], [-1.2, -0.9], [np.nan, 1.4], [0.8, np.nan], [1.5, 0.7]])


def regression(n_given):
    """A column in units of one, from 0."""
    zeros, ones = np.zeros(n_given), np.ones(n_given)
    return RegressionEmission(np.zeros(1), np.ones(1), zeros, ones, zeros)


def prior_of(n_given, n_states=1, shape=None, rate=0.25, slope=0.5):
    """Precisions of 1 of constants and of `slope` of slopes, in units of the noise."""
    shape = (3 + n_given) / 2 if shape is None else shape
    one = np.arange(n_states)
    return Regression.from_parameters(
        np.zeros((n_states, 1 + n_given)),
        np.tile(np.diag([1.0, *[slope] * n_given]), (n_states, 1, 1)),
        np.full(n_states, shape),
        np.full(n_states, rate),
        one,
        one,
        n_components=n_states,
    )


def network(parents, sizes=None, prior=None):
    """A network of numbers, nodes in their order, below categories of some sizes."""
    sizes = sizes or {}
    numbers = [node for node in parents if node not in sizes]
    given = {node: [p for p in parents[node] if p not in sizes] for node in numbers}
    n_states = {node: int(np.prod([sizes[p] for p in parents[node] if p in sizes], dtype=int)) for node in numbers}
    return MixedNetwork(
        DAG(parents, parents),
        sizes,
        prior or {},
        {node: regression(len(given[node])) for node in numbers},
        {node: prior_of(len(given[node]), n_states[node]) for node in numbers},
    )


def rows_of(model, values, codes=None, weight=None):
    """Values of numbers by node (n_rows,), codes of categories by node."""
    nodes = list(values)
    tables = []
    for k, (node, emission) in enumerate(zip(nodes, model.emissions)):
        columns = [values[node], *(values[nodes[p]] for p in model.given[k])]
        tables.append(emission.prepare(np.stack(columns, axis=1)))
    n = len(values[nodes[0]])
    codes = codes or {}
    return MixedRows(
        tuple(codes),
        np.stack([*codes.values()], axis=1) if codes else np.zeros((n, 0), dtype=np.int8),
        tuple(tables),
        tuple(~np.isnan(values[node]) for node in nodes),
        np.ones(n) if weight is None else weight,
    )


def fitted(model, data, statistics=None, n_steps=2000):
    """The bound where steps end, and all bounds before."""
    prior, bounds = model.prior, []
    statistics = np.zeros((model.n_cells, 1)) if statistics is None else statistics
    for _ in range(n_steps):
        posterior = prior + statistics
        natural = posterior.expected_natural()
        outcome = model.expect(natural, data)
        # F = ln Z of rows - KL(q | p) of parameters
        divergence = (natural * statistics).sum(axis=0) - posterior.log_normalizer() + prior.log_normalizer()
        bounds.append(float((outcome.log_normalizer - divergence)[0]))
        if len(bounds) > 3 and bounds[-1] - bounds[-2] < 1e-13:
            break
        statistics = outcome.statistics
    return bounds


@pytest.mark.parametrize(
    ("parents", "rows", "bound"),
    [
        ({"x": [], "y": ["x"]}, ROWS, -13.826132893972),
        ({"y": [], "x": ["y"]}, ROWS, -13.620813307385),
        ({"x": [], "y": ["x"]}, ROWS[[0, 1, 3, 4]], -11.126829398245),
        ({"y": [], "x": ["y"]}, ROWS[[0, 1, 3, 4]], -11.346912165250),
    ],
)
def test_bounds_are_those_of_another_program(parents, rows, bound):
    """Four bounds of two columns under a known prior, computed elsewhere, one row at a time."""
    model = network(parents)
    values = {node: rows[:, "xy".index(node)] for node in parents}
    bounds = fitted(model, model.compile(rows_of(model, values)))
    assert np.all(np.diff(bounds) > -1e-12)
    assert bounds[-1] == pytest.approx(bound, abs=1e-10)


CLASS_ROWS = np.array([[0.3, 0.5], [-1.2, -0.9], [np.nan, 1.4], [1.5, -0.7]])


@pytest.mark.parametrize(
    ("numbers", "bound"),
    [({"x": ["h"], "y": ["h", "x"]}, -16.550323), ({"y": ["h"], "x": ["h", "y"]}, -15.926644)],
)
def test_bounds_below_a_hidden_class_are_those_of_another_program(numbers, bound, rng):
    """The best of twenty starts; the evidence is -13.973499648 by quadrature in either direction."""
    model = network({"h": [], **numbers}, {"h": 2}, {"h": np.ones(2)})
    values = {node: CLASS_ROWS[:, "xy".index(node)] for node in numbers}
    data = model.compile(rows_of(model, values))
    ends = []
    for _ in range(20):
        point = model.prior.sample(rng)
        bounds = fitted(model, data, model.expect(model.prior.natural(point)[:, None], data).statistics)
        assert np.all(np.diff(bounds) > -1e-11)
        ends.append(bounds[-1])
    assert max(ends) == pytest.approx(bound, abs=1e-6)
    assert max(ends) < -13.973499648


#: Structures over categories h and g, and numbers x, y, z, w; h is always hidden, g sometimes.
STRUCTURES = (
    {"x": [], "y": ["x"], "z": ["y"], "w": ["x", "z"]},
    {"x": [], "y": ["x"], "z": ["x"], "w": ["y", "z"]},
    {"h": [], "x": ["h"], "y": ["x"], "z": ["h", "y"], "w": ["x"]},
    {"h": [], "g": ["h"], "x": [], "y": ["g", "x"], "z": ["h", "g", "x", "y"], "w": ["z"]},
    {"g": [], "h": ["g"], "x": ["g"], "y": ["h"], "z": ["g", "x"], "w": ["h", "y"]},
)
SIZES = {"h": 2, "g": 3}


def drawn_network(rng, k):
    """A network, natural parameters (n_cells,) of a posterior after rows at random, and a point of it."""
    parents = STRUCTURES[k % len(STRUCTURES)]
    sizes = {node: SIZES[node] for node in parents if node in SIZES}
    prior = {node: rng.uniform(0.5, 2.0, [SIZES[m] for m in (*parents[node], node)]) for node in sizes}
    model = network(parents, sizes, prior)
    n = 12
    values = {node: rng.normal(size=n) for node in parents if node not in sizes}
    codes = {node: rng.integers(0, SIZES[node], n) for node in sizes}
    data = model.compile(rows_of(model, values, codes))
    statistics = model.expect(model.prior.expected_natural()[:, None], data).statistics[:, 0]
    posterior = model.prior + statistics
    return model, parents, posterior.expected_natural(), posterior.sample(rng)


def drawn_rows(rng, parents, n, gaps=0.35):
    """Numbers with gaps, and codes of g with gaps, no row without a cell."""
    numbers = {node: rng.normal(size=n) for node in parents if node not in SIZES}
    for column in numbers.values():
        column[rng.random(n) < gaps] = np.nan
    if "g" not in parents:
        return numbers, {}
    codes = rng.integers(0, SIZES["g"], n)
    codes[rng.random(n) < 0.4] = -1
    return numbers, {"g": codes}


@pytest.mark.parametrize("k", range(5))
def test_one_hidden_number_is_an_integral_over_complete_rows(k, rng):
    """ln Z and statistics at expected natural parameters, with any states hidden, by a trapezoid over the number."""
    model, parents, natural, _ = drawn_network(rng, k)
    nodes = [node for node in parents if node not in SIZES]
    step = 0.15  # a trapezoid over normal densities wider than this is exact
    grid = step * np.arange(-80, 81)
    for node in (each for each in nodes if any(each in of for of in parents.values())):
        values, codes = drawn_rows(rng, parents, 1, gaps=0.0)
        values[node][0] = np.nan
        outcome = model.expect(natural[:, None], model.compile(rows_of(model, values, codes)))
        complete = {each: np.repeat(column, len(grid)) for each, column in values.items()} | {node: grid}
        rows = rows_of(model, complete, {each: np.repeat(of, len(grid)) for each, of in codes.items()})
        each_alone = [model.compile(rows.taken(np.array([at]), np.ones(1))) for at in range(len(grid))]
        logs = np.array([model.expect(natural[:, None], row).log_normalizer[0] for row in each_alone])
        assert outcome.log_normalizer[0] == pytest.approx(np.log(step) + logsumexp(logs), abs=1e-9)
        share = np.exp(logs - logsumexp(logs))
        expected = model.expect(natural[:, None], model.compile(rows.taken(np.arange(len(grid)), share)))
        assert outcome.statistics[:, 0] == pytest.approx(expected.statistics[:, 0], abs=1e-8)


def moments_at(model, parents, point):
    """Mean and covariance of all numbers in each joint state of h and g, with its probability: from coefficients."""
    sizes = [node for node in parents if node in SIZES]
    nodes = [node for node in parents if node not in SIZES]
    tables = {node: model.layout.table(point[0], model.position[node]) for node in sizes}
    for states in product(*(range(SIZES[node]) for node in sizes)):
        state = dict(zip(sizes, states))
        log_p = sum(np.log(tables[node][(*(state[p] for p in parents[node]), state[node])]) for node in sizes)
        intercept, slopes, variance = np.zeros(len(nodes)), np.zeros((len(nodes), len(nodes))), np.zeros(len(nodes))
        for v, node in enumerate(nodes):
            component = 0
            for p in (p for p in model.dag.parents(node) if p in SIZES):
                component = component * SIZES[p] + state[p]
            of = point[1 + v]
            intercept[v], variance[v] = of.coefficients[component, 0], 1 / of.precision[component]
            numbers = [p for p in model.dag.parents(node) if p not in SIZES]
            slopes[v, [nodes.index(p) for p in numbers]] = of.coefficients[component, 1:]
        total = np.linalg.inv(np.eye(len(nodes)) - slopes)
        yield state, log_p, total @ intercept, total @ np.diag(variance) @ total.T


@pytest.mark.parametrize("k", range(10))
def test_likelihoods_at_a_point_are_those_of_mixtures_of_joint_normals(k, rng):
    """Any cells hidden, hidden and known states: against the mean and covariance that coefficients make."""
    model, parents, _, point = drawn_network(rng, k)
    values, codes = drawn_rows(rng, parents, 60)
    numbers, total = np.stack([*values.values()], axis=1), []
    for i, row in enumerate(numbers):
        seen, logs = ~np.isnan(row), []
        for state, log_p, mean, covariance in moments_at(model, parents, point):
            if all(codes[node][i] < 0 or codes[node][i] == state[node] for node in codes):
                of_row = multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)]) if seen.any() else None
                logs.append(log_p + (0.0 if of_row is None else of_row.logpdf(row[seen])))
        total.append(logsumexp(logs))
    rows = rows_of(model, values, codes)
    natural = model.prior.natural(point)
    assert model.expect(natural[:, None], model.compile(rows)).log_normalizer[0] == pytest.approx(sum(total), abs=1e-9)
    assert Predictive(model, None, point).log_densities(rows) == pytest.approx(np.array(total), abs=1e-9)


@pytest.mark.parametrize("k", range(5))
def test_weights_are_repeated_rows_and_lanes_are_apart(k, rng):
    model, parents, natural, point = drawn_network(rng, k)
    values, codes = drawn_rows(rng, parents, 30)
    weight = rng.integers(0, 4, 30).astype(float)
    rows = rows_of(model, values, codes)
    of_weights = replace(rows, weight=weight)
    repeated = rows.taken(np.repeat(np.arange(30), weight.astype(int)), np.ones(int(weight.sum())))
    both = np.stack([natural, model.prior.natural(point)], axis=1)
    one, other = (model.expect(both, model.compile(each)) for each in (of_weights, repeated))
    assert one.log_normalizer == pytest.approx(other.log_normalizer, rel=1e-12)
    assert one.statistics == pytest.approx(other.statistics, rel=1e-9, abs=1e-9)
    alone = model.expect(both[:, 1:], model.compile(of_weights))
    assert alone.statistics[:, 0] == pytest.approx(one.statistics[:, 1], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("k", "n"), [(0, 2), (1, 9), (2, 4), (3, 30), (4, 3)])
def test_draws_of_hidden_numbers_have_the_moments_of_drawing_row_by_row(k, n, rng):
    """Means are expected statistics; variances those of single rows added up. Few rows have a singular Wishart part."""
    model, parents, _, point = drawn_network(rng, k)
    values, codes = drawn_rows(rng, parents, n)
    codes = {node: np.maximum(of, 0) for node, of in codes.items()}
    rows = rows_of(model, values, codes)
    natural, n_draws = model.prior.natural(point)[:, None], 4000
    lanes = np.repeat(natural, n_draws, axis=1)

    def drawn(of_rows):
        streams = rng.integers(0, 2**64, size=(4, n_draws), dtype=np.uint64)
        return model.completed(lanes, model.compile(of_rows), ParallelGenerator(streams))[1]

    together, expected = drawn(rows), model.expect(natural, model.compile(rows)).statistics[:, 0]
    single = [drawn(rows.taken(np.array([i]), np.ones(1))) for i in range(n)]
    spread = np.sum([each.var(axis=1) for each in single], axis=0)
    error = np.sqrt((spread + 1e-3) / n_draws)  # what hardly ever happens may not have been drawn
    assert np.abs((together.mean(axis=1) - expected) / error).max() < 5
    moving = spread > 1e-3
    assert together.var(axis=1)[moving] / spread[moving] == pytest.approx(np.ones(moving.sum()), abs=0.3)


def test_draws_of_a_row_are_products_of_one_number_drawn(rng):
    """x hidden, y known: sums of x y are y times those of x, and those of x x are squares."""
    model = network({"x": [], "y": ["x"]})
    data = model.compile(rows_of(model, {"x": np.array([np.nan]), "y": np.array([0.9])}))
    lanes = np.repeat(model.prior.natural(model.prior.sample(rng))[:, None], 50, axis=1)
    streams = rng.integers(0, 2**64, size=(4, 50), dtype=np.uint64)
    _, _, of_y = model.prior.split(model.completed(lanes, data, ParallelGenerator(streams))[1])
    one, x, square, y, product, n, square_of_y = of_y  # products of (1, x), of these with y, a count, y y
    assert x.std() > 0.1
    assert np.stack([square, product]) == pytest.approx(np.stack([x**2, 0.9 * x]), rel=1e-12)
    assert pytest.approx(np.tile([1.0, 0.9, 1.0, 0.81], (50, 1))) == np.stack([one, y, n, square_of_y]).T


@pytest.mark.parametrize("k", range(6))
def test_bounds_are_below_evidences_by_enumeration_and_quadrature(k, rng):
    """One hidden number with an observed child, in four rows, and h: the evidence of complete rows is a sum over h."""
    parents = STRUCTURES[k % 3]
    sizes = {node: SIZES[node] for node in parents if node in SIZES}
    model = network(parents, sizes, {node: np.ones(SIZES[node]) for node in sizes})
    nodes = [node for node in parents if node not in SIZES]
    node = nodes[k % 2]
    values = {each: rng.normal(size=4) for each in nodes}
    values[node][0] = np.nan
    ends = []
    data = model.compile(rows_of(model, values))
    for _ in range(4):
        start = model.prior.natural(model.prior.sample(rng))[:, None]
        bounds = fitted(model, data, model.expect(start, data).statistics)
        assert np.all(np.diff(bounds) > -1e-10)
        ends.append(bounds[-1])
    # tails are those of Student's t with few degrees of freedom: y = sinh(t)
    t = np.linspace(-9, 9, 361)
    logs = [
        log_evidence_by_enumeration(model, model.compile(rows_of(model, values | {node: filled})), 100)[0]
        for filled in (np.array([y, *values[node][1:]]) for y in np.sinh(t))
    ]
    evidence = logsumexp(np.array(logs) + np.log(np.cosh(t))) + np.log(t[1] - t[0])
    assert evidence - 4 < max(ends) < evidence


@pytest.mark.parametrize("k", range(5))
def test_information_is_the_curvature_of_the_likelihood(k, rng):
    """At any point it is complete-data information less the covariance of scores, by differences of the likelihood."""
    model, parents, _, point = drawn_network(rng, k)
    values, codes = drawn_rows(rng, parents, 25)
    data = model.compile(replace(rows_of(model, values, codes), weight=rng.integers(1, 3, 25).astype(float)))
    prior = model.prior
    center, step = np.asarray(prior.to_unconstrained(point)), 1e-4

    def log_likelihood(free):
        natural = prior.natural(prior.from_unconstrained(free))[:, None]
        return model.expect(natural, data).log_normalizer[0]

    natural = prior.natural(point)
    statistics = model.expect(natural[:, None], data).statistics[:, 0]
    (block,) = score_covariance(model, point, data)
    for _ in range(4):
        along = rng.normal(size=len(center)) / np.sqrt(len(center))
        values_of = [log_likelihood(center + step * at * along) for at in (-2, -1, 0, 1, 2)]
        curvature = np.dot([-1, 16, -30, 16, -1], values_of) / (12 * step**2)
        naturals = [prior.natural(prior.from_unconstrained(center + step * at * along)) for at in (-2, -1, 0, 1, 2)]
        complete = statistics @ (np.dot([-1, 16, -30, 16, -1], np.array(naturals)) / (12 * step**2))
        assert curvature == pytest.approx(complete + along @ block.covariance @ along, rel=1e-4, abs=1e-3)


def test_a_hidden_leaf_is_a_smaller_network(rng):
    parents = {"x": [], "y": ["x"], "z": ["y"]}
    rows = rng.normal(size=(8, 3))
    rows[:, 2] = np.nan
    rows[:3, 1] = np.nan
    values = {node: rows[:, k] for k, node in enumerate(parents)}
    longer, shorter = network(parents), network({"x": [], "y": ["x"]})
    whole = fitted(longer, longer.compile(rows_of(longer, values)))
    part = fitted(shorter, shorter.compile(rows_of(shorter, {node: values[node] for node in "xy"})))
    assert whole == pytest.approx(part, abs=1e-12)


def test_a_group_of_columns_hides_some_of_them(rng):
    """A parent of two columns with a full covariance: likelihoods at a point by the joint normal distribution."""
    X = pd.DataFrame(rng.normal(size=(80, 3)) @ rng.normal(size=(3, 3)) * [1.0, 30.0, 0.2] + 5, columns=list("abc"))
    emission = [("pair", Gaussian(), ["a", "b"]), ("c", Gaussian(), ["c"])]
    network = VBNetwork({"c": ["pair"]}, emission=emission, method="ml").fit(X)
    of_pair, of_c = network.parameters_["pair"], network.parameters_["c"]
    slopes, mean = of_c["coefficients"][0, 0], of_pair["means"][0]
    covariance = np.block([
        [of_pair["covariances"][0], (of_pair["covariances"][0] @ slopes)[:, None]],
        [(of_pair["covariances"][0] @ slopes)[None], of_c["variances"] + slopes @ of_pair["covariances"][0] @ slopes],
    ])  # fmt: skip
    mean = np.append(mean, of_c["intercepts"][0, 0] + slopes @ mean)
    gaps = X.mask(rng.random(X.shape) < 0.4)[:40]
    for row, score in zip(gaps.to_numpy(), network.score_samples(gaps)):
        seen = ~np.isnan(row)
        if seen.any():
            joint = multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)])
            assert score == pytest.approx(joint.logpdf(row[seen]), abs=1e-9)


def test_imputed_parents_are_conditional_means(rng):
    x = rng.normal(size=300)
    X = pd.DataFrame({"x": x, "y": 2 * x + rng.normal(size=300)})
    network = VBNetwork({"y": ["x"]}, method="ml").fit(X)
    slope, residual = network.parameters_["y"]["coefficients"].item(), network.parameters_["y"]["variances"].item()
    mean, variance = network.parameters_["x"]["means"].item(), network.parameters_["x"]["covariances"].item()
    gaps = X.assign(x=np.nan)
    gain = slope * variance / (slope**2 * variance + residual)
    expected = mean + gain * (X["y"] - network.parameters_["y"]["intercepts"].item() - slope * mean)
    assert network.impute(gaps)["x"].to_numpy() == pytest.approx(expected.to_numpy(), abs=1e-9)
    drawn = np.stack([network.impute(gaps, fill="draw", random_state=s)["x"] for s in range(60)])
    assert drawn.mean(axis=0) == pytest.approx(expected.to_numpy(), abs=5 * np.sqrt(variance / 60))
    assert drawn.std(axis=0).mean() == pytest.approx(np.sqrt(variance - gain * slope * variance), rel=0.05)


def test_missing_parents_beside_counts_are_refused(rng):
    """Counts are no part of what is jointly normal: a missing measurement beside them stays an error."""
    X = pd.DataFrame({"n": rng.poisson(3.0, 40), "x": rng.normal(size=40)}).assign(y=lambda x: x["n"] + x["x"])
    X["y"] += rng.normal(size=40)
    emission = {"poisson": ["n"], "gaussian": ["x", "y"]}
    fit = VBNetwork({"y": ["n", "x"]}, emission=emission).fit(X)
    X.loc[3, "x"] = np.nan
    with pytest.raises(ValueError, match=r"Row 3 of X has no 'x', which explains 'y' there\. Fill it in"):
        VBNetwork({"y": ["n", "x"]}, emission=emission).fit(X)
    with pytest.raises(ValueError, match="Row 3 of X has no 'x'"):
        fit.score_samples(X)
    assert np.isfinite(fit.score_samples(X.fillna({"x": 0.0}))).all()


def test_units_of_columns_change_the_bound_by_their_logarithms_alone(rng):
    """With gaps anywhere, and a class: as many ln unit as there are observed cells."""
    h = rng.random(60) < 0.5
    x = np.where(h, 2.0, -2.0) + rng.normal(size=60)
    y = x + rng.normal(size=60)
    X = pd.DataFrame({"x": x, "y": y, "z": y - h + rng.normal(size=60)}).mask(rng.random((60, 3)) < 0.3)
    structure, options = (
        {"x": ["h"], "y": ["x"], "z": ["h", "y"]},
        {"latents": {"h": 2}, "random_state": 0, "tol": 1e-9},
    )
    one = VBNetwork(structure, **options).fit(X)
    units = np.array([100.0, 0.01, 3.0])
    other = VBNetwork(structure, **options).fit(X * units + [5.0, -2.0, 1e3])
    in_units = X.notna().to_numpy().sum(axis=0) @ np.log(units)
    assert other.lower_bound_ == pytest.approx(one.lower_bound_ - in_units, abs=1e-6)
    rows = X.notna().to_numpy() @ np.log(units)
    scores = other.score_samples(X * units + [5.0, -2.0, 1e3])
    assert scores == pytest.approx(one.score_samples(X) - rows, abs=1e-5)
