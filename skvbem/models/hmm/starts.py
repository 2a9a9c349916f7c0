"""Starts of hidden Markov models: those of mixtures, blurred, with the states in an order that the prior allows.

A row goes to the state of the nearest of some seeds (see `skvbem.models.labels.distinct_rows`), and with a share that
changes from start to start to states drawn for that seed. In all starts but the first, where a state leads to is drawn,
too: in sequences of few symbols no row tells states apart by itself, but the ways on from them do.
In one start of four, runs of time share a state that is drawn for them: where states overlap and stay, rows say
little of where they are, and neighbors much. The state depends on the rows and their time alone.
Where a mask rules transitions out, states are put in the order, of a few, that loses the fewest counts. Where none
leads back, every other start cuts the sequences into as many pieces, one for each state: the first into equal ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skvbem.data import mixed
from skvbem.models.hmm.model import HMM
from skvbem.models.hmm.transitions import Transitions
from skvbem.models.labels.distinct_rows import DistinctRows, drawn_seeds, nearest_seeds, with_known_labels
from skvbem.models.sequences import HMMData

# The share of a row that does not go to the state of its seed, from start to start.
_ELSEWHERE = (0.1, 0.5, 0.9)
# The share of transitions that are those of the rows so shared out, where they are drawn.
_AS_FOUND = 0.1
# Rows of runs of time that share a state, and how often starts have them.
_SHORTEST, _LONGEST, _EVERY = 2, 64, 4


def seeded_starts(
    kind: str, model: HMM, data: HMMData, rows: DistinctRows, n_starts: int, rng: np.random.Generator
) -> np.ndarray:
    """Statistics of as many starts, (n_cells, n_starts), the first ones the same however many there are.

    Parameters
    ----------
    kind : {"auto", "k-means++", "random"}
        Whether seeds keep away from each other; in every other start with "auto".
    model : HMM
    data : HMMData
        With row hashes.
    rows : DistinctRows
        Of the data, among which seeds are drawn.
    n_starts : int
    rng : numpy.random.Generator
    """
    n_states = model.n_components
    if not data.row_weight.any():  # nothing was observed
        return np.zeros((model.n_cells, n_starts))
    of_blur, of_seeds = rng.spawn(2)
    seeds = drawn_seeds(kind, model.n_components, rows, n_starts, of_seeds)
    rngs = of_blur.spawn(n_starts)
    blurred = np.stack([_blurred(n_states, k, each) for k, each in enumerate(rngs)])

    cuts = _cuts(model, rngs)
    times = _times(data) if cuts else np.empty(0)
    pieces = {} if cuts or n_states == 1 else _pieces(model, data, rngs)
    cut_up = cuts.keys() | pieces.keys()

    def smoothed_of(block: slice) -> np.ndarray:
        nearest = nearest_seeds(model.emission, data.table[block], seeds)
        probability = np.stack([of_seeds[seed].T for of_seeds, seed in zip(blurred, nearest)])
        for lane in cut_up:
            state = pieces[lane][block] if lane in pieces else np.searchsorted(cuts[lane], times[block], side="right")
            probability[lane] = (1 - _ELSEWHERE[0]) * (state == np.arange(n_states)[:, None]) + _ELSEWHERE[0] / n_states
        return with_known_labels(probability, data.table[block].labels) if model.emission.n_levels else probability

    is_free = model.transitions.allowed.all() and model.initial.allowed.all()
    if not is_free and not model.emission.n_levels:  # known labels have an order of their own
        blurred = _in_order(model, data, smoothed_of, blurred)
    statistics = model.statistics_from(smoothed_of, data, n_starts)
    pairs = slice(model.initial.n_cells, model.initial.n_cells + model.transitions.n_cells)
    for lane in set(range(1, n_starts)) - cut_up:
        statistics[pairs, lane] = model.transitions.redirected(statistics[pairs, lane], _AS_FOUND, rngs[lane])
    return statistics


def _blurred(n_states: int, number: int, rng: np.random.Generator) -> np.ndarray:
    """Probabilities of states in rows of each seed, (n_states, n_states)."""
    fraction = _ELSEWHERE[number % len(_ELSEWHERE)]
    return (1 - fraction) * np.eye(n_states) + fraction * rng.dirichlet(np.ones(n_states), n_states)


def _times(data: HMMData) -> np.ndarray:
    """Relative time of each row between the begin (0) and the end (1) of its sequence, (n_rows,)."""
    return (np.arange(len(data)) - np.repeat(data.starts[:-1], data.lengths) + 0.5) / np.repeat(
        data.lengths, data.lengths
    )


def _cuts(model: HMM, rngs: list[np.random.Generator]) -> dict[int, np.ndarray]:
    """Relative times, from 0 to 1, at which starts cut sequences into pieces, (n_states - 1,) by start."""
    n = model.n_components
    if n == 1 or np.tril(model.transitions.allowed, -1).any():
        return {}
    drawn = {lane: rngs[lane].dirichlet(np.full(n, 2.0)) for lane in range(2, len(rngs), 2)}
    return {lane: np.cumsum(pieces)[:-1] for lane, pieces in ({0: np.full(n, 1 / n)} | drawn).items()}


def _pieces(model: HMM, data: HMMData, rngs: list[np.random.Generator]) -> dict[int, np.ndarray]:
    """The states of rows, (n_rows,), by start, of the starts in which runs of time share one."""
    lanes = range(_EVERY - 1, len(rngs), _EVERY)
    if not lanes:
        return {}
    assert data.row_hashes is not None
    of_rows, first = data.row_hashes(slice(None)), np.repeat(data.starts[:-1], data.lengths)
    time, states = np.arange(len(data)) - first, {}
    for lane in lanes:
        length = int(np.exp(rngs[lane].uniform(np.log(_SHORTEST), np.log(_LONGEST))))
        number = (time // length).astype(np.uint64) ^ rngs[lane].integers(2**63, dtype=np.uint64)
        word = mixed(mixed(of_rows[first + time // length * length]) ^ mixed(number))
        states[lane] = (word % np.uint64(model.n_components)).astype(np.int64)
    return states


def _in_order(model: HMM, data: HMMData, smoothed_of: Callable, blurred: np.ndarray) -> np.ndarray:
    """Probabilities of states of seeds, the states of each start in an order in which the masks rule out little."""
    n_starts, n = len(blurred), model.n_components
    all_of_them = Transitions(np.ones((1, n))), Transitions(np.ones((n, n)))
    free = HMM(model.emission, *all_of_them, model.prior.blocks[2])
    counts = free.statistics_from(smoothed_of, data, n_starts)
    first, pairs = counts[:n], counts[n : n + n * n].reshape(n, n, n_starts)
    times, may_begin = _mean_times(model, data, smoothed_of, n_starts), model.initial.allowed[0]
    ordered = np.empty_like(blurred)
    for lane in range(n_starts):
        orders = [np.arange(n), np.argsort(times[lane], kind="stable")]
        along = _along(pairs[..., lane])
        orders += [along, along[::-1]]
        lost = [
            first[order, lane][~may_begin].sum() + pairs[np.ix_(order, order)][~model.transitions.allowed, lane].sum()
            for order in orders
        ]
        ordered[lane] = blurred[lane][:, orders[int(np.argmin(lost))]]
    return ordered


def _mean_times(model: HMM, data: HMMData, smoothed_of: Callable, n_starts: int) -> np.ndarray:
    """When, between the begin (0) and the end (1) of its sequence, a row of each state is met, (n_starts, n_states)."""
    time = _times(data)
    total, mass = np.zeros((2, n_starts, model.n_components))
    size = model.emission.block_rows(model.n_components, n_starts)
    for at in range(0, len(data), size):
        rows = slice(at, at + size)
        weighted = smoothed_of(rows) * data.row_weight[rows]
        total += weighted @ time[rows]
        mass += weighted.sum(axis=-1)
    return total / np.maximum(mass, 1e-300)


def _along(pairs: np.ndarray) -> np.ndarray:
    """States so ordered that those which follow each other often are near: by the second eigenvector [Fiedler 1973]."""
    near = (pairs + pairs.T) / 2
    _, vectors = np.linalg.eigh(np.diag(near.sum(axis=1)) - near)
    return np.argsort(vectors[:, min(1, len(near) - 1)], kind="stable")
