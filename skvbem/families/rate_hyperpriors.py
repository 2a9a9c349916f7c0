r"""Gamma priors of rates whose own rate is hidden, column by column, and learned from all components.

.. math:: \lambda_{kj} \mid b_j \sim \mathrm{Gamma}(a_j, b_j + E), \qquad b_j \sim \mathrm{Gamma}(g, g / m_j).

E is the floor that keeps the evidence of waiting times of 0 finite; see `skvbem.families.normal_hyperpriors`, where
more is said of it: the density of a rate is normalized as if it were 0.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from skvbem.families.gamma import Gamma
from skvbem.families.hierarchical import Hierarchical
from skvbem.families.hyperpriors import GammaHyperprior


def hidden_rate_prior(
    n_components: int, shape: np.ndarray, hyper_shape: float, mean: np.ndarray, floor: float
) -> Hierarchical:
    """The prior of rates of components that are alike, of known shapes.

    Parameters
    ----------
    n_components : int
    shape : ndarray of shape (n_features,)
    hyper_shape : float
        g.
    mean : ndarray of shape (n_features,)
        m, the prior mean of b.
    floor : float
        E.
    """
    d, every = len(shape), np.tile(shape, (n_components, 1))
    base = Gamma.from_parameters(every, np.full((n_components, d), floor))
    cells = base.rate_cells
    places = np.broadcast_to(np.arange(d), cells.shape).ravel(), cells.ravel()
    loadings = csr_array((np.ones(cells.size), places), (d, len(base.coordinates)))
    constant = -float(Gamma.from_parameters(every, np.ones((n_components, d))).log_normalizer())
    of_columns = np.full(d, hyper_shape)
    return Hierarchical(base, GammaHyperprior(of_columns, of_columns / mean, n_components * shape, loadings, constant))
