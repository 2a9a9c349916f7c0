"""What the guides list is what is there: rooms, floors, emissions, scores, capabilities, strategies, stages of CI."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
from test_floors import FLOORS

import skvbem
from skvbem.capabilities import Capabilities
from skvbem.emissions import EMISSIONS
from skvbem.evidence import SCORES
from skvbem.search.strategies import STRATEGIES

ROOT = Path(__file__).parents[1]
DOC = ROOT / "doc"
PACKAGE = Path(skvbem.__file__).parent

pytestmark = pytest.mark.skipif(not DOC.is_dir(), reason="no documentation beside the tests")


def page(name):
    return (DOC / name).read_text("utf-8")


def between(text, mark):
    """The part of a page between two comments, such as ``.. rooms-begin`` and ``.. rooms-end``."""
    return text.split(f".. {mark}-begin")[1].split(f".. {mark}-end")[0]


def columns_of(table):
    """The cells of a simple table of reStructuredText, row by row; lines of the rows that rules separate."""
    rules = [line for line in table.splitlines() if re.fullmatch(r"(=+ *)+", line.strip()) and "=" in line]
    starts = [match.start() for match in re.finditer(r"=+", rules[0])]
    body = table.split(rules[0])[2]
    return [
        [line[a:b].strip() for a, b in zip(starts, [*starts[1:], None])] for line in body.splitlines() if line.strip()
    ]


def names_in(text):
    return set(re.findall(r"`+(\w+)`+", text))


def rooms_of_the_package():
    entries = {path.stem if path.suffix == ".py" else path.name for path in PACKAGE.iterdir()}
    return {
        name
        for name in entries
        if (PACKAGE / f"{name}.py").exists() or (PACKAGE / name / "__init__.py").exists()
        if name != "__init__"
    }


def test_every_room_is_on_the_design_page():
    listed = {name for row in columns_of(between(page("design.rst"), "rooms")) for name in names_in(row[0])}
    assert listed == rooms_of_the_package() - {"_compat", "_lazy", "_show_versions", "_version"}


def test_the_floors_of_the_design_page_are_those_of_the_test():
    listed = {
        name: int(row[0]) for row in columns_of(between(page("design.rst"), "floors")) for name in names_in(row[1])
    }
    assert listed == {name or "__init__": floor for name, floor in FLOORS.items()}


def test_floors_are_told_nowhere_else():
    for name in ("CONTRIBUTING.md", "README.md"):
        assert "may import" not in (ROOT / name).read_text("utf-8").replace("who may import whom", "")


def test_every_score_is_in_the_guide():
    guide = page("user_guide/scores.rst").replace("`", '"')
    assert [name for name in SCORES if f'"{name}"' not in guide] == []


@pytest.mark.parametrize("where", ["user_guide/emissions.rst", "extending.rst"])
def test_every_emission_is_in_the_guide(where):
    guide = page(where)
    assert [name for name in EMISSIONS if f'"{name}"' not in guide] == []


def test_every_capability_is_on_the_extending_page():
    listed = {name for row in columns_of(between(page("extending.rst"), "capabilities")) for name in names_in(row[0])}
    assert listed == {field.name for field in fields(Capabilities)}


def test_every_strategy_is_in_the_guide():
    guide = page("user_guide/searching.rst")
    assert [name for name in STRATEGIES if f'"{name}"' not in guide] == []


def test_every_stage_of_ci_is_told():
    told = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    stages = re.findall(r'^stage "([^"]+)"', (ROOT / ".ci/run").read_text("utf-8"), re.MULTILINE)
    assert "test" in stages
    paragraph = told.split("`.ci/run` goes through")[1].split("\n\n")[0].replace("\n", " ")
    assert [stage for stage in stages if stage not in paragraph] == []
