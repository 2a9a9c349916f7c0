from numpy.typing import NDArray

def fill_sums(
    codes: NDArray,
    cardinality: NDArray,
    weight: NDArray,
    strength: NDArray,
    shared: NDArray,
    most: int,
    sums: NDArray,
) -> None: ...
