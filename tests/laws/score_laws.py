"""Laws of the scores of the evidence that hold for every model.

Each is a function of a `Case`, random numbers and often a score that raises an AssertionError where the law is broken.
"""

import numpy as np
import pytest
from evidence.evaluations import check_standard_normal, deviations

from skvbem.evidence import SCORES, get_score
from skvbem.models import capabilities_of
from skvbem.vbem import posteriors

approx = pytest.approx
CLOSED = ("mled", "cheeseman_stutz", "draper", "bic")


def evaluations(case, n, rng):
    """Evaluations of tiny instances, and their log evidences by definition."""
    for k in range(n):
        instance = case.sampleable(rng, k)
        yield instance.evaluation(rng, seed=k), instance.log_evidence()


def sampled_evidence_is_right(case, kind, rng):
    """Within its standard error of the evidence by definition."""
    found = deviations(kind, evaluations(case, case.n_sampled, rng), 0.02, **case.sampled[kind])
    assert all(abs(z) < 4.5 for z in found)


def deviations_are_standard_normal(case, kind, rng):
    """Sampled evidences are as uncertain as they say."""
    check_standard_normal(deviations(kind, evaluations(case, 40, rng), 0.01, **case.sampled.get(kind, {})))


def closed_forms_are_in_their_order(case, rng):
    """MLED <= Cheeseman-Stutz <= the bound begun from it <= evidence; n is the sum of weights."""
    for k in range(case.n_ordered):
        instance = case.tiny(rng, k)
        evaluation, exact = instance.evaluation(rng), instance.log_evidence()
        model, data = evaluation.model, evaluation.data
        slack = 1e-9 * (1 + abs(exact))
        mled, cs, draper, bic = (get_score(kind)(evaluation, form="map") for kind in CLOSED)
        natural = model.prior.natural(evaluation.point("map"))[:, None]
        ascent = instance.ascent(model, data, posteriors.VB)
        begun = ascent.advance(model.expect(natural, data).statistics, 1)[0, 0]
        bound = get_score("lower_bound")(evaluation)
        assert mled.value <= cs.value + slack
        assert cs.value - mled.value == approx(cs.details["entropy"], abs=1e-9)
        assert cs.details["entropy"] == mled.details["entropy"]
        assert cs.value <= begun + slack
        assert begun <= exact + slack
        assert bound.value <= exact + slack
        assert draper.value - bic.value == approx(model.prior.n_free_parameters / 2 * np.log(2 * np.pi), rel=1e-9)
        assert bic.n_samples == data.total_weight


def chains_do_not_depend_on_others(case, rng):
    """Nor on the pieces they are run in."""
    instance = case.long(rng)
    evaluation = instance.evaluation(rng)
    model, data = evaluation.model, evaluation.data
    paths = capabilities_of(model).annealing.paths(data, np.repeat(evaluation.fit("vb").statistics[:, None], 4, axis=1))
    streams = rng.integers(0, 2**64, size=(4, 4), dtype=np.uint64)
    start = capabilities_of(model).points.draw_points(paths.statistics, streams.copy())
    temperatures = np.array([0.0, 0.3, 0.7, 1.0])
    together = start.copy()
    ratios, last = capabilities_of(model).annealing.anneal(
        capabilities_of(model).annealing.workspace(data, 4), paths, temperatures, streams.copy(), together
    )
    for lane in range(4):
        alone, own = np.ascontiguousarray(start[:, [lane]]), np.ascontiguousarray(streams[:, [lane]])
        one, statistics = capabilities_of(model).annealing.anneal(
            capabilities_of(model).annealing.workspace(data, 1), paths[[lane]], temperatures, own, alone
        )
        assert one[:, 0] == approx(ratios[:, lane], rel=1e-9, abs=1e-9)
        assert statistics[:, 0] == approx(last[:, lane], rel=1e-9, abs=1e-9)
        assert alone[:, 0] == approx(together[:, lane], rel=1e-9, abs=1e-9)


def weights_are_repeats_for_chains(case, rng):
    """One unit twice, one once, the others not at all; fractions are refused."""
    instance = case.pair(rng)
    weight = np.zeros(instance.n_units)
    double, single = np.argsort(instance.unit_sizes, kind="stable")[:2]
    weight[double], weight[single] = 2.0, 1.0
    exact = instance.log_evidence([double, double, single])
    found = get_score("ais")(instance.evaluation(rng, weight=weight), **case.sampled["ais"])
    assert found.value == approx(exact, abs=5 * found.standard_error + 0.05)
    weight[single] = 0.5
    with pytest.raises(ValueError, match="needs whole-number sample weights"):
        get_score("ais")(instance.evaluation(rng, weight=weight))


def enumeration_is_the_definition(case, rng):
    """The exact score, of repeats and rows of weight 0 too."""
    for k in range(case.n_enumerated):
        instance = case.tiny(rng, k)
        repeats = np.ones(instance.n_units)
        if k % 3 == 1:
            repeats[rng.integers(instance.n_units)] = 0.0
        if k % 3 == 2:
            repeats[np.argmin(instance.unit_sizes)] = 2.0
        units = np.repeat(np.arange(instance.n_units), repeats.astype(int))
        exact = instance.log_evidence(units) if len(units) else 0.0
        value, n_terms = capabilities_of(instance.model).enumeration(instance.compile(weight=repeats), 2**20)
        assert value == approx(exact, rel=1e-11, abs=1e-10)
        assert n_terms >= 1


def every_score_knows_the_model(case, rng):
    """It finds a number, named as the score is; one that needs a dimension that is not known says so."""
    small = {"n_chains": 4, "n_steps": 8, "n_draws": 32, "n_runs": 2, "n_particles": 4, "n_completions": 8}
    evaluation = case.pair(rng).evaluation(rng)
    for kind, score in SCORES.items():
        options = {name: value for name, value in small.items() if name in score.options}
        if set(score.needs) & set(case.lacks):
            with pytest.raises(ValueError, match="is not known here"):
                score(evaluation, **options)
            continue
        found = score(evaluation, **options)
        assert np.isfinite(found.value), kind
        assert found.kind == kind
