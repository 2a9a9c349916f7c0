"""What a user says of a network, resolved: structure, latents and priors, with errors that name them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral, Real

import numpy as np

from skvbem.errors import StructureError, TooLargeError
from skvbem.graphs.dag import DAG, did_you_mean


def resolve_latents(latents, structure, owner: str) -> dict:
    """Latent names and their numbers of states, in the order given."""
    if latents is None:
        return {"h0": 2} if structure is None else {}
    if isinstance(latents, Integral) and not isinstance(latents, bool):
        latents = {"h0": latents}
    if isinstance(latents, str):
        latents = [latents]
    if not isinstance(latents, Mapping):
        if not isinstance(latents, Iterable):
            raise TypeError(
                f"The 'latents' parameter of {owner} must be a mapping of latent names to their numbers of states, a list "
                f"of names (2 states each), or one number of states. Got {latents!r} instead."
            )
        names = list(latents)
        if len(set(names)) < len(names):
            raise StructureError(f"The 'latents' parameter of {owner} names a latent twice: {names!r}.")
        latents = dict.fromkeys(names, 2)
    for name, n_states in latents.items():
        if not isinstance(n_states, Integral) or isinstance(n_states, bool) or n_states < 1:
            raise ValueError(
                f"The 'latents' parameter of {owner} must give latent {name!r} an int >= 1 as its number of states. "
                f"Got {n_states!r} instead."
            )
    return {name: int(n_states) for name, n_states in latents.items()}


def resolve_structure(structure, latents: Mapping, columns: tuple, owner: str) -> DAG:
    """The DAG over latents and columns, nodes in that order; without a structure, one class with all columns below it."""
    both = [name for name in latents if name in columns]
    if both:
        raise StructureError(
            f"Latent {both[0]!r} is also a column of X. Rename the latent; a column that is partly observed is no latent, "
            "its missing cells are summed out."
        )
    if structure is None:
        if len(latents) != 1:
            raise StructureError(
                f"Without a 'structure', {owner} fits one latent class with every column below it; 'latents' declares "
                f"{len(latents)}: {', '.join(map(repr, latents)) or 'none'}. Give a structure, such as a list of "
                "(parent, child) edges."
            )
        (root,) = latents
        return DAG.naive_bayes(root, columns)
    dag = DAG.coerce(structure, nodes=(*latents, *columns))
    known = {*latents, *columns}
    strange = [node for node in dag.nodes if node not in known]
    if strange:
        raise StructureError(
            f"Node {strange[0]!r} of the structure is neither a column of X nor a declared latent."
            f"{did_you_mean(strange[0], known)} Columns: {_some(columns)}; latents: {_some(latents)}. Declare hidden nodes "
            f"with their numbers of states, as in latents={{{strange[0]!r}: 2}}."
        )
    return dag.reorder([*latents, *columns])


def check_size(dag: DAG, cardinalities: Mapping, max_table_cells: int) -> None:
    """Refuse a table larger than the limit, before anything is allocated."""
    for node in dag.nodes:
        cells = cardinalities[node]
        for parent in dag.parents(node):
            cells *= cardinalities[parent]
        if cells > max_table_cells:
            raise TooLargeError(
                f"The table of node {node!r} given its {len(dag.parents(node))} parents has {cells:.4g} cells; "
                f"'max_table_cells' allows {max_table_cells:.4g}. Give it fewer parents, or nodes with fewer states."
            )


def resolve_prior(prior, equivalent_sample_size: float, dag: DAG, cardinalities: Mapping, owner: str) -> dict:
    """Dirichlet concentrations of every node, axes (*parents, node)."""
    resolved = {}
    if isinstance(prior, Mapping):
        strange = [node for node in prior if node not in cardinalities]
        if strange:
            raise ValueError(
                f"The 'prior' parameter of {owner} names {strange[0]!r}, which is not a node of the structure."
                f"{did_you_mean(strange[0], dag.nodes)}"
            )
    for node in dag.nodes:
        shape = (*(cardinalities[p] for p in dag.parents(node)), cardinalities[node])
        given = prior.get(node, 1.0) if isinstance(prior, Mapping) else prior
        if isinstance(given, str) and given == "bdeu":
            given = equivalent_sample_size / np.prod(shape, dtype=float)
        elif isinstance(given, str) and given == "per_row":
            given = equivalent_sample_size / cardinalities[node]
        if isinstance(given, str) or given is None or isinstance(given, bool):
            raise ValueError(
                f"The 'prior' parameter of {owner} must be a number > 0 (per cell), 'bdeu', 'per_row', or a mapping of nodes "
                f"to these or to arrays. Got {given!r} instead."
            )
        try:
            values = np.asarray(given, dtype=float)
        except (TypeError, ValueError) as error:
            raise TypeError(f"The prior of node {node!r} must be a number or an array. Got {given!r} instead.") from error
        if not isinstance(given, Real) and values.shape != shape:
            axes = ", ".join(f"{p!r} ({cardinalities[p]})" for p in (*dag.parents(node), node))
            raise ValueError(
                f"The prior of node {node!r} must have the shape {shape}: one axis for each parent in this order, then the "
                f"node itself, {axes}. Got shape {values.shape} instead."
            )
        bad = values[~(np.isfinite(values) & (values > 0))]
        if bad.size:
            raise ValueError(
                f"The prior of node {node!r} must hold finite concentrations > 0. Got {float(bad.ravel()[0])!r} instead."
            )
        resolved[node] = np.broadcast_to(values, shape).copy()
    return resolved


def resolve_tables(init: Mapping, model, owner: str) -> np.ndarray:
    """Tables given as a start, flat; nodes that are not named start uniform."""
    flat = np.empty(model.layout.n_cells)
    strange = [node for node in init if node not in model.position]
    if strange:
        raise ValueError(f"The 'init' parameter of {owner} names {strange[0]!r}, which is not a node of the structure.")
    for node, k in model.position.items():
        target = model.layout.table(flat, k)
        table = np.asarray(init.get(node, np.full(target.shape, 1.0 / target.shape[-1])), dtype=float)
        if table.shape != target.shape:
            raise ValueError(
                f"The table of node {node!r} in 'init' must have the shape {target.shape}, axes "
                f"{(*model.dag.parents(node), node)}. Got shape {table.shape} instead."
            )
        if not (np.isfinite(table).all() and (table > 0).all() and np.allclose(table.sum(axis=-1), 1.0, atol=1e-6)):
            raise ValueError(
                f"The table of node {node!r} in 'init' must hold probabilities > 0 that sum to 1 along the last axis."
            )
        target[...] = table / table.sum(axis=-1, keepdims=True)
    return flat


def _some(names: Iterable, at_most: int = 10) -> str:
    names = list(map(repr, names))
    more = f" and {len(names) - at_most} more" if len(names) > at_most else ""
    return (", ".join(names[:at_most]) or "none") + more
