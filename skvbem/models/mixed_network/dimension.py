"""The dimension of measurements below hidden numbers: the rank of the map from parameters to their distribution."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from skvbem.errors import TooLargeError
from skvbem.models.mixed_network.symmetries import NumberSymmetries
from skvbem.models.network.contexts import disjoint

# Most joint states of the discrete parents of families that share hidden numbers.
_MAX_JOINT_STATES = 4096
# Singular values below this share of the largest are 0 but for rounding.
_RANK_TOLERANCE = 1e-9
# Step of complex differences, which round nothing.
_STEP = 1e-30


def families_with_hidden_numbers(model: Any) -> list[tuple[int, ...]]:
    """Families of numbers, those that share hidden ones with children together, by number of their emissions."""
    around = NumberSymmetries(model).families.values()
    scopes = ((sum(1 << k for k in families), list(families)) for families in around)
    return [tuple(sorted({*families})) for _, families in disjoint(scopes)]


def rank_of_numbers(model: Any, families: Sequence[int]) -> int:
    r"""The generic rank of the map from the parameters of families to the distribution of what they observe.

    Given all other numbers, with hidden ones H and observed ones R, :math:`z = A z + B g + \epsilon` in each joint
    state of the discrete parents; the distribution of R is told by the rows of :math:`(I - A)^{-1} B` and of
    :math:`(I - A)^{-1} D (I - A)^{-\top}`.

    Parameters
    ----------
    model : MixedNetwork
    families : sequence of int

    Raises
    ------
    TooLargeError
        If the discrete parents have too many joint states.
    """
    layout = model.layout
    discrete = sorted({p for k in families for p in layout.parents[layout.n_tables + k]})
    sizes = [layout.cardinalities[p] for p in discrete]
    if prod(sizes) > _MAX_JOINT_STATES:
        raise TooLargeError(
            f"The discrete parents of nodes that share hidden numbers have {prod(sizes)} joint states, more than the "
            f"{_MAX_JOINT_STATES} for which the identifiable dimension is found. Take dimension='free'."
        )
    states = np.arange(prod(sizes))
    components = {k: model.number_families.components(k, discrete, states) for k in families}
    shapes = {k: (model.n_states[k], model.emissions[k].n_columns, model.emissions[k].n_regressors) for k in families}
    ends = np.cumsum(
        [0, *(prod(shape) + (0 if model.emissions[k].is_hidden else prod(shape[:2])) for k, shape in shapes.items())]
    )
    point = np.random.default_rng(0).normal(size=ends[-1])

    def told(parameters: np.ndarray) -> np.ndarray:
        """Numbers that tell the distribution of what is observed."""
        parts = {k: parameters[first:last] for k, first, last in zip(shapes, ends[:-1], ends[1:])}
        told_by_state = [
            _distribution(model, shapes, parts, {k: components[k][s] for k in families}) for s in range(len(states))
        ]
        return np.concatenate(told_by_state)

    columns = [told(point + 1j * _STEP * direction).imag / _STEP for direction in np.eye(len(point))]
    values = np.linalg.svd(np.array(columns), compute_uv=False)
    return int((values > _RANK_TOLERANCE * values.max(initial=0.0)).sum())


def _distribution(model: Any, shapes: dict, parts: dict, component: dict) -> np.ndarray:
    """Coefficients and covariances of observed numbers given all others, in one joint state of the discrete parents."""
    families = model.number_families
    inside = {int(v): place for place, v in enumerate(v for k in shapes for v in families.responses[k])}
    outside = sorted({int(v) for k in shapes for v in families.around[k]} - inside.keys())
    column_of = {v: 1 + place for place, v in enumerate(outside)}
    n = len(inside)
    among, given, noise = (
        np.zeros((n, n), dtype=complex),
        np.zeros((n, 1 + len(outside)), dtype=complex),
        np.ones(n, dtype=complex),
    )
    observed = np.ones(n, dtype=bool)
    for k, (n_states, d, n_regressors) in shapes.items():
        emission, cells = model.emissions[k], parts[k]
        slopes = cells[: n_states * d * n_regressors].reshape(n_states, d, n_regressors)[component[k]]
        rows = [inside[int(v)] for v in families.responses[k]]
        if emission.is_hidden:
            observed[rows] = False
        else:
            noise[rows] = np.exp(cells[n_states * d * n_regressors :].reshape(n_states, d)[component[k]])
        if emission.intercept:
            given[rows, 0] = slopes[:, 0]
        for v, of_parent in zip(families.around[k][d:], slopes[:, int(emission.intercept) :].T):
            if int(v) in inside:
                among[rows, inside[int(v)]] = of_parent
            else:
                given[rows, column_of[int(v)]] = of_parent
    solved = np.linalg.inv(np.eye(n) - among)
    covariance = (solved * noise) @ solved.T
    return np.concatenate(
        [(solved @ given)[observed].ravel(), covariance[np.ix_(observed, observed)][np.triu_indices(observed.sum())]]
    )
