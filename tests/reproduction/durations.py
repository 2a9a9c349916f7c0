"""Simulated stays: which family of durations has the evidence, and how often intervals hold quantiles of stays.

Series of 2 000 steps of 2 or 3 states. A stay lasts 1 + NB(3) steps, a negative binomial number of shape 3 and one
more, or geometrically long; in the mean 5, 10 or 20. The next state is drawn with probabilities that are uniform on
their simplex. A step is a normal number of variance 1 about 0, 3 or 6. Neither family of `skvbem.durations` has stays
of 1 + NB(3) steps: two stages are too regular at first and too long in the end, hazards change with each age.

Families are compared under the same prior: the geometric one is ``Hazards(1)``. It is fitted by default, and each other
family, the plain chain among them, from its posterior of states. A line of the record has, for each family:

- its bound, beside that of ``Hazards(1)``;
- for each state and each of four quantiles, whether its interval of 90 % holds the quantile of the truth, a number of
  steps, and whether the interval of the probability of a longer stay than that holds the truth, which is a number that
  varies continuously. Intervals are those of draws from q, the default of `duration_distribution`.

Run as a program it goes on where it was stopped, for some CPU time, a line of JSON for each series, and prints tables:

    PYTHONPATH=tests python -P -m reproduction.durations --seconds 1500
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from reproduction.records import add_to_record, read_record, timed
from scipy.stats import geom, nbinom

from skvbem import VBHMM
from skvbem.durations import Hazards, Stages

RECORD = Path(__file__).with_name("durations_results.jsonl")
N_STEPS, APART, SHAPE, LEVEL = 2000, 3.0, 3, 0.9
NUMBERS = range(48, 204)
QUANTILES = (0.25, 0.5, 0.75, 0.9)
MEANS, STAYS = (5, 10, 20), ("1 + NB(3)", "geometric")
FAMILIES: dict[str, Any] = {
    "Hazards(1)": Hazards(1),
    "Hazards(32)": Hazards(32),
    "Hazards(32, bins='single')": Hazards(32, bins="single"),
    "Stages(2)": Stages(2),
    "Stages(3)": Stages(3),
    "geometric": "geometric",
}
#: Families of one prior; the others than the first have stays that are not geometric.
RIVALS = [name for name in FAMILIES if name != "geometric"]


def law(stays: str, mean: int) -> Any:
    """The distribution of the steps of a stay."""
    return nbinom(SHAPE, SHAPE / (SHAPE + mean - 1), loc=1) if stays == STAYS[0] else geom(1 / mean)


def simulated(number: int, seed: int = 20261128) -> tuple[np.ndarray, dict]:
    """A series (2000, 1), and the line of it to be filled."""
    rng = np.random.default_rng([seed, number])
    kind, rest = number % 2, number // 2
    n_states, mean = 2 + rest % 2, MEANS[rest // 2 % 3]
    steps = law(STAYS[kind], mean).rvs(size=N_STEPS, random_state=rng)
    jumps = [np.insert(rng.dirichlet(np.ones(n_states - 1)), k, 0.0) for k in range(n_states)]
    states = [int(rng.integers(n_states))]
    while len(states) < len(steps):
        states.append(int(rng.choice(n_states, p=jumps[states[-1]])))
    X = rng.normal(APART * np.repeat(states, steps)[:N_STEPS])[:, None]
    return X, {"number": number, "stays": STAYS[kind], "states": n_states, "mean": mean}


def held(model: Any, line: dict, draws: Any = None) -> dict[str, list]:
    """Whether intervals hold quantiles, and probabilities of longer stays, (4 quantiles, states) each; 1 if so."""
    truth = law(line["stays"], line["mean"])
    steps = truth.ppf(QUANTILES)
    told = model.duration_distribution(n_steps=int(truth.ppf(0.999)) + 60, level=LEVEL, draws=draws)
    of_steps, of_longer = [], []
    for probability, step in zip(QUANTILES, steps):
        _, lower, upper = told.quantile(probability)
        of_steps.append(((lower <= step) & (step <= upper)).astype(int).tolist())
        lower, upper = (each[:, int(step)] for each in told.lasts_intervals)
        of_longer.append(((lower <= truth.sf(step)) & (truth.sf(step) <= upper)).astype(int).tolist())
    return {"quantiles": of_steps, "longer": of_longer}


def measured(number: int) -> dict[str, Any]:
    """The line of a series."""
    X, line = simulated(number)
    line |= {"seconds": {}, "bounds": {}, "held": {}}
    init = None
    for name, family in FAMILIES.items():
        options = {"n_init": 2} if init is None else {"n_init": 1, "init": init}
        model = VBHMM(line["states"], durations=family, random_state=number, **options)
        with timed(line, name):
            model.fit(X)
        init = model.predict_proba(X) if init is None else init
        line["bounds"][name] = round(model.lower_bound_, 4)
        line["held"][name] = held(model, line)
    return line


def best(line: dict) -> str:
    """The family of the highest bound, of those that have one prior."""
    return max(RIVALS, key=line["bounds"].__getitem__)


def is_geometric(line: dict) -> bool:
    """True if no family has a higher bound than that of geometric stays."""
    return best(line) == RIVALS[0]


def share(lines: list[dict], what: str, name: str | None = None) -> float:
    """Percent of intervals that hold, of "quantiles" or of probabilities of "longer" stays.

    By a family, or by that of the highest bound of each series.
    """
    return 100 * float(np.mean([np.mean(line["held"][name or best(line)][what]) for line in lines]))


def table(lines: list[dict]) -> list[tuple[str, ...]]:
    """Rows of the table: stays, mean, series, percent not taken for geometric, leads in nats, and percent held.

    Leads over Hazards(1) are those of Hazards(32), Stages(2) and the plain chain. Percent are held of quantiles and of
    probabilities of longer stays, by Hazards(32), and by the best family.
    """
    rows = []
    for stays, mean in product(STAYS, MEANS):
        some = [line for line in lines if (line["stays"], line["mean"]) == (stays, mean)]
        bounds = {name: np.array([line["bounds"][name] for line in some]) for name in FAMILIES}
        leads = [(bounds[name] - bounds["Hazards(1)"]).mean() for name in ("Hazards(32)", "Stages(2)", "geometric")]
        shares = [share(some, what, name) for what in ("quantiles", "longer") for name in ("Hazards(32)", None)]
        shares.insert(0, 100 * np.mean([not is_geometric(line) for line in some]))
        first, *others = [f"{each:.0f}" for each in shares]
        rows.append((stays, str(mean), str(len(some)), first, *(f"{each:.1f}" for each in leads), *others))
    return rows


def run(path: Path = RECORD, seconds: float = 1500.0) -> None:
    """Add series to the record, for some CPU time."""
    done = {line["number"] for line in read_record(path)}
    for number in reversed(NUMBERS):
        if number not in done and time.process_time() < seconds:
            add_to_record(path, measured(number))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=1500.0)
    warnings.simplefilter("ignore")
    run(seconds=parser.parse_args().seconds)
    for row in table(read_record(RECORD)):
        print(", ".join(row))
