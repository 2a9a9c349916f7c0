"""`VBMixture` under the names of scikit-learn's mixtures, so that their own tests can be asked of it.

What differs is said here and nowhere else: names of parameters, the unit of `tol`, and starts from parameters, which
are one E step away from the responsibilities that `VBMixture` starts from.
"""

import importlib.util
from unittest import mock

import numpy as np
import sklearn.mixture
from scipy.special import softmax
from scipy.stats import multivariate_normal

from skvbem import VBMixture
from skvbem.emissions import Gaussian

INITS = {"kmeans": "k-means++", "k-means++": "k-means++", "random": "random", "random_from_data": "random"}


class _Mixture(VBMixture):
    """What both adapters share."""

    # parameters of `VBMixture` that are called the same
    _same = ("n_components", "covariance_type", "n_init", "max_iter", "random_state", "verbose", "warm_start")

    def _settings(self, X):
        raise NotImplementedError

    def fit(self, X, y=None):
        estimator = VBMixture(acceleration=False, **{name: getattr(self, name) for name in self._same})
        if hasattr(self, "_fitted_"):
            estimator._fitted_ = self._fitted_  # what warm_start goes on from
        estimator.set_params(**self._settings(X)).fit(X)
        parameters = self.get_params()
        self.__dict__ = {**vars(estimator), **parameters}
        self._given = parameters
        return self

    def fit_predict(self, X, y=None):
        return self.fit(X).predict(X)

    def _n_parameters(self):
        return self.n_free_parameters_


class GaussianMixture(_Mixture):
    """Maximum likelihood. Starts from parameters are one E step away from responsibilities."""

    def __init__(
        self,
        n_components=1,
        *,
        covariance_type="full",
        tol=1e-3,
        reg_covar=1e-6,
        max_iter=100,
        n_init=1,
        init_params="kmeans",
        weights_init=None,
        means_init=None,
        precisions_init=None,
        random_state=None,
        warm_start=False,
        verbose=0,
        verbose_interval=10,
    ):
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval

    def _settings(self, X):
        # their tolerance is that of the mean log likelihood of a row
        settings = {"method": "ml", "tol": self.tol * len(X), "init": INITS[self.init_params]}
        if self.means_init is not None and self.precisions_init is not None:
            settings["init"] = self._responsibilities(np.asarray(X))
        return settings

    def _responsibilities(self, X):
        K, d, precisions = self.n_components, X.shape[1], self.precisions_init
        weights = np.full(K, 1 / K) if self.weights_init is None else self.weights_init
        covariances = {
            "full": lambda: np.linalg.inv(precisions),
            "tied": lambda: [np.linalg.inv(precisions)] * K,
            "diag": lambda: [np.diag(1 / p) for p in precisions],
            "spherical": lambda: [np.eye(d) / p for p in precisions],
        }[self.covariance_type]()
        log_joint = [
            np.log(weight) + multivariate_normal(mean, covariance).logpdf(X)
            for weight, mean, covariance in zip(weights, self.means_init, covariances)
        ]
        return softmax(np.array(log_joint), axis=0).T

    @property
    def lower_bound_(self):
        return self.log_likelihood_ / self.n_samples_


class BayesianGaussianMixture(_Mixture):
    """Variational Bayes."""

    _same = (*_Mixture._same, "weight_concentration_prior_type")

    def __init__(
        self,
        *,
        n_components=1,
        covariance_type="full",
        tol=1e-3,
        reg_covar=1e-6,
        max_iter=100,
        n_init=1,
        init_params="kmeans",
        weight_concentration_prior_type="dirichlet_process",
        weight_concentration_prior=None,
        mean_precision_prior=None,
        mean_prior=None,
        degrees_of_freedom_prior=None,
        covariance_prior=None,
        random_state=None,
        warm_start=False,
        verbose=0,
        verbose_interval=10,
    ):
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weight_concentration_prior_type = weight_concentration_prior_type
        self.weight_concentration_prior = weight_concentration_prior
        self.mean_precision_prior = mean_precision_prior
        self.mean_prior = mean_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval

    def _settings(self, X):
        given = self.weight_concentration_prior, self.mean_precision_prior
        return {
            "tol": self.tol,
            "init": INITS[self.init_params],
            "weight_concentration_prior": 1 / self.n_components if given[0] is None else given[0],
            "emission": Gaussian(
                self.covariance_type,
                mean_prior=self.mean_prior,
                mean_precision_prior=1.0 if given[1] is None else given[1],
                degrees_of_freedom_prior=self.degrees_of_freedom_prior,
                covariance_prior=self.covariance_prior,
            ),
        }


ADAPTERS = {"GaussianMixture": GaussianMixture, "BayesianGaussianMixture": BayesianGaussianMixture}


def functions_of(module: str) -> dict:
    """The test functions of an installed test module of scikit-learn's, run on the adapters; none if it is absent."""
    spec = importlib.util.find_spec(f"sklearn.mixture.tests.{module}")
    if spec is None:
        return {}
    loaded = importlib.util.module_from_spec(spec)
    with mock.patch.multiple(sklearn.mixture, **ADAPTERS):
        spec.loader.exec_module(loaded)
    return {
        name: function for name, function in vars(loaded).items() if name.startswith("test_") and callable(function)
    }
