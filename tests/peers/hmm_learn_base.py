"""`VBHMM` asked in hmmlearn's way: what all adapters to hmmlearn's models share.

What differs is said here and in `hmm_learn`, and nowhere else: names of parameters; one start; scores of all steps
together; and attributes that can be set. Those that were set are made into the statistics of a fit that has these
parameters, from which `warm_start` goes on.
"""

import warnings
from dataclasses import replace
from inspect import Parameter, Signature
from itertools import chain
from types import SimpleNamespace
from typing import ClassVar

import numpy as np

from skvbem import VBHMM
from skvbem.fitting.fit import attributes_of, published


def constructor(**defaults):
    """An `__init__` that stores its parameters, which are hmmlearn's in their order."""
    signature = Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=d) for name, d in defaults.items()])

    def __init__(self, *args, **kwargs):
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        vars(self).update(given.arguments)

    return __init__


RUN = {"algorithm": "viterbi", "random_state": None, "n_iter": 10, "tol": 1e-2, "verbose": False}
LAST = {"implementation": "log"}  # which has no counterpart: there is one implementation


def learned(letters):
    return {"params": letters, "init_params": letters}


class Model:
    """What all adapters share. An attribute that is set, or that `fit` published, belongs to a letter of `params`."""

    # letter of `params` -> attributes
    _letters: ClassVar = {"s": ("startprob_",), "t": ("transmat_",)}
    _family = None

    # What the families have of their own ------------------------------------------------------------------------------

    def _settings(self):
        """Parameters of `VBHMM`."""
        return {"emission": self._family}

    def _published(self, fit):
        """Attributes that a fit has."""
        return {"startprob_": fit.startprob_, "transmat_": fit.transmat_}

    def _emission_rows(self):
        """Rows, and of each state the multiples of them whose statistics are those of its parameters."""
        raise NotImplementedError

    def _emission_statistics(self, model):
        """Statistics of the emission at the attributes."""
        rows, multiples = self._emission_rows()
        data = model.compile(model.emission.prepare(rows), np.ones(len(rows), dtype=int))
        return model.prior.split(model.statistics_of(np.asarray(multiples, dtype=float), data))[2]

    def _chain_statistics(self, model):
        """Statistics of first states and of transitions at the attributes."""
        first, pairs = np.asarray(self.startprob_, dtype=float), np.asarray(self.transmat_, dtype=float)
        return np.concatenate([model.initial.statistics(first[None]), model.transitions.statistics(pairs)])

    # To and from `VBHMM` ----------------------------------------------------------------------------------------------

    def _vbhmm(self, **more):
        settings = {"n_init": 1, "acceleration": False, "random_state": self.random_state, "tol": self.tol}
        return VBHMM(self.n_components, **(settings | self._settings() | more))

    def _names(self):
        return list(chain.from_iterable(self._letters.values()))

    def _at_attributes(self, X=None, lengths=None):
        """The fit that published the attributes; if others were set, one that has these."""
        known, fit = self.__dict__.get("_fit", ({}, None))
        if fit is not None and all(getattr(self, name) is known[name] for name in self._names()):
            return fit
        if not all(hasattr(self, name) for name in self._names()):
            return self._vbhmm()
        if X is None:
            X = self._emission_rows()[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = self._vbhmm(max_iter=1).fit(X, lengths=lengths)
        model = fit._fitted_.model
        statistics = np.concatenate([self._chain_statistics(model), self._emission_statistics(model)])
        fit.__dict__ = published(fit, attributes_of(fit, replace(fit._fitted_, statistics=statistics)))
        return fit

    def _publish(self, fit):
        for name, value in (told := self._published(fit)).items():
            setattr(self, name, value)
        self.n_features = getattr(self, "n_features", None) or self._width(fit)
        self.monitor_ = SimpleNamespace(
            history=getattr(fit, "lower_bounds_", ()), iter=fit.n_iter_, converged=fit.converged_, tol=self.tol
        )
        self._fit = {name: getattr(self, name) for name in told}, fit

    def _width(self, fit):
        return fit.n_features_in_

    def _check(self):
        self._vbhmm()._validate_params()

    def _init(self, X, lengths=None):
        """A first step of one start, of the parameters that are wanted or not yet there."""
        fresh = {letter for letter, names in self._letters.items() if not all(hasattr(self, name) for name in names)}
        fresh |= set(self.init_params) & set(self._letters)
        if not fresh:
            return
        lengths = None if lengths is None else np.atleast_1d(lengths)
        told = self._published(fit := self._vbhmm(max_iter=1).fit(np.asarray(X), lengths=lengths))
        if fresh == set(self._letters):
            self._publish(fit)
            return
        for name in chain.from_iterable(self._letters[letter] for letter in fresh):
            setattr(self, name, told[name])
        self.n_features = getattr(self, "n_features", None) or self._width(fit)

    # What is asked ----------------------------------------------------------------------------------------------------

    def fit(self, X, lengths=None):
        if not set(self._letters) <= set(self.params):
            raise NotImplementedError("VBHMM holds no parameter where it is.")
        X = np.asarray(X)
        self._init(X, lengths)
        if self.n_iter == 0:
            return self
        fit = self._vbhmm(max_iter=self.n_iter, warm_start=True)
        fit._fitted_ = self._at_attributes(X, lengths)._fitted_
        self._publish(fit.fit(X, lengths=lengths))
        return self

    def score_samples(self, X, lengths=None):
        return self.score(X, lengths), self.predict_proba(X, lengths)

    def score(self, X, lengths=None):
        return self._at_attributes().score_samples(np.asarray(X), lengths=lengths).sum()

    def predict_proba(self, X, lengths=None):
        return self._at_attributes().predict_proba(np.asarray(X), lengths=lengths)

    def predict(self, X, lengths=None):
        return self.decode(X, lengths)[1]

    def decode(self, X, lengths=None, algorithm=None):
        if (algorithm or self.algorithm) == "map":  # each state by itself
            states = self.predict_proba(X, lengths)
            return states.max(axis=1).sum(), states.argmax(axis=1)
        path, log_probability = self._at_attributes().decode(np.asarray(X), lengths=lengths)
        return log_probability.sum(), path

    def sample(self, n_samples=1, random_state=None):
        X, states = self._at_attributes().sample(n_samples, random_state)
        return X.astype(self._kind), states

    def bic(self, X, lengths=None):
        return self._at_attributes().bic(np.asarray(X), lengths=lengths)

    def aic(self, X, lengths=None):
        return self._at_attributes().aic(np.asarray(X), lengths=lengths)


class Symbols:
    """What models of symbols share."""

    _family, _kind = "categorical", int

    def _settings(self):
        known = {} if self.n_features is None else {"categories": {"x0": range(self.n_features)}}
        return super()._settings() | known

    def _width(self, fit):
        return len(fit.categories_["x0"])


class Covariances:
    """Covariances that are set in any of hmmlearn's shapes, and read as matrices."""

    _family, _kind = "gaussian", float

    def _settings(self):
        return super()._settings() | {"covariance_type": self.covariance_type}

    @property
    def covars_(self):
        return self._matrices(self._covars_)

    @covars_.setter
    def covars_(self, covars):
        covars = np.array(covars, dtype=float)
        self._covars_ = covars.reshape(len(covars), -1)[:, 0] if self.covariance_type == "spherical" else covars

    def _matrices(self, covariances):
        K, d = np.shape(self.means_)
        if self.covariance_type == "spherical":
            return np.asarray(covariances)[:, None, None] * np.eye(d)
        if self.covariance_type == "diag":
            return np.asarray(covariances)[:, :, None] * np.eye(d)
        return np.array(np.broadcast_to(covariances, (K, d, d)))
