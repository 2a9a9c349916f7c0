"""
Sentences with gaps
===================

In five hundred lines of *Alice's Adventures in Wonderland* every seventh letter or so is illegible. This page learns a
hidden Markov model from such lines as they are, in a pipeline. It chooses the number of states by held-out lines. It
fills the gaps and says how sure each filling is. And it finds lines that do not belong.
"""

# %%
# Illegible lines
# ---------------
# An underscore stands for a letter, or a space, that cannot be read. Three hundred lines are to learn from, two
# hundred to try what was learned; of these we keep the complete text apart.

import textwrap

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skvbem import VBHMM
from skvbem.datasets import load_alice

rng = np.random.default_rng(0)
text = load_alice()
symbols = sorted(set(text))
complete = rng.permutation(textwrap.wrap(text, 60))[:500].tolist()


def with_gaps(line):
    return "".join("_" if gone else symbol for symbol, gone in zip(line, rng.random(len(line)) < 0.15))


lines = [with_gaps(line) for line in complete]
train, test, truth = lines[:300], lines[300:], complete[300:]
print(*train[:4], sep="\n")

# %%
# A pipeline
# ----------
# ``VBHMM`` takes a list of tables, one row for each step. A first step of the pipeline makes these of lines, so that
# all else is said of lines: scikit-learn splits lists by their items, and an item is a whole line.
#
# ``missing_values`` says what an underscore is, ``categories`` that all 27 symbols are possible, whether a fold has
# them or not. A step without its symbol is summed out exactly: its state is still known a little, from both sides.


def as_tables(lines):
    """One column, one row for each symbol, of every line."""
    return [np.array(list(line))[:, None] for line in lines]


model = VBHMM(categories={"x0": symbols}, missing_values="_", n_init=1, tol=0.01, random_state=0)
pipeline = make_pipeline(FunctionTransformer(as_tables), model)

# %%
# How many states, and which prior?
# ---------------------------------
# The prior of transitions is either flat, or a total concentration of one that all states share, which expects few ways
# on from each. The score is the log predictive probability of lines held out, a step, gaps included: these add
# nothing. While searching, one start each will do; the best gets four.

grid = {"vbhmm__n_components": [1, 3, 10, 20, 30], "vbhmm__transmat_prior": [1.0, "unit"]}
search = GridSearchCV(pipeline, grid, cv=KFold(3), refit=False).fit(train)
best = pipeline.set_params(**search.best_params_, vbhmm__n_init=4).fit(train)
print(search.best_params_)
print(f"{search.best_score_:.3f} nats a step held out, {best.score(test):.3f} in the lines that no search has seen")

results = pd.DataFrame(search.cv_results_)
figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for prior, color in {1.0: "#d55e00", "unit": "#2f6ea5"}.items():
    of_prior = results[results["param_vbhmm__transmat_prior"] == prior]
    states, score = of_prior["param_vbhmm__n_components"].astype(int), of_prior["mean_test_score"]
    ax.plot(states, score, "o-", color=color, label=f"transmat_prior={prior!r}")
ax.set(xlabel="states", ylabel="nats a step, lines held out", xticks=grid["vbhmm__n_components"])
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()

# %%
# Up to twenty states each makes lines held out more probable; after that it is little. The priors differ only where
# states are many: then there are more transitions than three hundred lines can tell of.
#
# Filling the gaps
# ----------------
# ``impute`` fills each gap with its most probable symbol given the whole line, to the left and to the right.

tables = best[:-1].transform(test)
hmm = best[-1]
filled = ["".join(table[:, 0]) for table in hmm.impute(tables)]
for gaps, guess, true in zip(test[:4], filled, truth):
    print(f"{gaps}\n{guess}\n{true}\n")

# %%
# How good is that? One state knows how frequent symbols are and fills all gaps with the most frequent one, the space. A
# table of neighbors looks up which symbol stood most often between the two that stand beside the gap, as far as
# these are legible.

one = VBHMM(1, categories={"x0": symbols}, missing_values="_").fit(as_tables(train))
between = {}
for line in train:
    for left, symbol, right in zip("_" + line, line, line[1:] + "_"):
        if symbol != "_":
            for seen in {(left, right), (left, "_"), ("_", right), ("_", "_")}:
                between.setdefault(seen, []).append(symbol)
most_often = {seen: max(sorted(set(found)), key=found.count) for seen, found in between.items()}


def by_neighbors(line):
    sides = zip("_" + line, line, line[1:] + "_")
    return "".join(
        most_often.get((left, right), most_often["_", "_"]) if symbol == "_" else symbol
        for left, symbol, right in sides
    )


gap = np.array(list("".join(test))) == "_"
right = np.array(list("".join(truth)))[gap]
fillings = {
    "one state: always the space": ["".join(table[:, 0]) for table in one.impute(tables)],
    "table of neighbors": [by_neighbors(line) for line in test],
    f"{hmm.n_components} states": filled,
}
found = {name: np.mean(np.array(list("".join(lines)))[gap] == right) for name, lines in fillings.items()}
print(pd.Series(found).map("{:.0%}".format).to_string(), f"\n\nof {gap.sum()} gaps")

# %%
# The table knows one symbol on each side; a state may know more of what came before, as long as it led there.
#
# How sure?
# ---------
# A filling is a guess. Its probability is at hand: the probabilities of the states of a gap, ``predict_proba``, times
# those of the symbols in each state. Are they right, too? Gaps are put together by the probability of the best guess,
# and we count how often it was the true symbol.

of_symbols = hmm.parameters_["categorical"]["probabilities"][:, 0]
probabilities = (np.concatenate(hmm.predict_proba(tables)) @ of_symbols)[gap]
sure, hit = probabilities.max(axis=1), np.array(symbols)[probabilities.argmax(axis=1)] == right
group = np.digitize(sure, np.quantile(sure, np.linspace(0, 1, 9)[1:-1]))
share = np.array([[sure[group == g].mean(), hit[group == g].mean(), np.sum(group == g)] for g in range(8)])

figure, ax = plt.subplots(figsize=(4.4, 4), layout="constrained")
ax.plot([0, 1], [0, 1], color="0.7", lw=1)
error = np.sqrt(share[:, 1] * (1 - share[:, 1]) / share[:, 2])
ax.errorbar(share[:, 0], share[:, 1], error, fmt="o", color="#2f6ea5", capsize=3)
ax.set(xlabel="probability of the best guess", ylabel="share of guesses that are right", xlim=(0, 1), ylim=(0, 1))
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# They are right: eight groups, about as often right as they say, and if anything a little too modest where they are
# sure.
#
# Lines that do not belong
# ------------------------
# ``score_samples`` has the log predictive probability of each line. Over the number of its legible symbols it says how
# well a line fits to what was learned. Among the two hundred we hide four others.

strangers = {
    "Latin": "gallia est omnis divisa in partes tres quarum unam incolunt",
    "German": "habe nun ach philosophie juristerei und medizin durchaus",
    "backwards": truth[0][::-1],
    "keyboard": "asdf jkl qwer uiop zxcv nm asdf jkl qwer uiop",
}


def fitness(lines):
    return best.score_samples(lines) / np.array([len(line) - line.count("_") for line in lines])


usual, unusual = fitness(test), fitness(list(strangers.values()))
figure, ax = plt.subplots(figsize=(8, 3.2), layout="constrained")
ax.hist(usual, bins=30, color="#9bbcd6")
for name, at in zip(strangers, unusual):
    ax.axvline(at, color="#d55e00")
    ax.annotate(name, (at, 0.97), (-2, 0), xycoords=("data", "axes fraction"), textcoords="offset points",
                rotation=90, ha="right", va="top")  # fmt: skip
ax.set(xlabel="nats per legible symbol", ylabel="lines")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Latin and German are about as improbable as the least probable lines of the book: they have vowels and consonants in
# places where English may have them. A keyboard and a line read backwards are far away. The line read backwards has
# just the symbols of English, and differs by their order alone.

print("the least probable of the two hundred:")
for at in np.argsort(usual)[:5]:
    print(f"{usual[at]:.2f}  {test[at]}")
