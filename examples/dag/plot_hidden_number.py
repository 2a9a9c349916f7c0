"""
A number that nobody measured, or edges? Phenols of wines
=========================================================

Wines of three cultivars were analyzed in Italy. Five of the columns have to do with phenols: three are
concentrations, one is the ratio of two absorptions, one is the hue. They differ between cultivars. Is that all that
they share? Or do wines of one cultivar differ in a number that no column holds, a ripeness, say? Or do the columns
depend on each other? The data are those of :func:`sklearn.datasets.load_wine`.
"""

# %%
# Data with gaps
# --------------
# A sixth of the measurements is left out, so that there is something to fill in. Rows are kept whole.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_wine

from skvbem import VBNetwork

wine = load_wine(as_frame=True)
names = {
    "total_phenols": "phenols",
    "flavanoids": "flavanoids",
    "proanthocyanins": "anthocyanins",
    "od280/od315_of_diluted_wines": "absorption",
    "hue": "hue",
}
measured = wine.data[[*names]].rename(columns=names)
is_left_out = np.random.default_rng(0).random(measured.shape) < 0.15
X = measured.mask(is_left_out).assign(cultivar=wine.target.map("cultivar {}".format))
print(f"{len(X)} wines, {int(is_left_out.sum())} cells left out, {int(X.notna().all(axis=1).sum())} rows without gaps")

# %%
# Five explanations
# -----------------
# ``latents={"ripeness": "number"}`` declares a hidden number. It may stand above the measurements beside the
# cultivar, or between the cultivar and the measurements. All bounds have all constants, so that they compare with
# each other, and with networks without anything hidden.

columns = list(measured)
from_cultivar = [("cultivar", column) for column in columns]
from_number = [("ripeness", column) for column in columns]
chain = [("phenols", "flavanoids"), ("flavanoids", "absorption"), ("flavanoids", "anthocyanins")]
hidden = {"ripeness": "number"}
networks = {
    "cultivar alone": (from_cultivar, None),
    "cultivar, and edges between columns": (from_cultivar + chain, None),
    "ripeness alone": ([*from_number], hidden),
    "cultivar to ripeness to columns": ([("cultivar", "ripeness"), *from_number], hidden),
    "cultivar and ripeness": (from_cultivar + from_number, hidden),
}
fits, rows = {}, {}
for name, (edges, latents) in networks.items():
    if latents and "cultivar" not in {parent for parent, _ in edges}:
        edges = {**{child: ["ripeness"] for child in columns}, "cultivar": []}
    fits[name] = VBNetwork(edges, latents=latents, random_state=0).fit(X)
    errors = ((fits[name].impute(X)[columns] - measured) / measured.std()).to_numpy()[is_left_out]
    rows[name] = {"lower bound": fits[name].lower_bound_, "error of filled cells": np.sqrt((errors**2).mean())}
print(pd.DataFrame(rows).T.round({"lower bound": 1, "error of filled cells": 2}).to_string())

# %%
# Cultivars explain much, and a number beside them explains more. A number alone, or one through which all effects of
# the cultivar must go, does worse than the cultivars alone. But three edges between columns explain more still, with
# fewer coefficients, and fill the cells that were left out as well: errors are in standard deviations of the columns.
# So nothing hidden is needed here. A look at correlations within cultivars, which a factor would explain, does not
# say so; bounds do.
#
# The number
# ----------
# With what would the number have to do? Slopes say by how many standard deviations a column rises with one unit of
# the number, within a cultivar. The sign is by convention: the largest slope is positive.

of_number = fits["cultivar and ripeness"]
parameters = of_number.parameters_
slopes = {column: parameters[column]["coefficients"][:, 0, 0] / measured[column].std() for column in columns}
print(pd.DataFrame(slopes, index=of_number.categories_["cultivar"]).T.round(2).to_string())

means, deviations = of_number.latent_means(X, return_std=True)
print(f"deviations of the number given a row: {deviations.min():.2f} to {deviations.max():.2f}, without a row 1")

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
bounds = pd.Series({name: fit.lower_bound_ for name, fit in fits.items()})
(bounds - bounds.max()).plot.barh(ax=axes[0], color="0.6")
axes[0].set_xlabel("lower bound, nats from the best")
for cultivar, of_rows in X.groupby("cultivar").indices.items():
    at, phenols = means[of_rows, 0], measured["phenols"].to_numpy()[of_rows]
    axes[1].errorbar(at, phenols, xerr=deviations[of_rows, 0], fmt="o", ms=3, lw=0.5, label=cultivar)
axes[1].set(xlabel="hidden number, with its standard deviation", ylabel="total phenols (with cells left out)")
axes[1].legend()
plt.show()

# %%
# A hidden number has a distribution given what is known of a row, as a column has one. Here they are for a wine of
# cultivar 1 with 2.8 of phenols:

evidence = {"cultivar": "cultivar 1", "phenols": 2.8}
for node in ("ripeness", "flavanoids"):
    answer = of_number.query(node, evidence)
    low, high = answer.interval(0.9)
    print(f"{node}: {answer.mean:.2f}, nine times of ten between {low:.2f} and {high:.2f}")
