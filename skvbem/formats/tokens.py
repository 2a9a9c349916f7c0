"""Texts of files, and their tokens: names and punctuation marks with their places.

A hand-written tokenizer with possessive patterns: time is linear in the length of the text.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from skvbem._names import shown

__all__ = ["COMMENT", "WORD", "Text", "Token", "Tokens"]

# Groups repeat greedily: if they did so possessively, some releases of Python 3.11 would go on after what a group read
# before it failed. What they repeat has no two readings, so that nothing is tried again.
COMMENT = r"//[^\n]*+"
WORD = re.compile(r'(?:[^\s{}()\[\]|,;"/\x00-\x1f\x7f]++|/(?![/*]))+')


class Text(NamedTuple):
    """A text, and what to call it in errors."""

    content: str
    origin: str

    def place(self, position: int) -> str:
        """Line and column of a position, with the origin of the text."""
        line = self.content.count("\n", 0, position) + 1
        return f"{self.origin}, line {line}, column {position - self.content.rfind(chr(10), 0, position)}"

    def fault(self, position: int, message: str, error: type[Exception] = ValueError) -> Exception:
        """The error that says what is wrong at a position of the text."""
        return error(f"{self.place(position)}: {message}")


class Token(NamedTuple):
    """A name or a punctuation mark, and where it stands in the text."""

    kind: str  # a punctuation mark, "name" or "end"
    text: str
    start: int
    end: int


class Tokens:
    """The tokens of a text, one at a time; `token` is the one ahead.

    Parameters
    ----------
    text : Text
    """

    blank = re.compile(rf"(?:\s++|{COMMENT})*")
    pattern = re.compile(rf'([{{}}()\[\]|,;])|({WORD.pattern})|"([^"\x00-\x1f\x7f]*+)"')

    def __init__(self, text: Text):
        self.text, self.fault = text.content, text.fault
        self.token = self.next(0)

    def next(self, position):
        """The first token from a position on, behind blanks and comments."""
        text = self.text
        position = self.blank.match(text, position).end()
        while text.startswith("/*", position):
            close = text.find("*/", position + 2)
            if close < 0:
                raise self.fault(position, "this comment is not closed by '*/'.")
            position = self.blank.match(text, close + 2).end()
        if position == len(text):
            return Token("end", "", position, position)
        if match := self.pattern.match(text, position):
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
