r"""Structural variational Bayesian EM (Friedman 1998, in VB form).

A fit gives q(x), and one q(x) bounds the evidence of every network over the same nodes,

.. math:: \ln p(y \mid m') \ge H(q) + \sum_j \ln \mathrm{BD}(\langle N_{j, \mathrm{pa}'(j)} \rangle_q),

a sum over families: all neighbors of a structure are bounded by a table for each family that one of them changes,
without a fit. Where a neighbor's bound is higher than that of the structure at hand the search goes there, and on from
there, and only then fits, from the same q(x): the bound rises at every step. A q(x) favors the structure that made it,
so that a step may be worth taking though its bound is not higher: where none is, the most promising neighbors are
fitted, from q(x).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from skvbem.graphs.dag import DAG
from skvbem.search.families.mixed_graph_walk import MixedGraphs
from skvbem.search.families.orders import NodeOrders
from skvbem.search.strategies.base import Problem, Strategy, gains
from skvbem.search.strategies.objectives import FamilyObjective
from skvbem.search.strategies.starts import check_start, random_walk, setting_to_start_from
from skvbem.search.strategies.structural.attachment import state_with_attached_latents
from skvbem.search.strategies.structural.fitter import Fitter, StructuralState
from skvbem.spaces.rules import check_count
from skvbem.spaces.settings import canonical


@dataclass(frozen=True)
class StructuralVBEM(Strategy):
    """Climbs lower bounds that one q(x) gives on all neighbors at once, and fits from q(x) where it cannot climb on.

    For networks, over spaces of structures and of latents and their states, which are split and merged on the way.
    Where nothing is hidden the bounds are the evidence, and this is the climb of `Greedy`.

    Parameters
    ----------
    start : {"emptiest", "random"}, DAG or mapping, default="emptiest"
        The setting to begin with, see `Greedy`. "emptiest" is tried first; where columns may have edges beside hidden
        nodes, the climb begins at a graph of the columns, with hidden nodes above groups that hang together there.
    n_tabu : int, default=10
        Settings visited last that a climb along bounds does not return to, and steps it may take without a higher one.
    n_refits : int, default=5
        Neighbors that are fitted, those with the highest bounds, where no bound exceeds the one at hand.
    n_restarts : int, default=5
        How often to begin anew, a random walk away from the best setting so far. A hidden node is of no use before it
        has two children, so that few climbs from an empty graph go far.
    n_kicks : int, default=5
        Moves of that walk.
    n_orders : int, default=24
        How often to begin anew where nothing is hidden. Each time a climb by moves of single nodes improves an order
        of the nodes, and its best graph is the beginning. By turns the order is drawn at random, and is the order of
        the best graph so far with `n_kicks` nodes moved. That takes a hundredth of a second.
    n_perturbations : int, default=20
        Last climbs where nothing is hidden, from graphs near the best one, until so many in a row lead no higher.
        `Greedy` says what these graphs are.
    n_finalists : int, default=10
        Settings that are tried in the end, as any strategy tries them: those whose bounds were highest once fitted.

    Notes
    -----
    What guides is the lower bound plus the log prior of the setting; the score that ranks is that of the finalists
    alone. They are in the table of the search, with the start, and its posterior is over them. A fit on the way starts
    from one q(x); the finalists are fitted from all starts of the estimator. Where nothing is hidden no fit is needed,
    and the table has the hundred best graphs met, among them all neighbors of the ten best.

    `search` returns how many settings were bounded (``n_bounded``) and fitted from q(x) (``n_refitted``).

    Examples
    --------
    >>> from skvbem import StructureSearchCV, VBDiscreteDAG
    >>> from skvbem.datasets import make_bipartite
    >>> from skvbem.spaces import BipartiteSpace
    >>> X = make_bipartite(480, concentration=0.3, random_state=0).data
    >>> space = BipartiteSpace({"h0": 2, "h1": 2}, ["x0", "x1", "x2", "x3"])
    >>> search = StructureSearchCV(VBDiscreteDAG(n_init=5), space, strategy="structural", random_state=0).fit(X)
    >>> len(space), len(search.cv_results_["params"])
    (136, 11)
    """

    start: str | DAG | Mapping = "emptiest"
    n_tabu: int = 10
    n_refits: int = 5
    n_restarts: int = 5
    n_kicks: int = 5
    n_orders: int = 24
    n_perturbations: int = 20
    n_finalists: int = 10

    def __post_init__(self):
        check_start(self.start, "StructuralVBEM")
        for name in ("n_tabu", "n_refits", "n_restarts", "n_kicks", "n_orders", "n_perturbations", "n_finalists"):
            check_count(getattr(self, name), f"The {name!r} of StructuralVBEM")

    def search(self, problem: Problem) -> dict:
        """Climb bounds, fit where they lead no higher, and climb on from there."""
        graphs = FamilyObjective.of(problem)
        if graphs is not None:
            return self._search_graphs(graphs)
        fitter = Fitter(problem)
        start = setting_to_start_from(self.start, problem.space, problem.rng)
        problem.scores([start])
        if problem.runner.is_full():
            return {"n_bounded": 0, "n_refitted": 0}
        first = state_with_attached_latents(problem, self._climb_bounds) if self.start == "emptiest" else None
        if first is not None:
            best = self._climb(fitter, fitter.fitted(first.setting, first.scores.completed))
        else:
            best = self._climb(fitter, fitter.fitted(start))
        for _ in range(self.n_restarts):
            if problem.is_over:
                break
            away = random_walk(problem.space, best.setting, self.n_kicks, problem.rng)
            best = max(best, self._climb(fitter, fitter.fitted(away)), key=lambda state: state.value)
        ranked = sorted(fitter.met.values(), key=lambda met: -met[0])
        problem.scores([setting for _, setting in ranked[: self.n_finalists]])
        return {"n_bounded": fitter.n_bounded, "n_refitted": len(fitter.met)}

    def _search_graphs(self, graphs: FamilyObjective) -> dict:
        """Climb from the start, and from the best graphs of orders."""
        problem = graphs.problem
        start = graphs.at(setting_to_start_from(self.start, problem.space, problem.rng))
        summit = best = graphs.climb(start, self.n_tabu)
        # a mixture over scales is no sum over families, which orders of nodes need
        if self.n_orders and not (problem.is_over or isinstance(graphs.graphs, MixedGraphs)):
            orders = NodeOrders(graphs.graphs)
            for k in problem.until_over(range(self.n_orders)):
                orders.add(graphs.parents_of(summit))
                near = graphs.parents_of(best)
                anew = orders.near(near, self.n_kicks, problem.rng) if k % 2 else orders.drawn(problem.rng)
                order = orders.climbed(anew, problem.until_over)
                summit = graphs.climb(graphs.state(orders.parents(order)), self.n_tabu)
                best = summit if gains(summit.value, best.value) else best
        graphs.climb_perturbed(best, self.n_perturbations)
        graphs.explore()
        graphs.conclude()
        return {"n_bounded": graphs.n_valued, "n_refitted": 0}

    def _climb(self, fitter: Fitter, here: StructuralState) -> StructuralState:
        """The fitted state from where no bound leads higher, and none of the most promising neighbors once fitted."""
        while not fitter.problem.is_over:
            fit = fitter.best_fit([top] if (top := self._climb_bounds(fitter, here)) else [])
            if fit is None or not gains(fit.value, here.value):
                fit = fitter.best_fit(islice(filter(fitter.is_new, fitter.best_first(here)), self.n_refits))
            if fit is None or not gains(fit.value, here.value):
                break
            here = fit
        return here

    def _climb_bounds(self, fitter: Fitter, here: StructuralState) -> StructuralState | None:
        """The state that the highest bounds by one q(x) lead to, from neighbor to neighbor; None if not higher."""
        top = best = here
        lately, n_waited = deque([canonical(here.setting)], maxlen=max(self.n_tabu, 1)), 0
        while n_waited <= self.n_tabu and not fitter.problem.is_over:
            near = fitter.best_first(top)
            step = next((state for state in near if canonical(state.setting) not in lately), None)
            if step is None:
                break
            top, n_waited = step, n_waited + 1
            lately.append(canonical(top.setting))
            if gains(top.bound, best.bound):
                best, n_waited = top, 0
        return None if best is here else best
