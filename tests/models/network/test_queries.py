"""Questions about hidden parts of rows, against sums over completions."""

import itertools
import math

import numpy as np
import pytest
from bridge import FastNetwork, rows_of
from reference import discrete_network as literal
from reference import facts
from reference.discrete_network import MISSING, Data, Network, uniform_prior
from reference.random_networks import random_data, random_network, random_tables

from skvbem.data import Rows
from skvbem.errors import DataWarning
from skvbem.models.network import queries

approx = pytest.approx


def problems(rng, n, **sizes):
    """Networks with random tables, and rows with missing cells, wholly missing ones among them."""
    for _ in range(n):
        n_nodes = int(rng.integers(1, 7))
        network, columns = random_network(rng, n_nodes, n_hidden=int(rng.integers(min(3, n_nodes))), **sizes)
        data = random_data(rng, network, columns, 8, missing_rate=rng.choice([0.0, 0.3, 0.8]))
        data.cells[-1] = MISSING
        tables = random_tables(rng, network)
        fast = FastNetwork(network, uniform_prior(network))
        yield fast, fast.flat(tables), data, tables


def rows(data):
    return [row for row, _ in data.rows()]


def test_log_likelihood_of_each_row(rng):
    for fast, point, data, tables in problems(rng, 100):
        found = queries.log_likelihood(fast.model, point, rows_of(data))
        exact = [math.log(literal.predictive_probability(fast.network, tables, row)) for row in rows(data)]
        assert found == approx(exact, abs=1e-11)


def test_marginals_of_all_nodes(rng):
    for fast, point, data, tables in problems(rng, 100):
        nodes = [*fast.network.cards]
        found = queries.marginals(fast.model, point, rows_of(data), nodes)
        for i, row in enumerate(rows(data)):
            for node, expected in literal.marginals(fast.network, tables, row).items():
                assert found[node][i] == approx(expected, abs=1e-11)


def test_joint_of_several_hidden_nodes(rng):
    """In the order asked for, of nodes near and far apart."""
    for fast, point, data, tables in problems(rng, 60):
        hidden = [node for node in fast.network.cards if node not in data.columns]
        if not hidden:
            continue
        for wanted in itertools.permutations(hidden):
            found = queries.joint(fast.model, point, rows_of(data), wanted)
            for i, row in enumerate(rows(data)):
                expected = np.zeros([fast.network.cards[node] for node in wanted])
                for completion, p in literal.row_posterior(fast.network, literal.logs(tables), row, prune=False):
                    expected[tuple(completion[node] for node in wanted)] += p
                assert found[i] == approx(expected, abs=1e-11)


def test_joint_mode_is_the_most_probable_completion(rng):
    for fast, point, data, tables in problems(rng, 100):
        found = queries.joint_mode(fast.model, point, rows_of(data), [*fast.network.cards])
        for i, row in enumerate(rows(data)):
            _, probability = literal.joint_mode(fast.network, tables, row)
            completion = {node: int(codes[i]) for node, codes in found.items()}
            assert completion.items() >= row.items()
            evidence = literal.predictive_probability(fast.network, tables, row)
            reached = literal.predictive_probability(fast.network, tables, completion) / evidence
            assert reached == approx(probability, rel=1e-9)


def test_joint_mode_of_some_nodes_sees_the_missing_cells_that_bear_on_them(rng):
    """The mode of the latents together with what is missing between them and what was seen."""
    for fast, point, data, tables in problems(rng, 40):
        latents = [node for node in fast.network.cards if node not in data.columns]
        if not latents:
            continue
        found = queries.joint_mode(fast.model, point, rows_of(data), latents)
        for i, row in enumerate(rows(data)):
            kept = fast.network.ancestral({*row, *latents})
            part = Network(
                {node: card for node, card in fast.network.cards.items() if node in kept},
                {node: parents for node, parents in fast.network.parents.items() if node in kept},
            )
            _, probability = literal.joint_mode(part, tables, row)
            fixed = {node: int(found[node][i]) for node in latents}
            best = max(
                p
                for completion, p in literal.row_posterior(part, literal.logs(tables), row, prune=False)
                if all(completion[node] == state for node, state in fixed.items())
            )
            assert best == approx(probability, rel=1e-9)


def test_ties_of_the_joint_mode_go_to_lower_states():
    network = facts.latent_class(3, (2,))
    fast = FastNetwork(network, uniform_prior(network))
    even = fast.flat({"c": np.full(3, 1 / 3), "y0": np.full((3, 2), 0.5)})
    found = queries.joint_mode(fast.model, even, Rows(("y0",), np.array([[0], [-1]])), ["c"])
    assert found["c"].tolist() == [0, 0]


def test_probabilities_of_all_rows_sum_to_one(rng):
    for fast, point, data, _ in problems(rng, 40):
        every = [*itertools.product(*(range(fast.network.cards[column]) for column in data.columns))]
        scores = queries.log_likelihood(fast.model, point, Rows(data.columns, np.array(every)))
        assert math.fsum(np.exp(scores)) == approx(1, abs=1e-12)
        some_missing = np.array(every)
        some_missing[:, 0] = MISSING
        scores = queries.log_likelihood(fast.model, point, Rows(data.columns, some_missing))
        assert math.fsum(np.exp(scores)) == approx(fast.network.cards[data.columns[0]], abs=1e-11)


def test_a_row_without_observed_cells_has_probability_one(rng):
    for fast, point, data, _ in problems(rng, 20):
        nothing = Rows(data.columns, np.full((3, len(data.columns)), MISSING))
        assert queries.log_likelihood(fast.model, point, nothing).tolist() == [0.0] * 3
        assert queries.log_likelihood(fast.model, point, Rows((), np.zeros((2, 0), dtype=int))).tolist() == [0.0] * 2


@pytest.fixture
def certain():
    """A class that says what y0 is, and a y1 that is never 2."""
    network = facts.latent_class(2, (2, 3))
    tables = {"c": np.array([0.3, 0.7]), "y0": np.eye(2), "y1": np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])}
    fast = FastNetwork(network, uniform_prior(network))
    return fast, fast.flat(tables)


def test_impossible_rows_score_minus_infinity_and_are_asked_about_as_empty_ones(certain):
    fast, point = certain
    data = Rows(("y0", "y1"), np.array([[0, 0], [1, 1], [MISSING, 2], [1, 0], [MISSING, MISSING]]))
    scores = queries.log_likelihood(fast.model, point, data)
    assert scores == approx([np.log(0.15), -np.inf, -np.inf, np.log(0.7), 0])
    with pytest.warns(DataWarning, match="2 of 5 rows have probability 0 under the fit, the first at position 1"):
        classes = queries.marginals(fast.model, point, data, ["c"])["c"]
    assert classes == approx(np.array([[1, 0], [0.3, 0.7], [0.3, 0.7], [0, 1], [0.3, 0.7]]))
    with pytest.warns(DataWarning, match="2 of 5 rows"):
        assert queries.joint(fast.model, point, data, ["c"]) == approx(classes)
    with pytest.warns(DataWarning, match="2 of 5 rows"):
        modes = queries.joint_mode(fast.model, point, data, ["c"])["c"]
    assert modes[[0, 3, 4]].tolist() == [0, 1, 1]


def test_an_observed_cell_is_certain_even_in_an_impossible_row(certain):
    fast, point = certain
    data = Rows(("y0", "y1"), np.array([[1, 1], [1, MISSING]]))
    with pytest.warns(DataWarning, match="1 of 2 rows have probability 0"):
        found = queries.marginals(fast.model, point, data, ["y0", "y1"])
    assert found["y0"].tolist() == [[0, 1], [0, 1]]
    assert found["y1"].tolist() == [[0, 1, 0], [1, 0, 0]]


def test_impossible_complete_families_are_seen_as_well(certain):
    """The impossibility lies among observed nodes alone; the latent elsewhere still has no posterior."""
    network = Network({"a": 2, "b": 2, "c": 2, "d": 2}, {"a": (), "b": ("a",), "c": (), "d": ("c",)})
    fast = FastNetwork(network, uniform_prior(network))
    tables = {"a": np.array([1.0, 0.0]), "b": np.eye(2), "c": np.array([0.4, 0.6]), "d": np.full((2, 2), 0.5)}
    data = Rows(("a", "b", "d"), np.array([[0, 0, 1], [1, 1, 1], [0, 1, 1]]))
    point = fast.flat(tables)
    assert queries.log_likelihood(fast.model, point, data) == approx([np.log(0.5), -np.inf, -np.inf])
    with pytest.warns(DataWarning, match="2 of 3 rows have probability 0"):
        assert queries.marginals(fast.model, point, data, ["c"])["c"] == approx(np.tile([0.4, 0.6], (3, 1)))


def test_answers_in_chunks_are_the_same(rng, monkeypatch):
    """Posteriors are made a few contexts at a time where there are many."""
    for fast, point, data, _ in problems(rng, 20):
        program = fast.program(data, keep_rows=True, wanted=[*fast.network.cards])
        log_point = np.log(point)
        whole, pieces = (list(program.beliefs(log_point, chunk)) for chunk in (2**20, 1))
        assert sum(len(log_z) for _, _, log_z, _ in whole) == sum(len(log_z) for _, _, log_z, _ in pieces)
        if len(whole) == 0:
            continue
        assert len(pieces) == program.contraction.n_contexts
        for kind in (2, 3):
            ours = np.concatenate([part[kind].ravel() for part in pieces])
            assert ours == approx(np.concatenate([part[kind].ravel() for part in whole]), abs=1e-15)


def test_draws_have_the_probabilities_of_the_network(rng):
    network = Network({"y": 2, "h": 3, "z": 2, "w": 1}, {"y": ("h",), "h": (), "z": ("y", "h"), "w": ("z",)})
    fast = FastNetwork(network, uniform_prior(network))
    tables = random_tables(rng, network)
    n = 40_000
    drawn = queries.sample(fast.model, fast.flat(tables), n, rng)
    assert set(drawn) == set(network.cards)
    for completion in literal.completions(network, {}):
        p = literal.predictive_probability(network, tables, completion)
        share = np.mean(np.logical_and.reduce([drawn[node] == state for node, state in completion.items()]))
        assert share == approx(p, abs=4.5 * math.sqrt(p * (1 - p) / n))


def test_impossible_states_are_never_drawn(certain, rng):
    fast, point = certain
    drawn = queries.sample(fast.model, point, 5000, rng)
    assert np.array_equal(drawn["c"], drawn["y0"])
    assert drawn["y1"].max() <= 1


def test_many_columns_and_small_probabilities_do_not_underflow(rng):
    """A likelihood of e^-700 and less, and still exact posteriors."""
    n_columns = 300
    network = facts.latent_class(2, (50,) * n_columns)
    fast = FastNetwork(network, uniform_prior(network))
    tables = random_tables(rng, network)
    cells = rng.integers(0, 50, size=(4, n_columns))
    data = Data(tuple(network.cards)[1:], cells)
    by_class = np.log(tables["c"]) + sum(np.log(tables[f"y{j}"].T[cells[:, j]]) for j in range(n_columns))
    exact = np.logaddexp.reduce(by_class, axis=1)
    assert exact.max() < -1000
    assert queries.log_likelihood(fast.model, fast.flat(tables), rows_of(data)) == approx(exact, rel=1e-12)
    classes = queries.marginals(fast.model, fast.flat(tables), rows_of(data), ["c"])["c"]
    assert classes == approx(np.exp(by_class - exact[:, None]), abs=1e-10)
