"""Covariates as regressors: numbers in deviations from their means, orthonormal contrasts in place of categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import block_diag

from skvbem.families.softmax_maximum import contrasts


@dataclass(frozen=True, eq=False)
class Coding:
    """Regressors that covariates become, a constant first.

    Parameters
    ----------
    mean, unit : ndarray of shape (n_regressors - 1,)
        Numbers and contrasts of categories are measured in these units from here.
    n_categories : tuple of int
        Categories of each covariate, of which L have L - 1 contrasts; 0 of numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem.emissions.coding import Coding
    >>> values = np.array([[30.0, 0], [50, 1], [70, 1], [50, 0]])  # ages, and codes of two categories
    >>> Coding.of(values, np.ones(4), (0, 2)).regressors(values).round(2).tolist()
    [[1.0, -1.41, 0.71], [1.0, 0.0, -0.71], [1.0, 1.41, -0.71], [1.0, 0.0, 0.71]]
    """

    mean: np.ndarray
    unit: np.ndarray
    n_categories: tuple[int, ...]

    @classmethod
    def of(
        cls, values: np.ndarray, weight: np.ndarray, n_categories: Sequence[int], *, standardize: bool = True
    ) -> Self:
        """The coding of covariates (n_rows, n_covariates), from the means of rows with weights if it standardizes."""
        sizes = tuple(map(int, n_categories))
        numbers = _uncoded(values, sizes)
        mean, unit = np.zeros(numbers.shape[1]), np.ones(numbers.shape[1])
        if standardize:
            mean = weight @ numbers / weight.sum()
            deviation = np.sqrt(weight @ (numbers - mean) ** 2 / weight.sum())
            unit = np.where((deviation > 0) & ~_are_contrasts(sizes), deviation, 1.0)
        return cls(mean, unit, sizes)

    @property
    def n_slopes(self) -> list[int]:
        """Slopes of each covariate: one of numbers, and of each category but one."""
        return _n_slopes(self.n_categories)

    @property
    def columns(self) -> np.ndarray:
        """The covariate that each regressor but the constant is of, (n_regressors - 1,)."""
        return np.repeat(np.arange(len(self.n_categories)), self.n_slopes)

    def regressors(self, values: np.ndarray) -> np.ndarray:
        """Regressors (n_rows, n_regressors) of covariates (n_rows, n_covariates)."""
        numbers = _uncoded(values, self.n_categories)
        return np.column_stack([np.ones(len(values)), (numbers - self.mean) / self.unit])

    @property
    def effects(self) -> np.ndarray:
        """Matrix from coefficients of regressors to an intercept, slopes by unit, and effects of levels."""
        to_units = np.diag(np.append(1.0, 1.0 / self.unit))
        to_units[0, 1:] = -self.mean / self.unit
        return block_diag(1.0, *(contrasts(n) if n else np.eye(1) for n in self.n_categories)) @ to_units


def _uncoded(values: np.ndarray, n_categories: Sequence[int]) -> np.ndarray:
    """Numbers as they are, (n_rows, n_regressors - 1), and orthonormal contrasts in place of codes of categories."""
    columns = [
        contrasts(n)[values[:, j].astype(int)] if n else values[:, j : j + 1] for j, n in enumerate(n_categories)
    ]
    return np.concatenate([np.empty((len(values), 0)), *columns], axis=1)


def _are_contrasts(n_categories: Sequence[int]) -> np.ndarray:
    """Boolean array of the regressors but the constant that are contrasts of categories."""
    return np.repeat([n > 0 for n in n_categories], _n_slopes(n_categories)).astype(bool)


def _n_slopes(n_categories: Sequence[int]) -> list[int]:
    return [n - 1 if n else 1 for n in n_categories]


def named_effects(names: Sequence[str], levels: Sequence[np.ndarray]) -> list[tuple[str, str]]:
    """The covariate of each effect of a coding, and its name: that of the covariate, or covariate=level.

    Parameters
    ----------
    names : sequence of str
        Of covariates.
    levels : sequence of ndarray
        Levels of each, none of numbers.
    """
    effects = []
    for name, of_column in zip(names, levels):
        effects += [(name, f"{name}={level}") for level in of_column.tolist()] or [(name, name)]
    return effects
