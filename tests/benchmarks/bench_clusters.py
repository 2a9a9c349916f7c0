"""E steps in clusters: a step beside exact ones of the clusters' sizes, and a network that no exact step fits.

    python tests/benchmarks/bench_clusters.py [rows]

The network has two layers: 30 hidden causes, 60 findings with 4 of them each, 20 % of the cells missing. The bound of
clusters (`inference="structured"`) stands beside that of mean field, with seconds and the peak of memory.

Record, 5 000 rows, two processors that others used as well: a sweep takes 1.9 times exact steps of its clusters (2.7
before its kernels read, kept and counted cells side by side). Mean field: bound -147328.97, 86 steps, 28 s, peak
203 MB. Structured, with the fits that clusters are chosen by: bound -144007.80, 89 steps, 227 s, peak 272 MB, clusters
of 16 and 14.
"""

import resource
import sys
import time

import numpy as np
from timing import interleave, timed_on_processor

from skvbem import VBDiscreteDAG
from skvbem.data import Rows
from skvbem.graphs.dag import DAG
from skvbem.models import DiscreteDAG
from skvbem.models.network.clusters import Partition


def two_layers(n_causes, n_findings, n_parents, rng):
    """Edges from hidden causes to findings."""
    causes = [f"c{k}" for k in range(n_causes)]
    edges = [
        (cause, f"x{k}")
        for k in range(n_findings)
        for cause in sorted(rng.choice(n_causes, n_parents, replace=False).tolist())
    ]
    return causes, [(causes[cause], finding) for cause, finding in edges]


def rows_of_causes(causes, edges, n_rows, rng, missing=0.2):
    """Findings that causes make likely, some of them not looked at."""
    present = rng.random((n_rows, len(causes))) < rng.uniform(0.1, 0.4, len(causes))
    findings = sorted({finding for _, finding in edges}, key=lambda name: int(name[1:]))
    X = np.empty((n_rows, len(findings)))
    for k, finding in enumerate(findings):
        parents = [causes.index(cause) for cause, child in edges if child == finding]
        absent = 0.95 * np.prod(np.where(present[:, parents], rng.uniform(0.1, 0.5, len(parents)), 1.0), axis=1)
        X[:, k] = rng.random(n_rows) > absent
    X[rng.random(X.shape) < missing] = np.nan
    return X


def bench_step(n_rows=4000, n_lanes=10, n_steps=6):
    """A sweep over two hidden chains behind one symbol per step, beside exact steps of two chains apart."""
    rng = np.random.default_rng(0)

    def network(symbols):
        parents = {f"{c}{t}": (f"{c}{t - 1}",) if t else () for c in "hg" for t in range(n_steps)}
        for t in range(n_steps):
            parents |= symbols(t)
        dag = DAG(list(parents), parents)
        sizes = {node: 8 if node[0] in "yz" else 3 for node in parents}
        prior = {node: np.ones([sizes[m] for m in dag.family(node)]) for node in dag.nodes}
        return DiscreteDAG(dag, sizes, prior)

    together = network(lambda t: {f"y{t}": (f"h{t}", f"g{t}")})
    beside = network(lambda t: {f"y{t}": (f"h{t}",), f"z{t}": (f"g{t}",)})
    chains = Partition(tuple(tuple(together.position[f"{c}{t}"] for t in range(n_steps)) for c in "hg"))
    codes = rng.integers(8, size=(n_rows, n_steps)).astype(np.int8)
    of_y = tuple(f"y{t}" for t in range(n_steps))
    of_z = tuple(f"z{t}" for t in range(n_steps))
    clusters = together.with_partition(chains).compile(Rows(of_y, codes))
    exact = beside.compile(Rows(of_y + of_z, np.hstack([codes, codes])))
    naturals = [model.random_point(rng)[:, None].repeat(n_lanes, axis=1) for model in (together, beside)]
    naturals = [np.log(each) for each in naturals]
    state = clusters.uniform(n_lanes)
    cases = {
        "sweep": lambda: timed_on_processor(clusters.swept, naturals[0], state)[0],
        "exact": lambda: timed_on_processor(beside.expect, naturals[1], exact)[0],
    }
    seconds = interleave(cases, 31)
    sweep, apart = (np.median(seconds[name]) for name in ("sweep", "exact"))
    ratio = np.median(seconds["sweep"] / seconds["exact"])
    print(f"a sweep {sweep:.3f} s, exact steps of its clusters {apart:.3f} s: {ratio:.2f} times")


def bench_fit(n_rows):
    """Seconds, memory and bounds of fits to a network that no exact step fits."""
    rng = np.random.default_rng(1)
    causes, edges = two_layers(30, 60, 4, rng)
    X = rows_of_causes(causes, edges, n_rows, rng)
    for inference in ("mean_field", "structured"):
        start = time.perf_counter()
        model = VBDiscreteDAG(
            edges, latents=causes, inference=inference, max_table_cells=1024, n_init=1, init="random", random_state=0,
            tol=1.0, max_iter=300,
        ).fit(X)  # fmt: skip
        seconds = time.perf_counter() - start
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        sizes = sorted(map(len, set(model.inference_.values())), reverse=True)
        fit = f"bound {model.lower_bound_:.2f}, {model.n_iter_} steps, {seconds:.0f} s, peak {memory:.0f} MB"
        print(f"{inference}: {fit}, clusters of {sizes}")


if __name__ == "__main__":
    bench_step()
    bench_fit(int(sys.argv[1]) if len(sys.argv) > 1 else 5000)
