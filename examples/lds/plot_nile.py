"""
The level of the Nile
=====================

The flow of the Nile at Aswan was measured in each year from 1871 to 1970. How much of it is a level that lasts, and how
much is chance of the year? Is one level enough, and what do the next years bring?

.. topic:: References

   Cobb, G. W. (1978), The problem of the Nile: conditional solution to a changepoint problem, *Biometrika* 65, 243-251.

   Durbin, J. and Koopman, S. J. (2012), *Time Series Analysis by State Space Methods*, 2nd edition, Oxford.
"""

# %%
# A level and noise
# -----------------
# One hidden state follows its own last value, :math:`x_t = a x_{t-1} + w_t`, and a year's flow is an offset, the state
# times its loading, and noise. The flow is in units of 10\\ :sup:`8` cubic meters.

import matplotlib.pyplot as plt

from skvbem import VBLinearDynamicalSystem
from skvbem.datasets import load_nile
from skvbem.plotting import ForecastDisplay, PolesDisplay

flow = load_nile(as_frame=True).data
model = VBLinearDynamicalSystem(1, random_state=0).fit(flow)
print(model.summary(flow, method="vb"))

# %%
# The state keeps about four fifths of itself from one year to the next, and the noise has about two fifths of the
# variance. The sign of the state is that of a positive loading: it rises with the flow.
#
# Below, dots are measurements, the line is what the state says of them given all years. The level fell at about 1899,
# when the first dam at Aswan was begun. The fan has what is expected of the ten years to come: it goes back to the
# offset.

ForecastDisplay.from_estimator(model, flow, 10, times=flow.index)
plt.show()

# %%
# How fast is the level forgotten?
# --------------------------------
# The eigenvalues of the transition matrix, its poles, say how states move. This one is inside the unit circle, on the
# real axis: the level returns, without turning. The cloud is of draws from q(theta).

PolesDisplay.from_estimator(model)
plt.show()

# %%
# How many states?
# ----------------
# Each number of states is a model of its own, and the bound on the log evidence says how well it is supported. One
# state leads: a second costs more than it explains.

fits = {k: VBLinearDynamicalSystem(k, random_state=0).fit(flow) for k in (1, 2, 3)}
for k, fit in fits.items():
    print(f"{k} states: {fit.lower_bound_:.1f} nats, largest pole {fit.spectral_radius_:.2f}")

# %%
# A bound lies below the evidence, by more the larger the model is. A sampler says by how much.

evidence = model.log_evidence(flow, kind="auto")
print(f"one state: {evidence.value:.1f} ± {evidence.standard_error:.1f} nats, as a bound {model.lower_bound_:.1f}")

# %%
# Automatic relevance determination begins with more states than needed, learns how strongly each of them is bound to 0,
# and takes away those without which the bound is higher.

learned = VBLinearDynamicalSystem(3, learn_prior="ard", random_state=0).fit(flow)
print(f"states that are left of 3: {learned.n_components_}, bound {learned.lower_bound_:.1f} nats")

# %%
# How sure are the forecasts?
# ---------------------------
# After 25 years not much is known of the parameters. Intervals that average over them are wider than those at one
# point. Here both hold seven of the ten years to come, fewer than they say: the level fell in the fourth of these,
# which no forecast from the years before could know. The guide has how often they hold in many series of this kind.

early, late = flow.iloc[:25], flow.iloc[25:35]
short = VBLinearDynamicalSystem(1, random_state=0).fit(early)
for predictive in ("average", "mean"):
    short.set_params(predictive=predictive)
    ahead = short.forecast(early, 10, level=0.95)
    width = (ahead.upper - ahead.lower)[0, :, 0]
    inside = (ahead.lower[0] <= late.to_numpy()) & (late.to_numpy() <= ahead.upper[0])
    print(f"{predictive:>8}: widths {width[[0, 4, 9]].round()}, {inside.sum()} of 10 years inside")
