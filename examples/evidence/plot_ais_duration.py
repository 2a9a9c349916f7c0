"""
How long must a chain be?
=========================

The log evidence of a model with hidden variables has no formula, but it can be sampled. Annealed importance sampling
(AIS) runs a chain of random draws from a distribution that is known, through many in between, to the posterior. Each
chain ends with a weight, and weights average to the evidence. With too few steps in between hardly any chain ends where
the posterior is, and the estimate is far too low.

How many steps are enough? Beal and Ghahramani (2003) asked this for the network of two hidden causes and four observed
effects. In the right half of their figure 2, a thousand steps reach the BIC score, and several thousand the
variational bound. Here is that picture, with their sampler and with the one that this library takes.

.. topic:: References

   Beal, M. J. and Ghahramani, Z. (2003), The variational Bayesian EM algorithm for incomplete data: with application to
   scoring graphical model structures, *Bayesian Statistics* 7, 453-464.

   Neal, R. M. (2001), Annealed importance sampling, *Statistics and Computing* 11, 125-139.
"""

# %%
# Data, bound and BIC
# -------------------
# 480 rows are drawn from the network, whose tables are drawn from the prior. The variational bound and BIC (half of
# scikit-learn's, with its sign changed, so that more is better) come with the fit or cost next to nothing.

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skvbem import VBDiscreteDAG
from skvbem.datasets import make_bipartite
from skvbem.errors import EvidenceWarning

network = make_bipartite(480, random_state=0)
rows = pd.DataFrame(network.data, columns=network.feature_names)
model = VBDiscreteDAG(network.edges, latents=network.latent_names, n_init=20, random_state=0).fit(rows)
bound = model.log_evidence(rows, kind="lower_bound")
bic = model.log_evidence(rows, kind="bic")
print(bound, bic, sep="\n")

# %%
# Two samplers
# ------------
# - *As published*: a chain starts at tables drawn from the prior. Step by step the data count more, from nothing to
#   everything. At each step all tables are changed a little at random, and the change is kept or taken back (the
#   Metropolis rule). This is ``kind="ais_metropolis"``.
# - *Ours*: a chain starts near the fit, at tables drawn from the variational posterior made wider. It turns step by
#   step into a Gibbs sampler, which draws hidden states given tables and tables given hidden states. Nothing is taken
#   back, and nothing has to be found that the fit has found before. This is ``kind="ais"``.
#
# Each runs eight chains of every length. Chains too short to be trusted give a warning, an ``EvidenceWarning``; since
# short chains are what this page is about, we silence it. ``details["log_weights"]`` has what each chain says alone.

warnings.simplefilter("ignore", EvidenceWarning)
lengths = {"published": 4 ** np.arange(3, 9), "ours": 4 ** np.arange(2, 7)}
samplers = {
    "published": {"kind": "ais_metropolis"},
    "ours": {"kind": "ais", "fractions": [0.5], "n_fits": 1},  # all chains from the best fit
}
found, seconds = {}, {}
for name, options in samplers.items():
    for n_steps in lengths[name]:
        began = time.perf_counter()
        found[name, n_steps] = model.log_evidence(rows, n_steps=n_steps, n_chains=8, random_state=1, **options)
        seconds[name, n_steps] = time.perf_counter() - began

print(f"{'sampler':<10}{'steps':>6}{'mean of 8 weights':>19}{'lowest':>9}{'highest':>9}{'seconds':>9}")
for (name, n_steps), estimate in found.items():
    alone = estimate.details["log_weights"]
    values = f"{estimate.value:>19.1f}{alone.min():>9.1f}{alone.max():>9.1f}"
    print(f"{name:<10}{n_steps:>6}{values}{seconds[name, n_steps]:>9.2f}")

# %%
# Beal and Ghahramani also started a chain at the tables that made the data, which only a simulation knows. Such a
# chain is no estimate, and may well come out too high. But it shows what is left of a good start. The data hardly
# count at the first steps, which lead the chain away, and it has to find back.

from_truth = {
    n_steps: model.log_evidence(rows, kind="ais_metropolis", n_steps=n_steps, n_chains=2, start=network.tables)
    for n_steps in lengths["published"]
}
longest = model.log_evidence(rows, kind="ais", n_chains=64, n_steps=1024)
print("The longest run of ours, from all fits and the prior:", longest, sep="\n")

# %%
# The picture
# -----------
# A dot is what one chain says alone, a line what eight say together: the log of the mean of their weights, not the mean
# of their logs. On the right the same, closer.

PUBLISHED, TRUTH, OURS, LEVEL = "#D55E00", "#9c4f96", "#0072B2", "#56636f"


def draw(ax, low, high):
    for color, sampler in ((PUBLISHED, "published"), (OURS, "ours")):
        pooled = [found[sampler, n].value for n in lengths[sampler]]
        ax.plot(lengths[sampler], pooled, color=color, linewidth=1.8)
        for n in lengths[sampler]:
            ax.plot(np.full(8, n), found[sampler, n].details["log_weights"], "o", color=color, ms=4.5, alpha=0.5, mew=0)
    for n, estimate in from_truth.items():
        values = estimate.details["log_weights"]
        ax.plot(np.full(2, 1.25 * n), values, "D", color=TRUTH, markersize=4.5, markerfacecolor="none")
    for value in (longest.value, bound.value, bic.value):
        ax.axhline(value, color=LEVEL, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
    shown = lengths["ours"][:1].tolist() + lengths["published"].tolist()
    ax.set(xscale="log", xlabel="steps of a chain", xlim=(11, 120000), ylim=(low, high))
    ax.set_xticks(shown, shown)
    ax.minorticks_off()
    ax.spines[["top", "right"]].set_visible(False)


def write(ax, text, x, y, color, **options):
    ax.text(x, y, text, color=color, **({"va": "center"} | options))


fig, (whole, close) = plt.subplots(1, 2, figsize=(10, 5.2), layout="constrained")
draw(whole, -3210, -2760)
draw(close, -2885, -2803)
whole.set_ylabel("log evidence (nats)")
whole.set_title("Estimates by chains of different lengths", loc="left")
close.set_title("The same, closer", loc="left")
write(whole, "ours", 16, -2797, OURS)
write(whole, "published,\nfrom the prior", 95, -3105, PUBLISHED)
write(whole, "published, from\nthe true tables", 110, -2780, TRUTH)
for ax, gap in ((whole, -11), (close, -2)):
    write(ax, "variational bound", 12, bound.value + gap, LEVEL)
    write(ax, "BIC", 12, bic.value + gap, LEVEL)
write(close, "evidence, by the longest run of ours", 12, longest.value + 4.5, LEVEL)
plt.show()

# %%
# As in the paper, about a thousand steps of the published sampler reach BIC and some thousands the variational bound.
# Tens of thousands are needed until single chains agree. An estimate below the variational bound is known to be wrong:
# the evidence cannot lie there. That is the cheapest check of any sampler.
#
# Ours starts where the fit is: chains of 16 steps are within two or three nats of the truth, and those of 64 together
# within half a nat. Its assumption is less obvious. Chains that start from one fit see the posterior about that fit.
# If there are other hills, some starts of the fit should have found them. So by default ``kind="ais"`` starts chains
# from all optima found and some from the prior. It adds up the parts of the evidence for which they account.
#
# The mean of a few weights is ruled by the largest, and rather too low than too high. The standard error and the
# warnings tell when not to trust it; :doc:`/user_guide/scores` says how to read them.
