"""Posteriors over candidates: against enumeration, exhaustive sums over graphs, and quadrature."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.special import expit, gammaln, logsumexp, ndtri

from skvbem import BipartiteSpace, DAGSpace, StructureSearchCV, VBDiscreteDAG, VBMixture, blocks_of
from skvbem.datasets import (
    load_car,
    load_carcinoma,
    load_coleman_panel,
    load_faithful,
    load_lsat6,
    load_soybean_small,
    load_zoo,
)
from skvbem.errors import SearchWarning
from skvbem.search.posterior.rescoring import predicted_evidences, probabilities, rescored_posterior
from skvbem.search.posterior.structure_chains import ChainPosterior
from skvbem.spaces.priors import EdgePrior

approx = pytest.approx

BINARY = [[0, 1]] * 3
#: Real tables: all graphs over five columns, and graphs of one parent at most over six and seven.
TABLES = {
    "coleman": (load_coleman_panel, 4, 3),
    "lsat6": (load_lsat6, 5, 4),
    "car": (load_car, 5, 4),
    "zoo": (load_zoo, 5, 4),
    "soybeans": (load_soybean_small, 6, 1),
    "carcinoma": (load_carcinoma, 7, 1),
}


@pytest.fixture
def few_rows():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(7, 3)).astype(float)
    X[:, 1], X[2, 1] = X[:, 0], np.nan
    return X


def exact_posterior(model, candidates, X, prior="uniform"):
    """By the sum over all completions of the rows."""
    search = StructureSearchCV(model, candidates, scoring="exact", prior=prior, refit=False, random_state=0).fit(X)
    joint = search.cv_results_["mean_test_score"] + search.cv_results_["log_prior"]
    assert search.structure_posterior_ == approx(np.exp(joint - logsumexp(joint)), rel=1e-9)
    assert not search.structure_posterior_errors_.any()
    return search.structure_posterior_


# Chains over structures ----------------------------------------------------------------------------------------------

HIDDEN = {
    "bipartite": BipartiteSpace({"a": 2, "b": 2}, ["x0", "x1", "x2"]),
    "latents come and go": BipartiteSpace({"a": 2, "b": 3}, ["x0", "x1", "x2"], max_parents=1)
    + BipartiteSpace({"a": 2}, ["x0", "x1", "x2"]),
    "edges among columns": DAGSpace(["x0", "x1", "x2"], latents={"a": 2}, tiers=[["a"], ["x0"], ["x1"], ["x2"]]),
}


@pytest.mark.parametrize(("space", "prior"), [*zip(HIDDEN, (1.0, "bdeu", "bdeu"))])
def test_the_posterior_is_that_of_enumeration(space, prior, few_rows):
    """With a missing cell, and a prior over structures that is not uniform."""
    candidates, model = HIDDEN[space], VBDiscreteDAG(prior=prior, categories=BINARY, n_init=2, random_state=0)
    over_graphs = EdgePrior(0.3)
    search = StructureSearchCV(model, candidates, prior=over_graphs, refit=False, random_state=0).fit(few_rows)
    exact = exact_posterior(model, candidates, few_rows, over_graphs)
    errors = search.structure_posterior_errors_
    assert search.structure_posterior_ == approx(exact, abs=0.01)
    assert (np.abs(search.structure_posterior_ - exact) <= 4.5 * errors + 1e-4).all()
    assert np.abs(search.score_weights_ - exact).max() > 4 * np.abs(search.structure_posterior_ - exact).max()
    assert search.structure_posterior_[search.best_index_] == approx(search.structure_posterior_.max())
    assert search.cv_results_["rank_test_score"][search.best_index_] == 1
    for table in (search.shared_parent_probabilities_, search.hidden_parent_counts_):
        assert table.values.max() <= 1 + 1e-12


def test_the_posterior_hangs_on_the_seed_alone(few_rows):
    space = HIDDEN["bipartite"]
    once, again, other = (
        StructureSearchCV(VBDiscreteDAG(categories=BINARY), space, n_jobs=n_jobs, refit=False, random_state=seed)
        .fit(X)
        .structure_posterior_
        for X, n_jobs, seed in ((few_rows, 1, 0), (few_rows[::-1], 2, 0), (few_rows, 1, 1))
    )
    assert once.tolist() == again.tolist()
    assert once.tolist() != other.tolist()


def test_chains_that_do_not_mix_leave_it_to_evidences(few_rows, monkeypatch):
    """Of the candidates that they visited, here all but the last ten."""
    space, shares = HIDDEN["bipartite"], np.r_[np.full(26, 1 / 26), np.zeros(10)]
    stuck = ChainPosterior(shares, np.full(36, 0.1), is_stuck=True, n_sweeps=1)
    monkeypatch.setattr("skvbem.search.posterior.ranking.posterior_by_chains", lambda *_: stuck)
    model = VBDiscreteDAG(categories=BINARY, n_init=2)
    search = StructureSearchCV(model, space, refit=False, random_state=0).fit(few_rows)
    exact = exact_posterior(model, space, few_rows)[:26]
    assert search.structure_posterior_[:26] == approx(exact / exact.sum(), abs=0.002)
    assert not search.structure_posterior_[26:].any()


# Which candidates have their evidence sampled ------------------------------------------------------------------------


def settled(scores, evidences, sizes, most=100):
    asked = []

    def evidences_of(positions):
        asked.extend(positions)
        return evidences[positions], np.full(len(positions), 0.05), np.ones(len(positions), dtype=bool)

    found = rescored_posterior(scores, sizes, np.zeros(len(scores)), [evidences_of], np.random.default_rng(0), most)
    return found, asked


def test_candidates_that_a_bound_puts_far_behind_are_asked_if_gaps_are_as_large():
    """The bound falls by 1 nat for each parameter, the evidence rises by 0.2."""
    sizes = np.arange(30.0)
    scores, evidences = -1000.0 - sizes, -1000.0 + 0.2 * sizes
    found, asked = settled(scores, evidences, sizes)
    exact = np.exp(evidences - logsumexp(evidences))
    assert found.probabilities == approx(exact, abs=0.02)
    assert found.rest <= 0.01
    assert set(np.argsort(-exact)[:15]) <= set(asked)


def test_candidates_that_cannot_matter_are_not_asked():
    sizes = np.arange(40.0)
    scores = -1000.0 - 5.0 * sizes
    found, asked = settled(scores, scores + 2.0, sizes)
    assert found.probabilities[0] == approx(1 / (1 + np.exp(-5.0)), abs=0.02)
    assert len(asked) <= 8


def test_what_was_not_asked_keeps_what_gaps_say():
    sizes, scores = np.zeros(20), np.full(20, -10.0)
    found, asked = settled(scores, scores + 3.0, sizes, most=5)
    assert len(asked) == 5
    assert found.probabilities.sum() == approx(1.0)
    assert 0.5 < found.rest < 0.95
    assert (found.errors[5:].min() > found.errors[asked].max()) or found.errors.max() > 0.01


def test_gaps_are_a_straight_line_in_the_number_of_parameters():
    sizes, scores = np.array([1.0, 2.0, 3.0, 10.0]), np.array([-5.0, -6.0, -7.0, -8.0])
    values = np.where(sizes < 5, scores + 1.0 + 2.0 * sizes, np.nan)
    guesses, spreads = predicted_evidences(scores, sizes, values, np.zeros(4))
    assert guesses[3] == approx(-8.0 + 21.0)
    assert spreads[3] > spreads[0]


def test_errors_of_evidences_are_in_the_probabilities():
    """Of two candidates the mean of a logistic function of a normal variate, by quadrature."""
    values, errors = np.array([0.0, 1.5]), np.array([0.6, 0.8])
    found, of = probabilities(values, errors, np.zeros(2), np.random.default_rng(0))
    at = ndtri((np.arange(20_000) + 0.5) / 20_000)
    drawn = expit(1.5 + at)  # the difference has a standard deviation of one
    assert found[1] == approx(drawn.mean(), abs=0.02)
    assert of[1] == approx(drawn.std(), rel=0.1)
    certain, none = probabilities(values, np.zeros(2), np.zeros(2), np.random.default_rng(0))
    assert certain[1] == approx(expit(1.5), rel=1e-12)
    assert none == approx(0.0, abs=1e-12)


def test_numbers_of_components_have_probabilities():
    X = load_faithful().data[::10, :1]
    search = StructureSearchCV(VBMixture(), {"n_components": [1, 2, 3]}, refit=False, random_state=0).fit(X)
    evidences = search.cv_results_["mean_test_evidence"]
    rescored = ~np.isnan(evidences)
    assert search.structure_posterior_.sum() == approx(1.0)
    assert search.structure_posterior_[~rescored].sum() < 0.011
    joint = np.exp(evidences[rescored] - logsumexp(evidences[rescored]))
    assert search.structure_posterior_[rescored] == approx(joint, abs=0.03)
    assert (evidences[rescored] >= search.cv_results_["mean_test_score"][rescored] - 0.1).all()
    assert search.best_score_ == evidences[search.best_index_]


# Weights by scores ---------------------------------------------------------------------------------------------------


def test_shares_of_bounds_are_called_weights(few_rows):
    space = HIDDEN["bipartite"]
    model = VBDiscreteDAG(categories=BINARY)
    search = StructureSearchCV(model, space, rescoring=False, refit=False, random_state=0).fit(few_rows)
    assert not hasattr(search, "structure_posterior_")
    assert search.score_weights_.sum() == approx(1.0)
    with pytest.raises(AttributeError, match=r"bounds or other approximations.*rescoring='evidence'"):
        _ = search.structure_posterior_
    with pytest.raises(AttributeError, match="has no attribute 'posterior'"):
        _ = search.posterior


def test_what_cannot_be_sampled_has_no_posterior():
    """Chains look at rows, which blocks do not keep."""
    X = load_faithful().data
    search = StructureSearchCV(VBMixture(n_init=1), {"n_components": [1, 2]}, refit=False, random_state=0)
    with pytest.warns(SearchWarning, match=r"no candidate could be sampled.*X comes in blocks.*rescoring=False"):
        search.fit(blocks_of([X[:100], X[100:]]))
    assert search.score_weights_.sum() == approx(1.0)
    assert not hasattr(search, "structure_posterior_")


# Sums over all graphs ------------------------------------------------------------------------------------------------


def family_scores(codes, sizes, most):
    """ln BD of every family with a concentration of 1 for each cell, {(node, parents): nats}."""
    n, scores = codes.shape[1], {}
    for node in range(n):
        others = [k for k in range(n) if k != node]
        for size in range(most + 1):
            for parents in combinations(others, size):
                keys = [codes[:, k] for k in (*parents, node)]
                counts = np.zeros([sizes[k] for k in (*parents, node)])
                np.add.at(counts, tuple(keys), 1)
                of_rows = gammaln(sizes[node]) - gammaln(sizes[node] + counts.sum(axis=-1))
                scores[node, parents] = float(gammaln(1 + counts).sum() + of_rows.sum())
    return scores


def exhaustive(codes, sizes, most):
    """ln of the sum over all acyclic graphs, and P(parent -> child)."""
    n, scores = codes.shape[1], family_scores(codes, sizes, most)
    families = [[parents for node, parents in scores if node == k] for k in range(n)]
    masks = [np.array([sum(1 << p for p in each) for each in of]) for of in families]
    of_node = [np.array([scores[k, each] for each in families[k]]) for k in range(n)]
    which = np.indices([len(of) for of in families]).reshape(n, -1)
    above = np.stack([masks[k][which[k]] for k in range(n)])
    left = np.full(above.shape[1], (1 << n) - 1)
    for _ in range(n):  # nodes without parents among those left go
        free = sum(((left >> k & 1 == 1) & (above[k] & left == 0)).astype(int) << k for k in range(n))
        left = left & ~free
    above, which = above[:, left == 0], which[:, left == 0]
    weights = sum(of_node[k][which[k]] for k in range(n))
    total = float(logsumexp(weights))
    p = np.exp(weights - total)
    edges = np.array([[p[above[child] >> parent & 1 == 1].sum() for child in range(n)] for parent in range(n)])
    return total, edges, len(weights)


@pytest.mark.parametrize("name", TABLES)
def test_edges_of_real_tables_are_those_of_exhaustive_sums(name):
    load, n, most = TABLES[name]
    X = np.asarray(load().data)
    varied = [k for k in range(X.shape[1]) if len(np.unique(X[:, k])) > 1]
    columns = [np.unique(X[:, k].astype(str), return_inverse=True)[1] for k in varied[:n]]
    codes = np.stack(columns, axis=1)
    sizes = codes.max(axis=0) + 1
    nodes = [f"x{k}" for k in range(n)]
    space = DAGSpace(nodes, max_parents=most)
    model, options = VBDiscreteDAG(prior=1.0), {"strategy": "exact", "refit": False, "random_state": 0}
    search = StructureSearchCV(model, space, **options).fit(codes)
    total, edges, n_graphs = exhaustive(codes, sizes, most)
    assert search.edge_probabilities_.values == approx(edges, abs=1e-10)
    assert search.log_evidence_ == approx(total - np.log(n_graphs), rel=1e-12)
    of_best = search.structure_posterior_[search.best_index_]
    assert of_best == approx(np.exp(search.best_score_ - total), rel=1e-9)
    assert search.structure_posterior_.sum() <= 1 + 1e-9


def test_odds_of_edges_are_in_the_sum():
    """Forbidden and demanded edges too; what is tried makes no difference."""
    X = np.asarray(load_lsat6().data)[:, :4]
    prior = EdgePrior({("x0", "x1"): 0.0, ("x2", "x3"): 1.0}, default=0.2)
    every, best = (
        StructureSearchCV(
            VBDiscreteDAG(), DAGSpace(["x0", "x1", "x2", "x3"]), strategy=strategy, prior=prior, random_state=0
        ).fit(X)
        for strategy in ("exhaustive", "exact")
    )
    p, settings = every.structure_posterior_, every.cv_results_["params"]
    assert p.sum() == approx(1.0, abs=1e-12)
    assert p == approx(every.score_weights_, abs=1e-12)
    assert every.log_evidence_ == approx(best.log_evidence_, rel=1e-12)
    for parent, child in product(every.best_structure_.nodes, repeat=2):
        share = sum(w for w, setting in zip(p, settings) if (parent, child) in setting["structure"].edges)
        for search in (every, best):
            assert search.edge_probabilities_["parent":parent, "child":child] == approx(share, abs=1e-12)
    assert best.structure_posterior_.sum() < 1 + 1e-12
    assert best.hidden_parent_counts_.values.tolist() == [[1.0]] * 4
