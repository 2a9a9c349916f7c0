"""`VBDiscreteDAG`: discrete Bayesian networks with hidden nodes, fitted to incomplete categorical data."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skvbem._arguments import check_count, check_flag
from skvbem._compat import Interval, StrOptions, keep_parameters
from skvbem._docstrings import share_texts
from skvbem.estimators.base import MAX_ITER, MAX_MEMORY, SHARED_CONSTRAINTS, TOL
from skvbem.estimators.discrete_dag.driven import DrivenNetworkKind
from skvbem.estimators.latent_nodes import LatentNodesEstimator, as_columns
from skvbem.estimators.mixed_network import questions
from skvbem.estimators.network.kind import NetworkKind
from skvbem.estimators.two_kinds import TwoKinds
from skvbem.fitted.asking import code_of, mapping_of
from skvbem.fitted.bayesian_network import Network
from skvbem.fitted.fills import check_fill
from skvbem.fitted.mixed_network import FittedMixedNetwork
from skvbem.fitting.fit import generator_of, question
from skvbem.models.network import queries
from skvbem.optima.tuning import EFFORTS
from skvbem.reading.output import as_fit_saw, filled
from skvbem.tables import LabeledTable


@share_texts
class VBDiscreteDAG(TwoKinds, LatentNodesEstimator):
    r"""A discrete Bayesian network with hidden nodes anywhere, fitted to incomplete data.

    Every table has a Dirichlet prior; q(theta) is a product of Dirichlet distributions, and q of the hidden variables
    keeps the joint of each row. The lower bound on the log marginal likelihood has all its constants, so bounds compare
    across structures and numbers of states. Missing cells are summed out, rows are never dropped.

    Parameters
    ----------
    structure : DAG, edges (parent, child), mapping child -> parents, networkx graph, UndirectedGraph, frame or str
        The graph over columns of X and latents; a string is a model string such as ``"[h][a|h][b|a:h]"``, a DataFrame
        an adjacency matrix (row = parent). Columns that it does not name are nodes without edges. None means one latent
        class with every column below it. Columns of an array are named x0, x1, ...
        A `networkx.Graph` or `UndirectedGraph` is the chordal graph of a decomposable Markov network; it needs a prior
        under which directions do not matter, ``prior="bdeu"``.
    latents : mapping of name to int, list of names, or int, default=None
        The hidden nodes and their numbers of states (2 where only names are given). An int is the number of states of
        one latent named h0. By default none if a structure is given, else ``{"h0": 2}``.
    categories : "auto", list of array-likes or mapping of column to array-like, default="auto"
        Levels of each column and their order. "auto" takes the levels declared by a pandas Categorical or polars Enum,
        else the values that occur, in increasing order.
    prior : "auto", float, "bdeu", "bdla", "per_row" or mapping of node to these or to arrays, default="auto"
        Dirichlet concentrations: a number per cell; "bdeu" divides `equivalent_sample_size` among all cells of a node's
        table, "per_row" among the cells of each row; an array has axes ``(*structure_.parents(node), node)``. Under
        "bdla" (locally averaged) each table has an equivalent sample size of its own, 1/4, 1, 4, 16, 64 or 256, which
        is hidden; for ``method="vb"``. "auto" is 1.0, but "bdla" of candidates of a `StructureSearchCV` that searches a
        `DAGSpace` without latents by their evidence.
    %(equivalent_sample_size, covariates)s
    ties : mapping of node to node, or list of groups of nodes, default=None
        Nodes that share one table. A mapping gives each node the table of the node it is mapped to; a group shares the
        table of its first node. Such nodes have the same states. Their parents have the same states, too, and stand
        for each other in the order of ``structure_``; families ``(*parents, node)`` instead of nodes say another
        order. `DynamicDAG` makes ties.
    %(method)s
    map_basis : {"natural", "probability"}, default="natural"
        Coordinates in which ``method="map"`` takes the mode. The natural (softmax) mode always exists; in the
        probability basis a prior of 1 gives the maximum likelihood.
    inference : {"exact", "structured", "mean_field"} or list of lists of latents, default="exact"
        What q of a row's hidden variables is. "exact" keeps their joint. "structured" does where this fits
        `max_table_cells`, and is a product over clusters of hidden nodes where it does not; "mean_field" is a product
        over all of them; a list gives the clusters. A product has a looser bound, never an invalid one: see
        :doc:`/user_guide/approximate_inference`.
    %(n_init)s
    init : {"auto", "random"}, Network or mapping of node to table, default="auto"
        "auto" lets starts race (tables drawn uniformly): one that cannot reach the best any more is stopped. Once they
        have ended, moves join the race (states of a latent are joined, divided, or share their rows anew) until a few
        rounds have found nothing better.
        "random" runs every start to the end. A mapping gives tables (conditional probabilities, axes as for `prior`) to
        start from; nodes that it does not name start uniform. A Network, or LabeledTables as in `tables_`, are matched
        by the names of nodes and categories, and by the numbers of latents' states.
    %(search_effort, max_iter, tol, acceleration)s
    annealing : array-like of float, default=None
        Inverse temperatures at which one annealed step each is taken before the run [Beal]_ (2.118, 2.119), such as
        ``np.linspace(0.1, 1, 20)``.
    learn_prior : bool, default=False
        Whether each node's prior is multiplied by the strength (between 1e-3 and 1e3) that maximizes the bound [Beal]_
        (2.79). The bound is then one given the optimized prior: it favors models with more nodes a little.
    %(handle_unknown, missing_values, max_table_cells)s
    max_memory : float, default=4e9
        Most bytes of all tables and indices of a fit, and of rows that are drawn.
    %(random_state, n_jobs)s
    warm_start : bool, default=False
        Whether to start where the last fit ended rather than from `n_init` new starts, if it was of the same network;
        without annealing.
    verbose : int, default=0
        Whether to print the objective after every cycle.

    Attributes
    ----------
    %(lower_bound_)s
    log_posterior_, log_likelihood_ : float
        The objective of ``method="map"`` (log likelihood plus log prior density in `map_basis`) and ``method="ml"``.
    log_posterior_bound_, log_likelihood_bound_ : float
        Lower bounds of these, in their places where q of the hidden variables is a product.
    inference_ : dict of latent to tuple of nodes
        The cluster of hidden nodes that each latent is in, itself among them.
    row_gap_ : float or None
        What one exact E step at the parameters found would gain, nats: 0.0 where inference is exact, None where such a
        step does not fit. Never what a fit by exact inference would gain, which may be far more.
    %(lower_bounds_)s
    posterior_ : dict of node to LabeledTable
        Dirichlet concentrations of q(theta), prior + expected counts (``method="vb"``). Under ``prior="bdla"``
        q(theta) is a mixture of Dirichlet distributions, of which these are the mean.
    tables_ : dict of node to LabeledTable
        Conditional probabilities: posterior means (VB) or the point found (MAP, ML).
    counts_ : dict of node to LabeledTable
        Expected counts; of tied tables, those of all their nodes together.
    prior_ : dict of node to LabeledTable
        Prior concentrations, as learned if `learn_prior`; under ``prior="bdla"`` as expected under q.
    %(coefficients_)s
    parameters_ : dict
        With `covariates`: "tables", and of each driven node its "intercepts" and "coefficients", ndarrays
        (n_states,) and (n_states, n_covariates).
    structure_ : DAG
        Nodes in the order latents, then columns. For an undirected structure, one directed graph that says the same:
        nodes with many missing cells have no children as far as possible.
    cliques_ : tuple of tuple
        The cliques of the network, if the structure was given as an undirected graph.
    separators_ : dict of tuple to int
        The separators between cliques, with their multiplicities, if the structure was undirected.
    network_ : Network
        `structure_`, the states of its nodes and `tables_` as one value, made anew when it is asked for.
    latent_names_ : tuple
    categories_ : list of ndarray
        Categories of each column.
    n_free_parameters_ : int
        Cells less one per distribution, over all tables.
    restarts_ : Restarts
        The objective of every start, how many met the best, and the moves that led on from there.
    latent_states_ : dict of latent to LatentStates
        Expected rows in each state; the states in use, empty, and duplicates of each other.
    %(n_iter_, converged_, n_samples_)s
    n_rows_all_missing_ : int
        Rows without any observed cell; they say nothing, and count in no n.
    treewidth_ : int
        Treewidth of the widest part that had to be summed over.
    %(n_features_in_, feature_names_in_)s

    Notes
    -----
    A fit that raises or is interrupted leaves the estimator as it was. Parameters set after a fit act from the next fit
    on; only `max_table_cells`, `max_memory` and the `random_state` of `sample` act at once. Do not fit one estimator
    from two threads: the last to finish prevails.

    References
    ----------
    .. [Beal] M. J. Beal (2003), Variational Algorithms for Approximate Bayesian Inference, PhD thesis, chapter 2.

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

    _kinds = NetworkKind(), DrivenNetworkKind()
    _chosen_by = "covariates"

    _parameter_constraints: ClassVar[dict] = {
        "structure": "no_validation",
        "latents": "no_validation",
        "categories": "no_validation",
        "prior": "no_validation",
        "equivalent_sample_size": [Interval(Real, 0, None, closed="neither")],
        "covariates": "no_validation",
        "ties": "no_validation",
        "inference": [StrOptions({"exact", "structured", "mean_field"}), list, tuple],
        "init": [StrOptions({"auto", "random"}), Mapping, Network],
        "search_effort": [StrOptions({*EFFORTS})],
        "annealing": ["array-like", None],
        "learn_prior": ["boolean"],
        "handle_unknown": [StrOptions({"warn", "missing", "error"})],
        "max_table_cells": [Interval(Integral, 1, None, closed="left")],
        **SHARED_CONSTRAINTS,
    }

    def __init__(
        self,
        structure=None,
        *,
        latents=None,
        categories="auto",
        prior="auto",
        equivalent_sample_size=1.0,
        covariates=None,
        ties=None,
        method="vb",
        map_basis="natural",
        inference="exact",
        n_init=10,
        init="auto",
        search_effort="auto",
        max_iter=MAX_ITER,
        tol=TOL,
        acceleration=True,
        annealing=None,
        learn_prior=False,
        handle_unknown="warn",
        missing_values=np.nan,
        max_table_cells=2**24,
        max_memory=MAX_MEMORY,
        random_state=None,
        n_jobs=None,
        warm_start=False,
        verbose=0,
    ):
        keep_parameters(self, locals())

    @property
    def network_(self) -> Network:
        """The fitted tables as a Network, which `write_bif` writes and `init` takes."""
        check_is_fitted(self)
        if self._is_driven:
            raise AttributeError(
                f"A {type(self).__name__} with 'covariates' has no 'network_': a Network holds tables alone. See "
                "'tables_' and 'coefficients_'."
            )
        return self._fitted_.network()

    # Asking -----------------------------------------------------------------------------------------------------------

    @property
    def _is_driven(self) -> bool:
        """True if the fit has covariates."""
        return isinstance(self.fitted, FittedMixedNetwork)

    def _ask(self, query, X, *args, interventions=None):
        """The answer of a function of `skvbem.models.network.queries` about the rows of X."""
        network, reading = question(self, X, interventions=interventions)
        return query(network.model, network.point, reading.rows, *args, **self._kind.limits(self))

    def _need_latents(self) -> tuple:
        check_is_fitted(self)
        if not self.latent_names_:
            raise ValueError(
                f"This {type(self).__name__} has no latents to predict. Use 'query' or 'impute' for its columns, or "
                "declare latents."
            )
        return self.latent_names_

    def score_samples(self, X, *, interventions=None):
        """Log predictive probability of each row, nats; what is missing is summed out.

        With ``method="vb"`` the exact average of p(row | theta) over q(theta), which sums to one over all rows; with
        MAP and ML that of the point found. A row that is impossible scores -inf. With tied tables a row may be in one
        table several times: then it is p(row | theta) at posterior means, which sums to one as well, but is no exact
        average. Where `inference_` divides what is hidden in a row, it is a lower bound.

        %(X, interventions -> ndarray of shape (n_samples,))s
        """
        if self._is_driven:
            return questions.score_samples(self, X, interventions)
        return self._ask(queries.log_likelihood, X, interventions=interventions)

    def _latent_marginals(self, X, interventions=None) -> list[np.ndarray]:
        latents = self._need_latents()
        if self._is_driven:
            return questions.latent_marginals(self, X, interventions)
        return list(self._ask(queries.marginals, X, latents, interventions=interventions).values())

    def _joint_modes(self, X) -> list[np.ndarray]:
        latents = self._need_latents()
        if self._is_driven:
            return questions.joint_modes(self, X)
        return list(self._ask(queries.joint_mode, X, latents).values())

    def impute(self, X, *, fill="auto", return_proba=False, random_state=None):
        """X with missing cells replaced by the most probable categories given their rows, or by draws.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
        %(impute.fill)s
        return_proba : bool, default=False
            Whether to return the posterior of the cells, one by one, as well.
        %(impute.random_state)s

        Returns
        -------
        completed : ndarray or DataFrame
            X in its own container and data types; observed cells are untouched.
        proba : dict of column to ndarray of shape (n_samples, n_categories)
            Only if `return_proba`: probabilities of each column's categories; an observed cell is certain.
        """
        if self._is_driven:
            return questions.impute(self, X, fill, return_proba, random_state)
        check_flag("return_proba", "impute", return_proba)
        check_fill(fill)
        network, reading = question(self, X)
        rng = generator_of(self, random_state) if fill == "draw" else None
        codes, probabilities = network.imputed(reading.rows, fill, rng, **self._kind.limits(self))
        modes = [network.encoder.decode(column, j) for j, column in enumerate(codes.T)]
        completed = filled(X, reading.rows.codes < 0, modes)
        return (completed, probabilities) if return_proba else completed

    def query(self, targets, evidence: Mapping | None = None, *, do: Mapping | None = None) -> LabeledTable:
        """Joint probability of some nodes given what is known of others, under the predictive distribution of a row.

        Parameters
        ----------
        targets : node or list of nodes
            Columns or latents.
        evidence : mapping of node to state, or to likelihoods, default=None
            Categories of columns, numbers of latents' states. Likelihoods, a mapping of states to numbers or a list of
            one number for each state, say how much better what was observed fits one state than another, in any unit.
        %(do)s

        Returns
        -------
        LabeledTable
            One axis per target; sums to one.

        Raises
        ------
        ValueError
            If a node or a state is unknown, a node has two parts in the question, or the evidence is impossible.

        Warns
        -----
        PosteriorWarning
            If the effect of `do` is not identified: if hidden nodes leave open what it is, however many rows there are
            [SP06], [SP06a].

        Examples
        --------
        >>> from skvbem import VBDiscreteDAG
        >>> X = [["rain", "wet"], ["rain", "wet"], ["sun", "dry"], ["sun", "wet"]]
        >>> model = VBDiscreteDAG([("x0", "x1")], random_state=0).fit(X)
        >>> round(model.query("x0", {"x1": "wet"})["x0":"rain"], 3)
        0.6

        Whoever wets the street makes no rain. Drops on one window are three times as likely in rain:

        >>> round(model.query("x0", do={"x1": "wet"})["x0":"rain"], 3)
        0.5
        >>> round(model.query("x0", {"x0": {"rain": 3, "sun": 1}})["x0":"rain"], 3)
        0.75
        """
        check_is_fitted(self)
        if self._is_driven:
            self._refuse_do(do)
            return questions.query(self, targets, evidence)
        return self._fitted_.asked(self._kind.limits(self)).query(targets, evidence, do)

    def marginals(self, evidence: Mapping | None = None, *, do: Mapping | None = None) -> dict[Hashable, LabeledTable]:
        """Probabilities of every node given what is known of some, under the predictive distribution of a row.

        Parameters
        ----------
        evidence : mapping of node to state, or to likelihoods, default=None
            As `query` takes it.
        %(do)s

        Returns
        -------
        dict of node to LabeledTable
            All columns and latents; what was observed or set is certain.

        Raises
        ------
        ValueError
            If a node or a state is unknown, a node is both seen and set, or the evidence is impossible.

        Warns
        -----
        PosteriorWarning
            If the effect of `do` is not identified, as in `query`.

        Examples
        --------
        >>> from skvbem import VBDiscreteDAG
        >>> X = [["rain", "wet"], ["rain", "wet"], ["sun", "dry"], ["sun", "wet"]]
        >>> model = VBDiscreteDAG([("x0", "x1")], random_state=0).fit(X)
        >>> round(model.marginals({"x1": "wet"})["x0"]["x0":"rain"], 3)
        0.6
        """
        check_is_fitted(self)
        if self._is_driven:
            self._refuse_do(do)
            return questions.marginals(self, evidence)
        return self._fitted_.asked(self._kind.limits(self)).marginals(evidence, do)

    def _refuse_do(self, do) -> None:
        if do is not None and not (isinstance(do, Mapping) and not do):
            raise ValueError(
                f"A {type(self).__name__} with 'covariates' takes no 'do': effects of nodes that are set are found "
                "from tables alone, and some of its nodes have regressions."
            )

    def sample(self, n_samples=1, random_state=None, *, given=None):
        """Rows drawn from the predictive distribution of a new row, and the latent states behind them.

        Parameters
        ----------
        %(sample.n_samples, sample.random_state)s
        given : mapping of node to state, pandas Series, or table like X, default=None
            States of columns and latents that all rows have. The others are drawn given these, exactly. With
            `covariates` they are among these; or they are those of the rows of a table.

        Returns
        -------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            Categories, in the container of the X that was fitted, with its names.
        states : ndarray of int, shape (n_samples,) or (n_samples, n_latents)
            States of the latents.

        Raises
        ------
        ValueError
            If a node or a state is unknown, or what is given is impossible.
        """
        check_is_fitted(self)
        check_count("n_samples", "sample", n_samples)
        if self._is_driven:
            columns, states = questions.sample(self, int(n_samples), random_state, given)
            empty = np.empty((len(columns[0]), 0), dtype=np.int64)
            return as_fit_saw(self, columns), as_columns(states) if states else empty
        network, n = self._fitted_, int(n_samples)
        numbers = n * (len(network.model.dag.nodes) + 2 * max(network.model.layout.cardinalities))
        self._check_memory(f"{n_samples:.3g} rows drawn", numbers, "fewer at a time")
        rng = generator_of(self, random_state)
        codes = {node: code_of(node, state, network.levels) for node, state in mapping_of("given", given).items()}
        if codes:
            drawn = queries.sample_given(network.model, network.point, codes, n, rng, **self._kind.limits(self))
        else:
            drawn = queries.sample(network.model, network.point, n, rng)
        columns = [network.encoder.decode(drawn[name], j) for j, name in enumerate(network.encoder.names_)]
        states = [drawn[name] for name in self.latent_names_]
        return as_fit_saw(self, columns), as_columns(states) if states else np.empty((n, 0), dtype=np.int64)
