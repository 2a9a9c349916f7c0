"""Model strings: a graph in one line, such as ``[A][B|A:H]``, each node in brackets and its parents after the bar.

A bare whole number is an int, any other bare name a str without the blanks around it. A name in double quotes is the
str as it stands, with a backslash before a quote or a backslash in it.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping

from skvbem._names import shown
from skvbem.errors import StructureError

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_TOKEN = re.compile(
    r'\s*+(?:(?P<mark>[\[\]|:])|"(?P<quoted>(?:[^"\\]|\\.)*+)"|(?P<bare>[^\[\]|:"\s][^\[\]|:"]*))', re.DOTALL
)


def read_model_string(text: str) -> tuple[list, dict]:
    """The nodes with brackets of their own, in order, and child -> its parents, of a model string.

    Raises
    ------
    StructureError
        If the string cannot be read; the message says at which column.
    """
    nodes: list = []
    parents: dict = {}
    family: list | None = None
    expected: tuple[str, ...] = ("[",)
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position, end)
        token = (match["mark"] or "a name") if match else None
        if match is None or token not in expected:
            break
        position = match.end()
        if token == "]":
            expected = ("[",)
        elif token != "a name":
            family = None if token == "[" else family
            expected = ("a name",)
        else:
            name = _token_name(match)
            if family is None:
                nodes.append(name)
                family = parents.setdefault(name, [])
                expected = ("|", "]")
            else:
                family.append(name)
                expected = (":", "]")
    if position < end or expected != ("[",):
        rest = text[position:end].lstrip()
        instead = f"got {shown(rest)}" if rest else "but the string ends"
        raise StructureError(
            f"A model string must read like '[A][B|A:H]'. Expected {' or '.join(expected)} "
            f"at column {end - len(rest) + 1}, {instead}."
        )
    return nodes, parents


def model_string(nodes: Iterable[Hashable], parents: Mapping[Hashable, Iterable[Hashable]]) -> str:
    """The model string of a graph: its nodes in order, each with its parents."""
    families = ((child, ":".join(map(_quoted, parents[child]))) for child in nodes)
    return "".join(f"[{_quoted(child)}{'|' if given else ''}{given}]" for child, given in families)


def _token_name(match):
    if match["quoted"] is not None:
        return re.sub(r"\\(.)", r"\1", match["quoted"], flags=re.DOTALL)
    name = match["bare"].rstrip()
    return int(name) if _INTEGER.fullmatch(name) else name


def _quoted(name):
    text = str(name)
    bare = text == text.strip() and re.fullmatch(r'[^\[\]|:"]+', text)
    if bare and not (isinstance(name, str) and _INTEGER.fullmatch(text)):
        return text
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'
