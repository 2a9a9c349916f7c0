"""Fits of linear dynamical systems: priors, the strengths of these, and states that are not needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from skvbem.families import Regression
from skvbem.families.base import ConjugateFamily
from skvbem.families.hierarchical import regression_of, with_hidden_rates
from skvbem.models.linear_dynamical_system import first_states
from skvbem.models.linear_dynamical_system.model import HIDDEN_RATE, LDSAscent, LinearDynamicalSystem
from skvbem.optima.plan import FitMethod, FitPlan
from skvbem.vbem.fit import Fit
from skvbem.vbem.posteriors import Form

# Between which multiples of a prior strengths are sought.
_LOG_STRENGTHS = np.log(1e-6), np.log(1e6)


class LDSMethod(FitMethod):
    """Fits linear dynamical systems."""

    def ascent(self, model, data, form: Form, n_threads: int) -> LDSAscent:
        """Full steps of a linear dynamical system on its data."""
        return LDSAscent(model, data, form, n_threads)

    def strengthened(
        self, model: LinearDynamicalSystem, base: LinearDynamicalSystem, statistics: np.ndarray
    ) -> LinearDynamicalSystem:
        """One strength multiplies the precisions of A and B, another those of loadings; see `FitMethod`."""
        parts = zip(model.prior.blocks, base.prior.blocks, model.prior.split(statistics), (None, model.n_states))
        blocks: list[Any] = [_strengthened(*part) for part in parts]
        first: Any = model.first if len(model.prior.blocks) == 2 else model.prior.blocks[2]
        return LinearDynamicalSystem(blocks[0], blocks[1], first, model.origin, model.unit)


def _strengthened(now: Any, base: Any, statistics: np.ndarray, n_states: int | None) -> ConjugateFamily:
    """The prior whose strength statistics score best, those of hidden rates among them."""
    if now.hyperprior is None:
        return _best_multiple(now, base, statistics, n_states)
    means = now.hyperprior.prior_statistics
    at_means, of_base = (prior.given_hyperparameters(means) for prior in (now, base))
    best = _best_multiple(at_means, of_base, statistics - means, n_states)
    floor = regression_of(now).split(now.coordinates)[-1] / 2
    return with_hidden_rates(best, *HIDDEN_RATE, floor)


def _best_multiple(now: Any, base: Any, statistics: np.ndarray, n_states: int | None) -> Regression:
    """The multiple of a base under which statistics score best; of loadings alone where states are counted."""
    d = base.n_regressors
    diagonal = np.cumsum([0, *range(d, 1, -1)])[:n_states]
    cells = base.precision_cells[:, diagonal]

    def multiple(log_strength: float) -> Regression:
        coordinates = base.coordinates.copy()
        coordinates[cells] *= np.exp(log_strength)
        return replace(base, coordinates=coordinates)

    optimum = minimize_scalar(
        lambda x: -float(multiple(x).log_evidence(statistics)), bounds=_LOG_STRENGTHS, method="bounded"
    )
    best = multiple(float(optimum.x))
    return best if best.log_evidence(statistics) >= now.log_evidence(statistics) else now


@dataclass(frozen=True, eq=False)
class LearnedPrecisions:
    """A fit under known precisions, then one under hidden ones, from which states that are not needed are taken.

    Precisions that are learned from the first step on shut out states before these have found what they are for.

    Parameters
    ----------
    plan : FitPlan
    form : Form
    with_states : callable of int
        The model of so many states, precisions hidden.
    prune : bool
        Whether to take states away where the bound rises by it.
    """

    plan: FitPlan
    form: Form
    with_states: Callable[[int], LinearDynamicalSystem]
    prune: bool

    def fit(self, known: LinearDynamicalSystem, data: Any, **options: Any) -> tuple[LinearDynamicalSystem, Fit]:
        """The model and its best fit."""
        first = self.plan.run(known, data, self.form, **options)
        natural, _ = self.form.of(known.prior, first.statistics[:, None])
        model = self.with_states(known.n_states)
        start = first.statistics + model.prior.hyperparameters(natural[:, 0])
        # objectives under known precisions do not compare with those under hidden ones: the trace begins anew
        fit = self._run(model, data, start, **options)
        while self.prune and model.n_states > 1:
            state = least_needed(model, self.form, fit.statistics)
            fewer = self.with_states(model.n_states - 1)
            cells = cells_without(model, state)
            other = self._run(fewer, data, fit.statistics[cells], **options)
            if other.objective < fit.objective:
                break
            model, fit = fewer, other
        return model, fit

    def _run(self, model: LinearDynamicalSystem, data: Any, start: np.ndarray, **options: Any) -> Fit:
        return replace(self.plan, starts=start[:, None], explore=False).run(model, data, self.form, **options)


def least_needed(model: LinearDynamicalSystem, form: Form, statistics: np.ndarray) -> int:
    """The state whose loadings and whose effects on other states explain least, where it moves as it does."""
    natural, _ = form.of(model.prior, statistics[:, None])
    potentials, k = model.potentials(natural[:, 0]), model.n_states
    packed, *_ = model.dynamics.split(model.prior.split(statistics)[0])
    squares = packed[0][np.cumsum([0, *range(model.dynamics.n_regressors, 1, -1)])][:k]
    others = potentials.link * (1 - np.eye(k))
    explained = (potentials.precision @ potentials.output[:, :k] ** 2 + (others**2).sum(axis=0)) * squares
    return int(np.argmin(explained))


def cells_without(model: LinearDynamicalSystem, state: int) -> np.ndarray:
    """The cells of statistics that are left without a state."""
    kept, first = [], 0
    for block, has_rows in ((model.dynamics, True), (model.emission, False)):
        d = block.n_regressors
        cells = np.arange(len(block.coordinates))
        packed, total, count, square = block.split(cells)
        left, right = np.triu_indices(d)
        rows = np.arange(len(total)) != (state if has_rows else -1)
        of_total = total[rows][:, np.arange(d) != state]
        of_packed = packed[:, (left != state) & (right != state)]
        kept.append(first + np.concatenate([of_packed.ravel(), of_total.ravel(), count, square]))
        first += len(cells)
    if model.first is None:
        kept.append(first + first_states.cells_without(model.n_states, state))
    return np.concatenate(kept)
