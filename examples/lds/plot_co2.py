"""
Carbon dioxide in the air, with gaps
====================================

The air at Mauna Loa has been measured since 1958. Five of the 526 months to the end of 2001 have no value. What was it,
how sure is that, and what comes next? The season is an input: two waves, one of a year and one of half a year.

.. topic:: References

   Keeling, C. D. and Whorf, T. P. (2004), *Atmospheric CO2 concentrations derived from flask air samples at sites in
   the SIO network*, Carbon Dioxide Information Analysis Center, Oak Ridge National Laboratory.
"""

# %%
# A level that walks, and a season
# --------------------------------
# Output inputs are known numbers on which a column depends besides the states: here sines and cosines of the month. The
# one state is left with what is no season.
#
# The noise of this series is less than a thousandth of its variance, nearly all of which is the rise over the decades.
# By default no share of noise is likelier than another. `noise_rate_prior` says a share beforehand: 1, about as much
# as there is variance, is far off here, and costs hundreds of nats.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skvbem import VBLinearDynamicalSystem
from skvbem.datasets import load_co2
from skvbem.plotting import ForecastDisplay

air = load_co2(as_frame=True).data
dates = pd.to_datetime(air.index).rename("year")
months = np.arange(len(air) + 36)
angle = 2 * np.pi * months / 12
waves = np.column_stack([np.sin(angle), np.cos(angle), np.sin(2 * angle), np.cos(2 * angle)])
known, to_come = waves[: len(air)], waves[len(air) :]
print("missing:", ", ".join(air.index[air["co2"].isna()]))

options = {"n_init": 1, "tol": 1e-2, "random_state": 0}
model = VBLinearDynamicalSystem(1, **options).fit(air, output_inputs=known)
misled = VBLinearDynamicalSystem(1, noise_rate_prior=1.0, **options).fit(air, output_inputs=known)
for name, fit in {"any share": model, "all is noise": misled}.items():
    print(f"{name:<12}: {fit.lower_bound_:.1f} nats, noise of {np.sqrt(fit.noise_variance_[0]):.2f} ppm")

# %%
# Bounds of models that differ in their priors compare, too: that is how one learns that a prior was wrong.
#
# The gaps
# --------
# Missing cells are imputed from the months around them and from the season. Their variance is that of a measurement in
# this month, the noise included, averaged over draws of the parameters.

filled, variance = model.impute(air, output_inputs=known, return_variance=True)
gone = air["co2"].isna().to_numpy()
report = filled[gone].assign(deviation=np.sqrt(variance[gone, 0]))
print(report.round(2).to_string())

# %%
# The picture has the years around the gaps: gray bands are two deviations wide to either side of what is expected.

around = slice(0, 84)
ForecastDisplay.from_estimator(
    model, air[around], 6, output_inputs=known[around], future_output_inputs=waves[84:90], times=dates[around]
)
plt.show()

# %%
# Can the bands be trusted? Take away two whole years, and a month in ten besides, and fit to what is left. They are
# rather too wide than too narrow.

rng = np.random.default_rng(0)
hidden = ~gone & ((rng.random(len(air)) < 0.1) | np.isin(dates.year, [1975, 1976]))
less = air.mask(pd.Series(hidden, index=air.index))
refitted = VBLinearDynamicalSystem(1, **options).fit(less, output_inputs=known)
guess, spread = refitted.impute(less, output_inputs=known, return_variance=True)
errors, deviations = (guess - air)["co2"].to_numpy()[hidden], np.sqrt(spread[hidden, 0])
print(f"{hidden.sum()} months taken away: root mean square error {np.sqrt(np.mean(errors**2)):.2f} ppm,", end=" ")
print(f"{np.mean(np.abs(errors) < 1.96 * deviations):.0%} within 95 % bands")

# %%
# The season
# ----------
# What the waves do in each month, in parts per million: most in May, before the leaves of the northern hemisphere are
# out.

season = pd.Series(waves[:12] @ model.output_input_[0], index=dates[:12].strftime("%b"))
print(season.round(1).to_string())

# %%
# What comes next
# ---------------
# The waves of the months to come are known. The state grows, as its pole is outside the unit circle: that is what the
# rise of these decades says, but no forecast far ahead should be made of it, and the summary says so. The picture shows
# the last years of a sequence that is asked about as a whole: cut off at 1994 it would begin with a state near 0.

print("pole:", round(model.spectral_radius_, 4))
display = ForecastDisplay.from_estimator(model, air, 36, output_inputs=known, future_output_inputs=to_come, times=dates)
display.axes_[0].set(xlim=(pd.Timestamp("1994"), pd.Timestamp("2005")), ylim=(350, 390))
display.axes_[1].set(ylim=(220, 330))
plt.show()
