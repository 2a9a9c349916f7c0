"""Scores of hidden Markov models: sampled evidences against the sum over all paths, whatever the rows hold."""

import numpy as np
import pytest
from emissions.members import PROBLEMS
from evidence.evaluations import check_standard_normal, deviations
from models.test_hmm import exact_log_evidence, hmm, lengths_of, random_starts
from models.test_mixture import PRODUCTS

from skvbem.evidence import get_score
from skvbem.evidence.evaluation import Evaluation
from skvbem.models import capabilities_of
from skvbem.models.hmm.model import HMMAscent
from skvbem.models.hmm.transitions import Transitions, left_to_right
from skvbem.vbem import posteriors
from skvbem.vbem.fit import best_of

approx = pytest.approx
NAMES = ["categorical", "poisson", "full"]
SAMPLED = {
    "ais": {"n_chains": 32, "n_steps": 48},
    "ais_prior": {"n_chains": 32, "n_steps": 48},
    "importance_gibbs": {"n_draws": 512, "n_completions": 64},
    "smc": {"n_runs": 16, "n_particles": 12, "n_steps": 16},
}


def evaluation_of(problem, prior, lengths, rng, seed=0, weight=None, tol=1e-6):
    """A fit as scores take it."""
    return evaluated(*hmm(problem, prior, lengths, weight), rng, seed, tol)


def evaluation_with(model, table, lengths, rng):
    """The same of a model at hand."""
    return evaluated(model, model.compile(table, lengths), rng, 0, 1e-10)


def evaluated(model, data, rng, seed, tol):
    """A model on its data, fitted from random starts."""
    starts = random_starts(model, data, rng, 5)

    def fit_of(form, starts):
        return best_of(HMMAscent(model, data, form), starts, tol=tol, max_iter=2000)

    def run(form, fit):
        return fit_of(form, np.column_stack([fit.statistics, starts]))

    fit = fit_of(posteriors.VB, starts)
    return Evaluation(model, capabilities_of(model), data, run, fit, "vb", data.total_weight, ("state",), (seed,))


def symmetric(rng, n_states):
    """Priors that take states for alike."""
    return Transitions(np.full((1, n_states), 0.8)), Transitions.sticky(n_states, rng.uniform(1.0, 3.0), 0.5)


def evaluations(name, n, rng):
    """Evaluations of tiny problems, with their exact log evidences."""
    for k in range(n):
        problem = PROBLEMS[name](rng, n_rows=6, gaps=0.3 * (k % 2) * (name in PRODUCTS))
        prior, lengths = symmetric(rng, 2 + k % 2), lengths_of(rng, 6)
        if k % 3 == 2:
            prior = Transitions(np.eye(3)[:1]), Transitions.symmetric(3, 2.0, left_to_right(3, 2))
        evaluation = evaluation_of(problem, prior, lengths, rng, k)
        yield evaluation, exact_log_evidence(problem, problem.values, prior, lengths)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("categorical", kind) for kind in SAMPLED]
    + [("full", "ais"), ("full", "importance_gibbs"), ("poisson", "ais_prior"), ("poisson", "smc")],
)
def test_sampled_evidences_are_right(name, kind, rng):
    found = deviations(kind, evaluations(name, 3, rng), 0.02, **SAMPLED[kind])
    assert all(abs(z) < 4.5 for z in found)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*SAMPLED, "importance"])
@pytest.mark.parametrize("name", NAMES)
def test_deviations_are_standard_normal(name, kind, rng):
    check_standard_normal(deviations(kind, evaluations(name, 40, rng), 0.01, **SAMPLED.get(kind, {})))


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name != "tied"])
def test_closed_forms_are_in_their_order(name, rng):
    """Cheeseman-Stutz <= VB begun from it <= exact; n counts time steps."""
    for evaluation, exact in evaluations(name, 3, rng):
        model, bound = evaluation.model, evaluation.fit("vb").objective
        cs = get_score("cheeseman_stutz")(evaluation).value
        natural = model.prior.natural(evaluation.point("map"))[:, None]
        begun = model.expect(natural, evaluation.data).statistics
        above = HMMAscent(model, evaluation.data, posteriors.VB).advance(begun, 1)[0, 0]
        assert cs <= above + 1e-9 * abs(bound)
        assert above <= exact + 1e-9 * abs(exact)
        assert bound <= exact + 1e-9 * abs(exact)
        draper, bic = (get_score(kind)(evaluation, form="map") for kind in ("draper", "bic"))
        d = evaluation.model.prior.n_free_parameters
        assert draper.value - bic.value == approx(d / 2 * np.log(2 * np.pi), rel=1e-9)
        assert bic.n_samples == 6


def test_chains_do_not_depend_on_others(rng):
    """Nor on how many run beside them; sequences long enough to be cut among them."""
    for name in ("full", "categorical"):
        problem = PROBLEMS[name](rng, n_rows=300, gaps=0.2)
        evaluation = evaluation_of(problem, symmetric(rng, 2), [200, 100], rng)
        chains, data = evaluation.capabilities.annealing, evaluation.data
        paths = chains.paths(data, np.repeat(evaluation.fit("vb").statistics[:, None], 4, axis=1))
        streams = rng.integers(0, 2**64, size=(4, 4), dtype=np.uint64)
        start = evaluation.capabilities.points.draw_points(paths.statistics, streams.copy())
        temperatures = np.array([0.0, 0.5, 1.0])
        together = start.copy()
        ratios, last = chains.anneal(chains.workspace(data, 4), paths, temperatures, streams.copy(), together)
        for lane in range(4):
            alone, own = np.ascontiguousarray(start[:, [lane]]), np.ascontiguousarray(streams[:, [lane]])
            one, statistics = chains.anneal(chains.workspace(data, 1), paths[[lane]], temperatures, own, alone)
            assert one[:, 0] == approx(ratios[:, lane], rel=1e-8, abs=1e-8)
            assert statistics[:, 0] == approx(last[:, lane], rel=1e-8, abs=1e-8)


def test_weights_of_sequences_are_repeats_for_chains(rng):
    problem, prior = PROBLEMS["categorical"](rng, n_rows=4), symmetric(rng, 2)
    evaluation = evaluation_of(problem, prior, [3, 1], rng, weight=np.array([2.0, 0.0]))
    repeated = np.concatenate([problem.values[:3], problem.values[:3]])
    exact = exact_log_evidence(problem, repeated, prior, [3, 3])
    assert len(evaluation.data.one_by_one) == 6
    found = get_score("ais")(evaluation, **SAMPLED["ais"])
    assert found.value == approx(exact, abs=5 * found.standard_error + 0.05)
    fractions = evaluation_of(problem, prior, [3, 1], rng, weight=np.array([2.0, 0.5]))
    with pytest.raises(ValueError, match="needs whole-number sample weights"):
        get_score("ais")(fractions)


@pytest.mark.parametrize("name", ["diag", "tied", "independent"])
def test_relabelings_are_those_that_leave_the_prior_alone(name, rng):
    """All permutations of states that priors take for alike, rows and columns of transitions together."""
    problem = PROBLEMS[name](rng, n_rows=6)
    for prior, n in (
        (symmetric(rng, 3), 6),
        ((Transitions(np.array([[1.0, 2.0, 1.0]])), Transitions(np.ones((3, 3)))), 1),
        ((Transitions(np.ones((1, 3))), Transitions(np.arange(1.0, 10).reshape(3, 3))), 1),
        ((Transitions(np.eye(3)[:1]), Transitions.symmetric(3, 1.0, left_to_right(3))), 1),
    ):
        model, data = hmm(problem, prior, [4, 2])
        found = capabilities_of(model).relabelings.relabelings(("state",))
        assert found.n == n
        start = random_starts(model, data, rng, 1)[:, 0]
        for cells in found.cells:
            assert model.prior.log_evidence(start[cells]) == approx(model.prior.log_evidence(start), rel=1e-12)
            natural = (model.prior + start[cells]).expected_natural()[:, None]
            other = (model.prior + start).expected_natural()[:, None]
            one, two = model.expect(natural, data), model.expect(other, data)
            assert one.log_normalizer == approx(two.log_normalizer, rel=1e-10)


def test_more_states_than_permutations_can_be_listed(rng):
    """States pick their places in turn: the correction averages to one over the labelings of a point."""
    problem = PROBLEMS["categorical"](rng, n_rows=12)
    model, data = hmm(problem, symmetric(rng, 4), [12])
    relabelable = capabilities_of(model).relabelings
    listed, picked = relabelable.relabelings(("state",)), relabelable.relabelings(("state",), limit=10)
    statistics = random_starts(model, data, rng, 1)[:, 0]
    point = model.prior.natural((model.prior + statistics).sample(rng))
    of_labelings = np.stack([point[cells] for cells in listed.cells], axis=1)
    assert np.exp(picked.correction(statistics, of_labelings)).mean() == approx(1.0)
    drawn = picked.draw(statistics, point, rng)
    assert any(np.array_equal(drawn, other) for other in of_labelings.T)
