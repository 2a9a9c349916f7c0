"""Draws of parameters and of hidden states against enumeration, and that the kernels they make keep the posterior.

Laws of a kernel: exact draws of (theta, y) are such draws after it as well [Geweke 2004], and the theta that made the
data has any rank among others that the kernel makes of it [Besag & Clifford 1989; Talts et al. 2018].
"""

import numpy as np
import pytest
from bridge import FastNetwork, rows_of
from evidence.evaluations import bipartite_network, drawn_rows, naive_bayes, uniform_model
from reference import facts
from reference.discrete_network import Data, Network, all_rows, counts_distribution, latent_posterior, uniform_prior
from reference.random_networks import random_problem, random_tables
from scipy import stats

from skvbem.data import Rows
from skvbem.graphs.dag import DAG
from skvbem.models import capabilities_of
from skvbem.models.network import queries

approx = pytest.approx
RARE = 1e-4


def streams_of(rng, n):
    return rng.integers(0, 2**64, size=(4, n), dtype=np.uint64)


def chi_square(observed, expected):
    """The p-value, values expected fewer than ten times together."""
    rare = expected < 10
    observed = np.append(observed[~rare], observed[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] < 10:
        assert observed[-1] < 40
        observed, expected = observed[:-1], expected[:-1]
    if len(expected) < 2:
        return 1.0
    return stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1)


# --- hidden states ----------------------------------------------------------------------------------------------------


def check_draws(fast, data, natural, rng, n_draws=2000):
    """Whole vectors of complete-data counts, as often as q(x) says."""
    program = fast.program(data)
    drawn = capabilities_of(fast.model).annealing.sample_latent(
        np.repeat(natural[:, None], n_draws, axis=1), program, streams_of(rng, n_draws)
    )
    q = latent_posterior(fast.network, fast.tables(natural), data)
    distribution = counts_distribution(fast.network, q)
    position = {counts: k for k, counts in enumerate(distribution)}
    found, times = np.unique(drawn, axis=1, return_counts=True)
    observed = np.zeros(len(position))
    for column, n in zip(found.T, times):
        counts = {node: table.round().astype(int) for node, table in fast.tables(column).items()}
        observed[position[tuple(all_rows(fast.network, counts))]] += n
    assert chi_square(observed, n_draws * np.array([*distribution.values()])) > RARE


def test_hidden_states(rng):
    """Hidden nodes anywhere, missing cells, weights: trees of cliques, and several parts of a row."""
    n = 0
    while n < 30:
        network, data, prior = random_problem(rng, 2**7, max_nodes=7, max_hidden=4, missing_rate=0.3, max_rows=5)
        if not len(data.cells):
            continue
        n += 1
        fast = FastNetwork(network, prior)
        check_draws(fast, data, np.log(fast.flat(random_tables(rng, network))), rng)


def test_hidden_states_of_a_tree_of_cliques(rng):
    """A chain of hidden nodes, each with one that is seen; natural parameters that are not normalized."""
    network = Network(
        {"a": 2, "b": 3, "c": 2, "y0": 2, "y1": 2, "y2": 2},
        {"a": (), "b": ("a",), "c": ("b",), "y0": ("a",), "y1": ("b",), "y2": ("c",)},
    )
    data = Data(("y0", "y1", "y2"), np.array([[0, 1, 1], [1, 1, 0]]), np.array([1, 2]))
    fast = FastNetwork(network, uniform_prior(network))
    check_draws(fast, data, rng.normal(-1.0, 1.5, fast.model.layout.n_cells), rng, 20_000)


def test_hidden_states_where_products_leave_the_doubles(rng):
    """Potentials of e^-1000: contexts redone with logarithms, in one clique and in several."""
    for parents in ({"c": (), "y0": ("c",), "y1": ("c",)}, {"c": (), "d": ("c",), "y0": ("c",), "y1": ("d",)}):
        network = Network({**dict.fromkeys(parents, 2)}, parents)
        data = Data(("y0", "y1"), np.array([[0, 1], [1, 1]]), np.array([2, 1]))
        fast = FastNetwork(network, uniform_prior(network))
        check_draws(fast, data, rng.normal(-1000.0, 1.5, fast.model.layout.n_cells), rng, 20_000)


@pytest.mark.parametrize("weight", [64, 65, 1000])
def test_rows_that_count_many_times(weight, rng):
    """Drawn one by one or by binomials: each completion's number is binomial."""
    network = facts.latent_class(3, (2, 2))
    fast = FastNetwork(network, uniform_prior(network))
    data = Data(("y0", "y1"), np.array([[0, 1]]), np.array([weight]))
    natural = np.log(fast.flat(random_tables(rng, network)))
    lanes = np.repeat(natural[:, None], 20_000, axis=1)
    drawn = fast.model.tables(
        capabilities_of(fast.model).annealing.sample_latent(lanes, fast.program(data), streams_of(rng, 20_000))
    )["c"]
    ((_, of_row),) = latent_posterior(network, fast.tables(natural), data)
    for state, (_, p) in enumerate(of_row):
        expected = 20_000 * stats.binom(weight, p).pmf(np.arange(weight + 1))
        observed = np.bincount(drawn[state].astype(int), minlength=weight + 1)
        assert chi_square(observed, expected) > RARE


def test_draws_of_a_lane_do_not_depend_on_other_lanes(rng):
    """Not even where these leave the doubles."""
    for _ in range(15):
        network, data, prior = random_problem(rng, 2**10, max_nodes=7, max_hidden=3, missing_rate=0.3)
        fast = FastNetwork(network, prior)
        program, streams = fast.program(data), streams_of(rng, 4)
        natural = -rng.random((fast.model.layout.n_cells, 4)) * np.array([2.0, 1500.0, 30.0, 400.0])
        before = streams.copy()
        together = capabilities_of(fast.model).annealing.sample_latent(natural, program, streams)
        for lane in range(4):
            alone = np.ascontiguousarray(before[:, [lane]])
            found = capabilities_of(fast.model).annealing.sample_latent(
                np.ascontiguousarray(natural[:, [lane]]), program, alone
            )
            assert np.array_equal(found[:, 0], together[:, lane])
            assert np.array_equal(alone[:, 0], streams[:, lane])


# --- the kernel -------------------------------------------------------------------------------------------------------

MODELS = {
    "latent classes": (naive_bayes(2, 3, concentration=0.7), ("c",), 8),
    "two latents": (bipartite_network(("1", "12", "2"), (2, 3, 2)), ("s1", "s2"), 10),
    "a chain of latents": (
        uniform_model(
            DAG(["a", "b", "y", "z"], {"b": ["a"], "y": ["a"], "z": ["b", "y"]}), dict.fromkeys("abyz", 2), 0.5
        ),
        ("a", "b"),
        12,
    ),
}


def exact_pair(model, hidden, n_rows, rng):
    """ln theta drawn from the prior and rows drawn at theta, cells of the last column missing in every third."""
    theta = model.prior.sample(rng)
    drawn = queries.sample(model, theta, n_rows, rng)
    columns = tuple(node for node in model.dag.nodes if node not in hidden)
    codes = np.stack([drawn[node] for node in columns], axis=1).astype(np.int8)
    codes[::3, -1] = -1
    return np.log(np.maximum(theta, 1e-300)), model.compile(Rows(columns, codes))


def gibbs(model, program, log_points, n_sweeps, rng):
    """Sweeps at the posterior, lanes from `log_points`."""
    n = log_points.shape[1]
    nothing = np.zeros(log_points.shape)
    log_points = np.array(log_points, order="C")
    paths = capabilities_of(model).annealing.paths(program, nothing[:, :1])[np.zeros(n, dtype=int)]
    capabilities_of(model).annealing.anneal(
        capabilities_of(model).annealing.workspace(program, n),
        paths,
        np.ones(n_sweeps + 1),
        streams_of(rng, n),
        log_points,
    )
    return log_points


def metropolis(model, program, log_points, n_sweeps, rng):
    """Metropolis steps at the posterior, some small and some large."""
    log_points = np.array(log_points, order="C")
    log_likelihoods = capabilities_of(model).points.log_likelihoods(program, log_points)
    strengths = np.resize([3.0, 30.0, 0.0], 5 * n_sweeps)
    workspace = capabilities_of(model).annealing.workspace(program, log_points.shape[1])
    temperatures = np.ones(len(strengths) + 1)
    capabilities_of(model).metropolis.metropolis(
        workspace, temperatures, strengths, streams_of(rng, log_points.shape[1]), log_points, log_likelihoods
    )
    assert log_likelihoods == approx(capabilities_of(model).points.log_likelihoods(program, log_points), rel=1e-11)
    return log_points


KERNELS = {"gibbs": gibbs, "metropolis": metropolis}


def functionals(model, program, log_points):
    """What is looked at: some parameters, symmetric functions of them, and the likelihood, (n_functionals, n)."""
    cells = [0, model.layout.n_cells // 2, model.layout.n_cells - 1]
    return np.stack(
        [
            *log_points[cells],
            (np.exp(log_points) ** 2).sum(axis=0),
            capabilities_of(model).points.log_likelihoods(program, log_points),
        ]
    )


def check_joint_distribution(model, hidden, n_rows, kernel, n_pairs, rng):
    """theta after sweeps and its data are one draw of p(theta, y), as they were before [Geweke 2004]."""
    found = []
    for k in range(n_pairs):
        log_theta, program = exact_pair(model, hidden, n_rows, rng)
        log_points = kernel(model, program, log_theta[:, None], 3, rng) if k % 2 else log_theta[:, None]
        found.append(functionals(model, program, log_points)[:, 0])
    for values in np.transpose(found):
        assert stats.ks_2samp(values[::2], values[1::2]).pvalue > RARE


def check_ranks(model, hidden, n_rows, kernel, n_pairs, rng, n_others=19):
    """Sweeps back from theta, and as many forth in each lane: theta is one among exchangeable others.

    The kernel is reversible, so that ranks are uniform however few the sweeps.
    """
    ranks = []
    for _ in range(n_pairs):
        log_theta, program = exact_pair(model, hidden, n_rows, rng)
        hub = kernel(model, program, log_theta[:, None], 2, rng)
        others = kernel(model, program, np.repeat(hub, n_others, axis=1), 2, rng)
        values = functionals(model, program, np.column_stack([log_theta, others]))
        # ties, as where nothing was accepted, are broken at random
        order = np.argsort(np.lexsort((rng.random(values.shape), values), axis=1), axis=1)
        ranks.append(order[:, 0])
    for of_functional in np.transpose(ranks):
        observed = np.bincount(of_functional, minlength=n_others + 1)
        assert chi_square(observed, np.full(n_others + 1, n_pairs / (n_others + 1))) > RARE


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", MODELS)
def test_joint_distribution(name, kernel, rng):
    check_joint_distribution(*MODELS[name], KERNELS[kernel], 300, rng)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", MODELS)
def test_ranks_of_the_parameters_that_made_the_data(name, kernel, rng):
    check_ranks(*MODELS[name], KERNELS[kernel], 300, rng)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", MODELS)
def test_joint_distribution_of_many(name, kernel, rng):
    check_joint_distribution(*MODELS[name], KERNELS[kernel], 10_000, rng)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", MODELS)
def test_ranks_of_many(name, kernel, rng):
    check_ranks(*MODELS[name], KERNELS[kernel], 5_000, rng)


def test_a_chain_does_not_depend_on_other_chains_nor_on_the_pieces_it_is_run_in(rng):
    model, hidden, n_rows = MODELS["two latents"]
    program = model.compile(drawn_rows(model, n_rows, rng, hidden))
    statistics = rng.exponential(size=(model.layout.n_cells, 5))
    paths, temperatures = (
        capabilities_of(model).annealing.paths(program, statistics),
        np.array([0.0, 0.1, 0.3, 0.3, 0.7, 1.0, 1.0]),
    )
    start = capabilities_of(model).points.draw_points(statistics, streams_of(rng, 5))
    streams = streams_of(rng, 5)
    before, together = streams.copy(), start.copy()
    log_ratios, last = capabilities_of(model).annealing.anneal(
        capabilities_of(model).annealing.workspace(program, 5), paths, temperatures, streams, together
    )
    for lane in range(5):
        alone, mine = np.ascontiguousarray(before[:, [lane]]), np.ascontiguousarray(start[:, [lane]])
        workspace, pieces = capabilities_of(model).annealing.workspace(program, 1), []
        for piece in (temperatures[:3], temperatures[2:4], temperatures[3:]):
            of_piece, counts = capabilities_of(model).annealing.anneal(workspace, paths[[lane]], piece, alone, mine)
            pieces.append(of_piece)
        assert np.array_equal(np.concatenate(pieces)[:, 0], log_ratios[:, lane])
        assert np.array_equal(mine[:, 0], together[:, lane])
        assert np.array_equal(counts[:, 0], last[:, lane])
        assert np.array_equal(alone[:, 0], streams[:, lane])


def test_likelihoods_of_many_points_do_not_depend_on_how_many(rng):
    model, hidden, n_rows = MODELS["two latents"]
    program = model.compile(drawn_rows(model, n_rows, rng, hidden))
    points = capabilities_of(model).points.draw_points(
        np.repeat(1.0 - model.prior.concentration[:, None], 77, 1), streams_of(rng, 77)
    )
    every = capabilities_of(model).points.log_likelihoods(program, points)
    for some in (slice(0, 1), slice(3, 40), slice(32, 64), slice(76, 77)):
        assert np.array_equal(
            capabilities_of(model).points.log_likelihoods(program, np.ascontiguousarray(points[:, some])), every[some]
        )


def test_statistics_that_are_certain(rng):
    """Where nothing is hidden all of them; else counts of complete families, and those no parameter changes."""
    network = Network({"c": 2, "y0": 2, "y1": 2, "y2": 2}, {"c": (), "y0": ("c",), "y1": (), "y2": ("y1",)})
    fast = FastNetwork(network, uniform_prior(network))
    data = Data(("y0", "y1", "y2"), np.array([[0, 1, 1], [1, 0, 1], [0, 1, -1], [0, 1, 1]]))
    found = fast.tables(capabilities_of(fast.model).points.certain_statistics(fast.program(data), rng))
    assert found["y1"].tolist() == [1, 3]
    assert found["y2"].tolist() == [[0, 1], [0, 2]]
    assert not found["c"].any()
    assert not found["y0"].any()
    one_class = Network({**network.cards, "c": 1}, network.parents)
    fast = FastNetwork(one_class, uniform_prior(one_class))
    program = fast.model.compile(rows_of(data))
    found = fast.tables(capabilities_of(fast.model).points.certain_statistics(program, rng))
    assert found["c"].tolist() == [4]
    assert found["y0"].tolist() == [[3, 1]]
