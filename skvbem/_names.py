"""Names as error messages show them."""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Iterable

# How alike names are, by the share of letters in common, for one to be meant by the other.
_LIKENESS = 0.62


def did_you_mean(name: Hashable, names: Iterable[Hashable]) -> str:
    """A sentence (after a blank) that suggests the nearest of `names`; empty if none is near."""
    texts = {str(known)[:100]: known for known in names}
    near = difflib.get_close_matches(str(name)[:100], texts, n=1, cutoff=_LIKENESS)
    return f" Did you mean {shown(texts[near[0]])}?" if near else ""


def shown(value) -> str:
    """The repr of a value, cut to fit a message."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
