"""
Unrolling a spiral
==================

Points along a spiral that shrinks as it rises lie about a curve, in three dimensions. At any place a curve has one
direction, and a width of the noise. A mixture of analyzers with one factor each says just that [Ghahramani & Beal
2000]. Do the data say so, too? And can one read off a mixture where along the curve a point lies?

.. topic:: References

   Ueda, N., Nakano, R., Ghahramani, Z. and Hinton, G. E. (2000), SMEM algorithm for mixture models, *Neural
   Computation* 12, 2109-2128.

   Ghahramani, Z. and Beal, M. J. (2000), Variational inference for Bayesian mixtures of factor analysers, *Advances in
   Neural Information Processing Systems* 12.
"""

# %%
# One direction is enough
# -----------------------
# 800 points, the noise of which has a standard deviation of one half. The spiral is far wider than its noise, which the
# prior should know: by default it expects noises as wide as a column, and here ones that are a hundredth of its
# variance. Lower bounds compare numbers of components and of factors alike: all constants are in them.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skvbem import VBMixture
from skvbem.emissions import FactorGaussian

rng = np.random.default_rng(0)
t = np.sort(rng.uniform(0, 4 * np.pi, size=800))
curve = np.column_stack([(13 - t / 2) * np.cos(t), (13 - t / 2) * np.sin(t), t])
X = curve + 0.5 * rng.normal(size=curve.shape)

thin = {"noise_prior": (1.0, 0.01)}
starts = {"init": "k-means++", "n_init": 2, "random_state": 0}
numbers = (4, 7, 10, 13)
bounds = pd.DataFrame(
    {
        f"{q} factor{'s' * (q != 1)}": [
            VBMixture(k, emission=FactorGaussian(q, **thin), **starts).fit(X).lower_bound_ for k in numbers
        ]
        for q in (0, 1, 2)
    },
    index=numbers,
)
print(bounds.round(1))

_, axes = plt.subplots(layout="constrained")
bounds.plot(ax=axes, marker="o")
axes.set(xlabel="components", ylabel="lower bound, nats", title="A curve has one direction")
plt.show()

# %%
# One factor is best. Without it, components are round and follow the curve less well; a second one is paid for, and
# explains little but noise. A curve that is cut into few pieces is still bent in each: four ask for both.
#
# How many components?
# --------------------
# Moves find that: components are split and joined as long as it raises the bound. (The number of factors could be left
# to them, too, as ``FactorGaussian("auto")``; each component then has its own.)

model = VBMixture("auto", emission=FactorGaussian(1, **thin), n_init=1, random_state=0).fit(X)
print(pd.DataFrame([(move.kind, move.n_components, move.lower_bound) for move in model.moves_]).round(1).to_string())

# %%
# The spiral in pieces
# --------------------
# Each component is a stick: its mean, and its factor's loadings to both sides, as long as points that are spread evenly
# along it reach. Sticks follow the curve around.

of_factor = model.parameters_["factor"]
component = model.predict(X)
figure = plt.figure(figsize=(10, 4.5), layout="constrained")
axes = figure.add_subplot(1, 2, 1, projection="3d")
axes.scatter(*X.T, c=component, cmap="tab20", s=4, alpha=0.5)
for mean, loadings in zip(of_factor["means"], of_factor["loadings"]):
    ends = mean + np.sqrt(3) * np.outer([-1, 1], loadings[:, 0])
    axes.plot(*ends.T, color="black", linewidth=2)
axes.set_title("One stick for each component")

# %%
# Unrolled
# --------
# Given its component, a row's factor has a mean, as in a regression: :math:`\lambda^\top \Sigma^{-1} (y - \mu)`. That
# is where it lies on the stick. Sticks laid end to end, in the order in which t has them, unroll the spiral: places on
# them rise with t, ever more slowly, since the spiral shrinks.

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
