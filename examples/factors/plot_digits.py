"""
How a digit varies
==================

People write a seven in many ways, and not in the ways in which they write a one. A mixture of factor analyzers says
both at once: which kinds of pictures there are, and along which few directions each kind varies. Nobody tells it which
picture is which digit. Beside it, one analyzer for each digit: how many directions does each have?

.. topic:: References

   Ghahramani, Z. and Beal, M. J. (2000), Variational inference for Bayesian mixtures of factor analysers, *Advances in
   Neural Information Processing Systems* 12.
"""

# %%
# Kinds of pictures
# -----------------
# 1797 pictures of 8 by 8 pixels, of which those that vary are columns. Twelve components, since a digit may be written
# in two ways; first without factors, so that pixels of a kind are independent, then with three.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

from skvbem import VBMixture
from skvbem.emissions import FactorGaussian

digits = load_digits()
varies = digits.data.std(axis=0) > 0.5
X, digit = digits.data[:, varies], digits.target

fits = {
    q: VBMixture(12, emission=FactorGaussian(q), n_init=1, init="k-means++", tol=0.01, random_state=0).fit(X)
    for q in (0, 3)
}
for q, fit in fits.items():
    agreement = adjusted_rand_score(digit, fit.predict(X))
    print(f"{q} factors: lower bound {fit.lower_bound_:.0f} nats, agreement with digits {agreement:.2f}")

# %%
# Directions of variation
# -----------------------
# Each column of pictures is a component: its mean in the middle, and the mean less and plus two standard deviations of
# its two largest factors. A slant, a bar that is there or not, a loop that is wide or narrow: each kind has its own.
# Some kinds lead from one digit to another: ones with a waist become eights.

model = fits[3]
parameters, shown_of = model.parameters_["factor"], model.predict(X)
counts = pd.crosstab(shown_of, digit)
order = np.argsort(counts.to_numpy().argmax(axis=1), kind="stable")


def picture(values):
    """Columns as pixels of a picture."""
    pixels = np.zeros(64)
    pixels[varies] = values
    return pixels.reshape(8, 8)


rows = ["first, less", "first, more", "mean", "second, less", "second, more"]
figure, axes = plt.subplots(len(rows), len(order), figsize=(11, 5.2), layout="constrained")
for column, k in enumerate(order):
    mean, loadings = parameters["means"][k], parameters["loadings"][k]
    first, second = loadings[:, np.argsort(-(loadings**2).sum(axis=0))[:2]].T
    away = [-2 * first, 2 * first, 0 * first, -2 * second, 2 * second]
    for row, by in enumerate(away):
        axes[row, column].imshow(picture(mean + by), cmap="gray_r", vmin=0, vmax=16)
        axes[row, column].set(xticks=[], yticks=[])
    axes[0, column].set_title(f"mostly {counts.to_numpy()[k].argmax()}", fontsize=9)
for row, name in enumerate(rows):
    axes[row, 0].set_ylabel(name, fontsize=8)
figure.suptitle("Twelve kinds of pictures, and how each varies")
plt.show()

# %%
# How many directions?
# --------------------
# Three were our choice. The bound chooses if asked to: with ``n_factors="auto"`` factors are born as long as that
# raises it, and deleted where they are needless. Here for each digit alone, one component each.

numbers, gains = [], []
for k in range(10):
    of_digit = X[digit == k]
    spread = of_digit.std(axis=0) > 0.25
    one = VBMixture(emission=FactorGaussian("auto"), tol=0.01, random_state=0).fit(of_digit[:, spread])
    numbers.append(one.n_factors_[0])
    gains.append(one.lower_bound_ - one.moves_[0].lower_bound)

_, axes = plt.subplots(layout="constrained")
axes.bar(np.arange(10), numbers, color="steelblue")
axes.set(xticks=np.arange(10), xlabel="digit", ylabel="factors", title="Directions in which each digit varies")
plt.show()
print(pd.DataFrame({"factors": numbers, "nats gained": np.round(gains)}).T.to_string())
