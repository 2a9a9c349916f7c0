"""Draws of the paths of states, and the orders and signs of states that the prior does not tell apart."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations, product
from math import factorial
from typing import Any

import numpy as np
from scipy.linalg import expm

from skvbem._kernels import _block_chain
from skvbem._lazy import cached_property
from skvbem._numerics import last_axes_first, unpack_symmetric
from skvbem.capabilities import AnnealingPlan, Path
from skvbem.emissions.symmetries import AlikeCells, SignedPermutations, unchanged
from skvbem.errors import TooLargeError
from skvbem.families import Regression
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.models.labels.gibbs import GibbsSampler, between
from skvbem.models.linear_dynamical_system import first_states
from skvbem.models.linear_dynamical_system.data import LDSData
from skvbem.models.linear_dynamical_system.model import LinearDynamicalSystem
from skvbem.models.linear_dynamical_system.rotations import (
    RotatedRelabelings,
    in_basis,
    is_free_to_rotate,
    random_turns,
)
from skvbem.models.linear_dynamical_system.smoother import REPEATS
from skvbem.models.relabelings import SignedRelabelings

# Chains that run side by side, at most, and numbers of states that they draw at once.
_MAX_LANES, _STATES_AT_ONCE = 64, 2**20
# Steps of all parameters of one state after each sweep; how wide they are, as is best in one dimension.
_N_STEPS, _STEP = 6, 2.4
# The least curvature that a step is as wide as, and how far differences of slopes are taken.
_SMALLEST_CURVATURE, _FAR = 0.01, 1e-4
# Changes of the basis of states after each sweep, and how much wider they may be than the unit of states is sure, as a
# power of 2.
_N_CHANGES, _WIDER = 2, 3.0


def log_z(model: LinearDynamicalSystem, natural: np.ndarray, data: LDSData) -> np.ndarray:
    """ln Z of q(x) at natural parameters (n_cells, n_lanes), nats, (n_lanes,)."""
    of_sequences = _lanes(model, natural, data, np.empty((0, len(data), model.n_states)))[0]
    return np.where(data.weight > 0, of_sequences, 0.0) @ data.weight


def completed(
    model: LinearDynamicalSystem, natural: np.ndarray, data: LDSData, rng: ParallelGenerator
) -> tuple[np.ndarray, np.ndarray]:
    """ln Z of q(x), (n_lanes,), and complete-data statistics with paths drawn from it, (n_cells, n_lanes).

    Every sequence counts once.
    """
    noise = last_axes_first(rng.standard_normal((len(data), model.n_states, natural.shape[1])))
    log_normalizers, *sums = _lanes(model, natural, data, np.ascontiguousarray(noise))
    drawn = model.assembled(data, *sums)
    return log_normalizers.sum(axis=1), np.ascontiguousarray(drawn.T)


def _lanes(model: LinearDynamicalSystem, natural: np.ndarray, data: LDSData, noise: np.ndarray) -> tuple:
    """ln Z of all sequences at many natural parameters, (n_lanes, n_sequences), and products of states drawn by noise.

    These are z z', x z' of steps, r r' by pattern, y r', and those of first states with themselves and 1, each summed
    over rows, lanes first.
    """
    potentials, first = model.potentials(natural), model.first_states(natural)
    n_lanes, p, d = potentials.output.shape
    seen = data.patterns.astype(float)

    def by_pattern(of_columns):
        shape = of_columns.shape[2:]
        return np.ascontiguousarray((seen @ of_columns.reshape(n_lanes, p, -1)).reshape(n_lanes, len(seen), *shape))

    nz, k = potentials.transition.shape[2], model.n_states
    log_normalizers = np.zeros((n_lanes, data.n_sequences))
    sums = [np.zeros((n_lanes, *shape)) for shape in ((nz, nz), (k, nz), (len(seen), d, d), (p, d), (k + 1, k))]
    if len(data):
        c = np.ascontiguousarray
        _block_chain.lanes(
            data.pattern,
            c(data.patterns).view(np.uint8),
            data.starts,
            c(data.measured),
            c(data.inputs),
            c(data.output_inputs),
            c(np.broadcast_to(first.mean, (n_lanes, k))),
            c(np.broadcast_to(first.precision, (n_lanes, k, k))),
            c(potentials.transition),
            c(potentials.squares),
            c(potentials.transition_spread),
            c(potentials.output),
            c(potentials.precision),
            by_pattern(potentials.of_columns),
            by_pattern(potentials.output_spread),
            by_pattern(potentials.constant),
            REPEATS,
            noise,
            log_normalizers,
            *sums,
        )
    log_normalizers[:, data.ends > data.starts[:-1]] += np.reshape(first.log_scale, (-1, 1))
    return log_normalizers, *sums


@dataclass(frozen=True, eq=False)
class SteppedPath(Path):
    """A path with the steps by which points are moved while states are summed out.

    Parameters
    ----------
    steps : ndarray of shape (n_chains, n_free_parameters, n_free_parameters)
        A root of the covariance of a step for each chain, in unconstrained coordinates.
    """

    steps: np.ndarray

    def __getitem__(self, chains) -> SteppedPath:
        """The paths of some chains, by slice or by index."""
        path = super().__getitem__(chains)
        return SteppedPath(path.statistics, path.natural, path.slope, self.steps[chains])


class StatePathSampler(GibbsSampler):
    """Gibbs chains of a model whose states are real numbers: paths take room in place of labels."""

    def lanes_at_once(self, data: Any) -> int:
        """Chains that run side by side, 1 to 64."""
        return min(max(_STATES_AT_ONCE // max(len(data) * self.model.n_states, 1), 1), _MAX_LANES)

    @property
    def _emission(self) -> None:
        return None


@dataclass(frozen=True, eq=False)
class StateSampler(StatePathSampler):
    """Gibbs and Metropolis chains of a linear dynamical system; see `skvbem.models.labels.gibbs`.

    States say much of what the parameters are, and parameters of the states, so that Gibbs chains alone take a hundred
    sweeps to forget. After each of them points take Metropolis steps with the states summed out, as wide as the
    curvature of the density about the start of the path says. Before the posterior, which does not tell them apart,
    states turn and change signs and orders.
    """

    @property
    def plan(self) -> AnnealingPlan:
        """From VB fits as they are, with steps that grow small where states begin to turn."""
        return AnnealingPlan(fractions=(1.0,), bend=-1.05, n_steps=256, moves_labels=True)

    @cached_property
    def _turns(self) -> dict[str, bool]:
        """Which turns of the states change neither the prior nor the likelihood, as `random_turns` is told."""
        alike = StateRelabelings(self.model)
        return {"anywhere": is_free_to_rotate(self.model), "orders": alike.n_orders > 1, "signs": alike.has_signs}

    def paths(self, data: LDSData, statistics: np.ndarray) -> SteppedPath:
        """Paths from q(theta) = prior + statistics (n_cells, n), and q(x) at its expected natural parameters."""
        path = super().paths(data, statistics)
        distinct, which = np.unique(path.statistics, axis=1, return_inverse=True)
        steps = np.array([self._steps(data, column) for column in distinct.T])
        return SteppedPath(path.statistics, path.natural, path.slope, steps[which.ravel()])

    def _steps(self, data: LDSData, statistics: np.ndarray) -> np.ndarray:
        """A root of the inverse curvature of the posterior at the mode of q(theta), no flatter than the prior."""
        prior = self.model.prior
        started = prior.with_hyperparameters(statistics)
        at = prior.to_unconstrained((prior + started).mode())
        d, h = len(at), _FAR
        points = at[:, None] + h * np.concatenate([np.eye(d), -np.eye(d)], axis=1)
        natural = prior.natural(prior.from_unconstrained(points))
        expected = self.model.expect(natural, data).statistics
        if prior.hyperprior is not None:
            expected = expected + prior.hyperprior.expect(natural)[0]
        expected = prior.coordinates[:, None] + expected
        slopes = [prior.jacobian(prior.from_unconstrained(x)).T @ u for x, u in zip(points.T, expected.T)]
        curvature = -(np.array(slopes[:d]) - np.array(slopes[d:])) / (2 * h)
        of_prior = prior.coordinates + prior.with_hyperparameters(np.zeros(len(statistics)))
        least = max(np.diag(prior.information(prior.from_unconstrained(at), of_prior)).min(), _SMALLEST_CURVATURE)
        values, axes = np.linalg.eigh((curvature + curvature.T) / 2)
        return axes * (_STEP / np.sqrt(d) / np.sqrt(np.maximum(values, least)))

    def _move(self, workspace: LDSData, path: Path, t: float, rng: ParallelGenerator, log_point: np.ndarray) -> None:
        """Metropolis steps at an inverse temperature with the states summed out."""
        prior = self.model.prior
        log_density = self._log_density(workspace, path, t, log_point)
        if self.model.n_states == 1 and isinstance(path, SteppedPath):
            for _ in range(_N_STEPS):
                free = prior.to_unconstrained(prior.from_natural(log_point))
                free += np.einsum("lij,jl->il", path.steps, rng.standard_normal(free.shape))
                with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
                    natural = prior.natural(prior.from_unconstrained(free))
                self._choose(workspace, path, t, rng, log_point, log_density, natural)
        proposals = (self._in_another_basis, self._moved_along)
        for propose in (*proposals, *((self._turned,) if t < 1.0 else ())) * _N_CHANGES:
            self._choose(workspace, path, t, rng, log_point, log_density, *propose(workspace, log_point, rng))

    def _choose(self, workspace, path, t, rng, log_point, log_density, proposed, log_volume=0.0) -> None:
        """Put proposed points and their log densities in the place of others where chance says so."""
        lost = ~np.isfinite(proposed).all(axis=0)  # out of the floats: stay
        proposed[:, lost] = log_point[:, lost]
        there = np.where(lost, -np.inf, self._log_density(workspace, path, t, proposed))
        taken = np.log(rng.random(there.shape)) < there - log_density + log_volume
        log_point[:, taken], log_density[taken] = proposed[:, taken], there[taken]

    def _in_another_basis(self, data: LDSData, log_point: np.ndarray, rng: ParallelGenerator) -> tuple:
        """Points of states R x, ln|det R| normal and alike in all directions, and ln of the volume that they gain.

        Where columns tell the states, coefficients alone cannot change their basis. States have a unit up to about
        1 / sqrt(2 n) in n steps; wider steps are for what is known less.
        """
        prior, k = self.model.prior, self.model.n_states
        width = _STEP / (k * np.sqrt(2.0 * max(len(data), 1))) * 2.0 ** (_WIDER * rng.random(log_point.shape[1:]))
        away = width[:, None, None] * last_axes_first(rng.standard_normal((k, k, log_point.shape[1])))
        changed = in_basis(prior.from_natural(log_point), expm(away), expm(-away))
        volume = (self.model.n_inputs - self.model.n_columns) * np.trace(away, axis1=1, axis2=2)
        return prior.natural(changed), volume

    def _turned(self, data: LDSData, log_point: np.ndarray, rng: ParallelGenerator) -> tuple:
        """Points of turned states, which the posterior does not tell apart, only what lies before it."""
        prior, n_lanes = self.model.prior, log_point.shape[1]
        turns = random_turns(rng, self.model.n_states, n_lanes, **self._turns)
        return (prior.natural(in_basis(prior.from_natural(log_point), turns, turns.swapaxes(-1, -2))),)

    def _moved_along(self, data: LDSData, log_point: np.ndarray, rng: ParallelGenerator) -> tuple:
        """Points of states that are moved along with the inputs of columns, the constant of an offset among them."""
        prior, k = self.model.prior, self.model.n_states
        of_states, of_columns, *of_first = prior.from_natural(log_point)
        width = 2.0 ** (2 * _WIDER * rng.random(log_point.shape[1:]))
        size = np.sqrt(np.maximum((data.output_inputs**2).sum(axis=0), 1e-300))[:, None]
        moves = width * rng.standard_normal((k, self.model.n_output_inputs, log_point.shape[1])) / size
        c = of_columns.coefficients.copy()
        c[:, k:] += np.einsum("skl,kvl->svl", c[:, :k], moves)
        # what a mean of first states is moved by is the same there and back
        at_first = data.output_inputs[data.first_rows].mean(axis=0)
        of_first = [first_states.shifted(part, -np.einsum("kvl,v->kl", moves, at_first)) for part in of_first]
        return (prior.natural((of_states, of_columns._replace(coefficients=c), *of_first)),)

    def _log_density(self, workspace: LDSData, path: Path, t: float, log_point: np.ndarray) -> np.ndarray:
        """ln of the density of points at an inverse temperature, states summed out, but for a constant, (n_lanes,)."""
        prior = self.model.prior
        natural = between(path.natural, log_point, t)
        from_prior = prior.leaves_hyperparameters(path.statistics)
        of_hyperparameters = prior.log_normalizer_of_hyperparameters(np.where(from_prior, log_point, natural))
        coordinates = prior.coordinates[:, None] + (1 - t) * path.statistics
        return self.log_z(natural, workspace) + of_hyperparameters + (coordinates * log_point).sum(axis=0)

    def certain_statistics(self, data: LDSData, rng: np.random.Generator) -> np.ndarray:
        """The part of expected statistics that states have no say in, (n_cells,): that of states which are all 0."""
        certain = self.model.statistics(data, np.zeros((len(data), self.model.n_states)))[0]
        for of_first in self.model.prior.split(certain)[2:]:
            of_first[:] = 0.0  # how many there are says nothing where their squares are left out
        # what leaves hyperparameters to their prior must leave them all to it
        return np.where(self.model.prior.leaves_hyperparameters(certain), 0.0, certain)


@dataclass(frozen=True, eq=False)
class StateRelabelings:
    """Orders and signs of the states; see `skvbem.capabilities.Relabelable`.

    Parameters
    ----------
    model : LinearDynamicalSystem
    """

    model: LinearDynamicalSystem

    @property
    def n_orders(self) -> int:
        """Number of orders of states that the prior does not tell apart."""
        first, k = self.model.first, self.model.n_states
        natural = self.model.prior.expected_natural()
        if k < 2 or not (first is None or first.are_round):
            return 1
        change = self._changes([(*range(1, k), 0), (1, 0, *range(2, k))], [(1.0,) * k])
        return factorial(k) if _leave(change, natural) else 1

    @property
    def has_signs(self) -> bool:
        """True if the prior does not tell a state from its negative."""
        first, natural = self.model.first, self.model.prior.expected_natural()
        k = self.model.n_states
        if first is not None and (
            np.any(first.mean) or not np.array_equal(first.precision, np.diag(np.diag(first.precision)))
        ):
            return False
        change = self._changes([tuple(range(k))], [tuple(np.where(np.arange(k) == i, -1.0, 1.0)) for i in range(k)])
        return _leave(change, natural)

    def relabelings(self, hidden: Any, limit: int = 50_000) -> SignedRelabelings | None:
        """All orders and signs of states that leave the prior as it is; None beyond a limit."""
        k = self.model.n_states
        n_orders, n_signs = self.n_orders, 2**k if self.has_signs else 1
        if n_orders * n_signs > limit:
            return None
        orders = list(permutations(range(k))) if n_orders > 1 else [tuple(range(k))]
        signs = list(product((1.0, -1.0), repeat=k)) if n_signs > 1 else [(1.0,) * k]
        one = np.arange(self.model.n_cells)[None]
        parts = one, [self._changes(orders, signs)], np.zeros((1, 1), dtype=int), one
        return RotatedRelabelings(self.model, *parts) if is_free_to_rotate(self.model) else SignedRelabelings(*parts)

    def log_n_relabelings(self, hidden: Any) -> float:
        """ln of the number of orders and signs."""
        signs = self.model.n_states * np.log(2.0) if self.has_signs else 0.0
        return float(np.log(float(self.n_orders)) + signs)

    def listed_relabelings(self, hidden: Any, limit: int) -> np.ndarray:
        """No list of cells says what changes signs, so that where a sign can change there is none: TooLargeError."""
        relabelings = self.relabelings(hidden, limit)
        if relabelings is None or self.has_signs:
            raise TooLargeError(
                f"There are {np.exp(self.log_n_relabelings(hidden)):.4g} orders and signs of the "
                f"{self.model.n_states} states. A sign is no reordering of numbers, and only reorderings can be mixed."
            )
        return relabelings.cells_in_order

    def _changes(self, orders: list[tuple[int, ...]], signs: list[tuple[float, ...]]) -> SignedPermutations:
        """Changes of all cells by these orders of states, each with these signs."""
        pairs = [(order, np.array(sign)) for order in orders for sign in signs]
        dynamics = [_changed(self.model.dynamics, order, sign, np.array(order), sign) for order, sign in pairs]
        one = np.zeros(1, dtype=int), np.ones(1)  # a row of loadings stays in its place
        emission = [_changed(self.model.emission, order, sign, *one) for order, sign in pairs]
        model, n = self.model, len(pairs)
        blocks = [_alike(1, dynamics, 0), _alike(1, dynamics, 1)]
        blocks += [_alike(model.emission.n_precisions, emission, 0), _alike(model.n_columns, emission, 1)]
        blocks.append(unchanged(2 * model.emission.n_noises, n))
        if model.first is None:
            of_first = [_changed_states(order, sign) for order, sign in pairs]
            blocks += [unchanged(2, n), _alike(1, of_first, 1), _alike(1, of_first, 0)]
        return SignedPermutations(tuple(blocks))


def _leave(changes: SignedPermutations, natural: np.ndarray) -> bool:
    """True if all changes leave natural parameters (n_cells,) as they are."""
    changed = changes.changed(np.repeat(natural[:, None], changes.n, axis=1), np.arange(changes.n))
    return bool(np.allclose(changed, natural[:, None], rtol=1e-12, atol=1e-12))


def _alike(n_rows: int, changes: list, part: int) -> AlikeCells:
    """Matrices, part 0 of changes, or sums, part 1, that these change alike."""
    places, signs = (np.array([each[part][k] for each in changes]) for k in (0, 1))
    return AlikeCells(n_rows, places, signs)


def _changed(
    block: Regression, order: tuple[int, ...], sign: np.ndarray, rows: np.ndarray, of_rows: np.ndarray
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Places and signs of the cells of a packed matrix, and of those of sums of rows that change places themselves."""
    d, k = block.n_regressors, len(order)
    turned, of_turned = np.array([*order, *range(k, d)]), np.array([*sign, *(1.0,) * (d - k)])
    of_matrix, _ = _changed_states(turned, of_turned)
    sums = (rows[:, None] * d + turned).ravel()
    return of_matrix, (sums, np.outer(of_rows, of_turned).ravel())


def _changed_states(
    order: Any, sign: np.ndarray
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Places and signs of the cells of a packed matrix in another order, and of those of one sum."""
    d = len(order)
    upper = np.triu_indices(d)
    places = unpack_symmetric(np.arange(len(upper[0])), d)[np.ix_(order, order)]
    return (places[upper], np.outer(sign, sign)[upper]), (np.asarray(order), np.asarray(sign))
