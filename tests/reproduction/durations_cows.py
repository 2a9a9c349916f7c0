"""Stays that are geometric: bounds of minutes in which a cow seems to eat, beside those of another program.

The minutes are the table `cows_eating` of 8 640 minutes, made of data of R's mhsmm, in a file of two columns: the true
state, and what was seen, 0 or 1. Its licence, the GPL, keeps it out of this package. The first 2 640 minutes are read.
Hazards and stages have the prior of transitions, Beta(1, 1) for two states.

Run as a program it writes a line of JSON for each family:

    PYTHONPATH=tests python -P -m reproduction.durations_cows --file cows_eating.csv
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from reproduction.records import add_to_record, timed

from skvbem import VBHMM
from skvbem.durations import Hazards, Stages

RECORD = Path(__file__).with_name("durations_cows_results.jsonl")
N_MINUTES = 2640
#: Families, and the bound that the other program found.
FAMILIES: dict[str, tuple[Any, float]] = {
    "geometric": ("geometric", -338.657749),
    **{
        f"Hazards({age}, bins='single')": (Hazards(age, bins="single", prior="transitions"), bound)
        for age, bound in {2: -343.2197, 3: -347.3902, 5: -352.2154, 10: -370.0088, 20: -394.3423}.items()
    },
    **{
        f"Hazards({age})": (Hazards(age, prior="transitions"), bound)
        for age, bound in {5: -349.3541, 9: -354.3062, 17: -357.8006, 33: -361.6159, 65: -365.3684}.items()
    },
    **{
        f"Stages({n})": (Stages(n, prior="transitions"), bound)
        for n, bound in {2: -342.1658, 3: -358.5914, 5: -396.5196}.items()
    },
}


def measured(name: str, seen: np.ndarray) -> dict[str, Any]:
    """The line of a family: its bound, nats, and CPU seconds of the fit."""
    line: dict[str, Any] = {"family": name, "seconds": {}}
    options = {"emission": "categorical", "n_init": 2, "tol": 1e-9, "max_iter": 3000, "random_state": 0}
    model = VBHMM(2, durations=FAMILIES[name][0], **options)
    with timed(line, "fit"):
        model.fit(seen[:, None])
    return line | {"bound": round(model.lower_bound_, 6)}


def table(lines: list[dict]) -> list[tuple[str, str]]:
    """Rows of the table: family and bound, nats."""
    return [(line["family"], f"{line['bound']:.1f}") for line in lines]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--file", type=Path, required=True)
    table = np.loadtxt(parser.parse_args().file, delimiter=",", skiprows=1)
    for each in FAMILIES:
        add_to_record(RECORD, measured(each, table[:N_MINUTES, 1].astype(int)))
