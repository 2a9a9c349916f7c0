"""The tables p(node | parents) of a BIF text, and the network that they make."""

from __future__ import annotations

import math
from collections.abc import Hashable

import numpy as np

from skvbem._names import did_you_mean, shown
from skvbem.errors import StructureError, TooLargeError
from skvbem.fitted.bayesian_network import Network
from skvbem.formats.bif.grammar import MAX_ROUNDING, Declarations
from skvbem.formats.bif.tokens import NUMBER
from skvbem.graphs.dag import DAG
from skvbem.graphs.paths import describe_cycle, find_cycle
from skvbem.tables import SLACK


class Tables:
    """The tables of the variables that a BIF text declares.

    Attributes
    ----------
    rounded : list of (position, sum)
        Where in the text a row misses one by its printed rounding.
    """

    def __init__(self, declared: Declarations):
        self.declared = declared
        self.rounded: list[tuple[int, float]] = []

    def network(self, max_cells: int) -> Network:
        """The network of all variables; StructureError or TooLargeError if they do not make one."""
        declared = self.declared.variables
        given = self.parents()
        if cycle := find_cycle(declared, given):
            raise self.declared.fault(self.declared.blocks[cycle[0]][0].start, describe_cycle(cycle), StructureError)
        shapes = {node: [len(declared[node].words), *map(len, given[node].values())] for node in declared}
        cells = {node: math.prod(shape) for node, shape in shapes.items()}
        if sum(cells.values()) > max_cells:
            largest = max(cells, key=cells.__getitem__)
            raise self.declared.fault(
                self.declared.blocks[largest][0].start,
                f"the tables have {sum(cells.values())} cells, {cells[largest]} of them here; max_cells={max_cells}.",
                TooLargeError,
            )
        dag = DAG.from_edges(((parent, child) for child in given for parent in given[child]), declared)
        tables = {}
        for node, (name, _, rows) in self.declared.blocks.items():
            order = [list(given[node]).index(parent) for parent in dag.parents(node)]
            tables[node] = self.table(name, rows, declared[node].words, given[node]).transpose(*order, -1)
        return Network(dag, {node: variable.states for node, variable in declared.items()}, tables)

    def parents(self) -> dict[Hashable, dict[str, tuple[str, ...]]]:
        """Child -> its parents as its block lists them -> the words for their states."""
        declared = self.declared.variables
        for name, _, _ in declared.values():
            if name.text not in self.declared.blocks:
                raise self.declared.fault(
                    name.start, f"variable {shown(name.text)} has no probability block.", StructureError
                )
        given: dict[Hashable, dict[str, tuple[str, ...]]] = {}
        for child, (name, parents, _) in self.declared.blocks.items():
            given[child] = {}
            for token in (name, *parents):
                if token.text not in declared:
                    hint = did_you_mean(token.text, declared)
                    raise self.declared.fault(
                        token.start, f"there is no variable {shown(token.text)}.{hint}", StructureError
                    )
            for token in parents:
                if token.text in given[child]:
                    raise self.declared.fault(
                        token.start, f"parent {shown(token.text)} is listed twice.", StructureError
                    )
                given[child][token.text] = declared[token.text].words
        return given

    def table(self, name, rows, states, given):
        """The table of a block; its axes are the parents as `given` lists them (with their states), then the node."""
        shape = tuple(map(len, given.values()))
        if any(row.kind == "table" for row in rows):
            if len(rows) > 1:
                raise self.declared.fault(
                    rows[1].start, "a 'table' is the whole of a block; here something stands beside it."
                )
            [row] = rows
            size = math.prod(shape)
            self.check_count(row, size * len(states), f"{len(states)} states x {size} configurations of parents")
            columns = [self.normalized(row, row.numbers[start::size]) for start in range(size)]
            return np.array(columns).reshape(*shape, len(states))
        table = np.full((*shape, len(states)), np.nan)
        places = [{state: place for place, state in enumerate(names)} for names in given.values()]
        default = None
        for row in rows:
            self.check_count(row, len(states), "one for each state")
            if row.kind == "default":
                if default is not None:
                    raise self.declared.fault(row.start, "a second 'default' row begins here.")
                default = self.normalized(row, row.numbers)
                continue
            at = self.configuration(row, given, places)
            if not np.isnan(table[at][0]):
                raise self.declared.fault(row.start, "this configuration of the parents has a row already.")
            table[at] = self.normalized(row, row.numbers)
        missing = np.isnan(table[..., 0])
        if default is not None:
            table[missing] = default
        elif missing.any():
            lacking = ", ".join(
                names[place] for names, place in zip(given.values(), np.argwhere(missing)[0], strict=True)
            )
            what = f"row for ({lacking}), and no default" if given else "probabilities"
            raise self.declared.fault(name.start, f"the block of {shown(name.text)} has no {what}.")
        return table

    def check_count(self, row, expected, meaning):
        """Raise a ValueError unless a row has as many numbers as it should."""
        if len(row.numbers) != expected:
            raise self.declared.fault(row.start, f"expected {expected} numbers, {meaning}. Found {len(row.numbers)}.")

    def configuration(self, row, given, places):
        """Position of a row in the table: the position of the state of each parent."""
        if len(row.key) != len(given):
            raise self.declared.fault(
                row.start, f"expected {len(given)} states, one for each parent. Found {len(row.key)}."
            )
        for state, parent, place in zip(row.key, given, places, strict=True):
            if state not in place:
                hint = did_you_mean(state, place)
                raise self.declared.fault(row.start, f"{shown(state)} is no state of {shown(parent)}.{hint}")
        return tuple(place[state] for state, place in zip(row.key, places, strict=True))

    def normalized(self, row, numbers):
        """The probabilities of a distribution, divided by their sum where its printed digits explain that."""
        values = [float(number) for number in numbers]
        total = math.fsum(values)
        miss = abs(total - 1)
        if miss <= SLACK:
            return values
        if miss > _printed_rounding(numbers, values):
            raise self.declared.fault(row.start, f"probabilities must sum to one. These sum to {total:.10g}.")
        self.rounded.append((row.start, total))
        return [value / total for value in values]


def _printed_rounding(numbers, values):
    """By how much probabilities printed with so many digits may miss their sum."""
    parts = [NUMBER.fullmatch(number) for number in numbers]
    digits = max(len(part[1] or part[2] or "") for part in parts)
    exponent = int(parts[values.index(max(values))][3] or 0)
    halves = 0.5 * len(numbers) * 10.0 ** min(exponent - digits, 0)
    # Just below the first (two numbers, rounded alike, miss nothing), just above the second (0.33 three times).
    return min(halves * (1 - 1e-9), MAX_ROUNDING * (1 + 1e-9))
