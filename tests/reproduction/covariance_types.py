"""Does the bound choose the right covariance type? Rows drawn from mixtures of each type, fitted by all four.

Covariances are drawn from the prior family of each type around the identity matrix: inverse Wishart with d + 2 degrees
of freedom ("full", and one for all components, "tied"), inverse Gamma with 3 ("diag", "spherical"). A mean is drawn as
the prior has it, as far from the origin as a row of its component, anew until all components are at least 2 apart: the
distance of their means by the average of their covariances. Three components of equal weight have 500 rows of 5 to 30
columns.

The bound's choice is compared with that of a long run of importance sampling from the fit, where that leads by at least
5 nats. An emission is said as in `held_out`.

    PYTHONPATH=tests python -P -m reproduction.covariance_types [--emission default] [--draws 5]

writes covariance_types_results.jsonl next to this file, one line for each data set and emission; what is there is not
run again.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
from reproduction.held_out import emission_of
from scipy.stats import invwishart

from skvbem import VBMixture
from skvbem.errors import EvidenceWarning

RESULTS = Path(__file__).with_name("covariance_types_results.jsonl")
TYPES = ("full", "tied", "diag", "spherical")
N_SAMPLES, N_COMPONENTS, N_COLUMNS = 500, 3, (5, 10, 20, 30)
LEAD = 5.0
_APART, _KAPPA = 2.0, 1.0


def drawn_covariances(kind: str, d: int, rng: np.random.Generator) -> np.ndarray:
    """Covariance matrices of the components, (n_components, d, d)."""
    if kind in ("full", "tied"):
        n = 1 if kind == "tied" else N_COMPONENTS
        drawn = invwishart(d + 2, np.eye(d)).rvs(n, random_state=rng).reshape(n, d, d)
        return np.broadcast_to(drawn, (N_COMPONENTS, d, d))
    variances = 1 / rng.chisquare(3.0, size=(N_COMPONENTS, d if kind == "diag" else 1))
    return variances[:, :, None] * np.eye(d)


def drawn(kind: str, d: int, draw: int) -> np.ndarray:
    """Rows of one mixture, (500, d), and never its labels."""
    rng = np.random.default_rng([TYPES.index(kind), d, draw])
    covariances = drawn_covariances(kind, d, rng)
    means = drawn_means(covariances, rng)
    label = rng.integers(N_COMPONENTS, size=N_SAMPLES)
    return np.array([rng.multivariate_normal(means[k], covariances[k]) for k in label])


def drawn_means(covariances: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Means (n_components, d) that are far enough from each other."""
    while True:
        means = np.array([rng.multivariate_normal(np.zeros(len(each)), each / _KAPPA) for each in covariances])
        if all(_distance(means, covariances, a, b) >= _APART for a, b in combinations(range(len(means)), 2)):
            return means


def _distance(means: np.ndarray, covariances: np.ndarray, a: int, b: int) -> float:
    away = means[a] - means[b]
    return float(np.sqrt(away @ np.linalg.solve((covariances[a] + covariances[b]) / 2, away)))


def measured(kind: str, d: int, draw: int, emission: str, n_draws: int = 200) -> dict:
    """The record of a data set: bounds and sampled evidences of the four types, and which samples were doubted."""
    X = drawn(kind, d, draw)
    began = time.process_time()
    bounds, evidences, errors, doubted = {}, {}, {}, []
    for fitted in TYPES:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model = VBMixture(N_COMPONENTS, emission=emission_of(emission, fitted, d), random_state=0).fit(X)
            bounds[fitted] = round(model.lower_bound_, 3)
            if n_draws:
                found = model.log_evidence(X, kind="importance_gibbs", n_draws=n_draws)
                evidences[fitted] = round(float(found.value), 3)
                errors[fitted] = round(float(found.standard_error), 3)
        if any(issubclass(each.category, EvidenceWarning) for each in said):
            doubted.append(fitted)
    return {
        "kind": kind,
        "d": d,
        "draw": draw,
        "emission": emission,
        "bounds": bounds,
        "evidences": evidences,
        "errors": errors,
        "doubted": doubted,
        "seconds": round(time.process_time() - began, 1),
    }


def key_of(record: dict) -> tuple:
    """What a record is of."""
    return record["emission"], record["kind"], record["d"], record["draw"]


def read(path: Path = RESULTS) -> dict[tuple, dict]:
    """Records by key."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return {key_of(record): record for record in map(json.loads, lines)}


def choice(values: dict[str, float]) -> str:
    """The type of the largest value."""
    return max(values, key=values.__getitem__)


def lead(values: dict[str, float]) -> float:
    """Nats by which the largest value leads."""
    first, second = sorted(values.values())[:-3:-1]
    return first - second


def table(records: dict, emission: str) -> list[tuple[str, ...]]:
    """Rows of the table, by the type drawn from: data sets, where the evidence leads, and of these three counts.

    Where the bound and the evidence choose alike, where the bound chooses the type drawn from, where the evidence does.
    """
    rows = []
    for kind in (*TYPES, "all"):
        members = [r for r in records.values() if r["emission"] == emission and kind in (r["kind"], "all")]
        led = [r for r in members if lead(r["evidences"]) >= LEAD]
        alike = sum(choice(r["bounds"]) == choice(r["evidences"]) for r in led)
        true = [sum(choice(r[values]) == r["kind"] for r in led) for values in ("bounds", "evidences")]
        rows.append((kind, *map(str, (len(members), len(led), alike, *true))))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--emission", nargs="*", default=["default"])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--output", type=Path, default=RESULTS)
    asked = parser.parse_args()
    for draw in range(asked.draws):
        for emission in asked.emission:
            for d in N_COLUMNS:
                for kind in TYPES:
                    if (emission, kind, d, draw) not in read(asked.output):
                        records = read(asked.output)
                        record = measured(kind, d, draw, emission)
                        records[key_of(record)] = record
                        lines = (json.dumps(records[key]) + "\n" for key in sorted(records))
                        asked.output.write_text("".join(lines), "utf-8")
                        print(record, flush=True)
    for emission in asked.emission:
        print(emission, *map(", ".join, table(read(asked.output), emission)), sep="\n")


if __name__ == "__main__":
    main()
