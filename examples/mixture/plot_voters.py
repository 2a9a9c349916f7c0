"""
Voters of 1996: answers in an order
===================================

944 Americans were asked before the election of 1996 where they stand, from extremely liberal to extremely conservative,
and where the candidates stand. A table of probabilities for each kind of voters forgets that "liberal" is next to
"slightly liberal". With an order there is one number behind each answer, and two for each kind of voters describe it.
Edges between answers are common to all kinds. The data choose them, and the bound has their price: so both ways of
reading the answers compare.

.. topic:: References

   The American National Election Studies (1996). The answers are in the public domain.
"""

# %%
# Seven questions
# ---------------
# Four are about left and right. The others are days with news on television, education, and income in 24 classes.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import KFold

from skvbem import VBMixture
from skvbem.datasets import load_anes96
from skvbem.emissions import Categorical, Ordinal
from skvbem.plotting import ClassProfileDisplay

voters = load_anes96(as_frame=True).data
left_right = ["selfLR", "ClinLR", "DoleLR", "PID"]
questions = [*left_right, "TVnews", "educ", "income"]
families = {"ordered": Ordinal(), "in no order": Categorical()}
print(voters[questions].agg(["min", "median", "max"]))

# %%
# How many kinds of voters?
# -------------------------
# The price of the edges does not depend on the number of kinds, but a kind is cheaper if its answers have an order. So
# `Ordinal` is behind with few kinds, and ahead with more: it can afford them.
numbers = [1, 2, 3, 4, 5, 7]
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
best = {}
for ax, columns in zip(axes, (left_right, questions)):
    for name, family in families.items():
        fits = [VBMixture(k, emission=family, n_init=2, random_state=0).fit(voters[columns]) for k in numbers]
        bounds = [fit.lower_bound_ for fit in fits]
        ax.plot(numbers, bounds, "o-", label=name)
        best[len(columns), name] = fits[int(np.argmax(bounds))]
    ax.set_title(f"{len(columns)} questions", loc="left", size=10)
    ax.set_xlabel("kinds of voters")
axes[0].set_ylabel("lower bound on the evidence, nats")
axes[0].legend(frameon=False)
for (n_columns, name), fit in best.items():
    bound, d = fit.lower_bound_, fit.n_free_parameters_
    print(f"{n_columns} questions, {name:>11}: {fit.n_components_} kinds, {d:3} parameters, bound {bound:.1f} nats")
plt.show()

# %%
# New voters
# ----------
# A bound foretells how probable new rows are. Here are five folds, each left out once.
held_out = {}
for name, family in families.items():
    model = VBMixture(best[7, name].n_components_, emission=family, n_init=2, random_state=0)
    model.set_params(categories={column: sorted(voters[column].unique()) for column in questions})
    scores = [
        model.fit(voters[questions].iloc[train]).score_samples(voters[questions].iloc[test])
        for train, test in KFold(5, shuffle=True, random_state=0).split(voters)
    ]
    held_out[name] = np.concatenate(scores)
gain = held_out["ordered"] - held_out["in no order"]
print(f"rows left out are {gain.sum():.0f} nats more probable in order, +- {gain.std() * np.sqrt(len(gain)):.0f}")

# %%
# What they answer
# ----------------
# A normal number makes a profile with one peak, or, where it spreads beyond all edges, one with both ends: that is the
# smallest class, of extreme answers. Those who see Clinton on the left, and themselves on the right, are nearly all for
# Dole. The vote was no part of the fit.
fit = best[4, "ordered"]
kinds = fit.predict(voters[left_right])
for k in np.argsort(-fit.weights_):
    print(f"class {k}: {fit.weights_[k]:.0%} of voters, {voters['vote'][kinds == k].mean():.0%} of them for Dole")
ClassProfileDisplay.from_estimator(fit, voters[left_right])
plt.show()
