"""How well do networks classify, complete rows and rows with gaps, beside scikit-learn's classifiers?

Four folds of six tables; then the same with 30 % of all cells taken out at random, in training and test rows alike.
`CategoricalNB` and `GaussianNB` take no gaps: cells are filled by modes or means before them. Boosted trees take gaps
as they are. Accuracy, mean log loss in nats, and CPU seconds of all four fits and predictions.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.classifiers [--only iris]

The record, classifiers_results.json next to this file, has one entry for each table, share of gaps and classifier.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.pipeline import make_pipeline

from skvbem import VBClassifier
from skvbem.datasets import load_car, load_soybean_small, load_zoo

RESULTS = Path(__file__).with_name("classifiers_results.json")
GAPS = (0.0, 0.3)
CATEGORIES = {"car": load_car, "zoo": load_zoo, "soybean_small": load_soybean_small}
MEASUREMENTS = {"iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer}
NAMES = {
    "naive": 'VBClassifier("naive")',
    "tan": 'VBClassifier("tan")',
    "peer_naive": "CategoricalNB, GaussianNB",
    "boosting": "HistGradientBoosting",
}


def table_of(name: str, gaps: float) -> tuple[np.ndarray, np.ndarray, bool]:
    """Numbers or codes of a table, some of them missing, classes, and whether the numbers are codes."""
    is_codes = name in CATEGORIES
    X, y = (CATEGORIES | MEASUREMENTS)[name](return_X_y=True)
    if is_codes:
        X = np.column_stack([np.unique(column, return_inverse=True)[1] for column in np.asarray(X).T])
    X = X.astype(float)
    X[np.random.default_rng(0).random(X.shape) < gaps] = np.nan
    return X, np.unique(y, return_inverse=True)[1], is_codes


def classifiers(X: np.ndarray, is_codes: bool) -> dict:
    """Classifiers for a table, by name."""
    most = (np.nanmax(X, axis=0) + 1).astype(int)
    levels = {"categories": {f"x{j}": np.arange(n) for j, n in enumerate(most.tolist())}} if is_codes else {}
    ours = {"emission": "categorical" if is_codes else "gaussian", "n_init": 1, "random_state": 0, **levels}
    if is_codes:
        peer = make_pipeline(SimpleImputer(strategy="most_frequent"), CategoricalNB(min_categories=most))
    else:
        peer = make_pipeline(SimpleImputer(), GaussianNB())
    boosting = HistGradientBoostingClassifier(categorical_features=[is_codes] * X.shape[1], random_state=0)
    trees = {"tan": VBClassifier("tan", **ours)} if is_codes else {}
    return {"naive": VBClassifier(**ours), **trees, "peer_naive": peer, "boosting": boosting}


def measured(name: str, gaps: float, only: str | None = None) -> dict:
    """Accuracy, log loss and seconds of each classifier."""
    X, y, is_codes = table_of(name, gaps)
    folds = [*StratifiedKFold(4, shuffle=True, random_state=0).split(X, y)]
    record = {}
    for kind, classifier in classifiers(X, is_codes).items():
        if only not in (None, kind):
            continue
        proba, began = np.empty((len(y), y.max() + 1)), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for train, test in folds:
                proba[test] = classifier.fit(X[train], y[train]).predict_proba(X[test])
        record[kind] = {
            "accuracy": round(accuracy_score(y, proba.argmax(axis=1)), 4),
            "log_loss": round(log_loss(y, proba), 4),
            "seconds": round(time.process_time() - began, 2),
        }
    return record


def read() -> dict:
    """The record."""
    return json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}


def rows_of(records: dict) -> list[list[str]]:
    """The record as rows of text: table, gaps, and for each classifier accuracy, log loss and seconds."""
    rows = []
    for case, record in records.items():
        cells = []
        for kind in NAMES:
            one = record.get(kind)
            cells.append(f"{one['accuracy']:.3f}, {one['log_loss']:.2f}, {one['seconds']:.1f}" if one else "")
        rows.append([case, *cells])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[*CATEGORIES, *MEASUREMENTS])
    records = read()
    for name in parser.parse_args().only:
        for gaps in GAPS:
            case = f"{name}, {gaps:.0%} missing"
            records[case] = measured(name, gaps)
            RESULTS.write_text(json.dumps(records, indent=1) + "\n")
            print(rows_of({case: records[case]})[0], flush=True)


if __name__ == "__main__":
    main()
