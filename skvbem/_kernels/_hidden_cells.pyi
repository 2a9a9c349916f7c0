from numpy.typing import NDArray

def hide(
    precision: NDArray,
    mean: NDArray,
    hidden: NDArray,
    root: NDArray,
    crossed: NDArray,
    shift: NDArray,
    log_det: NDArray,
    linear: NDArray,
    products: NDArray,
) -> bool: ...
def complete(
    sums: NDArray,
    root: NDArray,
    crossed: NDArray,
    shift: NDArray,
    completed: NDArray,
) -> None: ...
