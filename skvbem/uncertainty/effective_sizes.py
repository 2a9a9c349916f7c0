r"""Effective numbers of draws of several chains, and R-hat, which is 1 where the chains agree [VGSCB21].

Every chain is cut in two, so that a chain that still drifts disagrees with itself. Draws are replaced by the normal
quantiles of their ranks: what is said then holds for heavy tails too, and is the same for any increasing function of a
parameter. With W the mean variance of a chain, :math:`\hat v` the variance of all, both estimates of the same where
chains agree, and :math:`\rho_t` the autocorrelation across all chains,

.. math:: \hat R = \sqrt{\hat v / W}, \qquad \mathrm{ESS} = C L \Big/ \Bigl(1 + 2 \sum_{t \ge 1} \rho_t\Bigr),

the sum of pairs :math:`\rho_{2t} + \rho_{2t+1}` as long as these are positive, and none above the one before [Geyer92].
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata


def effective_sizes(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Effective numbers of draws, and :math:`\hat R`, of each of several quantities.

    Parameters
    ----------
    draws : ndarray of shape (n, n_chains, n_draws)
        At least 4 draws of each chain.

    Returns
    -------
    sizes : ndarray of shape (n,)
        At most as many as there are draws. Of what never varies: as many.
    r_hat : ndarray of shape (n,)
        About 1 where chains agree. Of what never varies: 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem.uncertainty.effective_sizes import effective_sizes
    >>> noise = np.random.default_rng(0).normal(size=(2, 4, 500))
    >>> noise[1, 0] += 5  # a chain elsewhere
    >>> sizes, r_hat = effective_sizes(noise)
    >>> bool(sizes[0] > 1500), bool(sizes[1] < 20), bool(r_hat[0] < 1.01), bool(r_hat[1] > 1.5)
    (True, True, True, True)
    """
    n, n_chains, length = draws.shape
    sizes, r_hat = np.empty(n), np.empty(n)
    step = max(2**20 // (n_chains * length), 1)  # transforms of some parameters take 8 megabytes at once
    for at in range(0, n, step):
        sizes[at : at + step], r_hat[at : at + step] = _size_and_r_hat(_halves(draws[at : at + step]))
    return np.minimum(sizes, n_chains * length), r_hat


def _halves(draws: np.ndarray) -> np.ndarray:
    """Both halves of every chain, as normal quantiles of ranks, (n, 2 n_chains, n_draws // 2)."""
    half = draws.shape[2] // 2
    cut = np.concatenate([draws[:, :, :half], draws[:, :, -half:]], axis=1)
    ranks = rankdata(cut.reshape(len(cut), -1), axis=1).reshape(cut.shape)
    return ndtri((ranks - 0.375) / (cut[0].size + 0.25))


def _size_and_r_hat(chains: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Effective numbers and R of chains (n, n_chains, n_draws) as they are."""
    _, n_chains, length = chains.shape
    covariance = _autocovariances(chains).mean(axis=1)
    within = covariance[:, 0] * length / (length - 1)
    total = covariance[:, 0] + chains.mean(axis=2).var(axis=1, ddof=1)
    varies = within > 0
    within, total = np.where(varies, within, 1.0), np.where(varies, total, 1.0)
    correlation = 1 - (within[:, None] - covariance * length / (length - 1)) / total[:, None]
    correlation[:, 0] = 1.0
    pairs = correlation[:, : length // 2 * 2].reshape(len(chains), -1, 2).sum(axis=2)
    pairs = np.where(np.logical_and.accumulate(pairs > 0, axis=1), pairs, 0.0)
    times = 2 * np.minimum.accumulate(pairs, axis=1).sum(axis=1) - 1
    # chains that are more even than independent ones are taken for no more than so much so
    sizes = n_chains * length / np.maximum(times, 1 / np.log10(n_chains * length))
    return np.where(varies, sizes, n_chains * length), np.where(varies, np.sqrt(total / within), 1.0)


def _autocovariances(chains: np.ndarray) -> np.ndarray:
    """Autocovariances of each chain at every lag, over its length, (n, n_chains, n_draws)."""
    length = chains.shape[2]
    spectrum = np.fft.rfft(chains - chains.mean(axis=2, keepdims=True), 2 * length, axis=2)
    return np.fft.irfft(spectrum * spectrum.conj(), axis=2)[:, :, :length] / length
