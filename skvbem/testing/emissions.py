r"""Laws of emissions: what :math:`p(y \mid k, \theta)` of one family owes to whatever model has components.

Each is a function of an `EmissionExample` and random numbers that raises an AssertionError where the law is broken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from skvbem._names import did_you_mean
from skvbem.blocks import map_reduce
from skvbem.emissions import EMISSIONS, Emission, EmissionSpecification
from skvbem.emissions.base import relabeled
from skvbem.emissions.outside import check_cells, check_shapes
from skvbem.testing.emission_draws import DRAW_LAWS, rounding
from skvbem.testing.emission_examples import (
    EmissionExample,
    example_of,
    missing_mark,
    n_rows,
    parts_of,
    row_of,
    rows_of,
    with_gaps,
)
from skvbem.testing.emission_predictions import PREDICTION_LAWS, filled, over_values
from skvbem.testing.laws import Report, agree, hold, needs, needs_of, require


def check_emission(
    emission: str | EmissionSpecification | Emission | EmissionExample,
    values: Any = None,
    *,
    n_components: int = 2,
    log_density: Callable | None = None,
    cells: Callable | None = None,
    refused: float | Sequence[float] | None = None,
    laws: Iterable[str] | None = None,
    rng: int | np.random.Generator = 0,
) -> list[Report]:
    r"""Hold an emission to the laws of `skvbem.emissions.base`.

    At a point, the log likelihood is that of the definition, and a missing cell is the sum or integral over its
    values. A row without cells says nothing. Blocks add up. With one component the bound is the evidence of complete
    data. This evidence is the product of the predictions of each row after the ones before [Beal (2.98), (2.99)].
    Predictions sum to one. Draws, quantiles and drawn completions have the moments that they should have.

    Parameters
    ----------
    emission : str, EmissionSpecification, Emission or EmissionExample
        What users hold, or the name that it is registered by, the model's side alone, or all that laws are tried on.
    values : array_like of shape (n_rows, n_columns)
        Some dozen rows without missing cells. They are tried whole, and with a third of the cells missing. Not for an
        `EmissionExample`.
    n_components : int, default=2
    log_density : callable, optional
        The definition, nats: of a row, parameters by name, and the number of a component; of observed cells alone.
    cells : callable, optional
        Takes a row and the number of a column, and returns the values of a missing cell, the first 4000 of which are
        tried: all but some whose probability is below 1e-9. None for any float that is not refused.
    refused : float or sequence of float, optional
        Cells that no member of the family can make.
    laws : iterable of str, optional
        Names in `skvbem.testing.emissions.LAWS`; all if None.
    rng : int or numpy.random.Generator, default=0

    Returns
    -------
    list of Report
        Reports on the rows whole, and on the rows with gaps.

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
    if isinstance(emission, str):
        if emission not in EMISSIONS:
            hint = did_you_mean(emission, EMISSIONS)
            raise ValueError(f"There is no emission {emission!r}.{hint} The emissions are {', '.join(EMISSIONS)}.")
        emission = EMISSIONS[emission]()
    if isinstance(emission, EmissionExample):
        examples = [emission]
    else:
        whole = example_of(emission, values, n_components, log_density, cells, refused)
        examples = [whole, with_gaps(whole, rng)]

    def report(example, words):
        subject = f"{type(example.specification or example.emission).__name__} on rows {words}"
        prior, table = example.prior(example.n_components), example.emission.prepare(example.values)
        try:
            check_cells(example.emission, prior, example.n_components)
            check_shapes(example.emission, table, prior, example.n_components)
        except ValueError as wrong:
            raise AssertionError(f"{subject}: {wrong}") from wrong
        return hold(
            subject, "emissions", LAWS, laws, lambda law: law(example, rng), lambda law: example.lacking(needs_of(law))
        )

    return [report(example, words) for example, words in zip(examples, ("as they are", "with gaps"))]


# --- likelihoods ------------------------------------------------------------------------------------------------------


@needs("log_density")
def at_a_point_the_log_likelihood_is_the_definition(case: EmissionExample, rng: np.random.Generator) -> None:
    """At a point the log likelihood of a row is ln p(y | k, theta), of what is observed."""
    prior, table, posterior = case.posterior(rng)
    point = posterior.sample(rng)
    computed = case.emission.expected_log_likelihood(table, prior.natural(point))
    shape = (len(table), case.n_components)
    require(computed.shape == shape, f"The shape of log likelihoods is {computed.shape}, not {shape}.")
    parameters = case.emission.parameters(point)
    for i in range(len(table)):
        for k in range(case.n_components):
            wanted = case.log_density(row_of(case.values, i), parameters, k)
            agree(f"Log likelihood of row {i} in component {k}", computed[i, k], wanted, rel=1e-9, abs=1e-8)


@needs("cells")
def missing_cell_is_the_sum_over_its_values(case: EmissionExample, rng: np.random.Generator) -> None:
    """At a point p(the other cells) is the sum, or the integral, of p over the values of a missing cell."""
    prior, _, posterior = case.posterior(rng)
    missing_cell_is_the_sum(case, prior.natural(posterior.sample(rng)), rng)


def missing_cell_is_the_sum(case: EmissionExample, natural: np.ndarray, rng: np.random.Generator) -> None:
    """The law of a missing cell at given natural parameters, which are those of a point."""
    column = int(rng.integers(case.emission.n_columns))
    row = case.values[0].copy()
    row[column] = missing_mark(row)

    def densities(values):
        table = case.emission.prepare(filled(row, column, values))
        return np.exp(case.emission.expected_log_likelihood(table, natural))

    what, total = over_values(case, column, row, densities)
    agree(what, total, densities([row[column]])[0], rel=1e-7)


def rows_without_cells_say_nothing(case: EmissionExample, rng: np.random.Generator) -> None:
    """A row without observed cells has factor 1 and no statistics."""
    empty = tuple(np.full_like(part[:1], missing_mark(part)) for part in parts_of(case.values))
    table = case.emission.prepare(empty if isinstance(case.values, tuple) else empty[0])
    natural = case.prior(case.n_components).expected_natural()
    likelihoods = case.emission.expected_log_likelihood(table, natural)
    require(likelihoods == 0, f"Log likelihoods of an empty row are {likelihoods}.")
    statistics = case.emission.statistics(table, np.ones((1, case.n_components)), natural)
    require(statistics == 0, f"Statistics of an empty row are {statistics}.")


def parallel_restarts_are_restarts_alone(case: EmissionExample, rng: np.random.Generator) -> None:
    """Natural parameters of several restarts at once give each what it gets alone."""
    emission = case.emission
    lanes = [case.posterior(rng)[2].expected_natural() for _ in range(3)]
    table, together = emission.prepare(case.values), np.stack(lanes, axis=1)
    responsibilities = case.responsibilities(rng, (3,))
    computed = emission.expected_log_likelihood(table, together)
    sums = emission.statistics(table, responsibilities, together)
    require(computed.shape == (3, len(table), case.n_components), f"The shape of log likelihoods is {computed.shape}.")
    for lane, natural in enumerate(lanes):
        alone = emission.expected_log_likelihood(table, natural)
        agree("Log likelihoods", computed[lane], alone, rel=1e-11, abs=1e-10)
        alone = emission.statistics(table, responsibilities[lane], natural)
        agree("Statistics", sums[:, lane], alone, abs=rounding(alone))


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
    agree("Statistics", step.statistics(total), whole, abs=rounding(whole))
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
    survey = map_reduce(lambda part: emission.survey(rows_of(values, part)), parts)
    require(len(survey) == 0, f"A survey has {len(survey)} rows, not none.")
    if hasattr(table, "reach"):  # which decides between two forms of a square
        agree("The reach", survey.reach, table.reach)
    step, whole = emission.step(natural, survey), emission.step(natural, table)
    total, wanted = step.zeros(), whole.zeros()
    computed = [step.log_likelihood(emission.prepare(rows_of(values, part), survey)) for part in parts]
    agree("Log likelihoods", np.concatenate(computed), whole.log_likelihood(table), rel=1e-12, abs=1e-10)
    for part in parts:
        step.add(emission.prepare(rows_of(values, part), survey), responsibilities[part], total)
    whole.add(table, responsibilities, wanted)
    expected = whole.statistics(wanted)
    agree("Statistics", step.statistics(total), expected, rel=1e-10, abs=rounding(expected))


def responsibilities_may_be_stored_either_way(case: EmissionExample, rng: np.random.Generator) -> None:
    """Rows first or columns first in memory, the statistics are the same."""
    prior, table, _ = case.posterior(rng)
    responsibilities = case.responsibilities(rng)
    natural, emission = prior.expected_natural(), case.emission
    one, other = (
        emission.statistics(table, array(responsibilities), natural) for array in (np.asfortranarray, np.array)
    )
    agree("Statistics", other, one, abs=rounding(one))


def weights_are_repeats(case: EmissionExample, rng: np.random.Generator) -> None:
    """Responsibilities times n are those of n rows alike; times 0, of none."""
    emission, prior = case.emission, case.prior(case.n_components)
    table, natural = emission.prepare(case.values), prior.expected_natural()
    responsibilities, weight = case.responsibilities(rng), rng.integers(0, 4, size=n_rows(case.values))
    rows = np.repeat(np.arange(len(weight)), weight)
    computed = emission.statistics(table, responsibilities * weight[:, None], natural)
    repeated = emission.prepare(rows_of(case.values, rows))
    wanted = emission.statistics(repeated, responsibilities[rows], natural)
    agree("Statistics", computed, wanted, rel=1e-9, abs=rounding(wanted))


def statistics_of_rows_add_up(case: EmissionExample, rng: np.random.Generator) -> None:
    """Statistics of each row under each component add up, in the component's cells and those of all."""
    _, table, posterior = case.posterior(rng)
    emission, n_components = case.emission, case.n_components
    natural, responsibilities = posterior.expected_natural(), case.responsibilities(rng)
    log_density = emission.step(natural, table).of_rows(table[0 : len(table)])
    component = emission.component_of_cell(n_components)
    computed = np.zeros(len(component))
    for k in range(n_components):
        computed[(component == k) | (component == -1)] += responsibilities[:, k] @ log_density[:, k]
    expected = emission.statistics(table, responsibilities, natural)
    agree("Statistics", computed, expected, rel=1e-9, abs=rounding(expected))


def components_may_change_places(case: EmissionExample, rng: np.random.Generator) -> None:
    """`component_of_cell` says which cells move when components do."""
    prior, table, _ = case.posterior(rng)
    n_components, emission, natural = case.n_components, case.emission, prior.expected_natural()
    responsibilities, order = case.responsibilities(rng), rng.permutation(n_components)
    component_of = emission.component_of_cell(n_components)
    computed = relabeled(emission.statistics(table, responsibilities, natural), component_of, order)
    wanted = emission.statistics(table, responsibilities[:, order], natural)
    require(
        len(component_of) == len(computed), f"There are {len(computed)} cells, and components of {len(component_of)}."
    )
    agree("Statistics", computed, wanted, abs=rounding(wanted))


def rows_in_the_order_advised_are_the_same_rows(case: EmissionExample, rng: np.random.Generator) -> None:
    """`row_order` is an order of rows and changes nothing else."""
    prior, table, _ = case.posterior(rng)
    order = case.emission.row_order(table)
    order = rng.permutation(n_rows(case.values)) if order is None else order
    natural, sorted_table = prior.expected_natural(), case.emission.prepare(rows_of(case.values, order))
    by_sorted_rows = case.emission.expected_log_likelihood(sorted_table, natural)
    wanted = case.emission.expected_log_likelihood(table, natural)[order]
    agree("Log likelihoods", by_sorted_rows, wanted, rel=1e-12, abs=1e-11)


#: Every law of emissions by name.
LAWS = {
    law.__name__: law
    for law in (
        at_a_point_the_log_likelihood_is_the_definition,
        missing_cell_is_the_sum_over_its_values,
        rows_without_cells_say_nothing,
        parallel_restarts_are_restarts_alone,
        blocks_add_up_to_the_whole,
        blocks_prepared_with_the_survey_of_all_are_blocks_of_the_whole,
        responsibilities_may_be_stored_either_way,
        weights_are_repeats,
        statistics_of_rows_add_up,
        components_may_change_places,
        rows_in_the_order_advised_are_the_same_rows,
        *PREDICTION_LAWS,
        *DRAW_LAWS,
    )
}
