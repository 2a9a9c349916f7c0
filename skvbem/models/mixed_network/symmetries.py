"""Orders and signs of hidden numbers that no data tell apart, as changes of the cells of a network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import factorial, log, prod
from typing import Any

import numpy as np

from skvbem._lazy import cached_property


@dataclass(frozen=True, eq=False)
class NumberSymmetries:
    """Changes of hidden numbers that leave likelihood and prior as they are.

    A hidden number may change its sign, in each state of the discrete parents that all families around it have in
    common. Hidden numbers with the same parents and children may trade places.

    Parameters
    ----------
    model : MixedNetwork
    """

    model: Any

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """Hidden numbers with children, as emissions."""
        parents = {p for family in self.model.given for p in family}
        return tuple(k for k in self.model.latent_numbers if k in parents)

    @cached_property
    def families(self) -> dict[int, tuple[int, ...]]:
        """Of each, the families that it is in: its own, then those of its children."""
        given = self.model.given
        return {h: (h, *(k for k, parents in enumerate(given) if h in parents)) for h in self.numbers}

    @cached_property
    def alike(self) -> list[tuple[int, ...]]:
        """Groups of hidden numbers with the same parents and children."""
        groups: dict[tuple, list[int]] = {}
        for h in self.numbers:
            groups.setdefault((self._parents(h), self.model.given[h], self.families[h][1:]), []).append(h)
        return [tuple(group) for group in groups.values()]

    def shared(self, h: int) -> tuple[int, ...]:
        """Discrete parents that all families around a hidden number have in common, by position."""
        first = 1 if self.model.emissions[h].n_regressors == 0 else 0  # without parents it is the same for both signs
        sets = [set(self._parents(k)) for k in self.families[h][first:]]
        return tuple(sorted(set.intersection(*sets)))

    @property
    def n_rotations(self) -> int:
        """Directions in which hidden numbers that are alike turn unnoticed, but for their prior."""
        return sum(len(group) * (len(group) - 1) // 2 * self._n_shared(group[0]) for group in self.alike)

    @property
    def log_n(self) -> float:
        """ln of the number of orders and signs."""
        orders = sum(log(factorial(len(group))) for group in self.alike)
        return orders + sum(self._n_shared(h) for h in self.numbers) * log(2.0)

    def listed(self, limit: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Of each change the cell that takes each cell's place, and its sign there, (n, n_cells); None beyond a limit.

        The first change leaves all as it is.
        """
        if self.log_n > log(limit):
            return None
        natural = self.model.prior.expected_natural()
        orders = [order for order in map(self.reordered, self._orders()) if np.array_equal(natural[order], natural)]
        cells, signs = np.array(orders), np.ones((len(orders), self.model.n_cells))
        for h in self.numbers:
            for state in range(self._n_shared(h)):
                flip = self.flipped(h, state)
                # the sign of a cell after a change in order is that of its new place
                cells, signs = np.concatenate([cells, cells]), np.concatenate([signs, signs * flip])
        return cells, signs

    def _orders(self) -> Iterator[dict[int, int]]:
        """Which hidden number takes the place of each."""
        for images in product(*map(permutations, self.alike)):
            yield {a: b for group, image in zip(self.alike, images) for a, b in zip(group, image)}

    def reordered(self, moved: dict[int, int]) -> np.ndarray:
        """The cell that takes each cell's place where hidden numbers take the places of others, (n_cells,)."""
        places, cells = self._places, np.arange(self.model.n_cells)
        image = dict(enumerate(range(1 + self.model.number_families.n_numbers)))
        for a, b in moved.items():
            image[self._number(a)] = self._number(b)
        for k in {k for h in moved for k in self.families[h]}:
            for (response, one, other, nth), of_components in places[k].items():
                pair = sorted((image[one], image[other]))
                cells[of_components] = places[moved.get(k, k)][image[response], *pair, nth]
        return cells

    def flipped(self, h: int, state: int) -> np.ndarray:
        """Signs of cells where a hidden number has changed its sign in one state of what its families share."""
        signs, number = np.ones(self.model.n_cells), self._number(h)
        for k in self.families[h]:
            if not self.model.emissions[k].n_regressors:  # a density that is the same for both signs
                continue
            here = self._shared_state(k, self.shared(h)) == state
            for (_, one, other, _), of_components in self._places[k].items():
                if (one == number) != (other == number):
                    signs[of_components[here]] = -1.0
        return signs

    def canonical(self, point: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        """The change after which slopes are in an order and positive: cells and signs, (n_cells,).

        The first of hidden numbers that are alike explains most, by the squares of slopes in the units of the children.
        In each state the largest slope of a hidden number is positive.

        Parameters
        ----------
        point : sequence
            Of all emissions.
        """
        moved: dict[int, int] = {}
        for group in self.alike:
            squares = [sum(float((each**2).sum()) for each in self._slopes(h, point)) for h in group]
            moved |= {a: group[i] for a, i in zip(group, np.argsort(np.negative(squares), kind="stable"))}
        cells, signs = self.reordered(moved), np.ones(self.model.n_cells)
        for h in self.numbers:
            largest = np.zeros(self._n_shared(h))
            for k, slopes in zip(self.families[h][1:], self._slopes(moved[h], point)):
                for state, row in zip(self._shared_state(k, self.shared(h)).tolist(), slopes):
                    best = row[np.abs(row).argmax()]
                    largest[state] = best if abs(best) > abs(largest[state]) else largest[state]
            for state in np.flatnonzero(largest < 0):
                signs = signs * self.flipped(h, int(state))
        return cells, signs

    # Parts ------------------------------------------------------------------------------------------------------------

    def _slopes(self, h: int, point: Sequence[Any]) -> list[np.ndarray]:
        """Slopes of each child of a hidden number, (n_states, n_columns), in units of the child."""
        slopes = []
        for k in self.families[h][1:]:
            emission, parents = self.model.emissions[k], self.model.given[k]
            before = sum(self.model.emissions[p].n_columns for p in parents[: parents.index(h)])
            of_regressor = point[k].coefficients[:, int(emission.intercept) + before]
            slopes.append(of_regressor.reshape(self.model.n_states[k], emission.n_columns))
        return slopes

    def _shared_state(self, k: int, shared: tuple[int, ...]) -> np.ndarray:
        """The joint state of discrete parents that families share, in each component of one of them, (n_states,)."""
        return self.model.number_families.joint_states(shared, self._parents(k), np.arange(self.model.n_states[k]))

    def _parents(self, k: int) -> tuple[int, ...]:
        return self.model.layout.parents[self.model.layout.n_tables + k]

    def _n_shared(self, h: int) -> int:
        return prod(self.model.layout.cardinalities[p] for p in self.shared(h))

    def _number(self, k: int) -> int:
        """The place of a hidden number among (1, all numbers)."""
        return 1 + self.model.number_families.first[k]

    @cached_property
    def _places(self) -> dict[int, dict[tuple, np.ndarray]]:
        """Of each family around hidden numbers the cells (n_components,) of each product, by numbers that it is of.

        Keys are the response, two numbers, and the how-manieth cell of these it is.
        """
        families = self.model.number_families
        places: dict[int, dict[tuple, np.ndarray]] = {}
        for k in sorted({k for of in self.families.values() for k in of}):
            of, places[k] = families.products[k], {}
            numbers = [0, *(1 + families.around[k]).tolist()]
            for cell, one, other, column in zip(of.cell, of.one, of.other, of.column):
                pair = sorted((numbers[one], numbers[other]))
                key, nth = (numbers[1 + column], *pair), 0
                while (*key, nth) in places[k]:
                    nth += 1
                places[k][*key, nth] = families.cells_of(k)[:, cell]
        return places
