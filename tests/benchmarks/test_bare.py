"""The opponent of ``bench_dag.py`` is honest: the compiled loop computes what the definitions say."""

import shutil

import numpy as np
import pytest
from benchmarks import bare
from scipy.special import gammaln

from skvbem.datasets import make_bipartite

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("cc") is None, reason="the bare loop is compiled by cc"),
]


def test_every_structure_once_up_to_the_names_of_the_latents():
    swapped = (0, 2, 1, 3)
    classes = {min(m, tuple(swapped[k] for k in m)) for m in np.ndindex(4, 4, 4, 4)}
    assert len(bare.structures()) == 136
    assert set(bare.structures()) == classes


def test_loop_is_the_literal():
    assert bare.validate(make_bipartite(480, random_state=0).data, every=1) < 1e-13


def test_nothing_hidden_gives_the_exact_evidence():
    codes = make_bipartite(480, random_state=1).data
    counts = np.stack([np.bincount(column, minlength=bare.CARD) for column in codes.T])
    exact = np.sum(gammaln(bare.CARD) - gammaln(bare.CARD + counts.sum(axis=1)) + gammaln(1 + counts).sum(axis=1))
    fits = bare.Bare(codes).fit((0, 0, 0, 0), bare.draw_starts(1, np.random.default_rng(0)))
    np.testing.assert_allclose(fits.bounds, exact, rtol=1e-13)


def test_a_start_stops_at_the_first_step_that_gains_too_little():
    data, start = bare.Bare(make_bipartite(480, random_state=2).data), bare.draw_starts(3, np.random.default_rng(0))
    fits = data.fit(bare.TRUTH, start, rtol=1e-7)
    for k, n_iter in enumerate(fits.n_iter):
        trace = [data.fit(bare.TRUTH, start[k : k + 1], rtol=-1.0, max_iter=m).bounds[0] for m in range(1, n_iter + 1)]
        small = np.diff(trace) < 1e-7 * np.abs(trace[1:])
        assert small[-1]
        assert not small[:-1].any()
