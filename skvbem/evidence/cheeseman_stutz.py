r"""Scores of completed data: Cheeseman-Stutz and MLED [CH (13), §2; Beal §2.6.2].

At any point theta, with expected counts N and H the entropy of the hidden variables given theta,

.. math::

    \mathrm{CS}(\theta) = \ln \mathrm{BD}(\bar N) + L(\theta) - \sum \bar N \ln\theta = \ln \mathrm{BD}(\bar N) + H,

which is the lower bound right after an M step from q(x) = p(x | y, theta) [Beal (2.151)]: a bound for every theta,
below the converged variational one. MLED = ln BD(N) = CS - H leaves the entropy out.

Of other families than tables ln BD(N) stands for the log evidence of complete data whose statistics are the expected
ones. Hidden hyperparameters are integrated out of it: a bound as before, since the logarithm of an integral of
:math:`e^{N \cdot \phi(\theta)}` is convex in N, but no longer below the variational one, which has a q(nu).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skvbem._numerics import times_log
from skvbem.evidence.aliasing import alias_correction, alias_gain
from skvbem.evidence.asymptotic import dimension_of
from skvbem.evidence.base import Evidence, needs_exact_inference
from skvbem.evidence.evaluation import Evaluation
from skvbem.families.integrated_evidence import IntegratedEvidence


def cheeseman_stutz(
    evaluation: Evaluation, *, form: str = "map", corrected: bool = False, alias: bool = False
) -> Evidence:
    """The Cheeseman-Stutz score at a point estimate, a lower bound.

    Parameters
    ----------
    evaluation : Evaluation
    form : {"map", "map_probability", "ml", "vb"}, default="map"
    corrected : bool, default=False
        CS†: adds (d' - d)/2 ln n, where d' counts free parameters and d is the identifiable dimension. No bound then,
        unless d = d'.
    alias : bool, default=False
        Whether q is mixed over all relabelings, which stays a bound (see `skvbem.evidence.aliasing.alias_gain`); with
        `corrected`, whether ln of their number is added.
    """
    completed = _completed(evaluation, form, "cheeseman_stutz")
    value, kind, d = completed.log_bd + completed.entropy, "cheeseman_stutz", evaluation.model.prior.n_free_parameters
    if corrected:
        free, d, kind = d, dimension_of(evaluation, "identifiable"), "cheeseman_stutz_dagger"
        value += 0.5 * (free - d) * np.log(evaluation.n_samples)
        gain = alias_correction(evaluation) if alias else 0.0
    else:
        gain = completed.alias_gain(evaluation) if alias else 0.0
    return completed.evidence(evaluation, float(value + gain), kind, not corrected, d, gain)


def mled(evaluation: Evaluation, *, form: str = "map", alias: bool = False) -> Evidence:
    """The log evidence of the expected complete data; see `cheeseman_stutz`, which it never passes.

    Measurements on which others hang, where they are missing, stay what they are in the bound, hidden variables with an
    entropy: a density of them would depend on their unit.

    Raises
    ------
    ValueError
        If hidden variables have densities, whose entropy is negative: without it this is no bound.
    """
    completed = _completed(evaluation, form, "mled")
    if completed.entropy < 0:
        raise ValueError(
            f"The score 'mled' leaves out the entropy of hidden variables, and is no bound here: states of "
            f"{type(evaluation.model).__name__} have densities, whose entropy depends on their unit and is "
            f"{completed.entropy:.4g} nats. Take 'cheeseman_stutz'."
        )
    gain = completed.alias_gain(evaluation) if alias else 0.0
    d = evaluation.model.prior.n_free_parameters
    return completed.evidence(evaluation, completed.log_bd + gain, "mled", True, d, gain)


@dataclass(frozen=True, eq=False)
class _Completed:
    """Expected statistics at a point, the log evidence of such data, and the entropy of the hidden states there.

    There are no statistics to say q(theta) by, but a standard error of the evidence, where hyperparameters are hidden.
    """

    form: str
    log_point: np.ndarray
    counts: np.ndarray | None
    log_bd: float
    entropy: float
    error: float | None

    def alias_gain(self, evaluation: Evaluation) -> float:
        return alias_gain(evaluation, self.log_point, self.counts)

    def evidence(self, evaluation, value, kind, is_lower_bound, d, gain) -> Evidence:
        return Evidence(
            value,
            kind,
            is_lower_bound=is_lower_bound,
            standard_error=self.error,
            form=self.form,
            n_free_parameters=d,
            n_samples=evaluation.n_samples,
            details={"log_bd": self.log_bd, "entropy": self.entropy, "alias": gain},
        )


def _completed(evaluation: Evaluation, form: str, kind: str) -> _Completed:
    if form != "vb" and not evaluation.is_exact:
        raise needs_exact_inference(kind)
    log_evidence = evaluation.capability("complete_evidence", f"The score {kind!r}")
    natural = evaluation.model.prior.natural(evaluation.point(form))
    counts, log_z = evaluation.expectation(natural, f"The score {kind!r}", of_clusters=True)
    is_integrated = isinstance(log_evidence, IntegratedEvidence)
    log_bd, error = log_evidence.with_error(counts) if is_integrated else (float(log_evidence(counts)), None)
    bound = float(log_z - times_log(counts, natural).sum()) + log_bd
    entropy = evaluation.capability("entropy")(natural, evaluation.data)
    if -1e-9 * (1 + abs(log_z)) < entropy < 0:  # of states that are counted, below 0 by rounding alone
        entropy = 0.0
    return _Completed(form, natural, None if is_integrated else counts, bound - entropy, entropy, error)
