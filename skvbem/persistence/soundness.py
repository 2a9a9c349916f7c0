"""What each class that a saved file may name asks of its parts, before any compiled loop sees them.

Types are those of the annotations of the class (`conforms`). What they mean stands here, written by hand, a function
for each class: ranges, indices without gaps, sizes that belong together, densities that are some. Objects are made
parts first, so that a check may trust what the object is made of. Here are families, emissions and models; how columns
are read and what fits leave is in `skvbem.persistence.sound_fits`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import numpy as np

from skvbem.emissions.base import parts_of
from skvbem.emissions.specification import LARGEST_COUNT
from skvbem.emissions.zero_inflated import ZeroInflated
from skvbem.families.hierarchical import regression_of
from skvbem.models.mixed_network.model import name_of_membership

_NUMBERS: dict[Any, tuple[type, ...]] = {
    int: (int, np.integer),
    float: (int, float, np.integer, np.floating),
    bool: (bool, np.bool_),
}
# What says where the cells of families stand.
_SIZES = ("n_features", "n_precisions", "shared", "n_regressors", "n_components")
_LAYOUT = ("row_starts", "precision_of", "noise_of", *_SIZES)

# The largest number whose square is one; columns of larger numbers are refused before they are fitted.
_LARGEST = 1e150

#: Name of a class in files -> what refuses an object of it that means nothing; it may return one in its place.
SOUND: dict[str, Callable[[Any], Any]] = {}


def checks(*names: str) -> Callable[[Callable], Callable]:
    """Enter a function into `SOUND`, as the check of the classes of these names."""

    def entered(function: Callable) -> Callable:
        SOUND.update(dict.fromkeys(names, function))
        return function

    return entered


def conforms(value: Any, hint: Any) -> bool:
    """Whether a value is of the type of an annotation; a truth value is no number."""
    origin: Any = get_origin(hint)
    of = get_args(hint)
    kind: Any = origin or hint or type(None)
    if hint is Any or isinstance(hint, TypeVar):
        return True
    if hint in _NUMBERS:
        return isinstance(value, _NUMBERS[hint]) and (hint is bool or not isinstance(value, (bool, np.bool_)))
    if origin in (Union, UnionType):
        return any(conforms(value, each) for each in of)
    if not isinstance(value, kind):
        return False
    if origin is tuple and of[-1] is not ...:
        return len(value) == len(of) and all(map(conforms, value, of))
    if isinstance(value, Mapping):
        return not of or all(conforms(k, of[0]) and conforms(v, of[1]) for k, v in value.items())
    return origin is Callable or not of or all(conforms(each, of[0]) for each in value)


def check(holds: Any, why: str) -> None:
    """Refuse an object of which something does not hold, wholly."""
    if not np.all(holds):
        raise ValueError(f"it has {why}")


def _has_shape(array: np.ndarray, shape: tuple[int | None, ...]) -> bool:
    return array.ndim == len(shape) and all(n in (None, size) for n, size in zip(shape, array.shape))


def floats(array: np.ndarray, *shape: int | None, what: str) -> None:
    """Refuse what is no array of floats of a shape, of which a size may be free, whose squares are numbers."""
    check(array.dtype == np.float64 and _has_shape(array, shape), f"{what} that are no floats of their shape")
    check(np.abs(array) < _LARGEST, f"{what} beyond all use")


def _indices(array: np.ndarray, what: str, *shape: int | None, below: int) -> None:
    """Refuse what is no array of whole numbers 0, 1, ... below a bound."""
    check(array.dtype == np.int64 and _has_shape(array, shape), f"{what} that are no whole numbers of their shape")
    check((array >= 0) & (array < below), f"{what} that are none of those there are")


def without_gaps(array: np.ndarray, what: str) -> None:
    """Refuse what is no array of the numbers of groups, each of which has a member."""
    _indices(array, what, None, below=len(array))
    check(len(array) > 0 and len(np.unique(array)) == array.max() + 1, f"{what} some of which are not in use")


def counts(numbers: Iterable[int], what: str, least: int = 1) -> None:
    """Refuse numbers below the least that they may be."""
    check(all(n >= least for n in numbers), f"{what} that are no counts")


# Families -------------------------------------------------------------------------------------------------------------


def _cells(family: Any, per_component: int, of_all: int = 0) -> None:
    """Refuse coordinates that are not those of one component or more."""
    floats(family.coordinates, None, what="coordinates")
    rest = len(family.coordinates) - of_all
    check(rest >= per_component and rest % per_component == 0, "coordinates of other numbers of components")


@checks("Dirichlet")
def _dirichlet(family: Any) -> None:
    floats(family.concentration, None, what="concentrations")
    _covered(family.row_starts, len(family.concentration), "rows", "cells")
    check(family.concentration >= 0, "negative concentrations")


def _covered(starts: np.ndarray, n: int, what: str, of: str) -> None:
    """Refuse what are no first places of parts of n places, with the end."""
    check(starts.ndim == 1 and starts.dtype == np.int64, f"{what} without whole numbers")
    check(len(starts) >= 1 and starts[0] == 0 and starts[-1] == n, f"{what} that do not cover their {of}")
    check(np.diff(starts) > 0, f"{what} without {of}")


@checks("DirichletMixture")
def _dirichlet_mixture(family: Any) -> None:
    floats(family.coordinates, None, what="concentrations")
    floats(family.alternatives, None, len(family.coordinates), what="alternatives")
    _covered(family.row_starts, len(family.coordinates), "rows", "cells")
    _covered(family.table_starts, len(family.row_starts) - 1, "tables", "rows")
    check(len(family.alternatives) > 0 and family.alternatives > 0, "alternatives that are not positive")
    check(family.coordinates > 0, "concentrations that are not positive")


@checks("Gamma")
def _gamma(family: Any) -> None:
    counts([family.n_features], "features")
    _cells(family, 2 * family.n_features)


@checks("NormalGamma")
def _normal_gamma(family: Any) -> None:
    counts([family.n_features], "features")
    check(family.n_precisions in (1, family.n_features), "precisions of other features")
    _cells(family, 2 * (family.n_features + family.n_precisions))


@checks("NormalWishart")
def _normal_wishart(family: Any) -> None:
    d = family.n_features
    counts([d], "features")
    of_precision = 1 + d * (d + 1) // 2
    _cells(family, 1 + d + (0 if family.shared else of_precision), of_precision if family.shared else 0)


@checks("Regression")
def _regression(family: Any) -> None:
    precision_of, noise_of, d = family.precision_of, family.noise_of, family.n_regressors
    counts([d], "regressors")
    without_gaps(precision_of, "precision matrices")
    if noise_of is not None:
        without_gaps(noise_of, "noises")
        check(len(noise_of) == len(precision_of), "noises of other rows")
    check(family.n_components >= 1 and len(precision_of) % family.n_components == 0, "rows of no component")
    n_noises = 0 if noise_of is None else int(noise_of.max()) + 1
    n_cells = (int(precision_of.max()) + 1) * d * (d + 1) // 2 + len(precision_of) * d + 2 * n_noises
    floats(family.coordinates, n_cells, what="coordinates")
    check(0 < family.floor < np.inf, "a floor of variances that is none")


@checks("Product")
def _product(family: Any) -> None:
    check(family.blocks and family.n_cells == tuple(len(each.coordinates) for each in family.blocks), "other cells")


@checks("Hierarchical")
def _hierarchical(family: Any) -> None:
    check(_cells_below(family.hyperprior) == len(family.coordinates), "hyperparameters of other cells")
    parts = [each for _, each in getattr(family.hyperprior, "blocks", ((None, family.hyperprior),))]
    of_scales = [each.squares for each in parts if hasattr(each, "squares")]
    check([same(each, getattr(family.base, "square_cells", None)) for each in of_scales], "squares of other cells")
    weak = family.base + 1e-12 * family.hyperprior.prior_statistics
    check(weak.is_valid, "a prior that is no density where its hyperparameters are small")
    for cells, block in getattr(family.hyperprior, "blocks", ((np.s_[:], family.hyperprior),)):
        large = np.zeros(len(family.coordinates))
        large[cells] = 1e12 * block.prior_statistics
        check((weak + large).is_valid, "a prior that is no density where its hyperparameters are large")
    acted_on = (family.hyperprior.prior_statistics > 0) & ~family.base.signed  # sums go with precisions
    rates = np.asarray(weak.expected_natural())[acted_on]  # -1 or -1/2 times a precision or a rate
    check(rates < 0, "hyperparameters of what is no precision and no rate")


def _cells_below(hyperprior: Any) -> int:
    """Cells of the parameters that a hyperprior stands above."""
    return hyperprior.loadings.shape[1] if hasattr(hyperprior, "loadings") else hyperprior.n_cells


@checks("GammaHyperprior", "SharedGammaHyperprior")
def _gamma_hyperprior(hyperprior: Any) -> None:
    n = len(hyperprior.shape)
    for name in ("shape", "rate", "power"):
        floats(getattr(hyperprior, name), n, what="hyperparameters")
        check(_measures(getattr(hyperprior, name)), "hyperparameters that are not positive, or beyond all use")
    loadings = hyperprior.loadings
    check(len(loadings.shape) == 2 and loadings.shape[0] == n, "loadings of other groups")
    cells = loadings if isinstance(loadings, np.ndarray) else loadings.data
    floats(cells, *[None] * cells.ndim, what="loadings")
    check(np.isfinite(hyperprior.constant), "a constant that is not finite")


@checks("WishartHyperprior")
def _wishart_hyperprior(hyperprior: Any) -> None:
    d = len(hyperprior.scale)
    _definite(hyperprior.scale, d, "a scale")
    check(d - 1 < hyperprior.degrees_of_freedom < np.inf and 0 < hyperprior.power < np.inf, "too few degrees")
    counts([hyperprior.n_cells], "cells")
    _indices(hyperprior.squares, "squares", None, d * (d + 1) // 2, below=hyperprior.n_cells)
    check(len(np.unique(hyperprior.squares)) == hyperprior.squares.size, "squares that share cells")
    check(np.isfinite(hyperprior.constant), "a constant that is not finite")


@checks("BlockHyperpriors")
def _block_hyperpriors(hyperprior: Any) -> None:
    for cells, block in hyperprior.blocks:
        ends = cells.start, cells.stop
        check(cells.step is None and all(conforms(end, int) for end in ends), "blocks without ends")
        check(0 <= ends[0] < ends[1] <= hyperprior.n_cells, "blocks of no cells")
        check(_cells_below(block) == ends[1] - ends[0], "blocks of other cells")


def _definite(matrix: np.ndarray, d: int, what: str) -> None:
    floats(matrix, d, d, what=what)
    check(np.abs(matrix - matrix.T) <= 1e-9 * np.abs(matrix).max(initial=0), f"{what} that is not symmetric")
    check(np.linalg.eigvalsh(matrix) > 0, f"{what} that is not definite")


@checks("DirectionConcentration", "ShapeRate", "SizeProbability")
def _one_dimensional(family: Any) -> None:
    n = family.n_features
    counts([n], "features")
    for name in family.of_features:
        floats(getattr(family, name), n, what="parameters of priors")
        check(_measures(getattr(family, name)), "parameters of priors that are not positive, or beyond all use")
    knots = getattr(family, "knots", np.ones(1))
    floats(knots, None, what="knots")
    check((knots > 0) & np.isfinite(knots) & (np.diff(knots, prepend=0.0) > 0), "knots in no order")
    _cells(family, family.n_cells * n)


@checks("DirectionConcentrationPoint", "NormalPoint", "RegressionPoint", "ShapeRatePoint", "SizeProbabilityPoint")
def _point(point: Any) -> None:
    floats(point[0], *[None] * point[0].ndim, what="means")
    floats(point[1], *[None] * point[1].ndim, what="precisions")


# Emissions ------------------------------------------------------------------------------------------------------------


@checks("ExponentialEmission", "PoissonEmission")
def _units(emission: Any) -> None:
    """Refuse units that measure nothing."""
    floats(emission.unit, None, what="units")
    check(len(emission.unit) > 0 and _measures(emission.unit), "units that measure nothing")
    n = len(emission.unit)
    for name in ("origin", "mean"):
        if hasattr(emission, name):
            floats(getattr(emission, name), n, what=f"columns whose {name}s")
    check(0 < getattr(emission, "total_weight", 1.0) < _LARGEST, "data of no weight")


def _measures(units: np.ndarray) -> bool:
    """Whether units are positive, and neither squares of them nor of what they divide leave the range of floats."""
    return bool(np.all((units > 1 / _LARGEST) & (units < _LARGEST)))


@checks("ZeroInflatedEmission")
def _zero_inflated(emission: Any) -> None:
    ZeroInflated(emission.family).check_parameters()


@checks("DiagonalGaussian", "LogNormalEmission")
def _diagonal(emission: Any) -> None:
    _units(emission)
    check(not emission.spherical or np.ptp(emission.unit) == 0, "columns of different units on one precision")


@checks("DenseGaussian")
def _dense(emission: Any) -> None:
    d, whitener = len(emission.origin), emission.whitener
    check(d > 0, "no columns")
    floats(emission.origin, d, what="origins")
    floats(emission.mean, d, what="means")
    floats(whitener, d, d, what="axes")
    check(_measures(np.diagonal(whitener)), "axes that measure nothing")
    check(not np.triu(whitener, 1).any() and np.isfinite(emission.unwhitener), "axes that are none")
    check(0 < emission.total_weight < _LARGEST, "data of no weight")


@checks("GammaEmission")
def _gamma_emission(emission: Any) -> None:
    _units(emission)
    n = len(emission.unit)
    for name in ("log_mean", "log_deviation", "largest_shape"):
        floats(getattr(emission, name), n, what="columns whose moments")
    check(_measures(emission.log_deviation) and _measures(emission.largest_shape), "spreads that measure nothing")


@checks("NegativeBinomialEmission")
def _negative_binomial(emission: Any) -> None:
    _units(emission)
    check(0 <= emission.most <= LARGEST_COUNT, "a largest count that is none")


@checks("VonMisesEmission")
def _von_mises(emission: Any) -> None:
    floats(emission.largest_concentration, None, what="concentrations")
    check(len(emission.largest_concentration) > 0 and _measures(emission.largest_concentration), "no concentrations")
    check(_measures(np.array([emission.per_radian])), "angles without a unit")


@checks("StudentTEmission")
def _student_t(emission: Any) -> None:
    _dense(emission)
    check(emission.df > 0 and not emission.tied, "no degrees of freedom")


@checks("OrdinalEmission")
def _ordinal(emission: Any) -> None:
    floats(emission.price, emission.normal.n_columns, what="prices of edges")
    check(len(emission.reading.edges) == emission.normal.n_columns, "edges of other columns")
    check(emission.price >= 0, "prices below 0")


@checks("Edges")
def _edges(reading: Any) -> None:
    beyond = np.isposinf(reading.edges)
    floats(np.where(beyond, 0.0, reading.edges), None, None, what="edges")
    check(beyond[:, 1:] | (reading.edges[:, :-1] < reading.edges[:, 1:]), "edges in no order")


@checks("IntervalEmission", "Pairs")
def _intervals(emission: Any) -> None:
    """Nothing to check beyond types: the measurements are checked by themselves."""


@checks("Limits")
def _limits(limits: Any) -> None:
    check((limits.below < limits.above).all(), "limits with nothing between them")


@checks("FactorAnalyzer")
def _analyzer(emission: Any) -> None:
    _units(emission)
    d = emission.n_columns
    check(emission.has_gaps.shape == (d,) and emission.has_gaps.dtype == bool, "gaps of other columns")
    floats(emission.loadings, d, None, what="loadings")
    if emission.correlation.size:
        _definite(emission.correlation, d, "a correlation")
    numbers, groups = emission.n_factors_of, emission.group_of
    check(not numbers or (min(numbers) >= 0 and max(numbers) == emission.n_factors), "factors that are not there")
    if groups:
        without_gaps(np.array(groups), "groups")
        check(len(groups) == d, "groups of other columns")


@checks("HiddenNumberEmission", "RegressionEmission")
def _regression_emission(emission: Any) -> None:
    _units(emission)
    n, of_given = len(emission.given_unit), ("given_origin", "given_unit", "given_mean")
    for name in of_given:
        floats(getattr(emission, name), n, what="columns that explain and")
    check(_measures(emission.given_unit), "units that measure nothing")
    check(emission.n_lags >= 0 and emission.n_covariates >= 0, "regressors that are not there")
    counts([emission.n_regressors], "regressors", 0 if emission.is_hidden else 1)


@checks("CategoricalEmission")
def _categorical(emission: Any) -> None:
    check(emission.n_categories, "no columns")
    counts(emission.n_categories, "categories")


@checks("BernoulliEmission")
def _bernoulli(emission: Any) -> None:
    check(emission.n_categories and {*emission.n_categories} == {2}, "columns of other than two values")


@checks("MultinomialEmission")
def _multinomial(emission: Any) -> None:
    counts([emission.n_categories, emission.n_trials], "categories and trials")


@checks("Independent")
def _independent(emission: Any) -> None:
    check(emission.parts, "no groups of columns")


def _belongs_to(prior: Any, emission: Any, n_components: int) -> None:
    """Refuse the prior of another emission, or of other components: other families, sizes or indices."""
    parts = parts_of(emission)  # one part may have a product of priors itself
    blocks = getattr(prior, "blocks", ()) if hasattr(emission, "parts") else (prior,)
    check(len(blocks) == len(parts), "a prior of other groups of columns")
    for block, part in zip(blocks, parts):
        base, numbers = getattr(block, "base", block), getattr(part, "n_factors_of", ())
        check(len(numbers) in (0, n_components), "factors of other components")
        small = part.cells_per_component <= len(base.coordinates) >= n_components  # before as many are made
        _same_layout(part.default_prior(n_components) if small else None, base)


def _same_layout(made: Any, family: Any) -> None:
    """Refuse a family of another kind, of other cells, or with such a part."""
    made, base = getattr(made, "base", made), getattr(family, "base", family)
    check(type(made) is type(base) and len(made.coordinates) == len(base.coordinates), "a prior of other columns")
    check(all(same(getattr(made, n, None), getattr(base, n, None)) for n in _LAYOUT), "a prior of other columns")
    parts, others = getattr(made, "blocks", ()), getattr(base, "blocks", ())
    check(len(parts) == len(others), "a prior of other parts")
    for part, other in zip(parts, others):
        _same_layout(part, other)


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, both perhaps None."""
    return one is other or np.array_equal(one, other)


# Models ---------------------------------------------------------------------------------------------------------------


@checks("Transitions")
def _transitions(transitions: Any) -> None:
    floats(transitions.concentration, None, None, what="transitions")


@checks("SemiMarkovRows")
def _semi_markov_rows(rows: Any) -> None:
    n, n_ages = rows.n_states, rows.n_ages
    counts(rows.bins.tolist(), "bins", least=0)
    steps = np.diff(rows.bins)
    check(n_ages > 0 and rows.bins[0] == 0 and ((steps == 0) | (steps == 1)).all(), "bins that are out of order")
    floats(rows.leaving, None, n, int(rows.bins[-1]) + 1, 2, what="durations")
    floats(rows.others, n, n, what="transitions")
    if rows.first_ages is not None:
        floats(rows.first_ages, n, n_ages, what="first ages")
    check(not np.diag(rows.others).any(), "transitions to the same state")


@checks("FiniteWeights")
def _weights(weights: Any) -> None:
    floats(weights.concentration, None, what="concentrations")
    check(len(weights.concentration) > 0 and weights.concentration > 0, "concentrations that are not positive")


@checks("RowWeights")
def _row_weights(weights: Any) -> None:
    counts([weights.n_components], "components")


@checks("Inert")
def _inert(family: Any) -> None:
    floats(family.coordinates, None, what="counts")


@checks("Design")
def _design(design: Any) -> None:
    n, _ = design.regressors.shape if design.regressors.ndim == 2 else (0, 0)
    floats(design.regressors, n, None, what="regressors")
    floats(design.weight, n, what="shares of rows")
    check(n > 0 and design.weight > 0, "rows of no weight")
    check(np.isclose(design.weight.sum(), 1.0), "shares that do not sum to 1")
    check(design.regressors.shape[1] > 0 and design.regressors[:, 0] == 1, "regressors without a constant")


@checks("SoftmaxRegression")
def _softmax(family: Any) -> None:
    p = family.design.regressors.shape[1]
    floats(family.coordinates, None, what="coordinates")
    check(len(family.coordinates) % p == 0 and len(family.coordinates) >= 2 * p, "coefficients of other regressors")


@checks("Coding")
def _coding(coding: Any) -> None:
    counts(coding.n_categories, "categories", 0)
    n = sum(max(levels - 1, levels == 0) for levels in coding.n_categories)
    floats(coding.mean, n, what="means")
    floats(coding.unit, n, what="units")
    check(_measures(coding.unit), "units that measure nothing")


def _coded(part: Any) -> None:
    check(len(part.selected) == len(part.coding.n_categories), "other covariates")
    check(part.design.regressors.shape[1] == len(part.coding.mean) + 1, "regressors of other covariates")


@checks("SoftmaxMembership")
def _membership(emission: Any) -> None:
    _coded(emission)
    counts([emission.n_given], "covariates")
    check({*emission.selected} <= {*range(emission.n_given)}, "covariates that are not there")


@checks("GivenColumns")
def _given(emission: Any) -> None:
    counts([emission.n_given], "covariates")


@checks("SoftmaxRows")
def _softmax_rows(family: Any) -> None:
    _mask(family.allowed)
    (n, p), rows = family.design.regressors.shape, family.allowed
    floats(family.coordinates, None, what="coordinates")
    check(len(family.coordinates) == rows.size * p + p + n * len(rows), "coefficients of other rows")


def _mask(allowed: Any) -> None:
    check(allowed.ndim == 2 and allowed.dtype == bool, "a mask that is none")
    check(allowed.any(axis=1), "states that lead nowhere")


@checks("SoftmaxTransitions")
def _softmax_transitions(rows: Any) -> None:
    _mask(rows.allowed)
    _coded(rows)
    floats(rows.precision, len(rows.coding.mean) + 1, what="precisions")
    check(rows.precision > 0, "precisions that are not positive")
    check(all(at >= 0 for at in rows.selected), "other covariates")


@checks("StickBreaking")
def _sticks(weights: Any) -> None:
    counts([weights.n_components], "components")
    check(0 < weights.concentration < np.inf, "a concentration that is not positive")


@checks("CovariateHMM", "HMM", "Mixture", "SemiMarkovHMM")
def _label_model(model: Any) -> None:
    parts = [getattr(model, name) for name in ("weights", "initial", "transitions") if hasattr(model, name)]
    n, blocks = model.n_components, model.prior.blocks
    sizes = [getattr(part, "n_components", getattr(part, "n_states", None)) for part in parts]
    check(1 <= n <= model.n_cells, "components that are no count")
    check([n] * len(parts) == sizes, "parts for other numbers of components")
    check(len(blocks) == len(parts) + 1, "a prior of other parts")
    for part, block in zip(parts, blocks):
        check(type(part.prior) is type(block), "a prior of other parts")
        check(
            same(getattr(part.prior, "row_starts", None), getattr(block, "row_starts", None)), "a prior of other parts"
        )
    rows = [len(part.concentration) for part in parts[-2:]] if hasattr(model, "initial") else [1, n]
    check(rows == [1, n], "transitions from other states")
    if hasattr(model, "part"):
        check(0 <= model.part < len(parts_of(model.emission)), "covariates of no group of columns")
        given = parts_of(model.emission)[model.part]
        most = max((at for part in parts for at in getattr(part, "selected", ())), default=0)
        check(most < given.n_columns, "other covariates")
    _belongs_to(blocks[-1], model.emission, n)


@checks("FirstStates")
def _first_states(first: Any) -> None:
    k = len(first.mean)
    floats(first.mean, k, what="means of states")
    _definite(first.precision, k, "a precision")
    check(first.constant is None or (np.ndim(first.constant) == 0 and np.isfinite(first.constant)), "no constant")


@checks("LinearDynamicalSystem")
def _system(model: Any) -> None:
    blocks, dynamics, emission = model.prior.blocks, model.dynamics, model.emission
    k, learned = dynamics.n_rows, blocks[2:]
    check(len(blocks) == 2 + (model.first is None), "a prior of other parts")
    for block, family in zip(blocks, (dynamics, emission)):
        base = regression_of(block)
        alike = type(base) is type(family) and all(same(getattr(base, n, 0), getattr(family, n, 0)) for n in _LAYOUT)
        check(alike, "a prior of other regressions")
    check(dynamics.noise_of is None and emission.noise_of is not None, "noises that are known, or are not")
    check(min(dynamics.n_regressors, emission.n_regressors) >= k, "fewer regressors than states")
    if learned:
        check(getattr(learned[0], "scale", np.empty(0)).shape == (1, k, k), "first states of other numbers")
    check(learned or len(model.first.mean) == k, "first states of other numbers")
    _units(model)
    check(len(model.unit) == emission.n_rows and len(model.origin) == emission.n_rows, "units of other columns")


@checks("StructuralDesign")
def _structural_design(design: Any) -> None:
    k, p, n = len(design.start), len(design.reading), design.n_noises
    floats(design.transition, k, k, what="transitions")
    floats(design.reading, p, k, what="readings")
    floats(design.start, k, what="variances of first states")
    check(design.start > 0, "variances of first states that are none")
    for name, least, size in (("noise_of", -1, n), ("block_of", 0, len(design.block_names)), ("column_of", 0, p)):
        numbers = getattr(design, name)
        check(numbers.shape == (k,) and numbers.dtype == np.int64, f"{name} that are no whole numbers")
        check(
            {*range(size)} <= {*numbers.tolist()} <= {*range(least, size)}, f"{name} that are none of those there are"
        )
    check(design.is_level.shape == (k,) and design.is_level.dtype == bool, "levels of other states")
    learned, first = design.learned, np.flatnonzero(np.diff(design.column_of, prepend=-1))
    check(learned.dtype == np.int64 and len(learned) in (0, p), "learned rows of other columns")
    check((design.order > 0) == (len(learned) > 0), "learned rows without entries")
    if len(learned):
        ends = np.append(first[1:], k)
        check((first <= learned) & (learned + design.order < ends), "learned rows of other states")
    check(all(isinstance(name, str) for name in (*design.noise_names, *design.block_names)), "names that are no texts")


@checks("StructuralModel")
def _structural(model: Any) -> None:
    blocks, emission, design = model.prior.blocks, model.emission, model.design
    p, base = len(design.reading), regression_of(blocks[0])
    has_noises, n_learned = design.n_noises > 0, len(design.learned)
    check(len(blocks) == 1 + has_noises + (n_learned > 0), "a prior of other parts")
    check(all(same(getattr(base, n, 0), getattr(emission, n, 0)) for n in _LAYOUT), "a prior of other regressions")
    each = np.arange(p)
    check(same(emission.precision_of, each) and same(emission.noise_of, each), "columns that share a noise")
    for block in blocks[1 : 1 + has_noises]:
        check(len(block.coordinates) == 2 * design.n_noises, "noises of other states")
    check((model.autoregression is None) == (n_learned == 0), "autoregressions of other columns")
    if n_learned:
        rows, base = model.autoregression, regression_of(blocks[-1])
        check(all(same(getattr(base, n, 0), getattr(rows, n, 0)) for n in _LAYOUT), "a prior of other autoregressions")
        check(same(rows.precision_of, each) and same(rows.noise_of, each), "autoregressions that share a noise")
        check(rows.n_regressors == design.order, "autoregressions of other orders")
    _units(model)
    check(len(model.unit) == p and len(model.origin) == p, "units of other columns")


@checks("Layout")
def _layout(layout: Any) -> None:
    n = len(layout.names)
    check(len(set(layout.names)) == n == len(layout.cardinalities) == len(layout.parents), "nodes not alike in number")
    counts(layout.cardinalities, "cardinalities")
    places = {*range(n)}
    check(all(places.issuperset(parents) for parents in layout.parents), "parents that are no nodes")
    check(0 <= layout.n_emissions <= n, "more emissions than nodes")
    check({*layout.driven} <= {*range(n - layout.n_emissions)}, "driven nodes without a table")
    check(not any(layout.parents[node] for node in layout.driven), "driven nodes with parents")
    check(len(layout.ties) in (0, n), "ties of other nodes")
    for node, tie in enumerate(layout.ties):
        check(tie is None or _is_tie(layout, node, tie), "ties of tables that are unlike")


def _is_tie(layout: Any, node: int, tie: Any) -> bool:
    other, of_parents = tie
    size = layout.cardinalities
    if other not in range(len(layout.names)) or other == node or layout.ties[other] is not None:
        return False
    theirs = layout.parents[other]
    if sorted(of_parents) != [*range(len(theirs))] or len(theirs) != len(layout.parents[node]):
        return False
    pairs = zip(layout.parents[node], of_parents)
    return size[node] == size[other] and all(size[mine] == size[theirs[place]] for mine, place in pairs)


@checks("DiscreteDAG", "MixedNetwork")
def _network(model: Any) -> None:
    layout = model.layout
    driven = getattr(model, "driven", ())
    check(len({*driven}) == len(driven) and {*driven} <= {*layout.names[: layout.n_tables]}, "no nodes that are driven")
    check(tuple(map(model.position.get, driven)) == layout.driven, "other nodes that are driven")
    n_nodes = len(layout.names) - len(driven)
    nodes, memberships = layout.names[:n_nodes], layout.names[n_nodes:]
    check(memberships == tuple(map(name_of_membership, driven)), "memberships of other nodes")
    check({*nodes} == {*model.dag.nodes}, "nodes that are not those of its graph")
    check(model.position == {node: k for k, node in enumerate(layout.names)}, "nodes at other positions")
    of_nodes = ([model.position[p] for p in model.dag.parents(node)] for node in nodes)
    parents = tuple(  # what an emission has of other emissions is given, and none of its layout; so are covariates
        tuple(p for p in of if (node < layout.n_tables and node not in layout.driven) or p < layout.n_tables)
        for node, of in enumerate(of_nodes)
    )
    check((*parents, *((k,) for k in layout.driven)) == layout.parents, "parents that are not those of its graph")
    blocks, emissions = getattr(model.prior, "blocks", (model.prior,)), getattr(model, "emissions", ())
    check(len(blocks) == 1 + len(emissions) and len(emissions) == layout.n_emissions, "a prior of other nodes")
    starts = getattr(blocks[0], "row_starts", np.zeros(1))
    check(layout.n_table_cells == starts[-1], "a prior of other tables")  # before rows are counted
    check(same(starts, layout.row_starts), "a prior of other tables")
    for block, emission, n, size in zip(
        blocks[1:], emissions, getattr(model, "n_states", ()), layout.cardinalities[layout.n_tables :]
    ):
        _belongs_to(block, emission, n)
        check(size == emission.cells_per_component, "emissions of other sizes")
    clusters = getattr(getattr(model, "partition", None), "clusters", ())
    members = [node for cluster in clusters for node in cluster]
    check(len({*members}) == len(members) and {*members} <= {*range(layout.n_tables)}, "clusters of no nodes")
