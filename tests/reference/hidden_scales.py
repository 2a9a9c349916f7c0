"""The evidence of measurements of known components under hidden scales and a hidden weight of means, by quadrature."""

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import gammaln, logsumexp
from scipy.stats import gamma


def log_evidence_of_sums(rows, means, squares, *, dof, hyper_dof, floor, weight=(0.5, 0.5), n_nodes=300):
    """ln p of independent columns, nats.

    Parameters
    ----------
    rows : (n_components,) sums of weights
    means : (n_components, n_columns) means, from the prior mean on
    squares : (n_components, n_columns) sums of squares about these
    dof, hyper_dof : degrees of freedom of precisions, and of inverse scales, whose prior mean is `dof`
    floor : what is added to an inverse scale in exponents
    weight : shape and rate of the weight of means, which all share
    """
    nodes, shares = leggauss(n_nodes)
    log_weight, log_scale = -9.5 + 15.5 * nodes, -8.0 + 17.0 * nodes
    kappa, scale = np.exp(log_weight)[:, None], np.exp(log_scale)
    total = gamma.logpdf(kappa[:, 0], weight[0], scale=1 / weight[1]) + log_weight + np.log(15.5 * shares)
    of_scale = gamma.logpdf(scale, hyper_dof / 2, scale=2 * dof / hyper_dof) + log_scale + np.log(17.0 * shares)
    for mean_of, square_of in zip(np.transpose(means), np.transpose(squares)):
        given = np.zeros((n_nodes, n_nodes))
        for n, mean, square in zip(rows, mean_of, square_of):
            rate = scale + floor + square + kappa * n / (kappa + n) * mean**2
            given += 0.5 * np.log(kappa / (kappa + n)) + gammaln((dof + n) / 2) - gammaln(dof / 2)
            given += dof / 2 * np.log(scale / 2) - (dof + n) / 2 * np.log(rate / 2) - n / 2 * np.log(2 * np.pi)
        total += logsumexp(of_scale + given, axis=1)
    return float(logsumexp(total))
