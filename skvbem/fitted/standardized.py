r"""Standardized coefficients and R² of the numbers of a network, by the moments that its parameters imply.

Given the states c of categories, numbers y have :math:`y = a_c + B_c y + \epsilon` with the variances :math:`D_c` of
the noise, so that their means and covariances are

.. math::

    \mu_c = (I - B_c)^{-1} a_c, \qquad \Sigma_c = (I - B_c)^{-1} D_c (I - B_c)^{-\top}.

In each joint state of the categories above a number, its coefficients are multiplied by the standard deviation of the
parent there, and divided by that of the number there, as between groups of a structural equation model. R² is the share
of the variance of the number that is not noise: in each of these states, and in all of them together, where it counts
the differences between states as explained.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from skvbem._lazy import cached_property
from skvbem.fitted.base import Parameters
from skvbem.graphs.paths import with_ancestors
from skvbem.reading.mixed_network import emission_groups

#: Most numbers in all covariance matrices of a node and those above it, over states and draws: 256 MB.
MAX_NUMBERS = 2**25


@dataclass(frozen=True, eq=False)
class StandardizedNumber:
    """A number below numbers, as standardized at draws of the parameters.

    Parameters
    ----------
    name : hashable
        The column of the number, or the latent.
    parents : tuple
        Columns and latents above it that hold numbers.
    categories : tuple
        Nodes above it that hold categories; each of their joint states has coefficients.
    frequencies : ndarray of shape (n_draws, n_states)
        Probabilities of these states.
    coefficients : ndarray of shape (n_draws, n_states, n_parents)
        Standard deviations of the number per standard deviation of each parent, both of the state.
    overall : ndarray of shape (n_draws, n_parents)
        The mean coefficient over states, in standard deviations over all states.
    r2 : ndarray of shape (n_draws, n_states)
        As coefficients, NaN in a state without probability.
    overall_r2 : ndarray of shape (n_draws,)
    """

    name: Hashable
    parents: tuple
    categories: tuple
    frequencies: np.ndarray
    coefficients: np.ndarray
    overall: np.ndarray
    r2: np.ndarray
    overall_r2: np.ndarray


def standardized_numbers(fitted: Any, parameters: Parameters) -> list[StandardizedNumber]:
    """Each number that has numbers above it.

    Those are left out that depend on nodes whose moments have no such form: states driven by a softmax, counts, answers
    in an order; and those below so many categories that their matrices would be more than `MAX_NUMBERS`.

    Parameters
    ----------
    fitted : FittedMixedNetwork
    parameters : dict of hashable to dict of str to ndarray
        Each (n_draws, ...), as of draws.
    """
    moments = _Moments(fitted, parameters)
    nodes = [node for node in fitted.model.dag.nodes if node in fitted.with_emission and moments.numbers_above(node)]
    return [each for node in nodes if moments.are_known(node) for each in moments.standardized(node)]


def covariance_of_numbers(fitted: Any, parameters: Parameters) -> tuple[list, np.ndarray] | None:
    """Columns and latents of a network of numbers alone, and their covariance (d, d); None of other networks."""
    of_each = {group: {name: each[None] for name, each in of.items()} for group, of in parameters.items()}
    moments, numbers = _Moments(fitted, of_each), fitted.model.dag.topological_order()
    if fitted.levels or not all(map(moments.are_known, numbers)):
        return None
    names = [name for node in numbers for name in moments.names(node)]
    return names, moments._given(numbers, (), names)[2][0, 0]


@dataclass(frozen=True, eq=False)
class _Moments:
    """A network of mixed columns at draws of its parameters."""

    fitted: Any
    parameters: Mapping

    @cached_property
    def n_draws(self) -> int:
        """How many draws there are."""
        return len(next(each for of in self.parameters.values() for each in of.values()))

    def names(self, node: Hashable) -> tuple:
        """Columns of a node of numbers."""
        groups = self.fitted.groups
        return next(each for k in emission_groups(groups) if (each := groups.groups[k]).name == node).names

    def numbers_above(self, node: Hashable) -> list:
        """Parents that hold numbers."""
        return [parent for parent in self.fitted.model.dag.parents(node) if parent not in self.fitted.levels]

    def own_categories(self, node: Hashable) -> tuple:
        """Parents that hold categories, in the order in which joint states of them are counted."""
        return tuple(parent for parent in self.fitted.model.dag.parents(node) if parent in self.fitted.levels)

    def categories_above(self, nodes: Sequence) -> tuple:
        """Parents of any of some nodes that hold categories."""
        above = {parent for node in nodes for parent in self.fitted.model.dag.parents(node)}
        return tuple(node for node in self.fitted.with_tables if node in above)

    def ancestors(self, node: Hashable) -> list:
        """The node and all above it, parents before children."""
        dag = self.fitted.model.dag
        above = with_ancestors({each: dag.parents(each) for each in dag.nodes}, {node})
        return [each for each in dag.topological_order() if each in above]

    def are_known(self, node: Hashable) -> bool:
        """True if the number and all numbers above it are normal given categories that have tables, not too many."""
        numbers = [each for each in self.ancestors(node) if each not in self.fitted.levels]
        of_numbers = [self.parameters[each] for each in numbers if each in self.fitted.with_emission]
        are_normal = ({"coefficients", "variances"} <= {*each} or {"means", "covariances"} == {*each} - {"precisions"}
                      for each in of_numbers)  # fmt: skip
        if len(of_numbers) < len(numbers) or not all(are_normal) or {*self.ancestors(node)} & {*self.fitted.driven}:
            return False
        sizes = [len(self.fitted.levels[each]) for each in self.categories_above(numbers)]
        return self.n_draws * prod(sizes) * sum(len(self.names(each)) for each in numbers) ** 2 <= MAX_NUMBERS

    def standardized(self, node: Hashable) -> list[StandardizedNumber]:
        """Coefficients and R² of each column of a node."""
        numbers = [each for each in self.ancestors(node) if each not in self.fitted.levels]
        categories, parents_with_states = self.categories_above(numbers), self.own_categories(node)
        names = [name for each in numbers for name in self.names(each)]
        slopes, means, covariance, noise = self._given(numbers, categories, names)
        joint = self._frequencies(categories)
        of_own = self._states(parents_with_states, categories)
        member = np.eye(int(of_own.max()) + 1)[of_own]  # (n_joint_states, n_own_states)
        frequencies = joint @ member
        within = joint[:, :, None] * member / np.maximum(frequencies, 1e-300)[:, None, :]
        variance = self._variances(within, means, covariance)
        variance[frequencies == 0] = np.nan
        total = self._variances(joint[:, :, None], means, covariance)[:, 0]
        parents = [name for parent in self.numbers_above(node) for name in self.names(parent)]
        at = [names.index(name) for name in parents]
        first = np.argmax(member, axis=0)  # a joint state of each own state, all of which have one regression
        of_columns = []
        for name in self.names(node):
            j = names.index(name)
            of_states = slopes[:, first, j][:, :, at]
            mean_slopes = np.einsum("ns,nsp->np", frequencies, of_states)
            noise_of_states = noise[:, first, j]
            mean_noise = (frequencies * noise_of_states).sum(axis=1)
            of_columns.append(
                StandardizedNumber(
                    name,
                    tuple(parents),
                    parents_with_states,
                    frequencies,
                    of_states * np.sqrt(variance[:, :, at] / variance[:, :, [j]]),
                    mean_slopes * np.sqrt(total[:, at] / total[:, [j]]),
                    1 - noise_of_states / variance[:, :, j],
                    1 - mean_noise / total[:, j],
                )
            )
        return of_columns

    def _given(self, numbers: Sequence, categories: tuple, names: list) -> tuple[np.ndarray, ...]:
        """Slopes B, means, covariances and variances of noise of numbers in each joint state of categories."""
        n_draws, d = self.n_draws, len(names)
        n_states = prod(len(self.fitted.levels[each]) for each in categories)
        slopes, noise = np.zeros((2, n_draws, n_states, d, d))
        constants = np.zeros((n_draws, n_states, d))
        for node in numbers:
            of_node, at = self.parameters[node], [names.index(name) for name in self.names(node)]
            states = self._states(self.own_categories(node), categories)
            if "coefficients" in of_node:
                given = [names.index(name) for each in self.numbers_above(node) for name in self.names(each)]
                slopes[:, :, np.array(at)[:, None], given] = of_node["coefficients"][:, states]
                noise[:, :, at, at] = of_node["variances"][:, states]
                if "intercepts" in of_node:
                    constants[:, :, at] = of_node["intercepts"][:, states]
                continue
            constants[:, :, at] = of_node["means"][:, states]
            noise[:, :, np.array(at)[:, None], at] = self._covariances(node, of_node, len(at))[:, states]
        total = np.linalg.inv(np.eye(d) - slopes)
        means = np.einsum("nsij,nsj->nsi", total, constants)
        return slopes, means, total @ noise @ total.swapaxes(-1, -2), np.diagonal(noise, axis1=-2, axis2=-1)

    def _covariances(self, node: Hashable, of_node: Mapping, d: int) -> np.ndarray:
        """Covariances of the columns of a node without numbers above it, (n_draws, n_states, d, d)."""
        covariances, n_states = of_node["covariances"], of_node["means"].shape[1]
        groups = self.fitted.groups
        kind = next(each for k in emission_groups(groups) if (each := groups.groups[k]).name == node).specification
        if kind.covariance_type == "full":
            return covariances
        if kind.covariance_type == "tied":
            return np.repeat(covariances[:, None], n_states, axis=1)
        return covariances.reshape(len(covariances), n_states, -1)[..., None] * np.eye(d)

    def _states(self, of: tuple, categories: tuple) -> np.ndarray:
        """The joint state of some categories in each joint state of more of them, (n_joint_states,)."""
        sizes = [len(self.fitted.levels[each]) for each in categories]
        digits = dict(zip(categories, np.unravel_index(np.arange(prod(sizes)), sizes) if sizes else ()))
        states = np.zeros(prod(sizes), dtype=np.int64)
        for each in of:
            states = states * len(self.fitted.levels[each]) + digits[each]
        return states

    def _frequencies(self, categories: tuple) -> np.ndarray:
        """Probabilities of joint states of categories at each draw, (n_draws, n_joint_states)."""
        if not categories:
            return np.ones((self.n_draws, 1))
        dag = self.fitted.model.dag
        above = with_ancestors({each: dag.parents(each) for each in dag.nodes}, {*categories})
        place = {each: 1 + k for k, each in enumerate(above)}
        operands: list = []
        for each in above:
            operands += [self.parameters["tables"][each], [0, *(place[p] for p in (*dag.parents(each), each))]]
        joint = np.einsum(*operands, [0, *(place[each] for each in categories)], optimize="greedy")
        return joint.reshape(len(joint), -1)

    @staticmethod
    def _variances(weight: np.ndarray, means: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        """Variances of numbers under frequencies (n_draws, n_joint_states, k) of joint states, (n_draws, k, d)."""
        center = np.einsum("nsk,nsd->nkd", weight, means)
        away = means[:, :, None] - center[:, None]
        inside = np.einsum("nsk,nsd->nkd", weight, np.diagonal(covariance, axis1=-2, axis2=-1))
        return inside + np.einsum("nsk,nskd->nkd", weight, away**2)
