r"""The obligations of a model: a prior, and an E step that is exact given expected natural parameters.

A latent variable model here is conjugate exponential, :math:`\ln p(x, y \mid \theta) = \phi(\theta) \cdot u(x, y) +
\ln f(x, y)`, with a prior :math:`p(\theta)` conjugate to it. Then q(theta) is the prior after expected statistics, and
q(x) the posterior of the hidden variables at expected natural parameters [Beal theorem 2.2]. So the one loop
(`skvbem.vbem`) and every form of q(theta) need of a model no more than `LatentModel` has.

What scores may ask beyond are the capabilities of `skvbem.capabilities`, which the room of a model composes over it in
its `capabilities.py`; `skvbem.models.registry` lists the models. The E step, `LatentModel.expect`, comes first: what is
not here (families, forms, convergence, restarts, scores) no model needs to know.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from math import exp, floor, log
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np

from skvbem.ascent import Ascent
from skvbem.blocks import map_reduce
from skvbem.errors import NoInteriorModeError

# Of each term of a sum, what rounding may add to it.
_ROUNDING = 8 * np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class Expectation:
    """The outcome of an E step: expected statistics, and ln Z of q(x).

    Parameters
    ----------
    statistics : ndarray of shape (n_cells, n_lanes)
    log_normalizer : ndarray of shape (n_lanes,)
        Nats; at the natural parameters of a point the log likelihood.
    is_exact : bool, default=True
        Whether the log normalizer is exact; else it is a lower bound, and so is the objective of the loop, while scores
        that take the likelihood of a point refuse the model.
    expansion : object, optional
        Other coordinates of hidden variables, if these can be had: an `Expansion`, or what the model's own steps take.
    """

    statistics: np.ndarray
    log_normalizer: np.ndarray
    is_exact: bool = True
    expansion: Any = None

    def __add__(self, other: Expectation) -> Expectation:
        """The outcome for the rows of both, in the coordinates of hidden variables that both have."""
        log_normalizer = self.log_normalizer + other.log_normalizer
        return Expectation(self.statistics + other.statistics, log_normalizer, self.is_exact and other.is_exact)


@dataclass(eq=False)  # not frozen, as one is made in every step
class EStep:
    """The E step of a model at natural parameters as a value, which pickles: it goes to where rows are.

    Called with compiled rows, a part of the data, it returns their sums, which `skvbem.blocks.map_reduce` adds. A model
    whose sums are more than expectations has an E step of its own.

    Parameters
    ----------
    model : LatentModel
    natural : ndarray of shape (n_cells, n_lanes)
    n_threads : int, default=1
        Threads among which the rows of a part may be shared; the result does not depend on it.
    """

    model: LatentModel
    natural: np.ndarray
    n_threads: int = 1

    def __call__(self, part: Any) -> Any:
        """The sums of compiled rows."""
        return self.model.expect(self.natural, part, self.n_threads)

    def finished(self, sums: Any) -> Expectation:
        """The outcome of the E step from the sums of all parts."""
        return sums

    def over(self, parts: Any) -> Expectation:
        """The outcome of the E step for all rows, `Blocks` or a sequence of compiled parts."""
        return self.finished(map_reduce(self, parts))


@dataclass(frozen=True, eq=False)
class DataInParts:
    """Rows that were compiled part by part, perhaps elsewhere: what a fit asks of rows in one piece, of several.

    Parameters
    ----------
    table : Table or None
        Without rows; what an emission must know of all.
    parts : Blocks or sequence
        Compiled rows, the same whenever they are iterated.
    n_rows : int
    total_weight : float
        The n of every score.
    has_whole_weights : bool
    """

    table: Any
    parts: Any
    n_rows: int
    total_weight: float
    has_whole_weights: bool = True

    #: Scores cannot look at rows one by one.
    rows_are_in_memory = False

    def __len__(self) -> int:
        return self.n_rows

    def blocks(self, size: int) -> Iterator[tuple[Any, np.ndarray]]:
        """Tables of at most so many rows, and the weights of these."""
        for part in self.parts:
            yield from part.blocks(size)


class Expansion(Protocol):
    """A linear map of hidden variables, with parameters that undo it: the data's distribution stays as it is.

    A parameter expansion [Liu, Rubin & Wu 1998; Luttinen & Ilin 2010]: an ascent takes the map where its bound rises.
    """

    gain: np.ndarray
    """Gain of the entropy of hidden variables and of their expected log density by the map, nats, (n_lanes,)."""

    def statistics(self, cells: np.ndarray) -> np.ndarray:
        """Statistics (n_cells, n_lanes) of an emission, after the map."""
        ...

    def natural(self, cells: np.ndarray) -> np.ndarray:
        """Natural parameters (n_cells, n_lanes) of an emission, after the map."""
        ...

    def further(self, given: np.ndarray, statistics: np.ndarray, natural: np.ndarray) -> Expansion:
        """The map and another one after it, to where the bound is higher, if it is no more than a small change of it.

        Parameters
        ----------
        given : ndarray of shape (n_cells, n_lanes)
            Coordinates of the emission's prior given hyperparameters, after the map as all others here.
        statistics : ndarray of shape (n_cells, n_lanes)
        natural : ndarray of shape (n_cells, n_lanes)
            What is expected at these statistics under this prior.
        """
        ...


class LatentModel(ABC):
    """A model with hidden variables, and its prior.

    Attributes
    ----------
    prior : ConjugateFamily
        p(theta), a single family or a product of them.
    """

    prior: Any

    @abstractmethod
    def compile(self, *args: Any, **options: Any) -> Any:
        """Rows of data made ready for many E steps, with `total_weight` and `has_whole_weights`.

        What rows are, and what else there is to say of them, is the model's own.
        """

    @abstractmethod
    def expect(self, natural: np.ndarray, data: Any, n_threads: int = 1) -> Expectation:
        """The E step under natural parameters that need not be normalized [Beal (2.54)].

        Law: the derivatives of the log normalizer by the natural parameters are the expected statistics.

        Parameters
        ----------
        natural : ndarray of shape (n_cells, n_lanes)
            Of several points or posteriors side by side, independent of each other.
        data : object
            As `compile` made them.
        n_threads : int, default=1
            Threads among which rows may be shared; the result does not depend on it.
        """

    def e_step(self, natural: np.ndarray, data: Any, n_threads: int = 1) -> EStep:
        """The E step at natural parameters (n_cells, n_lanes) as a value: sums of a part, and the outcome of all.

        The data say what must be known of all rows, and no more.
        """
        return EStep(self, natural, n_threads)

    @abstractmethod
    def magnitude(self, data: Any) -> float:
        """Size of the terms whose sum is the log normalizer, nats: the scale of its rounding."""

    def rounding(self, form: Any, statistics: np.ndarray) -> np.ndarray:
        """Largest change of the objective of a form of q(theta) by rounding at statistics (n_cells, n_lanes), nats.

        Statistics times natural parameters are what cancels in it. These products are far larger than the sum where a
        component is narrow beside its distance from the origin and counts much: squares about the origin then hold few
        digits of those about its mean.
        """
        natural, _ = form.of(self.prior, statistics)
        with np.errstate(over="ignore", invalid="ignore"):
            return _ROUNDING * np.abs(statistics * natural).sum(axis=0)

    def started(self, statistics: np.ndarray) -> np.ndarray:
        """Statistics of rows (n_cells, ...) with those of hidden hyperparameters at their prior means: a start."""
        if self.prior.hyperprior is None:
            return statistics
        return statistics + self.prior.hyperprior.prior_statistics.reshape(-1, *(1 for _ in statistics.shape[1:]))

    def with_design_of(self, data: Any) -> Self:
        """The model whose covariates of hidden variables, if there are any, are those of other rows."""
        return self

    def with_more_rows(self, statistics: np.ndarray, data: Any) -> Self:
        """The model whose covariates of hidden variables, if any, are those of rows that made statistics, and more."""
        return self

    def rotation_tangents(self, natural: np.ndarray) -> np.ndarray:
        """Tangents of rotations of continuous hidden variables, in natural parameters (n_cells,); none here.

        The likelihood stays as it is along each of them, so that priors alone say where on them parameters are.

        Returns
        -------
        ndarray of shape (n_cells, n_rotations)
        """
        return np.zeros((len(natural), 0))

    def with_room_for(self, statistics: np.ndarray, data: Any) -> tuple[Self, np.ndarray]:
        """The model and statistics (n_cells,) of earlier rows, with cells for all values of more rows.

        They are the same unless cells of an emission depend on values. Data are then to be compiled again.
        """
        return self, statistics

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why the model lacks capabilities that have no meaning for it, in sentences, by their names."""
        return {}

    def updated(self, statistics: np.ndarray) -> Self:
        """The model whose prior is the posterior of this one, given statistics (n_cells,) [Beal (2.114)]."""
        return self.with_prior(self.prior + statistics)

    def with_prior(self, prior: Any) -> Self:
        """The model with another prior of the same family."""
        later = copy(self)
        later.prior = prior
        return later

    def for_run(self) -> Self:
        """The model of one run, whose prior may remember what the run has reached; itself if there is nothing to."""
        prior = self.prior.for_run()
        return self if prior is self.prior else self.with_prior(prior)

    def with_known_hyperparameters(self) -> Self:
        """The model whose hidden hyperparameters are known, and at their prior means; itself if none are hidden."""
        if self.prior.hyperprior is None:
            return self
        return self.with_prior(self.prior.with_known_hyperparameters())

    @property
    def n_cells(self) -> int:
        """Numbers that statistics take."""
        return len(self.prior.coordinates)

    @property
    def n_free_parameters(self) -> int:
        """Parameters that are free: those that the data can tell apart, where a turn of others changes nothing."""
        return self.prior.n_free_parameters


def in_words(log_n: float) -> str:
    """A number of any size, from its logarithm, for a message."""
    if log_n < log(1e15):
        return f"{exp(log_n):.4g}"
    power = floor((log_n - log(0.9995)) / log(10.0))  # what two digits round to 10.00 of a power is 1.00 of the next
    return f"{exp(log_n - power * log(10.0)):.2f}e+{power}"


def no_closed_form(what: str) -> ValueError:
    """The error of an exact evidence that cannot be had, since that of rows with known labels has no closed form."""
    return ValueError(
        f"The exact evidence of {what} is an integral that has no closed form: over missing cells of a Gaussian with a "
        "full or tied covariance, or over what else an emission hides in a row. For the former take "
        "covariance_type='diag' or 'spherical', or fill or leave out the rows. Scores such as 'ais' approximate it."
    )


_Model = TypeVar("_Model", bound=LatentModel)
# Weight of all rows above which squares about an origin may have no digit left of those about a mean.
_LARGEST_WEIGHT = 1e12


class ModelAscent(Ascent, Generic[_Model]):
    """Full steps of one model on its data, for one form of q(theta); see `skvbem.ascent.Ascent`.

    Parameters
    ----------
    model : LatentModel
    data : object
        As the model compiled them.
    form : Form
    n_threads : int
        Threads among which rows are shared; the result does not depend on it.
    """

    #: What has a prior of its own, in messages.
    label: str

    def __init__(self, model: _Model, data: Any, form: Any, n_threads: int = 1):
        if not form.prior_share:  # maximum likelihood asks no prior, and what is proposed to it knows of none hidden
            model = model.with_known_hyperparameters()
        model = model.for_run()
        self.model, self.data, self.form, self.n_threads = model, data, form, n_threads
        self.magnitude = model.magnitude(data)
        if not form.density and form.prior_share:  # of a log density, whose normalizer cancels what strong priors say
            self.magnitude += float(np.abs(model.prior.coordinates).sum())
        self.signed = model.prior.signed
        self.hyperprior = model.prior.hyperprior

    def advance(self, statistics: np.ndarray, n_steps: int) -> np.ndarray:
        """Take full steps in place; see `skvbem.ascent.Ascent`."""
        prior, trace = self.model.prior, np.full((n_steps, statistics.shape[1]), -np.inf)
        posterior = prior + statistics
        live = np.flatnonzero(posterior.is_valid)
        known = posterior if len(live) == statistics.shape[1] else None
        for step in range(n_steps):
            if not len(live):
                break
            at = statistics if len(live) == statistics.shape[1] else np.ascontiguousarray(statistics[:, live])
            try:
                natural, penalty = self.form.of(prior, at, known)
                expected, known, log_normalizer = self._expected(natural)
            except (NoInteriorModeError, np.linalg.LinAlgError):  # rounding makes singular what is not
                raise self.failure() from None
            trace[step, live] = log_normalizer + penalty
            statistics[:, live] = expected
        return trace

    def _expected(self, natural: np.ndarray) -> tuple[np.ndarray, Any, np.ndarray]:
        """Expected statistics of rows and of hidden hyperparameters, which belong to no row.

        With them the posterior at these statistics, if it is known, and ln Z of both, nats.
        """
        parts = getattr(self.data, "parts", (self.data,))
        expectation = self.model.e_step(natural, self.data, self.n_threads).over(parts)
        expected, log_normalizer = expectation.statistics, expectation.log_normalizer
        if self.hyperprior is None and expectation.expansion is None:
            return expected, None, log_normalizer
        hidden = np.zeros(natural.shape)
        if self.hyperprior is not None:
            hidden, hyperparameter_terms = self.hyperprior.expect(natural)
            log_normalizer = log_normalizer + hyperparameter_terms
        if expectation.expansion is not None:
            return *self._expanded(expected, hidden, natural, expectation.expansion), log_normalizer
        return expected + hidden, None, log_normalizer

    def _expanded(
        self, statistics: np.ndarray, hidden: np.ndarray, natural: np.ndarray, expansion: Expansion
    ) -> tuple[np.ndarray, Any]:
        """Statistics of rows and of what is hidden, in coordinates in which the bound rises, and the posterior there.

        Hidden hyperparameters are given in the coordinates that rows have. The posterior is None if it is not known.
        """
        raise NotImplementedError

    def expect(self, natural: np.ndarray) -> np.ndarray:
        """Expected statistics (n_cells, n_lanes) under natural parameters of the same shape."""
        return self._expected(natural)[0]

    def rounding(self, statistics: np.ndarray) -> np.ndarray:
        """Largest change of the objective by rounding at statistics (n_cells, n_lanes), nats, (n_lanes,)."""
        return self.model.rounding(self.form, statistics)

    def failure(self) -> Exception:
        """Why the objective of a plain step may not be a number."""
        if self.form.lowered_by:
            return NoInteriorModeError(
                f"The posterior has no interior mode in the probability basis: some {self.label} has too little data "
                "for its prior. Use map_basis='natural', where the mode always exists, or a stronger prior."
            )
        if self.data.total_weight > _LARGEST_WEIGHT:
            return FloatingPointError(
                f"The objective is not a number: the weights of the rows add up to {self.data.total_weight:g}, and "
                f"squares summed over so many rows hold no digit of how wide a narrow {self.label} is. Divide "
                "'sample_weight' by a common factor."
            )
        return FloatingPointError(
            "The objective is not a number. "
            + (self.suspicion or f"That is a defect of {type(self.model).__name__}: please report it with the data.")
        )
