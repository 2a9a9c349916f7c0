r"""Information of complete data that hidden paths take away [Louis 1982], by one pass forward in time.

In unconstrained coordinates the score of a complete sequence is a sum over its steps, of :math:`p_{ij}` for the
transition from i to j and of :math:`r_{tj}` for what state j says of row t: derivatives of natural parameters, times
statistics. Less what they are expected to be, they make a sum of mean 0, whose expectation up to step t is, given the
state there and the rows,

.. math::

    L_t(j) = V_t(j) + r_{tj} - \bar r_t, \qquad V_t(j) = \sum_i B_t(i \mid j)\,(L_{t-1}(i) + p_{ij}) - \bar p_t,

where :math:`B_t(i \mid j) \propto \alpha_{t-1}(i) A_{ij}` is the probability of the state before, which rows to come
do not change. A path is a Markov chain in either direction of time, so that its covariance is, step by step, with
:math:`\gamma_t` the posterior of the state and :math:`\xi_t(i, j) = B_t(i \mid j)\,\gamma_t(j)`,

.. math::

    \mathrm{Cov} = \sum_t \Bigl[ \sum_{ij} \xi_t\, (p_{ij} p_{ij}^\top + p_{ij} L_{t-1}(i)^\top + L_{t-1}(i)
    p_{ij}^\top) - \bar p_t \bar p_t^\top
    + \sum_j \gamma_t\, (r_{tj} r_{tj}^\top + r_{tj} V_t(j)^\top + V_t(j) r_{tj}^\top) - \bar r_t \bar r_t^\top \Bigr],

and what is hidden in a row beside its state adds its own covariance. Exact, at the cost of T d^2; nothing is
subtracted that grows with the square of the length.

Where covariates drive the chain, scores of transitions are other numbers at every step. There the covariance is by
differences (`skvbem.models.information`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from skvbem.capabilities import ScoreCovariance
from skvbem.models.hmm.model import HMM
from skvbem.models.information import covariance_by_differences
from skvbem.models.relabelings import coordinate_blocks
from skvbem.models.sequences import HMMData

# Numbers that one array of a block of steps holds.
_BLOCK = 2**20


def score_covariance(
    model: HMM, point: tuple, data: HMMData, *, joint: bool = True, max_states: int = 4096
) -> list[ScoreCovariance]:
    """The covariance of complete-data scores at a point; see `skvbem.capabilities.Information`.

    Without `joint` there is a block for the first states, one for the transitions, one for each state, and one for
    what all states share. `max_states` makes no difference.
    """
    scores = _Scores(model, point, data)
    posterior, n_states, d = model.smoothed(scores.natural, data), model.n_components, scores.d
    for batch in _alike_in_length(data, n_states * d):
        scores.add(batch, posterior)
    for at in range(0, len(data), model.emission.block_rows(n_states)):
        rows = slice(at, at + model.emission.block_rows(n_states))
        scores.add_hidden_cells(rows, posterior[rows])
    covariance = scores.covariance()
    return [ScoreCovariance(block, covariance[np.ix_(block, block)]) for block in _blocks(model, scores.free, d, joint)]


def score_covariance_by_differences(
    model: HMM, point: tuple, data: HMMData, *, joint: bool = True, max_states: int = 4096
) -> list[ScoreCovariance]:
    """The covariance of complete-data scores of a chain that covariates drive; blocks as of `score_covariance`."""
    jacobian, covariance = model.prior.jacobian(point), covariance_by_differences(model, point, data)
    of_states = [np.flatnonzero(jacobian[cells].any(axis=0)) for cells in model.cells_of_components()]
    blocks = _blocks(model, of_states, len(covariance), joint)
    return [ScoreCovariance(at, covariance[np.ix_(at, at)]) for at in blocks]


def _blocks(model: HMM, of_states: list[np.ndarray], d: int, joint: bool) -> list[np.ndarray]:
    """Unconstrained coordinates that covariances are wanted between."""
    if joint:
        return [np.arange(d)]
    first, pairs, _ = model.prior.blocks
    ends = np.cumsum([first.n_free_parameters, pairs.n_free_parameters])
    blocks = (*np.split(np.arange(ends[-1]), ends[:-1]), *coordinate_blocks(of_states, d))
    return [block for block in blocks if len(block)]


def _alike_in_length(data: HMMData, size: int) -> Iterator[np.ndarray]:
    """Sequences of weight, in batches of which none is twice as long as another, with room for `size` numbers each."""
    lengths = data.ends - data.starts[:-1]
    order = np.argsort(-lengths, kind="stable")
    order, at = order[(lengths[order] > 0) & (data.weight[order] > 0)], 0
    while at < len(order):
        n = int(np.searchsorted(-lengths[order], -lengths[order[at]] / 2, side="right")) - at
        n = min(n, max(_BLOCK // size, 1))
        yield order[at : at + n]
        at += n


@dataclass(eq=False)
class _Scores:
    """Scores of complete sequences at a point, and sums over sequences from which their covariance is made."""

    model: HMM
    point: tuple
    data: HMMData

    def __post_init__(self):
        model, prior = self.model, self.model.prior
        n_states, n_chain = model.n_components, model.initial.n_cells + model.transitions.n_cells
        self.natural, jacobian = prior.natural(self.point), prior.jacobian(self.point)
        self.d, self.step = jacobian.shape[1], model.step(self.natural, self.data)
        self.log_first, self.log_pairs = (logs[0] for logs in model.log_chain(self.natural[:, None]))
        self.of_first = model.initial.matrix(jacobian[: model.initial.n_cells])[0]
        self.of_pairs = model.transitions.matrix(jacobian[model.initial.n_cells : n_chain])
        cells_of_states = model.cells_of_components()
        self.free = [np.flatnonzero(jacobian[cells].any(axis=0)) for cells in cells_of_states]
        self.derivatives = [jacobian[np.ix_(cells, of)] for cells, of in zip(cells_of_states, self.free)]
        self.crossed, self.second = np.zeros((self.d, self.d)), np.zeros((self.d, self.d))
        self.before_pairs = np.zeros((n_states, n_states, self.d))
        self.pairs = np.zeros((n_states, n_states))

    def add(self, batch: np.ndarray, posterior: np.ndarray) -> None:
        """Add sequences of about the same length, all rows of which have posteriors (n_rows, n_states)."""
        data, n_states = self.data, self.model.n_components
        first, last, weight = data.starts[batch], data.ends[batch], data.weight[batch]
        log_alpha, sums = np.zeros((len(batch), n_states)), np.zeros((len(batch), n_states, self.d))
        longest = int((last - first).max())
        n_steps = max(_BLOCK // (len(batch) * n_states * self.d), 1)
        for at in range(0, longest, n_steps):
            rows = first + np.arange(at, min(at + n_steps, longest))[:, None]
            inside = rows < last
            rows = np.where(inside, rows, last[None] - 1)
            smoothed = posterior[rows] * inside[..., None]  # (n_steps, n_sequences, n_states)
            block, shape = data.table[rows.ravel()], (*rows.shape, n_states)
            back, log_alpha = self._back(at == 0, self.step.log_likelihood(block).reshape(shape), log_alpha)
            through = self._of_transitions(at == 0, back, smoothed, weight)
            statistics = self.step.of_rows(block)
            by_row = self._of_rows(statistics, smoothed, weight)
            before = np.empty((*shape, self.d))
            for t in range(len(rows)):
                before[t] = sums
                through[t] += back[t].swapaxes(-1, -2) @ sums
                sums = through[t] + by_row[t]
            self._take_products(smoothed, weight, back, statistics, through, before)

    def _of_transitions(self, begins: bool, back: np.ndarray, smoothed: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Expected scores of transitions into states, less their mean, (n_steps, n_sequences, n_states, d)."""
        n_states = back.shape[-1]
        scores = np.stack([back[..., j] @ self.of_pairs[:, j] for j in range(n_states)], axis=2)
        if begins:
            scores[0] = self.of_first
            self.second += (self.of_first.T * (weight @ smoothed[0])) @ self.of_first
        mean = (smoothed[..., None, :] @ scores)[..., 0, :]
        self._subtract_squares(mean, weight)
        return scores - mean[..., None, :]

    def _of_rows(self, statistics: np.ndarray, smoothed: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Expected scores of rows given states, less their mean, (n_steps, n_sequences, n_states, d)."""
        scores = np.zeros((*smoothed.shape, self.d))
        for k, (of, derivative) in enumerate(zip(self.free, self.derivatives)):
            scores[..., k, of] = (statistics[:, k] @ derivative).reshape(*smoothed.shape[:2], len(of))
        mean = (smoothed[..., None, :] @ scores)[..., 0, :]
        self._subtract_squares(mean, weight)
        return scores - mean[..., None, :]

    def _subtract_squares(self, mean: np.ndarray, weight: np.ndarray) -> None:
        flat = (mean * np.sqrt(weight)[:, None]).reshape(-1, self.d)
        self.second -= flat.T @ flat

    def _take_products(
        self,
        smoothed: np.ndarray,
        weight: np.ndarray,
        back: np.ndarray,
        statistics: np.ndarray,
        through: np.ndarray,
        before: np.ndarray,
    ) -> None:
        """Add the products of scores of rows with each other, and of all scores with those of steps before."""
        weighted = smoothed * weight[:, None]
        for k, (of, derivative) in enumerate(zip(self.free, self.derivatives)):
            scores = statistics[:, k] @ derivative
            by_state = scores * weighted[..., k].reshape(-1, 1)
            self.second[np.ix_(of, of)] += by_state.T @ scores
            self.crossed[of] += by_state.T @ through[..., k, :].reshape(-1, self.d)
        for i in range(back.shape[-1]):
            transitions = (back[..., i, :] * weighted).reshape(-1, back.shape[-1])
            self.pairs[i] += transitions.sum(axis=0)
            self.before_pairs[i] += transitions.T @ before[..., i, :].reshape(-1, self.d)

    def add_hidden_cells(self, rows: slice, posterior: np.ndarray) -> None:
        """Add the covariance of what is missing in rows, given their states."""
        smoothed = posterior * self.data.row_weight[rows, None]
        hidden = self.step.hidden_covariance(self.data.table[rows], smoothed)
        if hidden is not None:
            for of, derivative, covariance in zip(self.free, self.derivatives, hidden):
                self.second[np.ix_(of, of)] += derivative.T @ covariance @ derivative

    def covariance(self) -> np.ndarray:
        """The covariance of the scores of all sequences that were added, (d, d)."""
        pair_scores = self.of_pairs.reshape(-1, self.d)
        crossed = self.crossed + pair_scores.T @ self.before_pairs.reshape(-1, self.d)
        return self.second + (pair_scores.T * self.pairs.ravel()) @ pair_scores + crossed + crossed.T

    def _back(self, begins: bool, logs: np.ndarray, log_alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities of the states before, (n_steps, n_sequences, from, to), and ln of how far it is known."""
        back = np.zeros((*logs.shape, logs.shape[-1]))
        for t, by_row in enumerate(logs):
            if begins and t == 0:
                log_alpha = self.log_first + by_row
            else:
                joint = log_alpha[:, :, None] + self.log_pairs
                top = joint.max(axis=1, keepdims=True)
                joint = np.exp(joint - np.where(np.isfinite(top), top, 0.0))
                total = joint.sum(axis=1, keepdims=True)
                back[t] = joint / np.where(total > 0, total, 1.0)
                with np.errstate(divide="ignore"):
                    log_alpha = np.log(total[:, 0]) + top[:, 0] + by_row
            top = log_alpha.max(axis=1, keepdims=True)
            log_alpha = log_alpha - np.where(np.isfinite(top), top, 0.0)
        return back, log_alpha
