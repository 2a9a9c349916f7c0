"""What the house costs: counts by room, walks to the first E step, reads of X, circles, private accesses, times.

It reports, and pins nothing. Static figures are of the source in a folder, walks and times of a Python's skvbem::

    python -P tests/house_figures.py --source .
    python -P tests/house_figures.py --source . --before ../older --before-python ../older/.venv/bin/python

The second prints two columns, of an older checkout and of this one, by this script: both are counted alike.

Definitions:

walk
    Python functions of skvbem, lambdas among them and comprehensions not, that are entered from a public call on,
    before a function named `advance`, `expect` or `anneal` is, or until it returns. Tables are small, a fit before
    leaves caches warm. A function *passes on* if it is a lambda, or has nothing but one call below its docstring.
    *Depth* is that of the first step.
own classes
    Classes of skvbem among those that an estimator derives from, itself included.
reads of X
    Calls of the functions that read tables and sequences, `READERS` wherever they are defined, in a `StructureSearchCV`
    over four settings with its default scoring and without workers. What a reader hands to another is one reading, and
    a value of skvbem's own, which was read before, is none.
circles
    Sets of modules that reach each other by imports: strongly connected components, of two modules and more, of all
    imports, those for annotations alone and those inside functions included.
private accesses across rooms
    ``x._name``, where x is not self, cls or super(), for a name that another room of skvbem defines and this one does
    not; and ``from skvbem.room import _name`` of a name that is no module. The compiled room is shared. Names that
    stand as strings in `hasattr` and `getattr`, and modules that are private to another room, are counted apart.
constants
    Numbers, and tuples of them, that modules name in capitals.
lines of code
    Lines that hold a token other than a comment or a docstring.
equal runs
    Pairs of places, in different files or far apart in one, that share six lines of code or more to the letter. Without
    declarations: imports, lists of names, signatures and assignments of parameters to attributes of their names are not
    counted, of which constructors have many.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import inspect
import io
import itertools
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time
import tokenize
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

MAX_FILE, MAX_FUNCTION = 300, 60
#: Not even with a reason.
HARD_MAX_FILE = 500
#: Lines of a file that only one other file of its folder imports, below which it asks for a reason to be.
LEAST_FILE = 80
MAX_KERNEL_FILE, MAX_KERNEL_FUNCTION = 400, 100
#: Rooms whose names all rooms may use.
SHARED_ROOMS = {"_kernels"}
E_STEPS = {"advance", "expect", "anneal"}
#: Estimators that expect something before their first step, in their starts.
EXPECT_EARLIER = ("VBLinearDynamicalSystem", "VBFactorAnalysis")
READERS = {"read_table", "read_sequences"}


# Of the source -------------------------------------------------------------------------------------------------------


def package_in(folder) -> Path:
    """The folder of the package, given itself or the checkout around it."""
    folder = Path(folder).resolve()
    return folder / "skvbem" if (folder / "skvbem" / "__init__.py").exists() else folder


def sources(root: Path, *suffixes: str) -> list[Path]:
    """Python files of the package, or those of other suffixes, sorted."""
    return sorted(path for path in root.rglob("*") if path.suffix in (suffixes or (".py",)))


def room_of(path: Path, root: Path) -> str:
    """The room a file is in: the first folder, or the file's own name; "" for the package's `__init__`."""
    room = path.relative_to(root).parts[0].removesuffix(path.suffix)
    return "" if room == "__init__" else room


def module_of(path: Path, root: Path) -> str:
    """The dotted name of a file."""
    parts = ["skvbem", *path.relative_to(root).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def import_graph(root: Path) -> dict[str, set[str]]:
    """Module -> the modules of skvbem that it imports, for annotations alone or inside functions too."""
    modules = {module_of(path, root): path for path in sources(root)}
    graph: dict[str, set[str]] = {name: set() for name in modules}
    for name, path in modules.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                graph[name] |= {alias.name for alias in node.names} & modules.keys()
            elif isinstance(node, ast.ImportFrom) and node.module in modules:
                named = {f"{node.module}.{alias.name}" for alias in node.names}
                graph[name] |= named & modules.keys()
                if named - modules.keys():  # a name of the module itself
                    graph[name].add(node.module)
        graph[name].discard(name)
    return graph


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected components of two modules and more, the largest first."""
    reached = {name: _reachable(graph, name) for name in graph}
    found = {
        tuple(sorted(other for other in reached[name] if name in reached[other]))
        for name in graph
        if name in reached[name]
    }
    return sorted((list(circle) for circle in found if len(circle) > 1), key=lambda circle: (-len(circle), circle))


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    """The modules that a module imports in one step or more."""
    reached: set[str] = set()
    open_ = [start]
    while open_:
        more = graph[open_.pop()] - reached
        reached |= more
        open_ += more
    return reached


@dataclass(frozen=True, order=True)
class PrivateAccess:
    """A use in one room of a private name of another: kind is "attribute", "name", "string" or "module"."""

    file: str
    line: int
    kind: str
    name: str
    room: str

    def __str__(self):
        return f"{self.file}:{self.line} {self.kind} {self.name} of {self.room}"


def is_private(name: str) -> bool:
    """Whether a name begins with one underscore."""
    return name.startswith("_") and not name.startswith("__")


def private_accesses(root: Path) -> list[PrivateAccess]:
    """Uses of private names of other rooms; see the module's docstring."""
    trees = {path: ast.parse(path.read_text()) for path in sources(root)}
    rooms_that_define = defaultdict(set)
    for path, tree in trees.items():
        for name in _names_defined(tree):
            rooms_that_define[name].add(room_of(path, root))
    found = []
    for path, tree in trees.items():
        here, file = room_of(path, root), path.relative_to(root).as_posix()
        for line, kind, name, rooms in _private_uses(tree, rooms_that_define):
            if rooms and here not in rooms and not rooms & SHARED_ROOMS:
                found.append(PrivateAccess(file, line, kind, name, " or ".join(sorted(rooms))))
    return sorted(found)


def _names_defined(tree: ast.AST) -> Iterator[str]:
    """Names of functions and classes, and of what is assigned to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Dict):  # attributes that are published from a dict
            yield from (key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str))


def _private_uses(tree: ast.AST, rooms_that_define) -> Iterator[tuple[int, str, str, set[str]]]:
    """(line, kind, name, rooms that it belongs to) of private names used in a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and not _is_own(node.value):
            yield node.lineno, "attribute", node.attr, rooms_that_define[node.attr]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("hasattr", "getattr", "setattr"):
            name = getattr(node.args[1], "value", None) if len(node.args) > 1 else None
            if isinstance(name, str) and is_private(name):
                yield node.lineno, "string", name, rooms_that_define[name]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("skvbem."):
            _, room, *below = node.module.split(".")
            if any(map(is_private, below)):
                yield node.lineno, "module", node.module, {room}
            yield from ((node.lineno, "name", alias.name, {room}) for alias in node.names if is_private(alias.name))


def _is_own(value: ast.AST) -> bool:
    """Whether an attribute is asked of the object itself."""
    of_super = isinstance(value, ast.Call) and getattr(value.func, "id", "") == "super"
    return of_super or (isinstance(value, ast.Name) and value.id in ("self", "cls"))


@cache
def code_lines(text: str) -> frozenset[int]:
    """Numbers of the lines of a Python file that hold code: no blanks, comments or docstrings."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            docstrings |= set(range(node.lineno, node.end_lineno + 1))
    silent = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    silent |= {tokenize.ENCODING, tokenize.ENDMARKER}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in silent:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return frozenset(lines - docstrings)


@cache
def kernel_code_lines(text: str) -> frozenset[int]:
    """Numbers of the lines of a Cython file that hold code."""
    blank = lambda match: re.sub(r"[^\n]", "", match[0])  # noqa: E731
    text = re.sub(r'"""(?:.|\n)*?"""', blank, text)
    lines = enumerate(text.splitlines(), 1)
    return frozenset(i for i, line in lines if line.strip() and not line.strip().startswith("#"))


def function_lengths(text: str) -> Iterator[tuple[str, int]]:
    """(name, lines of code) of every function and method of a Python file."""
    lines = code_lines(text)

    def visit(node, prefix):
        for child in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}{child.name}"
                if not isinstance(child, ast.ClassDef):
                    yield name, len(lines & set(range(child.lineno, child.end_lineno + 1)))
                name += "."
            yield from visit(child, name)

    yield from visit(ast.parse(text), "")


def kernel_function_lengths(text: str) -> Iterator[tuple[str, int]]:
    """(name, lines of code) of every function and method of a Cython file: up to the next line that is no deeper."""
    code, lines = kernel_code_lines(text), text.splitlines()
    heads = [i for i, line in enumerate(lines, 1) if re.match(r"(?: {4})?(?:cdef|cpdef|def)\b[^=]*\(", line)]
    for head in heads:
        margin, end = re.match(r" *", lines[head - 1])[0], head + 1
        while end <= len(lines) and re.match(rf"\s*$|{margin}[\s)#]", lines[end - 1]):
            end += 1
        name = re.search(r"(\w+)\s*(?:\[[^\]]*\])?\(", lines[head - 1])
        yield name[1] if name else lines[head - 1], len(code & set(range(head, end)))


@dataclass(frozen=True)
class Length:
    """A file, or a function of it, and its lines of code."""

    what: str
    lines: int


def lengths(root: Path) -> tuple[dict[str, int], list[Length], list[Length]]:
    """Lines of code by file, files above the limit, and functions above theirs."""
    by_file, long_files, long_functions = {}, [], []
    for path in sources(root, ".py", ".pyx"):
        text, file = path.read_text(), path.relative_to(root).as_posix()
        kernel = path.suffix == ".pyx"
        by_file[file] = len((kernel_code_lines if kernel else code_lines)(text))
        if by_file[file] > (MAX_KERNEL_FILE if kernel else MAX_FILE):
            long_files.append(Length(file, by_file[file]))
        for name, n_lines in (kernel_function_lengths if kernel else function_lengths)(text):
            if n_lines > (MAX_KERNEL_FUNCTION if kernel else MAX_FUNCTION):
                long_functions.append(Length(f"{file}::{name}", n_lines))
    return by_file, long_files, long_functions


WORDS = ("isinstance", "hasattr", "getattr", "cast")


def counts_by_room(root: Path) -> dict[str, Counter]:
    """Room -> files, lines, lines of code and of docstrings, functions, and words that ask what a value is."""
    rooms: dict[str, Counter] = defaultdict(Counter)
    for path in sources(root, ".py", ".pyx", ".pxd", ".h", ".pyi"):
        text, count = path.read_text(), rooms[room_of(path, root) or "__init__"]
        count.update(files=1, lines=text.count("\n"))
        if path.suffix != ".py":
            count["code"] += len(kernel_code_lines(text))
            continue
        code = code_lines(text)
        count["code"] += len(code)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
                first = node.body[0] if node.body else None
                if ast.get_docstring(node, clean=False) is not None:
                    count["docstrings"] += first.end_lineno - first.lineno + 1
                count["functions"] += isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in WORDS:
                count[node.func.id] += 1
    return rooms


def constants(root: Path) -> Counter:
    """File -> numbers that it names in capitals."""
    found: Counter = Counter()
    for path in sources(root):
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [
                each for target in targets for each in (target.elts if isinstance(target, ast.Tuple) else [target])
            ]
            values = node.value.elts if isinstance(node.value, ast.Tuple) and len(names) > 1 else [node.value]
            for name, value in zip(names, values):
                is_name = isinstance(name, ast.Name) and re.fullmatch(r"_?[A-Z][A-Z0-9_]+", name.id)
                found[path.relative_to(root).as_posix()] += bool(is_name) and _is_number(value)
    return +found


def _is_number(value: ast.expr) -> bool:
    try:
        known = {"np": math, "math": math, "__builtins__": {"float": float, "int": int}}
        number = eval(compile(ast.Expression(value), "", "eval"), known)
    except Exception:  # of other names
        return False
    return isinstance(number, int | float) and not isinstance(number, bool)


@cache
def declared_lines(text: str) -> frozenset[int]:
    """Numbers of the lines of a Python file that declare: imports, `__all__`, signatures, parameters kept."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            lines |= set(range(first, max(node.body[0].lineno, node.lineno + 1)))
            lines |= {each.lineno for each in node.body if ast.unparse(each) == "..."}
        elif isinstance(node, ast.Import | ast.ImportFrom):
            lines |= set(range(node.lineno, node.end_lineno + 1))
        elif isinstance(node, ast.Assign):
            kept = "__all__", f"self.{ast.unparse(node.value)}"
            lines |= set(range(node.lineno, node.end_lineno + 1)) if ast.unparse(node.targets[0]) in kept else set()
    return frozenset(lines)


def equal_runs(root: Path, n: int = 6, *, declarations: bool = True) -> int:
    """How many pairs of places share so many lines of code or more to the letter, with or without declarations."""
    places: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
    for k, path in enumerate(sources(root, ".py", ".pyx")):
        text = path.read_text()
        code = sorted((kernel_code_lines if path.suffix == ".pyx" else code_lines)(text))
        if path.suffix == ".py" and not declarations:
            code = sorted(set(code) - declared_lines(text))
        lines = [line.strip() for line in (text.splitlines()[i - 1] for i in code)]
        lines = [line for line in lines if len(line) > 2 and not line.startswith(("import ", "from "))]
        for at in range(len(lines) - n + 1):
            places[tuple(lines[at : at + n])].append((k, at))
    pairs = {
        (one[0], one[1] - other[1], other[0]): None
        for found in places.values()
        if 1 < len(found) <= 8
        for one, other in itertools.combinations(found, 2)
        if one[0] != other[0] or abs(one[1] - other[1]) >= n
    }
    return len(pairs)


def small_files(root: Path) -> dict[str, int]:
    """Files of few lines that one other file alone imports, which stands in the same folder, and their lines."""
    graph, found = import_graph(root), {}
    for path in sources(root):
        name, n_lines = module_of(path, root), path.read_text().count("\n")
        importers = [other for other, imported in graph.items() if name in imported]
        if path.stem == "__init__" or n_lines >= LEAST_FILE or len(importers) != 1:
            continue
        if importers[0].rpartition(".")[0] == name.rpartition(".")[0]:
            found[path.relative_to(root).as_posix()] = n_lines
    return found


# Of what is installed ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Walk:
    """A public call: the functions that it enters, in order, and how deep the first of `steps` is (None if none is)."""

    calls: int
    functions: dict[tuple[str, str], str]  # file and name -> "passes on", "one line" or "works"
    depth: int | None

    @property
    def files(self) -> list[str]:
        """Files entered, in order."""
        return list(dict.fromkeys(file for file, _ in self.functions))

    def figures(self) -> dict[str, int | None]:
        """Numbers to compare."""
        passing = sum(kind == "passes on" for kind in self.functions.values())
        counts = {"functions": len(self.functions), "passing on": passing, "files": len(self.files)}
        return {**counts, "depth": self.depth}


def walk_of(call: Callable[[], object], package: str, steps: set[str]) -> Walk:
    """The walk of a call through a package."""
    root = str(Path(importlib.util.find_spec(package).origin).parent)
    functions: dict[tuple[str, str], str] = {}
    calls = now = 0
    depth: int | None = None

    def entered(frame, event, _):
        nonlocal calls, now, depth
        code = frame.f_code
        if depth is not None or not code.co_filename.startswith(root):
            return
        if code.co_name.startswith("<") and code.co_name != "<lambda>":
            return
        if event == "call":
            now += 1
            if code.co_name in steps:
                depth = now
                return
            calls += 1
            name = (code.co_filename[len(root) + 1 :], f"{code.co_qualname}:{code.co_firstlineno}")
            functions.setdefault(name, _kind_of(code.co_filename, code.co_firstlineno, code.co_name))
        elif event == "return":
            now -= 1

    sys.setprofile(entered)
    try:
        call()
    finally:
        sys.setprofile(None)
    return Walk(calls, functions, depth)


@cache
def _functions_of(path: str) -> dict[int, ast.FunctionDef]:
    functions = (node for node in ast.walk(ast.parse(Path(path).read_text())) if isinstance(node, ast.FunctionDef))
    return {node.decorator_list[0].lineno if node.decorator_list else node.lineno: node for node in functions}


def _kind_of(path: str, line: int, name: str) -> str:
    """Whether a function passes on, has one line, or works."""
    if name == "<lambda>":
        return "passes on"
    node = _functions_of(path).get(line)
    body = [each for each in node.body if ast.get_docstring(node) is None or each is not node.body[0]] if node else []
    if len(body) == 1 and isinstance(body[0], ast.Return | ast.Expr):
        return "passes on" if isinstance(body[0].value, ast.Call) else "one line"
    return "works"


def own_classes(estimator: object) -> int:
    """How many classes of skvbem an estimator derives from, itself included."""
    return sum(kind.__module__.startswith("skvbem.") for kind in type(estimator).__mro__)


def readings(readers: set[str], work: Callable[[], object]) -> int:
    """How often functions of skvbem that bear one of these names read something that was not read before."""
    root = str(Path(importlib.util.find_spec("skvbem").origin).parent)
    count = depth = 0

    def entered(frame, event, _):
        nonlocal count, depth
        code = frame.f_code
        if event not in ("call", "return") or code.co_name not in readers or not code.co_filename.startswith(root):
            return
        if event == "call":
            what = frame.f_locals[code.co_varnames[0]]
            count += depth == 0 and not type(what).__module__.startswith("skvbem.")
        depth += 1 if event == "call" else -1

    sys.setprofile(entered)
    try:
        work()
    finally:
        sys.setprofile(None)
    if not count:
        raise RuntimeError(f"No function named {' or '.join(sorted(readers))} was entered: say which one reads X.")
    return count


def small_tables():
    """Numbers and categories without missing cells, and columns of both kinds."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    numbers = np.concatenate([rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 4])
    categories = pd.DataFrame({name: rng.choice(["a", "b"], 40) for name in "wxyz"})
    return numbers, categories, categories.assign(v=numbers[:, 0])


def public_calls() -> dict[str, tuple[object, Callable[[], object]]]:
    """Title -> estimator and public call: fits of every estimator and a search, and what a fitted one answers."""
    import skvbem

    numbers, categories, mixed = small_tables()
    sequences, some = [numbers[:20], numbers[20:]], {"n_init": 2, "max_iter": 4, "random_state": 0}
    fitted = {
        "VBMixture": (skvbem.VBMixture(2, **some), numbers),
        "VBHMM": (skvbem.VBHMM(2, **some), sequences),
        "VBDiscreteDAG": (skvbem.VBDiscreteDAG(latents=2, **some), categories),
        "VBLinearDynamicalSystem": (skvbem.VBLinearDynamicalSystem(1, **some), sequences),
        "VBFactorAnalysis": (skvbem.VBFactorAnalysis(1, **some), numbers),
        "VBNetwork": (skvbem.VBNetwork(latents=2, **some), mixed),
    }
    search = skvbem.StructureSearchCV(
        skvbem.VBDiscreteDAG(n_init=2, max_iter=4), {"latents": [2, 3, 4]}, random_state=0
    )
    fitted["StructureSearchCV"] = (search, categories)
    calls: dict[str, tuple[object, Callable[[], object]]] = {
        f"{name}.fit": (estimator, lambda estimator=estimator, X=X: estimator.fit(X))
        for name, (estimator, X) in fitted.items()
    }
    mixture = fitted["VBMixture"][0]
    calls["VBMixture.log_evidence, auto"] = (mixture, lambda: mixture.log_evidence(numbers, kind="auto"))
    for name in ("VBMixture", "VBHMM", "VBDiscreteDAG"):
        estimator, X = fitted[name]
        calls[f"{name}.predict_proba"] = (estimator, lambda estimator=estimator, X=X: estimator.predict_proba(X))
    return calls


def walks(show: bool = False) -> dict[str, int | None]:
    """Figures of every walk, named by its call; the functions themselves are printed if asked for."""
    figures: dict[str, int | None] = {}
    for title, (estimator, call) in public_calls().items():
        call()
        walk = walk_of(call, "skvbem", {"advance"} if title.startswith(EXPECT_EARLIER) else E_STEPS)
        figures |= {f"{title}: {name}": number for name, number in walk.figures().items() if number is not None}
        if title.endswith(".fit"):
            figures[f"{title}: own classes"] = own_classes(estimator)
        for (file, name), kind in walk.functions.items() if show else ():
            print(f"  {kind:<10} {file}:{name}")
    return figures


def dynamic_figures(show: bool = False) -> dict[str, float | None]:
    """Figures of what is installed."""
    from skvbem import VBHMM, StructureSearchCV, VBDiscreteDAG, VBMixture

    figures: dict[str, float | None] = dict(walks(show))
    numbers, categories, _ = small_tables()
    names = ["w", "x", "y", "z"]
    networks = [[], [names[:2]], [names[1:3]], [names[:2], names[1:3]]]
    spaces = {"n_components": [1, 2, 3, 4]}
    cases = (
        (VBMixture(2, random_state=0), numbers, spaces),
        (VBHMM(2, random_state=0), numbers, spaces),
        (VBDiscreteDAG(random_state=0), categories, [[tuple(edge) for edge in edges] for edges in networks]),
    )
    for estimator, X, space in cases:
        search = StructureSearchCV(estimator, space, random_state=0)
        figures[f"reads of X: {type(estimator).__name__}"] = readings(READERS, lambda s=search, X=X: s.fit(X))
    for kind in (VBMixture, VBHMM, VBDiscreteDAG, StructureSearchCV):
        figures[f"parameters: {kind.__name__}"] = len(inspect.signature(kind).parameters)
    figures["seconds: import skvbem"] = median_import("import skvbem")
    figures["seconds: what it imports, alone"] = median_import(
        "import sklearn.utils, sklearn.base, scipy.special, joblib"
    )
    for estimator, X, _ in cases:
        figures[f"seconds: fit of one row, {type(estimator).__name__}"] = median_fit(estimator, X[:1])
    return figures


def median_import(statement: str, n: int = 5) -> float:
    """Seconds that an import takes in a process of its own, the median of some."""
    code = f"import time; began = time.perf_counter(); {statement}; print(time.perf_counter() - began)"
    done = [subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True) for _ in range(n)]
    return statistics.median(float(run.stdout) for run in done)


def median_fit(estimator, X, n: int = 25) -> float:
    """Seconds that a fit takes, the median of some."""
    seconds = []
    for _ in range(n):
        began = time.perf_counter()
        estimator.fit(X)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def static_figures(root: Path) -> dict[str, int]:
    """Figures of the source in a folder."""
    rooms, by_file, long_files, long_functions = counts_by_room(root), *lengths(root)
    every = sum(rooms.values(), Counter())
    figures = {f"all: {name}": every[name] for name in ("files", "lines", "code", "docstrings", "functions", *WORDS)}
    alone = [room for room, count in rooms.items() if count["files"] == 1]
    rooms["modules beside rooms"] = sum((rooms.pop(room) for room in alone), Counter())
    for room, count in sorted(rooms.items(), key=lambda item: -item[1]["lines"]):
        figures |= {f"{room}: {name}": count[name] for name in ("files", "lines", "code", "isinstance")}
    named = constants(root)
    figures |= {"constants": named.total(), "files with constants": len(named)}
    kinds = Counter(use.kind for use in private_accesses(root))
    return figures | {
        "circles of imports": len(circles(import_graph(root))),
        "private accesses across rooms": kinds["attribute"] + kinds["name"],
        "private accesses by strings": kinds["string"],
        "private modules of other rooms": kinds["module"],
        f"files over {MAX_FILE} lines of code": len(long_files),
        f"functions over {MAX_FUNCTION} lines of code": len(long_functions),
        f"files below {LEAST_FILE} lines with one importer": len(small_files(root)),
        "longest file": max(by_file.values(), default=0),
        "equal runs of six lines": equal_runs(root),
        "equal runs without declarations": equal_runs(root, declarations=False),
    }


def details(root: Path) -> Iterator[str]:
    """Lines that name what breaks a rule, and the files with most constants."""
    yield from (f"circle: {' '.join(circle)}" for circle in circles(import_graph(root)))
    yield from (f"private: {use}" for use in private_accesses(root))
    _, long_files, long_functions = lengths(root)
    yield from (f"long: {length.lines:>4} {length.what}" for length in (*long_files, *long_functions))
    yield from (f"small: {n:>4} {file}" for file, n in small_files(root).items())
    yield from (f"constants: {n:>3} {file}" for file, n in constants(root).most_common(12))


def figures_of(source: Path, python: str | None, static: bool) -> dict[str, float | None]:
    """All figures: of the source in a folder, and of the skvbem of a Python, which runs this script."""
    figures: dict[str, float | None] = dict(static_figures(package_in(source)))
    if not static:
        command = [python or sys.executable, "-P", __file__, "--dynamic"]
        own = {name: value for name, value in os.environ.items() if python is None or name != "PYTHONPATH"}
        figures |= json.loads(subprocess.run(command, capture_output=True, text=True, check=True, env=own).stdout)
    return figures


def main():
    """Print all figures, of two versions side by side if another is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = Path(importlib.util.find_spec("skvbem").origin).parent
    parser.add_argument("--source", default=here, help="checkout or package folder for static figures")
    parser.add_argument("--static", action="store_true", help="no figures of what is installed")
    parser.add_argument("--before", metavar="FOLDER", help="an older checkout, shown beside")
    parser.add_argument("--before-python", metavar="PYTHON", help="the Python that has the older version")
    parser.add_argument("--details", action="store_true", help="name functions of walks, and what breaks a rule")
    parser.add_argument("--dynamic", action="store_true", help="figures of what is installed alone, as JSON")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.dynamic:
        print(json.dumps(dynamic_figures()))
        return
    after = figures_of(options.source, None, options.static)
    static = options.static or options.before_python is None
    before = figures_of(options.before, options.before_python, static) if options.before else {}
    for name in dict.fromkeys([*before, *after]):
        shown = (
            f"{each[name]:>12.6g}" if each.get(name) is not None else f"{'':>12}" for each in (before, after) if each
        )
        print(f"{name:<52}{''.join(shown)}")
    if options.details:
        print(*details(package_in(options.source)), sep="\n")
        if not options.static:
            walks(show=True)


if __name__ == "__main__":
    main()
