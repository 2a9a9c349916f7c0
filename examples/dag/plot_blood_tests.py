"""
Two hidden variables behind a medical examination
=================================================

442 diabetes patients were examined, and a year later it was measured how far their disease had progressed. A mixture
sorts them into kinds, and every kind has its own mean of every column. But a patient may be of one kind in one respect
and of another in another. Here a network has two hidden variables, each above the columns that it explains. It asks
whether the second one pays for itself, which columns belong to which, and what each column says of them.

.. topic:: References

   Efron, B., Hastie, T., Johnstone, I. and Tibshirani, R. (2004), Least angle regression, *Annals of Statistics* 32,
   407-499.
"""

# %%
# The table
# ---------
# The sex is a category, all else are measurements. One cell in twenty is taken out, as if it had not been measured:
# what is missing is summed out, exactly.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from skvbem import VBNetwork
from skvbem.plotting import ClassProfileDisplay, DAGDisplay

names = {
    "sex": "sex",
    "age": "age",
    "bmi": "body mass",
    "bp": "blood pressure",
    "s6": "blood sugar",
    "target": "progression",
    "s3": "HDL",
    "s5": "triglycerides",
    "s1": "cholesterol",
    "s2": "LDL",
}
patients = load_diabetes(as_frame=True, scaled=False).frame[list(names)].rename(columns=names)
patients["sex"] = patients["sex"].map({1.0: "first", 2.0: "second"})  # the source does not say which is which
patients = patients.mask(np.random.default_rng(0).random(patients.shape) < 0.05)
print(patients.head().to_string())

# %%
# One hidden variable, or two?
# ----------------------------
# A network without a structure has one hidden variable above all columns: a mixture. Beside it stand networks in which
# ``health`` is above what is measured of the body, ``fats`` above two fats of the blood, and of which fats depend on
# health, or do not. For two further fats we do not know: they are tried below either.

body, fats = ["sex", "age", "body mass", "blood pressure", "blood sugar", "progression"], ["cholesterol", "LDL"]
known = {column: ["health"] for column in body} | {column: ["fats"] for column in fats}
options = {"n_init": 1, "init": "random", "tol": 1e-2, "random_state": 0}
fits = {f"one hidden variable, {k} states": VBNetwork(latents=k, **options).fit(patients) for k in (2, 4)}
two = {"health": 2, "fats": 3}
for where, parent in (("below health", "health"), ("below fats", "fats")):
    structure = {**known, "HDL": [parent], "triglycerides": [parent]}
    fits[f"two, apart; HDL {where}"] = VBNetwork(structure, latents=two, **options).fit(patients)
    linked = {**structure, "fats": ["health"]}
    fits[f"two, linked; HDL {where}"] = VBNetwork(linked, latents=two, **options).fit(patients)
for name, fit in fits.items():
    print(f"{name:34} bound {fit.lower_bound_:10.1f} nats, {fit.n_free_parameters_:3} free parameters")

# %%
# All bounds have all their constants, so that they compare. Two hidden variables with few parameters say more than one
# with many: a state of one has to repeat what it says of all columns, a state of two only what differs. HDL and
# triglycerides go with the body, although they are fats of the blood like the others. And the two variables are not
# independent.

best = max(fits.values(), key=lambda fit: fit.lower_bound_)
DAGDisplay.from_estimator(best)
plt.show()

# %%
# Widths of arrows are what a parent tells of its child.
#
# What each column says
# ---------------------
# States of one hidden variable side by side; columns below the other one are averaged over it, and differ as far as the
# two go together. In one state of health patients are heavier, their blood pressure and sugar are higher, HDL is lower,
# and the disease has gone further.

for latent in best.latent_names_:
    ClassProfileDisplay.from_estimator(best, latent=latent)
plt.show()

# %%
# The same can be asked in numbers, of any values at hand. A blood test alone, without the fats that ``fats`` is above,
# says much of health, and of how far the disease will have gone:

for given in ({"HDL": 35.0, "triglycerides": 5.4}, {"HDL": 65.0, "triglycerides": 4.0}):
    health = best.query("health", given).values
    means = best.parameters_["progression"]["means"][:, 0]
    print(
        f"{given}: probabilities of the states of health {health.round(2)}, progression {health @ means:.0f} expected"
    )
