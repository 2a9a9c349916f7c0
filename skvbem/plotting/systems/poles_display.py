"""`PolesDisplay`: the eigenvalues of a transition matrix in the unit circle."""

from __future__ import annotations

import numpy as np

from skvbem.plotting.labels import FAINT, INK, QUIET, label_at_right, plain_axes, series
from skvbem.plotting.requirements import need_matplotlib
from skvbem.plotting.systems.fits import fitted_system

# Of a pole, below which it has no imaginary part, and no length; and steps in which half is gone that no one waits for.
_NOTHING, _FOREVER = 1e-3, 10_000


class PolesDisplay:
    """Eigenvalues of the transition matrix, the poles of the system, and those of draws of it as a cloud.

    Inside the unit circle states come back to rest, the faster the nearer the pole is to the middle; outside they grow
    without limit. A pair off the real axis turns: its angle says in how many steps. Make one with
    :meth:`from_estimator`; the constructor only stores.

    Parameters
    ----------
    poles : ndarray of complex, shape (n_components,)
    drawn : ndarray of complex, shape (n_draws, n_components), default=None
        Poles of draws of the transition matrix.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    ForecastDisplay : what becomes of the states.

    Examples
    --------
    >>> from skvbem import VBLinearDynamicalSystem
    >>> from skvbem.datasets import load_nile
    >>> from skvbem.plotting import PolesDisplay
    >>> model = VBLinearDynamicalSystem(1, random_state=0).fit(load_nile().data)
    >>> display = PolesDisplay.from_estimator(model)
    >>> bool(abs(display.poles[0]) == model.spectral_radius_)
    True
    """

    def __init__(self, poles, *, drawn=None):
        self.poles = poles
        self.drawn = drawn

    @classmethod
    def from_estimator(cls, estimator, *, n_draws=200, ax=None):
        """Plot the poles of a fitted linear dynamical system.

        Parameters
        ----------
        estimator : fitted VBLinearDynamicalSystem
        n_draws : int, default=200
            Draws of q(theta) whose poles are the cloud; 0 for none. A fit that is a point has none.
        ax : matplotlib Axes, default=None
            By default in a new figure.

        Returns
        -------
        PolesDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If the estimator is no linear dynamical system.
        """
        need_matplotlib(cls.__name__)
        fitted = fitted_system(estimator, cls.__name__).fitted
        drawn = None
        if n_draws and fitted.form.density:
            k = fitted.model.n_states
            points = (fitted.posterior.sample(rng) for rng in fitted.rng_of_draws.spawn(n_draws))
            drawn = np.linalg.eigvals(np.stack([dynamics.coefficients[:, :k] for dynamics, _ in points]))
        return cls(np.linalg.eigvals(estimator.transition_), drawn=drawn).plot(ax=ax)

    def plot(self, ax=None):
        """Plot the poles.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            By default in a new figure.

        Returns
        -------
        self

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        need_matplotlib(type(self).__name__)
        from matplotlib import pyplot as plt
        from matplotlib.patches import Circle

        if ax is None:
            # room for labels right of the circle, which a layout by itself would cut off
            ax = plt.figure(figsize=(7.6, 3.8)).add_axes((0.1, 0.13, 0.45, 0.78))
        poles = np.asarray(self.poles)
        ax.add_patch(Circle((0, 0), 1, facecolor="none", edgecolor=QUIET, linewidth=1))
        ax.axhline(0, color=FAINT, linewidth=0.6, zorder=0)
        ax.axvline(0, color=FAINT, linewidth=0.6, zorder=0)
        color, marker = series(0)
        if self.drawn is not None:
            cloud = np.ravel(self.drawn)
            ax.plot(cloud.real, cloud.imag, ".", color=color, alpha=0.15, markersize=3, markeredgewidth=0, zorder=2)
        ax.plot(poles.real, poles.imag, marker, color=series(1)[0], markersize=7, zorder=3)
        reach = 1.15 * max(1.0, float(np.abs(poles).max(initial=0.0)))
        ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel="real part", ylabel="imaginary part")
        ax.set_title("Poles", color=INK)
        plain_axes(ax)
        label_at_right(ax, [(*where, words, INK, "normal") for where, words in _named(poles)], size=8)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _named(poles: np.ndarray) -> list[tuple[tuple[float, float], str]]:
    """Where each pole stands, one of a pair, and what it says, in words; poles of one meaning are named once."""
    named: dict[str, tuple[float, float]] = {}
    for pole in sorted(poles[poles.imag > -_NOTHING], key=lambda each: -abs(each)):
        named.setdefault(in_words(complex(pole)), (pole.real, pole.imag))
    return [(where, words) for words, where in named.items()]


def in_words(pole: complex) -> str:
    """What a pole says: how long a turn of its states takes, and in how many steps half of them is gone."""
    radius = abs(pole)
    if radius < _NOTHING:
        return "forgets at once"
    words = []
    if abs(pole.imag) > _NOTHING * radius:
        words.append(f"turns in {2 * np.pi / abs(np.angle(pole)):.3g} steps")
    elif pole.real < 0:
        words.append("changes sign")
    if radius > 1:
        words.append(f"grows by {100 * (radius - 1):.2g} % a step")
    elif radius < 1:
        steps = np.log(0.5) / np.log(radius)
        words.append("stays" if steps > _FOREVER else f"half gone in {steps:,.{0 if steps >= 10 else 1}f} steps")
    return ", ".join(words) or "stays"
