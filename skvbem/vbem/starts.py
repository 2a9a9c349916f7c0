"""Many starts, few survivors: the tournament of Chickering & Heckerman beside plain best-of-n."""

from __future__ import annotations

import numpy as np

from skvbem.vbem.driver import Ascent


def tournament(ascent: Ascent, statistics: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The survivors of a tournament among starts: half are dropped after 1, 2, 4, ... steps until one remains [CH §3].

    64 starts cost 384 steps before the run of the one that survives.

    Parameters
    ----------
    ascent : Ascent
    statistics : ndarray of shape (n_cells, n_lanes)

    Returns
    -------
    ndarray of int
        Lanes in the order they left, the survivor last.
    ndarray of shape (n_cells, 1)
        The statistics of the survivor.
    """
    lanes, statistics = np.arange(statistics.shape[1]), np.array(statistics, order="C")
    left: list[int] = []
    n_steps = 1
    while len(lanes) > 1:
        objective = ascent.advance(statistics, n_steps)[-1]
        order = np.argsort(-objective, kind="stable")
        keep = np.sort(order[: (len(lanes) + 1) // 2])
        left += lanes[order[len(keep) :]][::-1].tolist()
        lanes, statistics = lanes[keep], np.ascontiguousarray(statistics[:, keep])
        n_steps *= 2
    return np.array([*left, *lanes.tolist()]), statistics
