"""Laws of every model: what its E step, its bound and its data owe to the theory.

Each is a function of a `Case` and random numbers that raises an AssertionError where the law is broken.
"""

import numpy as np
import pytest
from scipy.special import logsumexp

from skvbem.evidence import get_score
from skvbem.models import capabilities_of
from skvbem.vbem import posteriors
from skvbem.vbem.driver import RELATIVE_SLACK, run

approx = pytest.approx


def ascend(instance, data, form, starts, **limits):
    """A run from each start."""
    return run(instance.ascent(instance.model, data, form), starts, **limits)


# --- the bound --------------------------------------------------------------------------------------------------------


def bound_is_the_evidence_where_nothing_is_hidden(case, rng):
    """After one step; and there it stays."""
    for k in range(case.n_complete):
        instance = case.complete(rng, k)
        data = instance.compile()
        found = ascend(instance, data, posteriors.VB, instance.random_starts(data, rng, 1), tol=0.0, max_iter=2)
        exact = instance.log_evidence()
        assert found.objective[0] == approx(exact, rel=1e-9, abs=1e-9)
        assert np.ptp(found.traces[0]) <= 1e-9 * (1 + abs(exact))


def bound_is_below_the_evidence(case, rng):
    """By the sum over all that is hidden; and for some instance not far below."""
    gaps = []
    for k in range(case.n_tiny):
        instance = case.tiny(rng, k)
        data = instance.compile()
        starts = instance.random_starts(data, rng, 4)
        found = ascend(instance, data, posteriors.VB, starts, tol=1e-9, max_iter=5000)
        exact = instance.log_evidence()
        assert found.objective.max() <= exact + 1e-9 * abs(exact)
        gaps.append(exact - found.objective.max())
    assert min(gaps) < 5.0


def objective_never_falls(case, form, accelerate, rng):
    """From any start, rows weighted by any number: runs of the driver, which raises if it does, and plain steps."""
    for k in range(case.n_rising):
        instance = case.some(rng, k, form)
        data = instance.compile(weight=rng.uniform(0.2, 2.0, instance.n_units))
        ascent = instance.ascent(instance.model, data, case.forms[form])
        starts = instance.random_starts(data, rng, case.n_rising_starts)
        scale = min(ascent.magnitude, 10 * data.total_weight)
        traces = list(run(ascent, starts, **case.limits, accelerate=accelerate).traces)
        if not accelerate:
            traces += ascent.advance(starts, case.n_plain_steps).T.tolist()
        for trace in traces:
            assert np.isfinite(trace).all()
            assert np.diff(trace).min() >= -RELATIVE_SLACK * (abs(trace[-1]) + scale)


def fixed_point_stays_fixed(case, form, rng):
    """Further steps from where a run ended change neither the objective nor the statistics."""
    for k in range(case.n_fixed):
        instance = case.some(rng, k, form)
        data = instance.compile()
        ascent = instance.ascent(instance.model, data, case.forms[form])
        result = run(ascent, instance.random_starts(data, rng, 1), tol=0.0, max_iter=20_000)
        after = result.statistics.copy()
        trace = ascent.advance(after, 3)[:, 0]
        assert result.converged.all()
        assert trace == approx(result.objective[0], rel=1e-12, abs=1e-10)
        assert after == approx(result.statistics, abs=1e-4 * (1 + data.total_weight))


def bic_stays_at_a_distance_from_the_bound(case, rng):
    """Of a regular model, as the same rows come more and more often: the distance has a limit."""
    instance = case.regular(rng)
    distances = []
    for times in (1e2, 1e4, 1e6):
        evaluation = instance.evaluation(rng, weight=np.full(instance.n_units, times))
        bic, bound = (get_score(kind)(evaluation).value for kind in ("bic", "lower_bound"))
        distances.append(bic - bound)
    assert abs(distances[2] - distances[1]) < 0.1 * abs(distances[1] - distances[0]) + 1e-3
    assert abs(distances[2] - distances[1]) < 0.05


# --- the data ---------------------------------------------------------------------------------------------------------


def check_same_step(instance, data, other, rng):
    """The E steps of both kinds of data at the same natural parameters."""
    natural = instance.natural(data, rng, 2)
    one, two = (instance.model.expect(natural, each) for each in (data, other))
    assert one.log_normalizer == approx(two.log_normalizer, rel=1e-12)
    assert one.statistics == approx(two.statistics, rel=1e-9, abs=1e-9)
    assert data.total_weight == approx(other.total_weight, rel=1e-14)


def weights_are_repeats_in_any_order(case, rng):
    """0 among the weights."""
    instance = case.some(rng, 1)
    repeats = rng.integers(0, 4, size=instance.n_units)
    repeats[0] = 2
    units = rng.permutation(np.repeat(np.arange(instance.n_units), repeats))
    check_same_step(instance, instance.compile(weight=repeats.astype(float)), instance.compile(units), rng)


def weight_zero_is_absence(case, rng):
    """Whatever the other weights."""
    instance = case.some(rng, 1)
    weight = rng.uniform(0.2, 2.0, instance.n_units) * (rng.random(instance.n_units) < 0.6)
    weight[0] = 0.7
    kept = np.flatnonzero(weight)
    check_same_step(instance, instance.compile(weight=weight), instance.compile(kept, weight[kept]), rng)


def rows_one_by_one_are_the_weighted_rows(case, rng):
    """What scores that complete rows go through; every row once, those of weight 0 left out."""
    instance = case.some(rng, 1)
    repeats = rng.integers(0, 4, size=instance.n_units).astype(float)
    repeats[0] = 2.0
    data = instance.compile(weight=repeats)
    one_by_one, natural = data.one_by_one, instance.natural(data, rng, 2)
    one, two = (instance.model.expect(natural, each) for each in (data, one_by_one))
    assert one.statistics == approx(two.statistics, rel=1e-9, abs=1e-9)
    assert one.log_normalizer == approx(two.log_normalizer, rel=1e-12)
    assert (one_by_one.weight == 1).all()


def missing_cell_is_the_sum_over_its_values(case, rng):
    """In the likelihood of a point, and in the exact evidence."""
    for k in range(4):
        missing, others = case.tiny(rng, 2 * k).filled(rng)
        point = missing.point(missing.compile(), rng)[:, None]
        likelihoods = [
            capabilities_of(instance.model).points.log_likelihoods(instance.compile(), point)[0] for instance in others
        ]
        assert capabilities_of(missing.model).points.log_likelihoods(missing.compile(), point)[0] == approx(
            logsumexp(likelihoods), rel=1e-12
        )
        of_missing, *of_others = (
            capabilities_of(instance.model).enumeration(instance.compile(), 2**20)[0] for instance in (missing, *others)
        )
        assert of_missing == approx(logsumexp(of_others), rel=1e-11)


# --- symmetry ---------------------------------------------------------------------------------------------------------


def threads_change_no_bit(case, rng):
    """Of two steps of every form."""
    for k in range(3):
        instance = case.many(rng, k)
        data = instance.compile()
        start = instance.random_starts(data, rng, 2)
        for form in case.forms.values():
            one, two = start.copy(), start.copy()
            traces = [
                instance.ascent(instance.model, data, form, n_threads).advance(statistics, 2)
                for n_threads, statistics in ((1, one), (2, two))
            ]
            assert np.array_equal(*traces)
            assert np.array_equal(one, two)


def relabeling_changes_nothing_but_the_order(case, rng):
    for k in range(case.n_relabeled):
        instance = case.alike(rng, k)
        model, data = instance.model, instance.compile()
        start, relabeling = instance.random_starts(data, rng, 1), instance.relabeling(rng)
        swapped = relabeling.there(start)
        assert relabeling.back(swapped).tolist() == start.tolist()
        one, other = (posteriors.VB.of(model.prior, each) for each in (start, swapped))
        assert one[1] == approx(other[1], rel=1e-12)
        a, b = model.expect(one[0], data), model.expect(other[0], data)
        assert a.log_normalizer == approx(b.log_normalizer, rel=1e-12)
        assert relabeling.there(a.statistics) == approx(b.statistics, rel=1e-9, abs=1e-9)


def relabeling_reorders_the_posteriors_of_rows(case, rng):
    instance = case.alike(rng, 0)
    model, data = instance.model, instance.compile()
    start, relabeling = instance.random_starts(data, rng, 1), instance.relabeling(rng)
    one, other = (
        instance.row_posteriors(posteriors.VB.of(model.prior, each)[0][:, 0], data)
        for each in (start, relabeling.there(start))
    )
    assert one.sum(axis=1) == approx(1.0)
    assert one[:, relabeling.order] == approx(other, abs=1e-9)
