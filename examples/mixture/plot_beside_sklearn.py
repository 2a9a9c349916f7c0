"""
Why BayesianGaussianMixture cannot choose, and VBMixture can
============================================================

scikit-learn's ``BayesianGaussianMixture`` and ``VBMixture`` fit the same model by the same method, and both publish a
``lower_bound_``. Its documentation says what scikit-learn's is for: to detect convergence. Yet it is tempting to take
the number of components with the highest one. This page does, with both, in three units of measure.

.. topic:: References

   Attias, H. (1999), Inferring parameters and structure of latent variable models by variational Bayes, *Uncertainty
   in Artificial Intelligence* 15, 21-30.

   Bishop, C. M. (2006), *Pattern Recognition and Machine Learning*, Springer, section 10.2.
"""

# %%
# The same model
# --------------
# Eruptions of Old Faithful, how long each lasted and how long the wait was until the next. Both estimators get the
# same priors, by the same names.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.special import gammaln
from scipy.stats import multivariate_t
from sklearn.mixture import BayesianGaussianMixture

from skvbem import VBMixture
from skvbem.datasets import load_faithful
from skvbem.emissions import Gaussian

minutes = load_faithful().data
n, d = minutes.shape


def priors(X):
    return {
        "mean_prior": X.mean(axis=0),
        "mean_precision_prior": 1.0,
        "degrees_of_freedom_prior": float(d),
        "covariance_prior": np.cov(X.T),
    }


def ours(n_components, X):
    return VBMixture(n_components, emission=Gaussian(**priors(X)), random_state=0).fit(X)


def theirs(n_components, X):
    return BayesianGaussianMixture(
        n_components=n_components,
        n_init=2,
        tol=1e-6,
        max_iter=5000,
        reg_covar=0.0,
        random_state=0,
        weight_concentration_prior=1.0,
        weight_concentration_prior_type="dirichlet_distribution",
        **priors(X),
    ).fit(X)


# %%
# With one component nothing is hidden
# ------------------------------------
# Then the evidence, which the bound is a bound on, can be computed by what probability is: the density of the first
# row, times that of the second given the first, and so on. Each is a Student t density.


def log_evidence_of_one(X):
    prior = priors(X)
    mean, weight, dof, scale = prior["mean_prior"], 1.0, float(d), prior["covariance_prior"]
    total = 0.0
    for row in X:
        free = dof - d + 1
        total += multivariate_t(mean, scale * (weight + 1) / (weight * free), free).logpdf(row)
        scale = scale + weight / (weight + 1) * np.outer(row - mean, row - mean)
        mean = (weight * mean + row) / (weight + 1)
        weight, dof = weight + 1, dof + 1
    return total


print(f"log evidence, row by row                {log_evidence_of_one(minutes):10.3f}")
print(f"VBMixture's bound                       {ours(1, minutes).lower_bound_:10.3f}")
print(f"BayesianGaussianMixture's lower_bound_  {theirs(1, minutes).lower_bound_:10.3f}")

# %%
# One is the evidence, digit by digit. The other is 498 nats above it, and so no lower bound.
#
# How many components?
# --------------------
# The unit in which a time is written down should make no difference. In units of 1/100 and of 100 all densities change
# by the same factor, and all bounds by the same amount: that of one component is taken off here.

numbers = range(1, 6)
units = {"1/100": 100 * minutes, "1": minutes, "100": 0.01 * minutes}
estimators = {"VBMixture": ours, "BayesianGaussianMixture": theirs}
bounds = {
    (name, unit): np.array([fit(k, X).lower_bound_ for k in numbers])
    for name, fit in estimators.items()
    for unit, X in units.items()
}
chosen = pd.DataFrame(
    [[of[0], of[1], numbers[int(np.argmax(values))]] for of, values in bounds.items()],
    columns=["estimator", "unit, minutes", "components"],
)
print(chosen.pivot(index="estimator", columns="unit, minutes", values="components").to_string())

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
styles = {"1/100": ("#d55e00", "s", ":"), "1": ("#1f2933", "o", "-"), "100": ("#2f6ea5", "^", "--")}
for ax, name in zip(axes, estimators):
    for unit, (color, marker, style) in styles.items():
        rise = bounds[name, unit] - bounds[name, unit][0]
        ax.plot(numbers, rise, color=color, linestyle=style, linewidth=1.6, label=unit)
        ax.plot(numbers, rise, marker, color=color, markersize=4)
        best = int(np.argmax(rise))
        ax.plot(numbers[best], rise[best], marker, color=color, markersize=10)
    ax.set(xlabel="components", title=name, xticks=numbers)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set(ylabel="nats above one component")
axes[1].legend(title="unit, minutes", frameon=False)
figure.suptitle("Large marks: the number that has the highest bound", x=0.01, ha="left", size=10)
plt.show()

# %%
# On the left three curves lie on each other, and say two. On the right two units say two, and one says as many as it
# is offered.
#
# What an empty component costs
# -----------------------------
# Two components are in use, in all of these fits; a third and those after it are empty. So the curves' way from two on
# is the price of an empty component, and in the right picture it is whatever the unit makes of it.

for unit in units:
    price = {name: np.diff(bounds[name, unit])[-1] for name in estimators}
    print(f"unit {unit:>5}: " + "   ".join(f"{name} {value:+.2f}" for name, value in price.items()))

# %%
# VBMixture charges what the prior of the weights says: with one more component there are more ways to share out 272
# rows, and that the last gets none is one of them. The prior of the means and covariances of an empty component does
# not matter: its posterior is its prior, and the normalizers of both cancel. scikit-learn leaves out the normalizer of
# the prior. For one fit that is a constant. But there is one for each component, and it depends on the unit.
#
# So here it is, with the others that were left out:


def left_out(n_components, X):
    # but for a power of pi, which scikit-learn leaves out of the posterior's normalizers as well
    scale, dof = priors(X)["covariance_prior"], float(d)
    of_prior = dof / 2 * np.linalg.slogdet(scale)[1] - dof * d / 2 * np.log(2) - gammaln((dof - np.arange(d)) / 2).sum()
    return n_components * of_prior + gammaln(n_components) - n * d / 2 * np.log(2 * np.pi)


mended = pd.DataFrame(
    {
        f"{label}, {unit}": values.round(2)
        for unit, X in units.items()
        for label, values in (
            ("ours", bounds["VBMixture", unit]),
            ("theirs mended", bounds["BayesianGaussianMixture", unit] + [left_out(k, X) for k in numbers]),
        )
    },
    index=pd.Index(numbers, name="components"),
)
print(mended.to_string())

# %%
# The two agree: it was the same bound all along, less its constants. With ``VBMixture`` they are there for every
# family, covariance type and prior of the weights, so that numbers of components, covariance types and even families
# can be compared. Who has many numbers to try may leave that to :class:`~skvbem.StructureSearchCV`;
# :ref:`sphx_glr_gallery_mixture_plot_old_faithful.py` asks how sure the two components are.
