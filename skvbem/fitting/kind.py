"""`Kind`: one value that says how models of an estimator are read, made, started and shown.

An estimator has parameters, signatures and docstrings; `skvbem.fitting.fit` has the one path of a fit. In between
stands the kind of the estimator. Its functions get the estimator, whose parameters they read, and hold nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import numpy as np

from skvbem.evidence import DEFAULT_SCORE
from skvbem.fitted.base import Fitted
from skvbem.optima.plan import FitMethod, FitPlan
from skvbem.reading.base import Reading
from skvbem.vbem.fit import Fit


class Kind(ABC):
    """A kind of model, between the parameters of an estimator and the path of a fit."""

    #: Steps, moves and stages of such fits.
    method: ClassVar[FitMethod]
    #: A fit of this kind as a value.
    fitted: ClassVar[type[Fitted]]
    #: Names of the arguments, beside X and weights, by which rows are found.
    located_by: ClassVar[tuple[str, ...]] = ()
    #: Parameters of the estimator on which a reading depends: fits that have them alike can share one.
    reading_parameters: ClassVar[frozenset[str]] = frozenset({"categories", "missing_values", "handle_unknown"})
    #: Parameters of the estimator that are its prior.
    prior_parameters: ClassVar[tuple[str, ...]] = ()
    #: The score of a search that names none.
    default_score: ClassVar[str] = DEFAULT_SCORE

    # X ------------------------------------------------------------------------------------------------------------

    def adapted(self, estimator, reading: Any) -> Any:
        """A reading that another estimator of the kind may have made, as this one takes it."""
        return reading

    @abstractmethod
    def read(self, estimator, X, sample_weight, columns: Any, where: Mapping[str, Any]) -> Reading:
        """The reading of X; `columns` are those of an earlier fit, or None where they are learned."""

    def check(self, estimator, X) -> None:
        """Refuse parameters that contradict each other, or X."""
        if self.learns_prior(estimator) and estimator.method != "vb":
            raise ValueError(
                f"learn_prior=True of {type(estimator).__name__} needs method='vb', whose bound decides. Got "
                f"method={estimator.method!r}."
            )

    def check_y(self, y, reading: Any) -> None:
        """Refuse a y that is ignored and cannot be meant so."""
        return None

    # The model, its data, its starts ------------------------------------------------------------------------------

    @abstractmethod
    def model(self, estimator, reading: Any) -> Any:
        """The model to fit."""

    @abstractmethod
    def compiled(self, estimator, model, reading: Any, n_starts: int) -> Any:
        """Rows of a reading as the model takes them."""

    @abstractmethod
    def starts(self, estimator, model, data, reading: Any, seed: tuple[int, ...]) -> Any:
        """The `starts` of a `FitPlan` that the `init` parameter names."""

    @abstractmethod
    def start_from(self, last: Any, model, data, reading: Any) -> np.ndarray:
        """Statistics (n_cells,) of the last solution, a `Fitted`, to go on from."""

    def leads_nowhere(self, fitted: Any) -> bool:
        """True if a fit is a stationary point whatever the data: what is hidden, such as factors, changes no row."""
        return False

    def new_starts(self, plan: FitPlan, seed: tuple[int, ...]) -> Any:
        """Starts like those of a plan, for other data."""
        return plan.starts

    def best_fit(self, estimator, model, data, reading: Any, run: Any) -> tuple[Any, FitPlan, Fit, dict]:
        """The model, the plan of its fit, the best fit, and published attributes about the search; `run` is a `Run`."""
        plan = run.plan(model)
        return model, plan, plan.run(model, data, run.form, **run.options), {}

    def learns_prior(self, estimator) -> bool:
        """True if strengths of the prior are learned."""
        return estimator.learn_prior

    def inverse_temperatures(self, estimator) -> tuple[float, ...]:
        """Inverse temperatures of annealed steps before a run."""
        return ()

    def limits(self, estimator) -> dict[str, Any]:
        """Limits of the size of a question about rows, by keyword."""
        return {}

    def data_for_scores(self, data, fit: Fit) -> Any:
        """The data of a fit as its scores take them."""
        return data

    # What is published, said and warned of ------------------------------------------------------------------------

    def presentation(self, estimator, reading: Any) -> dict[str, Any]:
        """Fields of the fitted value that change how it is shown, not the fit."""
        return {}

    @abstractmethod
    def attributes(self, fitted: Any) -> dict[str, Any]:
        """Published attributes of the fitted model."""

    def data_attributes(self, fitted, reading, data, before: Mapping[str, Any] | None) -> dict[str, Any]:
        """Published attributes of the data of a fit; `before` holds those of earlier batches."""
        return {}

    def warn_of_data(self, estimator, reading, model, data) -> None:
        """Warn of oddities in data, before they are fitted."""
        return None

    def warn_of_fit(self, estimator, fitted, data) -> None:
        """Warn of oddities in a fit."""
        return None

    def reservations(self, fitted: Any) -> list[str]:
        """Reasons to read a fit with care, as sentences of its summary."""
        return []

    @abstractmethod
    def title(self, fitted: Any) -> str:
        """The model in words."""

    def prior_in_words(self, estimator, columns: Any) -> str:
        """The prior of a fit in words: the parameters that it is made of, but for those that are None."""
        values = {name: getattr(estimator, name) for name in self.prior_parameters}
        words = [f"{name}={value!r}" for name, value in values.items() if value is not None]
        return ", ".join([*words, *(["strengths learned"] if self.learns_prior(estimator) else [])])

    # Scores -------------------------------------------------------------------------------------------------------

    @abstractmethod
    def hidden(self, fitted: Any) -> tuple:
        """Names of the nodes that are never observed."""

    @abstractmethod
    def drawn_like(self, like: Any, model, point, rng: np.random.Generator) -> Any:
        """As many values as a reading has, drawn from the model at a point."""

    def log_point(self, fitted: Any, tables: Mapping, owner: str) -> np.ndarray:
        """Log parameters (n_cells,) of tables that a user gives to a score."""
        raise TypeError(f"Scores of {owner} take no parameters. Leave 'tables' out.")


class HasKind(Protocol):
    """An estimator of this library, as the path of a fit knows it beside its parameters."""

    @property
    def _kind(self) -> Kind: ...


def find_kind(estimator: Any) -> Kind | None:
    """The kind of models that an estimator fits; None where it is no estimator of this library."""
    return estimator._kind if hasattr(type(estimator), "_kind") else None


def kind_of(estimator: HasKind | Any) -> Any:
    """The kind of models that an estimator fits, a `Kind`."""
    return estimator._kind
