"""Sums over hidden states: the compiled contraction against the sum over completions, and against forward-backward."""

import numpy as np
import pytest
from bridge import FastNetwork, rows_of
from reference import facts
from reference.discrete_network import (
    MISSING,
    Data,
    Network,
    expected_counts,
    latent_posterior,
    log_likelihood,
    uniform_prior,
)
from reference.random_networks import random_problem, random_tables
from scipy.special import logsumexp

from skvbem.data import Rows
from skvbem.models.network import assembly

approx = pytest.approx


def random_lanes(rng, fast, n_lanes, scale, above=0.0):
    """Natural parameters from `above` down to -scale, not normalized, (n_cells, n_lanes)."""
    return above - (scale + above) * rng.random((fast.model.layout.n_cells, n_lanes))


def literal_expectation(fast, data, natural):
    """(expected counts, ln Z) of one lane, by the sum over completions."""
    log_tables = fast.tables(natural)
    q = latent_posterior(fast.network, log_tables, data)
    return fast.flat(expected_counts(fast.network, q)), log_likelihood(fast.network, log_tables, data, prune=True)


def some_problems(rng, n, **sizes):
    """Random networks with any hidden nodes and missing cells, as fast networks with their data."""
    for _ in range(n):
        network, data, prior = random_problem(rng, max_nodes=7, max_hidden=3, missing_rate=0.3, max_rows=8, **sizes)
        yield FastNetwork(network, prior), data


@pytest.mark.parametrize("scale", [1, 30, 500, 5000])
def test_sums_over_completions(scale, rng):
    """Down to e^-5000 per table cell: where products leave the doubles, logarithms take over."""
    for fast, data in some_problems(rng, 40, max_completions=2**12):
        natural = random_lanes(rng, fast, 3, scale, above=3.0)
        found = fast.model.expect(natural, fast.program(data))
        for lane in range(3):
            counts, log_z = literal_expectation(fast, data, natural[:, lane])
            assert found.log_normalizer[lane] == approx(log_z, rel=1e-11, abs=1e-11)
            assert found.statistics[:, lane] == approx(counts, rel=1e-9, abs=1e-9)


def test_lanes_of_very_different_scales_do_not_disturb_each_other(rng):
    for fast, data in some_problems(rng, 40, max_completions=2**12):
        natural = np.concatenate([random_lanes(rng, fast, 1, scale) for scale in (1, 5000, 30, 800)], axis=1)
        found = fast.model.expect(natural, fast.program(data))
        for lane in range(4):
            counts, log_z = literal_expectation(fast, data, natural[:, lane])
            assert found.log_normalizer[lane] == approx(log_z, rel=1e-11, abs=1e-11)
            assert found.statistics[:, lane] == approx(counts, rel=1e-9, abs=1e-9)


def test_a_lane_has_the_same_bits_whatever_the_others(rng):
    for fast, data in some_problems(rng, 30):
        program = fast.program(data)
        natural = np.concatenate([random_lanes(rng, fast, 2, scale) for scale in (1, 30, 700, 5000)], axis=1)
        together = fast.model.expect(natural, program)
        for lanes in ([0], [5], [7, 0], [1, 2, 3], rng.permutation(8)):
            some = fast.model.expect(np.ascontiguousarray(natural[:, lanes]), program)
            assert np.array_equal(some.statistics, together.statistics[:, lanes])
            assert np.array_equal(some.log_normalizer, together.log_normalizer[lanes])


def test_many_blocks_are_one(rng, monkeypatch):
    """Contexts cut into runs, whose tables and results are their own."""
    most = 0
    for fast, data in some_problems(rng, 30):
        natural = random_lanes(rng, fast, 3, 5)
        whole = fast.model.expect(natural, fast.program(data))
        with monkeypatch.context() as patch:
            patch.setattr(assembly, "_BLOCK_WORK", 1)
            program = fast.program(data)
        most = max(most, program.contraction.n_blocks)
        in_blocks = fast.model.expect(natural, program)
        assert in_blocks.statistics == approx(whole.statistics, rel=1e-12, abs=1e-12)
        assert in_blocks.log_normalizer == approx(whole.log_normalizer, rel=1e-12, abs=1e-12)
    assert most > 5


def test_impossible_rows_have_no_mass_in_their_own_lane_alone(rng):
    """A lane in which a row cannot be: ln Z is -inf there, and untouched elsewhere."""
    fast = FastNetwork(facts.latent_class(2, (2, 2)), uniform_prior(facts.latent_class(2, (2, 2))))
    possible = random_lanes(rng, fast, 1, 2)
    tables = fast.tables(possible[:, 0])
    tables["y0"] = tables["y0"].copy()
    tables["y0"][:, 1] = -np.inf
    natural = np.concatenate([possible, fast.flat(tables)[:, None]], axis=1)
    program = fast.program(facts.SIX_ROWS)
    found = fast.model.expect(natural, program)
    assert found.log_normalizer[1] == -np.inf
    alone = fast.model.expect(possible, program)
    assert np.array_equal(found.statistics[:, [0]], alone.statistics)
    assert np.array_equal(found.log_normalizer[:1], alone.log_normalizer)


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing cells"])
@pytest.mark.parametrize("n_columns", [3, 40, 400])
def test_rows_of_many_columns_do_not_underflow(n_columns, missing, rng):
    """e^-30 per column: the product leaves the doubles at the 24th."""
    network = facts.latent_class(3, (2,) * n_columns)
    fast = FastNetwork(network, uniform_prior(network))
    data = Data(tuple(network.cards)[1:], rng.integers(-1 if missing else 0, 2, size=(20, n_columns)))
    natural = random_lanes(rng, fast, 2, 60)
    program = fast.program(data)
    if n_columns == 400 and not missing:
        assert program.contraction.most_slots > 64  # more than the kernel looks ahead
    found = fast.model.expect(natural, program)
    for lane in range(2):
        tables = fast.tables(natural[:, lane])
        by_class = np.tile(tables["c"], (20, 1))
        for j, column in enumerate(data.columns):
            seen = data.cells[:, j] != MISSING
            by_class[seen] += tables[column].T[data.cells[seen, j]]
        observed = (data.cells != MISSING).any(axis=1)
        log_z = np.where(observed, logsumexp(by_class, axis=1), 0.0)
        assert found.log_normalizer[lane] == approx(log_z.sum(), rel=1e-12)
        posterior = np.exp(by_class - logsumexp(by_class, axis=1, keepdims=True))[observed]
        assert fast.tables(found.statistics[:, lane])["c"] == approx(posterior.sum(axis=0), abs=1e-10)


def test_more_codes_than_sixteen_bits_hold(rng):
    """70 000 rows, each of a category of its own, beside a binary column."""
    n = 70_000
    network = facts.latent_class(2, (n, 2))
    fast = FastNetwork(network, uniform_prior(network))
    cells = np.stack([rng.permutation(n), rng.integers(0, 2, size=n)], axis=1)
    model = fast.model
    natural = random_lanes(rng, fast, 2, 3)
    program = model.compile(Rows(("y0", "y1"), cells))
    assert program.contraction.n_contexts == n
    found = model.expect(natural, program)
    for lane in range(2):
        tables = fast.tables(natural[:, lane])
        by_class = tables["c"] + tables["y0"].T[cells[:, 0]] + tables["y1"].T[cells[:, 1]]
        log_z = logsumexp(by_class, axis=1)
        assert found.log_normalizer[lane] == approx(log_z.sum(), rel=1e-12)
        counts = fast.tables(found.statistics[:, lane])
        posterior = np.exp(by_class - log_z[:, None])
        assert counts["y0"].T[cells[:, 0]] == approx(posterior, abs=1e-12)
        assert counts["c"] == approx(posterior.sum(axis=0), rel=1e-12)


def test_weights_of_contexts(rng):
    """Any positive weights, tiny and huge ones side by side."""
    for fast, data in some_problems(rng, 20):
        weights = 10.0 ** rng.uniform(-6, 9, size=len(data.cells))
        natural = random_lanes(rng, fast, 2, 3)
        found = fast.model.expect(natural, fast.program(Data(data.columns, data.cells, weights)))
        one_by_one = [
            fast.model.expect(natural, fast.program(Data(data.columns, row[None], None))) for row in data.cells
        ]
        counts = sum(w * e.statistics for w, e in zip(weights, one_by_one))
        log_z = sum(w * e.log_normalizer for w, e in zip(weights, one_by_one))
        assert found.statistics == approx(counts, rel=1e-10, abs=1e-10)
        assert found.log_normalizer == approx(log_z, rel=1e-10)


# --- many hidden nodes ------------------------------------------------------------------------------------------------


def chain(n):
    """h0 -> h1 -> ... with a binary child y each."""
    parents = {f"h{k}": (f"h{k - 1}",) if k else () for k in range(n)}
    return Network(dict.fromkeys([*parents, *(f"y{k}" for k in range(n))], 2), {**parents, **with_children(n)})


def tree(n):
    """Hidden h0, h1, ..., each below (k - 1) // 2, with a child y each."""
    parents = {f"h{k}": (f"h{(k - 1) // 2}",) if k else () for k in range(n)}
    return Network(dict.fromkeys([*parents, *(f"y{k}" for k in range(n))], 2), {**parents, **with_children(n)})


def polytree(n):
    """The same tree with every second edge turned round: hidden nodes with two parents and with several roots."""
    parents = {f"h{k}": [] for k in range(n)}
    for k in range(1, n):
        above, below = f"h{(k - 1) // 2}", f"h{k}"
        if k % 2:
            above, below = below, above
        parents[below].append(above)
    network = {node: tuple(kin) for node, kin in parents.items()}
    return Network(dict.fromkeys([*parents, *(f"y{k}" for k in range(n))], 2), {**network, **with_children(n)})


def with_children(n):
    return {f"y{k}": (f"h{k}",) for k in range(n)}


def sum_by_messages(network, log_tables, row, fixed=None):
    """ln Z of one row by leaf-to-root messages on the factor graph of a polytree; `fixed` clamps hidden nodes too."""
    known = {**row, **(fixed or {})}
    factors = []
    for node in network.cards:
        family = (*network.parents[node], node)
        table = log_tables[node]
        for axis, member in reversed(list(enumerate(family))):
            if member in known:
                table = table.take(known[member], axis=axis)
        factors.append((tuple(m for m in family if m not in known), table))

    def message(variable, used):
        """The sum over everything beyond `variable`, factors in `used` left out; a vector over its states."""
        total = np.zeros(network.cards[variable])
        for k, (scope, table) in enumerate(factors):
            if variable in scope and k not in used:
                spread = table
                for axis, other in enumerate(scope):
                    if other != variable:
                        incoming = message(other, used | {k})
                        spread = spread + incoming.reshape([-1 if a == axis else 1 for a in range(len(scope))])
                axes = tuple(a for a, other in enumerate(scope) if other != variable)
                total = total + logsumexp(spread, axis=axes)
        return total

    hidden = [node for node in network.cards if node not in known]
    reached, total = set(), sum(float(table) for scope, table in factors if not scope)
    for node in hidden:
        if node in reached:
            continue
        component, waiting = set(), {node}
        while waiting:
            component |= waiting
            waiting = {m for scope, _ in factors if component & set(scope) for m in scope} - component
        reached |= component
        total += logsumexp(message(node, frozenset()))
    return total


@pytest.mark.parametrize("shape", [chain, tree, polytree], ids=lambda shape: shape.__name__)
def test_forty_hidden_nodes_are_easy(shape, rng):
    network = shape(40)
    fast = FastNetwork(network, uniform_prior(network))
    columns = tuple(f"y{k}" for k in range(40))
    data = Data(columns, rng.integers(-1, 2, size=(6, 40)))
    program = fast.program(data)
    assert program.treewidth <= 3
    log_theta = {node: np.log(table) for node, table in random_tables(rng, network).items()}
    found = fast.model.expect(fast.flat(log_theta)[:, None], program)
    rows = [row for row, _ in data.rows()]
    exact = [sum_by_messages(network, log_theta, row) for row in rows]
    assert found.log_normalizer[0] == approx(sum(exact), rel=1e-12)
    counts = fast.tables(found.statistics[:, 0])
    for node in ("h0", "h1", "h7", "h20", "h39"):
        counted = [
            (row, z) for row, z in zip(rows, exact) if node in network.ancestral(row)
        ]  # pruned where it has no say
        for parents in np.ndindex(network.shape(node)[:-1]):
            clamped = dict(zip((*network.parents[node], node), (*parents, 1)))
            shares = [np.exp(sum_by_messages(network, log_theta, row, clamped) - z) for row, z in counted]
            assert counts[node][(*parents, 1)] == approx(sum(shares), abs=1e-10)


def test_a_chain_is_forward_and_backward(rng):
    """Four hundred steps of a hidden chain, three states: the textbook recursions."""
    n, k = 400, 3
    parents = {f"h{t}": (f"h{t - 1}",) if t else () for t in range(n)} | {f"y{t}": (f"h{t}",) for t in range(n)}
    network = Network({node: k if node[0] == "h" else 2 for node in parents}, parents)
    fast = FastNetwork(network, uniform_prior(network))
    tables = random_tables(rng, network)
    row = rng.integers(0, 2, size=n)
    data = Data(tuple(f"y{t}" for t in range(n)), row[None])
    emitted = [tables[f"y{t}"][:, row[t]] for t in range(n)]
    forward, backward, log_z = [tables["h0"] * emitted[0]], [np.ones(k)], 0.0
    for t in range(1, n + 1):
        log_z += np.log(forward[-1].sum())
        forward[-1] = forward[-1] / forward[-1].sum()
        if t < n:
            forward.append(forward[-1] @ tables[f"h{t}"] * emitted[t])
    for t in range(n - 1, 0, -1):
        beta = tables[f"h{t}"] @ (emitted[t] * backward[0])
        backward.insert(0, beta / beta.sum())
    found = fast.model.expect(fast.flat({node: np.log(t) for node, t in tables.items()})[:, None], fast.program(data))
    assert found.log_normalizer[0] == approx(log_z, rel=1e-12)
    counts = fast.tables(found.statistics[:, 0])
    for t in (1, 2, 137, 399):
        pair = forward[t - 1][:, None] * tables[f"h{t}"] * (emitted[t] * backward[t])
        assert counts[f"h{t}"] == approx(pair / pair.sum(), abs=1e-10)


def test_complete_rows_need_no_contraction(rng):
    for _ in range(10):
        network, data, prior = random_problem(rng, max_hidden=0, missing_rate=0.0)
        fast = FastNetwork(network, prior)
        program = fast.program(data)
        assert program.contraction.n_contexts == 0
        assert program.treewidth == 0
        assert program.total_weight == (len(data.cells) if data.weights is None else data.weights.sum())
        assert len(rows_of(data)) <= len(data.cells)
