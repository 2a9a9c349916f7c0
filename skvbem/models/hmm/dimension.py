r"""In how many directions a hidden Markov model can move the distribution of its sequences.

That is the generic rank of the Jacobian of the map from parameters to the distribution of the longest sequence
[Geiger, Heckerman & Meek 1996], of which those of shorter ones are marginals. The distribution of sequences of any
length follows from that of 2K - 1 steps, K states [Carlyle & Paz 1971], so that longer ones have the same rank.

*Distributions that are never mixtures of each other* (Gaussian, Poisson, exponential columns) tell the states of every
step apart: what is missing are the transitions out of states that no step but the last can be in, and what states emit
that no step reaches.

*Finitely many outcomes*: the rank is found without rounding, at a point drawn modulo a prime, of random combinations of
the probabilities of sequences, :math:`\pi^\top D_1 A D_2 \cdots A D_T 1`, with :math:`D_t` what rows of random weights
are expected to be in each state; see `skvbem.graphs.dimension`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skvbem._kernels import _modular
from skvbem.emissions.base import n_redundant_parameters
from skvbem.models.hmm.model import HMM
from skvbem.models.sequences import HMMData

_PRIME = np.uint64(2**31 - 1)


def identifiable_dimension(model: HMM, hidden: Sequence, data: HMMData) -> int:
    """The generic rank of the map from parameters to the distribution of the longest sequence of the data.

    Raises
    ------
    ValueError
        If it is not known for the emission.
    """
    lengths = (data.ends - data.starts[:-1])[data.weight > 0]
    n_steps = min(int(lengths.max(initial=0)), 2 * model.n_components - 1)
    if n_steps == 0:
        return 0
    if model.n_components == 1:
        return model.prior.n_free_parameters - n_redundant_parameters(model.emission, np.ones(1, bool))
    if model.emission.identifies_components:
        return _where_states_are_distinguishable(model, n_steps)
    sizes = model.emission.n_outcomes
    if sizes is None:
        raise ValueError(
            "The identifiable dimension of sequences of multinomial counts depends on the totals of the rows, and is "
            "not known here. Take dimension='free'."
        )
    rng = np.random.default_rng(0)
    # a minor that is not the zero polynomial is seldom zero at a random point, and very seldom at two
    return max(_modular.rank(_derivatives(model, sizes, n_steps, rng)) for _ in range(2))


def _where_states_are_distinguishable(model: HMM, n_steps: int) -> int:
    """The identifiable dimension over so many steps, where emissions tell states apart."""
    reached, left = model.initial.allowed[0].copy(), np.zeros(model.n_components, dtype=bool)
    for _ in range(n_steps - 1):
        left = reached.copy()
        reached |= model.transitions.allowed[reached].any(axis=0)
    state = model.emission.component_of_cell(model.n_components)
    jacobian = model.prior.blocks[2].jacobian(model.prior.mode()[2])
    has_a_say = jacobian[np.concatenate([[True], reached])[state + 1]].any(axis=0)
    n_transitions = (model.transitions.allowed.sum(axis=1) - 1)[left].sum()
    n_emitted = has_a_say.sum() - n_redundant_parameters(model.emission, reached)
    return int(model.initial.prior.n_free_parameters + n_transitions + n_emitted)


def _derivatives(model: HMM, sizes: tuple[int, ...], n_steps: int, rng: np.random.Generator) -> np.ndarray:
    """Derivatives of random combinations of probabilities by all free parameters, (n_free_parameters, n)."""
    n_states, n = model.n_components, model.prior.n_free_parameters
    first, pairs = (_random_rows(rng, of.allowed) for of in (model.initial, model.transitions))
    tables = [_random_rows(rng, np.ones((n_states, size), dtype=bool)) for size in sizes]
    weights = [rng.integers(0, _PRIME, size=(n_steps, size, n), dtype=np.uint64) for size in sizes]
    by_column = np.stack([_product(table, weight) for table, weight in zip(tables, weights)])
    rows = _multiplied(by_column)  # (n_steps, n_states, n)
    ahead, behind = np.empty_like(rows), np.ones_like(rows)
    ahead[0] = np.broadcast_to(first.T, rows[0].shape)
    for t in range(1, n_steps):  # without the row itself
        ahead[t] = _product(pairs.T, ahead[t - 1] * rows[t - 1] % _PRIME)
        behind[-t - 1] = _product(pairs, behind[-t] * rows[-t] % _PRIME)
    by_first = (rows[0] * behind[0] % _PRIME)[None]
    left, right = ahead * rows % _PRIME, rows * behind % _PRIME
    by_pairs = np.zeros((n_states, n_states, n), dtype=np.uint64)
    for t in range(1, n_steps):
        by_pairs = (by_pairs + left[t - 1][:, None] * right[t] % _PRIME) % _PRIME
    derivatives = [_free(by_first, model.initial.allowed), _free(by_pairs, model.transitions.allowed)]
    around = ahead * behind % _PRIME
    for j, weight in enumerate(weights):
        others = around * _multiplied(np.delete(by_column, j, axis=0)) % _PRIME
        by_table = (others[:, :, None] * weight[:, None] % _PRIME).sum(axis=0) % _PRIME
        derivatives.append(_free(by_table, np.ones(by_table.shape[:2], dtype=bool)))
    return np.ascontiguousarray(np.concatenate(derivatives))


def _random_rows(rng: np.random.Generator, allowed: np.ndarray) -> np.ndarray:
    """Residues that sum to one over each row, 0 where there is no cell."""
    table = rng.integers(1, _PRIME, size=allowed.shape, dtype=np.uint64) * allowed.astype(np.uint64)
    last = allowed.shape[1] - 1 - allowed[:, ::-1].argmax(axis=1)
    rows = np.arange(len(table))
    table[rows, last] = 0
    table[rows, last] = (1 + _PRIME - table.sum(axis=1) % _PRIME) % _PRIME
    return table


def _product(matrix: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Matrix (m, k) times residues (..., k, n)."""
    return (matrix[:, :, None] * of[..., None, :, :] % _PRIME).sum(axis=-2) % _PRIME


def _multiplied(factors: np.ndarray) -> np.ndarray:
    """The product over the first axis, 1 of no factors."""
    product = np.ones(factors.shape[1:], dtype=np.uint64)
    for factor in factors:
        product = product * factor % _PRIME
    return product


def _free(by_cell: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Derivatives by free cells of rows, (n_free, n): the last cell of each is one less the others."""
    last = allowed.shape[1] - 1 - allowed[:, ::-1].argmax(axis=1)
    rows = np.arange(len(allowed))
    derivatives = (by_cell + _PRIME - by_cell[rows, last][:, None]) % _PRIME
    free = allowed.copy()
    free[rows, last] = False
    return derivatives[free]
