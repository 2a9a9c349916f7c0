"""The words of the package: first lines of docstrings can be read alone, and a thing of the theory has one name.

The names are those of the glossary page. A word of `SYNONYMS` is one that the glossary has another word for.
"""

import ast
import re
from pathlib import Path

import pytest

import skvbem

ROOT = Path(skvbem.__file__).parent
GLOSSARY = Path(__file__).parents[1] / "doc" / "glossary.rst"
PAGES = [
    page
    for folder in ("", "theory", "user_guide", "coming_from")
    for page in sorted((GLOSSARY.parent / folder).glob("*.rst"))
]
ROOMS = sorted({path.relative_to(ROOT).parts[0] for path in ROOT.rglob("*.py")})
BEGINNINGS = ("That of", "Those of", "The same", "What becomes of")

# Term of the glossary -> words that identifiers do without, and phrases that docstrings do without.
SYNONYMS = {
    "lower bound": (("elbo", "energy", "loss", "losses"), ("elbo", "free energy")),
    "responsibilities": (("shares",), ()),
    "relabeling": (("labeling", "labelings", "aliases"), ("labelings", "aliases")),
    "segment": (("stretch", "stretches"), ("a stretch of", "stretches of")),
    "plan of a fit": (("recipe", "recipes"), ("recipe",)),
    "seeding coordinates": (("electing", "elect", "elected", "tally"), ()),
    "coordinate blocks": (("apart",), ()),
    "weighted rows": (("counted",), ()),
    "row hash": (("marks_of",), ()),
    "exact zeros": (("remains",), ("what is left of probabilities",)),
    "equal concentration": (("Spread",), ()),
    "parallel generator": (("side_by_side", "SideBySide"), ()),
    "best estimator": (("winner",), ("the winner",)),
    "transferred": (("carried", "carrying"), ()),
    "memory estimate": (("burden",), ()),
    "atomic write": (("durable",), ()),
    "finalize": (("settled",), ()),
    "inverse temperature": (("heat", "coldness"), ("coldness",)),
    "log evidence": (("logz", "mll"), ("log marginal evidence",)),
}
# Names that say nothing of what they name, and limits without their unit and object.
RIDDLES = {"found", "some", "own", "of_x"}
LIMITS = re.compile(r"_?(MOST|LEAST|ALIKE|FEW|MANY)(_|$)")


def files_of(room):
    """Python files of a room, a folder or a file."""
    return [ROOT / room] if room.endswith(".py") else sorted((ROOT / room).rglob("*.py"))


def docstrings_of(text):
    """(line, docstring) of everything that has one in a Python file."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            said = ast.get_docstring(node)
            if said:
                yield getattr(node, "lineno", 1), said


def identifiers_of(text):
    """(line, name) of every name that a Python file gives to something."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def is_made_of(name, word):
    """Whether an identifier has this word, or words, among those it is made of."""
    return f"_{word}_" in f"_{name}_"


def wrong_first_lines(text):
    return [(line, said) for line, said in docstrings_of(text) if said.startswith(BEGINNINGS)]


def wrong_identifiers(text):
    """(line, name, what to write) of every name that the glossary has another word for, or that says nothing."""
    terms = {word: term for term, (words, _) in SYNONYMS.items() for word in words}
    for line, name in identifiers_of(text):
        if name in RIDDLES:
            yield line, name, "a riddle: name the thing"
        elif LIMITS.match(name):
            yield line, name, "a limit: name its unit and object"
        else:
            of_glossary = [f"the glossary says {term!r}" for word, term in terms.items() if is_made_of(name, word)]
            if of_glossary:
                yield line, name, of_glossary[0]


def phrases_in(text):
    """Phrases of a text that the glossary has another word for."""
    phrases = [phrase for _, phrases in SYNONYMS.values() for phrase in phrases]
    return [phrase for phrase in phrases if re.search(rf"\b{phrase}\b", text, re.IGNORECASE)]


def wrong_phrases(text):
    return [(line, phrase) for line, said in docstrings_of(text) for phrase in phrases_in(said)]


#: A first line says what comes back, with this as its subject; one that begins so is half a question.
QUESTIONS = re.compile(r"(What|Whether|Where|Which|How)\b|See |That of ")
#: Rooms with such lines; whoever has cleaned one takes it from here.
NOT_CLEAN_YET = {
    *("_absent", "_arguments", "_compat", "_numerics", "ascent", "blocks", "capabilities", "data", "emissions"),
    *(
        "estimators",
        "evidence",
        "fitted",
        "fitting",
        "formats",
        "models",
        "optima",
        "persistence",
        "reading",
        "reports",
    ),
    *("uncertainty",),
}


def questions_in(text):
    return [(line, said.splitlines()[0]) for line, said in docstrings_of(text) if QUESTIONS.match(said)]


@pytest.mark.parametrize("room", sorted({path.name.removesuffix(".py") for path in ROOT.iterdir()} - NOT_CLEAN_YET))
def test_first_lines_are_no_questions(room):
    """In all of them, of private functions too."""
    files = files_of(room if (ROOT / room).is_dir() else f"{room}.py")
    wrong = {str(path.relative_to(ROOT)): questions_in(path.read_text("utf-8")) for path in files if path.is_file()}
    assert {path: lines for path, lines in wrong.items() if lines} == {}


@pytest.mark.parametrize("room", ROOMS)
def test_first_lines_can_be_read_alone(room):
    wrong = {str(path.relative_to(ROOT)): wrong_first_lines(path.read_text("utf-8")) for path in files_of(room)}
    assert {path: lines for path, lines in wrong.items() if lines} == {}


@pytest.mark.parametrize("room", ROOMS)
def test_identifiers_are_those_of_the_glossary(room):
    wrong = {str(path.relative_to(ROOT)): [*wrong_identifiers(path.read_text("utf-8"))] for path in files_of(room)}
    assert {path: names for path, names in wrong.items() if names} == {}


@pytest.mark.parametrize("room", ROOMS)
def test_docstrings_speak_the_words_of_the_glossary(room):
    wrong = {str(path.relative_to(ROOT)): wrong_phrases(path.read_text("utf-8")) for path in files_of(room)}
    assert {path: phrases for path, phrases in wrong.items() if phrases} == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_speak_the_words_of_the_glossary(page):
    assert phrases_in(page.read_text("utf-8")) == []


def terms_on_page():
    """Term -> its entry on the glossary page."""
    entries = re.split(r"^   (?=\S)", GLOSSARY.read_text("utf-8"), flags=re.MULTILINE)[1:]
    return {entry.partition("\n")[0].strip(): entry for entry in entries}


@pytest.mark.skipif(not GLOSSARY.exists(), reason="no documentation beside the tests")
def test_every_synonym_has_its_term_on_the_page():
    assert SYNONYMS.keys() - terms_on_page().keys() == set()


@pytest.mark.skipif(not GLOSSARY.exists(), reason="no documentation beside the tests")
def test_names_on_the_page_are_names_of_the_package():
    """Every ``name`` of the glossary is a name, or a part of one, that stands in the code."""
    code = "\n".join(path.read_text("utf-8") for path in ROOT.rglob("*.py"))
    words = set(re.findall(r"\w+", code))
    for term, entry in terms_on_page().items():
        for name in re.findall(r"``(.+?)``", entry):
            assert {*re.findall(r"[A-Za-z_]\w*", name)} <= words, f"{term}: {name}"


@pytest.mark.parametrize(
    "text",
    [
        '"""The same with others."""',
        'def f():\n    """Those of the groups."""',
        'class A:\n    def f(self):\n        """What becomes of the best fit."""',
    ],
)
def test_a_wrong_first_line_is_seen(text):
    assert wrong_first_lines(text)
    assert not wrong_first_lines('"""The responsibilities of the groups."""')


def test_a_question_is_seen():
    text = """def f():
    'Whether x is.'
def g():
    'Somehow x.'
"""
    assert questions_in(text) == [(1, "Whether x is.")]


@pytest.mark.parametrize(
    "text", ["found = 1", "def f(own): ...", "_MOST = 3", "elbo_ = 1", "class Spread: ...", "x.n_labelings = 2"]
)
def test_a_wrong_name_is_seen(text):
    assert [*wrong_identifiers(text)]
    assert not [*wrong_identifiers("_MAX_NODES, lower_bound, n_relabelings, founder = 1, 2, 3, 4")]


def test_a_wrong_phrase_is_seen():
    assert wrong_phrases('"""The ELBO of a fit."""')
    assert not wrong_phrases('"""The lower bound of a fit."""')
