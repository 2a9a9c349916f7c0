from numpy.typing import NDArray

def sums_of_sets(by_size: NDArray, log_a: NDArray, log_scale: NDArray, sums: NDArray) -> None: ...
def shares_of_sinks(
    by_size: NDArray,
    log_a: NDArray,
    log_scale: NDArray,
    sums: NDArray,
    worth: NDArray,
    of_sinks: NDArray,
) -> None: ...
def log_sums_of_subsets(sums: NDArray) -> None: ...
