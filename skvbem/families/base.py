r"""What every conjugate family owes, and what it gets for it.

A member of a family is :math:`p(\theta \mid \eta, \nu) = h(\eta, \nu)\, g(\theta)^\eta e^{\phi(\theta)^\top \nu}`
[Beal (2.88)]. Its fields are held in *additive* coordinates, so that a posterior is ``prior + statistics``
[Beal (2.98), (2.99)]. With :math:`A = -\ln h` everything else follows from A and its gradient, the expected natural
parameters :math:`(\langle\ln g\rangle, \langle\phi\rangle)` [Beal (2.89), (2.95)]:

.. math::

    \mathrm{KL}(q \,\|\, p) = (\eta_q - \eta_p)^\top \nabla A(q) - [A(q) - A(p)], \qquad
    \ln p(\text{complete data}) = A(\text{prior} + \text{statistics}) - A(\text{prior}).

The difference of A is asked for as such (`log_normalizer_increment`), because as a difference of two large numbers it
would lose the digits that matter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np


class ConjugateFamily(ABC):
    """A value: one or many members of a conjugate family, batch axes last."""

    @abstractmethod
    def __add__(self, statistics: np.ndarray) -> Self:
        """The posterior of this prior after complete data with these statistics [Beal (2.98), (2.99)]."""

    @abstractmethod
    def statistics_above(self, prior: Self) -> np.ndarray:
        """What was added to `prior` to give this member."""

    @abstractmethod
    def log_normalizer(self) -> np.ndarray:
        """A = -ln h, nats, summed over the block; of the shape of the batch."""

    @abstractmethod
    def log_normalizer_increment(self, statistics: np.ndarray) -> np.ndarray:
        """A(self + statistics) - A(self), nats, without cancellation; of the shape of the batch."""

    @abstractmethod
    def expected_natural(self) -> np.ndarray:
        """The gradient of A: expected natural parameters [Beal (2.95)]."""

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> np.ndarray:
        """A draw of the parameters."""

    def kl(self, other: Self) -> np.ndarray:
        """KL(self || other), nats, summed over the block."""
        added = self.statistics_above(other)
        return self._inner(added, self.expected_natural()) - other.log_normalizer_increment(added)

    def log_evidence(self, statistics: np.ndarray) -> np.ndarray:
        """Log marginal likelihood of complete data with these statistics under this prior, nats."""
        return self.log_normalizer_increment(statistics)

    @staticmethod
    @abstractmethod
    def _inner(statistics: np.ndarray, natural: np.ndarray) -> np.ndarray:
        """Statistics times natural parameters, summed over the block, with 0 x (-inf) = 0."""
