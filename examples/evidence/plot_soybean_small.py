"""
How many diseases?
==================

Forty-seven soybean plants were described by 35 attributes: the month, the weather, the state of leaves, stem and roots.
Plant pathologists know that the plants have four diseases. We hide that and ask the table itself: how many kinds of
plants are there? AutoClass, an early program that finds classes by Bayesian means, was shown on this table.

Each number of kinds is a model of its own. Whichever model made the data more probable, before it saw them, is better
supported. That probability is called the *evidence*, or marginal likelihood. It can seldom be computed, but it can be
approximated in many ways, cheap and dear. This page asks them all.

.. topic:: References

   Cheeseman, P. and Stutz, J. (1996), Bayesian classification (AutoClass): theory and results, in *Advances in
   Knowledge Discovery and Data Mining*, AAAI Press.

   Michalski, R. S. and Chilausky, R. L. (1980), Learning by being told and learning from examples, *International
   Journal of Policy Analysis and Information Systems* 4, 125-161.
"""

# %%
# Plants and models
# -----------------
# The model is the latent class model: a hidden class per plant, and given the class all attributes are independent.
# With one class nothing is hidden. Each model climbs from 50 random starts, since a climb may end on a lower hill.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.special import gammaln

from skvbem import VBDiscreteDAG
from skvbem.datasets import load_soybean_small
from skvbem.evidence import evidence_table

soybean = load_soybean_small(as_frame=True)
plants, disease = soybean.data, soybean.target.rename("disease")
print(f"{plants.shape[0]} plants, {plants.shape[1]} attributes; diseases, hidden from here on:")
print(disease.value_counts().to_string())

numbers = range(1, 9)
models = {1: VBDiscreteDAG([]).fit(plants)}  # a network without arrows
models |= {n: VBDiscreteDAG(latents=n, n_init=50, random_state=0).fit(plants) for n in numbers[1:]}

# %%
# Every score of one model
# ------------------------
# ``evidence_table`` puts scores side by side, best first. All of them approximate the same number, the log of the
# evidence, in nats (natural logarithms: a difference of 1 makes odds of 2.7 to 1, one of 3 odds of 20 to 1). Higher is
# better. Here are those of the model with four classes:

kinds = ["ais", "lower_bound", "collapsed", "cheeseman_stutz", "mled", "laplace", "draper", "bicp", "bic"]
longer = {"ais": {"n_chains": 64, "n_steps": 256}}  # than by default: smaller standard errors
tables = {n: evidence_table(model, plants, kinds, options=longer) for n, model in models.items()}
print(tables[4])

# %%
# - *ais*, annealed importance sampling, is the yardstick: chains of random draws that lead from a simple distribution
#   to the posterior. It aims at the evidence itself, and comes with a standard error (s.e.).
# - *lower_bound* is what variational Bayes maximizes. It can lie below the evidence, never above. So can *collapsed*,
#   a tighter bound at the same fit, *cheeseman_stutz*, the score of AutoClass, and *mled*.
# - *laplace* puts a Gaussian in place of the posterior; *draper*, *bicp* and *bic* simplify it further until only the
#   likelihood and a penalty, d/2 ln n, are left: d counts free parameters, n plants.
#
# Which number of classes does each prefer?

scores = pd.DataFrame({n: {kind: table[kind].value for kind in kinds} for n, table in tables.items()})
scores.columns.name = "classes"
print(scores.round(1).to_string())
print("\npreferred number of classes")
print(scores.idxmax(axis=1).to_string())

# %%
# The evidence says four, the truth. So do all approximations but two: BIC, and BIC with the prior kept, say three.

COLORS = {"ais": "black", "lower_bound": "#009E73", "laplace": "#0072B2"}
COLORS |= {"draper": "#CC79A7", "bic": "#D55E00", "bicp": "#E69F00"}
names = {
    "bicp": "BIC with prior",
    "bic": "BIC",
    "draper": "Draper",
    "laplace": "Laplace",
    "lower_bound": "lower bounds: variational,\nCheeseman-Stutz, MLED",
    "ais": "evidence (AIS)",
}
shifts = {"lower_bound": -9, "ais": 5, "laplace": -5}  # of labels, in points


def mark_truth(ax, y, fewest, text="the truth:\n4 diseases"):
    ax.axvspan(3.85, 4.15, color="#dfe6ec", linewidth=0)
    ax.text(4, y, text, ha="center", va="bottom")
    ax.set(xlabel="number of classes", xticks=range(fewest, 9))
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines["bottom"].set_bounds(fewest, 8)


def label(ax, text, x, y, color, shift=0):
    ax.annotate(text, (x, y), (9, shift), textcoords="offset points", va="center", color=color)


fig, ax = plt.subplots(figsize=(8, 5.2), layout="constrained")
mark_truth(ax, -965, fewest=1)
for kind, name in names.items():
    values = scores.loc[kind]
    errors = [2 * (table[kind].standard_error or 0) for table in tables.values()]
    ax.errorbar(numbers, values, errors, color=COLORS[kind], linewidth=1.8, marker="o", markersize=3.5)
    ax.plot(values.idxmax(), values.max(), marker="o", markersize=9, color=COLORS[kind])
    label(ax, name, 8, values[8], COLORS[kind], shifts.get(kind, 0))
ax.set(ylabel="log evidence, or what a score takes for it (nats)", xlim=(0.8, 10.5))
ax.set_title("Large dots: the number of classes that a score prefers", loc="left")
plt.show()

# %%
# At this scale the error bars of the evidence, two standard errors either way, are smaller than its dots. BIC's penalty
# was made for many more plants than parameters. Here four classes have 151 free parameters for 47 plants, and BIC loses
# 40 nats and more. Beyond four classes it falls by about 50 nats with each class. The evidence falls by one.
#
# How sure is it?
# ---------------
# Turn the evidence into the probability of each number of classes, all being equally probable beforehand:

evidence = scores.loc["ais"]
probability = np.exp(evidence - evidence.max())
print((probability / probability.sum()).map("{:.1%}".format).to_string())

# %%
# Three classes and fewer are out. Five are not. But what would the fifth class be? The models that have five classes
# and more put plants into four of them only:

for n in numbers[3:]:
    states = models[n].latent_states_["h0"]
    print(f"{n} classes: {len(states.in_use)} in use; plants in each: {np.sort(states.mass)[::-1].round().astype(int)}")

# %%
# A class without plants explains nothing and harms nothing: the data cannot rule it out. Every model that has enough
# classes uses four.
#
# Are the classes the diseases?
# -----------------------------

for n in (3, 4):
    found = pd.Series(models[n].predict(plants).ravel(), index=plants.index, name=f"{n} classes")
    print(pd.crosstab(disease, found).to_string(), "\n")

# %%
# Exactly, all 47 of them. BIC's three classes throw two diseases together.
#
# Between bound and evidence: the question of labels
# --------------------------------------------------
# The variational bound prefers four classes too, but with more classes it falls behind the evidence: by 3 nats at four
# classes, by 7 at eight. Most of that has a simple cause. Classes have no names: of each solution with K classes there
# are K! copies, equal but for the numbers of the classes. The evidence counts all copies, the bound looks at one.
#
# It is tempting to add ln K! to the bound. That is right where all classes are in use and well apart. It is wrong
# where some are empty, since exchanging two empty classes changes next to nothing: these copies overlap and are
# counted twice. With the option ``alias=True`` the bound is that of the copies mixed, overlaps and all. It is a bound
# again, and never above the evidence.

mixed = {n: models[n].log_evidence(plants, kind="lower_bound", alias=True).value for n in numbers[:-1]}

fig, ax = plt.subplots(figsize=(8, 4.6), layout="constrained")
shown = np.array(numbers[2:])
mark_truth(ax, -691.7, fewest=3)
added = scores.loc["lower_bound"] + gammaln(np.array(numbers) + 1)
errors = [2 * tables[n]["ais"].standard_error for n in shown]
ax.plot(shown, added[shown], color="#D55E00", linestyle="--")
ax.plot(shown, scores.loc["lower_bound", shown], color="#009E73", marker="o", markersize=4)
ax.plot(shown[:-1], [mixed[n] for n in shown[:-1]], color="#0072B2", marker="o", markersize=4)
ax.errorbar(shown, evidence[shown], errors, color="black", marker="o", markersize=4, capsize=3)
label(ax, "bound + ln K!: no bound,\nand too high", 8, added[8], "#D55E00")
label(ax, "evidence (AIS),\n± 2 standard errors", 8, evidence[8], "black", -4)
label(ax, "all copies mixed\n(alias=True)", 6, mixed[6], "#0072B2", -58)
label(ax, "variational bound", 8, scores.loc["lower_bound", 8], "#009E73")
ax.set(ylabel="log evidence and bounds (nats)", xlim=(2.8, 10), ylim=(-692, -675))
ax.set_title("Copies of a solution with its classes renumbered", loc="left")
plt.show()

# %%
# Up to five classes the copies are all that was missing: the bound of all copies mixed agrees with the evidence within
# its errors. (Eight classes have 40 320 copies, too many to mix.)
#
# Whatever one does about labels, four classes stay ahead. :doc:`/user_guide/scores` says which score to take for which
# question; :ref:`sphx_glr_gallery_evidence_plot_tightness.py` shows how far each is from the truth.
