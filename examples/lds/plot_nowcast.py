"""
A quarter that is not yet known
===============================

Output is published by quarter, weeks after its end. Indicators come by month. What do they say of the present quarter,
how sure is that, and what did the last number change? The series are simulated, so that the answers can be checked.

.. topic:: References

   Banbura, M., Giannone, D., Modugno, M. and Reichlin, L. (2013), Now-casting and the real-time data flow, *Handbook of
   Economic Forecasting* 2, 195-237.
"""

# %%
# Months and quarters
# -------------------
# A state of the economy moves all series. Indicators see the state of their month, and growth of output sees the mean
# of three months. The table has a row for each month: a quarterly figure has its cell in the last month of its quarter,
# and all other cells are missing.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skvbem import VBLinearDynamicalSystem
from skvbem.plotting import ForecastDisplay

rng = np.random.default_rng(5)
months = pd.period_range("2005-01", "2024-12", freq="M", name="month")
state = np.zeros(len(months) + 2)
for t in range(1, len(state)):
    state[t] = 0.8 * state[t - 1] + 0.6 * rng.normal()
weights = {"industry": 0.8, "sales": 0.7, "orders": 0.6}
complete = pd.DataFrame(
    {name: w * state[2:] + np.sqrt(1 - w**2) * rng.normal(size=len(months)) for name, w in weights.items()}, months
)
of_quarter = (state[2:] + state[1:-1] + state[:-2]) / 3
growth = 0.5 + 0.6 * of_quarter + 0.25 * rng.normal(size=len(months))
complete["growth"] = np.where(months.month % 3 == 0, growth, np.nan)
print(complete.tail(4).round(2).to_string())

# %%
# One state
# ---------
# This is what was known at the end of 2024: growth of the last quarter is missing, and two of the indicators of
# December are.

known = complete.copy()
known.loc["2024-12", ["sales", "orders", "growth"]] = np.nan
model = VBLinearDynamicalSystem(1, random_state=0).fit(known)
of_state = model.loadings_[:, 0] ** 2 / (1 - model.transition_[0, 0] ** 2)
share = of_state / (of_state + model.noise_variance_)
print(pd.Series(share, known.columns, name="share of variance of the state").round(2).to_string())
print("left of the state after a month:", model.transition_.round(2).item(), "in truth 0.8")

# %%
# The nowcast
# -----------
# The cell of the present quarter is imputed like any other missing cell. Its variance is that of the figure that comes,
# averaged over draws of the parameters. `forecast` goes on to the quarters after it.


def nowcast(table, month="2024-12"):
    """Growth of the quarter that ends in a month, and its standard deviation."""
    filled, variance = model.impute(table, return_variance=True)
    at = table.index.get_loc(pd.Period(month))
    return filled["growth"].iloc[at], np.sqrt(variance[at, -1])


mean, deviation = nowcast(known)
print(f"growth of the quarter: {mean:.2f} ± {1.96 * deviation:.2f}, in truth {complete['growth'].iloc[-1]:.2f}")
ahead = model.forecast(known, 6, level=0.95).to_frame()
ahead = ahead[ahead["column"] == "growth"].set_index("time")[["expected", "lower", "upper"]]
print(ahead.iloc[[2, 5]].round(2).to_string())

ForecastDisplay.from_estimator(model, known, 6, ["industry", "growth"], last=36)
plt.show()

# %%
# News
# ----
# Sales and orders of December come in, one after the other. The fit stays; the same parameters read a longer table, so
# that all of a change is due to the number. A number says something new as far as it differs from what was expected of
# it. The change of the nowcast is that surprise times a weight.

table, rows, last = known.copy(), [], (mean, deviation)
for name in ("sales", "orders"):
    expected = model.impute(table)[name].iloc[-1]
    table.loc["2024-12", name] = complete.loc["2024-12", name]
    new = nowcast(table)
    surprise = table[name].iloc[-1] - expected
    rows.append((name, surprise, (new[0] - last[0]) / surprise, new[0] - last[0], *new))
    last = new
columns = ["number", "surprise", "weight", "news", "nowcast", "deviation"]
print(pd.DataFrame(rows, columns=columns).set_index("number").round(3).to_string())

# %%
# How good are nowcasts?
# ----------------------
# Nowcasts are made for each quarter of the last five years, of which one, two or three months are known. The parameters
# are those of the fifteen years before.

model.fit(complete[:"2019-12"])
errors = {}
for quarter in pd.period_range("2020Q1", "2024Q4", freq="Q"):
    for lag in (2, 1, 0):
        end = quarter.asfreq("M", "end")
        then = complete[:end].copy()
        then.iloc[len(then) - lag :] = np.nan
        then.loc[end, "growth"] = np.nan
        mean, deviation = nowcast(then, end)
        errors.setdefault(3 - lag, []).append((complete.loc[end, "growth"] - mean, deviation))
for n_known, pairs in errors.items():
    error, deviation = np.transpose(pairs)
    print(f"months known: {n_known}, root mean square error {np.sqrt(np.mean(error**2)):.2f},", end=" ")
    print(f"{np.mean(np.abs(error) < 1.96 * deviation):.0%} within 95 % intervals")
without = complete["growth"]["2020-01":].std()
print(f"standard deviation of growth: {without:.2f}")

# %%
# What is approximate
# -------------------
# The model reads growth as a measurement of the last month of its quarter, where it is one of the mean of three. A row
# for each quarter, with a column for each month of each indicator, has no such error: its states are those of quarters.
# Months not yet known are missing cells there, too.

quarters = complete[["industry", "sales", "orders"]].copy()
quarters["quarter"], quarters["month"] = months.asfreq("Q"), (months.month - 1) % 3 + 1
wide = quarters.pivot(index="quarter", columns="month")
wide.columns = [f"{name} {month}" for name, month in wide.columns]
wide["growth"] = complete["growth"].dropna().to_numpy()
by_quarter = VBLinearDynamicalSystem(1, random_state=0).fit(wide[:"2019Q4"])
errors = []
for quarter in wide["2020Q1":].index:
    then = wide[:quarter].copy()
    then.loc[quarter, ["industry 3", "sales 3", "orders 3", "growth"]] = np.nan
    errors.append(wide.loc[quarter, "growth"] - by_quarter.impute(then)["growth"].iloc[-1])
print(f"months known: 2, rows of quarters, root mean square error {np.sqrt(np.mean(np.square(errors))):.2f}")
