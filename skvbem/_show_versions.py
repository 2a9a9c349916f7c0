"""Versions of the packages that a bug report needs to name."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version


def show_versions() -> None:
    """Print the versions of Python, of the machine and of the packages that skvbem uses.

    Examples
    --------
    >>> import skvbem
    >>> skvbem.show_versions()  # doctest: +ELLIPSIS
    System
        python: ...
    """
    print("System")
    print(f"    python: {sys.version.splitlines()[0]}")
    print(f"    executable: {sys.executable}")
    print(f"    machine: {platform.platform()}")
    for title, packages in (
        ("Packages", ("skvbem", "numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl")),
        ("Optional", ("pandas", "polars", "networkx", "matplotlib")),
        ("Build", ("Cython", "meson", "meson-python")),
    ):
        print(title)
        for package in packages:
            try:
                installed = version(package)
            except PackageNotFoundError:
                installed = "not installed"
            print(f"    {package}: {installed}")
