"""What a law is tried on: a model with its data, and the answers that are known by definition.

A model family brings a `Case`: how to draw instances of five sizes, and what it lacks. It is told to all laws by one
entry of `laws.models`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from bridge import FORMS
from evidence.evaluations import evaluation_from

from skvbem.evidence.evaluation import Evaluation
from skvbem.vbem import posteriors

#: What a family may lack, and what laws ask of an instance for it.
CAPABILITIES = {
    "map_probability": "a mode in the probability basis for any data, so that this form of fit can be run",
    "maximum_likelihood": "a likelihood that is bounded for any data, so that its maximum is a fixed point",
    "one_by_one": "data with whole weights written out, `data.one_by_one`",
    "row_posteriors": "posteriors of the labels of rows, `row_posteriors(natural, data)`",
    "dimension": "a dimension of what data can tell, for any data",
    "finite_cells": "a missing cell with finitely many values, `filled(rng)`",
}


@dataclass(frozen=True, eq=False)
class Relabeling:
    """Hidden labels in another order.

    Parameters
    ----------
    there, back : callable
        Of statistics (n_cells, ...) to statistics under the other labels, and from these.
    order : ndarray of int, shape (n_labels,)
        The label that takes each one's place.
    """

    there: Any
    back: Any
    order: np.ndarray


class Instance(ABC):
    """A model, and units of data: rows, or sequences of rows, that are independent given the parameters.

    Attributes
    ----------
    model
    ascent : type
        Its full steps: called with the model, data, a form and the number of threads.
    hidden : tuple of str
        Names of what is never observed.
    unit_sizes : ndarray of int, shape (n_units,)
        Rows of each unit.
    """

    model: Any
    ascent: Any
    hidden: tuple[str, ...]
    unit_sizes: np.ndarray

    @property
    def n_units(self) -> int:
        return len(self.unit_sizes)

    @abstractmethod
    def compile(self, units: Sequence[int] | None = None, weight: np.ndarray | None = None) -> Any:
        """Data of units in this order, each weighted (n_units,); of all, each once, by default."""

    @abstractmethod
    def log_evidence(self, units: Sequence[int] | None = None) -> float:
        """ln p(units), nats, by the sum over all that is hidden; of all units by default. None of `skvbem` enters."""

    @abstractmethod
    def random_starts(self, data: Any, rng: np.random.Generator, n_starts: int) -> np.ndarray:
        """Expected statistics (n_cells, n_starts) of random posteriors."""

    def relabeling(self, rng: np.random.Generator) -> Relabeling:
        """Labels in another order that the prior does not tell from this one; of instances drawn as alike."""
        raise NotImplementedError

    def row_posteriors(self, natural: np.ndarray, data: Any) -> np.ndarray:
        """Posteriors (n_rows, n_labels) at natural parameters (n_cells,)."""
        raise NotImplementedError

    def filled(self, rng: np.random.Generator) -> tuple[Instance, list[Instance]]:
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
        units: Sequence[int] | None = None,
        weight: np.ndarray | None = None,
        seed: int = 0,
        tol: float = 1e-6,
    ) -> Evaluation:
        """The model as scores take it, fitted from five random starts."""
        data = self.compile(units, weight)
        starts = self.random_starts(data, rng, 5)
        return evaluation_from(starts, self.ascent, self.model, data, self.hidden, seed=seed, tol=tol)


class Case(ABC):
    """A family of models: what laws are tried on, k = 0, 1, ... of each size.

    Attributes
    ----------
    name : str
    lacks : mapping of str to str
        Names in `CAPABILITIES`, and why.
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
        "smc": {"n_runs": 16, "n_particles": 12, "n_steps": 32},
    }

    def __repr__(self) -> str:
        return self.name

    @property
    def forms(self) -> dict[str, posteriors.Form]:
        """The forms of q(theta) it can be fitted by."""
        return {name: form for name, form in FORMS.items() if name not in self.lacks}

    @abstractmethod
    def complete(self, rng: np.random.Generator, k: int) -> Instance:
        """Nothing hidden, or one label alone."""

    @abstractmethod
    def regular(self, rng: np.random.Generator) -> Instance:
        """Nothing hidden, and a maximum of the likelihood away from every edge."""

    @abstractmethod
    def tiny(self, rng: np.random.Generator, k: int) -> Instance:
        """So few rows that all that is hidden can be summed over; priors of every kind."""

    @abstractmethod
    def sampleable(self, rng: np.random.Generator, k: int) -> Instance:
        """As few rows, and priors under which short chains are as uncertain as they say."""

    @abstractmethod
    def some(self, rng: np.random.Generator, k: int, form: str = "vb") -> Instance:
        """Some dozen rows, missing cells in every other instance; a prior that the form has a fit under."""

    @abstractmethod
    def alike(self, rng: np.random.Generator, k: int) -> Instance:
        """About a dozen rows, labels that the prior does not tell apart."""

    @abstractmethod
    def pair(self, rng: np.random.Generator) -> Instance:
        """Two units or more, six rows, labels that the prior does not tell apart."""

    @abstractmethod
    def long(self, rng: np.random.Generator) -> Instance:
        """Units that chains and passes take in pieces."""

    @abstractmethod
    def many(self, rng: np.random.Generator, k: int) -> Instance:
        """Rows enough for several threads."""
