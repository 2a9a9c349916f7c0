"""Annealed chains: their densities by definition, what their weights average to, schedules, strata, budgets."""

import itertools
import math
import time

import numpy as np
import pytest
from bridge import FastNetwork
from evidence.evaluations import bipartite_network, drawn_rows, evaluate, evaluation_of, naive_bayes
from reference import facts
from reference.discrete_network import Data, Network, Problem, log_likelihood, uniform_prior
from reference.random_networks import random_counts, random_problem, random_tables
from reference.sampling import log_annealed_density

from skvbem._progress import long_call
from skvbem.evidence import SCORES, get_score
from skvbem.evidence.ais import adaptive_schedule, anchored_ais
from skvbem.evidence.chains import Stratum, batches, nonlinear_schedule, pooled, run_tasks, summary
from skvbem.evidence.exact import exact
from skvbem.evidence.starts import Starts, first_of_each, make_starts
from skvbem.models import capabilities_of

approx = pytest.approx
LC2 = facts.latent_class(2, (2, 2, 2))
prior_ais = get_score("ais_prior")
HIDDEN = [fact for fact in facts.EVIDENCES if "no arcs" not in fact.name and "LC(1)" not in fact.name]


def twenty_rows(**options):
    return evaluation_of(Problem(LC2, facts.TWENTY_ROWS, uniform_prior(LC2)), **options)


def evaluation_of_fact(fact, **options):
    return evaluation_of(Problem(fact.network, fact.data, fact.prior), **options)


def streams_of(rng, n):
    return rng.integers(0, 2**64, size=(4, n), dtype=np.uint64)


# --- densities --------------------------------------------------------------------------------------------------------


def test_ratios_of_densities_along_a_path(rng):
    """Any two inverse temperatures, any parameters, any anchor: hidden variables summed out of both densities."""
    n = 0
    while n < 40:
        problem = random_problem(rng, 2**10, max_nodes=6, max_hidden=3, missing_rate=0.2, max_rows=6)
        network, data, prior = problem
        if not len(data.cells):
            continue
        n += 1
        fast = FastNetwork(network, prior)
        program = fast.program(data)
        anchors = [random_counts(rng, network) for _ in range(2)]
        points = [random_tables(rng, network) for _ in range(2)]
        temperatures = np.array([0.0, 1.0, *rng.random(2), 0.0])
        paths = capabilities_of(fast.model).annealing.paths(program, fast.lanes(*anchors))
        for here, there in itertools.pairwise(temperatures):
            log_points = np.log(fast.lanes(*points))
            workspace = capabilities_of(fast.model).annealing.workspace(program, 2)
            found, _ = capabilities_of(fast.model).annealing.anneal(
                workspace, paths, np.array([here, there]), streams_of(rng, 2), log_points
            )
            for lane, (anchor, tables) in enumerate(zip(anchors, points)):
                log_tables = {node: np.log(t) for node, t in tables.items()}
                low, high = (log_annealed_density(network, data, prior, anchor, log_tables, t) for t in (here, there))
                assert found[0, lane] == approx(high - low, rel=1e-9, abs=1e-9)


def test_parameters_given_hidden_states_are_drawn_at_the_interpolated_concentrations(rng):
    """After a sweep at t: mean of theta given x, averaged over x, against prior + (1 - t) anchor + t counts."""
    fast = FastNetwork(LC2, uniform_prior(LC2, 0.5))
    program, n = fast.program(facts.TWENTY_ROWS), 60_000
    anchor = fast.flat(random_counts(rng, LC2))
    point = np.log(fast.flat(random_tables(rng, LC2)))
    paths = capabilities_of(fast.model).annealing.paths(program, anchor[:, None])[np.zeros(n, dtype=int)]
    for t in (0.0, 0.4, 1.0):
        log_points = np.repeat(point[:, None], n, axis=1)
        workspace = capabilities_of(fast.model).annealing.workspace(program, n)
        _, counts = capabilities_of(fast.model).annealing.anneal(
            workspace, paths, np.array([t, t]), streams_of(rng, n), log_points
        )
        natural = (1 - t) * paths.natural[:, 0] + t * point
        expected_counts = fast.model.expect(natural[:, None], program).statistics[:, 0]
        assert counts.mean(axis=1) == approx(expected_counts, abs=5 * 2.5 / math.sqrt(n))
        after = (fast.model.prior + ((1 - t) * anchor[:, None] + t * counts)).mean()
        assert np.exp(log_points).mean(axis=1) == approx(after.mean(axis=1), abs=5 * 0.4 / math.sqrt(n))


# --- what weights average to ------------------------------------------------------------------------------------------


def test_one_step_from_the_prior_is_importance_sampling_from_the_prior():
    evaluation = twenty_rows()
    found = prior_ais(evaluation, n_chains=50, n_steps=1)
    assert "longer chains" in found.doubts[0]
    (stratum,) = found.details["strata"]
    streams = np.ascontiguousarray(evaluation.seeds(50).T)
    model = evaluation.model
    points = capabilities_of(model).points.draw_points(
        np.repeat(1.0 - model.prior.concentration[:, None], 50, 1), streams
    )
    fast = FastNetwork(LC2, uniform_prior(LC2))
    expected = [log_likelihood(LC2, fast.tables(point), facts.TWENTY_ROWS) for point in points.T]
    assert stratum.log_weights == approx(expected, rel=1e-11)
    assert stratum.inverse_temperatures.tolist() == [0, 1]


@pytest.mark.parametrize("n_steps", [1, 3, 30])
@pytest.mark.parametrize("fact", HIDDEN, ids=lambda fact: fact.name)
def test_weights_of_chains_from_the_prior_average_to_the_evidence(fact, n_steps):
    """However few the steps: the more, the nearer the mean of ln w."""
    found = prior_ais(evaluation_of_fact(fact, n_init=1, tol=1e-3), n_chains=2000, n_steps=n_steps)
    weights = np.exp(found.details["log_weights"] - fact.log_value)
    # (mean - 1) / s.e. is skewed by heavy weights: three of its own plus what skewness of 2 000 lognormal weights adds
    assert weights.mean() == approx(1.0, abs=4 * weights.std() / math.sqrt(2000))


def test_the_mean_log_weight_rises_with_the_number_of_steps():
    for fact in HIDDEN[:4]:
        evaluation = evaluation_of_fact(fact, n_init=1, tol=1e-3)
        means = []
        for n_steps in (1, 8, 64):
            means.append(prior_ais(evaluation, n_chains=1000, n_steps=n_steps).details["mean_log_weight"])
        assert means == sorted(means)
        assert means[-1] < fact.log_value


@pytest.mark.parametrize("options", [{}, {"fractions": (1.0,)}, {"fractions": (0.25, 0.75)}, {"n_fits": 1},
                                     {"bend": 0.2}, {"conditional_ess": 0.95, "n_steps": 8}], ids=str)  # fmt: skip
def test_weights_of_anchored_chains_average_to_the_evidence(options):
    for fact in HIDDEN[:3]:
        found = anchored_ais(evaluation_of_fact(fact, n_init=10), **{"n_chains": 1500, "n_steps": 40, **options})
        assert found.value == approx(fact.log_value, abs=3.5 * found.standard_error)
        assert found.standard_error < 0.12


def test_nothing_hidden_is_exact_with_any_number_of_chains(rng):
    """Weights are equal, whatever they start from."""
    n = 0
    while n < 20:
        problem = random_problem(rng, max_hidden=0, missing_rate=0.0, max_nodes=4)
        if not len(problem.data.cells):
            continue
        n += 1
        evaluation = evaluation_of(problem, n_init=1)
        value = exact(evaluation).value
        for found in (anchored_ais(evaluation, n_chains=5, n_steps=3), prior_ais(evaluation, n_chains=4, n_steps=2)):
            assert found.details["log_weights"] == approx(np.full(len(found.details["log_weights"]), value), rel=1e-12)
            assert found.value == approx(value, rel=1e-12)
            assert found.standard_error == approx(0.0, abs=1e-10)


def test_a_hidden_node_that_touches_no_data_does_not_spread_weights():
    network = Network({"y0": 2, "y1": 2, "z": 2}, {"y0": (), "y1": ("y0",), "z": ("y1",)})
    evaluation = evaluation_of(Problem(network, facts.SIX_ROWS, uniform_prior(network)), n_init=2)
    found = anchored_ais(evaluation, n_chains=4, n_steps=2)
    assert found.value == approx(exact(evaluation).value, rel=1e-12)
    assert found.standard_error == approx(0.0, abs=1e-10)


def test_optima_far_apart_are_counted_once_each(rng):
    """A prior that tells classes apart: two optima, each with its part of the evidence; one alone misses some."""
    network = facts.latent_class(2, (2, 2, 2, 2))
    prior = uniform_prior(network)
    prior["c"] = np.array([1.0, 4.0])
    cells = np.repeat([[0, 0, 0, 0], [1, 1, 1, 1]], [7, 5], axis=0)
    evaluation = evaluation_of(Problem(network, Data(("y0", "y1", "y2", "y3"), cells), prior), n_init=20)
    value = exact(evaluation).value
    found = anchored_ais(evaluation, n_chains=600, fractions=(0.75,))
    assert len(found.details["strata"]) > 1
    assert found.value == approx(value, abs=3.5 * found.standard_error)
    assert found.standard_error < 0.05


# --- schedules --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bend", [0.01, 0.2, 1.0, 50.0, math.inf, -1.01, -1.5, -30.0])
def test_schedules_rise_from_zero_to_one(bend):
    for n_steps in (1, 2, 17, 1000):
        schedule = nonlinear_schedule(n_steps, bend)
        assert schedule.shape == (n_steps + 1,)
        assert schedule[0] == 0
        assert schedule[-1] == 1
        assert np.all(np.diff(schedule) > 0)


def test_schedules_by_their_formula():
    k = np.arange(11) / 10
    assert nonlinear_schedule(10, 0.2) == approx(0.2 * k / (1 - k + 0.2))
    assert nonlinear_schedule(10) == approx(k)
    assert nonlinear_schedule(10, 1e9) == approx(k, abs=1e-8)
    steps = np.diff(nonlinear_schedule(100_000, 0.2))
    assert steps[-1] / steps[0] == approx(36, rel=1e-3)
    # small steps last are the mirror image of small steps first
    assert nonlinear_schedule(10, -1.2) == approx(1 - nonlinear_schedule(10, 0.2)[::-1])
    for bend in (0.0, -0.5, -1.0, math.nan):
        with pytest.raises(ValueError, match=r"'bend' must be a number above 0 .* or below -1"):
            nonlinear_schedule(10, bend)


def test_adaptive_schedules(rng):
    model = bipartite_network(("1", "12", "12", "2"))
    evaluation = evaluate(model, drawn_rows(model, 60, rng, ("s1", "s2")), ("s1", "s2"), n_init=5, tol=1e-3)
    starts = make_starts(evaluation, (0.5, 0.0), 2)
    lengths = []
    for fraction in (0.9, 0.98):
        schedule = adaptive_schedule(evaluation, starts, fraction)
        assert schedule[0] == 0
        assert schedule[-1] == 1
        assert np.all(np.diff(schedule) > 0)
        assert np.array_equal(schedule, adaptive_schedule(evaluation, starts, fraction))
        lengths.append(len(schedule))
    # a step's loss grows as its square
    assert lengths[1] == approx(math.sqrt(0.1 / 0.02) * lengths[0], rel=0.35)
    finer = adaptive_schedule(evaluation, starts, 0.9, least=400)
    coarse = adaptive_schedule(evaluation, starts, 0.9)
    assert len(finer) == 401
    assert np.interp(np.linspace(0, 1, len(coarse)), np.linspace(0, 1, 401), finer) == approx(coarse, abs=1e-2)
    # particles that start with equal weights keep as much as was asked for, in the long run
    path = capabilities_of(model).annealing.paths(evaluation.data, starts.statistics[-1:].T)[np.zeros(4000, dtype=int)]
    streams, workspace = streams_of(rng, 4000), capabilities_of(model).annealing.workspace(evaluation.data, 4000)
    points = capabilities_of(model).points.draw_points(starts.statistics_of(np.full(4000, len(starts) - 1)), streams)
    log_ratios, _ = capabilities_of(model).annealing.anneal(workspace, path, coarse, streams, points)
    ratios = np.exp(log_ratios - log_ratios.max(axis=1, keepdims=True))
    kept = ratios.mean(axis=1) ** 2 / (ratios**2).mean(axis=1)
    assert 0.8 < np.median(kept[:-1]) < 0.97
    for fraction in (0.0, 1.0, 1.5):
        with pytest.raises(ValueError, match="'conditional_ess' must be a number between 0 and 1"):
            adaptive_schedule(evaluation, starts, fraction)


# --- starts -----------------------------------------------------------------------------------------------------------


def starts_of(n_fits, prior=True):
    fractions = np.array([0.5] * n_fits + [0.0] * prior)
    return Starts(None, fractions, np.arange(len(fractions))[:, None], None)


@pytest.mark.parametrize(
    ("n_fits", "prior", "n_chains", "expected"),
    [
        (3, True, 48, [12, 12, 12, 12]),
        (8, True, 48, [5, 5, 5, 5, 4, 4, 4, 4, 12]),
        (8, True, 16, [4, 4, 4, 4]),
        (1, True, 16, [12, 4]),
        (2, True, 12, [6, 6]),
        (3, False, 12, [4, 4, 4]),
        (3, False, 11, [6, 5]),
        (3, True, 4, [4]),
        (2, True, 1, [1]),
        (0, True, 5, [5]),
    ],
)
def test_chains_are_dealt_out_four_at_least_to_a_start(n_fits, prior, n_chains, expected):
    starts, which = starts_of(n_fits, prior).dealt(n_chains)
    counts = np.bincount(which, minlength=len(starts)).tolist()
    assert counts == expected
    kept = starts.statistics[:, 0].tolist()
    assert kept[:-1] == [*range(len(kept) - 1)]
    first = first_of_each(which)
    assert min(np.bincount(which[:first], minlength=len(starts))) >= min(2, n_chains)


def test_starts_are_fits_made_wider_and_the_prior():
    evaluation = twenty_rows(n_init=10)
    fit = evaluation.fit("vb")
    starts = make_starts(evaluation, (1.0, 0.25, 0.0), 1)
    assert starts.fractions.tolist() == [1.0, 0.25, 0.0]
    assert starts.statistics == approx(np.outer([1.0, 0.25, 0.0], fit.statistics), abs=1e-9)
    of_both = starts.statistics_of(np.array([2, 0]))
    assert of_both == approx(np.stack([np.zeros(len(fit.statistics)), fit.statistics], axis=1))
    for fractions in ((), (1.5,), (-0.1, 0.5)):
        with pytest.raises(ValueError, match="'fractions' must be a list of numbers from 0 to 1"):
            make_starts(evaluation, fractions, 1)


def test_what_is_certain_is_kept_whole():
    """Half of the third column's rows have no hidden part: starts from the prior begin behind them."""
    network = Network({"c": 2, "y0": 2, "y1": 2}, {"c": (), "y0": ("c",), "y1": ()})
    evaluation = evaluation_of(Problem(network, facts.SIX_ROWS, uniform_prior(network)), n_init=3)
    tables = evaluation.model.tables(make_starts(evaluation, (0.5, 0.0), 8).statistics[-1])
    assert tables["y1"].tolist() == [3, 3]
    assert not tables["c"].any()


# --- pooling and trust ------------------------------------------------------------------------------------------------


def test_pooled_weights(rng):
    log_weights = [rng.normal(-5000.0, 0.3, 40), rng.normal(-5001.0, 1.0, 10)]
    value, error, effective = pooled(log_weights)
    means = [np.mean(np.exp(w + 5000)) for w in log_weights]
    variances = [np.var(np.exp(w + 5000)) / len(w) for w in log_weights]
    assert value == approx(math.log(sum(means)) - 5000, abs=1e-11)
    assert error == approx(math.sqrt(sum(variances) * 50 / 48) / sum(means), rel=1e-10)
    assert effective == approx(1 / (sum(variances) / sum(means) ** 2 + 1 / 50), rel=1e-10)
    alone = rng.normal(0, 1.0, 30)
    _, error, effective = pooled([alone])
    weights = np.exp(alone)
    assert effective == approx(weights.sum() ** 2 / (weights**2).sum())
    assert error == approx(weights.std(ddof=1) / math.sqrt(30) / weights.mean())
    assert math.isnan(pooled([alone, np.zeros(1)])[1])


def test_what_deserves_a_warning_gets_one():
    evaluation = twenty_rows()

    def found(log_weights, n=1):
        log_weights = np.asarray(log_weights, dtype=float)
        strata = [Stratum(None, np.array([0.0, 1.0]), np.stack([0 * w, w]), w) for w in np.array_split(log_weights, n)]
        return summary(evaluation, "ais", strata)

    assert "ais: 20 weights are worth 1.0 equal ones" in found([0.0] * 19 + [20.0]).doubts[0]
    assert "100 weights are worth 4" in found([0.0] * 96 + [12.0] * 4).doubts[0]
    alone = found([0.3])
    assert math.isnan(alone.standard_error)
    assert "one chain per start has no standard error" in alone.doubts[0]
    for fine in (found([0.0] * 90 + [1.5] * 10), found([0.0, 0.1], 1), found(np.zeros(8), 2)):
        assert fine.doubts == ()


# ln of weights, less the evidence, of sixteen small populations: twelve began at a fit, four at the prior.
PARTS_OF_A_FIT = np.array([-2.9, -2.7, -0.8, -3.6, -2.1, -2.0, -1.7, -3.5, -2.9, -0.5, -3.2, -2.1])
WHOLES_BY_A_FIT = np.array([-0.2, 0.8, 0.6, -0.4, -0.5, -0.5, -0.4, -1.0, -0.4, 0.5, 0.1, -0.6])
PARTS_OF_THE_PRIOR = np.array([-5.7, -21.2, -36.8, -17.5])


@pytest.mark.parametrize(
    ("parts_of_the_prior", "is_missed"), [(PARTS_OF_THE_PRIOR, True), (np.array([-0.1, -0.4, 0.1, -0.6]), False)]
)
def test_a_part_that_all_chains_of_a_start_missed_is_doubted(parts_of_the_prior, is_missed):
    """Weights of the prior's chains are none the less worth little, and say nothing of what they missed."""
    evaluation = twenty_rows()
    strata = [
        Stratum(fraction, np.array([0.0, 1.0]), np.stack([0 * w, w]), w, wholes)
        for fraction, w, wholes in [
            (0.5, PARTS_OF_A_FIT, WHOLES_BY_A_FIT),
            (0.0, parts_of_the_prior, parts_of_the_prior + 0.1),
        ]
    ]
    found = summary(evaluation, "smc", strata)
    assert any("missed their part" in doubt for doubt in found.doubts) == is_missed
    assert (abs(found.value) > 4 * found.standard_error) == is_missed


# --- details, budgets, threads ----------------------------------------------------------------------------------------


def test_details():
    found = anchored_ais(twenty_rows(n_init=10), n_chains=16, n_steps=20)
    strata = found.details["strata"]
    assert [s.fraction for s in strata] == [0.5, 0.0]
    for stratum in strata:
        assert stratum.inverse_temperatures == approx(nonlinear_schedule(20, -1.5))
        assert stratum.trace.shape == (21, len(stratum.log_weights))
        assert not stratum.trace[0].any()
        assert np.all(stratum.trace[-1] >= stratum.log_weights - math.log(2) - 1e-12)
    log_weights = found.details["log_weights"]
    assert len(log_weights) == 16
    assert np.log(np.mean(np.exp(log_weights - found.value))) == approx(0.0, abs=1e-12)
    assert found.details["mean_log_weight"] == approx(log_weights.mean())
    assert log_weights.mean() < found.value
    assert 1 < found.details["effective_sample_size"] <= 16
    assert found.is_lower_bound
    assert (found.kind, found.form) == ("ais", "vb")
    assert (found.n_free_parameters, found.n_samples) == (7, 20)
    alone = prior_ais(twenty_rows(), n_chains=4, n_steps=50)
    assert (alone.kind, alone.form) == ("ais_prior", None)


def test_options_that_make_no_sense_are_refused():
    evaluation = twenty_rows()
    for name in ("n_chains", "n_steps", "n_fits"):
        with pytest.raises(ValueError, match=rf"'ais' needs '{name}' to be an int >= 1. Got 0"):
            anchored_ais(evaluation, **{name: 0})


def test_how_components_of_a_proposal_differ_is_no_part_of_an_error(rng):
    """Each has its share of draws, so that what varies is within components."""
    component = rng.permutation(np.repeat([0, 1, 2], 10_000))
    weights = np.array([1.0, 3.0, 8.0])[component] + 0.1 * rng.standard_normal(len(component))
    value, error, _ = pooled([np.log(weights)], component)
    assert value == pytest.approx(np.log(4.0), abs=1e-3)
    assert error == pytest.approx(0.1 / 4.0 / np.sqrt(len(weights)), rel=0.1)
    assert pooled([np.log(weights)])[1] > 20 * error


def test_batches_cover_all_chains_in_parts_that_threads_may_share():
    for n, at_once, n_chains, width in (
        (48, 32, 1, 32),
        (1000, 512, 1, 250),
        (9, 2, 1, 2),
        (32, 40, 16, 8),
        (3, 5, 64, 1),
    ):
        found = batches(n, at_once, n_chains)
        assert [i for part in found for i in range(part.start, part.stop)] == [*range(n)]
        assert max(part.stop - part.start for part in found) == width


@pytest.mark.parametrize("n_threads", [1, 3])
def test_tasks_are_done_in_order_as_far_as_the_time_allows(n_threads):
    told = []
    with long_call("squares", progress=lambda *x: told.append(x)):
        assert run_tasks(lambda k: k * k, range(6), n_threads=n_threads) == [0, 1, 4, 9, 16, 25]
    assert told == [(k, 6) for k in range(1, 7)]

    def slow(k):
        time.sleep(0.02)
        return k

    began = time.monotonic()
    with long_call("slow", time_budget=0.1) as call:
        done = run_tasks(slow, range(1000), n_threads=n_threads, required=2)
    assert call.was_cut
    assert time.monotonic() - began < 2
    assert done == [*range(len(done))]
    assert 2 <= len(done) < 500
    with long_call("slow", time_budget=0.0):
        assert len(run_tasks(slow, range(9), n_threads=n_threads, required=5)) >= 5
    for wrong in (-1, np.nan, "soon", True):
        with (
            pytest.raises(ValueError, match=f"'time_budget' must be .* >= 0. Got {wrong!r}"),
            long_call("slow", time_budget=wrong),
        ):
            pass
    with pytest.raises(ZeroDivisionError):
        run_tasks(lambda k: 1 / (k - 3), range(6), n_threads=n_threads)


def test_a_time_budget_leaves_every_start_two_chains_and_the_rest_out(monkeypatch):
    evaluation = twenty_rows(n_init=10)
    monkeypatch.setattr(type(evaluation.capabilities.annealing), "lanes_at_once", lambda self, data: 1)
    told = []
    found = SCORES["ais"](evaluation, n_steps=64, time_budget=0.0, progress=lambda *x: told.append(x))
    assert "time_budget" in found.doubts[-1]
    sizes = [len(s.log_weights) for s in found.details["strata"]]
    assert min(sizes) == 2
    assert sum(sizes) == len(told) == told[-1][0] < told[-1][1] == 48
    in_full, in_one_step = (anchored_ais(evaluation, n_steps=n_steps) for n_steps in (64, 1))
    for short, one_step in zip(found.details["strata"], in_one_step.details["strata"]):
        assert short.log_weights == pytest.approx(one_step.log_weights[: len(short.log_weights)], abs=1e-9)
    with long_call("in time", time_budget=1e6):
        in_time = anchored_ais(evaluation, n_steps=64)
    for short, long in zip(in_time.details["strata"], in_full.details["strata"]):
        assert np.array_equal(short.log_weights, long.log_weights)


def test_models_of_one_column(rng):
    """Many classes, few rows: still right."""
    model = naive_bayes(4, 1, card=3)
    evaluation = evaluate(model, drawn_rows(model, 6, rng, ("c",)), ("c",), n_init=5)
    found = anchored_ais(evaluation, n_chains=400)
    assert found.value == approx(exact(evaluation).value, abs=3.5 * found.standard_error)
