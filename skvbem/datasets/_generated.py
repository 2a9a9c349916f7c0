"""Rows of which everything is known: drawn from discrete networks with hidden variables, or of given moments.

Of networks, every row of every table is one draw from a symmetric Dirichlet distribution, and the rows of the data are
independent given the tables. Tables are drawn before rows, and a row takes its uniform numbers from the stream before
the next row does: one seed gives one network, and its first m rows are the same however many follow.
"""

import numpy as np
from scipy.special import softmax
from sklearn.utils import Bunch, check_random_state

from skvbem._arguments import is_real, is_whole
from skvbem._names import shown
from skvbem.emissions.factor.second_moments import corners_of


def make_bipartite(n_samples, *, concentration=1.0, random_state=None):
    """Rows from the network of two binary causes and four five-valued effects of Beal and Ghahramani (2003).

    The hidden variables are h0 and h1; y1 depends on h0, y2 and y3 on both, y4 on h1. The tables, which hold 50 free
    parameters, are drawn once per seed, so data sets of growing size are nested, as in the figures of [BG].

    Parameters
    ----------
    n_samples : int
        Number of rows, at least 1.
    concentration : float, default=1.0
        Parameter of the symmetric Dirichlet distribution of every row of every table. The default is uniform, as in
        [BG]; a smaller value makes the tables nearly deterministic and the structure easier to find.
    random_state : int, RandomState instance or None, default=None
        Source of the tables and of the rows. The same int gives the same tables and the same first rows for every
        `n_samples`.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        data : ndarray of shape (n_samples, 4), int
            The observed variables, coded 0 to 4.
        latents : ndarray of shape (n_samples, 2), int
            The hidden variables, coded 0 and 1.
        feature_names, latent_names : list of str
            Names of the columns of `data` and of `latents`.
        edges : list of (str, str)
            The arcs, as (parent, child).
        tables : dict of str to ndarray
            For each variable p(variable | parents): one axis per parent, in the order of `edges`, and the last for the
            variable itself, along which the table sums to one.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    References
    ----------
    .. [1] M. J. Beal and Z. Ghahramani (2003). The variational Bayesian EM algorithm for incomplete data: with
       application to scoring graphical model structures. Bayesian Statistics 7, section 4 and figure 1.

    Examples
    --------
    >>> from skvbem.datasets import make_bipartite
    >>> truth = make_bipartite(480, random_state=0)
    >>> truth.data.shape, truth.latents.shape
    ((480, 4), (480, 2))
    >>> truth.edges
    [('h0', 'y1'), ('h0', 'y2'), ('h1', 'y2'), ('h0', 'y3'), ('h1', 'y3'), ('h1', 'y4')]
    >>> truth.tables["y2"].shape
    (2, 2, 5)
    """
    _check_int("make_bipartite", "n_samples", n_samples, 1)
    _check_concentration("make_bipartite", concentration)
    parents = {"h0": (), "h1": (), "y1": ("h0",), "y2": ("h0", "h1"), "y3": ("h0", "h1"), "y4": ("h1",)}
    cardinality = {"h0": 2, "h1": 2} | dict.fromkeys(["y1", "y2", "y3", "y4"], 5)
    return _sample_network(parents, cardinality, ["h0", "h1"], n_samples, concentration, random_state)


def make_latent_class(n_samples, n_features, n_classes, *, cardinality=2, concentration=1.0, random_state=None):
    """Rows whose columns are independent given one hidden class: the naive-Bayes model of Chickering and Heckerman.

    Parameters
    ----------
    n_samples : int
        Number of rows, at least 1.
    n_features : int
        Number of observed variables, at least 1.
    n_classes : int
        Number of states of the hidden class, at least 1.
    cardinality : int, default=2
        Number of categories of every observed variable, at least 2. The default is that of [CH].
    concentration : float, default=1.0
        Parameter of the symmetric Dirichlet distribution of every row of every table. The default is uniform, as in
        [CH]; a smaller value sets the classes further apart.
    random_state : int, RandomState instance or None, default=None
        Source of the tables and of the rows. The same int gives the same tables and the same first rows for every
        `n_samples`.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        data : ndarray of shape (n_samples, n_features), int
            The observed variables y1, y2, ..., coded from 0.
        latents : ndarray of shape (n_samples, 1), int
            The hidden class h0, coded from 0.
        feature_names, latent_names : list of str
            Names of the columns of `data` and of `latents`.
        edges : list of (str, str)
            The arcs, as (parent, child).
        tables : dict of str to ndarray
            For each variable p(variable | parents); the last axis is the variable itself and sums to one.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    References
    ----------
    .. [1] D. M. Chickering and D. Heckerman (1996). Efficient approximations for the marginal likelihood of incomplete
       data given a Bayesian network. Uncertainty in Artificial Intelligence 12, section 3.

    Examples
    --------
    >>> from skvbem.datasets import make_latent_class
    >>> truth = make_latent_class(400, 8, 4, random_state=0)
    >>> truth.data.shape, truth.latents.shape
    ((400, 8), (400, 1))
    >>> truth.tables["h0"].shape, truth.tables["y1"].shape
    ((4,), (4, 2))
    """
    for name, value, least in [
        ("n_samples", n_samples, 1),
        ("n_features", n_features, 1),
        ("n_classes", n_classes, 1),
        ("cardinality", cardinality, 2),
    ]:
        _check_int("make_latent_class", name, value, least)
    _check_concentration("make_latent_class", concentration)
    features = [f"y{j}" for j in range(1, n_features + 1)]
    parents = {"h0": ()} | dict.fromkeys(features, ("h0",))
    cardinalities = {"h0": n_classes} | dict.fromkeys(features, cardinality)
    return _sample_network(parents, cardinalities, ["h0"], n_samples, concentration, random_state)


def _sample_network(parents, cardinality, latents, n_samples, concentration, random_state):
    rng = check_random_state(random_state)
    tables = {
        node: _sample_table(tuple(cardinality[p] for p in above), cardinality[node], concentration, rng)
        for node, above in parents.items()
    }
    uniforms = rng.random_sample((n_samples, len(parents)))
    states = {}
    for node, u in zip(parents, uniforms.T):
        # The last threshold, 1, is left out: rounded below one it could be passed, to a category that is not there.
        thresholds = tables[node].cumsum(axis=-1)[..., :-1]
        states[node] = (u[:, np.newaxis] >= thresholds[tuple(states[p] for p in parents[node])]).sum(axis=1)
    features = [node for node in parents if node not in latents]
    return Bunch(
        data=np.column_stack([states[node] for node in features]),
        latents=np.column_stack([states[node] for node in latents]),
        feature_names=features,
        latent_names=latents,
        edges=[(parent, node) for node, above in parents.items() for parent in above],
        tables=tables,
    )


def _sample_table(shape, cardinality, concentration, rng):
    # Gamma(a) is Gamma(a + 1) times U^(1/a). In logarithms it cannot underflow, as all weights of a row might for a
    # small concentration.
    size = (*shape, cardinality)
    log_weights = np.log(rng.standard_gamma(concentration + 1.0, size))
    log_weights += np.log(1.0 - rng.random_sample(size)) / concentration
    return softmax(log_weights, axis=-1)


def _check_int(function, name, value, least):
    if not is_whole(value) or value < least:
        raise ValueError(f"The {name!r} parameter of {function} must be an int >= {least}. Got {value!r} instead.")


def _check_concentration(function, value):
    if not is_real(value) or not 0 < value < np.inf:
        raise ValueError(
            f"The 'concentration' parameter of {function} must be a finite number > 0. Got {value!r} instead."
        )


def make_rows_with_moments(mean, covariance, n_rows):
    """Weighted rows whose mean and covariance are given ones, for tables of which only these were printed.

    Normal models without missing cells depend on rows through such moments alone: they fit these rows as they would the
    rows behind the print.

    Parameters
    ----------
    mean : array-like of shape (d,)
        Means of the columns.
    covariance : array-like of shape (d, d)
        With divisor n. One with divisor n - 1 is made so by a factor (n - 1) / n.
    n_rows : float
        How many rows they stand for: the sum of the weights.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        data : ndarray of shape (d + 1, d)
            The corners of a simplex.
        sample_weight : ndarray of shape (d + 1,)
            All alike.

    Raises
    ------
    ValueError
        If the shapes do not fit, or if the covariance is not symmetric or has a negative eigenvalue.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem.datasets import make_rows_with_moments
    >>> rows = make_rows_with_moments([1.0, 2.0], [[2.0, 0.5], [0.5, 1.0]], 30)
    >>> rows.data.shape, float(rows.sample_weight.sum())
    ((3, 2), 30.0)
    >>> np.cov(rows.data.T, aweights=rows.sample_weight, ddof=0).round(12).tolist()
    [[2.0, 0.5], [0.5, 1.0]]
    """
    mean, covariance = np.asarray(mean, dtype=float), np.asarray(covariance, dtype=float)
    d = mean.size
    if mean.ndim != 1 or not d or covariance.shape != (d, d):
        raise ValueError(
            "make_rows_with_moments needs a mean of shape (d,) and a covariance of shape (d, d). Got arrays of shapes "
            f"{mean.shape} and {covariance.shape}."
        )
    if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
        raise ValueError("The 'mean' and 'covariance' parameters of make_rows_with_moments must be finite.")
    if not is_real(n_rows) or not 0 < n_rows < np.inf:
        raise ValueError(
            f"The 'n_rows' parameter of make_rows_with_moments must be a number > 0. Got {shown(n_rows)} instead."
        )
    variances, axes = np.linalg.eigh(covariance)
    if not np.allclose(covariance, covariance.T) or variances[0] < -1e-9 * abs(variances[-1]):
        raise ValueError(
            "The 'covariance' parameter of make_rows_with_moments must be symmetric, without a negative eigenvalue. "
            f"Got one whose least eigenvalue is {variances[0]:g}."
        )
    root = axes * np.sqrt(np.maximum(variances, 0.0))
    return Bunch(data=mean + corners_of(root), sample_weight=np.full(d + 1, n_rows / (d + 1)))
