"""Names of nodes: as users give them, and as error messages show them."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from numbers import Integral


def node_names(value, what: str) -> tuple:
    """The names that a user gives, as a tuple; a str or an int is one name.

    Parameters
    ----------
    value : iterable of hashable, str or int
    what : str
        What they are names of, for errors.

    Raises
    ------
    TypeError
        If they are no names.
    """
    if isinstance(value, (str, Integral)):
        return (value,)
    if not isinstance(value, Iterable):
        raise TypeError(f"{what} must be an iterable of names. Got {shown(value)} instead.")
    names = tuple(value)
    for name in names:
        if not isinstance(name, Hashable):
            raise TypeError(f"{what} must be hashable names, such as str or int. Got {shown(name)} instead.")
    return names


def extended(names: tuple, extra: Iterable[Hashable]) -> tuple:
    """The names, then those of the extra names that are not among them, each once."""
    known = set(names)
    return (*names, *(name for name in dict.fromkeys(extra) if name not in known))


def repeated(names: Iterable[Hashable]) -> Hashable:
    """The first name that occurs more than once."""
    return next(name for name, times in Counter(names).items() if times > 1)


def listed(names: Sequence) -> str:
    """The first ten names, separated by commas, and how many more there are."""
    return ", ".join(shown(name) for name in names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def did_you_mean(name: Hashable, names: Iterable[Hashable]) -> str:
    """A sentence (after a blank) that suggests the nearest of `names`; empty if none is near."""
    texts = {str(known)[:100]: known for known in names}
    near = difflib.get_close_matches(str(name)[:100], texts, n=1)
    return f" Did you mean {shown(texts[near[0]])}?" if near else ""


def shown(value) -> str:
    """The repr of a value, cut to fit a message."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
