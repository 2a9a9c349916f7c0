"""Networks in the NET format of Hugin: nodes with their states, then a potential for each."""

from __future__ import annotations

import re

import numpy as np

from skvbem._names import shown
from skvbem.fitted.bayesian_network import Network
from skvbem.formats.settings import Settings
from skvbem.formats.states import STATES_PROPERTY, words_of_states
from skvbem.formats.tables import Declarations, Row, is_weight
from skvbem.formats.tokens import Text

__all__ = ["is_identifier", "read", "write"]

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+")
_UNWRITABLE = re.compile(r'["\\\x00-\x1f\x7f\ud800-\udfff]')


def read(text: Text, max_nodes: int) -> Declarations:
    """The nodes that a NET text declares and their tables."""
    return _Reader(text, max_nodes).declared


class _Reader(Settings):
    """A reader of NET by recursive descent, which fills `declared`."""

    def __init__(self, text, max_nodes):
        super().__init__(text)
        self.declared = Declarations(text, max_nodes)
        while self.token.kind != "end":
            unit = self.word()
            if unit == "net":
                self.take("name")
                self.body({})
            elif unit == "potential":
                self.potential()
            elif unit in ("node", "discrete"):
                self.node()
            else:
                raise self.unexpected("'net', 'node' or 'potential' (a Network has discrete nodes of chance only)")

    def node(self):
        """Read the name of a node and its states."""
        if self.word() == "discrete":
            self.take("name")
        if self.word() != "node":
            raise self.unexpected("'node' (a Network has nodes of chance only)")
        self.take("name")
        name = self.take("name", "the name of the node")
        states, kinds = [], []
        self.body(
            {
                "states": lambda: states.append(self.several("a state")),
                STATES_PROPERTY: lambda: kinds.append((self.token.start, [self.string()])),
            }
        )
        if len(states) != 1 or not states[0]:
            raise self.fault(name.start, f"node {shown(name.text)} must have one list of states, of 1 or more.")
        self.declared.add_variable(name, states[0], kinds)

    def potential(self):
        """Read the table of one node."""
        self.take("name")
        self.take("(")
        name = self.take("name", "the name of a node")
        parents = []
        if self.token.kind == "|":
            self.take("|")
            parents = [*self.names(")", "a parent")]
        else:
            self.take(")", "'|' or ')'")
        rows = []
        self.body({"data": lambda: rows.append(Row(self.token.start, "weights", (), self.weights()))})
        self.declared.add_block(name, parents, rows)

    def weights(self):
        """The numbers of a table, which need not sum to one."""
        return self.numbers("a number of a potential is not negative, and not above 1e100", is_weight)


def is_identifier(name) -> bool:
    """True if a name is of ASCII letters, digits and underscores, and begins with no digit."""
    return isinstance(name, str) and _IDENTIFIER.fullmatch(name) is not None


def write(network: Network) -> str:
    """The NET text of a network; ValueError if a name or a state has none."""
    parts = ["net\n{\n}\n"]
    for node in network.dag.nodes:
        if not is_identifier(node):
            raise ValueError(
                "A name in NET must be an identifier: ASCII letters, digits and '_', no digit first. "
                f"Got {shown(node)} instead; rename it by DAG.relabel, or write BIF or XMLBIF."
            )
        kind, words = words_of_states(node, network.states[node])
        if bad := [word for word in words if _UNWRITABLE.search(word)]:
            raise ValueError(
                f"A state in NET must be a str without double quotes, backslashes and control characters. "
                f"Got {shown(bad[0])} of node {shown(node)} instead; rename it."
            )
        told = "" if kind == "str" else f'    {STATES_PROPERTY} = "{kind}";\n'
        listed = " ".join(f'"{word}"' for word in words)
        parts.append(f"node {node}\n{{\n    states = ({listed});\n{told}}}\n")
    for node, table in network.tables.items():
        given = f" | {' '.join(network.dag.parents(node))}" if table.ndim > 1 else ""
        parts.append(f"potential ({node}{given})\n{{\n    data = {_nested(table)};\n}}\n")
    return "".join(parts)


def _nested(table: np.ndarray) -> str:
    """A table in parentheses, in further ones for each state of a parent."""
    return f"({' '.join(map(repr, table.tolist())) if table.ndim == 1 else ''.join(map(_nested, table))})"
