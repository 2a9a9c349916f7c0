"""The parameters that make the prior of an emission, and refusals where they make none."""

from __future__ import annotations

import numpy as np

from skvbem._compat import warn
from skvbem.emissions import DenseGaussian, Emission
from skvbem.errors import DataWarning, TooLargeError
from skvbem.estimators.input.column_groups import ColumnGroups, Group
from skvbem.estimators.input.rows import TableReading
from skvbem.estimators.input.values import _columns, _show, _some
from skvbem.families.base import ConjugateFamily

#: Parameters of `VBMixture` that make the prior of each family, and what the emission calls them.
PRIOR_PARAMETERS: dict[str, dict[str, str]] = {
    "gaussian": {
        "mean_prior": "mean_prior",
        "mean_precision_prior": "mean_precision_prior",
        "degrees_of_freedom_prior": "degrees_of_freedom_prior",
        "covariance_prior": "covariance_prior",
    },
    "categorical": {"concentration_prior": "concentration"},
    "bernoulli": {"concentration_prior": "concentration"},
    "multinomial": {"concentration_prior": "concentration"},
    "poisson": {"shape_prior": "shape", "rate_prior": "rate"},
    "exponential": {"shape_prior": "shape", "rate_prior": "rate"},
}


# Positive parameters of priors: beyond these their digamma functions, or their inverses, leave the floats.
_LEAST, _MOST = 1e-300, 1e300


# How far from the data a prior mean may be, and how much narrower than they a prior covariance, in standard deviations:
# scales, differences of squares, keep ten digits then, as many as the law asks for that no step lowers the bound.
_FARTHEST = 1e3


def warn_of_oddities(
    rows: TableReading, emission: Emission, n_components: int, n_rows: int, total_weight: float
) -> None:
    """Warn of components that must stay empty, and of columns of measurements that say nothing, or nothing new."""
    groups = rows.groups
    if n_components > total_weight:
        warn(
            f"'n_components' of {groups.owner} is {n_components} for rows of total weight {total_weight:g}: some "
            "components must stay empty."
        )
    if n_rows == 1:
        return
    for k, (group, part) in enumerate(zip(groups.groups, getattr(emission, "parts", (emission,)))):
        if group.family in ("gaussian", "exponential"):
            constant = _constant(rows, k)
            if len(constant):
                names = [group.names[j] for j in constant]
                what = "holds one value" if len(names) == 1 else "hold one value each"
                warn(f"{_columns(names)} of X {what} wherever observed: no component differs there.", DataWarning)
        if isinstance(part, DenseGaussian) and total_weight > len(group.columns):
            names = [group.names[j] for j in part.collinear(total_weight)]
            if names:
                warn(
                    f"{_columns(names)} of X are linear functions of each other: only the prior, or the floor of "
                    "maximum likelihood, gives components any width there. Leave one of them out.",
                    DataWarning,
                )


def _constant(rows: TableReading, k: int) -> np.ndarray:
    """The columns of a group that hold one value."""
    low, high = np.inf, -np.inf
    for values, _ in rows.blocks:
        low = np.fmin(low, np.fmin.reduce(values[k], axis=0, initial=np.inf))
        high = np.fmax(high, np.fmax.reduce(values[k], axis=0, initial=-np.inf))
    return np.flatnonzero(low == high)


def check_size(
    emission: Emission, n_components: int, n_starts: int, max_memory: float, owner: str, more_cells: int = 0
) -> None:
    """Refuse components and starts that take more memory than the limit, before anything is allocated.

    A component has the cells of the emission and `more_cells`.
    """
    cells = len(emission.component_of_cell(2)) - len(emission.component_of_cell(1)) + more_cells
    # the driver holds four points of each start; the least block of rows is 16
    n_bytes = 8.0 * n_components * n_starts * (4 * cells + 2 * 16)
    if n_bytes > max_memory:
        raise TooLargeError(
            f"{n_components} components of {cells} numbers each take at least {n_bytes:.4g} bytes in {n_starts} "
            f"start{'s' * (n_starts > 1)}; the 'max_memory' parameter of {owner} allows {max_memory:.4g}. Raise it, or "
            "take fewer components or starts."
        )


def resolve_emission_prior(estimator, groups: ColumnGroups, emission: Emission, n_components: int) -> ConjugateFamily:
    """The prior of the emission that the estimator's prior parameters stand for."""
    options = []
    for group, of_group in zip(groups.groups, getattr(emission, "parts", (emission,))):
        given = {
            theirs: _checked(estimator, ours, group, of_group)
            for ours, theirs in PRIOR_PARAMETERS[group.family].items()
        }
        options.append({name: value for name, value in given.items() if value is not None})
    if len(options) == 1:
        prior = emission.default_prior(n_components, **options[0])
    else:
        prior = emission.default_prior(n_components, options=options)  # type: ignore[call-arg]
    if not np.all(prior.is_valid):
        names = dict.fromkeys(ours for group in groups.groups for ours in PRIOR_PARAMETERS[group.family])
        raise ValueError(
            f"The parameters {_some(map(repr, names))} of {type(estimator).__name__} make no prior for this X: in "
            "the units of the data its numbers leave the floats. Leave them at their defaults, or measure X in "
            "another unit."
        )
    return prior


def _checked(estimator, name: str, group: Group, emission: Emission):
    """A parameter as the emission of a group takes it; refused if it makes no density over the group's columns."""
    value, owner, d = getattr(estimator, name), type(estimator).__name__, len(group.columns)
    if name == "mean_precision_prior":
        return _mean_precision(owner, value)
    if value is None:
        return None
    if name == "mean_prior":
        return _mean(owner, value, emission, estimator.mean_precision_prior)
    if name == "degrees_of_freedom_prior":
        return _degrees_of_freedom(owner, value, d, estimator.covariance_type)
    if name == "covariance_prior":
        return _covariance(owner, value, emission, estimator.covariance_type)
    if name == "concentration_prior" and group.encoder is not None:
        return _of_categories(owner, name, value, group)
    length = 2 if group.family == "bernoulli" else d
    numbers = _positive(owner, name, value)
    if numbers.ndim and numbers.shape != (length,):
        raise ValueError(
            f"The {name!r} parameter of {owner} must be a number or have {length} entries, for {group.family!r}. Got "
            f"an array of shape {numbers.shape}."
        )
    return np.broadcast_to(numbers, length) if group.family == "bernoulli" else numbers


def _degrees_of_freedom(owner: str, value: float, d: int, covariance_type: str) -> float:
    least = d - 1 if covariance_type in ("full", "tied") else 0
    if value <= least:
        raise ValueError(
            f"The 'degrees_of_freedom_prior' parameter of {owner} must be above {least}, the number of measurements "
            f"less one. Got {value!r} instead."
        )
    return value


def _mean_precision(owner: str, value: float) -> float:
    if not 1e-100 <= value <= 1e12:
        raise ValueError(
            f"The 'mean_precision_prior' parameter of {owner} must lie between 1e-100 and 1e12 rows. Got {value!r} "
            "instead."
        )
    return value


def _mean(owner: str, value, emission: Emission, mean_precision: float) -> np.ndarray:
    mean = _finite(owner, "mean_prior", value, (emission.n_columns,))
    with np.errstate(over="ignore"):
        away = float(np.abs(emission.places(emission.prepare(mean[None]))).max())
    if away > _FARTHEST or mean_precision * away**2 > _FARTHEST**2:
        raise ValueError(
            f"The 'mean_prior' parameter of {owner} must lie within {_FARTHEST:g} standard deviations of the mean of "
            f"X, fewer where 'mean_precision_prior' is above 1. Got {_show(value)}, which is {away:.3g} away, and a "
            f"'mean_precision_prior' of {mean_precision:g}."
        )
    return mean


def _covariance(owner: str, value, emission: Emission, covariance_type: str) -> np.ndarray:
    d = emission.n_columns
    shape = {"full": (d, d), "tied": (d, d), "diag": (d,), "spherical": ()}[covariance_type]
    covariance = _finite(owner, "covariance_prior", value, shape)
    if covariance.ndim == 2:
        unit = np.sqrt(np.abs(np.diagonal(covariance)))
        symmetric = np.allclose(covariance, covariance.T, rtol=1e-8, atol=0.0) and (unit > 0).all()
        positive = symmetric and np.linalg.eigvalsh(covariance / unit / unit[:, None]).min() > 0
        inside = positive and np.linalg.eigvalsh(_in_frame(covariance, emission)).min()
        wanted = "symmetric and positive definite."
    else:
        positive, wanted = bool((covariance > 0).all()), "> 0."
        inside = positive and (covariance / emission.unit[: max(covariance.size, 1)] ** 2).min()  # type: ignore[attr-defined]
    if not positive:
        raise ValueError(f"The 'covariance_prior' parameter of {owner} must be {wanted} Got {_show(value)} instead.")
    if inside < _FARTHEST**-2:
        raise ValueError(
            f"The 'covariance_prior' parameter of {owner} must leave components at least {1 / _FARTHEST:g} times as "
            f"wide as X in every direction. Got {_show(value)}."
        )
    return covariance


def _in_frame(covariance: np.ndarray, emission: Emission) -> np.ndarray:
    whitener = emission.whitener  # type: ignore[attr-defined]
    scale = whitener @ covariance @ whitener.T
    return (scale + scale.T) / 2


def _of_categories(owner: str, name: str, value, group: Group) -> float | list[np.ndarray]:
    """A number, or one for each column or for each category of each column."""
    if np.isscalar(value):
        return float(_positive(owner, name, value))
    sizes = group.encoder.n_categories_.tolist()  # type: ignore[union-attr]
    rows = list(value)
    if len(rows) != len(sizes):
        raise ValueError(
            f"The {name!r} parameter of {owner} must be a number or have {len(sizes)} entries, for 'categorical'. Got "
            f"{len(rows)}."
        )
    found = [_positive(owner, name, row) for row in rows]
    for column, row, size in zip(group.names, found, sizes):
        if row.ndim and row.shape != (size,):
            raise ValueError(
                f"The {name!r} parameter of {owner}, for column {column!r}, must be a number or have one for each of "
                f"its {size} categories. Got an array of shape {row.shape}."
            )
    return found


def _positive(owner: str, name: str, value) -> np.ndarray:
    """A parameter as positive floats."""
    numbers = _floats(owner, name, value)
    if not (np.isfinite(numbers).all() and (numbers > 0).all()):
        raise ValueError(f"The {name!r} parameter of {owner} must be > 0 and finite. Got {_show(value)} instead.")
    if not ((numbers >= _LEAST).all() and (numbers <= _MOST).all()):
        raise ValueError(
            f"The {name!r} parameter of {owner} must lie between {_LEAST:g} and {_MOST:g}. Got {_show(value)} instead."
        )
    return numbers


def _finite(owner: str, name: str, value, shape: tuple) -> np.ndarray:
    """A parameter as a finite array of a shape."""
    wanted = f"a finite array of shape {shape}" if shape else "a finite number"
    array = _floats(owner, name, value, wanted)
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"The {name!r} parameter of {owner} must be {wanted}. Got {_show(value)} instead.")
    return array


def _floats(owner: str, name: str, value, wanted: str = "a number or an array-like of numbers") -> np.ndarray:
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"The {name!r} parameter of {owner} must be {wanted}. Got {_show(value)} instead.") from None


def responsibilities_of(init, n_rows: int, n_components: int, owner: str) -> np.ndarray:
    """Responsibilities given to start from, checked, (n_rows, n_components)."""
    whose = f"The 'init' parameter of {owner}"
    try:
        given = np.asarray(init, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{whose} must hold numbers, rows of one length. Got {_show(init)} instead.") from None
    if given.shape != (n_rows, n_components):
        raise ValueError(
            f"{whose} must have a row for each of the {n_rows} rows of X and a column for each of the {n_components} "
            f"components. Got an array of shape {given.shape}."
        )
    bad = np.flatnonzero(~((given >= 0).all(axis=1) & np.isclose(given.sum(axis=1), 1.0)))
    if len(bad):
        raise ValueError(
            f"{whose} must have rows of responsibilities >= 0 that sum to 1. Row {bad[0]} is {_show(given[bad[0]])}."
        )
    return given
