"""Networks in the XMLBIF format, version 0.3: variables with their outcomes, then a definition for each.

Elements of XML are read without entities, and without files that a text refers to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import accumulate
from xml.parsers import expat
from xml.sax.saxutils import escape

from skvbem._names import shown
from skvbem.fitted.bayesian_network import Network
from skvbem.formats.states import STATES_PROPERTY, check_writable, words_of_states
from skvbem.formats.tables import NAN, Declarations, Row, is_probability
from skvbem.formats.tokens import Text, Token

__all__ = ["read", "write"]

# Far more than a DTD of networks has; defaults of attributes are copied to each element.
_MAX_DECLARED, _MAX_DEFAULT, _MAX_DEPTH = 100, 100, 100


@dataclass(slots=True)
class Element:
    """An element, where it begins in the text, and what stands in it."""

    name: str
    attributes: dict[str, str]
    start: int
    pieces: list[str] = field(default_factory=list)
    children: list[Element] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text in the element, but not that in its children, without blanks at its ends."""
        return "".join(self.pieces).strip(" \t\n\r")

    def token(self) -> Token:
        """The text as a name."""
        return Token("name", self.text, self.start, self.start)

    def named(self, name: str) -> list[Element]:
        """The children of a name."""
        return [child for child in self.children if child.name == name]


def read_elements(text: Text) -> Element:
    """The outermost element of an XML text.

    Raises
    ------
    ValueError
        If the text is not well-formed, or declares an entity or many attributes.
    """
    starts = [0, *accumulate(len(line) + 1 for line in text.content.split("\n"))]
    top = Element("", {}, 0)
    stack, declared = [top], []
    parser = expat.ParserCreate(encoding="utf-8")
    parser.buffer_text = True

    def here() -> int:
        return starts[parser.CurrentLineNumber - 1] + parser.CurrentColumnNumber

    def begin(name, attributes):
        if len(stack) > _MAX_DEPTH:
            raise text.fault(here(), f"elements stand in each other more than {_MAX_DEPTH} deep.")
        element = Element(name, attributes, here())
        stack[-1].children.append(element)
        stack.append(element)

    def refuse(name, *_):
        raise text.fault(here(), f"the text declares or uses the entity {shown(name)}. Entities are not read.")

    def declare(element, attribute, kind, default, required):
        declared.append(attribute)
        if len(declared) > _MAX_DECLARED or len(default or "") > _MAX_DEFAULT:
            raise text.fault(here(), "the text declares more or longer attributes than a network has.")

    parser.StartElementHandler = begin
    parser.EndElementHandler = lambda name: stack.pop()
    parser.CharacterDataHandler = lambda piece: stack[-1].pieces.append(piece)
    parser.EntityDeclHandler = parser.SkippedEntityHandler = refuse
    parser.AttlistDeclHandler = declare
    try:
        parser.Parse(text.content.encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        position = starts[min(error.lineno, len(starts)) - 1] + error.offset
        raise text.fault(position, f"this is no well-formed XML: {expat.ErrorString(error.code)}.") from None
    return top.children[0]


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
