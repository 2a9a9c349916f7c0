"""Kernels are compiled: what they take and return stands in their `.pyx` files, and type checkers take it on trust."""

from typing import Any

def __getattr__(name: str) -> Any: ...
