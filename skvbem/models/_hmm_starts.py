"""Starts of hidden Markov models: three kinds in turn, since each finds optima that the others miss.

- Seeds that keep away from each other, as for mixtures (`skvbem.models._seeding`), and the mean chain of the prior.
- Seeds drawn among all rows, which tell apart states that differ in spread rather than place, and a chain drawn from
  the prior, for states that are told apart by what follows.
- Stretches of time that share a state, for chains that stay: rows say little of where those are, neighbors much.

The statistics of the first two are those expected at what the seeds' rows emit under that chain, so that masks are kept
to and neighbors in time have their say. All are the same for any order of sequences, and for weights as for repeats.
"""

from __future__ import annotations

import numpy as np

from skvbem.data import mixed
from skvbem.models._seeding import seeded_starts
from skvbem.models.hmm import HMM, HMMData

# Rows of stretches that share a state, and the share of a row that goes to other states.
_SHORTEST, _LONGEST, _ELSEWHERE = 2, 64, 0.1


def chain_starts(model: HMM, data: HMMData, marks: np.ndarray, n_starts: int, rng: np.random.Generator) -> np.ndarray:
    """Statistics of as many starts, (n_cells, n_starts), the first ones the same however many there are.

    Parameters
    ----------
    model : HMM
    data : HMMData
    marks : ndarray of uint64, shape (n_rows,)
        Equal for equal rows alone.
    n_starts : int
    rng : numpy.random.Generator
    """
    seeds = rng.integers(2**63, size=3)
    n_chain = model.initial.n_cells + model.transitions.n_cells
    found = np.empty((model.n_cells, n_starts))
    for kind, spread in ((0, True), (1, False)):
        lanes = range(kind, n_starts, 3)
        if not len(lanes):
            continue
        of_kind = np.random.default_rng(seeds[kind])
        statistics = seeded_starts(model, data, marks, len(lanes), spread=spread, rng=of_kind)
        statistics[:n_chain] = 0.0
        natural = (model.prior + statistics).expected_natural()
        if not spread:
            natural[:n_chain] = _drawn(model, len(lanes), int(seeds[kind]))[:n_chain]
        found[:, lanes] = model.expect(natural, data).statistics
    for k, lane in enumerate(range(2, n_starts, 3)):
        found[:, lane] = _of_stretches(model, data, marks, np.random.default_rng([int(seeds[2]), k]))
    return found


def drawn_starts(model: HMM, data: HMMData, n_starts: int, rng: np.random.Generator) -> np.ndarray:
    """Statistics (n_cells, n_starts) expected at points drawn from the prior, emissions and all [Beal §3.5]."""
    return model.expect(_drawn(model, n_starts, int(rng.integers(2**63))), data).statistics


def _of_stretches(model: HMM, data: HMMData, marks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Statistics (n_cells,) of stretches of a common state, which depends on their place in time and on their rows."""
    length = int(np.exp(rng.uniform(np.log(_SHORTEST), np.log(_LONGEST))))
    first = np.repeat(data.starts[:-1], data.lengths)
    at = (np.arange(len(data)) - first) // length
    words = mixed(
        mixed(marks[first + at * length]) ^ mixed(at.astype(np.uint64) ^ rng.integers(2**63, dtype=np.uint64))
    )
    own = (words % np.uint64(model.n_components)).astype(np.int64)

    def shares_of(rows: slice) -> np.ndarray:
        shares = (own[rows] == np.arange(model.n_components)[:, None]) * (1 - _ELSEWHERE)
        return shares[None] + _ELSEWHERE / model.n_components

    return model.statistics_from(shares_of, data, 1)[:, 0]


def _drawn(model: HMM, n_starts: int, seed: int) -> np.ndarray:
    """Natural parameters of points drawn from the prior, (n_cells, n_starts), each from its own generator."""
    rngs = (np.random.default_rng([seed, k]) for k in range(n_starts))
    return np.stack([model.prior.natural(model.prior.sample(rng)) for rng in rngs], axis=1)
