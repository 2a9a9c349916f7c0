"""
English forwards and backwards
==============================

How much of English can a hidden Markov model learn from a page of *Alice's Adventures in Wonderland*, and what becomes
of it if it has more states than a page can fill? Beal asks this in section 3.5.2 of his thesis, of three ways to learn:
maximum likelihood, the mode of the posterior, and variational Bayes. They are trained on lines of the book, and asked
two things about lines they have not seen: how probable these are, and which of a line and its reverse is English.

This page repeats the experiment in small; its lines, priors and sizes are its own. More lines show the same, at more
states.

.. topic:: References

   Beal, M. J. (2003), *Variational Algorithms for Approximate Bayesian Inference*, PhD thesis, University College
   London, chapter 3.

   MacKay, D. J. C. (1997), *Ensemble Learning for Hidden Markov Models*, technical report, University of Cambridge.
"""

# %%
# Lines
# -----
# The text is folded to 27 symbols, a to z and the space. A sequence is a line of at most 30 symbols, a table with one
# row for each symbol and one column; a list of lines is what ``VBHMM`` takes.

import textwrap

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skvbem import VBHMM
from skvbem.datasets import load_alice
from skvbem.emissions import Categorical

text = load_alice()
symbols = sorted(set(text))
lines = textwrap.wrap(text, 30)
sequences = [np.array(list(line))[:, None] for line in lines]
print(len(lines), "lines;", *lines[1:5], sep="\n")


def split(seed, n_train=40, n_test=400):
    """Lines to train on and lines to test on, drawn from the whole book."""
    drawn = np.random.default_rng(seed).permutation(len(sequences))
    return [sequences[i] for i in drawn[:n_train]], [sequences[i] for i in drawn[n_train : n_train + n_test]]


# %%
# Three ways to learn
# -------------------
# Forty lines may have no j and no z. That these are symbols, too, must be said: ``categories`` lists them. All three
# ways have the same prior, a total concentration of one that the 27 symbols of a state share, and as much that is
# shared by the states which may follow it. Such a prior expects few symbols in a state and few ways on from it.
#
# Maximum likelihood does not look at the prior. The mode is taken in natural coordinates, where it always exists (in
# coordinates of probabilities it does not, for concentrations below one). Variational Bayes starts where the mode
# ended: from ``predict_proba``, the states of all symbols. We come back to this.

settings = {
    "emission": Categorical(concentration_prior=1 / len(symbols)),
    "categories": {"x0": symbols},
    "startprob_prior": "unit",
    "transmat_prior": "unit",
    "n_init": 3,
    "random_state": 0,
}
numbers = [1, 2, 4, 8, 16, 32]
methods = {"ml": "maximum likelihood", "map": "mode of the posterior", "vb": "variational Bayes"}


def fits_of(train, k):
    fits = {method: VBHMM(k, method=method, **settings).fit(train) for method in ("ml", "map")}
    fits["vb"] = VBHMM(k, **settings).set_params(init=fits["map"].predict_proba(train)).fit(train)
    return fits


def tested(fit, test):
    """Nats per symbol of each line, and how often a line is found more probable than its reverse."""
    lengths = np.array([len(line) for line in test])
    forwards = fit.score_samples(test) / lengths
    backwards = fit.score_samples([line[::-1] for line in test]) / lengths
    same = np.isclose(forwards, backwards, rtol=0, atol=1e-9)
    right = np.where(same, 0.5, forwards > backwards)
    return {
        "forwards": np.median(forwards),
        "backwards": np.median(backwards),
        "right": right.mean(),
        "impossible": np.isneginf(forwards).mean(),
    }


results, fits = [], {}
for seed in range(3):
    train, test = split(seed)
    for k in numbers:
        fits[seed, k] = fits_of(train, k)
        results += [
            {"seed": seed, "k": k, "method": method, **tested(fit, test)} for method, fit in fits[seed, k].items()
        ]
results = pd.DataFrame(results)
table = results.groupby(["method", "k"])[["forwards", "backwards", "right", "impossible"]].mean()
print(table.round(3).to_string())

# %%
# Where a fit calls a line impossible its log probability is minus infinity, and so is any mean with it. Maximum
# likelihood does so with every line that holds a symbol which the forty lines did not: that is why the table and the
# pictures show medians over lines. A line as impossible as its reverse counts as half right.

colors = {"ml": "#d55e00", "map": "#009e73", "vb": "#2f6ea5"}
figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
for method, name in methods.items():
    of_method = results[results["method"] == method]
    for ax, what in zip(axes, ("forwards", "right")):
        mean = of_method.groupby("k")[what].mean()
        ax.plot(mean.index, mean, "o-", color=colors[method], label=name)
        ax.plot(of_method["k"], of_method[what], ".", color=colors[method], alpha=0.5)
reverse = results[results["method"] == "vb"].groupby("k")["backwards"].mean()
axes[0].plot(reverse.index, reverse, "--", color=colors["vb"], label="variational Bayes, lines reversed")
axes[0].set(ylabel="median nats per symbol of new lines", ylim=(-4.2, -2.1))
axes[1].set(ylabel="share of lines told from their reverse", ylim=(0.4, 1.02))
for ax in axes:
    ax.set_xscale("log", base=2)
    ax.set(xlabel="states", xticks=numbers, xticklabels=numbers)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].legend(frameon=False, fontsize=8)
plt.show()

# %%
# On the left, the log probability of a new line. With few states the three ways agree. Then maximum likelihood falls
# out of the picture (the table has the numbers). It takes transitions and symbols that it has not met for impossible,
# or nearly so, and every new line has some. The other two do not fall: states that forty lines cannot fill cost them
# little. The dashed line, far below, is that of the same lines reversed.
#
# On the right, lines told from their reverse. One state knows nothing of order. Two know next to nothing either,
# because a chain of two states looks the same in both directions of time; only the ends of a line say more. From four
# states on nearly every line is told, by all three ways. Maximum likelihood errs most, partly in lines that it calls
# impossible in both directions.
#
# The mode does as well as variational Bayes, a trifle better even. It is no wonder: in natural coordinates the mode of
# a Dirichlet posterior is the mean of the probabilities, and so its point is smoothed by the prior as the mean of
# q(theta) is. But the mode does not give the next picture.
#
# How many states? The training lines know
# ----------------------------------------
# The bound of variational Bayes is one on the log evidence: how probable the model made the forty lines before it saw
# them. It needs no test lines.

figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
scratch = {k: VBHMM(k, **settings).fit(split(0)[0]) for k in numbers}
n_symbols = scratch[1].n_samples_
axes[0].plot(numbers, [fits[0, k]["ml"].log_likelihood_ / n_symbols for k in numbers], "o-", color=colors["ml"])
axes[0].set_title("maximum likelihood: log likelihood", loc="left", size=10)
from_mode = [fits[0, k]["vb"].lower_bound_ / n_symbols for k in numbers]
axes[1].plot(numbers, from_mode, "o-", color=colors["vb"], label="started where the mode ended")
from_scratch = [scratch[k].lower_bound_ / n_symbols for k in numbers]
axes[1].plot(numbers, from_scratch, "s:", color="0.5", label="from its own three starts")
axes[1].set_title("variational Bayes: bound on the log evidence", loc="left", size=10)
axes[1].legend(frameon=False, fontsize=8)
for ax in axes:
    ax.set_xscale("log", base=2)
    ax.set(xlabel="states", xticks=numbers, xticklabels=numbers, ylabel="nats per symbol of the training lines")
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

chosen = numbers[int(np.argmax(from_mode))]
for seed in range(3):
    by_bound = max(numbers, key=lambda k, seed=seed: fits[seed, k]["vb"].lower_bound_)
    of_seed = results[(results["seed"] == seed) & (results["method"] == "vb")].set_index("k")["forwards"]
    print(f"forty lines, draw {seed}: the bound says {by_bound} states; new lines say {of_seed.idxmax()}")
new = split(0)[1]
for where, fit in {"from the mode": fits[0, chosen]["vb"], "from its own starts": scratch[chosen]}.items():
    print(f"{chosen} states, {where}: {tested(fit, new)['forwards']:.3f} nats per symbol of new lines")

# %%
# The likelihood only ever rises. The bound, shown for the first draw of forty lines, has its top where new lines have
# theirs; in one draw of three it has it earlier, at half as many states.
#
# The grey line is what variational Bayes finds from its own starts. In sequences of few symbols its first steps are
# the hardest: symbols and ways on that a state hardly has yet are held down further, before the state has found what
# it is for. The mode's first steps are gentler, and from where it ends variational Bayes gets farther. Which of two
# fits is the better needs no guess: the one whose bound is higher. New lines agree, by the figures printed above; from
# its own starts alone, variational Bayes would stand below the mode in the first picture.
#
# What the states are
# -------------------
# Each row is a state of the fit the bound chose, and shows the probabilities of the symbols in it. Rows are ordered by
# their most probable symbol.

best = fits[0, chosen]["vb"]
emission = best.parameters_["categorical"]["probabilities"][:, 0]
used = [k for k in np.argsort(emission.argmax(axis=1), kind="stable") if best.counts_[k] > 1]
figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.2), width_ratios=[27, len(used)], layout="constrained")
shown = {"cmap": "Blues", "vmin": 0, "vmax": 1, "aspect": "auto"}
axes[0].imshow(emission[used], **shown)
axes[0].set(xticks=range(27), xticklabels=["␣", *symbols[1:]], xlabel="symbol", ylabel="state", yticks=[])
axes[0].set_title("symbols of each state", loc="left", size=10)
image = axes[1].imshow(best.transmat_[np.ix_(used, used)], **shown)
axes[1].set(xticks=[], yticks=[], xlabel="next state")
axes[1].set_title("where it leads", loc="left", size=10)
figure.colorbar(image, ax=axes, label="probability", fraction=0.03)
plt.show()

# %%
# The space and most vowels have a state to themselves; consonants share states with those that stand in the same
# places. Two states write a t: one that h follows, and one that ends words. What follows n is d or g, what follows h
# is most often e, and after y there is a space. So the fit writes, too:

drawn, _ = best.sample([60] * 4, random_state=1)
for line in drawn:
    print("".join(line[:, 0]))
