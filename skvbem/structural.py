r"""Blocks of structural time series: levels, trends, seasons, cycles and autoregressions, of which a series is the sum.

A block has states of its own, which move by a matrix and a noise of learned variance,

.. math:: x_t = A x_{t-1} + \eta_t, \qquad \eta_{kt} \sim N(0, 1 / \tau_k),

and adds one of them, or a sum of them, to the series [Harvey89]. The matrix is known, but for the coefficients of an
`Autoregression`. `VBLinearDynamicalSystem` takes a list of blocks as
its ``blocks``. See :doc:`/user_guide/structural`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Integral, Real
from typing import ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from skvbem._compat import Interval, SuggestingMixin

__all__ = ["Autoregression", "Cycle", "Level", "Season", "Trend"]


class BlockStates(NamedTuple):
    """The states of a block.

    Parameters
    ----------
    transition : ndarray of shape (k, k)
        A.
    reading : ndarray of shape (k,)
        What the series is of the states.
    noise : tuple of str or None, one for each state
        Name of the noise that moves it. States of one name have one variance; None has none.
    are_steps : tuple of bool
        Whether a state is measured in changes of the series from step to step, as a slope is, or as the series itself.
    start : ndarray of shape (k,)
        Variances of first states in this unit.
    order : int, default=0
        How many entries of the first row of A are learned: all but the last one of an autoregression.
    """

    transition: np.ndarray
    reading: np.ndarray
    noise: tuple[str | None, ...]
    are_steps: tuple[bool, ...]
    start: np.ndarray
    order: int = 0


class Block(SuggestingMixin, BaseEstimator, ABC):
    """A block as a user says it."""

    _parameter_constraints: ClassVar[dict] = {}

    #: Whether the block holds a level, so that the series needs no offset beside it.
    has_level: ClassVar[bool] = False

    def check_parameters(self) -> None:
        """Refuse parameters that make no block.

        Raises
        ------
        InvalidParameterError
            Naming the parameter.
        """
        self._validate_params()

    @property
    @abstractmethod
    def label(self) -> str:
        """The block in words, such as "season of 12"."""

    @property
    @abstractmethod
    def states(self) -> BlockStates:
        """The states of the block."""


class Level(Block):
    r"""A level that walks at random: :math:`\mu_t = \mu_{t-1} + \eta_t`.

    Parameters
    ----------
    noise : bool, default=True
        Whether the level moves; without it the level is a constant.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem import VBLinearDynamicalSystem
    >>> from skvbem.structural import Level
    >>> rng = np.random.default_rng(0)
    >>> X = np.cumsum(rng.normal(size=(100, 1)), axis=0) + rng.normal(size=(100, 1))
    >>> model = VBLinearDynamicalSystem(blocks=[Level()], random_state=0).fit(X)
    >>> sorted(model.state_deviation_)
    ['level']
    """

    has_level = True
    _parameter_constraints: ClassVar[dict] = {"noise": ["boolean"]}

    def __init__(self, noise=True):
        self.noise = noise

    @property
    def label(self) -> str:
        """The block in words."""
        return "level"

    @property
    def states(self) -> BlockStates:
        """One state."""
        return BlockStates(np.eye(1), np.ones(1), ("level" if self.noise else None,), (False,), np.ones(1))


class Trend(Block):
    r"""A level with a slope: :math:`\mu_t = \mu_{t-1} + \beta_{t-1} + \eta_t`, :math:`\beta_t = \beta_{t-1} + \zeta_t`.

    Parameters
    ----------
    level_noise : bool, default=True
        Whether the level moves beside its slope. Without it the trend is smooth: a level moves by its slope alone.
    slope_noise : bool, default=True
        Whether the slope moves; without it the level is a random walk with a drift.

    Examples
    --------
    >>> from skvbem.structural import Trend
    >>> Trend(level_noise=False).states.noise
    (None, 'slope')
    """

    has_level = True
    _parameter_constraints: ClassVar[dict] = {"level_noise": ["boolean"], "slope_noise": ["boolean"]}

    def __init__(self, level_noise=True, slope_noise=True):
        self.level_noise = level_noise
        self.slope_noise = slope_noise

    @property
    def label(self) -> str:
        """The block in words."""
        return "trend"

    @property
    def states(self) -> BlockStates:
        """The level and its slope."""
        noise = ("level" if self.level_noise else None, "slope" if self.slope_noise else None)
        transition, reading = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([1.0, 0.0])
        return BlockStates(transition, reading, noise, (False, True), np.ones(2))


class Season(Block):
    r"""A pattern that repeats itself after a number of steps, and may change slowly: waves of that period.

    The wave j of the period s has two states that turn by :math:`2\pi j / s` in each step, the wave of two steps, if
    there is one, a single state that changes its sign. All have one variance.

    Parameters
    ----------
    period : float, default=12
        Steps after which the pattern repeats itself, > 1; 365.25 for days in years is fine.
    harmonics : int, default=None
        Number of waves, of periods s, s/2, s/3, ...; by default all that steps can show, s/2.
    noise : bool, default=True
        Whether the pattern changes; without it the pattern is the same in all periods.

    Examples
    --------
    >>> from skvbem.structural import Season
    >>> len(Season(12).states.reading), len(Season(365.25, harmonics=3).states.reading)
    (11, 6)
    """

    _parameter_constraints: ClassVar[dict] = {
        "period": [Interval(Real, 1, None, closed="neither")],
        "harmonics": [None, Interval(Integral, 1, None, closed="left")],
        "noise": ["boolean"],
    }

    def __init__(self, period=12, harmonics=None, noise=True):
        self.period = period
        self.harmonics = harmonics
        self.noise = noise

    def check_parameters(self) -> None:
        """Refuse parameters that make no season.

        Raises
        ------
        ValueError
            If there are more waves than steps can show.
        """
        super().check_parameters()
        most = int(self.period // 2)
        if not 1 <= (most if self.harmonics is None else self.harmonics) <= most:
            raise ValueError(
                f"A Season of {self.period:g} steps has at most {most} waves: a wave of fewer than two steps looks "
                f"like a longer one. Got harmonics={self.harmonics!r}."
            )

    @property
    def label(self) -> str:
        """The block in words."""
        return f"season of {self.period:g}"

    @property
    def states(self) -> BlockStates:
        """Two states of each wave, one of a wave of two steps."""
        n = int(self.period // 2) if self.harmonics is None else self.harmonics
        waves = [_wave(2 * np.pi * (j + 1) / self.period) for j in range(n)]
        k = sum(map(len, waves))
        transition, reading, at = np.zeros((k, k)), np.zeros(k), 0
        for wave in waves:
            transition[at : at + len(wave), at : at + len(wave)] = wave
            reading[at] = 1.0
            at += len(wave)
        noise = (self.label if self.noise else None,) * k
        return BlockStates(transition, reading, noise, (False,) * k, np.full(k, 1.0 / n))


class Cycle(Block):
    r"""A wave of a known period, whose height and phase change, and which may die away.

    Its two states turn by :math:`2\pi` over the period in each step, and are multiplied by the damping.

    Parameters
    ----------
    period : float, default=8
        Steps of a wave, > 2.
    damping : float, default=1.0
        Share that is left of a wave after a step, > 0 and <= 1.
    noise : bool, default=True
        Whether height and phase change.

    Examples
    --------
    >>> from skvbem.structural import Cycle
    >>> Cycle(4).states.transition.round(12).tolist()
    [[0.0, 1.0], [-1.0, 0.0]]
    """

    _parameter_constraints: ClassVar[dict] = {
        "period": [Interval(Real, 2, None, closed="neither")],
        "damping": [Interval(Real, 0, 1, closed="right")],
        "noise": ["boolean"],
    }

    def __init__(self, period=8, damping=1.0, noise=True):
        self.period = period
        self.damping = damping
        self.noise = noise

    @property
    def label(self) -> str:
        """The block in words."""
        return f"cycle of {self.period:g}"

    @property
    def states(self) -> BlockStates:
        """Two states that turn."""
        wave = self.damping * _wave(2 * np.pi / self.period)
        noise = (self.label if self.noise else None,) * 2
        return BlockStates(wave, np.array([1.0, 0.0]), noise, (False, False), np.ones(2))


class Autoregression(Block):
    r"""A part of a series that depends on its own last values, by learned coefficients.

    .. math:: u_t = a_1 u_{t-1} + \ldots + a_p u_{t-p} + \eta_t, \qquad \eta_t \sim N(0, 1 / \tau), \qquad
              a \mid \tau \sim N(0, (\tau \alpha s^2)^{-1} I),

    with :math:`\alpha` the `transition_precision_prior` of `VBLinearDynamicalSystem`, by default 1, and s the root mean
    square change of the column from a step to the next: where the noise is about as large as that, coefficients are
    within -1 to 1 or so. Nothing keeps them from growth; data do. States are the last p + 1 values, the newest first.

    Parameters
    ----------
    order : int, default=1
        p, the number of last values, >= 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem import VBLinearDynamicalSystem
    >>> from skvbem.structural import Autoregression
    >>> rng = np.random.default_rng(0)
    >>> u = np.zeros(300)
    >>> for t in range(1, 300):
    ...     u[t] = 0.8 * u[t - 1] + rng.normal()
    >>> model = VBLinearDynamicalSystem(blocks=[Autoregression()], random_state=0).fit(u[:, None] + 5)
    >>> bool(0.65 < model.autoregression_[0, 0] < 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict] = {"order": [Interval(Integral, 1, None, closed="left")]}

    def __init__(self, order=1):
        self.order = order

    @property
    def label(self) -> str:
        """The block in words."""
        return f"autoregression of order {self.order}"

    @property
    def states(self) -> BlockStates:
        """The last values and the one before them, as coefficients follow from products of neighbors."""
        k = self.order + 1
        noise = (self.label, *(None,) * self.order)
        return BlockStates(np.eye(k, k=-1), np.eye(k)[0], noise, (False,) * k, np.ones(k), self.order)


def _wave(angle: float) -> np.ndarray:
    """The turn of two states in a step; of an angle of half a turn one state that changes its sign."""
    if np.isclose(angle, np.pi, rtol=1e-12, atol=0.0):
        return -np.eye(1)
    return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
