from numpy.typing import NDArray

def transfer(
    precision: NDArray,
    freedom: NDArray,
    mean: NDArray,
    scale: NDArray,
    rows: NDArray,
    weight: NDArray,
    order: NDArray,
    least: float,
    n_sweeps: int,
    labels: NDArray,
) -> float: ...
