"""Full steps of a model on its data for one form of q(theta): M step, E step, and a basis of what is hidden."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np

from skvbem.ascent import Ascent
from skvbem.errors import NoInteriorModeError
from skvbem.models.base import Expansion, LatentModel

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
