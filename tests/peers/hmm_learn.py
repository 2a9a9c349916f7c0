"""hmmlearn's models made of `VBHMM`, so that their own tests can be asked of it.

GMMHMM, whose states are mixtures, has no counterpart.
"""

import importlib.util
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
from peers.hmm_learn_base import LAST, RUN, Covariances, Model, Symbols, constructor, learned

from skvbem.emissions import Categorical, Gaussian

# Priors of nothing hidden, as those of hmmlearn are.
_KNOWN = {"mean_precision_prior": 1.0, "covariance_prior": None}


class _MaximumLikelihood(Model):
    """Models whose default priors are flat: maximum likelihood."""

    _flat: ClassVar = {"startprob_prior": 1.0, "transmat_prior": 1.0}

    def _settings(self):
        return super()._settings() | {"method": "ml"}

    def fit(self, X, lengths=None):
        for name, value in self._flat.items():
            if np.any(getattr(self, name) != value):
                raise NotImplementedError(f"{name} of maximum likelihood")
        return super().fit(X, lengths)


_PRIORS = {"startprob_prior": 1.0, "transmat_prior": 1.0}


class CategoricalHMM(Symbols, _MaximumLikelihood):
    """Symbols."""

    _letters: ClassVar = Model._letters | {"e": ("emissionprob_",)}
    _flat: ClassVar = _MaximumLikelihood._flat | {"emissionprob_prior": 1.0}
    __init__ = constructor(
        n_components=1, **_PRIORS, emissionprob_prior=1.0, n_features=None, **RUN, **learned("ste"), **LAST
    )

    def _published(self, fit):
        return super()._published(fit) | {"emissionprob_": fit.parameters_["categorical"]["probabilities"][:, 0]}

    def _emission_rows(self):
        probabilities = np.asarray(self.emissionprob_, dtype=float)
        return np.arange(probabilities.shape[1])[:, None], probabilities.T


class MultinomialHMM(_MaximumLikelihood):
    """Counts that share a total."""

    _family, _kind = "multinomial", int
    _letters: ClassVar = Model._letters | {"e": ("emissionprob_",)}
    __init__ = constructor(n_components=1, n_trials=None, **_PRIORS, **RUN, **learned("ste"), **LAST)

    def _published(self, fit):
        return super()._published(fit) | {"emissionprob_": fit.parameters_["multinomial"]["shares"]}

    def _emission_rows(self):
        probabilities, n = np.asarray(self.emissionprob_, dtype=float), self.n_trials or 1
        return n * np.eye(probabilities.shape[1], dtype=int), probabilities.T


class PoissonHMM(_MaximumLikelihood):
    """Counts."""

    _family, _kind = "poisson", int
    _letters: ClassVar = Model._letters | {"l": ("lambdas_",)}
    _flat: ClassVar = _MaximumLikelihood._flat | {"lambdas_prior": 0.0, "lambdas_weight": 0.0}
    __init__ = constructor(
        n_components=1, **_PRIORS, lambdas_prior=0.0, lambdas_weight=0.0, **RUN, **learned("stl"), **LAST
    )

    def _published(self, fit):
        return super()._published(fit) | {"lambdas_": fit.parameters_["poisson"]["rates"]}

    def _emission_rows(self):
        rates = np.asarray(self.lambdas_, dtype=float)
        nothing = np.zeros((1, rates.shape[1]), dtype=int)
        return np.concatenate([nothing, np.eye(rates.shape[1], dtype=int)]), np.vstack([1 - rates.sum(axis=1), rates.T])


class GaussianHMM(Covariances, _MaximumLikelihood):
    """Measurements. hmmlearn's weak default prior of covariances has a floor of variances in its place."""

    _letters: ClassVar = Model._letters | {"m": ("means_",), "c": ("_covars_",)}
    _flat: ClassVar = _MaximumLikelihood._flat | {
        "means_prior": 0,
        "means_weight": 0,
        "covars_prior": 1e-2,
        "covars_weight": 1,
    }
    __init__ = constructor(
        n_components=1, covariance_type="diag", min_covar=1e-3, **_PRIORS, means_prior=0, means_weight=0,
        covars_prior=1e-2, covars_weight=1, **RUN, **learned("stmc"), **LAST,
    )  # fmt: skip

    def _settings(self):
        return super()._settings() | {"emission": Gaussian(self.covariance_type, **_KNOWN)}

    def _published(self, fit):
        return super()._published(fit) | {"means_": fit.means_, "_covars_": fit.covariances_}

    def _emission_rows(self):
        means, d = np.asarray(self.means_, dtype=float), np.shape(self.means_)[1]
        away = np.sqrt(d) * np.linalg.cholesky(self.covars_).swapaxes(1, 2)  # as far as the covariance is wide
        rows = np.concatenate([means[:, None] + away, means[:, None] - away], axis=1)
        return rows.reshape(-1, d), np.repeat(np.eye(len(means)), 2 * d, axis=0) / (2 * d)


class _Variational(Model):
    """Models whose attributes are priors and posteriors."""

    _letters: ClassVar = {
        "s": ("startprob_prior_", "startprob_posterior_"),
        "t": ("transmat_prior_", "transmat_posterior_"),
    }

    def _prior(self, name):
        """A prior that was set as an attribute or a parameter; None if neither was."""
        return getattr(self, f"{name}_prior_", getattr(self, f"{name}_prior"))

    def _each(self, name, values):
        """The values of each state."""
        values = np.asarray(values, dtype=float)
        return np.broadcast_to(values, (self.n_components, *values.shape[1:]))

    def _alike(self, values, name=""):
        """The value of all states, whose prior `VBHMM` has one of."""
        values = [np.asarray(value, dtype=float) for value in self._each(name, values)]
        if not all(np.array_equal(value, values[0]) for value in values):
            raise NotImplementedError("VBHMM has one prior of what all states emit.")
        return values[0] if values[0].ndim else float(values[0])

    def _settings(self):
        unit = {f"{name}_prior": self._prior(name) for name in ("startprob", "transmat")}
        return super()._settings() | {name: "unit" if value is None else value for name, value in unit.items()}

    def _published(self, fit):
        return super()._published(fit) | {
            "startprob_prior_": fit.startprob_prior_,
            "startprob_posterior_": fit.startprob_concentration_,
            "transmat_prior_": fit.transmat_prior_,
            "transmat_posterior_": fit.transmat_concentration_,
        }

    def _chain_statistics(self, model):
        first = np.asarray(self.startprob_posterior_) - model.initial.concentration
        pairs = np.asarray(self.transmat_posterior_) - model.transitions.concentration
        return np.concatenate([model.initial.statistics(first), model.transitions.statistics(pairs)])


class VariationalCategoricalHMM(Symbols, _Variational):
    """Symbols."""

    _letters: ClassVar = _Variational._letters | {"e": ("emissionprob_prior_", "emissionprob_posterior_")}
    __init__ = constructor(
        n_components=1, startprob_prior=None, transmat_prior=None, emissionprob_prior=None, n_features=None,
        **RUN | {"n_iter": 100, "tol": 1e-6}, **learned("ste"), **LAST,
    )  # fmt: skip

    def _settings(self):
        if (given := self._prior("emissionprob")) is None:
            return super()._settings()
        given = self._alike(given)
        return super()._settings() | {"emission": Categorical([given] if np.ndim(given) else float(given))}

    def _published(self, fit):
        prior, posterior = (of.blocks[2].concentration for of in (fit._fitted_.model.prior, fit._fitted_.posterior))
        return super()._published(fit) | {
            "emissionprob_": fit.parameters_["categorical"]["probabilities"][:, 0],
            "emissionprob_prior_": prior.reshape(self.n_components, -1),
            "emissionprob_posterior_": posterior.reshape(self.n_components, -1),
        }

    def _emission_rows(self):
        counts = np.asarray(self.emissionprob_posterior_) - np.asarray(self.emissionprob_prior_)
        return np.arange(counts.shape[1])[:, None], counts.T


class VariationalGaussianHMM(Covariances, _Variational):
    """Measurements."""

    _letters: ClassVar = _Variational._letters | {
        "m": ("means_prior_", "means_posterior_", "beta_prior_", "beta_posterior_"),
        "c": ("dof_prior_", "dof_posterior_", "scale_prior_", "scale_posterior_"),
    }
    __init__ = constructor(
        n_components=1, covariance_type="full", startprob_prior=None, transmat_prior=None, means_prior=None,
        beta_prior=None, dof_prior=None, scale_prior=None, **RUN | {"n_iter": 100, "tol": 1e-6}, **learned("stmc"),
        **LAST,
    )  # fmt: skip
    _ours: ClassVar = {
        "means": "mean_prior",
        "beta": "mean_precision_prior",
        "dof": "degrees_of_freedom_prior",
        "scale": "covariance_prior",
    }

    @property
    def means_(self):
        return self.means_posterior_

    def _one_for_all(self, name):
        return name in ("dof", "scale") and self.covariance_type == "tied"

    def _each(self, name, values):
        if not self._one_for_all(name):
            return super()._each(name, values)
        return [np.broadcast_to(values, () if name == "dof" else np.shape(values)[-2:])] * self.n_components

    def _settings(self):
        given = {theirs: self._prior(theirs) for theirs in self._ours}
        prior = {self._ours[name]: self._alike(value, name) for name, value in given.items() if value is not None}
        return super()._settings() | {"emission": Gaussian(self.covariance_type, **_KNOWN | prior)}

    def _published(self, fit):
        found, fitted = super()._published(fit), fit._fitted_
        for ending, family in (("prior", fitted.model.prior.blocks[2]), ("posterior", fitted.posterior.blocks[2])):
            for theirs, ours in self._ours.items():
                value = fitted.emission.hyperparameters(family)[ours.removesuffix("_prior")]
                found[f"{theirs}_{ending}_"] = value[0] if self._one_for_all(theirs) else value
        given = {f"{name}_prior_": self._prior(name) for name in self._ours}  # without the rounding of units
        found |= {name: np.asarray(value) for name, value in given.items() if value is not None}
        return found | {"_covars_": fit.covariances_}

    def _emission_statistics(self, model):
        """What is to be added to the prior for the posterior to be what it was set to."""
        given = {ours: self._each(theirs, getattr(self, f"{theirs}_posterior_")) for theirs, ours in self._ours.items()}
        of_each = [dict(zip(given, values)) for values in zip(*given.values())]
        cells = np.array([model.emission.default_prior(self.n_components, **of).coordinates for of in of_each])
        owner = model.emission.component_of_cell(self.n_components)
        # what all states share is a sum over their means, so that the mean of what each would make of it is the sum
        posterior = np.where(owner >= 0, cells[owner, np.arange(len(owner))], cells.mean(axis=0))
        return posterior - model.prior.blocks[2].coordinates


ADAPTERS = {
    "hmm": SimpleNamespace(
        CategoricalHMM=CategoricalHMM, GaussianHMM=GaussianHMM, MultinomialHMM=MultinomialHMM, PoissonHMM=PoissonHMM
    ),
    "vhmm": SimpleNamespace(
        VariationalCategoricalHMM=VariationalCategoricalHMM, VariationalGaussianHMM=VariationalGaussianHMM
    ),
}


def classes_of(module: str) -> dict:
    """The test classes of an installed test module of hmmlearn's, which run on the adapters; none if it is absent."""
    with np.errstate():  # which their package changes
        spec = importlib.util.find_spec(f"hmmlearn.tests.{module}")
        if spec is None:
            return {}
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
    for name, adapters in ADAPTERS.items():
        setattr(loaded, name, adapters)
    classes = {name: found for name, found in vars(loaded).items() if isinstance(found, type)}
    for function in {function for found in classes.values() for function in vars(found).values()}:
        for mark in getattr(function, "pytestmark", ()):
            if mark.args[:1] == ("implementation",):
                mark.args[1][:] = ["log"]
    return {name: found for name, found in classes.items() if name.startswith("Test")}
