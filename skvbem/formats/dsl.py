"""Networks in the DSL format of older GeNIe: nodes with their parents, states and probabilities."""

from __future__ import annotations

import re

from skvbem._names import shown
from skvbem.fitted.bayesian_network import Network
from skvbem.formats.net import is_identifier
from skvbem.formats.settings import Settings
from skvbem.formats.states import STATES_PROPERTY, words_of_states
from skvbem.formats.tables import Declarations, Row
from skvbem.formats.tokens import COMMENT, Text

__all__ = ["read", "write"]

_ORDER = "skvbem_nodes"  # whose order other programs need not have: they read parents before their children
_WORD = re.compile("[A-Za-z0-9_]+")


def read(text: Text, max_nodes: int) -> Declarations:
    """The nodes that a DSL text declares and their tables."""
    return _Reader(text, max_nodes).declared


class _Reader(Settings):
    """A reader of DSL by recursive descent, which fills `declared`."""

    blank = re.compile(rf"(?:\s++|{COMMENT})*")
    pattern = re.compile(
        r'([{}()|,;=])|((?:[^\s{}()|,;="/\x00-\x1f\x7f]++|/(?![/*]))+)|"((?:[^"\\\x00]++|\\[^\x00])*)"'
    )

    def __init__(self, text, max_nodes):
        super().__init__(text)
        self.declared = Declarations(text, max_nodes)
        if self.word() != "net":
            raise self.unexpected("'net'")
        self.take("name")
        self.take("name", "the name of the network")
        orders = []
        entries = {_ORDER: lambda: orders.append((self.token.start, self.string().split()))}
        self.body({"USER_PROPERTIES": lambda: self.body(entries)}, {"node": self.node})
        for position, order in orders:
            self.declared.reorder(position, order)
        if self.token.kind == ";":
            self.take(";")
        if self.token.kind != "end":
            raise self.unexpected("the end of the text")

    def node(self):
        """Read one node."""
        self.take("name")
        name = self.take("name", "the name of the node")
        parents, states, rows, kinds = [], [], [], []
        self.body(
            {
                "TYPE": self.check_type,
                "PARENTS": lambda: parents.append(self.several("a parent")),
                "USER_PROPERTIES": lambda: self.body(
                    {STATES_PROPERTY: lambda: kinds.append((self.token.start, [self.string()]))}
                ),
                "DEFINITION": lambda: self.body(
                    {
                        "NAMESTATES": lambda: states.append(self.several("a state")),
                        "PROBABILITIES": lambda: rows.append(Row(self.token.start, "rows", (), self.numbers())),
                    }
                ),
            }
        )
        self.take(";")
        if len(states) != 1 or not states[0] or len(parents) > 1:
            message = f"node {shown(name.text)} must have one list NAMESTATES, of 1 or more, and one PARENTS at most."
            raise self.fault(name.start, message)
        self.declared.add_variable(name, states[0], kinds)
        self.declared.add_block(name, parents[0] if parents else [], rows)

    def check_type(self):
        """Pass over the type of a node, which must be CPT."""
        if self.token.text != "CPT":
            raise self.unexpected("CPT, the type of nodes that a Network has")
        self.take("name")


def write(network: Network) -> str:
    """The DSL text of a network; ValueError if a name or a state has none."""
    parts, nodes = ["net unknown\n{\n"], network.dag.topological_order()
    if nodes != network.dag.nodes:
        parts.append(f' USER_PROPERTIES =\n {{\n  {_ORDER} = "{" ".join(map(str, network.dag.nodes))}";\n }};\n')
    for node in nodes:
        kind, words = words_of_states(node, network.states[node])
        for what, word, is_right in (
            ("A name", node, is_identifier(node)),
            *(("A state", word, kind != "str" or _WORD.fullmatch(word)) for word in words),
        ):
            if not is_right:
                raise ValueError(
                    f"{what} in DSL must be of ASCII letters, digits and '_', that of a node without a digit first. "
                    f"Got {shown(word)} instead; rename it (DAG.relabel for a node), or write BIF or XMLBIF."
                )
        listed = ", ".join(word if _WORD.fullmatch(word) else f'"{word}"' for word in words)
        numbers = ", ".join(map(repr, network.tables[node].ravel().tolist()))
        told = "" if kind == "str" else f'  USER_PROPERTIES =\n  {{\n   {STATES_PROPERTY} = "{kind}";\n  }};\n'
        parents = ", ".join(network.dag.parents(node))
        parts.append(
            f' node {node}\n {{\n  TYPE = CPT;\n  HEADER =\n  {{\n   ID = {node};\n   NAME = "{node}";\n  }};\n{told}'
            f"  PARENTS = ({parents});\n  DEFINITION =\n  {{\n   NAMESTATES = ({listed});\n"
            f"   PROBABILITIES = ({numbers});\n  }};\n }};\n"
        )
    parts.append("};\n")
    return "".join(parts)
