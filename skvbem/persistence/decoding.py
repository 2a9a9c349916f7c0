"""A fit made anew of what JSON and arrays say of it: `skvbem.persistence.encoding` says how it is described.

No name in a file is looked up but in the closed lists of `skvbem.persistence.registry`, and nothing is called but
those classes, with their own parts by name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from skvbem.persistence.arrays import ArrayReader, array_of, dtype_named
from skvbem.persistence.registry import ARGUMENTS, CLASSES, FUNCTIONS, SavedClass, class_called, function_called
from skvbem.persistence.soundness import conforms

_NOT_FINITE = {"nan": np.nan, "inf": math.inf, "-inf": -math.inf}
_MADE_OF_LISTS = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}


class Decoder:
    """Makes objects of what is said of them.

    Parameters
    ----------
    content : object
        As JSON gives it.
    data : bytes
        Of all arrays.
    state : mapping
        What `__setstate__` of estimators is told beside their attributes, if their `__getstate__` tells it.

    Raises
    ------
    ValueError
        If they are not what `Encoder` makes.
    """

    def __init__(self, content: Any, data: bytes, state: Mapping[str, Any]) -> None:
        if not isinstance(content, dict) or content.keys() != {"arrays", "objects", "fit"}:
            raise ValueError("its content must have arrays, objects and a fit")
        self._state = state
        self._arrays = ArrayReader(content["arrays"], data)
        self._objects: list[Any] = []
        for line in _list(content["objects"]):
            self._objects.append(self._object_made(*_list(line, 2)))
        #: What was saved.
        self.fit = self.made(content["fit"])

    def made(self, described: Any) -> Any:
        """The value of a description."""
        if described is None or isinstance(described, (bool, int, float, str)):
            return described
        if not isinstance(described, dict) or len(described) != 1:
            raise ValueError(f"{described!r:.60} describes nothing")
        (kind, value), *_ = described.items()
        if kind in _MADE_OF_LISTS:
            return _MADE_OF_LISTS[kind](self.made(each) for each in _list(value))
        if kind not in _KINDS:
            raise ValueError(f"there is no kind {kind!r:.40} of values")
        return _KINDS[kind](self, value)

    def _object_made(self, name: Any, described: Any) -> Any:
        if name not in CLASSES:
            raise ValueError(f"there is no class {name!r:.60} among those of saved fits")
        kind = class_called(name)
        parts = {part: self.made(value) for part, value in (_list(pair, 2) for pair in _list(described))}
        if len(parts) < len(described):
            raise ValueError(f"a part of {name} comes twice")
        _check_parts(kind, parts)
        if kind.parts == ARGUMENTS:
            made = kind.type(*parts["arguments"])
        elif kind.is_made_by_call:
            made = kind.type(**parts)
        else:
            made = kind.type.__new__(kind.type)
            if kind.is_estimator:
                told = made.__getstate__()  # by classes that write it themselves
                defaults = {name: kind.type().get_params(deep=False)[name] for name in kind.optional}
                made.__setstate__(
                    {**defaults, **parts, **{name: value for name, value in self._state.items() if name in told}}
                )
            else:
                vars(made).update(parts)
        instead = kind.check(made)
        return made if instead is None else instead

    def _pairs(self, value: Any) -> dict:
        pairs = [_list(pair, 2) for pair in _list(value)]
        return {self.made(key): self.made(of_key) for key, of_key in pairs}

    def _array(self, value: Any) -> np.ndarray:
        return _at(self._arrays, value)

    def _object(self, value: Any) -> Any:
        return _at(self._objects, value)

    def _objects_array(self, value: Any) -> np.ndarray:
        shape, items = _list(value, 2)
        sizes = [size for size in _list(shape) if type(size) is int and size >= 0]
        if len(sizes) < len(shape) or math.prod(sizes) != len(_list(items)):
            raise ValueError(f"an array of {len(items)} objects is said to have the shape {shape!r:.60}")
        made = np.empty(len(items), dtype=object)
        for k, item in enumerate(items):
            made[k] = self.made(item)
        return made.reshape(sizes)

    def _sparse(self, value: Any) -> csr_array:
        shape, *parts = _list(value, 4)
        data, indices, ends = map(self.made, parts)
        _list(shape, 2)
        whole = [isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype in (np.int32, np.int64) for x in (indices, ends)]
        if not (all(whole) and isinstance(data, np.ndarray) and data.ndim == 1 and len(data) == len(indices)):
            raise ValueError("a sparse array is not described")
        # SciPy looks at no row where the last one ends at 0.
        if not (len(ends) and ends[0] == 0 and ends[-1] == len(data) and (np.diff(ends) >= 0).all()):
            raise ValueError("the rows of a sparse array do not cover its numbers")
        made = csr_array((data, indices, ends), shape=tuple(shape))
        made.check_format(full_check=True)
        return made

    def _float(self, value: Any) -> float:
        return _NOT_FINITE[value]

    def _scalar(self, value: Any) -> np.generic:
        name, text = _list(value, 2)
        return array_of(bytes.fromhex(text), dtype_named(name), (1,), "C")[0]

    def _slice(self, value: Any) -> slice:
        return slice(*(self.made(part) for part in _list(value, 3)))

    def _random_state(self, value: Any) -> np.random.RandomState:
        state = np.random.RandomState()
        state.set_state(self.made(value))
        return state

    def _function(self, value: Any) -> Any:
        if value not in FUNCTIONS:
            raise ValueError(f"there is no function {value!r:.60} among those of saved fits")
        return function_called(value)

    def _missing(self, value: Any) -> Any:
        import pandas as pd

        return pd.NA

    def _interval(self, value: Any) -> Any:
        import pandas as pd

        *ends, closed = _list(value, 3)
        left, right = map(self.made, ends)
        if not all(isinstance(end, (int, float, np.integer, np.floating)) for end in (left, right)):
            raise ValueError(f"{value!r:.60} is no interval of numbers")
        return pd.Interval(left, right, closed)

    def _dtype(self, value: Any) -> np.dtype:
        return dtype_named(value)


_KINDS = {
    "array": Decoder._array,
    "dict": Decoder._pairs,
    "dtype": Decoder._dtype,
    "float": Decoder._float,
    "function": Decoder._function,
    "object": Decoder._object,
    "objects": Decoder._objects_array,
    "pandas.Interval": Decoder._interval,
    "pandas.NA": Decoder._missing,
    "random state": Decoder._random_state,
    "scalar": Decoder._scalar,
    "slice": Decoder._slice,
    "sparse": Decoder._sparse,
}


def _check_parts(kind: SavedClass, parts: Mapping[str, Any]) -> None:
    """Refuse parts that are not those of a class; an estimator may have attributes of its fit beside them."""
    lacking = [name for name in kind.parts if name not in parts and name not in kind.optional]
    if lacking:
        raise ValueError(f"a {kind.name} lacks the part {lacking[0]!r}")
    for name in parts:
        of_fit = kind.is_estimator and name.isidentifier() and name.endswith("_") and not name.startswith("__")
        if name not in kind.parts and (not of_fit or hasattr(kind.type, name)):
            raise ValueError(f"a {kind.name} has no part {name!r:.60}")
        if not conforms(parts[name], kind.types.get(name, Any)):
            raise ValueError(f"the part {name!r} of a {kind.name} is a {type(parts[name]).__name__}")


def _list(value: Any, length: int | None = None) -> list:
    if not isinstance(value, list) or (length is not None and len(value) != length):
        raise ValueError(f"{value!r:.60} must be a list" + (f" of {length}" if length else ""))
    return value


def _at(values: list | ArrayReader, place: Any) -> Any:
    if type(place) is not int or not 0 <= place < len(values):
        raise ValueError(f"{place!r:.20} is the place of nothing that came before")
    return values[place]
