"""Engines for tests, which do by turns what real ones do at times: another order, steps taken twice, lost parts."""

import os
import pickle
import signal
from itertools import pairwise

import numpy as np

from skvbem.blocks.elsewhere import BlocksElsewhere, Part
from skvbem.errors import LostBlockError


class Shuffled:
    """Steps are pickled and taken in another order, some of them twice; results are pickled, and counted in bytes.

    Parameters
    ----------
    seed : int
        Of the order.
    """

    def __init__(self, seed=0):
        self.rng, self.n_passes, self.sizes = np.random.default_rng(seed), 0, []

    def results(self, step, parts):
        self.n_passes += 1
        done = self._done(step, parts)
        self.sizes += [len(done[number]) for number in range(len(parts))]
        return (pickle.loads(done[number]) for number in range(len(parts)))

    def kept(self, step, parts):
        return list(map(pickle.loads, self._done(step, parts).values()))

    def _done(self, step, parts):
        done, order = dict.fromkeys(range(len(parts))), self.rng.permutation(len(parts))
        for number in [*order, *order[:2]]:
            there = pickle.loads(pickle.dumps(step))
            done[number] = pickle.dumps(there(*parts[number].items))
        return done


class Losing(Shuffled):
    """A part is lost in some pass."""

    def __init__(self, number, n_passes):
        super().__init__()
        self.number, self.last = number, n_passes

    def results(self, step, parts):
        if self.n_passes == self.last:
            raise LostBlockError(f"Block {self.number} of X cannot be had")
        return super().results(step, parts)


def cut(X, ends):
    """Sections of rows between these ends."""
    return [X[a:b] for a, b in pairwise([0, *ends, len(X)])]


def elsewhere(X, ends, engine=None):
    """Rows in parts that an engine has."""
    parts = [Part(number, (block,)) for number, block in enumerate(cut(X, ends))]
    return BlocksElsewhere(engine or Shuffled(), parts)


def killed_at_first(path, part):
    """A step whose process is killed, as one that takes too much memory is, unless it was before."""
    if part.sum() > 2 and not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return part


def killed(part):
    os.kill(os.getpid(), signal.SIGKILL)
