"""Table 1 of Chickering & Heckerman (UAI-96) run again: how many classes does each score of the evidence choose?

Naive Bayes models of one hidden class over binary features, parameters drawn uniformly; five data sets from each; test
models that differ in their number of classes alone. Their protocol, "protocol" below: prior 1.01 in every cell, mode
and Hessian in probabilities, 64 starts, every score at the one mode found, no correction for labels.
What is reported is the number of classes a score chooses less that chosen by Laplace's approximation.

Beside it: "planted", the same with the true parameters as one more start of the model of as many classes as the truth;
and "ours", the scores of this library by default, each at its own form of fit from as many starts: Laplace in the
softmax basis, BIC at maximum likelihood, variational bounds, annealed importance sampling (which counts relabelings).

The record was made when half of the starts were dropped after 1, 2, 4, ... steps, as they did; now starts race.

``python chickering_heckerman.py`` takes hours on one core and writes chickering_heckerman_results.json next to it.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from math import lgamma
from pathlib import Path

import numpy as np

from skvbem import VBDiscreteDAG
from skvbem.evidence import evidence_table

RESULTS = Path(__file__).with_name("chickering_heckerman_results.json")
PRIOR = 1.01
AT_MAP = ("laplace", "cheeseman_stutz", "mled", "draper", "bic")
BY_DEFAULT = ("lower_bound", "collapsed", "collapsed_ascent", "ais", *AT_MAP)
#: Laplace in the softmax basis plus ln of the number of relabelings, which annealed importance sampling counts.
LABELED = "laplace + ln c!"
OURS = (*BY_DEFAULT, LABELED)
#: Mean and standard deviation of the classes chosen less those chosen by Laplace's approximation, in their order.
PUBLISHED = {
    (8, 4, 400): {"cheeseman_stutz": (0, 0), "mled": (0.4, 1.5), "draper": (0, 0), "bic": (-0.2, 0.4)},
    (16, 4, 400): {"cheeseman_stutz": (0.2, 0.4), "mled": (-0.2, 0.8), "draper": (0.2, 0.4), "bic": (-0.8, 0.4)},
    (32, 4, 400): {"cheeseman_stutz": (0, 0), "mled": (0, 0), "draper": (0, 0), "bic": (-0.4, 0.5)},
    (64, 4, 400): {"cheeseman_stutz": (0, 0), "mled": (0, 0), "draper": (0, 0), "bic": (-0.2, 0.4)},
    (64, 32, 400): {"cheeseman_stutz": (16.2, 1.5), "mled": (16.2, 1.5), "draper": (-2.2, 2.0), "bic": (-6.0, 2.7)},
    (64, 16, 400): {"cheeseman_stutz": (5.0, 6.4), "mled": (5.0, 6.4), "draper": (-1.6, 1.1), "bic": (-3.0, 1.4)},
    (64, 8, 400): {"cheeseman_stutz": (0.8, 0.8), "mled": (0.8, 0.8), "draper": (0, 0), "bic": (-1.0, 1.0)},
    (32, 4, 100): {"cheeseman_stutz": (0.6, 0.9), "mled": (0.6, 0.9), "draper": (0, 0), "bic": (-0.6, 0.5)},
    (32, 4, 200): {"cheeseman_stutz": (0.2, 0.4), "mled": (0.2, 0.4), "draper": (0, 0), "bic": (-0.6, 0.5)},
    (32, 4, 800): {"cheeseman_stutz": (0, 0), "mled": (0, 0), "draper": (0, 0), "bic": (0, 0)},
}
#: The twelve rows as printed: two settings are in two of their three series.
SERIES = {
    "features": [(8, 4, 400), (16, 4, 400), (32, 4, 400), (64, 4, 400)],
    "classes": [(64, 32, 400), (64, 16, 400), (64, 8, 400), (64, 4, 400)],
    "samples": [(32, 4, 100), (32, 4, 200), (32, 4, 400), (32, 4, 800)],
}
#: Numbers of classes of the test models, for as many classes in the truth; theirs are known for four.
TESTED = {4: range(1, 11), 8: range(2, 15), 16: range(4, 25), 32: [*range(4, 20), *range(20, 41, 2)]}
THEIRS = TESTED | {4: range(2, 9)}
#: True models to draw five data sets from each, for as many classes in the truth; they had one.
N_MODELS = {4: 5, 8: 5, 16: 3, 32: 1}


@dataclass(frozen=True)
class Setting:
    """One of their experiments, and which true model of that size."""

    n_features: int
    n_classes: int
    n_samples: int
    model: int = 0

    @property
    def key(self) -> tuple[int, int, int]:
        return self.n_features, self.n_classes, self.n_samples

    def truth(self) -> tuple[np.ndarray, np.ndarray]:
        """Class weights, and the probability of a 1 in each class and feature; the same whatever the sample size."""
        rng = np.random.default_rng([self.model, self.n_features, self.n_classes])
        return rng.dirichlet(np.ones(self.n_classes)), rng.random((self.n_classes, self.n_features))

    def draw(self, data_set: int) -> np.ndarray:
        """Rows without their class."""
        rng = np.random.default_rng([self.model, *self.key, data_set])
        weights, ones = self.truth()
        classes = rng.choice(self.n_classes, p=weights, size=self.n_samples)
        return (rng.random((self.n_samples, self.n_features)) < ones[classes]).astype(np.int8)

    def planted(self) -> dict:
        """The true parameters as tables to start from."""
        weights, ones = self.truth()
        tables = {f"x{j}": np.stack([1 - p, p], axis=1) for j, p in enumerate(ones.T)}
        return {"h0": weights, **tables}


def fit(X: np.ndarray, n_classes: int, seed: int, **options) -> VBDiscreteDAG:
    """A latent class model of 64 starts, unless `options` say otherwise."""
    options = {"n_init": 64, "random_state": seed} | options
    return VBDiscreteDAG(latents=n_classes, prior=PRIOR, categories=[[0, 1]] * X.shape[1], **options).fit(X)


def at_the_mode(X: np.ndarray, n_classes: int, seed: int, **options):
    """Their five scores, all at one mode in probabilities, and its log posterior.

    Modes in probabilities lie on long ridges: the default `tol` may stop where the Hessian is not yet definite.
    """
    model = fit(X, n_classes, seed, method="map", map_basis="probability", tol=1e-11, **options)
    form = {kind: {"form": "map_probability"} for kind in AT_MAP}
    return evidence_table(model, X, AT_MAP, options=form), model.log_posterior_


def by_default(X: np.ndarray, n_classes: int, seed: int, n_true_classes: int):
    """Scores as this library has them by default, after a variational fit.

    Importance sampling takes most of the time: where the truth has 16 or 32 classes, it is asked of every second or
    fourth test model.
    """
    kinds = [kind for kind in BY_DEFAULT if kind != "ais" or n_classes % max(n_true_classes // 8, 1) == 0]
    return evidence_table(fit(X, n_classes, seed), X, kinds)


def values(table) -> dict[str, float]:
    return {kind: round(evidence.value, 3) for kind, evidence in table.items()}


def chosen(curves: dict[int, dict[str, float]]) -> dict[str, int]:
    """The number of classes at which each score is highest."""
    kinds = set().union(*curves.values())
    return {kind: max(curves, key=lambda k: curves[k].get(kind, -np.inf)) for kind in sorted(kinds)}


def run(setting: Setting, data_set: int, with_ours: bool, tested=None) -> dict:
    """One data set under every test model: classes chosen, curves of scores, warnings and seconds."""
    X, tested = setting.draw(data_set), tested or TESTED[setting.n_classes]
    curves: dict[str, dict] = {"protocol": {}, "planted": {}} | ({"ours": {}} if with_ours else {})
    remarks: list[str] = []
    seconds = dict.fromkeys(curves, 0.0)
    errors: dict[int, float] = {}
    gain = 0.0

    def note(name, n_classes, table, began):
        curves[name][n_classes] = values(table)
        seconds[name] += time.perf_counter() - began
        for kind, text in table.remarks.items():
            remarks.append(f"{name}, {n_classes} classes, {kind}" + ("" if kind == "ais" else f": {text}"))

    for k in tested:
        began = time.perf_counter()
        table, log_posterior = at_the_mode(X, k, data_set)
        note("protocol", k, table, began)
        curves["planted"][k] = curves["protocol"][k]
        if k == setting.n_classes:
            began = time.perf_counter()
            planted, at_truth = at_the_mode(X, k, data_set, init=setting.planted())
            gain = at_truth - log_posterior
            if gain > 0:
                note("planted", k, planted, began)
        if with_ours:
            began = time.perf_counter()
            table = by_default(X, k, data_set, setting.n_classes)
            note("ours", k, table, began)
            curves["ours"][k][LABELED] = round(table["laplace"].value + lgamma(k + 1), 3)
            if "ais" in table:
                errors[k] = round(table["ais"].standard_error or 0.0, 3)
    found, edge = {}, []
    for name, curve in curves.items():
        allowed = tested if name == "ours" else [k for k in tested if k in THEIRS[setting.n_classes]]
        found[name] = chosen({k: curve[k] for k in allowed})
        edge += [f"{name} {kind}" for kind, k in found[name].items() if k in (min(allowed), max(allowed))]
    return {
        **asdict(setting),
        "data_set": data_set,
        "chosen": found,
        "at_the_edge": edge,
        "planted_gain": round(gain, 3),
        "ais_standard_errors": errors,
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
        "remarks": remarks,
        "curves": curves,
    }


def of_setting(records, key, model=None) -> list[dict]:
    """Records of a setting, of one true model or of all."""
    return [
        r
        for r in records
        if (r["n_features"], r["n_classes"], r["n_samples"]) == key and (model is None or r["model"] == model)
    ]


def choices(records, part: str, kind: str) -> np.ndarray:
    """Classes chosen, in every record that has the part."""
    return np.array([r["chosen"][part][kind] for r in records if part in r["chosen"]])


def errors(records, part: str, kind: str) -> np.ndarray:
    """Classes chosen less those chosen by Laplace's approximation."""
    return choices(records, part, kind) - choices(records, part, "laplace")


def cell(mean: float, spread: float) -> str:
    """Mean and standard deviation, as they print them."""
    mean = round(mean, 1) + 0.0  # no minus zero
    return f"{mean:.1f} ± {spread:.1f}" if spread else f"{mean:g}"


def cell_of(found: np.ndarray) -> str:
    return cell(float(found.mean()), float(found.std(ddof=1))) if len(found) > 1 else "-"


def rows_of(records, cells) -> list[tuple[str, ...]]:
    """The twelve rows as printed, with cells made of each setting's records."""
    keys = [key for series in SERIES.values() for key in series]
    return [(*map(str, key), *cells(key, of_setting(records, key))) for key in keys]


def beside_theirs(records, part: str) -> list[tuple[str, ...]]:
    """Rows of the classes that Laplace chose, and for each other score their error and ours."""

    def cells(key, some):
        yield cell_of(choices(some, part, "laplace"))
        for kind, theirs in PUBLISHED[key].items():
            yield cell(*theirs)
            yield cell_of(errors(some, part, kind))

    return rows_of(records, cells)


def by_score(records) -> list[tuple[str, ...]]:
    """Rows of the classes that our scores chose, Laplace's approximation of the protocol first."""

    def cells(_, some):
        some = [r for r in some if "ours" in r["chosen"]]
        yield cell_of(choices(some, "protocol", "laplace"))
        for kind in OURS:
            yield cell_of(choices(some, "ours", kind))

    return rows_of(records, cells)


def show(records) -> None:
    """Their table beside ours, and what our scores choose; each is a CSV table of the documentation."""
    tables = {
        "protocol: theirs, ours": beside_theirs(records, "protocol"),
        "planted: theirs, ours": beside_theirs(records, "planted"),
        "ours: classes chosen": by_score(records),
    }
    for title, rows in tables.items():
        print(f"\n{title}", *map(", ".join, rows), sep="\n")


def kept(records) -> list[dict]:
    """What is worth a file: curves of the first data set of each setting alone."""
    return [
        {name: value for name, value in r.items() if name != "curves" or (r["model"] == 0 and r["data_set"] == 0)}
        for r in records
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--settings", type=int, nargs="+", default=range(len(PUBLISHED)), help="numbers of settings")
    parser.add_argument("--models", type=int, default=5, help="most true models; the first also gets 'ours'")
    parser.add_argument("--data-sets", type=int, default=5)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    records = json.loads(options.output.read_text()) if options.output.exists() else []
    done = {(r["n_features"], r["n_classes"], r["n_samples"], r["model"], r["data_set"]) for r in records}
    keys = list(PUBLISHED)
    for model in range(options.models):
        for key in (keys[i] for i in options.settings):
            for data_set in range(options.data_sets):
                if (*key, model, data_set) in done or model >= N_MODELS[key[1]]:
                    continue
                records.append(run(Setting(*key, model), data_set, with_ours=model == 0))
                print(*key, model, data_set, records[-1]["chosen"], records[-1]["seconds"], flush=True)
                lines = ",\n".join(json.dumps(r) for r in kept(records))
                options.output.write_text(f"[\n{lines}\n]\n")
    show(records)


if __name__ == "__main__":
    main()
