"""Networks as classifiers: the class is a column, and what is asked is its posterior."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, count
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from skvbem._arguments import is_collection, is_option, is_whole
from skvbem._arithmetic import ArithmeticMixin
from skvbem._compat import Interval, StrOptions, fit_context, keep_parameters
from skvbem._docstrings import share_texts
from skvbem._names import did_you_mean, first_few
from skvbem._numerics import log_rising
from skvbem.emissions import EmissionSpecification, Gaussian
from skvbem.emissions.registry import FOR_CATEGORIES, FOR_NUMBERS
from skvbem.emissions.specification import BY_COLUMN
from skvbem.errors import StructureError, together
from skvbem.estimators.mixed_network.vb_network import VBNetwork
from skvbem.fitting.fit import read
from skvbem.graphs.dag import DAG
from skvbem.reading.categories import categories_among
from skvbem.reading.column_groups import ColumnGroups, ColumnOptions
from skvbem.reading.mixed_network import nodes_of
from skvbem.reading.names import check_names
from skvbem.reading.tables import Column, Table, read_table


@share_texts
class VBClassifier(ArithmeticMixin, ClassifierMixin, BaseEstimator):
    """Class probabilities from a Bayesian network of features and class, gaps in the features included.

    The joint density of class and features is that of a `VBNetwork`, averaged over q(theta). The class probabilities of
    a row follow by Bayes' rule from the features that are observed in it.

    Parameters
    ----------
    structure : {"naive", "tan"}, DAG, mapping of child to parents or iterable of (parent, child), default="naive"
        "naive" makes the class the one parent of each feature. "tan" adds edges between features of categories where
        these raise the evidence: a forest, found from rows in which both are observed. Any other network names the
        class as `class_node` says, and its hidden nodes in `latents`. Edges between measurements make these regressions
        in each class.
    latents : mapping of latent to int, or list of latents, default=None
        Hidden nodes of a structure that is given, and their numbers of states. "number" in the place of a number of
        states stands for a latent that holds a number, as in `VBNetwork`.
    class_node : str, default="class"
        The name of the class in a structure, which no column may have.
    emission : "auto", str, mapping of str to columns, emission or list of (name, emission, columns), default="auto"
        What columns hold, as in `VBNetwork`: by default numbers are Gaussian, words and truth values categories. Under
        "auto" all numbers below the class are one node, "measurements", independent given the class: the model of a
        node for each column, which any other value makes.
    categories : "auto" or mapping of column to array-like, default="auto"
        Levels of columns of categories.
    prior : float, "bdeu", "per_row" or mapping of node to prior, default=1.0
        Dirichlet concentrations of tables. A mapping has them by node, with those of latents that hold numbers, as in
        `VBNetwork`.
    equivalent_sample_size : float, default=1.0
        Total of "bdeu" and "per_row" priors, and of the prior by which "tan" chooses edges, in rows of data.
    %(method)s
    n_init : int, default=10
        Number of starts, where something is hidden.
    %(max_iter)s
    tol : float, default=1e-5
        A start has converged when the gain still to come is below this, in total nats.
    %(handle_unknown, missing_values)s
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.
    %(n_jobs)s

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    network_ : VBNetwork
        As fitted to features and class; its states of the class are numbers of `classes_`. It answers everything else:
        queries, rows drawn, evidence, reports.
    structure_ : DAG
    %(n_iter_, n_features_in_, feature_names_in_)s

    See Also
    --------
    VBNetwork, VBDiscreteDAG : The same networks, with no column that is the class.

    Notes
    -----
    The joint density is fitted, not that of the class alone. A classifier that is fitted to predict, such as logistic
    regression or boosted trees, assumes less; it is often better where cells are complete and rows are many.

    Examples
    --------
    >>> from skvbem import VBClassifier
    >>> from skvbem.datasets import load_zoo
    >>> X, y = load_zoo(return_X_y=True, as_frame=True)
    >>> model = VBClassifier("tan", emission="categorical").fit(X, y)
    >>> model.predict_proba(X).shape == (len(X), len(model.classes_))
    True
    >>> model.score(X, y) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "structure": "no_validation",
        "latents": "no_validation",
        "class_node": [str],
        "emission": "no_validation",
        "categories": "no_validation",
        "prior": [Interval(Real, 0, None, closed="neither"), StrOptions({"bdeu", "per_row"}), dict],
        "equivalent_sample_size": [Interval(Real, 0, None, closed="neither")],
        "method": [StrOptions({"vb", "map", "ml"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "handle_unknown": [StrOptions({"warn", "missing", "error"})],
        "missing_values": "no_validation",
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        structure="naive",
        *,
        latents=None,
        class_node="class",
        emission="auto",
        categories="auto",
        prior=1.0,
        equivalent_sample_size=1.0,
        method="vb",
        n_init=10,
        max_iter=10_000,
        tol=1e-5,
        handle_unknown="warn",
        missing_values=np.nan,
        random_state=None,
        n_jobs=None,
    ):
        keep_parameters(self, locals())

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Fit the network of features and class.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            Missing cells are summed out.
        y : array-like of shape (n_samples,)
            The class of each row.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        self
        """
        owner = type(self).__name__
        table = read_table(X, owner)
        if y is None:
            raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
        y = column_or_1d(y, warn=True)
        check_consistent_length(np.empty(table.n_samples), y)
        check_classification_targets(y)
        if self.class_node in table.names:
            raise ValueError(
                f"X has a column {self.class_node!r}, which is the name of the class in this {owner}. Leave it out of "
                "X, or give another 'class_node'."
            )
        classes, codes = np.unique(y, return_inverse=True)
        whole = _with_class(table, self.class_node, codes, len(classes))
        names = ("latents", "categories", "prior", "equivalent_sample_size", "method", "n_init", "max_iter", "tol")
        names = (*names, "handle_unknown", "missing_values", "random_state", "n_jobs")
        network = VBNetwork(**{name: getattr(self, name) for name in names})
        with together():
            network.set_params(emission=self._emission(table))
            reading = read(network, whole, sample_weight=sample_weight)
            network.set_params(structure=self._structure(reading)).fit(reading)
        for name in ("n_features_in_", "feature_names_in_"):
            vars(self).pop(name, None)
        vars(self).update(table.names_of_fit())
        self.classes_, self.network_ = classes, network
        self.structure_, self.n_iter_ = network.structure_, network.n_iter_
        return self

    def _emission(self, table: Table) -> Any:
        """The emissions of features and class; "auto" is resolved, with warnings that know features alone."""
        if not is_option(self.emission, "auto"):
            return _emission_with_class(self.emission, table, self.class_node)
        categories = categories_among(self.categories, table.names)
        how = {"missing_values": self.missing_values, "handle_unknown": self.handle_unknown}
        groups, _ = ColumnGroups.learned(table, ColumnOptions(type(self).__name__, categories=categories, **how))
        columns = {group.name: list(group.columns) for group in groups.groups}
        if is_option(self.structure, "naive", "tan") and len(columns.get(FOR_NUMBERS, ())) > 1:
            return _with_one_node_of_numbers(columns, {*table.names, self.class_node}, table.n_columns)
        return _emission_with_class(columns, table, self.class_node)

    def _structure(self, reading: Any):
        """The network as `VBNetwork` takes it."""
        if not is_option(self.structure, "naive", "tan"):
            if isinstance(self.structure, str) or self.structure is None:
                raise ValueError(
                    f"The 'structure' parameter of {type(self).__name__} must be 'naive', 'tan', or a network that "
                    f"names the class {self.class_node!r}. Got {self.structure!r} instead."
                    + did_you_mean(self.structure or "", ("naive", "tan"))
                )
            dag = DAG.coerce(self.structure)
            if self.class_node not in dag.nodes:
                raise StructureError(
                    f"The 'structure' parameter of {type(self).__name__} has no node {self.class_node!r}, the class, "
                    f"so that features would say nothing of it. Add an edge from {self.class_node!r}, or give "
                    f"'class_node' the name that the class has there. Its nodes: {first_few(dag.nodes) or 'none'}."
                )
            return dag
        if self.latents is not None:
            raise ValueError(
                f"latents are hidden nodes of a structure that is given. structure={self.structure!r} has none: give "
                "the network, or leave 'latents' out."
            )
        nodes, n_categories = nodes_of(reading.columns)
        edges = [(self.class_node, node) for node in nodes if node != self.class_node]
        return edges + (self._tree(reading, n_categories) if self.structure == "tan" else [])

    def _tree(self, reading: Any, n_categories: Mapping) -> list[tuple[str, str]]:
        """Edges between features of categories."""
        ((values, weight),) = reading.blocks
        of_groups = [(g.names, of) for g, of in zip(reading.columns.groups, values) if g.specification.has_table]
        names = [name for names, _ in of_groups for name in names]
        codes = np.concatenate([codes for _, codes in of_groups], axis=1).astype(np.int64)
        place = names.index(self.class_node)
        features = [k for k in range(len(names)) if k != place]
        return augmenting_edges(
            [names[k] for k in features],
            codes[:, features],
            [n_categories[names[k]] for k in features],
            codes[:, place],
            n_categories[self.class_node],
            weight=np.ones(len(codes)) if weight is None else weight,
            total=self.equivalent_sample_size,
        )

    def predict_proba(self, X):
        """Probability of each class, given the observed features of each row.

        %(rows.X -> ndarray of shape (n_samples, n_classes))s
            Columns in the order of `classes_`. A row that is impossible in every class has the probabilities of an
            empty row.
        """
        check_is_fitted(self)
        table = read_table(X, type(self).__name__)
        check_names(table, self)
        network, fitted = self.network_, self.network_.fitted
        unknown = np.full(table.n_samples, -1)
        whole = _with_class(table, self.class_node, unknown, len(self.classes_))
        limits = {"max_table_cells": network.max_table_cells, "max_memory": network.max_memory}
        return fitted.predictive.posteriors(fitted.rows(fitted.groups.values(whole)), [self.class_node], **limits)

    def predict_log_proba(self, X):
        """Log probability of each class, nats; see `predict_proba`.

        %(rows.X -> ndarray of shape (n_samples, n_classes))s
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X):
        """The most probable class of each row.

        %(rows.X -> ndarray of shape (n_samples,))s
        """
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _with_class(table: Table, name: str, codes: np.ndarray, n_classes: int) -> Table:
    """A table with a last column of categories, the codes of classes, -1 where it is not known."""
    of_class = Column(codes, None, list(range(n_classes)))
    n_features = table.n_columns
    columns: Callable[[int], Column] = lambda j: table.column(j) if j < n_features else of_class  # noqa: E731
    return Table([*table.names, name], table.n_samples, columns, table.array)


def _with_one_node_of_numbers(columns: Mapping, names: set, place_of_class: int) -> list:
    """Emissions of features and class where all measurements are one node, independent given the class.

    It is the model of a node for each column, at the price of one.
    """
    numbered = chain(["measurements"], map("measurements_{}".format, count(2)))
    node = next(name for name in numbered if name not in names)
    independent = Gaussian("diag", mean_precision_prior=BY_COLUMN)
    categories = [*columns.get(FOR_CATEGORIES, []), place_of_class]
    return [(node, independent, columns[FOR_NUMBERS]), (FOR_CATEGORIES, FOR_CATEGORIES, categories)]


def _emission_with_class(emission: Any, table: Table, name: str) -> Any:
    """The emissions of features, and that of the class beside them."""
    if isinstance(emission, EmissionSpecification):
        of_columns = [(column, emission, [column]) for column in table.names]
        return [*of_columns, (name, "categorical", [name])]
    if isinstance(emission, str):
        emission = {emission: list(table.names)}
    if not is_collection(emission):
        raise TypeError(
            "The 'emission' parameter of VBClassifier must be 'auto', a name, an emission, a mapping of names to "
            f"columns or a list of (name, emission, columns). Got {emission!r} instead."
        )
    if isinstance(emission, Mapping):
        categories = list(emission.get("categorical", []))
        by_place = categories and all(map(is_whole, categories))
        return {**emission, "categorical": [*categories, table.n_columns if by_place else name]}
    return [*emission, (name, "categorical", [name])]


def gain_of_edge(
    classes: np.ndarray, a: np.ndarray, b: np.ndarray, sizes: tuple[int, int, int], weight: np.ndarray, total: float
) -> float:
    """Gain of log evidence by an edge between two features, nats, the class a parent of both.

    Parameters
    ----------
    classes, a, b : ndarray of int, shape (n_samples,)
        Codes, -1 where missing: rows where both features are observed count.
    sizes : (int, int, int)
        Numbers of codes.
    weight : ndarray of shape (n_samples,)
    total : float
        Equivalent sample size of the prior.
    """
    known = (a >= 0) & (b >= 0)
    cells = np.ravel_multi_index((classes[known], a[known], b[known]), sizes)
    counts = np.bincount(cells, weight[known], np.prod(sizes)).reshape(sizes)

    def log_evidence(of: np.ndarray) -> float:
        return float(log_rising(np.full(of.shape, total / of.size), of).sum())

    without_edge = log_evidence(counts.sum(axis=2)) + log_evidence(counts.sum(axis=1))
    return log_evidence(counts) - without_edge + log_evidence(counts.sum(axis=(1, 2)))


def best_forest(gains: np.ndarray) -> list[tuple[int, int]]:
    """Edges (parent, child) of the forest of largest gain; no edge without one.

    Parameters
    ----------
    gains : ndarray of shape (n_features, n_features)
        Symmetric.
    """
    n_features = len(gains)
    edges, is_in = [], np.zeros(n_features, dtype=bool)
    best, parent = np.zeros(n_features), np.full(n_features, -1)
    for _ in range(n_features):  # Prim's algorithm; a feature without gain is the root of another tree
        node = int(np.argmax(np.where(is_in, -np.inf, best)))
        is_in[node] = True
        if parent[node] >= 0:
            edges.append((int(parent[node]), node))
        nearer = ~is_in & (gains[node] > best)
        best[nearer], parent[nearer] = gains[node][nearer], node
    return edges


def augmenting_edges(
    names: Sequence[str], codes: np.ndarray, sizes: Sequence[int], classes: np.ndarray, n_classes: int, *, weight, total
) -> list[tuple[str, str]]:
    """The edges (parent, child) between features of categories that raise the evidence most.

    Parameters
    ----------
    names : sequence of str
        Of the features.
    codes : ndarray of int, shape (n_samples, n_features)
        -1 where missing.
    sizes : sequence of int
        Numbers of categories.
    classes : ndarray of int, shape (n_samples,)
    n_classes : int
    weight : ndarray of shape (n_samples,)
    total : float
        Equivalent sample size of the prior.
    """
    gains = np.zeros((len(names), len(names)))
    for j in range(len(names)):
        for i in range(j):
            of_three = (n_classes, sizes[i], sizes[j])
            gains[i, j] = gains[j, i] = gain_of_edge(classes, codes[:, i], codes[:, j], of_three, weight, total)
    return [(names[parent], names[child]) for parent, child in best_forest(gains)]
