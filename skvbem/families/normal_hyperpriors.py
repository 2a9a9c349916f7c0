r"""Priors of means and precisions whose scale, or weight of means, is hidden and learned from all components.

Of Normal-Wishart distributions the inverse scale of the precisions, and the weight of the means, may be hidden:

.. math::

    \mu_k \mid \Lambda_k, \kappa \sim N(m, (\kappa\Lambda_k)^{-1}), \quad \kappa \sim \mathrm{Gamma}(a, b), \qquad
    \Lambda_k \mid B \sim W(\nu_0, (B + E)^{-1}), \quad B \sim W(n_0, R^{-1}).

Of Normal-Gamma distributions each feature has a scale of its own, :math:`b_j \sim \mathrm{Gamma}(n_0/2, R_j/2)`
[Richardson & Green 1997], the Wishart distribution of one dimension. Given a scale all components' precisions are
independent, so that one is enough where all share a precision.

**The floor E.** With E = 0 data that leave a component no width in some direction, as ties do, have no finite evidence:
the scale follows the data to 0. So E, tiny, is never learned. The density is taken as

.. math:: p(\Lambda_k \mid B) \propto
          |B|^{\nu_0/2} |\Lambda_k|^{(\nu_0-d-1)/2} e^{-\frac12 \operatorname{tr} (B + E) \Lambda_k},

normalized as if E were 0: that is a Wishart hyperprior of B times :math:`(|B| / |B + E|)^{K\nu_0/2}`, which is 1 but
where B is no wider than the floor, and its mass a little below 1. So a lower bound stays one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack

from skvbem.families.hierarchical import Hierarchical
from skvbem.families.hyperpriors import BlockHyperpriors, GammaHyperprior, Hyperprior, WishartHyperprior
from skvbem.families.normal_gamma import NormalGamma
from skvbem.families.normal_wishart import NormalWishart

# Loadings up to this many cells are dense.
_DENSE = 2**14


class HiddenScale(NamedTuple):
    """A hyperprior of the inverse scale of precisions.

    Parameters
    ----------
    degrees_of_freedom : float
        :math:`n_0`.
    mean : ndarray of shape (d, d), or (n_precisions,) of features that are independent
        The prior mean of B, :math:`n_0 R^{-1}`.
    floor : ndarray of the same shape
        E.
    """

    degrees_of_freedom: float
    mean: np.ndarray
    floor: np.ndarray


class HiddenMeanPrecision(NamedTuple):
    """A Gamma hyperprior of the weight of means.

    Parameters
    ----------
    shape, rate : float
    """

    shape: float
    rate: float


def normal_wishart_prior(
    n_components: int,
    mean: np.ndarray,
    mean_precision: float | HiddenMeanPrecision,
    degrees_of_freedom: float,
    scale: np.ndarray | HiddenScale,
    *,
    shared: bool = False,
) -> NormalWishart | Hierarchical:
    """The Normal-Wishart prior of components that are alike, hierarchical where some of it is hidden.

    Parameters
    ----------
    n_components : int
    mean : ndarray of shape (d,)
    mean_precision : float or HiddenMeanPrecision
    degrees_of_freedom : float
    scale : ndarray of shape (d, d), or HiddenScale
    shared : bool, default=False
        Whether all components share one precision.
    """
    n_precisions = 1 if shared else n_components

    def family(weight: float, dof: float, of_precision: np.ndarray) -> NormalWishart:
        return NormalWishart.from_parameters(
            np.tile(mean, (n_components, 1)),
            np.full(n_components, weight),
            np.full(n_precisions, dof),
            np.tile(of_precision, (n_precisions, 1, 1)),
            shared=shared,
        )

    hyperpriors: list[Hyperprior] = []
    if isinstance(scale, HiddenScale):
        dof, no_width = scale.degrees_of_freedom, np.zeros(scale.mean.shape)
        squares, n_cells = family(0.0, 0.0, no_width).square_cells, len(family(0.0, 0.0, no_width).coordinates)
        power = n_precisions * degrees_of_freedom / 2
        hyperpriors.append(WishartHyperprior(dof, dof * np.linalg.inv(scale.mean), power, squares, n_cells))
    if isinstance(mean_precision, HiddenMeanPrecision):
        loading = family(1.0, 0.0, np.zeros((len(mean),) * 2)).coordinates
        hyperpriors.append(_gamma_hyperprior([_weight_of_means(mean_precision, n_components * len(mean) / 2, loading)]))
    return _prior(family, mean_precision, degrees_of_freedom, scale, np.eye(len(mean)), hyperpriors)


def normal_gamma_prior(
    n_components: int,
    mean: np.ndarray,
    mean_precision: float | HiddenMeanPrecision,
    degrees_of_freedom: float,
    scale: np.ndarray | HiddenScale,
) -> NormalGamma | Hierarchical:
    """The Normal-Gamma prior of components that are alike, hierarchical where some of it is hidden.

    Parameters
    ----------
    n_components : int
    mean : ndarray of shape (d,)
    mean_precision : float or HiddenMeanPrecision
    degrees_of_freedom : float
    scale : ndarray of shape (n_precisions,), or HiddenScale
        Of each precision of a component.
    """
    n_precisions = len(scale.mean if isinstance(scale, HiddenScale) else scale)

    def family(weight: float, dof: float, of_precisions: np.ndarray) -> NormalGamma:
        return NormalGamma.from_parameters(
            np.tile(mean, (n_components, 1)),
            np.full((n_components, len(mean)), weight),
            np.full((n_components, n_precisions), dof),
            np.tile(of_precisions, (n_components, 1)),
        )

    no_width = family(0.0, 0.0, np.zeros(n_precisions))
    n_cells, groups = len(no_width.coordinates), []
    if isinstance(scale, HiddenScale):
        cells = no_width.square_cells
        places = np.broadcast_to(np.arange(n_precisions), cells.shape).ravel(), cells.ravel()
        shape = np.full(n_precisions, scale.degrees_of_freedom / 2)
        power = np.full(n_precisions, n_components * degrees_of_freedom / 2)
        loadings = csr_array((np.ones(cells.size), places), (n_precisions, n_cells))
        groups.append((shape, shape / scale.mean, power, loadings))
    if isinstance(mean_precision, HiddenMeanPrecision):
        loading = family(1.0, 0.0, np.zeros(n_precisions)).coordinates
        groups.append(_weight_of_means(mean_precision, n_components * len(mean) / 2, loading))
    hyperpriors: list[Hyperprior] = [_gamma_hyperprior(groups)] if groups else []
    return _prior(family, mean_precision, degrees_of_freedom, scale, np.ones(n_precisions), hyperpriors)


def _weight_of_means(prior: HiddenMeanPrecision, power: float, loading: np.ndarray) -> tuple:
    """Shape, rate, power and loadings of the weight of means, whose statistics are a multiple of one loading."""
    return *(np.array([x]) for x in (prior.shape, prior.rate, power)), csr_array(loading[None])


def _gamma_hyperprior(groups: Sequence[tuple]) -> GammaHyperprior:
    """One hyperprior of groups of Gamma variables; loadings of few cells are dense, which is faster."""
    shape, rate, power = (np.concatenate(parts) for parts in list(zip(*groups))[:3])
    loadings = vstack([of_group for *_, of_group in groups], format="csr")
    dense = np.prod(loadings.shape) <= _DENSE
    return GammaHyperprior(shape, rate, power, loadings.toarray() if dense else loadings)


def _prior(
    family: Callable[[float, float, np.ndarray], Any],
    mean_precision: float | HiddenMeanPrecision,
    degrees_of_freedom: float,
    scale: np.ndarray | HiddenScale,
    unit_scale: np.ndarray,
    hyperpriors: list[Hyperprior],
) -> Any:
    """The family, or what is known of it as the base of a hierarchical prior.

    Of the family's normalizer hyperpriors have what depends on hidden hyperparameters; the rest is a constant, the
    normalizer at a weight and a scale of 1.
    """
    weight = 0.0 if isinstance(mean_precision, HiddenMeanPrecision) else mean_precision
    known = scale.floor if isinstance(scale, HiddenScale) else scale
    base = family(weight, degrees_of_freedom, known)
    if not hyperpriors:
        return base
    at_one = family(weight or 1.0, degrees_of_freedom, unit_scale if isinstance(scale, HiddenScale) else known)
    constant = -float(at_one.log_normalizer())
    every = slice(0, len(base.coordinates))
    first, *others = hyperpriors
    parts = [replace(first, constant=constant), *others]  # type: ignore[type-var]
    return Hierarchical(
        base, parts[0] if not others else BlockHyperpriors([(every, each) for each in parts], every.stop)
    )
