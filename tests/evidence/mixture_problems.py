"""Evaluations of mixtures of every family, for which `reference.mixtures` has the definition."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from emissions.defined import DEFINED, as_emission_takes
from laws.labels import random_starts
from reference import mixtures

from skvbem.evidence.evaluation import Evaluation
from skvbem.models import capabilities_of
from skvbem.models.mixture.model import Mixture
from skvbem.models.mixture.weights import FiniteWeights, StickBreaking
from skvbem.optima.labels import MixtureMethod
from skvbem.optima.plan import FitPlan
from skvbem.testing.emission_examples import seen
from skvbem.vbem import posteriors


class Case(NamedTuple):
    """An evaluation, its rows one by one without those that say nothing, and its definition."""

    evaluation: Evaluation
    rows: np.ndarray
    of_weights: Any
    of_groups: Any


def case(name, rng, n=5, n_components=2, *, gaps=0.0, alpha=None, weight=None, n_starts=5):
    """An evaluation of a defined problem; sticks of concentration `alpha`, Dirichlet weights if None."""
    problem = DEFINED[name](rng, n, gaps)
    if alpha is None:
        concentration = rng.uniform(0.5, 2.0)
        weights = FiniteWeights(np.full(n_components, concentration))
        of_weights = partial(mixtures.dirichlet, concentration=concentration)
    else:
        weights, of_weights = StickBreaking(n_components, alpha), partial(mixtures.sticks, alpha=alpha)
    values, emission = problem.values, problem.emission
    order = emission.row_order(emission.prepare(as_emission_takes(name, values)))
    values = values if order is None else values[order]
    model = Mixture(emission, weights, emission.default_prior(n_components, **problem.options))
    observed = seen(as_emission_takes(name, values))
    data = model.compile(emission.prepare(as_emission_takes(name, values)), weight, observed)
    plan = FitPlan(MixtureMethod(), (1,), random_starts(model, data, rng, n_starts), {"tol": 1e-10, "max_iter": 5000})

    def run(form, fit):
        return plan.refit(model, data, form, fit)

    fit = plan.run(model, data, posteriors.VB)
    evaluation = Evaluation(
        model, capabilities_of(model), data, run, fit, "vb", data.total_weight, ("component",), (1,)
    )
    repeats = data.weight.astype(int) if data.has_whole_weights else observed.astype(int)
    return Case(evaluation, np.repeat(values, repeats, axis=0), of_weights, problem.of_groups)
