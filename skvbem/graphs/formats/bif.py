"""Discrete Bayesian networks as files: reading and writing the Bayesian interchange format (BIF).

A BIF file declares variables with their states, then a table p(node | parents) for each. It is read in one pass by a
hand-written tokenizer: nothing in a file becomes code, an attribute or a path, time is linear in its length, and sizes
are checked before memory is taken. The format carries neither counts nor which variables are hidden.

States are words in BIF. Those of a variable that are numbers or booleans in Python are told by a property that other
programs skip, ``property skvbem_states int;`` (or float, or bool), so that what is read equals what was written.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import shutil
import tempfile
import warnings
from typing import NamedTuple

import numpy as np

from skvbem.errors import DataWarning, StructureError, TooLargeError
from skvbem.graphs.cycles import describe_cycle, find_cycle
from skvbem.graphs.dag import DAG
from skvbem.graphs.names import did_you_mean, shown
from skvbem.graphs.network import SLACK, Network

__all__ = ["Network", "read_bif", "write_bif"]

_ROUNDING = 1e-2
_MAX_PARENTS = 63


def read_bif(source, *, max_bytes: int = 2**24, max_nodes: int = 10_000, max_cells: int = 10_000_000) -> Network:
    """The network that a BIF file or text describes.

    Parameters
    ----------
    source : path, str, bytes or file object
        A str with a brace or a line break in it, of nothing but blanks, or of more than 4096 characters is the text
        itself, any other a path; bytes are the text. A file object may be open for text or for bytes. Bytes are UTF-8,
        with or without a byte order mark.
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
        If the text is no BIF; the message starts with line and column.
    StructureError
        A ValueError: if variables, states or arcs do not fit together or the arcs form a cycle.
    TooLargeError
        A ValueError: if a limit is passed.
    OSError
        If the path cannot be read.

    Warns
    -----
    DataWarning
        If rows of probabilities miss one by more than 1e-6, though by no more than their rounding explains.

    Notes
    -----
    Tables are read by the names of parents and states, in any order: as rows ``(parent states) numbers;``, maybe with a
    ``default`` row for those not listed, or as one ``table``, in which the variable runs slowest and the last parent
    fastest. Commas between items may be missing, comments are ``//`` to the end of the line and ``/* */``, names may be
    quoted, properties are skipped.

    Rows are divided by their sum, which may miss one by 1e-6 without a word. Beyond that the printed digits must
    explain it: it misses by less than half a unit of the last printed place for each number, and by no more than 0.01.
    Then there is a warning with the line, otherwise an error.
    """
    text, origin = _read(source, max_bytes)
    reader = _Reader(text, origin)
    network = reader.network(max_nodes, max_cells)
    if reader.rounded:
        position, total = reader.rounded[0]
        warnings.warn(
            f"{reader.place(position)}: probabilities as printed sum to {total:.10g}, not to one. They were divided by "
            f"their sum, as in {len(reader.rounded)} rows in all.",
            DataWarning,
            stacklevel=2,
        )
    return network


def write_bif(network: Network, path=None) -> str:
    """The network as BIF text, from which `read_bif` makes an equal network.

    Parameters
    ----------
    network : Network
        Its nodes must be named by str without double quotes, line breaks, other control characters and lone surrogates,
        which BIF has no way to write. The states of a node must be such str, or all int, all bool, or all finite
        float; None is no state.
    path : path, optional
        Where to write the text too, in UTF-8. A file already there is replaced once the new one is complete.

    Raises
    ------
    ValueError
        If a name or a state cannot be written.
    OSError
        If the file cannot be written.
    """
    parts = ["network unknown {\n}\n"]
    names = {node: _written(node, "name") for node in network.dag.nodes}
    words = {}
    for node, name in names.items():
        kind, words[node] = _written_states(node, network.states[node])
        told = "" if kind == "str" else f"  property {_STATES} {kind};\n"
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
        _write(text.encode(), path)
    return text


_BLANK = re.compile(r"(?:\s++|//[^\n]*+)*+")
_WORD = re.compile(r'(?:[^\s{}()\[\]|,;"/\x00-\x1f\x7f]++|/(?![/*]))++')
_TOKEN = re.compile(rf'([{{}}()\[\]|,;])|({_WORD.pattern})|"([^"\x00-\x1f\x7f]*+)"')
_PROPERTY = re.compile(r'[^;"]*+(?:"[^"]*+"[^;"]*+)*+;')
_COUNT = re.compile(r"[0-9]{1,9}")
_NUMBERS = re.compile(r"([0-9eE.,+\-\s]++);")
_NUMBER = re.compile(r"[+-]?(?:[0-9]++(?:\.([0-9]*+))?|\.([0-9]++))(?:[eE]([+-]?[0-9]{1,6}))?")
_UNWRITABLE = re.compile(r'["\x00-\x1f\x7f\ud800-\udfff]')
_STATES = "skvbem_states"  # the property that tells what the words of a variable's states stand for
_KINDS = {"bool": {"False": False, "True": True}.__getitem__, "int": int, "float": float}


class _Token(NamedTuple):
    kind: str  # a punctuation mark, "name" or "end"
    text: str
    start: int
    end: int


class _Row(NamedTuple):
    start: int
    kind: str  # "table", "default" or "("
    key: tuple[str, ...]
    numbers: list[str]


class _Variable(NamedTuple):
    token: _Token  # its name
    words: tuple[str, ...]
    states: tuple  # what the words stand for


class _Reader:
    """Recursive descent over BIF text, one token ahead."""

    def __init__(self, text, origin):
        self.text, self.origin = text, origin
        self.variables: dict[str, _Variable] = {}
        self.blocks: dict = {}  # name -> (its token, the tokens of its parents, its rows)
        self.rounded: list = []  # (position, sum) of each row that misses one by its printed rounding
        self.token = self.next(0)

    def fault(self, position, message, error=ValueError):
        return error(f"{self.place(position)}: {message}")

    def place(self, position):
        line, column = self.text.count("\n", 0, position) + 1, position - self.text.rfind("\n", 0, position)
        return f"{self.origin}, line {line}, column {column}"

    # Tokens

    def next(self, position):
        text = self.text
        position = _BLANK.match(text, position).end()
        while text.startswith("/*", position):
            close = text.find("*/", position + 2)
            if close < 0:
                raise self.fault(position, "this comment is not closed by '*/'.")
            position = _BLANK.match(text, close + 2).end()
        if position == len(text):
            return _Token("end", "", position, position)
        if match := _TOKEN.match(text, position):
            mark, word, quoted = match.groups()
            return _Token(mark or "name", quoted if quoted is not None else mark or word, position, match.end())
        if text[position] == '"':
            raise self.fault(position, "this quoted name is not closed, or holds a control character.")
        raise self.fault(position, f"the character {text[position]!r} cannot stand here.")

    def take(self, kind, what=None):
        token = self.token
        if token.kind != kind:
            raise self.unexpected(what or repr(kind))
        self.token = self.next(token.end)
        return token

    def word(self):
        """The token as it stands: a quoted name is no keyword."""
        return self.text[self.token.start : self.token.end]

    def unexpected(self, what):
        what_stands = "the end of the text" if self.token.kind == "end" else shown(self.token.text)
        return self.fault(self.token.start, f"expected {what}, found {what_stands}.")

    def names(self, close, what):
        """Gives the names before the mark `close`, which is taken too; the commas between them may be missing."""
        comma = False
        while comma or self.token.kind != close:
            yield self.take("name", what if comma else f"{what} or {close!r}")
            comma = self.token.kind == ","
            if comma:
                self.take(",")
        self.take(close)

    # Grammar

    def network(self, max_nodes, max_cells):
        while self.token.kind != "end":
            unit = self.word()
            if unit == "network":
                self.take("name")
                self.take("name", "the name of the network")
                self.body({})
            elif unit == "variable":
                self.variable(max_nodes)
            elif unit == "probability":
                self.probability()
            elif unit.startswith("<"):
                raise self.fault(
                    self.token.start,
                    "this is XML, as of XMLBIF, which is not read. Save the network in the BIF format.",
                )
            else:
                raise self.unexpected("'network', 'variable' or 'probability'")
        if not self.variables:
            raise self.fault(self.token.start, "the text ends without a variable; a BIF file declares at least one.")
        return self.assembled(max_cells)

    def body(self, entries):
        """The (position, text) of each property between braces; `entries` maps other first words to their readers."""
        properties = []
        self.take("{")
        while self.token.kind != "}":
            if self.word() in entries:
                entries[self.word()]()
            elif self.word() == "property":
                match = _PROPERTY.match(self.text, self.token.end)
                if not match:
                    raise self.fault(self.token.start, "this property is not closed by ';'.")
                properties.append((self.token.start, match[0]))
                self.token = self.next(match.end())
            else:
                raise self.unexpected(", ".join(map(repr, [*entries, "property"])) + " or '}'")
        self.take("}")
        return properties

    def variable(self, max_nodes):
        self.take("name")
        name = self.take("name", "the name of the variable")
        if name.text in self.variables:
            raise self.fault(name.start, f"variable {shown(name.text)} is declared twice.", StructureError)
        if len(self.variables) == max_nodes:
            raise self.fault(name.start, f"there are more than max_nodes={max_nodes} variables.", TooLargeError)
        types: list = []
        properties = self.body({"type": lambda: types.append(self.words())})
        if len(types) != 1:
            raise self.fault(name.start, f"variable {shown(name.text)} must have one type. It has {len(types)}.")
        self.variables[name.text] = _Variable(name, types[0], self.meant(types[0], properties))

    def meant(self, words, properties):
        """The states that the words of a variable stand for: themselves, if no property says otherwise."""
        told = [(position, text[:-1].split()) for position, text in properties if text.lstrip().startswith(_STATES)]
        told = [(position, parts[1:]) for position, parts in told if parts[0] == _STATES]
        if not told:
            return words
        position, kind = told[-1]
        if len(told) > 1 or len(kind) != 1 or kind[0] not in _KINDS:
            raise self.fault(position, f"the property {_STATES} must stand once and be one of {', '.join(_KINDS)}.")
        try:
            states = tuple(map(_KINDS[kind[0]], words))
        except (KeyError, ValueError):
            states = ()
        if tuple(map(repr, states)) != words or not all(map(math.isfinite, states)) or len(set(states)) < len(states):
            raise self.fault(position, f"the states must be different and of type {kind[0]}, as Python writes it.")
        return states

    def words(self):
        self.take("name")
        if self.word() != "discrete":
            raise self.unexpected("'discrete', the one type there is")
        self.take("name")
        self.take("[")
        count = self.take("name", "the number of states")
        self.take("]")
        self.take("{")
        expected = int(count.text) if _COUNT.fullmatch(count.text) else 0
        states = [*itertools.islice(self.names("}", "a state"), expected + 1)]  # what is too much is not read
        if len(states) != expected or not states:
            listed = f"{len(states)}{' or more' if len(states) > expected else ''}"
            raise self.fault(
                count.start,
                f"the number of states must be 1 or more and that of the names listed, {listed}. "
                f"Got {shown(count.text)} instead.",
            )
        self.take(";")
        seen = set()
        for state in states:
            if state.text in seen:
                raise self.fault(state.start, f"state {shown(state.text)} is listed twice.", StructureError)
            seen.add(state.text)
        return tuple(state.text for state in states)

    def probability(self):
        self.take("name")
        self.take("(")
        name = self.take("name", "the name of a variable")
        if self.token.kind == "|":
            self.take("|")
        parents = []
        for parent in self.names(")", "a parent"):
            if len(parents) == _MAX_PARENTS:
                message = f"a table has at most {_MAX_PARENTS} parents, an axis for each. Here is one more."
                raise self.fault(parent.start, message, TooLargeError)
            parents.append(parent)
        if name.text in self.blocks:
            raise self.fault(
                name.start, f"variable {shown(name.text)} has a probability block already.", StructureError
            )
        rows: list = []
        self.body({word: lambda: rows.append(self.row()) for word in ("table", "default", "(")})
        self.blocks[name.text] = (name, parents, rows)

    def row(self):
        start, kind = self.token.start, self.word()
        self.take(self.token.kind)
        key = ()
        if kind == "(":
            key = tuple(token.text for token in itertools.islice(self.names(")", "a state"), _MAX_PARENTS + 1))
            if len(key) > _MAX_PARENTS:
                raise self.fault(start, f"a row has at most {_MAX_PARENTS} states of parents. Here are more.")
        return _Row(start, kind, key, self.numbers())

    def numbers(self):
        # Nearly all of a large file: read at once where it is regular, else name by name to say what is wrong where.
        if match := _NUMBERS.match(self.text, self.token.start):
            numbers = [number.strip() for number in match[1].split(",")]
            if all(map(_is_probability, numbers)):
                self.token = self.next(match.end())
                return numbers
        numbers = []
        for number in self.names(";", "a number"):
            if not _is_probability(number.text):
                raise self.fault(number.start, f"a probability is a number from 0 to 1. Found {shown(number.text)}.")
            numbers.append(number.text)
        return numbers

    # Meaning

    def assembled(self, max_cells):
        known = self.variables
        for name, _, _ in known.values():
            if name.text not in self.blocks:
                raise self.fault(name.start, f"variable {shown(name.text)} has no probability block.", StructureError)
        given = {}
        for child, (name, parents, _) in self.blocks.items():
            given[child] = {}
            for token in (name, *parents):
                if token.text not in known:
                    hint = did_you_mean(token.text, known)
                    raise self.fault(token.start, f"there is no variable {shown(token.text)}.{hint}", StructureError)
            for token in parents:
                if token.text in given[child]:
                    raise self.fault(token.start, f"parent {shown(token.text)} is listed twice.", StructureError)
                given[child][token.text] = known[token.text].words
        if cycle := find_cycle(known, given):
            raise self.fault(self.blocks[cycle[0]][0].start, describe_cycle(cycle), StructureError)
        cells = {node: math.prod(map(len, (known[node].words, *given[node].values()))) for node in known}
        if sum(cells.values()) > max_cells:
            largest = max(cells, key=cells.__getitem__)
            raise self.fault(
                self.blocks[largest][0].start,
                f"the tables have {sum(cells.values())} cells, {cells[largest]} of them here; max_cells={max_cells}.",
                TooLargeError,
            )
        dag = DAG.from_edges(((parent, child) for child in given for parent in given[child]), known)
        tables = {}
        for node, (name, _, rows) in self.blocks.items():
            order = [list(given[node]).index(parent) for parent in dag.parents(node)]
            tables[node] = self.table(name, rows, known[node].words, given[node]).transpose(*order, -1)
        return Network(dag, {node: variable.states for node, variable in known.items()}, tables)

    def table(self, name, rows, states, given):
        """The table of a block; its axes are the parents as `given` lists them (with their states), then the node."""
        shape = tuple(map(len, given.values()))
        if any(row.kind == "table" for row in rows):
            if len(rows) > 1:
                raise self.fault(rows[1].start, "a 'table' is the whole of a block; here something stands beside it.")
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
                    raise self.fault(row.start, "a second 'default' row begins here.")
                default = self.normalized(row, row.numbers)
                continue
            at = self.configuration(row, given, places)
            if not np.isnan(table[at][0]):
                raise self.fault(row.start, "this configuration of the parents has a row already.")
            table[at] = self.normalized(row, row.numbers)
        missing = np.isnan(table[..., 0])
        if default is not None:
            table[missing] = default
        elif missing.any():
            lacking = ", ".join(
                names[place] for names, place in zip(given.values(), np.argwhere(missing)[0], strict=True)
            )
            what = f"row for ({lacking}), and no default" if given else "probabilities"
            raise self.fault(name.start, f"the block of {shown(name.text)} has no {what}.")
        return table

    def check_count(self, row, expected, meaning):
        if len(row.numbers) != expected:
            raise self.fault(row.start, f"expected {expected} numbers, {meaning}. Found {len(row.numbers)}.")

    def configuration(self, row, given, places):
        if len(row.key) != len(given):
            raise self.fault(row.start, f"expected {len(given)} states, one for each parent. Found {len(row.key)}.")
        for state, parent, place in zip(row.key, given, places, strict=True):
            if state not in place:
                hint = did_you_mean(state, place)
                raise self.fault(row.start, f"{shown(state)} is no state of {shown(parent)}.{hint}")
        return tuple(place[state] for state, place in zip(row.key, places, strict=True))

    def normalized(self, row, numbers):
        values = [float(number) for number in numbers]
        total = math.fsum(values)
        miss = abs(total - 1)
        if miss <= SLACK:
            return values
        if miss > _printed_rounding(numbers, values):
            raise self.fault(row.start, f"probabilities must sum to one. These sum to {total:.10g}.")
        self.rounded.append((row.start, total))
        return [value / total for value in values]


def _is_probability(text):
    return _NUMBER.fullmatch(text) is not None and 0 <= float(text) <= 1 + _ROUNDING


def _printed_rounding(numbers, values):
    """By how much numbers printed with so many digits may miss their sum."""
    parts = [_NUMBER.fullmatch(number) for number in numbers]
    digits = max(len(part[1] or part[2] or "") for part in parts)
    exponent = int(parts[values.index(max(values))][3] or 0)
    halves = 0.5 * len(numbers) * 10.0 ** min(exponent - digits, 0)
    # Just below the first (two numbers, rounded alike, miss nothing), just above the second (0.33 three times).
    return min(halves * (1 - 1e-9), _ROUNDING * (1 + 1e-9))


def _written(name, what):
    if not isinstance(name, str) or _UNWRITABLE.search(name):
        raise ValueError(
            f"A BIF {what} must be a str without double quotes, line breaks and other control characters. "
            f"Got {shown(name)} instead; rename it (DAG.relabel for a node)."
        )
    return name if _WORD.fullmatch(name) else f'"{name}"'


def _written_states(node, states):
    """The type of the states of a node, and the words that BIF has for them."""
    kind, *others = {str if isinstance(state, str) else type(state) for state in states}
    if others or kind not in (str, bool, int, float) or (kind is float and not all(map(math.isfinite, states))):
        raise ValueError(
            f"The states of node {shown(node)} must be all str, all int, all bool or all finite float to be written as "
            f"BIF. Got {shown(states)} instead."
        )
    words = states if kind is str else map(repr, states)
    return kind.__name__, [_written(word, f"state (here of node {shown(node)})") for word in words]


def _read(source, max_bytes):
    """The text of a source, its line breaks made uniform, and what to call it in errors."""
    is_path = isinstance(source, str) and len(source) <= 4096 and source.strip() and not set(source) & set("{\r\n\0")
    is_text = isinstance(source, str) and not is_path
    if is_text or isinstance(source, (bytes, bytearray, memoryview)):
        data, origin = source, "BIF text"
    elif isinstance(source, (str, os.PathLike)):
        origin = os.fspath(source)
        _check_regular(origin)
        with open(source, "rb") as file:
            data = file.read(max_bytes + 1)
    elif hasattr(source, "read"):
        origin = str(getattr(source, "name", "BIF text"))
        pieces, size = [], 0
        while size <= max_bytes and (piece := source.read(max_bytes + 1 - size)):
            pieces.append(piece)
            size += len(piece)
        data = type(pieces[0])().join(pieces) if pieces else ""
    else:
        raise TypeError(f"source must be a path, BIF text or a file object. Got {shown(source)} instead.")
    if len(data) > max_bytes:
        raise TooLargeError(f"{origin}: the text is longer than max_bytes={max_bytes}.")
    if not isinstance(data, str):
        data = bytes(data)
        try:
            data = data.decode("utf-8")
        except UnicodeDecodeError as error:
            line, column = data.count(b"\n", 0, error.start) + 1, error.start - data.rfind(b"\n", 0, error.start)
            raise ValueError(
                f"{origin}, line {line}, column {column}: byte 0x{data[error.start]:02x} is not UTF-8; save it as such."
            ) from None
    return data.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"), origin


def _check_regular(path):
    # Opening a pipe that nobody writes to would wait for ever.
    if os.path.exists(path) and not os.path.isfile(path):
        raise OSError(f"{os.fspath(path)!r} is no regular file.")


def _write(data, path):
    _check_regular(path)
    path = os.path.realpath(path)
    with open(path, "ab"):  # makes the file with the usual permissions; one already there stays as it is
        pass
    handle, new = tempfile.mkstemp(dir=os.path.dirname(path))
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(path, new)
        os.replace(new, path)
    except BaseException:
        os.unlink(new)
        raise
