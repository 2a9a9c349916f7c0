"""
An animal's track: steps and turns of two behaviors
===================================================

A collar tells every hour where an animal is. Three places give the length of a step and the angle by which the animal
turned. While it feeds, steps are short and turns go anywhere; while it travels, steps are long and it goes straight
on. A hidden Markov model with Gamma steps and von Mises turns is the standard of the field. The track is simulated,
with gaps where the collar was silent.

.. topic:: References

   Michelot, T., Langrock, R. and Patterson, T. A. (2016), moveHMM: an R package for the statistical modelling of animal
   movement data using hidden Markov models. *Methods in Ecology and Evolution* 7, 1308-1315.
"""

# %%
# From places to steps and turns
# ------------------------------
# A turn needs three places in a row, so that a missing place leaves two steps and three turns missing.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skvbem import VBHMM
from skvbem.emissions import Gamma, VonMises
from skvbem.plotting import FittedColumnsDisplay, PseudoResidualsDisplay

rng = np.random.default_rng(12)
n = 600
state = np.zeros(n, dtype=int)  # 0 feeds, 1 travels
for t in range(1, n):
    state[t] = state[t - 1] if rng.random() < [0.92, 0.88][state[t - 1]] else 1 - state[t - 1]
length = rng.gamma(np.array([1.3, 5.0])[state], np.array([0.25, 0.45])[state])
turn = rng.vonmises(np.array([np.pi, 0.0])[state], np.array([0.5, 5.0])[state])
heading = np.cumsum(turn)
places = np.cumsum(np.column_stack([length * np.cos(heading), length * np.sin(heading)]), axis=0)
places[rng.random(n) < 0.03] = np.nan  # kilometers

steps = np.diff(places, axis=0)
direction = np.arctan2(steps[:, 1], steps[:, 0])
turns = np.append(np.nan, np.remainder(np.diff(direction) + np.pi, 2 * np.pi) - np.pi)
track = pd.DataFrame({"step": np.hypot(*steps.T), "turn": turns})
print(track.describe().round(2).to_string())

# %%
# How many behaviors?
# -------------------
# The bound on the evidence is compared over numbers of states. Steps and turns are two groups of columns, independent
# given the state.
columns = [("steps", Gamma(), ["step"]), ("turns", VonMises(), ["turn"])]
fits = {k: VBHMM(k, emission=columns, n_init=4, random_state=0).fit(track) for k in (1, 2, 3)}
for k, fit in fits.items():
    print(f"{k} states: lower bound {fit.lower_bound_:.1f}")
model = fits[max(fits, key=lambda k: fits[k].lower_bound_)]
print(model.summary(track))

# %%
# Where the animal did what
# -------------------------
# The most probable state of each hour, drawn at its place, is the true one in 98 hours of 100.
travels = int(model.parameters_["steps"]["means"].argmax())
found = (model.predict(track) == travels).astype(int)
print(f"hours whose behavior is found: {(found == state[1:]).mean():.1%}")
figure, ax = plt.subplots(figsize=(4.4, 5.4), layout="constrained")
ax.plot(*places.T, color="#b8c1cb", linewidth=0.7)
for which, color, name in ((0, "#2f6ea5", "feeds"), (1, "#d55e00", "travels")):
    ax.scatter(*places[1:][found == which].T, s=6, color=color, label=name)
ax.set(aspect="equal", xlabel="km east", ylabel="km north")
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))

# %%
# Do steps and turns look like that?
# ----------------------------------
# Bars are what was observed, and lines what the states expect; turns are a rose.
FittedColumnsDisplay.from_estimator(model, track)

# %%
# Forecast pseudo-residuals of each column are normal and independent of each other if the model is right, as here. With
# a single state the steps follow each other, which no model of independent hours explains.
PseudoResidualsDisplay.from_estimator(model, track)
for k, fit in fits.items():
    print(k, "states, autocorrelation of the residuals of steps at lag 1:", end=" ")
    print(f"{fit.pseudo_residuals(track).autocorrelations(1)[1, 0]:.2f}")
plt.show()
