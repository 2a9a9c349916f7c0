"""Formulas as MathML, which browsers set by themselves: pages need neither JavaScript nor a network to show them."""

from xml.etree import ElementTree

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

NAMESPACE = "http://www.w3.org/1998/Math/MathML"
APPLICATION = "\N{FUNCTION APPLICATION}"
ACCENTS = "\N{MODIFIER LETTER MACRON}~\N{MODIFIER LETTER CIRCUMFLEX ACCENT}"
ANGLES = {"\N{MATHEMATICAL LEFT ANGLE BRACKET}", "\N{MATHEMATICAL RIGHT ANGLE BRACKET}"}

logger = logging.getLogger(__name__)
ElementTree.register_namespace("", NAMESPACE)


def converted(node, as_block):
    """The MathML of a formula; a command that the converter does not know is a warning."""
    try:
        text = tex2mathml(node.astext(), as_block=as_block)
    except MathError as error:
        logger.warning("formula %r: %s", node.astext(), error, location=node)
        return ""
    root = ElementTree.fromstring(text.replace("&ApplyFunction;", APPLICATION))
    for element in list(root.iter()):
        accent_above_index(element)
        space_after_function(element)
        if element.text in ANGLES:
            element.set("stretchy", "false")
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)


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
