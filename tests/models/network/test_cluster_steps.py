"""Steps with clusters on two hidden chains behind one symbol: what acceleration, kept states and more sweeps do."""

import csv
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from skvbem.data import Rows
from skvbem.graphs.dag import DAG
from skvbem.models import DiscreteDAG
from skvbem.models.network.clusters import Partition
from skvbem.models.network.model import StructuredAscent
from skvbem.vbem.driver import run
from skvbem.vbem.posteriors import VB

approx = pytest.approx
TABLE = Path(__file__).parents[2] / "data" / "clusters" / "factorial_chain_1_9.csv"
CHAINS = (("h0", "h1", "h2"), ("g0", "g1", "g2"))


def two_chains(clusters):
    """The network of S-5's second data with these clusters, and its rows compiled."""
    with open(TABLE, newline="") as file:
        values = np.array([*csv.reader(file)][1:], dtype=int)
    parents = {f"{c}{t}": (f"{c}{t - 1}",) if t else () for c in "hg" for t in range(3)}
    parents |= {f"y{t}": (f"h{t}", f"g{t}") for t in range(3)}
    dag = DAG(list(parents), parents)
    sizes = {node: 3 if node[0] == "y" else 2 for node in parents}
    model = DiscreteDAG(dag, sizes, {n: np.ones([sizes[m] for m in dag.family(n)]) for n in dag.nodes})
    partition = Partition(tuple(tuple(model.position[node] for node in cluster) for cluster in clusters))
    model = model.with_partition(partition)
    rows = Rows(("y0", "y1", "y2"), values[:, :3].astype(np.int8), values[:, 3].astype(float))
    return model, model.compile(rows)


def starts_of(model, ascent, n):
    rng = np.random.default_rng(1)
    return ascent.expect(np.log(np.stack([model.random_point(rng) for _ in range(n)], axis=1)))


def steps(model, data, n_steps, n_sweeps=1, anew=False):
    """The bound after each M step and its sweeps, from one start."""
    ascent = StructuredAscent(model, data, VB)
    counts, state = np.split(starts_of(model, ascent, 1), [ascent.n_cells])
    trace = []
    for _ in range(n_steps):
        natural, penalty = VB.of(model.prior, counts)
        state = data.uniform(1) if anew else state
        for _ in range(n_sweeps):
            counts, bound, state = data.swept(natural, np.ascontiguousarray(state))
        exact = model.expect(natural, data.exact)
        counts = counts + exact.statistics
        trace.append(float((bound + exact.log_normalizer + penalty)[0]))
    return trace


def test_an_ascent_begun_anew_from_uniform_clusters_is_none():
    """S-9: F falls in some steps and ends lower; with what is kept of q(x) it never falls."""
    model, data = two_chains(())
    anew, kept = steps(model, data, 200, anew=True), steps(model, data, 200)
    assert sum(b < a - 1e-6 for a, b in pairwise(anew)) > 5
    assert all(b >= a - 1e-9 for a, b in pairwise(kept))
    assert max(anew[-20:]) < kept[-1]


@pytest.mark.slow
def test_one_sweep_for_each_m_step_is_enough():
    """S-10: at equal numbers of M steps more sweeps gain little, and cost their number."""
    model, data = two_chains(())
    ends = [steps(model, data, 400, n_sweeps)[-1] for n_sweeps in (1, 2, 5)]
    assert max(ends) - min(ends) < 0.3


@pytest.mark.parametrize("clusters", [pytest.param((), marks=pytest.mark.slow), CHAINS])
def test_extrapolation_takes_what_is_kept_along(clusters):
    """S-8: the same optima in a fraction of the E steps; no fall."""
    model, data = two_chains(clusters)
    ascent = StructuredAscent(model, data, VB)
    starts = starts_of(model, ascent, 4)
    plain, leaping = (run(ascent, starts, tol=1e-5, max_iter=50_000, accelerate=a) for a in (False, True))
    assert max(leaping.objective) == approx(max(plain.objective), abs=0.1)
    assert leaping.n_iter.sum() < 0.5 * plain.n_iter.sum()
    for trace in (*plain.traces, *leaping.traces):
        assert all(b >= a - 1e-8 for a, b in pairwise(trace))
