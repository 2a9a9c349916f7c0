from numpy.typing import NDArray

def terms_of_rows(
    output: NDArray,
    precision: NDArray,
    constant: NDArray,
    group: NDArray,
    spread: NDArray,
    transition: NDArray,
    transition_spread: NDArray,
    measured: NDArray,
    observed: NDArray,
    regressors: NDArray,
    inputs: NDArray,
    follows: NDArray,
    terms: NDArray,
) -> None: ...
