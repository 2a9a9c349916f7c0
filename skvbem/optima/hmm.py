"""Steps of fits of hidden Markov models, whose first states and transitions have learned strengths."""

from __future__ import annotations

from typing import Any

import numpy as np

from skvbem.families import DirichletMixture
from skvbem.models.hmm.model import HMM, HMMAscent
from skvbem.models.hmm.transitions import Transitions
from skvbem.optima.labels import LabelMethod
from skvbem.optima.tuning import TUNING
from skvbem.vbem.hyperparameters import strengthened
from skvbem.vbem.posteriors import MAP, Form


class HMMMethod(LabelMethod):
    """Fits hidden Markov models.

    Under a prior with concentrations below one, the first steps of a density empty states and transitions before these
    have found what they are for: expected logarithms hold small counts down far more than they are small. Every other
    start then takes its first steps as a point, at the mode in natural coordinates, which has the same counts and the
    same prior.
    """

    def ascent(self, model, data, form: Form, n_threads: int) -> HMMAscent:
        """Full steps of a hidden Markov model on its data."""
        if not form.density and form.prior_share and _has_alternatives(model):
            raise ValueError(
                "Under prior='hierarchical' of 'durations' how long states last in the mean is hidden, and the density "
                "of hazards may have several modes, so that there is no MAP fit. Take prior='transitions' or a pair of "
                "concentrations, such as (1.0, 1.0), in 'durations'; method='vb' or 'ml'; or a score that needs no MAP "
                "fit, such as 'lower_bound', 'bridge' or 'importance'."
            )
        return HMMAscent(model, data, form, n_threads)

    def warmed_up(self, ascent: Any, starts: np.ndarray) -> np.ndarray:
        """Starts, every other one some steps on as a point if the prior of transitions is sharp."""
        starts, model = super().warmed_up(ascent, starts), ascent.model
        is_sharp = (model.transitions.concentration[model.transitions.allowed] < 1).any()
        if ascent.form.density and is_sharp and starts.shape[1] > 1 and not _has_alternatives(model):
            starts, every_other = np.array(starts, order="C"), np.ascontiguousarray(starts[:, 1::2])
            HMMAscent(model, ascent.data, MAP, ascent.n_threads).advance(every_other, TUNING.n_steps_as_point)
            starts[:, 1::2] = every_other
        return starts

    def strengthened(self, model: HMM, base: HMM, statistics: np.ndarray) -> HMM:
        """One strength multiplies the prior of the first state, another that of all transitions; see `FitMethod`."""
        of_first, of_pairs, _ = model.prior.split(statistics)
        initial = _strengthened(model.initial, of_first, base.initial)
        transitions = _strengthened(model.transitions, of_pairs, base.transitions)
        return HMM(model.emission, initial, transitions, model.prior.blocks[2])


def _has_alternatives(model: HMM) -> bool:
    """True if the prior of transitions is a mixture, whose density may have several modes."""
    return isinstance(model.prior.blocks[1], DirichletMixture)


def _strengthened(now: Transitions, counts: np.ndarray, base: Transitions) -> Transitions:
    """The multiple of a base under which the counts score best."""
    all_rows = np.array([0, len(base.concentration)])
    return Transitions(base.matrix(strengthened(now.prior, counts, base.prior, all_rows).concentration))
