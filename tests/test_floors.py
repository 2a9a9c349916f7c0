"""Imports point down: a room may import the floors below it, not the other rooms of its own floor."""

import ast
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from house_figures import (
    HARD_MAX_FILE,
    circles,
    code_lines,
    function_lengths,
    import_graph,
    kernel_function_lengths,
    lengths,
    private_accesses,
)

import skvbem

ROOT = Path(skvbem.__file__).parent
FLOORS = {
    "_kernels": 0,
    "_lazy": 0,
    "_arguments": 0,
    "_arithmetic": 0,
    "_docstrings": 0,
    "_memory": 0,
    "_names": 0,
    "_progress": 0,
    "_version": 0,
    "_numerics": 0,
    "_tabular": 0,
    "errors": 0,
    "families": 1,
    "graphs": 1,
    "data": 1,
    "blocks": 1,
    "tables": 1,
    "capabilities": 2,  # what scores may ask of models, which neither floor knows the other for
    "ascent": 2,  # full steps, which models take and the driver asks for
    "durations": 2,
    "emissions": 2,
    "spaces": 2,
    "structural": 2,
    "models": 3,
    "vbem": 3,
    "evidence": 4,
    "_absent": 5,
    "_compat": 5,
    "reading": 5,
    "optima": 5,
    "fitted": 6,
    "uncertainty": 7,
    "formats": 7,
    "fitting": 8,
    "reports": 9,
    "estimators": 10,
    "search": 10,
    "plotting": 10,
    "": 11,  # the package itself
    "_show_versions": 11,
    "datasets": 11,
    "persistence": 11,
    "testing": 11,
}
# What the other rooms of their floor may import.
SHARED = {
    "_absent",
    "_arguments",
    "_arithmetic",
    "_compat",
    "_docstrings",
    "_lazy",
    "_memory",
    "_names",
    "_numerics",
    "_progress",
    "_tabular",
    "_version",
    "_kernels",
    "errors",
}
NOT_FOR_EVIDENCE = {"models", "emissions", "graphs", "spaces", "data"}
ESTIMATORS_FLOOR = 5
# Emissions, durations and blocks as users hold them are small estimators, which need no more of scikit-learn than this.
FOR_EMISSIONS = {"sklearn.base", "skvbem._compat"}
# Rooms within rooms: these import the floors below them, not each other; files of no name here are on floor 0.
FLOORS_WITHIN = {
    "models": {
        "labels": 1,
        "sequences": 1,
        "network": 2,
        "mixture": 2,
        "hmm": 2,
        "linear_dynamical_system": 2,
        "mixed_network": 3,
        "structural": 3,
        "registry": 4,
    },
    "estimators": {
        "network": 1,
        "mixture": 1,
        "hmm": 1,
        "linear_dynamical_system": 1,
        "factor_analysis": 2,
        "mixed_network": 2,
        "discrete_dag": 3,
        "steps": 3,
    },
    "search": {"strategies": 1, "structure_search_cv": 2},
}
OPTIONAL = {"matplotlib", "pandas", "polars", "networkx", "narwhals", "mpl_toolkits", "dask"}
SOURCES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))
KERNELS = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.p[yx][xd]"))  # none where it is installed


def room_of(path):
    """The room a file is in: "" is the package's own `__init__`."""
    room = path.parts[0].removesuffix(path.suffix)
    return "" if room == "__init__" else room


@cache
def imports_of(path):
    """(module, names, line, level, whether inside a function) of every import of a file of the package."""
    return list(imports_within((ROOT / path).read_text()))


def imports_within(text):
    tree = ast.parse(text)
    inside = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for child in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, (), node.lineno, 0, id(node) in inside
        elif isinstance(node, ast.ImportFrom):
            names = tuple(alias.name for alias in node.names)
            yield node.module or "", names, node.lineno, node.level, id(node) in inside


def rooms_imported(module, names):
    """Rooms of skvbem that an import reaches."""
    top, _, rest = module.partition(".")
    if top != "skvbem":
        return set()
    if rest:
        return {rest.split(".")[0]}
    return {name if name in FLOORS else "" for name in names} or {""}


def breaches(room, module, names):
    """What is wrong with an import in a room, or nothing."""
    floor = FLOORS[room]
    for other in rooms_imported(module, names) - {room}:
        if other not in FLOORS:
            yield f"imports {other!r}, which is no room"
        elif FLOORS[other] > floor or (FLOORS[other] == floor and other not in SHARED and floor < FLOORS[""]):
            yield f"imports {other!r} of floor {FLOORS[other]} from floor {floor}"
        elif room == "evidence" and other in NOT_FOR_EVIDENCE:
            yield f"scores do not know models: imports {other!r}"
    if module.split(".")[0] == "sklearn" and floor < ESTIMATORS_FLOOR:
        yield f"imports scikit-learn on floor {floor}"


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_imports_point_down(path):
    room = room_of(path)
    assert room in FLOORS, f"{path} is in no known room"
    for module, names, line, level, _ in imports_of(path):
        assert level == 0, f"{path}:{line} is a relative import"
        if room in {"durations", "emissions", "structural"} and module in FOR_EMISSIONS:
            continue
        wrong = [*breaches(room, module, names)]
        assert not wrong, f"{path}:{line} {wrong}"


@pytest.mark.parametrize("path", KERNELS, ids=str)
def test_kernels_import_kernels_alone(path):
    for line in (ROOT / path).read_text().splitlines():
        found = re.match(r"\s*(?:from\s+([\w.]+)\s+c?import\b|c?import\s+([\w.]+))", line)
        module = found and (found[1] or found[2])
        if module:
            assert module.split(".")[0] in {"skvbem", "numpy", "libc", "cython", "cpython"}, line
            assert module.split(".")[0] != "skvbem" or module.startswith("skvbem._kernels."), line


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_what_need_not_be_installed_is_imported_where_it_is_used(path):
    """And matplotlib in the room that draws alone."""
    for module, _, line, _, inside in imports_of(path):
        top = module.split(".")[0]
        assert top not in OPTIONAL or inside, f"{path}:{line} imports {top} at the top"
        if top in {"matplotlib", "mpl_toolkits"}:
            assert room_of(path) == "plotting", f"{path}:{line}"


@pytest.mark.parametrize(
    "path",
    [path for path in SOURCES if FLOORS.get(room_of(path), FLOORS[""]) < ESTIMATORS_FLOOR],
    ids=str,
)
def test_below_the_estimators_randomness_is_an_rng(path):
    arguments = [node.arg for node in ast.walk(ast.parse((ROOT / path).read_text())) if isinstance(node, ast.arg)]
    assert "random_state" not in arguments


def test_a_breach_is_seen():
    """The rules themselves, on imports that are wrong and on ones that are right."""
    wrong = [
        ("families", "skvbem.graphs.dag", ("DAG",)),
        ("graphs", "skvbem", ("families",)),
        ("models", "skvbem.vbem.driver", ("run",)),
        ("vbem", "skvbem.models", ("DiscreteDAG",)),
        ("_numerics", "skvbem.families", ("Dirichlet",)),
        ("models", "sklearn.utils", ("check_array",)),
        ("evidence", "skvbem.models", ("DiscreteDAG",)),
        ("plotting", "skvbem.estimators", ("VBDiscreteDAG",)),
        ("estimators", "skvbem", ("__version__",)),
        ("data", "skvbem.utils", ("helper",)),
    ]
    right = [
        ("families", "skvbem._numerics", ("digamma",)),
        ("models", "skvbem.graphs.dag", ("DAG",)),
        ("estimators", "skvbem._compat", ("fit_context",)),
        ("estimators", "skvbem.fitted.network", ("LabeledTable",)),
        ("datasets", "skvbem.graphs.dag", ("DAG",)),
        ("evidence", "skvbem.vbem.fit", ("Fit",)),
        ("", "skvbem.estimators", ("VBDiscreteDAG",)),
    ]
    assert all([*breaches(*case)] for case in wrong)
    assert not any([*breaches(*case)] for case in right)


def breaches_within(path, module):
    """What is wrong with an import between rooms within a room, or nothing."""
    room = room_of(path)
    floors = FLOORS_WITHIN.get(room)
    parts = module.split(".")[1:]
    if floors is None or len(path.parts) < 2 or path.parts[1] == "__init__.py" or parts[:1] != [room] or not parts[1:]:
        return
    here, there = path.parts[1].removesuffix(".py"), parts[1]
    if here != there and (floors.get(there, 0) > floors.get(here, 0) or 0 < floors.get(there, 0) == floors.get(here)):
        yield f"imports {there!r} of floor {floors.get(there, 0)} of {room!r} from floor {floors.get(here, 0)}"


@pytest.mark.parametrize("path", [path for path in SOURCES if room_of(path) in FLOORS_WITHIN], ids=str)
def test_imports_point_down_within_rooms(path):
    wrong = [
        f"{path}:{line} {breach}"
        for module, names, line, _, _ in imports_of(path)
        for target in sorted({module, *(f"{module}.{name}" for name in names)})
        for breach in breaches_within(path, target)
    ]
    assert not wrong, "a new room within a room gets its floor in FLOORS_WITHIN, above the rooms that it imports"


def test_modules_do_not_import_each_other_in_a_circle():
    """Not for annotations either, nor inside functions."""
    assert circles(import_graph(ROOT)) == []


def test_rooms_speak_to_each_other_by_public_names():
    assert list(private_accesses(ROOT)) == []


def reasons_for_length(page, title="Lengths"):
    """File or function -> why it may be long, from the design page's section; or why a file may be small."""
    section = re.search(rf"^{title}\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)", page, re.MULTILINE | re.DOTALL)[1]
    entries = re.findall(r"^- ((?:``[\w/.:]+``(?:, )?)+): (\S.*)$", section, re.MULTILINE)
    return {name: reason for names, reason in entries for name in re.findall(r"[\w/.:]+", names)}


def test_files_and_functions_are_short():
    _, long_files, long_functions = lengths(ROOT)
    reasons = reasons_for_length((Path(__file__).parents[1] / "doc" / "design.rst").read_text())
    found = {length.what: length.lines for length in (*long_files, *long_functions)}
    assert not [what for what in reasons if what not in found and (KERNELS or not what.startswith("_kernels/"))]
    longer = {what: n_lines for what, n_lines in found.items() if what not in reasons}
    assert not longer, "cut them where two ideas share them, or say on the design page why not"
    assert not [length for length in long_files if length.lines > HARD_MAX_FILE and length.what.endswith(".py")]


def test_a_breach_of_the_rules_on_files_is_seen(tmp_path):
    """The rules on circles, private names, lengths and rooms within rooms, on a package that breaks each."""
    files = {
        "__init__.py": "",
        "one/__init__.py": "",
        "one/a.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import skvbem.two.b\n_hidden = 1\n",
        "two/__init__.py": "",
        "two/b.py": "class B:\n    def ask(self):\n        from skvbem.one import a\n        return self._own, a\n",
        "two/c.py": "from skvbem.one.a import _hidden\ndef f(x):\n    return x._hidden, hasattr(x, '_hidden')\n",
        "two/_d.py": "",
        "one/e.py": "import skvbem.two.c\nfrom skvbem.two._d import f\n",
        "one/long.py": 'def f():\n    """One."""\n    # two\n\n' + "    x = 1\n" * 60 + "y = 2\n" * 239,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert circles(import_graph(tmp_path)) == [["skvbem.one.a", "skvbem.two.b"]]
    assert [(use.file, use.kind, use.name) for use in private_accesses(tmp_path)] == [
        ("one/e.py", "module", "skvbem.two._d"),
        ("two/c.py", "name", "_hidden"),
        ("two/c.py", "attribute", "_hidden"),
        ("two/c.py", "string", "_hidden"),
    ]
    by_file, long_files, long_functions = lengths(tmp_path)
    assert by_file["one/long.py"] == 300
    assert not long_files
    assert [(long.what, long.lines) for long in long_functions] == [("one/long.py::f", 61)]
    assert code_lines('"""Text."""\nx = """a\n\nb"""  # c\n\n# d\n') == {2, 3, 4}
    assert dict(function_lengths("class A:\n    def f(self):\n        def g(): pass\n        return g\n")) == {
        "A.f": 3,
        "A.f.g": 1,
    }
    kernel = 'cdef double f(double x) noexcept:\n    """Text."""\n    # why\n    return x\n\ndef g(int n):\n    pass\n'
    assert dict(kernel_function_lengths(kernel)) == {"f": 2, "g": 2}
    kernel = f"cdef class A:\n    cdef int f(self):\n        cdef int x = int(1)\n        return x\n\n{kernel}"
    assert list(kernel_function_lengths(kernel)) == [("f", 3), ("f", 2), ("g", 2)]
    page = "Lengths\n-------\n\n- ``a/b.py::f``: one table\n- ``c.py``, ``e.py``: one idea\n"
    page += "\nNext\n----\n\n- ``d.py``: no"
    assert reasons_for_length(page) == {"a/b.py::f": "one table", "c.py": "one idea", "e.py": "one idea"}
    shared, mixture = Path("models/labels/gibbs.py"), Path("models/mixture/model.py")
    assert [*breaches_within(shared, "skvbem.models.mixture.model")]
    assert [*breaches_within(mixture, "skvbem.models.hmm.model")]
    assert not [*breaches_within(mixture, "skvbem.models.labels.gibbs")]
    assert not [*breaches_within(mixture, "skvbem.models.mixture.model")]
    assert not [*breaches_within(mixture, "skvbem.models.base")]


def run_python(code, folder, *options):
    """Python in a process of its own, with the package of a folder first in its path."""
    return subprocess.run(
        [sys.executable, "-P", *options, "-c", f"import sys; sys.path.insert(0, {str(folder)!r}); {code}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_importing_skvbem_imports_nothing_that_draws():
    done = run_python("import skvbem; print('matplotlib' in sys.modules, 'networkx' in sys.modules)", ROOT.parent)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False", "False"]


def test_without_the_compiled_part_one_error_says_what_to_type(tmp_path):
    ignored = shutil.ignore_patterns("*.so", "*.pyd", "*.dylib", "__pycache__")
    shutil.copytree(ROOT, tmp_path / "skvbem", ignore=ignored)
    done = run_python("import skvbem", tmp_path, "-S")  # no other installation of ours gets in its way
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: The compiled part of skvbem is missing")
    assert "python -m pip install ." in last
    deeper = run_python("from skvbem.families import Dirichlet", tmp_path, "-S")
    assert "The compiled part of skvbem is missing" in deeper.stderr


def test_every_module_is_installed():
    build = Path(__file__).parents[1] / "skvbem" / "meson.build"
    named = build.read_text()
    modules = [path.name for path in build.parent.glob("*.py")]
    assert [name for name in modules if f"'{name}'" not in named] == []
