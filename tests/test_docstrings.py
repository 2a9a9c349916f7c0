"""Docstrings: their examples run, and numpydoc finds in them what it looks for."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import textwrap
from collections import Counter
from pathlib import Path

import pytest

import skvbem
from skvbem._docstrings import PLACEHOLDER, TEXTS, filled

MODULES = sorted(m.name for m in pkgutil.walk_packages(skvbem.__path__, "skvbem.") if "._kernels" not in m.name)
PUBLIC = [
    "skvbem",
    "skvbem.estimators",
    "skvbem.datasets",
    "skvbem.emissions",
    "skvbem.errors",
    "skvbem.evidence",
    "skvbem.graphs.dag",
    "skvbem.spaces.priors",
    "skvbem.spaces",
    "skvbem.plotting",
    "skvbem.search",
    "skvbem.search.strategies",
    "skvbem.testing",
]

# Sections and sentences the house style does without, as it lets the type line of X and of a result speak for itself.
NOT_ASKED = {
    "GL01": "text starts on the line of the quotes",
    "ES01": "no extended summary",
    "SA01": "no See Also",
    "SA03": "See Also in lower case",
    "EX01": "no example",
    "PR07": "no description of a parameter that its type line explains",
    "RT03": "no description of a result that its type line explains",
    "RT02": "the result has a name (self, or the parts of a tuple)",
    "RT04": "a description may start in lower case",
    "RT05": "a description may end without a period",
    "PR08": "a description may start in lower case",
    "PR09": "a description may end without a period",
    "SS03": "a source may stand behind the period",
    "SS05": "the first line says what is true of the result",
    "SS06": "the first sentence may need two lines",
    "YD01": "no Yields",
}
# Below the estimators the first sentence may name the parameters and the result in passing, and start with a formula.
NOT_ASKED_BELOW_ESTIMATORS = {"PR01", "RT01", "SS02"}


def imported(name):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    module = imported(name)
    finder, said = doctest.DocTestFinder(exclude_empty=True), []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for test in finder.find(module, name):
        if "pandas" in test.docstring or "as_frame" in test.docstring:
            pytest.importorskip("pandas")
        runner.run(test, out=said.append)
    assert not said, "".join(said)


def public_things():
    """Everything public by dotted name: functions, classes, and what the classes themselves define."""
    names, things = {}, {}
    for module_name in PUBLIC:
        try:
            module = importlib.import_module(module_name)
        except ImportError:
            continue
        for name in getattr(module, "__all__", []):
            thing = getattr(module, name)
            if inspect.ismodule(thing) or not callable(thing):
                continue
            things[names.setdefault(id(thing), f"{module_name}.{name}")] = thing
            if inspect.isclass(thing):
                for attribute, value in vars(thing).items():
                    if hasattr(value, "__get__") and not attribute.startswith("_"):
                        full = names.setdefault((id(thing), attribute), f"{module_name}.{name}.{attribute}")
                        things[full] = getattr(thing, attribute)
    return dict(sorted(things.items()))


THINGS = public_things()


@pytest.mark.parametrize("name", THINGS)
def test_numpydoc_is_content(name):
    validate = pytest.importorskip("numpydoc.validate")
    estimator = name.startswith("skvbem.VBDiscreteDAG")
    ignored = NOT_ASKED.keys() | (set() if estimator else NOT_ASKED_BELOW_ESTIMATORS)
    # Found by name, it would be looked for as a module first, which an editable installation is slow to deny.
    found = validate.validate(validate.get_doc_object(THINGS[name]))["errors"]
    assert [(code, text) for code, text in found if code not in ignored] == []


def defaults_said(docstring):
    """Parameter -> its default as the docstring's section of parameters says it, a value if Python can read it."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)", docstring, re.MULTILINE | re.DOTALL)
    for names, said in re.findall(r"^(\w[\w, ]*) : .*?\bdefault=(.+)$", section[1] if section else "", re.MULTILINE):
        try:
            default = ast.literal_eval(said)
        except (SyntaxError, ValueError):
            continue  # a value with a name
        yield from ((name, default) for name in names.split(", "))


@pytest.mark.parametrize("name", THINGS)
def test_defaults_are_those_of_the_signature(name):
    try:
        parameters = inspect.signature(THINGS[name]).parameters
    except (TypeError, ValueError):
        return  # a property
    said = dict(defaults_said(inspect.getdoc(THINGS[name]) or ""))
    there = {key: parameters[key].default for key in said if key in parameters}
    assert {key: default for key, default in there.items() if default != said[key]} == {}


def test_a_wrong_default_is_seen():
    text = "A.\n\nParameters\n----------\ntol : float, default=1e-3\n    x.\na, b : int, default=None\n\nA\n-\n"
    assert dict(defaults_said(text)) == {"tol": 1e-3, "a": None, "b": None}


def test_shared_texts_stand_in_the_place_of_their_names():
    text = "A.\n\n    Parameters\n    ----------\n    %(y, tol)s\n    b : int\n"
    y, tol = (textwrap.indent(TEXTS[name], "    ") for name in ("y", "tol"))
    assert filled(text) == text.replace("    %(y, tol)s", f"{y}\n{tol}")
    assert filled("  %(y -> float)s\n      Nats.") == (
        "  Parameters\n  ----------\n  y : None\n      Ignored.\n\n  Returns\n  -------\n  float\n      Nats."
    )
    with pytest.raises(KeyError):
        filled("    %(tolerance)s")


def test_no_docstring_is_left_with_a_placeholder():
    assert [name for name, thing in THINGS.items() if PLACEHOLDER.search(thing.__doc__ or "")] == []


def test_every_shared_text_is_shared():
    sources = "\n".join(path.read_text("utf-8") for path in Path(skvbem.__path__[0]).rglob("*.py"))
    uses = Counter(name for _, names, _ in PLACEHOLDER.findall(sources) for name in names.split(", "))
    assert [name for name in TEXTS if uses[name] < 2] == []
