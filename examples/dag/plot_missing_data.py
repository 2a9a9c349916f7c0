"""
Missing cells: use what is there
================================

Real tables have holes. Two habits deal with them before the analysis starts: drop every row that has one, or fill each
with the column's most frequent value. The first throws measurements away, the second invents data. A probability model
needs neither. It sums missing cells out, row by row, whatever the pattern. Afterwards it says how probable each value
of a missing cell is.

Here this is done for 683 soybean plants, described by 35 attributes, with many cells missing. Each plant came with one
of 19 diseases, which we do not show to the model.
"""

# %%
# What deletion would cost
# ------------------------

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from skvbem import VBDiscreteDAG
from skvbem.datasets import load_soybean_large

soybean = load_soybean_large(as_frame=True)
plants, disease = soybean.data, soybean.target
missing = plants.isna()
complete = ~missing.any(axis=1)
lost = sorted(set(disease) - set(disease[complete]))

print(f"{missing.to_numpy().sum()} of {missing.size} cells are missing, {missing.to_numpy().mean():.1%}")
print(f"{(~complete).sum()} of {len(plants)} plants have a missing cell; dropping them drops, with them,")
print(f"{plants[~complete].notna().to_numpy().sum()} cells that were observed")
print(f"and all plants with {len(lost)} of the {disease.nunique()} diseases:", *lost, sep="\n  ")

# %%
# Cells are not missing by accident. For a few diseases certain attributes were never or seldom recorded; plants with
# any of the others have no gap at all.

share = missing.groupby(disease, observed=True).mean()
share = share.loc[share.any(axis=1), share.any()]
fig, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
image = ax.imshow(share, cmap="Blues", vmin=0, vmax=1, aspect="auto")
ax.set_xticks(range(share.shape[1]), share.columns, rotation=90)
ax.set_yticks(range(share.shape[0]), share.index)
ax.set_title("Share of plants without the attribute, by disease")
fig.colorbar(image, ax=ax)
plt.show()

# %%
# A fair test
# -----------
# To see what filled-in values are worth we hide one in ten of the *observed* cells, at random, and show the rest to
# the model. The hidden ones are known to us.

rng = np.random.default_rng(0)
hidden = plants.notna().to_numpy() & (rng.random(plants.shape) < 0.1)
shown = plants.mask(hidden)
truth = np.column_stack([plants[name].cat.codes for name in plants])
print(f"{hidden.sum()} cells hidden; {(~shown.isna().any(axis=1)).sum()} of {len(plants)} rows are still complete")

# %%
# How many classes?
# -----------------
# The model is a latent class model: a hidden kind of plant, and given the kind all attributes independent. The lower
# bound, computed only from the cells shown, says how many kinds there are. ``prior="per_row"`` puts the weight of one
# imaginary plant on each row of each table, however many categories the attribute has.
#
# The last two columns are the test: how many hidden cells are named correctly, and the mean log probability given to
# the true value.


def fit(n_classes, table):
    model = VBDiscreteDAG(latents=n_classes, prior="per_row", random_state=0)
    return model.fit(table)


def check(model):
    """For each hidden cell: is it named correctly, how sure was the model, and its log probability of the truth."""
    _, found = model.impute(shown, return_proba=True, fill="cells")
    named, claimed, true = [], [], []
    for j, name in enumerate(plants):
        rows = np.flatnonzero(hidden[:, j])
        named.append(found[name][rows].argmax(axis=1) == truth[rows, j])
        claimed.append(found[name][rows].max(axis=1))
        true.append(found[name][rows, truth[rows, j]])
    return np.concatenate(named), np.concatenate(claimed), np.log(np.concatenate(true))


models = {n: fit(n, shown) for n in (2, 8, 16, 32)}
print(f"{'classes':>8}{'in use':>8}{'lower bound':>13}{'accuracy':>10}{'log probability':>17}")
for n, model in models.items():
    named, _, log_probability = check(model)
    in_use = len(model.latent_states_["h0"].in_use)
    print(f"{n:>8}{in_use:>8}{model.lower_bound_:>13.1f}{named.mean():>10.1%}{log_probability.mean():>17.3f}")

# %%
# The bound was computed without the hidden cells, yet where it rises, their prediction improves. Classes offered
# beyond what the data support stay without plants: they cost little, and need no pruning. With so many classes a
# fit ends on a hill of its own, and one from other starts on another. Differences in the table that are no larger than
# that say little:

n_best = max(models, key=lambda n: models[n].lower_bound_)
again = VBDiscreteDAG(latents=n_best, prior="per_row", random_state=1).fit(shown)
print(f"{n_best} classes: bound {models[n_best].lower_bound_:.1f}, from other starts {again.lower_bound_:.1f}")

# %%
# Against the two habits
# ----------------------

named, claimed, _ = check(models[n_best])

most_frequent = shown.mode().iloc[0]
by_mode = np.concatenate(
    [(plants[name] == most_frequent[name]).to_numpy()[hidden[:, j]] for j, name in enumerate(plants)]
)

remaining = shown.dropna()
n_deletion, deletion = max(((n, fit(n, remaining)) for n in (2, 3, 4)), key=lambda pair: pair[1].lower_bound_)
by_deletion, _, _ = check(deletion)

print("hidden cells named correctly")
for who, right in (
    ("most frequent value of the column", by_mode),
    (f"{n_deletion} classes, from {len(remaining)} complete rows", by_deletion),
    (f"{n_best} classes, from all rows", named),
):
    print(f"  {who:<36}{right.mean():.1%}")

# %%
# Does it know what it does not know?
# -----------------------------------
# A filled-in value is a guess. Among the cells for which the model claims 90 %, nine in ten should be right. On the
# left, claims against what came true; on the right, each attribute's accuracy against that of its most frequent
# value.

edges = np.array([0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 1.0 + 1e-9])
bins = np.digitize(claimed, edges) - 1
rows = [(claimed[bins == k].mean(), named[bins == k].mean(), (bins == k).sum()) for k in range(len(edges) - 1)]
calibration = pd.DataFrame(rows, columns=["claimed", "came true", "cells"])
print(calibration.round(3).to_string(index=False))

column = np.concatenate([np.full(hidden[:, j].sum(), j) for j in range(plants.shape[1])])
per_column = pd.DataFrame({"mode": by_mode, "model": named}).groupby(column).mean()

fig, (left, right) = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
left.plot([0.3, 1], [0.3, 1], color="#9aa5b1", linewidth=1)
left.scatter(calibration["claimed"], calibration["came true"], s=calibration["cells"] / 3, color="#2f6ea5", alpha=0.8)
left.set(xlabel="probability claimed", ylabel="share that came true", title="Claims (area: number of cells)")
right.plot([0, 1], [0, 1], color="#9aa5b1", linewidth=1)
right.scatter(per_column["mode"], per_column["model"], color="#2f6ea5", alpha=0.8)
right.set(xlabel="most frequent value", ylabel=f"model with {n_best} classes", title="Accuracy of each attribute")
plt.show()

# %%
# Where the model is sure, it is right; where it is not, it claims somewhat too much. Some attributes follow almost
# surely from the others; for a few the model is no better than their most frequent value:

no_better = per_column.index[per_column["model"] <= per_column["mode"]]
print(", ".join(plants.columns[no_better]))

# %%
# The table, completed
# --------------------
# Now all cells that were ever observed are used. ``impute`` fills in the most probable values, cell by cell with
# ``fill="cells"``. With ``return_proba=True`` it gives the probabilities of all values. How sure is the model of the
# cells that it fills in, on average?

final = fit(n_best, plants)
filled, probabilities = final.impute(plants, return_proba=True, fill="cells")
sure = pd.DataFrame({name: probabilities[name].max(axis=1) for name in plants}, index=plants.index).where(missing)
print(f"cells that we hid: {claimed.mean():.2f}; cells really missing: {np.nanmean(sure):.2f}")

# %%
# The cells that we hid at random were the easier ones. Those really missing are of another kind: they are missing
# together, for a few diseases. Here are two plants. The model is most sure of the gaps of the first, on average, and
# least sure of those of the second. Each is shown with the six gaps of which the model is surest.


def describe(row):
    print(f"plant {row}, {disease[row]}, {missing.loc[row].sum()} of {plants.shape[1]} cells missing")
    for name in sure.loc[row].dropna().sort_values(ascending=False, kind="stable").index[:6]:
        odds = ", ".join(f"{value}: {p:.0%}" for value, p in zip(plants[name].cat.categories, probabilities[name][row]))
        print(f"  {name:<16} filled with {filled.loc[row, name]}    ({odds})")


certainty = sure.mean(axis=1)
describe(certainty.idxmax())
describe(certainty.idxmin())

# %%
# The second plant is in a class for which these attributes were never recorded. The model says so: to it all values
# are about equally probable, and the one filled in is arbitrary. Look at the probabilities before you use a filled-in
# value.
#
# One caution remains that no method can spare you. Summing out is right if a cell's being missing says nothing about
# its value beyond what the row's other cells say. In the first picture some attributes were never recorded for a
# disease. There a filled-in value is borrowed from plants that look alike in other respects, and nothing in the table
# can check it.
#
# Do the classes mean anything?
# -----------------------------
# The model never saw the diseases. The adjusted Rand index says how far its classes agree with them: 0 is chance, 1
# is perfect.

classes = final.predict(plants)
print(f"all plants: adjusted Rand index {adjusted_rand_score(disease, classes):.2f}\n")
print("the diseases that deletion would have lost:")
for name in lost:
    counts = pd.Series(classes[disease == name]).value_counts()
    share_of_class = (disease[classes == counts.index[0]] == name).mean()
    print(f"  {name:<28}{counts.iloc[0]:>3} of {counts.sum()} in one class, {share_of_class:.0%} of it")
