"""Draws of the paths of states, and the orders and signs of states that the prior does not tell apart."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations, product
from math import factorial
from typing import Any

import numpy as np

from skvbem._numerics import unpack_symmetric
from skvbem.emissions.symmetries import SignedPermutations
from skvbem.errors import TooLargeError
from skvbem.families import Regression
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.models.labels.gibbs import GibbsSampler
from skvbem.models.linear_dynamical_system.data import LDSData
from skvbem.models.linear_dynamical_system.model import LinearDynamicalSystem
from skvbem.models.linear_dynamical_system.smoother import Smoother
from skvbem.models.relabelings import SignedRelabelings

# Chains that run side by side.
_N_LANES = 16


def log_z(model: LinearDynamicalSystem, natural: np.ndarray, data: LDSData) -> np.ndarray:
    """ln Z of q(x) at natural parameters (n_cells, n_lanes), nats, (n_lanes,)."""
    of_lanes = [model.log_normalizers_of_sequences(natural[:, lane], data) for lane in range(natural.shape[1])]
    return np.array([data.weight @ np.where(data.weight > 0, each, 0.0) for each in of_lanes])


def completed(
    model: LinearDynamicalSystem, natural: np.ndarray, data: LDSData, rng: ParallelGenerator
) -> tuple[np.ndarray, np.ndarray]:
    """ln Z of q(x), (n_lanes,), and complete-data statistics with paths drawn from it, (n_cells, n_lanes)."""
    n_lanes = natural.shape[1]
    noise = rng.standard_normal((len(data), model.n_states, n_lanes))
    log_normalizers, drawn = np.zeros(n_lanes), np.empty((model.n_cells, n_lanes))
    for lane in range(n_lanes):
        smoother = Smoother(model.potentials(natural[:, lane]), model.first, data)
        factored = smoother.factored()
        log_normalizers[lane] = smoother.log_normalizers(factored.expected()).sum()
        drawn[:, lane] = model.statistics(data, factored.means(noise[..., lane]))[0]
    return log_normalizers, drawn


@dataclass(frozen=True, eq=False)
class StateSampler(GibbsSampler):
    """Gibbs and Metropolis chains of a linear dynamical system; see `skvbem.models.labels.gibbs`."""

    def certain_statistics(self, data: LDSData, rng: np.random.Generator) -> np.ndarray:
        """The part of expected statistics that states have no say in, (n_cells,): that of states which are all 0."""
        certain = self.model.statistics(data, np.zeros((len(data), self.model.n_states)))[0]
        # what leaves hyperparameters to their prior must leave them all to it
        return np.where(self.model.prior.leaves_hyperparameters(certain), 0.0, certain)

    def lanes_at_once(self, data: Any) -> int:
        """Chains that run side by side."""
        return _N_LANES

    @property
    def _emission(self) -> None:
        return None


@dataclass(frozen=True, eq=False)
class StateRelabelings:
    """Orders and signs of the states; see `skvbem.capabilities.Relabelable`.

    Parameters
    ----------
    model : LinearDynamicalSystem
    """

    model: LinearDynamicalSystem

    @property
    def _orders(self) -> int:
        """Number of orders of states that the prior does not tell apart."""
        first, k = self.model.first, self.model.n_states
        natural = self.model.prior.expected_natural()
        if k < 2 or not np.array_equal(first.precision, first.precision[0, 0] * np.eye(k)) or np.any(first.mean):
            return 1
        change = self._changes([(*range(1, k), 0), (1, 0, *range(2, k))], [(1.0,) * k])
        return factorial(k) if np.allclose(change(natural), natural, rtol=1e-12, atol=1e-12) else 1

    @property
    def _has_signs(self) -> bool:
        """Whether the prior does not tell a state from its negative."""
        first, natural = self.model.first, self.model.prior.expected_natural()
        k = self.model.n_states
        if np.any(first.mean) or not np.array_equal(first.precision, np.diag(np.diag(first.precision))):
            return False
        change = self._changes([tuple(range(k))], [tuple(np.where(np.arange(k) == i, -1.0, 1.0)) for i in range(k)])
        return bool(np.allclose(change(natural), natural, rtol=1e-12, atol=1e-12))

    def relabelings(self, hidden: Any, limit: int = 50_000) -> SignedRelabelings | None:
        """All orders and signs of states that leave the prior as it is; None beyond a limit."""
        k = self.model.n_states
        n_orders, n_signs = self._orders, 2**k if self._has_signs else 1
        if n_orders * n_signs > limit:
            return None
        orders = list(permutations(range(k))) if n_orders > 1 else [tuple(range(k))]
        signs = list(product((1.0, -1.0), repeat=k)) if n_signs > 1 else [(1.0,) * k]
        one = np.arange(self.model.n_cells)[None]
        return SignedRelabelings(one, [self._changes(orders, signs)], np.zeros((1, 1), dtype=int), one)

    def log_n_relabelings(self, hidden: Any) -> float:
        """ln of the number of orders and signs."""
        signs = self.model.n_states * np.log(2.0) if self._has_signs else 0.0
        return float(np.log(float(self._orders)) + signs)

    def listed_relabelings(self, hidden: Any, limit: int) -> np.ndarray:
        """No list of cells says what changes signs, so that where a sign can change there is none: TooLargeError."""
        relabelings = self.relabelings(hidden, limit)
        if relabelings is None or self._has_signs:
            raise TooLargeError(
                f"There are {np.exp(self.log_n_relabelings(hidden)):.4g} orders and signs of the "
                f"{self.model.n_states} states: none of them is an order of numbers alone, which can be mixed."
            )
        return relabelings.cells_in_order

    def _changes(self, orders: list[tuple[int, ...]], signs: list[tuple[float, ...]]) -> SignedPermutations:
        """Changes of all cells by these orders of states, each with these signs."""
        cells, of_cells = [], []
        for order in orders:
            for sign in signs:
                of_blocks, first = [], 0
                for block, rows in ((self.model.dynamics, order), (self.model.emission, None)):
                    cell, of_cell = _changed(block, order, sign, rows)
                    of_blocks.append((first + cell, of_cell))
                    first += len(cell)
                cells.append(np.concatenate([block[0] for block in of_blocks]))
                of_cells.append(np.concatenate([block[1] for block in of_blocks]))
        return SignedPermutations(np.array(cells), np.array(of_cells))


def _changed(
    block: Regression, order: tuple[int, ...], sign: tuple[float, ...], rows: tuple[int, ...] | None
) -> tuple[np.ndarray, np.ndarray]:
    """The cell that takes each one's place where states, and rows if these are of states, change places and signs."""
    d, k = block.n_regressors, len(order)
    turned, of_turned = np.array([*order, *range(k, d)]), np.array([*sign, *(1.0,) * (d - k)])
    cells = np.arange(len(block.coordinates))
    packed, total, count, square = block.split(cells)
    places = unpack_symmetric(packed, d)[:, turned][:, :, turned]
    upper = np.triu_indices(d)
    of_rows, of_sign = total[:, turned], np.tile(of_turned, (len(total), 1))
    if rows is not None:
        of_rows, of_sign = of_rows[list(rows)], of_sign * np.array(sign)[:, None]
    of_products = np.tile(np.outer(of_turned, of_turned)[upper], len(packed))
    parts = [places[:, upper[0], upper[1]].ravel(), of_rows.ravel(), count, square]
    signs = [of_products, of_sign.ravel(), np.ones(len(count)), np.ones(len(square))]
    return np.concatenate(parts), np.concatenate(signs)
