"""Names of columns: tables that are refused because theirs are not those of the fit.

They are compared here and not by scikit-learn, whose older versions know nothing of the names of newer data frames, and
would take columns in another order for those of the fit. The words are scikit-learn's, which users know.
"""

from __future__ import annotations

from collections.abc import Iterable

from skvbem._compat import warn
from skvbem.reading.tables import MAX_NAMED_COLUMNS, Table


def check_names(table: Table, estimator) -> None:
    """Refuse a table whose columns are not those of the fit, in their order; warn where only one of both has names.

    Parameters
    ----------
    table : Table
    estimator : estimator
        Fitted, with the attributes of `Table.names_of_fit`.

    Raises
    ------
    ValueError
        If names differ, or stand in another order, or there are more or fewer columns.
    """
    owner, of_fit = type(estimator).__name__, getattr(estimator, "feature_names_in_", None)
    if of_fit is None and table.has_own_names:
        warn(f"X has feature names, but {owner} was fitted without feature names")
    elif of_fit is not None and not table.has_own_names:
        warn(f"X does not have valid feature names, but {owner} was fitted with feature names")
    elif of_fit is not None and list(of_fit) != table.names:
        raise ValueError(_difference(list(of_fit), table.names))
    n_of_fit = getattr(estimator, "n_features_in_", table.n_columns)  # of one put together by hand nobody counted them
    if table.n_columns != n_of_fit:
        raise ValueError(f"X has {table.n_columns} features, but {owner} is expecting {n_of_fit} features as input.")


def _difference(of_fit: list[str], given: list[str]) -> str:
    """What is to be said of columns that are not those of the fit."""
    lines = ["The feature names should match those that were passed during fit."]
    unseen, lacking = sorted(set(given) - set(of_fit)), sorted(set(of_fit) - set(given))
    if unseen:
        lines += ["Feature names unseen at fit time:", *_itemized(unseen)]
    if lacking:
        lines += ["Feature names seen at fit time, yet now missing:", *_itemized(lacking)]
    if not (unseen or lacking):
        lines.append("Feature names must be in the same order as they were in fit.")
    return "\n".join(lines) + "\n"


def _itemized(names: list[str]) -> Iterable[str]:
    items = [f"- {name}" for name in names]
    return items if len(items) <= MAX_NAMED_COLUMNS else [*items[:MAX_NAMED_COLUMNS], "- ..."]
