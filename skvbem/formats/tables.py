"""What a file declares, whatever its format: variables with their states, rows of tables, and the network they make.

Sizes are checked before memory is taken, and nothing in a file becomes code, an attribute or a path.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from skvbem._names import did_you_mean, shown
from skvbem.errors import StructureError, TooLargeError
from skvbem.fitted.bayesian_network import Network
from skvbem.formats.states import KINDS, STATES_PROPERTY, states_of_words
from skvbem.formats.tokens import Text, Token
from skvbem.graphs.dag import DAG
from skvbem.graphs.paths import describe_cycle, find_cycle
from skvbem.tables import SLACK

__all__ = ["MAX_PARENTS", "MAX_ROUNDING", "NAN", "Declarations", "Row", "Tables", "is_probability", "is_weight"]

#: By how much a printed probability may be above one, and a printed row miss it.
MAX_ROUNDING = 1e-2
#: An axis of an array for each, and one for the node.
MAX_PARENTS = 63
NAN = ("NaN", "nan", "NA")
_NUMBER = re.compile(r"[+-]?(?:[0-9]++(?:\.([0-9]*+))?|\.([0-9]++))(?:[eE]([+-]?[0-9]{1,6}))?")


def is_probability(text: str) -> bool:
    """True if a printed number is one from 0 to 1, but for its rounding."""
    return _NUMBER.fullmatch(text) is not None and 0 <= float(text) <= 1 + MAX_ROUNDING


def is_weight(text: str) -> bool:
    """True if a printed number is one that is not negative, and far from the largest there are."""
    return _NUMBER.fullmatch(text) is not None and 0 <= float(text) <= 1e100


class Row(NamedTuple):
    """Probabilities as printed, and the states of parents that they are given.

    Its kind is "(", a distribution for parents in the states of `key`; "default", one for all parents without a row, or
    a whole table for them; "table", a whole one in which the states of the node run slowest; "rows", in which they run
    fastest; "weights", as "rows" but of numbers in proportion to probabilities. The last parent runs faster than the
    first.
    """

    start: int
    kind: str
    key: tuple[str, ...]
    numbers: list[str]


class Variable(NamedTuple):
    """A variable's name, the words for its states, and the states."""

    token: Token  # its name
    words: tuple[str, ...]
    states: tuple  # what the words stand for


class Declarations:
    """The variables that a text declares and the rows of their tables.

    Parameters
    ----------
    text : Text
    max_nodes : int
        More variables are refused.

    Attributes
    ----------
    variables : dict
        Name -> `Variable`.
    blocks : dict
        Name -> its token, the tokens of its parents, the rows of its table.
    """

    def __init__(self, text: Text, max_nodes: int):
        self.text, self.fault, self.max_nodes = text, text.fault, max_nodes
        self.variables: dict[str, Variable] = {}
        self.blocks: dict[str, tuple[Token, Sequence[Token], Sequence[Row]]] = {}

    def add_variable(self, name: Token, words: Sequence[Token], kinds: Sequence[tuple[int, list[str]]] = ()) -> None:
        """Take a variable with the words for its states; `kinds` is what properties say that they stand for, and where.

        Raises
        ------
        ValueError
            If the properties and the words do not fit together.
        StructureError
            If the variable or a state is there already.
        TooLargeError
            If there are too many variables.
        """
        if name.text in self.variables:
            raise self.fault(name.start, f"variable {shown(name.text)} is declared twice.", StructureError)
        if len(self.variables) == self.max_nodes:
            raise self.fault(name.start, f"there are more than max_nodes={self.max_nodes} variables.", TooLargeError)
        seen = set()
        for word in words:
            if word.text in seen:
                raise self.fault(word.start, f"state {shown(word.text)} is listed twice.", StructureError)
            seen.add(word.text)
        texts = tuple(word.text for word in words)
        self.variables[name.text] = Variable(name, texts, self._states(texts, kinds) if kinds else texts)

    def _states(self, words: tuple[str, ...], kinds: Sequence[tuple[int, list[str]]]) -> tuple:
        """The states that words stand for, as properties say."""
        position, kind = kinds[-1]
        if len(kinds) > 1 or len(kind) != 1 or kind[0] not in KINDS:
            raise self.fault(
                position, f"the property {STATES_PROPERTY} must stand once and be one of {', '.join(KINDS)}."
            )
        states = states_of_words(kind[0], words)
        if states is None:
            raise self.fault(position, f"the states must be different and of type {kind[0]}, as Python writes it.")
        return states

    def reorder(self, position: int, names: Sequence[str]) -> None:
        """Put the variables into an order that a property tells; ValueError if it names others."""
        if sorted(names) != sorted(self.variables):
            raise self.fault(position, "the order must name each variable once.")
        self.variables = {name: self.variables[name] for name in names}

    def add_block(self, name: Token, parents: Sequence[Token], rows: Sequence[Row]) -> None:
        """Take the rows of the table of a variable; StructureError or TooLargeError if it has some or many parents."""
        if len(parents) > MAX_PARENTS:
            message = f"a table has at most {MAX_PARENTS} parents, an axis for each. Here is one more."
            raise self.fault(parents[MAX_PARENTS].start, message, TooLargeError)
        if name.text in self.blocks:
            raise self.fault(
                name.start, f"variable {shown(name.text)} has a probability block already.", StructureError
            )
        self.blocks[name.text] = (name, parents, rows)

    def parents(self) -> dict[Hashable, dict[str, tuple[str, ...]]]:
        """Child -> its parents as its block lists them -> the words for their states."""
        if not self.variables:
            raise self.fault(len(self.text.content), "the text ends without a variable; a network has at least one.")
        for name, _, _ in self.variables.values():
            if name.text not in self.blocks:
                message = f"variable {shown(name.text)} has no probability block. Each needs one."
                raise self.fault(name.start, message, StructureError)
        given: dict[Hashable, dict[str, tuple[str, ...]]] = {}
        for child, (name, parents, _) in self.blocks.items():
            given[child] = {}
            for token in (name, *parents):
                if token.text not in self.variables:
                    hint = did_you_mean(token.text, self.variables)
                    raise self.fault(token.start, f"there is no variable {shown(token.text)}.{hint}", StructureError)
            for token in parents:
                if token.text in given[child]:
                    raise self.fault(token.start, f"parent {shown(token.text)} is listed twice.", StructureError)
                given[child][token.text] = self.variables[token.text].words
        return given


class Tables:
    """The tables of the variables that a text declares.

    Parameters
    ----------
    declared : Declarations
    tolerance : float
        By how much rows may miss one beyond what their printed rounding explains.

    Attributes
    ----------
    rounded : list of (position, sum)
        Where in the text a row misses one, by its printed rounding, within the tolerance, or as weights.
    """

    def __init__(self, declared: Declarations, tolerance: float = 0.0):
        self.declared, self.fault, self.tolerance = declared, declared.fault, tolerance
        self.rounded: list[tuple[int, float]] = []

    def network(self, max_cells: int) -> Network:
        """The network of all variables; StructureError or TooLargeError if they do not make one."""
        declared, blocks = self.declared.variables, self.declared.blocks
        given = self.declared.parents()
        if cycle := find_cycle(declared, given):
            raise self.fault(blocks[cycle[0]][0].start, describe_cycle(cycle), StructureError)
        shapes = {node: [len(declared[node].words), *map(len, given[node].values())] for node in declared}
        cells = {node: math.prod(shape) for node, shape in shapes.items()}
        if (total := sum(cells.values())) > max_cells:
            largest = max(cells, key=cells.__getitem__)
            raise self.fault(
                blocks[largest][0].start,
                f"the tables have {total} cells, {cells[largest]} of them here; max_cells={max_cells}. They would take "
                f"{8e-9 * total:.2g} GB.",
                TooLargeError,
            )
        dag = DAG.from_edges(((parent, child) for child in given for parent in given[child]), declared)
        tables = {}
        for node, (name, _, rows) in blocks.items():
            order = [list(given[node]).index(parent) for parent in dag.parents(node)]
            tables[node] = self.table(name, rows, len(declared[node].words), given[node]).transpose(*order, -1)
        return Network(dag, {node: variable.states for node, variable in declared.items()}, tables)

    def table(self, name: Token, rows: Sequence[Row], n_states: int, given: dict[str, tuple[str, ...]]) -> np.ndarray:
        """The table of a block; its axes are the parents as `given` lists them (with their states), then the node."""
        shape = tuple(map(len, given.values()))
        table = np.full((*shape, n_states), np.nan)
        places = [{state: place for place, state in enumerate(names)} for names in given.values()]
        default = None
        for row in rows:
            if row.kind in ("table", "rows", "weights"):
                if len(rows) > 1:
                    raise self.fault(
                        rows[1].start, "a 'table' is the whole of a block; here something stands beside it."
                    )
                table = self.whole(row, given, n_states)
            elif row.kind == "default":
                if default is not None:
                    raise self.fault(row.start, "a second 'default' row begins here.")
                is_row = len(row.numbers) == n_states
                default = np.array(self.normalized(row, row.numbers)) if is_row else self.whole(row, given, n_states)
            else:
                self.check_count(row, n_states, "one for each state")
                at = self.configuration(row, given, places)
                if not np.isnan(table[at][0]):
                    raise self.fault(row.start, "this configuration of the parents has a row already.")
                table[at] = self.normalized(row, row.numbers)
        if default is not None:
            table = np.where(np.isnan(table), default, table)
        missing = np.isnan(table[..., 0])
        if missing.any():
            lacking = _listed(given, np.argwhere(missing)[0])
            problem = f"row for {lacking}, and no default" if given else "probabilities"
            raise self.fault(name.start, f"the block of {shown(name.text)} has no {problem}.")
        return table

    def whole(self, row: Row, given: dict[str, tuple[str, ...]], n_states: int) -> np.ndarray:
        """The table that a row of the file holds as a whole."""
        shape = tuple(map(len, given.values()))
        size = math.prod(shape)
        self.check_count(row, size * n_states, f"{n_states} states x {size} configurations of parents")
        if row.kind in ("rows", "weights"):
            parts = (row.numbers[start : start + n_states] for start in range(0, size * n_states, n_states))
        else:
            parts = (row.numbers[start::size] for start in range(size))
        table = np.empty((*shape, n_states))
        for at, part in zip(np.ndindex(shape), parts, strict=True):
            try:
                table[at] = self.normalized(row, part)
            except ValueError as error:
                where = f" They are the row for {_listed(given, at)}." if given else ""
                raise ValueError(f"{error}{where}") from None
        return table

    def check_count(self, row: Row, expected: int, meaning: str) -> None:
        """Raise a ValueError unless a row has as many numbers as it should."""
        if len(row.numbers) != expected:
            raise self.fault(row.start, f"expected {expected} numbers, {meaning}. Found {len(row.numbers)}.")

    def configuration(self, row: Row, given: dict, places: list[dict[str, int]]) -> tuple[int, ...]:
        """Position of a row in the table: the position of the state of each parent."""
        if len(row.key) != len(given):
            raise self.fault(row.start, f"expected {len(given)} states, one for each parent. Found {len(row.key)}.")
        for state, parent, place in zip(row.key, given, places, strict=True):
            if state not in place:
                hint = did_you_mean(state, place)
                raise self.fault(row.start, f"{shown(state)} is no state of {shown(parent)}.{hint}")
        return tuple(place[state] for state, place in zip(row.key, places, strict=True))

    def normalized(self, row: Row, numbers: Sequence[str]) -> list[float]:
        """The probabilities of a distribution, divided by their sum where its printed digits explain that."""
        values = [float(number) for number in numbers]
        if all(map(math.isnan, values)):
            return values
        total = math.fsum(values)
        miss = abs(total - 1)
        if miss <= SLACK:
            return values
        if math.isnan(total):
            raise self.fault(row.start, "a probability is a number from 0 to 1. Found 'NaN' beside numbers.")
        are_weights = row.kind == "weights" and total > 0
        if not are_weights and not miss <= max(_printed_rounding(numbers, values), self.tolerance):
            fault = f"probabilities must sum to one. These sum to {total:.10g}."
            if miss <= MAX_ROUNDING:
                way = f"tolerance={_rounded_up(miss)}"
                fault += f" If that is near enough, {way} divides such rows by their sum."
            raise self.fault(row.start, fault)
        self.rounded.append((row.start, total))
        return [value / total for value in values]


def _listed(given: dict[str, tuple[str, ...]], at: Sequence[int]) -> str:
    """The states of parents at a position of a table, as BIF lists them."""
    return f"({', '.join(names[place] for names, place in zip(given.values(), at, strict=True))})"


def _printed_rounding(numbers: Sequence[str], values: Sequence[float]) -> float:
    """By how much probabilities printed with equal decimal places, or equal significant digits, may miss their sum."""
    parts = [_NUMBER.fullmatch(number) for number in numbers]
    digits = max(len(part[1] or part[2] or "") for part in parts if part)
    exponent = int(re.split("[eE]", f"{numbers[values.index(max(values))]}e0")[1])
    places = len(numbers) * 10.0 ** min(exponent - digits, 0)
    mantissas = [re.split("[eE]", number)[0].strip("+-").replace(".", "").lstrip("0") for number in numbers]
    most = max(map(len, mantissas))
    significant = sum(10.0 ** (int(f"{value:e}".partition("e")[2]) + 1 - most) for value in values if value)
    # Just below the first (two numbers, rounded alike, miss nothing), just above the second (0.33 three times).
    return min(max(places, significant) / 2 * (1 - 1e-9), MAX_ROUNDING * (1 + 1e-9))


def _rounded_up(miss: float) -> str:
    """One digit of a number, rounded up."""
    exponent = math.floor(math.log10(miss))
    return f"{math.ceil(miss / 10.0**exponent * (1 - 1e-6)):d}e{exponent}"
