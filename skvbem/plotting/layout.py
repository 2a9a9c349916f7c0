"""Layered layout of a directed acyclic graph: places of its nodes, and lines along which its edges run.

The layered drawing of Sugiyama, Tagawa and Toda (1981): nodes are put into layers so that edges run downward; an edge
over several layers gets a place of its own in each of them; layers are ordered to have few crossings, by barycenters
and exchanges of neighbors; and x-coordinates minimize the sum of squared horizontal lengths subject to the order and to
the widths. One layer's share of that last problem, the others held, is an isotonic regression, so it is solved exactly.

Lengths have one unit, that of the node sizes; y grows upward. No drawing library is needed here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.optimize import isotonic_regression

from skvbem.graphs.dag import DAG

_NODE_GAP = 0.22
_LINE_GAP = 0.11  # between a line and whatever stands beside it
_ARROW = 0.6  # between two nodes of one row that an edge joins
_MIN_DROP, _MAX_DROP = 0.5, 1.5  # between two layers
_ROW_WIDTH = 9.0  # a layer may be this wide before its leaves are spread over several rows
_CORNER = 0.38  # length within which a slight bend is rounded


@dataclass(frozen=True, eq=False)
class Layout:
    """Places of nodes and lines of edges.

    Parameters
    ----------
    centers : dict of node to (x, y)
    layers : dict of node to int
        0 on top.
    lines : dict of (parent, child) to ndarray of shape (n_points, 2)
        From the border of the parent to the border of the child.
    box : tuple (left, bottom, right, top)
        Around all nodes and lines.
    """

    centers: dict
    layers: dict
    lines: dict
    box: tuple[float, float, float, float]


@dataclass(frozen=True)
class _Bend:
    """The place in a layer that an edge passes through."""

    edge: tuple
    layer: int


def layered_layout(dag: DAG, sizes: Mapping[Hashable, tuple[float, float]], latents: Collection = (),
                   label: tuple[float, float] = (0.0, 0.0)) -> Layout:  # fmt: skip
    """A layered drawing of a graph: edges run downward, nodes do not overlap, no line crosses a node.

    Parameters
    ----------
    dag : DAG
    sizes : mapping of node to (width, height)
    latents : collection of nodes
        They are ellipses, the others boxes. A chain of latents without observed ancestors is one row, left to right.

    label : (width, height), default=(0, 0)
        Further room beside nodes and between layers, for what is written on lines.

    Returns
    -------
    Layout
    """
    chains = _latent_chains(dag, frozenset(latents))
    key = _depth_first(dag)
    layer_of = _assign_layers(dag, chains, {node: sizes[node][0] for node in dag.nodes}, key)
    rows, segments = _rows_with_bends(dag, chains, layer_of, key)
    rows = _uncross(rows, segments)
    x = _x_coordinates(rows, segments, lambda left, right: _separation(left, right, sizes, dag) + label[0])
    return _assemble(dag, sizes, frozenset(latents), layer_of, rows, segments, x, label[1])


def _latent_chains(dag: DAG, latents: frozenset) -> dict:
    """Node -> the tuple of nodes drawn as one row that it belongs to, itself alone or a chain of latents."""
    chain_of = {node: (node,) for node in dag.nodes}
    kin = {
        node: ([p for p in dag.parents(node) if p in latents], [c for c in dag.children(node) if c in latents])
        for node in latents
    }
    for node in dag.nodes:
        if node not in latents or kin[node][0]:
            continue
        chain, todo = [], [node]
        while todo:
            chain.append(todo.pop())
            todo += kin[chain[-1]][1]
        tree = all(len(kin[link][0]) <= 1 and len(kin[link][1]) <= 1 for link in chain)
        if tree and all(parent in latents for link in chain for parent in dag.parents(link)):
            chain_of |= dict.fromkeys(chain, tuple(chain))
    return chain_of


def _depth_first(dag: DAG) -> dict:
    """Node -> its place in a walk that follows the children first: trees get no crossing from it."""
    key: dict = {}
    todo = [node for node in reversed(dag.nodes) if not dag.parents(node)]
    while todo:
        node = todo.pop()
        if node not in key:
            key[node] = len(key)
            todo += reversed(dag.children(node))
    return key


def _assign_layers(dag: DAG, chains: Mapping, width: Mapping, key: Mapping) -> dict:
    """Node -> layer: as high as its parents allow, roots as low as their children allow, wide layers spread."""
    layer: dict = {}
    linked = [node for node in dag.topological_order() if dag.parents(node) or dag.children(node)]
    for node in linked:
        if node not in layer:
            chain = chains[node]
            above = [layer[p] for link in chain for p in dag.parents(link) if p not in chain]
            layer |= dict.fromkeys(chain, max(above, default=-1) + 1)
    moved = True
    while moved:
        moved = False
        for node in reversed(linked):
            chain = chains[node]
            out = [c for link in chain for c in dag.children(link) if c not in chain]
            n_in = sum(p not in chain for link in chain for p in dag.parents(link))
            lowest = min((layer[c] for c in out), default=0) - 1
            if len(out) > n_in and lowest > layer[node]:
                layer |= dict.fromkeys(chain, lowest)
                moved = True
    alone = [node for node in dag.nodes if node not in layer]
    layer |= dict.fromkeys(alone, max(layer.values(), default=-1) + 1)
    _spread_leaves(dag, chains, layer, width, key)
    return layer


def _spread_leaves(dag: DAG, chains: Mapping, layer: dict, width: Mapping, key: Mapping) -> None:
    """Give the leaves of a layer that is too wide several rows, in turn, so that lines can pass between them."""
    total = sum(w + _NODE_GAP for w in width.values())
    limit = max(_ROW_WIDTH, math.sqrt(2.0 * total))
    at = 0
    while at <= max(layer.values()):
        row = sorted((node for node in layer if layer[node] == at), key=lambda node: key[node])
        leaves = [node for node in row if not dag.children(node) and len(chains[node]) == 1]
        taken = sum(width[node] + _NODE_GAP for node in row)
        n_rows = min(math.ceil(taken / limit), len(leaves))
        for turn, node in enumerate(leaves if n_rows > 1 else ()):
            layer[node] = at + (turn % n_rows if dag.parents(node) else turn * n_rows // len(leaves))
        at += 1


def _rows_with_bends(dag: DAG, chains: Mapping, layer: Mapping, key: Mapping) -> tuple[list, list]:
    """Rows of the layers, each of blocks of nodes and bends that stay together, and the pairs that lines join."""
    rows: list[list] = [[] for _ in range(max(layer.values()) + 1)]
    segments: list[tuple] = []
    for node in dag.nodes:
        if node == chains[node][0]:
            rows[layer[node]].append((key[node], chains[node]))
    for edge in dag.edges:
        parent, child = edge
        path = [parent, *(_Bend(edge, at) for at in range(layer[parent] + 1, layer[child])), child]
        for bend in path[1:-1]:
            rows[bend.layer].append((key[child], (bend,)))
        if layer[parent] < layer[child]:
            segments += pairwise(path)
    return [[block for _, block in sorted(row, key=lambda item: item[0])] for row in rows], segments


def _uncross(rows: list, segments: list, n_starts: int = 6, n_sweeps: int = 12) -> list:
    """The order of rows with the fewest crossings in sweeps down and up, from the order given and from random ones.

    Each sweep sorts row after row by the mean place of the neighbors in the row before, then exchanges neighbors.
    """
    above: dict = {}
    below: dict = {}
    for top, bottom in segments:
        above.setdefault(bottom, []).append(top)
        below.setdefault(top, []).append(bottom)
    rng = np.random.default_rng(0)
    initial, best, fewest = rows, rows, _n_crossings(rows, below)
    for start in range(n_starts):
        rows = [[row[k] for k in rng.permutation(len(row))] if start else list(row) for row in initial]
        for sweep in range(n_sweeps):
            if fewest == 0:
                return best
            downward = sweep % 2 == 0
            order = range(1, len(rows)) if downward else range(len(rows) - 2, -1, -1)
            for at in order:
                _sort_by_barycenter(
                    rows, at, above if downward else below, at - 1 if downward else at + 1, sweep % 4 >= 2
                )
            _exchange(rows, above, below)
            n = _n_crossings(rows, below)
            if n < fewest:
                best, fewest = [list(row) for row in rows], n
    return best


def _places(row: list) -> dict:
    return {vertex: place for place, vertex in enumerate(vertex for block in row for vertex in block)}


def _sort_by_barycenter(rows: list, at: int, neighbors: Mapping, other: int, flip_ties: bool) -> None:
    place = _places(rows[other])
    aims = []
    for block in rows[at]:
        near = [place[v] for vertex in block for v in neighbors.get(vertex, ())]
        aims.append(sum(near) / len(near) if near else None)
    free = [k for k, aim in enumerate(aims) if aim is not None]
    tie = -1 if flip_ties else 1
    ordered = iter(sorted(free, key=lambda k: (aims[k], tie * k)))
    # Blocks without neighbors on that side keep their places.
    rows[at] = [rows[at][next(ordered)] if aim is not None else block for aim, block in zip(aims, rows[at])]


def _exchange(rows: list, above: Mapping, below: Mapping) -> None:
    """Swap neighbors in a row as long as crossings become fewer."""
    improved, rounds = True, 0
    while improved and rounds < 20:
        improved, rounds = False, rounds + 1
        for at, row in enumerate(rows):
            sides = [(above, _places(rows[at - 1]))] if at else []
            if at + 1 < len(rows):
                sides.append((below, _places(rows[at + 1])))
            ends = [
                [np.array([place[v] for vertex in block for v in near.get(vertex, ())]) for near, place in sides]
                for block in row
            ]
            for k in range(len(row) - 1):
                gain = 0
                for left, right in zip(ends[k], ends[k + 1]):
                    gain += int((left[:, None] > right).sum()) - int((left[:, None] < right).sum())
                if gain > 0:
                    row[k], row[k + 1] = row[k + 1], row[k]
                    ends[k], ends[k + 1] = ends[k + 1], ends[k]
                    improved = True


def _n_crossings(rows: list, below: Mapping) -> int:
    total = 0
    for row, under in pairwise(rows):
        place = _places(under)
        pairs = np.array([(k, place[v]) for k, u in enumerate(_places(row)) for v in below.get(u, ())]).reshape(-1, 2)
        start, end = pairs[:, 0], pairs[:, 1]
        total += int(((start[:, None] < start) & (end[:, None] > end)).sum())
    return total


def _x_coordinates(rows: list, segments: list, separation: Callable, n_sweeps: int = 200) -> dict:
    """Vertex -> x: edges as upright as order and widths allow, those through several layers more so."""
    pull: dict = {}
    for u, v in segments:
        n_bends = isinstance(u, _Bend) + isinstance(v, _Bend)
        for one, other in ((u, v), (v, u)):
            pull.setdefault(one, []).append((other, (1.0, 2.0, 16.0)[n_bends]))
    order = [[vertex for block in row for vertex in block] for row in rows]
    x: dict = {}
    offsets = []
    for row in order:
        steps = [separation(u, v) for u, v in pairwise(row)]
        offset = np.concatenate([[0.0], np.cumsum(steps)])
        offsets.append(offset)
        x |= dict(zip(row, (offset - offset[-1] / 2).tolist()))
    for sweep in range(n_sweeps):
        for row, offset in (list(zip(order, offsets)))[:: 1 if sweep % 2 == 0 else -1]:
            aim, weight = np.empty(len(row)), np.empty(len(row))
            for k, vertex in enumerate(row):
                near = pull.get(vertex, [(vertex, 1e-3)])
                weight[k] = sum(w for _, w in near)
                aim[k] = sum(w * x[other] for other, w in near) / weight[k]
            x |= dict(zip(row, (isotonic_regression(aim - offset, weights=weight).x + offset).tolist()))
    return x


def _separation(left, right, sizes: Mapping, dag: DAG) -> float:
    if isinstance(left, _Bend) or isinstance(right, _Bend):
        return _LINE_GAP + sum(0.0 if isinstance(v, _Bend) else sizes[v][0] / 2 for v in (left, right))
    return (sizes[left][0] + sizes[right][0]) / 2 + (_ARROW if left in dag.parents(right) else _NODE_GAP)


def _assemble(
    dag: DAG, sizes: Mapping, latents: frozenset, layer: Mapping, rows: list, segments: list, x: Mapping,
    for_label: float,
) -> Layout:  # fmt: skip
    order = [[vertex for block in row for vertex in block] for row in rows]
    half = [max((sizes[v][1] / 2 for v in row if not isinstance(v, _Bend)), default=0.0) for row in order]
    row_of = {vertex: k for k, row in enumerate(order) for vertex in row}
    reach = [-1.0] * len(order)
    for u, v in segments:
        reach[row_of[u]] = max(reach[row_of[u]], abs(x[u] - x[v]))
    y = [0.0]
    for k in range(1, len(order)):
        is_alone = reach[k - 1] < 0 and (k < 2 or reach[k - 2] < 0)
        drop = _NODE_GAP if is_alone else min(_MIN_DROP + 0.13 * max(reach[k - 1], 0.0), _MAX_DROP) + for_label
        y.append(y[-1] - half[k - 1] - drop - half[k])
    room = {vertex: limits for row in order for vertex, limits in _room(row, x, sizes).items()}
    ways = {
        (parent, child): [parent, *(_Bend((parent, child), k) for k in range(layer[parent] + 1, layer[child])), child]
        for parent, child in dag.edges
    }
    leave: dict = {}
    arrive: dict = {}
    for node in dag.nodes:
        leave |= _ports(node, {(node, c): ways[node, c][1] for c in dag.children(node)}, x, sizes)
        arrive |= _ports(node, {(p, node): ways[p, node][-2] for p in dag.parents(node)}, x, sizes)
    centers = {node: (x[node], y[layer[node]]) for node in dag.nodes}
    lines = {}
    for edge, way in ways.items():
        parent, child = edge
        top, bottom = y[layer[parent]], y[layer[child]]
        if top == bottom:
            lines[edge] = np.array([(x[parent] + sizes[parent][0] / 2, top), (x[child] - sizes[child][0] / 2, top)])
            continue
        low = _half_height(leave[edge], sizes[parent], parent in latents)
        high = _half_height(arrive[edge], sizes[child], child in latents)
        points = [(x[parent] + leave[edge], top - low), (x[parent] + leave[edge], top - half[layer[parent]])]
        for bend in way[1:-1]:
            points += [(x[bend], y[bend.layer] + half[bend.layer]), (x[bend], y[bend.layer] - half[bend.layer])]
        points += [(x[child] + arrive[edge], bottom + half[layer[child]]), (x[child] + arrive[edge], bottom + high)]
        limits = np.array([room[vertex] for vertex in way for _ in range(2)])
        lines[edge] = _rounded(_shortened(np.array(points), limits))
    boxes = np.array([(*centers[node], sizes[node][0] / 2, sizes[node][1] / 2) for node in dag.nodes])
    ends = np.vstack([boxes[:, :2] - boxes[:, 2:], boxes[:, :2] + boxes[:, 2:], *lines.values()])
    return Layout(centers, dict(layer), lines, (*ends.min(axis=0).tolist(), *ends.max(axis=0).tolist()))


def _room(row: list, x: Mapping, sizes: Mapping) -> dict:
    """Vertex -> how far to its left and right a line may go and stay clear of the row's other vertices."""

    def border(vertex, side):
        return x[vertex] + (0.0 if isinstance(vertex, _Bend) else side * sizes[vertex][0] / 2)

    limits = {vertex: [-math.inf, math.inf] for vertex in row}
    for left, right in pairwise(row):
        end, start = border(left, 1), border(right, -1)
        # Two lines share the room between them; a node keeps most of the gap to itself.
        limits[right][0] = (end + start) / 2 if isinstance(left, _Bend) else end + 0.8 * _LINE_GAP
        limits[left][1] = (end + start) / 2 if isinstance(right, _Bend) else start - 0.8 * _LINE_GAP
    return limits


def _ports(node, toward: Mapping, x: Mapping, sizes: Mapping) -> dict:
    """Edge -> where it meets the border of the node, to the right of the center: a little toward where it goes, and
    apart from the others."""
    edges = sorted(toward, key=lambda edge: x[toward[edge]])
    if not edges:
        return {}
    most = 0.32 * sizes[node][0]
    spread = min(_LINE_GAP, 2 * most / len(edges)) * np.arange(len(edges))
    aims = np.array([0.2 * (x[toward[edge]] - x[node]) for edge in edges])
    places = isotonic_regression(np.clip(aims, -most, most) - spread).x + spread
    return dict(zip(edges, (places - max(places[-1] - most, 0.0) - min(places[0] + most, 0.0)).tolist()))


def _half_height(dx: float, size: tuple[float, float], is_ellipse: bool) -> float:
    """The height from the center of a node up to its border, at a distance to the side."""
    return size[1] / 2 * (math.sqrt(1 - (2 * dx / size[0]) ** 2) if is_ellipse else 1.0)


def _shortened(points: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """The way along the points without those that can be left out if x stays within the limits where they were."""
    kept = [0]
    while kept[-1] < len(points) - 1:
        start = kept[-1]
        for end in range(len(points) - 1, start, -1):
            skipped = slice(start + 1, end)
            fall = points[end, 1] - points[start, 1]
            part = (points[skipped, 1] - points[start, 1]) / (fall or 1.0)
            x = points[start, 0] + part * (points[end, 0] - points[start, 0])
            if ((limits[skipped, 0] <= x) & (x <= limits[skipped, 1])).all():
                kept.append(end)
                break
    return points[kept]


def _rounded(points: np.ndarray) -> np.ndarray:
    """The way along the points with its corners rounded."""
    differs = np.concatenate([[True], np.linalg.norm(np.diff(points, axis=0), axis=1) > 1e-9])
    points = points[differs]
    pieces = [points[:1]]
    t = np.linspace(0.0, 1.0, 12)[:, None]
    for before, corner, after in zip(points, points[1:], points[2:]):
        legs = np.array([before - corner, after - corner])
        lengths = np.linalg.norm(legs, axis=1, keepdims=True)
        # The sharper the turn, the closer to its corner, so that no curve leaves the room of its line.
        radius = _CORNER * math.sqrt(max(-float(np.prod(legs / lengths, axis=0).sum()), 0.02))
        start, end = corner + legs * np.minimum(0.5, radius / lengths)
        pieces.append((1 - t) ** 2 * start + 2 * t * (1 - t) * corner + t**2 * end)
    return np.vstack([*pieces, points[-1:]])
