"""The tokens of the Bayesian interchange format: names, punctuation marks, and what separates them.

A hand-written tokenizer with possessive patterns: time is linear in the length of the text.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from skvbem._names import shown

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
