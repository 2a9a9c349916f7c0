"""Rows in parts, what is summed over them, and where they are: here, in other processes, on workers of a cluster."""

from skvbem.blocks.base import Blocks, added, map_reduce, sections, tree_sum
from skvbem.blocks.sources import blocks_of, is_dask

__all__ = ["Blocks", "added", "blocks_of", "is_dask", "map_reduce", "sections", "tree_sum"]
