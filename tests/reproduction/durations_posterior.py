"""Intervals of simulated stays over draws by linear response, beside those over draws from q.

Series are those of `reproduction.durations`, each with the family of the highest bound there. A line of the record has,
for 500 draws of `sample_posterior` as `draws` of `duration_distribution`, whether intervals of 90 % hold quantiles of
stays and probabilities of longer stays. Shares of draws from q are those of the other record, of the same series.

Run as a program it goes on where it was stopped, for some CPU time, a line of JSON for each series, and prints tables:

    PYTHONPATH=tests python -P -m reproduction.durations_posterior --seconds 1500
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from reproduction import durations as study
from reproduction.records import add_to_record, read_record, timed

from skvbem import VBHMM

RECORD = Path(__file__).with_name("durations_posterior_results.jsonl")
N_DRAWS = 500
OF_Q = {line["number"]: line for line in read_record(study.RECORD)}


def measured(number: int) -> dict[str, Any]:
    """The line of a series."""
    X, line = study.simulated(number)
    line |= {"family": study.best(OF_Q[number]), "seconds": {}}
    model = VBHMM(line["states"], durations=study.FAMILIES[line["family"]], n_init=2, random_state=number).fit(X)
    with timed(line, "draws"):
        draws = model.sample_posterior(X, N_DRAWS, method="linear_response", random_state=number)
    return line | {"held": study.held(model, line, draws)}


def table(lines: list[dict]) -> list[tuple[str, ...]]:
    """Rows of the table: stays, mean, series, percent of quantiles held, and of probabilities of longer stays.

    Of each first over draws from q, then over draws by linear response.
    """
    rows = []
    for stays, mean in product(study.STAYS, study.MEANS):
        some = [line for line in lines if (line["stays"], line["mean"]) == (stays, mean)]
        shares = []
        for what in ("quantiles", "longer"):
            shares.append(study.share([OF_Q[line["number"]] for line in some], what))
            shares.append(100 * float(np.mean([np.mean(line["held"][what]) for line in some])))
        rows.append((stays, str(mean), str(len(some)), *(f"{each:.0f}" for each in shares)))
    return rows


def run(path: Path = RECORD, seconds: float = 1500.0) -> None:
    """Add series to the record, for some CPU time."""
    done = {line["number"] for line in read_record(path)}
    for number in reversed(study.NUMBERS):
        if number not in done and time.process_time() < seconds:
            add_to_record(path, measured(number))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=1500.0)
    warnings.simplefilter("ignore")
    run(seconds=parser.parse_args().seconds)
    for row in table(read_record(RECORD)):
        print(", ".join(row))
