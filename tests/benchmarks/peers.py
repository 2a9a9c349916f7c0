"""Seconds per EM iteration of other libraries on a network with latent nodes: (long fit - short fit) / iterations.

Each peer is a function ``(codes, edges, latents, cards, threads) -> measure``, where ``measure()`` returns seconds per
iteration; it raises ImportError where the library is not installed. ``latents`` maps names to numbers of states,
``cards`` the columns x0, x1, ... to theirs.
"""

from __future__ import annotations

import logging
import math

from timing import timed


def pgmpy(codes, edges, latents, cards, threads):
    """DiscreteEM: Python loops over distinct rows times latent states."""
    import pandas as pd
    from pgmpy.models import DiscreteBayesianNetwork
    from pgmpy.parameter_estimator import DiscreteEM

    logging.getLogger("pgmpy").setLevel(logging.ERROR)
    frame = pd.DataFrame(codes, columns=list(cards))

    def fit(n_iter):
        em = DiscreteEM(
            state_names={name: list(range(card)) for name, card in (latents | cards).items()},
            latent_card=dict(latents),
            max_iter=n_iter,
            atol=0.0,
            n_jobs=threads,
            batch_size=math.ceil(len(frame) / threads),
            seed=0,
            show_progress=False,
        )
        return timed(em.fit, DiscreteBayesianNetwork(edges, latents=set(latents)), frame)[0]

    def measure(short=1, long=5):
        return (fit(long) - fit(short)) / (long - short)

    return measure


def pyagrum(codes, edges, latents, cards, threads):
    """BNLearner's EM, latents being columns of missing values.

    Both of its stopping tests are off: its monitored quantity can fall where the likelihood rises, and it then stops.
    """
    import pandas as pd
    import pyagrum as gum

    frame = pd.DataFrame(codes, columns=list(cards)).astype(str).assign(**dict.fromkeys(latents, "?"))

    def fit(n_iter):
        network = gum.BayesNet()
        for name, card in (latents | cards).items():
            network.add(gum.LabelizedVariable(name, name, [str(k) for k in range(card)]))
        for edge in edges:
            network.addArc(*edge)
        gum.initRandom(1)
        network.generateCPTs()
        learner = gum.BNLearner(frame, network, ["?"])
        learner.setNumberOfThreads(threads)
        learner.useEM(1e-12, 0.0)
        learner.EMdisableEpsilon()
        learner.EMdisableMinEpsilonRate()
        learner.EMenableMaxIter()
        learner.EMsetMaxIter(n_iter)
        return timed(learner.fitParameters, network)[0], learner.EMnbrIterations()

    def measure(short=1, long=5):
        (seconds_short, done_short), (seconds_long, done_long) = fit(short), fit(long)
        return (seconds_long - seconds_short) / (done_long - done_short)

    return measure


PEERS = {"pgmpy": ("pgmpy", pgmpy), "pyAgrum": ("pyAgrum", pyagrum)}
