"""Is a default fit as soon done as scikit-learn's, and as good? Both fit the same rows in turns, on one thread.

``VBMixture(K, method="ml")`` with its defaults against ``GaussianMixture(K, n_init=10)``, "full" covariances: CPU
seconds of both, and the difference of the log likelihoods reached, total nats. Then counts, to which components are
added as long as that raises the bound ("auto").

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.fit_times --label NAME [--only 300]

The record, fit_times_results.json next to this file, has one entry for each label and case.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import load_digits
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_info

from skvbem import VBMixture

RESULTS = Path(__file__).with_name("fit_times_results.json")
#: CPU and wall seconds of two fits of 100 000 x 10, K = 10, with the threads of BLAS that are installed and with one.
THREADS = Path(__file__).with_name("blas_threads_results.json")
#: Rows, columns, components, and rounds in turns.
CASES = {
    "300 x 4": (300, 4, 3, 7),
    "2 000 x 5": (2_000, 5, 5, 5),
    "20 000 x 10": (20_000, 10, 8, 3),
    "100 000 x 10": (100_000, 10, 8, 1),
    "1 000 000 x 5": (1_000_000, 5, 8, 1),
}


def clumps(n: int, d: int, n_clumps: int) -> np.ndarray:
    """Rows around as many means as there are components, three standard deviations of the rows apart in each column."""
    rng = np.random.default_rng([n, d])
    return 3 * rng.normal(size=(n_clumps, d))[rng.integers(n_clumps, size=n)] + rng.normal(size=(n, d))


def timed(fit: Callable) -> tuple[float, object]:
    """CPU seconds that a fit took, and the model."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fit()
    return time.process_time() - began, model


def measured(case: str, n_rounds: int | None = None) -> dict:
    """The record of a case: seconds of both in every round, log likelihoods of both, and our seconds by VB."""
    n, d, k, rounds = CASES[case]
    X = clumps(n, d, k)
    record: dict = {name: [] for name in ("seconds", "peer_seconds", "gain", "vb_seconds")}
    for seed in range(n_rounds or rounds):
        seconds, ours = timed(lambda seed=seed: VBMixture(k, method="ml", random_state=seed).fit(X))
        peer_seconds, peer = timed(lambda seed=seed: GaussianMixture(k, n_init=10, random_state=seed).fit(X))
        vb_seconds, _ = timed(lambda seed=seed: VBMixture(k, random_state=seed).fit(X))
        record["seconds"].append(round(seconds, 4))
        record["peer_seconds"].append(round(peer_seconds, 4))
        record["vb_seconds"].append(round(vb_seconds, 4))
        record["gain"].append(round(float(ours.log_likelihood_ - n * peer.score(X)), 4))
    return record


def measured_auto() -> dict:
    """The record of counts: 1 797 images of 64 pixels, Poisson, "auto"."""
    X = load_digits().data
    X = X[:, X.max(axis=0) > 0]
    seconds, model = timed(lambda: VBMixture("auto", emission="poisson", random_state=0).fit(X))
    return {"seconds": [round(seconds, 2)], "n_components": model.n_components_, "bound": round(model.lower_bound_, 2)}


def of_threads(kind: str) -> tuple[float, float, bool]:
    """CPU and wall seconds of two default fits of 100 000 x 10, and whether BLAS has as many threads after as before.

    They are fitted in turn ("plain"), in "threads" that overlap, or in "workers" of joblib. Call it in a fresh process,
    with and without ``OMP_NUM_THREADS=1`` in its environment.
    """
    X = clumps(100_000, 10, 10)

    def fit(seed: int) -> float:
        return timed(lambda: VBMixture(10, random_state=seed).fit(X))[0]

    def threads() -> list[int]:
        return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]

    backend, n_jobs = ("loky", 2) if kind == "workers" else ("threading", 1 + (kind == "threads"))
    with Parallel(n_jobs, backend=backend) as parallel:
        parallel(delayed(fit)(seed) for seed in range(2))  # imports have their time
        before, began, cpu = threads(), time.perf_counter(), time.process_time()
        seconds = parallel(delayed(fit)(seed) for seed in range(2))
        cpu = sum(seconds) if kind == "workers" else time.process_time() - cpu
        return cpu, time.perf_counter() - began, threads() == before


AUTO = "counts 1 797 x 64, auto"


def read(path: Path = RESULTS) -> dict[str, dict[str, dict]]:
    """Records by label and case."""
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def table(records: dict[str, dict]) -> list[tuple[str, ...]]:
    """Rows of the table: case, our seconds, those of the peer, their ratio, the gain in log likelihood, those of VB."""
    rows = []
    for case in CASES:
        if case in records:
            record = records[case]
            ours, theirs, vb = (np.array(record[name]) for name in ("seconds", "peer_seconds", "vb_seconds"))
            rows.append(
                (
                    case,
                    f"{np.median(ours):.3g}",
                    f"{np.median(theirs):.3g}",
                    f"{np.median(ours / theirs):.2f}",
                    f"{min(record['gain']):+.2f} to {max(record['gain']):+.2f}",
                    f"{np.median(vb):.3g}",
                )
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--label", required=True)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--output", type=Path, default=RESULTS)
    asked = parser.parse_args()
    for case in (*CASES, AUTO):
        if not asked.only or any(case.startswith(text) for text in asked.only):
            record = measured_auto() if case == AUTO else measured(case)
            records = read(asked.output)
            records.setdefault(asked.label, {})[case] = record
            asked.output.write_text(json.dumps(records, indent=1) + "\n", "utf-8")
            print(case, record, flush=True)
    print(*map(", ".join, table(read(asked.output).get(asked.label, {}))), sep="\n")


if __name__ == "__main__":
    main()
