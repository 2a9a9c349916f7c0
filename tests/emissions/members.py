"""Random problems for every emission: what the laws of emissions are tried on."""

from functools import partial

import numpy as np
from scipy import stats

from skvbem.emissions import (
    COVARIANCE_TYPES,
    EMISSIONS,
    Censored,
    Exponential,
    FactorGaussian,
    Gaussian,
    Interval,
    LogNormal,
    Ordinal,
    Poisson,
    Regression,
    StudentT,
    ZeroInflated,
)
from skvbem.emissions.independent import Independent
from skvbem.testing import EmissionExample


def with_gaps(values, share, rng, mark):
    """The rows with a share of their cells missing; the first row whole, the second without any cell."""
    values = values.copy()
    values[rng.random(values.shape) < share] = mark
    if share and len(values) > 1:
        values[1] = mark
    return values


def gaussian(covariance_type):
    def make(rng, n_rows=12, gaps=0.0):
        d = int(rng.integers(1, 5))
        mixing, origin = rng.normal(size=(d, d)), rng.normal(scale=10, size=d)
        values = with_gaps(origin + rng.normal(size=(n_rows, d)) @ mixing, gaps, rng, np.nan)

        def log_density(row, parameters, k):
            mean = parameters["means"][k]
            covariance = np.asarray(parameters["covariances"])
            covariance = {
                "full": lambda: covariance[k],
                "tied": lambda: covariance,
                "diag": lambda: np.diag(covariance[k]),
                "spherical": lambda: covariance[k] * np.eye(d),
            }[covariance_type]()
            seen = ~np.isnan(row)
            if not seen.any():
                return 0.0
            return stats.multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)]).logpdf(row[seen])

        for_data = Gaussian(covariance_type).for_data
        emission = for_data(values)
        conjugate = covariance_type in {"diag", "spherical"} or not gaps
        return EmissionExample(
            emission, values, int(rng.integers(1, 4)), log_density, lambda row, column: None, conjugate, for_data
        )

    return make


def factor(rng, n_rows=12, gaps=0.0, tied=False, in_groups=False):
    """None to two factors, noises of columns or of components, columns in one group or in two."""
    d, q = int(rng.integers(1, 5)), int(rng.integers(0, 3))
    mixing, origin = rng.normal(size=(d, d)), rng.normal(scale=10, size=d)
    values = with_gaps(origin + rng.normal(size=(n_rows, d)) @ mixing, gaps, rng, np.nan)

    def log_density(row, parameters, k):
        mean, covariance, seen = parameters["means"][k], parameters["covariances"][k], ~np.isnan(row)
        if not seen.any():
            return 0.0
        return stats.multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)]).logpdf(row[seen])

    groups = [[j for j in range(d) if j % 2 == group] for group in range(min(d, 2))] if in_groups else None
    made = FactorGaussian(q, noise=str(rng.choice(["diag", "spherical"])), tied=tied, groups=groups)
    return EmissionExample(
        made.for_data(values),
        values,
        int(rng.integers(1, 4)),
        log_density,
        lambda row, column: None,
        q == 0,
        made.for_data,
    )


def categorical(name):
    def make(rng, n_rows=12, gaps=0.0):
        sizes = rng.integers(1, 5, size=rng.integers(1, 6)) if name == "categorical" else np.full(rng.integers(1, 8), 2)
        values = with_gaps(rng.integers(0, sizes, size=(n_rows, len(sizes))), gaps, rng, -1)

        def log_density(row, parameters, k):
            tables = parameters["probabilities"][k]
            if name == "bernoulli":
                tables = np.stack([1 - tables, tables], axis=-1)
            return sum(np.log(tables[j, code]) for j, code in enumerate(row) if code >= 0)

        options = {"n_categories": sizes} if name == "categorical" else {}
        for_data = partial(EMISSIONS[name]().for_data, **options)
        emission = for_data(values)
        return EmissionExample(
            emission,
            values,
            int(rng.integers(1, 7)),
            log_density,
            lambda row, column: range(sizes[column]),
            True,
            for_data,
        )

    return make


def poisson(rng, n_rows=12, gaps=0.0):
    values = with_gaps(rng.poisson(rng.exponential(5, size=3), size=(n_rows, 3)).astype(float), gaps, rng, np.nan)

    def log_density(row, parameters, k):
        seen = ~np.isnan(row)
        return stats.poisson(parameters["rates"][k][seen]).logpmf(row[seen]).sum()

    for_data = EMISSIONS["poisson"]().for_data
    emission = for_data(values)
    return EmissionExample(
        emission, values, int(rng.integers(1, 4)), log_density, lambda row, column: range(1000), True, for_data
    )


def exponential(rng, n_rows=12, gaps=0.0):
    values = with_gaps(rng.exponential(rng.exponential(50, size=2), size=(n_rows, 2)), gaps, rng, np.nan)

    def log_density(row, parameters, k):
        seen = ~np.isnan(row)
        return stats.expon(scale=1 / parameters["rates"][k][seen]).logpdf(row[seen]).sum()

    made, cells = EMISSIONS["exponential"](), lambda row, column: None
    return EmissionExample(
        made.for_data(values),
        values,
        int(rng.integers(1, 4)),
        log_density,
        cells,
        True,
        made.for_data,
        specification=made,
    )


def multinomial(rng, n_rows=12, gaps=0.0):
    values = rng.multinomial(rng.integers(0, 9, size=n_rows), rng.dirichlet(np.ones(4))).astype(float)
    values[rng.random(n_rows) < gaps] = np.nan

    def log_density(row, parameters, k):
        if np.isnan(row).any():
            return 0.0
        return stats.multinomial(row.sum(), parameters["shares"][k]).logpmf(row)

    for_data = EMISSIONS["multinomial"]().for_data
    emission = for_data(values)
    return EmissionExample(emission, values, int(rng.integers(1, 4)), log_density, None, True, for_data)


def regression(rng, n_rows=12, gaps=0.0, n_covariates=None):
    """One to three responses, on none to two covariates; a covariate may be missing where all responses are."""
    d, c = int(rng.integers(1, 4)), int(rng.integers(0, 3)) if n_covariates is None else n_covariates
    given = rng.normal(size=(n_rows, c)) * 5 + 20
    responses = given @ rng.normal(size=(c, d)) + rng.normal(size=(n_rows, d)) * 2 - 7
    responses = with_gaps(responses, gaps, rng, np.nan)
    if gaps and n_rows > 2:
        responses[2], given[2, :1] = np.nan, np.nan

    def log_density(row, parameters, k):
        y, u = row[:d], row[d:]
        if np.isnan(u).any():
            return 0.0
        mean = parameters["intercepts"][k] + parameters["coefficients"][k] @ u
        seen = ~np.isnan(y)
        return stats.norm(mean[seen], np.sqrt(parameters["variances"][k][seen])).logpdf(y[seen]).sum()

    for_data = Regression([f"u{j}" for j in range(c)]).for_data
    values = np.column_stack([responses, given])
    return EmissionExample(
        for_data(values), values, int(rng.integers(1, 4)), log_density, lambda row, column: None, True, for_data
    )


def zero_inflated(rng, n_rows=12, gaps=0.0):
    """Counts, of whose zeros it is hidden which are inflated, or waiting times, of which none is."""
    family = [Poisson(), Exponential()][int(rng.integers(2))]
    usual = rng.exponential([2.0, 50.0])
    drawn = rng.poisson(usual, size=(n_rows, 2)) if family.holds_counts else rng.exponential(usual, size=(n_rows, 2))
    values = with_gaps(np.where(rng.random((n_rows, 2)) < 0.4, 0.0, drawn), gaps, rng, np.nan)

    def log_density(row, parameters, k):
        seen = ~np.isnan(row)
        y, p, rates = row[seen], parameters["inflation"][k][seen], parameters["rates"][k][seen]
        if family.holds_counts:
            return np.log(p * (y == 0) + (1 - p) * stats.poisson(rates).pmf(y)).sum()
        return np.where(y == 0, np.log(p), np.log1p(-p) + stats.expon(scale=1 / rates).logpdf(y)).sum()

    made = ZeroInflated(family)
    emission = made.for_data(values)
    conjugate = emission.is_conjugate(emission.prepare(values))
    cells = (lambda row, column: range(1000)) if family.holds_counts else None
    return EmissionExample(
        emission, values, int(rng.integers(1, 4)), log_density, cells, conjugate, made.for_data, specification=made
    )


def student_t(rng, n_rows=12, gaps=0.0):
    d, df = int(rng.integers(1, 4)), float(rng.choice([3.0, 5.0, 30.0]))
    mixing, origin = rng.normal(size=(d, d)), rng.normal(scale=10, size=d)
    heavy = rng.normal(size=(n_rows, d)) / np.sqrt(rng.chisquare(df, size=(n_rows, 1)) / df)
    values = with_gaps(origin + heavy @ mixing, gaps, rng, np.nan)

    def log_density(row, parameters, k):
        seen = ~np.isnan(row)
        if not seen.any():
            return 0.0
        mean, scale = parameters["means"][k][seen], parameters["scales"][k][np.ix_(seen, seen)]
        return stats.multivariate_t(mean, scale, df=df).logpdf(row[seen])

    made, cells = StudentT(df), lambda row, column: None
    emission = made.for_data(values)
    return EmissionExample(
        emission, values, int(rng.integers(1, 4)), log_density, cells, False, made.for_data, specification=made
    )


def censored(rng, n_rows=12, gaps=0.0):
    """Measurements below a limit, above another, or both."""
    mean, deviation = rng.normal(scale=10, size=2), rng.uniform(0.5, 3.0, size=2)
    limits = {"below": mean - rng.uniform(0, 1, 2) * deviation, "above": mean + rng.uniform(0.2, 2, 2) * deviation}
    below, above = limits["below"], limits["above"]
    values = with_gaps(rng.normal(mean, deviation, size=(n_rows, 2)), gaps, rng, np.nan)

    def log_density(row, parameters, k):
        law = stats.norm(parameters["means"][k], np.sqrt(parameters["covariances"][k]))
        cells = np.where(row <= below, law.logcdf(below), np.where(row >= above, law.logsf(above), law.logpdf(row)))
        return np.nansum(cells)

    made = Censored(**limits)
    emission, n_components = made.for_data(values), int(rng.integers(1, 4))
    conjugate = emission.is_conjugate(emission.prepare(values))
    return EmissionExample(
        emission, values, n_components, log_density, None, conjugate, made.for_data, specification=made
    )


def interval(rng, n_rows=12, gaps=0.0):
    """Points, closed intervals, and intervals with an open end; a pair is missing as a whole."""
    low = rng.normal(rng.normal(scale=10, size=2), rng.uniform(0.5, 3.0, size=2), size=(n_rows, 2))
    high = low + np.where(rng.random(low.shape) < 0.3, 0.0, rng.exponential(1.0, size=low.shape))
    opened = np.where(high > low, rng.random(low.shape), 1.0)
    low, high = np.where(opened < 0.2, np.nan, low), np.where((opened >= 0.2) & (opened < 0.4), np.nan, high)
    missing = np.isnan(with_gaps(np.zeros(low.shape), gaps, rng, np.nan))
    values = np.where(missing[..., None], np.nan, np.stack([low, high], axis=-1)).reshape(n_rows, 4)

    def log_density(row, parameters, k):
        law, (low, high) = (
            stats.norm(parameters["means"][k], np.sqrt(parameters["covariances"][k])),
            (row[::2], row[1::2]),
        )
        inside = np.where(np.isnan(high), 1.0, law.cdf(high)) - np.where(np.isnan(low), 0.0, law.cdf(low))
        with np.errstate(divide="ignore"):
            cells = np.where(low == high, law.logpdf(low), np.log(inside))
        return cells[~(np.isnan(low) & np.isnan(high))].sum()

    made = Interval()
    emission, n_components = made.for_data(values), int(rng.integers(1, 4))
    return EmissionExample(emission, values, n_components, log_density, None, False, made.for_data, specification=made)


def ordinal(rng, n_rows=12, gaps=0.0):
    """Answers between edges that are given: others have a price in each row of the fit."""
    sizes = rng.integers(2, 6, size=2)
    edges = [np.sort(rng.normal(size=size - 1)) for size in sizes]
    numbers = rng.normal(rng.normal(size=2), rng.uniform(0.5, 2.0, size=2), size=(n_rows, 2))
    codes = [np.searchsorted(of_column, column) for of_column, column in zip(edges, numbers.T)]
    values = with_gaps(np.stack(codes, axis=1), gaps, rng, -1)

    def log_density(row, parameters, k):
        law, total = [stats.norm(*pair) for pair in zip(parameters["means"][k], parameters["covariances"][k] ** 0.5)], 0
        for j, code in enumerate(row):
            if code >= 0:
                low, high = np.array([-np.inf, *edges[j], np.inf])[[code, code + 1]]
                total += np.log(law[j].cdf(high) - law[j].cdf(low))
        return total

    made = Ordinal(edges)
    for_data = partial(made.for_data, n_categories=sizes)
    emission, n_components = for_data(values), int(rng.integers(1, 4))
    cells = lambda row, column: range(sizes[column])  # noqa: E731
    return EmissionExample(emission, values, n_components, log_density, cells, False, for_data, specification=made)


def gamma(rng, n_rows=12, gaps=0.0):
    values = rng.gamma(rng.uniform(0.5, 9, size=2), rng.exponential(50, size=2), size=(n_rows, 2))

    def log_density(row, parameters, k):
        seen = ~np.isnan(row)
        mean, shape = (parameters[name][k][seen] for name in ("means", "shapes"))
        return stats.gamma(shape, scale=mean / shape).logpdf(row[seen]).sum()

    return of_specification(EMISSIONS["gamma"](), values, log_density, rng, gaps)


def log_normal(rng, n_rows=12, gaps=0.0):
    values = np.exp(rng.normal(rng.normal(scale=4, size=2), rng.uniform(0.3, 2, size=2), size=(n_rows, 2)))

    def log_density(row, parameters, k):
        seen = ~np.isnan(row)
        mean, variance = (parameters[name][k][seen] for name in ("log_means", "log_variances"))
        return stats.lognorm(np.sqrt(variance), scale=np.exp(mean)).logpdf(row[seen]).sum()

    return of_specification(LogNormal(), values, log_density, rng, gaps)


def von_mises(rng, n_rows=12, gaps=0.0):
    unit = str(rng.choice(["radians", "degrees"]))
    radian = 1.0 if unit == "radians" else 180 / np.pi
    values = rng.vonmises(rng.uniform(-1, 1, size=2), rng.uniform(2, 9, size=2), size=(n_rows, 2)) * radian

    def log_density(row, parameters, k):
        seen = ~np.isnan(row)
        direction, concentration = (parameters[name][k][seen] for name in ("means", "concentrations"))
        of_radians = stats.vonmises(concentration, direction / radian).logpdf(row[seen] / radian)
        return (of_radians - np.log(radian)).sum()

    return of_specification(EMISSIONS["von_mises"](unit=unit), values, log_density, rng, gaps)


def negative_binomial(rng, n_rows=12, gaps=0.0):
    """Some counts beyond those that have cells of their own."""
    values = rng.poisson(rng.gamma(rng.uniform(0.5, 3), 8.0, size=(n_rows, 2))) * rng.choice([1, 20], size=2)

    def log_density(row, parameters, k):
        seen = ~np.isnan(row)
        mean, size = (parameters[name][k][seen] for name in ("means", "sizes"))
        return stats.nbinom(size, size / (size + mean)).logpmf(row[seen]).sum()

    return of_specification(EMISSIONS["negative_binomial"](), values.astype(float), log_density, rng, gaps)


def of_specification(made, values, log_density, rng, gaps):
    """Rows of a family whose predictions `test_one_dimensional.py` integrates: their tails are too long for the law."""
    values = with_gaps(values, gaps, rng, np.nan)
    n = int(rng.integers(1, 4))
    return EmissionExample(made.for_data(values), values, n, log_density, None, True, made.for_data, specification=made)


def independent(rng, n_rows=12, gaps=0.0):
    problems = [PROBLEMS[name](rng, n_rows, gaps) for name in ("diag", "categorical", "poisson", "diag")]

    def log_density(row, parameters, k):
        return sum(p.log_density(part, of_part, k) for p, part, of_part in zip(problems, row, parameters))

    emission = Independent(tuple(problem.emission for problem in problems))
    values = tuple(problem.values for problem in problems)
    return EmissionExample(emission, values, int(rng.integers(1, 4)), log_density, None, True)


PROBLEMS = {
    **{name: gaussian(name) for name in COVARIANCE_TYPES},
    "factor": factor,
    "categorical": categorical("categorical"),
    "bernoulli": categorical("bernoulli"),
    "poisson": poisson,
    "exponential": exponential,
    "multinomial": multinomial,
    "regression": regression,
    "gamma": gamma,
    "log_normal": log_normal,
    "negative_binomial": negative_binomial,
    "student_t": student_t,
    "censored": censored,
    "interval": interval,
    "ordinal": ordinal,
    "von_mises": von_mises,
    "zero_inflated": zero_inflated,
    "independent": independent,
}


#: Families whose rows with missing cells have statistics of their own: their evidence has a closed form.
CONJUGATE = [
    name
    for name in PROBLEMS
    if name not in {"full", "tied", "student_t", "censored", "interval", "ordinal", "zero_inflated"}
]


#: Families of which complete rows hide nothing but their components, at least for some of their options.
WITHOUT_HIDDEN_CELLS = [name for name in PROBLEMS if name not in {"student_t", "censored", "interval", "ordinal"}]


def with_nothing_hidden(name, rng, **options):
    """Rows of an emission of which nothing is hidden but their components."""
    if name not in WITHOUT_HIDDEN_CELLS:
        raise ValueError(f"Every cell of the emission {name!r} hides something. Take one of {WITHOUT_HIDDEN_CELLS}.")
    problem = PROBLEMS[name](rng, **options)
    while not problem.conjugate:
        problem = PROBLEMS[name](rng, **options)
    return problem
