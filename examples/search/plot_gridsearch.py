"""
Inside scikit-learn's own tools
===============================

All estimators of this library are scikit-learn's kind. ``GridSearchCV``, ``Pipeline`` and ``cross_val_score`` take them
as they take any other, and :class:`~skvbem.StructureSearchCV` in turn looks like ``GridSearchCV``. When to take which?
It depends on the question. Here are three questions about the same 118 slides.
"""

# %%
# Which number of classes predicts best?
# --------------------------------------
# Seven pathologists judged 118 slides: carcinoma or not. How many kinds of slides are there? The estimator's ``score``
# is the mean log probability of a row, so that ``GridSearchCV`` needs nothing else to be told. It fits each number of
# classes once per fold, and asks how probable the slides left out were.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RepeatedKFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skvbem import StructureSearchCV, VBDiscreteDAG
from skvbem.datasets import load_carcinoma

slides = load_carcinoma(as_frame=True).data
candidates = {"latents": [2, 3, 4, 5, 6]}
model = VBDiscreteDAG(categories=[[1, 2]] * 7, random_state=0)
splitter = RepeatedKFold(n_splits=10, n_repeats=2, random_state=0)
grid = GridSearchCV(model, candidates, cv=splitter).fit(slides)
print(f"{grid.best_params_['latents']} classes predict best: {grid.best_score_:.3f} nats per slide left out")

# %%
# Which number is best supported?
# -------------------------------
# The same loop with :class:`~skvbem.StructureSearchCV` holds nothing out. Each number is fitted once, to all slides,
# and scored by its evidence: the probability of all the data, averaged over parameters. The scores are log
# probabilities up to the prior, so that they also say how sure the answer is.

search = StructureSearchCV(model, candidates, scoring="ais", random_state=0).fit(slides)
print(
    f"{search.best_params_['latents']} classes are best supported: probability {search.structure_posterior_.max():.0%}"
)

folds = np.stack([grid.cv_results_[f"split{k}_test_score"] for k in range(grid.n_splits_)])
lead = folds - folds[:, [grid.best_index_]]
fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
left.errorbar(candidates["latents"], lead.mean(axis=0), lead.std(axis=0) / np.sqrt(len(lead)), fmt="o", capsize=3)
left.set(xlabel="classes", ylabel="nats per slide", xticks=candidates["latents"])
left.set_title("Held out: behind the best number,\nwith standard errors over folds", loc="left", size=10)
right.bar(candidates["latents"], search.structure_posterior_, width=0.6)
right.set(xlabel="classes", ylim=(0, 1), xticks=candidates["latents"])
right.set_title("Evidence: probability of each number", loc="left", size=10)
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Both say three. But look at the numbers above three. A class too many hardly harms predictions, by less than 0.01 nats
# per slide, as slides leave it empty. The evidence asks which number made the data, and each class too many costs it
# about two nats, a factor of seven. And it needs one fit where twenty folds need twenty:

fits = len(candidates["latents"]) * grid.n_splits_
print(f"{fits} fits held out: {grid.cv_results_['mean_fit_time'].sum() * grid.n_splits_:.1f} s")
times = search.cv_results_["mean_fit_time"] + search.cv_results_["mean_score_time"]
print(f"{len(times)} fits with their evidence: {times.sum():.1f} s")

# %%
# Are the classes of use for something else?
# ------------------------------------------
# Say a slide was seen by some pathologists only: we strike out half of the verdicts. What would one more say of it? A
# logistic regression may look at the verdicts there are, with a column for those that are missing, or at the
# probabilities of the classes, which take missing cells as they come. Classes are found by a search of their own: it is
# a step of the ``Pipeline``, so that every fold chooses the number of classes anew, from its own slides.

rng = np.random.default_rng(0)
seen = slides.where(rng.random(slides.shape) < 0.5)
by_fold = StratifiedKFold(n_splits=5, shuffle=True, random_state=0)
classes = StructureSearchCV(
    VBDiscreteDAG(categories=[[1, 2]] * 6, random_state=0), {"latents": [2, 3]}, scoring="collapsed", random_state=0
)
pipelines = {
    "from verdicts": make_pipeline(OneHotEncoder(), LogisticRegression()),
    "from classes": make_pipeline(classes, LogisticRegression()),
}
loss = pd.DataFrame(
    {
        name: {
            who: -cross_val_score(
                pipeline, seen.drop(columns=who), slides[who], cv=by_fold, scoring="neg_log_loss"
            ).mean()
            for who in slides
        }
        for name, pipeline in pipelines.items()
    }
)
print(loss.round(3))

# %%
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.hlines(loss.index, loss.min(axis=1), loss.max(axis=1), color="0.8", zorder=0)
for name, marker in zip(loss, "os"):
    ax.plot(loss[name], loss.index, marker, label=name)
ax.invert_yaxis()
ax.set(xlabel="log loss of a verdict, nats (less is better)", ylabel="pathologist")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()

# %%
# Most verdicts are predicted better from two or three classes than from the remaining verdicts, each with a column for
# yes, no and missing. The classes have pooled what the verdicts of a slide have in common. The verdicts of C are an
# exception. No number of classes is right for this: the best number depends on the question, and ``cross_val_score``
# asks it.
