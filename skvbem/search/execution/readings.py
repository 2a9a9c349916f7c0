"""X read once for all candidates of a search, or once for each way in which candidates read it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Self

from sklearn.base import BaseEstimator

from skvbem.fitting.fit import read
from skvbem.fitting.kind import kind_of
from skvbem.search._candidates import candidate_to_look_at
from skvbem.search.checkpoint.fingerprints import content
from skvbem.spaces import Space

# Settings looked through for other ways to read X.
_MAX_SETTINGS = 10_000


class Readings:
    """What estimators of a search read of X.

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
            for setting in islice(space, _MAX_SETTINGS):
                readings._outcome(candidate_to_look_at(estimator, setting))
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
        """What tells X, as it was read, from other data: rows in their order if starts are given row by row."""
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
