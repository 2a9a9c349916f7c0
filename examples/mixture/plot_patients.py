"""
Kinds of patients, in a table with gaps
=======================================

442 diabetes patients were examined, and a year later it was measured how far their disease had progressed. The table
mixes measurements with a category, the sex; and as in most tables of patients, we let cells be missing: one in ten, at
random. This page asks how many kinds of patients there are and what each is like. It then makes two checks: how
probable the model finds patients that it has not seen, and how near it comes to cells that we took out.

.. topic:: References

   Efron, B., Hastie, T., Johnstone, I. and Tibshirani, R. (2004), Least angle regression, *Annals of Statistics* 32,
   407-499.
"""

# %%
# The table
# ---------

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold, cross_val_score

from skvbem import VBMixture
from skvbem.plotting import ClassProfileDisplay, ComponentsDisplay

columns = {
    "age": "age",
    "sex": "sex",
    "bmi": "body mass index",
    "bp": "blood pressure",
    "s3": "HDL cholesterol",
    "s5": "log triglycerides",
    "s6": "blood sugar",
}
diabetes = load_diabetes(as_frame=True, scaled=False)
complete = diabetes.data[list(columns)].rename(columns=columns)
complete["progression"] = diabetes.target
complete["sex"] = complete["sex"].map({1.0: "first", 2.0: "second"})  # the source does not say which is which

taken_out = np.random.default_rng(0).random(complete.shape) < 0.1
patients = complete.mask(taken_out)
print(patients.head().to_string())
print(f"\n{taken_out.sum()} cells are missing; {(~taken_out.any(axis=1)).sum()} rows of {len(patients)} are complete")

# %%
# Throwing away rows with gaps would leave less than half of the patients. Nothing is thrown away: what is missing is
# summed out, exactly.
#
# How many kinds?
# ---------------
# Numbers are measurements, strings are categories; that needs no saying. (Counts would: a mapping such as
# ``emission={"poisson": "visits", ...}`` gives each family its columns.) Given the kind of patient, all columns are
# independent: ``covariance_type="diag"``. Whatever goes together in the table must then be due to kinds.

numbers = range(1, 7)
model = VBMixture(covariance_type="diag", random_state=0)
fits = {k: clone(model).set_params(n_components=k).fit(patients) for k in numbers}
bounds = pd.Series({k: fit.lower_bound_ for k, fit in fits.items()})

# %%
# The bound is one on how probable the model made all the patients beforehand. The held-out score needs no Bayesian:
# fit four fifths of the patients, and see how probable the others are, gaps and all.

folds = KFold(5, shuffle=True, random_state=0)
held_out = pd.DataFrame(
    {k: cross_val_score(clone(model).set_params(n_components=k, n_init=1), patients, cv=folds) for k in numbers}
)

figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
axes[0].plot(numbers, bounds - bounds.max(), "o-", color="#2f6ea5")
axes[0].set(ylabel="bound, nats below the best", ylim=(-60, 4))
best = held_out.mean().idxmax()
error = held_out.sub(held_out[best], axis=0).std(ddof=1) / np.sqrt(len(held_out))
axes[1].errorbar(numbers, held_out.mean(), error, marker="s", color="#d55e00", capsize=3)
axes[1].set(ylabel="nats per patient held out", ylim=(held_out.mean()[2] - 0.05, None))
axes[1].set_title("bars: s.e. of the difference from the best", size=9, loc="left")
for ax in axes:
    ax.set(xlabel="kinds of patients", xticks=numbers)
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

chosen = bounds.idxmax()
print(bounds.round(1).to_string(), f"\n\nthe bound says {chosen}")

# %%
# (One kind is far below both pictures.) The bound says five, with six close behind. Patients held out say the same,
# less sharply: up to four kinds every one helps, after that nothing is certain. What of a single Gaussian, with a
# correlation for every two measurements? It is another model of the same table, and so its bound compares:

gaussian = VBMixture(1, random_state=0).fit(patients)
print(f"one Gaussian with a full covariance: bound {gaussian.lower_bound_:.1f}, {chosen} kinds: {bounds[chosen]:.1f}")

# %%
# What is each kind like?
# -----------------------

kinds = fits[chosen]
ClassProfileDisplay.from_estimator(kinds, patients)
plt.show()

# %%
# Marks are means, written above them in the unit of the column, with their credible intervals; the pale bands reach
# one standard deviation of the patients of that kind either way. More than a quarter of the patients are heavy, with
# high blood pressure, little HDL cholesterol and much triglyceride: their disease progressed most. Another quarter are
# the opposite in every respect. Two smaller kinds are nearly all of one sex, the young and those with little HDL
# cholesterol and not much else.

ComponentsDisplay.from_estimator(kinds, patients, ["log triglycerides", "progression"])
plt.show()

# %%
# The kinds overlap, in any two columns. Pale marks are patients whose kind is not sure. Ticks at the edges are those
# with one of the two cells missing: they have a kind all the same.
#
# Cells that we took out
# ----------------------
# ``impute`` fills them with their means given the other cells of the row. We know what was there.

fillings = {
    "column mean": patients.fillna(patients.mean(numeric_only=True)),
    "kinds": kinds.impute(patients),
    "one Gaussian": gaussian.impute(patients),
}
errors = {}
for name in kinds.groups_["gaussian"]:
    gone = taken_out[:, list(complete).index(name)]
    errors[name] = {
        how: np.sqrt(np.mean((filled.loc[gone, name] - complete.loc[gone, name]) ** 2))
        for how, filled in fillings.items()
    }
errors = pd.DataFrame(errors).T
print("root mean squared error\n", errors.round(2).to_string(), sep="")
print("\nof that of the column mean, on average")
print(errors.div(errors["column mean"], axis=0).mean().round(2).to_string())

# %%
# For every measurement the kinds of patients know more than the mean of its column, and about as much as a Gaussian
# with all correlations, though they only say what a patient is like. Blanks in single rows stay uncertain, of course:
# to carry that uncertainty on, draw them, or keep the gaps, which no method of ``VBMixture`` minds.
