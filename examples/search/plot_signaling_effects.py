"""
Effects between proteins, over all networks
===========================================

In 853 immune cells the amounts of eleven molecules of one signaling network were measured. Which of them act on which,
and how much? Rows alone leave directions open, so that an effect in one network is nothing in another that fits as
well. Here effects are averaged over all networks of the eleven columns, each as probable as it is. Then knowledge of
the order in the cell is added.

.. topic:: References

   Sachs, K., Perez, O., Pe'er, D., Lauffenburger, D. A. and Nolan, G. P. (2005), Causal protein-signaling networks
   derived from multiparameter single-cell data, *Science* 308, 523-529.
"""

# %%
# The search
# ----------
# Logarithms of amounts are near to normal. Under the prior "bge" all graphs over complete measurements are summed over,
# so that probabilities of edges are exact. There are 3 x 10^22 graphs of eleven columns.

import matplotlib.pyplot as plt
import numpy as np

from skvbem import DAGSpace, StructureSearchCV, VBNetwork
from skvbem.datasets import load_sachs
from skvbem.emissions import Regression

cells = np.log(load_sachs(as_frame=True).data)
prior = Regression(prior="bge", coefficient_precision_prior=0.1)
search = StructureSearchCV(VBNetwork(emission=prior), DAGSpace(list(cells.columns)), random_state=0).fit(cells)

edges = search.edge_probabilities_
for k, one in enumerate(cells.columns):
    for other in cells.columns[k + 1 :]:
        there, back = edges["parent":one, "child":other], edges["parent":other, "child":one]
        if there + back > 0.1:
            print(f"{one} -> {other} {there:.2f}, {other} -> {one} {back:.2f}")

# %%
# Six pairs depend on each other for certain, and all six are linked in the published network. But no direction is
# certain: for each pair both are about as probable.
#
# Effects over all networks
# -------------------------
# The effect of PKC on p38 is that of one unit more of ln PKC, along all paths. In six networks of ten one leads there.
# In the others PKC is below p38, and to set it does nothing. The best network is one of them all, and its interval says
# nothing of this.

pairs = [("pkc", "p38"), ("pkc", "jnk"), ("raf", "mek"), ("pka", "akt"), ("pka", "erk"), ("p38", "jnk")]
over_all = {pair: search.effect(*pair) for pair in pairs}
of_best = {pair: search.best_estimator_.effect(*pair) for pair in pairs}
for pair, effect in over_all.items():
    low, high = effect.interval(0.95)
    low_of_best, high_of_best = of_best[pair].interval(0.95)
    print(f"{' -> '.join(pair)}: no path in {effect.probability_no_path:.0%} of networks; effect {effect.mean:.2f} "
          f"[{low:.2f}, {high:.2f}], by the best network alone [{low_of_best:.2f}, {high_of_best:.2f}]")  # fmt: skip

# %%
# Knowledge of the cell
# ---------------------
# The kinases PKA and PKC are known to act on the others, and RAF on MEK. Such knowledge is no part of the rows.
# Forbidden edges say it. Now the rows say how strong the effects are.

upstream = ["pka", "pkc"]
below = [name for name in cells.columns if name not in upstream]
forbidden = [(child, kinase) for child in below for kinase in upstream] + [("mek", "raf")]
space = DAGSpace(list(cells.columns), forbidden=forbidden)
informed = StructureSearchCV(VBNetwork(emission=prior), space, random_state=0).fit(cells)
with_knowledge = {pair: informed.effect(*pair) for pair in pairs}
for pair, effect in with_knowledge.items():
    low, high = effect.interval(0.95)
    print(f"{' -> '.join(pair)}: no path in {effect.probability_no_path:.0%}; [{low:.2f}, {high:.2f}]")

# %%
# Intervals of 95 % side by side. Over all networks they reach from 0, no effect, to the effect of a network in which
# there is one. With knowledge of the order they are narrow, and hold what the rows say.

kinds = {"best network alone": of_best, "over all networks": over_all, "with known directions": with_knowledge}
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for k, (kind, effects) in enumerate(kinds.items()):
    at = np.arange(len(pairs)) + 0.22 * (k - 1)
    low, high = np.array([effects[pair].interval(0.95) for pair in pairs]).T
    means = np.array([effects[pair].mean for pair in pairs])
    ends = np.maximum([means - low, high - means], 0.0)
    axes.errorbar(means, at, xerr=ends, fmt="o", markersize=4, capsize=3, label=kind)
axes.axvline(0.0, color="0.7", linewidth=1, zorder=0)
axes.set_yticks(range(len(pairs)), [" → ".join(pair) for pair in pairs])
axes.invert_yaxis()
axes.set_xlabel("effect of one unit more, of logarithms")
axes.legend(loc="lower right", fontsize=8)
plt.show()
