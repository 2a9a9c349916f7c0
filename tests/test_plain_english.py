"""Pages, public docstrings and the text of examples are in plain English: short sentences, subject first, no riddles.

A sentence ends at a period, an exclamation or a question mark. An item of a list is a sentence of its own; a sentence
that goes on below a display formula is one. Code, a formula and a citation count as one word. Code blocks, tables,
terms and options are not read. ``python tests/test_plain_english.py README.md`` lists the faults of a page, and without
a name those of everything.
"""

import ast
import importlib
import inspect
import re
import sys
from functools import cache
from pathlib import Path

import pytest
from test_docstrings import PUBLIC

ROOT = Path(__file__).parents[1]
MAX_WORDS = 35

# Directives whose contents are prose, and those that a sentence may run through.
PROSE = {"note", "warning", "tip", "important", "seealso", "admonition", "topic", "glossary", "versionadded"}
DISPLAYED = {"math": "formula", "code-block": "code", "code": "code"}
ITEM = re.compile(r"(?:[-*•]|\d+\.|#\.)\s+(?=\S)")
RULE_OF_TABLE = re.compile(r"=+(?: +=+)+")
TERM = re.compile(r"\*{0,2}[a-zA-Z_]\w*(?:, \*{0,2}[a-zA-Z_]\w*)* : \S")
UNDERLINE = re.compile(r"([=\-~^\"'#*+.])\1{2,}")

ABBREVIATION = re.compile(
    r"\b(e\.g|i\.e|cf|vs|et al|eqs?|figs?|secs?|pp?|ch|approx|resp|st)\.(?=[\s,)])", re.IGNORECASE
)
EQUATION = r"\(?(?:[A-Z]\.)?[\d.]+[a-z]?\)?"
CITATION = re.compile(rf"\[[A-Z][^\]`]{{1,60}}\]_{{0,2}}(?:,? {EQUATION}(?:(?:-| to | and |, ){EQUATION})*)?")
OPERATORS = {"=", "+", "-", "<", ">", "<=", ">=", "|", "/", "*", "~", "≤", "≥", "∝", "×", "±", "->"}

# Patterns at which a reader turns back, by what is wrong with them.
NUMBERS = "one|two|three|four|five|six|seven|eight|nine|ten|many"
ASKS = r"(?:How|Whether|Which|What|Why|Who)"
SAYS = r"(?:says?|tells?|gives?|shows?|decides?|chooses?|knows?)"
SAID = r"(?:is|are) (?:said|shown|counted|decided|told|measured|found|given|described|written|listed|explained)"
PATTERNS = {
    "a question before its subject": rf"{ASKS}\b[^?:;]*, (?:(?:the|a|an|each|its) )?\S+(?: \w+)? {SAYS}\b[^?]*[^?]$",
    "a question as the subject": rf"{ASKS}\b[^?:]* {SAID} (?:by|in|from|with)\b[^?]*[^?]$",
    "a clause as the subject": r"That (?:a|an|the|it|they|no|all|every|each|of|which|one|there)\b",
    "a pronoun as the subject": r"(?:That|Those|The same|Such) (?:of|with|without|in|at|for|from|by|to|beyond)\b",
    "a fragment without its noun": rf"Of (?!course\b|\d|(?:these|those|the|all|its) (?:\d|{NUMBERS})\b)",
    "a pronoun with two referents": r".*\b[Tt]h(?:at|ose) of\b.*\b[Tt]h(?:at|ose) of\b",
    "former or latter": r".*\b[Tt]he (?:former|latter)\b",
    "a clause that only points back": r".*, (?:which|as|what|whom) (?:they|it|we|these|those) (?:\w+ )?\w+[.;!]$",
    "the verb before its subject": (
        r"Nor (?:do|does|is|are|has|have|can)\b|"
        r"(?:Beside|Behind|Beyond|Below|Above|Under|From|In|On|To|With|Among|Between) [^,.]{1,60}? "
        r"(?:stands?|comes?|lies?|goes|follows?|belongs?) (?:the|a|an|its|their|what|how)\b"
    ),
}
PATTERNS = {name: re.compile(pattern) for name, pattern in PATTERNS.items()}


def indent_of(line):
    return len(line) - len(line.lstrip())


def end_of_block(lines, start, column):
    """The first line from start on that stands at this column or left of it."""
    return next((k for k in range(start, len(lines)) if lines[k].strip() and indent_of(lines[k]) <= column), len(lines))


def end_of_paragraph(lines, start):
    return next((k for k in range(start, len(lines)) if not lines[k].strip()), len(lines))


def end_of_table(lines, start):
    """Behind the rule that ends a simple table: the first, after that of the head, with a blank line below it."""
    for k in range(start + 2, len(lines)):
        if RULE_OF_TABLE.fullmatch(lines[k].strip()) and not "".join(lines[k + 1 : k + 2]).strip():
            return k + 1
    return len(lines)


def is_above_indented(lines, i):
    return i + 1 < len(lines) and bool(lines[i + 1].strip()) and indent_of(lines[i + 1]) > indent_of(lines[i])


def goes_on(lines, i, column, item):
    """Whether line i belongs to the paragraph, or the item, that begins at this column."""
    line = lines[i].strip()
    if not line or line.startswith((".. ", ">>>")):
        return False
    if item:
        return indent_of(lines[i]) > column and not ITEM.match(line)
    return indent_of(lines[i]) == column and not TERM.match(line) and not is_above_indented(lines, i)


def blocks_of(text):
    """(kind, words) of the blocks of reStructuredText; those of kind "prose" and "item" are to be read."""
    lines, i = text.expandtabs().splitlines(), 0
    while i < len(lines):
        line, column = lines[i].strip(), indent_of(lines[i])
        below = lines[i + 1] if i + 1 < len(lines) else ""
        directive = re.match(r"\.\. (?:\|.+\| )?([\w:-]+)::\s*(.*)", line)
        item = ITEM.match(line)
        if not line:
            i += 1
        elif directive and directive[1] in PROSE:
            lines[i] = " " * (column + 3) + directive[2]
        elif re.match(r"\.\.(?: |$)", line):
            yield DISPLAYED.get(directive[1] if directive else "", "other"), ""
            i = end_of_block(lines, i + 1, column)
        elif line.startswith(">>>"):
            yield "code", ""
            i = end_of_paragraph(lines, i)
        elif RULE_OF_TABLE.fullmatch(line):
            yield "other", ""
            i = end_of_table(lines, i)
        elif line.startswith(("+-", "| ", "|-")) or UNDERLINE.fullmatch(line):
            yield "other", ""
            i += 1
        elif re.match(r":[\w ]+:(?:\s|$)", line):
            i = end_of_block(lines, i + 1, column)
        elif UNDERLINE.fullmatch(below.strip()) and indent_of(below) == column:
            yield "heading", line
            i += 2
        elif not item and (TERM.match(line) or is_above_indented(lines, i)):
            yield "term", line
            i += 1
        else:
            start, i = i, i + 1
            while i < len(lines) and goes_on(lines, i, column, item):
                i += 1
            words = " ".join(line.strip() for line in lines[start:i])
            yield ("item" if item else "prose"), words[item.end() if item else 0 :]
            if words.endswith("::"):
                yield "code", ""
                i = end_of_block(lines, i, column)


def as_rst(markdown):
    """The blocks of a page of Markdown, written as reStructuredText."""
    text = re.sub(r"<!--.*?-->", "", markdown, flags=re.DOTALL)
    text = re.sub(r"^ *```.*?^ *```$", ".. code-block:: text", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^#+ (.*)$", r"\1\n====\n", text, flags=re.MULTILINE)
    return re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)


def passages_of(text):
    """Words of paragraphs and items; a paragraph that goes on below a formula or code is one passage."""
    before, said = "", ""
    for kind, words in blocks_of(text):
        if kind in ("prose", "item"):
            goes_on_below = kind == "prose" and before in ("formula", "code") and re.match(r"[a-z]{2,}\b", words)
            if said and not goes_on_below:
                yield said
            said = f"{said} FORMULA {words}" if said and goes_on_below else words
        before = kind
    if said:
        yield said


def plain(words):
    """Words with code, formulas and citations as one word each."""
    words = re.sub(r"``.+?``|:[a-z:+-]+:`[^`]*`|`[^`]*`_{0,2}", "CODE", words)
    words = re.sub(r"https?://\S+", "LINK", words)
    words = CITATION.sub("CITATION", words)
    return ABBREVIATION.sub(r"\1", re.sub(r"\s+", " ", words)).strip()


def n_words(sentence):
    """Words of a sentence; a formula in plain letters, ``a = b + c``, is one."""
    n, joined = 0, False
    for word in sentence.split():
        if word in OPERATORS:
            joined = True
        elif re.search(r"\w", word):
            n += not joined
            joined = False
    return n


@cache
def sentences_of(text):
    ends = re.compile(r"(?<=[.!?])[\"')\]*]*\s+")
    return [sentence for words in passages_of(text) for sentence in ends.split(plain(words)) if sentence]


def faults_of(text):
    """(what is wrong, where) of a text in reStructuredText."""
    for sentence in sentences_of(text):
        if n_words(sentence) > MAX_WORDS:
            yield f"{n_words(sentence)} words", sentence
        for name, pattern in PATTERNS.items():
            if pattern.match(sentence.lstrip("*(\"'")):
                yield name, sentence


def code_without_a_sentence(text):
    """(what is wrong, heading) of the code on a page that stands below a heading, with no sentence between."""
    heading = None
    for kind, words in blocks_of(text):
        if kind == "code" and heading:
            yield "code without a sentence before it", heading
        heading = words if kind == "heading" else None


def pages():
    """Name -> text of the pages, of the unreleased part of the changelog, and of the words of the examples."""
    found = {}
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        found[path.name] = as_rst(path.read_text("utf-8"))
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8").partition("\n## ")[2].partition("\n## ")[0]
    found["CHANGELOG.md"] = as_rst("## " + changes)
    for path in sorted((ROOT / "doc").rglob("*.rst")):
        if not {"generated", "gallery", "_build", "_templates"} & {*path.parts}:
            found[str(path.relative_to(ROOT))] = path.read_text("utf-8")
    return found


def examples():
    return {
        str(path.relative_to(ROOT)): words_of_example(path.read_text("utf-8"))
        for path in sorted((ROOT / "examples").rglob("*.py"))
    }


def words_of_example(text):
    """The docstring of an example, and its comments below ``# %%``."""
    parts = re.findall(r"^# %%.*\n((?:#.*\n)+)", text, flags=re.MULTILINE)
    return "\n\n".join(
        [ast.get_docstring(ast.parse(text)) or "", *(re.sub(r"^# ?", "", p, flags=re.MULTILINE) for p in parts)]
    )


@cache
def docstrings():
    """Dotted name -> docstring of public modules, of what they list, and of its methods, inherited ones included."""
    found, seen = {}, set()

    def add(name, thing):
        said = inspect.cleandoc(getattr(thing, "__doc__", None) or "")
        if said and id(thing) not in seen and said not in seen:
            seen.update((id(thing), said))
            found[name] = said

    for module_name in PUBLIC:
        module = importlib.import_module(module_name)
        add(module_name, module)
        for name in getattr(module, "__all__", []):
            thing = getattr(module, name)
            if not callable(thing) or not getattr(thing, "__module__", "").startswith("skvbem"):
                continue
            add(f"{module_name}.{name}", thing)
            for base in thing.__mro__ if inspect.isclass(thing) else ():
                if base.__module__.startswith("skvbem"):
                    for attribute, value in vars(base).items():
                        if not attribute.startswith("_") and hasattr(value, "__get__"):
                            add(f"{base.__module__}.{base.__name__}.{attribute}", getattr(value, "__func__", value))
    return found


PAGES = pages() if (ROOT / "doc").is_dir() else {}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_in_plain_english(name):
    assert [*faults_of(PAGES[name]), *code_without_a_sentence(PAGES[name])] == []


def test_examples_are_in_plain_english():
    assert {name: faults for name, text in examples().items() if (faults := [*faults_of(text)])} == {}


def test_public_docstrings_are_in_plain_english():
    assert {name: faults for name, text in docstrings().items() if (faults := [*faults_of(text)])} == {}


def test_what_is_read_is_all_there_is():
    """A splitter that loses text finds no faults in it."""
    assert {"README.md", "CHANGELOG.md", "doc/user_guide/trust.rst", "doc/index.rst"} <= PAGES.keys() or not PAGES
    assert sum(n_words(sentence) for text in PAGES.values() for sentence in sentences_of(text)) > 30_000 or not PAGES
    named = docstrings()
    assert {"skvbem.VBMixture", "skvbem.evidence.scorer", "skvbem.search.strategies"} <= named.keys()
    assert any(name.endswith("VBEstimator.credible_intervals") for name in named)
    assert len(named) > 500


LONG = " ".join(["word"] * 36)

WRONG = {
    "a long sentence": f"{LONG.capitalize()}.",
    "a long item": f"Read:\n\n- short;\n- {LONG};\n- short.",
    "a long item of a numbered list": f"1. {LONG}",
    "a long sentence around a formula": f"The {LONG[:100]}\n\n.. math::\n\n   a = b\n\nand {LONG[:100]}.",
    "a long sentence around code": f"We have {LONG[:100]}::\n\n   a = b\n\nwhere {LONG[:100]}.",
    "a long sentence in a note": f".. note:: {LONG}",
    "a long sentence in the body of a note": f".. note::\n\n   {LONG}",
    "a long description of a parameter": f"Parameters\n----------\nX : array\n    {LONG}.\ny : array\n    Short.",
    "a long one after one with an abbreviation": f"It is so, e.g. there. {LONG}.",
    "a long sentence with an abbreviation": f"{LONG[:100]}, e.g. {LONG[:100]}.",
    "a long sentence in brackets": f"This is so. ({LONG}.)",
    "an object first": "How sure the posterior is of each, `credible_intervals` says.",
    "an object first, with a noun": "Which clusters it found, the attribute tells.",
    "a question as the subject": "How far scores are off is shown in :doc:`scores`.",
    "a clause as the subject": "That a density depends on coordinates holds for MAP itself.",
    "no noun": "Those of the chain stand below.",
    "no noun, in the singular": "That of `ais` halves.",
    "no noun, in brackets": "(Those of others do not.)",
    "a fragment": "Of scores that draw.",
    "a fragment with an article": "Of the score.",
    "a noun behind its verb": "Of multinomial counts d is not computed.",
    "two referents": "Between two fits those of the chain stand beside those of what is observed.",
    "latter": "It prints the latter.",
    "pointing back": "Components with equal priors may be exchanged, which they know.",
    "no subject yet": "Beside the bound stands the evidence.",
    "nor": "Nor does the order of rows matter.",
}

RIGHT = {
    "35 words": f"{LONG[5:]}.",
    "two sentences": f"{LONG[:100]}. {LONG[:100]}! {LONG[:100]}? {LONG[:100]}.",
    "a sentence, then a formula": f"{LONG[:100]}:\n\n.. math::\n\n   a = b\n\nThe {LONG[:100]}.",
    "a sentence that ends, then a formula": f"{LONG[:100]}.\n\n.. math::\n\n   a = b\n\nand {LONG[:100]}.",
    "items": f"- {LONG[:100]}\n- {LONG[:100]}\n* {LONG[:100]}",
    "items of two lines": f"- {LONG[:100]}\n  {LONG[:60]}\n- {LONG[:60]}",
    "code is a word": f"Short ``{LONG}`` and :math:`{LONG}` and `{LONG}`_.",
    "a formula is a word": " ".join(["a + b = c"] * 11),
    "a citation is a word": " ".join(["[Beal]_ (2.99), (2.103)"] * 30),
    "a link is a word": f"[{LONG[:100]}](https://example.org/{LONG.replace(' ', '/')})",
    "a code block": f".. code-block:: text\n\n   {LONG}\n\nShort.",
    "a literal block": f"Short::\n\n   {LONG}\n\nShort.",
    "a doctest": f">>> 1\n{LONG}",
    "a comment": f".. {LONG}",
    "an option of a directive": f".. figure:: a.png\n   :alt: {LONG}",
    "a simple table": f"=====  =====\nwhat   words\n=====  =====\n1      {LONG}\n\n2      {LONG}\n=====  =====\n\nSo.",
    "a list table": f".. list-table::\n\n   * - {LONG}\n     - {LONG}",
    "a table of Markdown": f"| {LONG} | {LONG} |",
    "a heading": f"{LONG}\n{'=' * 300}\n\nShort.",
    "a type": f"Parameters\n----------\nX : {LONG}\n    Short.\ny : {LONG}",
    "a question": "How many classes are there? Which one, the first or the last, says so?",
    "a parameter that is true or false": "Whether `data` is a pandas DataFrame, with names, instead of an array.",
    "a count": "How many states of a latent are in use.",
    "that, which points at a noun": "That measure is the volume. That is why.",
    "a part of a whole": "Of the three objectives only `lower_bound_` compares. Of 96 cases 65 pass. It is of use.",
    "one of them": "The bound is that of the fit. Scores are those of networks.",
    "a subject first": "`credible_intervals` gives intervals for transitions, which the data tell.",
    "a place first": "In a table the bound stands first. On the left, claims; on the right, what came true.",
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_text_is_seen(case):
    assert [*faults_of(as_rst(WRONG[case]))]


@pytest.mark.parametrize("case", RIGHT)
def test_right_text_is_left_alone(case):
    assert [*faults_of(as_rst(RIGHT[case]))] == []


def test_code_below_a_heading_is_seen():
    wrong = ["A\n===\n\n>>> 1", "A\n===\n\n.. code-block:: sh\n\n   ls", as_rst("# A\n\n```sh\nls\n```")]
    right = ["A\n===\n\nSo:\n\n>>> 1\n\n>>> 2", "A\n===\n\n.. _here:\n\nSo.\n\n>>> 1", "A\n===\n\nSo::\n\n   1"]
    assert [len([*code_without_a_sentence(text)]) for text in wrong] == [1, 1, 1]
    assert [len([*code_without_a_sentence(text)]) for text in right] == [0, 0, 0]


def test_words_of_an_example_are_its_docstring_and_its_text():
    text = '"""\nTitle\n=====\n\nFirst.\n"""\n\nx = 1  # code\n# code\n\n# %%\n# Second.\n# So.\n\ny = 2\n'
    assert [*sentences_of(words_of_example(text))] == ["First.", "Second.", "So."]


if __name__ == "__main__":
    for name, text in {**pages(), **examples(), **docstrings()}.items():
        if not sys.argv[1:] or name in sys.argv[1:]:
            for fault, where in [*faults_of(text), *(code_without_a_sentence(text) if name in PAGES else [])]:
                print(f"{name}: {fault}: {where}")
