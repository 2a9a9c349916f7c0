"""The library under test, as the benchmarks call it: the one place that knows the estimator's interface."""

from __future__ import annotations

from timing import timed

from skvbem import VBDiscreteDAG

PLAIN = {"random_state": 0, "acceleration": False}
# Runs to exactly max_iter steps, for costs per iteration.
ENDLESS = PLAIN | {"n_init": 1, "tol": 0.0}


def fit(codes, structure, latents, **settings):
    """A fitted estimator; columns of ``codes`` are x0, x1, ..."""
    return VBDiscreteDAG(structure, latents=latents, **settings).fit(codes)


def n_iterations(estimator) -> int:
    """Steps taken by all starts together."""
    return int(sum(estimator.restarts_.n_iter))


def seconds_per_iteration(codes, structure, latents, short=20, long=220, fits=3, **settings) -> float:
    """(Long fit - short fit) / iterations, each the best of ``fits``, of one start that is not allowed to stop."""
    taken, done = {}, {}
    for max_iter in (short, long):
        runs = [timed(fit, codes, structure, latents, **ENDLESS, max_iter=max_iter, **settings) for _ in range(fits)]
        taken[max_iter] = min(seconds for seconds, _ in runs)
        done[max_iter] = n_iterations(runs[0][1])
    if done[long] <= done[short]:
        raise RuntimeError(f"the long fit stopped after {done[long]} iterations, no later than the short one")
    return (taken[long] - taken[short]) / (done[long] - done[short])
