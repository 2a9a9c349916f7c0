"""Fits of structural time series: steps, and noises that are not needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import minimize

from skvbem.models.base import ModelAscent
from skvbem.models.structural.model import StructuralModel
from skvbem.optima.plan import FitMethod, Stop, best_of
from skvbem.vbem.fit import Fit, continued
from skvbem.vbem.posteriors import Form

# The share of its variance that is left of a noise to see whether it is needed.
_NEARLY_NOTHING = 1e-6
# How far logarithms of rates may go from a start, and where the quasi-Newton method ends, which steps go on from: at
# slopes of so many nats.
_FAR = 25.0
_OPTIONS = {"maxiter": 100, "gtol": 1e-4, "ftol": 1e-12}


class StructuralAscent(ModelAscent[StructuralModel]):
    """Full steps of a structural time series on its data."""

    label = "noise"
    suspicion = ""


class StructuralMethod(FitMethod):
    """Fits structural time series."""

    def ascent(self, model, data, form: Form, n_threads: int) -> StructuralAscent:
        """Full steps of a structural time series on its data."""
        return StructuralAscent(model, data, form, n_threads)

    def warmed_up(self, ascent: Any, starts: np.ndarray) -> np.ndarray:
        """Starts (n_cells, n_starts) moved by a quasi-Newton method, where variances alone are learned."""
        starts, model = super().warmed_up(ascent, starts), ascent.model
        if not model.design.has_level or model.n_output_inputs > 1 or len(model.design.learned):
            return starts
        return np.stack([_climbed(ascent, start) for start in starts.T], axis=1)

    def finalize(self, ascent: StructuralAscent, fit: Fit, *, stop: Stop | None, limits: Mapping[str, Any]) -> Fit:
        """The fit with noises at nearly nothing where that raises the objective.

        The likelihood may be highest where a variance is 0. Steps go there as slowly as 1 / t, and stop on the way.
        """
        model, form = ascent.model, ascent.form
        for _ in model.noises:
            natural, _ = form.of(model.prior, fit.statistics[:, None])
            less = np.stack([model.with_less_noise(natural[:, 0], noise, _NEARLY_NOTHING) for noise in model.noises], 1)
            starts = ascent.expect(less)
            objectives = ascent.advance(starts.copy(), 1)[0]
            best = int(np.argmax(objectives))
            if not objectives[best] > fit.objective:
                return fit
            further = best_of(ascent, starts[:, best : best + 1], stop=stop, **limits)
            if not further.objective > fit.objective:
                return fit
            fit = continued(fit, further)
        return fit


def _climbed(ascent: StructuralAscent, start: np.ndarray) -> np.ndarray:
    """Statistics (n_cells,) that a quasi-Newton method leads to from others, in logarithms of the rates of noises.

    Rates b are all that the bound F has open where there are no effects. Its slope is that of the E step, as that of
    steps of EM is: dF / d ln b = a (b' - b) / b, where b' is the rate after the step and a / b the expected precision.
    """
    model, share = ascent.model, ascent.form.prior_share
    rates = model.rate_cells
    prior = share * model.prior.coordinates[rates]

    def minus_objective(log_rates: np.ndarray) -> tuple[float, np.ndarray]:
        at = start.copy()
        at[rates] = np.exp(log_rates) - prior
        precision = -ascent.form.of(model.prior, at[:, None])[0][rates, 0]
        after = at[:, None].copy()
        objective = ascent.advance(after, 1)[0, 0]
        return -objective, -precision * (after[rates, 0] - at[rates])

    first = np.log(start[rates] + prior)
    end = minimize(
        minus_objective,
        first,
        jac=True,
        method="L-BFGS-B",
        bounds=[(x - _FAR, x + _FAR) for x in first],
        options=_OPTIONS,
    )
    better = start.copy()
    better[rates] = np.exp(end.x) - prior
    return better
