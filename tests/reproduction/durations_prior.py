"""The hierarchical prior of durations on coarser and finer grids: bounds of twelve series, and what intervals hold.

Series of `reproduction.durations`, one of each kind of stays, number of states and mean. Means of stays are half an
octave apart, and strengths a factor of four; here also twice and half as far. Each family is fitted from the states
that ``Hazards(1)`` finds, so that fits differ by the prior alone. A line of the record has a series: for each grid the
bounds, nats, and the share of probabilities of longer stays that intervals of 90 % of draws from q hold.

    PYTHONPATH=tests python -P -m reproduction.durations_prior
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from reproduction.durations import held, simulated
from reproduction.records import add_to_record, read_record

from skvbem import VBHMM, durations
from skvbem.durations import Hazards, Stages

RECORD = Path(__file__).with_name("durations_prior_results.jsonl")
N_SERIES = 12
FAMILIES: dict[str, Any] = {
    "Hazards(1)": Hazards(1),
    "Hazards(32)": Hazards(32),
    "Hazards(32, bins='single')": Hazards(32, bins="single"),
    "Stages(2)": Stages(2),
}
#: Octaves between means, and factors between strengths of 1 to 256 counts.
GRIDS = {
    "as it is": (0.5, 4.0),
    "means an octave apart": (1.0, 4.0),
    "means a quarter of an octave apart": (0.25, 4.0),
    "strengths a factor of 16 apart": (0.5, 16.0),
    "strengths a factor of 2 apart": (0.5, 2.0),
}


def measured(number: int) -> dict[str, Any]:
    """The line of a series."""
    X, line = simulated(number)
    init = VBHMM(line["states"], durations=Hazards(1), n_init=2, random_state=number).fit(X).predict_proba(X)
    line |= {"bounds": {}, "held": {}}
    for grid, (apart, factor) in GRIDS.items():
        strengths = factor ** np.arange(1 + round(np.log(256.0) / np.log(factor)))
        bounds, shares = {}, {}
        with patch.multiple(durations, _APART=apart, _STRENGTHS=strengths):
            for name, family in FAMILIES.items():
                model = VBHMM(line["states"], durations=family, n_init=1, init=init, random_state=number).fit(X)
                bounds[name] = round(model.lower_bound_, 4)
                shares[name] = round(float(np.mean(held(model, line)["longer"])), 4)
        line["bounds"][grid], line["held"][grid] = bounds, shares
    return line


def changes(lines: list[dict], grid: str, name: str) -> np.ndarray:
    """Nats by which the bound of a family changes beside that of Hazards(1), from the grid as it is, by series."""
    ahead = [[line["bounds"][each][name] - line["bounds"][each]["Hazards(1)"] for line in lines] for each in GRIDS]
    return np.array(ahead[list(GRIDS).index(grid)]) - np.array(ahead[0])


def table(lines: list[dict]) -> list[tuple[str, ...]]:
    """Rows of the table: a grid, the most that leads over Hazards(1) change, and percent held, of three families."""
    rows = []
    for grid in GRIDS:
        cells = [f"{np.abs(changes(lines, grid, name)).max():.1f}" for name in list(FAMILIES)[1:]]
        shares = [f"{100 * np.mean([line['held'][grid][name] for line in lines]):.0f}" for name in list(FAMILIES)[1:3]]
        rows.append((grid, *cells, *shares))
    return rows


if __name__ == "__main__":
    done = {line["number"] for line in read_record(RECORD)}
    for number in range(N_SERIES):
        if number not in done:
            add_to_record(RECORD, measured(number))
    for row in table(read_record(RECORD)):
        print(", ".join(row))
