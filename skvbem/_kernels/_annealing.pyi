from numpy.typing import NDArray

from skvbem._kernels._workspace import Workspace

def log_normalizers(
    workspace: Workspace, anchor: NDArray, temperatures: NDArray, log_point: NDArray, log_z: NDArray
) -> None: ...
def anneal(
    workspace: Workspace,
    starts: NDArray,
    prior: NDArray,
    anchor_counts: NDArray,
    anchor: NDArray,
    temperatures: NDArray,
    streams: NDArray,
    log_point: NDArray,
    counts: NDArray,
    trace: NDArray,
) -> None: ...
def metropolis(
    workspace: Workspace,
    starts: NDArray,
    prior: NDArray,
    temperatures: NDArray,
    strengths: NDArray,
    streams: NDArray,
    log_point: NDArray,
    log_likelihood: NDArray,
    trace: NDArray,
    accepted: NDArray,
) -> None: ...
def draw_latent(workspace: Workspace, natural: NDArray, streams: NDArray, counts: NDArray) -> None: ...
