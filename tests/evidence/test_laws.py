"""What is true of every score, tested on each in the registry: symmetries of the data and of the model, and bounds."""

import itertools
import math

import numpy as np
import pytest
from bridge import FastNetwork
from evidence.evaluations import evaluation_of
from reference import facts
from reference.discrete_network import Data, Network, Problem, each, exact_log_evidence, uniform_prior
from reference.random_networks import random_problem, random_tables
from reference.scores import n_rows

from skvbem.evidence import SCORES
from skvbem.evidence.cheeseman_stutz import cheeseman_stutz, mled
from skvbem.evidence.collapsed import collapsed
from skvbem.evidence.exact import exact
from skvbem.evidence.lower_bound import lower_bound

approx = pytest.approx
DETERMINISTIC = [name for name, score in SCORES.items() if not getattr(score, "random", False)]
LC2 = facts.latent_class(2, (2, 2, 2))
# so many steps from the same start, whatever rounding does: two runs then differ by rounding alone
SAME_STEPS = {"tol": 0.0, "max_iter": 24, "accelerate": False}


def value_of(name, problem, tables, **options):
    """A score after a few steps from given tables."""
    fast = FastNetwork(problem.network, problem.prior)
    start = fast.ascent(problem.data).expect(np.log(fast.lanes(tables)))
    evaluation = evaluation_of(problem, method=SCORES[name].form or "vb", starts=start, **SAME_STEPS)
    return SCORES[name](evaluation, **options).value


def some_problems(rng, n, **sizes):
    found = []
    while len(found) < n:
        problem = random_problem(rng, max_completions=2**8, **sizes)
        if problem.network.n_free_parameters and n_rows(problem.data) > 0:
            found.append(problem)
    return found


# --- symmetries -------------------------------------------------------------------------------------------------------


def reordered(problem, rng):
    """Nodes, parents, columns and rows in another order, and what becomes of tables."""
    network, data, prior = problem
    nodes = rng.permutation([*network.cards]).tolist()
    parents = {node: tuple(rng.permutation(network.parents[node]).tolist()) for node in nodes}
    other = Network({node: network.cards[node] for node in nodes}, parents)

    def moved(tables):
        return {
            node: np.transpose(
                tables[node], [(*network.parents[node], node).index(member) for member in (*parents[node], node)]
            )
            for node in nodes
        }

    rows, columns = rng.permutation(len(data.cells)), rng.permutation(len(data.columns))
    weights = None if data.weights is None else np.asarray(data.weights)[rows]
    cells = np.asarray(data.cells)[rows][:, columns]
    return Problem(other, Data(tuple(data.columns[c] for c in columns), cells, weights), moved(prior)), moved


def relabeled(problem, rng):
    """States of every node, hidden or not, under other numbers, and what becomes of tables."""
    network, data, prior = problem
    order = {node: rng.permutation(card) for node, card in network.cards.items()}

    def moved(tables):
        return {
            node: tables[node][np.ix_(*(order[member] for member in (*network.parents[node], node)))]
            for node in network.cards
        }

    cells = np.array(data.cells)
    for c, column in enumerate(data.columns):
        seen = cells[:, c] >= 0
        cells[seen, c] = np.argsort(order[column])[cells[seen, c]]
    return Problem(network, Data(data.columns, cells, data.weights), moved(prior)), moved


def repeated(problem, rng):
    """Each row as often as its weight says."""
    network, data, prior = problem
    cells = np.asarray(data.cells)
    weights = np.ones(len(cells), dtype=int) if data.weights is None else np.asarray(data.weights)
    return Problem(network, Data(data.columns, np.repeat(cells, weights, axis=0)), prior), lambda tables: tables


@pytest.mark.parametrize("change", [reordered, relabeled, repeated], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", DETERMINISTIC)
def test_what_carries_no_meaning_changes_no_score(name, change, rng):
    for problem in some_problems(rng, 12):
        tables = random_tables(rng, problem.network)
        other, moved = change(problem, rng)
        expected = value_of(name, problem, tables)
        assert value_of(name, other, moved(tables)) == approx(expected, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_exchangeable_latents_may_trade_places(name, rng):
    parents, swapped = ("1", "12", "2"), ("2", "12", "1")
    data = Data(("y0", "y1", "y2"), rng.integers(0, 2, size=(9, 3)))
    networks = [facts.bipartite(p, (2, 2, 2)) for p in (parents, swapped)]
    tables = random_tables(rng, networks[0])
    other = {**tables, "s1": tables["s2"], "s2": tables["s1"], "y1": tables["y1"].swapaxes(0, 1)}
    values = [
        value_of(name, Problem(network, data, uniform_prior(network)), start)
        for network, start in zip(networks, (tables, other))
    ]
    assert values[0] == approx(values[1], rel=1e-10)


@pytest.mark.parametrize("name", [name for name in DETERMINISTIC if "form" in SCORES[name].options])
def test_every_form_a_score_takes_is_recorded(name):
    evaluation = evaluation_of(Problem(LC2, facts.TWENTY_ROWS, uniform_prior(LC2, 1.1)))
    for form in ("map", "map_probability") if name == "laplace" else ("map", "map_probability", "vb"):
        assert SCORES[name](evaluation, form=form).form == form


# --- bounds -----------------------------------------------------------------------------------------------------------

LOWER_BOUNDS = ("lower_bound", "collapsed", "collapsed_ascent", "cheeseman_stutz", "mled")


def complete_problems(rng, n):
    """Nothing hidden but nodes of one state, and nothing missing."""
    for problem in some_problems(rng, n, max_hidden=0, missing_rate=0.0):
        network, data, prior = problem
        yield problem
        one = Network({**network.cards, "one": 1}, {**network.parents, "one": (), data.columns[-1]: ("one",)})
        if not network.parents[data.columns[-1]]:
            last = {data.columns[-1]: prior[data.columns[-1]][None]}
            yield Problem(one, data, {**prior, "one": np.array([2.0]), **last})


@pytest.mark.parametrize("name", LOWER_BOUNDS)
def test_with_nothing_hidden_bounds_are_exact_after_one_step(name, rng):
    for problem in complete_problems(rng, 15):
        evaluation = evaluation_of(problem, n_init=1, max_iter=2)
        expected = exact_log_evidence(*problem)
        assert SCORES[name](evaluation).value == approx(expected, rel=1e-10, abs=1e-10)
        assert exact(evaluation).value == approx(expected, rel=1e-10, abs=1e-10)


def check_chain(problem):
    """MLED <= CS <= VB from there <= collapsed <= the same ascended <= evidence; so too if mixed over relabelings."""
    evaluation = evaluation_of(problem, method="map", n_init=2, tol=1e-10)
    evidence = exact(evaluation).value
    for alias in (False, True):
        chain = [
            mled(evaluation, alias=alias).value,
            cheeseman_stutz(evaluation, alias=alias).value,
            *(() if alias else (lower_bound(evaluation).value,)),
            collapsed(evaluation, alias=alias).value,
            *(() if alias else (collapsed(evaluation, n_sweeps=3).value,)),
            evidence,
        ]
        slack = 1e-9 * (1 + abs(evidence))
        if alias:
            assert max(chain[:-1]) <= evidence + slack
            assert lower_bound(evaluation, alias=True).value <= evidence + slack
        else:
            assert all(low <= high + slack for low, high in itertools.pairwise(chain)), chain


def test_order_of_the_bounds_on_250_random_models(rng):
    """Up to 2**16 completions each."""
    for k in range(250):
        check_chain(random_problem(rng, max_completions=2 ** (8 + k % 9), max_nodes=7, max_hidden=3))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_order_of_the_bounds_on_5000_random_models(block):
    rng = np.random.default_rng([2003, block])
    for _ in range(250):
        check_chain(random_problem(rng, max_completions=2**16, max_nodes=7, max_hidden=3))


def test_cheeseman_stutz_is_a_bound_at_any_point_and_any_start(rng):
    for problem in some_problems(rng, 40):
        for max_iter in (1, 4):
            evaluation = evaluation_of(problem, method="ml", n_init=1, max_iter=max_iter)
            evidence = exact(evaluation).value
            for name in LOWER_BOUNDS:
                assert SCORES[name](evaluation).value <= evidence + 1e-9


def test_order_of_the_scores_on_twenty_rows():
    evaluation = evaluation_of(Problem(LC2, facts.TWENTY_ROWS, uniform_prior(LC2)), n_init=10)
    values = [SCORES[name](evaluation).value for name in ("bic", "cheeseman_stutz", "lower_bound", "collapsed")]
    value = exact(evaluation).value
    ordered = [*values, value - math.log(2), value]
    assert ordered == sorted(ordered)
    assert values[2] == approx(facts.VB_BOUND, abs=1e-10)


@pytest.mark.parametrize("concentration", facts.VB_BOUND_BY_CONCENTRATION)
def test_lower_bound_by_concentration(concentration):
    start = np.where(facts.TWENTY_ROWS.cells.sum(1, keepdims=True) <= 1, [0.9, 0.1], [0.1, 0.9])
    fast = FastNetwork(LC2, uniform_prior(LC2, concentration))
    counts = LC2.full(0.0)
    for row, weight, share in zip(facts.TWENTY_ROWS.cells, facts.TWENTY_ROWS.weights, start):
        for c in (0, 1):
            counts["c"][c] += weight * share[c]
            for y, state in enumerate(row):
                counts[f"y{y}"][c, state] += weight * share[c]
    problem = Problem(LC2, facts.TWENTY_ROWS, uniform_prior(LC2, concentration))
    evaluation = evaluation_of(problem, starts=fast.lanes(counts))
    assert lower_bound(evaluation).value == approx(facts.VB_BOUND_BY_CONCENTRATION[concentration], abs=1e-10)


@pytest.mark.parametrize("n_classes", facts.BEST_VB_BOUND_BY_CLASSES)
def test_best_bounds_by_number_of_classes_and_what_an_empty_class_costs(n_classes):
    network = facts.latent_class(n_classes, (2, 2, 2))
    evaluation = evaluation_of(Problem(network, facts.TWENTY_ROWS, uniform_prior(network)), n_init=40, tol=1e-9)
    found = lower_bound(evaluation).value
    assert found == approx(facts.BEST_VB_BOUND_BY_CLASSES[n_classes], abs=1e-7)
    more = facts.BEST_VB_BOUND_BY_CLASSES.get(n_classes + 1)
    assert more is None or more >= found + facts.empty_class(n_classes, 20, 1) - 1e-7


@pytest.mark.parametrize("n_features", facts.BEST_BOUND_OF_ONE_ROW)
def test_one_row(n_features):
    """The best bound, that of the symmetric point, and the evidence, which only counts states."""
    network = facts.latent_class(2, (2,) * n_features)
    problem = Problem(network, facts.cells({"0" * n_features: 1}), uniform_prior(network))
    evaluation = evaluation_of(problem, n_init=20)
    assert lower_bound(evaluation).value == approx(facts.BEST_BOUND_OF_ONE_ROW[n_features], abs=1e-8)
    symmetric = FastNetwork(network, problem.prior).lanes(each(lambda t: t / t.shape[-1], network.full(1.0)))
    start = FastNetwork(network, problem.prior).ascent(problem.data).expect(np.log(symmetric))
    at_saddle = evaluation_of(problem, starts=start)
    assert lower_bound(at_saddle).value == approx(facts.symmetric_bound_of_one_row(n_features), abs=1e-12)
    assert exact(evaluation).value == approx(-n_features * math.log(2), abs=1e-12)


def test_missing_cells():
    """A column never seen is no column; an empty row changes neither the evidence nor its bounds."""
    network = facts.latent_class(2, (2, 3))
    cells = np.array([[0, 2], [1, 0], [1, 1], [0, 0], [1, 2]])
    prior = uniform_prior(network)
    plain = evaluation_of(Problem(network, Data(("y0", "y1"), cells), prior), n_init=10)
    with_empty = evaluation_of(Problem(network, Data(("y0", "y1"), np.vstack([cells, [-1, -1]])), prior), n_init=10)
    assert exact(with_empty).value == approx(exact(plain).value, abs=1e-12)
    for name in ("lower_bound", "collapsed", "cheeseman_stutz"):
        assert SCORES[name](with_empty).value == approx(SCORES[name](plain).value, abs=1e-7)
    never_seen = evaluation_of(
        Problem(network, Data(("y0", "y1"), np.where([False, True], -1, cells)), prior), n_init=10
    )
    alone = facts.latent_class(2, (2,))
    without = evaluation_of(Problem(alone, Data(("y0",), cells[:, :1]), uniform_prior(alone)), n_init=10)
    for name in ("lower_bound", "collapsed", "exact"):
        assert SCORES[name](never_seen).value == approx(SCORES[name](without).value, abs=1e-8)


def test_a_childless_latent_costs_bic_a_parameter_and_the_bounds_nothing():
    network = Network({**LC2.cards, "z": 2}, {**LC2.parents, "z": ()})
    with_it, without = (
        evaluation_of(Problem(m, facts.TWENTY_ROWS, uniform_prior(m)), n_init=10) for m in (network, LC2)
    )
    for name in ("lower_bound", "collapsed", "cheeseman_stutz", "mled", "exact"):
        assert SCORES[name](with_it).value == approx(SCORES[name](without).value, abs=1e-7)
        if "alias" in SCORES[name].options:
            assert SCORES[name](with_it, alias=True).value == approx(SCORES[name](without, alias=True).value, abs=1e-7)
    lost = SCORES["bic"](without).value - SCORES["bic"](with_it).value
    assert lost == approx(0.5 * math.log(20), abs=1e-8)
    lost = (
        SCORES["bic"](without, dimension="identifiable").value - SCORES["bic"](with_it, dimension="identifiable").value
    )
    assert lost == approx(0.0, abs=1e-8)
