"""
How long does a state last?
===========================

An animal rests, feeds and travels. How long does it keep to each? A Markov chain answers before it has seen a row: it
leaves a state with the same probability at every step, so that most stays are short. This page fits stays of any
length to a series where they matter, and to one where they do not. The first series is simulated, so that the truth is
known; the second are the earthquakes of the years 1900 to 2006.
"""

# %%
# Stays that matter
# -----------------
# A simulated animal is watched every ten minutes for ten days: the logarithm of its speed. Whatever it does seldom ends
# at once. A stay lasts 1 step and a negative binomial number of shape 6 more. In the mean a rest lasts 20 steps, a meal
# 12 and a journey 8.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skvbem import VBHMM
from skvbem.datasets import load_earthquakes
from skvbem.durations import Hazards, Stages
from skvbem.plotting import DurationsDisplay

rng = np.random.default_rng(20261128)
means = {"rests": 20, "feeds": 12, "travels": 8}
speeds = {"rests": 0.0, "feeds": 2.5, "travels": 5.0}
path = ["rests"]
while len(path) < 1440:
    path += [path[-1]] * rng.negative_binomial(6, 6 / (5 + means[path[-1]]))
    path.append(str(rng.choice([name for name in means if name != path[-1]])))
steps = pd.DataFrame({"speed": rng.normal([speeds[name] for name in path[:1440]])})

# %%
# Which number of states? ``"auto"`` splits and joins states as long as the bound on the log evidence rises.

found = VBHMM("auto", random_state=0).fit(steps)
print(pd.DataFrame([(move.kind, move.n_components, move.objective) for move in found.moves_]).round(1).to_string())

# %%
# Then families of stays, all from the states that were found. ``Hazards(1)`` has geometric stays under the prior of
# mean stays that the others have; that of a plain chain is another.

states = found.predict_proba(steps)
families = {"geometric": Hazards(1), "hazards": Hazards(32), "two stages": Stages(2), "three stages": Stages(3)}
fits = {
    name: VBHMM(found.n_components_, durations=family, n_init=1, init=states).fit(steps)
    for name, family in families.items()
}
bounds = pd.Series({name: fit.lower_bound_ for name, fit in fits.items()})
print((bounds - bounds["geometric"]).round(1).to_string())

# %%
# Durations matter: hazards that change with the age of a stay are some twenty nats ahead of the geometric family, three
# equal stages thirty. Each picture has the probability that a stay lasts longer than so many steps, with a band of
# 90 %.
# The dashed line is that of a geometric stay of the same mean, which leaves the band.

hazards = fits["hazards"]
DurationsDisplay.from_estimator(hazards, level=0.9)
plt.show()
print(hazards.duration_distribution(level=0.9))

# %%
# Stays that do not
# -----------------
# In calm years and violent ones the earth stays for five to ten years at a time. Does a calm that has lasted for long
# end the sooner?

quakes = load_earthquakes(as_frame=True).data
families = {**families, "plain chain": "geometric"}
fits = {
    name: VBHMM(3, emission="poisson", durations=family, random_state=0).fit(quakes)
    for name, family in families.items()
}
print(pd.Series({name: fit.lower_bound_ for name, fit in fits.items()}).round(1).to_string())

# %%
# No family is ahead of the geometric one. Beside the plain chain three stages seem to gain three nats. That is the
# prior: ones in all cells of `transmat_prior` expect a state of three to be left two times of three, and years of
# calm do not look like that. The bands say the same. They hold the dashed line nearly everywhere, and are wide: there
# were only ten changes or so to learn from.

DurationsDisplay.from_estimator(fits["hazards"], level=0.9)
plt.show()
