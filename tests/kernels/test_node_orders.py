"""The best place of a node in an order, against all places tried one after the other."""

import numpy as np
import pytest

from skvbem._kernels._node_orders import find_place


def random_sets(rng, n, n_sets):
    """Masks of parents of every node with scores, the best first, the last one of each node empty."""
    sets = []
    for child in range(n):
        others = [k for k in range(n) if k != child]
        masks = [sum(1 << int(k) for k in rng.choice(others, min(int(rng.integers(1, 4)), n - 1), replace=False))
                 for _ in range(n_sets if n > 1 else 0)]  # fmt: skip
        scores = sorted(rng.normal(size=len(masks)).tolist(), reverse=True)
        sets.append([*zip(scores, masks), (-5.0, 0)])
    return sets


def compiled(sets):
    n_words = len(sets) // 64 + 1
    words = [[mask >> 64 * w & 2**64 - 1 for w in range(n_words)] for family in sets for _, mask in family]
    scores = [score for family in sets for score, _ in family]
    begin = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    return np.array(words, dtype=np.uint64), np.array(scores), begin


def value_of(order, sets):
    value, ahead = 0.0, 0
    for node in order:
        value += next(score for score, mask in sets[node] if not mask & ~ahead)
        ahead |= 1 << node
    return value


@pytest.mark.parametrize("n", [1, 2, 3, 5, 9, 30, 63, 64, 65, 130])
def test_a_node_goes_to_its_best_place(n, rng):
    sets = random_sets(rng, n, 6)
    of_all = compiled(sets)
    for _ in range(3):
        order = rng.permutation(n).tolist()
        at = int(rng.integers(n))
        place = find_place(np.array(order, dtype=np.int64), at, *of_all, 1e-9)
        values = []
        for k in range(n):
            moved = order[:at] + order[at + 1 :]
            moved.insert(k, order[at])
            values.append(value_of(moved, sets))
        assert values[place] == pytest.approx(max(values), abs=1e-9)
        if max(values) - values[at] < 1e-9:
            assert place == at
