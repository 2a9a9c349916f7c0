"""Advice copied out of messages: its keywords, the names in quotes, and lines of code, each to be followed."""

import ast
import logging
import re
import warnings
from collections.abc import Callable
from typing import NamedTuple

import pytest


class _Lines(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


def heard(call):
    """The result of a call, and the texts of its warnings and of the lines that it logs."""
    log, lines = logging.getLogger("skvbem"), _Lines()
    log.addHandler(lines)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = call()
    finally:
        log.removeHandler(lines)
    return result, [str(each.message) for each in caught] + lines.lines


def messages(call):
    """The texts of the warnings of a call and of what it logs, or that of its error."""
    try:
        return heard(call)[1]
    except Exception as error:
        return [str(error)]


def message(call, part):
    (text,) = {text for text in messages(call) if part in text}
    return text


def keywords(text):
    """Keyword arguments that a message has to copy, as in ``fill='cells'`` or ``emission={...}``."""
    found = {}
    for match in re.finditer(r"\b([a-z_]+)=(?=[\[{'\"\d(-]|True|False|None)", text):
        rest = text[match.end() :]
        ends = [rest.index(rest[0], 1) + 1] if rest[0] in "'\"" else range(len(rest), 0, -1)
        for end in ends:
            if rest[:end].rstrip().endswith(","):
                continue
            try:
                value = ast.literal_eval(rest[:end].rstrip())
            except (SyntaxError, ValueError):
                continue
            found.setdefault(match.group(1), []).append(value)
            break
    return found


class Case(NamedTuple):
    """A message whose advice is followed.

    `call` draws the message, which holds `part`; its advice begins there. `follow` makes calls of the advice: none of
    them may fail, or draw the message again.
    """

    call: Callable
    part: str
    follow: Callable


def each_keyword(followed):
    """Calls with each keyword argument of the advice, one at a time."""
    return lambda text: [
        lambda key=key, value=value: followed(**{key: value})
        for key, values in keywords(text).items()
        for value in values
    ]


def each_name(followed, *, among=r"[\w.]+"):
    """Calls with each name in quotes that the advice recommends, of those that match a pattern."""
    return lambda text: [lambda name=name: followed(name) for name in re.findall(rf"(?<![=\w])'({among})'", text)]


def each_line(pattern, followed=lambda made: None, **namespace):
    """Calls with the value of each expression of the advice that matches a pattern, made as a user would paste it."""
    return lambda text: [
        lambda line=line: followed(eval(line, dict(namespace)))
        for line in (found.group() for found in re.finditer(pattern, text))
    ]


def both(*follow):
    return lambda text: [call for each in follow for call in (each(text) or [_none])]


def _none():
    raise AssertionError("no advice is found in the message")


def check(case):
    """Draw the message of a case, and follow its advice."""
    text = message(case.call, case.part)
    calls = case.follow(text[text.index(case.part) :])
    assert calls, text
    for call in calls:
        for again in heard(call)[1]:
            assert case.part not in again


def with_slow(cases, slow):
    """Names of cases, those that take long marked."""
    return [pytest.param(name, marks=[pytest.mark.slow] if name in slow else []) for name in cases]
