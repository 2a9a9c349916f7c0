"""Priors that searches over observed columns take by default: facts of a study, the cap on tables, and who gets them.

Numbers are of sums over six equivalent sample sizes and over all graphs that were made apart from the library.
"""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from skvbem import DAGSpace, GridSpace, StructureSearchCV, VBDiscreteDAG, VBNetwork
from skvbem.data import Rows
from skvbem.datasets import load_lizards, load_titanic
from skvbem.families.dirichlet_mixture import EQUIVALENT_SAMPLE_SIZES, AveragedConcentration
from skvbem.models.network.completed_rows import CompletedRows
from skvbem.search.families.family_scores import FamilyScores
from skvbem.spaces.priors import EdgePrior, UniformPrior

approx = pytest.approx
FACT = 6e-7
SIZES = {"equivalent_sample_size": list(EQUIVALENT_SAMPLE_SIZES)}
SKEWED, UNLIKE = [[10, 2], [3, 9]], [[8, 1, 3], [2, 7, 3]]


def frame(counts) -> pd.DataFrame:
    """The rows of a table of counts."""
    counts = np.asarray(counts, dtype=int)
    cells = np.repeat(np.argwhere(np.ones(counts.shape)), counts.ravel(), axis=0)
    return pd.DataFrame(
        {
            name: pd.Categorical(column, categories=range(size))
            for name, column, size in zip("ABC", cells.T, counts.shape)
        }
    )


def searched(X, prior="auto", over_graphs="auto", **options) -> StructureSearchCV:
    space = options.pop("space", None) or DAGSpace(list(X))
    return StructureSearchCV(VBDiscreteDAG(prior=prior), space, prior=over_graphs, random_state=0, **options).fit(X)


def scores(search) -> dict[str, float]:
    table = search.cv_results_
    return {str(p["structure"]): score for p, score in zip(table["params"], table["mean_test_score"])}


def pairs(search) -> np.ndarray:
    """Probabilities of pairs being joined."""
    edges = search.edge_probabilities_.values
    return (edges + edges.T)[np.triu_indices(len(edges), 1)]


def joined(search, one, other) -> float:
    """The probability that two columns are joined."""
    edges = search.edge_probabilities_
    return edges["parent":one, "child":other] + edges["parent":other, "child":one]


def xor() -> pd.DataFrame:
    counts = np.zeros((2, 2, 2))
    for a, b in itertools.product(range(2), repeat=2):
        counts[a, b, a ^ b] = 5
    return frame(counts)


@pytest.mark.parametrize(
    ("counts", "empty", "right", "left", "uniform"),
    [
        (SKEWED, -34.616379, -32.834064, -32.856192, 0.921612),
        (UNLIKE, -44.543896, -43.393397, -43.340609, 0.866503),
        (np.diag([5] * 4), -57.756049, -36.279928, -36.279928, 1.0),
        (np.ones((4, 4)), -46.517379, -47.285770, -47.285770, 0.481198),
        ([[95, 3], [1, 1]], -33.960425, -32.837008, -33.186185, 0.839854),
    ],
)
def test_graphs_over_two_columns(counts, empty, right, left, uniform):
    """Scores, the probability of an edge among three equal graphs, and with each edge at odds of one half."""
    search = searched(frame(counts), "bdla", "uniform")
    assert scores(search) == approx({"[A][B]": empty, "[A][B|A]": right, "[A|B][B]": left}, abs=FACT)
    assert pairs(search)[0] == approx(uniform, abs=FACT)
    odds = 0.5 * (np.exp(right - empty) + np.exp(left - empty))
    assert pairs(searched(frame(counts), "bdla", EdgePrior(1 / 3)))[0] == approx(odds / (1 + odds), abs=1e-5)


def test_exclusive_or():
    search = searched(xor(), "bdla", "uniform", strategy="exhaustive")
    known = {"[A][B][C]": -43.550097, "[A][B][C|A:B]": -33.387603, "[A][B|A][C|B]": -44.180266}
    assert {graph: scores(search)[graph] for graph in known} == approx(known, abs=FACT)
    assert pairs(search) == approx([0.864447] * 3, abs=FACT)
    assert pairs(searched(xor(), "bdla", EdgePrior(1 / 3))) == approx([0.807232] * 3, abs=FACT)


def test_one_size_for_the_network_is_a_search_over_sizes():
    """Graphs that say the same are equal then; so they are not where each table has a size of its own."""
    for counts, p in ((SKEWED, 0.895484), (UNLIKE, 0.845724)):
        X = frame(counts)
        search = searched(X, "bdeu", "uniform", space=DAGSpace(list(X)) * GridSpace(SIZES))
        assert pairs(search)[0] == approx(p, abs=FACT)
        right, left = search.edge_probabilities_.values[[0, 1], [1, 0]]
        assert right == approx(left, rel=1e-12)
    X = xor()
    search = searched(X, "bdeu", EdgePrior(1 / 3), space=DAGSpace(list(X)) * GridSpace(SIZES))
    assert pairs(search) == approx([0.724391] * 3, abs=FACT)


@pytest.mark.parametrize(("n_states", "score"), [(2, -14.349561), (3, -17.763999), (6, -19.998489)])
def test_states_that_do_not_occur_lower_the_evidence(n_states, score):
    counts = np.zeros(n_states)
    counts[:2] = 12, 8
    assert VBDiscreteDAG({"A": []}, prior="bdla").fit(frame(counts)).lower_bound_ == approx(score, abs=FACT)


def test_a_hidden_node_above_two_columns():
    """The bound of one fit is below the evidence by all completions."""
    X = np.array([[0, 0], [0, 0], [1, 1], [1, 1], [0, 1], [1, 1]])
    model = VBDiscreteDAG(latents=2, prior="bdla", random_state=0).fit(X)
    assert model.lower_bound_ == approx(-10.051834, abs=FACT)
    assert model.log_evidence(X, kind="exact").value == approx(-8.877319, abs=FACT)
    for kind in ("importance_gibbs", "ais"):
        evidence = model.log_evidence(X, kind=kind)
        assert evidence.value == approx(-8.877319, abs=4 * evidence.standard_error + 1e-3)


def test_a_row_that_occurs_once_costs_what_a_uniform_one_does():
    """Whatever the size: so tables of as many rows as the data have cost nothing, and need the cap."""
    counts = np.zeros((8, 5))
    counts[np.arange(8), np.random.default_rng(0).integers(0, 5, 8)] = 1
    search = searched(frame(counts), "bdla", "uniform")
    alone = VBDiscreteDAG({"A": []}, prior="bdla").fit(frame(counts)[["A"]]).lower_bound_
    assert scores(search)["[A][B|A]"] - alone == approx(-8 * np.log(5), rel=1e-12)


@pytest.mark.parametrize(("p", "uniform", "sparse"), [(2, 0.6667, None), (3, 0.64, 0.4839), (4, 0.6188, 0.3806)])
def test_edges_before_any_data(p, uniform, sparse):
    space = DAGSpace([f"x{k}" for k in range(p)])
    for prior, expected in ((UniformPrior(), uniform), (EdgePrior(1 / p), sparse)):
        if expected is not None:
            weights = np.exp(prior.log_prior(space))
            with_edge = [{("x0", "x1"), ("x1", "x0")} & {*setting["structure"].edges} != set() for setting in space]
            assert weights @ with_edge == approx(expected, abs=6e-5)


def test_independent_columns_of_ten_states():
    X = pd.DataFrame(np.random.default_rng(0).integers(0, 10, (300, 4)), columns=list("abcd"))
    assert pairs(searched(X, 1.0, "uniform")).max() == approx(0.9768, abs=6e-5)
    assert searched(X, 1.0, "uniform").log_evidence_ == approx(-2799.2518, abs=6e-5)
    assert pairs(searched(X, 1.0, EdgePrior(0.25))).max() == approx(0.9437, abs=6e-5)
    assert pairs(searched(X)).max() < 0.01


def test_the_causes_of_a_deterministic_column_are_not_joined():
    X = pd.DataFrame(np.random.default_rng(0).integers(0, 5, (5000, 7)), columns=list("ABCDEFG"))
    X["J"] = X.A * X.B
    search = searched(X)
    assert {frozenset(edge) for edge in search.best_structure_.edges} == {frozenset("AJ"), frozenset("BJ")}
    assert joined(search, "A", "B") < 0.005 < 0.995 < joined(search, "A", "J")


def test_edges_of_real_tables():
    """Of lizards and of the Titanic under one size for all, and under K2 and BDeu of size 1."""
    X = load_lizards(as_frame=True).data
    assert pairs(searched(X, 1.0, "uniform")) == approx([0.9898, 0.9700, 0.1264], abs=6e-5)
    assert pairs(searched(X, "bdeu", "uniform")) == approx([0.9611, 0.8911, 0.0114], abs=6e-5)
    sizes = DAGSpace(list(X)) * GridSpace(SIZES)
    assert pairs(searched(X, "bdeu", "uniform", space=sizes)) == approx([0.9896, 0.9703, 0.1723], abs=6e-5)
    assert searched(X, "bdeu", EdgePrior(1 / 3), space=sizes).log_evidence_ == approx(-816.1302, abs=6e-5)
    X = load_titanic(as_frame=True).data
    k2, bdeu = (searched(X, prior, "uniform") for prior in (1.0, "bdeu"))
    assert [k2.log_evidence_, bdeu.log_evidence_] == approx([-5228.8702, -5250.2354], abs=6e-5)
    assert joined(k2, "sex", "age") == approx(0.8975, abs=6e-5)


# Families -------------------------------------------------------------------------------------------------------------


class Spelled:
    """The prior given table by table, which is scored from counts."""

    def equal_concentration(self, node):
        return None

    def family_prior(self, family, cardinalities):
        return AveragedConcentration().table([cardinalities[member] for member in family])


class Equal(Spelled):
    def equal_concentration(self, node):
        return AveragedConcentration()


@pytest.mark.parametrize("weights", ["none", "whole", "fractional"])
def test_families_are_means_over_sizes_of_scores_from_counts(weights, rng):
    codes = rng.integers(0, [2, 5, 3, 4], (200, 4)).astype(np.int32)
    weight = {"none": None, "whole": rng.integers(1, 9, 200) * 1.0, "fractional": rng.gamma(2.0, 1.0, 200)}[weights]
    rows = CompletedRows.of_complete(Rows(tuple("wxyz"), codes, weight), dict(zip("wxyz", (2, 5, 3, 4))))
    one, other = FamilyScores(rows, Equal()), FamilyScores(rows, Spelled())
    for child in range(4):
        for parents in range(16):
            if not parents >> child & 1:
                assert one.score(child, parents) == approx(other.score(child, parents), rel=1e-11)


def test_the_best_graph_of_all_and_the_sum_over_all_are_those_of_families(rng):
    """Graphs with a table of 24 cells have no prior: there are 23 rows."""
    X = pd.DataFrame(rng.integers(0, [2, 3, 4], (23, 3)), columns=list("ABC"))
    X["C"] = (X.A + X.B + (rng.random(23) < 0.2)) % 4
    every, best = (searched(X, strategy=strategy) for strategy in ("exhaustive", "exact"))
    table = every.cv_results_
    weights = table["mean_test_score"] + table["log_prior"]
    assert 0 < np.isneginf(table["log_prior"]).sum() < 25
    assert every.structure_posterior_ == approx(np.exp(weights - logsumexp(weights)), abs=1e-12)
    assert every.log_evidence_ == approx(logsumexp(weights) - logsumexp(table["log_prior"]), rel=1e-12)
    assert best.log_evidence_ == approx(every.log_evidence_, rel=1e-12)
    assert best.best_structure_ == every.best_structure_
    for search in (every, best):
        assert search.best_score_ == approx(search.best_estimator_.lower_bound_, rel=1e-12)


# The cap --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["exhaustive", "exact", "greedy"])
def test_no_table_of_a_node_with_parents_has_more_cells_than_there_are_rows(strategy, rng):
    X = pd.DataFrame(rng.integers(0, [6, 5, 2], (29, 3)), columns=list("ABC"))
    X["B"] = X.A % 5
    capped = searched(X, strategy=strategy)
    assert pairs(capped)[0] == 0.0
    assert pairs(searched(X, "bdla", EdgePrior(1 / 5), strategy=strategy))[0] > 0.9
    assert pairs(searched(pd.concat([X, X[:1]]), strategy=strategy))[0] > 0.9


def test_what_a_space_requires_and_columns_without_parents_have_tables_of_any_size(rng):
    counts = np.zeros((9, 4))
    counts[np.arange(7), rng.integers(0, 4, 7)] = 1
    X = frame(counts)
    for strategy in ("exhaustive", "exact", "greedy"):
        required = searched(X, strategy=strategy, space=DAGSpace(["A", "B"], required=[("A", "B")]))
        assert required.best_structure_.edges == (("A", "B"),)
        assert searched(X, strategy=strategy).best_structure_.edges == ()


# Who gets them --------------------------------------------------------------------------------------------------------


@pytest.fixture
def X(rng):
    a = rng.integers(0, 2, 40)
    return pd.DataFrame({"a": a, "b": (a + (rng.random(40) < 0.2)) % 2, "c": rng.integers(0, 3, 40)})


def test_what_was_taken_is_said(X):
    search = searched(X)
    assert search.prior_.probability == approx(1 / 5)
    assert search.best_estimator_.prior == "bdla"
    assert search.estimator.prior == "auto"
    assert "prior='bdla'" in str(search.best_estimator_.summary(X, method="vb"))


def test_missing_cells_get_them_too(X):
    search = searched(X.mask(np.eye(*X.shape) > 0), scoring="lower_bound", rescoring=False)
    assert search.best_estimator_.prior == "bdla"
    assert search.best_score_ == approx(search.best_estimator_.lower_bound_, rel=1e-6)
    assert isinstance(search.prior_, EdgePrior)


def test_networks_of_mixed_columns_get_them_too(X):
    X = X.assign(a=X.a.map({0: "no", 1: "yes"}), b=X.b.map({0: "no", 1: "yes"}))[["a", "b"]]
    search = StructureSearchCV(VBNetwork(), DAGSpace(["a", "b"]), random_state=0).fit(X)
    tables = StructureSearchCV(VBDiscreteDAG(), DAGSpace(["a", "b"]), random_state=0).fit(X)
    assert search.best_score_ == approx(tables.best_score_, rel=1e-9)
    assert search.best_estimator_.prior == "bdla"


@pytest.mark.parametrize(
    "options",
    [
        {"prior": 1.0},
        {"prior": "bdeu"},
        {"space": DAGSpace(["a", "b", "c"], latents={"h": 2}, max_parents=1)},
        {"space": ["[a][b][c]", "[a][b|a][c]"]},
        {"scoring": "bic"},
        {"cv": 2},
        {"space": DAGSpace(["a", "b", "c"], max_parents=1) * GridSpace({"prior": [1.0, 0.5]})},
    ],
    ids=str,
)
def test_what_was_set_and_other_searches_keep_theirs(options, X):
    prior = options.pop("prior", "auto")
    rescoring = {} if "cv" in options else {"rescoring": False}
    search = searched(X, prior, **rescoring, refit=False, max_candidates=4, **options)
    assert search.prior_ == UniformPrior()
    fits = StructureSearchCV(VBDiscreteDAG(prior=1.0 if prior == "auto" else prior), search.space, prior="uniform")
    fits.set_params(**rescoring, random_state=0, refit=False, max_candidates=4).set_params(
        **{name: value for name, value in options.items() if name != "space"}
    )
    assert fits.fit(X).best_score_ == search.best_score_


def test_a_plain_fit_is_uniform_over_tables(X):
    structure = "[a][b|a][c]"
    assert VBDiscreteDAG(structure).fit(X).lower_bound_ == VBDiscreteDAG(structure, prior=1.0).fit(X).lower_bound_


def test_what_has_no_meaning_with_hidden_sizes_is_refused(X):
    structure, gaps = "[a][b|a][c]", X.mask(np.eye(*X.shape) > 0)
    with pytest.raises(ValueError, match="there is no MAP fit"):
        VBDiscreteDAG(structure, prior="bdla", method="map").fit(X)
    with pytest.raises(ValueError, match="multiplies Dirichlet priors of known strength"):
        VBDiscreteDAG(structure, prior="bdla", learn_prior=True).fit(X)
    with pytest.raises(TypeError, match="the strength of each table is hidden"):
        VBDiscreteDAG(structure, prior="bdla").fit(gaps).log_evidence(gaps, kind="laplace")
    ml = [VBDiscreteDAG(structure, prior=prior, method="ml").fit(gaps) for prior in ("bdla", 1.0)]
    assert ml[0].log_likelihood_ == approx(ml[1].log_likelihood_, rel=1e-9)


def test_the_bound_rises_at_every_step(X):
    fits = [VBDiscreteDAG(latents=2, prior="bdla", n_init=1, max_iter=k, random_state=0) for k in range(1, 12)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        bounds = [fit.fit(X).lower_bound_ for fit in fits]
    assert (np.diff(bounds) > -1e-10).all()
