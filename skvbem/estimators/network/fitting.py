"""From a network and rows to the best fit: starts, the run, and the prior learned on the way; fits of other forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skvbem._numerics import safe_log
from skvbem.data import Rows
from skvbem.estimators.input.categories import CategoryEncoder
from skvbem.estimators.network.tables import levels_of
from skvbem.graphs.names import shown
from skvbem.graphs.network import Network
from skvbem.models import DirichletAscent, DiscreteDAG
from skvbem.models.network.program import Program
from skvbem.tables import LabeledTable
from skvbem.vbem.fit import Fit, best_of
from skvbem.vbem.hyperparameters import alternated, strengthened
from skvbem.vbem.posteriors import Form


def random_points(model: DiscreteDAG, n_points: int, rng: np.random.Generator) -> np.ndarray:
    """Tables drawn uniformly, (n_cells, n_points), the first ones the same however many are drawn."""
    draws = rng.standard_exponential((n_points, model.layout.n_cells)).T
    return draws / model.prior.per_cell(model.prior.row_sums(draws))


def given_point(model: DiscreteDAG, init: Mapping | Network, encoder: CategoryEncoder, owner: str) -> np.ndarray:
    """Tables given as a start, (n_cells, 1); nodes that are not named start uniform."""
    where = f"the 'init' parameter of {owner}"
    if isinstance(init, Network):
        init = {
            node: LabeledTable(table, init.dag.family(node), tuple(init.states[axis] for axis in init.dag.family(node)))
            for node, table in init.tables.items()
        }
    levels = levels_of(model, encoder)
    tables = {
        node: _in_order(table, model.dag.family(node), levels, encoder.names_, where)
        if isinstance(table, LabeledTable) and node in model.position
        else table
        for node, table in init.items()
    }
    point = point_of(model, tables, where)
    _refuse_saddle(model, point, encoder.names_)
    return point[:, None]


def _in_order(table: LabeledTable, family: tuple, levels: Mapping, columns: Sequence, where: str) -> np.ndarray:
    """The values of a table, its axes those of a family and its categories in the order of the fit.

    States of latents are told apart by their numbers alone, whatever their names.
    """
    if set(table.axes) != set(family):
        raise ValueError(
            f"The table of node {family[-1]!r} in {where} must have one axis for each of {family}. It has those of "
            f"{table.axes}."
        )
    values = table.values.transpose([table.axes.index(node) for node in family])
    for axis, node in enumerate(family):
        theirs, ours = list(table.levels[table.axes.index(node)]), levels[node].tolist()
        if node not in columns:
            continue
        if len(theirs) != len(ours) or set(theirs) != set(ours):
            raise ValueError(
                f"The table of node {family[-1]!r} in {where} must have the categories of column {node!r}, "
                f"{shown(ours)}. It has {shown(theirs)}. Declare them with the 'categories' parameter."
            )
        values = np.take(values, [theirs.index(level) for level in ours], axis=axis)
    return values


def point_of(model: DiscreteDAG, tables: Mapping, where: str) -> np.ndarray:
    """Tables of nodes, checked, as one vector (n_cells,); uniform for nodes that are not named."""
    flat = np.empty(model.layout.n_cells)
    strange = [node for node in tables if node not in model.position]
    if strange:
        raise ValueError(f"{_capital(where)} names {strange[0]!r}, which is not a node of the structure.")
    for node, k in model.position.items():
        target = model.layout.table(flat, k)
        table = np.asarray(tables.get(node, np.full(target.shape, 1.0 / target.shape[-1])), dtype=float)
        if table.shape != target.shape:
            raise ValueError(
                f"The table of node {node!r} in {where} must have the shape {target.shape}, axes "
                f"{model.dag.family(node)}. Got shape {table.shape} instead."
            )
        if not (np.isfinite(table).all() and (table > 0).all() and np.allclose(table.sum(axis=-1), 1.0, atol=1e-6)):
            raise ValueError(
                f"The table of node {node!r} in {where} must hold probabilities > 0 that sum to 1 along the last axis. "
                f"Got {np.array2string(table, threshold=20, separator=', ')} instead. Network.smoothed fills zeros."
            )
        target[...] = table / table.sum(axis=-1, keepdims=True)
    return flat


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _refuse_saddle(model: DiscreteDAG, point: np.ndarray, columns: Sequence) -> None:
    """A latent whose states all look alike, to its children and to its parents, stays so: no run may start there."""
    layout = model.layout
    for node, k in model.position.items():
        if node in columns or layout.cardinalities[k] == 1 or not layout.children[k]:
            continue
        tables = [
            np.moveaxis(layout.table(point, child), layout.parents[child].index(k), 0) for child in layout.children[k]
        ]
        own = layout.table(point, k).reshape(-1, layout.cardinalities[k])
        if all(np.abs(table - table[0]).max() < 1e-9 for table in [own, *tables]):
            raise ValueError(
                f"The tables in 'init' make all states of {node!r} alike for its children: that is a saddle point, "
                "where every method stays for ever. Let some child's table differ between the states."
            )


@dataclass(frozen=True, eq=False)
class Recipe:
    """Where a fit starts and when it stops, so that another form of q(theta) can be fitted in the same way.

    Parameters
    ----------
    seed : sequence of int
        Of random starts.
    n_starts : int
    given : ndarray of shape (n_cells, 1) or None
        A start in place of random ones.
    of_counts : bool
        Whether it holds expected counts rather than tables.
    select : bool
        Whether starts meet in a tournament.
    inverse_temperatures : tuple of float
    tol : float
    max_iter : int
    accelerate : bool
    """

    seed: tuple[int, ...]
    n_starts: int
    given: np.ndarray | None
    of_counts: bool
    select: bool
    inverse_temperatures: tuple[float, ...]
    tol: float
    max_iter: int
    accelerate: bool

    @property
    def limits(self) -> dict:
        """When a run stops, as `skvbem.vbem.fit.best_of` takes it."""
        return {"tol": self.tol, "max_iter": self.max_iter, "accelerate": self.accelerate}

    def statistics(self, ascent: DirichletAscent) -> np.ndarray:
        """Expected statistics to start from, (n_cells, n_starts)."""
        if self.of_counts and self.given is not None:
            return self.given
        points = self.given
        if points is None:
            points = random_points(ascent.model, self.n_starts, np.random.default_rng(self.seed))
        return ascent.expect(safe_log(points))

    def refit(self, model: DiscreteDAG, program: Program, form: Form, fit: Fit, n_threads: int = 1) -> Fit:
        """The best fit of another form, from the starts of a fit and from where it ended."""
        ascent = DirichletAscent(model, program, form, n_threads)
        starts = np.column_stack([beyond_zero(fit.statistics), self.statistics(ascent)])
        return best_of(ascent, starts, select=self.select, **self.limits)


def beyond_zero(counts: np.ndarray) -> np.ndarray:
    """Counts to start from: what an earlier fit ruled out (by ML, say) may occur."""
    return np.maximum(counts, 1e-6)


def run_from(
    model: DiscreteDAG,
    program: Program,
    form: Form,
    recipe: Recipe,
    *,
    n_threads: int = 1,
    learn_prior: bool = False,
    stop: Callable[[int, float], bool] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> tuple[Fit, DiscreteDAG]:
    """The best fit from some starts, and the network with its prior as learned.

    Parameters
    ----------
    model : DiscreteDAG
    program : Program
    form : Form
    recipe : Recipe
    n_threads : int
    learn_prior : bool
        Whether strengths of the prior and runs alternate until the bound gains less than `tol`.
    stop : callable, optional
        As in `skvbem.vbem.fit.best_of`.
    stopped : callable
        Whether a run was asked to stop, so that no other should follow.
    """
    ascent = DirichletAscent(model, program, form, n_threads)
    fit = best_of(
        ascent,
        recipe.statistics(ascent),
        select=recipe.select,
        inverse_temperatures=recipe.inverse_temperatures,
        stop=stop,
        **recipe.limits,
    )
    if not learn_prior or stopped():
        return fit, model
    base, layout = model.prior, model.layout
    rows = [layout.table_cells(k) // size for k, size in enumerate(layout.cardinalities)]
    group_starts = np.concatenate([[0], np.cumsum(rows)])

    def strengthen(model: DiscreteDAG, counts: np.ndarray) -> DiscreteDAG:
        return model.with_prior(strengthened(model.prior, counts, base, group_starts))

    def ascend(model: DiscreteDAG, starts: np.ndarray) -> Fit:
        return best_of(DirichletAscent(model, program, form, n_threads), starts, stop=stop, **recipe.limits)

    return alternated(model, fit, strengthen, ascend, tol=recipe.tol, stopped=stopped)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Data as many candidates of a search share them: checked, encoded, equal rows counted.

    Parameters
    ----------
    encoder : CategoryEncoder
    rows : Rows
        Distinct ones.
    fingerprint : str
        Of the rows and of what their codes mean.
    """

    encoder: CategoryEncoder
    rows: Rows
    fingerprint: str
