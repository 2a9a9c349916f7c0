"""Searches of measurements with a hidden scale, against enumeration of all graphs with quadrature over the scale."""

from collections import defaultdict
from functools import cache
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from scipy.stats import gamma
from sklearn.base import clone

from skvbem import DAG, DAGSpace, StructureSearchCV, VBMixture, VBNetwork
from skvbem.emissions import Regression
from skvbem.graphs.essential import immoralities
from skvbem.search.families.graph_walk import EdgeLogOdds
from skvbem.search.families.hidden_scale import HiddenScaleScores
from skvbem.search.families.mixed_graph_walk import MixedGraphs
from skvbem.search.families.normal_wishart_scores import NormalWishartScores, hidden_scales
from skvbem.spaces.priors import EdgePrior

approx = pytest.approx
BGE = VBNetwork(emission=Regression(prior="bge"), n_init=1, tol=1e-9)
GRAPHS = [setting["structure"] for setting in DAGSpace([*"abcd"])]


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = 0.4 * a + rng.normal(size=n)
    c = 0.5 * b + 0.1 * rng.normal(size=n)
    return pd.DataFrame({"a": a, "b": 100.0 * b, "c": 3.0 + c, "d": 0.01 * rng.normal(size=n)})


# Gauss-Legendre nodes of ln t, of a density that falls to e^-8 of itself at its ends.
POINTS = np.concatenate([low + 1.0 + np.polynomial.legendre.leggauss(30)[0] for low in range(-16, 8, 2)])
WEIGHTS = np.tile(np.polynomial.legendre.leggauss(30)[1], 12)


def by_quadrature(X, dags, weight=None):
    """ln of the integrals over the scale t ~ Gamma(1/2, 1/2), for each of some graphs."""
    scores = NormalWishartScores.of_rows(tuple(X), X.to_numpy(), weight)
    known = [scores.with_scale(scale) for scale in np.exp(POINTS)]
    of_family = cache(lambda *family: np.array([each.score(*family) for each in known]))
    prior = gamma(0.5, scale=2.0).logpdf(np.exp(POINTS)) + POINTS + np.log(WEIGHTS)
    totals = []
    for dag in dags:
        families = [(scores.place[v], sum(1 << scores.place[p] for p in dag.parents(v))) for v in dag.nodes]
        totals.append(np.logaddexp.reduce(prior + sum(of_family(*family) for family in families)))
    return np.array(totals)


def searched(X, strategy, estimator=BGE, **options):
    options = {"rescoring": False, "refit": False, "prior": "uniform", "scoring": "lower_bound"} | options
    space = DAGSpace(X.columns)
    return StructureSearchCV(estimator, space, strategy=strategy, random_state=0, **options).fit(X)


@pytest.mark.parametrize("prior", ["uniform", EdgePrior(0.2)])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_sums_over_all_graphs_and_scales(prior, is_weighted):
    """ln p(X), probabilities of edges and graphs, and the best graph, over 543 integrals."""
    X = table(30)
    weight = np.random.default_rng(0).integers(1, 4, 30).astype(float) if is_weighted else None
    odds = np.log(0.25) if prior != "uniform" else 0.0
    log_priors = np.array([len(dag.edges) * odds for dag in GRAPHS])
    log_evidences = by_quadrature(X, GRAPHS, weight)
    values = log_evidences + log_priors
    probabilities = np.exp(values - np.logaddexp.reduce(values))
    options = {"rescoring": False, "refit": False, "random_state": 0, "prior": prior}
    search = StructureSearchCV(BGE, DAGSpace(X.columns), strategy="exact", **options).fit(X, sample_weight=weight)
    total = np.logaddexp.reduce(values) - np.logaddexp.reduce(log_priors)
    assert search.log_evidence_ == approx(total, abs=1e-9)
    assert values[GRAPHS.index(search.best_structure_)] == approx(values.max(), abs=1e-9)
    assert search.best_score_ == approx(log_evidences[GRAPHS.index(search.best_structure_)], abs=1e-9)
    for k, setting in enumerate(search.cv_results_["params"]):
        wanted = probabilities[GRAPHS.index(setting["structure"])]
        assert search.structure_posterior_[k] == approx(wanted, abs=1e-9)
    for parent, child in permutations("abcd", 2):
        wanted = probabilities @ [parent in dag.parents(child) for dag in GRAPHS]
        assert search.edge_probabilities_["parent":parent, "child":child] == approx(wanted, abs=1e-9)
        assert wanted > 1e-3


@pytest.mark.parametrize("seed", range(8))
def test_climbs_reach_the_best_graph(seed):
    """By mixed scores; a climb's moves are valued as the graphs that they lead to."""
    X = table(12, seed)
    scores = HiddenScaleScores(NormalWishartScores.of_rows(tuple(X), X.to_numpy()))
    best = max(map(scores.log_evidence, GRAPHS))
    for strategy in ("exact", "greedy", "structural"):
        search = searched(X, strategy)
        assert search.best_score_ == approx(best, abs=1e-9)
        table_of_scores = zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True)
        for setting, score in table_of_scores:
            assert score == approx(scores.log_evidence(setting["structure"]), abs=1e-9)


def test_the_best_graph_is_that_of_the_mixture():
    """At single scales other graphs are best, and no score of one scale is that of the mixture."""
    X = table(12, 3)
    scores = HiddenScaleScores(NormalWishartScores.of_rows(tuple(X), X.to_numpy()))
    at_scales = np.array([scores.log_evidences_of(dag) for dag in GRAPHS])
    assert len({*at_scales.argmax(axis=0).tolist()}) > 1
    for k in (0, 20, 40, 52):
        known = scores.given.with_scale(scores.scales[k])
        assert at_scales[::60, k] == approx([known.log_evidence(dag) for dag in GRAPHS[::60]], abs=1e-10)


def test_moves_of_graphs_are_differences_of_mixed_scores():
    X = table(15)
    scores = HiddenScaleScores(NormalWishartScores.of_rows(tuple(X), X.to_numpy()))
    rules = DAGSpace(X.columns).rules
    odds = {("a", "b"): -0.7, ("c", "b"): 1.3}
    graphs = MixedGraphs(scores, EdgeLogOdds(rules, odds))

    def value(dag):
        return scores.log_evidence(dag) + sum(odds.get(edge, 0.0) for edge in dag.edges)

    for dag in (DAG([*"abcd"], {"b": ["a", "c"], "d": ["b"]}), DAG([*"abcd"], {"a": ["b"], "b": ["d"]})):
        here = graphs.at(dag)
        assert here.value == approx(value(dag), abs=1e-9)
        assert here.moves[2].sum() > 0
        for k, gain in enumerate(here.gains):
            after = here.after(k)
            assert here.value + gain == approx(value(graphs.dag(after)), abs=1e-9)
            assert here.moved(k, after).value == approx(value(graphs.dag(after)), abs=1e-9)


def test_bounds_of_fits_are_below_the_integral_and_equal_within_classes():
    X, dags, classes = table(25), GRAPHS[:24] + GRAPHS[::60], defaultdict(list)
    for dag, log_evidence in zip(dags, by_quadrature(X, dags)):
        bound = clone(BGE).set_params(structure=dag).fit(X).lower_bound_
        classes[frozenset(map(frozenset, dag.edges)), immoralities(dag)].append(bound)
        assert -0.5 < bound - log_evidence < 0
    assert max(map(len, classes.values())) > 1
    assert max(np.ptp(bounds) for bounds in classes.values()) < 1e-6


def test_all_nodes_share_the_scale():
    """Without edges, too, the columns depend on each other through it: their evidences do not add up."""
    X, no_edges = table(5), DAG([*"abcd"], {})
    (together,) = by_quadrature(X, [no_edges])
    alone = [by_quadrature(X[[name]], [DAG([name], {})])[0] for name in X]
    assert together - sum(alone) > 0.5
    bound = clone(BGE).set_params(structure=no_edges).fit(X).lower_bound_
    assert together - 0.2 < bound < together


def test_missing_cells_latents_and_mixtures_are_fitted():
    """Where scores are no sums over families, q(t) is one of the model's factors, and bounds rise."""
    X = table(40)
    holes = X.mask(np.random.default_rng(0).random(X.shape) < 0.1)
    search = StructureSearchCV(
        BGE, [{"structure": [{"b": ["a"]}, {"c": ["b"]}]}], scoring="lower_bound", rescoring=False, random_state=0
    ).fit(holes)
    assert search.best_structure_.parents("c") == ("b",)
    latent = clone(BGE).set_params(structure={"a": ["h"], "b": ["h"]}, latents={"h": 2}, random_state=0)
    history = latent.fit(holes).lower_bounds_
    assert np.diff(history).min() > -1e-8
    mixture = VBMixture(2, emission=Regression(["a"], prior="bge"), n_init=1, random_state=0).fit(X[["c", "b", "a"]])
    assert np.diff(mixture.lower_bounds_).min() > -1e-8


# Correlations of A, B, C and D (AB, AC, AD, BC, BD, CD) in the first rows of the table of Scutari (2010): C is
# 2 + 2 A + 2 B with noise of deviation 1/2, D is 6 + 1.5 B with 1/3.
CORRELATIONS = {
    50: [-0.028333866, 0.1877567413, -0.0129186364, 0.9714671289, 0.9969367562, 0.9715731608],
    100: [-0.0676303849, 0.1792024209, -0.0551226157, 0.9660076859, 0.9976864985, 0.9672814169],
    300: [0.0054463806, 0.2919614408, 0.005971519, 0.9543773719, 0.9973065991, 0.9523965807],
    1000: [0.0056620815, 0.3111648103, 0.0052930894, 0.948611307, 0.9973387393, 0.9460314794],
    5000: [-0.026116585, 0.2903058472, -0.0259752474, 0.9456745055, 0.9973975516, 0.9431516399],
}
DAGS = [DAG([*"abcd"], {"c": above, "d": ["b"]}) for above in (["a", "b"], ["a", "b", "d"])]


def correlation(n):
    matrix = np.eye(4)
    matrix[np.triu_indices(4, 1)] = CORRELATIONS[n]
    return matrix + np.triu(matrix, 1).T


@pytest.mark.parametrize(
    ("n", "wide", "narrow", "hidden"),
    [
        (50, 3.705, -1.794, -1.044),
        (100, 7.120, -1.126, -0.657),
        (300, 7.514, -1.455, -0.946),
        (1000, 2.960, -2.926, -2.564),
        (5000, -0.578, -3.278, -2.996),
    ],
)
def test_an_edge_that_is_not_there(n, wide, narrow, hidden):
    """What D above C adds beside A and B, by scales of 1/2, 1/50 and a hidden one; three degrees of freedom."""
    known = NormalWishartScores(tuple("abcd"), n * correlation(n), np.zeros(4), np.ones(4), n, 0.5 * np.eye(4), 3.0)
    for scores, wanted in [
        (known, wide),
        (known.with_scale(0.02), narrow),
        (HiddenScaleScores(known), hidden),
    ]:
        assert np.diff([scores.log_evidence(dag) for dag in DAGS])[0] == approx(wanted, abs=6e-4)


def rows_of_correlation(n):
    """Rows whose columns have these correlations, without error."""
    rng = np.random.default_rng(0)
    white, _ = np.linalg.qr(np.column_stack([np.ones(n), rng.normal(size=(n, 4))]))
    return pd.DataFrame(np.sqrt(n) * white[:, 1:] @ np.linalg.cholesky(correlation(n)).T, columns=[*"abcd"])


@pytest.mark.parametrize("n", [300, 1000])
def test_probability_of_an_edge_that_is_not_there(n):
    """Over all graphs: nearly one under known priors of each node, a small one under a hidden scale."""
    X = rows_of_correlation(n)
    known = Regression(coefficient_precision_prior=1.0, degrees_of_freedom_prior=1.0, variance_prior=None)
    probability = {}
    for name, prior in {"known": known, "hidden": Regression(prior="bge")}.items():
        edges = searched(X, "exact", VBNetwork(emission=prior, n_init=1)).edge_probabilities_
        probability[name] = edges["parent":"d", "child":"c"] + edges["parent":"c", "child":"d"]
    assert probability["known"] > 0.9
    assert probability["hidden"] < 0.35


def test_effects_are_mixed_over_scales():
    """As searches at each known scale have them, by the evidences that these searches have."""
    X = table(20)[["a", "b", "c"]]
    options = {"strategy": "exact", "rescoring": False, "refit": False, "prior": "uniform", "scoring": "lower_bound"}
    scales, log_weights = hidden_scales()
    log_totals, effects = [], []
    for scale in scales[8::4]:
        prior = Regression(prior="bge", coefficient_precision_prior=scale, degrees_of_freedom_prior=1.0)
        search = StructureSearchCV(VBNetwork(emission=prior, n_init=1), DAGSpace(X.columns), **options).fit(X)
        log_totals.append(search.log_evidence_)
        effects.append([search.effect("a", "c", method=each) for each in ("adjustment", "graphs")])
    weights = softmax(log_weights[8::4] + log_totals)
    assert weights.max() < 0.9
    search = StructureSearchCV(BGE, DAGSpace(X.columns), **options).fit(X)
    by_adjustment, by_graphs = (search.effect("a", "c", method=each) for each in ("adjustment", "graphs"))
    assert by_adjustment.mean == approx(weights @ [each.mean for each, _ in effects], abs=2e-3)
    squares = weights @ [each.standard_deviation**2 + each.mean**2 for each, _ in effects]
    assert by_adjustment.standard_deviation**2 + by_adjustment.mean**2 == approx(squares, abs=2e-3)
    assert by_graphs.mean == approx(weights @ [each.mean for _, each in effects], abs=0.02)
    assert by_graphs.probability_no_path == approx(
        weights @ [each.probability_no_path for _, each in effects], abs=0.02
    )
