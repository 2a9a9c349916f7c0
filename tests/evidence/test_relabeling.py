"""Sums over relabelings against relabelings made one by one, and what they put right: weights of every labeling."""

import itertools
import math

import numpy as np
import pytest
from bridge import FastNetwork, rows_of
from evidence.evaluations import evaluate, evaluation_of
from reference import facts
from reference.discrete_network import Data, Network, Problem, log_likelihood, uniform_prior
from reference.random_networks import random_counts, random_data, random_network, random_tables
from reference.sampling import log_permanent, relabelings
from scipy import stats
from scipy.special import logsumexp

from skvbem.evidence.ais import anchored_ais
from skvbem.evidence.exact import exact
from skvbem.evidence.starts import Starts, make_starts
from skvbem.models import capabilities_of
from skvbem.models import relabelings as relabelings_module

# A schedule of inverse temperatures.
ONE_STEP = np.array([0.0, 1.0])

approx = pytest.approx
LC2 = facts.latent_class(2, (2, 2, 2))
LC3 = facts.latent_class(3, (2, 2))


def some_networks(rng, n, max_hidden=3):
    """Networks with hidden nodes anywhere, under priors that tell all, some or no states apart."""
    for k in range(n):
        n_hidden = int(rng.integers(1, max_hidden + 1))
        network, columns = random_network(rng, n_hidden + int(rng.integers(1, 4)), 3, n_hidden)
        prior = uniform_prior(network, 1.5)
        if k % 3 == 0:
            prior["h0"] = prior["h0"] + (np.arange(network.cards["h0"]) == 0)
        yield network, columns, prior


def of_both(network, columns, prior):
    """The relabelings of the network, and all of them one by one as functions of flat arrays (n_cells,)."""
    fast = FastNetwork(network, prior)
    found = capabilities_of(fast.model).relabelings.relabelings([node for node in network.cards if node not in columns])
    listed = [lambda flat, g=g: fast.flat(g(fast.tables(flat))) for g in relabelings(network, columns, prior)]
    return fast, found, listed


# --- what they are ----------------------------------------------------------------------------------------------------


def test_sums_over_relabelings(rng):
    kinds = set()
    for network, columns, prior in some_networks(rng, 60):
        fast, found, listed = of_both(network, columns, prior)
        kinds.add(type(found).__name__)
        assert found.n == len(listed)
        statistics = np.stack([fast.flat(random_counts(rng, network)) for _ in range(2)])
        points = np.log(fast.lanes(*(random_tables(rng, network) for _ in range(3))))
        expected = [[logsumexp([n @ g(p) for g in listed]) for p in points.T] for n in statistics]
        assert found.log_sums(statistics, points) == approx(np.array(expected), rel=1e-12)
    assert kinds == {"ListedRelabelings", "StateRelabelings"}


def test_data_do_not_see_a_relabeling(rng):
    for network, columns, prior in some_networks(rng, 20):
        fast, _, listed = of_both(network, columns, prior)
        data = random_data(rng, network, columns, 6, missing_rate=0.2)
        tables = random_tables(rng, network)
        point = np.log(fast.flat(tables))
        values = capabilities_of(fast.model).points.log_likelihoods(
            fast.program(data), np.stack([g(point) for g in listed], axis=1)
        )
        expected = log_likelihood(network, {node: np.log(t) for node, t in tables.items()}, data)
        assert values == approx(expected, rel=1e-11)


@pytest.mark.parametrize("n_states", [2, 3, 5])
def test_permanents_are_the_sums_over_permutations(n_states, rng):
    """Over subsets of states and one by one; of the states alone, and with cells that no state has a part in."""
    network = facts.latent_class(n_states, (3, 2))
    network = Network({**network.cards, "z": 2}, {**network.parents, "z": ("y0",)})
    fast = FastNetwork(network, uniform_prior(network))
    by_subsets = capabilities_of(fast.model).relabelings.relabelings(["c"])
    assert isinstance(by_subsets, relabelings_module.StateRelabelings)
    assert by_subsets.n == math.factorial(n_states)
    orders = itertools.permutations(range(n_states))
    cells = np.tile(np.arange(fast.model.layout.n_cells), (by_subsets.n, 1))
    for row, order in zip(cells, orders):
        row[by_subsets.cells] = by_subsets.cells[list(order)]
    one_by_one = relabelings_module.ListedRelabelings(cells)
    statistics = rng.exponential(5.0, size=(3, len(cells[0])))
    points = capabilities_of(fast.model).points.draw_points(
        np.repeat(1.0 - fast.model.prior.concentration[:, None], 4, 1), rng.integers(0, 2**64, (4, 4), dtype=np.uint64)
    )
    assert by_subsets.log_sums(statistics, points) == approx(one_by_one.log_sums(statistics, points), rel=1e-13)
    entries = rng.normal(size=(n_states, n_states)) * 30
    assert relabelings_module._log_permanents(entries)[-1] == approx(log_permanent(entries), rel=1e-13)


def test_sums_are_the_same_in_pieces(rng, monkeypatch):
    for n_states, parents in ((4, None), (2, ("12", "1", "12"))):
        network = facts.latent_class(4, (2, 2)) if parents is None else facts.bipartite(parents, (2, 2, 2))
        hidden = [v for v in network.cards if not v.startswith("y")]
        found = capabilities_of(FastNetwork(network, uniform_prior(network)).model).relabelings.relabelings(hidden)
        assert found.n == (math.factorial(n_states) if parents is None else 4)
        n_cells = sum(np.size(t) for t in network.full(0.0).values())
        statistics, points = rng.exponential(size=(3, n_cells)), np.log(rng.random((n_cells, 7)))
        whole = found.log_sums(statistics, points)
        with monkeypatch.context() as patch:
            patch.setattr(relabelings_module, "_CHUNK", 60)
            assert found.log_sums(statistics, points) == approx(whole, rel=1e-13)


def test_what_has_no_observed_descendant_is_left_alone(rng):
    """Two alike hidden nodes of which one has a hidden child that nobody sees still trade places."""
    cards = {"s": 2, "t": 2, "z": 3, "y0": 2, "y1": 2}
    network = Network(cards, {"s": (), "t": (), "z": ("s",), "y0": ("s", "t"), "y1": ("s", "t")})
    fast, found, listed = of_both(network, ("y0", "y1"), uniform_prior(network))
    assert found.n == len(listed) == 8
    assert math.exp(capabilities_of(fast.model).relabelings.log_n_relabelings(["s", "t", "z"])) == approx(8)
    point = np.log(fast.flat(random_tables(rng, network)))
    assert all(np.array_equal(fast.tables(g(point))["z"], fast.tables(point)["z"]) for g in listed)
    alone = Network({"z": 3, "y0": 2}, {"z": ("y0",), "y0": ()})
    assert of_both(alone, ("y0",), uniform_prior(alone))[1].n == 1


# --- what they put right ----------------------------------------------------------------------------------------------


def test_the_correction_averages_to_one_over_the_relabelings_of_any_point(rng):
    for network, columns, prior in some_networks(rng, 40):
        fast, found, listed = of_both(network, columns, prior)
        anchor = fast.flat(random_counts(rng, network))
        point = np.log(fast.flat(random_tables(rng, network)))
        h = np.exp(found.correction(anchor, np.stack([g(point) for g in listed], axis=1)))
        assert h.mean() == approx(1.0, rel=1e-12)
        densities = np.array([np.exp(anchor @ g(point) - anchor @ point) for g in listed])
        assert h == approx(len(listed) * densities / densities.sum(), rel=1e-10)


def test_parts_of_all_starts_average_to_one_over_the_relabelings_of_any_point(rng):
    """With the prior among the starts or without; so weights times parts add up to the evidence."""
    for k, (network, columns, prior) in enumerate(some_networks(rng, 30)):
        fast, found, listed = of_both(network, columns, prior)
        fractions = np.array([0.5, 0.5, 0.25] + [0.0] * (k % 2))
        statistics = np.stack([fraction * fast.flat(random_counts(rng, network)) for fraction in fractions])
        starts = Starts(fast.model.prior, fractions, statistics, found)
        point = np.log(fast.flat(random_tables(rng, network)))
        relabeled = np.stack([g(point) for g in listed], axis=1)
        parts = [np.exp(starts.log_parts(np.full(len(listed), a), relabeled, ONE_STEP)) for a in range(len(fractions))]
        assert np.sum(parts) / len(listed) == approx(1.0, rel=1e-11)
        densities = [(fast.model.prior + n).log_density(np.exp(relabeled), basis="probability") for n in statistics]
        bars = [logsumexp(d) - math.log(len(listed)) for d in densities]
        assert np.log(parts) == approx(np.array(densities) - logsumexp(bars), rel=1e-9, abs=1e-9)


def test_relabelings_are_drawn_in_proportion(rng):
    for network, columns, prior in some_networks(rng, 12):
        fast, found, listed = of_both(network, columns, prior)
        if not 1 < found.n <= 24:
            continue
        anchor = fast.flat(random_counts(rng, network, scale=0.7))
        point = np.log(fast.flat(random_tables(rng, network)))
        candidates = [g(point) for g in listed]
        log_p = np.array([anchor @ candidate for candidate in candidates])
        expected = 300 * np.exp(log_p - logsumexp(log_p))
        observed = np.zeros(found.n)
        for _ in range(300):
            drawn = found.draw(anchor, point, rng)
            observed[np.argmin([np.abs(drawn - candidate).max() for candidate in candidates])] += 1
        common = expected > 5
        statistic = ((observed - expected)[common] ** 2 / expected[common]).sum()
        assert common.sum() < 2 or stats.chi2.sf(statistic, common.sum()) > 1e-4
        assert observed[~common].sum() <= 6 + 4 * expected[~common].sum()


def test_picks_in_turn_stand_for_many_relabelings(rng, monkeypatch):
    """h averages to one over the relabelings of any point, without a sum over them."""
    network = facts.latent_class(4, (3, 2))
    with monkeypatch.context() as patch:
        patch.setattr(relabelings_module, "_MAX_SUMMED_STATES", 3)
        fast, found, listed = of_both(network, ("y0", "y1"), uniform_prior(network))
    assert isinstance(found, relabelings_module.SequentialRelabelings)
    assert (found.n, found.cost) == (24, math.inf)
    anchor = fast.flat(random_counts(rng, network))
    point = np.log(fast.flat(random_tables(rng, network)))
    relabeled = np.stack([g(point) for g in listed], axis=1)
    assert np.exp(found.correction(anchor, relabeled)).mean() == approx(1.0, rel=1e-11)
    starts = Starts(fast.model.prior, np.array([0.5, 0.0]), np.stack([anchor, 0 * anchor]), found)
    parts = [np.exp(starts.log_parts(np.full(24, a), relabeled, ONE_STEP)) for a in (0, 1)]
    assert np.sum(parts) / 24 == approx(1.0, rel=1e-11)


def test_as_many_states_as_a_class_may_have(rng):
    network = facts.latent_class(20, (2, 2, 2))
    fast, data = FastNetwork(network, uniform_prior(network)), facts.TWENTY_ROWS
    found = capabilities_of(fast.model).relabelings.relabelings(["c"])
    assert (found.n, found.cost) == (math.factorial(20), math.inf)
    evaluation = evaluate(fast.model, rows_of(data), ["c"], n_init=2, tol=1e-3)
    assert np.isfinite(anchored_ais(evaluation, n_chains=8, n_steps=4, fractions=(0.0,)).value)
    points = np.log(fast.lanes(random_tables(rng, network)))
    assert found.correction(fast.flat(random_counts(rng, network)), points).shape == (1,)


def test_too_many_relabelings_of_several_nodes_are_said_to_be_too_many():
    network = Network({"s": 8, "t": 7, "y": 2}, {"s": (), "t": ("s",), "y": ("t",)})
    model = FastNetwork(network, uniform_prior(network)).model
    assert capabilities_of(model).relabelings.relabelings(["s", "t"]) is None
    data = Data(("y",), np.array([[0], [1], [1]]))
    evaluation = evaluate(model, rows_of(data), ["s", "t"], n_init=2, tol=1e-3)
    found = anchored_ais(evaluation, n_steps=64)
    assert any("ais: hidden nodes have too many relabelings to correct for" in doubt for doubt in found.doubts)
    assert found.details["n_relabelings"] is None
    # so few rows tell no relabelings apart
    assert found.value == approx(exact(evaluation).value, abs=4 * found.standard_error)


# --- in weights -------------------------------------------------------------------------------------------------------


SYMMETRIC = [fact for fact in facts.EVIDENCES if fact.name in ("twenty rows, LC(2)", "six rows, LC(3)")]


@pytest.mark.parametrize("fact", SYMMETRIC, ids=lambda fact: fact.name)
def test_every_labeling_is_counted_once(fact):
    """Chains that seldom leave the labeling they start from; uncorrected their mean is too low by up to ln S."""
    evaluation = evaluation_of(Problem(fact.network, fact.data, fact.prior), n_init=10)
    found = anchored_ais(evaluation, n_chains=4000, n_steps=64, fractions=(0.75,), n_fits=1)
    (stratum,) = found.details["strata"]
    assert found.standard_error < 0.06
    assert found.value == approx(fact.log_value, abs=3.5 * found.standard_error)
    assert found.details["n_relabelings"] == math.factorial(fact.network.cards["c"])
    h = np.exp(stratum.log_weights - stratum.trace[-1])
    assert h.min() > 0
    assert h.max() <= math.factorial(fact.network.cards["c"]) + 1e-9
    weights = np.exp(stratum.trace[-1] - fact.log_value)
    assert 0.3 < weights.mean() < 1.5


def test_no_fit_has_labels_if_nothing_is_hidden():
    network = Network({"y0": 2, "y1": 2}, {"y0": (), "y1": ("y0",)})
    starts = make_starts(evaluation_of(Problem(network, facts.SIX_ROWS, uniform_prior(network))), (0.5, 0.0), 8)
    assert len(starts) == starts.n_relabelings == 1
