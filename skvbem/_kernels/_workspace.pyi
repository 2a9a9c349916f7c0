from collections.abc import Sequence

from numpy.typing import NDArray

from skvbem._kernels._contraction import Contraction

class MStep:
    def __init__(self, starts: NDArray, offset: NDArray, row_offset: NDArray, density: bool) -> None: ...

class Workspace:
    program: Contraction
    n_lanes: int
    def __init__(self, program: Contraction, n_lanes: int) -> None: ...
    def given(self, natural: NDArray) -> None: ...
    def from_form(self, m_step: MStep, counts: NDArray) -> None: ...
    def block(self, block: int) -> None: ...
    def rows(
        self,
        block: int,
        first: int,
        last: int,
        factors: Sequence[NDArray],
        streams: NDArray | None = None,
        at: int = 0,
        n_rows: int | None = None,
    ) -> None: ...
    def collect(self, counts: NDArray, objective: NDArray) -> None: ...
    def advance(self, m_step: MStep, counts: NDArray, trace: NDArray) -> None: ...
    def contexts(
        self, first: int, last: int, log_z: NDArray, beliefs: NDArray, factors: Sequence[NDArray] = ()
    ) -> None: ...
