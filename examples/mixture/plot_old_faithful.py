"""
How many kinds of eruptions?
============================

Old Faithful, a geyser in Yellowstone, was watched for two weeks in 1985: how long each of 272 eruptions lasted, and how
long the wait was until the next. There seem to be two kinds. Are there? And can one read the number off a bound, in
whatever units the times are written down?

.. topic:: References

   Azzalini, A. and Bowman, A. W. (1990), A look at some data on the Old Faithful geyser, *Applied Statistics* 39,
   357-365.

   Bishop, C. M. (2006), *Pattern Recognition and Machine Learning*, Springer, section 10.2.
"""

# %%
# A bound for every number
# ------------------------
# Each number of components is a model of its own, here of Gaussians with covariances of their own. The fit gives a
# lower bound on the log of the evidence, the probability of the data under the model. The prior here is one of which
# nothing is hidden: an empty component then costs no more than its weight.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skvbem import VBMixture
from skvbem.datasets import load_faithful
from skvbem.emissions import Gaussian
from skvbem.evidence import evidence_table
from skvbem.plotting import ComponentsDisplay, StructureSearchDisplay

eruptions = load_faithful(as_frame=True).data
numbers = range(1, 7)
known = Gaussian(covariance_prior=None, mean_precision_prior=1.0)
fits = {k: VBMixture(k, emission=known, random_state=0).fit(eruptions) for k in numbers}
bounds = np.array([fits[k].lower_bound_ for k in numbers])
print(pd.DataFrame({"components": numbers, "bound, nats": bounds.round(2)}).to_string(index=False))

# %%
# Two it is. A third component stays empty, and an empty component costs no more than what the prior of the weights
# says, about the logarithm of the number of rows each time.

print("rows of each of three components:", fits[3].counts_.round(1))

# %%
# In other units
# --------------
# In seconds rather than minutes all densities are smaller, and all bounds fall by as much: 272 times ln 60. The
# differences between models stay. (Differences between the bounds of scikit-learn's ``BayesianGaussianMixture``
# change: :ref:`sphx_glr_gallery_mixture_plot_beside_sklearn.py`.)

seconds = eruptions * [60, 1]
in_seconds = np.array([VBMixture(k, emission=known, random_state=0).fit(seconds).lower_bound_ for k in numbers])
print("minutes:", (bounds - bounds.max()).round(2))
print("seconds:", (in_seconds - in_seconds.max()).round(2))
print("between them:", (bounds - in_seconds).round(2), "  272 ln 60:", round(272 * np.log(60), 2))

# %%
# How sure is that?
# -----------------
# A bound lacks more where more is hidden, so its lead may be too large. Sampled evidences have no such bias, but an
# error bar. They know that components may be exchanged.

kinds = ["lower_bound", "importance_gibbs"]
draws = {"importance_gibbs": {"n_draws": 1000}}
tables = {k: evidence_table(fits[k], eruptions, kinds, options=draws) for k in (1, 2, 3)}
for k, table in tables.items():
    bound, sampled = (table[kind] for kind in kinds)
    print(f"{k}: bound {bound.value:.2f}, sampled {sampled.value:.2f} ± {sampled.standard_error:.2f}")
StructureSearchDisplay.from_evidence(tables, below_best=True, x_label="components")
plt.show()

# %%
# Two components lead by one nat, not by five: odds of three to one. A third Gaussian might be there, to bend the tail
# of a kind that is not quite Gaussian.
#
# The two kinds
# -------------
# Short eruptions are followed by short waits. Ellipses hold nine tenths of each component; the third of three, which
# is empty, is not drawn.

ComponentsDisplay.from_estimator(fits[3], eruptions)
plt.show()
