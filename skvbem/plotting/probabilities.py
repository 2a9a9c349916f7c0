"""`ClassProbabilitiesDisplay`: probabilities of classes along a covariate."""

from __future__ import annotations

import numpy as np

from skvbem.plotting.display import Display, need_matplotlib
from skvbem.plotting.labels import INK, QUIET, plain_axes, series, shortened
from skvbem.reports.membership import class_probabilities


class ClassProbabilitiesDisplay(Display):
    """Probabilities of classes along one covariate, the others averaged over rows: lines with bands, or marks.

    Make one with :meth:`from_estimator`; the constructor only stores.

    Parameters
    ----------
    probabilities : ClassProbabilities

    Attributes
    ----------
    ax_ : matplotlib Axes

    Examples
    --------
    >>> from skvbem import VBMixture
    >>> from skvbem.datasets import load_cheating
    >>> from skvbem.emissions import Softmax
    >>> from skvbem.plotting import ClassProbabilitiesDisplay
    >>> X = load_cheating(as_frame=True).data.dropna().astype(float)
    >>> model = VBMixture(2, emission={"categorical": [0, 1, 2, 3]}, membership=Softmax("GPA"), random_state=0).fit(X)
    >>> display = ClassProbabilitiesDisplay.from_estimator(model, X, "GPA")
    >>> display.ax_.get_xlabel(), len(display.ax_.lines)
    ('GPA', 2)
    """

    def __init__(self, probabilities):
        self.probabilities = probabilities

    @classmethod
    def from_estimator(
        cls, estimator, X, covariate, *, values=None, node=None, level=0.95, draws=None, sample_weight=None, ax=None
    ):
        """Plot probabilities of the classes of a mixture with `membership`, or of a node that covariates drive.

        Parameters
        ----------
        estimator : fitted VBMixture, VBDiscreteDAG or VBNetwork
        X : array-like of shape (n_samples, n_features)
            The data of the fit; of `draws` that are given any rows.
        covariate : str or int
        values : sequence, default=None
            As of `VBMixture.class_probabilities`.
        node : hashable, default=None
            The node of a network; needed where covariates drive several.
        level : float, default=0.95
            Mass of the bands.
        draws, sample_weight : object, default=None
            As of `VBMixture.class_probabilities`.
        ax : matplotlib Axes, default=None
            Axes to draw into; by default those of a new figure.

        Returns
        -------
        ClassProbabilitiesDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If there is no such covariate of `membership`, or X is not the data of the fit.
        """
        need_matplotlib(cls.__name__)
        options = {"node": node, "level": level, "draws": draws, "sample_weight": sample_weight}
        return cls(class_probabilities(estimator, X, covariate, values, **options)).plot(ax=ax)

    def _size(self):
        return 6.0, 3.8

    def _draw(self, ax) -> None:
        of, is_number = self.probabilities, self.probabilities.values.dtype.kind == "f"
        at = of.values if is_number else np.arange(len(of.values))
        for k in range(of.probabilities.shape[1]):
            color, marker = series(k)
            centre, ends = of.probabilities[:, k], (of.lower[:, k], of.upper[:, k])
            if is_number:
                ax.fill_between(at, *ends, color=color, alpha=0.2, linewidth=0)
                ax.plot(at, centre, color=color, linewidth=1.5, label=f"class {k}")
            else:
                beside = at + 0.08 * (k - (of.probabilities.shape[1] - 1) / 2)
                ax.vlines(beside, *ends, color=color, linewidth=1.2)
                ax.plot(beside, centre, marker, color=color, markersize=6, label=f"class {k}")
        if not is_number:
            ax.set_xticks(at, [str(value) for value in of.values.tolist()])
        ax.set_ylim(0, 1)
        ax.set_xlabel(shortened(of.covariate), color=INK, parse_math=False)
        ax.set_ylabel("probability", color=INK)
        ax.set_title(
            f"{100 * of.level:g} % intervals by {of.method.replace('_', ' ')}", loc="left", size=9, color=QUIET
        )
        ax.legend(frameon=False)
        plain_axes(ax)
