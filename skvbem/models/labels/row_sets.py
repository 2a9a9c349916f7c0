"""Evidences of sets of rows under one component, for sums over all ways to label few rows."""

from __future__ import annotations

import numpy as np

from skvbem.models.labels.model import LabeledRows, LabelModel

# Sets of rows, or allocations, whose evidences are found at once.
BATCH = 2**12


def statistics_of_rows(model: LabelModel, data: LabeledRows, weight: np.ndarray) -> tuple[np.ndarray, float]:
    """Statistics of rows, (n_rows, n_own), the same for all components, and the sum of ln f with weights, nats."""
    natural = model.prior.expected_natural()
    step, cells = model.step(natural, data), model.cells_of_components()[0]
    size, parts = model.emission.block_rows(model.n_components), [np.zeros((0, len(cells)))]
    log_base = 0.0
    for at in range(0, len(data), size):
        block = data.table[at : at + size]
        of_rows = step.of_rows(block)[:, 0]
        # what no parameter touches is what the statistics do not explain
        log_base += float(weight[at : at + size] @ (step.log_likelihood(block)[:, 0] - of_rows @ natural[cells]))
        parts.append(of_rows)
    return np.concatenate(parts), log_base


def log_evidences_of_sets(
    model: LabelModel, statistics: np.ndarray, weight: np.ndarray, strides: np.ndarray
) -> list[np.ndarray]:
    """ln g of every set of rows in mixed radix, (n_sets,), for every component."""
    prior, first = model.prior.blocks[-1], model.first_emission_cell
    evidences: list[np.ndarray] = []
    cells_of = [cells - first for cells in model.cells_of_components()]
    for k, cells in enumerate(cells_of):
        same = [j for j in range(k) if np.array_equal(prior.coordinates[cells_of[j]], prior.coordinates[cells])]
        if same:
            evidences.append(evidences[same[0]])
            continue
        of_sets = np.empty(strides[-1])
        for at in range(0, len(of_sets), BATCH):
            sets = np.arange(at, min(at + BATCH, len(of_sets)))
            counts = np.stack([sets // stride % (w + 1) for w, stride in zip(weight, strides)] or [sets * 0])
            added = np.zeros((len(prior.coordinates), len(sets)))
            added[cells] = statistics.T @ counts if len(statistics) else 0.0
            of_sets[sets] = prior.log_evidence(added)
        evidences.append(of_sets)
    return evidences
