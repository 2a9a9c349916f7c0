"""Joint tables against the sums that they stand for, cell by cell."""

import numpy as np
import pytest

from skvbem._kernels import _categorical
from skvbem.emissions.categorical import Joint

approx = pytest.approx


def problem(rng, n_out):
    sizes = rng.integers(1, 6, size=rng.integers(1, 9))
    gappy = rng.random(len(sizes)) < 0.5
    codes = np.array([rng.integers(-1 if gap else 0, size, size=37) for size, gap in zip(sizes, gappy)])
    join = Joint(tuple(sizes.tolist()), tuple(gappy.tolist()), int(rng.choice([2, 8, 64])))
    width = -(-n_out // 4) * 4
    cells = np.zeros((sizes.sum() + 1, width))
    cells[:-1, :n_out] = rng.normal(size=(sizes.sum(), n_out))
    return sizes, codes.T, join, cells


@pytest.mark.parametrize("n_out", [1, 3, 4, 9, 63, 64, 65, 130])
def test_rows_are_the_sums_of_their_cells(n_out, rng):
    """And what is spread over rows comes back cell by cell; 130 components pass the strips that kernels work in."""
    for _ in range(8):
        sizes, codes, join, cells = problem(rng, n_out)
        joined, first = join.encode(codes), np.concatenate([[0], np.cumsum(sizes)])
        joint = np.full((len(join.members), cells.shape[1]), np.nan)
        _categorical.join(join.members, cells, joint)
        out = np.full((n_out, len(codes)), np.nan)
        _categorical.gather(joined, joint, out)
        shares, counts = rng.random((n_out, len(codes))), np.zeros((sizes.sum(), n_out))
        for i, row in enumerate(codes):
            seen = [first[column] + code for column, code in enumerate(row) if code >= 0]
            assert out[:, i] == approx(cells[seen, :n_out].sum(axis=0), abs=1e-12)
            np.add.at(counts, seen, shares[:, i])
        for stored in (shares, np.asfortranarray(shares), shares[::-1][::-1]):
            sums, found = np.zeros(joint.shape), np.zeros(cells.shape)
            _categorical.spread(joined, stored, sums)
            _categorical.split(join.members, sums, found)
            assert found[:-1, :n_out] == approx(counts, abs=1e-12)
            assert np.all(found[:-1, n_out:] == 0)


def test_groups_have_few_codes_unless_a_column_has_many():
    join = Joint((4, 4, 4, 4, 200, 2, 2), (False,) * 7, 64)
    assert [list(group) for group in join.groups] == [[0, 1, 2], [3], [4], [5, 6]]
    assert join.first_code.tolist() == [0, 64, 68, 268, 272]


def test_codes_name_every_combination_once():
    join = Joint((2, 3), (True, False), 64)
    codes = np.array([[a, b] for a in (-1, 0, 1) for b in range(3)])
    assert sorted(join.encode(codes)[:, 0].tolist()) == list(range(9))
    assert join.members.shape == (9, 2)
    for row, code in zip(codes, join.encode(codes)[:, 0]):
        wanted = {5 if row[0] < 0 else row[0], 2 + row[1]}
        assert set(join.members[code].tolist()) == wanted


def test_no_rows_and_no_columns_are_no_work():
    for shape in ((0, 3), (3, 0)):
        out = np.zeros((2, shape[0]))
        _categorical.gather(np.zeros(shape, dtype=np.int32), np.zeros((0, 4)), out)
        _categorical.spread(np.zeros(shape, dtype=np.int32), np.ones((2, shape[0])), np.zeros((0, 4)))
        assert np.all(out == 0)
