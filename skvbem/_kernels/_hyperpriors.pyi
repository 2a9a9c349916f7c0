from numpy.typing import NDArray

def expect_rates(
    starts: NDArray,
    cells: NDArray,
    loadings: NDArray,
    shape: NDArray,
    rate: NDArray,
    natural: NDArray,
    statistics: NDArray,
    grown: NDArray,
) -> None: ...
