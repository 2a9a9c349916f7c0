"""Networks in the Bayesian interchange format (BIF).

A BIF file declares variables with their states, then a table p(node | parents) for each.
"""

from __future__ import annotations

import itertools
import re

from skvbem._names import shown
from skvbem.fitted.bayesian_network import Network
from skvbem.formats.states import STATES_PROPERTY, check_writable, words_of_states
from skvbem.formats.tables import MAX_PARENTS, NAN, Declarations, Row, is_probability
from skvbem.formats.tokens import WORD, Text, Tokens

__all__ = ["read", "write"]

_PROPERTY = re.compile(r'[^;"]*+(?:"[^"]*+"[^;"]*+)*;')
_COUNT = re.compile(r"[0-9]{1,9}")
_NUMBERS = re.compile(r"([0-9eE.,+\-\s]++);")
_UNWRITABLE = re.compile(r'["\x00-\x1f\x7f\ud800-\udfff]')


def read(text: Text, max_nodes: int) -> Declarations:
    """The variables that a BIF text declares and the rows of their tables."""
    return _Reader(text, max_nodes).declared


class _Reader(Tokens):
    """A reader of BIF by recursive descent, which fills `declared`."""

    def __init__(self, text, max_nodes):
        super().__init__(text)
        self.declared = Declarations(text, max_nodes)
        while self.token.kind != "end":
            unit = self.word()
            if unit == "network":
                self.take("name")
                if self.token.kind != "{":
                    self.take("name", "the name of the network")
                self.body({})
            elif unit == "variable":
                self.variable()
            elif unit == "probability":
                self.probability()
            elif unit.startswith("<"):
                raise self.fault(
                    self.token.start, "this is XML, as of XMLBIF: read_network(..., format='xmlbif') reads that."
                )
            else:
                raise self.unexpected("'network', 'variable' or 'probability'")

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

    def variable(self):
        """Read the name of a variable and its states."""
        self.take("name")
        name = self.take("name", "the name of the variable")
        types: list = []
        properties = self.body({"type": lambda: types.append(self.words())})
        if len(types) != 1:
            raise self.fault(name.start, f"variable {shown(name.text)} must have one type. It has {len(types)}.")
        told = [(position, text[:-1].split()) for position, text in properties]
        kinds = [(position, parts[1:]) for position, parts in told if parts[:1] == [STATES_PROPERTY]]
        self.declared.add_variable(name, types[0], kinds)

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
        return states

    def probability(self):
        """Read the rows of the table of one variable."""
        self.take("name")
        self.take("(")
        name = self.take("name", "the name of a variable")
        if self.token.kind == "|":
            self.take("|")
        parents = [*itertools.islice(self.names(")", "a parent"), MAX_PARENTS + 1)]
        rows: list = []
        if len(parents) <= MAX_PARENTS:
            self.body({word: lambda: rows.append(self.row()) for word in ("table", "default", "(")})
        self.declared.add_block(name, parents, rows)

    def row(self):
        """One row of a table, or a whole table."""
        start, kind = self.token.start, self.word()
        self.take(self.token.kind)
        key = ()
        if kind == "(":
            key = tuple(token.text for token in itertools.islice(self.names(")", "a state"), MAX_PARENTS + 1))
            if len(key) > MAX_PARENTS:
                raise self.fault(start, f"a row has at most {MAX_PARENTS} states of parents. Here are more.")
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
            if number.text in NAN and (unknown or not numbers):
                unknown = unknown or number
                numbers.append("nan")
            elif unknown or not is_probability(number.text):
                number = unknown or number
                raise self.fault(number.start, f"a probability is a number from 0 to 1. Found {shown(number.text)}.")
            else:
                numbers.append(number.text)
        return numbers


def write(network: Network) -> str:
    """The BIF text of a network; ValueError if a name or a state has none."""
    parts = ["network unknown {\n}\n"]
    names = {node: _written(node, "name") for node in network.dag.nodes}
    words = {}
    for node, name in names.items():
        kind, texts = words_of_states(node, network.states[node])
        words[node] = [_written(word, f"state (here of node {shown(node)})") for word in texts]
        told = "" if kind == "str" else f"  property {STATES_PROPERTY} {kind};\n"
        listed = f"type discrete [ {len(texts)} ] {{ {', '.join(words[node])} }};"
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
    return "".join(parts)


def _written(name, what):
    without = "double quotes, line breaks and other control characters"
    check_writable(name, _UNWRITABLE, f"A BIF {what}", without)
    return name if WORD.fullmatch(name) else f'"{name}"'
