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
# lower bound on the log of the evidence, the probability of the data under the model.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.patches import Ellipse
from sklearn.mixture import BayesianGaussianMixture

from skvbem import VBMixture
from skvbem.datasets import load_faithful

eruptions = load_faithful(as_frame=True).data
numbers = range(1, 7)
fits = {k: VBMixture(k, random_state=0).fit(eruptions) for k in numbers}
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
# differences between models stay. scikit-learn's ``BayesianGaussianMixture`` has a bound too, but leaves out what it
# needs not for one fit: numbers of components cannot be compared by it.

seconds = eruptions * [60, 1]
in_seconds = np.array([VBMixture(k, random_state=0).fit(seconds).lower_bound_ for k in numbers])
theirs = [
    BayesianGaussianMixture(n_components=k, n_init=10, max_iter=1000, random_state=0).fit(eruptions).lower_bound_
    for k in numbers
]

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
axes[0].plot(numbers, bounds - bounds.max(), "o-", label="minutes")
axes[0].plot(numbers, in_seconds - in_seconds.max(), "x--", label="seconds")
axes[0].set(xlabel="components", ylabel="bound, nats below the best", title="VBMixture", ylim=(-22, 2))
axes[0].annotate(f"{bounds[0] - bounds.max():.0f}", (1, -21), ha="center")
axes[0].legend()
axes[1].plot(numbers, theirs, "s-", color="gray")
axes[1].set(xlabel="components", ylabel="lower_bound_", title="BayesianGaussianMixture")
plt.show()

# %%
# How sure is that?
# -----------------
# A bound lacks more where more is hidden, so its lead may be too large. Sampled evidences have no such bias, but an
# error bar. They know that components may be exchanged.

sampled = {k: fits[k].log_evidence(eruptions, kind="importance_gibbs") for k in (1, 2, 3)}
for k, evidence in sampled.items():
    print(f"{k}: bound {fits[k].lower_bound_:.2f}, sampled {evidence.value:.2f} ± {evidence.standard_error:.2f}")

# %%
# Two components lead by one nat, not by five: odds of three to one. A third Gaussian might be there, to bend the tail
# of a kind that is not quite Gaussian.
#
# The two kinds
# -------------
# Short eruptions are followed by short waits. Ellipses hold nine tenths of each component.

model = fits[2]
kind = model.predict(eruptions)
figure, axis = plt.subplots(figsize=(6, 4.5), layout="constrained")
for k, color in enumerate(["tab:blue", "tab:orange"]):
    rows = eruptions[kind == k]
    axis.scatter(rows["eruptions"], rows["waiting"], s=12, color=color, label=f"{model.weights_[k]:.0%} of eruptions")
    values, vectors = np.linalg.eigh(model.covariances_[k])
    width, height = 2 * np.sqrt(values * -2 * np.log(0.1))
    angle = np.degrees(np.arctan2(*vectors[::-1, 0]))
    axis.add_patch(Ellipse(model.means_[k], width, height, angle=angle, fill=False, color=color))
axis.set(xlabel="eruption, minutes", ylabel="wait until the next, minutes")
axis.legend()
plt.show()
