"""`VBDiscreteDAG`: discrete Bayesian networks with hidden nodes, fitted to incomplete categorical data."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from numbers import Integral, Real

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from skvbem._compat import Interval, StrOptions, fit_context
from skvbem.data import Rows
from skvbem.errors import DataWarning
from skvbem.estimators import _network
from skvbem.estimators._base import VBEstimator
from skvbem.estimators._encoding import CategoryEncoder, read_table
from skvbem.estimators._reports import find_states, fit_indices, table_summary
from skvbem.estimators._tables import LabeledTable
from skvbem.families import Dirichlet
from skvbem.models import DirichletAscent, DiscreteDAG, queries
from skvbem.vbem.fit import Fit, best_of
from skvbem.vbem.hyperparameters import strengthened


class VBDiscreteDAG(VBEstimator):
    r"""A discrete Bayesian network with hidden nodes anywhere, fitted to incomplete data.

    Every table has a Dirichlet prior; q(theta) is a product of Dirichlet distributions, and q of the hidden variables
    keeps the joint of each row. The lower bound on the log marginal likelihood has all its constants, so bounds compare
    across structures and numbers of states. Missing cells are summed out, rows are never dropped.

    Parameters
    ----------
    structure : DAG, list of (parent, child) edges, mapping child -> parents, networkx.DiGraph or str, default=None
        The graph over columns of X and latents; a string is a model string such as ``"[h][a|h][b|a:h]"``. Columns that it
        does not name are nodes without edges. None means one latent class with every column below it. Columns of an array
        are named x0, x1, ...
    latents : mapping of name to int, list of names, or int, default=None
        The hidden nodes and their numbers of states (2 where only names are given). An int is the number of states of one
        latent named h0. By default none if a structure is given, else ``{"h0": 2}``.
    categories : "auto", list of array-likes or mapping of column to array-like, default="auto"
        Levels of each column and their order. "auto" takes the levels declared by a pandas Categorical or polars Enum,
        else the values that occur, in increasing order.
    prior : float, "bdeu", "per_row" or mapping of node to these or to arrays, default=1.0
        Dirichlet concentrations: a number per cell; "bdeu" divides `equivalent_sample_size` among all cells of a node's
        table, "per_row" among the cells of each row; an array has axes ``(*structure_.parents(node), node)``.
    equivalent_sample_size : float, default=1.0
        Total of "bdeu" and "per_row" priors, in rows of data.
    method : {"vb", "map", "ml"}, default="vb"
        Variational Bayes, the posterior mode, or maximum likelihood.
    map_basis : {"natural", "probability"}, default="natural"
        Coordinates in which ``method="map"`` takes the mode. The natural (softmax) mode always exists; in the probability
        basis a prior of 1 gives the maximum likelihood.
    n_init : int, default=10
        Number of starts.
    init : {"random", "tournament"} or mapping of node to table, default="random"
        "random" runs every start (tables drawn uniformly) to the end; "tournament" drops half of them after 1, 2, 4, ...
        steps until one is left [CH]_, who used 64. A mapping gives tables (conditional probabilities, axes as for
        `prior`) to start from; nodes that it does not name start uniform.
    max_iter : int, default=10000
        Most steps of each start.
    tol : float, default=1e-4
        A start has converged when one plain step raises the objective by less than this, in total nats.
    acceleration : bool, default=True
        Whether steps are extrapolated (SQUAREM) where that raises the objective; the optima are the same.
    annealing : array-like of float, default=None
        Inverse temperatures at which one annealed step each is taken before the run [Beal]_ (2.118, 2.119), such as
        ``np.linspace(0.1, 1, 20)``.
    learn_prior : bool, default=False
        Whether each node's prior is multiplied by the strength (between 1e-3 and 1e3) that maximizes the bound [Beal]_
        (2.79). The bound is then one given the optimized prior: it favors models with more nodes a little.
    handle_unknown : {"warn", "missing", "error"}, default="warn"
        What a category that fit did not see becomes: a missing cell with a warning, a missing cell, or an error.
    missing_values : scalar or list, default=np.nan
        Values that mean "missing" besides NaN, None, pandas.NA and null.
    max_table_cells : int, default=2**24
        Most cells of one table, of a node or of hidden nodes summed together.
    max_memory : float, default=4e9
        Most bytes of all tables and indices of a fit.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts. The same seed gives the same result for any `n_jobs` and row order.
    n_jobs : int, default=None
        Threads that share the rows of a large table; the result does not depend on it.
    warm_start : bool, default=False
        Whether to start from the last fit's tables rather than from `n_init` new starts.
    verbose : int, default=0
        Whether to print the objective after every cycle.

    Attributes
    ----------
    lower_bound_ : float
        Lower bound on the log marginal likelihood of the data, total nats (``method="vb"``).
    log_posterior_, log_likelihood_ : float
        The objective of ``method="map"`` (log likelihood plus log prior density in `map_basis`) and ``method="ml"``.
    lower_bounds_ : ndarray
        The objective at every point of the best start's run; it never falls.
    posterior_ : dict of node to LabeledTable
        Dirichlet concentrations of q(theta), prior + expected counts (``method="vb"``).
    tables_ : dict of node to LabeledTable
        Conditional probabilities: posterior means (VB) or the point found (MAP, ML).
    counts_ : dict of node to LabeledTable
        Expected counts.
    prior_ : dict of node to LabeledTable
        Prior concentrations, as learned if `learn_prior`.
    structure_ : DAG
        Nodes in the order latents, then columns.
    latent_names_ : tuple
    categories_ : list of ndarray
        Categories of each column.
    n_free_parameters_ : int
        Cells less one per distribution, over all tables.
    restarts_ : Restarts
        The objective of every start and how many met the best.
    latent_states_ : dict of latent to LatentStates
        Expected rows in each state; the states in use, empty, and duplicates of each other.
    n_iter_ : int
    converged_ : bool
    n_samples_ : float
        Sum of the weights of the rows.
    n_rows_all_missing_ : int
        Rows without any observed cell; they are kept and change nothing.
    treewidth_ : int
        Of the widest part that had to be summed over.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X has string column names.

    References
    ----------
    .. [Beal] M. J. Beal (2003), Variational Algorithms for Approximate Bayesian Inference, PhD thesis, chapter 2.
    .. [CH] D. M. Chickering and D. Heckerman (1996), Efficient approximations for the marginal likelihood of incomplete
       data given a Bayesian network, UAI-96.

    Examples
    --------
    Two linked hidden variables behind two waves of two questions [Goodman 1974]:

    >>> from skvbem import VBDiscreteDAG
    >>> from skvbem.datasets import load_coleman_panel
    >>> X = load_coleman_panel().data
    >>> edges = [("member", "x0"), ("member", "x2"), ("attitude", "x1"), ("attitude", "x3"), ("member", "attitude")]
    >>> model = VBDiscreteDAG(edges, latents=["member", "attitude"], random_state=0).fit(X)
    >>> one_class = VBDiscreteDAG(latents=2, random_state=0).fit(X)
    >>> model.lower_bound_ > one_class.lower_bound_ + 100
    True
    >>> model.predict_proba(X)[0].shape
    (3398, 2)
    """

    _parameter_constraints: dict = {
        "structure": "no_validation",
        "latents": "no_validation",
        "categories": "no_validation",
        "prior": "no_validation",
        "equivalent_sample_size": [Interval(Real, 0, None, closed="neither")],
        "method": [StrOptions({"vb", "map", "ml"})],
        "map_basis": [StrOptions({"natural", "probability"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"random", "tournament"}), Mapping],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "acceleration": ["boolean"],
        "annealing": ["array-like", None],
        "learn_prior": ["boolean"],
        "handle_unknown": [StrOptions({"warn", "missing", "error"})],
        "missing_values": "no_validation",
        "max_table_cells": [Interval(Integral, 1, None, closed="left")],
        "max_memory": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        structure=None,
        *,
        latents=None,
        categories="auto",
        prior=1.0,
        equivalent_sample_size=1.0,
        method="vb",
        map_basis="natural",
        n_init=10,
        init="random",
        max_iter=10_000,
        tol=1e-4,
        acceleration=True,
        annealing=None,
        learn_prior=False,
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
        self.annealing = annealing
        self.learn_prior = learn_prior
        self.handle_unknown = handle_unknown
        self.missing_values = missing_values
        self.max_table_cells = max_table_cells
        self.max_memory = max_memory
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    # Fitting ----------------------------------------------------------------------------------------------------------

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit the network to a table of categories.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            Categories of any kind; NaN, None and NA are missing cells.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts; rows of weight 0 are as if absent.

        Returns
        -------
        self

        Raises
        ------
        StructureError
            If the structure is no DAG, or names a node that is neither column nor latent.
        TooLargeError
            If a table or the whole fit exceeds `max_table_cells` or `max_memory`.
        ValueError
            If X or a parameter is not what it should be; the message names which and what would be right.
        """
        encoder, data, n_all_missing = self._read(X, sample_weight)
        model, latents = self._model_for(encoder, data)
        previous = getattr(self, "_model", None) if self.warm_start else None
        listen, close = self._listener(X, sample_weight)
        fit, model, program = self._ascend(model, data, previous, listen)
        self._encoder, self._model = encoder, model
        self._publish(fit, latents, data, n_all_missing, program)
        close()
        return self

    def fit_predict(self, X, y=None, sample_weight=None):
        """Fit, then return each row's most probable latent states; see `fit` and `predict`."""
        return self.fit(X, sample_weight=sample_weight).predict(X)

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y=None, sample_weight=None):
        """Update the posterior with a batch, whose prior is the last posterior [Beal (2.114)-(2.117)].

        Exact on complete data, whatever the batches. With hidden variables a state that an early batch does not need is
        soon given up for good: let the first batch be large, or use `fit`. `batch_lower_bound_` bounds the log probability
        of this batch given the approximate past; the sum over batches is no bound on the evidence of all data, and
        `lower_bound_` is not set after the first batch.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. The first call fixes categories, structure and prior.

        Returns
        -------
        self
        """
        if self.method != "vb":
            raise ValueError(f"partial_fit of VBDiscreteDAG needs method='vb'. Got method={self.method!r}.")
        if not hasattr(self, "_model"):
            self.fit(X, sample_weight=sample_weight)
            self.batch_lower_bound_ = self.lower_bound_
            return self
        validate_data(self, X, skip_check_array=True, reset=False)
        _, data, n_all_missing = self._read(X, sample_weight, encoder=self._encoder)
        prior = Dirichlet(self._concentration, self._model.layout.row_starts)
        model = DiscreteDAG(self.structure_, self._cardinalities, self._model.tables(prior.concentration))
        program = model.compile(data, max_table_cells=self.max_table_cells, max_memory=self.max_memory)
        ascent = DirichletAscent(model, program, self._form(), effective_n_jobs(self.n_jobs))
        start = model.expect(prior.expected_natural()[:, None], program).statistics
        fit = best_of(ascent, start, tol=self.tol, max_iter=self.max_iter, accelerate=self.acceleration)
        counts = self._counts + fit.statistics
        self._publish_tables(model, fit.statistics)
        self._counts = counts
        self.counts_ = self._labeled(counts)
        self.batch_lower_bound_ = fit.objective
        self.n_samples_ += data.total_weight
        self.n_rows_all_missing_ += n_all_missing
        vars(self).pop("lower_bound_", None)
        return self

    def _read(self, X, sample_weight, encoder: CategoryEncoder | None = None):
        """(encoder, rows of weight > 0 as codes, number of rows without an observed cell)."""
        owner = type(self).__name__
        reset = encoder is None
        validate_data(self, X, skip_check_array=True, reset=reset)
        table = read_table(X, owner)
        weights = self._weights(sample_weight, table.n_samples)
        if weights is not None and not weights.all():
            counted = np.flatnonzero(weights > 0)
            table, weights = table.rows(counted), weights[counted]
        if encoder is None:
            encoder = CategoryEncoder(
                owner,
                categories=self.categories,
                missing_values=self.missing_values,
                handle_unknown=self.handle_unknown,
            )
            codes = encoder.fit_encode(table)
            if len(codes) == 1:
                warnings.warn("X has one row: the fit is mostly prior.", DataWarning, stacklevel=3)
        else:
            codes = encoder.encode(table)
        nothing = np.ones(len(codes), dtype=bool)
        for column in codes.T:
            nothing &= column < 0
        return encoder, Rows(tuple(encoder.names_), codes, weights), int(nothing.sum())

    def _model_for(self, encoder: CategoryEncoder, data: Rows) -> tuple[DiscreteDAG, dict]:
        owner = type(self).__name__
        latents = _network.resolve_latents(self.latents, self.structure, owner)
        dag = _network.resolve_structure(self.structure, latents, data.names, owner)
        cardinalities = {**latents, **dict(zip(data.names, encoder.n_categories_.tolist()))}
        _network.check_size(dag, cardinalities, self.max_table_cells)
        for name, n_states in latents.items():
            if n_states == 1:
                warnings.warn(f"Latent {name!r} has one state: it explains nothing.", UserWarning, stacklevel=3)
            elif n_states > data.total_weight:
                warnings.warn(
                    f"Latent {name!r} has {n_states} states for {data.total_weight:g} rows.", UserWarning, stacklevel=3
                )
            if not dag.children(name):
                warnings.warn(
                    f"Latent {name!r} has no children: it does not change the score.", UserWarning, stacklevel=3
                )
        prior = _network.resolve_prior(self.prior, self.equivalent_sample_size, dag, cardinalities, owner)
        return DiscreteDAG(dag, cardinalities, prior), latents

    def _ascend(self, model: DiscreteDAG, data: Rows, previous: DiscreteDAG | None, listen):
        """(fit, model with the prior as learned, program)."""
        program = model.compile(data, max_table_cells=self.max_table_cells, max_memory=self.max_memory)
        n_threads = effective_n_jobs(self.n_jobs)
        ascent = DirichletAscent(model, program, self._form(), n_threads)
        if previous is not None and previous.layout == model.layout:
            points = self._point[:, None]
        elif isinstance(self.init, Mapping):
            points = _network.resolve_tables(self.init, model, type(self).__name__)[:, None]
            _refuse_saddle(model, points[:, 0], data.names)
        else:
            points = np.stack([model.random_point(rng) for rng in self._streams(self.n_init)], axis=1)
        options = {"tol": self.tol, "max_iter": self.max_iter, "accelerate": self.acceleration, "stop": listen}
        fit = best_of(
            ascent,
            ascent.expect(np.log(points)),
            select=isinstance(self.init, str) and self.init == "tournament",
            inverse_temperatures=_inverse_temperatures(self.annealing),
            **options,
        )
        if self.learn_prior:
            fit, model = self._learn_prior(model, program, fit, options, n_threads)
        return fit, model, program

    def _learn_prior(self, model, program, fit, options, n_threads) -> tuple[Fit, DiscreteDAG]:
        """Alternate strengths of the prior and runs, until the bound gains less than `tol`."""
        if self.method != "vb":
            raise ValueError(f"learn_prior=True of VBDiscreteDAG needs method='vb'. Got method={self.method!r}.")
        base = model.prior
        rows = [model.layout.table_cells(k) // model.layout.cardinalities[k] for k in range(len(model.layout.names))]
        group_starts = np.concatenate([[0], np.cumsum(rows)])
        trace = fit.trace
        for _ in range(100):
            prior = strengthened(model.prior, fit.statistics, base, group_starts)
            model = DiscreteDAG(model.dag, self._by_name(model), model.tables(prior.concentration))
            ascent = DirichletAscent(model, program, self._form(), n_threads)
            better = best_of(ascent, fit.statistics[:, None], **options)
            gain, trace = better.objective - fit.objective, trace + better.trace
            fit = Fit(
                better.statistics,
                better.objective,
                trace,
                fit.n_iter + better.n_iter,
                better.converged,
                fit.restart_objectives,
                fit.restart_n_iter,
                fit.restart_converged,
            )
            if gain < max(self.tol, 1e-12 * abs(fit.objective)):
                break
        return fit, model

    @staticmethod
    def _by_name(model: DiscreteDAG) -> dict:
        return dict(zip(model.dag.nodes, model.layout.cardinalities))

    def _publish(self, fit: Fit, latents, data: Rows, n_all_missing: int, program) -> None:
        model = self._model
        self.structure_ = model.dag
        self.latent_names_ = tuple(latents)
        self.categories_ = self._encoder.categories_
        self._cardinalities = self._by_name(model)
        self._counts = fit.statistics
        self.prior_ = self._labeled(model.prior.concentration)
        self.counts_ = self._labeled(fit.statistics)
        self._publish_tables(model, fit.statistics)
        self.n_free_parameters_ = model.prior.n_free_parameters
        self.n_samples_ = data.total_weight
        self.n_rows_all_missing_ = n_all_missing
        self.treewidth_ = program.treewidth
        self.latent_states_ = {name: find_states(model, self._point, self._counts, name) for name in latents}
        self._publish_fit(fit)

    def _publish_tables(self, model: DiscreteDAG, counts: np.ndarray) -> None:
        self._point = self._form().point(model.prior, counts)
        self.tables_ = self._labeled(self._point)
        vars(self).pop("posterior_", None)
        if self.method == "vb":
            self._concentration = (model.prior + counts).concentration
            self.posterior_ = self._labeled(self._concentration)

    def _labeled(self, flat: np.ndarray) -> dict:
        tables = {}
        for node, table in self._model.tables(flat).items():
            axes = self._model.dag.family(node)
            tables[node] = LabeledTable(table, axes, tuple(self._levels(axis) for axis in axes))
        return tables

    def _levels(self, node) -> np.ndarray:
        """The states of a node as the user knows them: categories of a column, numbers of a latent's states."""
        if node in self._encoder.names_:
            return self._encoder.categories_[self._encoder.names_.index(node)]
        return np.arange(self._model.layout.cardinalities[self._model.position[node]])

    # Asking -----------------------------------------------------------------------------------------------------------

    def _limits(self) -> dict:
        return {"max_table_cells": self.max_table_cells, "max_memory": self.max_memory}

    def _rows(self, X) -> Rows:
        check_is_fitted(self)
        validate_data(self, X, skip_check_array=True, reset=False)
        return Rows(tuple(self._encoder.names_), self._encoder.encode(read_table(X, type(self).__name__)))

    def _need_latents(self) -> tuple:
        if not self.latent_names_:
            raise ValueError(
                f"This {type(self).__name__} has no latents to predict. Use 'query' or 'impute' for its columns, or declare "
                "latents."
            )
        return self.latent_names_

    def score_samples(self, X):
        """Log predictive probability of each row, nats; what is missing is summed out.

        With ``method="vb"`` the exact average of p(row | theta) over q(theta), which sums to one over all rows; with MAP
        and ML that of the point found. A row that is impossible scores -inf.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        data = self._rows(X)
        return queries.log_likelihood(self._model, self._point, data, **self._limits())

    def score(self, X, y=None, sample_weight=None):
        """Mean log predictive probability of the rows, nats per row; see `score_samples`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        float
        """
        scores = self.score_samples(X)
        weights = self._weights(sample_weight, len(scores))
        return float(np.average(scores, weights=weights))

    def _latent_marginals(self, X) -> list[np.ndarray]:
        data = self._rows(X)
        names = self._need_latents()
        found = queries.marginals(self._model, self._point, data, names, **self._limits())
        return [found[name] for name in names]

    def predict_proba(self, X):
        """Posterior probabilities of each latent's states given each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_states), or list of such
            One array if there is one latent, else a list in the order of `latent_names_`, as scikit-learn's multi-output
            classifiers return. A row that is impossible under the fit gets the probabilities of an empty row.
        """
        marginals = self._latent_marginals(X)
        return marginals[0] if len(marginals) == 1 else marginals

    def predict(self, X):
        """Most probable state of each latent, one by one, given each row; see `decode` for the joint mode.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of int, shape (n_samples,) or (n_samples, n_latents)
        """
        states = [marginal.argmax(axis=1) for marginal in self._latent_marginals(X)]
        return states[0] if len(states) == 1 else np.stack(states, axis=1)

    def decode(self, X):
        """Most probable joint state of all latents (and of missing cells that bear on them) given each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of int, shape (n_samples,) or (n_samples, n_latents)
        """
        data = self._rows(X)
        names = self._need_latents()
        modes = queries.joint_mode(self._model, self._point, data, names, **self._limits())
        return modes[names[0]] if len(names) == 1 else np.stack([modes[name] for name in names], axis=1)

    def transform(self, X):
        """Posterior probabilities of all latents' states, side by side; names by `get_feature_names_out`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, total number of latent states)
        """
        return np.hstack(self._latent_marginals(X))

    def get_feature_names_out(self, input_features=None):
        """Names of the columns of `transform`: latent and state, as in h0_0, h0_1.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        names = [f"{name}_{state}" for name in self.latent_names_ for state in self._levels(name)]
        return np.asarray(names, dtype=object)

    def impute(self, X, *, return_proba=False):
        """X with each missing cell replaced by its most probable category given its row.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
        return_proba : bool, default=False
            Whether to return the posterior of the cells as well.

        Returns
        -------
        completed : array or DataFrame like X
        proba : dict of column to ndarray of shape (n_samples, n_categories)
            Only if `return_proba`: probabilities of each column's categories; an observed cell is certain.
        """
        data = self._rows(X)
        found = queries.marginals(self._model, self._point, data, data.names, **self._limits())
        codes = np.stack([found[name].argmax(axis=1) for name in data.names], axis=1)
        completed = self._decoded(codes, like=X)
        return (completed, {name: found[name] for name in data.names}) if return_proba else completed

    def query(self, targets, evidence: Mapping | None = None) -> LabeledTable:
        """Joint probability of some nodes given states of others, under the predictive distribution of a new row.

        Parameters
        ----------
        targets : node or list of nodes
            Columns or latents.
        evidence : mapping of node to state, default=None
            Categories of columns, numbers of latents' states.

        Returns
        -------
        LabeledTable
            One axis per target; sums to one.

        Examples
        --------
        >>> from skvbem import VBDiscreteDAG
        >>> X = [["rain", "wet"], ["rain", "wet"], ["sun", "dry"], ["sun", "wet"]]
        >>> model = VBDiscreteDAG([("x0", "x1")], random_state=0).fit(X)
        >>> round(model.query("x0", {"x1": "wet"})["x0":"rain"], 3)
        0.6
        """
        check_is_fitted(self)
        known = self._model.position
        alone = isinstance(targets, Hashable) and targets in known
        targets = (targets,) if alone or isinstance(targets, str) else tuple(targets)
        evidence = dict(evidence or {})
        for node in (*targets, *evidence):
            if node not in known:
                raise ValueError(f"{node!r} is not a node of this network.{_network.did_you_mean(node, known)}")
        if not targets or len(set(targets)) < len(targets) or set(targets) & set(evidence):
            raise ValueError("query needs one or more targets, each named once and not also in the evidence.")
        codes = []
        for node, state in evidence.items():
            found = np.flatnonzero([level == state for level in self._levels(node).tolist()])
            if len(found) == 0:
                states = ", ".join(map(repr, self._levels(node).tolist()))
                raise ValueError(f"{state!r} is not a state of {node!r}, whose states are {states}.")
            codes.append(int(found[0]))
        row = Rows(tuple(evidence), np.array([codes], dtype=np.int32).reshape(1, len(codes)))
        if not np.isfinite(queries.log_likelihood(self._model, self._point, row, **self._limits())[0]):
            raise ValueError(f"The evidence {evidence!r} has probability 0 under this fit: nothing follows from it.")
        joint = queries.joint(self._model, self._point, row, targets, **self._limits())[0]
        return LabeledTable(joint, targets, tuple(self._levels(node) for node in targets))

    def sample(self, n_samples=1, random_state=None):
        """Rows drawn from the predictive distribution of a new row, and the latent states behind them.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState instance or None, default=None
            By default the estimator's own `random_state`.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        states : ndarray of int, shape (n_samples,) or (n_samples, n_latents)
        """
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or isinstance(n_samples, bool) or n_samples < 1:
            raise ValueError(f"The 'n_samples' parameter of sample must be an int >= 1. Got {n_samples!r} instead.")
        seed = check_random_state(self.random_state if random_state is None else random_state)
        rng = np.random.default_rng(seed.randint(0, 2**31 - 1, size=4))
        drawn = queries.sample(self._model, self._point, int(n_samples), rng)
        codes = np.stack([drawn[name] for name in self._encoder.names_], axis=1)
        states = [drawn[name] for name in self.latent_names_]
        latent = states[0] if len(states) == 1 else np.array(states, dtype=np.int64).reshape(len(states), n_samples).T
        return self._decoded(codes), latent

    def _decoded(self, codes: np.ndarray, like=None):
        """Codes as categories, in a DataFrame if `like` is one."""
        columns = [self._encoder.decode(codes[:, j], j) for j in range(codes.shape[1])]
        if hasattr(like, "columns") and hasattr(like, "assign"):  # pandas
            import pandas as pd

            series = {}
            for name, values in zip(like.columns, columns):
                dtype = like[name].dtype
                series[name] = pd.Series(values, index=like.index)
                if isinstance(dtype, pd.CategoricalDtype):
                    series[name] = series[name].astype(dtype)
            return pd.DataFrame(series, index=like.index)
        if hasattr(like, "with_columns"):  # polars
            return like.with_columns(
                **{name: type(like)({name: values.tolist()})[name].cast(like.schema[name])
                   for name, values in zip(like.columns, columns)}
            )  # fmt: skip
        kinds = {column.dtype.kind for column in columns}
        dtype = np.result_type(*columns) if kinds <= set("iuf") or len(kinds) == 1 else object
        completed = np.empty((len(codes), len(columns)), dtype=dtype)
        for j, column in enumerate(columns):
            completed[:, j] = column
        return completed

    # Reporting --------------------------------------------------------------------------------------------------------

    def summary(self, *, level=0.95):
        """All tables with their counts and, for VB, credible intervals, as a pandas DataFrame.

        Parameters
        ----------
        level : float, default=0.95
            Mass of the equal-tailed intervals of q(theta). VB posteriors are too narrow where states overlap: read them as
            a lower limit of the uncertainty.

        Returns
        -------
        pandas.DataFrame
            Columns node, given, state, probability, lower, upper (NaN for MAP and ML), expected_count.
        """
        check_is_fitted(self)
        concentration = self.posterior_ if self.method == "vb" else None
        return table_summary(self.structure_, self.tables_, self.counts_, concentration, level)

    def goodness_of_fit(self, X, sample_weight=None):
        r"""Fit indices that users of latent class models print first.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            G², X² and bivariate residuals use the rows without missing cells, the rest all rows.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        GoodnessOfFit
            log_likelihood (nats, at `tables_`), n_free_parameters, g2 and x2 against the saturated model with
            degrees_of_freedom, aic, bic, sabic and caic in the form -2 ln L + penalty (LOWER is better, the field's
            convention; the library's evidence scores are in nats, higher is better), entropy_r2 of each latent, and
            bivariate_residuals of each pair of columns (X² per degree of freedom; above 4 says the pair hangs together
            more than the model explains).
        """
        data = self._rows(X)
        weights = self._weights(sample_weight, len(data))
        if weights is not None:
            kept = weights > 0
            data, weights = Rows(data.names, data.codes[kept], weights[kept]), weights[kept]
        return fit_indices(self._model, self._point, data, self.latent_names_, self._limits())


def _inverse_temperatures(annealing) -> np.ndarray:
    if annealing is None:
        return np.zeros(0)
    values = np.asarray(annealing, dtype=float)
    if values.ndim != 1 or not np.all((values > 0) & (values <= 1)):
        raise ValueError(
            f"The 'annealing' parameter of VBDiscreteDAG must hold inverse temperatures in (0, 1]. Got {annealing!r} instead."
        )
    return values


def _refuse_saddle(model: DiscreteDAG, point: np.ndarray, columns: tuple) -> None:
    """A latent whose states all look alike stays so for ever: no run may start there."""
    layout = model.layout
    for node, k in model.position.items():
        alike = node not in columns and layout.cardinalities[k] > 1 and bool(layout.children[k])
        for child in layout.children[k]:
            table = layout.table(point, child)
            axis = layout.parents[child].index(k)
            first = table.take([0], axis=axis)
            alike = alike and bool(np.abs(table - first).max() < 1e-9)
        if alike:
            raise ValueError(
                f"The tables in 'init' make all states of {node!r} alike for its children: that is a saddle point, where "
                "every method stays for ever. Let some child's table differ between the states."
            )
