"""
In how many states was the earth?
=================================

In each year from 1900 to 2006 the world had between 6 and 41 earthquakes of magnitude 7 or more. Years with many follow
each other, and so do years with few, as if the earth changed between states. How many are there, which years was it in
which, how long does it stay, and what comes next?

.. topic:: References

   Zucchini, W. and MacDonald, I. L. (2009), *Hidden Markov Models for Time Series*, Chapman & Hall, chapters 1 to 6.

   Beal, M. J. (2003), *Variational Algorithms for Approximate Bayesian Inference*, chapter 3.
"""

# %%
# Not one rate for all years
# --------------------------
# Counts of events that happen at one rate, each by itself, have a variance as large as their mean, and no year tells
# anything about the next. Neither is so here.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import poisson

from skvbem import VBHMM
from skvbem.datasets import load_earthquakes
from skvbem.evidence import evidence_table
from skvbem.plotting import StatePathDisplay, StructureSearchDisplay, TransitionsDisplay

quakes = load_earthquakes(as_frame=True).data  # a row for each year
counts = quakes["count"]
print(f"mean {counts.mean():.1f}, variance {counts.var():.1f}, correlation with the next year {counts.autocorr():.2f}")

# %%
# How many states?
# ----------------
# A hidden Markov model has a rate for each state, and probabilities of the next state given this one. Each number of
# states is a model of its own. Its evidence, the probability of the counts under the model, is bounded by the fit, and
# can be sampled, with an error bar; BIC stands in for it where there are many years.

numbers = range(1, 6)
fits = {k: VBHMM(k, emission="poisson", random_state=0).fit(quakes) for k in numbers}
kinds = ["lower_bound", "ais", "bic"]
tables = {k: evidence_table(fits[k], quakes, kinds, options={"ais": {"n_chains": 16}}) for k in numbers}
found = pd.DataFrame({kind: {k: tables[k][kind].value for k in numbers} for kind in kinds})
found["± ais"] = {k: tables[k]["ais"].standard_error for k in numbers}
found["years in each state"] = {k: str(np.sort(fits[k].counts_)[::-1].round().astype(int)) for k in numbers}
print(found.rename_axis("states").round(1).to_string())

StructureSearchDisplay.from_evidence(tables, below_best=True, x_label="states")
plt.show()

# %%
# Three states, by the bound and by the sampled evidence; a fourth stays empty. A bound knows one way of naming the
# states, and lacks more where more is hidden. So it falls faster beyond three than the evidence does, and three lead
# over two by two nats only, where sampling says four: odds of sixty to one. BIC, by less than a nat, would have taken
# two.
#
# Does this depend on the prior? The one above holds staying in a state for no more probable than any other transition.
# Five counts more for staying (``sticky``) are closer to what one believes of the earth; or the strength of the prior
# can be learned. Every bound rises, and three states lead still.

priors = {"flat": {}, "sticky=5": {"sticky": 5.0}, "learned": {"learn_prior": True}}
bounds = {
    name: {k: VBHMM(k, emission="poisson", random_state=0, **prior).fit(quakes).lower_bound_ for k in (2, 3, 4)}
    for name, prior in priors.items()
}
print(pd.DataFrame(bounds).rename_axis("states").round(1).to_string())

# %%
# Which years?
# ------------
# Below the counts are the most probable path through the states and, for each year, the probabilities of the states
# given all years. The thick lines are the rates of the states.

three = VBHMM(3, emission="poisson", sticky=5.0, random_state=0).fit(quakes)
StatePathDisplay.from_estimator(three, quakes, times=quakes.index, order="count")
plt.show()

# %%
# The forties were violent, and calm has lasted since 1981. The path has to give single years, such as 1957, one state;
# the probabilities tell how sure that is.
#
# If the records of 1930 to 1944 were lost, those years would stay in the sequence, as missing. Their states follow
# from the years around them and from the transitions, and are the less certain the farther from a record. (The fit
# starts from the states found above, so that they keep their numbers and colors.)

gap = quakes.astype(float)
gap.loc[1930:1944] = np.nan
with_gap = VBHMM(3, emission="poisson", sticky=5.0, init=three.predict_proba(quakes)).fit(gap)
StatePathDisplay.from_estimator(with_gap, gap, times=gap.index, order="count")
plt.show()

# %%
# How long does a state last?
# ---------------------------
# A state that is kept with probability p lasts 1 / (1 - p) years on average: five to ten. Staying is well known; where
# a state leads to when it ends is not, as the intervals say. There were only ten changes or so to learn from.

TransitionsDisplay.from_estimator(three, quakes, order="count")
plt.show()

rates, stay = three.parameters_["poisson"]["rates"][:, 0], np.diag(three.transmat_)
states = pd.DataFrame({"rate": rates, "years at a time": 1 / (1 - stay), "share of years": three.counts_ / len(quakes)})
print(states.sort_values("rate").round(2).to_string())

# %%
# What comes next?
# ----------------
# Calm years follow calm years, but the farther ahead, the less is known of the state: what is expected goes from near
# the rate of the last state to the mean of all. The band, in which at least 80 % of the years should be, is wide from
# the first, since counts vary within a state, too. (It takes the posterior means as if they were known.)

ahead = three.forecast(quakes, n_steps=15)
years = quakes.index[-1] + 1 + np.arange(15)
values = np.arange(80)
mixed = ahead.state_probabilities[0] @ poisson.cdf(values, rates[:, None])  # P(count <= value) of each year
low, high = (values[np.argmax(mixed >= share, axis=1)] for share in (0.1, 0.9))

_, ax = plt.subplots(figsize=(7.5, 3.2), layout="constrained")
ax.plot(counts.loc[1970:], "o-", color="#6b7785", markersize=4, linewidth=0.8, label="counted")
ax.fill_between(years, low, high, color="#2f6ea5", alpha=0.2, linewidth=0, label="80 % of the years")
ax.plot(years, ahead.expected["count"][0], color="#2f6ea5", linewidth=2.2, label="expected")
ax.axhline(counts.mean(), color="#b8c1cb", linewidth=0.8, zorder=0)
ax.set(xlabel="year", ylabel="earthquakes", ylim=(0, None))
ax.legend(frameon=False, loc="lower left", ncols=3)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The grey line is the mean since 1900. Probabilities of the states in the first, fifth and fifteenth year:

order = np.argsort(rates)
table = pd.DataFrame(ahead.state_probabilities[0][[0, 4, 14]][:, order], years[[0, 4, 14]], rates[order].round(1))
print(table.rename_axis("year").rename_axis("rate", axis=1).round(2).to_string())
