"""Records that only grow: a line of JSON for each thing that was measured, which is not measured again."""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

Found = TypeVar("Found")


def read_record(path: Path) -> list[dict[str, Any]]:
    """The lines of a record, none where there is no file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def add_to_record(path: Path, line: Mapping[str, Any]) -> None:
    """Add a line to a record."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def new_line(problem: str, n: int, seed: int) -> dict[str, Any]:
    """The line of a simulation: CPU seconds, and how many intervals hold the truth, are still to come."""
    return {"problem": problem, "n": n, "seed": seed, "seconds": {}, "held": {}}


@contextmanager
def timed(line: dict[str, Any], what: str) -> Iterator[None]:
    """Note the CPU seconds of something that warns of nothing, if it comes to an end."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    line["seconds"][what] = round(time.process_time() - began, 3)


def by_each_method(
    line: dict[str, Any], methods: Iterable[str], ask: Callable[[str], Found]
) -> Iterator[tuple[str, Found]]:
    """What each method finds, its CPU seconds noted; of a method that refuses, the line says why."""
    for method in methods:
        try:
            with timed(line, method):
                found = ask(method)
        except ValueError as error:
            line["held"][method] = None
            line["refused"] = str(error)[:80]
            continue
        yield method, found


def simulate(
    description: str,
    path: Path,
    problems: Iterable[str],
    measured: Callable[[str, int, int], Mapping[str, Any]],
    tables: Iterable[Callable[[list[dict]], Iterable[tuple[str, ...]]]],
    again: Callable[[dict, str], dict] | None = None,
) -> None:
    """The command line of a script that measures simulations of problems, seed after seed, or prints its tables.

    Parameters
    ----------
    description : str
    path : Path
        The record.
    problems : iterable of str
    measured : callable of (str, int, int)
        The line of a problem, a number of rows and a seed, with these as "problem", "n" and "seed".
    tables : iterable of callable
        The rows of each table, from all lines.
    again : callable of (dict, str), optional
        A line in which what one method finds is measured again.
    """
    names = list(problems)
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("what", choices=["measure", "table", *(["again"] if again else [])])
    parser.add_argument("--seconds", type=float, default=900.0, help="CPU seconds after which no simulation is begun")
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    if again:
        parser.add_argument("--method", help="what is measured again, in all lines of these problems and rows")
    options = parser.parse_args()
    if options.what == "measure":
        done = {(each["problem"], each["n"], each["seed"]) for each in read_record(path)}
        seed = 0
        while time.process_time() < options.seconds:
            for name in options.only:
                if (name, options.rows, seed) not in done and time.process_time() < options.seconds:
                    add_to_record(path, measured(name, options.rows, seed))
            seed += 1
    if again and options.what == "again":
        lines = read_record(path)
        for k, line in enumerate(lines):
            if line["problem"] in options.only and line["n"] == options.rows:
                lines[k] = again(line, options.method)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    for rows in tables:
        for row in rows(read_record(path)):
            print(", ".join(row))
