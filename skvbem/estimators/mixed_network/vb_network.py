"""`VBNetwork`: networks of categories, measurements and counts, with hidden nodes, fitted to incomplete data."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skvbem._arguments import check_count, check_flag
from skvbem._compat import N_JOBS, Interval, StrOptions
from skvbem.emissions.base import counts_factors
from skvbem.errors import StructureError
from skvbem.estimators.labels.emission_parameters import refuse_lags
from skvbem.estimators.labels.priors import resolve_emission_prior
from skvbem.estimators.latent_nodes import LatentNodesEstimator, as_columns
from skvbem.estimators.network.parameters import CandidateNetwork, resolve_latents, resolve_structure, warn_of_oddities
from skvbem.fitted.mixed_network import FittedMixedNetwork
from skvbem.fitted.named_states import nodes_asked
from skvbem.graphs.dag import DAG
from skvbem.models.mixed_network.data import MixedData, MixedRows
from skvbem.models.mixed_network.model import MixedNetwork
from skvbem.optima.mixed_network import MixedNetworkMethod, MixedStarts
from skvbem.reading.base import warn_of_one_row
from skvbem.reading.column_groups import ColumnGroups
from skvbem.reading.mixed_network import MixedReading, columns_of_nodes, nodes_of, values_of
from skvbem.reading.names import check_names
from skvbem.reading.numbers import are_observed
from skvbem.reading.output import as_fit_saw, filled
from skvbem.reading.tables import read_table, show
from skvbem.tables import LabeledTable


class VBNetwork(LatentNodesEstimator):
    r"""A Bayesian network of categories, measurements and counts, with hidden nodes anywhere above them.

    Columns of categories and latents are nodes with a table, as in `VBDiscreteDAG`. Columns of numbers are nodes with
    an emission, a Gaussian or Poisson distribution, say, for each joint state of their parents, as in `VBMixture` for
    each component. Measurements that are children of numbers are regressions on these, one for each joint state of
    their other parents: conditional Gaussian networks. Categories and counts have no parents that hold numbers. The
    lower bound on the log marginal likelihood has all its constants. Missing cells are summed out, rows are never
    dropped.

    Parameters
    ----------
    structure : DAG, (parent, child) edges, mapping child -> parents, networkx.DiGraph, DataFrame or str, default=None
        The graph over nodes and latents; None means one latent class with every node below it.
    latents : mapping of name to int, list of names, or int, default=None
        The hidden nodes and their numbers of states, as of `VBDiscreteDAG`.
    emission : "auto", str, emission, mapping of str to columns or list of (name, emission, columns), default="auto"
        What columns hold, as of `VBMixture`; "auto" takes numbers for measurements. Each column is a node of its own,
        but for columns of numbers that a list names together: these are one node of that name.
    categories : "auto" or mapping of column to array-like, default="auto"
        Levels of columns of categories.
    prior : float, "bdeu", "per_row" or mapping of node to these or to arrays, default=1.0
        Dirichlet concentrations of tables. Priors of emissions are parameters of these.
    equivalent_sample_size : float, default=1.0
        Total of "bdeu" and "per_row" priors, in rows of data.
    method : {"vb", "map", "ml"}, default="vb"
        Variational Bayes, the posterior mode, or maximum likelihood.
    map_basis : {"natural", "probability"}, default="natural"
        Coordinates in which ``method="map"`` takes the mode.
    n_init : int, default=10
        Number of starts, each around rows that are drawn.
    init : {"auto", "random"}, default="auto"
        Whether starts race, and parameters are drawn after the best of them; or every start is run to its end.
    max_iter : int, default=10000
        Most steps of each start.
    tol : float, default=1e-5
        A start has converged when the gain still to come is below this, in total nats.
    acceleration : bool, default=True
        Whether steps are extrapolated where that raises the objective.
    handle_unknown : {"warn", "missing", "error"}, default="warn"
        What a category that fit did not see becomes.
    missing_values : scalar or list, default=np.nan
        Values that mean "missing" besides NaN, None, pandas.NA and null.
    max_table_cells : int, default=2**24
        Most cells of one table, of a node or of hidden nodes summed together.
    max_memory : float, default=4e9
        Most bytes of all tables and indices of a fit, and of rows that are drawn.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.
    n_jobs : int, default=None
        Threads that share the rows of a large table; the result does not depend on it.
    warm_start : bool, default=False
        Whether to start where the last fit ended, if it was of the same network.
    verbose : int, default=0
        Whether to print the objective after every cycle.

    Attributes
    ----------
    lower_bound_ : float
        Lower bound on the log marginal likelihood of the data, total nats (``method="vb"``).
    log_posterior_, log_likelihood_ : float
        The objective of ``method="map"`` and ``method="ml"``.
    lower_bounds_ : ndarray
        The objective at every point of the best start's run; it never falls.
    parameters_ : dict
        Tables of nodes under "tables", axes parents and node, and parameters of emissions by node, those of each joint
        state of the parents along the first axis.
    tables_, counts_ : dict of node to LabeledTable
        Probabilities of each node with a table, and how many rows are expected in each of its cells.
    structure_ : DAG
        Nodes in the order latents, then nodes of columns.
    latent_names_ : tuple
    groups_ : dict of node to list of str
        Columns of each node with an emission.
    categories_ : dict of column to ndarray
    n_free_parameters_ : int
    restarts_ : Restarts
    latent_states_ : dict of latent to LatentStates
    n_iter_ : int
    converged_ : bool
    n_samples_ : float
        Sum of the weights of the rows.
    treewidth_ : int
        Treewidth of the widest part that had to be summed over.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X has string column names.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem import VBNetwork
    >>> rng = np.random.default_rng(0)
    >>> kind = rng.integers(0, 2, 200)
    >>> X = np.column_stack([rng.normal(6 * kind), rng.normal(6 * kind)])
    >>> two, one = (VBNetwork(latents=n, random_state=0).fit(X) for n in (2, 1))
    >>> two.lower_bound_ > one.lower_bound_ + 50
    True
    >>> two.predict_proba(X).shape
    (200, 2)
    """

    _method = MixedNetworkMethod()
    _fitted_type = FittedMixedNetwork
    _prior_parameters = ("prior",)
    default_score = "lower_bound"
    reading_parameters = LatentNodesEstimator.reading_parameters | {"emission"}

    _parameter_constraints: ClassVar[dict] = {
        "structure": "no_validation",
        "latents": "no_validation",
        "emission": "no_validation",
        "categories": "no_validation",
        "prior": "no_validation",
        "equivalent_sample_size": [Interval(Real, 0, None, closed="neither")],
        "method": [StrOptions({"vb", "map", "ml"})],
        "map_basis": [StrOptions({"natural", "probability"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"auto", "random"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "acceleration": ["boolean"],
        "handle_unknown": [StrOptions({"warn", "missing", "error"})],
        "missing_values": "no_validation",
        "max_table_cells": [Interval(Integral, 1, None, closed="left")],
        "max_memory": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        structure=None,
        *,
        latents=None,
        emission="auto",
        categories="auto",
        prior=1.0,
        equivalent_sample_size=1.0,
        method="vb",
        map_basis="natural",
        n_init=10,
        init="auto",
        max_iter=10_000,
        tol=1e-5,
        acceleration=True,
        handle_unknown="warn",
        missing_values=np.nan,
        max_table_cells=2**24,
        max_memory=4e9,
        random_state=None,
        n_jobs=None,
        warm_start=False,
        verbose=0,
    ):
        self.structure = structure
        self.latents = latents
        self.emission = emission
        self.categories = categories
        self.prior = prior
        self.equivalent_sample_size = equivalent_sample_size
        self.method = method
        self.map_basis = map_basis
        self.n_init = n_init
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.acceleration = acceleration
        self.handle_unknown = handle_unknown
        self.missing_values = missing_values
        self.max_table_cells = max_table_cells
        self.max_memory = max_memory
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose

    # Fitting ----------------------------------------------------------------------------------------------------------

    def _read(self, X, sample_weight, columns: ColumnGroups | None, where: Mapping) -> MixedReading:
        owner = type(self).__name__
        given = {"X": X, "metadata": {"sample_weight": sample_weight}}
        table = read_table(X, owner)
        if columns is not None:
            check_names(table, self)
        table, weight, is_weighted = self._weighted_rows(table, sample_weight)
        if columns is not None:
            return MixedReading(columns, [(columns.values(table), weight)], is_weighted, given=given)
        options = {name: getattr(self, name) for name in ("categories", "missing_values", "handle_unknown")}
        refuse_lags(owner, self.emission)
        groups, values = columns_of_nodes(*ColumnGroups.learned(table, self.emission, owner, **options), self.emission)
        if not are_observed(values).any():
            raise ValueError(f"X must have an observed cell. Got {table.n_samples} x {table.n_columns} missing ones.")
        if groups.covariates:
            raise ValueError(
                f"The 'emission' of {owner} explains columns by 'covariates'. In a network edges do this: leave "
                "'covariates' out, and make their nodes parents in the 'structure'."
            )
        return MixedReading(groups, [(values, weight)], is_weighted, names=table.names_of_fit(), given=given)

    def _learns_prior(self) -> bool:
        return False

    def graph(self, reading: MixedReading) -> tuple[DAG, dict]:
        """The graph that this estimator fits to what was read, with its latents, for searches.

        Parameters
        ----------
        reading : MixedReading

        Returns
        -------
        structure : DAG
        latents : dict of latent to int
            Numbers of states.
        """
        owner = type(self).__name__
        latents = resolve_latents(self.latents, self.structure, owner)
        nodes, _ = nodes_of(reading.columns)
        return resolve_structure(self.structure, latents, nodes, owner), latents

    def _model(self, reading: MixedReading) -> MixedNetwork:
        owner = type(self).__name__
        nodes, n_categories = nodes_of(reading.columns)
        dag, latents = self.graph(reading)
        self._check_tables(reading.columns)
        with_emission = [node for node in nodes if node not in n_categories]
        self._check_structure(dag, with_emission)
        sizes = {**latents, **n_categories}
        parents = {node: dag.parents(node) for node in dag.nodes if node in sizes}
        limits = self.max_table_cells, self.max_memory, self._n_starts()
        of_tables = CandidateNetwork(
            DAG(parents, parents), latents, sizes, self.prior, self.equivalent_sample_size, owner, *limits
        )
        of_tables.check_size()
        emissions, priors = {}, {}
        for group, emission in reading.emissions(dag):
            if counts_factors(emission):
                raise ValueError(
                    f"n_factors='auto' of node {group.name!r} is a search that {owner} does not make. Give "
                    "FactorGaussian a number of factors, and compare bounds."
                )
            with_table = [sizes[parent] for parent in dag.parents(group.name) if parent in sizes]
            n_states = int(np.prod(with_table, dtype=np.int64))
            alone = ColumnGroups(group.names, (group,), self.missing_values, owner)
            emissions[group.name] = emission
            priors[group.name] = resolve_emission_prior(alone, emission, n_states)
        return MixedNetwork(dag, sizes, of_tables.prior(), emissions, priors)

    def _check_tables(self, columns: ColumnGroups) -> None:
        """Refuse priors of tables that an emission says: tables have theirs from 'prior'."""
        for group in columns.groups:
            said, silent = repr(group.specification), repr(type(group.specification)())
            if group.encoder is not None and said != silent:
                raise ValueError(
                    f"The 'emission' of {type(self).__name__} gives columns {show(group.names)} a prior of their own, "
                    f"{said}. Columns of categories are nodes with a table, whose prior is the parameter 'prior', as "
                    f"in prior={{{group.names[0]!r}: 2.0}}."
                )

    def _check_structure(self, dag: DAG, with_emission: list) -> None:
        """Refuse what is not conjugate: numbers as parents of nodes with a table; and networks without any table."""
        for node in with_emission:
            children = [child for child in dag.children(node) if child not in with_emission]
            if children:
                raise StructureError(
                    f"Node {node!r} holds numbers, and is a parent of {children[0]!r} in the 'structure' of "
                    f"{type(self).__name__}. Numbers have no children with a table here: there is no conjugate prior "
                    "for probabilities that depend on numbers. Turn the edge round, or cut the numbers into "
                    "categories; in a search, DAGSpace(leaves=...) or 'forbidden' edges keep such graphs out."
                )
        if len(with_emission) == len(dag.nodes):
            raise StructureError(
                f"The 'structure' of {type(self).__name__} has no node with a table. Declare a latent, as in latents=2 "
                "without a structure, or columns of categories."
            )

    def _compiled(self, model: MixedNetwork, reading: MixedReading, n_starts: int) -> MixedData:
        return reading.compiled_for(model, n_starts, **self._limits())

    def _starts(self, model: MixedNetwork, data, reading: MixedReading, seed: tuple[int, ...]) -> MixedStarts:
        return MixedStarts(seed, self.n_init)

    def _start_from(self, last: FittedMixedNetwork, model, data, reading) -> np.ndarray:
        natural, _ = last.form.of(last.model.prior, last.statistics[:, None])
        return model.expect(natural, data).statistics[:, 0]

    def _continued_model(self, fitted: FittedMixedNetwork) -> MixedNetwork:
        return fitted.model.updated(fitted.statistics)

    def _hidden(self, fitted: FittedMixedNetwork) -> tuple:
        return fitted.latents

    def _drawn_like(self, like: MixedReading, model: MixedNetwork, point, rng: np.random.Generator) -> Any:
        ((values, _),) = like.blocks
        return self._fitted_type.drawn_for(like.columns, model, point, len(values[0]), rng)

    def _warn_of_data(self, reading: MixedReading, model: MixedNetwork, data: MixedData) -> None:
        if len(data) == 1:
            warn_of_one_row()

    def _warn_of_fit(self, fitted: FittedMixedNetwork, data: MixedData) -> None:
        sizes = {node: len(fitted.levels[node]) for node in fitted.latents}
        warn_of_oddities(fitted.model.dag, sizes, data.total_weight)

    def _data_state(self, fitted, reading, data: MixedData, *, is_batch: bool = False) -> dict:
        return {"treewidth_": max(data.program.treewidth, self.treewidth_ if is_batch else 0)}

    @staticmethod
    def _model_state(fitted: FittedMixedNetwork) -> dict:
        """The attributes that tell of the network."""
        groups = fitted.groups.groups
        return {
            "_fitted_": fitted,
            "structure_": fitted.model.dag,
            "latent_names_": fitted.latents,
            "parameters_": fitted.named_parameters(fitted.point),
            "groups_": {group.name: list(group.names) for group in groups if group.encoder is None},
            "categories_": {name: levels for group in groups for name, levels in zip(group.names, group.levels)},
            "n_free_parameters_": fitted.model.n_free_parameters,
            **fitted.tables(),
        }

    # Asking -----------------------------------------------------------------------------------------------------------

    def _asked(self, X) -> tuple[FittedMixedNetwork, list[np.ndarray]]:
        """What was fitted, and the values of a table to ask it about, by group of columns."""
        check_is_fitted(self)
        table = read_table(X, type(self).__name__)
        check_names(table, self)
        return self._fitted_, self._fitted_.groups.values(table)

    def score_samples(self, X):
        """Log predictive density of each row, nats; what is missing is summed out.

        With ``method="vb"`` the exact average of p(row | theta) over q(theta); with MAP and ML that of the point found.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        fitted, values = self._asked(X)
        return fitted.predictive.log_densities(fitted.rows(values), **self._limits())

    def _about_latents(self, X) -> tuple[FittedMixedNetwork, MixedRows]:
        """What was fitted, and rows whose latents are asked for."""
        fitted, values = self._asked(X)
        if not fitted.latents:
            raise ValueError(f"This {type(self).__name__} has no latents to predict. Declare some, or use 'impute'.")
        return fitted, fitted.rows(values)

    def _latent_marginals(self, X) -> list[np.ndarray]:
        fitted, rows = self._about_latents(X)
        return fitted.predictive.all_posteriors(rows, [[latent] for latent in fitted.latents], **self._limits())

    def _joint_modes(self, X) -> list[np.ndarray]:
        fitted, rows = self._about_latents(X)
        return list(fitted.predictive.joint_modes(rows, fitted.latents, **self._limits()).values())

    def query(self, targets, evidence: Mapping | None = None) -> LabeledTable:
        """Joint probability of some nodes given values of others, under the predictive distribution of a new row.

        Parameters
        ----------
        targets : node or list of nodes
            Latents, or columns of categories.
        evidence : mapping of node to state, default=None
            Categories of columns, numbers that columns hold, and numbers of latents' states.

        Returns
        -------
        LabeledTable
            One axis per target; sums to one.

        Examples
        --------
        >>> import numpy as np
        >>> from skvbem import VBNetwork
        >>> X = np.array([[0.0, 0.0], [0.1, 0.0], [5.0, 1.0], [5.1, 1.0]])
        >>> options = {"emission": {"gaussian": [0], "categorical": [1]}, "random_state": 0}
        >>> model = VBNetwork([("x1", "x0")], latents=None, **options).fit(X)
        >>> model.query("x1", {"x0": 4.9})["x1":1.0] > 0.7
        True
        """
        check_is_fitted(self)
        fitted = self._fitted_
        targets = nodes_asked(targets, fitted.levels, fitted.numbers)
        given = {} if evidence is None else evidence
        if not isinstance(given, Mapping):
            raise TypeError(f"The evidence of a query must be a mapping of nodes to states. Got {evidence!r} instead.")
        if not targets or len(set(targets)) < len(targets) or set(targets) & set(given):
            raise ValueError("query needs one or more targets, each named once and not also in the evidence.")
        row, limits = fitted.evidence(given), self._limits()
        if not np.isfinite(fitted.predictive.log_densities(row, **limits)[0]):
            raise ValueError(f"The evidence {evidence!r} has probability 0 under this fit: nothing follows from it.")
        joint = fitted.predictive.posteriors(row, targets, **limits)[0]
        levels = tuple(fitted.levels[node] for node in targets)
        return LabeledTable(joint.reshape([len(states) for states in levels]), targets, levels)

    def impute(self, X, *, return_proba=False):
        """X with missing cells filled: numbers by predictive means given the row, categories by the most probable one.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
        return_proba : bool, default=False
            Whether to return the posterior of cells of categories as well.

        Returns
        -------
        completed : ndarray or DataFrame
            X in its own container; observed cells are untouched.
        proba : dict of column to ndarray of shape (n_samples, n_categories)
            Only if `return_proba`: probabilities of categories; an observed cell is certain.
        """
        check_flag("return_proba", "impute", return_proba)
        fitted, values = self._asked(X)
        rows = fitted.rows(values)
        asked = [name for name, codes in zip(rows.names, rows.codes.T) if return_proba or (codes < 0).any()]
        proba, columns = fitted.predictive.completed(rows, asked, **self._limits())
        codes = dict(zip(rows.names, rows.codes.T)) | {name: of.argmax(axis=1) for name, of in proba.items()}
        of_groups = values_of(fitted.groups, codes, columns)
        completed = filled(X, fitted.groups.missing(values), fitted.groups.columns_of(of_groups))
        return (completed, proba) if return_proba else completed

    def sample(self, n_samples=1, random_state=None):
        """Rows drawn from the predictive distribution of a new row, and the latent states behind them.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, RandomState instance or None, default=None
            By default the estimator's own `random_state`.

        Returns
        -------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            In the container of the X that was fitted, with its names.
        states : ndarray of int, shape (n_samples,) or (n_samples, n_latents)
        """
        check_is_fitted(self)
        check_count("n_samples", "sample", n_samples)
        fitted = self._fitted_
        self._check_memory(f"{n_samples:.3g} rows drawn", int(n_samples) * 4 * len(fitted.model.dag.nodes), "fewer")
        rng = self._rng(self.random_state if random_state is None else random_state)
        of_groups, codes = fitted.sample(int(n_samples), rng)
        states = [codes[name] for name in fitted.latents]
        of_latents = as_columns(states) if states else np.empty((int(n_samples), 0), dtype=np.int64)
        return as_fit_saw(self, fitted.groups.columns_of(of_groups)), of_latents

    def _what_was_fitted(self, fitted: FittedMixedNetwork) -> str:
        latents = ", ".join(f"{name} of {len(fitted.levels[name])} states" for name in fitted.latents)
        dag = fitted.model.dag
        return f"{len(dag.nodes)} nodes, {len(dag.edges)} edges; latents: {latents or 'none'}"
