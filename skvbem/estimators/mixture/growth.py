"""How many components: moves that raise the bound, splits, joins, new starts [Beal ch. 4, Ueda et al. 2000].

A split is a fit itself, of a mixture of two to the rows of one component as far as they are its own: its gain of bound
over a mixture of one says which component to split, and its statistics are where the larger mixture starts. Statistics
are sums over rows, so to join two components is to add theirs. Every move is run to the end before its bound counts.

Where no move raises the bound, two moves in a row are tried, and starts from nothing with one component less, as many,
and one more, so that the search ends where each of these is worse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from skvbem.models.mixture.components import Components, pairs_by_evidence, rows_of_components
from skvbem.models.mixture.model import Mixture, MixtureAscent, MixtureData
from skvbem.models.mixture.starts import seeded_starts, starts_of
from skvbem.vbem import posteriors
from skvbem.vbem.fit import Fit, best_of

# Starts of a split, components that a round splits one by one, pairs it joins, and components it drops.
_N_TRIES, _N_SPLITS, _N_JOINS, _N_DEATHS = 4, 4, 6, 3
# Nats by which a bound must be higher: runs that end closer met one optimum.
_MIN_RISE_IN_NATS = 0.01
# Steps, and nats, to which a split is fitted before the mixture takes over.
_SPLIT_LIMITS: dict[str, Any] = {"max_iter": 200, "tol": 0.01}


class Move(NamedTuple):
    """A move that raised the bound.

    Parameters
    ----------
    kind : str
        "start", "split", "join" (or drop), or several of these in turn, such as "split, join".
    n_components : int
        After it.
    lower_bound : float
        After it, total nats.
    """

    kind: str
    n_components: int
    lower_bound: float


@dataclass(frozen=True, eq=False)
class State:
    """A mixture of some number of components, fitted.

    Parameters
    ----------
    model : Mixture
    fit : Fit
    starts : ndarray of shape (n_cells, n_starts)
        Where the fit started from.
    kind : str
        The moves that led here from the state before.
    """

    model: Mixture
    fit: Fit
    starts: np.ndarray
    kind: str

    @property
    def bound(self) -> float:
        """The lower bound of the fitted mixture, total nats."""
        return self.fit.objective

    @property
    def components(self) -> Components:
        """Statistics of the fitted mixture by component."""
        return Components.of(self.model, self.fit.statistics)


class Growth:
    """A search for the number of components.

    Parameters
    ----------
    model_of : callable of int to Mixture
        The mixture of so many components.
    data : MixtureData
        With row hashes.
    n_init : int
        Starts from nothing, of each number of components that they are tried with.
    init : str
        Their kind; see `skvbem.models.mixture.starts.starts_of`.
    seed : tuple of int
    limits : mapping
        As `skvbem.vbem.fit.best_of` takes them.
    n_threads : int
    stop : callable, optional
        As in `skvbem.vbem.driver.run`.
    stopped : callable
        Whether a run was asked to stop, so that no other should follow.
    """

    def __init__(
        self,
        model_of: Callable[[int], Mixture],
        data: MixtureData,
        *,
        n_init: int,
        init: str,
        seed: tuple[int, ...],
        limits: Mapping[str, Any],
        n_threads: int = 1,
        stop: Callable[[int, float], bool] | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ):
        self.model_of, self.data = model_of, data
        self.n_init, self.init, self.seed, self.limits = n_init, init, seed, limits
        self.n_threads, self.stop, self.stopped = n_threads, stop, stopped
        assert data.row_hashes is not None
        self.most = len(np.unique(data.row_hashes(slice(None))[data.weight > 0]))

    def run(self) -> tuple[State, list[Move]]:
        """Where no move raises the bound any more, and the moves that did."""
        state = replace(self._anew(1), kind="")
        moves = [Move("start", 1, state.bound)]
        while True:
            least = state.bound + max(_MIN_RISE_IN_NATS, 1e-9 * abs(state.bound))
            better = next((reached for reached in self._moves(state) if reached.bound > least), None)
            if better is None:
                better = self._anew(state.model.n_components, state)
                if self.stopped() or better.bound <= least:
                    return better, moves
            moves.append(Move(better.kind, better.model.n_components, better.bound))
            state = replace(better, kind="")

    def _moves(self, state: State) -> Iterator[State]:
        """What can be reached from a state, cheap and likely moves first."""
        n = state.model.n_components
        yield from self._without_empty(state)
        splits = self._splits(state)
        yield from self._all_split(state, splits)
        more = list(self._one_split(state, splits))
        yield from more
        less = list(self._joined(state))
        yield from less
        for reached in more:
            yield from self._joined(reached)
            yield from self._one_split(reached, self._splits(reached))
        for reached in less:
            yield from self._one_split(reached, self._splits(reached))
        for k in (n + 1, n - 1):
            if 1 <= k <= self.most and not self.stopped():
                yield self._anew(k)

    def _splits(self, state: State) -> dict[int, tuple[float, Components]]:
        """Of each component with rows to split the gain of bound that this promises, nats, and its two parts."""
        one, two = self.model_of(1), self.model_of(2)
        rng = np.random.default_rng([*self.seed, state.model.n_components])
        rows_of_each = rows_of_components(state.model, state.fit.statistics, self.data, int(rng.integers(2**63)))
        splits = {}
        for k, (count, rows) in enumerate(zip(state.components.counts, rows_of_each)):
            if len(rows) < 2:
                continue
            whole = one.statistics_of(np.ones((len(rows), 1)), rows)
            starts = seeded_starts(two, rows, _N_TRIES, spread=True, rng=rng)
            divided = self._fit(two, rows, starts, **_SPLIT_LIMITS)
            together = self._fit(one, rows, whole[:, None], **_SPLIT_LIMITS)
            gain = (divided.objective - together.objective) * count / rows.total_weight
            splits[k] = gain, Components.of(two, divided.statistics).scaled(count)
        return splits

    def _all_split(self, state: State, splits: dict[int, tuple[float, Components]]) -> Iterator[State]:
        """All components split that gain by it, if there are several."""
        promising = {k: parts for k, (gain, parts) in splits.items() if gain > 0}
        if len(promising) > 1:
            yield from self._reached(state, [state.components.divided(promising)], "split")

    def _one_split(self, state: State, splits: dict[int, tuple[float, Components]]) -> Iterator[State]:
        """One component split, the best one of those that promise most."""
        best = sorted(splits, key=lambda k: -splits[k][0])[:_N_SPLITS]
        if best:
            yield from self._reached(state, [state.components.divided({k: splits[k][1]}) for k in best], "split")

    def _joined(self, state: State) -> Iterator[State]:
        """The mixture with two components joined, or one dropped: the best one of those tried."""
        n = state.model.n_components
        if n == 1:
            return
        parts = state.components
        pairs = pairs_by_evidence(state.model, self.model_of(n - 1), state.fit.statistics, _N_JOINS)
        small = np.argsort(parts.counts, kind="stable")[:_N_DEATHS]
        fewer = [parts.joined(*pair) for pair in pairs] + [parts.without(np.array([k])) for k in small]
        yield from self._reached(state, fewer, "join")

    def _without_empty(self, state: State) -> Iterator[State]:
        """All components of less than one row dropped, if there are several."""
        small = np.flatnonzero(state.components.counts < 1.0)
        if 1 < len(small) < state.model.n_components:
            yield from self._reached(state, [state.components.without(small)], "join")

    def _reached(self, state: State, starts: list[Components], kind: str) -> Iterator[State]:
        """Where the best of some mixtures of one size ends."""
        if len(starts[0]) > self.most or self.stopped():
            return
        model = self.model_of(len(starts[0]))
        columns = np.stack([start.statistics(model) for start in starts], axis=1)
        kind = f"{state.kind}, {kind}" if state.kind else kind
        yield State(model, self._fit(model, self.data, columns, select=True, **self.limits), columns, kind)

    def _anew(self, n_components: int, state: State | None = None) -> State:
        """A mixture fitted from new starts: the best of a tournament, or the best of all with a state among them."""
        model = self.model_of(n_components)
        rng = np.random.default_rng(self.seed)
        starts = starts_of(self.init, model, self.data, self.n_init, rng)
        if state is not None:
            starts = np.column_stack([state.fit.statistics, starts])
        fit = self._fit(model, self.data, starts, select=state is None, **self.limits)
        return State(model, fit, starts, "start")

    def _fit(self, model: Mixture, data: MixtureData, starts: np.ndarray, **options) -> Fit:
        """The best fit of a mixture from some starts."""
        whole = data is self.data
        ascent = MixtureAscent(model, data, posteriors.VB, self.n_threads if whole else 1)
        return best_of(ascent, starts, stop=self.stop if whole else None, **options)
