"""Parts of rows that are not in this process, and the engines that take steps to them.

A step goes to where a part is, and its result comes back. Results are handed on in the order of the parts, so that
sums do not depend on the number of workers or on who is done first. A step is pure: an engine may take it again where a
worker is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from skvbem._arithmetic import arithmetic
from skvbem.blocks.base import Blocks
from skvbem.errors import LostBlockError


@dataclass(frozen=True, eq=False)
class Part:
    """A part of the rows.

    Parameters
    ----------
    number : int
        Its place among the blocks as they were given, which messages name.
    items : tuple
        What an engine hands to a step, one argument for each: values that pickle, or its own handles of such.
    """

    number: int
    items: tuple


class Engine(Protocol):
    """Takes steps to parts of rows, wherever these are."""

    def results(self, step: Callable[..., Any], parts: Sequence[Part]) -> Iterator:
        """What a step returns for the items of each part, in the order of the parts.

        Raises
        ------
        LostBlockError
            If a part cannot be had; its number is in the message. Errors of a step are raised as they are.
        """
        ...

    def kept(self, step: Callable[..., Any], parts: Sequence[Part]) -> list[Any]:
        """Handles of what a step returns for each part, which stays where it was computed."""
        ...


@dataclass(frozen=True, eq=False)
class Chain:
    """Functions one after another, of a block of one item or of a tuple of several."""

    functions: tuple[Callable[[Any], Any], ...]

    def __call__(self, *items: Any) -> Any:
        """The result of the last function."""
        block: Any = items[0] if len(items) == 1 else items
        with arithmetic:
            for function in self.functions:
                block = function(block)
        return block


class BlocksElsewhere(Blocks):
    """Blocks whose functions run where an engine has them.

    Parameters
    ----------
    engine : Engine
    parts : sequence of Part
    changes : tuple of callable, default=()
        As those of `Blocks`.
    """

    are_here = False

    def __init__(self, engine: Engine, parts: Sequence[Part], changes: tuple[Callable[[Any], Any], ...] = ()):
        self.engine, self.parts, self._changes = engine, parts, changes

    def __len__(self) -> int:
        return len(self.parts)

    def map(self, change: Callable[[Any], Any]) -> BlocksElsewhere:
        """The blocks of a function's results, computed in every pass."""
        return BlocksElsewhere(self.engine, self.parts, (*self._changes, change))

    def those(self, which: Sequence[int]) -> BlocksElsewhere:
        """Some of the blocks, in this order."""
        return BlocksElsewhere(self.engine, [self.parts[at] for at in which], self._changes)

    def beside(self, items: Iterable) -> BlocksElsewhere:
        """The blocks, each in a pair with one of as many items, or with a block of the same engine."""
        held = self.kept() if self._changes else self
        others = (
            [part.items for part in items.kept().parts]
            if isinstance(items, BlocksElsewhere)
            else [(item,) for item in items]
        )
        pairs = [Part(part.number, (*part.items, *other)) for part, other in zip(held.parts, others, strict=True)]
        return BlocksElsewhere(self.engine, pairs)

    def kept(self) -> BlocksElsewhere:
        """The blocks as their functions change them, held where they were computed."""
        if not self._changes:
            return self
        handles = self.engine.kept(Chain(self._changes), self.parts)
        return BlocksElsewhere(self.engine, [Part(part.number, (each,)) for part, each in zip(self.parts, handles)])

    def results(self, *step: Callable[[Any], Any]) -> Iterator:
        """The result of a step for each block, in the order of the blocks; blocks themselves without a step."""
        return self.engine.results(Chain((*self._changes, *step)), self.parts)


def read(number: int, block: Any) -> Any:
    """A block, or what a function returns that is in its place.

    Raises
    ------
    LostBlockError
        If the function fails.
    """
    if not callable(block):
        return block
    try:
        return block()
    except Exception as error:
        raise LostBlockError(f"Block {number} of X cannot be read: {type(error).__name__}: {error}") from error
