"""Relabelings of the components of a mixture or the states of a chain: orders that the prior does not tell apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import factorial, lgamma, prod

import numpy as np

from skvbem.capabilities import Relabelings
from skvbem.errors import TooLargeError
from skvbem.models.labels.model import LabelModel
from skvbem.models.relabelings import SignedRelabelings, listed


@dataclass(frozen=True, eq=False)
class LabelRelabelings:
    """The relabelings of a model with one label per row; see `skvbem.capabilities.Relabelable`.

    What is hidden is the label alone, so that it makes no difference what `hidden` names.

    Parameters
    ----------
    model : LabelModel
    find : callable of (LabelModel, int) to Relabelings
        All of them; one by one only where there are no more than a limit.
    """

    model: LabelModel
    find: Callable[..., Relabelings | None]

    def relabelings(self, hidden: Sequence, limit: int = 50_000) -> Relabelings | None:
        """All orders of the labels that leave the prior as it is."""
        return self.find(self.model, limit)

    def log_n_relabelings(self, hidden: Sequence) -> float:
        """ln of the number of relabelings of components or states."""
        relabelings = self.relabelings(hidden)
        if relabelings is not None:
            return float(np.log(float(relabelings.n)))
        n, emission = self.model.n_components, self.model.emission
        changes = sum(np.log(float(emission.n_symmetries_of(k))) for k in range(n))
        return changes + sum(lgamma(size + 1.0) for size in np.bincount(emission.kinds(n)))

    def listed_relabelings(self, hidden: Sequence, limit: int) -> np.ndarray:
        """Each as the cell that takes each cell's place, (n, n_cells); TooLargeError beyond `limit`."""
        cells = listed(self.relabelings(hidden), self.model.n_cells, limit)
        if cells is None:
            raise TooLargeError(
                f"There are {np.exp(self.log_n_relabelings(hidden)):.4g} orders of the {self.model.n_components} "
                f"{self.model.labels}, more than the {limit} that are mixed."
            )
        return cells


def signed_relabelings(
    model: LabelModel, of_rows: np.ndarray, cells_in_order: Callable[[np.ndarray], np.ndarray], alike: bool, limit: int
) -> SignedRelabelings | None:
    """Orders of labels, and changes of what rows hide besides; None where there are too many of either.

    Parameters
    ----------
    model : LabelModel
    of_rows : ndarray of int, shape (n_components, n_own)
        Of each label, the cells of the emission that are its own.
    cells_in_order : callable of ndarray (n_orders, n_components)
        For each cell the one that takes its place, (n_orders, n_cells).
    alike : bool
        Whether the prior tells no label from another of its kind.
    limit : int
    """
    n, emission = model.n_components, model.emission
    kinds = emission.kinds(n)
    orders = orders_within(kinds, limit) if alike else np.arange(n)[None]
    if orders is None or emission.n_symmetries > limit:
        return None
    of_kinds = {kind: emission.symmetries(int(np.argmax(kinds == kind))) for kind in kinds.tolist()}
    return SignedRelabelings(of_rows, [of_kinds[kind] for kind in kinds.tolist()], orders, cells_in_order(orders))


def are_alike(natural: np.ndarray, kinds: np.ndarray) -> bool:
    """Whether labels of one kind have the same natural parameters, (n_components, n_own): their priors are the same."""
    first = np.array([np.argmax(kinds == kind) for kind in kinds])
    return bool(np.all(natural == natural[first]))


def orders_within(kinds: np.ndarray, limit: int) -> np.ndarray | None:
    """Orders of labels in which each stands in the place of one of its kind, (n_orders, n_labels); None if too many."""
    n_orders = prod(factorial(size) for size in np.bincount(kinds))
    return None if n_orders > limit else np.array(list(_orders_within(kinds)))


def _orders_within(kinds: np.ndarray) -> Iterator[np.ndarray]:
    """Orders of labels in which each stands in the place of one of its kind; the first leaves all as it is."""
    members = [np.flatnonzero(kinds == kind) for kind in np.unique(kinds)]
    for changed in product(*(permutations(each) for each in members)):
        order = np.arange(len(kinds))
        for places, labels in zip(members, changed):
            order[places] = labels
        yield order
