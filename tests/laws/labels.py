"""Rows of every emission, and what models with one hidden label per row share: starts, and the evidence of groups."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from emissions.defined import DEFINED, as_emission_takes
from emissions.members import CONJUGATE, PROBLEMS, with_nothing_hidden

from skvbem.emissions import COVARIANCE_TYPES
from skvbem.testing.emission_examples import n_rows, rows_of, seen

NO_MODE = "some label may have too little data for its prior: then there is no interior mode in probabilities"
NO_MAXIMUM = "the likelihood grows without end where a component closes in on a few measurements"
NO_FINITE_CELLS = "cells are measurements or counts without end; the laws of emissions integrate over them"


def lacks_of(emission):
    """What models of one hidden label per row lack, and why, with an emission."""
    lacks = {"map_probability": NO_MODE}
    if emission in (*COVARIANCE_TYPES, "independent"):
        lacks["maximum_likelihood"] = NO_MAXIMUM
    if emission == "multinomial":
        lacks["dimension"] = "it hangs on the totals of the rows"
    if emission not in ("categorical", "bernoulli"):
        lacks["finite_cells"] = NO_FINITE_CELLS
    return lacks


def random_starts(model, data, rng, n_lanes):
    """Statistics of random responsibilities."""
    shares = rng.dirichlet(np.full(model.n_components, 0.5), size=(n_lanes, len(data)))
    return np.stack([model.statistics_of(each, data) for each in shares], axis=1)


def log_evidence_of_one(emission, values):
    """ln p(rows | one component): each row predicted from those before, an independent way to the closed form."""
    table = emission.prepare(values)
    posterior, total = emission.default_prior(1), 0.0
    for i in range(len(table)):
        row = table[i : i + 1]
        total += float(emission.log_predictive(row, posterior)[0, 0])
        posterior = posterior + emission.statistics(row, np.ones((1, 1)), posterior.expected_natural())
    return total


class LabeledRows(NamedTuple):
    """An emission, options of its prior, and rows; `log_evidence` of groups of them, arrays of row numbers, nats.

    `cells(row, column)` are the values of a cell; None where they are not finitely many.
    """

    emission: Any
    options: dict
    values: Any
    log_evidence: Any
    cells: Any

    def prior(self, n_labels):
        """Of so many labels."""
        return self.emission.default_prior(n_labels, **self.options)

    @property
    def seen(self):
        """Whether rows have an observed cell, (n_rows,)."""
        return seen(self.values)


class OfGroups:
    """Evidences of rows in groups: the sum over groups, each found once, or a function of all of them together."""

    def __init__(self, of_groups, shared):
        self._of_groups, self._shared, self._known = of_groups, shared, {}

    def __call__(self, groups):
        if self._shared:
            return self._of_groups(groups)
        return sum(self._of(group) for group in groups if len(group))

    def _of(self, group):
        key = group.tobytes()
        if key not in self._known:
            self._known[key] = self._of_groups([group])
        return self._known[key]


def by_prediction(name, rng, n, gaps, conjugate):
    """Columns and prior as `emissions.members` draws them; evidences predicted row by row, where this is asked for."""
    make = partial(with_nothing_hidden, name) if conjugate else PROBLEMS[name]
    problem = make(rng, n_rows=n, gaps=gaps)
    emission, values = problem.emission, problem.values
    order = emission.row_order(emission.prepare(values))
    values = values if order is None else rows_of(values, order)

    def of_groups(groups):
        return sum(log_evidence_of_one(emission, rows_of(values, group)) for group in groups)

    cells = problem.cells if name in ("categorical", "bernoulli") else None
    return LabeledRows(emission, {}, values, OfGroups(of_groups, False), cells)


def by_definition(name, rng, n, gaps, conjugate=True):
    """Priors in the units of the data; evidences as textbooks have them."""
    problem = DEFINED[name](rng, n, gaps)
    emission, values = problem.emission, problem.values
    order = emission.row_order(emission.prepare(as_emission_takes(name, values)))
    values = values if order is None else values[order]

    def of_groups(groups):
        return problem.of_groups([values[group] for group in groups])

    cells = {"bernoulli": lambda row, column: range(2), "categorical": lambda row, column: range((3, 2, 2)[column])}
    groups = OfGroups(of_groups, name == "tied")
    return LabeledRows(emission, problem.options, as_emission_takes(name, values), groups, cells.get(name))


def labeled_rows(name, rng, n, k=0, gaps=0.0, conjugate=True):
    """Rows of an emission, with gaps in every other draw where rows with gaps keep an evidence in closed form.

    Both kinds of problem in turn, two draws of each; `conjugate` may be false where no evidence is asked for. A tied
    covariance has no prediction row by row.
    """
    share = gaps * (k % 2) * (name in CONJUGATE or not conjugate)
    make = by_definition if (name == "tied" and conjugate) or k % 4 > 1 else by_prediction
    rows = make(name, rng, n, share, conjugate)
    while not rows.seen.any():  # estimators take no such data
        rows = make(name, rng, n, share, conjugate)
    return rows


def with_other_cells(rows, rng):
    """The rows with an observed cell of one taken away, and with each of the values it could have had."""
    observed = np.argwhere(rows.values >= 0)
    row, column = observed[rng.integers(len(observed))]

    def having(code):
        values = rows.values.copy()
        values[row, column] = code
        return rows._replace(values=values, log_evidence=None)

    return having(-1), [having(code) for code in rows.cells(rows.values[row], column)]


def observed_rows(rows, units):
    """Of these rows the ones that say something."""
    units = np.arange(n_rows(rows.values)) if units is None else np.asarray(units)
    return units[rows.seen[units]]
