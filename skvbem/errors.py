"""Every exception and warning type of skvbem, on one screen."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = [
    "BoundFellError",
    "DataWarning",
    "EvidenceWarning",
    "LostBlockError",
    "NoInteriorModeError",
    "NoLinearResponseError",
    "PosteriorWarning",
    "SavedFitError",
    "SearchCheckpointError",
    "SearchWarning",
    "StructureError",
    "TooLargeError",
    "UnknownCategoryWarning",
]


class StructureError(ValueError):
    """A graph that is no directed acyclic graph, or that does not fit the data or the declared latents."""


class TooLargeError(ValueError):
    """A fit whose tables or memory, estimated before anything is allocated, exceed the limit given."""


def check_memory(what: str, n_numbers: float, least: str, max_memory: float, owner: str) -> None:
    """Refuse an answer of more numbers than `max_memory` holds, before anything is allocated.

    Parameters
    ----------
    what : str
        What would be held, as the subject of a sentence.
    n_numbers : float
        Of 8 bytes each.
    least : str
        What to ask for in its place.
    max_memory : float
        Bytes.
    owner : str
        Class of the estimator that has this limit.

    Raises
    ------
    TooLargeError
        That has the estimate and the limit.
    """
    if 8.0 * n_numbers > max_memory:
        raise TooLargeError(
            f"{what} would take at least {8.0 * n_numbers:.3g} bytes; the 'max_memory' parameter of {owner} allows "
            f"{max_memory:.3g}. Ask for {least}, or raise it."
        )


class NoInteriorModeError(ValueError):
    """A density without an interior mode in the basis asked for: its MAP estimate does not exist."""


class NoLinearResponseError(ValueError):
    """A fit that linear response has no answer for: at no maximum of the bound, or with weights below all floats."""


class BoundFellError(RuntimeError):
    """The objective fell by more than rounding: a defect in a model's expectation, never a property of data."""


class LostBlockError(RuntimeError):
    """A block of rows that cannot be had from where it was: a fit without it would be one of other data."""


class DataWarning(UserWarning):
    """Data taken as they are, though they look unlike what the model is for."""


class UnknownCategoryWarning(DataWarning):
    """A category that fit did not see, treated as a missing cell."""


class EvidenceWarning(UserWarning):
    """An estimate of the evidence that should not be trusted, and why."""


class PosteriorWarning(UserWarning):
    """Draws from a posterior, or answers, that should not be trusted, and why."""


class SavedFitError(ValueError):
    """A file that holds no saved fit, is damaged, or is of a newer version of the format."""


class SearchCheckpointError(ValueError):
    """A checkpoint that is damaged, of another search, or in use by one."""


class SearchWarning(UserWarning):
    """A search that went on without some of its candidates, or without its checkpoint."""


# Warnings that wait for others of one fit.
_waiting: ContextVar[list[tuple[str, type[Warning]]] | None] = ContextVar("_waiting", default=None)


@contextmanager
def together() -> Iterator[None]:
    """Join the warnings of a category as lines, each once, until `release` or the end; nothing within another."""
    if _waiting.get() is not None:
        yield
        return
    token = _waiting.set([])
    try:
        yield
    finally:
        try:
            release()
        finally:  # where warnings are errors, too
            _waiting.reset(token)


def release() -> None:
    """Give the warnings that wait, those before a long fit for instance."""
    waiting = _waiting.get()
    if not waiting:
        return
    texts: dict[type[Warning], dict[str, None]] = {}
    for message, category in waiting:
        texts.setdefault(category, {})[message] = None
    waiting.clear()
    token = _waiting.set(None)
    try:
        for category, of_category in texts.items():
            warn("\n".join(of_category), category)
    finally:
        _waiting.reset(token)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line: the first one that is neither ours nor scikit-learn's, nor of a decorator between."""
    waiting = _waiting.get()
    if waiting is not None:
        waiting.append((message, category))
        return
    frame, level, others = sys._getframe(1), 2, ("skvbem", "sklearn", "contextlib")
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in others:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def warn_of_impossible(places, n: int, instead: str, items: str = "rows") -> None:
    """Warn of rows or sequences, found at some places among n, that have probability 0 under a fit."""
    if len(places):
        warn(
            f"{len(places)} of {n} {items} have probability 0 under the fit, the first at position {places[0]}. Their "
            f"answers are {instead} and say nothing of them; score_samples gives them -inf.",
            DataWarning,
        )
