"""Sampling scores on the network of Beal & Ghahramani: 136 structures, two binary latents, four five-valued columns.

Prints what the published form of annealed importance sampling takes for all structures on two threads (BG: 55 000 s on
a 1 GHz Pentium III), and what anchored chains cost against the ten-start fits of the same structures, run in turns:
median, 90 % and most of cost / fit, of the standard error and of the s.d. of ln w of chains from the best fit, nats.

    python bench_evidence.py [published] [anchored] [spread]
"""

import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations_with_replacement

import numpy as np
import pandas as pd

from skvbem import VBDiscreteDAG
from skvbem.evidence import get_score
from skvbem.fitting.evaluation import evaluation_of

OBSERVED = ("y0", "y1", "y2", "y3")
LATENTS = {"h0": 2, "h1": 2}
TRUTH = ((0,), (0, 1), (0, 1), (1,))


def structures():
    """Children of the one latent and of the other, each pair once: 136."""
    masks = range(16)
    for one, other in combinations_with_replacement(masks, 2):
        yield {
            node: [latent for latent, mask in zip(LATENTS, (one, other)) if mask >> j & 1]
            for j, node in enumerate(OBSERVED)
        }


def rows(n, seed=0):
    """Rows of one draw of parameters, h0 -> y0, y1, y2 and h1 -> y1, y2, y3."""
    rng = np.random.default_rng(seed)
    states = (rng.random((n, 2)) < rng.random(2)).astype(int)
    columns = {}
    for node, parents in zip(OBSERVED, TRUTH):
        tables = rng.dirichlet(np.ones(5), size=2 ** len(parents)).cumsum(axis=1)
        row = sum(states[:, parent] << k for k, parent in enumerate(parents))
        columns[node] = (rng.random((n, 1)) > tables[row][:, :-1]).sum(axis=1)
    return pd.DataFrame(columns)


def fit(structure, X):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Latent .* has no children")
        model = VBDiscreteDAG(structure, latents=LATENTS, categories=[range(5)] * 4, random_state=0)
        return model.fit(X)


def published(n=480, n_chains=1):
    X = rows(n)
    models = [fit(structure, X) for structure in structures()]
    evaluations = [evaluation_of(model, X, None, 0) for model in models]
    began = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda each: get_score("ais_metropolis")(each, n_chains=n_chains, n_steps=16384), evaluations))
    took = time.perf_counter() - began
    print(f"published form, 16 384 steps, {n_chains} chain(s), 136 structures, 2 threads: {took:.1f} s")


ASKED = {"all fits and the prior": {}, "one mode": {"n_fits": 1, "fractions": (0.5,)}}


def anchored(n=480):
    """Of all structures: the default, and chains from the best fit alone, which see the evidence of its mode."""
    X, found = rows(n), {asked: [] for asked in ASKED}
    for structure in structures():
        began = time.perf_counter()
        model = fit(structure, X)
        fitted = time.perf_counter() - began
        evaluation = evaluation_of(model, X, None, 0)
        for asked, options in ASKED.items():
            began = time.perf_counter()
            evidence = get_score("ais")(evaluation, **options)
            ratio = (time.perf_counter() - began) / fitted
            found[asked].append((ratio, evidence.standard_error, evidence.details["strata"][0].log_weights.std()))
    for asked, figures in found.items():
        met = np.mean([ratio <= 5 and error <= 0.5 for ratio, error, _ in figures])
        quantiles = np.quantile(figures, [0.5, 0.9, 1], axis=0).T
        each = [f"{name} {a:.2f} {b:.2f} {c:.2f}" for name, (a, b, c) in zip(("cost", "s.e.", "spread"), quantiles)]
        print(f"n = {n:4}, {asked:22}: {', '.join(each)}; cost <= 5 and s.e. <= 0.5: {met:.0%}", flush=True)


def main():
    wanted = sys.argv[1:] or ["published", "anchored", "spread"]
    if "anchored" in wanted:
        anchored()
    if "published" in wanted:
        published()
    if "spread" in wanted:
        for n in (20, 80, 320, 1280, 5120):
            anchored(n)


if __name__ == "__main__":
    main()
