"""Kernels against plain NumPy at every size from none to forty: blocks of 4, 8, 16 and 32, and all remainders.

Loops of kernels go through numbers four, eight or more at a time, and through what is left one by one. A mistake in one
of both shows at some sizes alone.
"""

import itertools

import numpy as np
import pytest
from kernels.test_row_factors import RandomNetwork, run
from scipy.special import digamma, gammaln, logsumexp, multigammaln, xlogy

from skvbem._kernels import (
    _appearance,
    _block_chain,
    _categorical,
    _edge_moves,
    _extrapolation,
    _factor_map,
    _factors,
    _hashes,
    _hidden_cells,
    _hyperpriors,
    _local_scores,
    _messages,
    _mixture,
    _modular,
    _random,
    _regressions,
    _residuals,
    _special,
    _sum_of_dags,
    _wishart,
)
from skvbem._numerics import pack_symmetric, unpack_symmetric
from skvbem.models.hmm.forward_backward import ForwardBackward
from skvbem.models.sequences import segments

SIZES = range(41)


def same(found, expected, rtol=1e-12, atol=1e-12):
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)


def positive(rng, *shape):
    """Positive definite matrices, (*shape, d, d) with d the last of the shape."""
    root = rng.normal(size=(*shape, shape[-1]))
    return root @ root.swapaxes(-1, -2) + np.eye(shape[-1])


# --- networks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [*range(1, 41), 63, 64, 65, 130])
def test_counts_of_rows_with_factors_of_their_own(n, rng):
    """Rows that miss the same cells are summed many at once, also where a slot has one code for all of them."""
    network = RandomNetwork(rng, n_rows=n)
    while not any(plan.factors for plan in network.program().plans):
        network = RandomNetwork(rng, n_rows=n)
    for codes in network.columns.values():
        np.maximum(codes, 0, out=codes)  # none is missing but the first node: all rows are of one plan
    _, counts, _ = run(network, network.program(), network.natural, size=n)
    _, exact_counts, _ = network.literal(1)
    same(counts[:, 1], exact_counts, rtol=1e-10, atol=1e-12)


def test_messages(rng):
    table, sizes = rng.normal(size=(2, 3, 6, 4)), (2, 3)
    for n in SIZES:
        code, weight = rng.integers(4, size=n).astype(np.int32), rng.uniform(1, 2, n)
        p, q = (np.ascontiguousarray(rng.dirichlet(np.ones(s), (2, n)).swapaxes(1, 2)) for s in sizes)
        joint = (p[:, :, None] * q[:, None]).reshape(2, 6, n)
        message = np.zeros((2, 3, n))
        _messages.add_message(table, code, [p, q], message, True)
        same(message, np.einsum("ltrn,lrn->ltn", table[..., code], joint))
        counts = np.zeros((2, 6, 4))
        _messages.add_counts(code, weight, [p, q], counts)
        same(counts, (joint * weight) @ (code[:, None] == np.arange(4)))
        kept, again = np.zeros((3, n, 2)), np.empty((2, 3, n))
        _messages.write(q, weight, 0, kept)
        same(kept, (q * weight).transpose(1, 2, 0))
        _messages.read(kept, 0, weight, 0.0, again)
        same(again, q)
        shares, total = joint.copy(), np.ones((2, n))
        _messages.divide(weight, shares)
        same(shares, joint / weight)
        _messages.add_products(shares, joint, total)
        same(total, 1 + (shares * joint).sum(axis=1))


def test_sums_over_joint_values(rng):
    cardinality, strength = np.array([2, 3, 2]), np.array([1.5, 0.0])
    for n in SIZES:
        codes = np.array([rng.integers(size, size=n) for size in cardinality], dtype=np.int32).reshape(3, n)
        weight, sums = rng.uniform(0.5, 3, n), np.zeros((8, 2))
        _local_scores.fill_sums(codes, cardinality, weight, strength, np.zeros(2, dtype=np.uint8), 3, sums)
        for mask in range(8):
            columns = [j for j in range(3) if mask >> j & 1]
            mass = {}
            for values, w in zip(codes[columns].T.tolist(), weight):
                mass[tuple(values)] = mass.get(tuple(values), 0.0) + w
            m = np.array(list(mass.values()))
            same(sums[mask], [(gammaln(1.5 + m) - gammaln(1.5)).sum(), xlogy(m, m).sum()], rtol=1e-11)
        for narrow in (np.int8, np.int16, np.int32):
            scores = np.empty(1)
            parents, further = np.array([1]), np.array([2])
            _local_scores.score_families(
                codes.astype(narrow), cardinality, weight, 0, parents, further, np.array([0.5]), np.array([1.0]), scores
            )
            cells = np.bincount(np.ravel_multi_index(codes, (2, 3, 2)), weight, 12).reshape(2, 6)
            rising = (gammaln(0.5 + cells) - gammaln(0.5)).sum() - (gammaln(1 + cells.sum(axis=0))).sum()
            same(scores, rising, rtol=1e-11)


def test_descendants_and_moves_of_edges(rng):
    """Of graphs of up to two words of nodes; edges that may not change are no moves."""
    for n in (0, 1, 2, 5, 63, 64, 65, 90):
        order = rng.permutation(n)
        edges = np.zeros((n, n), dtype=np.uint8)
        edges[np.ix_(order, order)] = np.tril(rng.random((n, n)) < 2.0 / max(n, 1), -1)
        below = np.full((n, n), 7, dtype=np.uint8)
        _edge_moves.fill_descendants(edges, below)
        reached = edges.T.astype(bool)
        for _ in range(n.bit_length()):
            reached = reached | (reached.astype(float) @ reached.astype(float) > 0)
        assert np.array_equal(below, reached)
        gains = np.where(rng.random((n, n)) < 0.2, -np.inf, rng.normal(size=(n, n)))
        child, parent, change = (np.empty(n * n + edges.sum(), dtype=dtype) for dtype in (np.int64, np.int64, float))
        n_moves, n_unturned = _edge_moves.list_moves(gains, edges, below, child, parent, change)
        added = [(c, p) for c in range(n) for p in range(n) if c != p and not edges[c, p] and not reached[c, p]]
        there = [(c, p) for c in range(n) for p in range(n) if edges[c, p]]
        turned = [(c, p) for c, p in there if not any(edges[k, p] and reached[k, c] for k in range(n))]
        expected = [(c, p, gains[c, p]) for c, p in (*added, *there) if gains[c, p] > -np.inf]
        assert n_unturned == len(expected)
        both = [(c, p, gains[c, p] + gains[p, c]) for c, p in turned]
        expected += [move for move in both if move[2] > -np.inf]
        assert list(zip(child[:n_moves], parent[:n_moves], change[:n_moves])) == expected


def test_numbers_of_objects(rng):
    """Of more objects than are kept by their place in memory, equal ones among them, and values equal but for type."""
    for n in (0, 1, 300, 3000):
        few, many = ["a", "b", 1, True, 1.0], [f"level {k}" for k in range(2 * n)]
        cells = [few[k % 5] if k % 3 else many[k] for k in rng.integers(2 * n, size=n).tolist()]
        cells += [f"level {k}" for k in range(n)]  # other objects, of equal values
        keys = list(dict.fromkeys((type(cell), cell) for cell in cells))
        numbers_of_type = {
            kind: {value: k for k, (of, value) in enumerate(keys) if of is kind} for kind in {kind for kind, _ in keys}
        }
        numbers = np.full(len(cells), -7, dtype=np.int32)
        _appearance.number_cells(cells, numbers_of_type, numbers)
        assert numbers.tolist() == [keys.index((type(cell), cell)) for cell in cells]


def test_families_by_bits(rng):
    """With weights of three binary digits; tables of more words than there may be are left out."""
    cardinality, first = np.array([2, 3, 2, 4]), np.array([0, 2, 5, 7])
    for n in [size for size in SIZES if size]:
        codes = np.array([rng.integers(size, size=n) for size in cardinality])
        weight = rng.integers(1, 8, n)
        planes = [np.flatnonzero(weight >> k & 1) for k in range(3)]
        n_words = [-(-len(rows) // 64) for rows in planes]
        bits = np.zeros((11, sum(n_words)), dtype=np.uint64)
        for rows, end, width in zip(planes, np.cumsum(n_words), n_words):
            for place, row in enumerate(rows):
                for column in range(4):
                    word = end - width + place // 64
                    bits[first[column] + codes[column, row], word] |= np.uint64(1) << np.uint64(place % 64)
        further, scores, is_scored = np.array([2, -1, 3]), np.full(3, np.nan), np.empty(3, dtype=np.uint8)
        a = np.array([0.5, 0.7, 0.9])
        for most, expected in ((100, [1, 1, 1]), (6, [1, 1, 0]), (5, [0, 0, 0])):
            n_most = most * sum(n_words)
            args = (
                np.repeat(np.arange(3, dtype=np.uint8), n_words),
                first,
                cardinality,
                0,
                np.array([1]),
                further,
                n_most,
                a,
                2 * a,
                scores,
            )
            _local_scores.score_families_by_bits(bits, *args, is_scored)
            if most == 100 or len(np.unique(codes[1])) == 3:  # joint states that do not occur take no words
                assert is_scored.tolist() == expected
            for k in np.flatnonzero(is_scored):
                shape = (2, 3) if further[k] < 0 else (2, 3, cardinality[further[k]])
                place = np.ravel_multi_index(codes[[0, 1, further[k]][: len(shape)]], shape)
                cells = np.bincount(place, weight, np.prod(shape)).reshape(2, -1)
                rising = (gammaln(a[k] + cells) - gammaln(a[k])).sum()
                same(scores[k], rising - (gammaln(2 * a[k] + cells.sum(axis=0)) - gammaln(2 * a[k])).sum(), rtol=1e-11)


def test_sums_over_subsets_and_over_graphs(rng):
    """Graphs are grown set by set; their number for up to four nodes is known."""
    for n, n_graphs in ((1, 1), (2, 3), (3, 25), (4, 543)):
        of_sets = rng.normal(size=2**n).astype(np.longdouble)
        sums = of_sets.copy()
        _sum_of_dags.log_sums_of_subsets(sums)
        within = [[a for a in range(2**n) if a & ~s == 0] for s in range(2**n)]
        same(sums.astype(float), [np.logaddexp.reduce(of_sets[a].astype(float)) for a in within])
        by_size = np.array(sorted(range(2**n), key=lambda s: (bin(s).count("1"), s)))
        log_a = np.array([[np.log(2.0) * bin(s).count("1") for s in range(2 ** (n - 1))]] * n, dtype=np.longdouble)
        total = np.zeros(2**n, dtype=np.longdouble)
        scale = np.zeros(2**n, dtype=np.longdouble)
        _sum_of_dags.sums_of_sets(by_size, log_a, scale, total)
        assert float(total[-1]) == pytest.approx(n_graphs, rel=1e-12)
        worth, of_sinks = np.zeros(2**n, dtype=np.longdouble), np.zeros((n, 2 ** (n - 1)), dtype=np.longdouble)
        _sum_of_dags.shares_of_sinks(by_size, log_a, scale, total, worth, of_sinks)
        assert float(worth[0]) == pytest.approx(n_graphs, rel=1e-12)
        same(of_sinks.sum(axis=1).astype(float), 1.0)  # in each graph a node joins the sinks' sets once


def test_ranks(rng):
    for n in SIZES:
        for rank in {0, n // 3, n}:
            a, b = (rng.integers(0, 1000, size=shape) for shape in ((n, rank), (rank, n + 3)))
            assert _modular.rank((a @ b).astype(np.uint64) % np.uint64(2**31 - 1)) == rank


# --- labels -----------------------------------------------------------------------------------------------------------


def test_responsibilities(rng):
    for n in SIZES:
        log_weights, log_likelihood = rng.normal(size=(2, 3)), rng.normal(-5.0, 9.0, (2, 3, n))
        weight, joint, log_z = rng.uniform(0, 3, n), log_likelihood.copy(), np.ones(2)
        _mixture.responsibilities(log_weights, weight, joint, log_z)
        logs = log_weights[:, :, None] + log_likelihood
        of_rows = np.logaddexp.reduce(logs, axis=1)
        same(log_z, 1 + of_rows @ weight)
        same(joint, weight * np.exp(logs - of_rows[:, None]))


def test_rows_of_codes(rng):
    for n, width in itertools.product(SIZES, (4, 8, 20, 36)):
        codes = np.array([rng.integers(5, size=n), 5 + rng.integers(4, size=n)], dtype=np.int32).reshape(2, n).T
        codes = np.ascontiguousarray(codes)
        joint, n_out = rng.normal(size=(9, width)), width - int(rng.integers(4))
        out, shares, counts = np.empty((n_out, n)), rng.random((n_out, n)), np.zeros((9, width))
        _categorical.gather(codes, joint, out)
        same(out, joint[codes, :n_out].sum(axis=1).T)
        _categorical.spread(codes, shares, counts)
        expected = np.zeros((9, width))
        for group in range(2):
            np.add.at(expected[:, :n_out], codes[:, group], shares.T)
        same(counts, expected)
        members = rng.integers(7, size=(9, 2)).astype(np.int32)
        cells, joined, split = rng.normal(size=(7, width)), np.empty((9, width)), np.zeros((7, width))
        _categorical.join(members, cells, joined)
        same(joined, cells[members].sum(axis=1))
        _categorical.split(members, joined, split)
        expected = np.zeros((7, width))
        np.add.at(expected, members.ravel(), np.repeat(joined, 2, axis=0))
        same(split, expected)


@pytest.mark.parametrize("n_states", [1, 2, 3, 5, 8, 9])
def test_posteriors_of_chains(n_states, rng):
    """Sequences of every length side by side, against passes in logarithms, step by step."""
    starts = np.concatenate([[0], np.cumsum(range(1, 41))])
    ends, n_rows = starts[1:], int(starts[-1])
    first = np.log(rng.dirichlet(np.ones(n_states), 1))
    steps = np.log(rng.dirichlet(np.ones(n_states), (1, n_states)))
    logs, weight = rng.normal(-2.0, 2.0, (1, n_states, n_rows)), rng.uniform(1, 3, 40)
    passes = ForwardBackward(first, steps, lambda rows: np.array(logs[:, :, rows], order="C"))
    log_z, shares, pairs = np.zeros((1, 40)), np.zeros(logs.shape), np.zeros((n_states, n_states))
    for pieces in segments(starts, ends, n_rows, n_rows):
        for piece, of_piece in passes.smoothed(pieces, weight, log_z):
            shares[:, :, piece.rows] = of_piece
    for s, (a, b) in enumerate(zip(starts, ends)):
        rows = logs[0, :, a:b].T
        alpha, beta = [first[0] + rows[0]], [np.zeros(n_states)]
        for row in rows[1:]:
            alpha.append(logsumexp(alpha[-1][:, None] + steps[0], axis=0) + row)
        for row in rows[:0:-1]:
            beta.insert(0, logsumexp(steps[0] + row + beta[0], axis=1))
        total = logsumexp(alpha[-1])
        same(log_z[0, s], total, rtol=1e-11)
        same(shares[0, :, a:b].T, weight[s] * np.exp(np.add(alpha, beta) - total), rtol=1e-9, atol=1e-11)
        for t in range(1, b - a):
            pairs += weight[s] * np.exp(alpha[t - 1][:, None] + steps[0] + rows[t] + beta[t] - total)
    same(passes.counts[0], pairs, rtol=1e-9)


# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("q", [0, 1, 2, 3, 5, 9])
def test_factors_of_rows(q, rng):
    """Inverses, means of factors, draws and second moments, by patterns of missing cells."""
    n_members, n_patterns = 3, 2
    packed, all_packed = q * (q + 1) // 2, (1 + q) * (2 + q) // 2
    for n in SIZES[2:]:
        precision = positive(rng, n_members, n, q) if q else np.empty((n_members, n, 0, 0))
        root, covariance = np.empty((n_members, packed, n)), np.empty((n_members, packed, n))
        log_root = np.empty((n_members, n))
        wide = np.ascontiguousarray(pack_symmetric(precision).swapaxes(1, 2))
        _factors.invert(wide, root, covariance, log_root)
        inverse = np.linalg.inv(precision)
        same(covariance.swapaxes(1, 2), pack_symmetric(inverse), rtol=1e-9, atol=1e-10)
        same(log_root, -0.5 * np.linalg.slogdet(precision)[1] if q else 0.0, rtol=1e-9, atol=1e-10)

        pattern = rng.integers(n_patterns, size=n).astype(np.int32)
        some, whole = covariance[:, :, :n_patterns], inverse[:, :n_patterns]
        some = np.ascontiguousarray(some)
        matrices = rng.normal(size=(n_members, all_packed, n_patterns))
        constant, regressors = rng.normal(size=(n_members, n_patterns)), rng.normal(size=(n_members, 1 + q, n))
        located, log_likelihood = regressors.copy(), np.zeros((n_members, n))
        _factors.locate(pattern, matrices, some, constant, located, log_likelihood)
        linear = regressors[:, 1:] + 2 * matrices[:, 1 : 1 + q][..., pattern]  # both halves of the matrix
        means = np.einsum("mnij,mjn->min", whole[:, pattern], linear)
        same(located[:, 0], 1.0)
        same(located[:, 1:], means, rtol=1e-9, atol=1e-10)
        exact = regressors[:, 0] + constant[:, pattern] + 0.5 * (linear * means).sum(axis=1)
        same(log_likelihood, exact, rtol=1e-9, atol=1e-10)

        drawn, noise = located.copy(), rng.normal(size=(n_members, q, n))
        _factors.scatter(pattern, np.ascontiguousarray(root[:, :, :n_patterns]), noise, drawn)
        upper = np.zeros((n_members, n, q, q))
        upper[:, :, *np.triu_indices(q)] = root.swapaxes(1, 2)
        same(upper @ upper.swapaxes(2, 3), inverse, rtol=1e-9, atol=1e-10)
        moved = np.einsum("mnij,mjn->min", upper[:, pattern], noise)
        same(drawn[:, 1:], located[:, 1:] + moved, rtol=1e-10, atol=1e-11)

        weight, total = rng.uniform(1, 2, (n_members, n)), np.zeros((n_members, all_packed, n_patterns))
        _factors.add(pattern, weight, located, some, total)
        moments = np.einsum("man,mbn->mnab", located, located)
        moments[:, :, 1:, 1:] += whole[:, pattern]
        expected = np.einsum("mn,mnab,np->mpab", weight, moments, np.eye(n_patterns)[pattern])
        same(total.swapaxes(1, 2), pack_symmetric(expected), rtol=1e-9, atol=1e-10)


def test_weighted_regressors_and_squares(rng):
    for n, n_members in itertools.product(SIZES, (1, 3, 4, 9)):
        weight, regressors = rng.random((n_members, n)), rng.normal(size=(n_members, 3, n))
        weighted, products = np.empty(regressors.shape), np.empty((n_members, 6))
        _factors.weigh(weight, regressors, weighted, products)
        same(weighted, weight[:, None] * regressors)
        same(products, pack_symmetric(weighted @ regressors.swapaxes(1, 2)))
        measured, by_column = rng.normal(size=(3, n)), rng.normal(size=(n_members, 3))
        of_rows, of_columns = np.empty((n_members, n)), np.empty((n_members, 3))
        _factors.weigh_squares(measured, by_column, of_rows)
        same(of_rows, by_column @ measured**2)
        _factors.sum_squares(measured, weight, of_columns)
        same(of_columns, weight @ (measured**2).T)


def test_residuals(rng):
    k = 2
    for n in SIZES:
        output, precision, constant = rng.normal(size=(3, k)), rng.gamma(2.0, size=3), rng.normal(size=3)
        spread, cost = positive(rng, 1, k), positive(rng, k)
        transition, measured, x = rng.normal(size=(k, k)), rng.normal(size=(n, 3)), rng.normal(size=(n, k))
        terms, none = np.empty(n), np.empty((n, 0))
        group = np.zeros(3, dtype=np.int64)
        _residuals.terms_of_rows(
            output, precision, constant, group, spread, transition, cost, measured, np.empty((0, 1)), x, none,
            np.empty(0), terms,
        )  # fmt: skip
        expected = (constant - 0.5 * precision * (measured - x @ output.T) ** 2).sum(axis=1)
        expected -= 0.5 * np.einsum("ni,ij,nj->n", x, spread[0], x)
        before = x[:-1]
        steps = x[1:] - before @ transition.T
        expected[1:] -= 0.5 * ((steps**2).sum(axis=1) + np.einsum("ni,ij,nj->n", before, cost, before))
        same(terms, expected)


@pytest.mark.parametrize("k", [1, 2, 4, 5, 9])
def test_means_and_covariances_of_chains_of_blocks(k, rng):
    """By the precision of all states written out."""
    first, link, squares = positive(rng, k), 0.3 * rng.normal(size=(k, k)), positive(rng, k)
    blocks = positive(rng, 2, k)
    for n in SIZES[1:]:
        pattern, h = rng.integers(2, size=n), rng.normal(size=(n, k))
        slot, inverse, gain = np.zeros(n, dtype=np.int64), np.empty((n, k, k)), np.empty((n, k, k))
        log_det, of_pattern, sums = np.empty(1), np.zeros((2, k, k)), np.zeros((4, k, k))
        marginal, rows = np.empty((n, k, k)), (np.zeros(1, dtype=np.int64), np.array([n]))
        used = _block_chain.covariances(
            pattern, *rows, np.ones(1), blocks, first, link, squares, -1.0, slot, inverse, gain, log_det, of_pattern,
            sums, marginal,
        )  # fmt: skip
        assert used > 0
        precision = np.zeros((n, k, n, k))
        for t in range(n):
            precision[t, :, t] += blocks[pattern[t]] + (first if t == 0 else np.eye(k))
            if t + 1 < n:
                precision[t, :, t] += squares
                precision[t + 1, :, t] = -link
                precision[t, :, t + 1] = -link.T
        whole = precision.reshape(n * k, n * k)
        covariance = np.linalg.inv(whole).reshape(n, k, n, k)
        same(log_det[0], np.linalg.slogdet(whole)[1], rtol=1e-9, atol=1e-9)
        same(marginal, np.einsum("titj->tij", covariance), rtol=1e-8, atol=1e-10)
        for g in range(2):
            same(of_pattern[g], marginal[pattern == g].sum(axis=0), rtol=1e-10, atol=1e-12)
        _block_chain.means(*rows, np.zeros(1, dtype=np.int64), slot, inverse, gain, h_found := h.copy())
        same(h_found.ravel(), np.linalg.solve(whole, h.ravel()), rtol=1e-8, atol=1e-10)


def log_normalizer(kappa, nu, total, square):
    """A of Normal-Wishart densities by their additive coordinates; a datum adds a half of each determinant."""
    d, s = total.shape[1], square - total[:, :, None] * total[:, None] / kappa[:, None, None]
    gammas = np.array([multigammaln(v / 2, d) for v in nu])
    det = np.linalg.slogdet(s)[1]
    return gammas - nu / 2 * (d * np.log(np.pi) + det) + d / 2 * (np.log(2 * np.pi) - np.log(kappa))


def test_normal_wishart_densities(rng):
    """Expected natural parameters and growth of the log normalizer of one component, for every number of lanes."""
    for n, d in itertools.product(SIZES, (1, 2, 3, 5)):
        kappa, nu, mean = rng.uniform(1, 3, n), d + rng.uniform(0, 3, n), rng.normal(size=(n, d))
        scale = positive(rng, n, d)
        square = scale + kappa[:, None, None] * mean[:, :, None] * mean[:, None]
        cells = np.ascontiguousarray(np.column_stack([kappa, nu, kappa[:, None] * mean, pack_symmetric(square)]).T)

        natural, log_z, valid = np.empty(cells.shape), np.empty(n), np.empty(n, dtype=np.uint8)
        _wishart.expected(d, 1, False, cells, natural, log_z, valid)
        if n:
            assert valid.all()
        precision = nu[:, None, None] * np.linalg.inv(scale)
        weighted = np.einsum("nij,nj->ni", precision, mean)
        same(log_z, log_normalizer(kappa, nu, kappa[:, None] * mean, square), rtol=1e-9, atol=1e-9)
        same(natural[2 : 2 + d].T, weighted, rtol=1e-9, atol=1e-10)
        same(natural[0], -0.5 * ((weighted * mean).sum(axis=1) + d / kappa), rtol=1e-9)
        logs = digamma((nu[:, None] - np.arange(d)) / 2).sum(axis=1) + d * np.log(2) - np.linalg.slogdet(scale)[1]
        same(natural[1], 0.5 * (logs - d * np.log(2 * np.pi)), rtol=1e-9, atol=1e-9)
        halves = np.where(np.equal(*np.triu_indices(d)), 1.0, 2.0)
        same(natural[2 + d :].T, -0.5 * halves * pack_symmetric(precision), rtol=1e-9, atol=1e-10)

        x, weight = rng.normal(size=(n, d)), rng.uniform(0.5, 2, n)
        moments = np.column_stack([np.ones((n, 2)), x, pack_symmetric(x[:, :, None] * x[:, None])])
        more = np.ascontiguousarray((weight[:, None] * moments).T)
        grown = np.empty(n)
        _wishart.increment(d, 1, False, cells, more, grown)
        after = cells + more
        parts = [(c[0], c[1], c[2 : 2 + d].T, unpack_symmetric(c[2 + d :].T, d)) for c in (cells, after)]
        same(grown, log_normalizer(*parts[1]) - log_normalizer(*parts[0]), rtol=1e-9, atol=1e-9)
        sure, most = np.empty(n, dtype=np.uint8), np.empty(cells.shape)
        _wishart.most_likely(d, 1, False, 1e-6, cells, most, sure)
        if n:
            assert sure.all()
        scatter = square - kappa[:, None, None] * mean[:, :, None] * mean[:, None]
        likely = np.einsum("nij,nj->ni", nu[:, None, None] * np.linalg.inv(scatter), mean)
        same(most[2 : 2 + d].T, likely, rtol=1e-8, atol=1e-9)


def test_regressions_are_solved(rng):
    for d in SIZES:
        n_lanes, n_rows = 2, 3
        matrices = positive(rng, n_lanes, 2, d) if d else np.empty((n_lanes, 2, 0, 0))
        rows, precision_of = rng.normal(size=(n_lanes, n_rows, d)), np.array([0, 1, 1])
        solutions, squares = np.empty(rows.shape), np.empty((n_lanes, n_rows))
        _regressions.solve(precision_of, matrices, np.linalg.inv(matrices), rows, solutions, squares)
        exact = np.linalg.solve(matrices[:, precision_of], rows[..., None])[..., 0]
        same(solutions, exact, rtol=1e-8, atol=1e-9)
        same(squares, (exact * rows).sum(axis=-1), rtol=1e-9, atol=1e-10)


def test_hidden_cells(rng):
    for d in SIZES[2:]:
        m, each = max(d // 3, 1), 2
        precision, mean, directions = positive(rng, 2, d), rng.normal(size=(4, d)), rng.normal(size=(d, m))
        root, crossed = np.empty((2, d, m)), np.empty((2, d, m))
        shift, linear = np.empty((4, d)), np.empty((4, d))
        log_det, products = np.empty(2), np.empty((2, d * (d + 1) // 2))
        assert _hidden_cells.hide(precision, mean, directions, root, crossed, shift, log_det, linear, products)
        inner = directions.T @ precision @ directions
        same(root @ root.swapaxes(1, 2), directions @ np.linalg.inv(inner) @ directions.T, rtol=1e-6, atol=1e-8)
        same(log_det, np.linalg.slogdet(inner)[1], rtol=1e-9)
        same(crossed, precision @ root, rtol=1e-9, atol=1e-9)
        rows, weight = rng.normal(size=(3, d)), rng.uniform(size=(4, 3))
        sums = np.column_stack(
            [weight.sum(axis=1), weight @ rows, weight @ pack_symmetric(rows[:, :, None] * rows[:, None])]
        )
        completed = np.empty(sums.shape)
        _hidden_cells.complete(sums, root, crossed, shift, completed)
        for k in range(4):
            r = root[k // each]
            whole = rows - rows @ crossed[k // each] @ r.T + shift[k]
            second = (weight[k, :, None] * whole).T @ whole + weight[k].sum() * r @ r.T
            expected = np.concatenate([[weight[k].sum()], weight[k] @ whole, pack_symmetric(second)])
            same(completed[k], expected, rtol=1e-8, atol=1e-8)


def test_maps_of_factors(rng):
    for d in SIZES[2:21]:
        width = d * (d + 1) // 2
        cells, turn = rng.normal(size=(2, width + 2 * d + 3)), np.eye(d) + 0.1 * rng.normal(size=(2, d, d))
        mapped = np.empty(cells.shape)
        _factor_map.map_cells(turn, False, 1, 2, cells, mapped)
        matrices = turn @ unpack_symmetric(cells[:, :width], d) @ turn.swapaxes(1, 2)
        same(mapped[:, :width], pack_symmetric(matrices), rtol=1e-10, atol=1e-10)
        rows = cells[:, width : width + 2 * d].reshape(2, 2, d) @ turn.swapaxes(1, 2)
        same(mapped[:, width : width + 2 * d], rows.reshape(2, -1), rtol=1e-10, atol=1e-10)
        same(mapped[:, width + 2 * d :], cells[:, width + 2 * d :], rtol=0, atol=0)


# --- loops over cells and lanes ---------------------------------------------------------------------------------------


def test_extrapolation(rng):
    for n, n_lanes in itertools.product(SIZES[1:], (1, 3, 8)):
        x0, x1, x2 = rng.normal(size=(3, n, n_lanes))
        r, v = x1 - x0, x2 - 2 * x1 + x0
        length, objective, to_come = (np.empty(n_lanes) for _ in range(3))
        done, goes_on = (np.empty(n_lanes, dtype=np.uint8) for _ in range(2))
        at_first, at_second = np.sort(rng.normal(size=(2, n_lanes)), axis=0)
        live, leapt = np.arange(n_lanes), rng.exponential(size=n_lanes)
        n_going = _extrapolation.look(
            x0, x1, x2, at_first, at_second, live, 50.0, 1e-15, 1.0, 0.1, 1.0, 1.0, leapt, length, objective, to_come,
            done, goes_on,
        )  # fmt: skip
        wanted = np.maximum(np.sqrt((r**2).sum(axis=0) / (v**2).sum(axis=0)), 1.0)
        same(length, wanted, rtol=1e-9)
        same(to_come, np.maximum((at_second - at_first) * np.minimum(wanted, 50.0), leapt), rtol=1e-9)
        same(objective, at_second)
        assert n_going == goes_on.sum()
        assert _extrapolation.has_risen(at_first, at_second) == (at_second > at_first).all()

        longest, floor = np.full(n_lanes, 2.0), np.where(np.arange(n) % 2, -1.0, 0.1)
        ahead, third = np.empty((n, n_lanes)), np.abs(x2)
        steps = np.minimum(length, longest)
        _extrapolation.extrapolate(x0, x1, third, length, longest, floor, ahead)
        there = x0 + 2 * steps * r + steps**2 * (third - 2 * x1 + x0)
        least = np.where(floor[:, None] >= 0, floor[:, None] * third, -np.inf)
        same(ahead, np.maximum(there, least), rtol=1e-9, atol=1e-10)
        value, back = rng.normal(size=n_lanes), ahead.copy()
        fell, reached = value < at_second, value.copy()
        _extrapolation.settle(third, at_second, steps, longest, back, reached)
        same(back, np.where(fell, third, ahead))
        same(reached, np.where(fell, at_second, value))
        same(longest, np.where(fell, 1.0, np.where(steps >= 2.0, 8.0, 2.0)))


def test_hidden_rates(rng):
    for n in SIZES[1:]:
        natural = -rng.uniform(1, 2, (n, 3))
        cells, loadings = np.arange(n, dtype=np.int32), rng.uniform(0.5, 1, n)
        cut = n // 2
        starts, shape, rate = np.array([0, cut, n], dtype=np.int32), np.array([2.0, 3.0]), np.array([1.0, 0.5])
        statistics, grown = np.zeros((n, 3)), np.zeros(3)
        _hyperpriors.expect_rates(starts, cells, loadings, shape, rate, natural, statistics, grown)
        below = np.stack([(loadings[a:b, None] * natural[a:b]).sum(axis=0) for a, b in ((0, cut), (cut, n))])
        rates = rate[:, None] - below
        same(grown, (shape[:, None] * np.log(rates / rate[:, None])).sum(axis=0))
        group = (np.arange(n) >= cut).astype(int)
        same(statistics, loadings[:, None] * (shape[:, None] / rates)[group])


def test_special_functions(rng):
    for n in SIZES:
        x, more = rng.gamma(1.0, 5.0, n), rng.gamma(1.0, 5.0, n)
        log_gamma, psi, rising = np.empty(n), np.empty(n), np.empty(n)
        _special.log_gamma_digamma(x, log_gamma, psi)
        same(log_gamma, gammaln(x), rtol=1e-12)
        same(psi, digamma(x), rtol=1e-11)
        _special.log_rising_factorial(x, more, rising)
        same(rising, gammaln(x + more) - gammaln(x), rtol=1e-10, atol=1e-11)
        a, log_det = positive(rng, 2, n) if n else np.empty((2, 0, 0)), np.empty(2)
        expected = np.linalg.slogdet(np.eye(n) + a)[1]
        _special.log_det_one_plus(a.copy(), log_det)
        same(log_det, expected, rtol=1e-10)


def test_hashes(rng):
    whole, multiplier = 2**64, 0x9E3779B97F4A7C15

    def mixed(bits):
        bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9 % whole
        bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB % whole
        return bits ^ (bits >> 31)

    for n in SIZES:
        table, hashes = rng.normal(size=(n, 3)), rng.integers(0, whole, size=n, dtype=np.uint64, endpoint=False)
        expected = [int(h) for h in hashes]
        for i, row in enumerate(table.view(np.uint64)):
            for bits in row.tolist():
                expected[i] = (expected[i] * multiplier + mixed(bits) + multiplier) % whole
        _hashes.add_floats(table, hashes)
        assert hashes.tolist() == expected
        out = np.empty(n, dtype=np.uint64)
        _hashes.mix(hashes, out)
        assert out.tolist() == [mixed(h) for h in expected]


@pytest.mark.parametrize("name", ["uniforms", "normals"])
def test_numbers_drawn_for_many_lanes_are_those_of_each_alone(name, rng):
    for n in SIZES[1:]:
        streams = rng.integers(0, 2**64, size=(4, n), dtype=np.uint64)
        drawn, after = np.empty((5, n)), streams.copy()
        getattr(_random, name)(after, drawn)
        for lane in {0, n // 2, n - 1}:
            alone, one = np.ascontiguousarray(streams[:, [lane]]), np.empty((5, 1))
            getattr(_random, name)(alone, one)
            assert np.array_equal(one[:, 0], drawn[:, lane])
            assert np.array_equal(alone[:, 0], after[:, lane])
