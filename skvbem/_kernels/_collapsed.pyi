from numpy.typing import NDArray

def expected_log_rising(
    starts: NDArray,
    p: NDArray,
    weight: NDArray,
    source: NDArray,
    a: NDArray,
    known: NDArray,
    rising: NDArray,
    log: NDArray,
) -> float: ...
