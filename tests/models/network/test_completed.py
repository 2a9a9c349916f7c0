"""Rows completed by q(x): that q is the one of the E step, and that it bounds the evidence of every network."""

import numpy as np
import pytest
from bridge import FastNetwork, rows_of
from reference import discrete_network as literal
from reference.discrete_network import Data, Network, uniform_prior
from reference.random_networks import leading_rows, random_counts, random_data, random_network, random_prior
from scipy.special import xlogy

from skvbem.data import Rows
from skvbem.errors import TooLargeError
from skvbem.models.network import completed_rows
from skvbem.models.network.completed_rows import complete_rows

approx = pytest.approx


def completed_at_random(rng, missing_rate=0.2, max_completions=2**9):
    """A network, its data and rows completed by it, with counts far from any fit."""
    network, columns = random_network(rng, int(rng.integers(3, 6)), n_hidden=int(rng.integers(0, 3)))
    data = random_data(rng, network, columns, 12, missing_rate, max_weight=3)
    data = leading_rows(network, Data(data.columns, data.cells, np.maximum(data.weights, 1)), max_completions)
    if len(data.cells) == 0:
        return completed_at_random(rng, missing_rate, max_completions)
    fast = FastNetwork(network, random_prior(rng, network))
    counts = fast.flat(random_counts(rng, network))
    return network, data, fast, counts, complete_rows(fast.model, counts, rows_of(data))


def literal_q(completed):
    """The same q(x), as the definitions take it."""
    names = list(completed.cardinalities)
    rows = [[] for _ in completed.row_weight]
    for codes, row, weight in zip(completed.codes.T.tolist(), completed.row, completed.weight):
        rows[row].append((dict(zip(names, codes)), weight / completed.row_weight[row]))
    return list(zip(completed.row_weight, rows))


def test_q_is_that_of_the_e_step(rng):
    """Of the nodes that the E step keeps; the others follow their mean tables, so that q of each row sums to one."""
    for _ in range(40):
        network, data, fast, counts, completed = completed_at_random(rng, rng.choice([0.0, 0.3]))
        posterior = fast.model.prior + counts
        q = literal.latent_posterior(network, fast.tables(posterior.expected_natural()), data)
        q = [(weight, row) for weight, row in q if weight > 0]
        mean = fast.tables(posterior.mean())
        for (weight, row), (own_weight, own) in zip(q, literal_q(completed), strict=True):
            assert weight == own_weight
            for completion, probability in own:
                kept = {node: completion[node] for node in row[0][0]}
                expected = next(p for other, p in row if other == kept)
                for node in completion.keys() - kept.keys():
                    expected *= mean[node][network.cell(node, completion)]
                assert probability == approx(expected, rel=1e-9)
            assert sum(probability for _, probability in own) == approx(1.0, rel=1e-12)


def test_counts_and_entropy_by_definition(rng):
    for _ in range(20):
        network, _, fast, _, completed = completed_at_random(rng)
        q = literal_q(completed)
        assert completed.entropy == approx(literal.entropy(q), rel=1e-11, abs=1e-12)
        assert completed.statistics(fast.model) == approx(fast.flat(literal.expected_counts(network, q)), abs=1e-11)


def other_network(rng, network):
    """Other edges over the same nodes."""
    order = rng.permutation(list(network.cards)).tolist()
    parents = {node: tuple(order[:k][-int(rng.integers(3)) :][: rng.integers(3)]) for k, node in enumerate(order)}
    return Network(network.cards, parents)


def bound(completed, fast):
    """H(q) + ln BD of another network."""
    return completed.entropy + float(fast.model.prior.log_normalizer_increment(completed.statistics(fast.model)))


def check_bound(completed, network, data, prior):
    fast = FastNetwork(network, prior)
    found = bound(completed, fast)
    assert found == approx(literal.lower_bound(network, prior, literal_q(completed)), rel=1e-10)
    exact = literal.exact_log_evidence(network, data, prior)
    assert found <= exact + 1e-9 * abs(exact)
    return exact - found


def test_one_q_bounds_the_evidence_of_every_network(rng):
    """By enumeration of all completions, and to the definition of the bound."""
    gaps = []
    for _ in range(25):
        network, data, _, _, completed = completed_at_random(rng, rng.choice([0.0, 0.2]))
        for _ in range(3):
            other = other_network(rng, network)
            gaps.append(check_bound(completed, other, data, random_prior(rng, other)))
    assert max(gaps) > 1.0
    assert min(gaps) < 1e-6  # nothing hidden: the evidence itself


def test_states_merged_and_split_and_nodes_that_come_and_go_keep_the_bound(rng):
    for _ in range(20):
        network, columns = random_network(rng, 4, n_hidden=2, max_card=3)
        data = leading_rows(network, random_data(rng, network, columns, 8, 0.1), 2**8)
        fast = FastNetwork(network, uniform_prior(network))
        completed = complete_rows(fast.model, fast.flat(random_counts(rng, network)), rows_of(data))
        size = network.cards["h0"]
        kept, given_up = rng.permutation(size)[:2]
        split = completed.split("h0", int(kept), rng.uniform(0.05, 0.95, len(completed.weight)))
        changed = {
            "merged": (completed.merged("h0", int(kept), int(given_up)), {**network.cards, "h0": size - 1}),
            "split": (split, {**network.cards, "h0": size + 1}),
            "without": (completed.without("h0"), {n: c for n, c in network.cards.items() if n != "h0"}),
            "constant": (completed.with_constant("h9"), {**network.cards, "h9": 1}),
        }
        for after, cards in changed.values():
            assert dict(after.cardinalities) == cards
            assert after.weight.sum() == approx(completed.weight.sum(), rel=1e-12)
            network_after = Network(cards, dict.fromkeys(cards, ()))
            other = other_network(rng, network_after)
            few = leading_rows(other, data, 2**10)
            if len(few.cells) == len(data.cells):
                check_bound(after, other, data, uniform_prior(other))
        for node in columns:
            assert all(after.counts((node,)) == approx(completed.counts((node,))) for after, _ in changed.values())
        again = split.merged("h0", int(kept), size)
        assert again.entropy == approx(completed.entropy, rel=1e-10, abs=1e-10)
        assert again.counts(("h0", "h1")) == approx(completed.counts(("h0", "h1")), abs=1e-12)
        assert split.entropy > completed.entropy - 1e-12  # which state of two is not known


def test_merging_follows_the_numbers_of_states():
    network = Network({"h": 4, "y": 2}, {"h": (), "y": ("h",)})
    fast = FastNetwork(network, uniform_prior(network))
    completed = complete_rows(fast.model, np.arange(12.0), Rows(("y",), np.array([[0], [1]])))
    before = completed.counts(("h",))
    assert completed.merged("h", 1, 3).counts(("h",)) == approx([before[0], before[1] + before[3], before[2]])
    assert completed.merged("h", 3, 0).counts(("h",)) == approx([before[1], before[2], before[3] + before[0]])


def test_nothing_hidden():
    network = Network({"x": 2, "y": 3}, {"x": (), "y": ("x",)})
    fast = FastNetwork(network, uniform_prior(network))
    rows = Rows(("x", "y"), np.array([[0, 2], [1, 1], [0, 2]]), np.array([1.0, 2.5, 1.0]))
    completed = complete_rows(fast.model, np.zeros(8), rows)
    assert completed.entropy == 0.0
    assert completed.counts(("x", "y")).tolist() == [[0, 0, 2], [0, 2.5, 0]]


def test_what_is_too_large_is_refused_before_it_is_made():
    cards = {f"h{k}": 50 for k in range(8)} | {"y": 2}
    network = Network({**cards}, {**dict.fromkeys(cards, ()), "y": ("h0",)})
    fast = FastNetwork(network, uniform_prior(network))
    rows, counts = Rows(("y",), np.zeros((3, 1), dtype=int)), np.zeros(fast.model.layout.n_cells)
    with pytest.raises(TooLargeError, match="'max_memory' allows 1e"):
        complete_rows(fast.model, counts, rows, max_memory=1e4)
    completed = complete_rows(fast.model, counts, rows)  # of 3.9e13 joint states of each row
    assert len(completed.weight) <= 3 * 64
    assert completed.weight.sum() == approx(3.0)


def test_improbable_joint_states_of_many_are_left_out(rng, monkeypatch):
    """What is left is a q(x) all the same, and bounds what any q(x) bounds; the more is left the better."""
    network, columns = random_network(rng, 5, n_hidden=3, max_card=3)
    data = leading_rows(network, random_data(rng, network, columns, 10, 0.3), 2**9)
    fast = FastNetwork(network, uniform_prior(network))
    counts, prior = fast.flat(random_counts(rng, network)), uniform_prior(network)
    whole = complete_rows(fast.model, counts, rows_of(data))
    for kept, share in ((4, 1e-9), (1, 1e-9), (0, 0.3)):
        monkeypatch.setattr(completed_rows, "_MAX_STATES_KEPT", kept or 2)
        monkeypatch.setattr(completed_rows, "_LOWEST_LOG_WEIGHT", np.log(share))
        some = complete_rows(fast.model, counts, rows_of(data))
        assert len(some.weight) < len(whole.weight)
        assert np.bincount(some.row, some.weight) == approx(np.bincount(whole.row, whole.weight), rel=1e-12)
        check_bound(some, network, data, prior)
        for row in range(len(whole.row_weight)):
            mine, all_of_row = some.row == row, whole.row == row
            best = whole.codes[:, all_of_row][:, np.argmax(whole.weight[all_of_row])]
            if share > 0.1:
                shares = whole.weight[all_of_row] / whole.weight[all_of_row].max()
                assert mine.sum() <= max((shares > share).sum(), 1) or all_of_row.sum() <= 2
            assert (some.codes[:, mine] == best[:, None]).all(axis=0).any() or kept == 1


def test_entropy_is_zero_times_log_zero_safe():
    """States of probability zero are left out, and none is lost."""
    network = Network({"h": 2, "y": 2}, {"h": (), "y": ("h",)})
    fast = FastNetwork(network, {"h": [1e-300, 1.0], "y": [[1.0, 1.0], [1.0, 1.0]]})
    data = Data(("y",), np.zeros((2, 1), dtype=int), None)
    completed = complete_rows(fast.model, np.zeros(6), rows_of(data))
    assert np.isfinite(completed.entropy)
    assert completed.weight.sum() == approx(2.0)
    assert (xlogy(completed.weight, completed.weight) <= 0).all()
