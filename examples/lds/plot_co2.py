"""
Carbon dioxide in the air: trend, season and gaps
=================================================

The air at Mauna Loa has been measured since 1958. Five of the 526 months to the end of 2001 have no value. What was it,
how sure is that, is there a season, does it change, and what comes next? Blocks say what the series is made of.

.. topic:: References

   Harvey, A. C. (1989), *Forecasting, structural time series models and the Kalman filter*, Cambridge.

   Keeling, C. D. and Whorf, T. P. (2004), *Atmospheric CO2 concentrations derived from flask air samples at sites in
   the SIO network*, Carbon Dioxide Information Analysis Center, Oak Ridge National Laboratory.
"""

# %%
# Months
# ------
# The months are an index of pandas. Methods read it, so that forecasts have dates. Months without a value are no rows
# here, as in many files. They become steps without an observed cell.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skvbem import TimeAxis, VBLinearDynamicalSystem
from skvbem.datasets import load_co2
from skvbem.plotting import BlocksDisplay, ForecastDisplay
from skvbem.structural import Season, Trend

complete = load_co2(as_frame=True).data
complete.index = pd.PeriodIndex(complete.index, freq="M", name="month")
air = complete.dropna()
filled = TimeAxis(gaps="missing")  # without a warning that five months are missing
print("missing:", ", ".join(map(str, complete.index.difference(air.index))))

# %%
# Which blocks?
# -------------
# A trend is a level and a slope, both of which may move. A season is a sum of waves: all six, or the first ones. Each
# set of blocks is a model of its own, whose bound on the log evidence has all of its constants.

sets = {
    "trend alone": [Trend()],
    "trend and season": [Trend(), Season(12)],
    "... that never changes": [Trend(), Season(12, noise=False)],
    "... of four waves": [Trend(), Season(12, harmonics=4)],
    "... and a steady slope": [Trend(slope_noise=False), Season(12, harmonics=4)],
}
fits = {
    name: VBLinearDynamicalSystem(blocks=blocks, random_state=0).fit(air, time=filled) for name, blocks in sets.items()
}
for name, fit in fits.items():
    print(f"{name:<22}: {fit.lower_bound_:.1f} nats")

# %%
# The season is beyond doubt, by hundreds of nats. A season that changes is better supported than one that never does,
# and four waves show all of it. A slope that never changes has the highest bound, by 6 nats. Forecasts are compared
# below.

model = fits["... of four waves"]
deviations = {name: round(float(value[0]), 3) for name, value in model.state_deviation_.items()}
print("standard deviations of moves in a month, ppm:", deviations)
print(f"of the noise: {np.sqrt(model.noise_variance_[0]):.3f} ppm")

# %%
# The parts
# ---------
# The trend and the season given all months, with bands of two standard deviations to either side.

BlocksDisplay.from_estimator(model, air, time=filled)
plt.show()

# %%
# The rise became faster over the decades, and the season higher, by a tenth. `decompose` has a value for each row that
# is given; give it the missing months as rows, and it has them, too.

parts = model.decompose(complete)
season = pd.Series(parts["season of 12"].mean[:, 0], complete.index)
heights = season.groupby(season.index.year).agg(lambda year: year.max() - year.min())
print(heights.loc[[1960, 1970, 1980, 1990, 2000]].round(2).to_string())

# %%
# The gaps
# --------
# Missing cells are imputed from the months around them and from other years. Their variance is that of a measurement in
# this month, the noise included, averaged over draws of the parameters.

imputed, variance = model.impute(complete, return_variance=True)
gone = complete["co2"].isna().to_numpy()
print(imputed[gone].assign(deviation=np.sqrt(variance[gone, 0])).round(2).to_string())

# %%
# Can the bands be trusted? Take away two whole years, and a month in ten besides, and fit to what is left.

rng = np.random.default_rng(0)
hidden = ~gone & ((rng.random(len(complete)) < 0.1) | np.isin(complete.index.year, [1975, 1976]))
less = complete.mask(pd.Series(hidden, index=complete.index))
refitted = VBLinearDynamicalSystem(blocks=sets["... of four waves"], random_state=0).fit(less)
guess, spread = refitted.impute(less, return_variance=True)
errors, deviations = (guess - complete)["co2"].to_numpy()[hidden], np.sqrt(spread[hidden, 0])
print(f"{hidden.sum()} months taken away: root mean square error {np.sqrt(np.mean(errors**2)):.2f} ppm,", end=" ")
print(f"{np.mean(np.abs(errors) < 1.96 * deviations):.0%} within 95 % bands")

# %%
# What comes next
# ---------------
# The forecast has the months to come.

ahead = model.forecast(air, 36, time=filled)
print(ahead.to_frame("wide").iloc[[0, 11, 23, 35]].round(1).to_string())
ForecastDisplay.from_estimator(model, air, 36, time=filled, last=84)
plt.show()

# %%
# Would such forecasts have been right? Six years are held back after each of four ends. The parameters are those of the
# months before.

ends = pd.PeriodIndex(["1980-12", "1985-12", "1990-12", "1995-12"], freq="M")
for name in ("... of four waves", "... and a steady slope"):
    inside, widths = [], []
    for end in ends:
        early, late = air[:end], complete["co2"][end + 1 : end + 72]
        before = VBLinearDynamicalSystem(blocks=sets[name], n_init=1, random_state=0).fit(early, time=filled)
        told = before.forecast(early, len(late), time=filled, level=0.95).to_frame("wide")
        inside.append(((told["lower"] <= late) & (late <= told["upper"])).mean())
        widths.append((told["upper"] - told["lower"]).iloc[-1])
    print(f"{name:<22}: inside 95 % intervals", " ".join(f"{share:4.0%}" for share in inside), end=", ")
    print(f"widths after six years {np.mean(widths):.1f} ppm")

# %%
# With a steady slope the rise over six years is too sure: it was faster at the end than before. A bound weighs how each
# month follows from those before it, and sees a slow change of slope only little by little. Who looks years ahead keeps
# the slope free.
