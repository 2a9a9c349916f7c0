"""What must hold of objects that were read from a file, where compiled loops rely on it without looking again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skvbem.models.network.layout import Layout
from skvbem.vbem import posteriors

_FORMS = (posteriors.VB, posteriors.MAP, posteriors.ML, posteriors.MAP_IN_PROBABILITIES)


def the_form(form: Any) -> Any:
    """The form itself, of which there is one each."""
    for known in _FORMS:
        if form == known:
            return known
    raise ValueError(f"there is no form of q(theta) like {form!r:.80}")


def sound_dirichlet(family: Any) -> Any:
    """A Dirichlet block whose rows cover its cells, one after the other."""
    starts, cells = family.row_starts, family.concentration
    _check(
        isinstance(starts, np.ndarray) and starts.ndim == 1 and starts.dtype == np.int64, "rows without whole numbers"
    )
    _check(isinstance(cells, np.ndarray) and cells.dtype == np.float64 and cells.ndim >= 1, "cells that are no floats")
    _check(len(starts) >= 1 and starts[0] == 0 and starts[-1] == len(cells), "rows that do not cover their cells")
    _check((np.diff(starts) > 0).all(), "rows without cells")
    return family


def sound_layout(layout: Any) -> Any:
    """A layout whose nodes have parents and ties among its nodes."""
    n = len(layout.names)
    _check(len(set(layout.names)) == n == len(layout.cardinalities) == len(layout.parents), "nodes not alike in number")
    _check(all(type(c) is int and c >= 1 for c in layout.cardinalities), "cardinalities that are no counts")
    places = {*range(n)}
    _check(all(places.issuperset(parents) for parents in layout.parents), "parents that are no nodes")
    _check(type(layout.n_emissions) is int and 0 <= layout.n_emissions <= n, "more emissions than nodes")
    _check(len(layout.ties) in (0, n), "ties of other nodes")
    for node, tie in enumerate(layout.ties):
        _check(tie is None or _is_tie(layout, node, tie), "ties of tables that are unlike")
    return layout


def _is_tie(layout: Any, node: int, tie: Any) -> bool:
    other, of_parents = tie
    size = layout.cardinalities
    if other not in range(len(layout.names)) or other == node or layout.ties[other] is not None:
        return False
    theirs = layout.parents[other]
    if sorted(of_parents) != [*range(len(theirs))] or len(theirs) != len(layout.parents[node]):
        return False
    pairs = zip(layout.parents[node], of_parents)
    return size[node] == size[other] and all(size[mine] == size[theirs[place]] for mine, place in pairs)


def sound_network(model: Any) -> Any:
    """A network whose tables are those of its graph."""
    layout = model.layout
    _check(
        isinstance(layout, Layout) and {*layout.names} == {*model.dag.nodes}, "nodes that are not those of its graph"
    )
    _check(model.position == {node: k for k, node in enumerate(layout.names)}, "nodes at other positions")
    parents = tuple(tuple(model.position[p] for p in model.dag.parents(node)) for node in layout.names)
    _check(parents == layout.parents, "parents that are not those of its graph")
    blocks = getattr(model.prior, "blocks", (model.prior,))
    _check(layout.n_table_cells == len(blocks[0].concentration), "a prior of other tables")  # before rows are counted
    _check(np.array_equal(blocks[0].row_starts, layout.row_starts), "a prior of other tables")
    return model


def sound_labels(model: Any) -> Any:
    """A mixture or hidden Markov model whose parts are of as many components."""
    parts = [getattr(model, name) for name in ("weights", "initial", "transitions") if hasattr(model, name)]
    sizes = [getattr(part, "n_components", getattr(part, "n_states", None)) for part in parts]
    n = model.n_components
    _check(type(n) is int and 1 <= n <= model.n_cells, "components that are no count")
    _check(parts and all(size == n for size in sizes), "parts for other numbers of components")
    return model


def _check(holds: Any, why: str) -> None:
    if not holds:
        raise ValueError(f"it has {why}")


#: Name of a class in files -> what refuses an object of it that does not hang together, and returns it.
SOUND: dict[str, Callable[[Any], Any]] = {
    "DiscreteDAG": sound_network,
    "Dirichlet": sound_dirichlet,
    "Form": the_form,
    "HMM": sound_labels,
    "Layout": sound_layout,
    "Mixture": sound_labels,
    "MixedNetwork": sound_network,
}
