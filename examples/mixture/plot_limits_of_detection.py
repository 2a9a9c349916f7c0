"""
Below the limit of detection
============================

A laboratory measures a substance in water from wells. What is less than the limit of detection is reported as "below",
and two methods have two limits. Putting half the limit in the place of such cells is common, and wrong in both
directions: the mean comes out too high, and the deviation too small. `Censored` takes the cells for what they are,
numbers somewhere below a limit. The data are simulated, so that the truth is known.
"""

# %%
# Wells of two kinds
# ------------------
# Logarithms of the concentrations of two substances are normal in each kind of well. A tenth of a unit is the limit for
# the first substance, .3 for the second.
import matplotlib.pyplot as plt
import numpy as np

from skvbem import VBMixture
from skvbem.emissions import Censored, Gaussian
from skvbem.plotting import FittedColumnsDisplay

rng = np.random.default_rng(4)
kind = (rng.random(400) < 0.35).astype(int)
means, deviations = np.array([[-2.6, -1.6], [-0.4, 0.8]]), np.array([[0.7, 0.9], [0.6, 0.7]])
truth = means[kind] + deviations[kind] * rng.normal(size=(400, 2))
limits = np.log([0.1, 0.3])
reported = np.where(truth < limits, limits, truth)
print("below the limits:", (truth < limits).mean(axis=0).round(2))

# %%
# Three ways to treat what was not detected
# -----------------------------------------
half = np.where(truth < limits, limits - np.log(2), truth)
left_out = np.where(truth < limits, np.nan, truth)
fits = {
    "half the limit": VBMixture(2, emission=Gaussian("diag"), random_state=0).fit(half),
    "left out": VBMixture(2, emission=Gaussian("diag"), random_state=0).fit(left_out),
    "censored": VBMixture(2, emission=Censored(below=limits), random_state=0).fit(reported),
}
print(f"\n{'':>16}  means of both kinds        deviations                 kinds found")
rows = {"half the limit": half, "left out": left_out, "censored": reported}
for name, model in fits.items():
    of = next(iter(model.parameters_.values()))
    order = np.argsort(of["means"][:, 0])
    spread = np.sqrt(of["variances" if "variances" in of else "covariances"])[order]
    found = np.argsort(order)[model.predict(rows[name])]
    print(
        f"{name:>16}  {np.array2string(of['means'][order].ravel(), precision=1):26} "
        f"{np.array2string(spread.ravel(), precision=1):26} {(found == kind).mean():.0%}"
    )
print(f"{'truth':>16}  {means.ravel()}    {deviations.ravel()}")

# %%
# The lines are what the fit expects; the first bar has all that lies below the limit. Pseudo-residuals of censored
# cells are drawn between 0 and the probability of being below, and all of them are uniform if the fit is right.
display = FittedColumnsDisplay.from_estimator(fits["censored"], reported)
for ax, name in zip(display.axes_, ("first substance, ln", "second substance, ln")):
    ax.set_title(name, loc="left", size=10)
print(fits["censored"].pseudo_residuals(reported))
plt.show()
