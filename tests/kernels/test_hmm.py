"""Passes over sequences against their definitions, whatever the numbers and however rows are cut into stretches."""

import itertools

import numpy as np
import pytest
from reference.hidden_markov import best_path, by_enumeration, forward_backward

from skvbem.models.hmm.forward_backward import ForwardBackward
from skvbem.models.sequences import segments

approx = pytest.approx


def log_of(x):
    with np.errstate(divide="ignore"):
        return np.log(x)


def sparse_chain(rng, n_states, n_lanes, concentration=1.0, masked=0.3):
    """Logs of sub-normalized first states and transitions, some of them absent."""
    first = rng.dirichlet(np.full(n_states, concentration), size=n_lanes)
    pairs = rng.dirichlet(np.full(n_states, concentration), size=(n_lanes, n_states))
    absent = (rng.random((n_states, n_states)) < masked) & ~np.eye(n_states, dtype=bool)
    pairs[:, absent] = 0.0
    return log_of(first * rng.uniform(0.5, 1, (n_lanes, 1))), log_of(
        pairs * rng.uniform(0.5, 1, (n_lanes, n_states, 1))
    )


def sequences(rng, n_sequences, longest, shortest=1):
    """Where sequences start, and where each ends for what counts."""
    lengths = rng.integers(shortest, longest + 1, size=n_sequences)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    ends = starts[1:] - rng.integers(0, 2, size=n_sequences) * (lengths > 1)
    return starts, ends.astype(np.int64)


def passes_over(log_initial, log_transition, log_likelihood):
    return ForwardBackward(log_initial, log_transition, lambda rows: np.array(log_likelihood[:, :, rows], order="C"))


def everything(chain, log_likelihood, starts, ends, weight, size):
    """ln Z, posteriors times weights, first states and transitions, stretch by stretch."""
    passes = passes_over(*chain, log_likelihood)
    n_lanes, n_states, n_rows = log_likelihood.shape
    log_z, shares = np.zeros((n_lanes, len(ends))), np.zeros((n_lanes, n_states, n_rows))
    for pieces in segments(starts, ends, size, 3 * size):
        some = pieces[0].sequences
        found = np.zeros((n_lanes, some.stop - some.start))
        for piece, of_piece in passes.smoothed(pieces, weight[some], found):
            shares[:, :, piece.rows] = of_piece
        log_z[:, some] = found
        assert passes.forward(pieces)[0] == approx(found, rel=1e-12, abs=1e-12)
    return log_z, shares, passes.first_counts, passes.counts


def check(found, chain, log_likelihood, starts, ends, weight, twin, tolerance=1e-9):
    """Against a definition, sequence by sequence."""
    log_z, shares, first, pairs = found
    for lane in range(len(log_likelihood)):
        expected, firsts = np.zeros(pairs[lane].shape), np.zeros(first[lane].shape)
        for s, (a, b) in enumerate(zip(starts, ends)):
            assert np.all(shares[lane, :, b : starts[s + 1]] == 0)
            if a == b:
                assert log_z[lane, s] == 0
                continue
            exact, marginals, transitions = twin(chain[0][lane], chain[1][lane], log_likelihood[lane, :, a:b].T)[:3]
            assert log_z[lane, s] == approx(exact, rel=tolerance, abs=tolerance)
            assert shares[lane, :, a:b] == approx(weight[s] * marginals.T, abs=tolerance * max(weight[s], 1))
            expected, firsts = expected + weight[s] * transitions, firsts + weight[s] * marginals[0]
        assert np.where(chain[1][lane] == -np.inf, 0.0, pairs[lane]) == approx(expected, rel=tolerance, abs=tolerance)
        assert first[lane] == approx(firsts, rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("spread", [1.0, 30.0, 3000.0])
def test_all_paths(spread, rng):
    """300 small models: several sequences and lanes, weights, absent transitions, pieces as short as a row."""
    for _k in range(100):
        n_states, n_lanes = int(rng.integers(1, 4)), int(rng.integers(1, 3))
        chain = sparse_chain(rng, n_states, n_lanes, rng.choice([1.0, 0.01]))
        starts, ends = sequences(rng, int(rng.integers(1, 4)), 5)
        log_likelihood = spread * rng.normal(size=(n_lanes, n_states, starts[-1]))
        log_likelihood[:, :, rng.random(starts[-1]) < 0.2] = 0.0
        weight = rng.choice([0.0, 1.0, 2.5], size=len(ends))
        found = everything(chain, log_likelihood, starts, ends, weight, int(rng.choice([1, 2, 3, 100])))
        check(found, chain, log_likelihood, starts, ends, weight, by_enumeration)


@pytest.mark.parametrize("n_states", [1, 2, 3, 4, 5, 7, 8, 9, 17, 33])
def test_longer_sequences(n_states, rng):
    """Against the recursions in logarithms: tiles, padding, pieces."""
    for size in (7, 64, 1000):
        chain = sparse_chain(rng, n_states, 2, rng.choice([1.0, 0.05]), masked=0.1)
        starts, ends = sequences(rng, 4, 150, 60)
        log_likelihood = rng.choice([1.0, 20.0]) * rng.normal(size=(2, n_states, starts[-1]))
        weight = rng.uniform(0.5, 2.0, len(ends))
        found = everything(chain, log_likelihood, starts, ends, weight, size)
        check(found, chain, log_likelihood, starts, ends, weight, forward_backward)


@pytest.mark.parametrize("strength", [1e-3, 1e-2, 1.0])
@pytest.mark.parametrize("spread", [10.0, 1000.0, 10000.0])
def test_extreme_numbers_stay_right(strength, spread, rng):
    """Expected logs under Dirichlet strengths of 1e-3 are as low as -1000; densities are thousands of nats apart."""
    from scipy.special import digamma

    for _k in range(6):
        n_states = int(rng.integers(2, 6))
        counts = strength + rng.integers(0, 3, size=(n_states + 1, n_states)) * (
            rng.random((n_states + 1, n_states)) < 0.4
        )
        logs = digamma(counts) - digamma(counts.sum(axis=1, keepdims=True))
        chain = logs[:1], logs[None, 1:]
        starts, ends = sequences(rng, 2, 40, 10)
        log_likelihood = -spread * rng.exponential(size=(1, n_states, starts[-1]))
        weight = np.ones(2)
        found = everything(chain, log_likelihood, starts, ends, weight, int(rng.choice([9, 100])))
        check(found, chain, log_likelihood, starts, ends, weight, forward_backward, 1e-8)


def test_what_is_lost_at_one_step_and_wanted_at_the_next():
    """A scaled pass drops the only path that survives, or one that others pass by a little: neither may be wrong."""
    log_transition = log_of(np.array([[[1.0, 0.0], [0.0, 1.0]]]))
    for late in (-800.0, -810.0, -790.0, -2000.0):
        log_likelihood = np.array([[[0.0, 0.0, late, 0.0], [-800.0, 0.0, 0.0, 0.0]]])
        chain = log_of(np.array([[0.5, 0.5]])), log_transition
        starts, ends = np.array([0, 4]), np.array([4])
        for size in (1, 2, 10):
            found = everything(chain, log_likelihood, starts, ends, np.ones(1), size)
            check(found, chain, log_likelihood, starts, ends, np.ones(1), by_enumeration)


def test_what_no_path_can_make():
    """ln Z is -inf, posteriors are 0, other sequences are as they are, and nothing is NaN."""
    log_likelihood = np.zeros((1, 2, 6))
    log_likelihood[0, :, 1] = -np.inf
    log_likelihood[0, 0, 4] = -np.inf
    chain = log_of(np.array([[0.5, 0.5]])), log_of(np.array([[[1.0, 0.0], [0.0, 1.0]]]))
    starts, ends = np.array([0, 3, 6]), np.array([3, 6])
    for size in (1, 2, 10):
        log_z, shares, first, pairs = everything(chain, log_likelihood, starts, ends, np.ones(2), size)
        assert log_z.tolist() == [[-np.inf, approx(np.log(0.5))]]
        assert np.all(shares[:, :, :3] == 0)
        assert shares[0, 1, 3:] == approx(1)
        assert first.tolist() == [[approx(0), approx(1)]]
        assert pairs[0] == approx(np.array([[0, 0], [0, 2]]), abs=1e-12)


@pytest.mark.parametrize("size", [1, 4, 100])
def test_best_paths(size, rng):
    for k in range(60):
        n_states = int(rng.integers(1, 5))
        chain = sparse_chain(rng, n_states, 1)
        starts, _ = sequences(rng, 3, 6)
        # whole numbers make ties
        log_likelihood = rng.choice([0.0, -1.0, -2.0], size=(1, n_states, starts[-1]))
        if k % 2:
            chain = np.zeros((1, n_states)), np.zeros((1, n_states, n_states))
        passes = passes_over(*chain, log_likelihood)
        for pieces in segments(starts, starts[1:], size, 3 * size):
            states, log_joint = passes.best(pieces)
            first = pieces[0].rows.start
            for s in range(pieces[0].sequences.start, pieces[0].sequences.stop):
                a, b = starts[s], starts[s + 1]
                best, path = best_path(chain[0][0], chain[1][0], log_likelihood[0, :, a:b].T)
                assert log_joint[s - pieces[0].sequences.start] == approx(best, rel=1e-12)
                assert best == approx(by_enumeration(chain[0][0], chain[1][0], log_likelihood[0, :, a:b].T)[3])
                if np.isfinite(best):
                    assert states[a - first : b - first].tolist() == path


@pytest.mark.parametrize("spread", [1.0, 300.0])
@pytest.mark.parametrize("size", [1, 2, 100])
def test_filters_know_the_rows_so_far(size, spread, rng):
    for _ in range(20):
        n_states = int(rng.integers(1, 5))
        chain = sparse_chain(rng, n_states, 1, rng.choice([1.0, 0.01]))
        starts, _ = sequences(rng, 3, 5)
        log_likelihood = spread * rng.normal(size=(1, n_states, starts[-1]))
        passes, found = passes_over(*chain, log_likelihood), np.zeros((starts[-1], n_states))
        for pieces in segments(starts, starts[1:], size, 3 * size):
            passes.forward(pieces, found)
        for a, b in itertools.pairwise(starts):
            for t in range(a, b):
                so_far = by_enumeration(chain[0][0], chain[1][0], log_likelihood[0, :, a : t + 1].T)
                assert found[t] == approx(so_far[1][-1], abs=1e-9)


@pytest.mark.parametrize(("size", "n_states"), [(1, 3), (2, 3), (2, 5), (100, 3), (100, 5)])
@pytest.mark.parametrize("logs", [False, True])
def test_draws_follow_the_posterior_of_paths(size, n_states, logs, rng):
    """Chi-square over all paths; states of different lanes by uniform numbers of their own. Few states, and more."""
    n, n_draws = 4, 20_000
    chain = sparse_chain(rng, n_states, 1, masked=0.3)
    log_likelihood = rng.normal(size=(1, n_states, n))
    if logs:  # a row that all states but one find unlikely, then one that only another can make
        log_likelihood[0, 1:, 1] -= 800.0
        log_likelihood[0, 0, 2] -= 1600.0
    starts, ends = np.array([0, n]), np.array([n])
    exact = by_enumeration(chain[0][0], chain[1][0], log_likelihood[0].T)
    passes = ForwardBackward(
        np.repeat(chain[0], n_draws, axis=0),
        np.repeat(chain[1], n_draws, axis=0),
        lambda rows: np.ascontiguousarray(np.repeat(log_likelihood[:, :, rows], n_draws, axis=0)),
    )
    paths, log_z = np.empty((n_draws, n), dtype=int), np.zeros((n_draws, 1))
    for pieces in segments(starts, ends, size, 3 * size):
        for piece, drawn in passes.drawn(pieces, lambda m: rng.random((n_draws, m)), log_z):
            paths[:, piece.rows] = drawn.argmax(axis=1)
    assert log_z[:, 0] == approx(exact[0])
    drawn = {path: 0 for path, p in exact[4].items() if p > 0}
    for path in paths.tolist():
        drawn[tuple(path)] += 1
    expected = n_draws * np.array([exact[4][path] for path in drawn])
    counts = np.array(list(drawn.values()))
    common = expected > 5
    deviation = ((counts - expected)[common] ** 2 / expected[common]).sum()
    assert deviation < common.sum() + 5 * np.sqrt(2 * common.sum())
    assert counts[~common].sum() < expected[~common].sum() + 5 * np.sqrt(expected[~common].sum()) + 1
    assert passes.first_counts.sum() == n_draws
    assert passes.counts.sum() == n_draws * (n - 1)


def test_rows_are_cut_into_stretches_once(rng):
    for _ in range(50):
        starts, ends = sequences(rng, int(rng.integers(1, 30)), int(rng.integers(1, 40)))
        size = int(rng.integers(1, 50))
        covered, seen = np.zeros(starts[-1], dtype=int), []
        for pieces in segments(starts, ends, size, 3 * size):
            seen += range(pieces[0].sequences.start, pieces[0].sequences.stop)
            assert pieces[0].begins
            assert not pieces[-1].goes_on
            for piece in pieces:
                assert piece.n_rows <= (size if len(pieces) > 1 else 3 * size)
                assert (piece.ends - piece.starts).max() <= piece.at_once <= size
                for a, b in zip(piece.starts, piece.ends):
                    covered[piece.rows.start + a : piece.rows.start + b] += 1
        assert seen == list(range(len(ends)))
        counted = np.arange(starts[-1]) < np.repeat(ends, np.diff(starts))
        assert np.array_equal(covered, counted.astype(int))


@pytest.mark.parametrize("size", [5, 1000])
def test_logarithms_are_for_those_who_need_them(size, rng):
    """Masks and rows that a state cannot make are no reason; a path that hangs on what was raised to the floor is."""
    pairs = np.array([[[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]]])
    dense = log_of(np.full((1, 3), 1 / 3)), log_of(np.full((1, 3, 3), 1 / 3))
    masked = log_of(np.array([[1.0, 0.0, 0.0]])), log_of(pairs)
    log_likelihood = rng.normal(size=(1, 3, 30))
    log_likelihood[0, 1, 17] = -500.0
    starts, ends = np.array([0, 30]), np.array([30])
    for chain, late, wanted in ((dense, 0.0, 0), (masked, 0.0, 0), (masked, -2000.0, 1)):
        changed = log_likelihood.copy()
        changed[0, [0, 2], 20] += late  # state 1, say the rows, and then state 0, where it does not lead
        changed[0, [1, 2], 21] += late
        (pieces,) = segments(starts, ends, size, 3 * size)
        found = passes_over(*chain, changed).forward(pieces)
        exact = forward_backward(chain[0][0], chain[1][0], changed[0].T)
        assert found[0][0, 0] == approx(exact[0], rel=1e-10)
        assert found[1].tolist() == [[wanted]]


@pytest.mark.parametrize("spread", [1.0, 2000.0])
def test_passes_that_are_kept_are_those_made_again(spread, rng, monkeypatch):
    """None, some and all pieces of a long sequence kept; memory that is used again, with other sizes in between."""
    starts, ends = np.array([0, 60, 62, 100]), np.array([57, 62, 100])
    for n_states in (2, 5):
        chain = sparse_chain(rng, n_states, 3)
        log_likelihood = spread * rng.normal(size=(3, n_states, 100))
        found = []
        for most in (0, 4000, 2**24):
            monkeypatch.setattr("skvbem.models.hmm.forward_backward.MAX_KEPT_DOUBLES", most)
            passes, kept = passes_over(*chain, log_likelihood), []
            for _ in range(2):
                results = []
                for pieces in segments(starts, ends, 10, 20):
                    log_z = np.zeros((3, len(pieces[0].starts)))
                    for _, shares in passes.smoothed(pieces, np.full(len(pieces[0].starts), 2.0), log_z):
                        results.append(shares.ravel())
                        kept.append(len(passes._kept))
                    results.append(log_z.ravel())
                    states = [s.ravel() for _, s in passes.drawn(pieces, lambda n: np.full((3, n), 0.3), log_z)]
                    results += states
            found.append(np.concatenate([*results, passes.first_counts.ravel(), passes.counts.ravel()]))
            assert (max(kept) == 0) == (most == 0)
            assert (max(kept) == 5) == (most == 2**24)  # of the first of six
        assert np.array_equal(found[0], found[1])
        assert np.array_equal(found[0], found[2])
