r"""Priors whose hyperparameters have priors of their own: a hidden variable of the model that belongs to no row.

A prior :math:`p(\theta \mid \nu)` with :math:`p(\nu)` is not conjugate by itself, but given :math:`\nu` it is, and
given :math:`\theta` so is :math:`\nu`. So :math:`\nu` joins the hidden variables, and q(theta) q(nu) q(x) is found like
any other: what depends on :math:`\nu` is taken from the prior as if it were an observation,

.. math:: \ln p(\theta \mid \nu) = \eta_0 \cdot \phi(\theta) + \ln f(\nu, \theta), \qquad
          \ln f(\nu, \theta) = u(\nu) \cdot \phi(\theta) + \ln c(\nu),

with a *base* :math:`\eta_0` that need be no density: its log normalizer is set to A := 0. Expected statistics of
:math:`\nu` are added to those of rows, and the log normalizer of q(nu),

.. math:: \ln Z_\nu(\bar\phi) = \ln \int p(\nu) \exp[u(\nu) \cdot \bar\phi + \ln c(\nu)]\, d\nu,

to that of q(x). Then :math:`F = \ln Z_x + \ln Z_\nu - \sum_b \mathrm{KL}`, with KL above the base, is the lower bound
with every constant of :math:`p(\theta \mid \nu)` in it. At a point, :math:`\ln Z_\nu(\phi(\theta))` is the logarithm of
the prior density with :math:`\nu` integrated out, relative to the base.

**Means and precisions** (`normal_wishart_prior`, `normal_gamma_prior`). Of Normal-Wishart distributions the inverse
scale of the precisions, and the weight of the means, may be hidden:

.. math::

    \mu_k \mid \Lambda_k, \kappa \sim N(m, (\kappa\Lambda_k)^{-1}), \quad \kappa \sim \mathrm{Gamma}(a, b), \qquad
    \Lambda_k \mid B \sim W(\nu_0, (B + E)^{-1}), \quad B \sim W(n_0, R^{-1}).

Of Normal-Gamma distributions each feature has a scale of its own, :math:`b_j \sim \mathrm{Gamma}(n_0/2, R_j/2)`
[Richardson & Green 1997], the Wishart distribution of one dimension. Given a scale all components' precisions are
independent, so that one is enough where all share a precision.

**Rates** (`hidden_rate_prior`), whose own rate is learned column by column:

.. math:: \lambda_{kj} \mid b_j \sim \mathrm{Gamma}(a_j, b_j + E), \qquad b_j \sim \mathrm{Gamma}(g, g / m_j).

**Regressions** (`with_learned_precisions`, `with_hidden_mean_precision`, `with_hidden_rates`). All rows share the
precision of the coefficients of a regressor (automatic relevance determination):

.. math:: c_{sj} \mid \rho_s, \nu_j \sim N(0, 1 / (\rho_s \nu_j)), \qquad \nu_j \sim \mathrm{Gamma}(c, d).

The coefficients of a constant, about known means, have one precision in all rows:

.. math:: \mu_s \mid \rho_s, \kappa \sim N(m_s, 1 / (\rho_s \kappa)), \qquad \kappa \sim \mathrm{Gamma}(a, b).

The precision of each noise has a rate of its own, or one that it shares with others:

.. math:: \rho_g \mid b_g \sim \mathrm{Gamma}(a_g, b_g + E_g), \qquad b_g \sim \mathrm{Gamma}(c, d),

so that :math:`\rho_g / d` is a beta prime variate of shapes :math:`a_g` and c. With shapes of 1 the share
:math:`1 / (1 + \rho_g / d)` is uniform.

Rates and precisions are independent given the parameters.

**The floor E.** With E = 0 data that leave a component no width in some direction, as ties do, have no finite evidence:
the scale follows the data to 0. So E, tiny, is never learned. The density is taken as

.. math:: p(\Lambda_k \mid B) \propto
          |B|^{\nu_0/2} |\Lambda_k|^{(\nu_0-d-1)/2} e^{-\frac12 \operatorname{tr} (B + E) \Lambda_k},

normalized as if E were 0: that is a Wishart hyperprior of B times :math:`(|B| / |B + E|)^{K\nu_0/2}`, which is 1 but
where B is no wider than the floor, and its mass a little below 1. So a lower bound stays one. The evidence of waiting
times of 0, and that of targets without noise, stay finite in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array, vstack

from skvbem._numerics import diagonal_places
from skvbem.families.base import ConjugateFamily, FlatFamily
from skvbem.families.gamma import Gamma
from skvbem.families.hyperpriors import (
    LOWEST_SCALE,
    BlockHyperpriors,
    GammaHyperprior,
    Hyperprior,
    SharedGammaHyperprior,
    WishartHyperprior,
)
from skvbem.families.normal_gamma import NormalGamma
from skvbem.families.normal_wishart import NormalWishart
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.families.regression import Regression
from skvbem.families.unit_noise import UnitNoise


@dataclass(frozen=True, eq=False)
class Hierarchical(ConjugateFamily):
    """A prior whose hyperparameters are hidden: a base that need be no density, and the hyperprior above it.

    What is added to it is a member of the base's family: the posterior of the parameters. Statistics must hold those of
    the hyperparameters, which `Hyperprior.expect` gives; where they are all 0, nothing was added yet, and log
    normalizers are 0 by convention.

    Parameters
    ----------
    base : FlatFamily
        Of the family of the posterior. Its coordinates may be those of no density.
    hyperprior : Hyperprior

    Examples
    --------
    Rates of three machines that failed 40, 60 and 50 times in ten years each, and the scale of these rates, which is
    learned from all of them, in turns:

    >>> import numpy as np
    >>> from scipy.special import gammaln
    >>> from skvbem.families import Gamma
    >>> from skvbem.families.hierarchical import Hierarchical
    >>> from skvbem.families.hyperpriors import GammaHyperprior
    >>> base = Gamma.from_parameters(shape=np.full((3, 1), 2.0), rate=np.zeros((3, 1)))
    >>> of_rates = np.array([[0.0, 1, 0, 1, 0, 1]])
    >>> one = np.ones(1)
    >>> scale = GammaHyperprior(one, one, power=6 * one, loadings=of_rates, constant=-3 * gammaln(2.0))
    >>> prior = Hierarchical(base, scale)
    >>> natural = prior.expected_natural()
    >>> for _ in range(20):
    ...     statistics, log_z = scale.expect(natural)
    ...     posterior = prior + (statistics + np.array([40.0, 10, 60, 10, 50, 10]))
    ...     natural = posterior.expected_natural()
    >>> posterior.mean.ravel().round(2).tolist()
    [4.02, 5.94, 4.98]
    """

    base: FlatFamily
    hyperprior: Hyperprior

    @property
    def coordinates(self) -> np.ndarray:  # type: ignore[override]
        """Additive coordinates of the base, (n_cells, ...)."""
        return self.base.coordinates

    def __add__(self, statistics: np.ndarray) -> Any:
        return self.base + statistics

    def for_run(self) -> Self:
        """The prior of one run, whose base may remember what the run has reached."""
        base: Any = self.base.for_run()
        return self if base is self.base else replace(self, base=base)

    def statistics_above(self, prior: Any) -> np.ndarray:
        """Statistics that were added to `prior` to give the base."""
        return self.base.statistics_above(prior)

    def _like(self, statistics: np.ndarray) -> np.ndarray:
        return self.base._like(statistics)

    @property
    def n_free_parameters(self) -> int:
        """Dimension of the parameters; the hyperparameters are no parameters of the data's distribution."""
        return self.base.n_free_parameters

    @property
    def is_valid(self) -> np.ndarray:
        """True if the hyperparameters at their prior means make a density of the base."""
        return (self.base + self.hyperprior.prior_statistics).is_valid

    @property
    def signed(self) -> np.ndarray:
        """Boolean array of the statistics that may be negative, (n_cells,)."""
        return self.base.signed

    def log_normalizer(self) -> np.ndarray:
        """0, of the base."""
        return np.zeros(self.coordinates.shape[1:])

    def log_normalizer_increment(self, statistics: np.ndarray) -> np.ndarray:
        """A(base + statistics), nats; 0 where hyperparameters are left to their prior."""
        with np.errstate(divide="ignore", invalid="ignore"):
            log_normalizer = (self.base + statistics).log_normalizer()
        return np.where(self.leaves_hyperparameters(statistics), 0.0, log_normalizer)

    def log_normalizer_gain(self, posterior: Any, added: np.ndarray) -> np.ndarray:
        """A(posterior), nats: that of the base is 0."""
        return posterior.log_normalizer()

    def given_hyperparameters(self, statistics: np.ndarray) -> FlatFamily:
        """The density of the base's family that hyperparameters of these statistics make of it."""
        return self.base + statistics

    def leaves_hyperparameters(self, statistics: np.ndarray) -> np.ndarray:
        """True where statistics leave hyperparameters to their prior: all are 0, or make no density without them."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return ~(np.asarray((self.base + statistics).is_valid) & statistics.any(axis=0))

    def with_hyperparameters(self, statistics: np.ndarray) -> np.ndarray:
        """Statistics, those of hyperparameters at their prior means added where there is no density without them."""
        hidden = self.hyperprior.prior_statistics.reshape(-1, *(1 for _ in statistics.shape[1:]))
        return statistics + self.leaves_hyperparameters(statistics) * hidden

    def expected_natural(self) -> np.ndarray:
        """Expected natural parameters where the hyperparameters are at their prior means, (n_cells, ...)."""
        return (self.base + self.with_hyperparameters(np.zeros(self.coordinates.shape))).expected_natural()

    def natural(self, point: Any) -> np.ndarray:
        """Natural parameters of a point, (n_cells, ...)."""
        return self.base.natural(point)

    def mode(self, basis: str = "natural") -> Any:
        """The mode where the hyperparameters are at their prior means."""
        return (self.base + self.with_hyperparameters(np.zeros(self.coordinates.shape))).mode(basis)

    def most_likely(self, statistics: np.ndarray) -> Any:
        """The point at which complete data with these statistics are most likely, whatever the prior."""
        return self.base.most_likely(statistics)

    def natural_of_most_likely(self, statistics: np.ndarray) -> np.ndarray:
        """Natural parameters of the most likely point, whatever the prior."""
        return self.base.natural_of_most_likely(statistics)

    def are_spikes(self, statistics: np.ndarray) -> np.ndarray | None:
        """Boolean array of the components whose likelihood has no bound: those of the base."""
        return self.base.are_spikes(statistics)

    def with_exact_zeros(self, point: Any) -> Any:
        """The most likely point with probabilities that are on their way to 0 set to exactly 0."""
        return self.base.with_exact_zeros(point)

    def log_density(self, point: Any, basis: str = "natural") -> np.ndarray:
        """Logarithm of the base at a point, nats, to which ln Z of the hyperparameters is to be added."""
        natural = self.natural(point)
        density = self._inner(self._like(natural), natural)
        return density if basis == "natural" else density + self.base._log_natural_measure(point)

    def sample(self, rng: np.random.Generator | ParallelGenerator) -> Any:
        """A draw of the parameters: of the hyperparameters first, then of the parameters given these."""
        return (self.base + self.hyperprior.draw_from_prior(self.coordinates, rng)).sample(rng)

    def to_unconstrained(self, point: Any) -> np.ndarray:
        """Coordinates of a point that range over all of space, (n_free_parameters, ...)."""
        return self.base.to_unconstrained(point)

    def from_unconstrained(self, free: np.ndarray) -> Any:
        """The point with these coordinates."""
        return self.base.from_unconstrained(free)

    def from_natural(self, natural: np.ndarray) -> Any:
        """The point with these natural parameters."""
        return self.base.from_natural(natural)

    def jacobian(self, point: Any) -> np.ndarray:
        """Derivatives of natural parameters by unconstrained coordinates, (n_cells, n_free_parameters)."""
        return self.base.jacobian(point)

    def information(self, point: Any, coordinates: np.ndarray, free: np.ndarray | None = None) -> np.ndarray:
        """Minus second derivatives of coordinates . natural(point) by unconstrained coordinates."""
        return self.base.information(point, coordinates, free)

    def directions(self, coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Directions of the base's coordinates."""
        return self.base.directions(coordinates)

    @property
    def probability_shift(self) -> np.ndarray:
        """Shift of the coordinates for the density with respect to the parameters, (n_cells,)."""
        return self.base.probability_shift

    @staticmethod
    def _inner(statistics: np.ndarray, natural: np.ndarray) -> np.ndarray:
        return FlatFamily._inner(statistics, natural)


# Cells of loadings below which dense arrays are faster than sparse ones: under normal priors, and under regressions.
_MAX_DENSE, _MAX_DENSE_OF_REGRESSIONS = 2**14, 2**16


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
    by_column : bool, default=False
        Whether the means of each column have a weight of their own.
    """

    shape: float
    rate: float
    by_column: bool = False


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

    def family(weight: float, dof: float, scale_of_each: np.ndarray) -> NormalWishart:
        return NormalWishart.from_parameters(
            np.tile(mean, (n_components, 1)),
            np.full(n_components, weight),
            np.full(n_precisions, dof),
            np.tile(scale_of_each, (n_precisions, 1, 1)),
            shared=shared,
        )

    hyperpriors: list[Hyperprior] = []
    if isinstance(scale, HiddenScale):
        dof, no_width = scale.degrees_of_freedom, family(0.0, 0.0, np.zeros(scale.mean.shape))
        power = n_precisions * degrees_of_freedom / 2
        squares, n_cells = no_width.square_cells, len(no_width.coordinates)
        hyperpriors.append(WishartHyperprior(dof, dof * np.linalg.inv(scale.mean), power, squares, n_cells))
    if isinstance(mean_precision, HiddenMeanPrecision):
        loading = family(1.0, 0.0, np.zeros((len(mean),) * 2)).coordinates
        hyperpriors.append(_gamma_hyperprior([(*mean_precision[:2], n_components * len(mean) / 2, loading[None])]))
    return _hierarchical(family, mean_precision, degrees_of_freedom, scale, np.eye(len(mean)), hyperpriors)


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

    def family(weight: float, dof: float, scales: np.ndarray) -> NormalGamma:
        return NormalGamma.from_parameters(
            np.tile(mean, (n_components, 1)),
            np.full((n_components, len(mean)), weight),
            np.full((n_components, n_precisions), dof),
            np.tile(scales, (n_components, 1)),
        )

    no_width = family(0.0, 0.0, np.zeros(n_precisions))
    n_cells, groups = len(no_width.coordinates), list[tuple]()
    if isinstance(scale, HiddenScale):
        cells = no_width.square_cells
        places = np.broadcast_to(np.arange(n_precisions), cells.shape).ravel(), cells.ravel()
        shape = np.full(n_precisions, scale.degrees_of_freedom / 2)
        power = np.full(n_precisions, n_components * degrees_of_freedom / 2)
        loadings = csr_array((np.ones(cells.size), places), (n_precisions, n_cells))
        groups.append((shape, shape / scale.mean, power, loadings))
    if isinstance(mean_precision, HiddenMeanPrecision):
        d = len(mean)
        weights = np.eye(d) if mean_precision.by_column else np.ones((d, 1))
        n_weights, nothing = weights.shape[1], np.zeros((n_components, n_precisions, weights.shape[1]))
        means, weights = (np.tile(x, (n_components, 1, 1)) for x in (mean[:, None], weights))
        loadings = NormalGamma.from_parameters(means, weights, nothing, nothing).coordinates.T
        hyper = (np.full(n_weights, x) for x in (*mean_precision[:2], n_components * d / 2 / n_weights))
        groups.append((*hyper, loadings))
    hyperpriors: list[Hyperprior] = [_gamma_hyperprior(groups)] if groups else []
    return _hierarchical(family, mean_precision, degrees_of_freedom, scale, np.ones(n_precisions), hyperpriors)


def _gamma_hyperprior(groups: Sequence[tuple]) -> GammaHyperprior:
    """One hyperprior of groups of Gamma variables; loadings of few cells are dense, which is faster."""
    shape, rate, power = (np.hstack(parts) for parts in list(zip(*groups))[:3])
    loadings = vstack([csr_array(loading) for *_, loading in groups], format="csr")
    dense = np.prod(loadings.shape) <= _MAX_DENSE
    return GammaHyperprior(shape, rate, power, loadings.toarray() if dense else loadings)


def _hierarchical(
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


def hidden_rate_prior(
    n_components: int, shape: np.ndarray, hyper_shape: float, mean: np.ndarray, floor: float
) -> Hierarchical:
    """The prior of rates of components that are alike, of known shapes.

    Parameters
    ----------
    n_components : int
    shape : ndarray of shape (n_features,)
    hyper_shape : float
        g.
    mean : ndarray of shape (n_features,)
        m, the prior mean of b.
    floor : float
        E.
    """
    d, every = len(shape), np.tile(shape, (n_components, 1))
    base = Gamma.from_parameters(every, np.full((n_components, d), floor))
    cells = base.rate_cells
    places = np.broadcast_to(np.arange(d), cells.shape).ravel(), cells.ravel()
    loadings = csr_array((np.ones(cells.size), places), (d, len(base.coordinates)))
    constant = -float(Gamma.from_parameters(every, np.ones((n_components, d))).log_normalizer())
    shapes = np.full(d, hyper_shape)
    return Hierarchical(base, GammaHyperprior(shapes, shapes / mean, n_components * shape, loadings, constant))


def with_learned_precisions(
    prior: Regression | UnitNoise, learned: np.ndarray, shape: float, rate: float, block_of: np.ndarray | None = None
) -> Hierarchical:
    r"""A regression whose coefficients of some regressors have precisions with a Gamma prior, one for each regressor.

    Parameters
    ----------
    prior : Regression, or UnitNoise
        Of means 0 there; its own precisions of these regressors are not asked.
    learned : ndarray of bool, shape (n_regressors,) or (n_blocks, n_regressors)
        Of all rows, or of each block of them.
    shape, rate : float
        Of the Gamma distributions.
    block_of : ndarray of int, shape (n_precisions,), optional
        Which block the rows of each precision matrix are in; blocks have precisions of their own.
    """
    learned = np.atleast_2d(learned)
    if block_of is None:
        block_of = np.zeros(prior.n_precisions, dtype=int)
    block, regressor = np.nonzero(learned)
    diagonal_cells = prior.precision_cells[:, diagonal_places(prior.n_regressors)]
    which, matrix = np.nonzero(block[:, None] == block_of)
    shape_of_sums = len(block), len(prior.coordinates)
    sums = _loadings(which, diagonal_cells[matrix, regressor[which]], np.ones(len(which)), shape_of_sums)
    power = np.bincount(block_of[prior.precision_of], minlength=len(learned))[block] / 2
    known = replace(prior, coordinates=np.where(sums.sum(axis=0) > 0, 0.0, prior.coordinates))
    return _with_gammas(known, GammaHyperprior(np.full(len(block), shape), np.full(len(block), rate), power, sums))


def with_hidden_rates(
    prior: Regression | Hierarchical,
    shape: float,
    rate: float | np.ndarray,
    floor: float | np.ndarray,
    rate_of: np.ndarray | None = None,
) -> Hierarchical:
    """A regression whose precisions of noise have rates with a Gamma prior, one for each noise or shared by several.

    Parameters
    ----------
    prior : Regression, or Hierarchical
        Of unknown noise, whatever else of it is hidden; its own rates are not asked.
    shape, rate : float, and float or ndarray of shape (n_rates,)
        Of the Gamma distributions.
    floor : float or ndarray of shape (n_rates,)
        E.
    rate_of : ndarray of int, shape (n_noises,), optional
        Which rate each noise has; one of its own by default.
    """
    regression = regression_of(prior)
    coordinates, split = regression.coordinates.copy(), regression.split
    cells = split(np.arange(len(coordinates)))[-1]
    rate_of = np.arange(len(cells)) if rate_of is None else rate_of
    n = int(rate_of.max(initial=-1)) + 1
    twice = _loadings(rate_of, cells, np.full(len(cells), 2.0), (n, len(coordinates)))
    power = np.bincount(rate_of, split(coordinates)[-2] / 2, n)
    coordinates[cells] = regression.squares_of_means
    known: Any = replace(regression, coordinates=coordinates)
    if isinstance(prior, Hierarchical):
        known = replace(prior, base=known)
    hierarchical = _with_gammas(known, GammaHyperprior(np.full(n, shape), np.full(n, rate), power, twice))
    return replace(hierarchical, base=hierarchical.base + twice.T @ np.broadcast_to(floor, n))


def with_hidden_scale(prior: Regression, shape: float, rate: float) -> Hierarchical:
    r"""A regression whose precisions of slopes, and rates of noises, are multiples of one scale with a Gamma prior.

    Blocks of a product that are such share the scale.

    Parameters
    ----------
    prior : Regression
        Of means 0, where the scale is 1. Its first regressor is a constant, whose precision is known.
    shape, rate : float
        Of the Gamma distribution.
    """
    cells, n_slopes = prior.split(np.arange(len(prior.coordinates))), prior.n_regressors - 1
    slopes = prior.precision_cells[:, diagonal_places(prior.n_regressors)[1:]].ravel()
    multiples, power = np.zeros((1, len(prior.coordinates))), 0.5 * n_slopes * prior.n_rows
    multiples[0, slopes], multiples[0, cells[-1]] = prior.coordinates[slopes], prior.coordinates[cells[-1]]
    power += 0.5 * float(prior.coordinates[cells[-2]].sum())
    known = replace(prior, coordinates=prior.coordinates - multiples[0])
    constant = -float(prior.log_normalizer())
    scale = SharedGammaHyperprior(np.array([shape]), np.array([rate]), np.array([power]), multiples, constant)
    return Hierarchical(known + LOWEST_SCALE * multiples[0], scale)


def with_hidden_mean_precision(prior: Regression | Hierarchical, mean: np.ndarray, hidden: HiddenMeanPrecision) -> Any:
    r"""A regression whose first coefficients, about known means, have a precision with a Gamma prior, one for all rows.

    Parameters
    ----------
    prior : Regression, or Hierarchical
        Its first regressor, a constant, has precision 0, and its noises are known, or their rates not hidden yet.
    mean : ndarray of shape (n_rows,)
        Prior means of the first coefficients.
    hidden : HiddenMeanPrecision
    """
    regression = regression_of(prior)
    means, first = np.zeros((len(mean), regression.n_regressors)), np.zeros((regression.n_regressors,) * 2)
    means[:, 0], first[0, 0] = mean, 1.0
    nothing = np.zeros(regression.n_noises)
    one = Regression.from_parameters(
        *(means, np.tile(first, (regression.n_precisions, 1, 1)), nothing, nothing),
        *(regression.precision_of, regression.noise_of),
    )
    shape, rate, power = (np.array([x]) for x in (hidden.shape, hidden.rate, len(mean) / 2))
    return _with_gammas(prior, GammaHyperprior(shape, rate, power, one.coordinates[None]))


def _with_gammas(prior: Regression | UnitNoise | Hierarchical, hyperprior: GammaHyperprior) -> Hierarchical:
    """A prior below one more group of hidden hyperparameters, to which its log normalizer at their value 1 belongs.

    Of the prior itself they are 0.
    """
    regression, groups = prior if isinstance(prior, UnitNoise) else regression_of(prior), [hyperprior]
    if isinstance(prior, Hierarchical):
        assert isinstance(prior.hyperprior, GammaHyperprior)
        groups = [prior.hyperprior, hyperprior]
    shape, rate, power = (np.concatenate([getattr(x, name) for x in groups]) for name in ("shape", "rate", "power"))
    parts = [x.loadings for x in groups]
    if len(shape) * parts[0].shape[1] <= _MAX_DENSE_OF_REGRESSIONS:
        loadings: Any = np.vstack(parts)
    else:
        loadings = vstack([csr_array(part) for part in parts], format="csr")
    constant = -float((regression + loadings.sum(axis=0)).log_normalizer())
    together = GammaHyperprior(shape, rate, power, loadings, constant)
    return Hierarchical(regression, together)


def _loadings(rates: np.ndarray, cells: np.ndarray, values: np.ndarray, shape: tuple[int, int]) -> Any:
    """Loadings (n_rates, n_cells) with some values: dense where they are few, which is faster to make and to use."""
    if np.prod(shape) > _MAX_DENSE_OF_REGRESSIONS:
        return csr_array((values, (rates, cells)), shape)
    dense = np.zeros(shape)
    dense[rates, cells] = values
    return dense


def regression_of(prior: ConjugateFamily) -> Regression:
    """The regression of a prior, whether some of its hyperparameters are hidden or not."""
    regression = prior.base if isinstance(prior, Hierarchical) else prior
    assert isinstance(regression, Regression)
    return regression
