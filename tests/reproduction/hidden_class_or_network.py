"""The reality check of Chickering & Heckerman (UAI-96, section 5): is the hidden class worth its name?

Data from a naive Bayes model, its class discarded, have a network without hidden nodes as well, a complete one. Is the
best class model more probable than the best network that a search finds? True models are drawn as for table 1, 12
binary features, 3 classes, 800 rows, one data set each. What is reported is ln p(data | classes) less ln p(data |
network), where

- the number of classes is the best of one to six, by Laplace's approximation at the mode of 64 starts, as in the paper,
  and by scores of this library by default: the variational bound, the collapsed bound ascended from there, annealed
  importance sampling, which alone counts all relabelings of the classes;
- the network is the one that hill climbing from the empty graph finds, by the exact evidence under uniform priors, as
  in the paper; and the best of all networks, by dynamic programming.

``python hidden_class_or_network.py`` takes some minutes on one core and writes hidden_class_or_network_results.json
next to it.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np

from skvbem import DAGSpace, LatentClassSpace, StructureSearchCV, VBDiscreteDAG
from skvbem.errors import SearchWarning
from skvbem.evidence import scorer
from skvbem.search.strategies import Exact, Greedy

RESULTS = Path(__file__).with_name("hidden_class_or_network_results.json")
#: Mean and standard deviation of the difference in five repetitions, nats.
PUBLISHED = (26, 33)
N_CLASSES, N_SAMPLES = 3, 800
TESTED = range(1, 7)
#: Scores of class models, at the paper's form of fit and by default.
AT_THE_MODE = {
    kind: scorer(kind, form="map_probability") for kind in ("laplace", "cheeseman_stutz", "mled", "draper", "bic")
}
BY_DEFAULT = ("lower_bound", "collapsed_ascent", "ais")
#: Hill climbing, with each family scored once; and the best of all networks.
NETWORKS = {"greedy": Greedy(n_tabu=0, n_perturbations=0), "best": Exact()}
#: True models by number of features. The paper has five with 12.
N_MODELS = {8: 40, 12: 40, 16: 40}


def draw(n_features: int, model: int) -> np.ndarray:
    """Rows of a true model with uniform parameters, without their class."""
    rng = np.random.default_rng([model, n_features, N_CLASSES, N_SAMPLES])
    weights, ones = rng.dirichlet(np.ones(N_CLASSES)), rng.random((N_CLASSES, n_features))
    classes = rng.choice(N_CLASSES, p=weights, size=N_SAMPLES)
    return (rng.random((N_SAMPLES, n_features)) < ones[classes]).astype(np.int8)


def names_of(X: np.ndarray) -> list[str]:
    return [f"x{j}" for j in range(X.shape[1])]


def class_models(X: np.ndarray, scoring, seed: int, **options) -> StructureSearchCV:
    """One to six classes, each fitted from 64 starts."""
    model = VBDiscreteDAG(prior=1.01, n_init=64, categories=[[0, 1]] * X.shape[1], **options)
    search = StructureSearchCV(model, LatentClassSpace(TESTED, names_of(X)), scoring=scoring, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Latent .* has one state")
        warnings.simplefilter("ignore", SearchWarning)  # importance sampling doubts itself with too many classes
        return search.fit(X)


def network(X: np.ndarray, strategy) -> StructureSearchCV:
    """The network that a strategy finds by the exact evidence under uniform priors."""
    model = VBDiscreteDAG(prior=1.0, n_init=1, categories=[[0, 1]] * X.shape[1])
    return StructureSearchCV(model, DAGSpace(names_of(X)), strategy=strategy, scoring="lower_bound").fit(X)


def run(n_features: int, model: int) -> dict:
    """One data set: classes chosen, log evidence by each score and of each network, edges and seconds."""
    X = draw(n_features, model)
    record: dict = {"n_features": n_features, "model": model}
    record |= {name: {} for name in ("classes", "log_evidence", "edges", "seconds")}
    # modes in probabilities lie on long ridges: the default may stop where the Hessian is not yet definite
    mode = {"method": "map", "map_basis": "probability", "tol": 1e-11}
    for part, scoring, options in (("protocol", AT_THE_MODE, mode), ("ours", list(BY_DEFAULT), {})):
        began = time.perf_counter()
        table = class_models(X, scoring, model, **options).cv_results_
        record["seconds"][part] = round(time.perf_counter() - began, 1)
        for kind in scoring:
            best = int(np.nanargmax(table[f"mean_test_{kind}"]))
            record["classes"][kind] = sum(table["params"][best]["latents"].values())
            record["log_evidence"][kind] = round(float(table[f"mean_test_{kind}"][best]), 3)
    for name, strategy in NETWORKS.items():
        began = time.perf_counter()
        search = network(X, strategy)
        record["seconds"][name] = round(time.perf_counter() - began, 1)
        record["log_evidence"][name] = round(search.best_score_, 3)
        record["edges"][name] = len(search.best_structure_.edges)
    return record


def of_size(records, n_features: int) -> list[dict]:
    return [record for record in records if record["n_features"] == n_features]


def gains(records, kind: str, name: str) -> np.ndarray:
    """ln p(data | classes) by a score less ln p(data | network), of every record; nats."""
    return np.array([record["log_evidence"][kind] - record["log_evidence"][name] for record in records])


def cells(found: np.ndarray) -> tuple[str, str]:
    """Mean and standard deviation, and in how many data sets the classes are more probable."""
    return f"{found.mean():.0f} ± {found.std(ddof=1):.0f}", f"{(found > 0).sum()} of {len(found)}"


def by_size(records) -> list[tuple[str, ...]]:
    """The paper's difference, and the evidence of the classes against the best network."""
    return [
        (
            str(n),
            *cells(gains(of_size(records, n), "laplace", "greedy")),
            *cells(gains(of_size(records, n), "laplace", "best")),
            *cells(gains(of_size(records, n), "ais", "best")),
        )
        for n in N_MODELS
    ]


def by_score(records, n_features: int = 12) -> list[tuple[str, ...]]:
    """For each score the data sets where it chooses the true number of classes, and its differences."""
    some = of_size(records, n_features)
    return [
        (
            kind,
            str(sum(record["classes"][kind] == N_CLASSES for record in some)),
            *cells(gains(some, kind, "greedy")),
            *cells(gains(some, kind, "best")),
        )
        for kind in (*AT_THE_MODE, *BY_DEFAULT)
    ]


def show(records) -> None:
    """The tables of the documentation."""
    for title, rows in (("by number of features", by_size(records)), ("by score", by_score(records))):
        print(f"\n{title}", *map(", ".join, rows), sep="\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    records = json.loads(options.output.read_text()) if options.output.exists() else []
    done = {(record["n_features"], record["model"]) for record in records}
    for key in ((n, model) for n, n_models in N_MODELS.items() for model in range(n_models)):
        if key not in done:
            records.append(run(*key))
            print(records[-1], flush=True)
            lines = ",\n".join(map(json.dumps, records))
            options.output.write_text(f"[\n{lines}\n]\n")
    show(records)


if __name__ == "__main__":
    main()
