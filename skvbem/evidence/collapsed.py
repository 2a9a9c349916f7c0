r"""The bound with the parameters integrated out: :math:`\langle\ln \mathrm{BD}(N)\rangle_{q(x)} + H(q)`.

Any q(x) bounds the evidence with the parameters left exact,

.. math:: \ln p(y) \ge \langle \ln p(x, y) \rangle_{q(x)} + H(q), \qquad p(x, y) = \mathrm{BD}(N(x, y)),

no lower than the plain bound of the same q(x), :math:`\ln \mathrm{BD}(\langle N \rangle) + H(q)`, which is its
:math:`\max_{q(\theta)} F`. Rows are independent under q, so that each count is a sum of independent 0-1 variables. Its
distribution is found by convolution (or its averages by moments, where counts are so many that these say it all):
nothing is drawn, and what is left out is below a bound that is stated.

The best q(x) of this bound gives each row the natural parameters
:math:`\langle\ln(\lambda_c + N_c)\rangle - \langle\ln(\lambda_r + N_r)\rangle`, counts c and r of cells and of their
table rows without the row of data itself. A sweep gives all rows the mean of these, to first order in a row's own
share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skvbem._kernels._collapsed import expected_log_rising
from skvbem._numerics import times_log
from skvbem.evidence.aliasing import alias_gain
from skvbem.evidence.base import Evidence, check_whole_weights
from skvbem.evidence.evaluation import Evaluation

# Posterior probabilities are sums that round: above this they are 1.
_CERTAIN = 1.0 - 8 * np.finfo(float).eps


def collapsed(evaluation: Evaluation, *, n_sweeps: int = 0, alias: bool = False) -> Evidence:
    """The collapsed lower bound: never below the plain one at the same q(x), exact where nothing is hidden.

    Parameters
    ----------
    evaluation : Evaluation
    n_sweeps : int, default=0
        Sweeps in which q(x) ascends this bound, from the q(x) of the VB fit on; the best q(x) met counts. Four find
        most of what there is to gain, which is much where rows are few or classes overlap.
    alias : bool, default=False
        Whether q(x) is mixed over all labelings, which stays a bound; see `skvbem.evidence.aliasing.alias_gain`.

    Notes
    -----
    `details` hold the bound at the VB fit and after every sweep (`trace`), at the best q(x) its entropy, the expected
    log score and the gain over the plain bound, and a bound on what cutting off tails changed (`error_bound`).
    """
    check_whole_weights(evaluation, "collapsed")
    if n_sweeps < 0:
        raise ValueError(f"The score 'collapsed' needs n_sweeps >= 0. Got {n_sweeps!r} instead.")
    prior = evaluation.model.prior
    natural = (prior + evaluation.fit("vb").statistics).expected_natural()
    met = []
    for _ in range(n_sweeps + 1):
        met.append(_at(evaluation, natural))
        natural = met[-1].averages.natural
    best = max(met, key=lambda found: found.value)
    gain = alias_gain(evaluation, best.natural) if alias else 0.0
    return Evidence(
        best.value + gain,
        "collapsed_ascent" if n_sweeps else "collapsed",
        is_lower_bound=True,
        form="vb",
        n_free_parameters=prior.n_free_parameters,
        n_samples=evaluation.n_samples,
        details={
            "trace": tuple(found.value for found in met),
            "entropy": best.entropy,
            "expected_log_bd": best.averages.log_bd,
            "gain": best.averages.log_bd - best.plain_log_bd,
            "error_bound": best.averages.error,
            "alias": gain,
        },
    )


@dataclass(frozen=True, eq=False)
class _Averages:
    """Averages over q(x) of the Bayesian Dirichlet score, how far off they may be, and a better q(x)."""

    log_bd: float
    error: float
    natural: np.ndarray


@dataclass(frozen=True, eq=False)
class _At:
    """The bound at a q(x) and its parts; `plain_log_bd` is the score of expected counts."""

    natural: np.ndarray
    entropy: float
    averages: _Averages
    plain_log_bd: float

    @property
    def value(self) -> float:
        return self.averages.log_bd + self.entropy


def _at(evaluation: Evaluation, natural: np.ndarray) -> _At:
    model, prior = evaluation.model, evaluation.model.prior
    expectation = model.expect(natural[:, None], evaluation.program)
    counts = expectation.statistics[:, 0]
    entropy = float(expectation.log_normalizer[0] - times_log(counts, natural).sum())
    averages = _averages(prior, model.row_marginals(natural, evaluation.program))
    return _At(natural, entropy, averages, float(prior.log_evidence(counts)))


def _averages(prior, marginals) -> _Averages:
    """From the marginals of all table cells and then of all table rows."""
    n_cells = len(prior.concentration)
    a = np.concatenate([prior.concentration, prior.row_sums(prior.concentration)])
    n_targets = len(a)
    p, weight = marginals.probability, marginals.weight[marginals.context]
    target = np.repeat(np.arange(n_targets), np.diff(marginals.starts))
    certain = p >= _CERTAIN
    known = marginals.known + np.bincount(target[certain], weights=weight[certain], minlength=n_targets)
    random = (p > 0) & ~certain
    p, weight, target = p[random], weight[random], target[random]
    starts = np.concatenate([[0], np.cumsum(np.bincount(target, minlength=n_targets))])
    # rows of tables with the same parents, and cells of these parents, have the same count: one convolution serves all
    first_with: dict = {}
    source = np.empty(n_targets, dtype=np.int64)
    for k, (begin, end) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist())):
        source[k] = first_with.setdefault((p[begin:end].tobytes(), weight[begin:end].tobytes()), k)
    order = np.argsort(source, kind="stable")
    rising, log = np.empty(n_targets), np.empty((2, n_targets))
    error = expected_log_rising(starts, p, weight, source[order], a[order], known[order], rising, log)
    rising[order], log[:, order] = rising.copy(), log.copy()
    # E f(N without row i) = E f(N) - p_i E[f(N + 1) - f(N)] + ..., averaged with the variance each row has to give
    variance = np.bincount(target, weights=weight * p * (1.0 - p), minlength=n_targets)
    own = np.bincount(target, weights=weight * p * p * (1.0 - p), minlength=n_targets)
    share = np.divide(own, variance, out=np.ones(n_targets), where=variance > 0)
    natural = log[0] - share * (log[1] - log[0])
    return _Averages(
        float(rising[:n_cells].sum() - rising[n_cells:].sum()),
        error,
        natural[:n_cells] - prior.per_cell(natural[n_cells:]),
    )
