"""How often is the number of factors right? 200 simulated tables: the bound beside what others count factors by.

A table has d = 6 to 50 columns, n = 100 to 2 000 rows and q = 0 to 6 factors, no more than d columns can tell apart
(Ledermann). Loadings are normal, factors differ in strength by up to three times, the share of a column's variance that
factors explain is uniform from 0.2 to 0.8, and units of measure differ. All methods see standardized columns.

- "auto": ``FactorGaussian("auto")``, moves judged by the bound;
- "bic": the largest BIC of maximum likelihood, q from 0 on until it falls twice;
- "parallel": parallel analysis [Horn 1965]: eigenvalues of the correlations, from the largest on, above the 95 %
  quantiles of those of 50 tables of noise of the same size;
- "minka": scikit-learn's ``PCA(n_components="mle")``, the evidence of Minka (2000), by Laplace's method;
- "pruned": as MOFA counts: 10 factors (d - 1 of fewer columns) with vague precisions, Gamma(0.001, 0.001), of which
  those are kept that explain at least 1 % of the variance.

Run as a program it goes on where it was stopped, for some time, a line of JSON for each table, and prints shares:

    python number_of_factors.py --minutes 30
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from reproduction.records import add_to_record, read_record
from scipy.stats import binomtest
from sklearn.decomposition import PCA, FactorAnalysis

from skvbem import VBMixture
from skvbem.emissions import FactorGaussian
from skvbem.emissions.factor.second_moments import corners_of

#: The record of 200 tables.
RESULTS = Path(__file__).with_name("number_of_factors_results.jsonl")
N_TABLES, COLUMNS, ROWS, MOST = 200, (6, 10, 20, 50), (100, 200, 500, 1000, 2000), 6
#: The prior of noises and means in the record.
PRIOR = {"noise_prior": (1.0, 0.5), "mean_precision_prior": 1.0}
METHODS = ("auto", "bic", "parallel", "minka", "pruned")


def most_told_apart(d):
    """Factors that the covariances of d columns can tell apart [Ledermann 1937]."""
    return int((2 * d + 1 - np.sqrt(8 * d + 1)) // 2)


def simulated(number):
    """A table (n, d), standardized, and its number of factors."""
    rng = np.random.default_rng([1937, number])
    d, n = (int(rng.choice(sizes)) for sizes in (COLUMNS, ROWS))
    q = int(rng.integers(min(MOST, most_told_apart(d)) + 1))
    loadings = rng.normal(size=(d, q)) * np.linspace(1.0, 1 / 3, q)
    share = rng.uniform(0.2, 0.8, size=d)
    explained = (loadings**2).sum(axis=1) if q else np.ones(d)
    noise = (explained * (1 - share) / share) ** 0.5
    X = rng.normal(size=(n, q)) @ loadings.T + noise * rng.normal(size=(n, d))
    return (X - X.mean(axis=0)) / X.std(axis=0), q


def by_bound(X):
    """What moves judged by the bound lead to."""
    return int(VBMixture(emission=FactorGaussian("auto", **PRIOR), random_state=0).fit(X).n_factors_[0])


def condensed(X):
    """d + 1 rows with the means and covariances of all: maximum likelihood asks nothing else."""
    variance, axes = np.linalg.eigh(np.cov(X.T, bias=True))
    return corners_of(axes * np.sqrt(np.maximum(variance, 0.0)))


def by_bic(X):
    """The largest BIC of maximum likelihood."""
    (n, d), rows = X.shape, condensed(X)
    best, n_worse = (-np.inf, 0), 0
    for q in range(most_told_apart(d) + 1):
        if n_worse == 2:
            break
        if q:
            model = FactorAnalysis(q, tol=1e-8 * n, max_iter=5000, svd_method="lapack")
            log_likelihood = n * model.fit(rows).score(rows)
        else:
            log_likelihood = -0.5 * n * d * (np.log(2 * np.pi) + 1)
        bic = log_likelihood - 0.5 * (d * q - q * (q - 1) / 2 + 2 * d) * np.log(n)
        n_worse = 0 if bic > best[0] else n_worse + 1
        best = max(best, (bic, q))
    return best[1]


def by_parallel_analysis(X, n_noise=50):
    """Eigenvalues of the correlations above those of noise."""
    rng = np.random.default_rng(0)

    def eigenvalues(table):
        return np.linalg.eigvalsh(np.corrcoef(table.T))[::-1]

    of_noise = np.quantile([eigenvalues(rng.normal(size=X.shape)) for _ in range(n_noise)], 0.95, axis=0)
    above = eigenvalues(X) > of_noise
    return int(np.argmin(above)) if not above.all() else len(above)


def by_minka(X):
    """scikit-learn's choice, which is 1 at the least."""
    return int(PCA(n_components="mle", svd_solver="full").fit(X).n_components_)


def by_pruning(X, least=0.01):
    """Factors of a large model with vague precisions that explain some share of the variance."""
    emission = FactorGaussian(min(10, X.shape[1] - 1), relevance_prior=(1e-3, 1e-3), **PRIOR)
    model = VBMixture(emission=emission, n_init=1, init="k-means++", max_iter=2000, tol=1e-3, random_state=0).fit(X)
    loadings = model.parameters_["factor"]["loadings"][0]
    return int(((loadings**2).sum(axis=0) >= least * X.shape[1]).sum())


def counted(number):
    """A line of the record."""
    X, q = simulated(number)
    line = {"number": number, "n": len(X), "d": X.shape[1], "q": q}
    counts = (by_bound, by_bic, by_parallel_analysis, by_minka, by_pruning)
    for name, count in zip(METHODS, counts):
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            line[name] = count(X)
        line[f"{name}_seconds"] = round(time.process_time() - began, 3)
    return line


def run(path, minutes):
    """Count the factors of tables that are not on record yet, for some time."""
    until = time.monotonic() + 60 * minutes
    done = {line["number"] for line in read_record(path)}
    for number in range(N_TABLES):
        if number not in done and time.monotonic() < until:
            add_to_record(path, counted(number))


def shares(lines, name):
    """Of some lines: the shares that a method counts right, too few and too many, and an interval of the first."""
    away = np.array([line[name] - line["q"] for line in lines])
    n = len(away)
    right = int((away == 0).sum())
    interval = binomtest(right, n).proportion_ci()
    return right / n, (away < 0).mean(), (away > 0).mean(), (interval.low, interval.high)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--path", type=Path, default=RESULTS)
    parser.add_argument("--minutes", type=float, default=30.0)
    options = parser.parse_args()
    run(options.path, options.minutes)
    lines = read_record(options.path)
    of_kinds = {
        "all": lines,
        "n <= 200": [line for line in lines if line["n"] <= 200],
        "n >= 500": [line for line in lines if line["n"] >= 500],
        "q = 0": [line for line in lines if line["q"] == 0],
        "q >= 4": [line for line in lines if line["q"] >= 4],
    }
    for kind, some in of_kinds.items():
        if not some:
            continue
        print(f"{kind}: {len(some)} tables")
        for name in METHODS:
            right, few, many, (low, high) = shares(some, name)
            seconds = np.mean([line[f"{name}_seconds"] for line in some])
            words = f"right {right:.0%} ({low:.0%} to {high:.0%}), too few {few:.0%}, too many {many:.0%}"
            print(f"  {name:9s} {words}; {seconds:.2f} s")


if __name__ == "__main__":
    main()
