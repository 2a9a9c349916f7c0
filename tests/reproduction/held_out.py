"""Which fit predicts better? Five-fold held-out scores on real tables of measurements, paired row by row.

A contestant chooses the number of components from 1 to 10 in the rows of four folds, `VBMixture` by its bound and
scikit-learn's `GaussianMixture` (ten starts) by BIC, and says how probable each row of the fifth is: the log density,
in nats, of standardized columns. `VBMixture` integrates its posterior out, `GaussianMixture` takes a point.

    PYTHONPATH=tests python -P -m reproduction.held_out measure [--emission NAME ...] [--tables NAME ...]
    PYTHONPATH=tests python -P -m reproduction.held_out digits [--emission NAME ...]
    PYTHONPATH=tests python -P -m reproduction.held_out table [--emission NAME]

An emission is a name of `EMISSIONS` ("default" is what VBMixture takes by itself, "fixed" the prior of fixed scale
spelled out, "hierarchical" the one whose scale is learned), or an expression: ``"Gaussian('diag', mean_precision_prior=
0.1)"``. The log densities of all rows are kept in held_out_results.jsonl next to this file, one line for each table and
contestant, so that any two contestants can be paired afterwards.

Where columns were rounded, rows have ties, and a narrow component that sits on a tie has any density it likes: that is
no prediction. ``--dequantized`` spreads each cell evenly over the interval that it was rounded from, for all
contestants alike; a density then says how probable the rounded value is, or less.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from reproduction import real_tables
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import KFold

from skvbem import VBMixture, emissions
from skvbem.emissions import Gaussian

RESULTS = Path(__file__).with_name("held_out_results.jsonl")
TABLES = tuple(real_tables.MEASUREMENTS)
N_FOLDS, N_COMPONENTS = 5, range(1, 11)
PEER = "GaussianMixture"
#: Emissions by name, made for a covariance type and a number of columns.
EMISSIONS = {
    "default": lambda kind, d: Gaussian(kind),
    "fixed": lambda kind, d: Gaussian(
        kind, mean_precision_prior=1.0, covariance_prior=None, degrees_of_freedom_prior=float(d)
    ),
    "hierarchical": lambda kind, d: Gaussian(
        kind, mean_precision_prior="hierarchical", covariance_prior="hierarchical"
    ),
}


def emission_of(name: str, kind: str, d: int) -> Gaussian:
    """The emission that a name, or an expression, stands for."""
    if name in EMISSIONS:
        return EMISSIONS[name](kind, d)
    return eval(name, vars(emissions) | {"d": d})  # an expression that the caller wrote


def table_of(name: str, dequantized: bool) -> np.ndarray:
    """The standardized table, each cell spread over the interval that it was rounded from if that is asked for."""
    X = real_tables.raw(name)
    if dequantized:
        X = real_tables.spread(X)
    return real_tables.standardized(X)


def folds_of(n_rows: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows to fit and rows to predict, of each fold."""
    return list(KFold(N_FOLDS, shuffle=True, random_state=0).split(np.arange(n_rows)))


def chosen(X: np.ndarray, contestant: str, kind: str, n_components=N_COMPONENTS):
    """The fit of the number of components that the contestant's criterion prefers, and the criterion; larger is better.

    BIC is given as scikit-learn has it, divided by -2: an approximation of the log evidence.
    """
    best, value = None, -np.inf
    for k in n_components:
        if contestant == PEER:
            model = GaussianMixture(k, covariance_type=kind, n_init=10, max_iter=1000, random_state=0).fit(X)
            criterion = -model.bic(X) / 2
        else:
            model = VBMixture(k, emission=emission_of(contestant, kind, X.shape[1]), random_state=0).fit(X)
            criterion = model.lower_bound_
        if criterion > value:
            best, value = model, criterion
    return best, float(value)


def measured(table: str, contestant: str, kind: str = "full", dequantized: bool = False, folds=None) -> dict:
    """The record of a contestant on a table: log densities of the held-out rows, and what was chosen in each fold."""
    X = table_of(table, dequantized)
    parts = folds_of(len(X))
    scores = np.full(len(X), np.nan)
    n_components, criteria, seconds = [], [], []
    for fold in range(N_FOLDS) if folds is None else folds:
        fitted, held = parts[fold]
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, criterion = chosen(X[fitted], contestant, kind)
            scores[held] = model.score_samples(X[held])
        seconds.append(round(time.process_time() - began, 2))
        n_components.append(int(model.n_components))
        criteria.append(round(criterion, 3))
    return {
        "table": table,
        "contestant": contestant,
        "covariance_type": kind,
        "dequantized": dequantized,
        "n_components": n_components,
        "criterion": criteria,
        "seconds": seconds,
        "scores": scores.round(3).tolist(),
    }


# --- the digits, whose ten kinds are known ----------------------------------------------------------------------------


#: What is taken of the images.
DIGITS = ("axes", "pixels", "spread pixels")


def digits_of(columns: str) -> np.ndarray:
    """The images: ten principal components, or those of the 64 pixels that ever differ, as they are or spread."""
    if columns == "axes":
        return table_of("digits", False)
    X = load_digits().data
    X = X[:, X.std(axis=0) > 0]
    return X if columns == "pixels" else real_tables.spread(X)


def measured_digits(columns: str, contestant: str, folds=None) -> dict:
    """The record of a fit of ten components, "diag": agreement with the digits, held-out log densities."""
    X, digit = digits_of(columns), load_digits().target

    def fit(rows):
        if contestant == PEER:
            return GaussianMixture(10, covariance_type="diag", n_init=10, max_iter=1000, random_state=0).fit(rows)
        return VBMixture(10, emission=emission_of(contestant, "diag", X.shape[1]), random_state=0).fit(rows)

    scores = np.full(len(X), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agreement = adjusted_rand_score(digit, fit(X).predict(X))
        for fold, (fitted, held) in enumerate(folds_of(len(X))):
            if folds is None or fold in folds:
                scores[held] = fit(X[fitted]).score_samples(X[held])
    return {
        "table": f"digits {columns}",
        "contestant": contestant,
        "covariance_type": "diag",
        "dequantized": False,
        "adjusted_rand": round(float(agreement), 3),
        "scores": scores.round(3).tolist(),
    }


# --- the record -------------------------------------------------------------------------------------------------------


def key_of(record: dict) -> tuple:
    """What a record is of."""
    return tuple(record[name] for name in ("table", "contestant", "covariance_type", "dequantized"))


def read(path: Path = RESULTS) -> dict[tuple, dict]:
    """The records by key."""
    if not path.exists():
        return {}
    return {key_of(record): record for record in map(json.loads, path.read_text("utf-8").splitlines())}


def keep(record: dict, path: Path = RESULTS) -> None:
    """Write a record, in place of an earlier one of the same key."""
    records = read(path) | {key_of(record): record}
    path.write_text("".join(json.dumps(records[key]) + "\n" for key in sorted(records)), "utf-8")


def difference(records: dict, table: str, contestant: str, peer: str = PEER, kind="full", dequantized=False):
    """Log densities of one contestant less those of another, row by row; None where one was not measured."""
    pair = [records.get((table, name, kind, dequantized)) for name in (contestant, peer)]
    if None in pair:
        return None
    ours, theirs = (np.array(record["scores"], dtype=float) for record in pair)
    return ours - theirs


def mean_and_error(rows: np.ndarray) -> tuple[float, float]:
    """The mean over rows, and its standard error."""
    return float(rows.mean()), float(rows.std(ddof=1) / np.sqrt(len(rows)))


def shown(rows: np.ndarray) -> str:
    """Mean ± standard error."""
    mean, error = mean_and_error(rows)
    return f"{mean:+.3f} ± {error:.3f}"


def comparison(records: dict, contestant: str, peer: str = PEER, kind="full", dequantized=False) -> list[tuple]:
    """Rows of the table: table, size, numbers of components chosen by both, and the difference in nats a row."""
    lines, every = [], []
    for table in TABLES:
        rows = difference(records, table, contestant, peer, kind, dequantized)
        if rows is None:
            continue
        every.append(rows)
        n_components = [
            " ".join(map(str, records[table, name, kind, dequantized]["n_components"])) for name in (contestant, peer)
        ]
        n, d = real_tables.raw(table).shape
        lines.append((table, f"{n} x {d}", *n_components, shown(rows)))
    if every:
        lines.append(("all rows", str(sum(map(len, every))), "", "", shown(np.concatenate(every))))
    return lines


def digits_rows(records: dict, contestant: str) -> list[tuple[str, ...]]:
    """Rows of the table of digits, ten components, "diag": columns, adjusted Rand indices, nats a row."""
    lines = []
    for columns in DIGITS:
        rows = difference(records, f"digits {columns}", contestant, kind="diag")
        if rows is not None:
            rand = [
                str(records[f"digits {columns}", who, "diag", False]["adjusted_rand"]) for who in (contestant, PEER)
            ]
            lines.append((columns, *rand, shown(rows)))
    return lines


def show(records: dict, contestant: str, kind: str, dequantized: bool) -> None:
    """The tables of the documentation."""
    print(f"\n{contestant}, {kind}{', dequantized' * dequantized}, less {PEER}: nats a row")
    print(*map(", ".join, comparison(records, contestant, kind=kind, dequantized=dequantized)), sep="\n")
    print("digits, diag, 10 components")
    print(*map(", ".join, digits_rows(records, contestant)), sep="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("measure", "digits", "table"))
    parser.add_argument("--emission", nargs="*", default=["default"])
    parser.add_argument("--covariance-type", default="full")
    parser.add_argument("--tables", nargs="*", default=TABLES)
    parser.add_argument("--dequantized", action="store_true")
    parser.add_argument("--output", type=Path, default=RESULTS)
    asked = parser.parse_args()
    kind, dequantized = asked.covariance_type, asked.dequantized
    for contestant in (*asked.emission, *([PEER] if asked.command != "table" else [])):
        if asked.command == "digits":
            for columns in DIGITS:
                if (f"digits {columns}", contestant, "diag", False) not in read(asked.output):
                    keep(measured_digits(columns, contestant), asked.output)
        if asked.command == "measure":
            for table in asked.tables:
                if contestant != PEER or (table, PEER, kind, dequantized) not in read(asked.output):
                    keep(measured(table, contestant, kind, dequantized), asked.output)
                    print(contestant, table, flush=True)
    for contestant in asked.emission:
        show(read(asked.output), contestant, kind, dequantized)


if __name__ == "__main__":
    main()
