"""Random members, points and statistics of every family in the registry: what the laws of families are tried on."""

from dataclasses import replace

import numpy as np

from skvbem.families import (
    DirectionConcentration,
    Dirichlet,
    DirichletMixture,
    Gamma,
    NormalGamma,
    NormalWishart,
    Product,
    Regression,
    ShapeRate,
    SizeProbability,
)
from skvbem.testing import FamilyExample


def dirichlet(rng, n_members=3):
    """Rows of one to five cells, the first of two at least; concentrations from 1e-3 to 1e5; counts, many of them 0."""
    rows = [rng.integers(2, 6), *rng.integers(1, 6, size=rng.integers(0, 4))]
    starts = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
    shape = (starts[-1], n_members)
    concentration, other = 10.0 ** rng.uniform(-3, 5, size=(2, *shape))
    counts = rng.exponential(10.0 ** rng.uniform(-1, 3), size=shape) * (rng.random(shape) < 0.7)
    at = lambda c: Dirichlet(c, starts)  # noqa: E731
    return FamilyExample(at(concentration), counts, counts + 1, concentration, other, at, 1e-3 * concentration)


def dirichlet_mixture(rng, n_members=3):
    """One to three tables of one to three rows, one to four alternatives; concentrations from 1e-2 to 1e3; counts."""
    n_alternatives, shapes = rng.integers(1, 5), rng.integers([1, 2], [4, 5], size=(rng.integers(1, 4), 2))
    prior = DirichletMixture.from_tables([10.0 ** rng.uniform(-2, 3, (n_alternatives, *each)) for each in shapes])
    n_cells, least = len(prior.coordinates), prior.coordinates[:, None]

    def data(share):
        counts = rng.exponential(10.0 ** rng.uniform(-1, 2), size=(n_cells, n_members))
        return counts * (rng.random((n_cells, n_members)) < share)

    coordinates = least + data(0.7)
    steps, statistics = 1e-3 * np.minimum(coordinates, 1.0), data(0.7)
    other = replace(prior, coordinates=least + data(0.7))
    return _case(replace(prior, coordinates=coordinates), statistics, statistics + 1, other, steps)


def _case(prior, statistics, more, other, steps):
    at = lambda c: replace(prior, coordinates=c)  # noqa: E731
    return FamilyExample(prior, statistics, more, prior.coordinates, other.coordinates, at, steps)


def gamma(rng, n_members=3):
    """One to three components of one to three features; shapes and rates from 1e-3 to 1e4; counts in exposures."""
    shape = (*rng.integers(1, 4, size=2), n_members)

    def member():
        return Gamma.from_parameters(10.0 ** rng.uniform(-3, 4, shape), 10.0 ** rng.uniform(-3, 4, shape))

    def data(share):
        exposure = rng.exponential(20, size=shape) * (rng.random(shape) < share)
        events = exposure * rng.exponential(3, size=shape)
        return Gamma.from_parameters(events, exposure).coordinates

    prior = member()
    return _case(prior, data(0.7), data(1.0), member(), 1e-3 * prior.coordinates)


def normal_gamma(rng, n_members=3):
    """Precisions of features or of components; weights from 1e-2 to 1e3; the moments of weighted rows, gaps in them."""
    n_components, d = rng.integers(1, 4, size=2)
    p = rng.choice([1, d])

    def member():
        kappa = 10.0 ** rng.uniform(-2, 3, (n_components, d, n_members))
        dof = 10.0 ** rng.uniform(-1, 3, (n_components, p, n_members))
        scale = dof * 10.0 ** rng.uniform(-1, 1, dof.shape)
        return NormalGamma.from_parameters(rng.normal(size=kappa.shape), kappa, dof, scale)

    def data(share):
        shape = (n_components, d, n_members, 7)
        x, weight = rng.normal(rng.normal(size=(*shape[:-1], 1)), 0.5, size=shape), rng.exponential(5, size=shape)
        weight *= rng.random((*shape[:-1], 1)) < share
        n, total, square = weight.sum(axis=-1), (weight * x).sum(axis=-1), (weight * x**2).sum(axis=-1)
        if p < d:
            n_precision, square = n.sum(axis=1, keepdims=True), square.sum(axis=1, keepdims=True)
        else:
            n_precision = n
        return np.concatenate([n, n_precision, total, square], axis=1).reshape(-1, n_members)

    prior = member()
    kappa, mean, scale = prior.mean_precision, abs(prior.mean) + 1e-9, prior.scale
    of_mean, of_sum = np.minimum(kappa, scale / mean**2), np.minimum(np.sqrt(kappa * scale), scale / mean)
    steps = np.concatenate([of_mean, prior.degrees_of_freedom, of_sum, scale], axis=1).reshape(-1, n_members)
    return _case(prior, data(0.7), data(1.0), member(), 1e-3 * steps)


def normal_wishart(rng, n_members=3):
    """Precisions of each component or one for all; degrees of freedom from just above d - 1 to 1e3."""
    n_components, d = rng.integers(1, 4, size=2)
    n_precisions = rng.choice([1, n_components])
    shared = bool(n_precisions == 1 and rng.random() < 0.7) or bool(n_precisions < n_components)
    packed = np.triu_indices(d)

    def member():
        mean = rng.normal(size=(n_components, d, n_members))
        kappa = 10.0 ** rng.uniform(-2, 3, (n_components, n_members))
        dof = d - 1 + 10.0 ** rng.uniform(-1, 3, (n_precisions, n_members))
        root = rng.normal(size=(n_members, n_precisions, d, d + 2))
        scale = np.moveaxis(root @ root.swapaxes(-1, -2), 0, -1) * dof[:, None, None]
        return NormalWishart.from_parameters(mean, kappa, dof, scale, shared=shared)

    def data(share):
        x = rng.normal(rng.normal(size=(n_components, d, n_members, 1)), 0.5, size=(n_components, d, n_members, 9))
        weight = rng.exponential(5, size=(n_components, n_members, 9)) * (rng.random((n_components, 1, 1)) < share)
        n, total = weight.sum(axis=-1)[:, None], np.einsum("kmn,kdmn->kdm", weight, x)
        square = np.einsum("kmn,kdmn,kemn->kdem", weight, x, x)[:, *packed]
        if shared:
            of_means = np.concatenate([n, total], axis=1).reshape(-1, n_members)
            return np.concatenate([of_means, n.sum(axis=0), square.sum(axis=0)])
        return np.concatenate([n, n, total, square], axis=1).reshape(-1, n_members)

    prior = member()
    kappa, dof, mean = prior.mean_precision[:, None], prior.degrees_of_freedom[:, None], abs(prior.mean) + 1e-9
    # a change of the scale by less than this is less than a thousandth of it in all directions
    least = np.linalg.eigvalsh(np.moveaxis(prior.scale, 3, 0)).min(axis=-1).T[:, None]
    of_mean = np.minimum(kappa, least / (mean**2).sum(axis=1, keepdims=True))
    of_sum = np.minimum(np.sqrt(kappa * least), least / mean)
    square = np.repeat(least, d * (d + 1) // 2, axis=1)
    if shared:
        of_means = np.concatenate([of_mean, of_sum], axis=1).reshape(-1, n_members)
        steps = np.concatenate([of_means, dof[0] - d + 1, square[0]])
    else:
        steps = np.concatenate([of_mean, dof - d + 1, of_sum, square], axis=1).reshape(-1, n_members)
    return _case(prior, data(0.7), data(1.0), member(), 3e-4 * steps)


def regression(rng, n_members=3):
    """Rows with matrices of their own or shared ones, noises by row, by group or known; moments of weighted rows."""
    n_components, n_rows, d = rng.integers(1, 3), rng.integers(1, 4), rng.integers(1, 4)
    n_all = n_components * n_rows
    precision_of = [np.arange(n_all), np.repeat(np.arange(n_components), n_rows), rng.integers(0, 2, n_all)][
        rng.choice(3)
    ]
    precision_of = np.unique(precision_of, return_inverse=True)[1]
    noise_of = [np.arange(n_all), np.arange(n_all) % n_rows, np.zeros(n_all, dtype=int), None][rng.choice(4)]
    n_precisions, n_noises = precision_of.max() + 1, 0 if noise_of is None else noise_of.max() + 1
    packed = np.triu_indices(d)

    def member():
        mean = rng.normal(size=(n_all, d, n_members))
        size = 10.0 ** rng.uniform(-1, 2, (n_members, n_precisions, 1, 1))
        root = rng.normal(size=(n_members, n_precisions, d, d + 2))
        precision = np.moveaxis(size * (root @ root.swapaxes(-1, -2)), 0, -1)
        a, b = 10.0 ** rng.uniform(-1, 3, (2, n_noises, n_members))
        return Regression.from_parameters(mean, precision, a, b * a, precision_of, noise_of, n_components=n_components)

    def data(share):
        """As many data of each row, with the same regressors for all that share a matrix."""
        weight = rng.exponential(5, size=(n_precisions, n_members, 9)) * (
            rng.random((n_precisions, n_members, 1)) < share
        )
        r = rng.normal(size=(n_precisions, d, n_members, 9))
        r[:, 0] = 1.0
        y = np.einsum("sdmn,sdm->smn", r[precision_of], rng.normal(size=(n_all, d, n_members)))
        y += rng.normal(size=y.shape)
        products = np.einsum("pmn,pdmn,pemn->pdem", weight, r, r)[:, *packed]
        weight = weight[precision_of]
        total = np.einsum("smn,smn,sdmn->sdm", weight, y, r[precision_of])
        square = (weight * y**2).sum(axis=-1)
        groups = np.arange(n_noises)[:, None] == (np.zeros(n_all) - 1 if noise_of is None else noise_of)
        flat = [products.reshape(-1, n_members), total.reshape(-1, n_members)]
        return np.concatenate([*flat, groups @ weight.sum(axis=-1), groups @ square])

    prior = member()
    least = 1 / np.linalg.eigvalsh(np.moveaxis(prior.covariance, -1, 0)).max(axis=-1).T
    rate = np.full(least.shape, np.inf) if noise_of is None else np.full(least.shape, prior.rate.min(axis=0))
    length = (prior.mean**2).sum(axis=1).max(axis=0) + 1e-9
    of_matrix = np.minimum(least, rate / length)
    of_sum = np.minimum(np.sqrt(least * np.minimum(rate, least)), np.minimum(rate, least) / np.sqrt(length))
    steps = [np.repeat(of_matrix, len(packed[0]), axis=0), np.repeat(of_sum[precision_of], d, axis=0)]
    steps += [] if noise_of is None else [prior.shape, prior.rate]
    return _case(prior, data(0.7), data(1.0), member(), 3e-4 * np.concatenate(steps))


def one_dimensional(prior, of_member, rng):
    """Up to two components of up to two features, with the statistics of weighted rows of each."""

    def data(generator):
        shape = (prior.n_components, prior.n_features)
        cells = [
            [of_member(generator, generator.exponential(5, size=6)) for _ in range(shape[1])] for _ in range(shape[0])
        ]
        without_prior = np.pad(np.array(cells), ((0, 0), (0, 0), (2, 0)))
        return without_prior.swapaxes(1, 2).ravel()

    return FamilyExample.of(prior, data, rng)


def shape_rate(rng):
    """Spreads from a tenth of the mean to its double; shapes that priors allow from 1e3 to 1e6."""
    n_components, n_features = rng.permutation([1, 1 + rng.integers(2)])
    prior = ShapeRate.from_parameters(
        n_components, rng.uniform(0.5, 2, n_features), 10 ** rng.uniform(3, 6, n_features)
    )

    def of_member(generator, weight):
        y = generator.gamma(10 ** generator.uniform(-0.5, 1.5), size=6) * generator.exponential()
        return weight.sum(), weight @ y, weight @ np.log(y)

    return one_dimensional(prior, of_member, rng)


def direction_concentration(rng):
    """Angles from all around to within a tenth."""
    n_components, n_features = rng.permutation([1, 1 + rng.integers(2)])
    prior = DirectionConcentration.from_parameters(n_components, 10 ** rng.uniform(3, 6, n_features))

    def of_member(generator, weight):
        y = generator.vonmises(generator.uniform(-3, 3), 10 ** generator.uniform(-1, 2), size=6)
        return weight.sum(), weight @ np.cos(y), weight @ np.sin(y)

    return one_dimensional(prior, of_member, rng)


def size_probability(rng):
    """Counts at five knots, and zeros."""
    n_components, n_features = rng.permutation([1, 1 + rng.integers(2)])
    knots = np.sort(rng.choice(np.arange(1, 60), size=5, replace=False)).astype(float)
    unit, weight = rng.exponential(5, n_features) + 0.1, rng.uniform(0.5, 2, n_features)
    prior = SizeProbability.from_parameters(n_components, unit, weight, knots)

    def of_member(generator, weight):
        return weight.sum(), weight[:5] @ knots, *weight[:5]

    return one_dimensional(prior, of_member, rng)


def product(rng, n_members=3):
    """A block of each of two other families."""
    cases = [dirichlet(rng, n_members), normal_gamma(rng, n_members)]
    n_cells = tuple(len(case.coordinates) for case in cases)

    def at(cells):
        parts = np.split(cells, [n_cells[0]])
        return Product(tuple(case.at(part) for case, part in zip(cases, parts)), n_cells)

    names = ("statistics", "more", "coordinates", "other", "steps")
    cells = {name: np.concatenate([getattr(case, name) for case in cases]) for name in names}
    return FamilyExample(at(cells["coordinates"]), at=at, **cells)


CASES = {
    "direction_concentration": direction_concentration,
    "dirichlet": dirichlet,
    "dirichlet_mixture": dirichlet_mixture,
    "gamma": gamma,
    "normal_gamma": normal_gamma,
    "normal_wishart": normal_wishart,
    "product": product,
    "regression": regression,
    "shape_rate": shape_rate,
    "size_probability": size_probability,
}
