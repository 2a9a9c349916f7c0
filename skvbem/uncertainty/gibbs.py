r"""Draws of all parameters from their posterior, by Gibbs chains that start from what VB found.

The chains are those of annealing at the inverse temperature 1, :math:`x \sim p(x \mid y, \theta)` and
:math:`\theta \sim p(\theta \mid x, y)`, hidden hyperparameters in turn with them. They start at draws from q(theta) of
the different optima that the starts of the fit have met, as many from each as its share
:math:`e^{F_m} / \sum_l e^{F_l}` of the bounds says: the weights of the mixture of the q's that is nearest to the
posterior, where these lie apart. Chains that pass from one mode to another correct the weights; chains that do not
leave them as they are, and :math:`\hat R` says so.

How long a chain runs, and how many of its sweeps are kept, is one rule: of a run the second half counts, at so many
even distances. Where the draws that count are worth less than half as many independent ones, or chains do not agree,
the run becomes twice as long and the distances twice as wide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skvbem._progress import is_over, steps
from skvbem.capabilities import Annealing, Points, Relabelings
from skvbem.evidence.tuning import TUNING
from skvbem.uncertainty.draws import aligned
from skvbem.uncertainty.effective_sizes import effective_sizes


@dataclass(frozen=True, eq=False)
class GibbsDraws:
    """Draws of all parameters by Gibbs chains, labels aligned.

    Parameters
    ----------
    chains : ndarray of shape (n_cells, n_chains, n_kept)
        Natural parameters of all draws that count, in the order of their chains.
    n_sweeps : int
        Sweeps of each chain, the first half of them burn-in.
    spacing : int
        Sweeps between those that count.
    converged : bool
        Whether chains agreed in the end, and their draws were worth enough.
    """

    chains: np.ndarray
    n_sweeps: int
    spacing: int
    converged: bool

    @property
    def natural(self) -> np.ndarray:
        """All draws that count, those of one sweep side by side, (n_cells, n_kept * n_chains)."""
        return np.ascontiguousarray(self.chains.swapaxes(1, 2)).reshape(len(self.chains), -1)

    def by_chain(self, values: np.ndarray) -> np.ndarray:
        """Values of all draws (n_kept * n_chains, ...) as chains (n, n_chains, n_kept), n the product of the others."""
        _, n_chains, n_kept = self.chains.shape
        return np.moveaxis(values.reshape(n_kept, n_chains, -1), -1, 0).swapaxes(1, 2)

    def chosen(self, n_draws: int) -> np.ndarray:
        """Positions of so many of the draws, spread evenly, (n_draws,)."""
        return np.arange(n_draws) * (self.chains.shape[1] * self.chains.shape[2]) // n_draws


@dataclass(frozen=True, eq=False)
class GibbsChains:
    """Gibbs chains of one model on its data.

    Parameters
    ----------
    points : Points
    annealing : Annealing
    relabelings : Relabelings or None
        None where there are too many: then labels stay as they come.
    data : object
    judged : callable of ndarray (n_cells, n_draws), optional
        The numbers (n_numbers, n_draws) by which chains are judged; natural parameters by default.
    is_patient : bool, default=True
        Whether chains run on whose draws would be worth less than half of what they must, had they all their sweeps.
    """

    points: Points
    annealing: Annealing
    relabelings: Relabelings | None
    data: Any
    judged: Callable[[np.ndarray], np.ndarray] = np.asarray
    is_patient: bool = True

    def draw(
        self, anchor: np.ndarray, starts: np.ndarray, n_draws: int, max_sweeps: int, rng: np.random.Generator
    ) -> GibbsDraws:
        """Draws of the posterior.

        Parameters
        ----------
        anchor : ndarray of shape (n_cells,)
            Expected statistics of the fit whose labels draws take.
        starts : ndarray of shape (n_cells, n_chains)
            Statistics of q(theta), from which each chain draws its first point.
        n_draws : int
        max_sweeps : int
            Most sweeps of a chain.
        rng : numpy.random.Generator
        """
        n_chains = starts.shape[1]
        n_kept = max(-(-n_draws // n_chains), TUNING.draws_of_chain)
        lanes = [_Lanes(self, starts[:, at], rng) for at in self._batches(n_chains)]
        with steps(2 * n_kept, "sweeps") as count:
            return self._draws_of(anchor, lanes, n_draws, n_kept, max_sweeps, count)

    def _draws_of(self, anchor, lanes: list[_Lanes], n_draws: int, n_kept: int, max_sweeps: int, count) -> GibbsDraws:
        """Draws of chains that run until they agree, or as long as they may."""
        kept: list[np.ndarray] = []
        spacing = 1
        while True:
            while len(kept) < 2 * n_kept and not (len(kept) >= TUNING.fewest_sweeps and is_over()):
                points = np.concatenate([each.after(spacing) for each in lanes], axis=1)
                kept.append(aligned(self.relabelings, anchor, points))
                count(spacing)
            chains = np.stack(kept[len(kept) // 2 :], axis=2)
            numbers = self.judged(chains.reshape(len(chains), -1))
            sizes, r_hat = effective_sizes(numbers.reshape(-1, *chains.shape[1:]))
            least = TUNING.effective_share * n_draws
            converged = bool(sizes.min() >= least and r_hat.max() <= TUNING.r_hat)
            n_doublings = int(np.log2(max(max_sweeps / (2 * n_kept * spacing), 1)))
            in_vain = not self.is_patient and TUNING.hope * sizes.min() * 2**n_doublings < least
            if converged or in_vain or n_doublings == 0 or is_over():
                return GibbsDraws(chains, len(kept) * spacing, spacing, converged)
            kept, spacing = kept[1::2], 2 * spacing
            count.n *= 2

    def _batches(self, n_chains: int) -> list[slice]:
        width = self.points.lanes_at_once(self.data)
        return [slice(at, min(at + width, n_chains)) for at in range(0, n_chains, width)]


class _Lanes:
    """Chains that run side by side, each with a stream of its own."""

    def __init__(self, chains: GibbsChains, starts: np.ndarray, rng: np.random.Generator):
        self.annealing, self.path = chains.annealing, chains.annealing.paths(chains.data, starts)
        self.streams = rng.integers(0, 2**64, size=(4, starts.shape[1]), dtype=np.uint64)
        self.point = chains.points.draw_points(starts, self.streams)
        self.workspace = chains.annealing.workspace(chains.data, starts.shape[1])

    def after(self, n_sweeps: int) -> np.ndarray:
        """Natural parameters after further sweeps, (n_cells, n_lanes)."""
        self.annealing.anneal(self.workspace, self.path, np.ones(n_sweeps + 1), self.streams, self.point)
        return self.point.copy()
