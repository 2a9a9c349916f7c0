from numpy.typing import NDArray

def covariances(
    pattern: NDArray,
    starts: NDArray,
    ends: NDArray,
    weight: NDArray,
    blocks: NDArray,
    first: NDArray,
    link: NDArray,
    squares: NDArray,
    tolerance: float,
    slot: NDArray,
    inverse: NDArray,
    gain: NDArray,
    log_det: NDArray,
    of_pattern: NDArray,
    sums: NDArray,
    marginal: NDArray,
) -> int: ...
def means(
    starts: NDArray,
    ends: NDArray,
    first_row: NDArray,
    slot: NDArray,
    inverse: NDArray,
    gain: NDArray,
    linear: NDArray,
    noise: NDArray,
) -> None: ...
