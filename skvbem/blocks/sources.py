"""`blocks_of`: rows in blocks, of anything that can give them again and again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from skvbem._arguments import is_collection
from skvbem.blocks.base import Blocks
from skvbem.blocks.clusters import client_at_hand, on_workers
from skvbem.blocks.elsewhere import read
from skvbem.blocks.processes import in_processes


def blocks_of(X, n_jobs=None) -> Blocks:
    """Rows in blocks that come again for every pass, of anything that can give them.

    A fit passes over the rows many times: what is iterated once must be the same when it is iterated again.

    Parameters
    ----------
    X : sequence or other iterable of tables, callable, dask array or data frame, or table
        A callable takes no argument and returns a fresh iterator of tables, such as
        ``lambda: pandas.read_csv("rows.csv", chunksize=100_000)``. Collections of dask are taken partition by
        partition; their own scheduler computes each. Under a `distributed.Client` they stay on its workers, which do
        the work of each pass. A table (array, data frame) is one block. In a list a function may stand for a table,
        which it returns, such as ``functools.partial(pandas.read_parquet, path)``. Tables need neither have the same
        number of rows nor be of one type. Weights come in the same forms, as 1-D arrays.
    n_jobs : int, default=None
        Processes that read the blocks of a list and do the work of each pass, as joblib counts them. Let the list hold
        memory-mapped arrays or functions: others are sent to the processes in every pass that reads them. None is
        this process; the sums have the same bits.

    Returns
    -------
    Blocks

    Raises
    ------
    TypeError
        If X can be iterated only once, as a generator can, or not at all; if `n_jobs` is given for other than a list.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem import VBMixture, blocks_of
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> whole = VBMixture(2, random_state=0).fit(X)
    >>> in_blocks = VBMixture(2, random_state=0).fit(blocks_of([X[:100], X[100:250], X[250:]]))
    >>> bool(np.isclose(whole.lower_bound_, in_blocks.lower_bound_, rtol=1e-9))
    True
    """
    if n_jobs is not None:
        if not isinstance(X, (list, tuple)):
            raise TypeError(
                f"'n_jobs' of blocks_of is for a list of blocks, which processes share. Got a {type(X).__name__}: give "
                "a list of tables, or of functions that return one each, or leave 'n_jobs' out."
            )
        return in_processes(X, n_jobs)
    if isinstance(X, Blocks):
        return X
    if is_dask(X):
        client = client_at_hand()
        return Blocks(lambda: _partitions(X)) if client is None else on_workers(client, X)
    if hasattr(X, "shape") or hasattr(X, "__dataframe__"):
        return Blocks(lambda: [X])
    if isinstance(X, Iterator):
        raise TypeError(
            f"Blocks must come again for every pass over the rows; a {type(X).__name__} comes once. Give a function "
            "that makes it, as in blocks_of(lambda: pandas.read_csv(path, chunksize=100_000)), or a list of tables."
        )
    if callable(X):
        return Blocks(X)
    if is_collection(X):
        return Blocks(lambda: itertools.starmap(read, enumerate(X)))
    raise TypeError(
        "Blocks are made of a sequence of tables, of another iterable of them, of a function that returns one, or of a "
        f"dask array or data frame. Got a {type(X).__name__} instead."
    )


def is_dask(X) -> bool:
    """True for a collection of dask; dask itself is not imported."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "npartitions")


def _partitions(X) -> Iterator:
    """The parts of a dask collection, each with all of its columns, computed one at a time."""
    if hasattr(X, "numblocks"):
        of_rows = X.rechunk({1: -1}) if X.ndim == 2 and X.numblocks[1] > 1 else X
        return (of_rows.blocks[k].compute() for k in range(of_rows.numblocks[0]))
    return (X.partitions[k].compute() for k in range(X.npartitions))
