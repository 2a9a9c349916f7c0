"""
Two hidden variables behind a panel study
=========================================

In the 1950s James Coleman asked 3398 schoolboys the same two questions twice: do you belong to the leading crowd of
your school, and do you think well of it? Answers are noisy. A boy who says "yes" the first time and "no" the second may
have changed, or he may have been in doubt all along. What a boy answers is observed; what he *is* is not: it is a
hidden (latent) variable.

How many kinds of boys do the answers speak of? The usual answer is a latent class model, one hidden variable with a few
states. Goodman (1974) found a better one, two linked hidden variables. Here we compare these stories with
:class:`~skvbem.VBDiscreteDAG`, read the winner's tables, and draw it.

.. topic:: References

   Coleman, J. S. (1964), *Introduction to Mathematical Sociology*, Free Press.

   Goodman, L. A. (1974), Exploratory latent structure analysis using both identifiable and unidentifiable models,
   *Biometrika* 61, 215-231.
"""

# %%
# The data
# --------
# One row per boy, one column per answer; 1 is a positive answer, 0 a negative one.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skvbem import VBDiscreteDAG
from skvbem.datasets import load_coleman_panel
from skvbem.plotting import BoundDisplay, DAGDisplay

answers = load_coleman_panel(as_frame=True).data
answers.columns = ["member 1", "attitude 1", "member 2", "attitude 2"]
print(f"{len(answers)} boys. The five most frequent rows:\n")
print(answers.value_counts().head(5).to_string())
print("\nPositive answers:")
print(answers.astype(int).mean().map("{:.0%}".format).to_string())

# %%
# How many boys answered a question differently the second time?

for question in ("member", "attitude"):
    changed = (answers[f"{question} 1"].astype(int) != answers[f"{question} 2"].astype(int)).mean()
    print(f"{changed:.1%} of the boys gave two different answers about {question}")

# %%
# The rival stories
# -----------------
# A story is a graph: an arrow from a hidden variable to an answer says that the answer depends on it. We name the
# hidden variables and their numbers of states; whatever is not an arrow is independent.
#
# - *No link*: four unrelated answers.
# - *Classes*: one hidden variable, "the kind of boy", behind all four answers.
# - *Two hidden variables*: belonging, behind both answers about membership, and liking, behind both answers about
#   attitude. Either separate, or linked by an arrow.
# - *Anything goes*: no hidden variable, but arrows between all answers, so that every table of 16 frequencies can be
#   matched exactly. It explains nothing, and is the yardstick: a story worth telling must beat it.

questions = [
    ("belonging", "member 1"),
    ("belonging", "member 2"),
    ("liking", "attitude 1"),
    ("liking", "attitude 2"),
]
columns = list(answers.columns)
stories = {
    "no link": {"structure": []},
    "2 classes": {"latents": 2},
    "3 classes": {"latents": 3},
    "4 classes": {"latents": 4},
    "2 hidden, separate": {"structure": questions, "latents": ["belonging", "liking"]},
    "2 hidden, linked": {"structure": [*questions, ("belonging", "liking")], "latents": ["belonging", "liking"]},
    "anything goes": {"structure": [(a, b) for j, b in enumerate(columns) for a in columns[:j]]},
}
fits = {name: VBDiscreteDAG(**story, n_init=50, random_state=0).fit(answers) for name, story in stories.items()}

# %%
# The estimator's ``lower_bound_`` is a lower bound on the log probability that a story gave to these data before it
# saw them, with all that it did not know averaged out. Nothing has to be subtracted for the number of parameters: a
# story with too many spreads its probability over data that did not happen. Bounds of different stories can be
# compared directly. A difference of d nats makes odds of exp(d) to 1, if both stories seemed equally likely at first.
# (What a story did not know are its tables of probabilities. By default all tables are equally probable beforehand.)

best = max(fits, key=lambda name: fits[name].lower_bound_)
print(f"{'story':<20}{'parameters':>11}{'bound (nats)':>14}{'behind':>9}{'odds':>12}")
for name, fit in fits.items():
    behind = fits[best].lower_bound_ - fit.lower_bound_
    odds = f"1 : {np.exp(behind):.0f}" if behind < 10 else f"1 : 10^{behind / np.log(10):.0f}"
    print(f"{name:<20}{fit.n_free_parameters_:>11}{fit.lower_bound_:>14.2f}{behind:>9.2f}{odds:>12}")

# %%
# Two linked hidden variables win, and their link is needed: without it the bound falls far behind.
#
# Read the odds with one caution. They compare *bounds*. With nothing hidden, as in the first and the last line, the
# bound is exact. With hidden variables the true figure is higher than printed, and the more so the more hidden states a
# story has to spare. So it is certain that the linked story beats "anything goes" by the margin printed or more; that
# it beats four classes is likely, but the margin may well be smaller than it looks.

exact = fits["anything goes"].lower_bound_
lead = fits["2 hidden, linked"].lower_bound_ - exact
print(f"The linked story leads by {lead:.2f} nats or more: odds of at least {np.exp(lead):.0f} to 1")

# %%
# Does it fit?
# ------------
# Odds say which story is best among those told, not whether it is good. The classical check compares the 16
# frequencies with those that the story expects: G² is about as large as its degrees of freedom if the story holds. It
# is defined for maximum likelihood, which the same estimator gives with ``method="ml"``.

maximum = {
    name: VBDiscreteDAG(**story, method="ml", n_init=50, random_state=0).fit(answers) for name, story in stories.items()
}
indices = {name: fit.goodness_of_fit(answers) for name, fit in maximum.items()}
print(f"{'story':<20}{'G²':>9}{'degrees of freedom':>20}{'starts at best':>16}")
for name, index in indices.items():
    starts = maximum[name].restarts_
    print(f"{name:<20}{abs(index.g2):>9.2f}{index.degrees_of_freedom:>20}{starts.n_best:>10} of {len(starts.bounds)}")

# %%
# Goodman printed 249.50 for two classes and 1.27 for two linked hidden variables. Four classes match everything,
# which is no merit: they have more parameters than the table has free frequencies, hence the negative degrees of
# freedom. "4 classes" is "anything goes" in disguise.
#
# Where do two classes go wrong? The bivariate residual of two columns compares their two-by-two table with the
# expected one, per degree of freedom. Above 4 the two hang together more than the story says.

residuals = pd.DataFrame({name: indices[name].bivariate_residuals for name in ("2 classes", "3 classes", best)})
residuals.index = [f"{a} - {b}" for a, b in residuals.index]
print(residuals.round(2).to_string())

# %%
# The two answers about attitude agree far more than two classes say. The classes, states of a hidden variable that is
# called h0 unless we name it, are used up by membership:

tables = fits["2 classes"].tables_
print(f"{'positive answers':<20}" + "".join(f"{name:>12}" for name in columns))
for state, share in enumerate(tables["h0"].values):
    print(
        f"class {state}, {share:.0%} of boys"
        + "".join(f"{tables[name]['h0':state, name:1]:>12.0%}" for name in columns)
    )

# %%
# One hidden variable cannot sort the boys in two ways at once. The linked story does, and leaves no residual.
#
# The picture
# -----------
# Ellipses are hidden, boxes are answers. The wider an arrow, the more its end depends on its start.

model = fits["2 hidden, linked"]
DAGDisplay.from_estimator(model)
plt.show()

# %%
# What the hidden states mean
# ---------------------------
# States of a hidden variable are numbered in no particular order. We call a state "high" if more boys in it answered
# positively. ``summary(X)`` has every probability with the interval that holds 95 % of its posterior, by draws that
# take the hidden states' uncertainty into account.

summary = model.summary(answers).to_frame().set_index(["table", "row", "column"])
high = {
    latent: int(np.argmax([model.tables_[f"{question} 1"][latent:state, f"{question} 1" : 1] for state in (0, 1)]))
    for latent, question in (("belonging", "member"), ("liking", "attitude"))
}


def percent(table, row, state):
    cell = summary.loc[(table, row, str(state))]
    return f"{cell.estimate:.0%} ({cell.lower:.0%} to {cell.upper:.0%})"


print(f"{percent('belonging', 'share', high['belonging'])} of the boys belong.\n")
print("Positive answers:                first time          second time")
for latent, question in (("belonging", "member"), ("liking", "attitude")):
    for word, state in (("high", high[latent]), ("low", 1 - high[latent])):
        cells = [percent(f"{question} {wave} | {latent}", f"{latent}={state}", 1) for wave in (1, 2)]
        print(f"  {question:<10} {latent + ' ' + word:<17} {cells[0]:<19} {cells[1]}")

# %%
# Answers about membership are reliable, answers about attitude much less so. The two hidden variables go together,
# but they are not the same thing:

joint = model.query(["belonging", "liking"])
print(f"{'':<18}{'liking high':>13}{'liking low':>13}")
for word, b in (("high", high["belonging"]), ("low", 1 - high["belonging"])):
    boys = [len(answers) * joint["belonging":b, "liking":k] for k in (high["liking"], 1 - high["liking"])]
    print(f"{'belonging ' + word:<18}{boys[0]:>8.0f} boys{boys[1]:>8.0f} boys")
for word, b in (("belong", high["belonging"]), ("do not", 1 - high["belonging"])):
    share = percent("liking | belonging", f"belonging={b}", high["liking"])
    print(f"Of those who {word}, {share} like the leading crowd.")

# %%
# Nobody needs to have changed
# ----------------------------
# In this story a boy has one belonging and one liking, the same in both waves. Yet it expects about as many different
# answers as there were; inconsistent answers alone do not show that anyone changed his mind. (It does not show that
# nobody did, either: a story in which some boys change could be told with more hidden variables.)

for question in ("member", "attitude"):
    first, second = f"{question} 1", f"{question} 2"
    expected = 1 - np.trace(model.query([first, second]).values)
    observed = (answers[first].astype(int) != answers[second].astype(int)).mean()
    print(f"two different answers about {question:<9} expected {expected:.1%}, observed {observed:.1%}")

# %%
# These data do not tell the direction of the arrow between the hidden variables either. Turned round, the story can
# match exactly the same frequencies; the little that remains between the bounds comes from the priors of the tables.

turned = VBDiscreteDAG(
    [*questions, ("liking", "belonging")], latents=["belonging", "liking"], random_state=0, n_init=50
)
print(f"arrow turned: bound {turned.fit(answers).lower_bound_:.2f} instead of {model.lower_bound_:.2f}")

# %%
# One boy at a time
# -----------------
# ``predict_proba`` gives each boy's probabilities of the hidden states. A missing answer is left open, not filled in:
# the last boy was absent in the second wave.

boys = pd.DataFrame([[1, 1, 1, 1], [1, 0, 1, 0], [1, 0, 0, 1], [0, 0, 0, 0], [1, 1, None, None]], columns=columns)
belonging, liking = model.predict_proba(boys)
shown = boys.astype("Int64").astype("string").fillna("?")
shown["P(belongs)"] = belonging[:, high["belonging"]].round(2)
shown["P(likes)"] = liking[:, high["liking"]].round(2)
print(shown.to_string(index=False))

# %%
# How well do the answers tell the boys apart? The entropy R² is 1 if every boy's state is certain and 0 if the
# answers say nothing.

for latent, value in model.goodness_of_fit(answers).entropy_r2.items():
    print(f"entropy R² of {latent:<10} {value:.2f}")

# %%
# Belonging is fairly well known of each boy; liking is known of the group rather than of each boy.
#
# Why many starts
# ---------------
# Every fit climbs from several random starts, because a climb may end on a lower hill. The winner's starts all met.
# With three classes and maximum likelihood they did not: a single start would have been a gamble.

for name, fit in (("2 hidden, linked", model), ("3 classes, maximum likelihood", maximum["3 classes"])):
    print(f"{name}: {fit.restarts_.n_best} of {len(fit.restarts_.bounds)} starts met the best")
BoundDisplay.from_estimator(maximum["3 classes"])
plt.show()
