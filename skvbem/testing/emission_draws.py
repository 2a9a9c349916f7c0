"""Laws of what emissions draw, fill in and measure in, and of the specifications that users hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import clone

from skvbem.blocks import Blocks
from skvbem.emissions import EmissionSpecification, NumericSpecification
from skvbem.emissions.base import parts_of as emissions_of
from skvbem.estimators import VBMixture
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.testing.emission_examples import EmissionExample, n_rows, observed, parts_of, rows_of
from skvbem.testing.laws import UntriedError, agree, needs, refuses, require


def streams_of(rng: np.random.Generator, n_lanes: int) -> np.ndarray:
    """Random words for so many streams, (4, n_lanes)."""
    return rng.integers(0, 2**64, size=(4, n_lanes), dtype=np.uint64)


def rounding(statistics: np.ndarray) -> float:
    """The largest difference of statistics that is rounding."""
    return 1e-12 * (abs(statistics).max() + 1)


# --- draws and points -------------------------------------------------------------------------------------------------


def draws_have_the_point_as_their_most_likely_one(case: EmissionExample, rng: np.random.Generator) -> None:
    """Of many rows drawn at a point that point is nearly the most likely one.

    A step from there stays there. What rows hide has its distribution at the point: with any other, such as the
    prior's, a single step would lead to another point than the most likely one.
    """
    prior, _, posterior = case.posterior(rng)
    point, n = posterior.mode(), 60_000
    components = rng.integers(0, case.n_components, size=n)
    rows = rows_of(case.values, rng.integers(0, n_rows(case.values), size=n))  # whose covariates are given
    drawn = case.emission.sample_given(rows, None, point, components, rng)
    responsibilities = (components[:, None] == np.arange(case.n_components)).astype(float)
    table = case.emission.prepare(drawn)
    again = prior.most_likely(case.emission.statistics(table, responsibilities, prior.natural(point)))
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
    responsibilities = (components[:, None] == np.arange(case.n_components)).astype(float)
    step = emission.step(natural, table)
    wanted, draws = emission.statistics(table, responsibilities, natural), []
    for _ in range(1 if case.conjugate else 800):
        total = step.zeros()
        step.add_drawn(table, components, ParallelGenerator(streams_of(rng, 1)), total)
        draws.append(step.statistics(total))
    variance = np.var(draws, axis=0)
    hidden = None if case.conjugate else step.hidden_covariance(table, responsibilities)
    if hidden is not None:  # rare states of what is hidden may be in none of the draws
        for cells, each in zip(_cells_of_components(case), hidden):
            variance[cells] = np.maximum(variance[cells], each.diagonal())
    error = np.sqrt(variance / len(draws))
    agree("Mean statistics", np.mean(draws, axis=0), wanted, abs=5 * error + rounding(wanted))


def what_is_hidden_varies_as_draws_do(case: EmissionExample, rng: np.random.Generator) -> None:
    """`hidden_covariance` of a component's statistics is that of draws; None where nothing is drawn."""
    _, table, posterior = case.posterior(rng)
    emission, n_components, n_draws = case.emission, case.n_components, 1500
    natural = posterior.expected_natural()
    step, several = emission.step(natural, table), table[0:4]
    computed = step.hidden_covariance(several, np.ones((4, n_components)))
    if computed is None:
        require(case.conjugate or emission.is_conjugate(several), "Rows with hidden statistics have none.")
        return
    require(not emission.is_conjugate(table), "Rows that are conjugate have a hidden covariance.")
    one, of_rows = np.ones((1, n_components)), []
    for i in range(min(len(table), 20)):
        covariance = step.hidden_covariance(table[i : i + 1], one)
        of_rows.append(np.zeros_like(computed) if covariance is None else covariance)
    agree("The covariance of four rows", computed, sum(of_rows[:4]), rel=1e-9, abs=rounding(computed))
    lanes = emission.step(np.repeat(natural[:, None], n_draws, axis=1), table)
    generator, n_told = ParallelGenerator(streams_of(rng, n_draws)), 0
    for i, (covariance, *_) in enumerate(of_rows):  # one by one: what a rare state adds is lost among other rows
        total = lanes.zeros()
        lanes.add_drawn(table[i : i + 1], np.zeros((n_draws, 1), dtype=int), generator, total)
        drawn = lanes.statistics(total)[_cells_of_components(case)[0]]
        usual, often = np.transpose([_most_frequent(cell) for cell in drawn])
        moved = (step.of_rows(table[i : i + 1])[0, 0] - usual) ** 2
        rare = (often > 0.95 * n_draws) & (moved > 0) & (moved < 0.1 * (covariance.diagonal() + moved))
        n_told += (~rare & (covariance.diagonal() > 0)).any()
        gaps = drawn - drawn.mean(axis=1, keepdims=True)
        products, spread = gaps[:, None] * gaps, gaps.std(axis=1)
        error = np.maximum(6 * products.std(axis=2), 8 * np.outer(spread, spread)) / np.sqrt(n_draws) + 1e-9
        error[rare] = error[:, rare] = np.inf
        agree(f"The covariance of row {i}", covariance, products.mean(axis=2), abs=error)
        if n_told == 4:
            return
    if not n_told and any(each.any() for each in of_rows):
        raise UntriedError("rows whose hidden state is uncertain: in each of them one has a probability above 0.95")


def _most_frequent(draws: np.ndarray) -> tuple[float, int]:
    """The most frequent value, and how often it is drawn."""
    values, counts = np.unique(draws, return_counts=True)
    return values[counts.argmax()], int(counts.max())


def _cells_of_components(case: EmissionExample) -> list[np.ndarray]:
    """The cells of each component and of all components, in order."""
    component = case.emission.component_of_cell(case.n_components)
    return [np.flatnonzero((component == k) | (component == -1)) for k in range(case.n_components)]


def quantiles_are_those_of_draws_of_the_posterior(case: EmissionExample, rng: np.random.Generator) -> None:
    """Of each parameter by itself: its rank among draws is the probability asked for."""
    emission, n_draws = case.emission, 2000
    _, _, posterior = case.posterior(rng)
    draws = [parts_of(emission.parameters(posterior.sample(rng))) for _ in range(n_draws)]
    middles = parts_of(emission.quantiles(posterior, 0.5))
    for probability in (0.1, 0.5, 0.95):
        for group, quantiles in enumerate(parts_of(emission.quantiles(posterior, probability))):
            for name, computed in quantiles.items():
                drawn = np.array([draw[group][name] for draw in draws])
                require(computed.shape == drawn.shape[1:], f"Quantiles of {name!r} have the shape {computed.shape}.")
                if (period := emissions_of(emission)[group].periods.get(name)) is not None:  # of angles
                    middle = middles[group][name]
                    drawn = middle + np.remainder(drawn - middle + period / 2, period) - period / 2
                below = np.mean(drawn < computed, axis=0)[~np.isnan(computed) & (np.ptp(drawn, axis=0) > 0)]
                error = 5 * np.sqrt(probability * (1 - probability) / n_draws)
                require(abs(below - probability) < error, f"{below} of the draws of {name!r} are below {probability}.")


# --- units ------------------------------------------------------------------------------------------------------------


def seeding_coordinates_are_those_of_each_row(case: EmissionExample, rng: np.random.Generator) -> None:
    """`seeding_coordinates` are finite, and those of a row do not depend on the others."""
    table = case.emission.prepare(case.values)
    coordinates = case.emission.seeding_coordinates(table)
    require(coordinates.shape[0] == len(table), f"There are coordinates of {len(coordinates)} of {len(table)} rows.")
    require(np.isfinite(coordinates), "A coordinate is not finite.")
    for i in range(len(table)):
        computed = case.emission.seeding_coordinates(table[i : i + 1])[0]
        agree(f"Coordinates of row {i}", computed, coordinates[i], rel=1e-12, abs=1e-12)


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
    of_other = _units_of(other)
    for key, unit in _units_of(one).items():
        agree(f"The unit {key!r}", of_other[key], unit, rel=1e-12, abs=1e-12)


def _units_of(value: Any) -> dict[str, Any]:
    """Fields of an emission by name, those of emissions and other values that it is made of among them."""
    fields = {key: each for key, each in vars(value).items() if not isinstance(each, EmissionSpecification)}
    inner = [each for each in fields.values() if is_dataclass(each)]
    units = {key: each for key, each in fields.items() if not is_dataclass(each)}
    return units | {key: unit for each in inner for key, unit in _units_of(each).items()}


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
    """An estimator refuses cells that the family cannot make, in the specification's words."""
    model = VBMixture(case.n_components, emission=case.specification)
    for cell in np.ravel(np.asarray(case.refused, dtype=float)).tolist():
        values = case.values.copy()
        values[0, 0] = cell
        refuses(ValueError, re.escape(case.specification.wanted), f"A cell {cell:g}", partial(model.fit, values))


@needs("specification")
def numbers_are_distributed_as_said(case: EmissionExample, rng: np.random.Generator) -> None:
    """Rows drawn at a point have the means, the deviations and the cumulative probabilities of the specification."""
    specification, n = case.specification, 4000
    if not isinstance(specification, NumericSpecification) or len(specification.covariates):
        return  # means that hang on covariates are not those of a number
    if specification.holds_categories:
        return  # its numbers are behind the cells
    _, _, posterior = case.posterior(rng)
    point = posterior.mode()
    parameters = case.emission.parameters(point)
    means, deviations = specification.means(parameters), specification.deviations(parameters)
    for k in range(case.n_components):
        drawn = case.emission.sample(point, np.full(n, k), rng)
        mean, deviation = means[k], deviations[k]
        if specification.period is not None:
            radians = drawn * 2 * np.pi / specification.period
            length = np.abs(resultant := np.exp(1j * radians).mean(axis=0))
            aside = np.exp(-2j * np.pi * mean / specification.period)
            agree("The mean direction", np.angle(resultant * aside), 0.0, abs=6 / np.sqrt(n) / length)
            computed = np.sqrt(-2 * np.log(length)) * specification.period / (2 * np.pi)
            agree("The circular deviation", computed, deviation, rel=0.1)
            _are_cumulated_as_said(specification, parameters, k, drawn)
            continue
        agree("The mean", drawn.mean(axis=0), mean, abs=6 * deviation / np.sqrt(n))
        agree("The deviation", drawn.std(axis=0), deviation, rel=0.25)
        if specification.holds_counts:
            require(drawn == np.floor(drawn), "A number that was drawn is not whole.")
        _are_cumulated_as_said(specification, parameters, k, drawn)


def _are_cumulated_as_said(
    specification: NumericSpecification, parameters: Mapping[str, np.ndarray], k: int, drawn: np.ndarray
) -> None:
    """Shares of rows drawn of a component that hold less than a cell, and at most as much, are those said of it."""
    at = np.quantile(drawn, [0.1, 0.5, 0.9], axis=0, method="higher")
    ends = specification.cumulative_of_cells(at, parameters)
    if ends is None:
        return
    below, up_to = (each[k] for each in ends)
    known = ~np.isnan(up_to)
    less, most = (np.mean(each, axis=0)[known] for each in (drawn[:, None] < at, drawn[:, None] <= at))
    below, up_to = below[known], up_to[known]
    exact = np.full(below.shape, specification.holds_counts) | (below == up_to)  # others are intervals, or atoms
    agree("The probability to be at most so much", most[exact], up_to[exact], abs=0.05)
    agree("The probability to be less", less[exact], below[exact], abs=0.05)
    require((below <= less + 0.05) & (most <= up_to + 0.05), "Cumulative probabilities are none of the rows drawn.")
    of_values, most = specification.cumulative_of_values(at, parameters), np.mean(drawn[:, None] <= at, axis=0)
    assert of_values is not None
    agree("The probability of values up to so much", most, of_values[k], abs=0.05)


#: These laws, in their order.
DRAW_LAWS = (
    draws_have_the_point_as_their_most_likely_one,
    filled_rows_keep_what_was_observed,
    drawn_completions_have_the_expected_statistics,
    what_is_hidden_varies_as_draws_do,
    quantiles_are_those_of_draws_of_the_posterior,
    seeding_coordinates_are_those_of_each_row,
    priors_of_weighted_rows_are_those_of_repeated_rows,
    units_of_blocks_are_those_of_the_whole_table,
    specification_is_a_value,
    bad_cells_are_refused_in_its_words,
    numbers_are_distributed_as_said,
)
