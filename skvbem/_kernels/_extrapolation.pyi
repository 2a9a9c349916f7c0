from numpy.typing import NDArray

def has_risen(before: NDArray, after: NDArray) -> bool: ...
def look(
    first: NDArray,
    second: NDArray,
    third: NDArray,
    at_first: NDArray,
    at_second: NDArray,
    live: NDArray,
    most: float,
    rounding: float,
    magnitude: float,
    tol: float,
    reach: float,
    best: float,
    length: NDArray,
    objective: NDArray,
    to_come: NDArray,
    done: NDArray,
    goes_on: NDArray,
) -> int: ...
def extrapolate(
    first: NDArray, second: NDArray, third: NDArray, length: NDArray, longest: NDArray, floor: NDArray, ahead: NDArray
) -> None: ...
def settle(
    third: NDArray, at_second: NDArray, length: NDArray, longest: NDArray, ahead: NDArray, value: NDArray
) -> None: ...
