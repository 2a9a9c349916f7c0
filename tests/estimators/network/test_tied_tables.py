"""Networks whose nodes share tables, against enumeration, hidden Markov models and closed forms."""

import pickle
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from scipy.special import digamma, gammaln, logsumexp
from sklearn.base import clone

from skvbem import DAG, VBHMM, DAGSpace, DynamicDAG, StructureSearchCV, UndirectedGraph, VBDiscreteDAG
from skvbem.data import Rows
from skvbem.datasets import load_coleman_panel
from skvbem.errors import StructureError, TooLargeError
from skvbem.models.network import queries
from skvbem.models.network.relabelings import NetworkRelabelings
from skvbem.search.strategies import Exhaustive

PANEL = Path(__file__).parents[2] / "data" / "third_party" / "gpl" / "marijuana_panel_counts.csv"


def panel(n_slices, names=None, slice_="[h][y|h]"):
    names = {"y": [f"x{t}" for t in range(n_slices)]} if names is None else names
    return DynamicDAG(slice_, [("h", "h")], n_slices, names=names)


def model_of(dynamic, n_states=2, ties=True, **options):
    ties = dynamic.ties if ties is True else ties
    latents = dynamic.latents({"h": n_states})
    return VBDiscreteDAG(dynamic.dag, latents=latents, **{"ties": ties, "random_state": 0, **options})


class Literal:
    """A network by its definition: each family counts in the table of the node it is tied to.

    Parameters
    ----------
    model : VBDiscreteDAG
        Fitted: structure, priors and ties are read from it, nothing else.
    ties : mapping of family to family
    """

    def __init__(self, model, ties):
        self.dag, self.prior = model.structure_, {node: np.asarray(table) for node, table in model.prior_.items()}
        self.sizes = {node: table.shape[-1] for node, table in self.prior.items()}
        self.family = {node: (node, self.dag.family(node)) for node in self.dag.nodes}
        for mine, theirs in ties.items():
            stands_for = dict(zip(theirs, mine))
            self.family[mine[-1]] = (theirs[-1], tuple(stands_for[node] for node in self.dag.family(theirs[-1])))
        self.tables = sorted({table for table, _ in self.family.values()})

    def cells(self, row):
        """Table and cell of every family in a complete row."""
        return [(table, tuple(row[member] for member in members)) for table, members in self.family.values()]

    def completions(self, row):
        hidden = [node for node in self.dag.nodes if row.get(node, -1) < 0]
        for states in product(*(range(self.sizes[node]) for node in hidden)):
            yield {**row, **dict(zip(hidden, states))}

    def pruned(self, row):
        """The nodes that are observed or have observed descendants."""
        observed = [node for node in self.dag.nodes if row.get(node, -1) >= 0]
        return {*observed, *self.dag.ancestors(observed)}

    def log_evidence(self, rows):
        """ln of the sum of BD over all ways to complete all rows."""
        terms = []
        for completed in product(*(list(self.completions(row)) for row in rows)):
            counts = {table: np.zeros_like(self.prior[table]) for table in self.tables}
            for row in completed:
                for table, cell in self.cells(row):
                    counts[table][cell] += 1
            terms.append(sum(map(self.log_dirichlet_multinomial, self.tables, counts.values())))
        return logsumexp(terms)

    def log_dirichlet_multinomial(self, table, counts):
        prior = self.prior[table]
        of_rows = gammaln(prior.sum(axis=-1)) - gammaln((prior + counts).sum(axis=-1))
        return of_rows.sum() + (gammaln(prior + counts) - gammaln(prior)).sum()

    def step(self, posterior, rows, weights):
        """The bound at q(theta), and the counts that its q(x) expects, nodes without observed descendants left out."""
        natural = {t: digamma(q) - digamma(q.sum(axis=-1, keepdims=True)) for t, q in posterior.items()}
        counts, bound = {table: np.zeros_like(self.prior[table]) for table in self.tables}, 0.0
        for row, weight in zip(rows, weights):
            kept = self.pruned(row)
            inside = {k: v for k, v in row.items() if k in kept}
            cells = [
                [cell for cell, node in zip(self.cells({**dict.fromkeys(self.dag.nodes, 0), **done}), self.family)
                 if node in kept]
                for done in self.completions({**dict.fromkeys(set(self.dag.nodes) - kept, 0), **inside})
            ]  # fmt: skip
            logs = np.array([sum(natural[table][cell] for table, cell in one) for one in cells])
            bound += weight * logsumexp(logs)
            for one, share in zip(cells, np.exp(logs - logsumexp(logs))):
                for table, cell in one:
                    counts[table][cell] += weight * share
        for table in self.tables:
            q, p = posterior[table], self.prior[table]
            bound -= (gammaln(q.sum(axis=-1)) - gammaln(p.sum(axis=-1))).sum() - (gammaln(q) - gammaln(p)).sum()
            bound -= ((q - p) * natural[table]).sum()
        return bound, counts


def rows_of(X, columns):
    return [{name: int(v) if v == v else -1 for name, v in zip(columns, row)} for row in np.asarray(X, dtype=float)]


def families_of(model, ties):
    """Ties between nodes as ties between families."""
    family = model.structure_.family
    return {
        (one if isinstance(one, tuple) else family(one)): (other if isinstance(other, tuple) else family(other))
        for one, other in ties.items()
    }


CASES = {
    "a chain": ("[h1][h2|h1][h3|h2][x0|h1][x1|h2][x2|h3]", {"h1": 2, "h2": 2, "h3": 2},
                {"h3": "h2", "x1": "x0", "x2": "x0"}),
    "items of one class": ("[h1][x0|h1][x1|h1][x2|h1]", {"h1": 3}, {"x1": "x0", "x2": "x0"}),
    "observed chains": ("[x0][x1|x0][x2|x1]", {}, {"x2": "x1"}),
    "two classes": ("[h1][h2][x0|h1][x1|h2][x2|h1:h2]", {"h1": 2, "h2": 2}, {"h2": "h1", "x1": "x0"}),
    "parents in another order": ("[h1][h2][x0|h1:h2][x1|h1:h2][x2]", {"h1": 2, "h2": 2},
                                 {("h2", "h1", "x1"): ("h1", "h2", "x0")}),
    "across another table": ("[h1][x0|h1][x1|h1:x0][x2|h1]", {"h1": 2}, {"x2": "x0"}),
    "a parent seen and hidden": ("[h1][x0|h1][x1|x0][x2|h1]", {"h1": 2}, {"x1": "x0"}),
}  # fmt: skip


def fitted(case, X, **options):
    structure, latents, ties = CASES[case]
    options = {"ties": ties, "random_state": 0, "tol": 1e-11, "categories": [[0, 1]] * 3, **options}
    return VBDiscreteDAG(structure, latents=latents, **options).fit(X)


def data(rng, n, share=0.25):
    X = rng.integers(0, 2, (n, 3)).astype(float)
    X[rng.random(X.shape) < share] = np.nan
    return X


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("prior", [1.0, "bdeu"])
def test_bounds_counts_and_evidences_are_those_of_the_definition(case, prior, rng):
    """The exact evidence, the bound at q(theta) and the expected counts, of complete rows and rows with gaps."""
    for share in (0.0, 0.3):
        X = data(rng, 3, share)
        model = fitted(case, X, prior=prior)
        literal = Literal(model, families_of(model, CASES[case][2]))
        rows = rows_of(X, ["x0", "x1", "x2"])
        evidence = literal.log_evidence(rows)
        assert model.log_evidence(X, kind="exact").value == pytest.approx(evidence, abs=1e-10)
        posterior = {table: np.asarray(model.posterior_[table]) for table in literal.tables}
        bound, counts = literal.step(posterior, rows, np.ones(3))
        assert model.lower_bound_ == pytest.approx(bound, abs=1e-8)
        assert bound <= evidence + 1e-9
        for table in literal.tables:
            np.testing.assert_allclose(model.counts_[table], counts[table], atol=1e-4)
        assert (np.diff(model.lower_bounds_) > -1e-9).all()
        assert model.n_free_parameters_ == sum(table[..., 1:].size for table in map(posterior.get, literal.tables))


@pytest.mark.parametrize("case", CASES)
def test_sampled_evidences_agree_with_the_exact_one(case, rng):
    """AIS, SMC, importance sampling and the recommended score within 4 standard errors; no bound lies above."""
    X = data(rng, 4)
    model = fitted(case, X)
    exact = model.log_evidence(X, kind="exact").value
    for kind in ("ais", "smc", "importance", "importance_gibbs", "auto"):
        found = model.log_evidence(X, kind=kind, random_state=1)
        assert abs(found.value - exact) < 4 * max(found.standard_error, 1e-3), kind
    collapsed = model.log_evidence(X, kind="collapsed")
    assert model.lower_bound_ - 1e-9 <= collapsed.value + 4 * (collapsed.standard_error or 0.0)
    assert collapsed.value <= exact + 4 * (collapsed.standard_error or 0.0) + 1e-9
    assert model.log_evidence(X, kind="cheeseman_stutz", form="vb").value <= model.lower_bound_ + 1e-8


def test_where_ties_link_nothing_scores_are_those_without():
    """A tie of two roots that only one table of data knows is a prior of twice the data: in closed form."""
    X = np.array([[0, 0], [0, 1], [1, 1], [0, 1]])
    tied = VBDiscreteDAG("[x0][x1]", ties={"x1": "x0"}).fit(X)
    counts = np.bincount(X.ravel())
    expected = gammaln(2) - gammaln(2 + 8) + (gammaln(1 + counts) - gammaln(1)).sum()
    assert tied.lower_bound_ == pytest.approx(expected, abs=1e-12)
    np.testing.assert_array_equal(tied.counts_["x1"], counts)
    assert tied.n_free_parameters_ == 1
    groups = VBDiscreteDAG("[x0][x1]", ties=[["x0", "x1"]]).fit(X)
    assert groups.lower_bound_ == tied.lower_bound_


@pytest.mark.skipif(not PANEL.exists(), reason="the panel is in a checkout only, under its own license")
@pytest.mark.parametrize("method", ["vb", "map", "ml"])
def test_a_tied_panel_is_a_hidden_markov_model(method):
    """S-20: the marijuana panel, five waves, two states: the bound -722.202330 of `VBHMM`, and its other forms."""
    table = np.loadtxt(PANEL, delimiter=",", skiprows=1, dtype=str)
    table = np.char.strip(table, '"').astype(float)
    X, weights = table[:, :5].astype(int), table[:, 5]
    model = model_of(panel(5), method=method, tol=1e-9).fit(X, sample_weight=weights)
    objective = {"vb": "lower_bound_", "map": "log_posterior_", "ml": "log_likelihood_"}[method]
    hmm = VBHMM(2, emission="categorical", method=method, random_state=0, tol=1e-9)
    hmm.fit([row[:, None] for row in np.repeat(X, weights.astype(int), axis=0)])
    if method == "vb":
        assert model.lower_bound_ == pytest.approx(-722.202330, abs=1e-6)
    if method != "map":  # their modes are taken under the same prior, but the start of VBHMM may have another
        assert getattr(model, objective) == pytest.approx(getattr(hmm, objective), abs=1e-5)
    assert model.n_free_parameters_ == 7
    untied = model_of(panel(5), method=method, ties=None).fit(X, sample_weight=weights)
    assert untied.n_free_parameters_ == 29
    if method == "ml":
        assert untied.log_likelihood_ > model.log_likelihood_


def test_tied_factorial_chains_have_published_evidences():
    """S-4: two binary chains, three symbols, the sequences 012 and 211."""
    chains = DynamicDAG("[h][g][y|h:g]", {"h": "h", "g": "g"}, 3, names={"y": ["x0", "x1", "x2"]})
    X = np.array([[0, 1, 2], [2, 1, 1]])
    latents = chains.latents({"h": 2, "g": 2})
    model = VBDiscreteDAG(
        chains.dag, latents=latents, ties=chains.ties, categories=[range(3)] * 3, random_state=0, tol=1e-11
    ).fit(X)
    assert model.lower_bound_ == pytest.approx(-10.68885614, abs=1e-7)
    assert model.log_evidence(X, kind="exact").value == pytest.approx(-6.81288434, abs=1e-8)
    # the states of each chain, in all its waves together, and the two chains against each other
    assert len(relabelings(model)) == 8
    of_h, of_g = ([name for name in latents if name.startswith(chain)] for chain in "hg")
    for clusters, bound in (([of_h, of_g], -10.68886191), (list(zip(of_h, of_g)), -10.68886467)):
        divided = clone(model).set_params(inference=[list(cluster) for cluster in clusters]).fit(X)
        assert divided.lower_bound_ == pytest.approx(bound, abs=1e-7)
    assert clone(model).set_params(inference="mean_field").fit(X).lower_bound_ == pytest.approx(-10.68886967, abs=1e-7)
    with pytest.raises(TypeError, match="Draws of what rows hide need inference='exact'"):
        divided.log_evidence(X, kind="collapsed")
    with pytest.raises(TypeError, match="Draws of what rows hide need inference='exact'"):
        divided.sample_posterior(X, 10)


def relabelings(model):
    """Each as the cell that takes each cell's place; they leave the likelihood of every row as it is."""
    network = model.fitted.model
    cells = NetworkRelabelings(network).listed_relabelings(model.latent_names_, 10_000)
    assert len(np.unique(cells, axis=0)) == len(cells)
    point = network.random_point(np.random.default_rng(0))
    rows = Rows(("x0", "x1", "x2"), np.array(list(product((0, 1), repeat=3)), dtype=np.int32))
    expected = queries.log_likelihood(network, point, rows)
    for one in cells:
        np.testing.assert_allclose(queries.log_likelihood(network, point[one], rows), expected, atol=1e-12)
    return cells


def test_states_of_tied_chains_are_relabeled_together():
    """A chain of three states has 6 relabelings in all waves together, and one tied to what is observed has none."""
    X = np.array([[0, 1, 1], [1, 1, 0], [0, 0, 1]])
    assert [len(relabelings(model_of(panel(3), n_states).fit(X))) for n_states in (2, 3)] == [2, 6]
    assert len(relabelings(model_of(panel(3), ties=None).fit(X))) == 8
    numbers = {"items of one class": 6, "a parent seen and hidden": 1, "two classes": 2, "parents in another order": 4}
    assert {case: len(relabelings(fitted(case, X))) for case in numbers} == numbers
    many = VBDiscreteDAG(panel(3).dag, latents=panel(3).latents({"h": 7}), ties=panel(3).ties_of("y"), n_init=1)
    network = many.fit(np.repeat(X, 3, axis=0)).fitted.model
    assert len(NetworkRelabelings(network).listed_relabelings(many.latent_names_, 5040)) == 5040
    with pytest.raises(TooLargeError, match=r"5040 relabelings of the hidden nodes, more than the 5039"):
        NetworkRelabelings(network).listed_relabelings(many.latent_names_, 5039)
    more = VBDiscreteDAG(panel(3).dag, latents=panel(3).latents({"h": 9}), ties=panel(3).ties_of("y"), n_init=1)
    network = more.fit(np.repeat(X, 4, axis=0)).fitted.model
    with pytest.raises(TooLargeError, match=r"relabelings of hidden nodes whose tables are tied are too many"):
        NetworkRelabelings(network).log_n_relabelings(more.latent_names_)


def test_waves_that_nobody_answered_cost_nothing(rng):
    """A leaf sums to one for every theta, tied or not: five waves of which two are empty are three."""
    X = rng.integers(0, 2, (20, 5)).astype(float)
    X[:, 3:] = np.nan
    options = {"categories": [[0, 1]] * 5, "tol": 1e-10}
    five = model_of(panel(5), **options).fit(X)
    three = model_of(panel(3), tol=1e-10).fit(X[:, :3])
    assert five.lower_bound_ == pytest.approx(three.lower_bound_, abs=1e-8)


def test_weights_are_repeats_and_order_does_not_matter(rng):
    X, weights = data(rng, 12), rng.integers(1, 4, 12)
    structure, latents, ties = CASES["a chain"]
    one = VBDiscreteDAG(structure, latents=latents, ties=ties, random_state=0).fit(X, sample_weight=weights)
    other = fitted("a chain", np.repeat(X, weights, axis=0)[::-1], tol=1e-5)
    assert one.lower_bound_ == pytest.approx(other.lower_bound_, abs=1e-4)


def test_predictions_are_those_of_the_shared_tables(rng):
    """At posterior means: they sum to one over all rows, and are products of tables for each completion."""
    X = data(rng, 30)
    model = fitted("a chain", X)
    rows = np.array(list(product((0, 1), repeat=3)))
    scores = model.score_samples(rows)
    assert np.exp(scores).sum() == pytest.approx(1.0)
    literal = Literal(model, families_of(model, CASES["a chain"][2]))
    tables = {table: np.asarray(model.tables_[table]) for table in literal.tables}
    for row, score in zip(rows_of(rows, ["x0", "x1", "x2"]), scores):
        each = [np.prod([tables[t][cell] for t, cell in literal.cells(done)]) for done in literal.completions(row)]
        assert np.log(np.sum(each)) == pytest.approx(score)
    np.testing.assert_array_equal(model.tables_["x2"], model.tables_["x0"])
    swapped = fitted("parents in another order", X)
    np.testing.assert_array_equal(swapped.tables_["x1"], np.asarray(swapped.tables_["x0"]).swapaxes(0, 1))


def test_fits_go_on_are_kept_and_told(rng):
    X = data(rng, 40)
    model = fitted("a chain", X)
    again = pickle.loads(pickle.dumps(model))
    assert again.lower_bound_ == model.lower_bound_
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
    titles = [table.title for table in model.summary().tables]
    assert titles == ["h1", "h2 | h1 = h3 | h2", "x0 | h1 = x1 | h2 = x2 | h3"]
    structure, latents, ties = CASES["a chain"]
    start = {node: np.asarray(model.tables_[node]) for node in ("h1", "h2", "x0")}
    begun = VBDiscreteDAG(structure, latents=latents, ties=ties, init=start, tol=1e-9).fit(X)
    assert begun.lower_bound_ == pytest.approx(model.lower_bound_, abs=1e-6)
    start["x2"] = start["x0"][::-1]
    with pytest.raises(
        ValueError, match=r"tables of 'x0' and 'x2' in the 'init' parameter .* differ; the two are tied"
    ):
        VBDiscreteDAG(structure, latents=latents, ties=ties, init=start).fit(X)
    learned = VBDiscreteDAG(structure, latents=latents, ties=ties, learn_prior=True, random_state=0).fit(X)
    assert learned.lower_bound_ > model.lower_bound_ - 1e-6
    np.testing.assert_array_equal(learned.prior_["x2"], learned.prior_["x0"])
    batches = VBDiscreteDAG("[x0][x1|x0][x2|x1]", ties={"x2": "x1"}, categories=[[0, 1]] * 3)
    complete = rng.integers(0, 2, (30, 3))
    total = sum(batches.partial_fit(part).batch_lower_bound_ for part in np.split(complete, 3))
    whole = VBDiscreteDAG("[x0][x1|x0][x2|x1]", ties={"x2": "x1"}).fit(complete)
    assert total == pytest.approx(whole.lower_bound_, abs=1e-9)
    drawn, states = model.sample(50, random_state=0)
    assert drawn.shape == (50, 3)
    assert states.shape == (50, 3)


def test_moves_of_states_turn_all_tied_nodes(rng):
    """With more than two states moves propose points of tied tables; the bound stays one, and is found again."""
    X = rng.integers(0, 3, (60, 3))
    model = model_of(panel(3), 3, n_init=4).fit(X)
    literal = Literal(model, panel(3).ties)
    posterior = {table: np.asarray(model.posterior_[table]) for table in literal.tables}
    bound, _ = literal.step(posterior, rows_of(X, ["x0", "x1", "x2"]), np.ones(60))
    assert model.lower_bound_ == pytest.approx(bound, abs=1e-5)


def test_scores_for_which_a_row_is_once_in_a_table_are_refused(rng):
    X = data(rng, 20)
    model = fitted("a chain", X)
    with pytest.raises(TypeError, match=r"'laplace' has no meaning .* Some of its tables are tied"):
        model.log_evidence(X, kind="laplace")
    with pytest.raises(TypeError, match=r"tables are tied.*dimension='free'"):
        model.log_evidence(X, kind="bic", dimension="identifiable")
    assert model.log_evidence(X, kind="bic").value < 0


def test_searches_compare_ties_but_sum_no_families(rng):
    """A search tries ties like any parameter; strategies that sum over families go other ways, or say why not."""
    X = load_coleman_panel().data[::30]
    waves = DynamicDAG("[h][a|h][b|h]", [("h", "h")], 2, names={"a": ["x0", "x2"], "b": ["x1", "x3"]})
    model = model_of(waves, ties=None, n_init=3)
    grid = {"ties": [None, waves.ties_of(["a", "b"])]}
    search = StructureSearchCV(model, grid, scoring="lower_bound", random_state=0).fit(X)
    fits = [model.set_params(ties=ties).fit(X).lower_bound_ for ties in grid["ties"]]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], fits, atol=1e-3)
    complete = X[:, :2]
    tied = VBDiscreteDAG(ties={"x1": "x0"}, categories=[[0, 1]] * 2)
    search = StructureSearchCV(tied, ["[x0][x1]"], scoring="lower_bound", random_state=0).fit(complete)
    assert search.best_score_ == pytest.approx(
        VBDiscreteDAG("[x0][x1]", ties={"x1": "x0"}).fit(complete).lower_bound_, abs=1e-9
    )
    for strategy, space in (("structural", ["[x0][x1]"]), ("exact", DAGSpace(["x0", "x1"]))):
        with pytest.raises(ValueError, match=r"needs a table of its own for every node"):
            StructureSearchCV(tied, space, strategy=strategy, scoring="lower_bound").fit(complete)
    pruned = StructureSearchCV(tied, ["[x0][x1]"], strategy=Exhaustive(prune=True), scoring="bic").fit(complete)
    assert pruned.cv_results_["n_free_parameters"].tolist() == [1]


@pytest.mark.parametrize(
    ("ties", "error", "told"),
    [
        ({"x9": "x0"}, StructureError, "names 'x9', which is not a node"),
        ({"x1": "x1"}, StructureError, "ties node 'x1' to itself"),
        ({"x1": "x0", "x2": "x1"}, StructureError, "ties node 'x2' to 'x1', which is tied itself. Tie both to 'x0'"),
        ([["x0", "x1"], ["x2", "x1"]], StructureError, "ties node 'x1' twice"),
        ({"x1": "h1"}, StructureError, "their tables differ: 'h2' .2., 'x1' .2. against 'h1' .2."),
        ({"h3": "h2", "x3": "x0"}, StructureError, "their tables differ: 'h3' .2., 'x3' .3. against"),
        ({("h1", "x1"): ("h1", "x0")}, StructureError, "gives node 'x1' the parents"),
        ("x0", TypeError, "must map nodes to nodes whose tables they share"),
    ],
)
def test_ties_that_do_not_fit_are_named(ties, error, told, rng):
    structure = "[h1][h2|h1][h3|h2][x0|h1][x1|h2][x2|h3][x3|h3]"
    X = np.column_stack([rng.integers(0, 2, (20, 3)), np.arange(20) % 3])
    with pytest.raises(error, match=told):
        VBDiscreteDAG(structure, latents={"h1": 2, "h2": 2, "h3": 2}, ties=ties).fit(X)


def test_tied_columns_have_the_same_categories():
    X = np.array([["a", "b"], ["b", "c"], ["a", "c"]], dtype=object)
    with pytest.raises(ValueError, match=r"column 'x1' stands for 'x0': but X has \['b', 'c'\] in the one"):
        VBDiscreteDAG("[x0][x1]", ties={"x1": "x0"}).fit(X)
    model = VBDiscreteDAG("[x0][x1]", ties={"x1": "x0"}, categories=[["a", "b", "c"]] * 2).fit(X)
    assert np.asarray(model.counts_["x0"]).tolist() == [2, 2, 2]


def test_tied_nodes_have_one_prior_and_a_direction(rng):
    X = rng.integers(0, 2, (20, 2))
    with pytest.raises(ValueError, match="differs between 'x1' and 'x0', whose tables are tied"):
        VBDiscreteDAG("[x0][x1]", ties={"x1": "x0"}, prior={"x1": 2.0}).fit(X)
    VBDiscreteDAG("[x0][x1]", ties={"x1": "x0"}, prior={"x0": 2.0, "x1": 2.0}).fit(X)
    with pytest.raises(ValueError, match="is for directed structures"):
        VBDiscreteDAG(UndirectedGraph(["x0", "x1"]), ties={"x1": "x0"}, prior="bdeu").fit(X)


def test_dynamic_networks_are_unrolled():
    two = DynamicDAG("[h][a|h][b|a:h]", {"h": "h", "b": ["a", "b"]}, 3)
    assert set(two.dag.parents("b_3")) == {"a_2", "b_2", "h_3", "a_3"}
    assert two.dag.parents("a_2") == ("h_2",)
    assert two.ties == {
        ("h_2", "h_3"): ("h_1", "h_2"),
        ("h_2", "a_2"): ("h_1", "a_1"),
        ("h_3", "a_3"): ("h_1", "a_1"),
        ("a_2", "b_2", "h_3", "a_3", "b_3"): ("a_1", "b_1", "h_2", "a_2", "b_2"),
    }
    assert two.ties_of("a") == {("h_2", "a_2"): ("h_1", "a_1"), ("h_3", "a_3"): ("h_1", "a_1")}
    assert two.latents({"h": 4}) == {"h_1": 4, "h_2": 4, "h_3": 4}
    assert repr(two) == ("DynamicDAG('[h][a|h][b|h:a]', between=[('h', 'h'), ('a', 'b'), ('b', 'b')], n_slices=3)")
    assert DAG.coerce(two.dag).nodes[:3] == ("h_1", "a_1", "b_1")


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"n_slices": 1}, ValueError, "n_slices of DynamicDAG must be an int >= 2"),
        ({"between": [("h", "z")]}, StructureError, r"has the edge \('h', 'z'\)"),
        ({"between": [("h", "h"), ("h", "h")]}, StructureError, "twice"),
        ({"names": {"y": ["a"]}}, StructureError, "must name node 'y' in each of the 3 slices"),
        ({"names": {"z": ["a", "b", "c"]}}, StructureError, "has 'z', which is not a node of the slice"),
    ],
)
def test_dynamic_networks_that_do_not_fit_are_named(options, error, told):
    with pytest.raises(error, match=told):
        DynamicDAG(**{"slice": "[h][y|h]", "between": [("h", "h")], "n_slices": 3, **options})


def test_parents_are_matched_by_families_whatever_the_order_of_columns(rng):
    """Columns of waves in any order: the two-slice network says which parent stands for which."""
    X = rng.integers(0, 2, (40, 6))
    found = []
    for names in combinations(range(6), 3):
        rest = [k for k in range(6) if k not in names]
        waves = DynamicDAG("[a][b|a]", [("a", "a"), ("a", "b"), ("b", "b")], 3,
                           names={"a": [f"x{k}" for k in names], "b": [f"x{k}" for k in rest]})  # fmt: skip
        order = [*names, *rest]
        Y = np.empty_like(X)
        Y[:, order] = X
        found.append(VBDiscreteDAG(waves.dag, ties=waves.ties).fit(Y).lower_bound_)
    np.testing.assert_allclose(found, found[0], atol=1e-10)
