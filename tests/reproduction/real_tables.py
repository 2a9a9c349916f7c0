"""Real tables on which fits are measured: those of scikit-learn, of the package, and those beside the tests, by name.

Tables of measurements are standardized: every column has mean 0 and standard deviation 1. A unit of measure adds the
same to all log densities, so no difference between fits depends on it, but peers that add a fixed number to variances
would.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA

from skvbem import datasets

DATA = Path(__file__).parents[1] / "data"
GPL = DATA / "third_party" / "gpl"


def is_here(name: str) -> bool:
    """Whether the table can be read: those under copyleft licenses are part of a checkout only."""
    return name not in COPYLEFT or (GPL / COPYLEFT[name]).exists()


def columns_of(path: Path) -> dict[str, list[str]]:
    """Cells of a CSV file by column."""
    header, *rows = csv.reader(path.read_text("utf-8").splitlines())
    return dict(zip(header, map(list, zip(*rows))))


def _numbers(path: Path, *names: str) -> np.ndarray:
    columns = columns_of(path)
    return np.array([columns[name] for name in names or columns], dtype=float).T


def _digits_axes() -> np.ndarray:
    """Ten principal components of the images, whose constant pixels and ties are gone."""
    return PCA(10, svd_solver="full").fit_transform(load_digits().data)


#: File of each table under a copyleft license.
COPYLEFT = {
    "galaxies": "galaxies.csv",
    "crabs": "crabs.csv",
    "us_arrests": "us_arrests.csv",
    "air_quality": "air_quality.csv",
}
#: Loaders of tables of measurements, by name.
MEASUREMENTS = {
    "iris": lambda: load_iris().data,
    "wine": lambda: load_wine().data,
    "breast_cancer": lambda: load_breast_cancer().data[:, :10],
    "diabetes": lambda: np.delete(load_diabetes(scaled=False).data, 1, axis=1),  # without the sex
    "digits": _digits_axes,
    "faithful": lambda: datasets.load_faithful().data,
    "galaxies": lambda: _numbers(GPL / COPYLEFT["galaxies"]),
    "crabs": lambda: _numbers(GPL / COPYLEFT["crabs"], "FL", "RW", "CL", "CW", "BD"),
    "us_arrests": lambda: _numbers(GPL / COPYLEFT["us_arrests"], "Murder", "Assault", "UrbanPop", "Rape"),
    "engel": lambda: _numbers(DATA / "engel.csv"),
}


@cache
def raw(name: str) -> np.ndarray:
    """A table of measurements in its own units, (n_rows, n_columns)."""
    return np.asarray(MEASUREMENTS[name](), dtype=float)


def air_quality() -> np.ndarray:
    """Days of the air of New York: the log of ozone, radiation, wind and temperature, (153, 4), with gaps."""
    columns = columns_of(GPL / COPYLEFT["air_quality"])
    names = ("Ozone", "Solar.R", "Wind", "Temp")
    X = np.array([[float(cell or "nan") for cell in columns[name]] for name in names]).T
    X[:, 0] = np.log(X[:, 0])
    return X


def standardized(X: np.ndarray) -> np.ndarray:
    """The table with columns of mean 0 and standard deviation 1."""
    return (X - X.mean(axis=0)) / X.std(axis=0)


def resolutions(X: np.ndarray) -> np.ndarray:
    """The least difference between two values of each column: what it was rounded to, where it was."""
    return np.array([np.diff(np.unique(column)).min() for column in X.T])


def spread(X: np.ndarray) -> np.ndarray:
    """The table with each cell drawn evenly from the interval that it was rounded from."""
    return X + resolutions(X) * (np.random.default_rng(0).random(X.shape) - 0.5)
