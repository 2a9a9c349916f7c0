"""Discrete Bayesian networks as files: reading and writing the Bayesian interchange format (BIF).

A BIF file declares variables with their states, then a table p(node | parents) for each. It is read in one pass by a
hand-written tokenizer: nothing in a file becomes code, an attribute or a path, time is linear in its length, and sizes
are checked before memory is taken. The format carries neither counts nor which variables are hidden.

States are words in BIF. Those of a variable that are numbers or booleans in Python are told by a property that other
programs skip, ``property skvbem_states int;`` (or float, bool, interval), so that what is read equals what was written.
"""

from __future__ import annotations

import itertools
import math
import re
import warnings
from collections.abc import Hashable

import numpy as np

from skvbem._names import did_you_mean, shown
from skvbem.errors import DataWarning, StructureError, TooLargeError
from skvbem.fitted.bayesian_network import Network
from skvbem.formats.bif_grammar import MAX_ROUNDING, NUMBER, STATES_PROPERTY, WORD, Declarations, words_of_states
from skvbem.formats.files import read_text, write_bytes
from skvbem.graphs.dag import DAG
from skvbem.graphs.paths import describe_cycle, find_cycle
from skvbem.tables import SLACK

__all__ = ["read_bif", "write_bif"]

# Reading --------------------------------------------------------------------------------------------------------------


def read_bif(
    source,
    *,
    tolerance: float = 0.0,
    max_bytes: int = 2**24,
    max_nodes: int = 10_000,
    max_cells: int = 10_000_000,
) -> Network:
    """The network that a BIF file or text describes.

    Parameters
    ----------
    source : path, str, bytes or file object
        A str with a brace or a line break in it, of nothing but blanks, or of more than 4096 characters is the text
        itself, any other a path; bytes are the text. A file object may be open for text or for bytes. Bytes are UTF-8,
        with or without a byte order mark, or compressed by gzip.
    tolerance : float, default=0
        By how much the probabilities of a row may miss one beyond their printed rounding, as those of a file with a
        mistyped digit do. Such rows are divided by their sum, with a warning.
    max_bytes, max_nodes, max_cells : int
        Limits on the length of the text, the number of variables and the number of cells of all tables together.
        Reading takes up to about 100 bytes of memory for each byte of text, and time linear in their number.

    Returns
    -------
    network : Network
        The variables and their states in the order of the file.

    Raises
    ------
    ValueError
        If the text is no BIF, the message starts with line and column; or `tolerance` is not from 0 to 1.
    StructureError
        A ValueError: if variables, states or arcs do not fit together or the arcs form a cycle.
    TooLargeError
        A ValueError: if a limit is passed.
    OSError
        If the path cannot be read.

    Warns
    -----
    DataWarning
        If rows of probabilities miss one by more than 1e-6, though by no more than their rounding explains or
        `tolerance` allows.

    Notes
    -----
    Tables are read by the names of parents and states, in any order. They come as rows ``(parent states) numbers;``,
    maybe with a ``default`` row for parent states that are not listed, or whose row is of NaN alone (bnlearn writes it
    for parents that it has not seen). Or they come as one ``table``, in which the
    variable runs slowest and the last parent fastest. Commas between items may be missing, and names may be quoted.
    Comments are ``//`` to the end of the line and ``/* */``. Properties are skipped.

    Rows are divided by their sum, which may miss one by 1e-6 without a word. Beyond that the printed digits must
    explain it. Numbers may be rounded to equal decimal places or to equal significant digits; the sum then misses one
    by less than half a unit of the last place of each number. It may never miss by more than 0.01. Such rows bring a
    warning with the line, all others an error.
    """
    if not (isinstance(tolerance, (int, float)) and 0 <= tolerance < 1):
        raise ValueError(f"'tolerance' must be a number from 0 to 1, 1 excluded. Got {shown(tolerance)} instead.")
    declared = Declarations(*read_text(source, max_bytes))
    declared.read(max_nodes)
    tables = Tables(declared, tolerance)
    network = tables.network(max_cells)
    if tables.rounded:
        position, total = tables.rounded[0]
        warnings.warn(
            f"{declared.place(position)}: probabilities as printed sum to {total:.10g}, not to one. They were divided "
            f"by their sum, as in {len(tables.rounded)} rows in all.",
            DataWarning,
            stacklevel=2,
        )
    return network


class Tables:
    """The tables of the variables that a BIF text declares.

    Attributes
    ----------
    rounded : list of (position, sum)
        Where in the text a row misses one, by its printed rounding or within the tolerance.
    """

    def __init__(self, declared: Declarations, tolerance: float = 0.0):
        self.declared, self.tolerance = declared, tolerance
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
            return self.complete(name, np.array(columns).reshape(*shape, len(states)), given)
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
        if default is not None:
            table[np.isnan(table[..., 0])] = default
        return self.complete(name, table, given)

    def complete(self, name, table, given):
        """The table; the error that says which row is missing if one is."""
        missing = np.isnan(table[..., 0])
        if missing.any():
            lacking = ", ".join(
                names[place] for names, place in zip(given.values(), np.argwhere(missing)[0], strict=True)
            )
            problem = f"row for ({lacking}), and no default" if given else "probabilities"
            raise self.declared.fault(name.start, f"the block of {shown(name.text)} has no {problem}.")
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
        if all(map(math.isnan, values)):
            return values
        total = math.fsum(values)
        miss = abs(total - 1)
        if miss <= SLACK:
            return values
        if not miss <= max(_printed_rounding(numbers, values), self.tolerance):
            fault = f"probabilities must sum to one. These sum to {total:.10g}."
            if miss <= MAX_ROUNDING:
                way = f"read_bif(..., tolerance={_rounded_up(miss)})"
                fault += f" If that is near enough, {way} divides such rows by their sum."
            raise self.declared.fault(row.start, fault)
        self.rounded.append((row.start, total))
        return [value / total for value in values]


def _printed_rounding(numbers, values):
    """By how much probabilities printed with equal decimal places, or equal significant digits, may miss their sum."""
    parts = [NUMBER.fullmatch(number) for number in numbers]
    digits = max(len(part[1] or part[2] or "") for part in parts)
    exponent = int(parts[values.index(max(values))][3] or 0)
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


# Writing --------------------------------------------------------------------------------------------------------------

_UNWRITABLE = re.compile(r'["\x00-\x1f\x7f\ud800-\udfff]')


def write_bif(network: Network, path=None) -> str:
    """The network as BIF text, from which `read_bif` makes an equal network.

    Parameters
    ----------
    network : Network
        Its nodes must be named by str without double quotes, line breaks, other control characters and lone surrogates,
        which BIF has no way to write. The states of a node must be such str, or all int, all bool, or all finite
        float, or all pandas.Interval of numbers; None is no state.
    path : path, optional
        Where to write the text too, in UTF-8. A file already there is replaced once the new one is complete.

    Raises
    ------
    ValueError
        If a name or a state cannot be written.
    OSError
        If the file cannot be written.
    """
    if not hasattr(network, "dag"):
        hint = " Its network is 'network_'." if hasattr(network, "network_") else ""
        raise TypeError(f"write_bif takes a Network first. Got a {type(network).__name__} instead.{hint}")
    parts = ["network unknown {\n}\n"]
    names = {node: _written(node, "name") for node in network.dag.nodes}
    words = {}
    for node, name in names.items():
        kind, words[node] = _written_states(node, network.states[node])
        told = "" if kind == "str" else f"  property {STATES_PROPERTY} {kind};\n"
        listed = f"type discrete [ {len(words[node])} ] {{ {', '.join(words[node])} }};"
        parts.append(f"variable {name} {{\n  {listed}\n{told}}}\n")
    for node, name in names.items():
        parents, table = network.dag.parents(node), network.tables[node]
        given = f" | {', '.join(names[parent] for parent in parents)}" if parents else ""
        parts.append(f"probability ( {name}{given} ) {{\n")
        rows = table.reshape(-1, table.shape[-1]).tolist()
        for row, key in zip(rows, itertools.product(*(words[parent] for parent in parents)), strict=True):
            head = f"({', '.join(key)})" if parents else "table"
            parts.append(f"  {head} {', '.join(map(repr, row))};\n")
        parts.append("}\n")
    text = "".join(parts)
    if path is not None:
        write_bytes(text.encode(), path)
    return text


def _written(name, what):
    if not isinstance(name, str) or _UNWRITABLE.search(name):
        raise ValueError(
            f"A BIF {what} must be a str without double quotes, line breaks and other control characters. "
            f"Got {shown(name)} instead; rename it (DAG.relabel for a node)."
        )
    return name if WORD.fullmatch(name) else f'"{name}"'


def _written_states(node, states):
    """The type of the states of a node, and the words that BIF has for them."""
    kind_and_words = words_of_states(tuple(states))
    if kind_and_words is None:
        raise ValueError(
            f"The states of node {shown(node)} must be all str, all int, all bool, all finite float or all "
            f"pandas.Interval of numbers to be written as BIF. Got {shown(states)} instead. X.astype(str) makes others "
            "texts."
        )
    kind, words = kind_and_words
    return kind, [_written(word, f"state (here of node {shown(node)})") for word in words]
