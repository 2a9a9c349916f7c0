"""`VBNetwork`: networks of categories, measurements and counts, with hidden nodes, fitted to incomplete data."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skvbem._arguments import check_count, check_flag
from skvbem._compat import Interval, StrOptions, keep_parameters
from skvbem._docstrings import share_texts
from skvbem.estimators.base import MAX_ITER, MAX_MEMORY, SHARED_CONSTRAINTS, TOL
from skvbem.estimators.latent_nodes import LatentNodesEstimator, as_columns
from skvbem.estimators.mixed_network import questions
from skvbem.estimators.mixed_network.fit_indices import fit_indices
from skvbem.estimators.mixed_network.kind import MixedNetworkKind
from skvbem.fitted.effects import Effect
from skvbem.fitted.normal_mixtures import NormalMixture
from skvbem.optima.tuning import EFFORTS
from skvbem.reading.output import as_fit_saw
from skvbem.reports.fit_indices import FitIndices
from skvbem.tables import LabeledTable


@share_texts
class VBNetwork(LatentNodesEstimator):
    r"""A Bayesian network of categories, measurements and counts, with hidden nodes anywhere above them.

    Columns of categories and latents are nodes with a table, as in `VBDiscreteDAG`. Columns of numbers are nodes with
    an emission, a Gaussian or Poisson distribution, say, for each joint state of their parents, as in `VBMixture` for
    each component. Measurements that are children of numbers are regressions on these, one for each joint state of
    their other parents: conditional Gaussian networks. A latent all of whose parents are numbers has a softmax
    regression on these. Answers in an order, as of `skvbem.emissions.Ordinal`, have an emission, and no children.
    Categories and counts have no parents that hold numbers. The lower bound on the log marginal likelihood has all its
    constants. Missing cells are summed out, rows are never dropped.

    Parameters
    ----------
    structure : DAG, (parent, child) edges, mapping child -> parents, networkx.DiGraph, DataFrame or str, default=None
        The graph over nodes and latents; None means one latent class with every node below it.
    latents : mapping of name to int, list of names, or int, default=None
        The hidden nodes and their numbers of states, as of `VBDiscreteDAG`. "number" in the place of a number of states
        stands for a latent that holds a number, such as a factor: normal given its parents, in units of its noise.
    emission : "auto", str, emission, mapping of str to columns or list of (name, emission, columns), default="auto"
        What columns hold, as of `VBMixture`; "auto" takes numbers for measurements. Each column is a node of its own,
        but for columns of numbers that a list names together: these are one node of that name. The remainder may be
        "auto", or left out by "drop".
    categories : "auto" or mapping of column to array-like, default="auto"
        Levels of columns of categories.
    prior : "auto", float, "bdeu", "bdla", "per_row" or mapping of node to these or to arrays, default="auto"
        Dirichlet concentrations of tables, as of `VBDiscreteDAG`. Priors of emissions are parameters of these. A
        `skvbem.emissions.Softmax` without columns is the prior of slopes of a latent whose parents are numbers, a
        `skvbem.emissions.Regression` with ``coefficient_precision_prior`` alone that of a latent that holds a number.
    %(equivalent_sample_size, covariates, method, map_basis)s
    n_init : int, default=10
        Number of starts, each around rows that are drawn.
    init : {"auto", "random"}, default="auto"
        Whether starts race, and parameters are drawn after the best of them; or every start is run to its end.
    %(search_effort, max_iter, tol, acceleration, handle_unknown, missing_values, max_table_cells)s
    max_memory : float, default=4e9
        Most bytes of all tables and indices of a fit, and of rows that are drawn.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.
    %(n_jobs)s
    warm_start : bool, default=False
        Whether to start where the last fit ended, if it was of the same network.
    verbose : int, default=0
        Whether to print the objective after every cycle.

    Attributes
    ----------
    %(lower_bound_, log_posterior_, lower_bounds_)s
    parameters_ : dict
        Tables of nodes under "tables", axes parents and node, and parameters of emissions by node, those of each joint
        state of the parents along the first axis.
    tables_, counts_ : dict of node to LabeledTable
        Probabilities of each node with a table, and how many rows are expected in each of its cells.
    %(coefficients_)s
    structure_ : DAG
        Nodes in the order latents, then nodes of columns.
    latent_names_ : tuple
        Latents with states.
    latent_numbers_ : tuple
        Latents that hold numbers.
    groups_ : dict of node to list of str
        Columns of each node with an emission.
    categories_ : dict of column to ndarray
    n_free_parameters_ : int
    restarts_ : Restarts
    latent_states_ : dict of latent to LatentStates
    %(n_iter_, converged_, n_samples_)s
    treewidth_ : int
        Treewidth of the widest part that had to be summed over.
    %(n_features_in_, feature_names_in_)s

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

    _kind = MixedNetworkKind()

    _parameter_constraints: ClassVar[dict] = {
        "structure": "no_validation",
        "latents": "no_validation",
        "emission": "no_validation",
        "categories": "no_validation",
        "prior": "no_validation",
        "equivalent_sample_size": [Interval(Real, 0, None, closed="neither")],
        "covariates": "no_validation",
        "init": [StrOptions({"auto", "random"})],
        "search_effort": [StrOptions({*EFFORTS})],
        "handle_unknown": [StrOptions({"warn", "missing", "error"})],
        "max_table_cells": [Interval(Integral, 1, None, closed="left")],
        **SHARED_CONSTRAINTS,
    }

    def __init__(
        self,
        structure=None,
        *,
        latents=None,
        emission="auto",
        categories="auto",
        prior="auto",
        equivalent_sample_size=1.0,
        covariates=None,
        method="vb",
        map_basis="natural",
        n_init=10,
        init="auto",
        search_effort="auto",
        max_iter=MAX_ITER,
        tol=TOL,
        acceleration=True,
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

    # Asking -----------------------------------------------------------------------------------------------------------

    def score_samples(self, X, *, interventions=None):
        """Log predictive density of each row, nats; what is missing is summed out.

        With ``method="vb"`` the exact average of p(row | theta) over q(theta); with MAP and ML that of the point found.

        %(X, interventions -> ndarray of shape (n_samples,))s
        """
        return questions.score_samples(self, X, interventions)

    def score_cells(self, X, *, interventions=None) -> np.ndarray:
        """Log predictive density of each cell given the rest of its row, nats: low where a cell does not fit its row.

        Densities of numbers are in the unit of their column, so that cells of one column are compared with each other.
        With ``method="vb"`` parents of observed numbers are summed out over 64 draws of the parameters, so that their
        scores have an error.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        interventions : array-like or str, default=None
            As in `fit`: which columns were set in each row.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            NaN of cells that are missing or were set, of covariates, and of numbers that cannot be summed out: parents
            of latents, and counts that explain numbers.

        Examples
        --------
        >>> import numpy as np
        >>> from skvbem import VBNetwork
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=100)
        >>> X = np.column_stack([x, x + 0.1 * rng.normal(size=100)])
        >>> X[7] = [1.0, -1.0]  # neither is far from its mean
        >>> scores = VBNetwork([("x0", "x1")]).fit(X).score_cells(X)
        >>> scores.argmin(axis=0).tolist()
        [7, 7]
        """
        check_is_fitted(self)
        return questions.score_cells(self, X, interventions)

    def _latent_marginals(self, X, interventions=None) -> list[np.ndarray]:
        return questions.latent_marginals(self, X, interventions)

    def _joint_modes(self, X) -> list[np.ndarray]:
        return questions.joint_modes(self, X)

    @property
    def latent_numbers_(self) -> tuple:
        """Latents that hold numbers."""
        check_is_fitted(self)
        return self._fitted_.latent_numbers

    def transform(self, X):
        """Posterior probabilities of all latents' states, then means of hidden numbers, side by side.

        Names are those of `get_feature_names_out`.

        %(X -> ndarray of shape (n_samples, n_latent_states + n_numbers))s
        """
        check_is_fitted(self)
        parts = [] if self.latent_numbers_ and not self.latent_names_ else self._latent_marginals(X)
        return np.hstack([*parts, self.latent_means(X)] if self.latent_numbers_ else parts)

    def get_feature_names_out(self, input_features=None):
        """Names of the columns of `transform`: latent and state, as in h0_0, then hidden numbers by their names.

        %(input_features -> ndarray of str)s
        """
        of_states = super().get_feature_names_out(input_features)
        return np.concatenate([of_states, np.array(self.latent_numbers_, dtype=object)])

    def latent_means(self, X, *, return_std=False, interventions=None):
        """Posterior means of hidden numbers given each row, such as scores of factors.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
        return_std : bool, default=False
            Whether to return posterior standard deviations, too.
        interventions : array-like or str, default=None
            As of `fit`.

        Returns
        -------
        means : ndarray of shape (n_samples, n_numbers)
            In the order of `latent_numbers_`. The unit is the standard deviation of a number given its parents.
        deviations : ndarray of shape (n_samples, n_numbers)
            Only if `return_std`.

        Raises
        ------
        ValueError
            If the network has no hidden numbers.

        Examples
        --------
        >>> import numpy as np
        >>> from skvbem import VBNetwork
        >>> rng = np.random.default_rng(0)
        >>> ability = rng.normal(size=100)
        >>> X = ability[:, None] + rng.normal(scale=0.3, size=(100, 3))
        >>> model = VBNetwork(latents={"ability": "number"}, random_state=0).fit(X)
        >>> means, deviations = model.latent_means(X, return_std=True)
        >>> float(np.corrcoef(means[:, 0], ability)[0, 1].round(2)), bool((deviations < 0.3).all())
        (0.99, True)
        """
        check_is_fitted(self)
        check_flag("return_std", "latent_means", return_std)
        means, deviations = questions.latent_means(self, X, interventions)
        return (means, deviations) if return_std else means

    def query(
        self, targets, evidence: Mapping | None = None, *, do: Mapping | None = None
    ) -> LabeledTable | NormalMixture:
        """Joint probability of some nodes given values of others, under the predictive distribution of a new row.

        A column of measurements has a density, a mixture of normal ones over draws of the parameters. Draws are
        weighted by the probability of the evidence under each.

        Parameters
        ----------
        targets : node or list of nodes
            Latents, or columns of categories; or one column of measurements.
        evidence : mapping of node to state, default=None
            Categories of columns, numbers that columns hold, and numbers of latents' states.
        do : mapping of node to state or number, default=None
            Nodes that are set from outside, and to what: they lose their parents. The answer is causal if the edges
            are.

        Returns
        -------
        LabeledTable or NormalMixture
            One axis per target; sums to one. A mixture has the mean, the standard deviation, intervals and the
            density, in the unit of the column.

        Raises
        ------
        ValueError
            If a node or a state is unknown, a node has two parts in the question, or the evidence is impossible.

        Warns
        -----
        PosteriorWarning
            If data cannot say what setting nodes does, since latents may have a hand in it.

        Examples
        --------
        >>> import numpy as np
        >>> from skvbem import VBNetwork
        >>> X = np.array([[0.0, 0.0], [0.1, 0.0], [5.0, 1.0], [5.1, 1.0]])
        >>> options = {"emission": {"gaussian": [0], "categorical": [1]}, "random_state": 0}
        >>> model = VBNetwork([("x1", "x0")], latents=None, **options).fit(X)
        >>> model.query("x1", {"x0": 4.9})["x1":1.0] > 0.7
        True
        >>> 3 < model.query("x0", {"x1": 1.0}).mean < 6
        True
        """
        check_is_fitted(self)
        of_number = questions.number(self, targets, evidence, do)
        return questions.query(self, targets, evidence, do) if of_number is None else of_number

    def effect(self, cause, outcome, *, change=None, state=None, n_draws=1000) -> Effect:
        """The total effect of one node on another, with its uncertainty: along all directed paths, as if it were set.

        For a number it is the change of the expected outcome with one unit more of the cause. For a category it is the
        change from one of its states to another. Where coefficients depend on categories, it is averaged over these.
        It is causal if the edges are.

        Parameters
        ----------
        cause : node
            A column of numbers, of categories, or a latent.
        outcome : node
            The same. For a category it is the probability of a `state`.
        change : pair of states, default=None
            The states that a category changes from and to; by default the first and the second of two.
        state : state of the outcome, default=None
            If it is a category.
        n_draws : int, default=1000
            Draws of the parameters, the same in every call. A fit by MAP or ML has the effect at its point.

        Returns
        -------
        Effect
            With `mean`, `standard_deviation`, `interval` and `probability_positive`.

        Raises
        ------
        ValueError
            If a node or a state is unknown, or the effect is no difference of expected numbers or probabilities.

        Warns
        -----
        PosteriorWarning
            If data cannot say what the effect is, since latents may have a hand in it.

        Examples
        --------
        >>> import numpy as np
        >>> from skvbem import VBNetwork
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=100)
        >>> y = 2 * x + rng.normal(size=100)
        >>> z = y - x + rng.normal(size=100)
        >>> edges = [("x0", "x1"), ("x0", "x2"), ("x1", "x2")]
        >>> effect = VBNetwork(edges).fit(np.column_stack([x, y, z])).effect("x0", "x2")
        >>> low, high = effect.interval(0.95)
        >>> bool(low < 1.0 < high), effect.probability_positive > 0.99
        (True, True)
        """
        check_is_fitted(self)
        return questions.effect(self, cause, outcome, change, state, n_draws)

    def fit_indices(self, X, sample_weight=None) -> FitIndices:
        """Fit indices of a network of measurements alone by maximum likelihood, as of structural equation models.

        Chi-square is twice the difference of log likelihoods to the saturated model, any covariance of the columns.
        With missing cells both are those of what was observed. Parameters that no covariance tells apart, such as the
        slopes of a hidden number with two children and no parents, count once. There are p, RMSEA with an interval,
        CFI, TLI, SRMR, AIC and BIC. After another `method` the network is fitted by maximum likelihood, too.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            The data of the fit.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        FitIndices

        Raises
        ------
        ValueError
            If X is not the data of the fit, or the network has categories. Or if no covariance matrix is most likely,
            since rows are too few, or columns are functions of each other.

        Examples
        --------
        >>> import numpy as np
        >>> from skvbem import VBNetwork
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=200)
        >>> y = x + rng.normal(size=200)
        >>> X = np.column_stack([x, y, y + rng.normal(size=200)])
        >>> indices = VBNetwork([("x0", "x1"), ("x1", "x2")]).fit(X).fit_indices(X)
        >>> indices.degrees_of_freedom, indices.p_value > 0.01
        (1, True)
        """
        check_is_fitted(self)
        return fit_indices(self, X, sample_weight)

    def impute(self, X, *, fill="auto", return_proba=False, random_state=None):
        """X with missing cells filled: numbers by predictive means given the row, categories by the most probable ones.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
        %(impute.fill)s
        return_proba : bool, default=False
            Whether to return the posterior of cells of categories, one by one, as well.
        %(impute.random_state)s

        Returns
        -------
        completed : ndarray or DataFrame
            X in its own container; observed cells are untouched.
        proba : dict of column to ndarray of shape (n_samples, n_categories)
            Only if `return_proba`: probabilities of categories; an observed cell is certain.
        """
        return questions.impute(self, X, fill, return_proba, random_state)

    def sample(self, n_samples=1, random_state=None, *, given=None):
        """Rows drawn from the predictive distribution of a new row, and the latent states behind them.

        Parameters
        ----------
        %(sample.n_samples, sample.random_state)s
        given : mapping of node to state or number, pandas Series, or table like X, default=None
            Categories and numbers of columns, and states of latents, that all rows have. The others are drawn given
            these. With `covariates` they are among these; or they are those of the rows of a table.

        Returns
        -------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            In the container of the X that was fitted, with its names.
        states : ndarray of int, shape (n_samples,) or (n_samples, n_latents)

        Raises
        ------
        ValueError
            If a node or a state is unknown, or what is given is impossible.
        """
        check_is_fitted(self)
        check_count("n_samples", "sample", n_samples)
        fitted = self._fitted_
        self._check_memory(f"{n_samples:.3g} rows drawn", int(n_samples) * 4 * len(fitted.model.dag.nodes), "fewer")
        columns, states = questions.sample(self, int(n_samples), random_state, given)
        return as_fit_saw(self, columns), as_columns(states) if states else np.empty(
            (len(columns[0]), 0), dtype=np.int64
        )
