"""
Seasons drive transitions
=========================

The carbon dioxide over Mauna Loa rises from autumn to spring, and falls in summer. A chain of two states finds both
from monthly changes. This page lets the month drive its transitions, and looks a year ahead.

.. topic:: References

   Keeling, C. D. and Whorf, T. P. (2004), *Atmospheric CO2 concentrations derived from flask air samples at sites in
   the SIO network*, Carbon Dioxide Information Analysis Center, Oak Ridge National Laboratory.
"""

# %%
# The fit
# -------
#
# Sine and cosine say where in the year a month is. At "arrival" they are those of the month in which the air changed.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skvbem import VBHMM
from skvbem.datasets import load_co2
from skvbem.emissions import Softmax

air = load_co2(as_frame=True).data
month = pd.PeriodIndex(air.index, freq="M").month.to_numpy()
months = air.diff().rename(columns={"co2": "change"})
months["sin"], months["cos"] = np.sin(2 * np.pi * month / 12), np.cos(2 * np.pi * month / 12)
season = Softmax(["sin", "cos"], at="arrival")
model = VBHMM(2, emission={"gaussian": ["change"]}, transitions=season, random_state=0).fit(months)
print(model.summary(method="vb"))

# %%
# Is it worth its parameters?
# ---------------------------
#
# The same chain with constants in place of the months has the same priors.

without = VBHMM(2, emission={"gaussian": ["change"]}, transitions=season, random_state=0)
without.fit(months.assign(sin=0.0, cos=0.0))
print(f"with months {model.lower_bound_:.1f}, without {without.lower_bound_:.1f} nats")

# %%
# A year ahead
# ------------
#
# Rows to come have covariates, and nothing else yet. The chain with constants soon forgets where it was.

ahead = pd.DataFrame({"change": np.nan, "sin": months["sin"].to_numpy()[10:34], "cos": months["cos"].to_numpy()[10:34]})
rising = int(model.parameters_["gaussian"]["means"].argmax())
with_months = model.predict_proba(pd.concat([months, ahead]))[-24:, rising]
rising = int(without.parameters_["gaussian"]["means"].argmax())
flat = ahead.assign(sin=0.0, cos=0.0)
with_constants = without.predict_proba(pd.concat([months.assign(sin=0.0, cos=0.0), flat]))[-24:, rising]

_, ax = plt.subplots(layout="constrained")
ax.plot(np.arange(1, 25), with_months, "o-", label="months drive transitions")
ax.plot(np.arange(1, 25), with_constants, "o-", label="nothing does")
ax.set(xlabel="months after December 2001", ylabel="probability that the air gains", ylim=(0, 1))
ax.legend(loc="upper center", bbox_to_anchor=(0.5, 1.12), ncols=2)
