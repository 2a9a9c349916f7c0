from numpy.typing import NDArray

from skvbem._kernels._contraction import Contraction

def weights(program: Contraction) -> NDArray: ...
def complete_counts(program: Contraction) -> NDArray: ...
def hidden_cells(program: Contraction, plan: int, n_families: int) -> NDArray: ...
def marginal_sizes(program: Contraction, row_of: NDArray, n_rows: int) -> NDArray: ...
def fill_marginals(
    program: Contraction,
    first: int,
    last: int,
    beliefs: NDArray,
    row_of: NDArray,
    at: NDArray,
    contexts: NDArray,
    p: NDArray,
) -> None: ...
def add_score_products(
    cells: NDArray,
    offsets: NDArray,
    joint: NDArray,
    point: NDArray,
    row_starts: NDArray,
    row_of: NDArray,
    coordinate: NDArray,
    products: NDArray,
) -> None: ...
