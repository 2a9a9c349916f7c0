r"""Effects of measurements on each other over all graphs: by draws of graphs, or by adjustment for parents.

Given a graph, coefficients of each family have a Normal-Gamma posterior under the joint prior of all columns, and the
total effect of x on y is :math:`[(I - B)^{-1}]_{yx}`. Draws of graphs and of their coefficients mix over both.

Given the parents P of x alone, the effect is the coefficient of x in the regression of y on x and P, if y is not among
them, and 0 if it is: the Bayesian estimate of IDA [PTHK20]. With Z = (x, P), R the posterior scale of the columns,
:math:`\delta` degrees of freedom of one column and N rows,

.. math::

    \beta_x \sim t_\nu\Bigl(m_x, \sqrt{R_{y|Z} [R_{ZZ}^{-1}]_{xx} / \nu}\Bigr), \quad \nu = \delta + N + |Z|, \quad
    m = R_{ZZ}^{-1} R_{Zy}, \quad R_{y|Z} = R_{yy} - m^\top R_{Zy},

mixed over the probabilities of parents, which are sums over all graphs. A graph with fewer edges says more of y than
this regression does, so that intervals by adjustment are wider.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skvbem._arguments import check_count, is_among, is_option
from skvbem._lazy import cached_property
from skvbem._names import did_you_mean, shown
from skvbem.fitted.effects import Effect
from skvbem.search.families.drawn_graphs import DrawnGraphs
from skvbem.search.families.hidden_scale import MixedPosterior, PosteriorOverGraphs
from skvbem.search.families.normal_wishart_scores import NormalWishartScores
from skvbem.search.families.sum_of_dags import GraphPosterior, parent_set_probabilities


@dataclass(frozen=True, eq=False)
class EffectsOverGraphs:
    """Effects of measurements under the posterior over all graphs and their coefficients.

    Parameters
    ----------
    data : NormalWishartScores
    graphs : GraphPosterior
    """

    data: NormalWishartScores
    graphs: GraphPosterior

    def by_graphs(self, cause: Hashable, outcome: Hashable, n_draws: int) -> Effect:
        """The effect of one unit more, over draws of graphs and of their coefficients."""
        x, y = (self.data.place[node] for node in (cause, outcome))
        parents = self._drawn.draw(n_draws, np.random.default_rng(0))
        slopes = self._slopes(parents, np.random.default_rng(1))
        identity = np.eye(len(self.data.nodes))
        draws = np.linalg.inv(identity - slopes)[:, y, x] * self.data.unit[y] / self.data.unit[x]
        reached = (slopes != 0) + identity
        for _ in range(len(identity).bit_length()):
            reached = np.minimum(reached @ reached, 1.0)
        return Effect.of_draws(draws, probability_no_path=float((reached[:, y, x] == 0).mean()))

    def by_adjustment(self, cause: Hashable, outcome: Hashable, n_draws: int) -> Effect:
        """The effect by regressions of the outcome on the cause and its parents: a t distribution for each such set.

        Draws are those of graphs, which say how probable it is that there is no path.
        """
        x, y = (self.data.place[node] for node in (cause, outcome))
        probabilities = parent_set_probabilities(self.graphs.scores, x)
        others = [k for k in range(len(self.data.nodes)) if k != x]
        kept = np.flatnonzero(probabilities > _NOTHING * probabilities.max())
        parts = [(0.0, 0.0, np.inf)] * len(kept)
        for place, mask in enumerate(kept.tolist()):
            above = [node for bit, node in enumerate(others) if mask >> bit & 1]
            if y not in above:
                parts[place] = self._coefficient(y, [x, *above])
        values, scales, dof = map(np.array, zip(*parts))
        unit = self.data.unit[y] / self.data.unit[x]
        weights = probabilities[kept] / probabilities[kept].sum()
        no_path = self.by_graphs(cause, outcome, n_draws).probability_no_path
        return Effect(weights, values * unit, scales * unit, dof, no_path)

    @cached_property
    def _drawn(self) -> DrawnGraphs:
        return DrawnGraphs(self.graphs.scores)

    def _coefficient(self, y: int, regressors: list[int]) -> tuple[float, float, float]:
        """Mean, scale and degrees of freedom of the first coefficient of a regression, in units."""
        scale, cells = self.data.posterior_scale, np.ix_(regressors, regressors)
        inverse = np.linalg.inv(scale[cells])
        mean = inverse @ scale[regressors, y]
        rest = scale[y, y] - mean @ scale[regressors, y]
        dof = self.data.degrees_of_freedom + self.data.total_weight + len(regressors)
        return float(mean[0]), float(np.sqrt(rest * inverse[0, 0] / dof)), dof

    def _slopes(self, parents: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Coefficients of all families of graphs, drawn, (n_draws, child, parent), in units."""
        data, n = self.data, len(self.data.nodes)
        scale, slopes = data.posterior_scale, np.zeros((len(parents), n, n))
        for child in range(n):
            masks, which = np.unique(parents[:, child], return_inverse=True)
            for place, mask in enumerate(masks.tolist()):
                above = [k for k in range(n) if mask >> k & 1]
                rows = np.flatnonzero(which == place)
                if not above:
                    continue
                inverse = np.linalg.inv(scale[np.ix_(above, above)])
                mean = inverse @ scale[above, child]
                rate = 0.5 * (scale[child, child] - mean @ scale[above, child])
                shape = 0.5 * (data.degrees_of_freedom + data.total_weight + len(above))
                noise = np.sqrt(rate / rng.standard_gamma(shape, len(rows)))
                root = np.linalg.cholesky(inverse)
                drawn = mean + noise[:, None] * (rng.standard_normal((len(rows), len(above))) @ root.T)
                slopes[rows[:, None], child, above] = drawn
        return slopes


@dataclass(frozen=True, eq=False)
class EffectsOverScales:
    """Effects of measurements whose prior has a hidden scale: those at each scale, mixed.

    Parameters
    ----------
    parts : tuple of EffectsOverGraphs
    weights : ndarray of shape (n_scales,)
        Probabilities of the scales.
    """

    parts: tuple[EffectsOverGraphs, ...]
    weights: np.ndarray

    @property
    def data(self) -> NormalWishartScores:
        """The measurements, at one of the scales."""
        return self.parts[0].data

    def by_graphs(self, cause: Hashable, outcome: Hashable, n_draws: int) -> Effect:
        """The effect of one unit more, over so many draws at each scale."""
        return Effect.mixed([each.by_graphs(cause, outcome, n_draws) for each in self.parts], self.weights)

    def by_adjustment(self, cause: Hashable, outcome: Hashable, n_draws: int) -> Effect:
        """The effect by regressions of the outcome on the cause and its parents."""
        return Effect.mixed([each.by_adjustment(cause, outcome, n_draws) for each in self.parts], self.weights)


def effects_over(graphs: PosteriorOverGraphs | None) -> EffectsOverGraphs | EffectsOverScales | None:
    """Effects under a posterior, if it is one over all graphs of measurements."""
    if isinstance(graphs, MixedPosterior):
        kept = [(weight, each) for weight, each in graphs.at_scales if weight > _RARE]
        weights = np.array([weight for weight, _ in kept])
        parts = (EffectsOverGraphs(each.measurements, each) for _, each in kept if each.measurements is not None)
        return EffectsOverScales(tuple(parts), weights / weights.sum())
    if graphs is None or graphs.measurements is None:
        return None
    return EffectsOverGraphs(graphs.measurements, graphs)


def effect_over_structures(
    published: Mapping[str, Any], cause: Hashable, outcome: Hashable, method: str, n_draws: int, **states: Any
) -> Effect:
    """The total effect of a node on another over the candidates of a search; see `skvbem.StructureSearchCV.effect`.

    Parameters
    ----------
    published : mapping
        Attributes of the search: the effects over all graphs, or None, and `averaged_`, if it is there.
    cause, outcome : node
    method : str
    n_draws : int
    **states
        `change` and `state`, where nodes are categories.
    """
    if not is_option(method, *METHODS):
        raise ValueError(
            f"The 'method' parameter of effect must be one of {list(METHODS)}. Got {shown(method)} instead."
        )
    check_count("n_draws", "effect", n_draws)
    over_graphs, average = published[OVER_GRAPHS], published.get("averaged_")
    if over_graphs is not None:
        _check_numbers(over_graphs.data.nodes, cause, outcome, states)
        of_method = over_graphs.by_graphs if method == "graphs" else over_graphs.by_adjustment
        return of_method(cause, outcome, n_draws)
    if method != "graphs":
        raise ValueError(
            "method='adjustment' needs the sum over all graphs of complete measurements under one prior, as "
            "emission=Regression(prior='bge') has it, of at most 12 nodes. Take "
            "method='graphs'."
        )
    if average is None:
        raise ValueError(
            "Effects over structures need the fits of all candidates that matter, which this search has not kept. "
            "Search with averaging=True."
        )
    if not hasattr(average.estimators[0], "effect"):
        raise TypeError(
            f"{type(average.estimators[0]).__name__} has no effects. Search over structures of a VBNetwork."
        )
    parts = [each.effect(cause, outcome, **states, n_draws=n_draws) for each in average.estimators]
    return Effect.mixed(parts, average.weights)


def _check_numbers(nodes: tuple, cause: Hashable, outcome: Hashable, states: Mapping[str, Any]) -> None:
    for node in (cause, outcome):
        if not is_among(node, nodes):
            raise ValueError(f"{node!r} is not a node of this search.{did_you_mean(node, nodes)}")
    if cause == outcome:
        raise ValueError(f"effect needs two nodes. Got {cause!r} twice.")
    for name, value in states.items():
        if value is not None:
            raise ValueError(f"{cause!r} and {outcome!r} hold numbers, which have no states. Leave {name!r} out.")


#: Ways to average over graphs.
METHODS = ("graphs", "adjustment")
#: Where a search keeps the sum over all graphs of measurements.
OVER_GRAPHS = "_over_graphs_"
# Sets of parents that are less probable, of the most probable one, are left out.
_NOTHING = 1e-12
# Scales that are less probable are left out.
_RARE = 1e-4
