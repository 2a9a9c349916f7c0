"""What a fit is made of, as JSON and arrays.

None, truth values, texts, whole and finite numbers are themselves in JSON. Anything else is an object of one name, its
kind, which says how its value is read: see the methods of `Decoder`. Objects of the package's classes stand in one
list, each after those that it is made of, and are named by their place in it: an object that is used twice is written
once, and is one again when it is read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from skvbem.persistence.arrays import ArrayWriter, bytes_of, name_of
from skvbem.persistence.registry import SavedClass, function_name, saved_class
from skvbem.reading.tables import is_interval

_SEQUENCES: dict[Any, str] = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset"}


class Encoder:
    """Describes objects by what they are made of."""

    def __init__(self) -> None:
        self.objects: list[list] = []
        self.arrays = ArrayWriter()
        self._places: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no other object gets the identity of one that is gone

    def described(self, value: Any, where: str) -> Any:
        """What JSON says of a value.

        Raises
        ------
        TypeError
            If it is nothing that can be saved, with the place of it.
        """
        if value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
            return value
        if type(value) is float:
            return {"float": repr(value)}
        if type(value) in _SEQUENCES:
            return {_SEQUENCES[type(value)]: [self.described(v, f"{where}[{k}]") for k, v in enumerate(value)]}
        if type(value) in (dict, MappingProxyType):
            return {"dict": self._pairs(value, where)}
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if isinstance(value, csr_array):
            parts = [self._array(part, where) for part in (value.data, value.indices, value.indptr)]
            return {"sparse": [list(value.shape), *parts]}
        if isinstance(value, np.generic) and name_of(value.dtype):
            return {"scalar": [name_of(value.dtype), bytes_of(np.asarray(value)).hex()]}
        if isinstance(value, np.dtype) and name_of(value):
            return {"dtype": name_of(value)}
        if type(value) is slice:
            return {"slice": [self.described(part, where) for part in (value.start, value.stop, value.step)]}
        if isinstance(value, np.random.RandomState):
            return {"random state": self.described(value.get_state(), where)}
        if type(value).__name__ == "NAType" and type(value).__module__.startswith("pandas."):
            return {"pandas.NA": None}
        if is_interval(value):
            ends = [self.described(end, where) for end in (value.left, value.right)]
            return {"pandas.Interval": [*ends, value.closed]}
        return self._object(value, where)

    def _pairs(self, value: Mapping, where: str) -> list:
        return [
            [self.described(k, f"a key of {where}"), self.described(v, f"{where}[{k!r}]")] for k, v in value.items()
        ]

    def _array(self, value: np.ndarray, where: str) -> dict:
        if value.dtype.kind == "O" and type(value) is np.ndarray:
            items = [self.described(item, f"{where}[{k}]") for k, item in enumerate(value.ravel().tolist())]
            return {"objects": [list(value.shape), items]}
        if type(value) is not np.ndarray or name_of(value.dtype) is None:
            raise TypeError(f"{where} is an array ({type(value).__name__}) of the type {value.dtype}.")
        return {"array": self.arrays.number(value)}

    def _object(self, value: Any, where: str) -> dict:
        if function_name(value):
            return {"function": function_name(value)}
        if id(value) not in self._places:
            kind = saved_class(value)
            if kind is None:
                raise TypeError(f"{where} is {_what(value)}.")
            parts = kind.parts_of(value)
            if kind.is_estimator:
                parts |= _of_the_fit(value, kind, where)
            described = [[name, self.described(part, f"{where}.{name}")] for name, part in parts.items()]
            self.objects.append([kind.name, described])
            self._places[id(value)] = len(self.objects) - 1
            self._kept.append(value)
        return {"object": self._places[id(value)]}


def _of_the_fit(estimator: Any, kind: SavedClass, where: str) -> dict[str, Any]:
    """The attributes that `fit` left."""
    others = {name: value for name, value in vars(estimator).items() if name not in kind.parts}
    for name in others:
        if not name.endswith("_"):
            raise TypeError(f"{where}.{name} is no parameter and nothing that fit leaves.")
    return others


def _what(value: Any) -> str:
    if callable(value) and hasattr(value, "__qualname__"):
        return f"the function or class {value.__module__}.{value.__qualname__}"
    return f"an object of the class {type(value).__module__}.{type(value).__qualname__}"
