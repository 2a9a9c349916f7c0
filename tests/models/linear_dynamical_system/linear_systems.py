"""Linear dynamical systems for tests: the small problems whose numbers are known, and random ones."""

from typing import NamedTuple

import numpy as np

from skvbem.models.linear_dynamical_system.model import LDSAscent, LinearDynamicalSystem

NAN = np.nan


class Problem(NamedTuple):
    """Sequences with a prior, and the means of states from which a run starts, of unit variance."""

    y: np.ndarray
    lengths: list
    k: int
    alpha: list
    gamma: list
    a0: float
    b0: float
    u: np.ndarray
    v: np.ndarray
    weight: np.ndarray
    x: np.ndarray

    @property
    def model(self):
        """Each column has a precision matrix of its own."""
        p = self.y.shape[1]
        shape, rate = np.full(p, self.a0), np.full(p, self.b0)
        return LinearDynamicalSystem.from_precisions(
            self.alpha, self.gamma, shape=shape, rate=rate, group=np.arange(p), n_states=self.k
        )

    def compile(self):
        return self.model.compile(self.y, self.lengths, self.weight, self.u, self.v)

    @property
    def start(self):
        """Statistics (n_cells, 1)."""
        return self.model.statistics_of_start(self.compile(), self.x[self.compile().rows], 1.0)[:, None]

    def sequences(self):
        """Of each sequence y, u, v, its weight and the means of its states at the start."""
        ends = np.cumsum(self.lengths)
        for end, n, weight in zip(ends, self.lengths, self.weight):
            rows = slice(end - n, end)
            yield self.y[rows], self.u[rows], self.v[rows], weight, self.x[rows]


def problem(y, k, gamma, a0, *, lengths=None, alpha=None, b0=1.0, u=None, v=None, weight=None, x=None):
    """A problem, all of which but the data has a default."""
    y = np.array(y, dtype=float)
    lengths = [len(y)] if lengths is None else lengths
    u, v = (np.zeros((len(y), 0)) if each is None else np.array(each, dtype=float) for each in (u, v))
    alpha = [1.0] * (k + u.shape[1]) if alpha is None else alpha
    weight = np.ones(len(lengths)) if weight is None else np.array(weight, dtype=float)
    x = np.zeros((len(y), k)) if x is None else np.array(x, dtype=float)
    return Problem(y, lengths, k, alpha, gamma, a0, b0, u, v, weight, x)


SIX_STEPS = problem(
    [(0.5, -0.2), (1, 0.3), (NAN, 0.9), (1.8, NAN), (1.1, 0.8), (0.2, NAN)],
    1, [1.0], 2.0, x=[[0.5], [1], [1], [1.5], [1], [0]],
)  # fmt: skip
TWO_SEQUENCES = problem(
    [
        (0, 0.3), (NAN, -0.9), (-0.5, -1), (0.1, 1.3), (-0.5, -0.6),
        (0.5, 0.4), (0.1, -0.9), (NAN, NAN), (-1.3, -0.5),
    ],
    2, [0.5, 0.5, 0.01], 1.0,
    lengths=[5, 4], u=np.array([[0, 1, 0, -1, 0.5, 0, 0.3, 0.2, 1]]).T, v=np.ones((9, 1)), weight=[1, 2],
    x=[(1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (0, 1), (1, 1), (0, 0), (-1, 1)],
)  # fmt: skip
#: ln p(y) by quadrature (12 digits) or by sums over the prior, and the best bound of 20 starts.
EVIDENCES = {
    "four steps": (problem([[1.2], [0.7], [-0.4], [0.9]], 1, [1.0], 2.0), -5.690196474622, -6.800979108528),
    "ten steps": (
        problem([[0.3], [1.1], [NAN], [2], [2.6], [2.2], [NAN], [3.1], [3.3], [2.9]], 1, [1.0], 2.0),
        -13.288833839029, -15.665169206442,
    ),
    "two states": (
        problem([[1], [-0.6], [0.8], [-1.1], [0.2], [-0.3], [1.4], [-0.9]], 2, [1.0, 1.0], 2.0),
        -11.35875, -16.626291575173,
    ),
    "two columns": (
        problem(
            [(0.9, 1.4), (1.3, NAN), (0.4, 0.2), (NAN, -0.7), (-0.8, -1), (-0.2, NAN), (0.6, 1.1), (1.5, 1.6)],
            1, [1.0], 2.0,
        ),
        -18.90123, -20.466752029434,
    ),
}  # fmt: skip


def random_problem(rng, *, gaps=True, whole=False):
    """Sequences of several lengths, some of them alike, with inputs, weights and missing cells."""
    k, p, q, r = (int(n) for n in rng.integers([1, 1, 0, 0], [4, 5, 3, 3]))
    lengths = [int(n) for n in rng.integers(1, 9, size=rng.integers(1, 5))]
    lengths += lengths[:1]
    n = sum(lengths)
    y = rng.normal(size=(n, p))
    if gaps:
        y[rng.random((n, p)) < 0.3] = NAN
        y[-1, 0] = 0.3  # the last step counts
    weight = rng.integers(0, 4, len(lengths)) if whole else rng.uniform(0.2, 2.0, len(lengths))
    weight[0] = max(weight[0], 1.0)
    return problem(
        y, k, rng.uniform(0.2, 2.0, k + r).tolist(), float(rng.uniform(0.5, 3.0)), lengths=lengths,
        alpha=rng.uniform(0.3, 3.0, k + q).tolist(), b0=float(rng.uniform(0.5, 2.0)),
        u=rng.normal(size=(n, q)), v=rng.normal(size=(n, r)), weight=weight, x=rng.normal(size=(n, k)),
    )  # fmt: skip


class PlainAscent(LDSAscent):
    """Full steps that leave states in their basis."""

    def _expanded(self, statistics, hidden, natural, expansion):
        return statistics + hidden, None
