"""A space: all settings a search may try, enumerated one by one, each model once."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import fields
from types import MappingProxyType

from skvbem.errors import TooLargeError
from skvbem.graphs.dag import shown
from skvbem.graphs.settings import canonical, n_labelings

__all__ = ["DelegatingSpace", "Space"]


class Space(ABC):
    """Settings of an estimator's parameters: iterable lazily and in the same order every time, each model once.

    ``setting in space`` holds for every setting that describes a model of the space, whatever its latents are called.
    ``a * b`` is the space of all settings of a together with all of b, ``a + b`` that of all settings of either.
    Subclasses supply `n_settings`, `parameters`, `neighbors`, iteration and membership.

    See Also
    --------
    skvbem.graphs.spaces.coerce_space : what else may stand for a space.
    """

    @property
    @abstractmethod
    def n_settings(self) -> int:
        """The number of settings, an exact int of any size (``len(space)`` where that fits a machine word)."""

    @property
    @abstractmethod
    def parameters(self) -> frozenset:
        """The names of the parameters that settings give."""

    @abstractmethod
    def __iter__(self) -> Iterator[dict]: ...

    @abstractmethod
    def __contains__(self, setting) -> bool: ...

    @abstractmethod
    def neighbors(self, setting: Mapping) -> Iterator[dict]:
        """The settings one move away, each model once.

        Whoever is a neighbor has this setting's model among its own neighbors. Latents that a move leaves alone keep
        the names they have in `setting`.

        Raises
        ------
        ValueError
            If the setting is not in the space.
        """

    canonical = staticmethod(canonical)

    def orbit_size(self, setting: Mapping) -> int:
        """How many labeled settings of the space describe the model of `setting`."""
        return n_labelings(self.check_member(setting))

    def to_list(self, max_settings: int = 100_000) -> list[dict]:
        """All settings, in order.

        Raises
        ------
        TooLargeError
            If there are more than `max_settings`.
        """
        if self.n_settings > max_settings:
            raise TooLargeError(
                f"{type(self).__name__} has {_readable(self.n_settings)} settings; max_settings={max_settings}. "
                "Iterate over it, search it by its neighbors, or raise max_settings."
            )
        return list(self)

    def check_member(self, setting: Mapping) -> Mapping:
        """The setting itself; ValueError if it is not in the space."""
        if setting not in self:
            raise ValueError(f"The setting {shown(setting)} is not in {shown(self)}.")
        return setting

    def check_not_empty(self) -> None:
        """ValueError if there is nothing in the space."""
        if next(iter(self), None) is None:
            raise ValueError(f"There is no setting in {shown(self)}. Loosen what rules them out.")

    def __len__(self) -> int:
        if self.n_settings > sys.maxsize:
            raise OverflowError(
                f"{type(self).__name__} has {_readable(self.n_settings)} settings, more than len() can say. "
                "Read n_settings; iterate, or search by neighbors."
            )
        return self.n_settings

    def __bool__(self) -> bool:
        return True

    def __mul__(self, other) -> Space:
        from skvbem.graphs.spaces.combinations import make_product

        return make_product(self, other)

    def __add__(self, other) -> Space:
        from skvbem.graphs.spaces.combinations import make_union

        return make_union(self, other)

    def __reduce__(self):
        values = (getattr(self, field.name) for field in fields(self))
        return type(self), tuple(dict(value) if isinstance(value, MappingProxyType) else value for value in values)


class DelegatingSpace(Space):
    """A space that another one, `_inner`, describes in its stead."""

    _inner: Space

    @property
    def n_settings(self) -> int:
        """See `Space`."""
        return self._inner.n_settings

    @property
    def parameters(self) -> frozenset:
        """See `Space`."""
        return self._inner.parameters

    def __iter__(self) -> Iterator[dict]:
        return iter(self._inner)

    def __contains__(self, setting) -> bool:
        return setting in self._inner

    def neighbors(self, setting: Mapping) -> Iterator[dict]:
        """See `Space`."""
        return self._inner.neighbors(self.check_member(setting))

    def orbit_size(self, setting: Mapping) -> int:
        """See `Space`."""
        return self._inner.orbit_size(self.check_member(setting))


def _readable(number: int) -> str:
    return str(number) if number < 10**15 else f"{float(number):.3g}" if number < 10**300 else "over 1e300"
