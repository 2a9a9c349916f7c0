"""What the house costs: files on the way to the first E step, reads of X, circles, private accesses, lengths, times.

Static figures are of the source in a folder, the others of the skvbem that is installed for this Python::

    python -P tests/house_figures.py --source .

Definitions, so that figures of two versions compare:

files to the first E step
    Distinct source files of skvbem in which a Python function is entered from the call of `fit` on, before a function
    named `advance` or `expect` is. Tables are small: numbers without missing cells, one sequence of them, categories
    with a latent class. Of scikit-learn's BayesianGaussianMixture: its files, before `_e_step`.
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
lines of code
    Lines that hold a token other than a comment or a docstring.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import inspect
import io
import re
import statistics
import subprocess
import sys
import time
import tokenize
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

MAX_FILE, MAX_FUNCTION = 300, 60
MAX_KERNEL_FILE, MAX_KERNEL_FUNCTION = 400, 100
#: Rooms whose names all rooms may use.
SHARED_ROOMS = {"_kernels"}
E_STEPS = {"advance", "expect"}
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


# Of what is installed ------------------------------------------------------------------------------------------------


class _Reached(BaseException):
    """The first E step has begun."""


def files_to_first_step(fit: Callable[[], object], package: str, steps: set[str]) -> list[str]:
    """Files of a package in which a function is entered before one of `steps` is, in this order."""
    root = str(Path(importlib.util.find_spec(package).origin).parent)
    files: dict[str, None] = {}

    def entered(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(root):
            if code.co_name in steps:
                raise _Reached
            files.setdefault(code.co_filename[len(root) + 1 :])

    sys.setprofile(entered)
    try:
        fit()
    except _Reached:
        return list(files)
    finally:
        sys.setprofile(None)
    raise RuntimeError(f"No function named {' or '.join(sorted(steps))} was entered: say which the E step is.")


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
    """Numbers and categories without missing cells."""
    import numpy as np

    rng = np.random.default_rng(0)
    numbers = np.concatenate([rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 4])
    return numbers, rng.integers(0, 2, size=(40, 3))


def dynamic_figures() -> Iterator[str]:
    """Lines on what is installed."""
    from sklearn.mixture import BayesianGaussianMixture

    import skvbem
    from skvbem import VBHMM, StructureSearchCV, VBDiscreteDAG, VBMixture

    numbers, categories = small_tables()
    cases = {
        "VBMixture": (VBMixture(2, random_state=0), numbers),
        "VBHMM": (VBHMM(2, random_state=0), numbers),
        "VBDiscreteDAG": (VBDiscreteDAG(random_state=0), categories),
    }
    yield f"installed: skvbem {skvbem.__version__}"
    yield ""
    yield "files to the first E step"
    for name, (estimator, X) in cases.items():
        files = files_to_first_step(lambda e=estimator, X=X: e.fit(X), "skvbem", E_STEPS)
        yield f"  {name:<26}{len(files):>4}  {' '.join(files)}"
    peer = BayesianGaussianMixture(n_components=2, random_state=0)
    files = files_to_first_step(lambda: peer.fit(numbers), "sklearn", {"_e_step"})
    own = sum(file.startswith("mixture") for file in files)
    yield f"  {'BayesianGaussianMixture':<26}{len(files):>4}  of which {own} of its own room"
    yield ""
    yield "reads of X in a search over four settings"
    networks = [[], [("x0", "x1")], [("x1", "x2")], [("x0", "x1"), ("x1", "x2")]]
    spaces = {
        "VBMixture": {"n_components": [1, 2, 3, 4]},
        "VBHMM": {"n_components": [1, 2, 3, 4]},
        "VBDiscreteDAG": networks,
    }
    for name, (estimator, X) in cases.items():
        search = StructureSearchCV(estimator, spaces[name], random_state=0)
        yield f"  {name:<26}{readings(READERS, lambda s=search, X=X: s.fit(X)):>4}"
    yield ""
    yield "parameters of constructors"
    for kind in (VBMixture, VBHMM, VBDiscreteDAG, StructureSearchCV):
        yield f"  {kind.__name__:<26}{len(inspect.signature(kind).parameters):>4}"
    yield ""
    yield "seconds, median"
    yield f"  {'import skvbem':<26}{median_import('import skvbem'):>8.3f}  of 5 processes"
    alone = median_import("import sklearn.utils, sklearn.base, scipy.special, joblib")
    yield f"  {'what it imports, alone':<26}{alone:>8.3f}"
    for name, (estimator, X) in cases.items():
        yield f"  {'fit of one row, ' + name:<32}{median_fit(estimator, X[:1]):>9.5f}  of 25 fits"


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


def static_figures(root: Path) -> Iterator[str]:
    """Lines on the source in a folder."""
    found = circles(import_graph(root))
    yield f"circles of imports: {len(found)}"
    yield from (f"  {len(circle):>3}  {' '.join(circle)}" for circle in found)
    yield ""
    uses = private_accesses(root)
    direct = [use for use in uses if use.kind in ("attribute", "name")]
    yield f"private accesses across rooms: {len(direct)}"
    yield from (f"  {use}" for use in direct)
    for kind, title in (("string", "by hasattr and getattr"), ("module", "imports of private modules of other rooms")):
        some = [use for use in uses if use.kind == kind]
        yield f"and {title}: {len(some)}"
        yield from (f"  {use}" for use in some)
    yield ""
    by_file, long_files, long_functions = lengths(root)
    by_room: dict[str, list[int]] = defaultdict(list)
    for file, n_lines in by_file.items():
        by_room[room_of(root / file, root)].append(n_lines)
    yield f"lines of code: {sum(by_file.values())} in {len(by_file)} files"
    for room, counts in sorted(by_room.items(), key=lambda item: -sum(item[1])):
        yield f"  {room or '__init__':<16}{sum(counts):>7} in {len(counts):>3} files"
    yield ""
    for title, found in (
        (f"files over {MAX_FILE} lines of code (kernels {MAX_KERNEL_FILE})", long_files),
        (f"functions over {MAX_FUNCTION} lines of code (kernels {MAX_KERNEL_FUNCTION})", long_functions),
    ):
        yield f"{title}: {len(found)}"
        yield from (f"  {length.lines:>4}  {length.what}" for length in sorted(found, key=lambda one: -one.lines))
        yield ""


def main():
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", help="checkout or package folder for static figures (what is installed)")
    parser.add_argument("--static", action="store_true", help="no figures of what is installed")
    options = parser.parse_args()
    source = options.source or Path(importlib.util.find_spec("skvbem").origin).parent
    for line in static_figures(package_in(source)):
        print(line)
    if not options.static:
        warnings.simplefilter("ignore")
        for line in dynamic_figures():
            print(line, flush=True)


if __name__ == "__main__":
    main()
