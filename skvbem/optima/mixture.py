"""How mixtures are fitted: the prior of weights that parameters of `VBMixture` stand for, and what follows a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from skvbem.emissions.base import exchangeability_classes
from skvbem.models.labels.distinct_rows import MAX_DISTINCT_ROWS, DistinctRows
from skvbem.models.mixture.model import Mixture, MixtureAscent
from skvbem.optima.labels import LabelMethod
from skvbem.vbem.driver import Ascent
from skvbem.vbem.fit import Fit, Stop, best_of, continued
from skvbem.vbem.hyperparameters import best_strength
from skvbem.vbem.posteriors import Form

# Rows below which starts see all of them; how many times as many each stage has; a stage is worth its while if there
# are so many times its rows; rows of the largest one, which are in memory at once.
_MAX_ROWS_AT_ONCE, _TIMES_AS_MANY, _WORTH_A_STAGE, _MAX_ROWS_OF_A_STAGE = 4096, 4, 16, 2**15


class MixtureMethod(LabelMethod):
    """Fits mixtures, whose components end in the order that their weights mean."""

    def ascent(self, model, data, form: Form, n_threads: int) -> MixtureAscent:
        """Full steps of a mixture on its data."""
        return MixtureAscent(model, model.condensed(data), form, n_threads)

    def stages(self, ascent: MixtureAscent) -> list[Ascent]:
        """Steps on samples of the rows, each of some times as many as the one before; on distinct ones if few are."""
        data, emission = ascent.data, ascent.model.emission
        labels, named = ascent.rows.labels, emission.named
        if labels is not None and not np.isin(named, labels).all():
            return []  # a sample in which a label is lacking leaves its component no place
        if not len(ascent.rows) or not len(data) > _MAX_ROWS_AT_ONCE * (
            1 if ascent.rows.is_sample else len(ascent.rows) / MAX_DISTINCT_ROWS
        ):
            return []
        stages: list[Ascent] = [ascent.on(ascent.rows)]
        most = MAX_DISTINCT_ROWS * _TIMES_AS_MANY
        while ascent.rows.is_sample and most <= min(len(data) // _WORTH_A_STAGE, _MAX_ROWS_OF_A_STAGE):
            rows = DistinctRows.of(emission, data, most)
            stages.append(ascent.on(rows))
            if not rows.is_sample:
                break
            most *= _TIMES_AS_MANY
        return stages

    def finalize(self, ascent, fit: Fit, *, stop: Stop | None, limits: Mapping[str, Any]) -> Fit:
        """The fit with its components sorted as the prior of the weights has them, if that raises the bound."""
        model = ascent.model
        order = model.preferred_order(fit.statistics)
        if order is None or np.ptp(exchangeability_classes(model.emission, model.n_components)) > 0:
            return fit  # components of two classes do not change places by themselves: their numbers go with them
        ordered = model.relabeled(fit.statistics, order)
        if np.array_equal(ordered, fit.statistics):
            return fit
        again = best_of(ascent, ordered[:, None], stop=stop, **limits)
        return continued(fit, again) if again.objective > fit.objective else fit

    def strengthened(self, model: Mixture, base: Mixture, statistics: np.ndarray) -> Mixture:
        """The mixture with a multiple of the prior of the weights of `base`; see `FitMethod`."""
        counts = model.prior.split(statistics)[0]
        strength = best_strength(lambda s: float(base.weights.of_strength(s).prior.log_evidence(counts)))
        stronger = base.weights.of_strength(strength)
        if stronger.prior.log_evidence(counts) <= model.weights.prior.log_evidence(counts):
            return model
        return Mixture(model.emission, stronger, model.prior.blocks[1])
