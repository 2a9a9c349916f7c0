"""
A search on a cluster
=====================

:class:`~skvbem.StructureSearchCV` asks joblib for its workers, so that it runs wherever joblib does. With ``n_jobs=2``
they are two processes of this machine. The same search runs on a cluster of dask or of ray when it is called under
their backend. The table is the same to the last bit.

Run it as ``python search_on_a_cluster.py dask`` or ``python search_on_a_cluster.py ray``. It starts a cluster of two
worker processes on this machine; with a cluster of your own only the address differs.
"""

import sys
import time
from contextlib import contextmanager
from importlib.util import find_spec

import joblib
import numpy as np

from skvbem import BipartiteSpace, StructureSearchCV, VBDiscreteDAG
from skvbem.datasets import make_bipartite

N_WORKERS = 2

# %%
# The search
# ----------
# 136 structures, each scored by annealed importance sampling, which takes about a second: worth sending away.

space = BipartiteSpace({"h0": 2, "h1": 2}, ["x0", "x1", "x2", "x3"])


def search(X):
    scored = StructureSearchCV(
        VBDiscreteDAG(n_init=5), space, scoring="ais", refit=False, random_state=0, n_jobs=N_WORKERS, verbose=1
    )
    return scored.fit(X)


# %%
# Under dask
# ----------
# joblib scatters the data once; tasks of the search hold batches of candidates, and refer to the data by a key. For a
# cluster that exists already, ``Client("tcp://scheduler:8786")`` is all there is to do.


@contextmanager
def dask_cluster():
    from distributed import Client, LocalCluster

    with (
        LocalCluster(N_WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        yield


# %%
# Under ray
# ---------
# The search puts its data into ray's store, once. For a cluster that exists already it is ``ray.init("auto")``.


@contextmanager
def ray_cluster():
    import ray
    from ray.util.joblib import register_ray

    ray.init(num_cpus=N_WORKERS, include_dashboard=False)
    register_ray()
    try:
        with joblib.parallel_config(backend="ray"):
            yield
    finally:
        ray.shutdown()


# %%
# Both, beside one process
# ------------------------
# Workers import this file to find what is defined in it. So what starts them stands below the guard, or every worker
# would start a cluster of its own.
#
# A worker that dies costs nothing but time: the candidates that it had are tried again by others. A candidate that
# kills two workers, say for want of memory, is entered in ``cv_results_["failure"]``, and the rest go on. With
# ``checkpoint="search.json"`` an interrupted search goes on where it was.


def main(backend="dask", n_samples=480):
    package = {"dask": "distributed", "ray": "ray"}[backend]
    if find_spec(package) is None:
        sys.exit(f"This example needs {package}:  python -m pip install {package}")
    X = make_bipartite(n_samples, random_state=0).data
    with {"dask": dask_cluster, "ray": ray_cluster}[backend]():
        began = time.perf_counter()
        there = search(X)
        print(f"{backend}, {N_WORKERS} workers: {time.perf_counter() - began:.1f} s")
    with joblib.parallel_config(backend="sequential"):
        began = time.perf_counter()
        here = search(X)
        print(f"one process: {time.perf_counter() - began:.1f} s")
    print(f"best structure: {there.best_structure_}")
    scores = "mean_test_score"
    print(f"same bits: {np.array_equal(there.cv_results_[scores], here.cv_results_[scores])}")


if __name__ == "__main__":
    main(*sys.argv[1:])
