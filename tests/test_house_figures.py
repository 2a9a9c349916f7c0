"""What `house_figures.py` counts, on packages small enough to count by hand, and small files that ask for a reason."""

import importlib
from pathlib import Path

from house_figures import constants, counts_by_room, equal_runs, own_classes, small_files, walk_of
from test_floors import ROOT, reasons_for_length

from skvbem.emissions import Poisson

# Files that are still to be merged into the one that imports them.
NOT_MERGED_YET: set[str] = set()


def test_small_files_stand_where_they_are_used():
    """A file of few lines that one file beside it imports is a part of that file, or the design page says why not."""
    reasons = reasons_for_length((Path(__file__).parents[1] / "doc" / "design.rst").read_text(), "Small files")
    assert not [file for file in small_files(ROOT) if file not in {*reasons, *NOT_MERGED_YET}]


def package(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_small_files_are_those_with_one_importer_beside_them(tmp_path):
    one, two = "from skvbem.a.small import f\n", "from skvbem.a.used_twice import f\n"
    files = {"__init__.py": "", "a/__init__.py": "", "a/large.py": one + two, "b/__init__.py": "", "b/other.py": two}
    files |= {"a/small.py": "f = 1\n", "a/used_twice.py": "f = 2\n", "a/long.py": "x = 1\n" * 80}
    assert small_files(package(tmp_path, files)) == {"a/small.py": 1}


def test_constants_are_numbers_named_in_capitals(tmp_path):
    text = "A_B = 1\n_CC, _DD = 2.0, 1 / 3\nE_F: float = 1e-3\nname = 4\nWORDS = 'five'\nON = True\nG_H = other(6)\n"
    assert constants(package(tmp_path, {"a.py": text, "b.py": "x = 1\n"})) == {"a.py": 4}


def test_rooms_have_their_files_lines_and_questions(tmp_path):
    files = {"a/b.py": '"""One."""\n\n\ndef f(x):\n    return isinstance(x, int)\n', "a/c.py": "x = 1  # one\n"}
    count = counts_by_room(package(tmp_path, files))["a"]
    assert count == {"files": 2, "lines": 6, "code": 3, "docstrings": 1, "functions": 1, "isinstance": 1}


def test_runs_of_six_equal_lines_are_pairs(tmp_path):
    run = "".join(f"value_{k} = {k}\n" for k in range(8))
    files = {"a.py": run, "b.py": "first = 0\n" + run, "c.py": run[:50]}
    assert equal_runs(package(tmp_path, files)) == 1


def test_runs_of_declarations_are_told_apart(tmp_path):
    """Signatures, and parameters that a constructor keeps: what it does with them is code."""
    signature = "".join(f"        value_{k},\n" for k in range(8))
    kept = "".join(f"        self.value_{k} = value_{k}\n" for k in range(8))
    work = "".join(f"        print({k})\n" for k in range(6))
    head = f"class Thing:\n    @property\n    def __init__(\n        self,\n{signature}    ):\n{kept}"
    folder = package(tmp_path, {"a.py": head, "b.py": head})
    assert (equal_runs(folder), equal_runs(folder, declarations=False)) == (1, 0)
    folder = package(tmp_path, {"a.py": head + work, "b.py": head + work})
    assert (equal_runs(folder), equal_runs(folder, declarations=False)) == (1, 1)


def test_a_walk_ends_at_the_first_step(tmp_path, monkeypatch):
    """Functions before it, which of them pass on, and how deep it is."""
    call = "def call():\n    return middle()\ndef middle():\n    x = 1\n    return (lambda: work(x))()\n"
    files = {"walked/__init__.py": "", "walked/a.py": "from walked.b import work\n" + call}
    files["walked/b.py"] = "def work(x):\n    y = x\n    return step(y)\ndef step(y):\n    return y\n"
    monkeypatch.syspath_prepend(package(tmp_path, files))
    walked = importlib.import_module("walked.a")
    walk = walk_of(walked.call, "walked", {"step"})
    assert walk.figures() == {"functions": 4, "passing on": 2, "files": 2, "depth": 5}
    assert walk_of(walked.call, "walked", {"no such step"}).depth is None
    assert own_classes(Poisson()) == len([kind for kind in Poisson.__mro__ if kind.__module__.startswith("skvbem.")])
