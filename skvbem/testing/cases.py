"""Cases that laws of models and scores are tried on: a model with data, and the answers known by definition."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from skvbem.capabilities import Capabilities
from skvbem.evidence.evaluation import FORMS, Evaluation
from skvbem.models import capabilities_of
from skvbem.optima.plan import best_of
from skvbem.vbem import posteriors

#: What a case may lack besides capabilities of its model, and what laws ask of it for each.
ASKED = {
    "map_probability": "a mode in the probability basis for any data, so that this form of fit can be run",
    "maximum_likelihood": "a likelihood that is bounded for any data, so that its maximum is a fixed point",
    "one_by_one": "data with whole weights written out, `data.one_by_one`",
    "row_posteriors": "posteriors of the labels of rows, `row_posteriors(natural, data)`",
    "relabeling": "labels in another order, `relabeling(rng)`",
    "finite_cells": "a missing cell with finitely many values, `filled(rng)`",
    "log_evidence": "the evidence by a definition of its own, `log_evidence(units)`",
    "exact": "the evidence by a definition of its own, or by the capability 'enumeration'",
    "complete": "instances in which nothing is hidden, `complete(rng, k)`",
    "counted": "hidden variables that are counted, so that their entropy is not negative",
    "regular": "an instance with a maximum of the likelihood away from every edge, `regular(rng)`",
}
_CAPABILITIES = tuple(field.name for field in fields(Capabilities))
_MAX_TERMS = 2**20


@dataclass(frozen=True, eq=False)
class Relabeling:
    """Hidden labels in another order.

    Parameters
    ----------
    there, back : callable
        Take statistics (n_cells, ...) to statistics under the other labels, and back.
    order : ndarray of int, shape (n_labels,)
        The label that takes each one's place.
    """

    there: Callable
    back: Callable
    order: np.ndarray


def evaluation_from(
    starts: np.ndarray, ascent: Any, model: Any, data: Any, hidden: Sequence, *, seed: int = 0, tol: float = 1e-6
) -> Evaluation:
    """The evaluation of a model on its data, fitted by VB from statistics (n_cells, n_starts), other forms as asked.

    `ascent` makes full steps of the model, the data and a form.
    """

    def fit_of(form, starts):
        return best_of(ascent(model, data, form), starts, tol=tol, max_iter=2000)

    def run(form, fit):
        return fit_of(form, np.column_stack([fit.statistics, starts]))

    fit, hidden = fit_of(FORMS["vb"], starts), tuple(hidden)
    return Evaluation(model, capabilities_of(model), data, run, fit, "vb", data.total_weight, hidden, (seed,))


class ModelInstance(ABC):
    """A model, and units of data: rows, or sequences of rows, that are independent given the parameters.

    Attributes
    ----------
    model : LatentModel
        Registered in `skvbem.models.MODELS`.
    ascent : callable
        Its full steps (`skvbem.ascent.Ascent`): called with the model, data, a form and the number of threads.
    hidden : tuple of str
        Names of what is never observed.
    unit_sizes : ndarray of int, shape (n_units,)
        Rows of each unit.
    """

    model: Any
    ascent: Any
    hidden: tuple[str, ...]
    unit_sizes: Any

    @property
    def n_units(self) -> int:
        """Number of units."""
        return len(self.unit_sizes)

    @property
    def capabilities(self) -> Any:
        """Capabilities of the model for scores, its `skvbem.capabilities.Capabilities`."""
        return capabilities_of(self.model)

    @abstractmethod
    def compile(self, units: Sequence[int] | np.ndarray | None = None, weight: np.ndarray | None = None) -> Any:
        """Data of units in this order, each weighted (n_units,); of all, each once, by default."""

    def log_evidence(self, units: Sequence[int] | np.ndarray | None = None) -> float:
        """ln p(units), nats, by the sum over all that is hidden; of all units by default.

        None of the model's own code should enter. Where it is not defined, the capability 'enumeration' answers.
        """
        return self.capabilities.enumeration(self.compile(units), _MAX_TERMS)[0]

    def random_starts(self, data: Any, rng: np.random.Generator, n_starts: int) -> np.ndarray:
        """Expected statistics (n_cells, n_starts) at random points, which are draws of the prior by default."""
        prior = self.model.prior
        points = np.stack([prior.natural(prior.sample(rng)) for _ in range(n_starts)], axis=1)
        return self.model.expect(points, data).statistics

    def relabeling(self, rng: np.random.Generator) -> Relabeling:
        """Labels in another order that the prior does not tell from this one; of instances drawn as alike."""
        raise NotImplementedError

    def row_posteriors(self, natural: np.ndarray, data: Any) -> np.ndarray:
        """Posteriors (n_rows, n_labels) at natural parameters (n_cells,)."""
        raise NotImplementedError

    def filled(self, rng: np.random.Generator) -> tuple[ModelInstance, list[ModelInstance]]:
        """The instance with an observed cell taken away, and with each of the values it could have had."""
        raise NotImplementedError

    def natural(self, data: Any, rng: np.random.Generator, n_lanes: int = 1) -> np.ndarray:
        """Expected natural parameters (n_cells, n_lanes) after random statistics."""
        return posteriors.VB.of(self.model.prior, self.random_starts(data, rng, n_lanes))[0]

    def point(self, data: Any, rng: np.random.Generator) -> np.ndarray:
        """Natural parameters (n_cells,) of a point drawn from a posterior."""
        posterior = self.model.prior + self.random_starts(data, rng, 1)[:, 0]
        return self.model.prior.natural(posterior.sample(rng))

    def evaluation(
        self,
        rng: np.random.Generator,
        *,
        units: Sequence[int] | np.ndarray | None = None,
        weight: np.ndarray | None = None,
        seed: int = 0,
        tol: float = 1e-6,
    ) -> Evaluation:
        """The model as scores take it, fitted from five random starts."""
        data = self.compile(units, weight)
        starts = self.random_starts(data, rng, 5)
        return evaluation_from(starts, self.ascent, self.model, data, self.hidden, seed=seed, tol=tol)


class ModelCase(ABC):
    """A family of models: what laws are tried on, k = 0, 1, ... of each size.

    Tiny instances are all that a case has to bring; each further size makes laws sharper, or lets more of them be
    tried.

    Attributes
    ----------
    name : str
    lacks : mapping of str to str
        Names in `skvbem.testing.cases.ASKED` or of capabilities, and why.
    n_complete, n_tiny, n_rising, n_rising_starts, n_fixed, n_relabeled, n_sampled, n_ordered, n_enumerated : int
        Instances a law tries.
    limits : mapping
        When runs from random starts end.
    n_plain_steps : int
        Steps whose objective is looked at one by one.
    sampled : mapping of str to mapping
        Options at which sampling scores of a tiny instance take little time.
    """

    name: str
    lacks: ClassVar[Mapping[str, str]] = {}
    n_complete = 20
    n_tiny = 8
    n_rising = 2
    n_rising_starts = 3
    n_fixed = 1
    n_relabeled = 1
    n_sampled = 3
    n_ordered = 4
    n_enumerated = 6
    limits: ClassVar[Mapping[str, float]] = {"tol": 1e-4, "max_iter": 60}
    n_plain_steps = 12
    sampled: ClassVar[Mapping[str, Mapping[str, int]]] = {
        "ais": {"n_chains": 32, "n_steps": 48},
        "ais_prior": {"n_chains": 32, "n_steps": 48},
        "importance_gibbs": {"n_draws": 512, "n_completions": 64},
        "smc": {"n_runs": 16, "n_particles": 48, "n_steps": 32},
        "smc_data": {"n_particles": 512, "max_particles": 512},
        "auto": {"exact_terms": 0, "n_draws": 512, "n_particles": 128, "max_particles": 256},
    }

    def __repr__(self) -> str:
        return self.name

    @property
    def forms(self) -> dict[str, posteriors.Form]:
        """The forms of q(theta) it can be fitted by."""
        return {name: form for name, form in FORMS.items() if name not in self.lacks}

    @abstractmethod
    def tiny(self, rng: np.random.Generator, k: int) -> ModelInstance:
        """So few rows that all that is hidden can be summed over; priors of every kind."""

    def complete(self, rng: np.random.Generator, k: int) -> ModelInstance:
        """Nothing hidden, or one label alone."""
        raise NotImplementedError

    def regular(self, rng: np.random.Generator) -> ModelInstance:
        """Nothing hidden, and a maximum of the likelihood away from every edge."""
        raise NotImplementedError

    def sampleable(self, rng: np.random.Generator, k: int) -> ModelInstance:
        """As few rows, and priors under which short chains are as uncertain as they say."""
        return self.tiny(rng, k)

    def dozens(self, rng: np.random.Generator, k: int, form: str = "vb") -> ModelInstance:
        """Some dozen rows, missing cells in every other instance; a prior that the form has a fit under."""
        return self.tiny(rng, k)

    def alike(self, rng: np.random.Generator, k: int) -> ModelInstance:
        """About a dozen rows, labels that the prior does not tell apart."""
        return self.tiny(rng, k)

    def pair(self, rng: np.random.Generator) -> ModelInstance:
        """Two units or more, six rows, labels that the prior does not tell apart."""
        return self.tiny(rng, 0)

    def long(self, rng: np.random.Generator) -> ModelInstance:
        """Units that chains and passes take in pieces."""
        return self.dozens(rng, 0)

    def many(self, rng: np.random.Generator, k: int) -> ModelInstance:
        """Rows enough for several threads."""
        return self.dozens(rng, k)

    def lacking(self, names: Sequence[str]) -> str:
        """The first of these capabilities, and of what is in `ASKED`, that the case lacks, and why; empty if none."""
        instance = self.tiny(np.random.default_rng(0), 0)
        for name in names:
            why = self.lacks.get(name) or self._not_defined(name, instance)
            if why:
                return f"want of {name!r} ({why})"
        return ""

    def _not_defined(self, name, instance):
        """Why neither the case nor its instances have something."""
        if name in _CAPABILITIES:
            known = getattr(instance.capabilities, name)
            return "" if known is not None else f"{type(instance.model).__name__} has no such capability"
        if name not in ASKED:
            raise ValueError(f"Laws ask for nothing that is named {name!r}, but for {', '.join(ASKED)}.")
        own_evidence = type(instance).log_evidence is not ModelInstance.log_evidence
        defined = {
            "complete": type(self).complete is not ModelCase.complete,
            "regular": type(self).regular is not ModelCase.regular,
            "relabeling": type(instance).relabeling is not ModelInstance.relabeling,
            "row_posteriors": type(instance).row_posteriors is not ModelInstance.row_posteriors,
            "finite_cells": type(instance).filled is not ModelInstance.filled,
            "log_evidence": own_evidence,
            "exact": own_evidence or instance.capabilities.enumeration is not None,
        }
        if name == "one_by_one":
            return "" if hasattr(instance.compile(), "one_by_one") else ASKED[name]
        return "" if defined.get(name, True) else ASKED[name]
