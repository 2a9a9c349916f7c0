r"""The log evidence of complete data under priors with hidden hyperparameters, which are integrated out.

Given :math:`\nu` it has a closed form, with A the log normalizer of the base of the prior
(`skvbem.families.hierarchical`):

.. math:: p(u) = \int p(\nu)\, c(\nu)\, e^{A(u + u(\nu))}\, d\nu .

At the :math:`\bar\phi` at which q(theta) and q(nu) agree with each other, as in a lower bound of complete data,
:math:`q(\nu) \propto p(\nu)\, c(\nu)\, e^{u(\nu) \cdot \bar\phi}` is near the integrand. It is too narrow, the more so
the more components are empty, which say nothing of :math:`\nu`. So the integral is a mean over draws of a mixture,

.. math:: p(u) = \Big\langle c(\nu)\, e^{A(u + u(\nu))} \Big/ \tfrac1I \sum_i c(\nu)^{s_i}
          e^{s_i u(\nu) \cdot \bar\phi} / Z_i \Big\rangle, \qquad 0 \le s_i \le 1,

in which p(nu) cancels; at s = 0 it is the prior. Draws are the same for any data, so that this is a function as closed
forms are, with an error that it states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from skvbem.families.base import ConjugateFamily, Product

# Draws of each density, at first and at most, and the standard error in nats that is enough: draws are made as long as
# there is more of it. Turns in which q(theta) and q(nu) are fitted to each other. All by hand; most models need
# 1024 draws.
_N_DRAWS, _MAX_DRAWS, _ENOUGH, _N_TURNS = 512, 8192, 0.01, 30
# Tempered densities of hyperparameters that are drawn from, s: by hand, no others were compared.
_SHARES = (1.0, 0.5, 0.2, 0.05, 0.0)


@dataclass(frozen=True, eq=False)
class IntegratedEvidence:
    """The log evidence of complete data as a function of their statistics.

    Parameters
    ----------
    prior : ConjugateFamily
        Hierarchical, or a product of blocks of which some are.
    """

    prior: ConjugateFamily

    def __call__(self, statistics: np.ndarray) -> np.ndarray:
        """ln p, nats, of complete data with statistics (n_cells, ...), of the shape of the trailing axes."""
        lanes = statistics.reshape(len(statistics), -1).T
        return np.array([self.with_error(each)[0] for each in lanes]).reshape(statistics.shape[1:])

    def with_error(self, statistics: np.ndarray) -> tuple[float, float]:
        """ln p, nats, of complete data with statistics (n_cells,), and its standard error."""
        prior = self.prior
        if prior.hyperprior is None:
            return float(prior.log_evidence(statistics)), 0.0
        if not isinstance(prior, Product):
            return _integrated(prior, np.ascontiguousarray(statistics))
        # Products stand in products where columns have emissions of their own.
        parts = [type(self)(block).with_error(cells) for block, cells in zip(prior.blocks, prior.split(statistics))]
        values, errors = zip(*parts)
        return float(np.sum(values)), float(np.sqrt(np.sum(np.square(errors))))


def _integrated(prior: Any, statistics: np.ndarray) -> tuple[float, float]:
    """ln p of complete data under a hierarchical prior, and its standard error."""
    hyperprior, rng = prior.hyperprior, np.random.default_rng(0)
    of_nu = hyperprior.prior_statistics
    for _ in range(_N_TURNS):
        natural = (prior.base + (statistics + of_nu)).expected_natural()
        of_nu, _ = hyperprior.expect(natural)
    naturals = [share * natural for share in _SHARES]
    log_z = [float(hyperprior.tempered(s).expect(each)[1]) for s, each in zip(_SHARES, naturals)]
    log_weights = np.zeros(0)
    while True:
        drawn = [
            hyperprior.draw_with_constant(np.repeat(each[:, None], _N_DRAWS, axis=1), rng, s)
            for s, each in zip(_SHARES, naturals)
        ]
        of_draws, log_c = (np.concatenate(parts, axis=-1) for parts in zip(*drawn))
        log_densities = [s * log_c + each @ of_draws - z for s, each, z in zip(_SHARES, naturals, log_z)]
        log_given = log_c + (prior.base + (statistics[:, None] + of_draws)).log_normalizer()
        log_weights = np.append(log_weights, log_given - logsumexp(log_densities, axis=0) + np.log(len(_SHARES)))
        top, n = log_weights.max(), len(log_weights)
        weights = np.exp(log_weights - top)
        error = float(weights.std(ddof=1) / (weights.mean() * np.sqrt(n)))
        if error < _ENOUGH or n >= _MAX_DRAWS * len(_SHARES):
            return float(top + np.log(weights.mean())), error
