"""Laws of what emissions predict, and of the fits and the evidence of rows of one component."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

from skvbem.emissions.base import start_natural
from skvbem.testing.emission_examples import EmissionExample, missing_mark, observed, rows_of
from skvbem.testing.laws import agree, needs, require

# Values of a cell that are summed over.
_MAX_VALUES = 4000


def filled(row: np.ndarray, column: int, values: Any) -> np.ndarray:
    """A row with each of some values in a column, (n_values, n_columns)."""
    rows = np.repeat(row[None], len(values), axis=0)
    rows[:, column] = values
    return rows


def over_values(case: EmissionExample, column: int, row: np.ndarray, densities: Callable) -> tuple[str, np.ndarray]:
    """The sum or integral over the values of a cell, in words and as numbers; `densities` takes a list of values."""
    values = case.cells(row, column)
    if values is None:
        return f"The integral over column {column}", _integral(case, column, densities)
    tried = list(islice(values, _MAX_VALUES))
    what = f"The sum over column {column}, of the first {len(tried)} values that `cells` gives (at most {_MAX_VALUES})"
    return what, densities(tried).sum(axis=0)


def _integral(case: EmissionExample, column: int, densities: Callable) -> np.ndarray:
    """The integral of densities over the cells of a column that the specification, if there is one, does not refuse."""
    there = case.values[:, column][observed(case.values[:, column])]
    middle, scale = np.median(there), there.std() or 1.0  # cells are middle + scale tan(t), so that tails are near

    def is_possible(t):
        cell = np.array([middle + scale * np.tan(t)])
        return case.specification is None or not case.specification.impossible(cell)[0]

    def end(t):
        possible = 0.0
        while not is_possible(t) and abs(t - possible) > 1e-15:
            between = (t + possible) / 2
            t, possible = (t, between) if is_possible(between) else (between, possible)
        return t

    def by_t(t):
        return densities(middle + scale * np.tan(t)) * (scale * (1 + np.tan(t) ** 2))[:, None]

    low, high = end(-np.pi / 2), end(np.pi / 2)
    points = np.arctan((np.unique(there) - middle) / scale)  # the density may be narrow there
    points = points[(points > low) & (points < high)]
    return _gauss(by_t, np.concatenate([[low], points, [high]]))


def _gauss(densities: Callable, ends: np.ndarray) -> np.ndarray:
    """The integral of densities, of many values at a time, over intervals that are halved while that changes it."""
    nodes, weights = (each / 2 for each in np.polynomial.legendre.leggauss(21))

    def integrals(low, high):
        values = densities(((low + high)[:, None] / 2 + (high - low)[:, None] * nodes).ravel())
        return np.einsum("ink,n,i->ik", values.reshape(len(low), len(nodes), -1), weights, high - low)

    low, high, total = ends[:-1], ends[1:], 0.0
    whole = integrals(low, high)
    while len(low):
        middle = (low + high) / 2
        halves = integrals(low, middle), integrals(middle, high)
        finer = halves[0] + halves[1]
        estimate = total + finer.sum(axis=0)
        rough = (abs(finer - whole) > 1e-9 * abs(estimate)).any(axis=1) & (high - low > 1e-9)
        total = total + finer[~rough].sum(axis=0)
        low, middle, high = low[rough], middle[rough], high[rough]
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        whole = np.concatenate([each[rough] for each in halves])
    return np.asarray(total)


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


@needs("cells")
def predictions_sum_to_one(case: EmissionExample, rng: np.random.Generator) -> None:
    """Over the values of a cell, the others missing, predictive probabilities sum or integrate to one."""
    _, _, posterior = case.posterior(rng)
    for column in range(case.emission.n_columns):
        what, total = over_values(case, column, _empty(case), _predictive(case, column, posterior))
        agree(what, total, np.ones(case.n_components), abs=1e-6)


@needs("cells")
def filled_cells_are_means_of_predictions(case: EmissionExample, rng: np.random.Generator) -> None:
    """Numbers of a row without cells are filled with their predictive means, if `impute` gets `predictive_point`."""
    if case.values.dtype.kind != "f":
        return
    prior, table, posterior = case.posterior(rng)
    statistics = case.emission.statistics(table, 3 * case.responsibilities(rng), posterior.expected_natural())
    posterior, empty = prior + statistics, _empty(case)  # of so many rows that predictions have means
    rows = case.emission.prepare(np.repeat(empty[None], case.n_components, axis=0))
    imputed = case.emission.impute(rows[:], case.emission.predictive_point(posterior), np.eye(case.n_components))
    near = 1e-6 if case.conjugate else 0.25  # predictions without a closed form may be means over draws
    for column, spread in enumerate(np.nanstd(case.values[:, : case.emission.n_columns], axis=0)):
        density = _predictive(case, column, posterior)
        _, total = over_values(case, column, empty, lambda y, of=density: np.asarray(y)[:, None] * of(y))
        agree(f"Means of column {column}", imputed[:, column], total, rel=1e-6, abs=near * spread)


def _empty(case: EmissionExample) -> np.ndarray:
    """A row of which nothing is observed but covariates, which stand after the columns that an emission makes."""
    row = case.values[0].copy()
    row[: case.emission.n_columns] = missing_mark(row)
    return row


def _predictive(case: EmissionExample, column: int, posterior: Any) -> Callable:
    """The predictive densities of values of a column, the others missing, (n_values, n_components)."""
    emission, empty = case.emission, _empty(case)
    return lambda values: np.exp(emission.log_predictive(emission.prepare(filled(empty, column, values)), posterior))


def parallel_predictions_are_those_of_each_component(case: EmissionExample, rng: np.random.Generator) -> None:
    """And of the many rows at once, those of each row."""
    _, table, posterior = case.posterior(rng)
    together = case.emission.log_predictive(table, posterior)
    require(together.shape == (len(table), case.n_components), f"The shape of predictions is {together.shape}.")
    for i in range(0, len(table), 3):
        alone = case.emission.prepare(rows_of(case.values, slice(i, i + 1)))
        computed = case.emission.log_predictive(alone, posterior)[0]
        agree(f"Predictions of row {i}", computed, together[i], rel=1e-11, abs=1e-11)


def fits_end_at_no_saddle(case: EmissionExample, rng: np.random.Generator) -> None:
    """A fit of one component that is moved a little comes back: what is hidden in rows is in no tie that holds it."""
    if case.conjugate:
        return
    emission, prior, n = case.emission, case.prior(1), 20
    table = emission.prepare(case.values)
    repeats = np.full((len(table), 1), float(n))

    def fitted(natural):
        bounds = [-np.inf]
        while len(bounds) < 50:
            for _ in range(100):
                posterior = prior + emission.statistics(table, repeats, natural)
                natural = posterior.expected_natural()
            log_likelihood = emission.expected_log_likelihood(table, natural).sum()
            bounds.append(float(n * log_likelihood - posterior.kl(prior)))
            if bounds[-1] - bounds[-2] < 1e-7:
                break
        return bounds[-1], natural, posterior

    bound, natural, posterior = fitted(start_natural(emission, prior))
    moved = [0.9 * natural + 0.1 * prior.natural(posterior.sample(rng)) for _ in range(3)]
    gain = max(fitted(each)[0] for each in moved) - bound
    require(
        gain < 1.0,
        f"A fit ends {gain:.3g} nats below another one that is near. Hidden states with one prior are alike in a start "
        "and stay so: give them priors that differ, or break the tie in `start_natural` of `hidden`.",
    )


#: These laws, in their order.
PREDICTION_LAWS = (
    bound_of_one_component_is_the_product_of_predictions,
    predictions_sum_to_one,
    filled_cells_are_means_of_predictions,
    parallel_predictions_are_those_of_each_component,
    fits_end_at_no_saddle,
)
