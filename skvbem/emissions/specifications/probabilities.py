"""Families whose columns have one probability, or one share, each in each component."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from skvbem.emissions.profiles import Numbers, Probabilities
from skvbem.emissions.specifications.base import EmissionSpecification, Parameters


class ProbabilitySpecification(EmissionSpecification):
    """Columns of numbers that are told by one probability each."""

    #: Its name among the parameters.
    parameter: ClassVar[str]

    @staticmethod
    @abstractmethod
    def label(name: str) -> str:
        """What the probability of a column is of."""

    def expected(self, parameters: Parameters, levels: Sequence[np.ndarray] = ()) -> list[np.ndarray]:
        """The probabilities, column by column."""
        return list(parameters[self.parameter].T)

    def profiles(
        self,
        names: Sequence[str],
        parameters: Parameters,
        intervals: tuple[Parameters, Parameters] | None,
        levels: Sequence[np.ndarray] = (),
    ) -> list[Numbers | Probabilities]:
        """One probability for each column, with its interval."""
        profiles: list[Numbers | Probabilities] = []
        for j, name in enumerate(names):
            low_high = None
            if intervals is not None:
                low_high = intervals[0][self.parameter][:, [j]], intervals[1][self.parameter][:, [j]]
            profiles.append(Probabilities(name, [self.label(name)], parameters[self.parameter][:, [j]], low_high))
        return profiles
