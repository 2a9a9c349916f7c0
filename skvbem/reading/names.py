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
    compare_names("X", of_fit, table.names if table.has_own_names else None, owner)
    n_of_fit = getattr(estimator, "n_features_in_", table.n_columns)  # of one put together by hand nobody counted them
    if table.n_columns != n_of_fit:
        raise ValueError(f"X has {table.n_columns} features, but {owner} is expecting {n_of_fit} features as input.")


def compare_names(table: str, of_fit: Iterable[str] | None, given: list[str] | None, owner: str) -> None:
    """Refuse names of the columns of X, or of another table, that are not those of the fit; see `check_names`."""
    if of_fit is None and given is not None:
        warn(f"{table} has feature names, but {owner} was fitted without feature names")
    elif of_fit is not None and given is None:
        warn(f"{table} does not have valid feature names, but {owner} was fitted with feature names")
    elif of_fit is not None and given is not None and list(of_fit) != given:
        raise ValueError(_difference(list(of_fit), given, "" if table == "X" else f" of {table!r}"))


def _difference(of_fit: list[str], given: list[str], whose: str) -> str:
    """The message about columns that are not those of the fit."""
    lines = [f"The feature names{whose} should match those that were passed during fit."]
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
