"""Linear dynamical systems whose first states have a distribution that is learned.

- the E step, the divergence and the bound by definition: test_bound_and_e_step_are_those_of_the_definition
- evidences in closed form, by quadrature and by draws: test_first_states_that_are_seen_have_the_evidence_of_rows,
  test_bound_and_chains_of_one_step_systems_beside_quadrature, test_sampled_evidence_is_that_of_draws_from_the_prior
- the basis of states: test_derivatives_of_the_basis, test_plain_steps_lead_no_higher
- random systems: test_random_systems_keep_their_laws, test_a_hundred_random_systems_keep_their_laws
- chains: test_lanes_are_smoothers, test_moves_keep_the_volume_that_they_say, test_draws_turn_to_a_fit
- turns, orders and dimensions: test_priors_that_tell_turns, test_no_likelihood_tells_turns, test_dimension_is_a_rank
"""

from functools import partial

import numpy as np
import pytest
from models.linear_dynamical_system.linear_systems import PlainAscent, problem, random_problem
from models.linear_dynamical_system.test_linear_dynamical_system import (
    drawn_back,
    moments_of,
    prior_of,
    proposed,
    trimmed,
)
from reference import linear_dynamical_system as literal
from reference.differences import gradient
from scipy.special import logsumexp
from scipy.stats import gamma, norm, wishart

from skvbem.evidence import get_score
from skvbem.families import NormalWishart, Regression
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.models import capabilities_of
from skvbem.models.linear_dynamical_system import sampling
from skvbem.models.linear_dynamical_system.first_states import round_prior
from skvbem.models.linear_dynamical_system.model import LDSAscent, LinearDynamicalSystem, identifiable_dimension
from skvbem.models.linear_dynamical_system.rotations import is_free_to_rotate
from skvbem.models.linear_dynamical_system.state_map import StateBasis
from skvbem.testing.cases import evaluation_from
from skvbem.vbem import posteriors
from skvbem.vbem.driver import run

approx = pytest.approx


def random_prior(rng, k):
    root = rng.normal(size=(k, k))
    return literal.LearnedFirst(
        rng.normal(size=k), rng.uniform(0.3, 3), k + rng.uniform(0.2, 3), root @ root.T + np.eye(k)
    )


def learned(case, prior=None):
    """The model of a problem with first states that are learned, by default from the round prior."""
    if prior is None:
        first = round_prior(case.k)
    else:
        first = NormalWishart.from_parameters([prior.m], [prior.kappa], [prior.nu], [prior.scale])
    return LinearDynamicalSystem(*case.model.prior.blocks, first=first)


def compiled(model, case):
    data = model.compile(case.y, case.lengths, case.weight, case.u, case.v)
    return data, model.statistics_of_start(data, case.x[data.rows], 1.0)[:, None]


def sums_of_first(case, states=None):
    """How many first states there are, their expected sum and sum of squares; of the start where none are given."""
    n, total, squares = 0.0, np.zeros(case.k), np.zeros((case.k, case.k))
    for number, (y, u, v, weight, x) in enumerate(case.sequences()):
        if not len(trimmed(y, u, v)[0]):
            continue
        mean, covariance = (x[0], np.eye(case.k)) if states is None else states[number]
        n, total = n + weight, total + weight * mean
        squares = squares + weight * (np.outer(mean, mean) + covariance)
    return n, total, squares


# --- by definition ----------------------------------------------------------------------------------------------------


def test_bound_and_e_step_are_those_of_the_definition(rng):
    """One dense normal distribution; and the bound is E ln p - E ln q, term by term."""
    for _ in range(8):
        case = random_problem(rng)
        prior = random_prior(rng, case.k)
        model = learned(case, prior)
        data, start = compiled(model, case)
        e, kl = literal.posterior(moments_of(case), case.alpha, case.gamma, *prior_of(case))
        q = literal.LearnedFirst.after(prior, *sums_of_first(case))
        natural, penalty = posteriors.VB.of(model.prior, start)
        assert -penalty[0] == approx(kl + q.kl(prior), rel=1e-9)
        precision, log_det = q.expected
        bound, log_z, states, steps, later, n_later = 0.0, [], {}, None, 0.0, 0.0
        for number, (y, u, v, weight, _) in enumerate(case.sequences()):
            y, u, v = trimmed(y, u, v)
            if not len(y):
                log_z.append(0.0)
                continue
            of_normal, means, covariance = literal.states(y, u, v, e, q.m, np.linalg.inv(precision))
            lowered = 0.5 * (log_det - np.linalg.slogdet(precision)[1] - case.k / q.kappa)
            log_z.append(of_normal + lowered)
            parts = [weight * part for part in literal.moments(y, u, v, means, covariance)]
            steps = parts if steps is None else [one + other for one, other in zip(steps, parts)]
            second = covariance + np.outer(means.ravel(), means.ravel())
            blocks = [second[i : i + case.k, i : i + case.k] for i in range(0, len(second), case.k)]
            later, n_later = later + weight * sum(blocks[1:], 0 * blocks[0]), n_later + weight * len(blocks[1:])
            states[number] = means[0], covariance[: case.k, : case.k]
            bound += weight * literal.entropy(covariance)
        n, total, squares = sums_of_first(case, states)
        expectation = model.expect(natural, data)
        assert model.log_normalizers_of_sequences(natural[:, 0], data) == approx(log_z, rel=1e-9, abs=1e-9)
        *_, of_first = model.prior.split(expectation.statistics[:, 0])
        assert of_first == approx([n, n, *total, *squares[np.triu_indices(case.k)]], rel=1e-9, abs=1e-9)
        # the joint density less what the literal has of fixed first states, none of which are there
        joint = literal.log_joint(
            literal.Moments(*steps), (np.zeros_like(squares), np.zeros(case.k)), later, 0.0, n_later, e,
            np.zeros(case.k), np.eye(case.k),
        )  # fmt: skip
        bound += joint + q.log_likelihood(n, total, squares) - kl - q.kl(prior)
        assert (expectation.log_normalizer + penalty)[0] == approx(bound, rel=1e-9, abs=1e-9)


# --- evidences --------------------------------------------------------------------------------------------------------


def seen_through(noise, k=1):
    """Systems whose columns are their states, with a known and independent noise; nothing is left but first states."""
    one = np.zeros(k, dtype=int)
    sure = 1e9
    dynamics = Regression.from_parameters(np.zeros((k, k)), [np.eye(k) * sure], None, None, one, None)
    emission = Regression.from_parameters(
        np.eye(k), [np.eye(k) * sure], np.full(k, sure), np.full(k, sure * noise), one, np.arange(k), floor=1e-30
    )
    return LinearDynamicalSystem(dynamics, emission, first=round_prior(k))


def test_first_states_that_are_seen_have_the_evidence_of_rows(rng):
    """Under next to no noise they are rows of a normal distribution, whose evidence has a closed form."""
    x = rng.normal(size=(9, 2)) + np.array([2.0, 0.0])
    model = seen_through(1e-7, 2)
    data = model.compile(x, [1] * 9)
    ran = run(LDSAscent(model, data, posteriors.VB), model.statistics_of_start(data, x, 0.1)[:, None], tol=1e-9,
              max_iter=500)  # fmt: skip
    products = (x.T @ x)[np.triu_indices(2)]
    wanted = round_prior(2).log_evidence(np.concatenate([[9, 9], x.sum(axis=0), products]))
    assert ran.objective[0] == approx(wanted, abs=1e-4)


def test_bound_and_chains_of_one_step_systems_beside_quadrature(rng):
    """One state, one step, noise of variance 0.5: the evidence is an integral over the mean and the precision."""
    y, noise, prior = np.array([0.3, 1.9, 2.4, 1.1, 3.0]), 0.5, round_prior(1)
    model = seen_through(noise)
    data = model.compile(y[:, None], [1] * 5)
    kappa, nu = prior.coordinates[:2]
    scale = prior.coordinates[3]

    def evidence(n=240):
        log_precision, mean = np.meshgrid(np.linspace(-14, 6, n), np.linspace(-40, 40, 8 * n), indexing="ij")
        precision = np.exp(log_precision)
        log_density = gamma.logpdf(precision, nu / 2, scale=2 / scale) + log_precision
        log_density += norm.logpdf(mean, 0, 1 / np.sqrt(kappa * precision))
        for each in y:
            log_density += norm.logpdf(each, mean, np.sqrt(1 / precision + noise))
        return logsumexp(log_density) + np.log(20 / (n - 1)) + np.log(80 / (8 * n - 1))

    wanted = evidence()
    assert wanted == approx(evidence(181), abs=1e-3)  # grids agree: the integral is what they say
    start = model.statistics_of_start(data, y[:, None], 0.1)[:, None]
    evaluation = evaluation_from(start, LDSAscent, model, data, ("state",), seed=1, tol=1e-9)
    bound = get_score("lower_bound")(evaluation).value
    assert wanted - 1.0 < bound < wanted
    for kind in ("auto", "smc_data"):
        found = get_score(kind)(evaluation)
        assert abs(found.value - wanted) < max(3 * found.standard_error, 0.01), kind
        assert found.standard_error < 0.2


@pytest.mark.parametrize(
    ("k", "kind"),
    [(1, "ais"), *(pytest.param(*each, marks=pytest.mark.slow) for each in ((1, "auto"), (2, "auto"), (2, "ais")))],
)
def test_sampled_evidence_is_that_of_draws_from_the_prior(k, kind, rng):
    """The mean of the likelihood over a hundred thousand draws of the prior; sequences, gaps, an offset."""
    y = np.array([[2.0], [1.4], [0.5], [2.6], [np.nan], [0.9], [1.5], [0.4]])
    case = problem(y, k, [1.0] * k + [1.0], 2.0, lengths=[3, 3, 2], v=np.ones((8, 1)), x=np.repeat(y, k, axis=1) * 0)
    model = learned(case)
    data, _ = compiled(model, case)
    starts = np.stack([model.statistics_of_start(data, rng.normal(size=(8, k)), 1.0) for _ in range(6)], axis=1)
    evaluation = evaluation_from(starts, LDSAscent, model, data, ("state",), seed=1, tol=1e-7)
    points = model.prior.natural((model.prior + np.zeros((model.n_cells, 100_000))).sample(rng))
    log_likelihoods = evaluation.capability("points").log_likelihoods(data, points)
    wanted = logsumexp(log_likelihoods) - np.log(100_000)
    weight = np.exp(log_likelihoods - log_likelihoods.max())
    error = weight.std() / weight.mean() / np.sqrt(100_000)
    assert error < 0.04
    assert get_score("lower_bound")(evaluation).value < wanted
    found = get_score(kind)(evaluation)
    assert abs(found.value - wanted) < 3 * np.hypot(found.standard_error, error)
    assert found.standard_error < 0.15


# --- the basis of states ----------------------------------------------------------------------------------------------


def test_derivatives_of_the_basis(rng):
    """And values: the entropy that states gain, and the objective of complete data after the map."""
    for form in (posteriors.VB, posteriors.MAP, posteriors.ML):
        case = problem(
            rng.normal(size=(60, 2)), 2, [1.0, 1.0, 0.1], 1.0, lengths=[6] * 10, v=np.ones((60, 1)),
            x=rng.normal(size=(60, 2)),
        )  # fmt: skip
        model = learned(case, random_prior(rng, 2))
        data, start = compiled(model, case)
        expectation = model.expect(posteriors.VB.of(model.prior, start)[0], data)
        lane = expectation.statistics[:, 0], expectation.expansion.of_lane(0)
        basis = StateBasis(form, model.prior, None, *lane)
        at = basis.unit + 0.2 * rng.normal(size=basis.unit.shape)
        _, slope = basis.value(at)
        wanted = gradient(lambda flat, b=basis: b.value(flat.reshape(b.unit.shape))[0], at.ravel())
        assert slope.ravel() == approx(wanted, rel=1e-5, abs=1e-5)
        assert basis.statistics(basis.unit) == approx(lane[0], rel=1e-12, abs=1e-12)
        away = []
        for map in (at, basis.unit):
            after = lane[1].n * np.linalg.slogdet(map[:, :2])[1] - 0.5 * np.vdot(map @ lane[1].after, map)
            of_complete = form.of_complete(model.prior, basis.statistics(map)[:, None])[0]
            away.append(basis.value(map)[0] - after - of_complete)
        assert away[0] == approx(away[1], abs=1e-8)


def test_plain_steps_lead_no_higher(rng):
    """Thousands of plain steps end where some with a better basis do, in one optimum."""
    x = rng.normal(size=(12, 1)) + 3.0
    y = np.concatenate([0.6**t * x + 0.3 * rng.normal(size=(12, 1)) for t in range(4)], axis=1).reshape(-1, 1)
    case = problem(y, 1, [1.0, 0.01], 1.0, lengths=[4] * 12, v=np.ones((48, 1)), x=y)
    model = learned(case)
    data, start = compiled(model, case)
    slow = run(PlainAscent(model, data, posteriors.VB), start.copy(), tol=1e-8, max_iter=20_000)
    fast = run(LDSAscent(model, data, posteriors.VB), start.copy(), tol=1e-8, max_iter=2000)
    assert fast.objective[0] == approx(slow.objective[0], abs=1e-5)
    assert fast.n_iter[0] < slow.n_iter[0] / 2
    unit = LinearDynamicalSystem(*model.prior.blocks[:2])
    data, start = compiled(unit, case)
    fixed = run(LDSAscent(unit, data, posteriors.VB), start, tol=1e-8, max_iter=2000)
    assert fast.objective[0] > fixed.objective[0] + 3.0  # first states are far from where the others are


def test_the_basis_of_the_most_likely_follows_from_later_steps_alone(rng):
    """First states have a distribution that follows any basis: they count in neither term of the closed form."""
    case = problem(rng.normal(size=(80, 3)), 2, [1.0, 1.0], 1.0, lengths=[4] * 20, x=rng.normal(size=(80, 2)))
    model = learned(case)
    data, start = compiled(model, case)
    expectation = model.expect(posteriors.ML.of(model.prior, start)[0], data)
    basis = StateBasis(posteriors.ML, model.prior, None, expectation.statistics[:, 0], expectation.expansion.of_lane(0))
    closed, _ = basis.whitening()
    best, slope = basis.value(closed)
    assert np.abs(slope).max() < 1e-7 * 80
    for _ in range(20):
        assert basis.value(closed + 0.3 * rng.normal(size=closed.shape))[0] < best + 1e-9


# --- random systems ---------------------------------------------------------------------------------------------------


def check_random_system(rng):
    """The objective rises, weights are repeats, threads change no bit, order of columns and sequences nothing."""
    case = random_problem(rng, whole=True)
    prior = random_prior(rng, case.k)
    model = learned(case, prior)
    data, start = compiled(model, case)
    ran = run(LDSAscent(model, data, posteriors.VB), start.copy(), tol=1e-3, max_iter=60)
    assert (np.diff(ran.traces[0]) >= -1e-9 * (1 + np.abs(ran.traces[0][1:]))).all()
    natural = posteriors.VB.of(model.prior, np.ascontiguousarray(ran.statistics))[0]
    here, repeated, threads = (
        model.expect(natural, each, n) for each, n in ((data, 1), (data.one_by_one, 1), (data, 3))
    )
    assert repeated.log_normalizer == approx(here.log_normalizer, rel=1e-9, abs=1e-9)
    assert repeated.statistics == approx(here.statistics, rel=1e-9, abs=1e-9)
    assert np.array_equal(threads.statistics, here.statistics)
    order = np.concatenate(np.split(np.arange(len(case.y)), np.cumsum(case.lengths)[:-1])[::-1])
    other = case._replace(
        y=case.y[order][:, ::-1], lengths=case.lengths[::-1], weight=case.weight[::-1], u=case.u[order],
        v=case.v[order], x=case.x[order],
    )  # fmt: skip
    turned, turned_start = compiled(model, other)
    one, two = (
        run(LDSAscent(model, rows, posteriors.VB), at.copy(), tol=0.0, max_iter=3, accelerate=False)
        for rows, at in ((data, start), (turned, turned_start))
    )
    assert two.objective == approx(one.objective, rel=1e-9, abs=1e-9)


def test_random_systems_keep_their_laws(rng):
    for _ in range(8):
        check_random_system(rng)


@pytest.mark.slow
def test_a_hundred_random_systems_keep_their_laws(rng):
    for _ in range(100):
        check_random_system(rng)


# --- chains -----------------------------------------------------------------------------------------------------------


def test_lanes_are_smoothers(rng):
    """Likelihoods and draws of many parameters at once are those of one after the other, by the same random numbers."""
    for _ in range(5):
        case = random_problem(rng, whole=True)
        model = learned(case, random_prior(rng, case.k))
        data, start = compiled(model, case)
        data = data.one_by_one
        drawn = (model.prior + np.repeat(start, 2, axis=1)).sample(rng)
        natural = np.concatenate([posteriors.VB.of(model.prior, start)[0], model.prior.natural(drawn)], axis=1)
        streams = rng.integers(0, 2**64, size=(4, 3), dtype=np.uint64)
        log_z, statistics = sampling.completed(model, natural, data, ParallelGenerator(streams.copy()))
        noise = ParallelGenerator(streams).standard_normal((len(data), case.k, 3))
        for lane in range(3):
            log_normalizers = model.log_normalizers_of_sequences(natural[:, lane], data)
            assert log_z[lane] == approx(log_normalizers.sum(), rel=1e-10, abs=1e-9)
            states = drawn_back(model.smoothed(natural[:, lane], data), data, noise[..., lane])
            assert statistics[:, lane] == approx(model.statistics(data, states)[0], rel=1e-8, abs=1e-8)


def test_moves_keep_the_volume_that_they_say(rng):
    """Proposals of a changed basis, in unconstrained coordinates: ln|det| of their derivatives by differences."""
    for k, q, r in ((1, 0, 1), (2, 1, 2)):
        y, u, v = rng.normal(size=(6, 3)), rng.normal(size=(6, q)), rng.normal(size=(6, r))
        case = problem(y, k, [1.0] * (k + r), 2.0, u=u, v=v, lengths=[4, 2], x=rng.normal(size=(6, k)))
        model = learned(case)
        data, start = compiled(model, case)
        prior, sampler = model.prior, capabilities_of(model).annealing
        free = prior.to_unconstrained(tuple((prior + start[:, 0]).sample(rng)))
        streams = rng.integers(0, 2**64, size=(4, 1), dtype=np.uint64)
        for propose in (sampler._in_another_basis, sampler._moved_along):
            there = partial(proposed, model, data, propose, streams)
            h = 1e-5 * np.eye(len(free))
            derivatives = [(there(free + step)[0] - there(free - step)[0]) / 2e-5 for step in h]
            assert there(free)[1] == approx(np.linalg.slogdet(np.array(derivatives))[1], abs=1e-6)


def test_points_in_another_basis_are_as_likely_under_states_that_follow(rng):
    """Turned states have the same likelihood and the same prior; shifted ones where no step moves them, the first."""
    y = rng.normal(size=(12, 3))
    case = problem(y, 2, [1.0, 1.0, 0.1], 2.0, lengths=[4, 4, 4], v=np.ones((12, 1)), x=rng.normal(size=(12, 2)))
    model = learned(case)
    data, start = compiled(model, case)
    natural = model.prior.natural((model.prior + np.repeat(start, 5, axis=1)).sample(rng))
    streams = rng.integers(0, 2**64, size=(4, 5), dtype=np.uint64)
    (turned,) = capabilities_of(model).annealing._turned(data, natural, ParallelGenerator(streams))
    likelihoods = [sampling.log_z(model, np.ascontiguousarray(each), data) for each in (natural, turned)]
    assert likelihoods[1] == approx(likelihoods[0], rel=1e-9)
    densities = [model.prior.coordinates @ each for each in (natural, turned)]
    assert densities[1] == approx(densities[0], rel=1e-9)
    assert np.abs(turned - natural).max() > 0.1
    alone = model.compile(case.y, [1] * 12, output_inputs=case.v)
    (shifted,) = capabilities_of(model).annealing._moved_along(alone, natural, ParallelGenerator(streams))
    likelihoods = [sampling.log_z(model, np.ascontiguousarray(each), alone) for each in (natural, shifted)]
    assert likelihoods[1] == approx(likelihoods[0], rel=1e-9)
    assert np.abs(shifted - natural).max() > 0.1


def test_draws_turn_to_a_fit(rng):
    """Wherever a turn has put them, and by the slope of what a turn gains."""
    y = np.cumsum(rng.normal(size=(60, 4)), axis=0)
    case = problem(
        y / y.std(), 2, [1.0, 1.0, 0.1], 2.0, lengths=[10] * 6, v=np.ones((60, 1)), x=rng.normal(size=(60, 2))
    )
    model = learned(case)
    data, start = compiled(model, case)
    at = run(LDSAscent(model, data, posteriors.VB), start, tol=1e-3, max_iter=200).statistics
    natural = model.prior.natural((model.prior + np.repeat(at, 20, axis=1)).sample(rng))
    sampler, nearest = (
        capabilities_of(model).annealing,
        capabilities_of(model).relabelings.relabelings(("state",)).nearest,
    )
    near = nearest(at[:, 0], natural)
    assert (at[:, 0] @ near >= at[:, 0] @ natural - 1e-9).all()
    streams = rng.integers(0, 2**64, size=(4, 20), dtype=np.uint64)
    (turned,) = sampler._turned(data, natural, ParallelGenerator(streams))
    assert at[:, 0] @ nearest(at[:, 0], turned) == approx(at[:, 0] @ near, abs=0.05)
    point, cells = model.prior.from_natural(natural)[2], model.prior.split(at[:, 0])[2]
    for angle in (0.0, 0.9):
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        _, slope = sampling.first_states.fit_of_turn(point, cells, np.broadcast_to(turn, (20, 2, 2)))

        def gained(flat):
            turned = np.broadcast_to(flat.reshape(2, 2), (20, 2, 2))
            return sampling.first_states.fit_of_turn(point, cells, turned)[0][3]

        assert slope[3].ravel() == approx(gradient(gained, turn.ravel()), rel=1e-5, abs=1e-5)


# --- turns, orders, dimensions ----------------------------------------------------------------------------------------


def test_priors_that_tell_turns(rng):
    case = problem(rng.normal(size=(6, 2)), 2, [1.0, 1.0], 2.0)
    alike = literal.LearnedFirst(np.zeros(2), 1.0, 3.0, 2.0 * np.eye(2))
    for change, free, orders, signs in (
        ({}, True, 2, True),
        ({"m": np.array([0.0, 0.5])}, False, 1, False),
        ({"m": np.array([0.5, 0.5])}, False, 2, False),
        ({"scale": np.diag([1.0, 2.0])}, False, 1, True),
        ({"scale": np.eye(2) + 0.5}, False, 2, False),
    ):
        model = learned(case, alike._replace(**change))
        relabelings = capabilities_of(model).relabelings
        assert is_free_to_rotate(model) is free
        assert (relabelings.n_orders, relabelings.has_signs) == (orders, signs)


def test_no_likelihood_tells_turns(rng):
    """Directions of turns leave ln Z as it is: by differences along them."""
    for k in (2, 3):
        case = random_problem(rng)._replace(k=k)
        case = case._replace(
            alpha=[1.0] * (k + case.u.shape[1]),
            gamma=[1.0] * (k + case.v.shape[1]),
            x=rng.normal(size=(len(case.y), k)),
        )
        model = learned(case, random_prior(rng, k))
        data, start = compiled(model, case)
        natural = model.prior.natural((model.prior + start[:, 0]).sample(rng))
        turns = model.rotation_tangents(natural)
        assert turns.shape == (model.n_cells, k * (k - 1) // 2)
        assert np.abs(model.prior.split(turns)[2]).max() > 1e-3
        slope = model.expect(natural[:, None], data).statistics[:, 0]
        assert slope @ turns == approx(np.zeros(turns.shape[1]), abs=1e-8 * np.abs(slope).max())


@pytest.mark.parametrize(("k", "p"), [(1, 1), (2, 1), (3, 1), (3, 2), (2, 3)])
def test_dimension_is_a_rank(k, p, rng):
    """Of means and covariances of all steps of many sequences, by complex derivatives."""
    a, c = rng.normal(size=(k, k)), rng.normal(size=(p, k))
    a *= 0.8 / np.abs(np.linalg.eigvals(a)).max()
    root = rng.normal(size=(k, k))
    upper, n = np.triu_indices(k), 2 * k + 3
    covariance = root @ root.T + np.eye(k)
    sizes = np.cumsum([a.size, c.size, p, p, k])
    at = np.concatenate([a.ravel(), c.ravel(), rng.uniform(0.5, 2, p), rng.normal(size=p + k), covariance[upper]])

    def seen(flat):
        parts = np.split(flat, sizes)
        a, c, noise, offset, mean = parts[0].reshape(k, k), parts[1].reshape(p, k), *parts[2:5]
        first = np.zeros((k, k), dtype=flat.dtype)
        first[upper] = first.T[upper] = parts[5]
        out = []
        for _ in range(n):
            out.append(offset + c @ mean)
            ahead = first
            for lag in range(n):
                out.append((c @ ahead @ c.T + (np.diag(noise) if lag == 0 else 0)).ravel())
                ahead = a @ ahead
            mean, first = a @ mean, a @ first @ a.T + np.eye(k)
        return np.concatenate(out)

    jacobian = np.array([seen(at + 1e-30j * row).imag / 1e-30 for row in np.eye(len(at))])
    values = np.linalg.svd(jacobian / np.linalg.norm(jacobian, axis=1, keepdims=True), compute_uv=False)
    assert (values > 1e-8).sum() == identifiable_dimension(k, p, 0, 1, learns_first=True)


def test_the_mean_precision_of_the_round_prior_is_one(rng):
    for k in (1, 3):
        drawn = wishart.rvs(k + 1, np.linalg.inv((k + 1) * np.eye(k)), size=4000, random_state=rng)
        assert np.mean(drawn, axis=0) == approx(np.eye(k) if k > 1 else 1.0, abs=0.1)
        mean = round_prior(k).mode().precision[0]
        assert mean == approx(np.eye(k))
