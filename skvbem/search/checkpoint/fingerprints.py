"""Values as texts that are the same in every process, by which a resumed search knows its candidates again.

`hash`, `repr` and pickles will not do: they differ between processes (seeded hashes of strings in sets, addresses in
memory), or are equal for different values (abbreviated arrays, scorers of one class).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType

import numpy as np
from joblib import hash as hash_of

from skvbem.graphs.dag import DAG

_UNKNOWN = "unknown"
_THIS_PROCESS = uuid.uuid4().hex
_ATOMS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))


def content(value) -> str:
    """A text that is equal for equal values and different for different ones, in every process.

    Functions are told apart by their code, not only by their name. A value that cannot be told from others elsewhere,
    such as an object that cannot be pickled, has a text that is equal to no other: see `is_lasting`.
    """
    try:
        return _content(value)
    except Exception:  # whatever a foreign object's pickling raises
        return f"{_UNKNOWN}:{_THIS_PROCESS}:{id(value)}"


def is_lasting(text: str) -> bool:
    """True if a text of `content` means the same in another process."""
    return f"{_UNKNOWN}:{_THIS_PROCESS}" not in text


def _content(value) -> str:
    if type(value) in _ATOMS:
        return f"{type(value).__name__}:{value!r}"
    if isinstance(value, np.generic):
        return _content(value.item())
    if isinstance(value, (tuple, list)):
        return f"[{','.join(map(content, value))}]"
    if isinstance(value, Set):
        return f"{{{','.join(sorted(map(content, value)))}}}"
    if isinstance(value, Mapping):
        return f"{{{','.join(sorted(f'{content(name)}={content(item)}' for name, item in value.items()))}}}"
    if isinstance(value, DAG):
        texts = {node: content(node) for node in value.nodes}
        edges = sorted(f"[{texts[parent]},{texts[child]}]" for parent, child in value.edges)
        return f"DAG[{{{','.join(sorted(texts.values()))}}},{{{','.join(edges)}}}]"
    if isinstance(value, (type, BuiltinFunctionType)):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, FunctionType):
        return _function_content(value)
    if isinstance(value, MethodType):
        return content((value.__func__, value.__self__))
    if isinstance(value, partial):
        return content(("partial", value.func, value.args, value.keywords))
    if hasattr(value, "get_params"):
        return content((type(value), value.get_params(deep=False)))
    if is_dataclass(value):
        return content((type(value), [(field.name, getattr(value, field.name)) for field in fields(value)]))
    if type(value).__reduce_ex__ is object.__reduce_ex__ and type(value).__reduce__ is object.__reduce__:
        return content((type(value), value.__reduce_ex__(4)[2]))  # an error if there is more to it than its attributes
    return f"{content(type(value))}:{hash_of(value)}"


def _function_content(function: FunctionType) -> str:
    enclosed = [cell.cell_contents for cell in function.__closure__ or ()]
    name = f"{function.__module__}.{function.__qualname__}"
    return content((name, _code_content(function.__code__), function.__defaults__, function.__kwdefaults__, enclosed))


def _code_content(code: CodeType) -> str:
    constants = [_code_content(each) if isinstance(each, CodeType) else content(each) for each in code.co_consts]
    return content((code.co_code, code.co_names, constants))
