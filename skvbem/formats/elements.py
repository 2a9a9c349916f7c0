"""Elements of XML texts, read without entities and without files that a text refers to."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from xml.parsers import expat

from skvbem._names import shown
from skvbem.formats.tokens import Text, Token

__all__ = ["Element", "read_elements"]

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
