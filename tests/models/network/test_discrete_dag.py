"""One step of the compiled loop against the definitions; programs; limits; threads."""

import numpy as np
import pytest
from bridge import FORMS, FastNetwork, rows_of
from hypothesis import given
from reference import discrete_network as literal
from reference import facts, strategies
from reference.discrete_network import MISSING, Data, Network, uniform_prior
from reference.random_networks import random_counts, random_problem

from skvbem.errors import NoInteriorModeError, TooLargeError
from skvbem.models import DirichletAscent
from skvbem.models.network import assembly

approx = pytest.approx


def problems(rng, n, least=0.0):
    """Random problems, every concentration raised by `least`."""
    for _ in range(n):
        network, data, prior = random_problem(rng, max_nodes=7, max_hidden=3, missing_rate=0.3, max_completions=2**9)
        yield network, data, {node: table + least for node, table in prior.items()}


# --- steps ------------------------------------------------------------------------------------------------------------


def test_steps_are_those_of_the_definition(any_form, rng):
    """Objective and expected counts of three full steps, three lanes, from any counts."""
    for network, data, prior in problems(rng, 24, least=any_form == "map_probability"):
        fast = FastNetwork(network, prior)
        starts = [random_counts(rng, network) for _ in range(3)]
        statistics = fast.lanes(*starts)
        trace = fast.ascent(data, any_form).advance(statistics, 3)
        assert trace.shape == (3, 3)
        for lane, counts in enumerate(starts):
            steps = literal.em(literal.FORMS[any_form], network, data, prior, counts, 3)
            assert trace[:, lane] == approx([step.after_e for step in steps], rel=1e-10, abs=1e-9)
            assert statistics[:, lane] == approx(fast.flat(steps[-1].counts), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("form", ["vb", "map", "ml"])
@given(strategies.problems())
def test_steps_of_odd_networks_are_those_of_the_definition(form, problem):
    """Nodes of one state, nodes alone, rows of weight zero, data without a cell: whatever shrinks to little."""
    network, data, prior = problem
    fast = FastNetwork(network, prior)
    counts = random_counts(np.random.default_rng(0), network)
    statistics = fast.lanes(counts)
    trace = fast.ascent(data, form).advance(statistics, 2)
    steps = literal.em(literal.FORMS[form], network, data, prior, counts, 2)
    assert trace[:, 0] == approx([step.after_e for step in steps], rel=1e-10, abs=1e-9)
    assert statistics[:, 0] == approx(fast.flat(steps[-1].counts), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("concentration", [1e-6, 1e-3, 1e3, 1e8, 1e12])
@pytest.mark.parametrize("form", ["vb", "map"])
def test_steps_under_extreme_priors(form, concentration, rng):
    """In as many digits as doubles have, where the definition itself is sound: its own ln Gamma differences are not."""
    for network, data, _ in problems(rng, 10):
        prior = {node: concentration * (1 + table) for node, table in uniform_prior(network, 1.0).items()}
        fast = FastNetwork(network, prior)
        ascent = fast.ascent(data, form)
        statistics = fast.random_starts(ascent, rng, 2)
        before = statistics.copy()
        (objective,) = ascent.advance(statistics, 1)
        for lane in range(2):
            q = fast.model.prior + before[:, lane]
            natural, penalty = q.expected_natural(), -q.kl(fast.model.prior)
            if form == "map":
                natural, penalty = np.log(q.mean()), fast.model.prior.log_density(q.mean())
            exact = literal.log_likelihood(network, fast.tables(natural), data, prune=True) + penalty
            assert objective[lane] == approx(exact, rel=1e-10, abs=1e-12 * ascent.magnitude)
        assert np.all(np.isfinite(statistics))


def test_a_lane_steps_the_same_whatever_the_others(any_form, rng):
    """More lanes than one batch holds: results are those of each start alone, to the last bit."""
    for network, data, prior in problems(rng, 10, least=any_form == "map_probability"):
        fast = FastNetwork(network, prior)
        ascent = fast.ascent(data, any_form)
        statistics = fast.random_starts(ascent, rng, 21)
        alone = statistics.copy()
        trace = ascent.advance(statistics, 2)
        for lane in (0, 3, 15, 16, 20):
            one = np.ascontiguousarray(alone[:, [lane]])
            (first, second) = fast.ascent(data, any_form).advance(one, 2)
            assert np.array_equal(one[:, 0], statistics[:, lane])
            assert [first[0], second[0]] == trace[:, lane].tolist()


def test_steps_one_by_one_are_steps_at_once(any_form, rng):
    for network, data, prior in problems(rng, 5, least=any_form == "map_probability"):
        fast = FastNetwork(network, prior)
        ascent = fast.ascent(data, any_form)
        at_once = fast.random_starts(ascent, rng, 2)
        one_by_one = at_once.copy()
        trace = ascent.advance(at_once, 3)
        assert np.array_equal(trace, np.concatenate([ascent.advance(one_by_one, 1) for _ in range(3)]))
        assert np.array_equal(at_once, one_by_one)


def test_threads_change_no_bit(any_form, rng, monkeypatch):
    monkeypatch.setattr("skvbem.models.network.model._WORTH_THREADS", 0)
    monkeypatch.setattr(assembly, "_BLOCK_WORK", 8)
    network = Network(
        {"h": 3, "g": 2, "y0": 2, "y1": 3, "y2": 2, "y3": 2},
        {"h": (), "g": ("h",), "y0": ("h",), "y1": ("h", "g"), "y2": ("g",), "y3": ("y2", "h")},
    )
    data = Data(("y0", "y1", "y2", "y3"), rng.integers(-1, 2, size=(300, 4)), rng.exponential(size=300))
    fast = FastNetwork(network, uniform_prior(network, 1.5))
    results = []
    for n_threads in (1, 2, 3):
        ascent = fast.ascent(data, any_form, n_threads)
        assert ascent.data.contraction.n_blocks > 8
        assert (ascent._pool is not None) == (n_threads > 1)
        statistics = fast.random_starts(ascent, np.random.default_rng(0), 4)
        trace = ascent.advance(statistics, 5)
        results.append((trace, statistics))
    for trace, statistics in results[1:]:
        assert np.array_equal(trace, results[0][0])
        assert np.array_equal(statistics, results[0][1])


def test_many_blocks_step_as_one(any_form, rng, monkeypatch):
    for network, data, prior in problems(rng, 20, least=any_form == "map_probability"):
        fast = FastNetwork(network, prior)
        whole = fast.random_starts(fast.ascent(data, any_form), rng, 2)
        parts = whole.copy()
        trace = fast.ascent(data, any_form).advance(whole, 2)
        with monkeypatch.context() as patch:
            patch.setattr(assembly, "_BLOCK_WORK", 1)
            ascent = fast.ascent(data, any_form)
        assert ascent.advance(parts, 2) == approx(trace, rel=1e-11, abs=1e-10)
        assert parts == approx(whole, rel=1e-9, abs=1e-10)


def test_no_interior_mode_in_probabilities_is_said_so():
    network = facts.latent_class(1, (2,))
    fast = FastNetwork(network, uniform_prior(network, 0.5))
    ascent = fast.ascent(facts.cells({"0": 3}), "map_probability")
    statistics = fast.random_starts(ascent, np.random.default_rng(0))
    assert np.isnan(ascent.advance(statistics, 1)).all()
    failure = ascent.failure()
    assert isinstance(failure, NoInteriorModeError)
    assert "map_basis='natural'" in str(failure)


# --- points -----------------------------------------------------------------------------------------------------------


def test_the_point_of_each_form(any_form, rng):
    """The posterior mean, or the mode that the form maximizes."""
    for network, data, prior in problems(rng, 10, least=any_form == "map_probability"):
        fast = FastNetwork(network, prior)
        counts = random_counts(rng, network)
        point = fast.tables(FORMS[any_form].point(fast.model.prior, fast.flat(counts)))
        if any_form == "vb":
            expected = literal.mean_tables(prior, counts)
        else:
            expected = literal.each(np.exp, literal.FORMS[any_form](prior, counts)[0])
        for node in network.cards:
            assert point[node] == approx(expected[node], rel=1e-12), data


def test_a_table_row_without_counts_is_uniform_in_ml():
    network = Network({"a": 2, "b": 3}, {"a": (), "b": ("a",)})
    fast = FastNetwork(network, uniform_prior(network))
    data = Data(("a", "b"), np.array([[0, 0], [0, 1], [0, 1]]))
    ascent = fast.ascent(data, "ml")
    statistics = fast.flat({"a": np.array([3.0, 0.0]), "b": np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]])})[:, None]
    (objective,) = ascent.advance(statistics, 1)
    assert objective[0] == approx(np.log(1 / 3) + 2 * np.log(2 / 3))
    point = fast.tables(FORMS["ml"].point(fast.model.prior, statistics[:, 0]))
    assert point["b"] == approx(np.array([[1 / 3, 2 / 3, 0], [1 / 3, 1 / 3, 1 / 3]]))


# --- programs ---------------------------------------------------------------------------------------------------------


def test_distinct_rows_with_their_weights_are_the_data(rng):
    """Contexts are distinct rows; repeats, weights and the order of rows change nothing."""
    network = facts.latent_class(2, (2, 3, 2))
    fast = FastNetwork(network, uniform_prior(network))
    cells = np.array([[0, 1, 0], [0, 1, 0], [1, 2, 1], [0, 1, 0], [1, 2, 1], [1, 0, 0]])
    once = Data(("y0", "y1", "y2"), np.array([[0, 1, 0], [1, 2, 1], [1, 0, 0]]), np.array([3, 2, 1]))
    repeated = Data(once.columns, cells)
    programs = [fast.program(data) for data in (once, repeated, Data(once.columns, rng.permutation(cells)))]
    assert [program.contraction.n_contexts for program in programs] == [3, 3, 3]
    assert [program.total_weight for program in programs] == [6, 6, 6]
    starts = fast.random_starts(fast.ascent(once), rng, 2)
    results = []
    for program in programs:
        statistics = starts.copy()
        trace = DirichletAscent(fast.model, program, FORMS["vb"]).advance(statistics, 3)
        results.append(trace)
    assert results[1] == approx(results[0], rel=1e-13)
    assert results[2] == approx(results[0], rel=1e-13)


def test_unobserved_nodes_without_observed_descendants_cost_nothing():
    """Missing leaves, childless latents and wholly missing rows leave no context behind."""
    network = Network({"a": 2, "b": 2, "h": 2, "c": 2}, {"a": (), "b": ("a",), "h": ("a",), "c": ("b",)})
    fast = FastNetwork(network, uniform_prior(network))
    columns = ("a", "b", "c")
    for cells in ([[0, 1, MISSING]], [[0, MISSING, MISSING]], [[MISSING] * 3]):
        assert fast.program(Data(columns, np.array(cells))).contraction.n_contexts == 0
    assert fast.program(Data(columns, np.array([[MISSING, 1, 1]]))).contraction.n_contexts == 1
    assert fast.program(Data(columns, np.array([[0, MISSING, 1]]))).contraction.n_contexts == 1


def test_complete_families_are_counted_once_and_for_all(rng):
    network, columns = facts.latent_class(1, (2, 2)), ("y0", "y1")
    fast = FastNetwork(network, uniform_prior(network))
    data = Data((*columns, "c"), np.array([[0, 1, 0], [1, 1, 0], [MISSING, 1, 0]]), np.array([2.0, 0.5, 1.0]))
    program = fast.program(data)
    assert program.contraction.n_contexts == 0
    counts = fast.tables(fast.model.expect(np.zeros((fast.model.layout.n_cells, 1)), program).statistics[:, 0])
    assert counts["y0"].tolist() == [[2.0, 0.5]]
    assert counts["y1"].tolist() == [[0.0, 3.5]]
    assert counts["c"].tolist() == [3.5]


def test_tables_too_large_are_refused_before_they_are_made():
    hidden = [f"h{k}" for k in range(30)]
    network = Network({**dict.fromkeys(hidden, 4), "y": 2, "z": 2}, {**dict.fromkeys(hidden, ()), "y": (), "z": ("y",)})
    linked = {**network.parents, **{f"h{k}": tuple(hidden[max(0, k - 3) : k]) for k in range(30)}, "z": ("h29",)}
    network = Network(network.cards, linked)
    fast = FastNetwork(network, uniform_prior(network))
    rows = rows_of(Data(("y", "z"), np.array([[0, 1]])))
    assert fast.model.compile(rows).treewidth == 3
    with pytest.raises(TooLargeError, match=r"hidden nodes .*h\d.* table of 256 cells; 'max_table_cells' allows 100"):
        fast.model.compile(rows, max_table_cells=100)
    with pytest.raises(TooLargeError, match="'max_memory' allows 1e"):
        fast.model.compile(rows, max_memory=1e3)


def test_tables_go_flat_and_come_back(rng):
    for network, _, prior in problems(rng, 10):
        fast = FastNetwork(network, prior)
        flat = fast.flat(prior)
        assert np.array_equal(flat, fast.model.prior.concentration)
        assert all(np.array_equal(table, prior[node]) for node, table in fast.tables(flat).items())
        lanes = np.stack([flat, 2 * flat], axis=1)
        node, table = next(iter(fast.model.tables(lanes).items()))
        assert table.shape[-1] == 2
        assert np.array_equal(fast.model.flat(fast.model.tables(flat)), flat)
        assert fast.model.prior.n_free_parameters == network.n_free_parameters, node
