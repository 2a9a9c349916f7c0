"""The grammar of the Bayesian interchange format: tokens, variables with their states, and rows of their tables.

A hand-written tokenizer with possessive patterns: time is linear in the length of the text. Nothing in a file becomes
code, an attribute or a path, and sizes are checked before memory is taken.
"""

from __future__ import annotations

import itertools
import math
import re
from typing import Any, NamedTuple

from skvbem._names import shown
from skvbem.errors import StructureError, TooLargeError
from skvbem.reading.tables import is_interval

# Groups repeat greedily: if they did so possessively, some releases of Python 3.11 would go on after what a group read
# before it failed. What they repeat has no two readings, so that nothing is tried again.
_BLANK = re.compile(r"(?:\s++|//[^\n]*+)*")
WORD = re.compile(r'(?:[^\s{}()\[\]|,;"/\x00-\x1f\x7f]++|/(?![/*]))+')
_TOKEN = re.compile(rf'([{{}}()\[\]|,;])|({WORD.pattern})|"([^"\x00-\x1f\x7f]*+)"')
NUMBER = re.compile(r"[+-]?(?:[0-9]++(?:\.([0-9]*+))?|\.([0-9]++))(?:[eE]([+-]?[0-9]{1,6}))?")
STATES_PROPERTY = "skvbem_states"  # which tells what the words of a variable's states stand for


class Token(NamedTuple):
    """A name or a punctuation mark, and where it stands in the text."""

    kind: str  # a punctuation mark, "name" or "end"
    text: str
    start: int
    end: int


class Tokens:
    """The tokens of a BIF text, one at a time; `token` is the one ahead.

    Parameters
    ----------
    text : str
    origin : str
        What to call the text in errors.
    """

    def __init__(self, text, origin):
        self.text, self.origin = text, origin
        self.token = self.next(0)

    def fault(self, position, message, error=ValueError):
        """The error that says what is wrong at a position of the text."""
        return error(f"{self.place(position)}: {message}")

    def place(self, position):
        """Line and column of a position, with the origin of the text."""
        line, column = self.text.count("\n", 0, position) + 1, position - self.text.rfind("\n", 0, position)
        return f"{self.origin}, line {line}, column {column}"

    def next(self, position):
        """The first token from a position on, behind blanks and comments."""
        text = self.text
        position = _BLANK.match(text, position).end()
        while text.startswith("/*", position):
            close = text.find("*/", position + 2)
            if close < 0:
                raise self.fault(position, "this comment is not closed by '*/'.")
            position = _BLANK.match(text, close + 2).end()
        if position == len(text):
            return Token("end", "", position, position)
        if match := _TOKEN.match(text, position):
            mark, word, quoted = match.groups()
            return Token(mark or "name", quoted if quoted is not None else mark or word, position, match.end())
        if text[position] == '"':
            raise self.fault(position, "this quoted name is not closed, or holds a control character.")
        raise self.fault(position, f"the character {text[position]!r} cannot stand here.")

    def take(self, kind, what=None):
        """The token ahead, which must be of this kind; the next one is then ahead."""
        token = self.token
        if token.kind != kind:
            raise self.unexpected(what or repr(kind))
        self.token = self.next(token.end)
        return token

    def word(self):
        """The token ahead as it stands in the text: a quoted name is no keyword."""
        return self.text[self.token.start : self.token.end]

    def unexpected(self, what):
        """The error that says what was expected instead of the token ahead."""
        what_stands = "the end of the text" if self.token.kind == "end" else shown(self.token.text)
        return self.fault(self.token.start, f"expected {what}, found {what_stands}.")

    def names(self, close, what):
        """The names before the mark `close`, which is taken too; the commas between them may be missing."""
        comma = False
        while comma or self.token.kind != close:
            yield self.take("name", what if comma else f"{what} or {close!r}")
            comma = self.token.kind == ","
            if comma:
                self.take(",")
        self.take(close)


# By how much a printed probability may be above one, and a printed row miss it.
MAX_ROUNDING = 1e-2
_MAX_PARENTS = 63
_PROPERTY = re.compile(r'[^;"]*+(?:"[^"]*+"[^;"]*+)*;')
_COUNT = re.compile(r"[0-9]{1,9}")
_NUMBERS = re.compile(r"([0-9eE.,+\-\s]++);")
_NAN = ("NaN", "nan", "NA")
_INTERVAL = re.compile(r"([\[(])(\S+), (\S+)([\])])")


def _interval(word: str):
    """The pandas.Interval that a word stands for."""
    import pandas as pd

    if not (match := _INTERVAL.fullmatch(word)):
        raise ValueError(word)
    opening, left, right, closing = match.groups()
    closed = {"()": "neither", "[)": "left", "(]": "right", "[]": "both"}[opening + closing]
    ends = [float(end) if set(end) & set(".einf") else int(end) for end in (left, right)]
    return pd.Interval(*ends, closed)


_KINDS: dict[str, Any] = {
    "bool": {"False": False, "True": True}.__getitem__,
    "int": int,
    "float": float,
    "interval": _interval,
}


def words_of_states(states: tuple) -> tuple[str, tuple[str, ...]] | None:
    """Name of the type that states have in common, and the words that stand for them; None if BIF has no words."""
    kinds = {str if isinstance(state, str) else type(state) for state in states}
    if kinds == {str}:
        return "str", states
    name = "interval" if all(map(is_interval, states)) else next(iter(kinds)).__name__
    words = tuple(map(_printer(name), states))
    return (name, words) if len(kinds) == 1 and _states_of_words(name, words) == states else None


def _printer(name: str):
    return str if name == "interval" else repr


def _states_of_words(name: str, words: tuple[str, ...]) -> tuple | None:
    """The different states of a type that words stand for, as they are written; None if there are none."""
    try:
        states = tuple(map(_KINDS[name], words))
    except (KeyError, ValueError):
        return None
    is_finite = name == "interval" or all(map(math.isfinite, states))
    is_written_so = tuple(map(_printer(name), states)) == words
    return states if is_finite and is_written_so and len(set(states)) == len(states) else None


class Row(NamedTuple):
    """Probabilities as printed, and the states of parents that they are given."""

    start: int
    kind: str  # "table", "default" or "("
    key: tuple[str, ...]
    numbers: list[str]


class Variable(NamedTuple):
    """A variable's name, the words for its states, and the states."""

    token: Token  # its name
    words: tuple[str, ...]
    states: tuple  # what the words stand for


class Declarations(Tokens):
    """The variables that a BIF text declares and the rows of their tables, by recursive descent.

    Attributes
    ----------
    variables : dict
        Name -> `Variable`.
    blocks : dict
        Name -> its token, the tokens of its parents, the rows of its table.
    """

    def __init__(self, text, origin):
        self.variables: dict[str, Variable] = {}
        self.blocks: dict[str, tuple[Token, list[Token], list[Row]]] = {}
        super().__init__(text, origin)

    def read(self, max_nodes):
        """Read all units of the text into `variables` and `blocks`."""
        while self.token.kind != "end":
            unit = self.word()
            if unit == "network":
                self.take("name")
                if self.token.kind != "{":
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
        """Read the name of a variable and its states."""
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
        self.variables[name.text] = Variable(name, types[0], self.meant(types[0], properties))

    def meant(self, words, properties):
        """The states that the words of a variable stand for: the words, if no property says otherwise."""
        told = [
            (position, text[:-1].split()) for position, text in properties if text.lstrip().startswith(STATES_PROPERTY)
        ]
        told = [(position, parts[1:]) for position, parts in told if parts[0] == STATES_PROPERTY]
        if not told:
            return words
        position, kind = told[-1]
        if len(told) > 1 or len(kind) != 1 or kind[0] not in _KINDS:
            raise self.fault(
                position, f"the property {STATES_PROPERTY} must stand once and be one of {', '.join(_KINDS)}."
            )
        states = _states_of_words(kind[0], words)
        if states is None:
            raise self.fault(position, f"the states must be different and of type {kind[0]}, as Python writes it.")
        return states

    def words(self):
        """The words for the states that a type lists."""
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
        """Read the rows of the table of one variable."""
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
        """One row of a table, or a whole table."""
        start, kind = self.token.start, self.word()
        self.take(self.token.kind)
        key = ()
        if kind == "(":
            key = tuple(token.text for token in itertools.islice(self.names(")", "a state"), _MAX_PARENTS + 1))
            if len(key) > _MAX_PARENTS:
                raise self.fault(start, f"a row has at most {_MAX_PARENTS} states of parents. Here are more.")
        return Row(start, kind, key, self.numbers())

    def numbers(self):
        """The probabilities up to a semicolon, as printed."""
        # Nearly all of a large file: read at once where it is regular, else name by name to say what is wrong where.
        if match := _NUMBERS.match(self.text, self.token.start):
            numbers = [number.strip() for number in match[1].split(",")]
            if all(map(is_probability, numbers)):
                self.token = self.next(match.end())
                return numbers
        numbers: list[str] = []
        unknown = None  # the first NaN of a row, which all of its numbers are then
        for number in self.names(";", "a number"):
            if number.text in _NAN and (unknown or not numbers):
                unknown = unknown or number
                numbers.append("nan")
            elif unknown or not is_probability(number.text):
                number = unknown or number
                raise self.fault(number.start, f"a probability is a number from 0 to 1. Found {shown(number.text)}.")
            else:
                numbers.append(number.text)
        return numbers


def is_probability(text: str) -> bool:
    """True if a printed number is one from 0 to 1, but for its rounding."""
    return NUMBER.fullmatch(text) is not None and 0 <= float(text) <= 1 + MAX_ROUNDING
