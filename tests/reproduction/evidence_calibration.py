"""Are scores of the evidence as uncertain as they say? Runs of "auto", and of its first step, beside what is known.

Tiny latent classes, networks of two latents, mixtures, hidden Markov models and mixed networks, whose evidence is
summed exactly (the score itself may not enumerate), and real tables, whose references are long runs: populations over
growing data where these come to an end, else importance sampling about Gibbs draws, and both where both are sure.
Tables of 50 000 rows have a posterior that is near normal but for relabelings, and importance sampling about the mode,
of weights that hardly vary, for a reference. Laplace's value alone is not near enough: of three classes it is low by
0.04 nats. Each run has a seed of its own, for fit and score.
Problems of `fresh` were first looked at when the method had been chosen on the others, and those of `further` last.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.evidence_calibration measure --seconds 900
    PYTHONPATH=tests python -P -m reproduction.evidence_calibration table

The record, evidence_calibration_results.jsonl next to this file, has a line for each reference and each run of a score;
what is there is not done again. The score "linear_response", which states no error, has its values there. Runs of
seeds from `N_ANEW` on are from before errors were those of draws within components, and of few chains.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from reproduction.records import add_to_record, read_record
from scipy.special import logsumexp
from scipy.stats import multivariate_t
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine

from skvbem import VBHMM, VBDiscreteDAG, VBMixture, VBNetwork
from skvbem.datasets import (
    load_carcinoma,
    load_cheating,
    load_coleman_panel,
    load_earthquakes,
    load_faithful,
    load_fetal_lamb,
    load_gender_role,
    load_lizards,
    load_lsat6,
    load_stouffer_toby,
)
from skvbem.emissions import Gaussian
from skvbem.evidence.observed_information import coordinates_of_mode, observed_information
from skvbem.fitting.evaluation import evaluation_of

RECORD = Path(__file__).with_name("evidence_calibration_results.jsonl")
# Tiny problems of each kind, fresh ones, and terms of an enumeration that they may have.
KINDS = ("classes", "two latents", "mixtures", "chains")
SCORES = ("bridge", "linear_response", "auto")
N_TINY, N_FRESH, N_MIXED, MAX_TERMS = 10, 6, 8, 2**22
# Seeds whose runs state errors as they are now.
N_ANEW = 4
# Of a run: wrong from so many standard errors and nats on.
WRONG_ERRORS, WRONG_NATS = 4.0, 0.3
# Draws about a mode, and degrees of freedom of their distribution.
ABOUT_MODE = {"kind": "about_mode", "n_draws": 8192, "degrees_of_freedom": 60.0}
LONG_POPULATION = {"kind": "smc_data", "n_particles": 8192, "max_particles": 16_384, "error": 0.03}
IMPORTANCE_OF_CLASSES = {"kind": "importance_gibbs", "n_draws": 16_384, "n_completions": 1024}
LONG_IMPORTANCE = {"kind": "importance_gibbs", "n_draws": 65_536, "n_completions": 1024}
KNOWN_PRIOR = Gaussian(
    mean_prior=[0.0], mean_precision_prior=0.1, degrees_of_freedom_prior=4.0, covariance_prior=[[2.0]]
)
TWO_LATENTS = {"x0": ["s"], "x1": ["s", "t"], "x2": ["s", "t"], "x3": ["t"]}


@dataclass(frozen=True)
class Problem:
    """A model to be fitted to data, and how its evidence is known.

    Parameters
    ----------
    name, group : str
    model : estimator
    X : ndarray
    references : tuple of mapping
        Options of `log_evidence`; what is not in doubt is put together, by its errors.
    """

    name: str
    group: str
    model: Any
    X: np.ndarray
    references: tuple[Mapping[str, Any], ...]

    def fitted(self, seed: int) -> Any:
        """The fit of a seed."""
        return clone(self.model).set_params(random_state=seed).fit(self.X)


def tiny(kind: str, number: int) -> Problem:
    """A problem of two or three hidden states with so few rows that its evidence is a sum."""
    rng = np.random.default_rng([number, len(kind)])
    n_states = 2 + number % 2
    exact = ({"kind": "exact", "max_terms": MAX_TERMS},)
    if kind in ("classes", "two latents"):
        weights, tables = rng.dirichlet(np.ones(n_states)), rng.dirichlet(np.ones(2), size=(4, n_states))
        label = rng.choice(n_states, size=9 if n_states == 3 or kind == "two latents" else 14, p=weights)
        X = (rng.random((len(label), 4)) < tables[:, label, 1].T).astype(int)
        levels = [[0, 1]] * 4
        if kind == "classes":
            model = VBDiscreteDAG(latents=n_states, categories=levels)
        else:
            X = X[:7]
            model = VBDiscreteDAG(TWO_LATENTS, latents={"s": 2, "t": 2}, categories=dict(zip(TWO_LATENTS, levels)))
        return Problem(f"{kind} {number}", kind, model, X, exact)
    n_rows = 12 if n_states == 2 else 8
    path = np.sort(rng.integers(0, n_states, n_rows)) if kind == "chains" else rng.integers(0, n_states, n_rows)
    X = rng.normal(3.0 * rng.normal(size=n_states)[path], 1.0)[:, None]
    estimator = VBHMM if kind == "chains" else VBMixture
    model = estimator(n_states, emission=KNOWN_PRIOR)
    return Problem(f"{kind} {number}", kind, model, X, exact)


def real() -> Iterator[Problem]:
    """Tables of the literature; the prior of measurements is too far from them for populations that begin there."""
    tables = {
        "carcinoma": (load_carcinoma, (2, 3, 4, 5)),
        "coleman": (load_coleman_panel, (2, 3)),
        "stouffer": (load_stouffer_toby, (2, 3)),
        "cheating": (load_cheating, (2, 3)),
        "lsat6": (load_lsat6, (2,)),
    }
    long = (LONG_POPULATION, IMPORTANCE_OF_CLASSES)
    for name, (load, numbers) in tables.items():
        for k in numbers:
            model = VBDiscreteDAG(latents=k)
            yield Problem(f"{name} {k}", "real classes", model, np.asarray(load().data), long)
    measured = {"faithful": load_faithful().data, "iris": load_iris().data, "wine": load_wine().data[:, :5]}
    for name, X in measured.items():
        for k in (2, 3):
            model = VBMixture(k)
            yield Problem(f"{name} {k}", "real mixtures", model, np.asarray(X), (LONG_IMPORTANCE,))
    X = np.asarray(load_earthquakes().data).reshape(-1, 1)
    for k in (2, 3):
        model = VBHMM(k, emission="poisson")
        yield Problem(f"earthquakes {k}", "real chains", model, X, (LONG_IMPORTANCE,))
    for k in (2, 3):
        model = VBDiscreteDAG(latents=k)
        yield Problem(f"gender role {k}", "real classes", model, np.asarray(load_gender_role().data), long)
    lamb = np.asarray(load_fetal_lamb().data).reshape(-1, 1)
    for k in (2, 3):
        model = VBHMM(k, emission="poisson")
        yield Problem(f"fetal lamb {k}", "real chains", model, lamb, (LONG_IMPORTANCE,))
    for k in (2, 3):
        model = VBMixture(k, emission="poisson")
        yield Problem(f"earthquakes, no chain {k}", "real mixtures", model, X, (LONG_IMPORTANCE,))


def fresh() -> list[Problem]:
    """A third more, on which nothing was chosen."""
    found = [tiny(kind, number) for number in range(N_TINY, N_TINY + N_FRESH) for kind in KINDS]
    lizards = np.asarray(load_lizards().data)
    for k in (2, 3):
        model = VBDiscreteDAG(latents=k)
        found.append(Problem(f"lizards {k}", "real classes", model, lizards, (LONG_POPULATION, IMPORTANCE_OF_CLASSES)))
    lamb = np.asarray(load_fetal_lamb().data).reshape(-1, 1)
    for k in (2, 3):
        model = VBMixture(k, emission="poisson")
        found.append(Problem(f"fetal lamb, no chain {k}", "real mixtures", model, lamb, (LONG_IMPORTANCE,)))
    return found


def mixed_network(number: int) -> Problem:
    """Two or three states above a binary column and two of measurements, so few rows that the evidence is a sum."""
    rng = np.random.default_rng([51, number])
    n_states = 2 + number % 2
    state = rng.integers(0, n_states, 12 if n_states == 2 else 8)
    color = np.where(rng.random(len(state)) < rng.random(n_states)[state], "blue", "red")
    measured = rng.normal(2.0 * rng.normal(size=(n_states, 2))[state], 1.0)
    X = np.column_stack([color.astype(object), measured])
    emission = [("length", KNOWN_PRIOR, ["x1"]), ("width", KNOWN_PRIOR, ["x2"]), ("remainder", "auto")]
    model = VBNetwork(latents=n_states, emission=emission, categories={"x0": ["blue", "red"]})
    return Problem(f"mixed network {number}", "mixed networks", model, X, ({"kind": "exact", "max_terms": MAX_TERMS},))


def large(kind: str, n_states: int) -> Problem:
    """50 000 rows, where the posterior of parameters is near normal but for relabelings."""
    rng = np.random.default_rng([52, n_states])
    label = rng.choice(n_states, size=50_000, p=rng.dirichlet(np.full(n_states, 5.0)))
    model: Any
    if kind == "classes":
        tables = rng.dirichlet(np.full(3, 3.0), size=(8, n_states))
        X = (rng.random((len(label), 8, 1)) > np.cumsum(tables, axis=2)[:, label].swapaxes(0, 1)[..., :-1]).sum(axis=2)
        model = VBDiscreteDAG(latents=n_states)
    else:
        distance = {"mixture": 4.0, "overlapping mixture": 1.5 + 0.5 * (n_states - 1)}[kind]
        X = rng.normal(size=(len(label), 2)) + distance * np.array([[0, 0], [1, 0], [0, 1]])[label]
        model = VBMixture(n_states)
    return Problem(f"50 000 rows, {kind} {n_states}", "50 000 rows", model, X, (ABOUT_MODE,))


def further() -> list[Problem]:
    """Kinds that came later: mixed networks, and tables of many rows."""
    kinds = ("classes", "mixture", "overlapping mixture")
    many = (large(kind, n_states) for kind in kinds for n_states in (2, 3))
    return [*map(mixed_network, range(N_MIXED)), *many]


def problems() -> list[Problem]:
    """All of them."""
    return [*(tiny(kind, number) for number in range(N_TINY) for kind in KINDS), *real(), *fresh(), *further()]


def record() -> list[dict[str, Any]]:
    """Lines written so far."""
    return read_record(RECORD)


def write(line: Mapping[str, Any]) -> None:
    """Add a line."""
    add_to_record(RECORD, line)


def reference_of(problem: Problem, options: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of a problem by one score, of a seed that no run has."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = problem.fitted(10_000)
        if options["kind"] == "about_mode":
            value, error = about_mode(model, problem.X, options["n_draws"], options["degrees_of_freedom"])
            known = {"value": value, "error": error, "doubts": []}
        else:
            found = model.log_evidence(problem.X, **options)
            known = {"value": found.value, "error": found.standard_error or 0.0, "doubts": list(found.doubts)}
    return {"reference": problem.name, "kind": options["kind"], **known}


def about_mode(model: Any, X: np.ndarray, n_draws: int, degrees_of_freedom: float) -> tuple[float, float]:
    """The evidence and its standard error, nats, by importance sampling from a t distribution about the mode.

    Its scale is the inverse of the observed information there. No chain, and no fit by VB but for its starts, has a say
    in it. Relabelings are counted as apart from each other, as they are of so many rows.
    """
    evaluation = evaluation_of(model, X)
    prior, point = evaluation.model.prior, evaluation.point("map")
    natural = prior.natural(point)
    coordinates = coordinates_of_mode(prior, natural, evaluation.expectation(natural)[0], False)
    options = {"max_states": 4096, "of_prior": True, "what": "The reference"}
    information = observed_information(evaluation, point, coordinates, **options)[1]
    proposal = multivariate_t(prior.to_unconstrained(point), np.linalg.inv(information), degrees_of_freedom)
    free = proposal.rvs(n_draws, random_state=0).T
    points = prior.from_unconstrained(free)
    log_weights = evaluation.capability("points").log_likelihoods(evaluation.few_rows, prior.natural(points))
    log_weights += prior.log_density_as_prior(points) - proposal.logpdf(free.T)
    log_weights += evaluation.capability("relabelings").log_n_relabelings(evaluation.hidden)
    value = float(logsumexp(log_weights) - np.log(n_draws))
    return value, float(np.exp(log_weights - value).std() / np.sqrt(n_draws))


def put_together(lines: list[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """Value and error of each problem's references."""
    known: dict[str, tuple[float, float]] = {}
    for name in dict.fromkeys(line["reference"] for line in lines):
        mine = [line for line in lines if line["reference"] == name]
        mine = [line for line in mine if not line["doubts"]] or mine
        precisions = np.array([line["error"] for line in mine]).clip(1e-9) ** -2.0
        value = float(precisions @ [line["value"] for line in mine] / precisions.sum())
        known[name] = value, float(precisions.sum() ** -0.5)
    return known


def run_of(problem: Problem, seed: int, score: str) -> dict[str, Any]:
    """A fit and its score."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.process_time()
        model = problem.fitted(seed)
        fitted = time.process_time()
        options = {"exact_terms": 0} if score == "auto" else {}
        found = model.log_evidence(problem.X, kind=score, **options)
    seconds = {"seconds": round(time.process_time() - fitted, 3), "fit_seconds": round(fitted - began, 3)}
    line = {"run": problem.name, "group": problem.group, "score": score, "seed": seed, "value": found.value}
    line |= {"error": found.standard_error, "doubts": list(found.doubts)}
    if score == "bridge":
        line |= {name: round(found.details[name], 4) for name in ("draws_error", "chains_error", "pareto_k")}
    if score == "auto":
        line["taken"] = list(found.details["taken"])
        line["asked"] = {
            name: None if each is None else [round(each.value, 4), round(each.standard_error, 4), len(each.doubts)]
            for name, each in found.details["asked"].items()
        }
    return line | seconds


def measure(seconds: float, n_seeds: int, only_fresh: bool, scores: Sequence[str]) -> None:
    """References first, then runs seed after seed, as many as the CPU time allows."""
    done = record()
    known = {(line["reference"], line["kind"]) for line in done if "reference" in line}
    ran = {(line["run"], line["seed"], line["score"]) for line in done if "run" in line}
    chosen = fresh() if only_fresh else problems()
    began = time.process_time()
    for seed in range(n_seeds):
        for problem in chosen:
            if time.process_time() - began > seconds:
                return
            for options in problem.references:
                if (problem.name, options["kind"]) not in known:
                    write(reference_of(problem, options))
                    known.add((problem.name, options["kind"]))
            for score in scores:
                if (problem.name, seed, score) not in ran:
                    write(run_of(problem, seed, score))


def deviations(lines: list[dict[str, Any]], runs: list[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """How far runs are from their references, nats, and in standard errors of both."""
    references = put_together([line for line in lines if "reference" in line])
    off = np.array([run["value"] - references[run["run"]][0] for run in runs])
    errors = np.hypot([run["error"] for run in runs], [references[run["run"]][1] for run in runs])
    return off, off / errors.clip(1e-9)


def runs_of(lines: list[dict[str, Any]], score: str) -> list[dict[str, Any]]:
    """The runs of a score."""
    return [line for line in lines if line.get("score") == score]


def table(lines: list[dict[str, Any]], score: str = "auto") -> Iterator[tuple[str, ...]]:
    """Rows of the table of the guide, one for each group and one for all: coverage, errors, doubts and cost."""
    runs = runs_of(lines, score)
    new = {problem.name for problem in fresh()}
    for group in [*dict.fromkeys(run["group"] for run in runs), "fresh", "all"]:
        mine = [run for run in runs if group in (run["group"], "all") or (group == "fresh" and run["run"] in new)]
        off, z = deviations(lines, mine)
        doubted = np.array([bool(run["doubts"]) for run in mine])
        wrong = (np.abs(z) > WRONG_ERRORS) & (np.abs(off) > WRONG_NATS)
        cost = np.array([run["seconds"] / max(run["fit_seconds"], 1e-3) for run in mine])
        in_time = (cost <= 10) | (np.array([run["seconds"] for run in mine]) <= 1)
        yield (
            group,
            str(len({run["run"] for run in mine})),
            str(len(mine)),
            f"{100 * np.mean(np.abs(z) <= 2):.0f}",
            f"{z.mean():+.2f}",
            f"{z.std():.2f}",
            f"{np.median([run['error'] for run in mine]):.3f}",
            f"{100 * np.mean(doubted[np.abs(z) <= 2]):.0f}",
            f"{wrong.sum()}",
            f"{np.median([run['seconds'] for run in mine]):.1f}",
            f"{np.median(cost):.0f}",
            f"{np.quantile(cost, 0.9):.0f}",
            f"{100 * np.mean(in_time):.0f}",
        )


def main() -> None:
    """Measure, or show what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["measure", "table"])
    parser.add_argument("--seconds", type=float, default=900.0, help="of CPU time")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--scores", nargs="+", choices=SCORES, default=SCORES)
    parser.add_argument("--fresh", action="store_true", help="fresh problems only")
    options = parser.parse_args()
    if options.what == "measure":
        measure(options.seconds, options.seeds, options.fresh, options.scores)
    else:
        for score in ("auto", "bridge"):
            for row in table(record(), score):
                print(", ".join(row))


if __name__ == "__main__":
    main()
