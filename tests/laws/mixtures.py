"""Mixtures of every emission: what laws are tried on, and evidences by the sum over all assignments of rows."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import ClassVar

import numpy as np
from laws.labels import (
    LabeledRows,
    labeled_rows,
    lacks_of,
    observed_rows,
    random_starts,
    with_other_cells,
)
from reference import mixtures
from scipy.special import logsumexp

from skvbem.models.mixture.model import Mixture, MixtureAscent
from skvbem.models.mixture.weights import FiniteWeights, StickBreaking, Weights
from skvbem.testing import ModelCase, ModelInstance, Relabeling
from skvbem.testing.emission_examples import n_rows, rows_of


def mixture(problem, weights):
    """A mixture over the rows of a problem of `emissions.members`, its table, and the rows in the table's order."""
    emission = problem.emission
    table = emission.prepare(problem.values)
    order = emission.row_order(table)
    values = problem.values if order is None else rows_of(problem.values, order)
    model = Mixture(emission, weights, emission.default_prior(weights.n_components))
    return model, emission.prepare(values), values


def log_evidence_of_counts(weights, counts):
    """ln of the probability of one order of components that were counted, nats."""
    if isinstance(weights, StickBreaking):
        return mixtures.sticks(counts, weights.concentration)
    return mixtures.dirichlet(counts, weights.concentration)


@dataclass(frozen=True, eq=False)
class MixtureInstance(ModelInstance):
    """A mixture over labeled rows; the rows are the units."""

    rows: LabeledRows
    weights: Weights

    ascent = MixtureAscent
    hidden = ("component",)

    @cached_property
    def model(self):
        return Mixture(self.rows.emission, self.weights, self.rows.prior(self.weights.n_components))

    @property
    def unit_sizes(self):
        return np.ones(n_rows(self.rows.values), dtype=int)

    def compile(self, units=None, weight=None):
        values = self.rows.values if units is None else rows_of(self.rows.values, units)
        observed = self.rows.seen if units is None else self.rows.seen[units]
        return self.model.compile(self.rows.emission.prepare(values), weight, observed)

    def log_evidence(self, units=None):
        units, n = observed_rows(self.rows, units), self.weights.n_components
        terms = []
        for assignment in product(range(n), repeat=len(units)):
            of_rows = np.array(assignment, dtype=int)
            counts = np.bincount(of_rows, minlength=n)
            groups = [units[of_rows == k] for k in range(n)]
            terms.append(log_evidence_of_counts(self.weights, counts.tolist()) + self.rows.log_evidence(groups))
        return float(logsumexp(terms))

    def random_starts(self, data, rng, n_starts):
        return random_starts(self.model, data, rng, n_starts)

    def relabeling(self, rng):
        order, model = rng.permutation(self.weights.n_components), self.model
        back = np.argsort(order)
        return Relabeling(lambda x: model.relabeled(x, order), lambda x: model.relabeled(x, back), order)

    def row_posteriors(self, natural, data):
        log_joint = self.model.log_joint(natural, data.table)
        return np.exp(log_joint - logsumexp(log_joint, axis=1, keepdims=True))

    def filled(self, rng):
        missing, others = with_other_cells(self.rows, rng)
        return replace(self, rows=missing), [replace(self, rows=rows) for rows in others]


class MixtureCase(ModelCase):
    """Mixtures of one emission."""

    n_complete = 60
    n_rising = 4  # sticks and none, gaps and none, both kinds of rows
    limits: ClassVar = {"tol": 1e-6, "max_iter": 120}

    def __init__(self, emission):
        self.emission, self.name = emission, f"mixture of {emission}"
        self.lacks = lacks_of(emission)
        if emission not in ("categorical", "poisson", "full"):
            self.n_sampled = 2  # without gaps and with them; sticks are the same for every emission
        if emission == "independent":  # of most parameters: few chains have weights with a tail that they do not show
            longer = {"n_chains": 128, "n_steps": 48}
            self.sampled = ModelCase.sampled | {"ais": longer, "ais_prior": longer}

    def complete(self, rng, k):
        """One component."""
        rows = labeled_rows(self.emission, rng, int(rng.integers(1, 9)), k, gaps=0.3)
        return MixtureInstance(rows, FiniteWeights(np.array([rng.uniform(0.1, 3.0)])))

    def regular(self, rng):
        return MixtureInstance(labeled_rows(self.emission, rng, 60), FiniteWeights(np.ones(1)))

    def tiny(self, rng, k):
        """Two or three components; sticks among the priors of their weights."""
        rows = labeled_rows(self.emission, rng, int(rng.integers(2, 6)), k, gaps=0.3)
        return MixtureInstance(rows, self._weights(rng, k))

    def sampleable(self, rng, k):
        """Two or three components; sticks among the priors of their weights."""
        return MixtureInstance(labeled_rows(self.emission, rng, 5, k, gaps=0.3), self._weights(rng, k))

    def _weights(self, rng, k):
        n = 2 + k % 2
        return StickBreaking(n, 0.7) if k % 3 == 2 else FiniteWeights(np.full(n, rng.uniform(0.3, 2.0)))

    def dozens(self, rng, k, form="vb"):
        rows = labeled_rows(self.emission, rng, int(rng.integers(5, 60)), k, gaps=0.3, conjugate=False)
        return MixtureInstance(rows, FiniteWeights(np.full(3, 0.7)) if k % 3 else StickBreaking(3, 0.8))

    def alike(self, rng, k):
        return MixtureInstance(labeled_rows(self.emission, rng, 12), FiniteWeights(np.ones(3)))

    def pair(self, rng):
        return MixtureInstance(labeled_rows(self.emission, rng, 6), FiniteWeights(np.ones(2)))

    def long(self, rng):
        return MixtureInstance(labeled_rows(self.emission, rng, 30, 1, 0.2, conjugate=False), FiniteWeights(np.ones(2)))

    def many(self, rng, k):
        return MixtureInstance(labeled_rows(self.emission, rng, 5000), FiniteWeights(np.ones(4)))
