"""Sampled evidences and draws of chains that covariates drive: by quadrature over all paths, and by draws of priors."""

from itertools import product

import numpy as np
import pytest
from models.hmm.test_covariates import V0, evidence_of, random_chain
from scipy.special import betaln, log_softmax, logsumexp
from scipy.stats import multivariate_normal, multivariate_t

from skvbem import VBHMM
from skvbem.emissions import Softmax
from skvbem.evidence.evaluation import Stream
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.families.softmax_maximum import Design
from skvbem.families.softmax_rows import SoftmaxRows
from skvbem.fitting.evaluation import evaluation_of
from skvbem.models.hmm.capabilities import completed

Y, Z = np.array([0, 0, 1, 1, 0, 1, 1]), np.array([-1, -0.5, 1, 0.5, -1, 0, 1])
KINDS = ("auto", "importance", "importance_gibbs", "bridge", "annealed_bridge", "ais", "ais_prior", "smc")
FAST = {"importance": {}, "bridge": {}, "smc": {}, "ais": {"n_chains": 24, "n_steps": 48}}
SLOW = [pytest.param(kind, marks=pytest.mark.slow) for kind in (*KINDS, "ais_metropolis") if kind not in FAST]


def chain_of(n_states=2, **options):
    options = {"transitions": Softmax([1], standardize=False), "random_state": 0, "search_effort": "fast"} | options
    return VBHMM(n_states, emission={"bernoulli": [0]}, **options)


@pytest.fixture(scope="module")
def seven():
    X = np.column_stack([Y, Z])
    return chain_of().fit(X), X


@pytest.mark.parametrize("kind", [*FAST, *SLOW])
def test_seven_steps_have_the_evidence_by_quadrature(kind, seven):
    model, X = seven
    evidence = model.log_evidence(X, kind=kind, **FAST.get(kind, {}))
    assert abs(evidence.value - -5.42721196) < 3 * evidence.standard_error
    assert evidence.standard_error < 0.15


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, "ais_metropolis"])
def test_evidences_of_tiny_chains_are_as_uncertain_as_they_say(kind):
    z = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        y, u = rng.integers(0, 2, 6), rng.normal(size=6).round(1)
        X = np.column_stack([y, u])
        evidence = chain_of(random_state=seed).fit(X).log_evidence(X, kind=kind)
        z.append((evidence.value - evidence_of(y, u)) / evidence.standard_error)
    assert np.abs(z).max() < 4.5
    assert np.sqrt(np.mean(np.square(z))) < 1.7


def by_draws_of_the_prior(sequences, allowed, n_draws, rng):
    """Ln p(y) and its error: a literal forward pass at arrival, starts by softmax, for draws of all parameters."""
    k = len(allowed)
    root = np.sqrt([V0, 1.0])
    w, first = (rng.normal(size=(n_draws, n, k, 2)) * root for n in (k, 1))
    p = rng.beta(1, 1, size=(n_draws, k))
    log_likelihood = np.zeros(n_draws)
    for y, z in sequences:
        for t in range(len(y)):
            u = np.array([1.0, z[t]])
            if t == 0:
                state = np.exp(log_softmax(first[:, 0] @ u, axis=1))
            else:
                state = np.einsum("nj,njk->nk", state, np.exp(log_softmax(np.where(allowed, w @ u, -np.inf), axis=2)))
            state = state * np.where(y[t], p, 1 - p)
        log_likelihood += np.log(state.sum(axis=1))
    value = logsumexp(log_likelihood) - np.log(n_draws)
    return value, np.exp(log_likelihood - value).std() / np.sqrt(n_draws)


@pytest.mark.parametrize("kind", [pytest.param("bridge", marks=pytest.mark.slow), "importance"])
def test_masks_starts_and_sequences_that_count_twice_have_their_evidence(kind):
    """Coefficients of three states, one transition of which is ruled out, at arrival."""
    rng = np.random.default_rng(5)
    sequences = [(rng.integers(0, 2, n), rng.normal(size=n).round(1)) for n in (4, 1, 3)]
    mask = np.array([[True, True, False], [True, True, True], [True, True, True]])
    X = [np.column_stack(each) for each in sequences]
    softmax = Softmax([1], at="arrival", standardize=False)
    start = Softmax([1], standardize=False)
    model = chain_of(3, transitions=softmax, start=start, transmat_mask=mask)
    model.fit(X, sample_weight=[1, 2, 1])
    wanted, error = by_draws_of_the_prior([*sequences, sequences[1]], mask, 50_000, rng)
    evidence = model.log_evidence(X, kind=kind, sample_weight=[1, 2, 1])
    assert abs(evidence.value - wanted) < 3 * np.hypot(evidence.standard_error, error)
    assert evidence.standard_error < 0.1


def moments_by_quadrature(y, z, n_nodes=40):
    """Posterior means of intercept, slope and their squares, of the log odds to stay, by all paths; and of their sums.

    Row j has odds w_j of state 0 over 1. Labels change places where w_0 becomes -w_1, so that w_0 - w_1 and
    (w_0 + w_1)^2 have no labels.
    """
    nodes, mass = np.polynomial.hermite_e.hermegauss(n_nodes)
    grid = np.stack(np.meshgrid(nodes * np.sqrt(V0), nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    mass = np.log(np.outer(mass, mass).ravel() / mass.sum() ** 2)
    odds = np.sqrt(2) * (grid[:, :1] + grid[:, 1:] * z)
    logs = np.stack([-np.logaddexp(0, -odds), -np.logaddexp(0, odds)])
    terms, moments = [], []
    for path in product(range(2), repeat=len(y)):
        path, term, mean, square = np.array(path), 0.0, [], []
        for k in range(2):
            term += betaln(1 + (y[path == k] == 1).sum(), 1 + (y[path == k] == 0).sum())
            row = mass + sum(logs[path[t + 1], :, t] for t in np.flatnonzero(path[:-1] == k))
            row = np.broadcast_to(row, len(grid))
            term += logsumexp(row)
            weight = np.exp(row - logsumexp(row))
            mean.append(weight @ grid)
            square.append(weight @ grid**2)
        terms.append(term)
        crossed = mean[0] * mean[1]
        moments.append([mean[0] - mean[1], square[0] + square[1] - 2 * crossed, square[0] + square[1] + 2 * crossed])
    weight = np.exp(np.array(terms) - logsumexp(terms))
    return np.einsum("n,nmj->mj", weight, np.array(moments))


def test_draws_have_the_moments_by_quadrature(seven):
    model, X = seven
    draws = model.sample_posterior(X, 2000, n_chains=64)
    assert draws.converged
    chain = draws.parameters["chain"]
    w = np.concatenate([chain["transition_intercepts"][..., None], chain["transition_coefficients"]], axis=-1)
    w = np.sqrt(2) * w[:, :, 0]  # contrasts, row by row
    numbers = np.stack([w[:, 0] - w[:, 1], (w[:, 0] - w[:, 1]) ** 2, (w[:, 0] + w[:, 1]) ** 2], axis=1)
    error = numbers.std(axis=0) / np.sqrt(len(numbers))
    assert (np.abs(numbers.mean(axis=0) - moments_by_quadrature(Y, Z)) < 4 * error).all()


def test_completed_paths_have_the_statistics_of_the_e_step_on_average(rng):
    for at_arrival in (False, True):
        model, data, _ = random_chain(rng, 12, 3, masked=True, at_arrival=at_arrival)
        whole = model.compile(data.table, data.lengths, np.array([1.0, 2.0]))
        data = whole.for_draws(model.emission)
        at = (model.prior + model.statistics_of(rng.dirichlet(np.ones(3), len(data)), data)).expected_natural()
        streams = rng.integers(0, 2**64, size=(4, 2000), dtype=np.uint64)
        log_z, drawn = completed(model, np.repeat(at[:, None], 2000, axis=1), data, ParallelGenerator(streams))
        found = model.expect(at[:, None], data)
        np.testing.assert_allclose(model.expect(at[:, None], whole).statistics, found.statistics, atol=1e-12)
        np.testing.assert_allclose(log_z, found.log_normalizer[0], rtol=1e-12)
        error = drawn.std(axis=1) / np.sqrt(2000)
        assert (np.abs(drawn.mean(axis=1) - found.statistics[:, 0]) < 4.5 * error + 1e-9).all()


def rows_and_statistics(rng, n_members=3):
    """Coefficients of two rows, one of which has two labels of three, and statistics of members, (n_cells, n)."""
    u = np.column_stack([np.ones(30), rng.normal(size=30)])
    prior = SoftmaxRows.from_precisions(Design.of(u), [[True, True, True], [True, False, True]], [0.6, 1.0])
    statistics = np.zeros((len(prior.coordinates), n_members))
    counts, _, used = prior.parts(statistics)
    for t, regressors in enumerate(prior.design.regressors):
        for m in range(n_members):
            row = rng.integers(0, 2)
            counts[row, rng.choice(np.flatnonzero(prior.allowed[row])), :, m] += regressors
            used[t, row, m] += 1.0
    return prior, statistics


def test_proposals_of_rows_stand_about_modes_and_correct_what_statistics_tell(rng):
    prior, statistics = rows_and_statistics(rng)
    proposals, modes = (prior + statistics).proposals(), (prior + statistics).mode()
    np.testing.assert_allclose(proposals.mean, prior.to_unconstrained(modes).T, atol=2e-3)
    natural = prior.natural_of_contrasts(rng.normal(size=(5, 6)) / 2)
    log_ratio = statistics.T @ natural - prior.log_evidence(statistics)[:, None]
    log_ratio = log_ratio + prior.log_correction(statistics)(natural)
    free = prior.contrasts_of_natural(natural)
    of_prior = multivariate_normal(np.zeros(6), np.diag(1 / np.tile([0.6, 1.0], 3))).logpdf(free)
    for k in range(3):
        information = prior.information(modes[..., k], (prior + statistics).coordinates[:, k])
        wanted = -of_prior
        for at, row in zip((slice(0, 4), slice(4, 6)), proposals.rows):
            scale = row.root[k] @ row.root[k].T
            np.testing.assert_allclose(scale / 1.15**2, np.linalg.inv(information[at, at]), atol=0.01)
            wanted = wanted + multivariate_t(row.mean[k], scale, df=8).logpdf(free[:, at])
        np.testing.assert_allclose(log_ratio[k], wanted, rtol=1e-8)


def test_joints_of_rows_add_up_and_rows_are_taken_one_by_one(rng):
    prior, statistics = rows_and_statistics(rng)
    one, other = (prior.natural_of_contrasts(rng.normal(size=(3, 6))) for _ in range(2))
    coordinates = (prior + statistics).coordinates
    np.testing.assert_allclose(prior.log_joints(coordinates, one).sum(axis=0), (coordinates * one).sum(axis=0))
    taken = np.array([[True, True, False], [True, False, False]])
    mixed = np.where(np.repeat(taken, [4, 2], axis=0).T, *(prior.contrasts_of_natural(each) for each in (other, one)))
    np.testing.assert_allclose(prior.with_rows(taken, one, other), prior.natural_of_contrasts(mixed), atol=1e-12)


def test_one_step_of_a_path_has_the_weights_of_importance_sampling(seven):
    evaluation = evaluation_of(*seven)
    points, annealing = (evaluation.capability(name) for name in ("points", "annealing"))
    prior, streams = evaluation.model.prior, evaluation.streams(3)
    statistics = np.outer(evaluation.fit("vb").statistics, [0.0, 0.5, 1.0])
    at = points.draw_points(statistics, streams)
    log_q = np.diag(statistics.T @ at - prior.log_evidence(statistics)[:, None] + prior.log_correction(statistics)(at))
    workspace, paths = annealing.workspace(evaluation.data, 3), annealing.paths(evaluation.data, statistics)[[0, 1, 2]]
    wanted = points.log_likelihoods(evaluation.data, at) - log_q
    in_one_step, _ = annealing.anneal(workspace, paths, np.array([0.0, 1.0]), streams, at)
    np.testing.assert_allclose(in_one_step[0], wanted, rtol=1e-9)


def test_corrections_for_orders_of_states_average_to_one():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 2, 20), rng.normal(size=20).round(0)])
    evaluation = evaluation_of(chain_of(3, n_init=1).fit(X), X)
    relabelings = evaluation.capability("relabelings").relabelings(())
    statistics, points = evaluation.fit("vb").statistics, evaluation.capability("points")
    drawn = points.draw_points(0.2 * np.repeat(statistics[:, None], 4, axis=1), evaluation.streams(4, Stream.CHOICE))
    h = np.stack([relabelings.correction(statistics, drawn[cells]) for cells in relabelings.cells])
    assert relabelings.n == 6
    np.testing.assert_allclose(np.exp(h).mean(axis=0), 1.0, rtol=1e-9)
