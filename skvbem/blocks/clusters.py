"""Parts of rows on the workers of a dask cluster: futures, which never leave their workers.

Neither dask nor distributed is imported unless a collection of dask is given while a `distributed.Client` is there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from skvbem.blocks.elsewhere import BlocksElsewhere, Part
from skvbem.errors import LostBlockError

# How often a task that failed is done again.
_RETRIES = 2
# Parts whose results come back in one message.
_AT_ONCE = 64
# States of futures whose values are nowhere.
_GONE = ("error", "cancelled", "lost")


def client_at_hand() -> Any:
    """The `distributed.Client` of this process, None if there is none, or if this is a task of a worker."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        distributed.get_worker()
    except ValueError:
        pass
    else:  # a task that waits for tasks holds up a thread of its worker
        return None
    try:
        client = distributed.default_client()
    except ValueError:
        return None
    return None if client.asynchronous else client


class Cluster:
    """Takes steps to the workers that hold parts, which are futures of a client.

    The scheduler sends a task to the worker that holds its part. If a worker is lost, dask computes its parts again
    elsewhere, from what they were made of.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Any):
        self.client = client

    def results(self, step: Callable[..., Any], parts: Sequence[Part]) -> Iterator:
        """What a step returns for each part, in the order of the parts."""
        for at in range(0, len(parts), _AT_ONCE):
            batch = parts[at : at + _AT_ONCE]
            yield from self._gathered(self.kept(step, batch), batch)

    def kept(self, step: Callable[..., Any], parts: Sequence[Part]) -> list[Any]:
        """Futures of what a step returns for each part."""
        if not parts:
            return []
        return self.client.map(step, *zip(*(part.items for part in parts)), pure=False, retries=_RETRIES, key="skvbem")

    def _gathered(self, futures: list, parts: Sequence[Part]) -> list:
        try:
            return self.client.gather(futures)
        except Exception as error:
            lost = self._lost(futures, parts)
            if lost is None:
                raise
            raise LostBlockError(
                f"Block {lost} of X cannot be had from the workers of {self.client}, after {_RETRIES} more tries: "
                f"{error!r}. Nothing was left out in its place; give X again once its partitions can be computed."
            ) from error

    def _lost(self, futures: list, parts: Sequence[Part]) -> int | None:
        """The number of the first part that is not there, or at which workers died; None if a step raised an error."""
        killed = sys.modules["distributed"].KilledWorker
        for part, future in zip(parts, futures):
            held = [item for item in part.items if hasattr(item, "status")]
            if any(each.status in _GONE for each in held) or future.status in ("cancelled", "lost"):
                return part.number
            if future.status == "error" and isinstance(future.exception(), killed):
                return part.number
        return None


def on_workers(client: Any, X: Any) -> BlocksElsewhere:
    """The partitions of a dask collection as blocks that stay on the workers of a client, where they are computed.

    Parameters
    ----------
    client : distributed.Client
    X : dask array or data frame
        Partitions of rows; columns of an array in several chunks come together.
    """
    if hasattr(X, "numblocks"):
        X = X.rechunk({1: -1}) if X.ndim == 2 and X.numblocks[1] > 1 else X
        delayed = X.to_delayed().ravel().tolist()
    else:
        delayed = X.to_delayed()
    futures = client.compute(delayed, retries=_RETRIES)
    return BlocksElsewhere(Cluster(client), [Part(number, (future,)) for number, future in enumerate(futures)])
