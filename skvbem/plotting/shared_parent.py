"""`SharedParentDisplay`: which observed nodes hang together by something hidden."""

from __future__ import annotations

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform
from sklearn.utils.validation import check_is_fitted

from skvbem._names import did_you_mean
from skvbem.plotting.display import Display, need_matplotlib
from skvbem.plotting.labels import INK, percent

# From no probability to certainty: light to the blue of the other displays.
_COLORS = ("#f4f7fa", "#d6e6f5", "#9dc0e0", "#5b92c4", "#2f6ea5", "#1d4e7a")
_CELL, _MAX_WIDTH = 0.46, 12.0  # inches


class SharedParentDisplay(Display):
    """P(two observed nodes share a hidden parent), in percent, for every pair; on the diagonal, P(a node has one).

    These probabilities do not depend on what latents are called. Make one with :meth:`from_estimator`; the constructor
    only stores.

    Parameters
    ----------
    probabilities : ndarray of shape (n_nodes, n_nodes)
        Symmetric.
    nodes : sequence
        Their names.

    See Also
    --------
    DAGDisplay : the network, edges as wide as they are probable.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem.plotting import SharedParentDisplay
    >>> display = SharedParentDisplay(np.array([[1.0, 0.97], [0.97, 0.98]]), ["x", "y"]).plot()
    >>> [text.get_text() for text in display.ax_.texts]
    ['100', '97', '98']
    """

    def __init__(self, probabilities, nodes):
        self.probabilities = probabilities
        self.nodes = nodes

    @classmethod
    def from_estimator(cls, search, *, nodes=None, ax=None):
        """Plot the probabilities of a fitted search.

        Parameters
        ----------
        search : fitted StructureSearchCV
            With `shared_parent_probabilities_`: over structures with latents, without `cv`.
        nodes : list, default=None
            Which nodes, in which order; by default all, in an order that puts together what hangs together.
        ax : matplotlib Axes, default=None
            By default in a new figure of fitting size.

        Returns
        -------
        SharedParentDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If a node is not one of the search.
        """
        need_matplotlib(cls.__name__)
        check_is_fitted(search, "shared_parent_probabilities_")
        table = search.shared_parent_probabilities_
        values, known = np.asarray(table), table.levels[0].tolist()
        for node in nodes or ():
            if node not in known:
                raise ValueError(
                    f"The 'nodes' parameter of {cls.__name__} names {node!r}, which is no observed node of the search."
                    f"{did_you_mean(node, known)}"
                )
        order = together(values) if nodes is None else [known.index(node) for node in nodes]
        return cls(values[np.ix_(order, order)], [known[k] for k in order]).plot(ax=ax)

    def _size(self):
        side = min(_CELL * len(self.nodes), _MAX_WIDTH)
        return side + 1.6, side + 1.2

    def _draw(self, ax) -> None:
        from matplotlib.colors import LinearSegmentedColormap

        values, n = np.asarray(self.probabilities, dtype=float), len(self.nodes)
        colors = LinearSegmentedColormap.from_list("probability", _COLORS)
        shown = np.ma.masked_array(values, np.triu(np.ones((n, n), dtype=bool), 1))
        ax.pcolormesh(shown, cmap=colors, vmin=0.0, vmax=1.0, edgecolor="white", linewidth=1.5)
        size = min(9.0, 0.36 * 72 * ax.get_window_extent().height / ax.figure.dpi / n)
        for row in range(n):
            for column in range(row + 1):
                share = values[row, column]
                ax.text(
                    column + 0.5, row + 0.5, percent(share), ha="center", va="center_baseline", size=size,
                    color="white" if share > 0.55 else INK,
                )  # fmt: skip
        ax.set(xlim=(0, n), ylim=(n, 0), aspect="equal")
        names = [str(node) for node in self.nodes]
        ax.set_xticks(np.arange(n) + 0.5, names, rotation=45, ha="right", rotation_mode="anchor", parse_math=False)
        ax.set_yticks(np.arange(n) + 0.5, names, parse_math=False)
        ax.tick_params(length=0, labelcolor=INK)
        ax.spines[:].set_visible(False)
        ax.set_title("share a hidden parent, %\n(diagonal: have one)", loc="left", size=9, color=INK)


def together(probabilities: np.ndarray) -> list[int]:
    """An order of the nodes in which those that probably share a parent are neighbors."""
    distance = 1.0 - (probabilities + probabilities.T) / 2
    np.fill_diagonal(distance, 0.0)
    if len(distance) < 3 or np.ptp(squareform(distance, checks=False)) < 1e-9:
        return list(range(len(distance)))
    order = leaves_list(linkage(squareform(distance, checks=False), "average", optimal_ordering=True)).tolist()
    return order if order[0] < order[-1] else order[::-1]
