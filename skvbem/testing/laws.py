"""Laws: functions that raise an AssertionError where theory is broken, and say by how much.

The first line of the docstring is the law. A check runs the laws of its kind one by one and returns a `Report`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Report:
    """The laws that something was held to, and those that could not be asked of it.

    Parameters
    ----------
    subject : str
        What was checked.
    held : tuple of str
        Names of the laws that it keeps.
    lacking : mapping of str to str
        Names of laws that were not tried, and what is lacking for them.
    """

    subject: str
    held: tuple[str, ...]
    lacking: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self):
        lines = [f"{self.subject} keeps {len(self.held)} laws: {', '.join(self.held)}."]
        lines += [f"Not tried: {law}, for {why}." for law, why in self.lacking.items()]
        return "\n".join(lines)


def hold(
    subject: str,
    kind: str,
    laws: Mapping[str, Callable],
    chosen: Iterable[str] | None,
    call: Callable[[Callable], Any],
    lacking: Callable[[Callable], str] = lambda law: "",
) -> Report:
    """Hold a subject to laws, one by one.

    Parameters
    ----------
    subject, kind : str
        What is checked, and what it is one of, for messages.
    laws : mapping of str to callable
        Every law of the kind, by name.
    chosen : iterable of str, optional
        Those to try; all if None.
    call : callable of a law
        Tries it on the subject.
    lacking : callable of a law to str
        What the subject lacks for it; empty if nothing.

    Raises
    ------
    AssertionError
        If a law is broken, with its name, what it says, and by how much.
    ValueError
        If there is no law of a name.
    """
    held, missing = [], {}
    for name in laws if chosen is None else list(chosen):
        if name not in laws:
            raise ValueError(f"There is no law {name!r} of {kind}. The laws are {', '.join(laws)}.")
        why = lacking(laws[name])
        if why:
            missing[name] = why
            continue
        law = (laws[name].__doc__ or "").splitlines()[0]
        try:
            call(laws[name])
        except UntriedError as error:
            missing[name] = f"want of {error}"
            continue
        except AssertionError as error:
            raise AssertionError(f"{subject} breaks the law {name!r} of {kind}: {law}\n{error}") from error
        except Exception as error:
            error.add_note(f"Raised while {subject} was held to the law {name!r} of {kind}: {law}")
            raise
        held.append(name)
    return Report(subject, tuple(held), missing)


class UntriedError(Exception):
    """A law tells nothing of what it was tried on; the message says what is lacking."""


def needs(*names: str) -> Callable[[Callable], Callable]:
    """Mark a law with what it needs of what it is tried on: capabilities, and more that the kind has names for."""

    def marked(law):
        law.needs = names
        return law

    return marked


def needs_of(law: Callable) -> tuple[str, ...]:
    """Names of what a law needs."""
    return getattr(law, "needs", ())


def require(condition: Any, message: str) -> None:
    """Raise an AssertionError with a message unless a condition holds everywhere."""
    if not np.all(condition):
        raise AssertionError(message)


def agree(
    what: str, computed: Any, wanted: Any, *, rel: float | None = None, abs: Any = None, nan_ok: bool = False
) -> None:
    """Raise an AssertionError unless numbers agree within tolerances, the larger one of both.

    Parameters
    ----------
    what : str
        What the numbers are, for the message.
    computed, wanted : array_like
        Of one shape, but for a number that stands for all.
    rel, abs : float, optional
        Relative to what is wanted, 1e-6 if neither is given, and absolute, 1e-12 if none is given.
    nan_ok : bool
        Whether NaN agrees with NaN.
    """
    computed, wanted = np.asarray(computed, dtype=float), np.asarray(wanted, dtype=float)
    if wanted.ndim and computed.shape != wanted.shape:
        raise AssertionError(f"{what}: the shape is {computed.shape}, where {wanted.shape} was expected.")
    share = (1e-6 if abs is None else 0.0) if rel is None else rel
    with np.errstate(invalid="ignore"):
        allowed = np.maximum(share * np.abs(wanted), 1e-12 if abs is None else abs)
        right = (computed == wanted) | ((np.abs(computed - wanted) <= allowed) & np.isfinite(wanted))
    right |= nan_ok & np.isnan(computed) & np.isnan(wanted)
    if not right.all():
        off = np.where(right, -1.0, np.nan_to_num(np.abs(computed - wanted), nan=np.inf, posinf=np.inf))
        at = np.unravel_index(int(np.argmax(off)), off.shape)
        where = f" at {tuple(map(int, at))}" if off.ndim else ""
        computed, wanted, allowed = (np.broadcast_to(x, off.shape)[at] for x in (computed, wanted, allowed))
        raise AssertionError(
            f"{what}: {computed:.12g}{where}, where {wanted:.12g} was expected; off by {off[at]:.3g}, "
            f"allowed are {allowed:.3g}."
        )


@contextmanager
def refuses_nothing(error: type[Exception], what: str) -> Iterator[None]:
    """Turn an error that theory rules out into an AssertionError."""
    try:
        yield
    except error as raised:
        raise AssertionError(f"{what}: {raised}") from raised


def refuses(error: type[Exception], words: str, what: str, call: Callable[[], Any]) -> None:
    """Raise an AssertionError unless a call raises an error that has these words, a regular expression."""
    try:
        call()
    except error as raised:
        require(re.search(words, str(raised)), f"{what}: {raised!s} was said, where {words!r} was expected.")
    else:
        raise AssertionError(f"{what}: nothing was refused, where {error.__name__} with {words!r} was expected.")
