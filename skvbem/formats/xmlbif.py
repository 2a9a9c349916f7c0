"""Networks in the XMLBIF format, version 0.3: variables with their outcomes, then a definition for each."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape

from skvbem._names import shown
from skvbem.fitted.bayesian_network import Network
from skvbem.formats.elements import Element, read_elements
from skvbem.formats.states import STATES_PROPERTY, check_writable, words_of_states
from skvbem.formats.tables import NAN, Declarations, Row, is_probability
from skvbem.formats.tokens import Text

__all__ = ["read", "write"]

_UNWRITABLE = re.compile(r"[\x00-\x1f\ud800-\udfff\ufffe\uffff]|^[ ]|[ ]$|^$")


def read(text: Text, max_nodes: int) -> Declarations:
    """The variables that an XMLBIF text declares and their tables."""
    declared = Declarations(text, max_nodes)
    top = read_elements(text)
    networks = top.named("NETWORK")
    if top.name != "BIF" or len(networks) != 1:
        message = f"expected an element BIF with one NETWORK in it, found {shown(top.name)} with {len(networks)}."
        raise text.fault(top.start, message)
    for element in networks[0].children:
        if element.name == "VARIABLE":
            _variable(declared, element)
        elif element.name == "DEFINITION":
            _definition(declared, element)
        elif element.name not in ("NAME", "PROPERTY"):
            message = f"expected NAME, PROPERTY, VARIABLE or DEFINITION, found {shown(element.name)}."
            raise text.fault(element.start, message)
    return declared


def _variable(declared: Declarations, element: Element) -> None:
    kind = element.attributes.get("TYPE", "nature")
    if kind != "nature":
        raise declared.fault(element.start, f"a Network has variables of TYPE 'nature' only. Found {shown(kind)}.")
    names, outcomes = element.named("NAME"), element.named("OUTCOME")
    if len(names) != 1 or not outcomes:
        raise declared.fault(element.start, "a VARIABLE must have one NAME and an OUTCOME or more.")
    told = [(each.start, each.text.replace("=", " ").split()) for each in element.named("PROPERTY")]
    kinds = [(position, parts[1:]) for position, parts in told if parts[:1] == [STATES_PROPERTY]]
    declared.add_variable(names[0].token(), [outcome.token() for outcome in outcomes], kinds)


def _definition(declared: Declarations, element: Element) -> None:
    names, tables = element.named("FOR"), element.named("TABLE")
    if len(names) != 1 or len(tables) > 1:
        raise declared.fault(element.start, "a DEFINITION must be FOR one variable, with one TABLE.")
    rows = []
    for table in tables:
        numbers = ["nan" if number in NAN else number for number in table.text.split()]
        if bad := [number for number in numbers if number != "nan" and not is_probability(number)]:
            raise declared.fault(table.start, f"a probability is a number from 0 to 1. Found {shown(bad[0])}.")
        rows.append(Row(table.start, "rows", (), numbers))
    declared.add_block(names[0].token(), [given.token() for given in element.named("GIVEN")], rows)


def write(network: Network) -> str:
    """The XMLBIF text of a network; ValueError if a name or a state has none."""
    parts = ['<?xml version="1.0" encoding="UTF-8"?>\n<BIF VERSION="0.3">\n<NETWORK>\n<NAME>unknown</NAME>\n']
    names = {node: _written(node, "name") for node in network.dag.nodes}
    for node, name in names.items():
        kind, words = words_of_states(node, network.states[node])
        outcomes = "".join(
            f"  <OUTCOME>{_written(word, f'state (here of node {shown(node)})')}</OUTCOME>\n" for word in words
        )
        told = "" if kind == "str" else f"  <PROPERTY>{STATES_PROPERTY} = {kind}</PROPERTY>\n"
        parts.append(f'<VARIABLE TYPE="nature">\n  <NAME>{name}</NAME>\n{outcomes}{told}</VARIABLE>\n')
    for node, name in names.items():
        given = "".join(f"  <GIVEN>{names[parent]}</GIVEN>\n" for parent in network.dag.parents(node))
        table = network.tables[node]
        rows = "\n".join(" ".join(map(repr, row)) for row in table.reshape(-1, table.shape[-1]).tolist())
        parts.append(f"<DEFINITION>\n  <FOR>{name}</FOR>\n{given}  <TABLE>\n{rows}\n  </TABLE>\n</DEFINITION>\n")
    return "".join([*parts, "</NETWORK>\n</BIF>\n"])


def _written(name, what):
    without = "control characters, and without blanks at its ends"
    check_writable(name, _UNWRITABLE, f"An XMLBIF {what}", without)
    return escape(name)
