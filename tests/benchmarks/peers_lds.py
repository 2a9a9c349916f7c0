"""Seconds of a step of dynamax and of statsmodels for ``bench_lds.py``, in a Python that has them: one line of JSON.

    python peers_lds.py steps|missing|panel

Seconds are those of the processor, after what compiles has been compiled. A step of dynamax is `e_step` and `m_step`,
jitted, in doubles; of statsmodels it is one pass of the smoother.
"""

from __future__ import annotations

import json
import os
import sys
import time

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
import numpy as np

P, K = 10, 5


def least(work, repeats):
    found = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)


def of_dynamax(y):
    """Sequences (n, T, p), complete."""
    import jax

    jax.config.update("jax_enable_x64", True)
    from dynamax.linear_gaussian_ssm import LinearGaussianSSM

    model = LinearGaussianSSM(K, P)
    parameters, properties = model.initialize(jax.random.PRNGKey(0))
    state = model.initialize_m_step_state(parameters, properties)
    y = jax.numpy.asarray(y)

    @jax.jit
    def step(parameters, state):
        statistics, log_likelihood = jax.vmap(lambda one: model.e_step(parameters, one))(y)
        return model.m_step(parameters, properties, statistics, state)[0], log_likelihood

    def run():
        jax.block_until_ready(step(parameters, state))

    run()
    return least(run, 5)


def of_statsmodels(y):
    """One sequence (T, p), NaN where a cell is missing."""
    from statsmodels.tsa.statespace.kalman_smoother import KalmanSmoother

    rng = np.random.default_rng(0)
    smoother = KalmanSmoother(P, K, k_posdef=K)
    smoother.bind(np.asfortranarray(y.T))
    smoother["design"], smoother["transition"] = rng.normal(size=(P, K)), 0.9 * np.eye(K)
    smoother["obs_cov"], smoother["state_cov"], smoother["selection"] = np.eye(P), np.eye(K), np.eye(K)
    smoother.initialize_known(np.zeros(K), np.eye(K))
    smoother.smooth()
    return least(smoother.smooth, 3)


def main():
    part, rng = sys.argv[1], np.random.default_rng(0)
    n_sequences, n = (200, 100) if part == "panel" else (1, 10_000)
    y = rng.normal(size=(n_sequences, n, P))
    found = {}
    if part == "missing":
        y[rng.random(y.shape) < 0.1] = np.nan
    else:
        found["dynamax"] = of_dynamax(y)
    if part != "panel":
        found["statsmodels"] = of_statsmodels(y[0])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
