"""The built site in a browser, at the width of a desk and of a telephone; its links, its names, its search.

Build it first, as CONTRIBUTING.md says. Without a site, or without a Chromium, there is nothing to look at.
"""

import re
from pathlib import Path

import pytest
from website.browser import Browser, program
from website.pages import site

ROOT = Path(__file__).parents[1]
SITE = ROOT / "doc/_build/html"
LOOK = (Path(__file__).parent / "website/look.js").read_text("utf-8")
WIDTHS = (1400, 400)

pytestmark = [
    pytest.mark.documentation,
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the site is not built"),
]


@pytest.fixture(scope="module")
def pages():
    return site(SITE)


@pytest.fixture(scope="module")
def browser():
    if program() is None:
        pytest.skip("no Chromium")
    with Browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def looks(pages, browser):
    """What the eye saw: (page, width) -> what is wrong, and which boxes scroll sideways."""
    seen = {}
    for path in pages:
        browser.resize(WIDTHS[0])
        browser.open(path.as_uri())
        for width in WIDTHS:
            browser.resize(width)
            seen[name(path), width] = browser.evaluate(LOOK)
    return seen


def name(path):
    return path.relative_to(SITE.resolve()).as_posix()


def test_no_link_is_dead(pages):
    dead = [
        f"{name(path)}: {target.name}#{anchor}"
        for path, page in pages.items()
        for target, anchor, _ in page.leads_to()
        if not target.exists() or (anchor and target in pages and anchor not in pages[target].anchors)
    ]
    assert dead == []


def test_names_of_public_things_are_links(pages):
    """Code in running text that names a thing of the API pages leads there, but on its own page."""
    public = {path.stem for path in pages if path.parent.name == "generated"}
    speaking = {each.rpartition(".")[2] for each in public}
    speaking = {each for each in speaking if "_" in each or each != each.lower()}
    unlinked = []
    for path, page in pages.items():
        for code in page.code:
            written = re.match(r"[\w.]*", code.strip())[0]
            whole = any(written == each or written.startswith(f"{each}.") for each in public)
            first = written.partition(".")[0]
            if (whole or first in speaking) and not path.stem.endswith((written, f".{first}")):
                unlinked.append(f"{name(path)}: {code}")
    assert unlinked == []


def test_first_questions_are_answered_two_clicks_from_home(pages):
    """Every heading of the page of questions is reached by links in the text: of the home page, then of the next."""
    root = SITE.resolve()
    reached = {(root / "index.html", "")}
    for _ in range(2):
        reached |= {(to, anchor) for at, _ in reached for to, anchor, in_text in pages[at].leads_to() if in_text}
        reached = {(to, anchor) for to, anchor in reached if to in pages}
    questions = pages[root / "faq.html"].headings
    assert len(questions) > 10
    assert [words for anchor, words in questions.items() if (root / "faq.html", anchor) not in reached][1:] == []


def test_pages_keep_their_text_apart_and_within_the_window(looks):
    """No text past the edge, none over another, no picture missing, on any page at any width."""
    assert [f"{page} at {width}: {what}" for (page, width), seen in looks.items() for what in seen["wrong"]] == []


def test_code_is_read_without_scrolling_on_a_desk(looks):
    wide = {page: seen["scrolling"] for (page, width), seen in looks.items() if width == WIDTHS[0]}
    written_here = {page: boxes for page, boxes in wide.items() if not page.startswith(("api/generated", "gallery"))}
    assert [f"{page}: {box}" for page, boxes in written_here.items() for box in boxes if box.startswith("<pre")] == []


@pytest.mark.parametrize(
    ("asked", "answers"),
    [
        ("how many classes", "faq.html"),
        ("missing values", "faq.html"),
        ("BIC", "faq.html"),
        ("hmmlearn", "coming_from/hmmlearn.html"),
    ],
)
def test_search_finds(browser, asked, answers):
    browser.open(f"{(SITE / 'search.html').resolve().as_uri()}?q={asked.replace(' ', '+')}")
    found = browser.evaluate(
        """(async () => {
            const links = () => [...document.querySelectorAll("ul.search li > a")].map((a) => a.getAttribute("href"));
            const status = () => document.querySelector(".search-summary")?.textContent ?? "";
            for (let n = 0; n < 100 && !/found/.test(status()); n++)
                await new Promise((go) => setTimeout(go, 200));
            return links();
        })()"""
    )
    assert any(answers in link for link in found[:5]), found[:10]


def test_the_eye_of_these_tests_sees(browser, tmp_path):
    """What they list is found on a page that has it."""
    page = tmp_path / "page.html"
    page.write_text(
        "<article><p style='width: 2000px'>wide</p><p>one</p><p style='margin-top: -2.2em'>over another</p>"
        "<img src='nowhere.png'><div style='width: 100px; overflow-x: auto'><pre>as long as it is</pre></div></article>"
    )
    browser.resize(1400)
    browser.open(page.as_uri())
    seen = browser.evaluate(LOOK)
    assert {what.split(":")[0] for what in seen["wrong"]} >= {"the page is 2008 pixels wide", "overprint", "no picture"}
    assert len(seen["scrolling"]) == 1
