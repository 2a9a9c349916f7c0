"""CPU seconds of default fits of many sizes beside scikit-learn's, in turns, on one thread.

Mixtures: clumps of rows as in `fit_times`, by VB and by maximum likelihood, beside ``GaussianMixture(K, n_init=10)``
with its own `tol`, and with one at which a step gains less than .001 nats. The solution of the latter as `init` is
`better` by so many nats than what a default fit ends with; none where it has a spike. Numbers: ``VBMixture("auto")``
beside the BIC of ``GaussianMixture(k, n_init=1)`` for 1 to 20 components. Factors: ``VBFactorAnalysis()``, which
chooses their number, beside ``FactorAnalysis()``, which has as many factors as columns.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.fit_times_grid [--only "300 x"]

The record, fit_times_grid_results.json next to this file, has one entry for each case.
"""

from __future__ import annotations

import argparse
import json
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
from reproduction.fit_times import clumps, timed
from sklearn.decomposition import FactorAnalysis
from sklearn.mixture import GaussianMixture

from skvbem import VBFactorAnalysis, VBMixture

RESULTS = Path(__file__).with_name("fit_times_grid_results.json")
#: Rows, columns, components. Of fewer than 2 K d rows no component has as many as it has parameters of a column.
MIXTURES = [
    (n, d, k) for n in (300, 3_000, 30_000, 300_000) for d in (2, 10, 50) for k in (3, 10, 30) if n >= 2 * k * d
]
#: CPU seconds at which a fit of either side is stopped.
LIMIT = 120
#: Rows, columns, factors of the table.
FACTORS = [(300, 9, 3), (3_000, 20, 4), (3_000, 100, 10)]
#: Rows, columns, clumps, and how far apart their means are: standard deviations in each column.
NUMBERS = [
    *((300, 2, 3, 3.0), (3_000, 10, 10, 3.0), (10_000, 10, 8, 3.0), (20_000, 4, 6, 2.5)),
    *((1_000, 4, 5, 3.0), (2_000, 2, 4, 1.5), (3_000, 5, 6, 1.5)),
]
SECONDS = ("vb", "ml", "peer", "tight")


def timed_to_limit(fit: Callable) -> tuple[float | None, object | None]:
    """CPU seconds of a fit and the model; none of both where `LIMIT` came first."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    try:
        return timed(fit)
    except TimeoutError:
        return None, None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def of_mixture(n: int, d: int, k: int) -> dict:
    """The record of a mixture: seconds of each fit, and the gain of our log likelihood over the tight one, nats.

    Also by how many nats the bound, and the likelihood, are better from the tight solution. A fit that took `LIMIT` CPU
    seconds without an end has none.
    """
    X, record = clumps(n, d, k), {}
    fits = {
        "vb": lambda: VBMixture(k, random_state=0).fit(X),
        "ml": lambda: VBMixture(k, method="ml", random_state=0).fit(X),
        "peer": lambda: GaussianMixture(k, n_init=10, random_state=0).fit(X),
        "tight": lambda: GaussianMixture(k, n_init=10, tol=1e-3 / n, max_iter=5_000, random_state=0).fit(X),
    }
    models = {}
    for name, fit in fits.items():
        record[name], models[name] = timed_to_limit(fit)
    for name, fit in fits.items():  # short ones again, as other work on the machine makes them longer
        for _ in range(2 if (record[name] or LIMIT) < 1.0 else 0):
            record[name] = min(record[name], timed(fit)[0])
    by_vb, by_ml, peer = (models[name] for name in ("vb", "ml", "tight"))
    peer = peer or models["peer"]  # the solution at the peer's own tolerance where the other took too long
    if peer is None:
        return record
    init = peer.predict_proba(X)  # type: ignore[attr-defined]
    if by_vb is not None:
        _, from_peer = timed(lambda: VBMixture(k, init=init).fit(X))
        record["better_vb"] = from_peer.lower_bound_ - by_vb.lower_bound_  # type: ignore[attr-defined]
    if by_ml is None:
        return record
    _, from_peer = timed(lambda: VBMixture(k, method="ml", init=init).fit(X))
    if not from_peer.restarts_.refused.any():  # type: ignore[attr-defined]
        record["better_ml"] = from_peer.log_likelihood_ - by_ml.log_likelihood_  # type: ignore[attr-defined]
    return record | {"gain": by_ml.log_likelihood_ - n * peer.score(X)}  # type: ignore[attr-defined]


def of_numbers(n: int, d: int, k: int, width: float) -> dict:
    """The record of a number of components that is chosen: seconds of both, and the numbers."""
    rng = np.random.default_rng([n, d, k])
    X = width * rng.normal(size=(k, d))[rng.integers(k, size=n)] + rng.normal(size=(n, d))
    vb, ours = timed(lambda: VBMixture("auto", random_state=0).fit(X))
    bic: list[float] = []
    peer, _ = timed(lambda: bic.extend(GaussianMixture(j, random_state=0).fit(X).bic(X) for j in range(1, 21)))
    return {"vb": vb, "peer": peer, "n_components": ours.n_components_, "n_by_bic": 1 + int(np.argmin(bic))}  # type: ignore[attr-defined]


def of_factors(n: int, d: int, k: int) -> dict:
    """The record of factors: seconds of both, each the median of five fits, and the number that was chosen."""
    rng = np.random.default_rng([n, d, k])
    X = rng.normal(size=(n, k)) @ rng.normal(size=(k, d)) + rng.normal(size=(n, d)) * rng.uniform(0.5, 1.2, size=d)
    ours, theirs = VBFactorAnalysis(random_state=0), FactorAnalysis()
    runs = [(timed(lambda: ours.fit(X)), timed(lambda: theirs.fit(X))) for _ in range(5)]
    vb, peer = (float(np.median([each[side][0] for each in runs])) for side in (0, 1))
    return {"vb": vb, "peer": peer, "n_factors": ours.n_factors_}


def read() -> dict[str, dict]:
    """Records by case."""
    return json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}


def ratio(ours: float | None, theirs: float | None) -> str:
    """Ours as multiple of theirs; an inequality where one of them was stopped, nothing where both were."""
    if ours is None:
        return "" if theirs is None else f"> {LIMIT / theirs:.2f}"
    return f"< {ours / LIMIT:.2f}" if theirs is None else f"{ours / theirs:.2f}"


def table(records: dict[str, dict]) -> list[tuple[str, ...]]:
    """Rows of the table of mixtures: case, seconds, our times as multiples of both of the peer, gain, and
    nats by which our fits from the peer's solution are better."""
    rows = []
    for n, d, k in MIXTURES:
        if record := records.get(f"{n} x {d}, {k}"):
            vb, ml, peer, tight = (record[name] for name in SECONDS)
            seconds = (f"> {LIMIT}" if ours is None else f"{ours:.3g}" for ours in (vb, ml))
            ratios = (ratio(ours, theirs) for theirs in (peer, tight) for ours in (vb, ml))
            gain = f"{record['gain']:+.2f}" if "gain" in record else ""
            none = {name: "" if record[name] is None else "spike" for name in ("vb", "ml")}
            gains = {name: record.get(f"better_{name}") for name in none}
            better = (none[name] if each is None else f"{max(each, 0.0):.2f}" for name, each in gains.items())
            rows.append((f"{n} x {d}", str(k), *seconds, *ratios, gain, *better))
    return rows


def table_of_numbers(records: dict[str, dict]) -> list[tuple[str, ...]]:
    """Rows of the table of numbers: case, clumps, width, numbers chosen by both, seconds of both, and their ratio."""
    rows = []
    for n, d, k, width in NUMBERS:
        if record := records.get(f"numbers, {n} x {d}, {k}"):
            vb, peer = record["vb"], record["peer"]
            chosen = (str(record["n_components"]), str(record["n_by_bic"]))
            rows.append((f"{n} x {d}", str(k), f"{width:g}", *chosen, f"{vb:.2f}", f"{peer:.2f}", f"{vb / peer:.2f}"))
    return rows


def table_of_factors(records: dict[str, dict]) -> list[tuple[str, ...]]:
    """Rows of the table of factors: case, number chosen, seconds of both, and their ratio."""
    rows = []
    for n, d, k in FACTORS:
        if record := records.get(f"factors, {n} x {d}, {k}"):
            vb, peer = record["vb"], record["peer"]
            rows.append((f"{n} x {d}", str(record["n_factors"]), f"{vb:.3f}", f"{peer:.4f}", f"{vb / peer:.1f}"))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    only, X = parser.parse_args().only, clumps(100, 2, 2)
    VBMixture(2, random_state=0).fit(X), GaussianMixture(2).fit(X), FactorAnalysis().fit(X)  # imports have their time
    cases: list[tuple[str, Callable[..., dict], tuple]] = []
    cases += [(f"factors, {n} x {d}, {k}", of_factors, (n, d, k)) for n, d, k in FACTORS]
    cases += [(f"numbers, {n} x {d}, {k}", of_numbers, (n, d, k, width)) for n, d, k, width in NUMBERS]
    cases += [(f"{n} x {d}, {k}", of_mixture, (n, d, k)) for n, d, k in MIXTURES]
    for name, measure, size in cases:
        if only in name:
            record = {key: value if value is None else round(value, 4) for key, value in measure(*size).items()}
            RESULTS.write_text(json.dumps(read() | {name: record}, indent=1) + "\n", "utf-8")
            print(name, record, flush=True)
    for rows in (table(read()), table_of_numbers(read()), table_of_factors(read())):
        print(*map(", ".join, rows), sep="\n")


if __name__ == "__main__":
    main()
