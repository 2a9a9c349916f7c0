"""The variational lower bound itself [BG (5), (10); Beal (2.94), (2.103)]."""

from __future__ import annotations

from skvbem.evidence.aliasing import alias_gain
from skvbem.evidence.base import Evidence
from skvbem.evidence.evaluation import Evaluation


def lower_bound(evaluation: Evaluation, *, alias: bool = False) -> Evidence:
    """The objective of the VB fit: never above the log marginal likelihood, equal to it where nothing is hidden.

    Parameters
    ----------
    evaluation : Evaluation
    alias : bool, default=False
        Whether q is mixed over all relabelings, which stays a bound; see `skvbem.evidence.aliasing.alias_gain`.
    """
    fit, prior = evaluation.fit("vb"), evaluation.model.prior
    gain = 0.0
    if alias:
        gain = alias_gain(evaluation, (prior + fit.statistics).expected_natural(), fit.statistics)
    return Evidence(
        fit.objective + gain,
        "lower_bound",
        is_lower_bound=True,
        form="vb",
        n_free_parameters=prior.n_free_parameters,
        n_samples=evaluation.n_samples,
        details={"alias": gain, "converged": fit.converged},
    )
