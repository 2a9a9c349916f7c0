"""Files with one thing changed and the checksums right, loaded by thousands: saved fits, checkpoints and journals.

Run as a program it takes all kinds in turn, an even share of files each, and prints what became of them: with a number
of files and a seed. Kernels that are built with a sanitizer say of each read and write out of bounds. Each kind has a
child process, and another one wherever that dies, so that one file of many is named.
"""

import os
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from persistence.changes import File
from persistence.checkpoints import SearchFile
from persistence.fits import MEMBERSHIPS, SETTINGS, STEPS, fitted
from persistence.questions import answers

from skvbem import load, save
from skvbem.errors import SavedFitError

#: What may be said of data that are no longer those of the fit, once a category or a limit of memory has changed.
OTHER_DATA = (
    "belong to the data of its fit",
    "Cannot setitem on a Categorical",
    "'max_memory' allows",
    "the 'max_memory' parameter of",
    "'max_table_cells' allows",
)
SEARCHES = ("checkpoint", "journal")
#: All kinds of files.
NAMES = (*SETTINGS, *STEPS, *MEMBERSHIPS, *SEARCHES)


class FitFile:
    """A saved fit of a setting."""

    def __init__(self, name, path):
        estimator, self.X, self.where = fitted(name)
        save(estimator, path)
        self.path, self.file = path, File(path.read_bytes())

    def changed(self, rng):
        """A file with one thing changed, and what it is."""
        return self.file.changed(rng)

    def outcome(self, data, number):
        """What becomes of a file: "refused", "answers", or what is wrong."""
        self.path.write_bytes(data)
        try:
            fit = load(self.path)
        except SavedFitError:
            return "refused"
        except BaseException as error:
            return f"load raises {type(error).__name__}: {error}"
        if getattr(fit, "n_draws", 0) > 1000:  # a sound parameter, whose answers would take an hour
            fit.n_draws = 1000
        try:
            answers(fit, self.X, self.where, number)
        except BaseException as error:
            if not any(words in str(error) for words in OTHER_DATA):
                return f"{type(error).__name__}: {error}"
        return "answers"


def file_of(name, path):
    """A file of a kind that holds what was saved, to be changed."""
    return SearchFile(path, is_journal=name == "journal") if name in SEARCHES else FitFile(name, path)


def load_all(name, seed, numbers, path, log):
    """Change and load files by their numbers; a line in the log before each and one after it."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    file = file_of(name, path)
    for number in numbers:
        data, what = file.changed(np.random.default_rng([seed, number]))
        print("?", number, what.replace("\n", " "), file=log, flush=True)
        print("=", file.outcome(data, number).replace("\n", " ")[:200], file=log, flush=True)


def exit_code_of(function, *args):
    """The exit code of a child process that calls a function, minus the signal that ended it."""
    if not (pid := os.fork()):
        code = 1
        try:
            function(*args)
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def hold_up(name, seed, n_files, folder):
    """Change and load so many files of a kind; counts of what became of them, and lines of what is wrong."""
    counts, wrong, at = Counter(), [], 0
    path, log = Path(folder) / "file.skvbem", Path(folder) / "log"
    if name not in SEARCHES:
        fitted(name)  # once for all children
    while at < n_files:
        with open(log, "w") as file:
            code = exit_code_of(load_all, name, seed, range(at, n_files), path, file)
        lines = log.read_text().splitlines()
        for asked, said in zip(lines[::2], lines[1::2]):
            counts[said[2:] if said[2:] in ("refused", "answers") else "wrong"] += 1
            if said[2:] not in ("refused", "answers"):
                wrong.append(f"{name}: {asked[2:]}: {said[2:]}")
        at = int(lines[-1 if len(lines) % 2 else -2].split()[1]) + 1 if lines else n_files
        if code:
            wrong.append(f"{name}: {lines[-1] if lines else 'at the start'}: the process ended with {code}")
    return counts, wrong


def main(n_files, seed):
    """Change and load so many files of all kinds together, and print what became of them; 1 if anything is wrong."""
    share, total, n_wrong = -(-n_files // len(NAMES)), Counter(), 0
    for name in NAMES:
        began = time.perf_counter()
        with TemporaryDirectory() as folder:
            counts, wrong = hold_up(name, seed, share, folder)
        total += counts
        n_wrong += len(wrong)
        print(f"{name:25} {dict(counts)} {time.perf_counter() - began:.0f} s", *wrong, sep="\n    ", flush=True)
    print(f"{dict(total)}, {n_wrong} wrong")
    return int(n_wrong > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
