"""
How many abilities do six tests measure?
========================================

112 people took six tests: of general intelligence without words, picture completion, block design, mazes, reading and
vocabulary. Only the covariances of the scores were printed. How many factors are behind them, and does the bound agree
with the classical test?

.. topic:: References

   Smith, G. A. and Stanley, G. (1983), Clocking g: relating intelligence and measures of timed performance,
   *Intelligence* 7, 353-368.

   Bartholomew, D. J. (1987), *Latent Variable Models and Factor Analysis*, Griffin.
"""

# %%
# Rows with the printed covariances
# ---------------------------------
# A factor analysis depends on complete rows through means and covariances alone. So a few weighted rows with the
# printed ones stand for the 112 people.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skvbem import VBFactorAnalysis
from skvbem.datasets import load_ability_tests
from skvbem.plotting import FactorNumberDisplay, LoadingsDisplay, ResidualsDisplay

tests = load_ability_tests(as_frame=True)
X, weight = tests.data, tests.sample_weight
print(X.shape, "rows of total weight", weight.sum())
print(np.abs(np.cov(X.T, aweights=weight, ddof=0) - tests.covariance).max().round(12), "from the print")

# %%
# How many factors?
# -----------------
# By default factors are added and deleted as long as that raises the bound on the log evidence.

model = VBFactorAnalysis(random_state=0).fit(X, sample_weight=weight)
print("factors by the bound:", model.n_factors_)
FactorNumberDisplay.from_estimator(model, X, range(4), sample_weight=weight)
plt.show()

# %%
# What the classical test says
# ----------------------------
# The test compares as many factors with any covariance matrix. It refuses one factor (:math:`\chi^2 = 75` on 9 degrees
# of freedom) and has nothing against two. With three factors there is no freedom left to test.

fits = {q: VBFactorAnalysis(q, rotation="promax", random_state=0).fit(X, sample_weight=weight) for q in (1, 2)}
indices = {q: fit.fit_indices(X, weight) for q, fit in fits.items()}
rows = [
    [q, fits[q].lower_bound_, i.chi2, i.degrees_of_freedom, i.p_value, i.rmsea, i.cfi, i.srmr, i.bic]
    for q, i in indices.items()
]
columns = ["factors", "bound", "chi2", "df", "p", "RMSEA", "CFI", "SRMR", "BIC"]
print(pd.DataFrame(rows, columns=columns).round(3).to_string(index=False))

# %%
# They agree, each in its own way: the bound asks how probable the data are under all loadings that the prior allows,
# the test whether the best loadings leave anything. One factor leaves correlations of blocks with pictures and mazes.

ResidualsDisplay.from_estimator(fits[1], X, sample_weight=weight)
plt.show()

# %%
# The two abilities
# -----------------
# Promax lets factors be correlated. One is verbal: reading and vocabulary. The other is shown by what hands and eyes
# do. Intervals are by q(theta), somewhat too narrow: rows that stand for people cannot be drawn one by one.

LoadingsDisplay.from_estimator(fits[2], draws=fits[2].sample_posterior(
    X, 2000, method="vb", sample_weight=weight
))  # fmt: skip
plt.show()
print("correlation of the factors:", fits[2].factor_correlations_[0, 1].round(2))
