from numpy.typing import NDArray

def roots(
    of_rows: NDArray,
    loadings: NDArray,
    root: NDArray,
    usable: NDArray,
    turned: NDArray,
) -> None: ...
def whiten(
    of_rows: NDArray,
    root: NDArray,
    usable: NDArray,
    axes: NDArray,
    map: NDArray,
    gain: NDArray,
) -> None: ...
def map_cells(
    map: NDArray,
    natural: bool,
    n_matrices: int,
    n_rows: int,
    cells: NDArray,
    mapped: NDArray,
) -> None: ...
def further(
    map: NDArray,
    of_rows: NDArray,
    n_matrices: int,
    n_rows: int,
    given: NDArray,
    statistics: NDArray,
    natural: NDArray,
    later: NDArray,
    gain: NDArray,
) -> None: ...
