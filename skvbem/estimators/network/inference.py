"""Clusters of hidden nodes from the `inference` parameter, and the gain of one exact E step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from skvbem._arguments import is_collection
from skvbem._names import did_you_mean
from skvbem.data import Rows
from skvbem.errors import TooLargeError
from skvbem.estimators.network.parameters import CandidateNetwork
from skvbem.models import DiscreteDAG
from skvbem.models.network.clusters import Partition, joined, leaves_a_choice
from skvbem.models.network.division import merge_gains
from skvbem.models.network.model import StructuredAscent
from skvbem.models.network.program import Program
from skvbem.models.network.structured import StructuredProgram
from skvbem.optima.network import TableStarts
from skvbem.vbem.driver import run
from skvbem.vbem.fit import Fit
from skvbem.vbem.posteriors import VB


def in_clusters(
    model: DiscreteDAG, inference: Any, latents: tuple, rows: Rows, candidate: CandidateNetwork
) -> DiscreteDAG:
    """The network whose q(x) is what `inference` says.

    Parameters
    ----------
    model : DiscreteDAG
    inference : str or iterable of iterables of latents
        The parameter of the estimator.
    latents : tuple
    rows : Rows
        In which columns are missing that may be hidden, too.
    candidate : CandidateNetwork
        Whose limits say what fits.
    """
    if isinstance(inference, str):
        if inference == "mean_field":
            return model.with_partition(Partition())
        hidden = [model.position[node] for node in latents]
        gappy = [name for name, codes in zip(rows.names, rows.codes.T) if len(codes) and codes.min() < 0]
        hidden += [k for k in (model.position[name] for name in gappy) if model.layout.children[k]]
        clusters = joined(model.layout, hidden, candidate.max_table_cells)
        by_edges = model.with_partition(Partition(clusters, exact_where_it_fits=True))
        limits = {"max_table_cells": candidate.max_table_cells, "max_memory": candidate.max_memory}
        if not leaves_a_choice(model.layout, hidden, clusters) or by_edges.compile(rows, **limits).is_exact:
            return by_edges
        gains = _gains_at_mean_field(model.with_partition(Partition()), rows, limits)
        clusters = joined(model.layout, hidden, candidate.max_table_cells, gains)
        return model.with_partition(Partition(clusters, exact_where_it_fits=True))
    given = _given(inference, latents, candidate.owner)
    positions = tuple(tuple(sorted(model.position[node] for node in cluster)) for cluster in given)
    return model.with_partition(Partition(tuple(sorted(positions)), joins_others=True))


def _gains_at_mean_field(model: DiscreteDAG, rows: Rows, limits: Mapping[str, Any]) -> dict[tuple[int, int], float]:
    """Pair of hidden nodes -> what joining them gains, at the best of a few short fits by mean field."""
    data = model.compile(rows, n_lanes=_SHORT_STARTS, **limits)
    ascent = StructuredAscent(model, data, VB)
    starts = TableStarts(_SHORT_SEED, _SHORT_STARTS)(ascent)
    short = run(ascent, starts, tol=_SHORT_TOL, max_iter=_SHORT_STEPS)
    counts, state = np.split(short.statistics[:, int(np.argmax(short.objective))], [ascent.n_cells])
    natural, _ = VB.of(model.prior, counts[:, None])
    return merge_gains(data.started(state), natural[:, 0])


# Short fits by mean field: a seed of their own, so that random streams of fits are as ever; nats to come; steps.
_SHORT_SEED, _SHORT_STARTS, _SHORT_TOL, _SHORT_STEPS = (0,), 4, 0.1, 60


def _given(inference: Iterable, latents: tuple, owner: str) -> list[tuple]:
    """Clusters of latents as a user gives them; latents in none of them are clusters of their own."""
    clusters, seen = [], set()
    for cluster in inference:
        if not is_collection(cluster):
            raise ValueError(
                f"The 'inference' parameter of {owner} must be 'exact', 'structured', 'mean_field' or a list of lists "
                f"of latents, such as [['h0', 'h1'], ['h2']]. Got {cluster!r} among the lists."
            )
        members = tuple(cluster)
        for node in members:
            if node not in latents:
                raise ValueError(
                    f"The 'inference' parameter of {owner} names {node!r}, which is no latent."
                    f"{did_you_mean(node, latents)}"
                )
            if node in seen:
                raise ValueError(f"The 'inference' parameter of {owner} must be disjoint clusters; {node!r} is in two.")
            seen.add(node)
        clusters.append(members)
    return [*(cluster for cluster in clusters if cluster), *((node,) for node in latents if node not in seen)]


def clusters_of_latents(model: DiscreteDAG, latents: tuple, data: Program | StructuredProgram) -> dict:
    """Latent -> the cluster it is in: all latents where nothing is divided."""
    if data.is_exact or model.partition is None:
        return dict.fromkeys(latents, tuple(latents))
    names = model.layout.names
    clusters = {node: tuple(names[k] for k in cluster) for cluster in model.partition.clusters for node in cluster}
    return {node: clusters.get(model.position[node], (node,)) for node in latents}


def row_gap(fitted: Any, data: Any) -> float | None:
    """Gain of one exact E step over that of a fit at its parameters, nats; None where it exceeds memory."""
    if data.is_exact:
        return 0.0
    if any(group.largest_clique > _CELLS for group in data.groups):
        return None
    model = fitted.model
    natural, _ = fitted.form.of(model.prior, fitted.statistics[:, None])
    try:
        exact = model.with_partition(None).compile(data.source, max_memory=_MAX_BYTES, max_table_cells=_CELLS)
    except TooLargeError:
        return None
    gap = model.expect(natural, exact).log_normalizer - model.expect(natural, data).log_normalizer
    return max(float(gap[0]), 0.0)


# An exact E step is a look beside the fit: so large it may be, in cells of a table and in bytes.
_CELLS, _MAX_BYTES = 2**16, 1e9


def going_on(data: Any, fit: Fit) -> Any:
    """Data whose E steps go on from the q(x) of a fit."""
    return data if fit.state is None else data.started(fit.state)


def with_clusters(data: Any, counts: np.ndarray) -> np.ndarray:
    """Counts (n_cells,) as a start: behind them clusters of which nothing is known."""
    return counts if data is None or data.is_exact else np.concatenate([counts, data.uniform(1)[:, 0]])


def check_exact(estimator: Any) -> None:
    """Refuse what completes rows by an exact q(x)."""
    if estimator.inference != "exact":
        raise ValueError(
            f"This search completes rows by the exact q(x) of {type(estimator).__name__}. Got inference="
            f"{estimator.inference!r}. Search with inference='exact', or with a strategy that fits every candidate, "
            "as 'greedy' does."
        )
