"""A model as fitted, and how it was fitted: what every question after `fit` is put to; of sequences, too."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import logsumexp

from skvbem._lazy import cached_property
from skvbem.emissions.base import of_draw
from skvbem.fitted.parameter_tables import ParameterTable
from skvbem.fitted.under_fit import UnderFit
from skvbem.optima.plan import FitPlan
from skvbem.reading.base import Extent, Reading
from skvbem.vbem.fit import Fit
from skvbem.vbem.posteriors import MAP, Form

#: Arrays by group of columns, or of other parameters, and by name.
Parameters = dict[str, dict[Any, np.ndarray]]
#: Lower and upper ends of intervals, in the same order.
Intervals = dict[str, dict[Any, tuple[np.ndarray, np.ndarray]]]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model as fitted: its columns, its prior, and the statistics of the data.

    Parameters
    ----------
    columns : ColumnGroups or CategoryEncoder
    model : model
        With the prior as learned.
    form : Form
        Of q(theta).
    statistics : ndarray of shape (n_cells,)
        Expected, of all data seen.
    seed : tuple of int
        Of the fit, from which draws follow where none is given.
    drawn : ndarray of shape (n_cells,), optional
        Natural parameters of a draw that stands in place of the point.
    given : object, optional
        A point that a user gave in place of one that a fit finds; the statistics are then 0.
    """

    columns: Any
    model: Any
    form: Form
    statistics: np.ndarray
    seed: tuple[int, ...] = ()
    drawn: np.ndarray | None = None
    given: Any = None

    @abstractmethod
    def continues(self, columns, model) -> bool:
        """True if statistics of a fit of another model to columns so read mean the same."""

    def for_new_rows(self) -> Self:
        """The fit as it answers about rows of which nothing is known beside X."""
        return self

    def identified(self) -> Self:
        """The fit with an order and signs of its own of what is hidden, where several are as good; as it is without."""
        return self

    def known_from(self, reading: Any) -> Self:
        """The fit with what its data say of their hidden variables, such as known labels; without any as it is."""
        return self

    def paid(self, reading: Any, weight: np.ndarray | None) -> float:
        """The price, nats, of what the rows of the fit have chosen, with weights (n_rows,); 0 if nothing."""
        return 0.0

    def damage(self) -> str:
        """The fault of a fit that was loaded, as far as its arrays show it; empty if it is sound."""
        statistics, n_cells = self.statistics, self.model.n_cells
        if getattr(statistics, "shape", None) != (n_cells,) or statistics.dtype != np.float64:
            return f"its model has {n_cells} cells, and its statistics are not {n_cells} floats"
        if not np.isfinite(statistics).all():
            return "its statistics are not finite"
        if self.form.density and not np.all(self.posterior.is_valid):
            return "its statistics make no posterior density"
        if self.given is not None and self.model.prior.natural(self.given).shape != (n_cells,):
            return f"its model has {n_cells} cells, and the parameters that were given are not those of as many"
        return ""

    @cached_property
    def posterior(self):
        """q(theta) of VB."""
        return self.model.prior + self.statistics

    def at(self, natural: np.ndarray) -> Self:
        """The model at a point that was drawn, natural parameters (n_cells,), in place of the fit."""
        return replace(self, form=MAP, drawn=natural)

    @cached_property
    def point(self) -> Any:
        """The point found (MAP, ML), that of q(theta), or one that was given or drawn."""
        if self.given is not None:
            return self.given
        return self._found_point() if self.drawn is None else self.model.prior.from_natural(self.drawn)

    def drawn_point(self, rng: np.random.Generator) -> Any:
        """A point drawn from q(theta); the point found, or given, where there is no density."""
        return self.posterior.sample(rng) if self.form.density else self.point

    def check_was_found(self, what: str, owner: str) -> None:
        """Refuse what needs data where parameters were given in their place."""
        if self.given is not None:
            raise ValueError(
                f"{what} needs a fit to data. The parameters of this {owner} were given, so that there is no doubt of "
                "them, and no data that they are from. Fit data for it."
            )

    @property
    def natural_of_q(self) -> np.ndarray:
        """Natural parameters of q(theta), expected ones of a density, (n_cells,)."""
        if self.given is not None:
            return self.model.prior.natural(self.given)
        return self.form.of(self.model.prior, self.statistics[:, None])[0][:, 0]

    @abstractmethod
    def _found_point(self) -> Any:
        """The point of the form at the statistics."""

    @abstractmethod
    def named_parameters(self, point: Any) -> Parameters:
        """The parameters of a point, as users know them: by group, and by name within it."""

    @abstractmethod
    def quantiles(self, probability: float) -> Parameters:
        """Quantiles of q(theta) of each parameter by itself, by group and name, where they have a closed form."""

    #: Operations of a Gibbs sweep for each row and free parameter, of about a nanosecond.
    sweep_cost: ClassVar[float] = 1.0
    #: Times the operations that linear response takes for labels.
    response_cost: ClassVar[float] = 1.0

    @abstractmethod
    def report(self, intervals: Intervals | None) -> list[ParameterTable]:
        """The parameters of the fit as tables for readers, with intervals by group and name, if there are any."""

    @abstractmethod
    def under_fit(self, reading: Any, **limits: Any) -> UnderFit:
        """Likelihoods and cells of rows or sequences in memory at the point of the model, for fit indices."""

    def judged(self, natural: np.ndarray) -> np.ndarray:
        """Numbers (n_numbers, n_draws) by which chains of natural parameters (n_cells, n_draws) are judged."""
        return natural

    def parameters_of_draws(self, natural: np.ndarray) -> Parameters:
        """Parameters at natural parameters (n_cells, n_draws), by group and name, each (n_draws, ...)."""
        points = self.model.prior.from_natural(natural)
        each = [self.named_parameters(of_draw(points, k)) for k in range(natural.shape[1])]
        return {
            group: {name: np.stack([one[group][name] for one in each]) for name in of_group}
            for group, of_group in each[0].items()
        }


@dataclass(frozen=True, eq=False)
class FittedSequences(Fitted):
    """A model of sequences as fitted."""

    def natural(self, predictive: str) -> np.ndarray:
        """Natural parameters under which states are found, (n_cells,): at the published point, or those of VB."""
        if predictive == "vb" and self.form.density:
            return self.posterior.expected_natural()
        return self.model.prior.natural(self.point)

    def draws(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        """Natural parameters drawn from q(theta), (n_cells, n_draws); the first ones the same however many."""
        drawn = [self.model.prior.natural(self.posterior.sample(each)) for each in rng.spawn(n_draws)]
        return np.stack(drawn, axis=1)

    def log_predictive(self, data: Any, predictive: str, n_draws: int) -> tuple[np.ndarray, np.ndarray]:
        """Log predictive probabilities of sequences, and their standard errors, nats, (n_sequences,)."""
        if predictive != "average" or not self.form.density:
            log_probabilities = self.model.log_normalizers_of_sequences(self.natural(predictive), data)
            return log_probabilities, np.zeros(len(log_probabilities))
        naturals = self.draws(n_draws, self.rng_of_draws)
        logs = np.stack([self.model.log_normalizers_of_sequences(each, data) for each in naturals.T])
        log_probabilities = logsumexp(logs, axis=0) - np.log(n_draws)
        with np.errstate(invalid="ignore"):
            share = np.exp(logs - log_probabilities)  # of mean 1
            error = np.sqrt(((share - 1) ** 2).sum(axis=0) / (n_draws * max(n_draws - 1, 1)))
        return log_probabilities, np.where(np.isfinite(log_probabilities), error if n_draws > 1 else np.nan, 0.0)

    @property
    def rng_of_draws(self) -> np.random.Generator:
        """Random numbers of the draws that predictions average over, the same at every call."""
        return np.random.default_rng([*self.seed, 2**31 + 1])


@dataclass(frozen=True, eq=False)
class FittedRun:
    """The run that made a fit, and a description of its data, for scores that follow.

    Parameters
    ----------
    fit : Fit
    plan : FitPlan
    note : str
        What its scores are conditional on.
    fingerprint : str
        Of the reading.
    extent : Extent, optional
        How much data it was.
    prior : str
        In words.
    """

    fit: Fit
    plan: FitPlan
    note: str = ""
    fingerprint: str = ""
    extent: Extent | None = None
    prior: str = ""

    def of(self, reading: Reading, prior: str) -> Self:
        """The run with what is kept of the data, and of the prior, once they are gone."""
        return replace(self, fingerprint=reading.fingerprint, extent=reading.extent, prior=prior)


@dataclass(frozen=True, eq=False)
class Solved:
    """The best fit to a reading, before it is published.

    Parameters
    ----------
    fitted : Fitted
    data : object
        As the model compiled them.
    run : FittedRun
    state : dict
        Attributes that tell of the way there.
    """

    fitted: Any
    data: Any
    run: FittedRun
    state: dict
