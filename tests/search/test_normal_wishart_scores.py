"""The BGe score against its definitions: predictive densities, regressions, mixtures of one component, quadrature."""

from collections import defaultdict
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import gamma, multivariate_t
from search.test_auto import parts_of

from skvbem import DAG, DAGSpace, StructureSearchCV, VBMixture, VBNetwork
from skvbem.emissions import Gaussian, Regression
from skvbem.graphs.essential import immoralities
from skvbem.search.families.normal_wishart_scores import NormalWishartScores, hidden_scales
from skvbem.spaces.priors import EdgePrior

approx = pytest.approx
ALPHA, DOF = 1.7, 3.3


@pytest.fixture(scope="module")
def prior_and_rows():
    """A prior with correlations and a mean away from that of the rows."""
    rng = np.random.default_rng(3)
    root = rng.normal(size=(3, 3))
    return root @ root.T + np.eye(3), rng.normal(size=3), rng.normal(size=(7, 3)) @ rng.normal(size=(3, 3))


def scores_of(scale, prior_mean, rows):
    away = rows - rows.mean(axis=0)
    mean = rows.mean(axis=0) - prior_mean
    return NormalWishartScores((0, 1, 2), away.T @ away, mean, np.ones(3), len(rows), scale, DOF, ALPHA)


def one_row_after_the_other(scale, mean, rows):
    """ln p by predictive densities: each row is Student t given those before."""
    d, total, weight, dof = len(mean), 0.0, ALPHA, DOF + len(mean) - 1
    for row in rows:
        shape = scale * (weight + 1) / weight / (dof - d + 1)
        total += multivariate_t(mean, shape, df=dof - d + 1).logpdf(row)
        scale = scale + weight / (weight + 1) * np.outer(row - mean, row - mean)
        mean = (weight * mean + row) / (weight + 1)
        weight, dof = weight + 1, dof + 1
    return total


def regression(scale, mean, rows, v, parents):
    """ln p of a column given its parents under the Normal-Gamma prior of its family."""
    parents, p = list(parents), len(parents)
    inverse = np.linalg.inv(scale[np.ix_(parents, parents)])
    slopes = inverse @ scale[parents, v]
    rate = 0.5 * (scale[v, v] - scale[v, parents] @ slopes)
    shape = (DOF + p) / 2
    above = rows[:, parents] - mean[parents]
    spread = np.eye(len(rows)) + 1 / ALPHA + above @ inverse @ above.T
    return multivariate_t(mean[v] + above @ slopes, rate / shape * spread, df=2 * shape).logpdf(rows[:, v])


def test_evidences_of_columns_by_three_definitions(prior_and_rows):
    """All columns by predictive densities, and by regressions in each order; so any of them."""
    scale, mean, rows = prior_and_rows
    scores = scores_of(scale, mean, rows)
    (total,) = scores.log_evidences(np.array([[0, 1, 2]]))
    assert total == approx(one_row_after_the_other(scale, mean, rows), abs=1e-10)
    for order in permutations(range(3)):
        families = [(v, order[:k]) for k, v in enumerate(order)]
        each = [regression(scale, mean, rows, v, parents) for v, parents in families]
        assert sum(each) == approx(total, abs=1e-10)
        for (v, parents), expected in zip(families, each):
            assert scores.score(v, sum(1 << k for k in parents)) == approx(expected, abs=1e-10)
    two = [0, 2]
    alone = one_row_after_the_other(scale[np.ix_(two, two)], mean[two], rows[:, two])
    assert scores.log_evidences(np.array([two]))[0] == approx(alone, abs=1e-10)


def test_families_with_one_parent_more(prior_and_rows):
    scores = scores_of(*prior_and_rows)
    assert scores.grown(0, 0b010, [2]).tolist() == approx([scores.score(0, 0b110)], abs=1e-12)
    assert scores.grown(1, 0, [0, 2]).tolist() == approx([scores.score(1, 0b001), scores.score(1, 0b100)], abs=1e-12)


def chain(n, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = 0.8 * a + rng.normal(size=n)
    c = 3.0 + 0.5 * b + 0.1 * rng.normal(size=n)
    return np.column_stack([a, b, c, rng.normal(size=n)])


def test_graphs_that_allow_the_same_distributions_have_one_evidence():
    """Of all graphs of four columns; under any known scale, and so under a hidden one."""
    scores = NormalWishartScores.of_rows("abcd", chain(50), degrees_of_freedom=1.5, mean_precision=0.3)
    graphs = [setting["structure"] for setting in DAGSpace([*"abcd"])]
    for scale in (0.02, 1.0):
        known, classes = scores.with_scale(scale), defaultdict(list)
        for dag in graphs:
            classes[frozenset(map(frozenset, dag.edges)), immoralities(dag)].append(known.log_evidence(dag))
        assert len(graphs) == 543
        assert len(classes) == 185
        assert max(np.ptp(values) for values in classes.values()) < 1e-10
        assert np.ptp([np.mean(values) for values in classes.values()]) > 10


@pytest.mark.parametrize("is_weighted", [False, True])
def test_all_columns_together_are_a_gaussian(is_weighted):
    """The complete graph is the joint normal distribution of a mixture of one component, with its evidence."""
    X = 100.0 + chain(30)[:, :3] * [1.0, 10.0, 0.1]
    weight = np.random.default_rng(0).integers(1, 4, 30).astype(float) if is_weighted else None
    variances = np.cov(X.T, aweights=weight, bias=True).diagonal()
    prior = Gaussian(
        "full", mean_precision_prior=0.4, degrees_of_freedom_prior=4.5, covariance_prior=0.7 * np.diag(variances)
    )
    model = VBMixture(1, emission=prior).fit(X, sample_weight=weight)
    options = {"scale": 0.7, "degrees_of_freedom": 2.5, "mean_precision": 0.4}
    scores = NormalWishartScores.of_rows("abc", X, weight, **options)
    assert scores.log_evidence(DAG([*"abc"], {"b": ["a"], "c": ["a", "b"]})) == approx(model.lower_bound_, abs=1e-9)


@pytest.mark.parametrize("n", [5, 300])
@pytest.mark.parametrize("dof", [1.0, 3.0])
def test_the_integral_over_a_hidden_scale(n, dof):
    """The trapezoid is the integral, to less than rounding errors of scores."""
    scores = NormalWishartScores.of_rows("abcd", chain(n), degrees_of_freedom=dof)
    dag = DAG([*"abcd"], {"b": ["a"], "c": ["b"], "d": ["c"]})
    scales, log_weights = hidden_scales()
    summed = np.logaddexp.reduce([w + scores.with_scale(t).log_evidence(dag) for t, w in zip(scales, log_weights)])

    def density(log_scale):
        t = np.exp(log_scale)
        log_prior = gamma(0.5, scale=2.0).logpdf(t) + log_scale
        return np.exp(log_prior + scores.with_scale(t).log_evidence(dag) - summed)

    integral, _ = quad(density, -14.0, 7.0, epsabs=1e-12, epsrel=1e-12, limit=500, points=[-4.0, -2.0, 0.0])
    assert np.log(integral) == approx(0.0, abs=1e-9)


def test_an_absent_edge_beside_parents_that_say_all():
    """Known priors shrink the slopes of a child that its parents nearly determine, and another parent mends it.

    Here its noise has a hundredth of its variance.
    """
    dags = [DAG([*"abcd"], {"c": above, "d": ["b"]}) for above in (["a", "b"], ["a", "b", "d"])]
    known = VBNetwork(emission=Regression(coefficient_precision_prior=1.0, variance_prior=None), n_init=1)
    gains = defaultdict(list)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        a, b = rng.normal(1.0, 1.0, 300), rng.normal(2.0, 3.0, 300)
        X = np.column_stack([a, b, 2 + 2 * a + 2 * b + rng.normal(0, 0.5, 300), 6 + 1.5 * b + rng.normal(0, 0.33, 300)])
        scores = NormalWishartScores.of_rows("abcd", X)
        scales, log_weights = hidden_scales()
        names = {name: f"x{k}" for k, name in enumerate("abcd")}
        fits = [known.set_params(structure={names[v]: [names[p] for p in dag.parents(v)] for v in "abcd"}).fit(X)
                .lower_bound_ for dag in dags]  # fmt: skip
        gains["known"].append(fits[1] - fits[0])
        for scale in (0.5, 0.02):
            gains[scale].append(np.diff([scores.with_scale(scale).log_evidence(dag) for dag in dags])[0])
        each = [[w + scores.with_scale(t).log_evidence(dag) for t, w in zip(scales, log_weights)] for dag in dags]
        gains["hidden"].append(np.diff(np.logaddexp.reduce(each, axis=1))[0])
    assert np.mean(gains["known"]) > 5
    assert np.mean(gains[0.5]) > 2
    assert np.mean(gains["hidden"]) < -1
    assert np.mean(gains[0.02]) < -1


BGE = VBNetwork(
    emission=Regression(prior="bge", coefficient_precision_prior=0.1, degrees_of_freedom_prior=3.0), n_init=1
)
OF_BGE = {"scale": 0.1, "degrees_of_freedom": 3.0}


def table(n, seed=0):
    return pd.DataFrame(10.0 + chain(n, seed) * [1.0, 100.0, 1.0, 0.01], columns=[*"abcd"])


@pytest.mark.parametrize("is_weighted", [False, True])
def test_bounds_of_fits_are_these_evidences(is_weighted):
    X = table(40)
    weight = np.random.default_rng(0).integers(1, 4, 40).astype(float) if is_weighted else None
    scores = NormalWishartScores.of_rows("abcd", X.to_numpy(), weight, **OF_BGE)
    for above in ({}, {"b": ["a"]}, {"b": ["c"], "c": ["a", "d"]}, {"d": ["a", "b", "c"], "c": ["b"]}):
        dag = DAG([*"abcd"], above)
        model = BGE.set_params(structure=dag).fit(X, sample_weight=weight)
        assert model.lower_bound_ == approx(scores.log_evidence(dag), abs=1e-8)


def searched(X, strategy, **options):
    options = {"rescoring": False, "refit": False, "random_state": 0, "scoring": "lower_bound"} | options
    return StructureSearchCV(BGE.set_params(structure=None), DAGSpace(X.columns), strategy=strategy, **options).fit(X)


@pytest.mark.parametrize("prior", ["uniform", EdgePrior(0.2)])
def test_searches_sum_over_all_graphs(prior):
    """Probabilities of edges are those of an enumeration; so are the best graph and ln p(X)."""
    X, graphs = table(30), [setting["structure"] for setting in DAGSpace([*"abcd"])]
    scores = NormalWishartScores.of_rows("abcd", X.to_numpy(), **OF_BGE)
    edge_prior = 0.2 if prior != "uniform" else 0.5
    values = np.array(
        [scores.log_evidence(dag) + len(dag.edges) * np.log(edge_prior / (1 - edge_prior)) for dag in graphs]
    )
    weights = np.exp(values - np.logaddexp.reduce(values))
    exact = searched(X, "exact", prior=prior)
    assert exact.best_score_ == approx(scores.log_evidence(exact.best_structure_), abs=1e-8)
    assert scores.log_evidence(exact.best_structure_) + len(exact.best_structure_.edges) * np.log(
        edge_prior / (1 - edge_prior)
    ) == approx(values.max(), abs=1e-8)
    for parent, child in permutations("abcd", 2):
        wanted = weights @ [parent in dag.parents(child) for dag in graphs]
        assert exact.edge_probabilities_["parent":parent, "child":child] == approx(wanted, abs=1e-8)
    assert searched(X, "greedy", prior=prior).best_score_ == approx(exact.best_score_, abs=1e-8)


def test_records_of_candidates_are_those_of_fits():
    X = table(30)
    job, ranking, _ = parts_of(DAGSpace(X.columns), X, BGE.set_params(structure=None), scoring="lower_bound")
    setting = {"structure": DAG([*"abcd"], {"b": ["a"], "c": ["a", "b"]})}
    summed, measured = job.summed(setting), job.measured(setting)
    assert summed.values[ranking] == approx(measured.values[ranking], abs=1e-8)
    assert summed.n_free_parameters == measured.n_free_parameters == 11
    holes = X.mask(np.eye(30, 4) > 0)
    job, _, _ = parts_of(DAGSpace(X.columns), holes, BGE.set_params(structure=None), scoring="lower_bound")
    assert job.summed(setting) is None
    job, _, _ = parts_of(DAGSpace(X.columns), X, BGE.set_params(structure=None), scoring="bic")
    assert job.summed(setting) is None


def test_no_fit_is_made_in_searches_of_measurements(monkeypatch):
    """Twelve columns have 24 576 families."""
    rng = np.random.default_rng(0)
    root = np.tril(rng.normal(size=(12, 12)) * (rng.random((12, 12)) < 0.3), -1)
    X = pd.DataFrame(rng.normal(size=(300, 12)) @ np.linalg.inv(np.eye(12) - root).T).add_prefix("x")
    for module in ("execution.jobs", "families.decomposable"):
        monkeypatch.setattr(f"skvbem.search.{module}.evaluate", None)
    search = searched(X, "exact")
    assert search.edge_probabilities_.values.shape == (12, 12)
    assert search.best_score_ >= searched(X, "greedy").best_score_ - 1e-8


def test_columns_without_a_joint_prior_are_fitted():
    """With priors that differ, or by a penalized likelihood."""
    X = table(20)
    space = DAGSpace(X.columns)
    other = Regression(prior="bge", coefficient_precision_prior=1.0)
    mixed = [(name, other if name == "a" else BGE.emission, [name]) for name in X]
    for model, kind in [(VBNetwork(emission=mixed, n_init=1), "lower_bound"), (BGE.set_params(structure=None), "bic")]:
        job, ranking, _ = parts_of(space, X, model, scoring=kind)
        assert not isinstance(job.family_scores(next(iter(space)), ranking), NormalWishartScores)
