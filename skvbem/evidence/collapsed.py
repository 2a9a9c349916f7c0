r"""The bound with the parameters integrated out: :math:`\langle\ln p(x, y)\rangle_{q(x)} + H(q)`.

Any q(x) bounds the evidence with the parameters left exact,

.. math::

    \ln p(y) &\ge \langle \ln p(x, y) \rangle_{q(x)} + H(q), \\
    \ln p(x, y) &= A(\mathrm{prior} + u(x, y)) - A(\mathrm{prior}) + \ln f,

of tables the Bayesian Dirichlet score BD(N) of the counts. It is no lower than the plain bound of the same q(x), its
:math:`\max_{q(\theta)} F`, which has the evidence of the expected statistics in its place. A is convex, so that what is
gained is an average of what is never negative: with A(u) for A(prior + u),

.. math:: \mathrm{gain} = \langle A(u) - A(\bar u) - \nabla A(\bar u) \cdot (u - \bar u) \rangle_{q(x)}
          = \langle \mathrm{KL}(q(\theta) \,\|\, p(\theta \mid x, y)) \rangle_{q(x)}.

**Counts.** Rows are independent under q, so that each count of a table is a sum of independent 0-1 variables. Its
distribution is found by convolution (or its averages by moments, where counts are so many that these say it all):
nothing is drawn, and what is left out is below a bound that is stated. So it is for networks, and for weights and
categories of mixtures.

**Other statistics**, of Gaussian, Gamma and multinomial components, have no such distribution, nor have counts along
paths of sequences, whose steps depend on each other. There the gain is averaged over x drawn from q(x): an estimate
without bias, with a standard error, a bound on average; and in no run below the plain bound, as no draw is.

The best q(x) of this bound gives each row the natural parameters
:math:`\langle\ln(\lambda_c + N_c)\rangle - \langle\ln(\lambda_r + N_r)\rangle`, counts c and r of cells and of their
table rows without the row of data itself. A sweep gives all rows the mean of these, to first order in a row's own
share. Of other statistics it gives the mean of :math:`\nabla A(u)`, the expected natural parameters after each draw:
what a row scores is the difference of A between the data without it and with it, next to :math:`\nabla A` in the middle
of the two, and a row that is in doubt is in the draw or not about as often.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skvbem._kernels._collapsed import expected_log_rising
from skvbem._numerics import times_log
from skvbem.capabilities import CountBlock
from skvbem.evidence.aliasing import alias_gain
from skvbem.evidence.base import Evidence, check_whole_weights
from skvbem.evidence.chains import batches, check_at_least, run_tasks
from skvbem.evidence.evaluation import Evaluation, Stream
from skvbem.families import Dirichlet

# Posterior probabilities are sums that round: above this they are 1.
_CERTAIN = 1.0 - 8 * np.finfo(float).eps


def collapsed(evaluation: Evaluation, *, n_sweeps: int = 0, n_draws: int = 64, alias: bool = False) -> Evidence:
    """The collapsed lower bound: never below the plain one at the same q(x), exact where nothing is hidden.

    Parameters
    ----------
    evaluation : Evaluation
    n_sweeps : int, default=0
        Sweeps in which q(x) ascends this bound, from the q(x) of the VB fit on; the best q(x) met counts. Four find
        most of what there is to gain, which is much where rows are few or classes overlap.
    n_draws : int, default=64
        Draws of x for statistics that are no counts of independent rows: mixtures of measurements, counts of events,
        times; all of sequences. Without such statistics nothing is drawn. The best q(x) is chosen by other draws than
        those that score it.
    alias : bool, default=False
        Whether q(x) is mixed over all relabelings, which stays a bound; see `skvbem.evidence.aliasing.alias_gain`.

    Notes
    -----
    `details` hold the bound at the VB fit and after every sweep (`trace`), at the best q(x) its entropy, the expected
    log evidence of complete data (`expected_log_bd`) and the gain over the plain bound, a bound on what cutting off
    tails changed (`error_bound`), and how many draws there were.
    """
    name = "collapsed_ascent" if n_sweeps else "collapsed"
    evaluation.check_known_hyperparameters(f"The score {name!r}")
    check_whole_weights(evaluation, "collapsed")
    check_at_least("collapsed", n_sweeps=(n_sweeps, 0), n_draws=(n_draws, 2))
    prior, block = evaluation.model.prior, _count_block(evaluation)
    natural = (prior + evaluation.fit("vb").statistics).expected_natural()
    drawn = np.setdiff1d(np.arange(len(natural)), block.cells)
    visited = [_at(evaluation, natural, drawn, Stream.CHOICE, n_draws)] if n_sweeps or not len(drawn) else []
    for _ in range(n_sweeps):
        visited.append(_at(evaluation, visited[-1].better, drawn, Stream.CHOICE, n_draws))
    if visited:
        natural = max(visited, key=lambda at: at.value).natural
    if len(drawn):
        best = _at(evaluation, natural, drawn, Stream.SCORE, n_draws)
    else:
        best = max(visited, key=lambda at: at.value)
    gain = alias_gain(evaluation, best.natural) if alias else 0.0
    entropy = evaluation.capability("entropy")(best.natural, evaluation.data)
    return Evidence(
        best.value + gain,
        name,
        is_lower_bound=True,
        standard_error=float(np.std(best.gains, ddof=1) / np.sqrt(n_draws)) if len(drawn) else None,
        form="vb",
        n_free_parameters=prior.n_free_parameters,
        n_samples=evaluation.n_samples,
        details={
            "trace": tuple(at.value for at in visited or [best]),
            "entropy": entropy,
            "expected_log_bd": best.value - entropy,
            "gain": best.value - best.bound,
            "error_bound": best.error,
            "n_draws": n_draws if len(drawn) else 0,
            "alias": gain,
        },
    )


@dataclass(frozen=True, eq=False)
class _At:
    """The collapsed bound at one q(x).

    Parameters
    ----------
    natural : ndarray of shape (n_cells,)
        Of q(x).
    bound : float
        The plain bound at this q(x).
    count_gain, error : float
        What counts gain over it, and how far off that may be.
    gains : ndarray of shape (n_draws,)
        What other statistics do, draw by draw.
    better : ndarray of shape (n_cells,)
        Of a better q(x).
    """

    natural: np.ndarray
    bound: float
    count_gain: float
    error: float
    gains: np.ndarray
    better: np.ndarray

    @property
    def value(self) -> float:
        return self.bound + self.count_gain + float(self.gains.mean())


def _at(evaluation: Evaluation, natural: np.ndarray, drawn: np.ndarray, key: int, n_draws: int) -> _At:
    prior, block = evaluation.model.prior, _count_block(evaluation)
    log_evidence = evaluation.capability("complete_evidence")
    statistics, log_z = evaluation.expectation(natural, "The score 'collapsed'", of_clusters=True)
    bound = float(log_z - times_log(statistics, natural).sum() + log_evidence(statistics))
    better, gains, count_gain, error = np.empty(len(natural)), np.zeros(1), 0.0, 0.0
    if len(block.cells):
        averages = _averages(block.prior, evaluation.capability("marginals").row_marginals(natural, evaluation.data))
        better[block.cells], error = averages.natural, averages.error
        count_gain = averages.log_bd - float(block.prior.log_evidence(statistics[block.cells]))
    if len(drawn):
        completed = _drawn(evaluation, natural, key, n_draws)
        # what is counted gains apart from what is drawn: they are blocks of their own
        completed[block.cells] = statistics[block.cells, None]
        slope = (prior + statistics).expected_natural()
        linear = log_evidence(statistics) + slope[drawn] @ (completed - statistics[:, None])[drawn]
        gains = log_evidence(completed) - linear
        better[drawn] = (prior + completed).expected_natural().mean(axis=1)[drawn]
    return _At(natural, bound, count_gain, error, gains, better)


def _count_block(evaluation: Evaluation) -> CountBlock:
    """The part of the prior whose statistics are counts of independent rows: none without marginals."""
    marginals = evaluation.capabilities.marginals
    if marginals is None:
        return CountBlock(np.zeros(0, dtype=np.int64), Dirichlet(np.zeros(0), np.zeros(1, dtype=np.int64)))
    return marginals.count_block()


def _drawn(evaluation: Evaluation, natural: np.ndarray, key: int, n_draws: int) -> np.ndarray:
    """Statistics of complete data with what is hidden drawn from q(x), (n_cells, n_draws)."""
    annealing, data = evaluation.capability("annealing"), evaluation.data
    streams = evaluation.streams(n_draws, key)

    def batch(lanes):
        mine = np.ascontiguousarray(streams[:, lanes])
        return annealing.sample_latent(np.repeat(natural[:, None], mine.shape[1], axis=1), data, mine)

    tasks = batches(n_draws, annealing.lanes_at_once(data))
    outcomes = run_tasks(batch, tasks, n_threads=evaluation.n_jobs, required=len(tasks))
    return np.concatenate(outcomes, axis=1)


@dataclass(frozen=True, eq=False)
class _Averages:
    """Averages over q(x) of the Bayesian Dirichlet score, how far off they may be, and a better q(x)."""

    log_bd: float
    error: float
    natural: np.ndarray


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
    row_share = np.bincount(target, weights=weight * p * p * (1.0 - p), minlength=n_targets)
    share = np.divide(row_share, variance, out=np.ones(n_targets), where=variance > 0)
    natural = log[0] - share * (log[1] - log[0])
    return _Averages(
        float(rising[:n_cells].sum() - rising[n_cells:].sum()),
        error,
        natural[:n_cells] - prior.per_cell(natural[n_cells:]),
    )
