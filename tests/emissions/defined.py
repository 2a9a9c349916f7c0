"""Every emission with a prior in the units of the data, for which `reference.mixtures` has the definition."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from reference import mixtures

from skvbem.emissions import EMISSIONS, FactorGaussian, Gaussian, Regression
from skvbem.emissions.independent import Independent


class Defined(NamedTuple):
    """Rows, an emission with options of its prior, and the log evidence of rows in groups by definition."""

    values: np.ndarray
    emission: Any
    options: dict
    of_groups: Any


def measurements(rng, n, gaps, d=2):
    values = np.array([3.0, -20.0])[:d] + rng.normal(size=(n, d)) * rng.choice([0.3, 2.0], size=(n, 1))
    return np.where(rng.random(values.shape) < gaps, np.nan, values)


def gaussian(covariance_type, rng, n, gaps=0.0):
    values = measurements(rng, n, gaps)
    mean, kappa, dof = rng.normal([3.0, -20.0], 1.0), rng.uniform(0.3, 2.0), rng.uniform(2.0, 5.0)
    root = rng.normal(size=(2, 3))
    scale = {"diag": rng.uniform(0.5, 2.0, 2), "spherical": rng.uniform(0.5, 2.0)}.get(covariance_type, root @ root.T)
    emission = Gaussian(covariance_type).for_data(values)
    options = {
        "mean_prior": mean,
        "mean_precision_prior": kappa,
        "degrees_of_freedom_prior": dof,
        "covariance_prior": scale,
    }
    of_groups = partial(getattr(mixtures, covariance_type), mean=mean, kappa=kappa, dof=dof, scale=scale)
    return Defined(values, emission, options, of_groups)


def factor(rng, n, gaps=0.0):
    """Without factors, of which nothing is hidden: a variance for each column, its prior in units of the data."""
    values = measurements(rng, n, gaps)
    mean, kappa, shape, rate = rng.normal([3.0, -20.0], 1.0), rng.uniform(0.3, 2.0), *rng.uniform(1.0, 2.5, size=2)
    emission = FactorGaussian(0).for_data(values)
    options = {"mean_prior": mean, "mean_precision_prior": kappa, "noise_prior": (shape, rate)}
    of_groups = partial(mixtures.diag, mean=mean, kappa=kappa, dof=2 * shape, scale=2 * rate * emission.unit**2)
    return Defined(values, emission, options, of_groups)


def categorical(name, rng, n, gaps=0.0):
    sizes = (2, 2, 2) if name == "bernoulli" else (3, 2, 2)
    values = np.where(rng.random((n, 3)) < gaps, -1, rng.integers(0, sizes, size=(n, 3)))
    concentration = rng.uniform(0.3, 2.0)
    options = {} if name == "bernoulli" else {"n_categories": sizes}
    emission = EMISSIONS[name]().for_data(values, **options)
    given = (concentration,) * 2 if name == "bernoulli" else concentration
    of_groups = partial(mixtures.categorical, concentration=concentration, sizes=sizes)
    return Defined(values, emission, {"concentration": given}, of_groups)


def rates(name, rng, n, gaps=0.0):
    draw = rng.poisson if name == "poisson" else rng.exponential
    values = draw(rng.choice([1.0, 9.0], size=(n, 1)) * [1.0, 3.0]).astype(float)
    values = np.where(rng.random(values.shape) < gaps, np.nan, values)
    shape, rate = rng.uniform(0.5, 3.0), rng.uniform(0.2, 2.0)
    of_groups = partial(getattr(mixtures, name), shape=shape, rate=rate)
    return Defined(values, EMISSIONS[name]().for_data(values), {"shape": shape, "rate": rate}, of_groups)


def regression(rng, n, gaps=0.0):
    """Two responses on one covariate, which is never missing."""
    given = rng.normal(4.0, 2.0, size=(n, 1))
    values = np.column_stack([measurements(rng, n, gaps) + given * rng.choice([-1.0, 2.0], size=(n, 1)), given])
    kappa, dof, variance = rng.uniform(0.3, 2.0), rng.uniform(1.0, 5.0), rng.uniform(0.5, 2.0, 2)
    emission = Regression(["u"]).for_data(values)
    options = {"coefficient_precision_prior": kappa, "degrees_of_freedom_prior": dof, "variance_prior": variance}
    units = {name: getattr(emission, name) for name in ("origin", "unit", "given_origin", "given_unit")}
    of_groups = partial(mixtures.regression, kappa=kappa, dof=dof, variance=variance, **units)
    return Defined(values, emission, options, of_groups)


def multinomial(rng, n, gaps=0.0):
    values = rng.multinomial(rng.integers(0, 6, size=n), [0.5, 0.3, 0.2]).astype(float)
    values[rng.random(n) < gaps] = np.nan
    concentration = rng.uniform(0.3, 2.0)
    of_groups = partial(mixtures.multinomial, concentration=concentration)
    return Defined(values, EMISSIONS["multinomial"]().for_data(values), {"concentration": concentration}, of_groups)


def independent(rng, n, gaps=0.0):
    """Side by side in one array; codes are whole floats there."""
    parts = [gaussian("diag", rng, n, gaps), categorical("categorical", rng, n, gaps), rates("poisson", rng, n, gaps)]
    emission = Independent(tuple(part.emission for part in parts))

    def of_groups(groups):
        return (
            parts[0].of_groups([rows[:, :2] for rows in groups])
            + parts[1].of_groups([rows[:, 2:5].astype(int) for rows in groups])
            + parts[2].of_groups([rows[:, 5:] for rows in groups])
        )

    values = np.concatenate([part.values for part in parts], axis=1)
    return Defined(values, emission, {"options": [part.options for part in parts]}, of_groups)


DEFINED = {
    **{name: partial(gaussian, name) for name in ("full", "tied", "diag", "spherical")},
    "factor": factor,
    **{name: partial(categorical, name) for name in ("categorical", "bernoulli")},
    **{name: partial(rates, name) for name in ("poisson", "exponential")},
    "multinomial": multinomial,
    "regression": regression,
    "independent": independent,
}


def as_emission_takes(name, values):
    """Rows in one array as the emission has them."""
    return (values[:, :2], values[:, 2:5].astype(int), values[:, 5:]) if name == "independent" else values
