"""Formulas as MathML, which browsers set by themselves: pages need neither JavaScript nor a network to show them."""

import re
from xml.etree import ElementTree

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

NAMESPACE = "http://www.w3.org/1998/Math/MathML"
APPLICATION = "\N{FUNCTION APPLICATION}"
ACCENTS = "\N{MODIFIER LETTER MACRON}~\N{MODIFIER LETTER CIRCUMFLEX ACCENT}"
LEFT, RIGHT = "\N{MATHEMATICAL LEFT ANGLE BRACKET}", "\N{MATHEMATICAL RIGHT ANGLE BRACKET}"
OPENING, CLOSING = {*"([{", LEFT}, {*")]}", RIGHT}
ONE_LINE_HIGH = {LEFT, RIGHT, "|", "\N{DOUBLE VERTICAL LINE}"}
RELATIONS = {*"=<>", *"\N{TILDE OPERATOR}\N{PROPORTIONAL TO}\N{LESS-THAN OR EQUAL TO}\N{GREATER-THAN OR EQUAL TO}"}
SIGNS = {"+", "\N{MINUS SIGN}"}
LONG, SHORT = 16, 5  # symbols: of a formula that may go on in the next line, and of a piece that ends no line

logger = logging.getLogger(__name__)
ElementTree.register_namespace("", NAMESPACE)


def converted(node, as_block):
    """The MathML of a formula; a command that the converter does not know is a warning."""
    source = single_digits(node.astext())
    try:
        text = tex2mathml(source, as_block=as_block)
    except MathError as error:
        logger.warning("formula %r: %s", source, error, location=node)
        return ""
    root = ElementTree.fromstring(text.replace("&ApplyFunction;", APPLICATION))
    for element in list(root.iter()):
        accent_above_index(element)
        space_after_function(element)
        if element.text in ONE_LINE_HIGH:
            element.set("stretchy", "false")
    pieces = [root] if as_block else [element_of(piece) for piece in pieces_of(list(root))]
    return "".join(ElementTree.tostring(each, encoding="unicode", short_empty_elements=False) for each in pieces)


def single_digits(source):
    r"""The converter takes the 12 of ``\\tfrac12`` for one number, where TeX takes one digit."""
    return re.sub(r"(\\[td]?frac)\s*(\d)(\d)", r"\1{\2}{\3}", source)


def pieces_of(children, depth=0):
    """Cut a formula before relations and signs and after commas: browsers break lines between formulas, not in them.

    A short formula stays whole. What stands in brackets does too, but in a piece that is long itself.
    """
    if size(children) < LONG * (1 + depth) or depth > 1:
        return [children]
    cuts, level, after_comma, after_sign = [0], 0, False, True
    for position, child in enumerate(children):
        is_sign, is_space = (child.tag == f"{{{NAMESPACE}}}{kind}" for kind in ("mo", "mspace"))
        sign = child.text if is_sign else None
        level -= sign in CLOSING
        infix = sign in RELATIONS or (sign in SIGNS and not after_sign)
        may_end = infix and size(children[cuts[-1] : position]) > SHORT
        if level <= depth and (may_end or (after_comma and not is_space and level == 0)):
            cuts.append(position)
        level += sign in OPENING
        after_comma = sign == "," or (is_space and after_comma)
        after_sign = is_sign and sign not in CLOSING
    pieces = [children[start:end] for start, end in zip(cuts, [*cuts[1:], None])]
    return [part for piece in pieces for part in pieces_of(piece, depth + 1)]


def size(elements):
    """How many symbols stand in a row of elements, those that hold others counted too."""
    return sum(1 for element in elements for _ in element.iter())


def element_of(children):
    """A formula of its own; an operator that it begins with keeps the space on both sides."""
    formula = ElementTree.Element(f"{{{NAMESPACE}}}math")
    formula.extend(children)
    if len(children) > 1 and children[0].text in RELATIONS | SIGNS:
        children[0].set("form", "infix")
    return formula


def accent_above_index(element):
    r"""The converter takes the index of ``\\bar N_j`` for something to be set under the N."""
    if element.tag == f"{{{NAMESPACE}}}munderover" and element[2].text in ACCENTS:
        base, index, accent = element
        element.clear()
        element.tag = f"{{{NAMESPACE}}}msub"
        accented = ElementTree.SubElement(element, f"{{{NAMESPACE}}}mover", accent="true")
        accented.extend([base, accent])
        element.append(index)


def space_after_function(element):
    """A thin space between a function and an argument without parentheses, as TeX has it."""
    for position, child in reversed(list(enumerate(element))):
        if child.text == APPLICATION and position + 1 < len(element) and element[position + 1].text not in ("(", "["):
            element.insert(position + 1, ElementTree.Element(f"{{{NAMESPACE}}}mspace", width="0.1667em"))


def inline(translator, node):
    """Set a formula in a line of text."""
    translator.body.append(converted(node, as_block=False))
    raise nodes.SkipNode


def displayed(translator, node):
    """Set a formula on lines of its own."""
    translator.body.append(translator.starttag(node, "div", CLASS="math"))
    if node["number"]:
        translator.body.append(f'<span class="eqno">({get_node_equation_number(translator, node)})</span>')
    translator.body.append(converted(node, as_block=True) + "</div>\n")
    raise nodes.SkipNode


def setup(app):
    """Register the renderer; `html_math_renderer = "mathml"` chooses it."""
    app.add_html_math_renderer("mathml", inline_renderers=(inline, None), block_renderers=(displayed, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
