"""Mixtures by definition: closed forms of complete data as textbooks have them, and sums over all assignments.

Nothing of skvbem is used. Rows are in the units of the data, NaN (or a negative code) where a cell is missing.
"""

import math
from itertools import product

import numpy as np
from scipy import stats
from scipy.special import gammaln, logsumexp, multigammaln


def dirichlet(counts, concentration):
    """ln of the probability of a sequence with these counts."""
    counts, a = np.asarray(counts, dtype=float), np.broadcast_to(np.asarray(concentration, dtype=float), len(counts))
    return gammaln(a.sum()) - gammaln(a.sum() + counts.sum()) + (gammaln(a + counts) - gammaln(a)).sum()


def sticks(counts, alpha):
    """ln of the probability of a sequence of components under sticks v ~ Beta(1, alpha), the last taking the rest."""
    return sum(
        dirichlet([counts[k], sum(counts[k + 1 :])], [1.0, alpha]) for k in range(len(counts) - 1)
    )  # fmt: skip


def normal_wishart(groups, mean, kappa, dof, scale):
    """Groups of rows with means of their own and one precision matrix, Wishart of `dof` and inverse scale `scale`."""
    d, n, s, total = len(mean), sum(map(len, groups)), np.array(scale, dtype=float), 0.0
    for rows in groups:
        if len(rows):
            k, above = len(rows), rows.mean(axis=0) - mean
            s = s + (rows - rows.mean(axis=0)).T @ (rows - rows.mean(axis=0))
            s = s + kappa * k / (kappa + k) * np.outer(above, above)
            total += d / 2 * math.log(kappa / (kappa + k))
    total += multigammaln((dof + n) / 2, d) - multigammaln(dof / 2, d) - n * d / 2 * math.log(math.pi)
    return total + dof / 2 * np.linalg.slogdet(scale)[1] - (dof + n) / 2 * np.linalg.slogdet(s)[1]


def full(groups, *, mean, kappa, dof, scale):
    """Each group has a precision matrix of its own."""
    return sum(normal_wishart([rows], mean, kappa, dof, scale) for rows in groups)


def tied(groups, *, mean, kappa, dof, scale):
    """All share one."""
    return normal_wishart(groups, mean, kappa, dof, scale)


def normal_gamma(columns, mean, kappa, shape, rate):
    """Columns with means of their own and one precision, Gamma(shape, rate)."""
    a, b, total = shape, rate, 0.0
    for x, m in zip(columns, mean):
        x = x[~np.isnan(x)]
        if len(x):
            b += 0.5 * ((x - x.mean()) ** 2).sum() + 0.5 * kappa * len(x) / (kappa + len(x)) * (x.mean() - m) ** 2
            a += len(x) / 2
            total += 0.5 * math.log(kappa / (kappa + len(x))) - len(x) / 2 * math.log(2 * math.pi)
    return total + gammaln(a) - gammaln(shape) + shape * math.log(rate) - a * math.log(b)


def diag(groups, *, mean, kappa, dof, scale):
    """Each column of each group has a precision, Gamma(dof / 2, scale / 2)."""
    return sum(
        normal_gamma([rows[:, j]], [mean[j]], kappa, dof / 2, scale[j] / 2) for rows in groups for j in range(len(mean))
    )


def spherical(groups, *, mean, kappa, dof, scale):
    """Each group has a precision, Gamma(d dof / 2, d scale / 2)."""
    d = len(mean)
    return sum(normal_gamma(rows.T, mean, kappa, d * dof / 2, d * scale / 2) for rows in groups)


def regression(groups, *, origin, unit, kappa, dof, variance, given_origin, given_unit):
    """Each response, in units, is Student t over all rows of a component at once: coefficients and noise summed out."""
    d, total = len(origin), 0.0
    for rows in groups:
        for j in range(d):
            rows_of_j = rows[~np.isnan(rows[:, j])]
            n = len(rows_of_j)
            if not n:
                continue
            r = np.column_stack([np.ones(n), (rows_of_j[:, d:] - given_origin) / given_unit])
            y = (rows_of_j[:, j] - origin[j]) / unit[j]
            shape = variance[j] / unit[j] ** 2 * (np.eye(n) + r @ r.T / kappa)
            total += stats.multivariate_t(np.zeros(n), shape, df=dof).logpdf(y) - n * np.log(unit[j])
    return total


def poisson(groups, *, shape, rate):
    """Counts with rates Gamma(shape, rate)."""
    total = 0.0
    for rows in groups:
        for y in rows.T:
            y = y[~np.isnan(y)]
            total += gammaln(shape + y.sum()) - gammaln(shape) + shape * math.log(rate)
            total -= (shape + y.sum()) * math.log(rate + len(y)) + gammaln(y + 1).sum()
    return total


def exponential(groups, *, shape, rate):
    """Times with rates Gamma(shape, rate)."""
    total = 0.0
    for rows in groups:
        for t in rows.T:
            t = t[~np.isnan(t)]
            total += gammaln(shape + len(t)) - gammaln(shape) + shape * math.log(rate)
            total -= (shape + len(t)) * math.log(rate + t.sum())
    return total


def categorical(groups, *, concentration, sizes):
    """Codes, tables Dirichlet with one concentration."""
    return sum(
        dirichlet(np.bincount(codes[codes >= 0], minlength=size), concentration)
        for rows in groups
        for codes, size in zip(rows.T, sizes)
    )


def multinomial(groups, *, concentration):
    """Counts given their totals, shares Dirichlet with one concentration."""
    total = 0.0
    for rows in groups:
        rows = rows[~np.isnan(rows).any(axis=1)]
        total += dirichlet(rows.sum(axis=0), concentration)
        total += gammaln(rows.sum(axis=1) + 1).sum() - gammaln(rows + 1).sum()
    return total


def log_joint(rows, components, n_components, of_weights, of_groups):
    """ln p(x, y): of the components given by their counts, and of the rows of each."""
    counts = np.bincount(components, minlength=n_components)
    return of_weights(counts.tolist()) + of_groups([rows[components == k] for k in range(n_components)])


def assignments(n_rows, n_components):
    """All of them, as arrays."""
    return (np.array(x, dtype=int) for x in product(range(n_components), repeat=n_rows))


def log_evidence(rows, n_components, of_weights, of_groups):
    """ln p(y), the sum over all assignments."""
    return logsumexp([
        log_joint(rows, x, n_components, of_weights, of_groups) for x in assignments(len(rows), n_components)
    ])  # fmt: skip


def collapsed_bound(rows, q, of_weights, of_groups):
    """<ln p(x, y)> + H(q) of responsibilities (n_rows, n_components), by the sum over all assignments."""
    total = 0.0
    for x in assignments(*q.shape):
        p = q[np.arange(len(q)), x].prod()
        if p > 0:
            total += p * (log_joint(rows, x, q.shape[1], of_weights, of_groups) - math.log(p))
    return total
