"""
A questionnaire with gaps
=========================

Five traits, five items for each, 600 people who left out one answer in eight. The truth is known here: do the factors
come back, how sure is each loading, and how good are the answers that were filled in?

.. topic:: References

   Hendrickson, A. E. and White, P. O. (1964), Promax: a quick method for rotation to oblique simple structure, *British
   Journal of Statistical Psychology* 17, 65-70.
"""

# %%
# The questionnaire
# -----------------
# Each item asks for one trait, and a little for another. Traits are correlated by 0.3.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skvbem import VBFactorAnalysis
from skvbem.datasets import make_rows_with_moments
from skvbem.plotting import LoadingsDisplay, ScoresDisplay

rng = np.random.default_rng(0)
n, traits = 600, ["order", "worry", "talk", "trust", "art"]
items = [f"{trait}{k}" for trait in traits for k in range(1, 6)]
loadings = np.kron(np.eye(5), rng.uniform(0.5, 0.9, (5, 1))) + 0.08 * rng.normal(size=(25, 5))
correlations = 0.3 + 0.7 * np.eye(5)
people = rng.multivariate_normal(np.zeros(5), correlations, n)
noise_deviations = rng.uniform(0.5, 0.9, 25)
answers = people @ loadings.T + rng.normal(size=(n, 25)) * noise_deviations
holes = rng.random(answers.shape) < 1 / 8
X = pd.DataFrame(np.where(holes, np.nan, answers), columns=items)
print(f"{holes.sum()} of {holes.size} answers are missing; {(~holes.any(axis=1)).sum()} people gave all")

# %%
# How many traits?
# ----------------
# Leaving out people with gaps would leave a handful. Missing cells are summed out instead, and the bound counts
# factors.

model = VBFactorAnalysis(rotation="promax", random_state=0).fit(X)
print("factors:", model.n_factors_)
for move in model.moves_:
    print(f"  {move.kind:>14}  {move.n_factors[0][0]} factors  {move.lower_bound:.1f} nats")

# %%
# Which items belong together?
# ----------------------------
# Promax finds correlated factors. Loadings whose interval holds 0 are gray.

draws = model.sample_posterior(X, 1000)
LoadingsDisplay.from_estimator(model, draws=draws)
plt.show()
print(model.factor_correlations_.round(2))

# %%
# The truth is known. Promax turns the true loadings as it turns those of rows with exactly the true covariances, of
# which there may be as many as we like. How far off are the loadings, and how many intervals hold the true ones?

noise = np.diag(noise_deviations**2)
rows = make_rows_with_moments(np.zeros(25), loadings @ correlations @ loadings.T + noise, 10**9)
truth = VBFactorAnalysis(5, rotation="promax", method="ml", random_state=0)
truth.fit(rows.data, sample_weight=rows.sample_weight)
alike = np.abs(truth.standardized_loadings_.T @ model.standardized_loadings_)
which = alike.argmax(axis=1)  # the factors of the fit, in the order of the true ones
low, high = (end[:, which] for end in draws.intervals(0.95)["factor"]["loadings"])
errors = model.loadings_[:, which] - truth.loadings_
print("root mean square error:", np.sqrt((errors**2).mean()).round(3))
print("true loadings inside their intervals:", f"{((low <= truth.loadings_) & (truth.loadings_ <= high)).mean():.0%}")

# %%
# Another rotation shows the same model in another way: what all factors explain of an item does not change.

other = VBFactorAnalysis(model.n_factors_, rotation="oblimin", random_state=0).fit(X)
print("largest difference of communalities:", np.abs(other.communalities_ - model.communalities_).max().round(4))

# %%
# What would they have answered?
# ------------------------------
# Filled cells come with a variance of their own.

filled, variances = model.impute(X, return_variances=True)
errors = (filled.to_numpy() - answers)[holes]
print("root mean square error of filled answers:", np.sqrt((errors**2).mean()).round(3))
print("as expected by their variances:          ", np.sqrt(variances[holes].mean()).round(3))
print(
    "of the column means:                     ", np.sqrt(((answers - X.mean().to_numpy())[holes] ** 2).mean()).round(3)
)

# %%
# How sure are scores?
# --------------------
# Those who left out more are placed less surely.

few = X.iloc[:60]
ScoresDisplay.from_estimator(model, few, labels=np.where(few.isna().sum(axis=1) > 3, "more than 3 gaps", "up to 3"))
plt.show()
