"""States of nodes as words, and what the words stand for.

In files a state is a word. The words of a variable may stand for numbers, booleans or intervals in Python: a property,
`STATES_PROPERTY`, has their type, and other programs skip it.
"""

from __future__ import annotations

import math
import re
from typing import Any

from skvbem._names import shown
from skvbem.reading.tables import is_interval

__all__ = ["KINDS", "STATES_PROPERTY", "check_writable", "states_of_words", "words_of_states"]

STATES_PROPERTY = "skvbem_states"
_INTERVAL = re.compile(r"([\[(])(\S+), (\S+)([\])])")


def _interval(word: str):
    """The pandas.Interval that a word stands for."""
    import pandas as pd

    if not (match := _INTERVAL.fullmatch(word)):
        raise ValueError(word)
    opening, left, right, closing = match.groups()
    closed = {"()": "neither", "[)": "left", "(]": "right", "[]": "both"}[opening + closing]
    ends = [float(end) if set(end) & set(".einf") else int(end) for end in (left, right)]
    return pd.Interval(*ends, closed)


KINDS: dict[str, Any] = {
    "bool": {"False": False, "True": True}.__getitem__,
    "int": int,
    "float": float,
    "interval": _interval,
}


def check_writable(text, unwritable: re.Pattern, what: str, without: str) -> None:
    """Refuse what is no text, or one that holds what a format has no way to write."""
    if not isinstance(text, str) or unwritable.search(text):
        raise ValueError(
            f"{what} must be a str without {without}. Got {shown(text)} instead; rename it (DAG.relabel for a node)."
        )


def words_of_states(node, states: tuple) -> tuple[str, tuple[str, ...]]:
    """Name of the type that the states of a node have in common, and the words that stand for them.

    Raises
    ------
    ValueError
        If there are no words for them.
    """
    kinds = {str if isinstance(state, str) else type(state) for state in states}
    if kinds == {str}:
        return "str", states
    kind = "interval" if all(map(is_interval, states)) else next(iter(kinds)).__name__
    words = tuple(map(_printer(kind), states))
    if len(kinds) > 1 or states_of_words(kind, words) != states:
        raise ValueError(
            f"The states of node {shown(node)} must be all str, all int, all bool, all finite float or all "
            f"pandas.Interval of numbers to be written to a file. Got {shown(states)} instead. X.astype(str) makes "
            "others texts."
        )
    return kind, words


def _printer(kind: str):
    return str if kind == "interval" else repr


def states_of_words(kind: str, words: tuple[str, ...]) -> tuple | None:
    """The different states of a type that words stand for, as they are written; None if there are none."""
    try:
        states = tuple(map(KINDS[kind], words))
    except (KeyError, ValueError):
        return None
    is_finite = kind == "interval" or all(map(math.isfinite, states))
    is_written_so = tuple(map(_printer(kind), states)) == words
    return states if is_finite and is_written_so and len(set(states)) == len(states) else None
