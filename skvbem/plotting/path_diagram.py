"""Path diagrams: what the picture of a network of numbers says at its edges and in its nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from skvbem.emissions.profiles import named
from skvbem.fitted.parameter_tables import joint_states
from skvbem.fitted.standardized import StandardizedNumber
from skvbem.uncertainty.posterior_draws import drawn_from_q

# Draws whose quantiles are the ends of intervals, their mass, and joint states that have a line each.
_N_DRAWS, _MASS, _MAX_LINES = 1000, 0.95, 4
# Square inches that a sixtieth of another line counts for where a label would cover it.
_COST_OF_POINT = 0.004


def path_coefficients(fitted: Any) -> tuple[dict, dict, dict]:
    """Strength and label of each edge between numbers, and a note in each number below others.

    The strength is the size of the standardized coefficient, over all states of categories. The label is the
    coefficient with its interval, or that of each state.
    """
    point = {
        group: {name: each[None] for name, each in of.items()}
        for group, of in fitted.named_parameters(fitted.point).items()
    }
    drawn = None
    if fitted.form.density:
        drawn = fitted.parameters_of_draws(drawn_from_q(fitted, _N_DRAWS, np.random.default_rng(0)))
    at_draws = {} if drawn is None else {each.name: each for each in fitted.standardized(drawn)}
    widths, labels, notes = {}, {}, {}
    for number in fitted.standardized(point):
        of_draws = at_draws.get(number.name)
        notes[number.name] = f"R² {number.overall_r2[0]:.2f}"
        for j, parent in enumerate(number.parents):
            edge = parent, number.name
            widths[edge] = float(abs(number.overall[0, j]))
            labels[edge] = _label(fitted, number, of_draws, j)
    return widths, labels, notes


def _label(fitted: Any, number: StandardizedNumber, of_draws: StandardizedNumber | None, j: int) -> str:
    """The coefficient of one parent."""
    coefficients = number.coefficients[0, :, j]
    if len(coefficients) == 1:
        if of_draws is None:
            return f"{coefficients[0]:.2f}"
        low, high = np.quantile(of_draws.coefficients[:, 0, j], [0.5 - _MASS / 2, 0.5 + _MASS / 2])
        return f"{coefficients[0]:.2f}\n[{low:.2f}, {high:.2f}]"
    if len(coefficients) > _MAX_LINES:
        return f"{np.nanmin(coefficients):.2f} to {np.nanmax(coefficients):.2f}"
    states = joint_states(number.categories, fitted.levels)
    names = [", ".join(named(fitted.levels[node].tolist()[at]) for node, at in each.items()) for each in states]
    return "\n".join(f"{name}: {value:.2f}" for name, value in zip(names, coefficients))


def places_of_labels(lines: Mapping, extents: Mapping, boxes: Sequence[tuple]) -> dict:
    """The place on its line of each label, (x, y), where it covers least of nodes and of other labels.

    Parameters
    ----------
    lines : mapping of edge to ndarray of shape (n_points, 2)
    extents : mapping of edge to (width, height)
        Of the labels.
    boxes : sequence of (x, y, width, height)
        Of the nodes.
    """
    taken, places = list(boxes), {}
    of_lines = {edge: _along(line, np.linspace(0, 1, 60)) for edge, line in lines.items()}
    fractions = np.array(sorted(np.linspace(0.15, 0.8, 27), key=lambda fraction: abs(fraction - 0.45)))
    for edge, (width, height) in extents.items():
        points = _along(lines[edge], fractions)
        others = np.vstack([*(each for other, each in of_lines.items() if other != edge), np.full((1, 2), np.inf)])
        covered = [sum(_overlap((x, y, width, height), box) for box in taken) for x, y in points]
        hidden = [(np.abs(others - point) <= [width / 2, height / 2]).all(axis=1).sum() for point in points]
        cost = np.round(np.array(covered) + _COST_OF_POINT * np.array(hidden), 4)
        places[edge] = tuple(points[int(np.argmin(cost))].tolist())
        taken.append((*places[edge], width, height))
    return places


def _along(line: np.ndarray, fractions: np.ndarray) -> np.ndarray:
    """Points of a line at fractions of its length, (n_fractions, 2)."""
    run = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
    return np.column_stack([np.interp(fractions * run[-1], run, line[:, k]) for k in (0, 1)])


def _overlap(one: tuple, other: tuple) -> float:
    """The area that two boxes (x, y, width, height) have in common."""
    sides = ((one[2 + k] + other[2 + k]) / 2 - abs(one[k] - other[k]) for k in (0, 1))
    return float(np.prod([min(max(side, 0.0), one[2 + k], other[2 + k]) for k, side in enumerate(sides)]))


def draw_label(ax: Any, place: tuple[float, float], text: str, size: float) -> None:
    """Write on a line."""
    box = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.9}
    ax.text(*place, text, size=size, ha="center", va="center", linespacing=1.15, parse_math=False, bbox=box, zorder=2)
