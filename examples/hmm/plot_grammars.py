"""
Three grammars, and how many states they need
=============================================

Strings of three kinds: in some, *abc* repeats, in some *acb*, and some are a and b at random. Nobody says which string
is which. A hidden Markov model needs seven states for them: three for each of the orders, one for the random strings.
We offer it twelve. Maximum likelihood and variational Bayes differ in what they make of the other five. The idea of
the experiment is that of section 3.5.1 of Beal's thesis.

.. topic:: References

   Beal, M. J. (2003), *Variational Algorithms for Approximate Bayesian Inference*, PhD thesis, University College
   London, chapter 3.
"""

# %%
# The strings
# -----------
# Seven strings of each kind, of 10 to 39 symbols, which begin anywhere in their cycle. A sequence is a table with one
# row for each step and one column; strings are categories.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.patches import Rectangle

from skvbem import VBHMM
from skvbem.emissions import Categorical

kinds = ["abc", "acb", "random"]


def drawn(rng, kind):
    length = rng.integers(10, 40)
    if kind == "random":
        return rng.choice(["a", "b"], size=(length, 1))
    return np.array(list(kind))[(rng.integers(3) + np.arange(length)) % 3][:, None]


rng = np.random.default_rng(0)
kind_of = np.repeat(kinds, 7)
strings = [drawn(rng, kind) for kind in kind_of]
for at in (0, 1, 7, 8, 14, 15):
    print(f"{kind_of[at]:8}", "".join(strings[at][:, 0]))

# %%
# Twelve states
# -------------
# With ``"unit"`` the prior shares a total concentration of one among the states that may follow a state; the symbols
# of a state share one, too. Such a prior expects few ways on, and few symbols. Variational Bayes starts at the mode of
# the posterior (``method="map"``), from the probabilities of the states of all symbols. With a prior as sharp as this
# one its own first steps would empty states before these have found what they are for.


def bayes_of(strings, k):
    prior = {"startprob_prior": "unit", "transmat_prior": "unit", "emission": Categorical(1 / 3)}
    mode = VBHMM(k, method="map", n_init=50, random_state=0, **prior).fit(strings)
    return VBHMM(k, init=mode.predict_proba(strings), **prior).fit(strings)


def likely_of(strings, k):
    return VBHMM(k, method="ml", n_init=20, random_state=0).fit(strings)


bayes, likely = bayes_of(strings, 12), likely_of(strings, 12)
for name, fit in {"variational Bayes": bayes, "maximum likelihood": likely}.items():
    print(f"{name}: {len(fit.latent_states_['state'].in_use)} of 12 states in use")

# %%
# What they look like
# -------------------
# Squares have the area of a probability: of the next state, then of the symbol. Bars are the steps that a state takes
# in the strings, by the kind of string. States in use are shown, along their cycles.

colors = dict(zip(kinds, ["#2f6ea5", "#d55e00", "0.6"]))


def steps_of(fit):
    """Expected steps in each state, by kind of string."""
    shares = fit.predict_proba(strings)
    return np.array([sum(share.sum(axis=0) for share, of in zip(shares, kind_of) if of == kind) for kind in kinds])


def along_cycles(fit):
    """States in use by the kind of string they are for, each followed by the one that most often comes next."""
    left, order = list(np.argsort(steps_of(fit).argmax(axis=0), kind="stable")), []
    left = [k for k in left if k in fit.latent_states_["state"].in_use]
    while left:
        k = left[0]
        while k in left:
            order.append(k)
            left.remove(k)
            k = int(fit.transmat_[k].argmax())
    return order


def squares(ax, table, **labels):
    for (i, j), share in np.ndenumerate(table):
        side = 0.95 * np.sqrt(share)
        ax.add_patch(Rectangle((j - side / 2, i - side / 2), side, side, color="0.25", lw=0))
    ax.set(xlim=(-0.5, table.shape[1] - 0.5), xticks=range(table.shape[1]), **labels)
    ax.tick_params(length=0)


def show(fit, name):
    order = along_cycles(fit)
    n = len(order)
    emission = fit.parameters_["categorical"]["probabilities"][order, 0]
    _, axes = plt.subplots(1, 3, figsize=(9.5, 4), width_ratios=[n, 3, 1.5 * n - 3], sharey=True, layout="constrained")
    squares(axes[0], fit.transmat_[np.ix_(order, order)], xlabel="next state", ylabel="state", xticklabels=[])
    squares(axes[1], emission, xlabel="symbol", xticklabels=fit.categories_["x0"])
    left = np.zeros(n)
    for kind, steps in zip(kinds, steps_of(fit)[:, order]):
        axes[2].barh(range(n), steps, left=left, color=colors[kind], label=kind)
        left += steps
    axes[2].set(xlabel="steps", xlim=(0, 200), ylim=(n - 0.5, -0.5), yticks=range(n))
    axes[2].tick_params(axis="y", labelleft=False, length=0)
    axes[0].tick_params(labelleft=False)
    axes[2].spines[["top", "right"]].set_visible(False)
    axes[0].set_title(f"{name}: {n} states", loc="left", size=11)
    axes[2].legend(frameon=False, ncols=3, loc="lower right", bbox_to_anchor=(1, 1))
    plt.show()


show(bayes, "Variational Bayes")

# %%
# Seven states, and the grammars can be read off: a cycle of three, each with one symbol, another in the other
# order, and a state that stays with itself and says a or b. Nothing leads from one grammar to another. The other
# five states were emptied.

show(likely, "Maximum likelihood")

# %%
# Maximum likelihood has found the cycles. But it uses every state it was offered: the five it does not need describe
# chance, as if there were something to describe.
#
# How many states are offered does not matter
# -------------------------------------------
# It does not matter to variational Bayes. We repeat the fits with other numbers of states, and try them on new
# strings, a hundred of each kind.

numbers = [3, 5, 7, 9, 12, 16]
new = [drawn(rng, kind) for kind in np.repeat(kinds, 100)]
rows = []
for k in numbers:
    for name, fit in {"Bayes": bayes_of(strings, k), "likelihood": likely_of(strings, k)}.items():
        in_use = len(fit.latent_states_["state"].in_use)
        found = {"in use": in_use, "training": fit.score(strings), "new": fit.score(new)}
        rows.append({"offered": k, "by": name, **found})
table = pd.DataFrame(rows).pivot(index="offered", columns="by")
print(table.round(3).to_string())

figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
for name, color, label in [("likelihood", "#d55e00", "maximum likelihood"), ("Bayes", "#2f6ea5", "variational Bayes")]:
    axes[0].plot(numbers, table["in use", name], "o-", color=color, label=label)
    axes[1].plot(numbers, table["new", name], "o-", color=color)
    axes[1].plot(numbers, table["training", name], "o:", color=color, mfc="white")
axes[0].set(ylabel="states in use")
axes[0].legend(frameon=False)
axes[1].set(ylabel="nats per symbol")
axes[1].set_title("full: new strings, dotted: training strings", loc="left", size=10)
for ax in axes:
    ax.set(xlabel="states offered", xticks=numbers)
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# From seven states on, variational Bayes stays where it is, as good in new strings as in those it was trained on.
# Maximum likelihood takes whatever is offered: every state makes the training strings more probable and, beyond seven,
# new ones less. At seven it is a little ahead, because it calls everything impossible that it has not seen. That
# happens to be right here, and for as long as nobody offers too many states.
