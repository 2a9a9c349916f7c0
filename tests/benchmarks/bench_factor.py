"""Speed of factor analyzers: steps, whole fits and memory, against bare products of matrices and peers, in turns.

    python bench_factor.py [steps] [missing] [fits] [mixture] [memory]

- steps: 10 000 x 50 and 2 000 x 500, ten factors: a step on all rows and on the few that stand for them, with the map
  of factors and without, against the three products that a step cannot do without (Y W, Y' X, X' X), and against
  scikit-learn's FactorAnalysis and mofapy2.
- missing: 10 % of the cells, hardly two rows alike, against the products and vbpca-py.
- fits: whole fits with default parameters against FactorAnalysis with its defaults.
- mixture: five components of ten factors against GaussianMixture with five full covariances.
- memory: 1 000 000 x 50: the peak beside the size of X.

Seconds are those of the processor, on one thread, so that other work on the machine counts little. Steps of peers are
the difference of a long and a short run. Peers that are not installed are left out.
"""

from __future__ import annotations

import argparse
import os
import warnings
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from unittest import mock

import numpy as np
from sklearn.decomposition import FactorAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits
from timing import interleave, peak_growth, show, spread, timed_on_processor

from skvbem import VBMixture
from skvbem.emissions import FactorGaussian
from skvbem.emissions.factor.step import FactorStep
from skvbem.models.mixture.model import Mixture, MixtureAscent
from skvbem.models.mixture.weights import FiniteWeights
from skvbem.vbem import posteriors

N_FACTORS = 10
SHAPES = ((10_000, 50), (2_000, 500))


def table(n, d, share_missing=0.0, seed=0):
    """Rows of ten factors and noise, standardized, some cells missing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, N_FACTORS)) @ rng.normal(size=(N_FACTORS, d)) + rng.normal(size=(n, d))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X[rng.random(X.shape) < share_missing] = np.nan
    return X


def products(X):
    """The products of matrices of one step: means of factors, sums with measurements, and squares."""
    Y = np.nan_to_num(X)
    of_columns = np.random.default_rng(1).normal(size=(Y.shape[1], N_FACTORS))
    factors = Y @ of_columns

    def run(times=20):
        def all_of_them():
            for _ in range(times):
                Y @ of_columns, Y.T @ factors, factors.T @ factors

        return timed_on_processor(all_of_them)[0] / times

    return run


def ascent_of(X, n_components=1, condensed=False):
    """Ours, and the statistics it starts from."""
    emission = FactorGaussian(N_FACTORS).for_data(X)
    model = Mixture(
        emission, FiniteWeights(np.ones(n_components)), emission.default_prior(n_components, relevance_prior=(1.0, 1.0))
    )
    table = emission.prepare(X)
    order = emission.row_order(table)
    data = model.compile(table if order is None else emission.prepare(X[order]))
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(n_components, 0.1), size=len(X))
    start = model.statistics_of(shares, data)[:, None].copy()
    ascent = MixtureAscent(model, model.condensed(data) if condensed else data, posteriors.VB)
    ascent.advance(start, 2)
    return ascent, start


def our_step(ascent, start, n_steps=10):
    return timed_on_processor(ascent.advance, start.copy(), n_steps)[0] / n_steps


def our_step_without_map(ascent, start):
    with mock.patch.object(FactorStep, "expansion", return_value=None):
        return our_step(ascent, start)


def step_of(fit, few=2, many=12):
    """A step of a peer, whose fit takes a number of steps."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        short, long = (timed_on_processor(fit, n)[0] for n in (few, many))
    return (long - short) / (many - few)


def of_sklearn(X, svd_method):
    def fit(n_steps):
        FactorAnalysis(N_FACTORS, max_iter=n_steps, tol=0, svd_method=svd_method, random_state=0).fit(X)

    return partial(step_of, fit)


def of_mofapy2(X):
    try:
        from mofapy2.run.entry_point import entry_point
    except ImportError:
        return None

    def fit(n_steps):
        entry = entry_point()
        entry.set_data_options(scale_views=False)
        entry.set_data_matrix([[X.copy()]], likelihoods=["gaussian"])
        entry.set_model_options(factors=N_FACTORS, spikeslab_weights=False, ard_weights=True)
        entry.set_train_options(iter=n_steps, convergence_mode="slow", seed=1, quiet=True, startELBO=1, freqELBO=1)
        entry.build()
        entry.run()

    return partial(step_of, _silent(fit), 3, 13)


def of_vbpca(X):
    try:
        from vbpca_py import VBPCA
    except ImportError:
        return None

    def fit(n_steps):
        model = VBPCA(N_FACTORS, maxiters=n_steps, verbose=0, num_cpu=1)
        model.fit(np.ascontiguousarray(X.T), mask=~np.isnan(X.T))

    return partial(step_of, _silent(fit), 2, 6)


def _silent(work):
    """Work that says nothing."""

    def quiet(*args):
        with open(os.devnull, "w") as nowhere, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with redirect_stdout(nowhere), redirect_stderr(nowhere):
                return work(*args)

    return quiet


HEADER = ("rows", "what", "ms a step", "times the products", "want")


def against_products(title, what, cases, wanted, repeats):
    """A table of steps, the products first, taking turns; each also as a multiple of the products."""
    measured = interleave({name: case for name, case in cases.items() if case is not None}, repeats)
    bare = measured["products"]
    rows = [
        (what, name, spread(seconds, 1e3), spread(seconds / bare), wanted.get(name, ""))
        for name, seconds in measured.items()
    ]
    show(title, HEADER, rows)


def steps(options):
    for (n, d), turned, plain in zip(SHAPES, (0.45, 0.75), (0.2, 0.55)):
        X = table(n, d)
        few, without = "pseudo-rows", "pseudo-rows, no map"
        cases = {
            "products": products(X),
            "all rows": partial(our_step, *ascent_of(X)),
            few: partial(our_step, *ascent_of(X, condensed=True)),
            without: partial(our_step_without_map, *ascent_of(X, condensed=True)),
            "FactorAnalysis, lapack": of_sklearn(X, "lapack"),
            "FactorAnalysis, randomized": of_sklearn(X, "randomized"),
            "mofapy2": of_mofapy2(X),
        }
        wanted = {"all rows": "<= 2.5", few: f"<= {turned}", without: f"<= {plain}"}
        against_products("a step, one thread", f"{n} x {d}", cases, wanted, options.repeats)


def missing(options):
    for n, d in SHAPES:
        X = table(n, d, 0.1)
        cases = {"products": products(X), "ours": partial(our_step, *ascent_of(X), 3), "vbpca-py": of_vbpca(X)}
        what = f"{n} x {d}, 10 % missing"
        against_products("a step, one thread", what, cases, {"ours": "<= 20"}, options.repeats)


def fits(options):
    rows = []
    for (n, d), want in zip(SHAPES, (10, 1)):
        X = table(n, d)
        ours = VBMixture(1, emission=FactorGaussian(N_FACTORS), random_state=0)
        theirs = FactorAnalysis(N_FACTORS, random_state=0)
        cases = {
            "ours": lambda ours=ours, X=X: timed_on_processor(ours.fit, X)[0],
            "theirs": lambda theirs=theirs, X=X: timed_on_processor(theirs.fit, X)[0],
        }
        measured = interleave(cases, max(options.repeats, 5))
        ratio = measured["theirs"] / measured["ours"]
        rows.append(
            (f"{n} x {d}", spread(measured["ours"], 1e3), spread(measured["theirs"], 1e3), spread(ratio), f">= {want}")
        )
    show("whole fits, default parameters", ("rows", "ours, ms", "FactorAnalysis, ms", "times faster", "want"), rows)


def mixture(options):
    n, d = SHAPES[0]
    X = table(n, d)

    def of_gaussians(n_steps):
        GaussianMixture(5, max_iter=n_steps, tol=0, init_params="random", random_state=0).fit(X)

    cases = {
        "products": products(X),
        "ours": partial(our_step, *ascent_of(X, 5), 5),
        "GaussianMixture, full": partial(step_of, of_gaussians, 1, 4),
    }
    against_products("a step, five components", f"{n} x {d}", cases, {"ours": "1 / 4 of theirs"}, options.repeats)


def memory(options):
    X = table(1_000_000, 50)
    fit = VBMixture(1, emission=FactorGaussian(N_FACTORS), random_state=0).fit
    fit(X[:1000])  # what is imported late is imported now
    growth = peak_growth(fit, X)
    show("memory of a fit", ("X, MB", "peak beside X, MB"), [(X.nbytes / 1e6, growth / 1e6)])


def main():
    parts = {"steps": steps, "missing": missing, "fits": fits, "mixture": mixture, "memory": memory}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=list(parts))
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with threadpool_limits(1):
        for part in options.parts:
            parts[part](options)


if __name__ == "__main__":
    main()
