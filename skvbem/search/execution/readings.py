"""X read once for all candidates of a search, or once for each way in which candidates read it."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from itertools import islice
from typing import Any, Self

from numpy.random import RandomState
from sklearn.base import BaseEstimator, clone

from skvbem.fitting.fit import read
from skvbem.fitting.kind import kind_of
from skvbem.search.checkpoint.fingerprints import content
from skvbem.search.tuning import TUNING
from skvbem.spaces import Space


class Readings:
    """X as the estimators of a search read it.

    An estimator whose candidates can share a reading has `read`, the names of the parameters on which that depends,
    a kind, so that `fit` and the functions of `skvbem.fitting` take a reading in place of X.

    Parameters
    ----------
    estimator : estimator
    X : array-like
    params : mapping
        What `fit` takes beside X.
    varied : frozenset of str
        Parameters of settings on which the reading depends.
    """

    def __init__(self, estimator: BaseEstimator, X, params: Mapping[str, Any], varied: frozenset):
        self._X, self._params, self._varied = X, params, varied
        self._by_key: dict[str, Any] = {}
        self._rows_have_places = False
        if not varied:
            self._by_key[""] = self._read(estimator)
            self._X, self._params = None, {}  # all there is to know of them is read

    @classmethod
    def for_space(cls, estimator: BaseEstimator, space: Space, X, params: Mapping[str, Any]) -> Self:
        """The readings of all settings of a space, or of the first of very many."""
        depends = kind_of(estimator).reading_parameters
        readings = cls(estimator, X, params, frozenset(p for p in space.parameters if p.split("__")[0] in depends))
        starts = getattr(estimator, "init", "")
        readings._rows_have_places = "init" in space.parameters or not isinstance(starts, str)
        if readings._varied:
            for setting in islice(space, TUNING.n_looked_through):
                readings._outcome(shallow_candidate(estimator, setting))
        return readings

    def of(self, estimator: BaseEstimator) -> Any:
        """X as an estimator reads it; the error where it cannot be read so."""
        outcome = self._outcome(estimator)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    @property
    def common(self) -> Any:
        """The reading of all candidates; None if they read X in different ways."""
        return None if self._varied else self._by_key[""]

    def fingerprint(self) -> list[str]:
        """Hashes of X, as it was read: of rows in their order if starts are given row by row."""
        which = "fingerprint_in_order" if self._rows_have_places else "fingerprint"
        readings = (self._by_key[key] for key in sorted(self._by_key))
        return [str(each) if isinstance(each, Exception) else getattr(each, which) for each in readings]

    def _outcome(self, estimator: BaseEstimator) -> Any:
        key = ""
        if self._varied:
            params = estimator.get_params()
            key = content([(name, params.get(name)) for name in sorted(self._varied)])
        if key not in self._by_key:
            try:
                self._by_key[key] = self._read(estimator)
            except Exception as error:
                self._by_key[key] = error
        return self._by_key[key]

    def _read(self, estimator: BaseEstimator) -> Any:
        return read(estimator, self._X, **self._params).shared()


def candidate(estimator: BaseEstimator, setting: Mapping) -> BaseEstimator:
    """A new estimator with the parameters of a setting, unfitted, to be fitted."""
    return clone(estimator).set_params(**clone(setting, safe=False))


def shallow_candidate(estimator: BaseEstimator, setting: Mapping) -> Any:
    """An estimator with the parameters of a setting that shares all but its random state with others: soon made."""
    if not setting.keys() <= vars(estimator).keys():  # one is of a part, which is not to change for others, or is none
        return candidate(estimator, setting)
    copied: Any = object.__new__(type(estimator))
    vars(copied).update({**vars(estimator), **setting})
    if isinstance(state := vars(copied).get("random_state"), RandomState):
        copied.random_state = deepcopy(state)
    return copied
