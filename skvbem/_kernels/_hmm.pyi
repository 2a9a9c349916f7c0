from numpy.typing import NDArray

def work_size(n_states: int, n_rows: int) -> int: ...
def forward(
    log_likelihood: NDArray,
    log_initial: NDArray,
    log_transition: NDArray,
    starts: NDArray,
    ends: NDArray,
    begins: bool,
    goes_on: bool,
    carry: NDArray,
    in_logs: NDArray,
    log_z: NDArray,
    filtered: NDArray,
    work: NDArray,
) -> None: ...
def smooth(
    log_likelihood: NDArray,
    log_initial: NDArray,
    log_transition: NDArray,
    starts: NDArray,
    ends: NDArray,
    begins: bool,
    goes_on: bool,
    weight: NDArray,
    carry: NDArray,
    after: NDArray,
    in_logs: NDArray,
    log_z: NDArray,
    first_counts: NDArray,
    counts: NDArray,
    work: NDArray,
) -> None: ...
def draw(
    log_likelihood: NDArray,
    log_initial: NDArray,
    log_transition: NDArray,
    starts: NDArray,
    ends: NDArray,
    begins: bool,
    goes_on: bool,
    carry: NDArray,
    after: NDArray,
    in_logs: NDArray,
    log_z: NDArray,
    uniform: NDArray,
    states: NDArray,
    first_counts: NDArray,
    counts: NDArray,
    work: NDArray,
) -> None: ...
def best_forward(
    log_likelihood: NDArray,
    log_initial: NDArray,
    log_transition: NDArray,
    starts: NDArray,
    begins: bool,
    best: NDArray,
    source: NDArray,
    reached: NDArray,
) -> None: ...
def best_backward(source: NDArray, starts: NDArray, reached: NDArray, states: NDArray) -> None: ...
