"""The table of a search, in the layout of scikit-learn's `GridSearchCV`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import rankdata

from skvbem.search.execution.jobs import Record


def results_table(tried: Sequence[tuple[dict, Record]], names: Sequence[str], log_priors: np.ndarray) -> dict:
    """`cv_results_`: arrays aligned with the candidates, by the names that scikit-learn uses.

    Parameters
    ----------
    found : sequence of (setting, Record)
    names : sequence of str
        Names of the scores; "score" if there is one.
    log_priors : ndarray of shape (n_candidates,)
    """
    settings, records = [setting for setting, _ in tried], [record for _, record in tried]
    table: dict = {}
    for what, seconds in (("fit", "fit_seconds"), ("score", "score_seconds")):
        times = [np.asarray(getattr(record, seconds)) for record in records]
        table[f"mean_{what}_time"] = np.array([each.mean() for each in times])
        table[f"std_{what}_time"] = np.array([each.std() for each in times])
    for name in dict.fromkeys(name for setting in settings for name in setting):
        table[f"param_{name}"] = _column(settings, name)
    table["params"] = settings
    for name in names:
        values = np.array([record.values.get(name, np.nan) for record in records])
        n_splits = max((len(record.splits.get(name, ())) for record in records), default=0)
        splits = np.array([[*record.splits.get(name, ()), *[np.nan] * n_splits][:n_splits] for record in records])
        for k in range(n_splits):
            table[f"split{k}_test_{name}"] = splits[:, k]
        table[f"mean_test_{name}"] = values
        table[f"std_test_{name}"] = splits.std(axis=1) if n_splits else np.zeros(len(values))
        if any(name in record.errors for record in records):
            table[f"standard_error_{name}"] = np.array([record.errors.get(name, np.nan) for record in records])
        table[f"rank_test_{name}"] = ranks(values)
    table["n_free_parameters"] = np.array(
        [-1 if record.n_free_parameters is None else record.n_free_parameters for record in records]
    )
    table["log_prior"] = log_priors
    table["failure"] = np.array([record.failure for record in records], dtype=object)
    table["inference"] = np.array([record.inference for record in records], dtype=object)
    table["doubts"] = np.array(["; ".join(record.doubts) for record in records], dtype=object)
    return table


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks of scores: 1 for the highest, ties sharing the best rank; scores that are not there come last."""
    return rankdata(-np.where(np.isnan(values), -np.inf, values), method="min").astype(np.int32)


def order_of(tried: Sequence[tuple[dict, Record]], values: np.ndarray) -> list[int]:
    """Positions of candidates, best first; of equal scores fewer parameters come first, then the setting's name."""

    def key(k: int):
        setting, record = tried[k]
        value = -np.inf if np.isnan(values[k]) else values[k]
        size = np.inf if record.n_free_parameters is None else record.n_free_parameters
        return -value, size, describe(setting)

    return sorted(range(len(tried)), key=key)


def describe(setting: Mapping) -> str:
    """A setting in one line of text."""
    return ", ".join(f"{name}={value}" for name, value in setting.items()) or "as given"


def _column(settings: Sequence[Mapping], name: str) -> np.ma.MaskedArray:
    """Values of a parameter for every candidate, masked where a setting does not give it."""
    values = [setting.get(name) for setting in settings]
    kind: type = object
    if all(isinstance(value, bool) for value in values):
        kind = bool
    elif all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        kind = int
    elif all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        kind = float
    missing = [name not in setting for setting in settings]
    column: np.ma.MaskedArray = np.ma.MaskedArray(np.empty(len(values), dtype=kind), mask=missing)
    for k, value in enumerate(values):
        if name in settings[k]:
            column[k] = value
    return column
