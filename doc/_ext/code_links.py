"""Links from the names of public things in running text: ``VBMixture`` leads to its page, and so does ``VBMixture(3)``.

Pages write names as code, and nothing else. A name is linked where one thing of the API pages bears it: a class,
function, exception or piece of data by its name, anything else with its class before it, as in ``VBMixture.predict``.
"""

import pkgutil
import re

from docutils import nodes
from sphinx.util.nodes import make_refnode

_NAMED = re.compile(r"(?:skvbem\.)?([A-Za-z_][\w.]*)(\(.*\))?", re.DOTALL)
_KINDS = {"class", "function", "exception", "data"}


def meanings(objects):
    """The full name of what each way of writing a name means, where it means one thing.

    Parameters
    ----------
    objects : mapping of str to ObjectEntry
        Of the Python domain: what the API pages describe.

    Returns
    -------
    dict of str to str
    """
    meant = {}
    for full, entry in objects.items():
        owner, _, name = full.rpartition(".")
        if entry.aliased:  # the place where it is defined
            continue
        if entry.objtype not in _KINDS:
            meant.setdefault(f"{owner.rpartition('.')[2]}.{name}", []).append(full)
        elif "_" in name or name != name.lower():  # "auto" and "exact" are words of many meanings
            meant.setdefault(name, []).append(full)
    for full in meant.values():
        full.sort(key=lambda each: each.count("."))
        if len(full) > 1 and full[0].count(".") == full[1].count("."):
            full.clear()
    whole = {full.partition(".")[2]: full for full, entry in objects.items() if not entry.aliased}
    return whole | {written: full[0] for written, full in meant.items() if full}


def meaning_of(text, meant):
    """The full name of what a piece of code names, or None.

    An attribute that has no entry leads to its class. A name with its modules before it leads to the entry of the same
    thing, wherever that is listed.
    """
    match = _NAMED.fullmatch(text.strip())
    if match is None:
        return None
    written = match[1]
    owner, _, attribute = written.rpartition(".")
    if written in meant or (attribute and owner in meant):
        return meant.get(written) or meant[owner]
    parts = written.split(".")
    for name in (".".join(parts[-2:]), parts[-1]):
        full = meant.get(name)
        if full and full != name and len(parts) > 1 and is_same(f"skvbem.{written}", full):
            return full
    return None


def is_same(*names):
    """Whether dotted names lead to one and the same object."""
    try:
        first, second = map(pkgutil.resolve_name, names)
    except (ImportError, AttributeError):
        return False
    return first is second


def link_names(app, doctree, docname):
    """Make links of the pieces of code on a page that name public things."""
    objects = app.env.domains["py"].objects
    meant = meanings(objects)
    for literal in list(doctree.findall(nodes.literal)):
        full = meaning_of(literal.astext(), meant)
        if full is None or objects[full].docname == docname or is_within(literal, (nodes.reference, nodes.title)):
            continue
        entry = objects[full]
        link = make_refnode(app.builder, docname, entry.docname, entry.node_id, literal.deepcopy(), full)
        literal.parent.replace(literal, link)


def is_within(node, kinds):
    """Whether one of the nodes around a node is of some kinds."""
    while node.parent is not None:
        node = node.parent
        if isinstance(node, kinds):
            return True
    return False


def setup(app):
    """Sphinx calls this."""
    app.connect("doctree-resolved", link_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
