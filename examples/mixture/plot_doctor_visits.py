"""
Visits to the doctor: kinds of people, or counts that spread?
=============================================================

In the RAND Health Insurance Experiment 20 190 times a person and a year were looked at: how often did this person see
a doctor? Nearly a third of the counts are 0, and one is 77. Components with a Poisson count each need many kinds of
people to explain that. A negative binomial count has the spread in itself, and zero inflation adds people who never go.
The evidence says which of these the counts are for.

.. topic:: References

   Manning, W. G. et al. (1987), Health insurance and the demand for medical care: evidence from a randomized
   experiment. *American Economic Review* 77, 251-277. The counts are in the public domain.
"""

# %%
# A table of frequencies
# ----------------------
# How often each count was observed says everything. Rows are the different counts, and their weights the frequencies.
import matplotlib.pyplot as plt
import numpy as np

from skvbem import StructureSearchCV, VBMixture
from skvbem.emissions import NegativeBinomial, Poisson, ZeroInflated
from skvbem.plotting import FittedColumnsDisplay

frequencies = (  # of 0, 1, ... visits
    "6308 3817 2797 1884 1345 968 689 531 408 287 206 190 118 109 82 59 56 33 37 35 26 22 19 19 13 8 10 6 12 6 8 8 4 5 "
    "9 5 0 5 9 1 3 5 0 0 6 2 2 0 2 0 0 1 3 0 0 1 1 1 1 0 0 0 1 1 0 1 0 0 0 1 0 0 1 0 1 0 1 1"
)
frequency = np.array(frequencies.split(), dtype=float)
visits = np.arange(len(frequency))[:, None]
mean = np.average(visits[:, 0], weights=frequency)
variance = np.average((visits[:, 0] - mean) ** 2, weights=frequency)
print(
    f"{frequency.sum():.0f} counts, mean {mean:.2f}, variance {variance:.1f}, "
    f"zeros {frequency[0] / frequency.sum():.1%}"
)

# %%
# A grid over emissions
# ---------------------
# Families are values of a parameter as numbers of components are. All are distributions of the same counts, so that
# their evidences compare.
search = StructureSearchCV(
    VBMixture(n_init=3, search_effort="fast"),
    [
        {"emission": [Poisson(), ZeroInflated(Poisson())], "n_components": [1, 2, 3, 5, 8]},
        {"emission": [NegativeBinomial(), ZeroInflated(NegativeBinomial())], "n_components": [1, 2]},
    ],
    scoring="lower_bound",
    random_state=0,
).fit(visits, sample_weight=frequency)
bounds = {}
for params, bound in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"]):
    bounds.setdefault(repr(params["emission"]), {})[params["n_components"]] = bound
best = max(map(max, (of.values() for of in bounds.values())))
print(f"\nLower bound on the evidence, nats from the best, {best:.1f}:")
print(f"{'components':>37}" + "".join(f"{k:>10}" for k in (1, 2, 3, 5, 8)))
for family, of in bounds.items():
    print(f"{family:>37}" + "".join(f"{bound - best:10.1f}" for bound in of.values()))

# %%
# Three Poisson kinds of people are far behind a single negative binomial count, and eight of them behind two negative
# binomial kinds, which are best: there is more in the counts than one spread. Zero inflation adds nothing once counts
# may spread.

# %%
# What the fits say
# -----------------
# Bars are shares of counts, and lines what each fit expects. A single Poisson count is far from the zeros and from the
# tail.
fits = {
    "one Poisson component": VBMixture(1, emission=Poisson()),
    "one negative binomial component": VBMixture(1, emission=NegativeBinomial()),
    "best of the grid": search.best_estimator_,
}
every = np.repeat(visits, frequency.astype(int), axis=0)
figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, fits.items()):
    model = model.fit(visits, sample_weight=frequency)
    FittedColumnsDisplay.from_estimator(model, every, axes=[ax])
    ax.set_title(name, loc="left", size=10)
    ax.set_xlim(-1, 25)
    residuals = model.pseudo_residuals(every, random_state=0)
    spread, gap = residuals.normal.std(), residuals.largest_gaps[0]
    print(f"{name}: deviation of pseudo-residuals {spread:.2f}, largest gap {gap:.3f}")
for legend in figure.legends[1:]:
    legend.remove()
plt.show()
