r"""Markov chains over structures (Madigan & York 1995).

A chain proposes a neighbor m' of its structure m, each with equal chances, and goes there with probability

.. math:: \min\Bigl(1, \frac{p(m')\,p(y \mid m')\,/\,|\mathrm{nb}(m')|}{p(m)\,p(y \mid m)\,/\,|\mathrm{nb}(m)|}\Bigr),

|nb(m)| the number of neighbors, so that in the long run it visits structures as often as they are probable. The scores
stand in for ln p(y | m).
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skvbem._lazy import cached_property
from skvbem.graphs.dag import DAG
from skvbem.search.strategies.base import Problem, Strategy
from skvbem.search.strategies.starts import check_start, edge_moves_within, setting_to_start_from
from skvbem.search.tuning import TUNING
from skvbem.spaces import Space
from skvbem.spaces.rules import check_count
from skvbem.spaces.settings import canonical
from skvbem.spaces.structures import StructureSpace

# Settings remembered with their neighbors, some 32 KiB each.
_MAX_STATES = int(TUNING.cache_bytes) >> 15


@dataclass(frozen=True)
class MC3(Strategy):
    """Lets several Markov chains walk among the structures, which they visit in proportion to their posterior.

    Parameters
    ----------
    n_chains : int, default=4
        Chains that walk side by side; their proposals are tried together.
    n_steps : int, default=500
        Proposals of each chain.
    start : {"random", "emptiest"}, DAG or mapping, default="random"
        Where chains begin: "random" draws a start for each, see `Greedy`.

    Notes
    -----
    `structure_posterior_` of a search is in proportion to prior times evidence of every structure that was tried. That
    uses more than how often each was visited (Rao-Blackwell): chains only find the structures, and no count of visits
    adds its noise. It lacks what no chain met. `search` returns ``visits``, how often chains were at each candidate,
    in the order of `cv_results_`; ``visits`` has a row for each chain. If these shares are unlike the posterior, or
    differ from chain to chain, chains were too short.

    Examples
    --------
    >>> from skvbem import StructureSearchCV, VBDiscreteDAG
    >>> from skvbem.datasets import load_lizards
    >>> from skvbem.spaces import DAGSpace
    >>> from skvbem.search.strategies import MC3
    >>> X = load_lizards().data
    >>> search = StructureSearchCV(
    ...     VBDiscreteDAG(), DAGSpace(["x0", "x1", "x2"]), strategy=MC3(n_chains=2, n_steps=50), random_state=0
    ... ).fit(X)
    >>> len(search.structure_posterior_) <= 25
    True
    """

    n_chains: int = 4
    n_steps: int = 500
    start: str | DAG | Mapping = "random"

    def __post_init__(self):
        check_start(self.start, "MC3")
        for name in ("n_chains", "n_steps"):
            check_count(getattr(self, name), f"The {name!r} of MC3", 1)

    def search(self, problem: Problem) -> dict:
        """Walk the chains; notes ``visits``, (n_chains, n_candidates), and ``acceptance`` of proposals."""
        states = _ChainStates(problem)
        here = [states.at(setting_to_start_from(self.start, problem.space, problem.rng)) for _ in range(self.n_chains)]
        values = states.values(here)
        visits: list[Counter] = [Counter() for _ in here]
        n_accepted = n_proposed = 0
        while n_proposed < self.n_chains * self.n_steps and not problem.is_over:
            proposals = [states.random_neighbor(state) for state in here]
            proposed = states.values(proposals)
            thresholds = np.log(problem.rng.random(self.n_chains))
            for chain, (proposal, value) in enumerate(zip(proposals, proposed)):
                # a start that failed is left as soon as one can
                if value > -np.inf:
                    ratio = value - values[chain] + np.log(here[chain].n_neighbors / proposal.n_neighbors)
                    if thresholds[chain] < ratio:
                        here[chain], values[chain] = proposal, value
                        n_accepted += 1
                visits[chain][here[chain].key] += 1
            n_proposed += self.n_chains
        keys = [canonical(setting) for setting, _ in problem.runner.tried]
        return {
            "visits": np.array([[count[key] for key in keys] for count in visits]).reshape(self.n_chains, -1),
            "acceptance": n_accepted / max(n_proposed, 1),
        }


class _ChainState:
    """A setting with its key, the keys of those of its neighbors that were met, and its log posterior once known."""

    def __init__(self, setting: Mapping, key: Hashable, space: Space):
        self.setting, self.key = setting, key
        self._space = space
        self.value: float | None = None

    @cached_property
    def _around(self) -> list:
        """The neighbors; where nothing is hidden the moves that lead to them, one to each: graphs are dear to make."""
        is_plain = isinstance(self._space, StructureSpace) and not self._space.latents
        moves = edge_moves_within(self._space, self.setting) if is_plain else []
        return moves or list(self._space.neighbors(self.setting)) or [dict(self.setting)]

    @cached_property
    def keys(self) -> list[Hashable]:
        return [None] * self.n_neighbors

    @property
    def n_neighbors(self) -> int:
        return len(self._around)

    def neighbor(self, k: int) -> Mapping:
        neighbor = self._around[k]
        return neighbor if isinstance(neighbor, Mapping) else neighbor.apply(self.setting)


class _ChainStates:
    """The states that chains went through lately."""

    def __init__(self, problem: Problem):
        self._problem = problem
        self._states: OrderedDict[Hashable, _ChainState] = OrderedDict()

    def at(self, setting: Mapping, key: Hashable = None) -> _ChainState:
        key = canonical(setting) if key is None else key
        if key not in self._states:
            self._states[key] = _ChainState(setting, key, self._problem.space)
            if len(self._states) > _MAX_STATES:
                self._states.popitem(last=False)
        self._states.move_to_end(key)
        return self._states[key]

    def random_neighbor(self, state: _ChainState) -> _ChainState:
        k = int(self._problem.rng.integers(state.n_neighbors))
        neighbor = self.at(state.neighbor(k), state.keys[k])
        state.keys[k] = neighbor.key
        return neighbor

    def values(self, states: Sequence[_ChainState]) -> np.ndarray:
        """The log posterior of each state; those not known are tried together."""
        new = list({state.key: state for state in states if state.value is None}.values())
        for state, value in zip(new, self._problem.log_posteriors([state.setting for state in new])):
            state.value = value
        return np.array([state.value for state in states], dtype=float)
