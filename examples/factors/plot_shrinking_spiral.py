"""
Unrolling a spiral
==================

Points along a spiral that shrinks as it rises fill a curve, in three dimensions. A Gaussian with a full covariance
matrix spends six numbers on its shape; what the curve needs at any place is one direction, and a width of the noise. A
mixture of analyzers with one factor each says just that [Ghahramani & Beal 2000]. Do the data say so, too? And can one
read off a mixture where along the curve a point lies?

.. topic:: References

   Ueda, N., Nakano, R., Ghahramani, Z. and Hinton, G. E. (2000), SMEM algorithm for mixture models, *Neural
   Computation* 12, 2109-2128.

   Ghahramani, Z. and Beal, M. J. (2000), Variational inference for Bayesian mixtures of factor analysers, *Advances in
   Neural Information Processing Systems* 12.
"""

# %%
# One direction is enough
# -----------------------
# 800 points, the noise of which has a standard deviation of one half. Lower bounds compare numbers of components and
# of factors alike: all constants are in them.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skvbem import VBMixture
from skvbem.emissions import FactorGaussian, Gaussian

rng = np.random.default_rng(0)
t = np.sort(rng.uniform(0, 4 * np.pi, size=800))
curve = np.column_stack([(13 - t / 2) * np.cos(t), (13 - t / 2) * np.sin(t), t])
X = curve + 0.5 * rng.normal(size=curve.shape)

numbers = range(4, 13, 2)
emissions = {
    "no factor": FactorGaussian(0),
    "one factor": FactorGaussian(1),
    "two factors": FactorGaussian(2),
    "full covariances": Gaussian("full"),
}
bounds = pd.DataFrame(
    {
        name: [VBMixture(k, emission=emission, n_init=2, random_state=0).fit(X).lower_bound_ for k in numbers]
        for name, emission in emissions.items()
    },
    index=numbers,
)
print(bounds.round(1))

_, axes = plt.subplots(layout="constrained")
bounds.plot(ax=axes, marker="o")
axes.set(xlabel="components", ylabel="lower bound, nats", title="A curve has one direction")
plt.show()

# %%
# One factor is best for any number of components worth having. A second factor is paid for and explains nothing.
#
# How many of each?
# -----------------
# Both numbers may be left to the fit. Components are split and joined, factors are born and deleted, as long as that
# raises the bound; each component ends with a number of its own. Here the factor is said to be one.

model = VBMixture("auto", emission=FactorGaussian(1), n_init=2, random_state=0).fit(X)
print(pd.DataFrame([(move.kind, move.n_components, move.lower_bound) for move in model.moves_]).round(1).to_string())

alone = VBMixture(model.n_components_, emission=FactorGaussian("auto"), n_init=2, random_state=0).fit(X)
print("factors of each component:", alone.n_factors_, "  bound:", round(alone.lower_bound_, 1))

# %%
# The spiral in pieces
# --------------------
# Each component is a stick: its mean, and its factor's loadings to both sides, two standard deviations long. Sticks
# follow the curve around.

of_factor = model.parameters_["factor"]
component = model.predict(X)
figure = plt.figure(figsize=(10, 4.5), layout="constrained")
axes = figure.add_subplot(1, 2, 1, projection="3d")
axes.scatter(*X.T, c=component, cmap="tab20", s=4, alpha=0.5)
for mean, loadings in zip(of_factor["means"], of_factor["loadings"]):
    ends = mean + 2 * np.outer([-1, 1], loadings[:, 0])
    axes.plot(*ends.T, color="black", linewidth=2)
axes.set_title("One stick for each component")

# %%
# Unrolled
# --------
# Given its component, a row's factor has a mean, as in a regression: :math:`\lambda^\top \Sigma^{-1} (y - \mu)`. That
# is where it lies on the stick. Sticks laid end to end, in the order in which t has them, unroll the spiral: where a
# point lies on them is a straight line over t, but for the noise, and for points that a neighboring stick got.

order = np.argsort([t[component == k].mean() for k in range(model.n_components_)])
unrolled, reached = np.empty(len(X)), 0.0
for k in order:
    mean, loadings = of_factor["means"][k], of_factor["loadings"][k][:, 0]
    rows = component == k
    score = (X[rows] - mean) @ np.linalg.solve(of_factor["covariances"][k], loadings)
    score *= np.linalg.norm(loadings) * np.sign(np.corrcoef(score, t[rows])[0, 1])
    unrolled[rows] = reached + score - score.min()
    reached += np.ptp(score)

flat = figure.add_subplot(1, 2, 2)
flat.scatter(t, unrolled, c=component, cmap="tab20", s=4)
flat.set(xlabel="t, which made the point", ylabel="place along the sticks", title="Sticks laid end to end")
plt.show()
print("rank correlation with t:", round(pd.Series(unrolled).corr(pd.Series(t), method="spearman"), 4))
