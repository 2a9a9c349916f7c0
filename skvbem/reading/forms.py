"""Forms that an `emission` parameter may have, a mapping, a list, the remainder, and groups as they are said there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from skvbem._arguments import is_list, is_option
from skvbem.emissions import EmissionSpecification

#: What an `emission` parameter calls the columns that it does not name.
REMAINDER = "remainder"


class EmissionGroup(NamedTuple):
    """A group of columns: its name, its specification, positions of its columns, of those given, of those guessed."""

    name: str
    specification: EmissionSpecification
    columns: list[int]
    given: list[int]
    guessed: Sequence[int] = ()


def names_columns(emission) -> bool:
    """Whether an `emission` parameter shares out columns by their names, in a mapping or a list."""
    return isinstance(emission, Mapping) or is_list_of_emissions(emission)


def is_list_of_emissions(emission) -> bool:
    """Whether an `emission` parameter has the form of a list of (name, emission, columns)."""
    items = [item for item in emission if not _is_of_remainder(item)] if is_list(emission) else []
    return len(items) > 0 and all(is_list(item) and len(item) == 3 for item in items)


def without_remainder(emission) -> tuple[Any, Any]:
    """An `emission` parameter without what it says of columns that it does not name, and that; None if it is silent."""
    if isinstance(emission, Mapping):
        return {name: at for name, at in emission.items() if name != REMAINDER}, emission.get(REMAINDER)
    if not is_list_of_emissions(emission):
        return emission, None
    said = [item[1] for item in emission if _is_of_remainder(item)]
    return [item for item in emission if not _is_of_remainder(item)], said[-1] if said else None


def _is_of_remainder(item) -> bool:
    return is_list(item) and len(item) == 2 and is_option(item[0], REMAINDER)
