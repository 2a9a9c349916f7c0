"""Are optima lost where components stay empty, since rows are as the others expect? Tables of categories, default fits.

Classes are as many as components or fewer: alike, of unequal shares, with gaps, of a code of three bits, with a rare
cluster beside them, or all near to one another. "always" fills empty components whatever combinations rows have.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.filled_components measure --rows 20000 --seconds 600
    PYTHONPATH=tests python -P -m reproduction.filled_components table

The record, filled_components_results.jsonl next to this file, has a line for each table; what is there is not done
again. Thresholds were chosen on other tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from reproduction.records import new_line, simulate, timed

from skvbem import VBMixture
from skvbem.emissions.categorical import CategoricalEmission
from skvbem.optima.tuning import TUNING

RECORD = Path(__file__).with_name("filled_components_results.jsonl")
PROBLEMS = ("alike", "unequal", "gaps", "bits", "rare", "rare and sharp", "near")
_BITS = np.array([1, 2, 4, 3, 5, 6, 7])


def drawn(name: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Rows of categories, NaN where missing, and the components that are fitted."""
    d, k = int(rng.integers(7, 15)), int(rng.integers(1, 6))
    sizes = np.maximum(rng.integers(2, 6, size=d), 4 if d < 11 else 2)
    shares = rng.dirichlet(np.full(k, 0.5 if name == "unequal" else 5.0))
    tables = [rng.dirichlet(np.full(size, rng.choice([1.0, 2.0, 5.0])), k) for size in sizes]
    if name == "bits":
        k, sizes, shares = 8, np.full(d, 4), np.full(8, 1 / 8)
        parity = np.array([[bin(code & mask).count("1") % 2 for code in range(8)] for mask in _BITS])
        tables = [np.where(np.arange(4) // 2 == parity[j % 7][:, None], 0.42, 0.08) for j in range(d)]
    if name == "near":
        spread = rng.choice([20.0, 50.0, 100.0])
        tables = [rng.dirichlet(spread * rng.dirichlet(np.full(size, 5.0)), k) for size in sizes]
    labels = rng.choice(k, size=n, p=shares)
    if name.startswith("rare"):
        labels[: int(np.exp(rng.uniform(np.log(15), np.log(150))))] = k
        sharp = 0.1 if name == "rare and sharp" else 0.5
        tables = [np.vstack([each, rng.dirichlet(np.full(each.shape[1], sharp))]) for each in tables]
    cumulative = (each.cumsum(axis=1)[labels][:, :-1] for each in tables)
    X = np.stack([(rng.random((n, 1)) > each).sum(axis=1) for each in cumulative], axis=1).astype(float)
    X[rng.random(X.shape) < (0.15 if name == "gaps" else 0.0)] = np.nan
    return X[rng.permutation(n)], len(tables[0]) + int(rng.integers(0 if len(tables[0]) > 1 else 1, 3))


def measured(name: str, n: int, seed: int) -> dict:
    """The record of a table: bounds and CPU seconds of both fits, in turns, and how often each filled."""
    X, n_components = drawn(name, n, np.random.default_rng([38, n, seed, PROBLEMS.index(name)]))
    line = new_line(name, n, seed) | {"bounds": {}, "asked": 0, "excess": None}
    excess, values = CategoricalEmission.excess, []

    def noted(self, *parts):
        values.append(excess(self, *parts))
        return values[-1]

    for way in ("always", "by excess")[:: 1 if seed % 2 else -1]:
        CategoricalEmission.excess = noted if way == "by excess" else lambda *parts: None
        with timed(line, way):
            model = VBMixture(n_components, emission="categorical", random_state=seed).fit(X)
        line["bounds"][way] = round(model.lower_bound_, 3)
    CategoricalEmission.excess = excess
    del line["held"]
    return line | {"asked": len(values), "excess": None if not values else round(max(values), 2)}


def table(records: list[dict]) -> Iterator[tuple[str, ...]]:
    """Tables of each kind, those with an empty component, of these left alone, the largest loss, nats, and CPU."""
    for name in (*PROBLEMS, "all"):
        lines = [each for each in records if name in (each["problem"], "all")]
        if not lines:
            continue
        asked = [each for each in lines if each["asked"]]
        alone = sum(each["excess"] < TUNING.excess for each in asked)
        losses = [each["bounds"]["always"] - each["bounds"]["by excess"] for each in lines]
        seconds = {way: sum(each["seconds"][way] for each in asked) for way in ("always", "by excess")}
        share = seconds["by excess"] / max(seconds["always"], 1e-9)
        yield name, str(len(lines)), str(len(asked)), str(alone), f"{max(losses):.2f}", f"{share:.2f}"


if __name__ == "__main__":
    simulate(__doc__.splitlines()[0], RECORD, PROBLEMS, measured, [table])
