"""The figures of two installed versions of skvbem side by side: bounds, scores of the evidence and predictions.

The script runs itself under both interpreters, with seeds fixed, on every bundled data set and every estimator that
can take it, and compares what they say::

    python tests/compare_versions.py --before OLD/bin/python --after NEW/bin/python

Figures without draws of their own must agree to `TOLERANCE`, relative to what they are a sum of. Sampling scores must
be equal, or agree within four standard errors of their difference. Numbers of steps and what is refused must be equal.
Only public names are used that both versions have; `emission_settings` knows the two places of prior parameters.
"""

import argparse
import hashlib
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

TOLERANCE = 1e-12
STANDARD_ERRORS = 4.0
SETTINGS = {"n_init": 2, "max_iter": 60, "random_state": 0}
#: Attributes of a fit that are compared, of those that it has.
ATTRIBUTES = (
    *("lower_bound_", "log_posterior_", "log_likelihood_", "batch_lower_bound_", "lower_bounds_"),
    *("n_iter_", "converged_", "n_samples_", "n_free_parameters_", "n_components_", "counts_"),
    *("weights_", "weight_concentration_", "means_", "covariances_", "degrees_of_freedom_", "mean_precision_"),
    *("startprob_", "transmat_", "startprob_concentration_", "transmat_concentration_", "tables_", "parameters_"),
    *("weight_concentration_prior_", "mean_prior_", "covariance_prior_", "startprob_prior_", "transmat_prior_"),
)
#: Options under which sampling scores take a fraction of a second.
SCORE_OPTIONS = {
    "auto": {"n_draws": 128, "n_particles": 32, "max_particles": 32},
    "ais": {"n_chains": 4, "n_steps": 32},
    "ais_prior": {"n_chains": 4, "n_steps": 64},
    "ais_metropolis": {"n_chains": 4, "n_steps": 64},
    "importance": {"n_draws": 256},
    "importance_gibbs": {"n_draws": 32},
    "annealed_bridge": {"n_draws": 8, "n_steps": 16, "n_chains": 8, "burn_in": 100, "spacing": 10},
    "smc": {"n_runs": 2, "n_particles": 32, "n_steps": 16},
}
CATEGORICAL = (
    *("coleman_panel", "carcinoma", "stouffer_toby", "cheating", "gender_role", "lsat6", "lizards"),
    *("soybean_small", "soybean_large", "zoo", "car"),
)
SMALL = {"carcinoma": 40, "stouffer_toby": 30, "cheating": 40, "lizards": 30}  # rows, for scores that draw
BINARY = {"coleman_panel": 1, "lsat6": 0, "gender_role": 0}  # the code of "no"
COUNTS = ("earthquakes", "fetal_lamb")
LETTERS = "abcdefghijklmnopqrstuvwxyz "


# Collecting -----------------------------------------------------------------------------------------------------------


class Figures(dict):
    """Figures by name: numbers with what they are a sum of and, if they were drawn, their standard errors."""

    def note(self, name, value, standard_error=None):
        """Record a number, an array (by its bits and a weighted sum), a mapping of these, or anything else as text."""
        if hasattr(value, "keys"):
            for key in value.keys():  # noqa: SIM118 (a LabeledTable or an estimator's mapping need not iterate so)
                self.note(f"{name}[{key}]", value[key], standard_error)
            return
        try:
            numbers = np.asarray(value, dtype=float)
        except (TypeError, ValueError):
            self[name] = {"text": str(value)}
            return
        if isinstance(value, bool | int | np.bool_ | np.integer):
            self[name] = {"text": str(value)}
        elif numbers.ndim == 0:
            self[name] = {"value": float(numbers), "scale": abs(float(numbers)), "bits": repr(float(numbers))}
        else:
            flat = numbers.ravel()
            finite = np.where(np.isfinite(flat), flat, 0.0)
            shares = 1.0 + 0.5 * np.cos(np.arange(len(flat)))  # tells orders of entries apart
            self[name] = {
                "value": math.fsum(shares * finite),
                "scale": math.fsum(np.abs(shares * finite)),
                "bits": hashlib.sha256(flat.tobytes()).hexdigest(),
                "text": f"shape {numbers.shape}, not finite {np.flatnonzero(~np.isfinite(flat)).tolist()}",
            }
        if standard_error is not None:
            self[name]["standard_error"] = float(standard_error)

    def attempt(self, name, ask):
        """Record what a call returns, or the kind of error with which it refuses."""
        try:
            self.note(name, ask())
        except Exception as error:
            self[name] = {"text": f"refused: {type(error).__name__}"}


def emission_settings(*groups, **common):
    """Settings of an estimator for groups (family, columns or None for all, prior parameters of the family).

    Prior parameters belong to objects such as ``skvbem.emissions.Gaussian(mean_precision_prior=0.1)`` where a version
    has them, and to the constructors of the estimators where it has none. `common` goes to the estimator.
    """
    from skvbem import emissions

    specifications = [getattr(emissions, family.capitalize(), None) for family, _, _ in groups]
    if all(hasattr(specification, "get_params") for specification in specifications):
        made = [(family, kind(**prior), columns) for kind, (family, columns, prior) in zip(specifications, groups)]
        return {"emission": made[0][1] if groups[0][1] is None else made, **common}
    emission = groups[0][0] if groups[0][1] is None else {family: columns for family, columns, _ in groups}
    return {"emission": emission, **{k: v for _, _, prior in groups for k, v in prior.items()}, **common}


def table_of(name):
    """The table of a bundled data set."""
    from skvbem import datasets

    return np.asarray(getattr(datasets, f"load_{name}")().data)


def with_holes(X, share=0.1):
    """A copy of a table with some cells missing, always the same."""
    strings = X.dtype.kind in "OU"
    X = np.array(X, dtype=object if strings else float)
    X[np.random.default_rng(1).random(X.shape) < share] = None if strings else np.nan
    return X


def weights_of(X):
    """Whole numbers 0 to 3, always the same: scores that count rows take them."""
    return np.random.default_rng(2).integers(0, 4, size=len(X)).astype(float)


def fitted(figures, name, estimator, X, **fit_options):
    """Fit, and record the attributes of the fit."""
    try:
        estimator.fit(X, **fit_options)
    except Exception as error:
        figures[f"{name}/fit"] = {"text": f"refused: {type(error).__name__}"}
        return None
    attributes(figures, name, estimator)
    return estimator


def attributes(figures, name, estimator):
    """Record what a fit left."""
    for attribute in ATTRIBUTES:
        if hasattr(estimator, attribute):
            figures.note(f"{name}/{attribute}", getattr(estimator, attribute))


def scores(figures, name, estimator, X, *, sampling, **fit_options):
    """Record the scores of the evidence."""
    from skvbem.evidence import SCORES

    for kind, score in SCORES.items():
        if estimator is None or (score.random and not sampling):
            continue
        try:
            evidence = estimator.log_evidence(
                X, kind=kind, random_state=0, **fit_options, **SCORE_OPTIONS.get(kind, {})
            )
            figures.note(f"{name}/score {kind}", evidence.value, evidence.standard_error if score.random else None)
        except Exception as error:
            figures[f"{name}/score {kind}"] = {"text": f"refused: {type(error).__name__}"}


def predictions(figures, name, estimator, X, n_samples=3):
    """Record what a fit says of rows."""
    if estimator is None:
        return
    for method in ("score_samples", "predict_proba", "predict", "transform", "impute", "filter", "decode", "bic"):
        if hasattr(estimator, method):
            figures.attempt(f"{name}/{method}", lambda method=method: as_array(getattr(estimator, method)(X)))
    if hasattr(estimator, "forecast"):
        figures.attempt(f"{name}/forecast", lambda: estimator.forecast(X, n_steps=3).state_probabilities)
        figures.attempt(f"{name}/forecast expected", lambda: dict(estimator.forecast(X, n_steps=3).expected))
    if hasattr(estimator, "credible_intervals"):
        figures.attempt(f"{name}/credible_intervals", lambda: flat(estimator.credible_intervals(method="vb")))
    if hasattr(estimator, "goodness_of_fit"):
        figures.attempt(f"{name}/goodness_of_fit", lambda: estimator.goodness_of_fit(X).x2)
    figures.attempt(f"{name}/sample", lambda: as_array(estimator.sample(n_samples, random_state=3)))


def as_array(answer):
    """An answer, also tuples and lists of arrays of several lengths, as one array of numbers or the text of it."""
    parts = [np.asarray(part) for part in parts_of(answer)]
    try:
        return np.concatenate([part.astype(float).ravel() for part in parts])
    except (TypeError, ValueError):
        return hashlib.sha256(repr([part.tolist() for part in parts]).encode()).hexdigest()


def parts_of(answer):
    """The arrays and tables of nested tuples and lists."""
    if isinstance(answer, tuple | list) and not np.isscalar(next(iter(answer), 0)):
        return [part for inner in answer for part in parts_of(inner)]
    return [answer]


def flat(nested):
    """Nested mappings and tuples of arrays as one mapping."""
    if isinstance(nested, dict):
        return {f"{key}.{k}": v for key, inner in nested.items() for k, v in flat(inner).items()}
    if isinstance(nested, tuple):
        return {f"{i}": np.asarray(part) for i, part in enumerate(nested)}
    return {"": nested}


def networks(figures):
    """Networks of categories: structures, priors, methods, weights, missing cells."""
    from skvbem import VBDiscreteDAG

    for dataset in CATEGORICAL:
        X = table_of(dataset)
        columns = [f"x{j}" for j in range(X.shape[1])]
        structures = {
            "no edge": {"structure": []},
            "chain": {"structure": list(itertools.pairwise(columns[:4]))},
            "two classes": {"latents": 2},
            "three classes": {"latents": 3},
            "two linked": {
                "structure": [("a", "b"), *(("ab"[j % 2], column) for j, column in enumerate(columns))],
                "latents": ["a", "b"],
            },
            "two parents": {
                "structure": [("a", columns[0]), ("a", columns[1]), ("b", columns[1]), ("b", columns[2])],
                "latents": {"a": 2, "b": 3},
            },
        }
        for structure, given in structures.items():
            name = f"VBDiscreteDAG/{dataset}/{structure}"
            model = fitted(figures, name, VBDiscreteDAG(**given, **SETTINGS), X)
            scores(figures, name, model, X, sampling=False)
            if structure in ("chain", "two classes", "two linked"):
                predictions(figures, name, model, X)
        for variant, options in {
            "map": {"method": "map"},
            "map in probabilities": {"method": "map", "map_basis": "probability", "prior": 2.0},
            "ml": {"method": "ml"},
            "bdeu": {"prior": "bdeu", "equivalent_sample_size": 4.0},
            "per_row": {"prior": "per_row"},
            "learned prior": {"learn_prior": True, "prior": "per_row"},
            "run to the end": {"init": "random"},
            "annealed": {"annealing": np.linspace(0.2, 1, 9)},
            "not extrapolated": {"acceleration": False},
        }.items():
            fitted(figures, f"VBDiscreteDAG/{dataset}/{variant}", VBDiscreteDAG(**(SETTINGS | options)), X)
        weights = weights_of(X)
        name = f"VBDiscreteDAG/{dataset}/weights"
        model = fitted(figures, name, VBDiscreteDAG(**SETTINGS), X, sample_weight=weights)
        scores(figures, name, model, X, sampling=False, sample_weight=weights)
        holes = with_holes(X)
        name = f"VBDiscreteDAG/{dataset}/holes"
        model = fitted(figures, name, VBDiscreteDAG(latents=3, **SETTINGS), holes)
        scores(figures, name, model, holes, sampling=False)
        predictions(figures, name, model, holes)
        if dataset in SMALL:
            few = X[: SMALL[dataset], :4]
            name = f"VBDiscreteDAG/{dataset}/few rows"
            scores(figures, name, fitted(figures, name, VBDiscreteDAG(**SETTINGS), few), few, sampling=True)
            query = fitted(figures, f"{name}, two linked", VBDiscreteDAG(**structures["two linked"], **SETTINGS), X)
            figures.attempt(f"{name}/query", lambda q=query: np.asarray(q.query(["x0", "x1"])))
    from skvbem.datasets import make_bipartite, make_latent_class

    for made, X in (
        ("make_bipartite", make_bipartite(60, random_state=0).data),
        ("make_latent_class", make_latent_class(60, 4, 2, random_state=0).data),
    ):
        figures.attempt(f"datasets/{made}", lambda X=X: as_array(X))
        fitted(figures, f"VBDiscreteDAG/{made}", VBDiscreteDAG(**SETTINGS), np.asarray(X))


def tables_by_family():
    """Tables for each family of emissions: (family, data set, X)."""
    alice = alice_letters(6000)
    blocks = alice.reshape(-1, 150)
    letters = np.stack([(blocks == letter).sum(axis=1) for letter in LETTERS[:8]], axis=1)
    yield "gaussian", "faithful", table_of("faithful")
    yield "exponential", "faithful", table_of("faithful")
    for name in COUNTS:
        yield "poisson", name, table_of(name)
    for name, no in BINARY.items():
        yield "bernoulli", name, (table_of(name) != no).astype(int)
    yield "multinomial", "alice", letters
    for name in CATEGORICAL:
        yield "categorical", name, table_of(name)


def alice_letters(n):
    """The first letters of a text."""
    from skvbem.datasets import load_alice

    return np.array(list(load_alice()[:n]))


#: Prior parameters that are not the defaults, by family.
PRIORS = {
    "gaussian": {"mean_precision_prior": 0.1, "degrees_of_freedom_prior": 4.5},
    "exponential": {"shape_prior": 2.0, "rate_prior": 3.0},
    "poisson": {"shape_prior": 0.5, "rate_prior": 0.25},
    "bernoulli": {"concentration_prior": 0.5},
    "multinomial": {"concentration_prior": 0.5},
    "categorical": {"concentration_prior": 0.5},
}
METHODS = {
    "map": {"method": "map"},
    "map in probabilities": {"method": "map", "map_basis": "probability"},
    "ml": {"method": "ml"},
}


def mixtures(figures):
    """Mixtures: families, covariance types, priors, methods, weights, missing cells, starts."""
    from skvbem import VBMixture

    for family, dataset, X in tables_by_family():
        of_dataset = f"VBMixture/{dataset}/{family}"
        types = ("full", "tied", "diag", "spherical") if family == "gaussian" else ("full",)
        for covariance_type in types:
            for n in (1, 2, 3):
                settings = SETTINGS | {"emission": family, "covariance_type": covariance_type}
                name = f"{of_dataset} {covariance_type}/{n}"
                model = fitted(figures, name, VBMixture(n, **settings), X)
                scores(figures, name, model, X, sampling=False)
                if n > 1:
                    predictions(figures, name, model, X)
            for variant, options in METHODS.items():
                fitted(figures, f"{of_dataset} {covariance_type}/{variant}", VBMixture(2, **(settings | options)), X)
            prior = PRIORS[family] | ({"covariance_type": covariance_type} if family == "gaussian" else {})
            given = emission_settings((family, None, prior))
            name = f"{of_dataset} {covariance_type}/other prior"
            model = fitted(figures, name, VBMixture(2, **given, **SETTINGS), X)
            scores(figures, name, model, X, sampling=False)
            predictions(figures, name, model, X)
        settings = SETTINGS | {"emission": family}
        for variant, options in {
            "process": {"weight_concentration_prior_type": "dirichlet_process", "weight_concentration_prior": 0.5},
            "sparse": {"weight_concentration_prior": 0.01},
            "optimized": {"weight_concentration_prior": "optimized"},
            "auto": {"n_components": "auto"},
            "random": {"init": "random"},
            "plain starts": {"init": "random", "n_init": 8},
            "hierarchical": {"init": "hierarchical"},
            "responsibilities": {"init": np.random.default_rng(5).dirichlet(np.ones(3), size=len(X))},
            "not extrapolated": {"acceleration": False},
        }.items():
            few = X[:150]
            if variant == "responsibilities":
                options = {"init": options["init"][:150]}
            model = VBMixture(**({"n_components": 3} | settings | options))
            model = fitted(figures, f"{of_dataset}/{variant}", model, few)
            if variant == "process":
                scores(figures, f"{of_dataset}/{variant}", model, few, sampling=False)
        weights = weights_of(X)
        model = fitted(figures, f"{of_dataset}/weights", VBMixture(2, **settings), X, sample_weight=weights)
        scores(figures, f"{of_dataset}/weights", model, X, sampling=False, sample_weight=weights)
        if family != "multinomial":
            holes = with_holes(X)
            name = f"{of_dataset}/holes"
            model = fitted(figures, name, VBMixture(2, **settings), holes)
            scores(figures, name, model, holes, sampling=False)
            predictions(figures, name, model, holes)
        if dataset in SMALL or family != "categorical":
            few = X[:: max(1, len(X) // 30)]
            name = f"{of_dataset}/few rows"
            scores(figures, name, fitted(figures, name, VBMixture(2, **settings), few), few, sampling=True)
    mixed = np.column_stack([table_of("faithful")[:100], table_of("fetal_lamb")[:100], table_of("carcinoma")[:100, :1]])
    for variant, priors in {"": {}, ", other prior": PRIORS}.items():
        groups = (("gaussian", [0, 1]), ("poisson", [2]), ("categorical", [3]))
        if priors:
            given = emission_settings(*((family, columns, priors[family]) for family, columns in groups))
        else:
            given = {"emission": dict(groups)}
        for holes, X in (("", mixed), (", holes", with_holes(mixed))):
            name = f"VBMixture/mixed columns{variant}{holes}"
            model = fitted(figures, name, VBMixture(2, **given, **SETTINGS), X)
            scores(figures, name, model, X, sampling=False)
            predictions(figures, name, model, X)


def sequences(figures):
    """Hidden Markov models: families, masks, sticky and learned priors, methods, weights, missing cells."""
    from skvbem import VBHMM

    letters = alice_letters(900)[:, None]
    for family, dataset, X in (*tables_by_family(), ("categorical", "alice letters", letters)):
        if family == "categorical" and dataset not in ("carcinoma", "cheating", "lizards", "zoo", "alice letters"):
            continue
        X, of_dataset = X[:400], f"VBHMM/{dataset}/{family}"
        lengths = np.array([len(X) // 2, len(X) // 3, len(X) - len(X) // 2 - len(X) // 3])
        types = ("full", "tied", "diag", "spherical") if family == "gaussian" else ("full",)
        settings = SETTINGS | {"emission": family}
        for covariance_type in types:
            for n in (1, 2, 3):
                name = f"{of_dataset} {covariance_type}/{n}"
                model = fitted(figures, name, VBHMM(n, **settings, covariance_type=covariance_type), X)
                scores(figures, name, model, X, sampling=False)
                if n == 2:
                    predictions(figures, name, model, X)
        for variant, options in METHODS.items():
            fitted(figures, f"{of_dataset}/{variant}", VBHMM(2, **(settings | options)), X)
        given = emission_settings((family, None, PRIORS[family]))
        fitted(figures, f"{of_dataset}/other prior", VBHMM(2, **given, **SETTINGS), X)
        for variant, options in {
            "left-to-right": {"transmat_mask": "left-to-right"},
            "near": {"transmat_mask": 1},
            "sticky": {"sticky": 5.0},
            "unit": {"transmat_prior": "unit", "startprob_prior": "unit"},
            "learned prior": {"learn_prior": True},
            "plain starts": {"init": "random", "n_init": 8},
            "random": {"init": "random"},
            "not extrapolated": {"acceleration": False},
            "vb predictive": {"predictive": "vb"},
            "average predictive": {"predictive": "average", "n_draws": 5},
        }.items():
            name = f"{of_dataset}/{variant}"
            model = fitted(figures, name, VBHMM(3, **(settings | options)), X, lengths=lengths)
            if variant in ("left-to-right", "sticky"):
                scores(figures, name, model, X, sampling=False, lengths=lengths)
            if model is not None:
                figures.attempt(f"{name}/score_samples", lambda m=model, X=X: m.score_samples(X))
        listed = np.split(X, np.cumsum(lengths)[:-1])
        weights = np.array([2.0, 1.0, 3.0])
        model = fitted(figures, f"{of_dataset}/weights", VBHMM(2, **settings), listed, sample_weight=weights)
        scores(figures, f"{of_dataset}/weights", model, listed, sampling=False, sample_weight=weights)
        predictions(figures, f"{of_dataset}/weights", model, listed)
        if family != "multinomial":
            holes = with_holes(X)
            name = f"{of_dataset}/holes"
            model = fitted(figures, name, VBHMM(2, **settings), holes)
            scores(figures, name, model, holes, sampling=False)
            predictions(figures, name, model, holes)
        few = X[:25]
        name = f"{of_dataset}/few rows"
        scores(figures, name, fitted(figures, name, VBHMM(2, **settings), few), few, sampling=True)


def batches(figures):
    """Batches one after the other."""
    from skvbem import VBHMM, VBDiscreteDAG, VBMixture

    for name, model, X in (
        ("VBDiscreteDAG/carcinoma", VBDiscreteDAG(**SETTINGS), table_of("carcinoma")),
        ("VBDiscreteDAG/soybean_large", VBDiscreteDAG(latents=3, **SETTINGS), table_of("soybean_large")),
        ("VBMixture/faithful", VBMixture(2, **SETTINGS), table_of("faithful")),
        ("VBMixture/lsat6", VBMixture(2, emission="bernoulli", **SETTINGS), table_of("lsat6")),
        ("VBMixture/earthquakes", VBMixture(2, emission="poisson", **SETTINGS), table_of("earthquakes")),
        ("VBHMM/earthquakes", VBHMM(2, emission="poisson", **SETTINGS), table_of("earthquakes")),
        ("VBHMM/faithful", VBHMM(2, **SETTINGS), table_of("faithful")),
    ):
        for i, part in enumerate((X[::3], X[1::3], X[2::3])):
            try:
                model.partial_fit(part)
            except Exception as error:
                figures[f"partial_fit/{name}/{i}"] = {"text": f"refused: {type(error).__name__}"}
                continue
            attributes(figures, f"partial_fit/{name}/{i}", model)
        predictions(figures, f"partial_fit/{name}", model, X)


def searches(figures):
    """Searches over small spaces, by the evidence and by rows held out."""
    from skvbem import VBHMM, BipartiteSpace, StructureSearchCV, VBDiscreteDAG, VBMixture

    networks_of = VBDiscreteDAG(**SETTINGS)
    items = [f"x{j}" for j in range(4)]
    states = {"n_components": [1, 2, 3]}
    carcinoma, lsat6, faithful = table_of("carcinoma"), table_of("lsat6")[:, :4], table_of("faithful")
    cases = {
        "classes": (networks_of, {"latents": [1, 2, 3]}, carcinoma, {}),
        "classes by ais": (networks_of, {"latents": [1, 2]}, carcinoma[:40], {"scoring": "ais"}),
        "classes held out": (networks_of, {"latents": [1, 2, 3]}, carcinoma, {"cv": 3}),
        "bipartite": (networks_of, lambda: BipartiteSpace(["a", "b"], items[:3]), lsat6[:, :3], {}),
        "bipartite, greedy": (networks_of, lambda: BipartiteSpace(["a", "b"], items), lsat6, {"strategy": "greedy"}),
        "mixtures": (VBMixture(**SETTINGS), states, faithful, {"averaging": True}),
        "mixtures held out": (VBMixture(**SETTINGS), states, faithful, {"cv": 3}),
        "counts": (VBMixture(emission="poisson", **SETTINGS), states, table_of("earthquakes"), {}),
        "sequences": (VBHMM(emission="poisson", **SETTINGS), states, table_of("earthquakes"), {}),
        "covariances": (
            *(VBMixture(2, **SETTINGS), {"covariance_type": ["full", "tied", "diag", "spherical"]}, faithful),
            {"scoring": ["lower_bound", "bic"]},
        ),
    }
    for case, (estimator, space, X, options) in cases.items():
        name = f"StructureSearchCV/{case}"
        try:
            space = space() if callable(space) else space
            search = StructureSearchCV(estimator, space, random_state=0, **options).fit(X)
        except Exception as error:
            figures[name] = {"text": f"refused: {type(error).__name__}"}
            continue
        figures.note(f"{name}/best_score_", search.best_score_)
        figures.note(f"{name}/best_index_", search.best_index_)
        for key in sorted(search.cv_results_):
            if "time" not in key and key.startswith(("mean_test", "split", "rank_test", "log_prior", "n_free")):
                figures.note(f"{name}/{key}", search.cv_results_[key])
        for attribute in ("structure_posterior_", "score_weights_", "log_evidence_", "edge_probabilities_"):
            if hasattr(search, attribute):
                figures.note(f"{name}/{attribute}", np.asarray(getattr(search, attribute)))
        predictions(figures, name, search, X)


PARTS = (networks, mixtures, sequences, batches, searches)


def collect(parts):
    """All figures of the version that is installed here."""
    figures = Figures()
    for part in PARTS:
        if parts and part.__name__ not in parts:
            continue
        began, count = time.process_time(), len(figures)
        part(figures)
        seconds = time.process_time() - began
        print(f"{part.__name__:<12}{len(figures) - count:>7} figures {seconds:>8.1f} s", file=sys.stderr, flush=True)
    return figures


# Comparing ------------------------------------------------------------------------------------------------------------


@dataclass
class Comparison:
    """How the figures of two versions agree."""

    n_figures: int
    same_bits: int
    refused: int
    drawn: int
    drawn_same_bits: int
    largest: float
    worst: str
    failures: list


def difference(before, after):
    """Relative difference of two figures: 0 if they are the same, infinite if they cannot be compared."""
    if before == after:
        return 0.0
    if before.get("text") != after.get("text") or "value" not in before or "value" not in after:
        return math.inf
    if before["bits"] == after["bits"]:
        return 0.0
    gap = abs(before["value"] - after["value"])
    return gap / max(before["scale"], after["scale"]) if gap else 0.0  # the same sum of other entries: noted as bits


def compare(before, after, tolerance=TOLERANCE):
    """Compare two sets of figures."""
    result = Comparison(0, 0, 0, 0, 0, 0.0, "", [])
    for name in sorted({*before, *after}):
        result.n_figures += 1
        if name not in before or name not in after:
            result.failures.append(f"{name}: only {'after' if name in after else 'before'}")
            continue
        old, new = before[name], after[name]
        same = old.get("bits") == new.get("bits") and old.get("text") == new.get("text")
        drawn = "standard_error" in old and "standard_error" in new
        result.same_bits += same
        result.refused += same and str(old.get("text")).startswith("refused")
        result.drawn += drawn
        result.drawn_same_bits += drawn and same
        if same:
            continue
        relative = difference(old, new)
        if drawn:
            gap, error = abs(old["value"] - new["value"]), math.hypot(old["standard_error"], new["standard_error"])
            if not gap <= max(STANDARD_ERRORS * error, tolerance * old["scale"]):
                result.failures.append(f"{name}: {old['value']!r} -> {new['value']!r}, {gap / error:.3g} errors apart")
            continue
        if relative > result.largest:
            result.largest, result.worst = relative, name
        if not relative <= tolerance:
            shown = [figure.get("value", figure.get("text")) for figure in (old, new)]
            result.failures.append(f"{name}: {shown[0]!r} -> {shown[1]!r}, relative {relative:.3g}")
    return result


def report(result, most=60):
    """Print a comparison; whether all is well."""
    print(f"figures                        {result.n_figures:>8}")
    print(f"equal to the bit               {result.same_bits:>8}")
    print(f"  of them refused by both      {result.refused:>8}")
    print(f"drawn                          {result.drawn:>8}")
    print(f"  of them equal to the bit     {result.drawn_same_bits:>8}")
    print(f"largest relative difference    {result.largest:>8.2g}  {result.worst}")
    print(f"failures                       {len(result.failures):>8}")
    for line in result.failures[:most]:
        print("  " + line)
    if len(result.failures) > most:
        print(f"  ... and {len(result.failures) - most} more")
    return not result.failures


def figures_of(python, file, parts):
    """Figures from a file, or collected by an interpreter."""
    if file is not None:
        return json.loads(Path(file).read_text())
    environment = os.environ | {"PYTHONSAFEPATH": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("PYTHONPATH", None)
    python = os.path.abspath(python)  # not resolved: a virtual environment's Python is a link
    command = [python, str(Path(__file__).resolve()), "--collect", *(f"--part={part}" for part in parts)]
    with tempfile.TemporaryDirectory() as elsewhere:  # no checkout in the current folder gets in the way
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment, cwd=elsewhere)
    return json.loads(done.stdout)


def main():
    """Collect the figures of this interpreter, or compare two."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", help="Python that has the old version")
    parser.add_argument("--after", default=sys.executable, help="Python that has the new version (this one)")
    parser.add_argument("--before-file", help="figures of the old version, saved before")
    parser.add_argument("--after-file", help="figures of the new version, saved before")
    parser.add_argument("--save", help="write the figures of --after here")
    parser.add_argument("--part", action="append", default=[], choices=[part.__name__ for part in PARTS])
    parser.add_argument("--tolerance", type=float, default=TOLERANCE)
    parser.add_argument("--collect", action="store_true", help="print the figures of this interpreter as JSON")
    options = parser.parse_args()
    if options.collect:
        warnings.simplefilter("ignore")
        np.seterr(all="ignore")
        json.dump(collect(options.part), sys.stdout)
        return 0
    after = figures_of(options.after, options.after_file, options.part)
    if options.save:
        Path(options.save).write_text(json.dumps(after, indent=0, sort_keys=True))
    if options.before is None and options.before_file is None:
        return 0
    before = figures_of(options.before, options.before_file, options.part)
    if options.part:  # of a file that has all parts
        beginnings = {name.split("/")[0] for name in after}
        before = {name: figure for name, figure in before.items() if name.split("/")[0] in beginnings}
    return 0 if report(compare(before, after, options.tolerance)) else 1


if __name__ == "__main__":
    sys.exit(main())
