"""Relabelings of the components of a mixture or the states of a chain: orders that the prior does not tell apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import factorial, lgamma, prod

import numpy as np

from skvbem.capabilities import Relabelings
from skvbem.emissions.base import exchangeability_classes, n_symmetries, symmetries
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
        changes = sum(np.log(float(n_symmetries(emission, k))) for k in range(n))
        return changes + sum(lgamma(size + 1.0) for size in np.bincount(exchangeability_classes(emission, n)))

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
        Whether the prior tells no label from another of its class.
    limit : int
    """
    n, emission = model.n_components, model.emission
    classes = exchangeability_classes(emission, n)
    orders = orders_within(classes, limit) if alike else np.arange(n)[None]
    if orders is None or n_symmetries(emission) > limit:
        return None
    changes = {number: symmetries(emission, int(np.argmax(classes == number))) for number in classes.tolist()}
    return SignedRelabelings(of_rows, [changes[number] for number in classes.tolist()], orders, cells_in_order(orders))


def are_alike(natural: np.ndarray, classes: np.ndarray) -> bool:
    """True if labels of one class have the same natural parameters, (n_components, n_own), so the same prior."""
    first = np.array([np.argmax(classes == number) for number in classes])
    return bool(np.all(natural == natural[first]))


def orders_within(classes: np.ndarray, limit: int) -> np.ndarray | None:
    """Orders of labels within their classes, (n_orders, n_labels); None if there are more than a limit."""
    n_orders = prod(factorial(size) for size in np.bincount(classes))
    return None if n_orders > limit else np.array(list(orders_of_classes(classes)))


def orders_of_classes(classes: np.ndarray) -> Iterator[np.ndarray]:
    """Orders of labels in which each stands in the place of one of its class; the first leaves all as it is."""
    members = [np.flatnonzero(classes == number) for number in np.unique(classes)]
    for changed in product(*(permutations(each) for each in members)):
        order = np.arange(len(classes))
        for places, labels in zip(members, changed):
            order[places] = labels
        yield order
