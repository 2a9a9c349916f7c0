"""Decomposable Markov networks: evidence by cliques and separators, directions that do not matter, published tables."""

from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from skvbem import StructureSearchCV, VBDiscreteDAG
from skvbem.datasets import load_berkeley_admissions, load_coleman_panel, load_lizards, load_titanic
from skvbem.errors import StructureError
from skvbem.graphs.dag import DAG
from skvbem.graphs.undirected import UndirectedGraph
from skvbem.spaces import BipartiteSpace, ChordalSpace, DAGSpace

TABLES = {
    "lizards": load_lizards().data,
    "coleman": load_coleman_panel().data,
    "titanic": load_titanic().data,
    "berkeley": load_berkeley_admissions().data,
}


def names(X):
    return [f"x{k}" for k in range(X.shape[1])]


def weighted(X):
    """Distinct rows and how often each stands in the table: fits of these take less time."""
    rows, counts = np.unique(X.astype(str), axis=0, return_counts=True)
    return rows, counts.astype(float)


def counts_of(X, members):
    """The table of counts of some columns."""
    codes = [np.unique(X[:, k], return_inverse=True) for k in members]
    table = np.zeros([len(levels) for levels, _ in codes])
    np.add.at(table, tuple(code for _, code in codes), 1)
    return table


def log_hyper_dirichlet(X, graph, size=1.0):
    """ln p(table | graph) by cliques and separators, each with its margin of one table of equal concentrations."""

    def dirichlet_multinomial(members):
        counts = counts_of(X, [int(name[1:]) for name in members])
        of_cell = size / counts.size
        return (gammaln(of_cell + counts) - gammaln(of_cell)).sum() + gammaln(size) - gammaln(size + counts.sum())

    of_separators = sum(n * dirichlet_multinomial(separator) for separator, n in graph.separators.items())
    n_parts = len(graph.cliques) - sum(graph.separators.values())
    assert n_parts >= 1
    return sum(map(dirichlet_multinomial, graph.cliques)) - of_separators


def scores_of_all_dags(X, **options):
    rows, counts = weighted(X)
    search = StructureSearchCV(VBDiscreteDAG(**options), DAGSpace(names(X)), scoring="lower_bound", refit=False)
    table = search.fit(rows, sample_weight=counts).cv_results_
    return [(setting["structure"], score) for setting, score in zip(table["params"], table["mean_test_score"])]


@pytest.mark.parametrize(("name", "n_perfect"), [("lizards", 22), ("coleman", 329), ("titanic", 329)])
def test_bdeu_of_every_perfect_graph_is_the_hyper_dirichlet_law(name, n_perfect):
    """S-15, and the search over directed graphs agrees with cliques and separators on every one."""
    X = TABLES[name]
    perfect = [(dag, score) for dag, score in scores_of_all_dags(X, prior="bdeu") if dag.is_decomposable]
    assert len(perfect) == n_perfect
    expected = {graph: log_hyper_dirichlet(X, graph) for graph in {dag.to_undirected() for dag, _ in perfect}}
    for dag, score in perfect:
        assert score == pytest.approx(expected[dag.to_undirected()], abs=1e-10, rel=0)


@pytest.mark.parametrize(("name", "largest"), [("lizards", 0.1082), ("coleman", 2.0471), ("titanic", 25.7444)])
def test_with_one_per_cell_the_evidence_depends_on_directions(name, largest):
    """S-16: the reason why undirected structures need another prior."""
    scores = {}
    for dag, score in scores_of_all_dags(TABLES[name], prior=1.0):
        if dag.is_decomposable:
            scores.setdefault(dag.to_undirected(), []).append(score)
    assert max(max(of) - min(of) for of in scores.values()) == pytest.approx(largest, abs=1e-4)


def graph_of(cliques, columns):
    """A graph from cliques written by the first letters of columns, as ds|hs."""
    edges = {
        frozenset(columns[letter] for letter in (a, b)) for clique in cliques.split("|") for a in clique for b in clique
        if a != b
    }  # fmt: skip
    return UndirectedGraph(list(columns.values()), map(tuple, edges))


@pytest.mark.parametrize(
    ("name", "letters", "size", "published", "log_sum"),
    [
        ("lizards", "sdh", 1.0, {"ds|hs": (-818.87318072, 0.793812), "ds|h": (-820.60316562, 0.140733),
                                 "d|hs": (-821.68833654, 0.047546), "s|d|h": (-823.41832143, None),
                                 "sdh": (-825.26215570, None)}, -818.64227193),
        ("lizards", "sdh", 8.0, {"ds|hs": (-813.21666815, 0.890042), "ds|h": (-816.25579194, 0.042612),
                                 "sdh": (-816.27584520, 0.041766)}, -813.10018174),
        ("berkeley", "ads", 1.0, {"ad|ds": (-13150.43977549, 1.0), "ads": (-13170.25167967, None),
                                  "a|d|s": (-14139.65921004, None)}, None),
        ("titanic", "csav", 1.0, {"acv|csv": (-5246.26601366, 0.999919), "csav": (-5255.68119968, 0.000081),
                                  "c|s|a|v": (-5798.01094291, None)}, -5246.26593219),
        ("coleman", "1234", 1.0, {"13|234": (-8538.78602116, 0.993989), "13|23|24": (-8544.72963588, 0.002607),
                                  "13|24|34": (-8545.35214867, 0.001399), "1|2|3|4": (-9222.04624531, None),
                                  "1234": (-8563.62944162, None)}, None),
    ],
)  # fmt: skip
def test_published_tables_have_the_evidences_of_all_their_networks(name, letters, size, published, log_sum):
    """S-21 to S-25: scores, the posterior over all chordal graphs, and what it says of edges."""
    X = TABLES[name]
    rows, counts = weighted(X)
    model = VBDiscreteDAG(prior="bdeu", equivalent_sample_size=size)
    search = StructureSearchCV(model, ChordalSpace(names(X)), random_state=0).fit(rows, sample_weight=counts)
    table = search.cv_results_
    places = {setting["structure"]: k for k, setting in enumerate(table["params"])}
    for cliques, (score, share) in published.items():
        k = places[graph_of(cliques, dict(zip(letters, names(X))))]
        assert table["mean_test_score"][k] == pytest.approx(score, abs=1e-8, rel=0)
        if share is not None:
            assert search.structure_posterior_[k] == pytest.approx(share, abs=1e-6)
    best = graph_of(next(iter(published)), dict(zip(letters, names(X))))
    assert search.best_structure_ == best
    assert set(search.best_estimator_.cliques_) == set(best.cliques)
    assert search.best_estimator_.separators_ == best.separators
    if log_sum is not None:
        assert logsumexp(table["mean_test_score"]) == pytest.approx(log_sum, abs=1e-8, rel=0)


def test_edges_of_lizards_are_as_probable_as_published():
    """S-21: an edge without a direction counts both ways."""
    X = TABLES["lizards"]
    search = StructureSearchCV(VBDiscreteDAG(prior="bdeu"), ChordalSpace(names(X)), random_state=0).fit(X)
    edges = search.edge_probabilities_
    for a, b, probability in (("x0", "x1", 0.941707), ("x0", "x2", 0.844660), ("x1", "x2", 0.009481)):
        assert edges["parent":a, "child":b] == pytest.approx(probability, abs=1e-6)
        assert edges["parent":b, "child":a] == edges["parent":a, "child":b]
    assert search.equivalence_classes()[0].graph == search.best_structure_
    directed = StructureSearchCV(VBDiscreteDAG(prior="bdeu"), DAGSpace(names(X)), random_state=0).fit(X)
    classes = directed.equivalence_classes()
    assert len(classes) == 11
    assert sum(each.probability for each in classes) == pytest.approx(1)
    assert sorted(k for each in classes for k in each.candidates) == list(range(25))
    for each in classes:
        scores = directed.cv_results_["mean_test_score"][list(each.candidates)]
        np.testing.assert_allclose(scores, scores[0], atol=1e-10, rtol=0)


def test_classes_have_the_arrows_that_the_space_fixes_and_those_that_follow():
    """An arrow is an edge on whose direction all graphs of the space in the class agree."""
    X = TABLES["lizards"]
    for rules in (
        {"tiers": [["x0"], ["x1", "x2"]]},
        {"required": [("x1", "x0")]},
        {"forbidden": [("x2", "x0")]},
        {"allowed": [("x0", "x1"), ("x1", "x0"), ("x0", "x2"), ("x1", "x2"), ("x2", "x1")]},
    ):
        space = DAGSpace(names(X), **rules)
        search = StructureSearchCV(VBDiscreteDAG(prior="bdeu"), space * {"method": ["vb"]}, random_state=0).fit(X)
        n_fixed = 0
        for each in search.equivalence_classes():
            members = [search.cv_results_["params"][k]["structure"] for k in each.candidates]
            always = set.intersection(*(set(dag.edges) for dag in members))
            assert set(each.graph.arrows) == always
            n_fixed += always != set(members[0].essential().arrows)
        assert n_fixed
    two = BipartiteSpace({"h": 2}, names(X))
    graph = StructureSearchCV(VBDiscreteDAG(), two, random_state=0).fit(X).equivalence_classes()[0].graph
    assert not graph.lines
    listed = [{"structure": "[x0][x1|x0][x2]"}, {"structure": "[x0|x1][x1][x2]"}]
    search = StructureSearchCV(VBDiscreteDAG(prior="bdeu"), listed, random_state=0).fit(X)
    assert str(search.equivalence_classes()[0].graph) == "x0 - x1"


ORIENTATIONS = (
    "[h][x0|h][x1|h][x2|h:x0][x3|h]",
    "[x0][h|x0][x1|h][x2|h:x0][x3|h]",
    "[x3][h|x3][x0|h][x1|h][x2|h:x0]",
)


def test_bounds_with_a_hidden_node_do_not_depend_on_directions():
    """S-18, on the Coleman panel: under BDeu they do not, with one per cell they do."""
    rows, counts = weighted(TABLES["coleman"])
    options = {"latents": {"h": 2}, "n_init": 4, "tol": 1e-9, "random_state": 0}

    def bound(structure, **prior):
        return VBDiscreteDAG(structure, **prior, **options).fit(rows, sample_weight=counts).lower_bound_

    for structure, of_cells in zip(ORIENTATIONS, (-8533.555352, -8533.484221, -8533.536405)):
        assert bound(structure, prior="bdeu") == pytest.approx(-8543.337110, abs=2e-6)
        assert bound(structure) == pytest.approx(of_cells, abs=2e-6)
    graph = DAG.from_string(ORIENTATIONS[0]).to_undirected()
    model = VBDiscreteDAG(graph, prior="bdeu", **options).fit(rows, sample_weight=counts)
    assert model.lower_bound_ == pytest.approx(-8543.337110, abs=2e-6)
    assert model.structure_.to_undirected() == graph
    assert set(map(frozenset, model.cliques_)) == {frozenset(c) for c in (("h", "x0", "x2"), ("h", "x1"), ("h", "x3"))}
    assert model.separators_ == {("h",): 2}


def test_scores_are_equal_on_equivalent_graphs_where_only_latents_are_hidden(rng):
    """A law, over random networks; a latent must keep a child in both graphs, since it is pruned where it has none."""
    classes = {}
    for setting in DAGSpace(["x0", "x1", "x2"], latents={"h": 2}):
        if len(setting["structure"].children("h")) >= 1 and len(setting["structure"].edges) > 2:
            classes.setdefault(setting["structure"].essential(), []).append(setting["structure"])
    several = [members for members in classes.values() if len(members) > 1]
    X = rng.integers(0, 2, (30, 3))
    X[:, 1] = np.where(rng.random(30) < 0.8, X[:, 0], X[:, 1])
    X[:, 2] = np.where(rng.random(30) < 0.7, X[:, 0], X[:, 2])
    n_compared = 0
    for k in rng.choice(len(several), 12, replace=False):
        members = [several[k][j] for j in rng.choice(len(several[k]), 2, replace=False)]
        found = []
        for dag in members:
            model = VBDiscreteDAG(dag, latents={"h": 2}, prior="bdeu", equivalent_sample_size=4.0, tol=1e-15,
                                  n_init=20, random_state=0).fit(X)  # fmt: skip
            stutz = model.log_evidence(X, kind="cheeseman_stutz", form="vb").value
            others = [model.log_evidence(X, kind=kind).value for kind in ("collapsed", "exact")]
            found.append([model.lower_bound_, stutz, *others])
        # no first order change of q(x) changes the bound, but one of the size of its root changes the other two
        for one, other, tolerance in zip(*found, (1e-8, 1e-5, 1e-5, 1e-8)):
            assert one == pytest.approx(other, abs=tolerance, rel=0)
        n_compared += len(found[0])
    assert n_compared == 48


ROWS = np.array([[0, 0], [0, 1], [1, 1], [1, np.nan], [0, np.nan], [1, np.nan]])


def test_an_undirected_structure_takes_the_directions_that_prune_missing_cells():
    """S-19: the evidence does not depend on directions, the bound does, and nodes that lack most come last."""
    bounds = {}
    for structure in ("[x0][x1|x0]", "[x1][x0|x1]"):
        model = VBDiscreteDAG(structure, prior="bdeu", random_state=0, tol=1e-10).fit(ROWS)
        bounds[structure] = model.lower_bound_
        assert model.log_evidence(ROWS, kind="exact").value == pytest.approx(-8.50008772, abs=1e-8)
    assert bounds["[x0][x1|x0]"] == pytest.approx(-8.50008772, abs=1e-8)
    assert bounds["[x1][x0|x1]"] == pytest.approx(-8.97148655, abs=1e-7)
    collapsed = VBDiscreteDAG("[x1][x0|x1]", prior="bdeu", random_state=0, tol=1e-10).fit(ROWS)
    assert collapsed.log_evidence(ROWS, kind="collapsed").value == pytest.approx(-8.73768363, abs=1e-6)
    edge = UndirectedGraph(["x0", "x1"], [("x0", "x1")])
    for X, first in ((ROWS, "x0"), (ROWS[:, ::-1], "x1")):
        model = VBDiscreteDAG(edge, prior="bdeu", random_state=0).fit(X)
        assert model.structure_.parents(first) == ()
        assert model.lower_bound_ == pytest.approx(-8.50008772, abs=1e-8)
        assert model.structure_.nodes == ("x0", "x1")
    model.set_params(structure=UndirectedGraph(["x0", "x1"], [("x0", "x1")])).fit(
        np.array([[0, 1], [1, 0], [0, np.nan], [np.nan, 1]]), sample_weight=[1, 1, 1, 5]
    )
    assert model.structure_.parents("x1") == ()  # missing once, the other five times


def test_a_chain_is_rooted_where_little_is_missing(rng):
    """§2.3: of all roots of a chain, that with the most observed weight."""
    X = TABLES["coleman"][rng.choice(3398, 200, replace=False)].astype(float)
    X[rng.random(200) < 0.6, 0] = np.nan
    X[rng.random(200) < 0.05, 1] = np.nan
    chain = UndirectedGraph(names(X), [("x0", "x1"), ("x1", "x2"), ("x2", "x3")])
    model = VBDiscreteDAG(chain, prior="bdeu", random_state=0).fit(X)
    assert model.structure_ == DAG.from_string("[x2][x1|x2][x0|x1][x3|x2]")
    worst = VBDiscreteDAG("[x0][x1|x0][x2|x1][x3|x2]", prior="bdeu", random_state=0).fit(X)
    assert model.lower_bound_ > worst.lower_bound_ + 0.1


def test_a_search_over_networks_with_a_hidden_node_finds_the_best_fit():
    """Structural VBEM and an exhaustive search agree on the best chordal graph, and fits have its score."""
    X = TABLES["coleman"][::20, [0, 1, 3]]
    model = VBDiscreteDAG(prior="bdeu", n_init=3, random_state=0)
    space = ChordalSpace(names(X), latents={"h": 2})
    every = StructureSearchCV(model, space, strategy="exhaustive", scoring="lower_bound", random_state=0,
                               refit=False).fit(X)  # fmt: skip
    structural = StructureSearchCV(model, space, strategy="structural", scoring="lower_bound", random_state=0,
                                    refit=False).fit(X)  # fmt: skip
    assert len(every.cv_results_["params"]) == space.n_settings == 53
    assert structural.best_score_ == pytest.approx(every.best_score_, abs=1e-4)
    assert len(structural.cv_results_["params"]) < 20
    sides = every.shared_parent_probabilities_.values
    np.testing.assert_array_equal(sides, sides.T)
    assert "h" in every.best_structure_.nodes


def test_priors_under_which_directions_matter_are_refused():
    X = TABLES["lizards"]
    graph = UndirectedGraph(names(X), [("x0", "x1"), ("x0", "x2")])
    for prior in (1.0, "per_row"):
        with pytest.raises(ValueError, match=r"needs prior='bdeu'.*the evidence depends on directions"):
            VBDiscreteDAG(graph, prior=prior).fit(X)
    with pytest.raises(ValueError, match=r"learn_prior=True of VBDiscreteDAG gives each node a prior strength"):
        VBDiscreteDAG(graph, prior="bdeu", learn_prior=True).fit(X)
    ring = UndirectedGraph(names(TABLES["coleman"]), [("x0", "x1"), ("x1", "x2"), ("x2", "x3"), ("x3", "x0")])
    with pytest.raises(StructureError, match=r"x0 - x1 - x2 - x3 - x0 has no chord.*such as x0 - x2, or give a DAG"):
        VBDiscreteDAG(ring, prior="bdeu").fit(TABLES["coleman"])
    with pytest.raises(StructureError, match="'h' of the structure is neither a column of X nor a declared latent"):
        VBDiscreteDAG(UndirectedGraph(["h", "x0"], [("h", "x0")]), prior="bdeu").fit(X)


def test_tables_that_are_margins_of_one_table_are_a_prior(rng):
    """Any table of concentrations makes a prior of its margins; one that does not fit is named."""
    X = TABLES["lizards"]
    graph = UndirectedGraph(names(X), [("x0", "x1"), ("x0", "x2")])
    whole = rng.random((2, 2, 2)) + 0.2
    prior = {"x0": whole.sum(axis=(1, 2)), "x1": whole.sum(axis=2), "x2": whole.sum(axis=1)}
    model = VBDiscreteDAG(graph, prior=prior, random_state=0).fit(X)
    assert model.structure_ == DAG.from_string("[x0][x1|x0][x2|x0]")

    def dirichlet_multinomial(concentrations, members):
        counts = counts_of(X, members)
        of_cells = (gammaln(concentrations + counts) - gammaln(concentrations)).sum()
        return of_cells + gammaln(concentrations.sum()) - gammaln(concentrations.sum() + counts.sum())

    expected = (
        dirichlet_multinomial(prior["x1"], [0, 1])
        + dirichlet_multinomial(prior["x2"], [0, 2])
        - dirichlet_multinomial(prior["x0"], [0])
    )
    assert model.lower_bound_ == pytest.approx(expected, abs=1e-9)
    search = StructureSearchCV(VBDiscreteDAG(prior=prior), [graph], random_state=0).fit(X)
    assert search.best_score_ == pytest.approx(expected, abs=1e-9)
    with pytest.raises(ValueError, match=r"margins of one table. The table of node 'x2' gives .* over 'x0', and other"):
        VBDiscreteDAG(graph, prior={**prior, "x2": prior["x2"] * (1 + 1e-7)}).fit(X)
    empty = UndirectedGraph(names(X))
    roots = {name: whole.sum(axis=tuple({0, 1, 2} - {k})) for k, name in enumerate(names(X))}
    VBDiscreteDAG(empty, prior=roots).fit(X)
    with pytest.raises(ValueError, match=r"The table of node 'x1' gives .* in total, and other tables"):
        VBDiscreteDAG(empty, prior={**roots, "x1": 2 * roots["x1"]}).fit(X)


def test_networkx_graphs_are_structures():
    networkx = pytest.importorskip("networkx")
    X = TABLES["lizards"]
    given = networkx.Graph([("x0", "x1"), ("x0", "x2")])
    model = VBDiscreteDAG(given, prior="bdeu", random_state=0).fit(X)
    assert model.lower_bound_ == pytest.approx(-818.87318072, abs=1e-8)
    assert not hasattr(VBDiscreteDAG("[x0][x1|x0][x2]").fit(X), "cliques_")
    search = StructureSearchCV(VBDiscreteDAG(prior="bdeu"), [given, networkx.Graph()], random_state=0).fit(X)
    assert search.best_structure_ == UndirectedGraph.from_networkx(given)


def test_a_summary_lists_the_tables_of_cliques():
    """In place of directions, the joint probabilities of each clique: prior + counts, over their sum."""
    X = TABLES["lizards"]
    graph = UndirectedGraph(names(X), [("x0", "x1"), ("x0", "x2")])
    model = VBDiscreteDAG(graph, prior="bdeu", random_state=0).fit(X)
    tables = {table.title: table for table in model.summary().tables}
    for k in (1, 2):
        table = tables[f"clique x0, x{k}"]
        expected = (counts_of(X, [0, k]) + 0.25) / (len(X) + 1)
        np.testing.assert_allclose(table.values, expected, atol=1e-12)
        levels = [np.unique(X[:, j]).tolist() for j in (0, k)]
        assert table.rows == [f"x0={level}" for level in levels[0]]
        assert table.columns == levels[1]
    directed = VBDiscreteDAG("[x0][x1][x2]").fit(X)
    assert not any(table.title.startswith("clique") for table in directed.summary().tables)


def test_batches_keep_what_was_undirected(rng):
    X = TABLES["lizards"][rng.permutation(409)]
    graph = UndirectedGraph(names(X), [("x0", "x1"), ("x0", "x2")])
    model = VBDiscreteDAG(graph, prior="bdeu", random_state=0)
    total = 0.0
    for batch in np.array_split(X, 4):
        total += model.partial_fit(batch).batch_lower_bound_
    assert total == pytest.approx(-818.87318072, abs=1e-7)
    assert model.cliques_ == (("x0", "x1"), ("x0", "x2"))


def test_predictions_do_not_depend_on_directions():
    """The predictive probabilities of an undirected structure are those of every perfect graph."""
    X = TABLES["titanic"]
    graph = UndirectedGraph(names(X), [("x0", "x1"), ("x0", "x3"), ("x1", "x3"), ("x0", "x2"), ("x2", "x3")])
    rows = np.array(list(product(*(np.unique(X[:, k]) for k in range(4)))), dtype=object)
    found = []
    for structure in (graph, DAG.from_chordal(graph, {"x2": 1.0}), DAG.from_chordal(graph, {"x3": 1.0})):
        found.append(VBDiscreteDAG(structure, prior="bdeu", random_state=0).fit(X).score_samples(rows))
    np.testing.assert_allclose(found[1], found[0], atol=1e-12)
    np.testing.assert_allclose(found[2], found[0], atol=1e-12)
    assert np.exp(found[0]).sum() == pytest.approx(1)
