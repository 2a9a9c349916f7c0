"""Settings ``name = value;`` between braces, of which NET and DSL files consist."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from skvbem._names import shown
from skvbem.formats.tables import NAN, is_probability
from skvbem.formats.tokens import COMMENT, Token, Tokens

__all__ = ["Settings"]

Readers = Mapping[str, Callable[[], Any]]
_NUMBERS = re.compile(rf"((?:[0-9eE.,+\-\s()|]++|%[^\n]*+|{COMMENT})*);")
_COMMENT = re.compile(rf"%[^\n]*+|{COMMENT}")
_ESCAPED = re.compile(r'\\(["\\])')


class Settings(Tokens):
    """The tokens of a text of settings. Strings hold any character, double quotes behind a backslash."""

    blank = re.compile(rf"(?:\s++|%[^\n]*+|{COMMENT})*")
    pattern = re.compile(
        r'([{}()|,;=])|((?:[^\s{}()|,;="/%\x00-\x1f\x7f]++|/(?![/*]))+)|"((?:[^"\\\x00]++|\\[^\x00])*)"'
    )

    def body(self, entries: Readers, units: Readers = MappingProxyType({})) -> None:
        """Read what stands between braces; `entries` has readers of values, `units` of what begins with its name."""
        self.take("{")
        while self.token.kind != "}":
            word = self.word()
            if word in units:
                units[word]()
                continue
            self.take("name", "a name or '}'")
            self.take("=")
            if word in entries:
                entries[word]()
            else:
                self.skip()
            self.take(";")
        self.take("}")

    def skip(self) -> None:
        """Pass over the value ahead, up to its semicolon."""
        closing: list[str] = []
        while closing or self.token.kind not in (";", "}", ")", "end"):
            kind = self.token.kind
            if kind in ("(", "{"):
                closing.append(")" if kind == "(" else "}")
            elif closing and kind == closing[-1]:
                closing.pop()
            elif kind in (")", "}", "end") or (kind == ";" and closing[-1] == ")"):
                raise self.unexpected("the closing bracket of this value")
            self.token = self.next(self.token.end)

    def string(self) -> str:
        """The one word or string ahead."""
        return _ESCAPED.sub(r"\1", self.take("name").text)

    def several(self, what: str) -> list[Token]:
        """The tokens of the names in parentheses."""
        self.take("(")
        return [token._replace(text=_ESCAPED.sub(r"\1", token.text)) for token in self.names(")", what)]

    def numbers(self, what: str = "a probability is a number from 0 to 1", is_one=is_probability) -> list[str]:
        """The numbers in nested parentheses up to a semicolon, as printed; `what` says of which `is_one` is true."""
        start = self.token.start
        # Nearly all of a large file: read at once where it is regular, else token by token to say what is wrong where.
        if match := _NUMBERS.match(self.text, start):
            plain = _COMMENT.sub(" ", match[1]).strip()
            numbers = re.split(r"[\s,()|]+", plain)[1:-1]
            is_closed = plain[:1] == "(" and plain[-1:] == ")" and plain.count("(") == plain.count(")")
            if is_closed and all(map(is_one, numbers)):
                self.token = self.next(match.end() - 1)
                return numbers
        self.take("(", "'(' before the probabilities")
        numbers, depth = [], 1
        while depth:
            token = self.token
            if token.kind == "name" and token.text in NAN:
                numbers.append("nan")
            elif token.kind == "name" and is_one(token.text):
                numbers.append(token.text)
            elif token.kind == "name":
                raise self.fault(token.start, f"{what}. Found {shown(token.text)}.")
            elif token.kind not in ("(", ")", ",", "|"):
                raise self.unexpected("a number or ')'")
            depth += (token.kind == "(") - (token.kind == ")")
            self.token = self.next(token.end)
        return numbers
