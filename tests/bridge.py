"""Networks, data and tables of `reference` as skvbem takes them, and back.

The reference lists the axes of a node's table as (*parents, node) in the network's own order of parents; skvbem sorts
parents by the order of the nodes. Everything here is that transposition, by name.
"""

import warnings

import numpy as np
import pandas as pd
from reference.discrete_network import MISSING
from reference.random_networks import random_tables
from sklearn.exceptions import ConvergenceWarning

from skvbem.data import Rows
from skvbem.estimators import VBDiscreteDAG
from skvbem.graphs.dag import DAG
from skvbem.models import DirichletAscent, DiscreteDAG
from skvbem.vbem import posteriors

#: The forms of q(theta), by the names that `reference.discrete_network.FORMS` gives its own.
FORMS = {
    "vb": posteriors.VB,
    "map": posteriors.MAP,
    "map_probability": posteriors.MAP_IN_PROBABILITIES,
    "ml": posteriors.ML,
}


def _transposed(table, axes, wanted):
    return np.transpose(table, [axes.index(name) for name in wanted])


class FastNetwork:
    """A reference network with its prior as a `DiscreteDAG`."""

    def __init__(self, network, prior):
        self.network = network
        self.dag = DAG(network.cards, network.parents)
        self.model = DiscreteDAG(self.dag, network.cards, self._to_dag(prior))

    def _to_dag(self, tables):
        network, dag = self.network, self.dag
        return {
            node: _transposed(np.asarray(table, dtype=float), (*network.parents[node], node), dag.family(node))
            for node, table in tables.items()
        }

    def flat(self, tables):
        """Tables of the reference as one flat array (n_cells,)."""
        return self.model.flat(self._to_dag(tables))

    def lanes(self, *several):
        """Tables of the reference side by side, (n_cells, n_lanes)."""
        return np.stack([self.flat(tables) for tables in several], axis=1)

    def tables(self, flat):
        """A flat array (n_cells,) as tables of the reference."""
        return {
            node: _transposed(table, self.dag.family(node), (*self.network.parents[node], node))
            for node, table in self.model.tables(np.asarray(flat)).items()
        }

    def program(self, data, **options):
        """The compiled data."""
        return self.model.compile(rows_of(data), **options)

    def ascent(self, data, form="vb", n_threads=1):
        """Steps of one form on the data."""
        return DirichletAscent(self.model, self.program(data), FORMS[form], n_threads)

    def random_starts(self, ascent, rng, n_starts=1):
        """Expected statistics at tables drawn uniformly, (n_cells, n_starts)."""
        points = self.lanes(*(random_tables(rng, self.network) for _ in range(n_starts)))
        return ascent.expect(np.log(points))


def rows_of(data):
    """Data as `Rows`; rows of weight zero are left out, as an estimator does."""
    cells = np.asarray(data.cells, dtype=np.int8).reshape(-1, len(data.columns))
    if data.weights is None:
        return Rows(tuple(data.columns), cells)
    weights = np.asarray(data.weights, dtype=float)
    return Rows(tuple(data.columns), cells[weights > 0], weights[weights > 0])


def frame_of(data):
    """Data as a pandas DataFrame, missing cells NaN."""
    cells = np.array(data.cells, dtype=float).reshape(-1, len(data.columns))
    cells[cells == MISSING] = np.nan
    return pd.DataFrame(cells, columns=list(data.columns))


def estimator_of(network, data, prior, **params):
    """`VBDiscreteDAG` for a problem of the reference, not fitted. `init` holds tables of the reference."""
    latents = [node for node in network.cards if node not in data.columns]
    structure = DAG(network.cards, network.parents).reorder([*latents, *data.columns])

    def aligned(tables):
        return {
            node: _transposed(np.asarray(table, dtype=float), (*network.parents[node], node), structure.family(node))
            for node, table in tables.items()
        }

    if isinstance(params.get("init"), dict):
        params["init"] = aligned(params["init"])
    return VBDiscreteDAG(
        structure,
        latents={node: network.cards[node] for node in latents},
        categories={node: range(network.cards[node]) for node in data.columns},
        prior=aligned(prior),
        **params,
    )


def quietly(method, *args, **kwargs):
    """Call a method without the warnings that small or odd networks deserve; not converging stays an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", ConvergenceWarning)
        return method(*args, **kwargs)


def fitted(problem, **params):
    """A problem of the reference, fitted; rows of weight zero are left out here."""
    network, data, prior = problem
    frame, weights = frame_of(data), data.weights
    if weights is not None:
        kept = np.asarray(weights) > 0
        frame, weights = frame[kept], np.asarray(weights)[kept]
    return quietly(estimator_of(network, data, prior, **params).fit, frame, sample_weight=weights)


def published(network, labeled):
    """Tables that an estimator publishes as tables of the reference."""
    return {
        node: _transposed(table.values, table.axes, (*network.parents[node], node)) for node, table in labeled.items()
    }


def n_rows(data):
    """Number of rows of positive weight."""
    return len(data.cells) if data.weights is None else int(np.count_nonzero(data.weights))


def has_observed_cell(data):
    """Whether an estimator would take the data."""
    cells = np.asarray(data.cells).reshape(-1, len(data.columns))
    if data.weights is not None:
        cells = cells[np.asarray(data.weights) > 0]
    return bool((cells != MISSING).any())
