"""Laws of every model: what its E step, its bound and its data owe to the theory.

Each is a function of a `ModelCase` and random numbers that raises an AssertionError where the law is broken. What a
model can do beyond its E step has laws of its own, `skvbem.testing.capabilities`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from scipy.special import logsumexp

from skvbem.errors import BoundFellError
from skvbem.evidence import get_score
from skvbem.testing.capabilities import CAPABILITY_LAWS
from skvbem.testing.cases import ModelCase
from skvbem.testing.laws import Report, agree, hold, needs, needs_of, refuses_nothing, require
from skvbem.vbem import posteriors
from skvbem.vbem.driver import RELATIVE_SLACK, run


def check_model(case: ModelCase, *, laws: Iterable[str] | None = None, rng: int | np.random.Generator = 0) -> Report:
    r"""Hold a model to the laws of `skvbem.models.base` and of `skvbem.capabilities`.

    The objective never falls, in any form of :math:`q(\theta)`. The bound is at most :math:`\ln p(y)`, summed over all
    that is hidden, and equal to it where nothing is hidden. The derivatives of :math:`\ln Z` by natural parameters are
    the expected statistics [Beal (2.54)]. Weights are repeats, weight 0 is absence, and a missing cell is the sum over
    its values. Threads change no bit. Relabelings change nothing but the order. What the model can do for scores has
    to agree with the sum over all that is hidden, too.

    Parameters
    ----------
    case : ModelCase
        Draws instances; its model is registered in `skvbem.models.MODELS`.
    laws : iterable of str, optional
        Names in `skvbem.testing.models.LAWS`; all if None.
    rng : int or numpy.random.Generator, default=0

    Returns
    -------
    Report
        The laws that were tried, and what is lacking for each of the others.

    Raises
    ------
    AssertionError
        If a law is broken: which, on what, and by how much.

    Examples
    --------
    >>> from skvbem.testing import EXAMPLES, check_model
    >>> report = check_model(EXAMPLES["mixture"], laws=["bound_is_below_the_evidence", "fixed_point_stays_fixed"])
    >>> report.held
    ('bound_is_below_the_evidence', 'fixed_point_stays_fixed')
    """
    rng = np.random.default_rng(rng)
    return hold(str(case), "models", LAWS, laws, lambda law: law(case, rng), lambda law: case.lacking(needs_of(law)))


def ascend(instance, data, form, starts, **limits):
    """A run from each start."""
    return run(instance.ascent(instance.model, data, form), starts, **limits)


# --- the bound --------------------------------------------------------------------------------------------------------


@needs("complete", "exact")
def bound_is_the_evidence_where_nothing_is_hidden(case: ModelCase, rng: np.random.Generator) -> None:
    """With nothing hidden the bound is ln p(y) after one step; and there it stays [Beal (2.114)]."""
    for k in range(case.n_complete):
        instance = case.complete(rng, k)
        data = instance.compile()
        ran = ascend(instance, data, posteriors.VB, instance.random_starts(data, rng, 1), tol=0.0, max_iter=2)
        exact = instance.log_evidence()
        agree("The bound", ran.objective[0], exact, rel=1e-9, abs=1e-9)
        require(np.ptp(ran.traces[0]) <= 1e-9 * (1 + abs(exact)), f"The bound moves by {np.ptp(ran.traces[0]):.3g}.")


@needs("exact")
def bound_is_below_the_evidence(case: ModelCase, rng: np.random.Generator) -> None:
    """The bound is at most ln p(y), summed over all that is hidden; and for some instance not far below."""
    gaps = []
    for k in range(case.n_tiny):
        instance = case.tiny(rng, k)
        data = instance.compile()
        starts = instance.random_starts(data, rng, 4)
        ran = ascend(instance, data, posteriors.VB, starts, tol=1e-9, max_iter=5000)
        exact, bound = instance.log_evidence(), ran.objective.max()
        require(
            bound <= exact + 1e-9 * abs(exact),
            f"Instance {k}: the bound {bound:.12g} is {bound - exact:.3g} nats above the evidence {exact:.12g}.",
        )
        gaps.append(exact - bound)
    require(min(gaps) < 5.0, f"The bound is never nearer to the evidence than {min(gaps):.3g} nats.")


def objective_never_falls(
    case: ModelCase,
    rng: np.random.Generator,
    forms: Sequence[str] | None = None,
    accelerate: Sequence[bool] = (False, True),
) -> None:
    """From any start, rows weighted by any number, no step of any form lowers the objective [Beal theorem 2.2]."""
    for form in case.forms if forms is None else forms:
        for accelerated in accelerate:
            for k in range(case.n_rising):
                _rises(case, k, form, accelerated, rng)


def _rises(case, k, form, accelerate, rng):
    """Runs of the driver, which raises if the objective falls, and plain steps."""
    instance = case.dozens(rng, k, form)
    data = instance.compile(weight=rng.uniform(0.2, 2.0, instance.n_units))
    ascent = instance.ascent(instance.model, data, case.forms[form])
    starts = instance.random_starts(data, rng, case.n_rising_starts)
    scale = min(ascent.magnitude, 10 * data.total_weight)
    with refuses_nothing(BoundFellError, f"Instance {k}, form {form!r}"):
        traces = list(run(ascent, starts, **case.limits, accelerate=accelerate).traces)
    if not accelerate:
        traces += ascent.advance(starts, case.n_plain_steps).T.tolist()
    for trace in traces:
        require(np.isfinite(trace), f"Instance {k}, form {form!r}: an objective is not finite.")
        fall = -np.diff(trace).min()
        allowed = RELATIVE_SLACK * (abs(trace[-1]) + scale)
        require(fall <= allowed, f"Instance {k}, form {form!r}: the objective falls by {fall:.3g} nats.")


def fixed_point_stays_fixed(case: ModelCase, rng: np.random.Generator, forms: Sequence[str] | None = None) -> None:
    """Further steps from where a run ended change neither the objective nor the statistics."""
    for form in case.forms if forms is None else forms:
        if form == "ml" and "maximum_likelihood" in case.lacks:
            continue
        for k in range(case.n_fixed):
            instance = case.dozens(rng, k, form)
            data = instance.compile()
            ascent = instance.ascent(instance.model, data, case.forms[form])
            result = run(ascent, instance.random_starts(data, rng, 1), tol=0.0, max_iter=20_000)
            after = result.statistics.copy()
            trace = ascent.advance(after, 3)[:, 0]
            require(result.converged, f"Form {form!r}: a run did not converge.")
            agree(f"Objective, {form!r}", trace, np.full(3, result.objective[0]), rel=1e-12, abs=1e-10)
            agree(f"Statistics, {form!r}", after, result.statistics, abs=1e-4 * (1 + data.total_weight))


@needs("regular")
def bic_stays_at_a_distance_from_the_bound(case: ModelCase, rng: np.random.Generator) -> None:
    """Of a regular model, as rows come more and more often, BIC less the bound has a limit [Schwarz 1978]."""
    instance = case.regular(rng)
    distances = []
    for times in (1e2, 1e4, 1e6):
        evaluation = instance.evaluation(rng, weight=np.full(instance.n_units, times))
        bic, bound = (get_score(kind)(evaluation).value for kind in ("bic", "lower_bound"))
        distances.append(bic - bound)
    first, second = abs(distances[1] - distances[0]), abs(distances[2] - distances[1])
    message = f"BIC less the bound is {distances} nats at 1e2, 1e4 and 1e6 rows of each kind."
    require(second < 0.1 * first + 1e-3, message)
    require(second < 0.05, message)


# --- the E step and the data ------------------------------------------------------------------------------------------


def expected_statistics_are_derivatives_of_the_log_normalizer(case: ModelCase, rng: np.random.Generator) -> None:
    """d ln Z / d natural = expected statistics, here between two random natural parameters [Beal (2.54)]."""
    h = 1e-3
    for k in range(min(case.n_tiny, 6)):
        instance = case.tiny(rng, k)
        data = instance.compile()
        ends = instance.natural(data, rng, 2)
        finite = np.isfinite(ends).all(axis=1)  # of what the prior rules out natural parameters are -inf
        along = np.zeros(len(ends))
        along[finite] = ends[finite, 1] - ends[finite, 0]
        at = ends[:, :1] + np.array([0.5, 0.5 - 2 * h, 0.5 - h, 0.5 + h, 0.5 + 2 * h]) * along[:, None]
        expectation = instance.model.expect(np.ascontiguousarray(at), data)
        a, b, c, d = expectation.log_normalizer[1:]
        slope = (8 * (c - b) - (d - a)) / (12 * h)
        terms = expectation.statistics[:, 0] * along
        agree(f"Instance {k}: statistics along a line", terms.sum(), slope, abs=1e-7 * (1 + abs(terms).sum()))


def check_same_step(instance, data, other, rng):
    """The E steps of both kinds of data at the same natural parameters."""
    natural = instance.natural(data, rng, 2)
    one, two = (instance.model.expect(natural, each) for each in (data, other))
    agree("Log normalizers", one.log_normalizer, two.log_normalizer, rel=1e-12)
    agree("Expected statistics", one.statistics, two.statistics, rel=1e-9, abs=1e-9)
    agree("Total weights", data.total_weight, other.total_weight, rel=1e-14)


def weights_are_repeats_in_any_order(case: ModelCase, rng: np.random.Generator) -> None:
    """A unit of weight n is n such units, in any order; 0 among the weights."""
    instance = case.dozens(rng, 1)
    repeats = rng.integers(0, 4, size=instance.n_units)
    repeats[0] = 2
    units = rng.permutation(np.repeat(np.arange(instance.n_units), repeats))
    check_same_step(instance, instance.compile(weight=repeats.astype(float)), instance.compile(units), rng)


def weight_zero_is_absence(case: ModelCase, rng: np.random.Generator) -> None:
    """A unit of weight 0 is not there, whatever the other weights."""
    instance = case.dozens(rng, 1)
    weight = rng.uniform(0.2, 2.0, instance.n_units) * (rng.random(instance.n_units) < 0.6)
    weight[0] = 0.7
    kept = np.flatnonzero(weight)
    check_same_step(instance, instance.compile(weight=weight), instance.compile(kept, weight[kept]), rng)


@needs("one_by_one")
def rows_one_by_one_are_the_weighted_rows(case: ModelCase, rng: np.random.Generator) -> None:
    """Scores that complete rows go through every row once, but for those of weight 0."""
    instance = case.dozens(rng, 1)
    repeats = rng.integers(0, 4, size=instance.n_units).astype(float)
    repeats[0] = 2.0
    data = instance.compile(weight=repeats)
    one_by_one, natural = data.one_by_one, instance.natural(data, rng, 2)
    one, two = (instance.model.expect(natural, each) for each in (data, one_by_one))
    agree("Expected statistics", one.statistics, two.statistics, rel=1e-9, abs=1e-9)
    agree("Log normalizers", one.log_normalizer, two.log_normalizer, rel=1e-12)
    require(one_by_one.weight == 1, "A row that was written out has a weight other than 1.")


@needs("finite_cells", "points", "enumeration")
def missing_cell_is_the_sum_over_its_values(case: ModelCase, rng: np.random.Generator) -> None:
    """p(the rest) is the sum of p over the values of a missing cell, of a point and in the exact evidence."""
    for k in range(4):
        missing, others = case.tiny(rng, 2 * k).filled(rng)
        point = missing.point(missing.compile(), rng)[:, None]
        whole, *parts = (
            instance.capabilities.points.log_likelihoods(instance.compile(), point)[0]
            for instance in (missing, *others)
        )
        agree(f"Instance {k}: log likelihood", whole, logsumexp(parts), rel=1e-12)
        whole, *parts = (
            instance.capabilities.enumeration(instance.compile(), 2**20)[0] for instance in (missing, *others)
        )
        agree(f"Instance {k}: log evidence", whole, logsumexp(parts), rel=1e-11)


# --- symmetry ---------------------------------------------------------------------------------------------------------


def threads_change_no_bit(case: ModelCase, rng: np.random.Generator) -> None:
    """Two steps of every form with two threads are those with one, bit by bit."""
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
            require(np.array_equal(*traces), f"Instance {k}: objectives of {form.name!r} differ with two threads.")
            require(np.array_equal(one, two), f"Instance {k}: statistics of {form.name!r} differ with two threads.")


@needs("relabeling")
def relabeling_changes_nothing_but_the_order(case: ModelCase, rng: np.random.Generator) -> None:
    """KL, ln Z and expected statistics of relabeled statistics are the relabeled ones."""
    for k in range(case.n_relabeled):
        instance = case.alike(rng, k)
        model, data = instance.model, instance.compile()
        start, relabeling = instance.random_starts(data, rng, 1), instance.relabeling(rng)
        swapped = relabeling.there(start)
        agree("Statistics there and back", relabeling.back(swapped), start, rel=0.0, abs=0.0)
        one, other = (posteriors.VB.of(model.prior, each) for each in (start, swapped))
        agree("KL", one[1], other[1], rel=1e-12)
        a, b = model.expect(one[0], data), model.expect(other[0], data)
        agree("ln Z", a.log_normalizer, b.log_normalizer, rel=1e-12)
        agree("Expected statistics", relabeling.there(a.statistics), b.statistics, rel=1e-9, abs=1e-9)


@needs("row_posteriors", "relabeling")
def relabeling_reorders_the_posteriors_of_rows(case: ModelCase, rng: np.random.Generator) -> None:
    """Posteriors of labels sum to one, and are reordered with them."""
    instance = case.alike(rng, 0)
    model, data = instance.model, instance.compile()
    start, relabeling = instance.random_starts(data, rng, 1), instance.relabeling(rng)
    one, other = (
        instance.row_posteriors(posteriors.VB.of(model.prior, each)[0][:, 0], data)
        for each in (start, relabeling.there(start))
    )
    agree("Sums of posteriors of labels", one.sum(axis=1), np.ones(len(one)))
    agree("Posteriors of labels", one[:, relabeling.order], other, abs=1e-9)


#: Every law of models by name, those of capabilities among them.
LAWS = {
    **{
        law.__name__: law
        for law in (
            bound_is_the_evidence_where_nothing_is_hidden,
            bound_is_below_the_evidence,
            objective_never_falls,
            fixed_point_stays_fixed,
            bic_stays_at_a_distance_from_the_bound,
            expected_statistics_are_derivatives_of_the_log_normalizer,
            weights_are_repeats_in_any_order,
            weight_zero_is_absence,
            rows_one_by_one_are_the_weighted_rows,
            missing_cell_is_the_sum_over_its_values,
            threads_change_no_bit,
            relabeling_changes_nothing_but_the_order,
            relabeling_reorders_the_posteriors_of_rows,
        )
    },
    **CAPABILITY_LAWS,
}
