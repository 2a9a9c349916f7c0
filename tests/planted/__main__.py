"""Plants errors in copies of the package, one at a time, and shows that the tests notice each.

The working tree is not touched, but for the record of who noticed, ``noticed_by.json`` in this folder: the next run
asks that test first. Exits with 1 if an error survives or can no longer be planted.
"""

from __future__ import annotations

import argparse
import json
import queue
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # the tests, so that no room hides a module of its name

from planted.errors import PACKAGE, RECORD, ROOT, Error, Sources, all_errors  # noqa: E402
from planted.planting import DIED, CleanCopy, Copy, Noticed, noticed_by  # noqa: E402


def main() -> int:
    options = arguments()
    sources = Sources(ROOT / PACKAGE)
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    chosen = [error for error in all_errors() if not options.only or error.has(options.only)]
    if options.skip_done:
        chosen = [error for error in chosen if record.get(error.name, {}).get("sources") != sources.fingerprint()]
    if options.skip_recorded:
        chosen = [error for error in chosen if error.name not in record]
    lost = [error for error in chosen if not sources.hold(error)]
    chosen = [error for error in chosen if error not in lost]
    if options.sample is not None:
        chosen = sample(quick(chosen, sources, record), options.sample, options.seed or commit())
    rows = [(error, "CANNOT BE PLANTED") for error in lost]
    for error, noticed in planted(chosen, sources, record, options.jobs):
        rows.append((error, noticed.test if noticed else "NOBODY"))
        print(f"{error.name} → {rows[-1][1]}", flush=True)
        if noticed and noticed.test != DIED and options.sample is None:
            known = {"test": noticed.test, "seconds": round(noticed.seconds), "sources": sources.fingerprint()}
            record[error.name] = known
            RECORD.write_text(json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    print_table(rows)
    n_noticed = sum(test not in ("NOBODY", "CANNOT BE PLANTED") for _, test in rows)
    print(f"\n{n_noticed} of {len(rows)} noticed")
    return int(n_noticed < len(rows))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python tests/planted", description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="WORD", help="errors whose name has a word, or whose room it is")
    parser.add_argument("--skip-done", action="store_true", help="not what was noticed in the package as it is now")
    parser.add_argument("--skip-recorded", action="store_true", help="not what was noticed in any package before")
    parser.add_argument("--sample", type=int, metavar="N", help="N quick errors by chance, not recorded")
    parser.add_argument("--seed", help="what the chance of a sample depends on; the commit if not given")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="copies of the package tested at once")
    return parser.parse_args()


def commit() -> str:
    command = ["git", "rev-parse", "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def quick(errors: list[Error], sources: Sources, record: dict) -> list[Error]:
    """List the quicker half of errors on record that need no compiler, by the test alone that noticed each."""

    def is_known(error: Error) -> bool:
        return error.name in record and (ROOT / record[error.name]["test"].partition("::")[0]).exists()

    known = [error for error in errors if is_known(error) and not sources.needs_compiler(error)]
    return sorted(known, key=lambda error: record[error.name]["seconds"])[: (len(known) + 1) // 2]


def sample(errors: list[Error], n: int, seed: str) -> list[Error]:
    """Draw errors, the same from the same seed; say which."""
    drawn = random.Random(seed).sample(errors, min(n, len(errors)))
    print(f"{len(drawn)} of {len(errors)} quick errors, drawn by the seed {seed}:")
    print("\n".join(f"  {error.name}" for error in drawn), flush=True)
    return drawn


def planted(errors: list[Error], sources: Sources, record: dict, n_jobs: int) -> Iterator[tuple[Error, Noticed | None]]:
    """Yield errors as they are done, with the test that noticed each."""
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(n_jobs) as pool:
        clean = CleanCopy(Path(name, "clean"), sources)
        clean.check_origin()
        copies: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        for k in range(n_jobs):
            copies.put(Copy(Path(name, str(k)), sources))

        def done(error: Error) -> tuple[Error, Noticed | None]:
            copy = copies.get()
            try:
                return error, noticed_by(error, copy, clean, record.get(error.name, {}).get("test"))
            finally:
                copies.put(copy)

        # Those that need the compiler come last: they leave kernels behind that only the next of them makes right.
        in_order = sorted(errors, key=sources.needs_compiler)
        try:
            for task in as_completed([pool.submit(done, error) for error in in_order]):
                yield task.result()
        finally:
            pool.shutdown(cancel_futures=True)


def print_table(rows: list[tuple[Error, str]]) -> None:
    width = max((len(error.name) for error, _ in rows), default=0)
    print(f"\n{'room':14}   {'error':{width}}   noticed by\n{'-' * 14}   {'-' * width}   {'-' * 10}")
    for error, test in sorted(rows, key=lambda row: row[0].room):
        print(f"{error.room:14}   {error.name:{width}}   {test.removeprefix('tests/')}")


if __name__ == "__main__":
    sys.exit(main())
