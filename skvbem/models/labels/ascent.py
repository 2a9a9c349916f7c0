"""Full steps of a model whose rows have one hidden label each: what mixtures and hidden Markov models share."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np

from skvbem.emissions.outside import likely_defect
from skvbem.errors import NoInteriorModeError
from skvbem.models.labels.model import LabeledRows, LabelModel

_Model = TypeVar("_Model", bound=LabelModel)


class EmissionAscent(Generic[_Model]):
    """Full steps of one model on its data, for one form of q(theta); see `skvbem.vbem.driver.Ascent`.

    Parameters
    ----------
    model : LabelModel
    data : LabeledRows
        As the model compiled them.
    form : Form
    n_threads : int
        Threads among which rows are shared; the result does not depend on it.
    """

    #: What the label of a row is called.
    label: str

    def __init__(self, model: _Model, data: LabeledRows, form: Any, n_threads: int = 1):
        self.model, self.data, self.form, self.n_threads = model, data, form, n_threads
        self.magnitude = model.magnitude(data)
        if not form.density and form.prior_share:  # of a log density, whose normalizer cancels what strong priors say
            self.magnitude += float(np.abs(model.prior.coordinates).sum())
        self.signed = model.prior.signed
        self.hyperprior = model.prior.hyperprior if form.density or form.prior_share else None

    def advance(self, statistics: np.ndarray, n_steps: int) -> np.ndarray:
        """Take full steps in place; see `skvbem.vbem.driver.Ascent`."""
        prior, trace = self.model.prior, np.full((n_steps, statistics.shape[1]), -np.inf)
        if self.hyperprior is not None:
            statistics[:] = prior.with_hyperparameters(statistics)
        live = np.flatnonzero((prior + statistics).is_valid)
        for step in range(n_steps):
            if not len(live):
                break
            at = statistics if len(live) == statistics.shape[1] else np.ascontiguousarray(statistics[:, live])
            try:
                natural, penalty = self.form.of(prior, at)
            except NoInteriorModeError:
                raise self.failure() from None
            expected, log_normalizer = self._expected(natural)
            trace[step, live] = log_normalizer + penalty
            statistics[:, live] = expected
        return trace

    def _expected(self, natural: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Expected statistics of rows and of hidden hyperparameters, which belong to no row, and ln Z of both, nats."""
        expectation = self.model.expect(natural, self.data, self.n_threads)
        if self.hyperprior is None:
            return expectation.statistics, expectation.log_normalizer
        statistics, log_normalizer = self.hyperprior.expect(natural)
        return expectation.statistics + statistics, expectation.log_normalizer + log_normalizer

    def expect(self, natural: np.ndarray) -> np.ndarray:
        """Expected statistics (n_cells, n_lanes) under natural parameters of the same shape."""
        return self._expected(natural)[0]

    @property
    def suspicion(self) -> str | None:
        """Where the defect is if the objective falls: in an emission from outside, if the model has one."""
        emission = getattr(self.model, "emission", None)
        return None if emission is None else likely_defect(emission)

    def failure(self) -> Exception:
        """Why the objective of a plain step may not be a number."""
        if self.form.lowered_by:
            return NoInteriorModeError(
                f"The posterior has no interior mode in the probability basis: some {self.label} has too little data "
                "for its prior. Use map_basis='natural', where the mode always exists, or a stronger prior."
            )
        return FloatingPointError(
            "The objective is not a number. " + (self.suspicion or "That is a defect: please report it with the data.")
        )
