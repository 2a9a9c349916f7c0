"""Networks as text in the Bayesian interchange format."""

from __future__ import annotations

import itertools
import math
import re

from skvbem._names import shown
from skvbem.fitted.bayesian_network import Network
from skvbem.formats.bif.files import write_bytes
from skvbem.formats.bif.tokens import STATES_PROPERTY, WORD

_UNWRITABLE = re.compile(r'["\x00-\x1f\x7f\ud800-\udfff]')


def write_bif(network: Network, path=None) -> str:
    """The network as BIF text, from which `read_bif` makes an equal network.

    Parameters
    ----------
    network : Network
        Its nodes must be named by str without double quotes, line breaks, other control characters and lone surrogates,
        which BIF has no way to write. The states of a node must be such str, or all int, all bool, or all finite
        float; None is no state.
    path : path, optional
        Where to write the text too, in UTF-8. A file already there is replaced once the new one is complete.

    Raises
    ------
    ValueError
        If a name or a state cannot be written.
    OSError
        If the file cannot be written.
    """
    parts = ["network unknown {\n}\n"]
    names = {node: _written(node, "name") for node in network.dag.nodes}
    words = {}
    for node, name in names.items():
        kind, words[node] = _written_states(node, network.states[node])
        told = "" if kind == "str" else f"  property {STATES_PROPERTY} {kind};\n"
        listed = f"type discrete [ {len(words[node])} ] {{ {', '.join(words[node])} }};"
        parts.append(f"variable {name} {{\n  {listed}\n{told}}}\n")
    for node, name in names.items():
        parents, table = network.dag.parents(node), network.tables[node]
        given = f" | {', '.join(names[parent] for parent in parents)}" if parents else ""
        parts.append(f"probability ( {name}{given} ) {{\n")
        rows = table.reshape(-1, table.shape[-1]).tolist()
        for row, key in zip(rows, itertools.product(*(words[parent] for parent in parents)), strict=True):
            head = f"({', '.join(key)})" if parents else "table"
            parts.append(f"  {head} {', '.join(map(repr, row))};\n")
        parts.append("}\n")
    text = "".join(parts)
    if path is not None:
        write_bytes(text.encode(), path)
    return text


def _written(name, what):
    if not isinstance(name, str) or _UNWRITABLE.search(name):
        raise ValueError(
            f"A BIF {what} must be a str without double quotes, line breaks and other control characters. "
            f"Got {shown(name)} instead; rename it (DAG.relabel for a node)."
        )
    return name if WORD.fullmatch(name) else f'"{name}"'


def _written_states(node, states):
    """The type of the states of a node, and the words that BIF has for them."""
    kind, *others = {str if isinstance(state, str) else type(state) for state in states}
    if others or kind not in (str, bool, int, float) or (kind is float and not all(map(math.isfinite, states))):
        raise ValueError(
            f"The states of node {shown(node)} must be all str, all int, all bool or all finite float to be written as "
            f"BIF. Got {shown(states)} instead."
        )
    words = states if kind is str else map(repr, states)
    return kind.__name__, [_written(word, f"state (here of node {shown(node)})") for word in words]
