r"""Laplace's approximation: a Gaussian at the MAP point, in natural coordinates or in probabilities [CH (8); CH97].

.. math::

    \ln p(y \mid \hat\theta) + \ln p(\hat\theta) + \tfrac{d}{2}\ln 2\pi - \tfrac12 \ln\det A,

A the negative Hessian of the log posterior, exact by Louis' identity: what a posterior after the expected statistics
would have, for which the family is asked, less the covariance of the scores of complete data given what was observed,
for which the model is asked. Of tables, with N expected counts and lambda the prior, the former is per table row
:math:`(\lambda_l + N_l)(\mathrm{diag}\,\theta_l - \theta_l\theta_l^\top)`. The density of theta is with respect to the
natural measure, the volume of the unconstrained coordinates (softmax, of tables), and so is A.

Hidden hyperparameters :math:`\nu` are integrated out of the prior, exactly: they are hidden variables like any other,
and Louis' identity takes from A the covariance of scores under :math:`p(\nu \mid \hat\theta)`, too,

.. math::

    A = -\sum_c \tilde\eta_c\, \partial^2 \phi_c - \sum_i \mathrm{Cov}(J^\top u_i \mid y_i, \hat\theta)
        - J^\top \mathrm{Cov}(u_\nu \mid \hat\theta) J,

:math:`\tilde\eta` the base of the prior plus expected statistics of rows and of :math:`\nu`, J the derivatives of
:math:`\phi`. They are no parameters, and not of the d.

Mode, density and Gaussian are those of one basis. In probabilities (and rates, means and precisions) the family's
coordinates are shifted, those of tables from lambda to lambda - 1, and at the mode, where the gradient is zero,
:math:`\ln\det A` becomes that of the parameters by twice the log density of the natural measure with respect to them,
of tables :math:`-2 \sum \ln\theta` over all cells. Where a cell has no counts, the Gaussian around the mode in
probabilities, near 0, misses a factor of about 4 for a prior of 1.01; in the softmax basis it is right to a tenth.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigvalsh

from skvbem.evidence.aliasing import alias_correction
from skvbem.evidence.base import Evidence
from skvbem.evidence.evaluation import Evaluation
from skvbem.evidence.observed_information import coordinates_of_mode, score_covariances

_BASES = {"map": "natural", "map_probability": "probability"}
#: Which entries of A enter, most first.
VARIANTS = ("full", "block", "diagonal")


def laplace(
    evaluation: Evaluation, *, form: str = "map", variant: str = "full", max_states: int = 4096, alias: bool = False
) -> Evidence:
    """Laplace's approximation at the MAP fit. No bound.

    Parameters
    ----------
    evaluation : Evaluation
    form : {"map", "map_probability"}, default="map"
        The mode, and with it the coordinates of the Gaussian: natural, or probabilities. The latter needs a mode
        inside, as there is at prior concentrations above 1, and even so the Gaussian is a poor one near 0 and 1. The
        variant "diagonal" takes the diagonal in natural coordinates.
    variant : {"full", "block", "diagonal"}, default="full"
        Whether all entries of A enter, those between parameters of one table (or one component of a mixture), or the
        diagonal alone.
    max_states : int, default=4096
        Most joint states of what is hidden in one row, which the full variant sums over.
    alias : bool, default=False
        Whether ln of the number of relabelings is added, a heuristic; see `skvbem.evidence.aliasing.alias_correction`.

    Returns
    -------
    Evidence
        `details` hold the variant that entered and, if it is not the one asked for, the reason.

    Raises
    ------
    TooLargeError
        If a row has more joint states than `max_states`, with their number.
    ValueError
        If even the diagonal of A is not positive: the point is no maximum. If it lies at the edge, some probability 0.

    Notes
    -----
    If A is not positive definite the next smaller variant enters instead, which `doubts` say.
    """
    if variant not in VARIANTS:
        raise ValueError(
            f"A variant of the score 'laplace' must be 'full', 'block' or 'diagonal'. Got {variant!r} instead."
        )
    if form not in _BASES:
        raise ValueError(f"The score 'laplace' needs form='map' or 'map_probability', a mode. Got {form!r} instead.")
    prior = evaluation.model.prior
    point = evaluation.point(form)
    natural = prior.natural(point)
    if np.isneginf(natural).any():
        raise ValueError(
            "Laplace's approximation does not exist at this MAP fit: its mode in probabilities lies at the edge, with "
            f"{np.count_nonzero(np.isneginf(natural))} probabilities of 0. Fit with map_basis='natural', or with a "
            "prior above 1."
        )
    statistics, log_likelihood = evaluation.expectation(natural, "The score 'laplace'")
    in_probabilities = _BASES[form] == "probability"
    coordinates = coordinates_of_mode(prior, natural, statistics, in_probabilities)
    log_det, name, reasons = _largest_variant(evaluation, point, coordinates, variant, max_states)
    doubts: tuple[str, ...] = ()
    if reasons:
        doubts = (
            f"laplace: the Hessian at the MAP fit is not negative definite ({'; '.join(reasons)}); the variant "
            f"{name!r} was taken instead. A smaller 'tol' or more starts may end at a maximum.",
        )
    d = prior.n_free_parameters
    log_prior = float(prior.log_density_as_prior(point, basis=_BASES[form]))
    if in_probabilities:
        # the change of variables, squared, where the gradient is zero
        log_det += 2.0 * (log_prior - float(prior.log_density_as_prior(point)))
    correction = alias_correction(evaluation) if alias else 0.0
    return Evidence(
        log_likelihood + log_prior + 0.5 * d * np.log(2 * np.pi) - 0.5 * log_det + correction,
        "laplace",
        is_lower_bound=False,
        form=form,
        n_free_parameters=d,
        n_samples=evaluation.n_samples,
        details={
            "log_likelihood": log_likelihood,
            "log_prior": log_prior,
            "log_det": log_det,
            "variant": name,
            "reason": "; ".join(reasons),
            "alias": correction,
        },
        doubts=doubts,
    )


def _largest_variant(
    evaluation: Evaluation, point: Any, coordinates: np.ndarray, variant: str, max_states: int
) -> tuple[float, str, list[str]]:
    """ln det A of the first variant that is positive definite, its name, and the reasons why others are not."""
    prior = evaluation.model.prior
    reasons: list[str] = []
    for name in VARIANTS[VARIANTS.index(variant) :]:
        blocks = score_covariances(evaluation, point, joint=name == "full", max_states=max_states)
        log_det, reason = _log_det(prior, point, coordinates, blocks, name == "diagonal")
        if log_det is not None:
            return log_det, name, reasons
        reasons.append(f"{name}: {reason}")
    raise ValueError(
        "Laplace's approximation does not exist at this MAP fit: the log posterior is not at a maximum there "
        f"({'; '.join(reasons)}). Fit with more starts or a smaller tol, or take another score."
    )


def _log_det(prior, point, coordinates, blocks, diagonal: bool) -> tuple[float | None, str | None]:
    """ln det A, or None and the reason why there is none."""
    alone = np.ones(prior.n_free_parameters, dtype=bool)
    total = 0.0
    for block in blocks:
        alone[block.free] = False
        information = np.negative(block.covariance, out=block.covariance)
        information += prior.information(point, coordinates, block.free)
        if diagonal:
            entries = np.diag(information)
            if np.any(entries <= 0):
                return None, f"{np.count_nonzero(entries <= 0)} entries are not positive"
            total += float(np.log(entries).sum())
            continue
        try:
            total += 2.0 * float(np.log(np.diag(cholesky(information, lower=True, check_finite=False))).sum())
        except LinAlgError:
            negative = np.count_nonzero(eigvalsh(information) <= 0)
            return None, f"{negative} of {len(information)} eigenvalues are not positive"
    return total + prior.log_det_information(point, coordinates, np.flatnonzero(alone), diagonal), None
