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
def score_families(
    codes: NDArray,
    cardinality: NDArray,
    weight: NDArray,
    child: int,
    parents: NDArray,
    further: NDArray,
    of_cell: NDArray,
    of_row: NDArray,
    scores: NDArray,
) -> None: ...
