"""Passes over states and ages against the chain of all cells written out, whatever the numbers and however cut."""

import itertools

import numpy as np
import pytest
from reference.hidden_markov import best_path, by_enumeration, forward_backward

from skvbem.models.hmm.semi_markov_passes import SemiMarkovPasses
from skvbem.models.hmm.semi_markov_rows import SemiMarkovRows
from skvbem.models.sequences import segments

approx = pytest.approx


def random_rows(rng, n_states, n_ages, kind):
    """Hazards of single ages or of bins, or stages; first ages or none; a mask, or a state never left, at times."""
    bins = {"stages": np.zeros(n_ages), "hazards": np.arange(n_ages), "bins": np.arange(n_ages) // 2}[kind].astype(int)
    others = np.where(np.eye(n_states, dtype=bool), 0.0, rng.uniform(0.3, 2.0, (n_states, n_states)))
    if rng.random() < 0.3:
        others[-1] = 0.0
    if n_states > 2 and rng.random() < 0.5:
        others[0, 2] = 0.0
    leaving = rng.uniform(0.3, 2.0, (1, n_states, bins[-1] + 1, 2))
    leaving[..., 0] *= (others > 0).any(axis=1)[None, :, None]
    ages = rng.uniform(0.3, 2.0, (n_states, n_ages)) if rng.random() < 0.4 else None
    return SemiMarkovRows(leaving, others, bins, kind == "stages", ages)


def written_out(rows, log_initial, natural):
    """Logs of first cells (n,) and of steps (n, n) of all cells k n_ages + a of a lane, by their definitions."""
    n_states, n_ages = rows.n_states, rows.n_ages
    of_leaving, of_jumps, *of_ages = (iter(part) for part in rows.split(natural))
    leave, stay = np.full((2, n_states, rows.bins[-1] + 1), -np.inf)
    for k, b in itertools.product(range(n_states), range(rows.bins[-1] + 1)):
        if rows.leaving[0, k, b, 0] > 0:
            leave[k, b] = next(of_leaving)
        stay[k, b] = next(of_leaving)
    jumps = np.full((n_states, n_states), -np.inf)
    for k in range(n_states):
        if not rows.others[k].any():
            next(of_jumps)
        for j in np.flatnonzero(rows.others[k]):
            jumps[k, j] = next(of_jumps)
    first, steps = np.full(n_states * n_ages, -np.inf), np.full((n_states * n_ages, n_states * n_ages), -np.inf)
    for k in range(n_states):
        for a in range(n_ages):
            cell, last = k * n_ages + a, a == n_ages - 1
            if of_ages:
                first[cell] = log_initial[k] + next(of_ages[0])
            elif a == 0:
                first[cell] = log_initial[k]
            out = leave[k, rows.bins[a]]
            if rows.are_stages:
                steps[cell, cell] = stay[k, 0]
                if not last:
                    steps[cell, cell + 1], out = out, -np.inf
            else:
                steps[cell, cell if last else cell + 1] = stay[k, rows.bins[a]]
            for j in range(n_states):
                if j != k and out > -np.inf:
                    steps[cell, j * n_ages] = out + jumps[k, j]
    return first, steps


def random_natural(rng, rows, n_lanes, sharp):
    """Logs of sub-normalized rows, some of them of next to nothing."""
    drawn = [rows.prior.sample(rng) for _ in range(n_lanes)]
    return np.log(np.maximum(np.stack(drawn, axis=1), 1e-300)) * sharp - rng.uniform(0, 0.3, (rows.n_cells, n_lanes))


def sequences(rng, n_sequences, longest):
    lengths = rng.integers(1, longest + 1, size=n_sequences)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return starts, (starts[1:] - rng.integers(0, 2, size=n_sequences) * (lengths > 1)).astype(np.int64)


def by_state(marginals, n_states):
    return marginals.reshape(len(marginals), n_states, -1).sum(axis=-1)


def statistics_of(rows, firsts, steps):
    """Statistics of expected first cells (n,) and steps (n, n), cell by cell."""
    n, n_ages = rows.n_states, rows.n_ages
    leaving, jumps, ages = np.zeros((n, rows.bins[-1] + 1, 2)), np.zeros((n, n)), firsts.reshape(n, n_ages)
    for (c, d), count in np.ndenumerate(steps):
        (k, a), (j, b) = divmod(c, n_ages), divmod(d, n_ages)
        if k != j:
            jumps[k, j] += count
        is_out = k != j or (rows.are_stages and b == a + 1)
        leaving[k, rows.bins[a], 0 if is_out else 1] += count
    keep = rows.leaving[0] > 0
    found = [leaving[keep], jumps[rows.others > 0] if rows.others.any(axis=1).all() else None]
    if found[1] is None:  # a state that is never left has itself as the next, which never comes
        allowed = rows.others > 0
        stuck = ~allowed.any(axis=1)
        found[1] = jumps[allowed | np.diag(stuck)]
    return np.concatenate([*found, *([] if rows.first_ages is None else [ages.ravel()])])


KINDS = ("hazards", "bins", "stages")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spread", [1.0, 40.0, 3000.0])
def test_all_cells_written_out(spread, kind, rng):
    """Sums, posteriors and counts of random models, in pieces as short as a row, in several lanes."""
    for _ in range(25):
        n_states, n_ages, n_lanes = int(rng.integers(2, 4)), int(rng.integers(1, 7)), int(rng.integers(1, 3))
        rows = random_rows(rng, n_states, n_ages, kind)
        log_initial = np.log(rng.dirichlet(np.ones(n_states), n_lanes))
        natural = random_natural(rng, rows, n_lanes, rng.choice([1.0, 1.0, 60.0]))
        starts, ends = sequences(rng, int(rng.integers(1, 4)), 12)
        logs = rng.normal(0, spread, (n_lanes, n_states, starts[-1]))
        if rng.random() < 0.3:
            logs[:, 0, rng.integers(starts[-1])] = -np.inf
        weight = rng.uniform(0.2, 2.0, len(ends))
        passes = SemiMarkovPasses(log_initial, rows, natural, lambda r, logs=logs: np.array(logs[:, :, r], order="C"))
        log_z, smoothed, filtered = np.zeros((n_lanes, len(ends))), np.zeros(logs.shape), np.zeros(logs.shape[:0:-1])
        size = int(rng.integers(1, 15))
        for pieces in segments(starts, ends, size, 3 * size):
            found = np.zeros((n_lanes, len(pieces[0].starts)))
            for piece, of_piece in passes.smoothed(pieces, weight[pieces[0].sequences], found):
                smoothed[:, :, piece.rows] = of_piece
            log_z[:, pieces[0].sequences] = found
            if n_lanes == 1:
                passes.forward(pieces, filtered)
        for lane in range(n_lanes):
            chain, statistics = written_out(rows, log_initial[lane], natural[:, lane]), 0.0
            for s, (a, b) in enumerate(zip(starts, ends)):
                assert not smoothed[lane, :, b : starts[s + 1]].any()
                by_cell = np.repeat(logs[lane, :, a:b].T, n_ages, axis=1)
                exact, marginals, steps = forward_backward(*chain, by_cell)
                if exact == -np.inf:
                    assert log_z[lane, s] == -np.inf
                    assert not smoothed[lane, :, a:b].any()
                    continue
                assert log_z[lane, s] == approx(exact, rel=1e-11, abs=1e-9)
                expected = weight[s] * by_state(marginals, n_states)
                assert approx(expected, abs=1e-9) == smoothed[lane, :, a:b].T
                steps = np.where(np.isfinite(chain[1]), steps, 0.0)
                statistics = statistics + weight[s] * statistics_of(rows, marginals[0], steps)
                if n_lanes == 1:
                    so_far = [
                        by_state(forward_backward(*chain, by_cell[: t + 1])[1][-1:], n_states) for t in range(b - a)
                    ]
                    assert filtered[a:b] == approx(np.concatenate(so_far), abs=1e-9)
            assert passes.counts[lane] == approx(statistics, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_given_others_and_given_earlier(kind, rng):
    for _ in range(15):
        n_states, n_ages = int(rng.integers(2, 4)), int(rng.integers(1, 6))
        rows = random_rows(rng, n_states, n_ages, kind)
        log_initial, natural = np.log(rng.dirichlet(np.ones(n_states), 1)), random_natural(rng, rows, 1, 1.0)
        logs, n_rows = rng.normal(0, 20.0, (1, n_states, 9)), 9
        passes = SemiMarkovPasses(log_initial, rows, natural, lambda r, logs=logs: np.array(logs[:, :, r], order="C"))
        chain = written_out(rows, log_initial[0], natural[:, 0])
        pieces = segments(np.array([0, n_rows]), np.array([n_rows]), 4, 8)[0]
        others, earlier = np.zeros((2, n_rows, n_states))
        for piece, of_piece in passes.smoothed(pieces, np.ones(1), np.zeros((1, 1)), without=True):
            others[piece.rows] = of_piece[0].T
        passes.predicted(pieces, earlier)
        for t in range(n_rows):
            hidden = np.repeat(logs[0].T, n_ages, axis=1)
            hidden[t] = 0.0
            assert others[t] == approx(by_state(forward_backward(*chain, hidden)[1], n_states)[t], abs=1e-9)
            assert earlier[t] == approx(by_state(forward_backward(*chain, hidden[: t + 1])[1], n_states)[t], abs=1e-9)
        last = passes.last_cells(pieces).reshape(n_states, -1)[:, :n_ages].ravel()
        assert last == approx(forward_backward(*chain, np.repeat(logs[0].T, n_ages, axis=1))[1][-1], abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_best_path(kind, rng):
    for _ in range(40):
        n_states, n_ages = int(rng.integers(2, 4)), int(rng.integers(1, 6))
        rows = random_rows(rng, n_states, n_ages, kind)
        log_initial, natural = np.log(rng.dirichlet(np.ones(n_states), 1)), random_natural(rng, rows, 1, 1.0)
        starts, ends = sequences(rng, 3, 10)
        logs = rng.normal(0, 3.0, (1, n_states, starts[-1]))
        passes = SemiMarkovPasses(log_initial, rows, natural, lambda r, logs=logs: np.array(logs[:, :, r], order="C"))
        chain = written_out(rows, log_initial[0], natural[:, 0])
        for pieces in segments(starts, ends, 4, 8):
            states, reached = passes.best(pieces)
            at = pieces[0].rows.start
            for s, p in zip(range(pieces[0].sequences.start, pieces[0].sequences.stop), reached):
                a, b = starts[s], ends[s]
                most, path = best_path(*chain, np.repeat(logs[0, :, a:b].T, n_ages, axis=1))
                assert p == approx(most, abs=1e-9)
                assert states[a - at : b - at].tolist() == [cell // n_ages for cell in path]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spread", [1.0, 900.0])
def test_paths_drawn(spread, kind, rng):
    """Frequencies of paths of states are their probabilities, and counts are those of the paths drawn."""
    rows = random_rows(rng, 2, 3, kind)
    log_initial, natural = np.log(rng.dirichlet(np.ones(2), 1)), random_natural(rng, rows, 1, 1.0)
    logs, n_draws = np.tile(rng.normal(0, 1.0, (1, 2, 5)), 1), 4000
    logs[0, :, 2] += [0.0, -spread if spread > 1 else 0.0]
    chain = written_out(rows, log_initial[0], natural[:, 0])
    _, marginals, steps, _, of_paths = by_enumeration(*chain, np.repeat(logs[0].T, 3, axis=1))
    exact = {}
    for path, p in of_paths.items():
        states = tuple(cell // 3 for cell in path)
        exact[states] = exact.get(states, 0.0) + p
    passes = SemiMarkovPasses(log_initial, rows, natural, lambda r: np.array(logs[:, :, r], order="C"))
    for size in (2, 8):
        pieces, frequency = segments(np.array([0, 5]), np.array([5]), size, size)[0], dict.fromkeys(exact, 0.0)
        before = passes.counts[0].copy()
        for _ in range(n_draws):
            states = np.empty(5, dtype=int)
            for piece, drawn in passes.drawn(pieces, lambda n: rng.random((1, n)), np.zeros((1, 1))):
                states[piece.rows] = drawn[0].argmax(axis=0)
            frequency[tuple(states.tolist())] += 1 / n_draws
        for path, p in exact.items():
            assert frequency[path] == approx(p, abs=4 * np.sqrt(max(p * (1 - p), 1e-4) / n_draws))
        expected = statistics_of(rows, marginals[0], np.where(np.isfinite(chain[1]), steps, 0.0))
        assert (passes.counts[0] - before) / n_draws == approx(expected, abs=0.12)
