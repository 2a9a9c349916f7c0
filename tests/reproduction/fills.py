"""How near are fills of missing cells, and what do they cost, beside scikit-learn's IterativeImputer?

Tables of measurements of scikit-learn and statsmodels, and two drawn from clumps; a tenth of the cells is taken out at
random, three times. Root mean square of what a fill is off, in standard deviations of its column, and median CPU
seconds of `fit_transform`, both imputers by default. Tables marked "held" were not looked at while the default was
chosen.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.fills [--only iris]

The record, fills_results.json next to this file, has one entry for each table. It needs statsmodels.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from skvbem import VBImputer

RESULTS = Path(__file__).with_name("fills_results.json")
SHARE, N_TIMES = 0.1, 3


def of_statsmodels(name: str) -> np.ndarray:
    """Columns of numbers of more than five values, complete rows, 2 000 at most."""
    frame = importlib.import_module(f"statsmodels.datasets.{name}").load_pandas().data.select_dtypes("number").dropna()
    return frame.loc[:, frame.nunique() > 5].to_numpy(float)[:2000]


def clumps(n: int, d: int, n_clumps: int, seed: int) -> np.ndarray:
    """Rows of clumps of unit variance, whose centers are three times as far apart."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(scale=3, size=(n_clumps, d))
    return centers[rng.integers(n_clumps, size=n)] + rng.normal(size=(n, d))


TABLES = {
    "iris": ("tuning", lambda: load_iris().data),
    "wine": ("tuning", lambda: load_wine().data),
    "diabetes": ("tuning", lambda: np.delete(load_diabetes().data, 1, axis=1)),
    "statecrime": ("tuning", lambda: of_statsmodels("statecrime")),
    "clumps of 300": ("tuning", lambda: clumps(300, 5, 3, 0)),
    "clumps of 3000": ("tuning", lambda: clumps(3000, 10, 5, 0)),
    "breast cancer": ("held", lambda: load_breast_cancer().data[:, :10]),
    "fair": ("held", lambda: of_statsmodels("fair")),
    "ccard": ("held", lambda: of_statsmodels("ccard")),
    "copper": ("held", lambda: of_statsmodels("copper")),
    "longley": ("held", lambda: of_statsmodels("longley")),
    "star98": ("held", lambda: of_statsmodels("star98")[:, :8]),
    "modechoice": ("held", lambda: of_statsmodels("modechoice")),
    "clumps of 2000": ("held", lambda: clumps(2000, 6, 8, 5)),
}
IMPUTERS = {"ours": VBImputer, "peer": IterativeImputer}


def measured(name: str) -> dict:
    """Half, shape, errors in standard deviations and seconds of both imputers."""
    half, make = TABLES[name]
    X = make()
    unit, record = X.std(axis=0), {"half": half, "shape": list(X.shape)}
    for kind, imputer in IMPUTERS.items():
        squares, seconds = [], []
        for seed in range(N_TIMES):
            missing = np.random.default_rng(seed).random(X.shape) < SHARE
            missing[missing.all(axis=1)] = False
            began = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                filled = imputer(random_state=0).fit_transform(np.where(missing, np.nan, X))
            seconds.append(time.process_time() - began)
            squares.append(np.mean(((filled - X) / unit)[missing] ** 2))
        record[kind] = {"error": round(float(np.sqrt(np.mean(squares))), 4), "seconds": round(np.median(seconds), 3)}
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[*TABLES])
    records = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    for name in parser.parse_args().only:
        records[name] = measured(name)
        RESULTS.write_text(json.dumps(records, indent=1) + "\n")
        print(name, records[name], flush=True)


if __name__ == "__main__":
    main()
