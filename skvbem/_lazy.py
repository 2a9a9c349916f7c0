"""Public names of a package that are imported when they are first asked for, so that importing the package is quick.

A package lists its names twice: for type checkers and editors as imports under ``if TYPE_CHECKING``, and for Python as
a table of the modules that hold them. A test holds the two lists and ``__all__`` together.

And attributes that are computed when they are first asked for, without the lock that functools has on Python 3.11: a
child that is forked while another thread computes one would wait for it for ever.
"""

import functools
import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property(functools.cached_property):
        """The property that is computed once; threads that ask at the same time may each compute it."""

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value


def _nearest(name: str, names: Collection[str]) -> str:
    """The nearest of some names, as the end of a message; nothing of names that Python itself looks for."""
    from difflib import get_close_matches  # which takes longer to import than is worth waiting for

    if name.startswith("_"):
        return ""
    of_small = {each.casefold(): each for each in names}
    near = get_close_matches(name.casefold(), of_small, n=1, cutoff=0.62)
    return f". Did you mean {of_small[near[0]]!r}?" if near else ""


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
        raise AttributeError(
            f"module {package!r} has no attribute {name!r}{_nearest(name, [*module_of, *subpackages])}"
        )

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *module_of, *subpackages})

    return __getattr__, __dir__
