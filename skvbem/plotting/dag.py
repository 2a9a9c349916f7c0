"""`DAGDisplay`: a network as a picture, without Graphviz."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from itertools import product
from numbers import Real

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skvbem._names import did_you_mean
from skvbem.fitted.information_of_parents import information_of_parents
from skvbem.graphs.dag import DAG
from skvbem.graphs.undirected import UndirectedGraph, is_undirected
from skvbem.plotting.display import need_matplotlib
from skvbem.plotting.edges import edge_information, layered, pair_information, with_probable_edges, with_probable_lines
from skvbem.plotting.labels import INK, percent
from skvbem.plotting.layout import layered_layout
from skvbem.plotting.path_diagram import draw_label, path_coefficients, places_of_labels
from skvbem.spaces.settings import resolve_latents

_FONT_SIZE = 10.0  # points, in a figure that the display makes itself
_LABEL_SIZE = 8.0  # points, of what is written on arrows
_LABEL_ROOM = 0.5, 0.35  # inches, beside nodes and between layers
_MARGIN = 0.2  # inches
_THIN, _THICK = 0.7, 4.5  # points
_MAX_EDGES_TOLD, _NOTE_WIDTH = 4, 48  # edges not drawn, letters of a line under the picture

_LATENT_FACE, _LATENT_BORDER = "#d6e6f5", "#2f6ea5"
_OBSERVED_FACE, _OBSERVED_BORDER = "#ffffff", "#52606d"
_LINE = "#7b8794"


class DAGDisplay:
    """A graph in layers: latents shaded ellipses, columns boxes, arrows from parent to child, or plain lines.

    Make one with :meth:`from_estimator`, :meth:`from_search` or :meth:`from_structure`; the constructor only stores.

    Parameters
    ----------
    dag : DAG
        The graph.
    latents : mapping of node to int, or collection of nodes, default=()
        The hidden nodes, with the number of states to print in each if known.
    edge_widths : mapping of (parent, child) to float, default=None
        One number >= 0 per edge, to which the width of its arrow is proportional (down to a hairline). None draws all
        arrows alike.
    edge_widths_title : str, default=None
        What the widths mean, written under the picture.
    full_width : float, default=None
        The number whose arrow is as wide as arrows get; by default the largest there is.
    dashed : collection of (parent, child), default=()
        Edges drawn dashed.
    undirected : bool, default=False
        Whether edges have no direction: they are drawn as lines, and their ends may be given in either order.
    edge_labels : mapping of (parent, child) to str, default=None
        What to write on arrows.
    notes : mapping of node to str, default=None
        What to write under the names of nodes.

    Attributes
    ----------
    layout_ : Layout
        Places of nodes and lines of edges, in the units of the axes.

    See Also
    --------
    BoundDisplay : the bound of every start of a fit.

    Examples
    --------
    >>> from skvbem.plotting import DAGDisplay
    >>> display = DAGDisplay.from_structure("[class][x|class][y|class]", latents={"class": 3})
    >>> display.layout_.layers
    {'class': 0, 'x': 1, 'y': 1}
    """

    def __init__(self, dag, *, latents=(), edge_widths=None, edge_widths_title=None, full_width=None, dashed=(),
                 undirected=False, edge_labels=None, notes=None):  # fmt: skip
        self.dag = dag
        self.latents = latents
        self.edge_widths = edge_widths
        self.edge_widths_title = edge_widths_title
        self.full_width = full_width
        self.dashed = dashed
        self.undirected = undirected
        self.edge_labels = edge_labels
        self.notes = notes

    @classmethod
    def from_estimator(cls, estimator, *, ax=None, edge_widths="auto", node_labels=None):
        """Draw the network of a fitted estimator.

        Parameters
        ----------
        estimator : fitted VBDiscreteDAG or VBNetwork
            Or any fitted estimator with `structure_`, `latent_names_`, `tables_` and `counts_`.
        ax : matplotlib Axes, default=None
            Where to draw; by default in a new figure of fitting size.
        edge_widths : {"auto", "standardized", "mutual_information"}, mapping of edges to float, or None, default="auto"
            The strength of each edge (parent, child), >= 0, or None for arrows that are all alike; see Notes. "auto" is
            "standardized" for networks of numbers alone, and else "mutual_information".
        node_labels : mapping of node to str, default=None
            What to write instead of the names of nodes.

        Returns
        -------
        DAGDisplay

        Notes
        -----
        "standardized" draws a path diagram: arrows between numbers are as wide as their standardized coefficients are
        large, which they bear with 95 % intervals of q(theta); below categories those of each of their states. Numbers
        below others bear R². Arrows from categories are thin. `summary` has the same numbers.

        "mutual_information" is I(child; parent | the child's other parents), in nats per row. It is what one learns of
        the child from this parent once its other parents are known. The child's table is as fitted, and the states of
        its parents are as frequent as expected in the data. It is also the loss of the child's expected log
        probability if the edge is taken out; an edge that changes nothing has zero. For numbers it is found from two
        thousand draws for each joint state of their parents, which are as frequent as in new rows. Where the structure
        was given as an undirected graph, it is I(node; other), which has no direction.
        """
        need_matplotlib(cls.__name__)
        check_is_fitted(estimator)
        if not hasattr(estimator, "structure_"):
            raise TypeError(
                f"DAGDisplay draws networks, VBDiscreteDAG and VBNetwork. Got {type(estimator).__name__}, which has no "
                "graph: see ClassProfileDisplay or ComponentsDisplay."
            )
        dag, undirected = estimator.structure_, hasattr(estimator, "cliques_")
        title, driven = None, getattr(estimator.fitted, "driven", ())
        labels, notes, hidden = None, None, getattr(estimator, "latent_numbers_", ())
        if isinstance(edge_widths, str) and edge_widths == "auto":
            edge_widths = "mutual_information" if estimator.tables_ or not dag.edges else "standardized"
        if isinstance(edge_widths, str) and edge_widths == "standardized":
            edge_widths, labels, notes = path_coefficients(estimator.fitted)
            edge_widths = dict.fromkeys(dag.edges, 0.0) | edge_widths
            title = "size of standardized coefficients"
            if estimator.fitted.form.density:
                title += ",\nwith 95 % intervals"
        if driven and edge_widths == "mutual_information" and any(node not in estimator.tables_ for node in dag.nodes):
            edge_widths = None
        if isinstance(edge_widths, str):
            if edge_widths != "mutual_information":
                raise ValueError(
                    "The 'edge_widths' parameter of DAGDisplay must be 'auto', 'standardized', 'mutual_information', a "
                    f"mapping of (parent, child) to numbers >= 0, or None. Got {edge_widths!r} instead."
                )
            information = pair_information if undirected else edge_information
            edge_widths = information(dag, estimator.tables_, estimator.counts_)
            for node in dag.nodes:
                if node not in estimator.tables_:
                    information_of_node = information_of_parents(estimator.fitted, node)
                    edge_widths |= {(parent, node): nats for parent, nats in information_of_node.items()}
            title = "conditional mutual information of parent and\nchild, given the other parents (nats per row)"
            if undirected:
                title = "mutual information of two nodes (nats per row)"
        latents = {name: estimator.tables_[name].shape[-1] for name in estimator.latent_names_}
        return cls(
            dag,
            latents=latents | dict.fromkeys(hidden),
            edge_widths=edge_widths,
            edge_widths_title=title,
            undirected=undirected,
            edge_labels=labels,
            notes=notes,
        ).plot(ax=ax, node_labels=node_labels)

    @classmethod
    def from_search(cls, search, *, least=0.1, ax=None, node_labels=None):
        """Draw the best structure of a fitted search, every edge as wide as it is probable, and other probable edges.

        Parameters
        ----------
        search : fitted StructureSearchCV
            With `edge_probabilities_`: over structures, without `cv`.
        least : float, default=0.1
            Edges of other structures that are at least so probable are drawn too, dashed.
        ax : matplotlib Axes, default=None
            Where to draw; by default in a new figure of fitting size.
        node_labels : mapping of node to str, default=None
            What to write instead of the names of nodes.

        Returns
        -------
        DAGDisplay

        Notes
        -----
        Edges that would close a cycle with more probable ones, such as an edge turned round, are not drawn but told
        under the picture. Latents of other structures bear the names of those of the best that they are most alike.
        """
        need_matplotlib(cls.__name__)
        check_is_fitted(search, "edge_probabilities_")
        table, best = search.edge_probabilities_, search.best_structure_
        probability = dict(zip(product(*(level.tolist() for level in table.levels)), np.ravel(table.values).tolist()))
        undirected = is_undirected(best)
        joined = with_probable_lines if undirected else with_probable_edges
        dag, dashed, left_out = joined(best, probability, least)
        title = ["probability of an edge" if undirected else "probability of an arrow"]
        if dashed:
            title.append("dashed: not in the best structure")
        if left_out:
            omitted = [f"{a} → {b} ({percent(probability[a, b])} %)" for a, b in left_out[:_MAX_EDGES_TOLD]]
            more = len(left_out) - _MAX_EDGES_TOLD
            title += textwrap.wrap(f"not drawn: {', '.join(omitted)}" + f" and {more} more" * (more > 0), _NOTE_WIDTH)
        observed = set(search.shared_parent_probabilities_.levels[0].tolist())
        n_states = resolve_latents(search.best_params_.get("latents")) or {}
        return cls(
            dag,
            latents={node: n_states.get(node) for node in dag.nodes if node not in observed},
            edge_widths={edge: probability[edge] for edge in dag.edges},
            edge_widths_title="\n".join(title),
            full_width=1.0,
            dashed=dashed,
            undirected=undirected,
        ).plot(ax=ax, node_labels=node_labels)

    @classmethod
    def from_structure(cls, structure, latents=(), *, ax=None, edge_widths=None, node_labels=None):
        """Draw a graph.

        Parameters
        ----------
        structure : DAG, list of (parent, child) edges, mapping child -> parents, networkx graph, UndirectedGraph or str
            As for `VBDiscreteDAG`; an undirected graph need not be chordal.
        latents : mapping of node to int, or collection of nodes, default=()
            The hidden nodes, with their numbers of states if these are to be shown.
        ax : matplotlib Axes, default=None
            Where to draw; by default in a new figure of fitting size.
        edge_widths : mapping of (parent, child) to float, default=None
            The strength of each edge, >= 0; None draws all arrows alike.
        node_labels : mapping of node to str, default=None
            What to write instead of the names of nodes.

        Returns
        -------
        DAGDisplay
        """
        undirected = is_undirected(structure)
        dag = layered(UndirectedGraph.coerce(structure)) if undirected else DAG.coerce(structure)
        display = cls(dag, latents=latents, edge_widths=edge_widths, undirected=undirected)
        return display.plot(ax=ax, node_labels=node_labels)

    def plot(self, ax=None, *, node_labels=None):
        """Draw the graph.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; text and lines are scaled to its size as it is now. By default in a new figure, as large as
            the graph needs at 10 points.
        node_labels : mapping of node to str, default=None
            What to write instead of the names of nodes.

        Returns
        -------
        self

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If the estimator has no graph.
        ValueError
            If labels, latents or widths do not fit the graph.
        """
        need_matplotlib(type(self).__name__)
        from matplotlib import pyplot as plt

        labels, n_states = self._checked(node_labels)
        notes = {node: _note(of) for node, of in n_states.items() if of is not None} | dict(self.notes or {})
        sizes = {node: _size(labels[node], node in n_states, notes.get(node)) for node in self.dag.nodes}
        edge_labels = self.edge_labels or {}
        extents = {edge: _extent(text, _LABEL_SIZE) for edge, text in edge_labels.items()}
        room = _LABEL_ROOM if extents else (0.0, 0.0)
        layout = layered_layout(self.dag, sizes, n_states, room)
        left, bottom, right, top = layout.box
        if self.edge_widths is not None and self.dag.edges:
            bottom -= self._key_height()
            middle = (left + right) / 2
            left, right = min(left, middle - 1.9), max(right, middle + 1.9)
        width, height = right - left + 2 * _MARGIN, top - bottom + 2 * _MARGIN
        if ax is None:
            _, ax = plt.subplots(figsize=(width, height))
            ax.set_position((0, 0, 1, 1))
        window = ax.get_window_extent()
        scale = min(window.width / width, window.height / height) / ax.figure.dpi
        ax.set(xlim=(left - _MARGIN, right + _MARGIN), ylim=(bottom - _MARGIN, top + _MARGIN), aspect="equal")
        ax.set_axis_off()
        widths = self._widths()
        for edge, line in layout.lines.items():
            style = "dashed" if edge in self.dashed else "solid"
            _draw_arrow(ax, line, widths[edge], scale, style, has_head=not self.undirected)
        boxes = [(*layout.centers[node], *sizes[node]) for node in self.dag.nodes]
        for edge, place in places_of_labels(layout.lines, extents, boxes).items():
            draw_label(ax, place, edge_labels[edge], _LABEL_SIZE * scale)
        for node in self.dag.nodes:
            _draw_node(ax, layout.centers[node], sizes[node], labels[node], node in n_states, notes.get(node), scale)
        if self.edge_widths is not None and self.dag.edges:
            self._draw_key(ax, (left + right) / 2, bottom, scale)
        self.ax_, self.figure_, self.layout_ = ax, ax.figure, layout
        return self

    def _checked(self, node_labels) -> tuple[dict, dict]:
        """Labels of the nodes, and numbers of states of the latents, None if not known."""
        if isinstance(self.latents, Mapping):
            n_states = dict(self.latents)
        else:
            n_states = dict.fromkeys([self.latents] if isinstance(self.latents, str) else self.latents)
        node_labels = dict(node_labels or {})
        for what, names in (("latents", n_states), ("node_labels", node_labels)):
            for name in names:
                if name not in self.dag.nodes:
                    raise ValueError(
                        f"The {what!r} parameter of DAGDisplay names {name!r}, which is not a node of the graph."
                        f"{did_you_mean(name, self.dag.nodes)}"
                    )
        if self.edge_widths is not None:
            self._check_edge_widths()
        labels = {node: _wrapped(str(node_labels.get(node, node))) for node in self.dag.nodes}
        return labels, n_states

    def _check_edge_widths(self) -> None:
        if not isinstance(self.edge_widths, Mapping):
            raise TypeError(
                "The 'edge_widths' parameter of DAGDisplay must be a mapping of (parent, child) to numbers >= 0. Got "
                f"{self.edge_widths!r} instead."
            )
        edges = {*self.dag.edges, *((b, a) for a, b in self.dag.edges if self.undirected)}
        strange = [edge for edge in self.edge_widths if edge not in edges]
        if strange:
            raise ValueError(
                f"The 'edge_widths' parameter of DAGDisplay names {strange[0]!r}, which is no edge (parent, child)."
            )
        for edge in self.dag.edges:
            value = self._width(edge)
            if not isinstance(value, Real) or not 0 <= float(value) < np.inf:
                raise ValueError(
                    "The 'edge_widths' parameter of DAGDisplay must give each edge (parent, child) a finite number "
                    f">= 0. Got {value!r} for {edge!r} instead."
                )

    def _width(self, edge: tuple):
        """The number of an edge, whose ends may be given in either order if it has no direction."""
        return self.edge_widths.get(edge, self.edge_widths.get(edge[::-1]) if self.undirected else None)

    def _widths(self) -> dict:
        if self.edge_widths is None:
            return dict.fromkeys(self.dag.edges, 1.2)
        most = self._strongest()
        return {edge: max(_THIN, _THICK * self._width(edge) / most if most else 0.0) for edge in self.dag.edges}

    def _strongest(self) -> float:
        if self.full_width is not None:
            return self.full_width
        return max((self._width(edge) for edge in self.dag.edges), default=0.0)

    def _key_height(self) -> float:
        return 0.43 + 0.16 * (self._key_title().count("\n") + 1)

    def _key_title(self) -> str:
        return (
            f"strength of {'a line' if self.undirected else 'an arrow'}"
            if self.edge_widths_title is None
            else self.edge_widths_title
        )

    def _draw_key(self, ax, middle: float, bottom: float, scale: float) -> None:
        """Draw two sample lines with their strengths, and say what the widths mean."""
        most, top = self._strongest(), bottom + self._key_height()
        font = {"size": 0.85 * _FONT_SIZE * scale, "parse_math": False}
        for start, part in ((-1.05, 0.25), (0.15, 1.0)):
            x, y = middle + start, top - 0.33
            ax.plot([x, x + 0.45], [y, y], color=_LINE, linewidth=_THICK * part * scale, solid_capstyle="butt")
            ax.text(x + 0.55, y, f"{most * part:.2g}", va="center", ha="left", **font)
        ax.text(middle, top - 0.5, self._key_title(), va="top", ha="center", linespacing=1.3, **font)


def _wrapped(label: str) -> str:
    """The label in at most three short lines."""
    lines = textwrap.wrap(label, 16, break_long_words=False, max_lines=3, placeholder=" …") or [label]
    return "\n".join(line if len(line) <= 24 else f"{line[:23]}…" for line in lines)


def _extent(text: str, points: float) -> tuple[float, float]:
    """Width and height of a text, inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=points)
    lines = text.split("\n")
    width = max(text_to_path.get_text_width_height_descent(line, font, ismath=False)[0] for line in lines)
    return width / 72, 1.25 * points * len(lines) / 72


def _size(label: str, is_latent: bool, note: str | None) -> tuple[float, float]:
    """Width and height of a node, inches."""
    width, height = _extent(label, _FONT_SIZE)
    if note is not None:
        note_width, note_height = _extent(note, 0.75 * _FONT_SIZE)
        width, height = max(width, note_width), height + note_height
    if not is_latent:
        return max(width + 0.2, 0.5), height + 0.14
    return max(1.25 * width + 0.2, 0.75), 1.25 * height + 0.14


def _note(n_states: int) -> str:
    return f"{n_states} state{'s' * (n_states != 1)}"


def _draw_node(ax, center, size, label: str, is_latent: bool, note: str | None, scale: float) -> None:
    from matplotlib.patches import Ellipse, FancyBboxPatch

    (x, y), (width, height) = center, size
    look = {"linewidth": 1.1 * scale, "zorder": 3}
    if is_latent:
        ax.add_patch(Ellipse(center, width, height, facecolor=_LATENT_FACE, edgecolor=_LATENT_BORDER, **look))
    else:
        radius = 0.08
        box = FancyBboxPatch(
            (x - width / 2 + radius, y - height / 2 + radius), width - 2 * radius, height - 2 * radius,
            boxstyle=f"round,pad={radius}", facecolor=_OBSERVED_FACE, edgecolor=_OBSERVED_BORDER, **look,
        )  # fmt: skip
        ax.add_patch(box)
    font = {"color": INK, "ha": "center", "va": "center", "parse_math": False, "zorder": 4}
    if note is None:
        ax.text(x, y - 0.01, label, size=_FONT_SIZE * scale, linespacing=1.1, **font)
    else:
        above, below = (_extent(text, points)[1] for text, points in ((label, _FONT_SIZE), ("", 0.75 * _FONT_SIZE)))
        ax.text(x, y + below / 2, label, size=_FONT_SIZE * scale, linespacing=1.1, **font)
        ax.text(x, y - above / 2, note, size=0.75 * _FONT_SIZE * scale, **font)


def _draw_arrow(ax, line: np.ndarray, width: float, scale: float, style: str, *, has_head: bool) -> None:
    """Draw a line that ends in a triangle, if it has a head; a thicker line has a larger one."""
    from matplotlib.patches import PathPatch, Polygon
    from matplotlib.path import Path

    head = 0.075 + 1.6 * width / 72
    run = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
    head = min(head, 0.8 * run[-1])
    neck = run[-1] - head
    base = np.array([np.interp(neck, run, line[:, k]) for k in (0, 1)])
    shaft = np.vstack([line[run < neck], base]) if has_head else line
    along = (line[-1] - base) / max(np.linalg.norm(line[-1] - base), 1e-12)
    across = np.array([-along[1], along[0]]) * (0.035 + 0.9 * width / 72)
    ax.add_patch(
        PathPatch(
            Path(shaft),
            fill=False,
            edgecolor=_LINE,
            linewidth=width * scale,
            linestyle=style,
            capstyle="butt",
            joinstyle="round",
            zorder=1,
        )
    )
    if has_head:
        ax.add_patch(Polygon([base + across, line[-1], base - across], facecolor=_LINE, linewidth=0, zorder=1))
