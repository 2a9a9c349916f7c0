"""Parameters drawn after a part of what a fit has counted."""

from types import SimpleNamespace

import numpy as np
import pytest

from skvbem.families import Dirichlet
from skvbem.optima.candidates import drawn

approx = pytest.approx


def test_draws_that_rounding_spoils_are_left_out(rng):
    prior, counts = Dirichlet.from_rows([[2.0, 1.0]]), np.array([40.0, 20.0])

    def refused(natural):
        raise np.linalg.LinAlgError

    def half(natural):
        return np.where(np.arange(natural.shape[1]) % 2, natural, np.nan)

    for expect, n in ((refused, 0), (half, 4)):
        ascent = SimpleNamespace(model=SimpleNamespace(prior=prior), expect=expect)
        assert drawn(ascent, counts, 8, rng).shape == (2, n)


def test_parameters_are_drawn_after_small_parts_of_the_counts(rng):
    """Their means and variances are those of Dirichlet distributions after 2, 5 and 15 % of the counts, by turns."""
    prior = Dirichlet.from_rows([[2.0, 1.0, 1.0]])
    counts, n = np.array([40.0, 200.0, 20.0]), 6000
    ascent = SimpleNamespace(model=SimpleNamespace(prior=prior), expect=lambda natural: np.exp(natural))
    probabilities = drawn(ascent, counts, n, rng)
    for number, part in enumerate((0.02, 0.05, 0.15)):
        concentration = np.array([2.0, 1.0, 1.0]) + part * counts
        mean = concentration / concentration.sum()
        mine = probabilities[:, number::3]
        assert mine.mean(axis=1) == approx(mean, abs=0.015)
        assert mine.var(axis=1) == approx(mean * (1 - mean) / (concentration.sum() + 1), rel=0.12)
