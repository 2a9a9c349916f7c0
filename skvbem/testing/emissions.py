r"""Laws of emissions: what :math:`p(y \mid k, \theta)` of one family owes to whatever model has components.

Each is a function of an `EmissionExample` and random numbers that raises an AssertionError where the law is broken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import integrate
from sklearn.base import clone

from skvbem.blocks import Blocks
from skvbem.emissions import Emission, EmissionSpecification
from skvbem.emissions.base import relabeled
from skvbem.estimators import VBMixture
from skvbem.testing.laws import Report, agree, hold, needs, needs_of, refuses, require

#: What an example may lack, and what laws ask of it for each.
ASKED = {
    "log_density": "the density by definition, `log_density(row, parameters, k)`",
    "cells": "the values that a missing cell may take, `cells(row, column)`",
    "finite_cells": "finitely many values of cells, `cells(row, column)`",
    "for_data": "how the emission is made, `for_data(values, weight)`",
    "conjugate": "rows whose statistics are their own",
    "gaps": "rows with missing cells",
    "specification": "the specification that users hold",
    "refused": "a cell that the specification refuses, `refused`",
}
_MOST_VALUES = 400


@dataclass(frozen=True, eq=False)
class EmissionExample:
    """An emission and rows of data for it: what laws of emissions are tried on.

    Parameters
    ----------
    emission : Emission
    values : ndarray of shape (n_rows, n_columns), or tuple of ndarray
        Rows, as the emission prepares them; missing cells are NaN, or negative where cells are codes.
    n_components : int
    log_density : callable, optional
        The definition, nats: of a row, parameters by name, and the number of a component; of observed cells alone.
    cells : callable, optional
        Of a row and the number of a column: the values a missing cell may take, None for any float.
    conjugate : bool
        Whether rows have statistics that are their own, as with missing cells they may not.
    for_data : callable, optional
        Of rows, or `Blocks`, and weights: the emission with its units of measure.
    options : mapping
        Keyword arguments of the emission's `default_prior`.
    specification : EmissionSpecification, optional
        What users hold.
    refused : float, optional
        A cell that no member of the family can make.
    """

    emission: Any
    values: Any
    n_components: int = 2
    log_density: Callable | None = None
    cells: Callable | None = None
    conjugate: bool = True
    for_data: Callable | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    specification: EmissionSpecification | None = None
    refused: float | None = None

    def prior(self, n_components: int) -> Any:
        """The prior of so many components."""
        return self.emission.default_prior(n_components, **self.options)

    def responsibilities(self, rng: np.random.Generator, lanes: tuple[int, ...] = ()) -> np.ndarray:
        """Random ones, (n_rows, n_components), after a leading axis of `lanes`."""
        return rng.dirichlet(np.ones(self.n_components), size=(*lanes, n_rows(self.values)))

    def posterior(self, rng: np.random.Generator) -> tuple[Any, Any, Any]:
        """The prior, the table, and the posterior after the rows were shared among components at random."""
        prior, responsibilities = self.prior(self.n_components), self.responsibilities(rng)
        table = self.emission.prepare(self.values)
        return prior, table, prior + self.emission.statistics(table, responsibilities, prior.expected_natural())

    def lacking(self, names: Iterable[str]) -> str:
        """The first of these, names in `ASKED`, that the example lacks; empty if none."""
        single = not isinstance(self.values, tuple)
        has = {
            "cells": self.cells is not None and single and self.values.shape[1] > 1,
            "finite_cells": self.cells is not None and single and self.cells(self.values[0], 0) is not None,
            "conjugate": self.conjugate,
            "gaps": not all(observed(part).all() for part in parts_of(self.values)),
        }
        for name in names:
            if not has.get(name, getattr(self, name, None) is not None):
                return f"want of {name!r} ({ASKED[name]})"
        return ""


def check_emission(
    emission: EmissionSpecification | Emission | EmissionExample,
    values: Any = None,
    *,
    n_components: int = 2,
    log_density: Callable | None = None,
    cells: Callable | None = None,
    refused: float | None = None,
    laws: Iterable[str] | None = None,
    rng: int | np.random.Generator = 0,
) -> list[Report]:
    r"""Hold an emission to the laws of `skvbem.emissions.base`.

    At a point, the log likelihood is that of the definition, and a missing cell is the sum or integral over its values;
    a row without cells says nothing; blocks add up; with one component the bound is the evidence of complete data,
    which is the product of the predictions of each row after the ones before [Beal (2.98), (2.99)]; predictions sum to
    one; draws, quantiles and drawn completions have the moments that they should have.

    Parameters
    ----------
    emission : EmissionSpecification, Emission or EmissionExample
        What users hold, the model's side alone, or all that laws are tried on.
    values : array_like of shape (n_rows, n_columns)
        Some dozen rows without missing cells. They are tried whole, and with a third of the cells missing. Not for an
        `EmissionExample`.
    n_components : int, default=2
    log_density : callable, optional
        The definition, nats: of a row, parameters by name, and the number of a component; of observed cells alone.
    cells : callable, optional
        Of a row and the number of a column: the values a missing cell may take, None for any float.
    refused : float, optional
        A cell that no member of the family can make.
    laws : iterable of str, optional
        Names in `skvbem.testing.emissions.LAWS`; all if None.
    rng : int or numpy.random.Generator, default=0

    Returns
    -------
    list of Report
        Of the rows whole and of those with gaps.

    Raises
    ------
    AssertionError
        If a law is broken: which, on what, and by how much.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem.emissions import Poisson
    >>> from skvbem.testing import check_emission
    >>> counts = np.random.default_rng(0).poisson([2.0, 5.0], size=(12, 2))
    >>> whole, gaps = check_emission(Poisson(), counts, cells=lambda row, column: range(200), refused=-1.0)
    >>> whole.lacking
    {'at_a_point_the_log_likelihood_is_the_definition': "want of 'log_density' (the density by definition, ...)", ...}
    """
    rng = np.random.default_rng(rng)
    if isinstance(emission, EmissionExample):
        examples = [emission]
    else:
        whole = _example(emission, values, n_components, log_density, cells, refused)
        examples = [whole, _with_gaps(whole, rng)]
    return [
        hold(
            f"{type(example.specification or example.emission).__name__} on rows {words}",
            "emissions",
            LAWS,
            laws,
            lambda law, example=example: law(example, rng),
            lambda law, example=example: example.lacking(needs_of(law)),
        )
        for example, words in zip(examples, ("as they are", "with gaps"))
    ]


def _example(emission, values, n_components, log_density, cells, refused):
    """The example of whole rows."""
    if values is None:
        raise TypeError("The 'values' parameter of check_emission is missing: some dozen rows of data.")
    values, for_data, options = np.asarray(values), None, {}
    specification = emission if isinstance(emission, EmissionSpecification) else None
    if specification is None:
        made = emission
    else:
        if specification.holds_categories:
            sizes = {"n_categories": values.max(axis=0) + 1}
        else:
            sizes, values = {}, specification.stored(values.astype(float))

        def for_data(rows, weight=None):
            return specification.for_data(rows, weight, **sizes)

        made = for_data(values)
        options = specification.prior_options(made, [f"x{k}" for k in range(values.shape[1])])
    return EmissionExample(
        made, values, n_components, log_density, cells, True, for_data, options, specification, refused
    )


def _with_gaps(example, rng):
    """The example with a third of the cells missing; the first row whole, the second without any cell."""
    values = example.values.copy()
    gone = rng.random(values.shape) < 1 / 3
    gone[0], gone[1:2] = False, True
    values[gone] = missing_mark(values)
    conjugate = example.emission.is_conjugate(example.emission.prepare(values))
    return replace(example, values=values, conjugate=conjugate)


# --- rows of data -----------------------------------------------------------------------------------------------------


def parts_of(values: Any) -> tuple[np.ndarray, ...]:
    """The groups of columns of rows."""
    return values if isinstance(values, tuple) else (values,)


def row_of(values: Any, i: int) -> Any:
    """One row, or one of each group of columns."""
    return tuple(part[i] for part in values) if isinstance(values, tuple) else values[i]


def rows_of(values: Any, rows: Any) -> Any:
    """Some rows."""
    return tuple(part[rows] for part in values) if isinstance(values, tuple) else values[rows]


def n_rows(values: Any) -> int:
    """Number of rows."""
    return len(parts_of(values)[0])


def missing_mark(values: np.ndarray) -> float:
    """What a missing cell holds."""
    return np.nan if values.dtype.kind == "f" else -1


def observed(values: np.ndarray) -> np.ndarray:
    """Which cells are observed."""
    return ~np.isnan(values) if values.dtype.kind == "f" else values >= 0


def seen(values: Any) -> np.ndarray:
    """Whether rows have an observed cell."""
    return np.any([observed(part).any(axis=1) for part in parts_of(values)], axis=0)


def _rounding(statistics):
    return 1e-12 * (abs(statistics).max() + 1)


# --- likelihoods ------------------------------------------------------------------------------------------------------


@needs("log_density")
def at_a_point_the_log_likelihood_is_the_definition(case: EmissionExample, rng: np.random.Generator) -> None:
    """At a point the log likelihood of a row is ln p(y | k, theta), of what is observed."""
    prior, table, posterior = case.posterior(rng)
    point = posterior.sample(rng)
    found = case.emission.expected_log_likelihood(table, prior.natural(point))
    shape = (len(table), case.n_components)
    require(found.shape == shape, f"The shape of log likelihoods is {found.shape}, not {shape}.")
    parameters = case.emission.parameters(point)
    for i in range(len(table)):
        for k in range(case.n_components):
            wanted = case.log_density(row_of(case.values, i), parameters, k)
            agree(f"Log likelihood of row {i} in component {k}", found[i, k], wanted, rel=1e-9, abs=1e-8)


@needs("cells")
def missing_cell_is_the_sum_over_its_values(case: EmissionExample, rng: np.random.Generator) -> None:
    """At a point p(the other cells) is the sum, or the integral, of p over the values of a missing cell."""
    prior, _, posterior = case.posterior(rng)
    missing_cell_is_the_sum(case, prior.natural(posterior.sample(rng)), rng)


def missing_cell_is_the_sum(case: EmissionExample, natural: np.ndarray, rng: np.random.Generator) -> None:
    """The law of a missing cell at given natural parameters, which are those of a point."""
    column = int(rng.integers(case.values.shape[1]))
    row = case.values[:1].copy()
    row[0, column] = missing_mark(row)
    expected = np.exp(case.emission.expected_log_likelihood(case.emission.prepare(row), natural))[0]

    def whole(value):
        filled = row.copy()
        filled[0, column] = value
        return np.exp(case.emission.expected_log_likelihood(case.emission.prepare(filled), natural))[0]

    values = case.cells(row[0], column)
    if values is None:
        middle = case.values[:, column][observed(case.values[:, column])]
        far = middle.mean() + np.array([-1, 1]) * 40 * (middle.std() + 1)
        total = integrate.quad_vec(whole, *far, epsabs=0, epsrel=1e-10, limit=2000)[0]
    else:
        total = np.sum([whole(value) for value in list(values)[:_MOST_VALUES]], axis=0)
    agree(f"The sum over column {column}", total, expected, rel=1e-7)


def rows_without_cells_say_nothing(case: EmissionExample, rng: np.random.Generator) -> None:
    """A row without observed cells has factor 1 and no statistics."""
    empty = tuple(np.full_like(part[:1], missing_mark(part)) for part in parts_of(case.values))
    table = case.emission.prepare(empty if isinstance(case.values, tuple) else empty[0])
    natural = case.prior(case.n_components).expected_natural()
    likelihoods = case.emission.expected_log_likelihood(table, natural)
    require(likelihoods == 0, f"Log likelihoods of an empty row are {likelihoods}.")
    statistics = case.emission.statistics(table, np.ones((1, case.n_components)), natural)
    require(statistics == 0, f"Statistics of an empty row are {statistics}.")


def restarts_side_by_side_are_restarts_alone(case: EmissionExample, rng: np.random.Generator) -> None:
    """Natural parameters of several restarts at once give each what it gets alone."""
    emission = case.emission
    lanes = [case.posterior(rng)[2].expected_natural() for _ in range(3)]
    table, together = emission.prepare(case.values), np.stack(lanes, axis=1)
    responsibilities = case.responsibilities(rng, (3,))
    found = emission.expected_log_likelihood(table, together)
    sums = emission.statistics(table, responsibilities, together)
    require(found.shape == (3, len(table), case.n_components), f"The shape of log likelihoods is {found.shape}.")
    for lane, natural in enumerate(lanes):
        alone = emission.expected_log_likelihood(table, natural)
        agree("Log likelihoods", found[lane], alone, rel=1e-11, abs=1e-10)
        of_lane = emission.statistics(table, responsibilities[lane], natural)
        agree("Statistics", sums[:, lane], of_lane, abs=_rounding(of_lane))


# --- statistics -------------------------------------------------------------------------------------------------------


def blocks_add_up_to_the_whole(case: EmissionExample, rng: np.random.Generator) -> None:
    """Statistics and log likelihoods of blocks of a table are those of the whole."""
    _, table, posterior = case.posterior(rng)
    natural, emission = posterior.expected_natural(), case.emission
    responsibilities = case.responsibilities(rng)
    step = emission.step(natural, table)
    total, likelihoods = step.zeros(), []
    for part in (slice(0, 1), slice(1, 5), slice(5, len(table))):
        block = table[part]
        likelihoods.append(step.log_likelihood(block))
        step.add(block, responsibilities[part], total)
    whole = emission.statistics(table, responsibilities, natural)
    agree("Statistics", step.statistics(total), whole, abs=_rounding(whole))
    expected = emission.expected_log_likelihood(table, natural)
    agree("Log likelihoods", np.concatenate(likelihoods), expected, rel=1e-11, abs=1e-10)


def blocks_prepared_with_the_survey_of_all_are_blocks_of_the_whole(
    case: EmissionExample, rng: np.random.Generator
) -> None:
    """Blocks that were never in memory together, each prepared with the survey of all, add up, wherever cut."""
    emission, values, n = case.emission, case.values, n_rows(case.values)
    _, table, posterior = case.posterior(rng)
    natural, responsibilities = posterior.expected_natural(), case.responsibilities(rng)
    ends = [0, *np.sort(rng.choice(np.arange(1, n), 2, replace=False)).tolist(), n]
    parts = [slice(a, b) for a, b in pairwise(ends)]
    survey = None
    for part in parts:
        survey = emission.survey(rows_of(values, part), survey)
    require(len(survey) == 0, f"A survey has {len(survey)} rows, not none.")
    if hasattr(table, "reach"):  # which decides between two forms of a square
        agree("The reach", survey.reach, table.reach)
    step, whole = emission.step(natural, survey), emission.step(natural, table)
    total, wanted = step.zeros(), whole.zeros()
    found = [step.log_likelihood(emission.prepare(rows_of(values, part), survey)) for part in parts]
    agree("Log likelihoods", np.concatenate(found), whole.log_likelihood(table), rel=1e-12, abs=1e-10)
    for part in parts:
        step.add(emission.prepare(rows_of(values, part), survey), responsibilities[part], total)
    whole.add(table, responsibilities, wanted)
    expected = whole.statistics(wanted)
    agree("Statistics", step.statistics(total), expected, rel=1e-10, abs=_rounding(expected))


def responsibilities_may_be_stored_either_way(case: EmissionExample, rng: np.random.Generator) -> None:
    """Rows first or columns first in memory, the statistics are the same."""
    prior, table, _ = case.posterior(rng)
    responsibilities = case.responsibilities(rng)
    natural, emission = prior.expected_natural(), case.emission
    one, other = (
        emission.statistics(table, array(responsibilities), natural) for array in (np.asfortranarray, np.array)
    )
    agree("Statistics", other, one, abs=_rounding(one))


def weights_are_repeats(case: EmissionExample, rng: np.random.Generator) -> None:
    """Responsibilities times n are those of n rows alike; times 0, of none."""
    emission, prior = case.emission, case.prior(case.n_components)
    table, natural = emission.prepare(case.values), prior.expected_natural()
    responsibilities, weight = case.responsibilities(rng), rng.integers(0, 4, size=n_rows(case.values))
    rows = np.repeat(np.arange(len(weight)), weight)
    found = emission.statistics(table, responsibilities * weight[:, None], natural)
    repeated = emission.prepare(rows_of(case.values, rows))
    wanted = emission.statistics(repeated, responsibilities[rows], natural)
    agree("Statistics", found, wanted, rel=1e-9, abs=_rounding(wanted))


def statistics_of_rows_add_up(case: EmissionExample, rng: np.random.Generator) -> None:
    """Those of each row under each component, in the component's cells and those of all."""
    _, table, posterior = case.posterior(rng)
    emission, n_components = case.emission, case.n_components
    natural, responsibilities = posterior.expected_natural(), case.responsibilities(rng)
    of_rows = emission.step(natural, table).of_rows(table[0 : len(table)])
    component = emission.component_of_cell(n_components)
    found = np.zeros(len(component))
    for k in range(n_components):
        found[(component == k) | (component == -1)] += responsibilities[:, k] @ of_rows[:, k]
    expected = emission.statistics(table, responsibilities, natural)
    agree("Statistics", found, expected, rel=1e-9, abs=_rounding(expected))


def components_may_change_places(case: EmissionExample, rng: np.random.Generator) -> None:
    """`component_of_cell` says which cells move when components do."""
    prior, table, _ = case.posterior(rng)
    n_components, emission, natural = case.n_components, case.emission, prior.expected_natural()
    responsibilities, order = case.responsibilities(rng), rng.permutation(n_components)
    of_cell = emission.component_of_cell(n_components)
    found = relabeled(emission.statistics(table, responsibilities, natural), of_cell, order)
    wanted = emission.statistics(table, responsibilities[:, order], natural)
    require(len(of_cell) == len(found), f"There are {len(found)} cells, and components of {len(of_cell)}.")
    agree("Statistics", found, wanted, abs=_rounding(wanted))


def rows_in_the_order_advised_are_the_same_rows(case: EmissionExample, rng: np.random.Generator) -> None:
    """`row_order` is an order of rows and changes nothing else."""
    prior, table, _ = case.posterior(rng)
    order = case.emission.row_order(table)
    order = rng.permutation(n_rows(case.values)) if order is None else order
    natural, sorted_table = prior.expected_natural(), case.emission.prepare(rows_of(case.values, order))
    of_sorted = case.emission.expected_log_likelihood(sorted_table, natural)
    wanted = case.emission.expected_log_likelihood(table, natural)[order]
    agree("Log likelihoods", of_sorted, wanted, rel=1e-12, abs=1e-11)


# --- predictions and evidence -----------------------------------------------------------------------------------------


@needs("conjugate")
def bound_of_one_component_is_the_product_of_predictions(case: EmissionExample, rng: np.random.Generator) -> None:
    """Nothing hidden, ln Z - KL is the sum of log predictive densities of each row after those before it."""
    emission, values, prior = case.emission, case.values, case.prior(1)
    table = emission.prepare(values)
    posterior = prior + emission.statistics(table, np.ones((len(table), 1)), prior.expected_natural())
    bound = emission.expected_log_likelihood(table, posterior.expected_natural()).sum() - posterior.kl(prior)
    total, before = 0.0, prior
    for i in rng.permutation(len(table)):
        row = emission.prepare(rows_of(values, slice(i, i + 1)))
        total += emission.log_predictive(row, before)[0, 0]
        before = before + emission.statistics(row, np.ones((1, 1)), before.expected_natural())
    agree("The bound", float(bound), total, rel=1e-9, abs=1e-9)


@needs("finite_cells")
def predictions_sum_to_one(case: EmissionExample, rng: np.random.Generator) -> None:
    """Over the values of a cell, the others missing, predictive probabilities sum to one."""
    _, _, posterior = case.posterior(rng)
    for column in range(case.values.shape[1]):
        values = list(case.cells(case.values[0], column))
        rows = np.full((len(values), case.values.shape[1]), missing_mark(case.values), dtype=case.values.dtype)
        rows[:, column] = values
        total = np.exp(case.emission.log_predictive(case.emission.prepare(rows), posterior)).sum(axis=0)
        agree(f"The sum over column {column}", total, np.ones(case.n_components), abs=1e-6)


def predictions_side_by_side_are_those_of_each_component(case: EmissionExample, rng: np.random.Generator) -> None:
    """And of the many rows at once, those of each row."""
    _, table, posterior = case.posterior(rng)
    together = case.emission.log_predictive(table, posterior)
    require(together.shape == (len(table), case.n_components), f"The shape of predictions is {together.shape}.")
    for i in range(0, len(table), 3):
        alone = case.emission.prepare(rows_of(case.values, slice(i, i + 1)))
        found = case.emission.log_predictive(alone, posterior)[0]
        agree(f"Predictions of row {i}", found, together[i], rel=1e-11, abs=1e-11)


# --- draws and points -------------------------------------------------------------------------------------------------


def draws_have_the_point_as_their_most_likely_one(case: EmissionExample, rng: np.random.Generator) -> None:
    """Of many rows drawn at a point that point is nearly the most likely one."""
    prior, _, posterior = case.posterior(rng)
    point, n = posterior.mode(), 60_000
    components = rng.integers(0, case.n_components, size=n)
    drawn = case.emission.sample(point, components, rng)
    of_components = (components[:, None] == np.arange(case.n_components)).astype(float)
    table = case.emission.prepare(drawn)
    again = prior.most_likely(case.emission.statistics(table, of_components, prior.expected_natural()))
    free = prior.to_unconstrained(point)
    if np.isfinite(free).all():  # no probability of 0 or 1
        agree("Unconstrained coordinates", prior.to_unconstrained(again), free, abs=0.25)


@needs("gaps")
def filled_rows_keep_what_was_observed(case: EmissionExample, rng: np.random.Generator) -> None:
    """`impute` fills missing cells with finite numbers, or codes, and leaves the others."""
    _, table, posterior = case.posterior(rng)
    point = case.emission.predictive_point(posterior)
    filled = case.emission.impute(table, point, case.responsibilities(rng))
    for new, old in zip(parts_of(filled), parts_of(case.values)):
        there = observed(old)
        require(np.array_equal(new[there], old[there]), "An observed cell was changed.")
        require(np.isfinite(new), "A filled cell is not finite.")
        require(np.all(new[~there] >= 0) or old.dtype.kind == "f", "A missing code was left.")


def drawn_completions_have_the_expected_statistics(case: EmissionExample, rng: np.random.Generator) -> None:
    """With known components: the same numbers where nothing missing has statistics, their mean elsewhere."""
    _, table, posterior = case.posterior(rng)
    natural, emission = posterior.expected_natural(), case.emission
    components = rng.integers(0, case.n_components, size=len(table))
    of_components = (components[:, None] == np.arange(case.n_components)).astype(float)
    step = emission.step(natural, table)
    wanted, draws = emission.statistics(table, of_components, natural), []
    for _ in range(1 if case.conjugate else 800):
        total = step.zeros()
        step.add_drawn(table, components, [rng], total)
        draws.append(step.statistics(total))
    error = np.std(draws, axis=0) / np.sqrt(len(draws))
    agree("Mean statistics", np.mean(draws, axis=0), wanted, abs=5 * error + _rounding(wanted))


def what_is_hidden_varies_as_draws_do(case: EmissionExample, rng: np.random.Generator) -> None:
    """`hidden_covariance` of a component's statistics is that of draws; None where nothing is drawn."""
    _, table, posterior = case.posterior(rng)
    emission, n_components, n_draws = case.emission, case.n_components, 1500
    natural = posterior.expected_natural()
    found = emission.step(natural, table).hidden_covariance(table[0:4], np.ones((4, n_components)))
    if found is None:
        require(case.conjugate or emission.is_conjugate(table[0:4]), "Rows with hidden statistics have none.")
        return
    require(not emission.is_conjugate(table), "Rows that are conjugate have a hidden covariance.")
    lanes = emission.step(np.repeat(natural[:, None], n_draws, axis=1), table)
    component, total = emission.component_of_cell(n_components), lanes.zeros()
    lanes.add_drawn(table[0:4], np.zeros((n_draws, 4), dtype=int), [rng] * n_draws, total)
    drawn = lanes.statistics(total)[(component == 0) | (component == -1)]
    covariance, spread = np.cov(drawn), drawn.std(axis=1)
    error = 8 * np.outer(spread, spread) / np.sqrt(n_draws)
    agree("The covariance", found[0], covariance, abs=error + 1e-9)


def quantiles_are_those_of_draws_of_the_posterior(case: EmissionExample, rng: np.random.Generator) -> None:
    """Of each parameter by itself: its rank among draws is the probability asked for."""
    emission, n_draws = case.emission, 2000
    _, _, posterior = case.posterior(rng)
    draws = [parts_of(emission.parameters(posterior.sample(rng))) for _ in range(n_draws)]
    for probability in (0.1, 0.5, 0.95):
        for group, quantiles in enumerate(parts_of(emission.quantiles(posterior, probability))):
            for name, found in quantiles.items():
                drawn = np.array([draw[group][name] for draw in draws])
                require(found.shape == drawn.shape[1:], f"Quantiles of {name!r} have the shape {found.shape}.")
                below = np.mean(drawn < found, axis=0)[~np.isnan(found) & (np.ptp(drawn, axis=0) > 0)]
                error = 5 * np.sqrt(probability * (1 - probability) / n_draws)
                require(abs(below - probability) < error, f"{below} of the draws of {name!r} are below {probability}.")


# --- units ------------------------------------------------------------------------------------------------------------


def seeding_coordinates_tell_rows_apart(case: EmissionExample, rng: np.random.Generator) -> None:
    """`seeding_coordinates` are finite, and those of a row do not depend on the others."""
    table = case.emission.prepare(case.values)
    coordinates = case.emission.seeding_coordinates(table)
    require(coordinates.shape[0] == len(table), f"There are coordinates of {len(coordinates)} of {len(table)} rows.")
    require(np.isfinite(coordinates), "A coordinate is not finite.")
    for i in range(len(table)):
        found = case.emission.seeding_coordinates(table[i : i + 1])[0]
        agree(f"Coordinates of row {i}", found, coordinates[i], rel=1e-12, abs=1e-12)


@needs("for_data")
def priors_of_weighted_rows_are_those_of_repeated_rows(case: EmissionExample, rng: np.random.Generator) -> None:
    """Units of measure, and with them the default prior, take a row of weight n for n rows."""
    weight = rng.integers(1, 4, size=n_rows(case.values))
    one = case.for_data(case.values, weight.astype(float)).default_prior(2)
    other = case.for_data(np.repeat(case.values, weight, axis=0), None).default_prior(2)
    first, second = (each.sample(np.random.default_rng(0))[0] for each in (one, other))
    agree("A draw of the prior", first, second, rel=1e-9)
    agree("Expected natural parameters", one.expected_natural(), other.expected_natural(), rel=1e-12, abs=1e-12)


@needs("for_data")
def units_of_blocks_are_those_of_the_whole_table(case: EmissionExample, rng: np.random.Generator) -> None:
    """An emission made from `Blocks` of rows and weights is that of the whole table."""
    n = n_rows(case.values)
    weight = rng.uniform(0.1, 2.0, n)
    ends = [0, min(7, n), min(7, n), min(30, n), n]  # one block without rows
    blocks = Blocks(lambda: ((case.values[a:b], weight[a:b]) for a, b in pairwise(ends)))
    one, other = case.for_data(case.values, weight), case.for_data(blocks, None)
    for key, unit in vars(one).items():
        agree(f"The unit {key!r}", getattr(other, key), unit, rel=1e-12, abs=1e-12)


# --- the user's side --------------------------------------------------------------------------------------------------


@needs("specification")
def specification_is_a_value(case: EmissionExample, rng: np.random.Generator) -> None:
    """It can be cloned, its parameters are those of its constructor, and it takes every cell of its data."""
    specification = case.specification
    again = clone(specification)
    require(repr(again) == repr(specification), f"A clone is {again!r}, not {specification!r}.")
    specification.check_parameters()
    if case.values.dtype.kind == "f":
        refused = specification.impossible(case.values[observed(case.values)])
        require(~np.asarray(refused), f"{np.count_nonzero(refused)} cells of the data are said to be impossible.")


@needs("specification", "refused")
def bad_cells_are_refused_in_its_words(case: EmissionExample, rng: np.random.Generator) -> None:
    """An estimator refuses a cell that the family cannot make, in the specification's words."""
    values = case.values.copy()
    values[0, 0] = case.refused
    model = VBMixture(case.n_components, emission=case.specification)
    words = case.specification.wanted.replace("(", r"\(").replace(")", r"\)").replace("+", r"\+")
    refuses(ValueError, words, f"A cell {case.refused:g}", lambda: model.fit(values))


#: Every law of emissions by name.
LAWS = {
    law.__name__: law
    for law in (
        at_a_point_the_log_likelihood_is_the_definition,
        missing_cell_is_the_sum_over_its_values,
        rows_without_cells_say_nothing,
        restarts_side_by_side_are_restarts_alone,
        blocks_add_up_to_the_whole,
        blocks_prepared_with_the_survey_of_all_are_blocks_of_the_whole,
        responsibilities_may_be_stored_either_way,
        weights_are_repeats,
        statistics_of_rows_add_up,
        components_may_change_places,
        rows_in_the_order_advised_are_the_same_rows,
        bound_of_one_component_is_the_product_of_predictions,
        predictions_sum_to_one,
        predictions_side_by_side_are_those_of_each_component,
        draws_have_the_point_as_their_most_likely_one,
        filled_rows_keep_what_was_observed,
        drawn_completions_have_the_expected_statistics,
        what_is_hidden_varies_as_draws_do,
        quantiles_are_those_of_draws_of_the_posterior,
        seeding_coordinates_tell_rows_apart,
        priors_of_weighted_rows_are_those_of_repeated_rows,
        units_of_blocks_are_those_of_the_whole_table,
        specification_is_a_value,
        bad_cells_are_refused_in_its_words,
    )
}
