"""Linear dynamical systems: E steps by one dense normal distribution, known numbers, the basis of states.

Which test shows what is known of these models (those of estimators in `test_vb_linear_dynamical_system`):

- bounds step by step, and their terms: test_known_bounds, test_bound_is_its_terms_one_by_one
- weights are repeats, tails are pruned: test_weights_are_repeats, test_steps_after_the_last_observed_one_are_left_out
- states shut out, one step each: test_states_that_are_shut_out_leave_normal_columns,
  test_sequences_of_one_step_are_rows_of_a_factor_analyzer
- turns of states: test_turns_of_states_change_nothing_where_priors_are_alike
- evidences: test_best_bounds_of_tiny_problems, test_sampled_evidences_of_tiny_problems,
  test_closed_bounds_are_in_their_order
- likelihoods: test_likelihood_of_a_point_is_the_normal_density_of_its_rows,
  test_likelihood_by_residuals_keeps_its_digits
- steady states: test_steps_that_repeat_are_those_of_the_whole_recursion
- the best basis: test_derivatives_of_the_basis, test_a_change_of_basis_saves_thousands_of_steps,
  test_the_basis_of_the_most_likely_has_a_closed_form
- dimensions: test_dimension_is_the_rank_of_autocovariances
- a covariance of the states that is free: test_a_free_covariance_of_the_states_lowers_the_bound
- precisions learned too early: test_precisions_that_are_learned_from_the_first_step_shut_all_states_out
- starts: test_lagged_covariances_tell_the_poles_of_a_system
- chains: test_lanes_are_smoothers, test_moves_of_chains_keep_the_volume_that_they_say
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from models.linear_dynamical_system.linear_systems import (
    EVIDENCES,
    SIX_STEPS,
    TWO_SEQUENCES,
    PlainAscent,
    problem,
    random_problem,
)
from reference import linear_dynamical_system as literal
from reference.differences import gradient
from scipy.linalg import block_diag
from scipy.special import digamma, gammaln, hyperu
from scipy.stats import multivariate_normal, norm

from skvbem._numerics import pack_symmetric, unpack_symmetric
from skvbem.datasets import load_nile
from skvbem.evidence import get_score
from skvbem.evidence.ais import gibbs_chains
from skvbem.evidence.chains import nonlinear_schedule
from skvbem.evidence.starts import make_starts
from skvbem.families import Regression
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.models import capabilities_of
from skvbem.models.linear_dynamical_system import data as data_of_sequences
from skvbem.models.linear_dynamical_system import sampling, smoother
from skvbem.models.linear_dynamical_system.model import LDSAscent, LinearDynamicalSystem, identifiable_dimension
from skvbem.models.linear_dynamical_system.rotations import is_free_to_rotate
from skvbem.models.linear_dynamical_system.smoother import FirstStates, Smoother
from skvbem.models.linear_dynamical_system.starts import LDSStarts, subspace_system
from skvbem.models.linear_dynamical_system.state_map import BasisMoments, StateBasis
from skvbem.testing.cases import evaluation_from
from skvbem.vbem import posteriors
from skvbem.vbem.driver import run

approx = pytest.approx


def trimmed(y, u, v):
    """A sequence up to its last observed step."""
    n = max((t + 1 for t in range(len(y)) if not np.isnan(y[t]).all()), default=0)
    return y[:n], u[:n], v[:n]


def literal_step(problem, e, first):
    """ln Z of the sequences, weights left aside, and their moments together."""
    log_z, total = [], None
    for y, u, v, weight, _ in problem.sequences():
        y, u, v = trimmed(y, u, v)
        if not len(y):
            log_z.append(0.0)
            continue
        of_sequence, means, covariance = literal.states(y, u, v, e, first.mean, np.linalg.inv(first.precision))
        moments = [weight * part for part in literal.moments(y, u, v, means, covariance)]
        total = moments if total is None else [one + other for one, other in zip(total, moments)]
        log_z.append(of_sequence)
    return np.array(log_z), literal.Moments(*total)


def flat(u):
    """Moments as statistics (n_cells,), each column with a matrix of its own."""
    return np.concatenate([pack_symmetric(u.w), u.s.T.ravel(), pack_symmetric(u.g).ravel(), u.c.ravel(), u.n, u.yy])


@pytest.mark.parametrize("gaps", [False, True])
def test_e_step_is_that_of_one_dense_normal_distribution(gaps, rng):
    for _ in range(12):
        case = random_problem(rng, gaps=gaps)
        first = FirstStates(rng.normal(size=case.k), np.diag(rng.uniform(0.5, 2, case.k)) + 0.1)
        model = LinearDynamicalSystem(*case.model.prior.blocks, first=first)
        data, start = case.compile(), case.start
        e, kl = literal.posterior(moments_of(case), case.alpha, case.gamma, *prior_of(case))
        natural, penalty = posteriors.VB.of(model.prior, start)
        assert -penalty[0] == approx(kl, rel=1e-10)
        expectation = model.expect(natural, data)
        log_z, u = literal_step(case, e, first)
        assert model.log_normalizers_of_sequences(natural[:, 0], data) == approx(log_z, rel=1e-10, abs=1e-10)
        assert expectation.log_normalizer[0] == approx(case.weight @ log_z, rel=1e-11, abs=1e-10)
        assert expectation.statistics[:, 0] == approx(flat(u), rel=1e-9, abs=1e-9)


def moments_of(case):
    """Moments of the start: independent states of unit variance."""
    total = None
    for y, u, v, weight, x in case.sequences():
        y, u, v = trimmed(y, u, v)
        of_sequence = literal.moments(y, u, v, x[: len(y)], np.eye(case.k * len(y)))
        parts = [weight * part for part in of_sequence]
        total = parts if total is None else [one + other for one, other in zip(total, parts)]
    return literal.Moments(*total)


def prior_of(case):
    p = case.y.shape[1]
    return np.full(p, case.a0), np.full(p, case.b0)


@pytest.mark.parametrize(
    ("case", "steps", "converged"),
    [
        (SIX_STEPS, (-14.557793858813, -14.164296598578, -14.070497277041), -14.020662159811),
        (TWO_SEQUENCES, (-43.624574942965, -42.087942449060, -41.843404350882), -41.774153917040),
    ],
)
def test_known_bounds(case, steps, converged):
    """Plain steps one by one; and where these lead, steps that change the basis lead too."""
    model, data, at = case.model, case.compile(), case.start
    plain = PlainAscent(model, data, posteriors.VB)
    assert plain.advance(at, 3)[:, 0] == approx(steps, abs=1e-11)
    slow = run(plain, at, tol=1e-11, max_iter=10_000, accelerate=False)
    fast = run(LDSAscent(model, data, posteriors.VB), case.start, tol=1e-11, max_iter=500, accelerate=False)
    assert slow.objective[0] == approx(converged, abs=1e-9)
    assert fast.objective[0] == approx(converged, abs=1e-9)


def test_known_parameters():
    ran = run(LDSAscent(SIX_STEPS.model, SIX_STEPS.compile(), posteriors.VB), SIX_STEPS.start, tol=1e-13, max_iter=500)
    dynamics, emission = (SIX_STEPS.model.prior + ran.statistics[:, 0]).blocks
    assert abs(dynamics.mean.item()) == approx(0.711015557, abs=1e-5)
    assert np.abs(emission.mean.ravel()) == approx([0.632196170, 0.339731266], abs=1e-5)
    assert emission.shape / emission.rate == approx([2.166001727, 2.901079417], abs=1e-5)


def test_bound_is_its_terms_one_by_one(rng):
    """ln Z less KL, the definition E ln p - E ln q, and the entropy with log evidences after an M step."""
    for _ in range(6):
        case = random_problem(rng)
        ran = run(LDSAscent(case.model, case.compile(), posteriors.VB), case.start, tol=1e-12, max_iter=3000)
        u = moments_from(case, ran.statistics[:, 0])
        e, kl = literal.posterior(u, case.alpha, case.gamma, *prior_of(case))
        first, (log_z, after) = FirstStates(np.zeros(case.k), np.eye(case.k)), (None, None)
        log_z, after = literal_step(case, e, first)
        squares, sums, later, n, n_later, entropy = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for y, inputs, v, weight, _ in case.sequences():
            y, inputs, v = trimmed(y, inputs, v)
            if not len(y):
                continue
            _, means, covariance = literal.states(y, inputs, v, e, first.mean, np.eye(case.k))
            second = covariance + np.outer(means.ravel(), means.ravel())
            blocks = [second[i : i + case.k, i : i + case.k] for i in range(0, len(second), case.k)]
            squares, sums, n = squares + weight * blocks[0], sums + weight * means[0], n + weight
            later, n_later = (
                later + weight * sum(blocks[1:], np.zeros_like(blocks[0])),
                n_later + weight * len(blocks[1:]),
            )
            entropy += weight * literal.entropy(covariance)
        joint = literal.log_joint(after, (squares, sums), later, n, n_later, e, first.mean, np.eye(case.k))
        assert case.weight @ log_z - kl == approx(joint + entropy - kl, rel=1e-9, abs=1e-9)
        assert case.weight @ log_z - kl == approx(ran.objective[0], rel=1e-9, abs=1e-8)
        # after an M step at a fixed point: the entropy and log evidences of complete rows
        base = -0.5 * n * case.k * np.log(2 * np.pi) - 0.5 * np.trace(squares) - 0.5 * np.trace(later)
        base -= 0.5 * n_later * case.k * np.log(2 * np.pi)
        evidence = case.model.prior.log_evidence(flat(after))
        assert entropy + base + evidence == approx(ran.objective[0], rel=1e-8, abs=1e-6)


def moments_from(case, statistics):
    """Statistics (n_cells,) as moments."""
    model = case.model
    of_dynamics, of_emission = model.prior.split(statistics)
    (w, total, *_), (g, c, n, yy) = model.dynamics.split(of_dynamics), model.emission.split(of_emission)
    matrices = [
        np.zeros((len(x), d, d)) for x, d in ((w, model.dynamics.n_regressors), (g, model.emission.n_regressors))
    ]
    for packed, full in zip((w, g), matrices):
        rows, columns = np.triu_indices(full.shape[-1])
        full[:, rows, columns] = full[:, columns, rows] = packed
    return literal.Moments(matrices[0][0], total.T, matrices[1], c, n, yy)


@pytest.mark.parametrize("name", EVIDENCES)
def test_best_bounds_of_tiny_problems(name, rng):
    """They lie below the evidence, which is known by quadrature."""
    case, evidence, best = EVIDENCES[name]
    model, data = case.model, case.compile()
    starts = [model.statistics_of_start(data, rng.normal(size=(len(data), case.k)), 1.0) for _ in range(8)]
    ran = run(LDSAscent(model, data, posteriors.VB), np.stack(starts, axis=1), tol=1e-10, max_iter=2000)
    assert ran.objective.max() == approx(best, abs=1e-8)
    assert ran.objective.max() < evidence


@pytest.mark.parametrize("name", EVIDENCES)
def test_sampled_evidences_of_tiny_problems(name, rng):
    """Annealed chains that start at q, in one basis of the states, and turn to all others."""
    case, evidence, _ = EVIDENCES[name]
    model, data = case.model, case.compile()
    start = model.statistics_of_start(data, rng.normal(size=(len(data), case.k)), 1.0)[:, None]
    evaluation = evaluation_from(start, LDSAscent, model, data, ("state",))
    found = get_score("ais")(evaluation, n_chains=48, n_steps=48)
    assert found.value == approx(evidence, abs=3.5 * found.standard_error)
    assert found.standard_error < 0.2
    assert found.doubts == ()


def test_chains_from_a_fit_end_at_both_signs(rng):
    """The posterior is far from 0, which keeps Gibbs chains where they are."""
    x = np.array([[2.0], [2.5], [2.0], [1.5], [2.0], [2.5], [3.0], [2.0]])
    case = problem(0.8 * x * [1.0, 1.2] + 0.5 * rng.normal(size=(8, 2)), 1, [1.0], 2.0)
    model, data, n = case.model, case.compile(), 64
    start = model.statistics_of_start(data, x, 1.0)[:, None]
    evaluation, found = evaluation_from(start, LDSAscent, model, data, ("state",)), capabilities_of(model)
    statistics = make_starts(evaluation, (1.0,), 1).statistics_of(np.zeros(n, dtype=int))
    streams = rng.integers(0, 2**64, size=(4, n), dtype=np.uint64)
    points = found.points.draw_points(statistics, streams)
    paths, schedule = found.annealing.paths(data, statistics), nonlinear_schedule(32, found.annealing.plan.bend)
    ends, _ = gibbs_chains(evaluation, paths, schedule, streams, points)
    before, after = (model.prior.from_natural(x)[1].coefficients[:, 0] for x in (points, ends))
    assert ((before * before[:, :1]).sum(axis=0) > 0).all()
    assert n / 8 < ((after * before[:, :1]).sum(axis=0) < 0).sum() < 7 * n / 8


def test_parts_of_starts_add_up_to_one_over_signs_and_orders(rng):
    """Each start has its share of the chains, wherever labels are held; where none are, a turn of q changes no part."""
    x, (turn, _) = np.cumsum(rng.normal(size=(8, 2)), axis=0), np.linalg.qr(rng.normal(size=(2, 2)))
    case = problem(x + 0.3 * rng.normal(size=(8, 2)), 2, [1.0, 1.0], 2.0)
    model, data, which = case.model, case.compile(), np.array([0, 0, 1, 1, 1])
    streams = rng.integers(0, 2**64, size=(4, 1), dtype=np.uint64)
    found = capabilities_of(model)
    point = found.points.draw_points(3 * model.statistics_of_start(data, x, 1.0)[:, None], streams)
    changes = found.relabelings.relabelings(("state",)).changes[0]
    relabeled = changes.changed(np.repeat(point, changes.n, axis=1), np.arange(changes.n))
    parts = []
    for states in (x, x @ turn):
        start = model.statistics_of_start(data, states, 1.0)[:, None]
        starts = make_starts(evaluation_from(start, LDSAscent, model, data, ("state",)), (1.0, 0.0), 1)
        log_parts = [partial(starts.log_parts, which, np.repeat(x[:, None], 5, axis=1)) for x in relabeled.T]
        for last in (0.0, 0.8, 1.0):
            held = np.exp([of_point(np.array([last, 1.0])) for of_point in log_parts])
            assert held.mean(axis=0) == approx(np.repeat([0.4, 0.6], [2, 3]))
            assert (held[:, 0].max() > 0.41) == (last < 1.0)
        parts.append(log_parts[0](np.array([0.0, 1.0, 1.0])))
    assert parts[0] == approx(parts[1], abs=1e-12)


def test_chains_turn_states_as_far_as_the_prior_allows(rng):
    """Neither likelihood nor prior knows of a turn; states only change order and signs where no more is free."""
    y, v = rng.normal(size=(6, 3)), rng.normal(size=(6, 1))
    alike, apart = [2.0, 2.0, 2.0], [1.0, 2.0, 3.0]
    for allowed, of_states, options in (
        ("anywhere", alike, {"rate": [1.0] * 3}),
        ("anywhere", alike, {"rate": None}),
        ("orders", alike, {"rate": [1.0] * 3, "relevance": (1.0, 1.0)}),
        ("signs", apart, {"rate": [1.0] * 3}),
    ):
        shape = {"shape": [1.0] * 3, "n_states": 3}
        model = LinearDynamicalSystem.from_precisions(of_states, [*alike, 0.1], **shape, **options)
        data = model.compile(y, [6], output_inputs=v)
        found, prior = capabilities_of(model), model.prior
        streams = rng.integers(0, 2**64, size=(4, 64), dtype=np.uint64)
        natural = np.repeat(found.points.draw_points(np.zeros((model.n_cells, 1)), streams[:, :1].copy()), 64, axis=1)
        (turned,) = found.annealing._turned(data, natural, ParallelGenerator(streams))
        for log_density in (
            found.points.log_likelihoods(data, turned),
            prior.coordinates @ turned + prior.log_normalizer_of_hyperparameters(turned),
        ):
            assert log_density == approx(log_density[0], rel=1e-9, abs=1e-9)
        old, new = (prior.from_natural(x)[1].coefficients[:, :3] for x in (natural, turned))
        is_signed = np.isclose(np.abs(new[..., None, :]), np.abs(old[:, None]), rtol=1e-9).any(axis=2).all(axis=(0, 1))
        keeps_order = np.isclose(np.abs(new), np.abs(old), rtol=1e-9).all(axis=(0, 1))
        assert keeps_order.all() == (allowed == "signs")
        assert is_signed.all() == (allowed != "anywhere")
        assert (new != old).any()
        assert is_free_to_rotate(model) == (allowed == "anywhere")


@pytest.mark.parametrize("kind", ["ais", "smc_data"])
def test_sampled_evidences_of_a_hidden_rate(kind, rng):
    """The noise is integrated out in closed form, transition and loading, in its unit, by quadrature."""
    y = EVIDENCES["four steps"][0].y
    n, nodes, width = len(y), np.linspace(-7, 7, 141), 14 / 140
    a, loading = (x.ravel() for x in np.meshgrid(nodes, nodes))
    step = np.arange(n)
    variance = np.cumsum(a[:, None] ** (2 * step), axis=1)  # of states; the first is 1
    earlier, lag = np.minimum.outer(step, step), np.abs(np.subtract.outer(step, step))
    covariance = loading[:, None, None] ** 2 * variance[:, earlier] * a[:, None, None] ** lag + np.eye(n)
    distance = (y.T @ np.linalg.solve(covariance, y)).ravel()
    # of a precision with the density rho / (1 + rho)^3, which shape 2 and a hidden rate make
    over_noise = np.log(2) + gammaln(n / 2 + 2) + np.log(hyperu(n / 2 + 2, n / 2, distance / 2))
    log_density = over_noise - 0.5 * np.linalg.slogdet(covariance)[1] - n / 2 * np.log(2 * np.pi)
    evidence = np.log((np.exp(log_density) * norm.pdf(a) * norm.pdf(loading)).sum() * width**2)

    model = LinearDynamicalSystem.from_precisions([1.0], [1.0], shape=[2.0], rate=None)
    data = model.compile(y, [n])
    start = model.started(model.statistics_of_start(data, rng.normal(size=(n, 1)), 1.0))[:, None]
    evaluation = evaluation_from(start, LDSAscent, model, data, ("state",))
    assert get_score("lower_bound")(evaluation).value < evidence
    options = {"n_chains": 48, "n_steps": 32} if kind == "ais" else {"n_particles": 512}
    found = get_score(kind)(evaluation, **options)
    assert found.value == approx(evidence, abs=3.5 * found.standard_error)
    assert found.standard_error < 0.3


@pytest.mark.parametrize("name", ["four steps", "two columns", "ten steps"])
def test_closed_bounds_are_in_their_order(name, rng):
    """Cheeseman-Stutz <= the bound <= that with parameters integrated out <= ln p(y); MLED is none, and says why."""
    case, evidence, _ = EVIDENCES[name]
    model, data = case.model, case.compile()
    start = model.statistics_of_start(data, rng.normal(size=(len(data), case.k)), 1.0)[:, None]
    evaluation = evaluation_from(start, LDSAscent, model, data, ("state",))
    bound = get_score("lower_bound")(evaluation).value
    collapsed = get_score("collapsed")(evaluation)
    assert get_score("cheeseman_stutz")(evaluation).value < bound < collapsed.value
    assert collapsed.value < evidence + 3 * collapsed.standard_error
    with pytest.raises(ValueError, match="densities, whose entropy depends on their unit"):
        get_score("mled")(evaluation)


def drawn_back(factored, data, noise):
    """States drawn from the last step of each sequence on, each given the next one."""
    slot, means = factored.slot[factored.row_of_shape], factored.means()
    away = np.einsum("tij,tj->ti", np.linalg.cholesky(factored.inverse)[slot], noise)
    for t in data.before[::-1]:
        away[t] += factored.gain[slot[t]] @ away[t + 1]
    return means + away


def test_lanes_are_smoothers(rng):
    """Likelihoods and draws of many parameters at once are those of one after the other, by the same random numbers."""
    for _ in range(8):
        case = random_problem(rng, whole=True)
        model, data = case.model, case.compile().one_by_one
        drawn = (model.prior + np.repeat(case.start, 2, axis=1)).sample(rng)
        natural = np.concatenate([posteriors.VB.of(model.prior, case.start)[0], model.prior.natural(drawn)], axis=1)
        streams = rng.integers(0, 2**64, size=(4, 3), dtype=np.uint64)
        log_z, statistics = sampling.completed(model, natural, data, ParallelGenerator(streams.copy()))
        noise = ParallelGenerator(streams).standard_normal((len(data), case.k, 3))
        for lane in range(3):
            log_normalizers = model.log_normalizers_of_sequences(natural[:, lane], data)
            assert log_z[lane] == approx(log_normalizers.sum(), rel=1e-11, abs=1e-10)
            states = drawn_back(model.smoothed(natural[:, lane], data), data, noise[..., lane])
            assert statistics[:, lane] == approx(model.statistics(data, states)[0], rel=1e-9, abs=1e-9)


def test_moves_of_chains_keep_the_volume_that_they_say(rng):
    """Proposals of a changed basis, in unconstrained coordinates: ln|det| of their derivatives by differences."""
    for k, q, r in ((1, 0, 1), (2, 1, 0), (2, 2, 2)):
        y, u, v = rng.normal(size=(6, 3)), rng.normal(size=(6, q)), rng.normal(size=(6, r))
        case = problem(y, k, [1.0] * (k + r), 2.0, u=u, v=v)
        model, data = case.model, case.compile()
        prior, sampler = model.prior, capabilities_of(model).annealing
        free = prior.to_unconstrained(tuple((prior + case.start[:, 0]).sample(rng)))
        streams = rng.integers(0, 2**64, size=(4, 1), dtype=np.uint64)
        for propose in (sampler._in_another_basis, sampler._moved_along):
            there = partial(proposed, model, data, propose, streams)
            h = 1e-5 * np.eye(len(free))
            derivatives = [(there(free + step)[0] - there(free - step)[0]) / 2e-5 for step in h]
            assert there(free)[1] == approx(np.linalg.slogdet(np.array(derivatives))[1], abs=1e-6)


def proposed(model, data, propose, streams, free):
    """Where a proposal moves unconstrained coordinates by the same random numbers, and the volume that it says."""
    prior = model.prior
    natural = prior.natural(prior.from_unconstrained(free[:, None]))
    moved, *volume = propose(data, natural, ParallelGenerator(streams.copy()))
    return prior.to_unconstrained(prior.from_natural(moved))[:, 0], float(volume[0][0]) if volume else 0.0


def test_draws_take_the_basis_nearest_to_a_fit(rng):
    """Wherever a turn has put them; a turn changes neither likelihood nor prior."""
    y, v = np.cumsum(rng.normal(size=(40, 4)), axis=0), np.ones((40, 1))
    case = problem(y / y.std(), 2, [1.0, 1.0, 0.1], 2.0, v=v, x=rng.normal(size=(40, 2)))
    model, data = case.model, case.compile()
    at = run(LDSAscent(model, data, posteriors.VB), case.start, tol=1e-3, max_iter=200).statistics
    of_states, of_columns = (model.prior + np.repeat(at, 30, axis=1)).sample(rng)
    found = capabilities_of(model)
    nearest = found.relabelings.relabelings(("state",)).nearest
    aligned = []
    for angle in (0.0, 0.7, 2.5):
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        a = np.einsum("ij,jkn,lk->iln", turn, of_states.coefficients, turn)
        c = of_columns.coefficients.copy()
        c[:, :2] = np.einsum("sjn,ij->sin", c[:, :2], turn)
        natural = model.prior.natural((of_states._replace(coefficients=a), of_columns._replace(coefficients=c)))
        log_density = found.points.log_likelihoods(data, natural) + model.prior.coordinates @ natural
        aligned.append((log_density, at[:, 0] @ nearest(at[:, 0], natural), at[:, 0] @ natural))
    for density, near, _ in aligned:
        assert density == approx(aligned[0][0], rel=1e-9)
        assert near == approx(aligned[0][1], abs=0.05)
    assert (aligned[0][1] >= aligned[0][2] - 1e-9).all()
    assert not is_free_to_rotate(problem(y, 2, [1.0, 2.0, 0.1], 2.0, v=v).model)


@pytest.mark.parametrize(
    ("k", "p", "d"),
    [
        (1, 1, 3), (2, 1, 5), (3, 1, 7), (4, 1, 9), (1, 2, 5), (2, 2, 9), (3, 2, 13), (4, 2, 17), (2, 3, 12),
        (3, 3, 18), (4, 3, 24), (5, 3, 30), (5, 4, 38), (4, 5, 35),
    ],
)  # fmt: skip
def test_dimension_is_the_rank_of_autocovariances(k, p, d, rng):
    """Of the stationary system, by exact derivatives of the autocovariances at 2 k + 1 lags."""
    a = rng.normal(size=(k, k))
    a, c = 0.8 * a / np.abs(np.linalg.eigvals(a)).max(), rng.normal(size=(p, k))

    def lyapunov(of):
        return np.linalg.solve(np.eye(k * k) - np.kron(a, a), of.ravel()).reshape(k, k)

    sigma, columns = lyapunov(np.eye(k)), []
    powers = [np.linalg.matrix_power(a, lag) for lag in range(2 * k + 2)]
    for i in range(k * k):
        da = np.zeros((k, k))
        da.flat[i] = 1.0
        ds = lyapunov(da @ sigma @ a.T + a @ sigma @ da.T)
        of_powers = [
            sum((powers[j] @ da @ powers[n - 1 - j] for j in range(n)), np.zeros((k, k))) for n in range(2 * k + 2)
        ]
        columns.append([c @ (dp @ sigma + power @ ds) @ c.T for dp, power in zip(of_powers, powers)])
    for i in range(p * k):
        dc = np.zeros((p, k))
        dc.flat[i] = 1.0
        columns.append([dc @ power @ sigma @ c.T + c @ power @ sigma @ dc.T for power in powers])
    for s in range(p):
        noise = np.zeros((p, p))
        noise[s, s] = 1.0
        columns.append([noise * (lag == 0) for lag in range(2 * k + 2)])
    jacobian = np.array(columns).reshape(len(columns), -1)
    values = np.linalg.svd(jacobian / np.linalg.norm(jacobian, axis=1, keepdims=True), compute_uv=False)
    assert (values > 1e-9).sum() == d == identifiable_dimension(k, p, 0, 0)
    assert identifiable_dimension(k, p, 2, 1) == d + 2 * k + p


def check_random_system(rng):
    """The objective rises, weights are repeats, threads change no bit, order of columns and sequences nothing."""
    case = random_problem(rng, whole=True)
    model, data = case.model, case.compile()
    ran = run(LDSAscent(model, data, posteriors.VB), case.start, tol=1e-3, max_iter=60)
    assert (np.diff(ran.traces[0]) >= -1e-9 * (1 + np.abs(ran.traces[0][1:]))).all()
    at = np.ascontiguousarray(ran.statistics)
    natural = posteriors.VB.of(model.prior, at)[0]
    here = model.expect(natural, data)
    repeated = model.expect(natural, data.one_by_one)
    assert repeated.log_normalizer == approx(here.log_normalizer, rel=1e-9, abs=1e-9)
    assert repeated.statistics == approx(here.statistics, rel=1e-9, abs=1e-9)
    threads = model.expect(natural, data, 3)
    assert np.array_equal(threads.statistics, here.statistics)
    assert np.array_equal(threads.log_normalizer, here.log_normalizer)
    # sequences and columns from the last to the first
    rows = np.split(np.arange(len(case.y)), np.cumsum(case.lengths)[:-1])[::-1]
    order = np.concatenate(rows)
    other = case._replace(
        y=case.y[order][:, ::-1], lengths=case.lengths[::-1], weight=case.weight[::-1],
        u=case.u[order], v=case.v[order], x=case.x[order],
    )  # fmt: skip
    start = run(LDSAscent(model, data, posteriors.VB), case.start, tol=0.0, max_iter=3, accelerate=False)
    turned = run(LDSAscent(model, other.compile(), posteriors.VB), other.start, tol=0.0, max_iter=3, accelerate=False)
    assert turned.objective == approx(start.objective, rel=1e-9, abs=1e-9)
    return case, ran


def test_random_systems_keep_their_laws(rng):
    for _ in range(5):
        check_random_system(rng)


@pytest.mark.slow
def test_hundreds_of_random_systems_keep_their_laws(rng):
    """Of 20 of them a long run of a sampler tells the evidence, which no bound is above."""
    n_told = 0
    for number in range(300):
        case, ran = check_random_system(rng)
        if number % 15:
            continue
        data = case.compile()
        evaluation = evaluation_from(ran.statistics, LDSAscent, case.model, data, ("state",), seed=number)
        found = get_score("ais")(evaluation, fractions=(1.0,), n_chains=64, n_steps=512)
        assert ran.objective[0] <= found.value + 3.5 * max(found.standard_error, 0.02)
        n_told += not found.doubts
    assert n_told >= 15


@pytest.mark.parametrize("form", ["vb", "map", "ml"])
def test_objective_never_falls(form, rng):
    for _ in range(4):
        case = random_problem(rng)
        ascent = LDSAscent(
            case.model, case.compile(), {"vb": posteriors.VB, "map": posteriors.MAP, "ml": posteriors.ML}[form]
        )
        for accelerate in (False, True):  # the driver raises where it does
            run(ascent, case.start, tol=1e-6, max_iter=30, accelerate=accelerate)


# --- data -------------------------------------------------------------------------------------------------------------


def test_weights_are_repeats(rng):
    case = random_problem(rng, whole=True)
    parts = [part for part in case.sequences() for _ in range(int(part[3]))]
    repeated = case._replace(
        y=np.concatenate([part[0] for part in parts]),
        u=np.concatenate([part[1] for part in parts]),
        v=np.concatenate([part[2] for part in parts]),
        x=np.concatenate([part[4] for part in parts]),
        lengths=[len(part[0]) for part in parts],
        weight=np.ones(len(parts)),
    )
    assert repeated.start == approx(case.start, rel=1e-12)
    ends = [PlainAscent(each.model, each.compile(), posteriors.VB).advance(each.start, 3) for each in (case, repeated)]
    assert ends[0] == approx(ends[1], rel=1e-12)
    assert case.compile().total_weight == repeated.compile().total_weight


def test_steps_after_the_last_observed_one_are_left_out():
    """Kept, they would lower the bound; steps before the first observed one do, and stay."""
    gone, nothing = np.full((4, 2), np.nan), np.zeros((4, 0))
    later = SIX_STEPS._replace(
        y=np.concatenate([SIX_STEPS.y, gone]), lengths=[10], x=np.concatenate([SIX_STEPS.x, np.zeros((4, 1))]),
        u=np.concatenate([SIX_STEPS.u, nothing]), v=np.concatenate([SIX_STEPS.v, nothing]),
    )  # fmt: skip
    assert np.array_equal(later.start, SIX_STEPS.start)
    earlier = later._replace(
        y=np.concatenate([gone[:2], SIX_STEPS.y]), lengths=[8], x=np.concatenate([[[0.5], [0.5]], SIX_STEPS.x]),
        u=later.u[:8], v=later.v[:8],
    )  # fmt: skip
    ran = run(LDSAscent(earlier.model, earlier.compile(), posteriors.VB), earlier.start, tol=1e-11, max_iter=500)
    assert ran.objective[0] == approx(-14.253086491266, abs=1e-9)


def test_columns_share_a_matrix_where_they_are_observed_together(rng):
    case = random_problem(rng, gaps=False)
    p = case.y.shape[1]
    shape, rate = prior_of(case)
    shared = LinearDynamicalSystem.from_precisions(case.alpha, case.gamma, shape=shape, rate=rate, n_states=case.k)
    start = shared.statistics_of_start(case.compile(), case.x, 1.0)[:, None]
    assert len(start) < len(case.start) or p == 1
    one = run(LDSAscent(shared, case.compile(), posteriors.VB), start, tol=1e-9, max_iter=200)
    other = run(LDSAscent(case.model, case.compile(), posteriors.VB), case.start, tol=1e-9, max_iter=200)
    assert one.objective == approx(other.objective, abs=1e-6)


def test_units_change_densities_by_their_volume(rng):
    case = random_problem(rng)
    unit, origin = rng.uniform(0.5, 2, case.y.shape[1]), rng.normal(size=case.y.shape[1])
    blocks = case.model.prior.blocks
    other = LinearDynamicalSystem(*blocks, origin=origin, unit=unit)
    data = other.compile(origin + unit * case.y, case.lengths, case.weight, case.u, case.v)
    natural = posteriors.VB.of(case.model.prior, case.start)[0]
    one, two = case.model.expect(natural, case.compile()), other.expect(natural, data)
    assert two.statistics == approx(one.statistics, rel=1e-9, abs=1e-9)
    volume = data.counts @ np.log(unit)
    assert two.log_normalizer == approx(one.log_normalizer - volume, rel=1e-10)


def test_threads_change_no_bit(rng):
    lengths = [9000, 9000, 200, 9000, 400]
    y = rng.normal(size=(sum(lengths), 2))
    y[rng.random(y.shape) < 0.1] = np.nan
    case = problem(y, 2, [1.0, 1.0], 1.0, lengths=lengths)
    natural, data = posteriors.VB.of(case.model.prior, case.start)[0], case.compile()
    assert len(data.units) > 2
    one, two = (case.model.expect(natural, data, n_threads) for n_threads in (1, 2))
    assert np.array_equal(one.statistics, two.statistics)
    assert np.array_equal(one.log_normalizer, two.log_normalizer)
    whole = replace(data)
    whole._units.append(whole)
    assert case.model.expect(natural, whole).log_normalizer == approx(one.log_normalizer, rel=1e-12)


# --- starts -----------------------------------------------------------------------------------------------------------


def test_lagged_covariances_tell_the_poles_of_a_system(rng):
    """Two states of one column, whose cells come and go eight by eight; the start has a bound above others."""
    n, k, a = 12_000, 2, np.array([[0.8, 0.4], [-0.4, 0.8]])
    x = np.zeros((n, k))
    for t in range(1, n):
        x[t] = a @ x[t - 1] + rng.normal(size=k)
    y = x @ [[1.0], [0.5]] + 1.5 * rng.normal(size=(n, 1))
    y /= y.std()
    y[np.arange(n) % 16 < 8] = np.nan
    case = problem(y, k, [1.0, 1.0, 0.01], 1.0, v=np.ones((n, 1)))
    model, data = case.model, case.compile()
    transition = subspace_system(model, data)[0].coefficients
    assert np.sort_complex(np.linalg.eigvals(transition)) == approx(np.array([0.8 - 0.4j, 0.8 + 0.4j]), abs=0.1)
    ascent = LDSAscent(model, data, posteriors.VB)
    bounds = [ascent.advance(LDSStarts(kind, 1, (0,))(ascent), 1)[0, 0] for kind in ("subspace", "pca", "random")]
    assert bounds[0] > max(bounds[1:]) + 100
    # one step has no covariances at a lag: its states are principal ones
    short = problem(y[-1:], k, case.gamma, 1.0, v=np.ones((1, 1)))
    assert subspace_system(short.model, short.compile()) is None
    ascent = LDSAscent(short.model, short.compile(), posteriors.VB)
    assert np.array_equal(*(LDSStarts(kind, 2, (0,))(ascent) for kind in ("pca", "subspace")))


# --- the recursion ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gaps", [False, True])
def test_steps_that_repeat_are_those_of_the_whole_recursion(gaps, rng):
    """Means equal in every bit; few steps have matrices of their own."""
    lengths = [400, 400, 30]
    y = rng.normal(size=(830, 3))
    y[rng.integers(0, 830, 8), 0] = np.nan if gaps else 0.0
    case = problem(y, 2, [1.0, 1.0], 1.0, lengths=lengths, x=rng.normal(size=(830, 2)))
    natural = posteriors.VB.of(case.model.prior, case.start)[0][:, 0]
    potentials, data = case.model.potentials(natural), case.compile()
    frozen, whole = (Smoother(potentials, case.model.first, data, repeats).factored() for repeats in (1e-15, -1.0))
    assert len(frozen.gain) < (60 if not gaps else 400) < len(whole.gain)
    assert np.array_equal(frozen.means(), whole.means())
    assert frozen.log_det == approx(whole.log_det, rel=1e-14)
    for one, other in zip(frozen.covariances, whole.covariances):
        assert one == approx(other, rel=1e-13)


@pytest.mark.parametrize("gaps", [False, True])
def test_pieces_of_long_sequences_and_chunks_of_rows_change_nothing(gaps, rng, monkeypatch):
    for lengths in ([61], [30, 31, 30]):
        y = rng.normal(size=(sum(lengths), 3))
        y[rng.random(y.shape) < 0.2 * gaps] = np.nan
        y[-1, 0] = 0.5
        inputs = {"u": rng.normal(size=(len(y), 2)), "v": rng.normal(size=(len(y), 1))}
        weight, means = rng.uniform(0.5, 2, len(lengths)), rng.normal(size=(len(y), 2))
        case = problem(y, 2, [1.0] * 3, 1.0, alpha=[1.0] * 4, lengths=lengths, weight=weight, x=means, **inputs)
        natural = posteriors.VB.of(case.model.prior, case.start)[0]
        whole = case.model.expect(natural, case.compile())
        with monkeypatch.context() as patch:
            patch.setattr(smoother, "_PIECE_CELLS", 8 * 7)
            patch.setattr(data_of_sequences, "_CHUNK_ROWS", 13)
            parts = case.model.expect(natural, case.compile())
        assert parts.statistics == approx(whole.statistics, rel=1e-12, abs=1e-12)
        assert parts.log_normalizer == approx(whole.log_normalizer, rel=1e-13)
        assert parts.expansion.moments == approx(whole.expansion.moments, rel=1e-12, abs=1e-12)


def test_covariances_of_rows_are_those_of_the_dense_distribution(rng):
    case = random_problem(rng)
    e, _ = literal.posterior(moments_of(case), case.alpha, case.gamma, *prior_of(case))
    natural = posteriors.VB.of(case.model.prior, case.start)[0][:, 0]
    factored, data = case.model.smoothed(natural, case.compile()), case.compile()
    covariances, means = factored.marginal[factored.row_of_shape], factored.means()
    for n, (y, u, v, *_) in enumerate(case.sequences()):
        y, u, v = trimmed(y, u, v)
        if len(y):
            _, x, covariance = literal.states(y, u, v, e, np.zeros(case.k), np.eye(case.k))
            rows = slice(data.starts[n], data.ends[n])
            assert means[rows] == approx(x, rel=1e-9, abs=1e-9)
            assert block_diag(*covariances[rows]) == approx(
                covariance * np.kron(np.eye(len(y)), np.ones((case.k, case.k))), rel=1e-9, abs=1e-10
            )


def test_draws_have_the_means_and_covariances_of_states(rng):
    case = TWO_SEQUENCES
    natural = posteriors.VB.of(case.model.prior, case.start)[0][:, 0]
    data, n, k = case.compile(), len(case.compile()), case.k
    factored = case.model.smoothed(natural, data)
    draws = np.array([drawn_back(factored, data, rng.normal(size=(n, k))) for _ in range(4000)])
    e, _ = literal.posterior(moments_of(case), case.alpha, case.gamma, *prior_of(case))
    parts = [literal.states(*part[:3], e, np.zeros(k), np.eye(k))[1:] for part in case.sequences()]
    covariance = block_diag(*(part[1] for part in parts))
    spread = np.sqrt(np.diag(covariance))
    away = (draws.reshape(4000, -1) - np.concatenate([part[0].ravel() for part in parts])) / spread
    assert np.abs(away.mean(axis=0)).max() < 4 / np.sqrt(4000)
    correlation = covariance / np.outer(spread, spread)
    assert np.abs(away.T @ away / 4000 - correlation).max() < 5 * np.sqrt(2 / 4000)


@pytest.mark.parametrize("noise", [1.0, 1e-8, 1e-12, 1e6])
def test_likelihood_by_residuals_keeps_its_digits(noise):
    """Of a random walk that is observed with nearly no noise, beside a recursion in 50 digits."""
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 50
    y = np.cumsum(np.sin(np.arange(60) * 1.7))
    case = problem(y[:, None], 1, [1.0], 2.0)
    point = case.model.prior.blocks[0].natural, case.model.prior.blocks[1].natural
    of_dynamics = point[0](_point([[1.0]], []))
    of_emission = point[1](_point([[1.0]], [1 / noise]))
    found = case.model.log_normalizers_of_sequences(np.concatenate([of_dynamics, of_emission]), case.compile())[0]
    mean, variance, total = mpmath.mpf(0), mpmath.mpf(1), mpmath.mpf(0)
    for t, value in enumerate(y.tolist()):
        variance = variance + 1 if t else variance
        s = variance + 1 / mpmath.mpf(1 / noise)
        left = mpmath.mpf(value) - mean
        total -= (mpmath.log(2 * mpmath.pi * s) + left**2 / s) / 2
        mean, variance = mean + variance / s * left, variance - variance**2 / s
    assert abs(float(total - mpmath.mpf(float(found)))) < 1e-7


def _point(coefficients, precision):
    from skvbem.families import RegressionPoint

    return RegressionPoint(np.array(coefficients), np.array(precision))


def test_likelihood_of_a_point_is_the_normal_density_of_its_rows(rng):
    """Means and covariances of all cells together, written out."""
    k, p, n = 2, 2, 5
    a, c, noise = 0.5 * rng.normal(size=(k, k)), rng.normal(size=(p, k)), rng.uniform(0.2, 1, p)
    covariance = np.zeros((n, n, k, k))
    variance = np.eye(k)
    for t in range(n):
        variance = a @ variance @ a.T + np.eye(k) if t else variance
        covariance[t, t] = variance
        for s in range(t + 1, n):
            covariance[s, t] = a @ covariance[s - 1, t]
            covariance[t, s] = covariance[s, t].T
    of_states = covariance.transpose(0, 2, 1, 3).reshape(n * k, n * k)
    loadings = np.kron(np.eye(n), c)
    of_cells = loadings @ of_states @ loadings.T + np.kron(np.eye(n), np.diag(noise))
    y = rng.normal(size=(n, p))
    y[1, 0] = y[2] = np.nan
    seen = ~np.isnan(y.ravel())
    wanted = multivariate_normal(cov=of_cells[np.ix_(seen, seen)]).logpdf(y.ravel()[seen])
    case = problem(y, k, [1.0, 1.0], 1.0)
    natural = case.model.prior.natural((_point(a, []), _point(c, 1 / noise)))
    assert case.model.log_normalizers_of_sequences(natural, case.compile())[0] == approx(wanted, rel=1e-11)


# --- other models -----------------------------------------------------------------------------------------------------


def test_states_that_are_shut_out_leave_normal_columns():
    """The bound is the evidence of columns with a learned mean and variance."""
    case = TWO_SEQUENCES._replace(alpha=[1e12] * 3, gamma=[1e12, 1e12, 0.01])
    ran = run(LDSAscent(case.model, case.compile(), posteriors.VB), case.start, tol=1e-10, max_iter=500)
    assert ran.objective[0] == approx(-30.975869589183, abs=1e-8)


def test_a_state_that_is_shut_out_costs_what_its_row_of_coefficients_may_be(rng):
    """Nothing tells what it takes from the living states, whose squares W then shrink what the prior says of that."""
    n, k, p = 120, 2, 3
    a, x = np.array([[0.9, 0.3], [-0.3, 0.8]]), np.zeros((120, 2))
    for t in range(1, n):
        x[t] = a @ x[t - 1] + rng.normal(size=k)
    y = x @ rng.normal(size=(k, p)) + 0.5 * rng.normal(size=(n, p))
    alpha, bounds = np.array([2.0, 2.0]), []
    of_more = problem(y, 3, [1, 1, 1e10], 1.0, alpha=[2, 2, 1e10], x=np.column_stack([x, np.zeros(n)]))
    for case in (problem(y, 2, [1, 1], 1.0, alpha=alpha, x=x), of_more):
        ran = run(LDSAscent(case.model, case.compile(), posteriors.VB), case.start, tol=1e-9, max_iter=5000)
        bounds.append(ran.objective[0])
        if case is not of_more:
            packed, *_ = case.model.dynamics.split(case.model.prior.split(ran.statistics[:, 0])[0])
            squares = unpack_symmetric(packed, k)[0]
    cost = 0.5 * np.log(alpha).sum() - 0.5 * np.linalg.slogdet(np.diag(alpha) + squares)[1]
    assert cost < -3
    assert cost - 1e-6 <= bounds[1] - bounds[0] < cost + 0.1


def test_sequences_of_one_step_are_rows_of_a_factor_analyzer(rng):
    n, p, k = 40, 4, 2
    y = rng.normal(size=(n, k)) @ rng.normal(size=(k, p)) + 0.5 * rng.normal(size=(n, p))
    case = problem(y, k, [1.0, 1.0, 0.01], 1.0, lengths=[1] * n, v=np.ones((n, 1)), x=rng.normal(size=(n, k)))
    ran = run(LDSAscent(case.model, case.compile(), posteriors.VB), case.start, tol=1e-11, max_iter=2000)
    still = case._replace(lengths=[n], alpha=[1e14] * k, weight=np.ones(1))
    other = run(LDSAscent(still.model, still.compile(), posteriors.VB), still.start, tol=1e-11, max_iter=2000)
    assert other.objective[0] == approx(ran.objective[0], abs=1e-7)
    assert ran.objective[0] == approx(literal_factor_analysis(y, case, 3000), abs=1e-7)


def literal_factor_analysis(y, case, n_steps):
    """The bound of a variational factor analysis with an offset, coded as one writes it on paper."""
    (n, p), k = y.shape, case.k
    x, v = case.x.copy(), np.eye(k)
    gamma, bound = np.diag(case.gamma), -np.inf
    for _ in range(n_steps):
        r = np.column_stack([x, np.ones(n)])
        g = r.T @ r
        g[:k, :k] += n * v
        precision = gamma + g
        mu = np.linalg.solve(precision, r.T @ y)
        a = case.a0 + n / 2
        b = case.b0 + 0.5 * ((y**2).sum(axis=0) - np.einsum("is,ij,js->s", mu, precision, mu))
        evidence = -n * p / 2 * np.log(2 * np.pi) + (case.a0 * np.log(case.b0) - a * np.log(b)).sum()
        evidence += p * (gammaln(a) - gammaln(case.a0))
        evidence += p / 2 * (np.linalg.slogdet(gamma)[1] - np.linalg.slogdet(precision)[1])
        bound = evidence - 0.5 * (n * np.trace(v) + (x**2).sum()) + n / 2 * np.linalg.slogdet(v)[1] + n * k / 2
        rho, spread = a / b, np.linalg.inv(precision)
        squares = np.einsum("s,is,js->ij", rho, mu, mu) + p * spread
        v = np.linalg.inv(np.eye(k) + squares[:k, :k])
        x = ((y * rho) @ mu[:k].T - squares[:k, k]) @ v
    return bound


@pytest.mark.parametrize(("k", "free", "unit"), [(1, -140.3325, -138.5303), (2, -153.0006, -148.2341)])
def test_a_free_covariance_of_the_states_lowers_the_bound(k, free, unit, rng):
    """Of the Nile: more is learned that nothing observed tells, so that the identity is the better unit."""
    flow = load_nile().data.ravel()
    y, gamma = (flow - flow.mean()) / flow.std(), np.array([1.0] * k + [0.01])
    bound = literal.bound_with_free_covariance(y, y[:, None] + 0.5 * rng.normal(size=(100, k)), gamma)
    assert bound == approx(free, abs=1e-4)
    assert bound < unit


# --- the basis of states ----------------------------------------------------------------------------------------------


def test_derivatives_of_the_basis(rng):
    for form in (posteriors.VB, posteriors.MAP, posteriors.ML):
        case = random_problem(rng)
        case = case if form.prior_share else LONG_ENOUGH._replace(x=rng.normal(size=LONG_ENOUGH.x.shape))
        model, data = case.model, case.compile()
        natural, _ = posteriors.VB.of(model.prior, case.start)
        expectation = model.expect(natural, data)
        first = FirstStates(rng.normal(size=case.k), 1.5 * np.eye(case.k))
        basis = StateBasis(form, model.prior, first, expectation.statistics[:, 0], expectation.expansion.of_lane(0))
        at = basis.unit + 0.2 * rng.normal(size=basis.unit.shape)
        _, slope = basis.value(at)
        wanted = gradient(lambda flat, b=basis: b.value(flat.reshape(b.unit.shape))[0], at.ravel())
        assert slope.ravel() == approx(wanted, rel=1e-5, abs=1e-5)


LONG_ENOUGH = problem(np.sin(np.arange(40) * 0.7)[:, None] + np.cos(np.arange(40.0) ** 2)[:, None], 2, [1, 1], 1.0,
                      x=np.zeros((40, 2)))  # fmt: skip


def test_values_of_the_basis_are_log_evidences(rng):
    for _ in range(6):
        case = random_problem(rng)
        natural = posteriors.VB.of(case.model.prior, case.start)[0]
        expectation = case.model.expect(natural, case.compile())
        lane = expectation.statistics[:, 0], expectation.expansion.of_lane(0)
        basis = StateBasis(posteriors.VB, case.model.prior, case.model.first, *lane)
        after, first, n = lane[1].after, lane[1].first[:-1, :-1], lane[1].n
        away = []
        for _ in range(3):
            turned = basis.unit + 0.2 * rng.normal(size=basis.unit.shape)
            wanted = n * np.linalg.slogdet(turned[:, : case.k])[1]
            wanted += (case.model.prior + basis.statistics(turned)).log_normalizer()
            wanted -= 0.5 * np.trace(turned @ (first + after) @ turned.T)
            away.append(basis.value(turned)[0] - wanted)
        assert away[1:] == approx(away[:1] * 2, rel=1e-9, abs=1e-9)


def test_turns_of_states_that_grew_large_move_the_bound_by_rounding_alone(rng):
    """Sums hold terms of 1e9 nats: what an inverse is off by must enter in its square alone."""
    level = 300 * np.expm1(np.arange(500) / 150)
    x = np.column_stack([level, 0.9 * level]) + rng.normal(size=(500, 2)).cumsum(axis=0)
    model = LinearDynamicalSystem.from_precisions([2.0, 2.0], [1.0, 1.0], shape=[1.0], rate=[1.0], n_states=2)
    data = model.compile(level[:, None] / level.std() + 0.01 * rng.normal(size=(500, 1)), lengths=[500])
    statistics, moments = model.statistics(data, x)
    basis = StateBasis(posteriors.VB, model.prior, model.first, statistics, BasisMoments.unpacked(moments, 2, 0, 0))
    angles = rng.uniform(0, 2 * np.pi, size=50)
    turns = (np.array([[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]) for a in angles)
    values = [basis.value(turned)[0] for turned in turns]
    assert np.ptp(values) < 1e-4


def test_maximum_likelihood_of_a_noisy_autoregression_is_that_of_statsmodels():
    """First states N(0, 4) and no offset: the maximum of statsmodels' likelihood, where plain EM takes 268 steps."""
    nile = np.asarray(load_nile().data, dtype=float).reshape(-1, 1)
    prior = LinearDynamicalSystem.from_precisions([1.0], [1.0], shape=[1.0], rate=[1.0]).prior
    model = LinearDynamicalSystem(*prior.blocks, first=FirstStates(np.zeros(1), np.eye(1) / 4))
    data = model.compile((nile - nile.mean()) / 100, lengths=[100])
    start = model.statistics_of_start(data, data.measured, 0.1)[:, None]
    fit = run(LDSAscent(model, data, posteriors.ML), start, tol=1e-9, max_iter=1000)
    assert fit.objective.item() == pytest.approx(-176.47626092, abs=1e-8)
    assert fit.n_iter.item() < 100


def test_the_basis_of_the_most_likely_has_a_closed_form(rng):
    found = 0
    for _ in range(6):
        case = random_problem(rng, gaps=False)
        ascent = PlainAscent(case.model, case.compile(), posteriors.ML)
        at = case.start
        ascent.advance(at, 1)
        expectation = case.model.expect(posteriors.ML.of(case.model.prior, at)[0], ascent.data)
        lane = expectation.statistics[:, 0], expectation.expansion.of_lane(0)
        basis = StateBasis(posteriors.ML, case.model.prior, case.model.first, *lane)
        closed, rise = basis.whitening()
        if closed is None:
            continue
        found += 1
        best, slope = basis.value(closed)
        assert rise == pytest.approx(best - basis.value(basis.unit)[0], rel=1e-9, abs=1e-9 * lane[1].n)
        assert np.abs(slope[:, : case.k]).max() < 1e-7 * lane[1].n
        for _ in range(20):
            moved = closed + 0.3 * rng.normal(size=closed.shape)
            moved[:, case.k :] = 0.0
            assert basis.value(moved)[0] < best + 1e-9
    assert found > 3


def test_turns_of_states_change_nothing_where_priors_are_alike(rng):
    case = random_problem(rng)
    for alpha, alike in ((1.0, True), (3.0, False)):
        k, q = case.k, case.u.shape[1]
        if k == 1:
            continue
        turned = case._replace(alpha=[alpha] + [1.0] * (k - 1 + q), gamma=[1.0] * len(case.gamma))
        model, data = turned.model, turned.compile()
        expectation = model.expect(posteriors.VB.of(model.prior, turned.start)[0], data)
        lane = expectation.statistics[:, 0], expectation.expansion.of_lane(0)
        basis = StateBasis(posteriors.VB, model.prior, model.first, *lane)
        turn, _ = np.linalg.qr(rng.normal(size=(k, k)))
        turn[0] *= np.sign(np.linalg.det(turn))
        turn = np.concatenate([turn, basis.unit[:, k:]], axis=1)
        change = basis.value(turn)[0] - basis.value(basis.unit)[0]
        assert (abs(change) < 1e-9) is alike


def test_no_likelihood_tells_turns(rng):
    for k in (1, 2, 3, 3):
        case = random_problem(rng)._replace(k=k)
        n_inputs, n_outputs = case.u.shape[1], case.v.shape[1]
        case = case._replace(
            alpha=rng.uniform(0.3, 3.0, k + n_inputs).tolist(), gamma=rng.uniform(0.3, 3.0, k + n_outputs).tolist(),
            x=rng.normal(size=(len(case.y), k)),
        )  # fmt: skip
        model, data = case.model, case.compile()
        natural = (model.prior + case.start[:, 0]).expected_natural()
        turns = model.rotation_tangents(natural)
        assert turns.shape[1] == k * (k - 1) // 2
        for turn in turns.T / np.linalg.norm(turns, axis=0)[:, None]:
            along, across = (
                np.ptp(
                    model.expect(natural[:, None] + 1e-5 * np.array([-1.0, 1.0]) * each[:, None], data).log_normalizer
                )
                for each in (turn, np.where(turn != 0, rng.permuted(turn), 0.0))
            )
            assert along < 1e-8 + 1e-6 * across


def test_states_without_a_density_are_not_known(rng):
    """Where precisions are below 0 expectations are no numbers, whatever memory holds."""
    case = random_problem(rng)
    data = case.compile()
    natural = -1e3 * posteriors.VB.of(case.model.prior, case.start)[0]
    assert np.isnan(case.model.expect(natural, data).log_normalizer).all()
    assert np.isnan(case.model.smoothed(natural[:, 0], data).means()).all()


def test_a_change_of_basis_saves_thousands_of_steps(rng):
    """More states are fitted than there are: plain steps are far from their end where these have ended."""
    k, n = 2, 120
    a = np.array([[0.9, 0.3], [-0.3, 0.9]])
    x = np.zeros((n, k))
    for t in range(1, n):
        x[t] = a @ x[t - 1] + rng.normal(size=k)
    y = x @ rng.normal(size=(k, 4)) + 0.5 * rng.normal(size=(n, 4))
    y = (y - y.mean(axis=0)) / y.std(axis=0)
    case = problem(y, 3, [1.0] * 3, 1.0, x=rng.normal(size=(n, 3)))
    model, data = case.model, case.compile()
    fast = run(LDSAscent(model, data, posteriors.VB), case.start, tol=1e-5, max_iter=400, accelerate=False)
    slow = PlainAscent(model, data, posteriors.VB).advance(case.start, 400)[:, 0]
    trace = np.array(fast.traces[0])
    n_steps = int(np.argmax(trace > trace[-1] - 0.1))
    assert fast.converged[0]
    assert slow[4 * n_steps] < trace[-1] - 0.1


def test_a_level_and_its_offset_are_told_in_few_steps(rng):
    """What of a trend is state and what is offset: states shift, too, and not only turn and stretch."""
    y = np.linspace(-2, 2, 100)[:, None] * np.ones(2) + 0.02 * rng.normal(size=(100, 2))
    model = LinearDynamicalSystem.from_precisions([1.0], [1.0, 0.01], shape=[1.0] * 2, rate=None)
    data = model.compile(y, [100], output_inputs=np.ones((100, 1)))
    start = model.started(model.statistics_of_start(data, y[:, :1], 0.1))[:, None]
    shifting = run(LDSAscent(model, data, posteriors.VB), start, tol=1e-6, max_iter=200)
    staying = run(PlainAscent(model, data, posteriors.VB), start, tol=1e-6, max_iter=200)
    assert shifting.converged[0]
    assert shifting.objective[0] > staying.objective[0] + 10


# --- learned precisions -----------------------------------------------------------------------------------------------


def with_relevance(case, shape, rate):
    """The model whose precisions of states are hidden."""
    p = case.y.shape[1]
    return LinearDynamicalSystem.from_precisions(
        case.alpha, case.gamma, shape=[case.a0] * p, rate=[case.b0] * p, group=np.arange(p), n_states=case.k,
        relevance=(shape, rate),
    )  # fmt: skip


def test_precisions_that_are_all_but_known_are_those_of_the_prior(rng):
    """A Gamma prior of mean 2 and of no width; the bound goes to that of the precision 2."""
    case = random_problem(rng)
    k, data = case.k, case.compile()
    known = case._replace(alpha=[2.0] * k + case.alpha[k:], gamma=[2.0] * k + case.gamma[k:])
    model = with_relevance(case, 2e8, 1e8)
    start = model.started(known.start)
    wanted = run(LDSAscent(known.model, data, posteriors.VB), known.start, tol=1e-10, max_iter=2000)
    found = run(LDSAscent(model, data, posteriors.VB), start, tol=1e-10, max_iter=2000)
    assert found.objective[0] == approx(wanted.objective[0], abs=1e-4)


@pytest.mark.parametrize("seed", [0, 1])
def test_precisions_that_are_learned_from_the_first_step_shut_all_states_out(seed):
    """From a random start, under hyperpriors that say nothing; after a run under known precisions they do not."""
    rng, n, p, k = np.random.default_rng(seed), 100, 4, 2
    a, x = rng.normal(size=(k, k)), np.zeros((n, k))
    a, c = 0.98 * a / np.abs(np.linalg.eigvals(a)).max(), rng.normal(size=(p, k))
    for t in range(1, n):
        x[t] = a @ x[t - 1] + rng.normal(size=k)
    y = x @ c.T + 0.5 * rng.normal(size=(n, p))
    y = (y - y.mean(axis=0)) / y.std(axis=0)
    case = problem(y, 3, [1.0, 1.0, 1.0, 0.01], 1.0, v=np.ones((n, 1)), x=rng.normal(size=(n, 3)))
    model, data = with_relevance(case, 1e-6, 1e-6), case.compile()
    first = run(LDSAscent(case.model, data, posteriors.VB), case.start, tol=0.1, max_iter=1000).statistics
    natural = posteriors.VB.of(case.model.prior, first)[0][:, 0]
    frozen = (first[:, 0] + model.prior.hyperparameters(natural))[:, None]
    bounds, least = [], []
    for start in (model.started(case.start), frozen):
        ran = run(LDSAscent(model, data, posteriors.VB), start, tol=1e-2, max_iter=1000)
        natural = posteriors.VB.of(model.prior, ran.statistics)[0][:, 0]
        given = model.prior.given_hyperparameters(model.prior.hyperparameters(natural))
        bounds.append(ran.objective[0])
        least.append([1 / np.diagonal(block.covariance[0])[:3].max() for block in given.blocks])
    assert min(least[0]) > 1e3 > 10 > max(least[1])
    assert bounds[1] > bounds[0] + 100


def test_bound_with_hidden_precisions_is_that_of_its_terms(rng):
    """F at q(alpha) q(gamma): expected ln p of coefficients and precisions, less their entropies, by definition."""
    case = random_problem(rng)
    k, p, shape, rate = case.k, case.y.shape[1], 1.5, 0.7
    model, data = with_relevance(case, shape, rate), case.compile()
    ran = run(LDSAscent(model, data, posteriors.VB), model.started(case.start), tol=1e-12, max_iter=3000)
    posterior = model.prior + ran.statistics[:, 0]
    natural = posterior.expected_natural()
    dynamics, emission = posterior.blocks
    bound = model.expect(natural[:, None], data).log_normalizer[0]
    for block, n_rows, precisions in ((dynamics, k, case.alpha), (emission, p, case.gamma)):
        second = (
            -2 * natural[: len(dynamics.coordinates)]
            if block is dynamics
            else -2 * natural[len(dynamics.coordinates) :]
        )
        squares = second[block.precision_cells][:, np.cumsum([0, *range(block.n_regressors, 1, -1)])].sum(axis=0)
        a, b = shape + n_rows / 2, rate + squares[:k] / 2
        alpha = np.concatenate([a / b, precisions[k:]])
        # - KL of q(alpha), and what p(coefficients | alpha) has of its precision: <ln alpha> in place of ln <alpha>
        bound -= (
            (a - shape) * digamma(a) - gammaln(a) + gammaln(shape) + shape * np.log(b / rate) + a * (rate / b - 1)
        ).sum()
        bound += n_rows / 2 * (digamma(a) - np.log(a)) * k
        given = Regression.from_parameters(
            np.zeros((n_rows, block.n_regressors)), np.repeat(np.diag(alpha)[None], block.n_precisions, axis=0),
            None if block is dynamics else np.full(p, case.a0), None if block is dynamics else np.full(p, case.b0),
            block.precision_of, block.noise_of,
        )  # fmt: skip
        bound -= block.kl(given)
    assert ran.objective[0] == approx(bound, rel=1e-9, abs=1e-7)
