r"""Total effects in a fitted network of mixed columns: of numbers on numbers, and of categories on both.

Given the states c of categories, numbers y have :math:`y = a_c + B_c y + \epsilon`, and one unit more of a number x,
which is set, changes the expected value of y by :math:`[(I - B_c)^{-1}]_{yx}`, the sum over directed paths of products
of coefficients. Numbers are never above categories, so that setting them leaves p(c) alone, and the effect is

.. math::

    \sum_c p(c) \, [(I - B_c)^{-1}]_{yx}.

A category that is set changes p(c) and the expected values of all numbers below it. All is computed at draws of the
parameters from q(theta).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from skvbem._arguments import is_among, is_collection
from skvbem._lazy import cached_property
from skvbem._names import did_you_mean, shown
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.fitted.asking import code_of, warn_of_unidentified
from skvbem.fitted.effects import Effect
from skvbem.fitted.evidence import row_of_evidence
from skvbem.graphs.paths import with_ancestors
from skvbem.models.mixed_network.queries import posteriors_at
from skvbem.reading.mixed_network import emission_groups
from skvbem.tables import state_code


def effect_of(
    fitted: Any,
    cause: Hashable,
    outcome: Hashable,
    change: Sequence | None,
    state: Any,
    n_draws: int,
    **limits: Any,
) -> Effect:
    """The total effect of a node on another; see `skvbem.VBNetwork.effect`."""
    question = _Question(fitted, n_draws if fitted.form.density else 1, limits)
    ends = _checked(question, cause, outcome, change, state)
    above, below = question.node_of[cause], question.node_of[outcome]
    is_above = above in with_ancestors(question.parents, {below})
    if not is_above:
        return Effect.of_draws(np.zeros(question.n_draws), probability_no_path=1.0)
    if fitted.hidden:
        warn_of_unidentified(fitted.model.dag, fitted.hidden, (below,), (above,), set())
    question.check_not_driven(below)
    if cause in fitted.numbers:
        return Effect.of_draws(question.slopes(cause, outcome))
    after, before = (question.expected(outcome, {cause: each}, state) for each in ends)
    return Effect.of_draws(after - before)


def _checked(question: _Question, cause: Hashable, outcome: Hashable, change: Sequence | None, state: Any) -> tuple:
    """The states that a category changes to, and from; () of a number. Nodes and states are checked."""
    fitted, owner = question.fitted, question.fitted.groups.owner
    for what, name in (("cause", cause), ("outcome", outcome)):
        if not is_among(name, question.node_of):
            near = did_you_mean(name, question.node_of)
            raise ValueError(f"{shown(name)} is not a node of this {owner}, as {what!r} of effect must be.{near}")
    if question.node_of[cause] == question.node_of[outcome]:
        raise ValueError(f"effect needs two nodes. Got {cause!r} and {outcome!r}, which are one.")
    if outcome in fitted.levels:
        if state is None:
            raise ValueError(
                f"{outcome!r} is a category: effects are on the probability of one of its states. Name it, as in "
                f"state={fitted.levels[outcome].tolist()[-1]!r}."
            )
        code_of(outcome, state, fitted.levels)
    elif state is not None:
        raise ValueError(f"{outcome!r} holds numbers, and has no state {state!r}. Leave 'state' out.")
    if cause in fitted.levels:
        states = fitted.levels[cause].tolist()
        change = states if change is None and len(states) == 2 else change
        pair: list[Any] = list(change) if change is not None and is_collection(change) else []
        if len(pair) != 2:
            raise ValueError(
                f"{cause!r} is a category: name the two states that it changes from and to, as in "
                f"change=({states[0]!r}, {states[-1]!r}). Got change={shown(change)}."
            )
        for each in pair:
            if state_code(each, fitted.levels[cause]) is None:
                raise ValueError(
                    f"{shown(each)} is not a state of {cause!r}, as both of 'change' must be. Its states are "
                    f"{', '.join(map(repr, states))}."
                )
        before, after = pair
        return after, before
    if change is not None:
        raise ValueError(f"{cause!r} holds numbers: its effect is that of one unit more. Leave 'change' out.")
    if len(question.group_of[cause].names) > 1:
        raise ValueError(
            f"{cause!r} is one of the columns of node {question.node_of[cause]!r}, which are not set one by one. Make "
            "it a node of its own."
        )
    return ()


@dataclass(frozen=True, eq=False)
class _Question:
    """A fit at draws of its parameters.

    Parameters
    ----------
    fitted : FittedMixedNetwork
    n_draws : int
    limits : mapping
        Of `MixedNetwork.compile`.
    """

    fitted: Any
    n_draws: int
    limits: Mapping[str, Any]

    @cached_property
    def parents(self) -> dict:
        """The graph."""
        dag = self.fitted.model.dag
        return {node: dag.parents(node) for node in dag.nodes}

    @cached_property
    def group_of(self) -> dict:
        """Groups of columns of numbers, by the names of these."""
        groups = self.fitted.groups
        return {name: groups.groups[k] for k in emission_groups(groups) for name in groups.groups[k].names}

    @cached_property
    def node_of(self) -> dict:
        """The node of each category, latent and column of numbers."""
        return {name: name for name in self.fitted.levels} | {name: of.name for name, of in self.group_of.items()}

    def check_not_driven(self, outcome: Hashable) -> None:
        """Refuse latents above an outcome whose states numbers drive: their probabilities depend on these."""
        for node in self.fitted.driven:
            if node in with_ancestors(self.parents, {outcome}):
                raise ValueError(
                    f"{outcome!r} depends on {node!r}, whose states numbers or covariates drive by a softmax, so that "
                    "effects differ from row to row. Compare answers of 'query' with 'do'."
                )

    def slopes(self, cause: Hashable, outcome: Hashable) -> np.ndarray:
        """Effect of one unit more of a number on another at each draw, (n_draws,)."""
        fitted = self.fitted
        above = with_ancestors(self.parents, {self.node_of[outcome]})
        nodes, on_path = [], {self.node_of[cause]}
        change: dict[Any, Any] = {cause: np.ones((1, 1))}
        for node in fitted.model.dag.topological_order():
            if node in above and on_path & set(self.parents[node]):
                on_path.add(node)
                nodes.append(node)
        categories = self._categories_above(nodes)
        for node in nodes:
            coefficients, _ = self._regression(node, categories)
            given = self._given(node)
            for j, name in enumerate(self._names(node)):
                change[name] = sum(coefficients[:, :, j, i] * change[p] for i, p in enumerate(given) if p in change)
        return (self._probabilities(categories, {}) * change[outcome]).sum(axis=1)

    def expected(self, outcome: Hashable, done: Mapping, state: Any) -> np.ndarray:
        """Expected value of an outcome, or the probability of its state, once categories are set, (n_draws,)."""
        fitted = self.fitted
        if outcome in fitted.levels:
            return self._probabilities([outcome], done)[:, code_of(outcome, state, fitted.levels)]
        above = with_ancestors(self.parents, {self.node_of[outcome]})
        nodes = [node for node in fitted.model.dag.topological_order() if node in above and node not in fitted.levels]
        categories = self._categories_above(nodes)
        means: dict[Any, np.ndarray] = {}
        for node in nodes:
            coefficients, constants = self._regression(node, categories)
            given = self._given(node)
            for j, name in enumerate(self._names(node)):
                terms = (coefficients[:, :, j, i] * means[p] for i, p in enumerate(given))
                means[name] = sum(terms, constants[:, :, j])
        return (self._probabilities(categories, done) * means[outcome]).sum(axis=1)

    def _categories_above(self, nodes: Sequence) -> list:
        above = {parent for node in nodes for parent in self.parents[node]}
        return [node for node in self.fitted.with_tables if node in above]

    def _names(self, node: Hashable) -> tuple:
        return next(group.names for group in self.group_of.values() if group.name == node)

    def _given(self, node: Hashable) -> list:
        """Columns of numbers that explain a node."""
        numbers = [parent for parent in self.parents[node] if parent not in self.fitted.levels]
        return [name for parent in numbers for name in self._names(parent)]

    def _probabilities(self, categories: Sequence, done: Mapping) -> np.ndarray:
        """Of joint states of categories, some of which are set, at each draw, (n_draws, n_states)."""
        if not categories:
            return np.ones((1, 1))
        points = ((self._tables[:, k], *self.fitted.point[1:]) for k in range(self.n_draws))
        row = row_of_evidence(self.fitted, {}, done)
        _, (posteriors,) = posteriors_at(self.fitted.model, row, [categories], points, **self.limits)
        return posteriors

    @cached_property
    def _tables(self) -> np.ndarray:
        return self._drawn(0)

    def _drawn(self, block: int) -> Any:
        """Points of a block of parameters, the draws along the last axis."""
        prior = self.fitted.model.prior
        if not self.fitted.form.density:
            natural = np.ravel(prior.blocks[block].natural(self.fitted.point[block]))
            return prior.blocks[block].from_natural(natural[:, None])
        statistics = prior.split(self.fitted.statistics)[block]
        words = np.random.default_rng([0, block]).integers(0, 2**64, size=(4, self.n_draws), dtype=np.uint64)
        posterior = prior.blocks[block] + np.repeat(statistics[:, None], self.n_draws, axis=1)
        return posterior.sample(ParallelGenerator(words))

    def _means(self, node: Hashable, parameters: Mapping) -> np.ndarray:
        """Expected values of the columns of a node without numbers above it, (n_states, n_columns)."""
        group = next(group for group in self.group_of.values() if group.name == node)
        means = [] if group.encoder is not None else group.specification.expected(parameters, [])
        if not means or any(map(np.iscomplexobj, means)):
            raise ValueError(
                f"Node {node!r} holds answers in an order or angles, whose effects are not defined here. Compare "
                "answers of 'query' or 'sample'."
            )
        return np.stack(means, axis=1)

    def _regression(self, node: Hashable, categories: Sequence) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients of a node, (n_draws, n_joint_states, n_columns, n_given), and constants without a last axis."""
        fitted, k = self.fitted, self.fitted.with_emission.index(node)
        parameters = fitted.model.emissions[k].parameters_of_draws(self._drawn(1 + k))
        if "coefficients" in parameters:
            coefficients = parameters["coefficients"]
            constants = parameters.get("intercepts", np.zeros(coefficients.shape[:3]))
        else:
            each = ({name: of[s] for name, of in parameters.items()} for s in range(self.n_draws))
            constants = np.stack([self._means(node, of) for of in each])
            coefficients = np.zeros((*constants.shape, 0))
        sizes = [len(fitted.levels[category]) for category in categories]
        digits = dict(zip(categories, np.unravel_index(np.arange(prod(sizes)), sizes) if sizes else ()))
        states = np.zeros(prod(sizes), dtype=np.int64)
        for parent in (parent for parent in self.parents[node] if parent in digits):
            states = states * len(fitted.levels[parent]) + digits[parent]
        return coefficients[:, states], constants[:, states]
