"""
Many short sequences with gaps and inputs
=========================================

Sixty patients, each measured for two to six weeks, with two cells in five missing. A drug was given on some days. No
single patient says much; together they tell how the body moves, what the drug does, and what would come of giving it.
The truth is simulated here, so that every answer can be checked.
"""

# %%
# The patients
# ------------
# Two hidden states turn slowly into each other. Three measurements see both of them. The dose of a day moves the states
# of that day.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skvbem import StructureSearchCV, VBLinearDynamicalSystem
from skvbem.plotting import ForecastDisplay, PolesDisplay

rng = np.random.default_rng(0)
transition = np.array([[0.85, 0.35], [-0.35, 0.85]])  # turns in 16 days
effect = np.array([1.5, 0.0])
loadings = np.array([[4.0, 0.0], [0.0, 2.0], [3.0, -3.0]])
names, offset, noise = ["pulse", "fatigue", "pain"], np.array([80.0, 40.0, 50.0]), np.array([5.0, 3.0, 6.0])


def patient(n_days):
    """What was measured of a patient, complete, and the doses."""
    dose = (rng.random(n_days) < 0.2) * rng.integers(1, 4, n_days)
    states = rng.normal(size=(n_days, 2))
    for day in range(1, n_days):
        states[day] += transition @ states[day - 1] + effect * dose[day]
    rows = offset + states @ loadings.T + noise * rng.normal(size=(n_days, 3))
    return pd.DataFrame(rows, columns=names), dose.astype(float)


complete, doses = zip(*[patient(n_days) for n_days in rng.integers(14, 43, 60)])
measured = [table.mask(rng.random(table.shape) < 0.4) for table in complete]
print(f"{len(measured)} patients, {sum(map(len, measured))} days,", end=" ")
print(f"{np.mean(np.concatenate(measured)[:, 0] != np.concatenate(complete)[:, 0]):.0%} of the pulses are missing")

# %%
# How many states, and does the dose matter?
# ------------------------------------------
# A list of tables has a sequence in each item, and inputs come as such a list. The bound has all its constants, so that
# it compares numbers of states, and a model with inputs with one without. The true model has two states.

grid = {"n_components": [1, 2, 3]}
search = StructureSearchCV(VBLinearDynamicalSystem(), grid, rescoring=False, random_state=0)
search.fit(measured, inputs=list(doses))
without = VBLinearDynamicalSystem(2, random_state=0).fit(measured)
for k, score in zip(search.cv_results_["param_n_components"], search.cv_results_["mean_test_score"]):
    print(f"{k} states: {score:.1f} nats")
print(f"2 states, doses not known: {without.lower_bound_:.1f} nats")

# %%
# What is known of the system
# ---------------------------
# States may be turned and reflected without any change of what is measured, so neither their loadings nor the effect
# on them can be set beside the truth. Quantities that do not depend on the turn can: the poles, the noise, and the
# effect of a dose on each measurement on the following days, :math:`C A^h B`.

model = search.best_estimator_
pole = np.linalg.eigvals(transition)[0]
print(f"a turn takes {2 * np.pi / abs(np.angle(np.linalg.eigvals(model.transition_)[0])):.1f} days,", end=" ")
print(f"in truth {2 * np.pi / abs(np.angle(pole)):.1f}")
print("standard deviations of the noise:", np.sqrt(model.noise_variance_).round(1), "in truth", noise)

PolesDisplay.from_estimator(model)
plt.show()

# %%

days = np.arange(15)


def response(transition, effect, loadings):
    """What a dose of 1 does to each measurement on the days after it."""
    return np.array([loadings @ np.linalg.matrix_power(transition, day) @ effect for day in days])


found = response(model.transition_, model.input_[:, 0], model.loadings_)
truth = response(transition, effect, loadings)
print("largest difference of responses:", np.abs(found - truth).max(axis=0).round(2))

_, axes = plt.subplots(1, 3, figsize=(9, 2.8), layout="constrained", sharex=True)
for ax, name, of_fit, of_truth in zip(axes, names, found.T, truth.T):
    ax.plot(days, of_fit, color="#2f6ea5", linewidth=1.8, label="fitted")
    ax.plot(days, of_truth, "k--", linewidth=1, label="truth")
    ax.axhline(0, color="#b8c1cb", linewidth=0.8, zorder=0)
    ax.set(title=name, xlabel="days after a dose of 1")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].legend(frameon=False)
plt.show()

# %%
# The gaps
# --------
# Cells that are missing are not left out with their day: what else was measured then, and before and after, says what
# they were. Standardized by its own deviation, an error should be one in the root mean square.

filled, variances = model.impute(measured, inputs=list(doses), return_variance=True)
gone = np.isnan(np.concatenate(measured))
errors = (np.concatenate(filled) - np.concatenate(complete))[gone]
deviations = np.sqrt(np.concatenate(variances)[gone])
means = np.broadcast_to(np.nanmean(np.concatenate(measured), axis=0), gone.shape)[gone]
print(f"root mean square error of imputed cells: {np.sqrt(np.mean(errors**2)):.2f}", end=", ")
print(f"of column means: {np.sqrt(np.mean((means - np.concatenate(complete)[gone]) ** 2)):.2f}")
print(f"errors in units of their deviations: {np.sqrt(np.mean((errors / deviations) ** 2)):.2f}")

# %%
# What if?
# --------
# Patient 0 goes home today. What comes without the drug, and what with a dose of 3 on each of the next three days?
# Forecasts take the inputs of the days to come.

none, treated = np.zeros((15, 1)), np.zeros((15, 1))
treated[:3] = 3.0
ForecastDisplay.from_estimator(
    model, measured, 15, inputs=list(doses), future_inputs=treated, sequence=0, levels=(0.5, 0.95)
)
plt.show()

given = {"inputs": [doses[0]], "n_steps": 15}
ahead = {
    "without": model.forecast([measured[0]], future_inputs=none, **given),
    "with": model.forecast([measured[0]], future_inputs=treated, **given),
}
table = pd.DataFrame(
    {which: each.mean[0, :, 0] for which, each in ahead.items()}, index=pd.RangeIndex(1, 16, name="day")
)
print("expected pulse:", table.round(1).iloc[[0, 2, 5, 9, 14]].to_string(), sep="\n")
