"""How near to the best known optimum do default fits come? On more than 150 problems with real data.

The best known of a problem is the best of hundreds of starts of all kinds: those of the library, random and clustered
responsibilities, runs of time, where peers' fits end, and moves between solutions (`optima_starts`), which know nothing
of what the library moves. It is kept in optima_best.jsonl, one line for each problem, and only rises. The
responsibilities from which it is reached stand beside it, in optima_solutions.jsonl, rounded; where that leads
elsewhere, "reached_again" is false. What default fits reached, with five seeds and in which CPU seconds, is kept in
optima_fits.jsonl under a label for each version.

    PYTHONPATH=tests python -P -m reproduction.optima best --minutes 30 [--only TEXT ...]
    PYTHONPATH=tests python -P -m reproduction.optima measure --label NAME [--half tuning] [--only TEXT ...]
    PYTHONPATH=tests python -P -m reproduction.optima measure --label OLD NEW --python OLD/bin/python NEW/bin/python
    PYTHONPATH=tests python -P -m reproduction.optima table --label NAME [NAME ...] [--problems]

Two installed versions fit every problem in turns, so that what else the machine does slows both. ``--fits FILE`` keeps
what was measured elsewhere.

A maximum likelihood with a spike (`Problem.is_proper`) has missed its problem, however large it is. Time is CPU time of
one thread: set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import base64
import json
import subprocess
import sys
import time
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from reproduction import optima_starts as starts
from reproduction.optima_problems import PROBLEMS, Problem

HERE = Path(__file__).parent
BEST, SOLUTIONS, FITS = (HERE / f"optima_{name}.jsonl" for name in ("best", "solutions", "fits"))
SEEDS = range(5)
#: Nats below the best known at which a fit counts as there, or near.
THERE, NEAR = 0.01, 1.0
# A value that passes the best known by less is the same optimum, run a little farther.
_SAME = 1e-5
# Starts that run side by side in one fit of the library.
_BATCH = 100
# Starts of each other kind, and moves, in a visit to a problem.
_OTHERS, _MOVES, _DEFAULTS = 5, 15, 2
# Nats still to come at which a start is left; one that has passed the best known by then is run to the end.
_TOL = 5e-3


# --- the records ------------------------------------------------------------------------------------------------------


def read(path: Path) -> dict[str, dict]:
    """Records by name."""
    if not path.exists():
        return {}
    return {record["name"]: record for record in map(json.loads, path.read_text("utf-8").splitlines())}


def write(records: dict[str, dict], path: Path) -> None:
    """All records, in the order of the problems."""
    lines = [json.dumps(records[name]) + "\n" for name in PROBLEMS if name in records]
    path.with_suffix(".new").write_text("".join(lines), "utf-8")
    path.with_suffix(".new").replace(path)


def encoded(parts: starts.Parts) -> list[str]:
    """Responsibilities as text: hundredths, compressed."""
    return [
        base64.b85encode(zlib.compress(np.round(200 * part).astype(np.uint8).tobytes(), 9)).decode() for part in parts
    ]


def decoded(problem: Problem, texts: list[str]) -> starts.Parts:
    """Responsibilities of their text."""
    flat = [np.frombuffer(zlib.decompress(base64.b85decode(text)), dtype=np.uint8) for text in texts]
    return [starts.normalized(part.reshape(len(problem.rows.X), -1) / 200) for part in flat]


# --- the best known ---------------------------------------------------------------------------------------------------


class Best:
    """The best known of all problems: values, how they were found, and from where they are reached."""

    def __init__(self, best: Path = BEST, solutions: Path = SOLUTIONS):
        self.paths = best, solutions
        self.records, self.solutions = read(best), read(solutions)

    def value(self, name: str) -> float:
        """The objective, nats."""
        return self.records.get(name, {}).get("objective", -np.inf)

    def parts(self, problem: Problem) -> starts.Parts | None:
        """The solution of a problem."""
        texts = self.solutions.get(problem.name)
        return None if texts is None else decoded(problem, texts["parts"])

    def neighbor(self, problem: Problem, step: int) -> starts.Parts | None:
        """The solution of the problem that differs by so many states alone."""
        for other in PROBLEMS.values():
            alike = all(getattr(other, name) == getattr(problem, name) for name in ("model", "table", "kind", "method"))
            if alike and other.n_components == problem.n_components + step and other.name in self.solutions:
                return self.parts(other)
        return None

    def tried(self, problem: Problem, n_starts: int) -> None:
        """Count starts."""
        record = self.records.setdefault(problem.name, {"name": problem.name})
        record |= {"half": problem.half}
        record["n_starts"] = record.get("n_starts", 0) + n_starts

    def offer(self, problem: Problem, model, way: str) -> bool:
        """Take a fit for the best known if it is proper and better, run to the end first; whether it was."""
        if not problem.is_proper(model) or problem.objective(model) <= self.value(problem.name) + _SAME:
            return False
        longer = starts.fit_from(problem, starts.parts_of(problem, model), tol=1e-8)
        if problem.is_proper(longer) and problem.objective(longer) > problem.objective(model):
            model = longer
        record = self.records.setdefault(problem.name, {"name": problem.name})
        record |= {"half": problem.half, "objective": round(problem.objective(model), 6), "found_by": way}
        record["found_at"] = record.get("n_starts", 0)
        parts = encoded(starts.parts_of(problem, model))
        self.solutions[problem.name] = {"name": problem.name, "parts": parts}
        again = starts.fit_from(problem, decoded(problem, parts), tol=1e-8)
        record["reached_again"] = problem.objective(again) >= record["objective"] - 1e-3
        return True

    def save(self) -> None:
        """Write both files; values that are better in the file by now stay."""
        on_disk = Best(*self.paths)
        for name, record in on_disk.records.items():
            if on_disk.value(name) > self.value(name):
                self.records[name], self.solutions[name] = record, on_disk.solutions[name]
        for records, path in zip((self.records, self.solutions), self.paths):
            write(records, path)


def ways(problem: Problem, best: Best) -> dict[str, Callable]:
    """What may lead to a better optimum: each a function of a generator that returns parts or fits, and how many."""
    from_parts = {
        "random responsibilities": starts.random_parts,
        "clusters": starts.clustered_parts,
        "peer": starts.peer_parts,
    }
    if problem.model == "chain":
        from_parts["runs of time"] = starts.timed_parts

    def many(init: str) -> Callable:
        def fit(rng):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                seed = int(rng.integers(2**31))
                yield problem.fit(init=init, n_init=_BATCH, tol=_TOL, random_state=seed), _BATCH

        return fit

    def each(make: Callable, n: int = _OTHERS) -> Callable:
        def fits(rng):
            for _ in range(n):
                parts = make(rng)
                if parts is not None:
                    yield starts.fit_from(problem, parts, tol=_TOL), 1

        return fits

    def defaults(rng):
        for _ in range(_DEFAULTS):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = problem.fit(random_state=int(rng.integers(2**31)))
            yield model, model.n_init

    inits = ("random",) if problem.is_network else ("random", "k-means++")
    found: dict[str, Callable] = {"default fits": defaults} | {f"starts, {init}": many(init) for init in inits}
    found |= {name: each(lambda rng, make=make: make(problem, rng)) for name, make in from_parts.items()}
    if best.parts(problem) is not None:
        found["moves"] = each(lambda rng: starts.moved(problem, best.parts(problem), rng), _MOVES)
    fewer, more = best.neighbor(problem, -1), best.neighbor(problem, 1)
    if fewer is not None:
        found["an empty state more"] = each(lambda rng: starts.with_empty_states(fewer), 1)
        found["a state more"] = each(lambda rng: starts.split_parts(problem, fewer, rng))
    if more is not None:
        found["a state less"] = each(lambda rng: starts.joined_parts(problem, more, rng))
    return found


def raise_best(minutes: float, only: list[str], half: str | None) -> None:
    """Visit problems, those with the fewest starts since their best known was found first, until the time is up."""
    deadline, best = time.monotonic() + 60 * minutes, Best()
    problems = [problem for problem in chosen(only, half) if problem.is_here]
    visits = dict.fromkeys((problem.name for problem in problems), 0)
    while time.monotonic() < deadline:
        problem = min(problems, key=lambda each: (_share(each, best), visits[each.name]))
        visits[problem.name] += 1
        rng = np.random.default_rng([zlib.crc32(problem.name.encode()), _tried(problem, best)])
        for way, fits in ways(problem, best).items():
            for model, n_starts in fits(rng):
                known = best.value(problem.name)
                best.tried(problem, n_starts)
                if best.offer(problem, model, way) and np.isfinite(known):
                    print(f"{problem.name}: {known:.4f} -> {best.value(problem.name):.4f} by {way}", flush=True)
            if time.monotonic() > deadline:
                break
        best.save()


def _tried(problem: Problem, best: Best) -> int:
    return best.records.get(problem.name, {}).get("n_starts", 0)


def _share(problem: Problem, best: Best) -> float:
    since = _tried(problem, best) - best.records.get(problem.name, {}).get("found_at", 0)
    return since / problem.n_starts_wanted


# --- what default fits reach ------------------------------------------------------------------------------------------


def measure(problem: Problem, seeds=SEEDS, **options) -> dict:
    """What default fits of some seeds reach, in which CPU seconds, and whether they are proper."""
    objectives, seconds, proper = [], [], []
    for seed in seeds:
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = problem.fit(random_state=seed, **options)
        seconds.append(round(time.process_time() - began, 4))
        objectives.append(round(problem.objective(model), 6))
        proper.append(problem.is_proper(model))
    return {"name": problem.name, "objectives": objectives, "seconds": seconds, "proper": proper}


def serve() -> None:
    """Measure problems as their names come on standard input."""
    for line in sys.stdin:
        print(json.dumps(measure(PROBLEMS[json.loads(line)])), flush=True)


class Version:
    """An installed version in a process of its own."""

    def __init__(self, python: str):
        serving = "from reproduction import optima; optima.serve()"
        self.process = subprocess.Popen(
            [python, "-P", "-c", serving], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def measure(self, name: str) -> dict:
        """What its default fits reach on a problem."""
        self.process.stdin.write(json.dumps(name) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{name!r} failed; its error stands above.")
        return json.loads(line)


def read_fits(path: Path = FITS) -> dict[str, dict[str, dict]]:
    """Records of fits by label and name."""
    records: dict[str, dict[str, dict]] = {}
    for line in path.read_text("utf-8").splitlines() if path.exists() else []:
        record = json.loads(line)
        records.setdefault(record.pop("label"), {})[record["name"]] = record
    return records


def write_fits(records: dict[str, dict[str, dict]], path: Path = FITS) -> None:
    """All records of fits, label by label."""
    lines = [
        json.dumps({"label": label} | records[label][name]) + "\n"
        for label in sorted(records)
        for name in PROBLEMS
        if name in records[label]
    ]
    path.write_text("".join(lines), "utf-8")


def shortfalls(fits: dict[str, dict], best: dict[str, dict], problems: list[Problem]) -> np.ndarray:
    """Nats by which fits (n_problems, n_seeds) miss the best known; infinite for spikes, 0 for what passes it."""
    missed = np.array([best[p.name]["objective"] - np.array(fits[p.name]["objectives"]) for p in problems])
    proper = np.array([fits[p.name]["proper"] for p in problems])
    return np.where(proper, np.maximum(missed, 0.0), np.inf)


def summary(fits: dict[str, dict], best: dict[str, dict], half: str | None = None) -> list[tuple[str, ...]]:
    """Rows of the table, for each kind of problems and for all: share there, share near, 90 % and largest, seconds."""
    problems = [p for p in chosen([], half) if p.name in fits and "objective" in best.get(p.name, {})]
    groups: dict[str, list[Problem]] = {}
    for problem in problems:
        groups.setdefault(problem.group, []).append(problem)
    every = (*groups.items(), ("all", problems))
    return [(group, *_figures(members, fits, best)) for group, members in every if members]


def page_rows(fits: dict[str, dict], best: dict[str, dict]) -> list[tuple[str, ...]]:
    """Rows of the documentation: all problems by kind, and both halves of all."""
    halves = [(f"all, {half}", *summary(fits, best, half)[-1][1:]) for half in ("tuning", "held")]
    return [*summary(fits, best), *((row[0].replace(",", ""), *row[1:]) for row in halves)]


def _figures(problems: list[Problem], fits: dict[str, dict], best: dict[str, dict]) -> tuple[str, ...]:
    missed = np.sort(shortfalls(fits, best, problems).ravel())
    seconds = sum(sum(fits[p.name]["seconds"]) for p in problems)
    return (
        str(len(problems)),
        f"{100 * np.mean(missed <= THERE):.1f} %",
        f"{100 * np.mean(missed <= NEAR):.1f} %",
        f"{missed[int(0.9 * len(missed))]:.2f}",
        f"{missed[np.isfinite(missed)].max(initial=0.0):.1f}",
        str(int(np.isinf(missed).sum())),
        f"{seconds:.1f}",
    )


HEADER = ("problems", "number", "within 0.01", "within 1 nat", "90 % within", "largest miss", "spikes", "CPU seconds")


def chosen(only: list[str], half: str | None) -> list[Problem]:
    """Problems whose names hold one of the texts, if there are any, of a half."""
    return [
        problem
        for problem in PROBLEMS.values()
        if half in (None, problem.half) and (not only or any(text in problem.name for text in only))
    ]


def show(records: dict, labels: list[str], by_problem: bool, only: list[str], half: str | None) -> None:
    """The tables of the documentation."""
    best = read(BEST)
    for label in labels or sorted(records):
        for part in ("tuning", "held", None) if half is None else (half,):
            print(f"\n{label}, {part or 'all'}", ", ".join(HEADER), sep="\n")
            print(*map(", ".join, summary(records[label], best, part)), sep="\n")
        if by_problem:
            for problem in chosen(only, half):
                if problem.name in records[label] and "objective" in best.get(problem.name, {}):
                    missed = shortfalls(records[label], best, [problem])[0]
                    cells = " ".join(f"{each:.3f}" for each in missed)
                    print(f"{problem.half:7}{problem.name:60}{best[problem.name]['objective']:14.4f}  {cells}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("best", "measure", "table"))
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--label", nargs="*", default=[])
    parser.add_argument("--python", nargs="*", default=[])
    parser.add_argument("--half", choices=("tuning", "held"))
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--fits", type=Path, default=FITS)
    parser.add_argument("--problems", action="store_true", help="print every problem, too")
    asked = parser.parse_args()
    if asked.command == "best":
        raise_best(asked.minutes, asked.only, asked.half)
    elif asked.command == "measure":
        versions = [Version(python) for python in asked.python or [sys.executable]]
        for problem in chosen(asked.only, asked.half):
            if problem.is_here:
                records = read_fits(asked.fits)
                for label, version in zip(asked.label, versions, strict=True):
                    records.setdefault(label, {})[problem.name] = version.measure(problem.name)
                write_fits(records, asked.fits)
    if asked.command != "best":
        show(read_fits(asked.fits), asked.label, asked.problems, asked.only, asked.half)


if __name__ == "__main__":
    main()
