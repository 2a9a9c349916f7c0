"""How mixtures are fitted: the prior of weights that parameters of `VBMixture` stand for, and what follows a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from skvbem.ascent import Ascent
from skvbem.emissions.base import exchangeability_classes
from skvbem.models.labels.distinct_rows import MAX_DISTINCT_ROWS, DistinctRows
from skvbem.models.mixture.model import Mixture, MixtureAscent
from skvbem.optima.labels import LabelMethod
from skvbem.optima.plan import Stop, best_of
from skvbem.optima.tuning import TUNING
from skvbem.vbem.fit import Fit, continued
from skvbem.vbem.hyperparameters import best_strength
from skvbem.vbem.posteriors import Form


class MixtureMethod(LabelMethod):
    """Fits mixtures, whose components end in the order that their weights mean."""

    def ascent(self, model, data, form: Form, n_threads: int) -> MixtureAscent:
        """Full steps of a mixture on its data."""
        return MixtureAscent(model, self.condensed(model, data), form, n_threads)

    def condensed(self, model, data) -> Any:
        """Few rows in place of all of one component, where its bound is the same with them."""
        return model.condensed(data)

    def stages(self, ascent: MixtureAscent) -> list[Ascent]:
        """Steps on samples of the rows, each of some times as many as the one before; on distinct ones if few are."""
        data, emission = ascent.data, ascent.model.emission
        labels, named = ascent.rows.labels, emission.named
        if labels is not None and not np.isin(named, labels).all():
            return []  # a sample in which a label is lacking leaves its component no place
        if not len(ascent.rows) or not len(data) > TUNING.many_rows * (
            1 if ascent.rows.is_sample else len(ascent.rows) / MAX_DISTINCT_ROWS
        ):
            return []
        stages: list[Ascent] = [ascent.on(ascent.rows)]
        most = MAX_DISTINCT_ROWS * TUNING.growth_of_samples
        while ascent.rows.is_sample and most <= min(len(data) // TUNING.growth_of_samples**2, TUNING.largest_sample):
            rows = DistinctRows.of(emission, data, most)
            stages.append(ascent.on(rows))
            if not rows.is_sample:
                break
            most *= TUNING.growth_of_samples
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
