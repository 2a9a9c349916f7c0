from collections.abc import Mapping

from numpy.typing import NDArray

class Contraction:
    arrays: dict
    n_cells: int
    n_table_cells: int
    n_contexts: int
    n_blocks: int
    scratch_cells: int
    scratch_separator: int
    scratch_factors: int
    most_slots: int
    def __init__(self, arrays: Mapping) -> None: ...
    def certain_counts(self) -> NDArray: ...
