"""The base of displays: axes of their own if none are at hand, checks of what is drawn, matplotlib on demand."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

# What displays draw, in words, and the attributes of fits that tell it.
CHAINS = ("hidden Markov models, VBHMM", "groups_", "transmat_")
FACTORS = ("factor analyses, VBFactorAnalysis", "standardized_loadings_", "get_covariance")
MIXTURES = ("mixtures, VBMixture", "groups_", "weights_")
SYSTEMS = ("linear dynamical systems, VBLinearDynamicalSystem", "transition_", "forecast")


class Display:
    """A picture that is stored as what it shows, and drawn as often as wanted."""

    ax_: Any
    figure_: Any

    def plot(self, ax=None):
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            By default in a new figure of fitting size.

        Returns
        -------
        self
            With the axes as `ax_` and their figure as `figure_`, which can be changed further.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        need_matplotlib(type(self).__name__)
        ax = self._new_axes() if ax is None else ax
        self._draw(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _new_axes(self) -> Any:
        """Axes in a new figure."""
        from matplotlib import pyplot as plt

        return plt.subplots(figsize=self._size(), layout="constrained")[1]

    def _size(self) -> tuple[float, float]:
        """Width and height of a new figure, inches."""
        raise NotImplementedError

    def _draw(self, ax) -> None:
        raise NotImplementedError


class Panels:
    """Pictures side by side or on top of each other, stored as what they show, and drawn as often as wanted."""

    axes_: np.ndarray
    figure_: Any

    def plot(self, axes=None):
        """Draw the pictures.

        Parameters
        ----------
        axes : array-like of matplotlib Axes, default=None
            As `axes_`; by default in a new figure of fitting size.

        Returns
        -------
        self
            With the axes as `axes_` and their figure as `figure_`, which can be changed further.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If `axes` are given and of another number.
        """
        need_matplotlib(type(self).__name__)
        shape, _ = self._grid()
        axes = np.asarray(self._new_axes() if axes is None else axes, dtype=object)
        if axes.size != np.prod(shape):
            raise ValueError(
                f"The 'axes' parameter of {type(self).__name__} must hold {' x '.join(map(str, shape))} axes. Got "
                f"{axes.size}."
            )
        self.axes_ = axes.reshape(shape)
        self._draw(self.axes_)
        self.figure_ = axes.flat[0].figure
        return self

    def _new_axes(self) -> Any:
        """Axes in a new figure, a grid of equal ones."""
        from matplotlib import pyplot as plt

        shape, options = self._grid()
        size = {"nrows": shape[0], "ncols": shape[1] if len(shape) == 2 else 1}
        return plt.subplots(**size | options, layout="constrained")[1]

    def _grid(self) -> tuple[tuple[int, ...], dict]:
        """The shape of the axes, one below the other if it is one number, and options of a new figure."""
        raise NotImplementedError

    def _draw(self, axes: np.ndarray) -> None:
        raise NotImplementedError


def need_matplotlib(owner: str) -> None:
    """Raise an ImportError that says what to install, if matplotlib is missing.

    Parameters
    ----------
    owner : str
        Who needs it.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(f"{owner} needs matplotlib. Install it with: pip install 'skvbem[plot]'") from error


def check_drawable(estimator: Any, kind: tuple[str, ...], owner: str) -> None:
    """Raise an error if matplotlib is missing, or if what is to be drawn is no fitted estimator of a kind.

    Raises
    ------
    ImportError, NotFittedError, TypeError
    """
    need_matplotlib(owner)
    check_is_fitted(estimator)
    words, *attributes = kind
    if not all(hasattr(estimator, attribute) for attribute in attributes):
        raise TypeError(f"{owner} draws fitted {words}. Got {type(estimator).__name__}.")


def check_share(name: str, value: float | None, owner: str, *, optional: bool = False) -> None:
    """Raise a ValueError if a parameter of a display is no share between 0 and 1."""
    if not (optional if value is None else 0 < value < 1):
        raise ValueError(
            f"The {name!r} parameter of {owner} must lie between 0 and 1{', or be None' * optional}. Got {value!r} "
            "instead."
        )
