"""Public names of a package that are imported when they are first asked for, so that importing the package is quick.

A package lists its names twice: for type checkers and editors as imports under ``if TYPE_CHECKING``, and for Python as
a table of the modules that hold them. A test holds the two lists and ``__all__`` together.
"""

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any


def names_on_demand(
    package: str, names_of: Mapping[str, Collection[str]], subpackages: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package whose names are imported when they are first asked for.

    Parameters
    ----------
    package : str
        The package's ``__name__``.

    names_of : mapping of str to collection of str
        The modules, and the names that each of them holds.

    subpackages : collection of str, default=()
        Modules within the package that are attributes of it before anyone has imported them.
    """
    module_of = {name: module for module, names in names_of.items() for name in names}

    def __getattr__(name: str) -> Any:
        if name in module_of:
            value = getattr(import_module(module_of[name]), name)
            setattr(sys.modules[package], name, value)
            return value
        if name in subpackages:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *module_of, *subpackages})

    return __getattr__, __dir__
