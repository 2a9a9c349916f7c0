from numpy.typing import NDArray

def log_sum_over_completions(
    prior: NDArray,
    row_prior: NDArray,
    row_of: NDArray,
    counts: NDArray,
    row_counts: NDArray,
    weight: NDArray,
    choice_starts: NDArray,
    cell_starts: NDArray,
    cells: NDArray,
) -> float: ...
