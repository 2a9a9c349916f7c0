r"""Laws of conjugate families: what `skvbem.families.base.ConjugateFamily` promises, on members and statistics.

All follow from A, its gradient, and draws; a family that keeps them can serve as prior of any model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skvbem.families.base import ConjugateFamily
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.testing.laws import Report, agree, hold, refuses, require

_EPS = np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class FamilyExample:
    """Members of a family side by side, and statistics of data: what laws of families are tried on.

    The last axis of every array runs over the members.

    Parameters
    ----------
    prior : ConjugateFamily
        With a trailing axis of members.
    statistics : ndarray of shape (n_cells, n_members)
        Statistics of complete data under each, some of which may be nothing.
    more : ndarray of shape (n_cells, n_members)
        Statistics of further data, none of them empty.
    coordinates, other : ndarray of shape (n_cells, n_members)
        Additive coordinates of the prior, and of a member of its own.
    at : callable of ndarray to ConjugateFamily
        The member with these coordinates.
    steps : ndarray of shape (n_cells, n_members), optional
        Changes of each coordinate that are small and leave it one of a member.
    directions : tuple of ndarray
        Statistics along which derivatives are taken where there are no `steps`.
    """

    prior: ConjugateFamily
    statistics: np.ndarray
    more: np.ndarray
    coordinates: np.ndarray
    other: np.ndarray
    at: Callable[[np.ndarray], Any]
    steps: np.ndarray | None = None
    directions: tuple[np.ndarray, ...] = ()

    @classmethod
    def of(
        cls, prior: ConjugateFamily, statistics: Callable[[np.random.Generator], Any], rng: np.random.Generator
    ) -> FamilyExample:
        """Three members around a prior of shape (n_cells,), from a function that draws statistics of data."""

        def at(coordinates):
            extra = (1,) * (np.ndim(coordinates) - prior.coordinates.ndim)
            return prior + (coordinates - prior.coordinates.reshape(prior.coordinates.shape + extra))

        def drawn():
            return np.stack([np.asarray(statistics(rng), dtype=float) for _ in range(3)], axis=1)

        coordinates = prior.coordinates[:, None] + drawn() * [0.0, 1.0, 1.0]
        statistics_of_data = drawn() * [1.0, 0.0, 1.0]
        other = prior.coordinates[:, None] + drawn()
        directions = tuple(drawn() for _ in range(len(prior.coordinates) + 1))
        return cls(at(coordinates), statistics_of_data, drawn(), coordinates, other, at, None, directions)

    def single(self) -> ConjugateFamily:
        """The first member after further data, without the trailing axis."""
        return self.at((self.coordinates + self.more)[:, 0] * 1.0)

    @property
    def scale(self) -> np.ndarray:
        """Size of the terms that a KL or an increment is a sum of, nats, (n_members,)."""
        posterior = self.prior + self.statistics
        natural = np.maximum(abs(posterior.expected_natural()), abs(self.prior.expected_natural()))
        return (abs(self.statistics) * natural).sum(axis=0) + 1


def check_family(
    prior: ConjugateFamily | FamilyExample,
    statistics: Callable[[np.random.Generator], Any] | None = None,
    *,
    laws: Iterable[str] | None = None,
    rng: int | np.random.Generator = 0,
) -> Report:
    r"""Hold a conjugate family to the laws of `skvbem.families.base`.

    The laws are of A and its gradient :math:`\nabla A`, the expected natural parameters [Beal (2.95)]:
    :math:`\mathrm{KL}(q \,\|\, p) = (\eta_q - \eta_p)^\top \nabla A(q) - [A(q) - A(p)] \ge 0`, and the evidence of
    complete data :math:`A(\mathrm{prior} + \mathrm{statistics}) - A(\mathrm{prior})`. Draws, modes and unconstrained
    coordinates have to agree with them, and members side by side with each alone.

    Parameters
    ----------
    prior : ConjugateFamily or FamilyExample
        A member of shape (n_cells,), or members with all that laws are tried on.
    statistics : callable of numpy.random.Generator to array_like of shape (n_cells,)
        Draws the statistics of some complete data; not for a `FamilyExample`.
    laws : iterable of str, optional
        Names in `skvbem.testing.families.LAWS`; all if None.
    rng : int or numpy.random.Generator, default=0

    Returns
    -------
    Report

    Raises
    ------
    AssertionError
        If a law is broken: which, on what, and by how much.

    Examples
    --------
    >>> from skvbem.families import Gamma
    >>> from skvbem.testing import check_family
    >>> prior = Gamma.from_parameters([[2.0]], [[0.5]])
    >>> report = check_family(prior, lambda rng: [rng.poisson(9.0) + 1.0, 3.0])  # events in an exposure of 3
    >>> len(report.held), report.lacking
    (21, {})
    """
    rng = np.random.default_rng(rng)
    if isinstance(prior, FamilyExample):
        example = prior
    elif statistics is None:
        raise TypeError("The 'statistics' parameter of check_family is missing: a function that draws statistics.")
    else:
        example = FamilyExample.of(prior, statistics, rng)
    subject = type(example.prior).__name__
    return hold(subject, "conjugate families", LAWS, laws, lambda law: law(example, rng))


# The log normalizer ---------------------------------------------------------------------------------------------------


def expected_natural_is_the_gradient(case: FamilyExample, rng: np.random.Generator) -> None:
    """Expected natural parameters are the gradient of A, here by differences [Beal (2.95)]."""
    if case.steps is None:
        _gradient_along_statistics(case)
        return
    coordinates, expected = case.coordinates, case.prior.expected_natural()
    require(expected.shape == coordinates.shape, f"The shape is {expected.shape}, not {coordinates.shape}.")
    for cell, h in enumerate(case.steps):

        def rise(k, cell=cell, h=h):
            """A(c + k h) - A(c - k h)."""
            step = np.zeros_like(coordinates)
            step[cell] = k * h
            return case.at(coordinates - step).log_normalizer_increment(2 * step)

        slope = (8 * rise(1) - rise(2)) / (12 * h)
        allowed = 1e-7 * abs(expected[cell]) + 1e-9 + 1e-12 / h
        agree(f"Expected natural parameters, cell {cell}", expected[cell], slope, abs=allowed)


def _gradient_along_statistics(case):
    """Slopes of A along statistics of data, from where all of them were seen."""
    h, at = 1e-2, case.coordinates + sum(case.directions)
    expected = case.at(at).expected_natural()
    require(expected.shape == at.shape, f"The shape is {expected.shape}, not {at.shape}.")
    for along in case.directions:

        def rise(k, along=along):
            return case.at(at - k * h * along).log_normalizer_increment(2 * k * h * along)

        slope = (8 * rise(1) - rise(2)) / (12 * h)
        allowed = 1e-7 * abs(along * expected).sum(axis=0) + 1e-9
        agree("Expected natural parameters along statistics", (along * expected).sum(axis=0), slope, abs=allowed)


def increment_is_a_difference_of_log_normalizers(case: FamilyExample, rng: np.random.Generator) -> None:
    """The increment is A(prior + statistics) - A(prior) [Beal (2.98), (2.99)]."""
    prior, statistics = case.prior, case.statistics
    before, after = prior.log_normalizer(), (prior + statistics).log_normalizer()
    require(before.shape == statistics.shape[1:], f"A has the shape {before.shape}, not {statistics.shape[1:]}.")
    agree("The increment", prior.log_normalizer_increment(statistics), after - before, abs=1e-8)  # of terms of 1e6


def kl_is_zero_between_equals_and_positive_between_others(case: FamilyExample, rng: np.random.Generator) -> None:
    """KL(p || p) = 0, and KL(posterior || prior) > 0."""
    prior = case.prior
    agree("KL(p || p)", prior.kl(prior), 0.0, abs=0.0)
    kl = (prior + case.more).kl(prior)
    require(kl > 0, f"KL(posterior || prior) is {kl}.")


def kl_is_positive_between_any_two(case: FamilyExample, rng: np.random.Generator) -> None:
    """KL >= 0 whichever has more mass: KL(prior || posterior) > 0 as well."""
    kl = case.prior.kl(case.prior + case.more)
    require(kl > 0, f"KL(prior || posterior) is {kl}.")
    kl = case.prior.kl(case.at(case.other))
    require(kl >= -1e-8, f"KL between two members is {kl}.")


def kl_is_the_mean_log_ratio_of_the_densities(case: FamilyExample, rng: np.random.Generator) -> None:
    """KL(q || p) is the mean of ln q - ln p over draws of q, in standard errors, whatever the measure."""
    n = 2000
    q = case.at(np.repeat(case.coordinates + case.more, n, axis=1))
    p = case.at(np.repeat(case.coordinates, n, axis=1))
    point = q.sample(rng)
    if np.isinf(q.natural(point)).any():
        return
    kl = (case.prior + case.more).kl(case.prior)
    for basis in ("natural", "probability"):
        ratio = (q.log_density(point, basis) - p.log_density(point, basis)).reshape(-1, n)
        error = ratio.std(axis=1) / np.sqrt(n)
        agree(f"Mean log ratio of {basis} densities", ratio.mean(axis=1), kl, abs=5 * error + 1e-6)


# Statistics and evidence ----------------------------------------------------------------------------------------------


def statistics_add_in_any_order(case: FamilyExample, rng: np.random.Generator) -> None:
    """prior + a + b + c is one member, whatever their order [Beal (2.98), (2.99)]."""
    prior, statistics, zero = case.prior, case.statistics, case.at(np.zeros_like(case.statistics))
    parts = [0.5 * statistics, 0.25 * statistics, 0.25 * statistics]
    together = (prior + statistics).statistics_above(zero)
    rounding = 4 * _EPS * (abs(together) + abs(statistics))
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        one_by_one = prior
        for k in order:
            one_by_one = one_by_one + parts[k]
        agree("Coordinates", one_by_one.statistics_above(zero), together, abs=rounding)


def what_was_added_can_be_read_off(case: FamilyExample, rng: np.random.Generator) -> None:
    """(prior + statistics) above the prior are the statistics."""
    rounding = 4 * _EPS * abs(case.coordinates + case.statistics).max()
    agree(
        "Statistics above the prior",
        (case.prior + case.statistics).statistics_above(case.prior),
        case.statistics,
        abs=rounding,
    )


def evidence_of_data_is_that_of_a_part_times_that_of_the_rest(case: FamilyExample, rng: np.random.Generator) -> None:
    """p(a, b) = p(a) p(b | a), the rest under the posterior of the part."""
    prior, statistics = case.prior, case.statistics
    first = 0.3 * statistics
    in_two = prior.log_evidence(first) + (prior + first).log_evidence(statistics - first)
    whole = prior.log_evidence(statistics)
    agree("Evidence in two parts", in_two, whole, abs=1e-11 * abs(whole) + 1e-10 + 1e-13 * case.scale)


def no_data_are_certain(case: FamilyExample, rng: np.random.Generator) -> None:
    """The evidence of no data is one."""
    agree("Log evidence of no data", case.prior.log_evidence(np.zeros_like(case.statistics)), 0.0, abs=0.0)


def data_are_most_likely_at_the_most_likely_point(case: FamilyExample, rng: np.random.Generator) -> None:
    """No other point near `most_likely` gives the data more."""
    prior = case.prior
    best = prior.most_likely(case.more)
    free, top = prior.to_unconstrained(best), _inner(case.more, prior.natural(best))
    for size in (1e-3, 0.3):
        aside = prior.from_unconstrained(free + size * rng.normal(size=free.shape))
        higher = _inner(case.more, prior.natural(aside)) - top
        require(higher <= 1e-12 * abs(top) + 1e-12, f"A point aside gives {np.max(higher):.3g} nats more.")


def _inner(statistics, natural):
    """Statistics times natural parameters, with 0 x (-inf) = 0."""
    with np.errstate(invalid="ignore"):
        return np.where(statistics == 0, 0.0, statistics * natural).sum(axis=0)


# Members side by side -------------------------------------------------------------------------------------------------


def members_are_valid_and_what_no_data_could_give_is_not(case: FamilyExample, rng: np.random.Generator) -> None:
    """`is_valid` tells hyperparameters of a density from others, member by member."""
    n_members = case.coordinates.shape[1]
    require(case.prior.is_valid.shape == (n_members,), f"The shape of is_valid is {case.prior.is_valid.shape}.")
    require(case.prior.is_valid, "A prior is not valid.")
    require((case.prior + case.statistics).is_valid, "A posterior is not valid.")
    for cell in range(len(case.coordinates)):
        wrong = case.coordinates.copy()
        wrong[cell, 0] = np.nan
        computed = case.at(wrong).is_valid.tolist()
        require(computed == [False] + [True] * (n_members - 1), f"NaN in cell {cell} of the first gives {computed}.")
    require(~case.at(-case.coordinates).is_valid, "Coordinates of the other sign are said to be valid.")


def parallel_members_are_members_alone(case: FamilyExample, rng: np.random.Generator) -> None:
    """Each of many members at once has the numbers that it has alone."""
    prior, statistics = case.prior, case.statistics
    posterior, unit = prior + statistics, case.scale
    for k in range(case.coordinates.shape[1]):
        alone = case.at(np.ascontiguousarray(case.coordinates[:, k]))
        lane = statistics[:, k]
        agree("A", alone.log_normalizer(), prior.log_normalizer()[k], abs=1e-8)  # of terms of 1e6
        together = prior.log_evidence(statistics)[k]
        agree("Log evidence", alone.log_evidence(lane), together, rel=1e-12, abs=1e-13 * unit[k])
        agree("KL", (alone + lane).kl(alone), posterior.kl(prior)[k], rel=1e-9, abs=1e-13 * unit[k])
        expected = prior.expected_natural()[:, k]
        agree("Expected natural parameters", alone.expected_natural(), expected, rel=1e-13, abs=1e-13)


def one_prior_serves_many_statistics(case: FamilyExample, rng: np.random.Generator) -> None:
    """A prior without the trailing axis takes statistics with one."""
    alone, unit = case.at(np.ascontiguousarray(case.coordinates[:, 0])), case.scale
    together, kl = alone.log_evidence(case.statistics), (alone + case.statistics).kl(alone)
    require(together.shape == case.statistics.shape[1:], f"Log evidences have the shape {together.shape}.")
    for k in range(case.statistics.shape[1]):
        one, size = case.statistics[:, k], 1e-12 * unit.max()
        agree("Log evidence", together[k], alone.log_evidence(one), rel=1e-12, abs=size)
        agree("KL", kl[k], (alone + one).kl(alone), rel=1e-9, abs=size)


def parallel_members_draw_what_each_draws_alone(case: FamilyExample, rng: np.random.Generator) -> None:
    """From streams of their own, which are then at the same place."""
    n_members = case.coordinates.shape[1]
    streams = rng.integers(0, 2**64, size=(4, n_members), dtype=np.uint64)
    before = streams.copy()
    together = case.prior.draw_natural(ParallelGenerator(streams))
    for lane in range(n_members):
        alone, stream = case.at(case.coordinates[:, [lane]]), before[:, [lane]].copy()
        drawn = alone.draw_natural(ParallelGenerator(stream))
        agree("A draw side by side", together[:, lane], drawn[:, 0], rel=1e-9, abs=0.0, nan_ok=True)
        require(np.array_equal(streams[:, lane], stream[:, 0]), "A stream drew more numbers than alone.")
    words, fewer = f"1 streams for {n_members} lanes", before[:, :1].copy()
    refuses(ValueError, words, "Too few streams", lambda: case.prior.draw_natural(ParallelGenerator(fewer)))


def draws_have_the_expected_natural_parameters(case: FamilyExample, rng: np.random.Generator) -> None:
    """The mean of natural parameters over draws, of points or their own, is their expectation, in standard errors."""
    n = 4000
    many = case.at(np.repeat(case.coordinates + case.more, n, axis=1))
    expected = (case.prior + case.more).expected_natural()
    streams = rng.integers(0, 2**64, size=(4, many.coordinates.shape[1]), dtype=np.uint64)
    for natural in (many.natural(many.sample(rng)), many.draw_natural(ParallelGenerator(streams))):
        drawn = natural.reshape(*case.coordinates.shape, n)
        if np.isinf(drawn).any():
            continue
        error = drawn.std(axis=-1) / np.sqrt(n)
        agree("Mean over draws", drawn.mean(axis=-1), expected, abs=6 * error + 1e-9 * abs(expected))


# Points and coordinates -----------------------------------------------------------------------------------------------


def mode_is_where_the_density_of_its_basis_does_not_rise(case: FamilyExample, rng: np.random.Generator) -> None:
    """Along no direction of the unconstrained coordinates, for both measures."""
    posterior, scale = case.single(), case.scale.max()
    for basis in ("natural", "probability"):
        try:
            mode = posterior.mode(basis)
        except ValueError:
            continue
        free, top = posterior.to_unconstrained(mode), float(posterior.log_density(mode, basis))
        require(len(free) == posterior.n_free_parameters, f"There are {len(free)} unconstrained coordinates.")
        for _ in range(12):
            aside = posterior.from_unconstrained(free + 1e-3 * rng.normal(size=free.shape))
            higher = float(posterior.log_density(aside, basis)) - top
            require(higher <= 1e-12 * scale, f"The {basis} density rises by {higher:.3g} nats.")


def unconstrained_coordinates_come_back(case: FamilyExample, rng: np.random.Generator) -> None:
    """`to_unconstrained` undoes `from_unconstrained`."""
    prior = case.prior + case.more
    free = rng.normal(size=(prior.n_free_parameters, case.coordinates.shape[1]))
    agree("Coordinates", prior.to_unconstrained(prior.from_unconstrained(free)), free, rel=1e-9, abs=1e-9)


def natural_measure_is_volume_in_unconstrained_coordinates(case: FamilyExample, rng: np.random.Generator) -> None:
    """The density is the Gaussian of its curvature there, as the data become many: Laplace's formula gives A."""
    many = case.at((case.coordinates + case.more)[:, 0] * 1e4)
    mode = many.mode()
    free, d = many.to_unconstrained(mode), many.n_free_parameters
    top = many.log_density(mode)

    def drop(step):
        return float(top - many.log_density(many.from_unconstrained(free + step)))

    h = np.full(d, 1e-3)
    for _ in range(3):
        h = 0.3 * h / np.sqrt([drop(step) + drop(-step) for step in np.diag(h)])
    steps = np.diag(h)
    curvature = np.array([[drop(a + b) - drop(a - b) - drop(b - a) + drop(-a - b) for a in steps] for b in steps])
    curvature /= 4 * np.outer(h, h)
    laplace = float(top) + d / 2 * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(curvature)[1]
    agree("Laplace's formula", laplace, 0.0, abs=0.05)  # a wrong measure is off by ln 2 at the least


def derivatives_by_unconstrained_coordinates_are_differences(case: FamilyExample, rng: np.random.Generator) -> None:
    """First ones of the natural parameters, second ones of their product with coordinates."""
    prior, weights, h = case.single(), case.more[:, 0], 1e-5
    free = prior.to_unconstrained(prior.mode()) + 0.1 * rng.normal(size=prior.n_free_parameters)
    steps = h * np.eye(len(free))

    def natural(free):
        return prior.natural(prior.from_unconstrained(free))

    def gradient(free):
        return weights @ prior.jacobian(prior.from_unconstrained(free))

    jacobian, information = (
        np.stack([(f(free + e) - f(free - e)) / (2 * h) for e in steps], axis=1) for f in (natural, gradient)
    )
    point = prior.from_unconstrained(free)
    computed = prior.jacobian(point)
    agree("The Jacobian", computed, jacobian, abs=1e-9 * (1 + abs(computed).max()))
    computed = prior.information(point, weights)
    agree("The information", computed, -information, abs=1e-9 * (1 + abs(computed).max()))
    few = rng.permutation(len(free))[: 1 + len(free) // 2]
    part = prior.information(point, weights, few)
    agree("The information of some coordinates", part, computed[np.ix_(few, few)], rel=0.0, abs=0.0)
    for chosen in (few, np.arange(len(free))):
        whole = prior.information(point, prior.coordinates, chosen)
        sign, log_det = np.linalg.slogdet(whole)
        if sign > 0:
            full_log_det, diagonal_log_det = (
                prior.log_det_information(point, prior.coordinates, chosen, diagonal) for diagonal in (False, True)
            )
            agree("ln of the determinant of the information", full_log_det, log_det, abs=1e-8)
            agree("ln of the determinant of its diagonal", diagonal_log_det, np.log(np.diag(whole)).sum(), abs=1e-8)


def points_come_back_from_natural_parameters(case: FamilyExample, rng: np.random.Generator) -> None:
    """`from_natural` undoes `natural`."""
    prior = case.prior + case.more
    natural = prior.natural(prior.mode())
    agree("Natural parameters", prior.natural(prior.from_natural(natural)), natural, rel=1e-9, abs=1e-9)


def shifted_coordinates_give_the_density_of_the_parameters(case: FamilyExample, rng: np.random.Generator) -> None:
    """`probability_shift` leads from one measure to the other, up to a factor, which is the same at all points."""
    prior = case.single()
    free = prior.to_unconstrained(prior.mode())
    computed = []
    for _ in range(4):
        point = prior.from_unconstrained(free + 0.3 * rng.normal(size=free.shape))
        measure = prior.log_density(point, "probability") - prior.log_density(point)
        computed.append(measure - prior.probability_shift @ prior.natural(point))
    agree("ln of the factor", computed, np.full(4, computed[0]), rel=1e-9, abs=1e-8)


#: Every law of conjugate families by name.
LAWS = {
    law.__name__: law
    for law in (
        expected_natural_is_the_gradient,
        increment_is_a_difference_of_log_normalizers,
        kl_is_zero_between_equals_and_positive_between_others,
        kl_is_positive_between_any_two,
        kl_is_the_mean_log_ratio_of_the_densities,
        statistics_add_in_any_order,
        what_was_added_can_be_read_off,
        evidence_of_data_is_that_of_a_part_times_that_of_the_rest,
        no_data_are_certain,
        data_are_most_likely_at_the_most_likely_point,
        members_are_valid_and_what_no_data_could_give_is_not,
        parallel_members_are_members_alone,
        one_prior_serves_many_statistics,
        parallel_members_draw_what_each_draws_alone,
        draws_have_the_expected_natural_parameters,
        mode_is_where_the_density_of_its_basis_does_not_rise,
        unconstrained_coordinates_come_back,
        natural_measure_is_volume_in_unconstrained_coordinates,
        derivatives_by_unconstrained_coordinates_are_differences,
        points_come_back_from_natural_parameters,
        shifted_coordinates_give_the_density_of_the_parameters,
    )
}
