"""Speed of ``VBMixture``: steps from the same responsibilities, against scikit-learn's and StepMix's, in turns.

    python bench_mixture.py [gaussian] [large] [categories] [default]

- gaussian: n = 100 000, d = 10, K = 20, full and diagonal covariances, a step of each, one thread.
- large: n = 1 000 000, d = 10, K = 10, full; a step, and the peak of memory beside the size of X.
- categories: n = 100 000 x 20 four-valued, K = 10, complete and with 10 % missing; n = 400 x 64 binaries, K = 32.
- default: whole fits with default parameters at equal criteria (our bound, or the likelihood) against
  BayesianGaussianMixture, GaussianMixture and StepMix: seconds until the best optimum that any of them knows is met.

Steps of peers are the difference of a long and a short run, so that neither starts nor validation count.
"""

from __future__ import annotations

import argparse
import os
import warnings
from functools import partial

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from threadpoolctl import threadpool_limits
from timing import interleave, number, peak_growth, show, spread, timed

from skvbem import VBMixture
from skvbem.datasets import load_faithful
from skvbem.emissions import Categorical, Gaussian
from skvbem.models.mixture.model import Mixture, MixtureAscent
from skvbem.models.mixture.weights import FiniteWeights
from skvbem.vbem import posteriors

try:
    from stepmix.stepmix import StepMix
except ImportError:
    StepMix = None


def clouds(n, d, n_components, rng):
    """Rows around as many means as there are components."""
    return 3 * rng.normal(size=(n_components, d))[rng.integers(n_components, size=n)] + rng.normal(size=(n, d))


def ascent_of(emission, values, n_components, rng):
    """Ours, and statistics of random responsibilities."""
    model = Mixture(emission, FiniteWeights(np.ones(n_components)), emission.default_prior(n_components))
    data = model.compile(emission.prepare(values))
    start = model.statistics_of(rng.dirichlet(np.full(n_components, 0.1), size=len(values)), data)[:, None].copy()
    ascent = MixtureAscent(model, data, posteriors.VB)
    ascent.advance(start, 1)
    return ascent, start


def our_step(ascent, start, n_steps=5):
    return timed(ascent.advance, start.copy(), n_steps)[0] / n_steps


def step_of(make, fit, few=1, many=6):
    """A step of a peer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        short, long = (timed(fit, make(n_steps))[0] for n_steps in (few, many))
    return (long - short) / (many - few)


def bayesian_gaussian(n_components, covariance_type, n_steps):
    return BayesianGaussianMixture(
        n_components=n_components,
        covariance_type=covariance_type,
        max_iter=n_steps,
        tol=0,
        init_params="random",
        random_state=0,
    )


def against_sklearn(n, d, n_components, covariance_type, repeats):
    rng = np.random.default_rng(0)
    X = clouds(n, d, n_components, rng)
    emission = Gaussian(covariance_type).for_data(X)
    ours = ascent_of(emission, X, n_components, rng)
    measured = interleave(
        {
            "ours": partial(our_step, *ours),
            "sklearn": lambda: step_of(
                partial(bayesian_gaussian, n_components, covariance_type), lambda model: model.fit(X)
            ),
        },
        repeats,
    )
    what = f"{n} x {d}, {n_components} components, {covariance_type}"
    return what, spread(measured["ours"], 1e3), spread(measured["sklearn"], 1e3), measured["sklearn"] / measured["ours"]


HEADER = ("rows", "ours, ms a step", "peer, ms a step", "times faster", "want")


def gaussian(options):
    rows = []
    for shape, want in (("full", 5), ("diag", 3.5)):
        what, mine, theirs, ratio = against_sklearn(100_000, 10, 20, shape, options.repeats)
        rows.append((what, mine, theirs, spread(ratio), want))
    show("against BayesianGaussianMixture, one thread", HEADER, rows)


def large(options):
    what, mine, theirs, ratio = against_sklearn(1_000_000, 10, 10, "full", options.repeats)
    show("against BayesianGaussianMixture, one thread", HEADER, [(what, mine, theirs, spread(ratio), 5)])
    X = clouds(1_000_000, 10, 10, np.random.default_rng(0))
    growth = peak_growth(VBMixture(10, n_init=1, max_iter=4, tol=1e9, random_state=0).fit, X)
    show("memory of a fit", ("X, MB", "peak beside X, MB", "want"), [(X.nbytes / 1e6, growth / 1e6, "<= 0.3 x X")])


def categories(options):
    if StepMix is None:
        print("\nStepMix is not installed")
        return
    rows = []
    for n, d, n_states, n_components, gaps, want in (
        (100_000, 20, 4, 10, 0.0, 15),
        (100_000, 20, 4, 10, 0.1, 40),
        (400, 64, 2, 32, 0.0, 4),
    ):
        rng = np.random.default_rng(0)
        kind = rng.integers(n_components, size=n)
        tables = rng.dirichlet(np.ones(n_states), size=(n_components, d))
        X = (rng.random((n, d, 1)) > tables[kind].cumsum(axis=-1)[..., :-1]).sum(axis=-1)
        missing = rng.random(X.shape) < gaps
        ours = ascent_of(
            Categorical().for_data(X, n_categories=[n_states] * d), np.where(missing, -1, X), n_components, rng
        )
        theirs = np.where(missing, np.nan, X.astype(float)) if gaps else X

        def make(n_steps, n_components=n_components, gaps=gaps):
            return StepMix(
                n_components=n_components,
                measurement="categorical_nan" if gaps else "categorical",
                n_init=1,
                max_iter=n_steps,
                abs_tol=0,
                rel_tol=0,
                progress_bar=0,
                random_state=0,
            )

        measured = interleave(
            {
                "ours": partial(our_step, *ours),
                "stepmix": lambda make=make, theirs=theirs: step_of(make, lambda model: model.fit(theirs)),
            },
            options.repeats,
        )
        what = f"{n} x {d}, {n_states} states, {n_components} classes, {gaps:.0%} missing"
        ratio = measured["stepmix"] / measured["ours"]
        rows.append((what, spread(measured["ours"], 1e3), spread(measured["stepmix"], 1e3), spread(ratio), want))
    show("against StepMix, one thread", HEADER, rows)


def our_bound(X, responsibilities):
    """Our bound where another's fit has ended, after the two steps that a look at it takes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return VBMixture(responsibilities.shape[1], init=responsibilities, max_iter=2).fit(X).lower_bound_


PRIORS = {"weight_concentration_prior_type": "dirichlet_distribution", "weight_concentration_prior": 1.0}


def contests():
    """What is fitted; of every contestant how, and the criterion, the same for all, at what came out."""
    for n, d, k in ((272, 2, 4), (500, 2, 3), (5_000, 5, 5), (20_000, 10, 8)):
        X = clouds(n, d, k, np.random.default_rng(1))
        if n == 272:
            X = load_faithful().data
        peers = {"peer, defaults": {}, "peer, ten starts": {"n_init": 10, "max_iter": 1000, "tol": 1e-5}}
        yield (
            f"bound, {n} x {d}, K = {k}",
            {
                "ours, defaults": (
                    lambda seed, X=X, k=k: VBMixture(k, random_state=seed).fit(X),
                    lambda m: m.lower_bound_,
                ),
            }
            | {
                name: (
                    lambda seed, X=X, k=k, how=how: BayesianGaussianMixture(
                        n_components=k, random_state=seed, **PRIORS, **how
                    ).fit(X),
                    lambda m, X=X: our_bound(X, m.predict_proba(X)),
                )
                for name, how in peers.items()
            },
        )
        yield (
            f"likelihood, {n} x {d}, K = {k}",
            {
                "ours, defaults": (
                    lambda seed, X=X, k=k: VBMixture(k, covariance_type="tied", method="ml", random_state=seed).fit(X),
                    lambda m: m.log_likelihood_,
                ),
            }
            | {
                name: (
                    lambda seed, X=X, k=k, how=how: GaussianMixture(
                        k,
                        covariance_type="tied",
                        reg_covar=0,
                        random_state=seed,
                        **(how | ({"tol": 1e-8} if how else {})),
                    ).fit(X),
                    lambda m, X=X: m.score(X) * len(X),
                )
                for name, how in peers.items()
            },
        )
    rng = np.random.default_rng(2)
    tables = rng.dirichlet(np.ones(4), size=(5, 10))
    kind = rng.integers(0, 5, 2_000)
    X = (rng.random((2_000, 10, 1)) > tables[kind].cumsum(axis=2)).sum(axis=2)
    if StepMix is not None:
        peers = {"peer, defaults": {}, "peer, ten starts": {"n_init": 10, "max_iter": 5000, "abs_tol": 1e-9}}
        yield (
            "likelihood, 2 000 x 10 four-valued, K = 5",
            {
                "ours, defaults": (
                    lambda seed: VBMixture(5, emission="categorical", method="ml", random_state=seed).fit(X),
                    lambda m: m.log_likelihood_,
                ),
            }
            | {
                name: (
                    lambda seed, how=how: StepMix(
                        n_components=5, measurement="categorical", random_state=seed, verbose=0, progress_bar=0, **how
                    ).fit(X),
                    lambda m: m.score(X) * len(X),
                )
                for name, how in peers.items()
            },
        )


def default(options):
    """Whole fits, as often as there are seeds, and how long it takes until the best optimum known has been met."""
    for title, contestants in contests():
        seconds, reached = {name: [] for name in contestants}, {name: [] for name in contestants}
        for seed in range(options.repeats):
            for name, (fit, criterion) in contestants.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    took, model = timed(fit, seed)
                    seconds[name].append(took)
                    reached[name].append(criterion(model))
        best = max(map(max, reached.values()))
        rows = []
        for name in contestants:
            met = np.asarray(reached[name]) >= best - 0.01
            until = sum(seconds[name]) / met.sum() if met.any() else np.inf
            gap = best - np.median(reached[name])
            rows.append(
                (name, spread(np.array(seconds[name])), f"{met.sum()} of {len(met)}", number(until), number(gap))
            )
        show(title, ("", "a fit, s", "best optimum met", "s until it is met", "nats below it, median"), rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=["gaussian", "categories", "default", "large"])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with threadpool_limits(1):
        for part in options.parts:
            {"gaussian": gaussian, "large": large, "categories": categories, "default": default}[part](options)


if __name__ == "__main__":
    main()
