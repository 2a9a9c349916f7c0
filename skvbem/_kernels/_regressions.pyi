from numpy.typing import NDArray

def solve(
    precision_of: NDArray,
    matrices: NDArray,
    inverses: NDArray,
    rows: NDArray,
    solutions: NDArray,
    squares: NDArray,
) -> None: ...
def expect(
    n_regressors: int,
    precision_of: NDArray,
    noise_of: NDArray,
    n_sharing: NDArray,
    n_noises: int,
    coordinates: NDArray,
    natural: NDArray,
    log_normalizer: NDArray,
) -> None: ...
def growth(
    n_regressors: int,
    precision_of: NDArray,
    noise_of: NDArray,
    n_sharing: NDArray,
    n_noises: int,
    coordinates: NDArray,
    statistics: NDArray,
    grown: NDArray,
) -> None: ...
