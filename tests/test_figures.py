"""Figures on pages, with a unit, are printed by a doctest there, made by a record, or listed with what holds them."""

import re
from functools import cache
from pathlib import Path

import figures
import pytest

ROOT = Path(__file__).parents[1]
DOC = ROOT / "doc"
MADE = {"gallery", "generated", "_build", "_templates"}
PAGES = [ROOT / "README.md", *sorted(page for page in DOC.glob("**/*.rst") if not MADE & set(page.parts))]
pytestmark = pytest.mark.skipif(not DOC.exists(), reason="no documentation beside the tests")

_NUMBER = r"(?<![\w.])[-+]?\.?\d[\d ]*(?:\.\d+)?"
_UNIT = r"(?:nats?|seconds?|s|ms|minutes?|hours?|%|per cent|times|MB|GB)(?!\w)"
_FIGURE = re.compile(rf"({_NUMBER}(?:(?:,| to| and| or| ±|/)+ {_NUMBER})*) ?{_UNIT}")


def name_of(page):
    return page.relative_to(DOC).as_posix() if DOC in page.parents else page.name


@cache
def blocks(page):
    """Paragraphs of prose, a line each: no code, no tables."""
    prose = []
    for block in re.split(r"\n\s*\n", page.read_text("utf-8")):
        first = block.lstrip("\n")
        is_table = re.search(r"^\s*=+ +=+", block, re.MULTILINE) or (first.startswith("   ") and block.count(",") > 2)
        if not is_table and not first.startswith((">>>", ".. ", "    ", "```")):
            prose.append(" ".join(block.split()))
    return prose


@cache
def printed(page):
    """Numbers that doctests of a page print."""
    numbers, is_output = set(), False
    for line in page.read_text("utf-8").splitlines():
        is_code = line.startswith((">>>", "..."))
        is_output = is_code or (is_output and bool(line.strip()))
        if is_output and not is_code:
            numbers |= {float(text) for text in re.findall(r"\d+\.?\d*", line)}
    return numbers


def is_printed(figure, page):
    """True if every number of a figure is one that a doctest prints, rounded as it is."""
    texts = [text.replace(" ", "").lstrip("+-") for text in re.findall(_NUMBER, figure)]
    digits = [len(text.partition(".")[2]) for text in texts]
    return all(any(round(one, n) == float(text) for one in printed(page)) for text, n in zip(texts, digits))


@cache
def figures_of(page):
    """Figures of a page that no doctest prints, each with its paragraph and its place there."""
    found = [(block, match) for block in blocks(page) for match in _FIGURE.finditer(block)]
    return [(block, match.span()) for block, match in found if not is_printed(match.group(1), page)]


def is_in(words, block, span):
    start = block.find(words)
    return start >= 0 and start <= span[0] and span[1] <= start + len(words)


@pytest.mark.parametrize("name", figures.COMPUTED)
def test_sentences_are_those_of_records(name):
    text = " ".join((DOC / name).read_text("utf-8").split())
    for sentence in figures.COMPUTED[name]():
        assert sentence in text


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_figure_is_held(page):
    computed = list(figures.COMPUTED[name_of(page)]()) if name_of(page) in figures.COMPUTED else []
    listed = [*computed, *figures.OTHERWISE.get(name_of(page), {})]
    for block, span in figures_of(page):
        assert any(is_in(words, block, span) for words in listed), block[max(span[0] - 60, 0) : span[1] + 20]


@pytest.mark.parametrize("name", figures.OTHERWISE)
def test_what_is_listed_is_there(name):
    page = next(page for page in PAGES if name_of(page) == name)
    for words, holder in figures.OTHERWISE[name].items():
        assert any(is_in(words, block, span) for block, span in figures_of(page)), words
        if holder == figures.DIFFERENCE:
            (text,) = re.findall(_NUMBER, words)
            n = len(text.strip().partition(".")[2])
            differences = {round(abs(one - other), n) for one in printed(page) for other in printed(page)}
            assert float(text) in differences
        else:
            assert holder in {"definition", "setting"} or (ROOT / "tests" / holder).exists(), holder
