"""Imports point down: a room may import the floors below it, not the other rooms of its own floor."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import skvbem

ROOT = Path(skvbem.__file__).parent
FLOORS = {
    "_kernels": 0,
    "_numerics": 0,
    "errors": 0,
    "families": 1,
    "graphs": 1,
    "data": 1,
    "blocks": 1,
    "tables": 1,
    "emissions": 2,
    "spaces": 2,
    "models": 3,
    "vbem": 3,
    "evidence": 4,
    "_compat": 5,
    "estimators": 5,
    "search": 5,
    "plotting": 5,
    "": 6,  # the package itself
    "_show_versions": 6,
    "datasets": 6,
    "testing": 6,
}
SHARED = {"_compat", "_numerics", "_kernels", "errors"}  # which the other rooms of their floor may import
NOT_FOR_EVIDENCE = {"models", "emissions", "graphs", "spaces", "data"}
ESTIMATORS_FLOOR = 5
FOR_USERS = {Path("evidence/user_functions.py")}  # hands what users say on to estimators
OPTIONAL = {"matplotlib", "pandas", "polars", "networkx", "narwhals", "mpl_toolkits", "threadpoolctl"}
SOURCES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))
KERNELS = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.p[yx][xd]"))  # none where it is installed


def room_of(path):
    """The room a file is in: "" is the package's own `__init__`."""
    room = path.parts[0].removesuffix(path.suffix)
    return "" if room == "__init__" else room


def imports_of(text):
    """(module, names, line, level, whether inside a function) of every import of a Python file."""
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
        elif FLOORS[other] > floor or (FLOORS[other] == floor and other not in SHARED and floor < 6):
            yield f"imports {other!r} of floor {FLOORS[other]} from floor {floor}"
        elif room == "evidence" and other in NOT_FOR_EVIDENCE:
            yield f"scores do not know models: imports {other!r}"
    if module.split(".")[0] == "sklearn" and floor < ESTIMATORS_FLOOR:
        yield f"imports scikit-learn on floor {floor}"


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_imports_point_down(path):
    room = room_of(path)
    assert room in FLOORS, f"{path} is in no known room"
    for module, names, line, level, _ in imports_of((ROOT / path).read_text()):
        assert level == 0, f"{path}:{line} is a relative import"
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
    for module, _, line, _, inside in imports_of((ROOT / path).read_text()):
        top = module.split(".")[0]
        assert top not in OPTIONAL or inside, f"{path}:{line} imports {top} at the top"
        if top in {"matplotlib", "mpl_toolkits"}:
            assert room_of(path) == "plotting", f"{path}:{line}"


@pytest.mark.parametrize(
    "path",
    [path for path in SOURCES if FLOORS.get(room_of(path), 6) < ESTIMATORS_FLOOR and path not in FOR_USERS],
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
        ("estimators", "skvbem.estimators.network.tables", ("LabeledTable",)),
        ("datasets", "skvbem.graphs.dag", ("DAG",)),
        ("evidence", "skvbem.vbem.fit", ("Fit",)),
        ("", "skvbem.estimators", ("VBDiscreteDAG",)),
    ]
    assert all([*breaches(*case)] for case in wrong)
    assert not any([*breaches(*case)] for case in right)


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
