"""The documentation is true: its code runs, the names it gives exist, and the sources it cites are listed."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOC = ROOT / "doc"
MADE = {"gallery", "generated", "_build", "_templates"}
PAGES = sorted(page for page in DOC.glob("**/*.rst") if not MADE & set(page.parts))
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.REPORT_ONLY_FIRST_FAILURE

pytestmark = pytest.mark.skipif(not PAGES, reason="no documentation beside the tests")


def page_id(page):
    return page.relative_to(DOC).as_posix()


@pytest.mark.documentation
@pytest.mark.parametrize("page", [page for page in PAGES if ">>>" in page.read_text("utf-8")], ids=page_id)
def test_code_on_page_runs(page):
    if "pandas" in page.read_text("utf-8") or "as_frame" in page.read_text("utf-8"):
        pytest.importorskip("pandas")
    if "skvbem.plotting" in page.read_text("utf-8"):
        pytest.importorskip("matplotlib")
    said = []
    test = doctest.DocTestParser().get_doctest(page.read_text("utf-8"), {}, page.name, str(page), 0)
    doctest.DocTestRunner(verbose=False, optionflags=OPTIONS).run(test, out=said.append)
    assert not said, "".join(said)


@pytest.mark.documentation
def test_code_of_the_readme_runs_from_top_to_bottom_without_a_warning():
    pytest.importorskip("pandas")
    names: dict = {}
    for code in re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL):
        exec(compile(code, "README.md", "exec"), names)
        for nats, said in re.findall(r"^# (\d+) nats.*\n(.+)$", code, re.MULTILINE):
            assert round(eval(said, names)) == int(nats)
    assert names["search"].structure_posterior_.sum() == pytest.approx(1)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_names_on_page_exist(page):
    for name in set(re.findall(r"`~?(skvbem(?:\.\w+)+)`", page.read_text("utf-8"))):
        assert resolve(name) is not None, name


def resolve(name):
    """The object of a dotted name; attributes of classes included."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ImportError:
            continue
        for attribute in parts[end:]:
            annotated = getattr(found, "__annotations__", {})
            found = getattr(found, attribute, annotated.get(attribute))
        return found
    return None


ROOMS = [
    "",
    "datasets",
    "durations",
    "structural",
    "emissions",
    "errors",
    "estimators",
    "evidence",
    "spaces.priors",
    "spaces",
    "plotting",
    "search",
    "search.strategies",
    "testing",
]


@pytest.mark.parametrize("room", ROOMS)
def test_public_names_are_on_the_api_pages(room):
    pages = "\n".join(page.read_text("utf-8") for page in sorted(DOC.glob("api/*.rst")))
    listed = set(re.findall(r"^   (?:~[\w.]+\.)?(\w+)$", pages, re.MULTILINE))
    public = importlib.import_module(f"skvbem.{room}".rstrip(".")).__all__
    assert {name for name in public if not name.startswith("_")} <= listed


def test_every_folder_of_examples_has_a_gallery_header():
    """Without it the gallery, which is also the test of the examples, passes over the folder."""
    examples = ROOT / "examples"
    folders = {examples, *(script.parent for script in examples.rglob("plot_*.py"))}
    assert [folder for folder in folders if not (folder / "README.txt").is_file()] == []


def test_cited_sources_are_listed():
    """Every tag such as [Beal (2.60)] in the code, and every [Tag]_ on the pages, stands on the page of references."""
    listed = set(re.findall(r"^\.\. \[(\w+)\]", (DOC / "references.rst").read_text("utf-8"), re.MULTILINE))
    cited = set()
    for page in PAGES:
        cited |= set(re.findall(r"\[(\w+)\]_", page.read_text("utf-8")))
    for module in (ROOT / "skvbem").glob("**/*.py*"):
        if module.suffix in {".py", ".pyx", ".pxd"}:
            cited |= set(re.findall(r"\[([A-Z]\w+) (?:\(\d|§|theorem|corollary|section)", module.read_text("utf-8")))
    assert cited <= listed, cited - listed
    assert {"Beal", "BG", "CH"} <= cited


def test_formulas_mean_what_they_mean_in_tex_and_go_on_in_the_next_line(monkeypatch):
    pytest.importorskip("sphinx")
    from docutils import nodes

    monkeypatch.syspath_prepend(str(DOC / "_ext"))
    converted = importlib.import_module("mathml").converted

    def symbols(text):
        return re.findall(r">([^<>\s]+)<", text)

    half = converted(nodes.math("", r"\tfrac12 \langle x \rangle"), as_block=False)
    assert re.search(r"<mn>1</mn>\s*<mn>2</mn>\s*</mfrac>", half)
    assert converted(nodes.math("", "k = 2"), as_block=False).count("<math") == 1
    long = nodes.math("", r"F = \ln Z - \mathrm{KL}(q(\theta) \| p(\theta)) - \sum_i w_i (a_i + b_i) ,\; G = 0")
    pieces, whole = (converted(long, as_block=as_block) for as_block in (False, True))
    assert symbols(pieces) == symbols(whole)
    begins = [symbols(piece)[0] for piece in pieces.split("<math")[1:]]
    assert begins == ["F", "\N{MINUS SIGN}", "\N{MINUS SIGN}", "G"]


def test_names_in_running_text_become_links(monkeypatch):
    """What is written in one way and means two things is none; a private home is no second meaning."""
    pytest.importorskip("sphinx")
    from sphinx.domains.python import ObjectEntry

    monkeypatch.syspath_prepend(str(DOC / "_ext"))
    code_links = importlib.import_module("code_links")
    kinds = {
        "skvbem.VBMixture": "class",
        "skvbem.VBMixture.predict": "method",
        "skvbem.VBHMM.predict": "method",
        "skvbem.evidence.certify_evidence": "function",
        "skvbem.evidence.certify.certify_evidence": "function",
        "skvbem.emissions.Step": "class",
        "skvbem.errors.Step": "class",
        "skvbem.evidence.exact.exact": "function",
    }
    objects = {name: ObjectEntry("page", name, kind, False) for name, kind in kinds.items()}
    objects["skvbem.estimators.mixture.VBMixture"] = ObjectEntry("page", "x", "class", True)
    meant = code_links.meanings(objects)
    for text in ("VBMixture", "skvbem.VBMixture", 'VBMixture(3, emission="auto")'):
        assert code_links.meaning_of(text, meant) == "skvbem.VBMixture"
    assert code_links.meaning_of("VBMixture.predict", meant) == "skvbem.VBMixture.predict"
    assert code_links.meaning_of("VBMixture.lower_bound_", meant) == "skvbem.VBMixture"
    for text in ("certify_evidence", "skvbem.reports.evidence_tables.certify_evidence"):
        assert code_links.meaning_of(text, meant) == "skvbem.evidence.certify_evidence"
    for text in ("skvbem.evidence.certify.certify_evidence", "skvbem.evidence.exact.exact"):  # by their whole names
        assert code_links.meaning_of(text, meant) == text
    for text in ("skvbem.families.certify_evidence", "skvbem.nowhere.VBMixture"):
        assert code_links.meaning_of(text, meant) is None
    for text in ("predict", "Step", "exact", "VBMixture + 1", "GaussianMixture(2)"):
        assert code_links.meaning_of(text, meant) is None
