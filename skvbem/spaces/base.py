"""A space: all settings a search may try, enumerated one by one, each model once."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import ClassVar

from skvbem._arguments import check_limit, check_mapping
from skvbem._lazy import cached_property
from skvbem._names import shown
from skvbem.errors import TooLargeError
from skvbem.spaces.settings import canonical, n_relabeled_graphs

__all__ = ["MAX_LISTED", "DelegatingSpace", "Space"]

#: Settings, graphs or combinations that are gone through to count or compare them: seconds.
MAX_LISTED = 1_000_000


@dataclass(frozen=True, eq=False, repr=False)
class Space(ABC):
    """Settings of an estimator's parameters: iterable lazily and in the same order every time, each model once.

    ``setting in space`` holds for every setting that describes a model of the space, whatever its latents are called.
    ``a * b`` is the space of all settings of a together with all of b, ``a + b`` that of all settings of either; one of
    the two may be anything that `coerce_space` takes.
    Subclasses supply `n_settings`, `parameters`, `neighbors`, iteration and membership.
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

    @cached_property
    def first(self) -> dict:
        """The first setting, which all who ask share; StopIteration if there is none."""
        return next(iter(self))

    def has_more_than(self, n: int) -> bool:
        """True if there are more than n settings; true if they are too many to count."""
        check_limit("n", "has_more_than", n)
        try:
            return self.n_settings > n
        except TooLargeError:
            return True

    def n_settings_in_words(self) -> str:
        """The number of settings, as text."""
        try:
            return f"{_readable(self.n_settings)} settings"
        except TooLargeError:
            return "more settings than can be counted"

    canonical = staticmethod(canonical)

    def orbit_size(self, setting: Mapping) -> int:
        """The number of labeled settings of the space that describe the model of `setting`."""
        return n_relabeled_graphs(self.check_member(setting))

    def to_list(self, max_settings: int = 100_000) -> list[dict]:
        """All settings, in order.

        Raises
        ------
        TooLargeError
            If there are more than `max_settings`.
        """
        check_limit("max_settings", "to_list", max_settings)
        if self.n_settings > max_settings:
            raise TooLargeError(
                f"{type(self).__name__} has {_readable(self.n_settings)} settings; max_settings={max_settings}. "
                "Iterate over it, search it by its neighbors, or raise max_settings."
            )
        return list(self)

    def to_param_grid(self, max_settings: int = 100_000) -> list[dict]:
        """All settings as `param_grid` of scikit-learn's GridSearchCV, each parameter with a list of one value.

        Raises
        ------
        TooLargeError
            If there are more than `max_settings`.

        Examples
        --------
        >>> from skvbem import LatentClassSpace
        >>> LatentClassSpace([2, 3], observed=["a", "b"]).to_param_grid()[0]["latents"]
        [{'h0': 2}]
        """
        return [{name: [value] for name, value in setting.items()} for setting in self.to_list(max_settings)]

    def check_member(self, setting: Mapping) -> Mapping:
        """The setting itself, checked to be in the space; ValueError if it is not."""
        check_mapping("setting", type(self).__name__, setting, "{'structure': dag}")
        if setting not in self:
            raise ValueError(f"The setting {shown(setting)} is not in {shown(self)}.")
        return setting

    def check_not_empty(self) -> None:
        """Raise a ValueError if the space has no setting."""
        try:
            self.first  # noqa: B018
        except StopIteration:
            raise ValueError(f"There is no setting in {shown(self)}. Loosen what rules them out.") from None

    def __len__(self) -> int:
        if self.n_settings > sys.maxsize:
            raise OverflowError(
                f"{type(self).__name__} has {_readable(self.n_settings)} settings, more than len() can say. "
                "Read n_settings; iterate, or search by neighbors."
            )
        return self.n_settings

    def __bool__(self) -> bool:
        return True

    #: Makes a product or union of what may stand for spaces; set by `skvbem.spaces.grids`, which knows subclasses.
    _combined: ClassVar[Callable[..., Space]]

    def __mul__(self, other) -> Space:
        return self._combined("product", self, other)

    def __rmul__(self, other) -> Space:
        return self._combined("product", other, self)

    def __add__(self, other) -> Space:
        return self._combined("union", self, other)

    def __radd__(self, other) -> Space:
        return self._combined("union", other, self)

    def __repr__(self) -> str:
        defaults = {field.name: field.default for field in fields(self)}
        given = (
            f"{name}={value!r}"
            for name, value in self._made_of().items()
            if value != defaults[name] and not (value == {} and defaults[name] is None)
        )
        return f"{type(self).__name__}({', '.join(given)})"

    def __reduce__(self):
        return type(self), tuple(self._made_of().values())

    def _made_of(self) -> dict:
        """Name -> value of the fields of the space, a data class."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: dict(value) if isinstance(value, MappingProxyType) else value for name, value in values}


class DelegatingSpace(Space):
    """A space that another one, `_inner`, describes in its stead."""

    _inner: Space

    @property
    def n_settings(self) -> int:
        """The number of settings, an exact int of any size."""
        return self._inner.n_settings

    @property
    def parameters(self) -> frozenset:
        """The names of the parameters that settings give."""
        return self._inner.parameters

    def __iter__(self) -> Iterator[dict]:
        return iter(self._inner)

    def __contains__(self, setting) -> bool:
        return setting in self._inner

    def neighbors(self, setting: Mapping) -> Iterator[dict]:
        """The settings one move away, each model once."""
        return self._inner.neighbors(self.check_member(setting))

    def orbit_size(self, setting: Mapping) -> int:
        """The number of labeled settings of the space that describe the model of `setting`."""
        return self._inner.orbit_size(self.check_member(setting))


def _readable(number: int) -> str:
    return str(number) if number < 10**15 else f"{float(number):.3g}" if number < 10**300 else "over 1e300"
