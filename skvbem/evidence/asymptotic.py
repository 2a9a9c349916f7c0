r"""Large-sample scores: BIC, with the prior kept (BICp), and Draper's; closed forms at a point estimate.

With L the log likelihood of the point, d the dimension and n the number of rows [CH §2; BG §4]:

.. math::

    \mathrm{BIC} = L - \tfrac{d}{2} \ln n, \qquad
    \mathrm{BICp} = \mathrm{BIC} + \ln p(\hat\theta), \qquad
    \mathrm{Draper} = \mathrm{BIC} + \tfrac{d}{2} \ln 2\pi.

None is a bound. d is the number of free parameters, or the identifiable dimension (rank of the Jacobian) if asked for.
"""

from __future__ import annotations

import numpy as np

from skvbem.evidence.aliasing import alias_correction
from skvbem.evidence.base import Evidence
from skvbem.evidence.evaluation import Evaluation

#: Numbers of parameters: free ones, or directions in which the model can move.
DIMENSIONS = ("free", "identifiable")


def dimension_of(evaluation: Evaluation, which: str) -> int:
    """The dimension of a model.

    Parameters
    ----------
    evaluation : Evaluation
    which : {"free", "identifiable"}
        The count d' of free parameters, or the generic rank d of the Jacobian of the map from parameters to the
        distribution of what is observed, in sequences as long as those of the data: d <= d', less where parameters
        trade off [Geiger, Heckerman & Meek 1996].

    Returns
    -------
    int
    """
    if which not in DIMENSIONS:
        raise ValueError(f"A dimension must be 'free' or 'identifiable'. Got {which!r} instead.")
    if which == "free":
        return evaluation.model.n_free_parameters
    identifiable = evaluation.capability("dimension", "dimension='identifiable'")
    return identifiable(evaluation.hidden, evaluation.data)


def bic(evaluation: Evaluation, *, form: str = "ml", dimension: str = "free", alias: bool = False) -> Evidence:
    """Schwarz's criterion, in nats, higher is better.

    Parameters
    ----------
    evaluation : Evaluation
    form : {"ml", "map", "map_probability", "vb"}, default="ml"
        The point it is evaluated at.
    dimension : {"free", "identifiable"}, default="free"
        See `dimension_of`.
    alias : bool, default=False
        Whether ln of the number of relabelings is added, a heuristic; see `skvbem.evidence.aliasing.alias_correction`.
    """
    return _score(evaluation, "bic", form, dimension, alias)


def bicp(evaluation: Evaluation, *, form: str = "map", dimension: str = "free", alias: bool = False) -> Evidence:
    """BIC with the log prior density of the point (with respect to probabilities) kept; see `bic`.

    Raises
    ------
    ValueError
        If that density is 0 or unbounded, as it may be at an ML point with probabilities of 0.
    """
    return _score(evaluation, "bicp", form, dimension, alias, prior=True)


def draper(evaluation: Evaluation, *, form: str = "map", dimension: str = "free", alias: bool = False) -> Evidence:
    """BIC plus d/2 ln 2 pi; see `bic`."""
    return _score(evaluation, "draper", form, dimension, alias, per_parameter=np.log(2 * np.pi))


def _score(evaluation, kind, form, dimension, alias, prior=False, per_parameter=0.0) -> Evidence:
    point = evaluation.point(form)
    log_likelihood = evaluation.log_likelihood(point, f"The score {kind!r}")
    d = dimension_of(evaluation, dimension)
    log_prior = float(evaluation.model.prior.log_density_as_prior(point, basis="probability")) if prior else 0.0
    if not np.isfinite(log_prior):
        raise ValueError(
            f"The score {kind!r} does not exist at this {form.upper()} fit: the prior density of its point, which has "
            f"probabilities of 0, is {np.exp(log_prior):g}. Take form='map'."
        )
    correction = alias_correction(evaluation) if alias else 0.0
    value = log_likelihood + log_prior + 0.5 * d * (per_parameter - np.log(evaluation.n_samples)) + correction
    return Evidence(
        float(value),
        kind,
        is_lower_bound=False,
        form=form,
        n_free_parameters=d,
        n_samples=evaluation.n_samples,
        details={"log_likelihood": log_likelihood, "log_prior": log_prior, "dimension": dimension, "alias": correction},
    )
