from numpy.typing import NDArray

def map_states(
    moments: NDArray,
    of_precisions: NDArray,
    of_columns: NDArray,
    map: NDArray,
    statistics: NDArray,
) -> None: ...
def slope_of_map(
    moments: NDArray,
    of_precisions: NDArray,
    of_columns: NDArray,
    map: NDArray,
    dynamics: NDArray,
    emission: NDArray,
    precision: NDArray,
    pulled: NDArray,
    counts_first: bool,
    slope: NDArray,
) -> float: ...
