"""
Hidden structure of real data
=============================

Here nobody knows the truth. Two surveys, 3398 schoolboys and 319 students: is anything hidden behind their answers, is
it one thing or two, and what hangs on it? We let a search try every structure of a space, and ask not only for the
best one but how sure that is.
"""

# %%
# The leading crowd
# -----------------
# James Coleman asked boys twice, half a year apart, whether they belong to the leading crowd of their school (member)
# and whether they think well of it (attitude). Goodman (1974) told a story of two hidden variables, linked with each
# other, one behind the two answers of either kind. :ref:`sphx_glr_gallery_dag_plot_coleman_panel.py` compares it with
# six other stories. Here we do not tell stories; we try everything:
#
# - *classes*: one hidden variable with two, three or four states behind all answers,
# - *two hidden variables*, linked or not, each answer below one of them or none: 90 structures,
# - *nothing hidden*: all 543 acyclic graphs over the four answers.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from skvbem import BipartiteSpace, DAGSpace, LatentClassSpace, StructureSearchCV, VBDiscreteDAG
from skvbem.datasets import load_cheating, load_coleman_panel
from skvbem.errors import SearchWarning
from skvbem.evidence import scorer
from skvbem.plotting import DAGDisplay, SharedParentDisplay, StructureSearchDisplay

panel = load_coleman_panel(as_frame=True).data
panel.columns = answers = ["member 1", "attitude 1", "member 2", "attitude 2"]

classes = LatentClassSpace([2, 3, 4], answers)
hidden = {"h0": 2, "h1": 2}
between_answers = [(a, b) for a in answers for b in answers if a != b]
two = DAGSpace(answers, hidden, tiers=[hidden, answers], forbidden=between_answers, max_parents=1)
nothing = DAGSpace(answers)
space = classes + two + nothing
print(f"{len(classes)} + {len(two)} + {len(nothing)} = {len(space)} structures")

# %%
# Each structure is scored by its evidence, the probability that it gave to the data before it saw them. A bound on it
# is quick. But bounds are exact where nothing is hidden and too low elsewhere, so that here, where the two kinds
# compete, they lean to one side. So the best forty are scored again by the recommended score, which does not: it asks
# several samplers, and comes with a standard error, of at most 0.3 nats as we ask for it here.

search = StructureSearchCV(
    VBDiscreteDAG(n_init=5),
    space,
    scoring="collapsed_ascent",
    rescoring=scorer("auto", error=0.3),
    n_rescored=40,
    random_state=0,
).fit(panel)
StructureSearchDisplay.from_estimator(search, scores="auto")
plt.show()

# %%
# Goodman's structure wins, out of 636, although nothing in the space pointed at it. (Two graphs tell his story; the
# arrow between the hidden variables may point either way.) But look at the second best: graphs with nothing hidden,
# three nats behind. Several are listed because they say the same, with different directions of their arrows.
#
# What would we have believed without the second stage?

table = search.cv_results_
rescored = np.flatnonzero(~np.isnan(table["mean_test_auto"]))
order = rescored[np.argsort(-table["mean_test_auto"][rescored])]
print(f"{'':<11}{'bound':>10}{'evidence':>10}{'s.e.':>6}")
for k in [order[0], next(k for k in order if "latents" not in table["params"][k])]:
    what = "two hidden" if "latents" in table["params"][k] else "none"
    bound, evidence, error = table["mean_test_score"][k], table["mean_test_auto"][k], table["standard_error_auto"][k]
    print(f"{what:<11}{bound:>10.2f}{evidence:>10.2f}{error:>6.2f}")

# %%
# The opposite. The collapsed bound, the best bound there is here, is seven nats below the evidence for two hidden
# variables and exact for none. That is more than the difference in question.
#
# The picture of the search has arrows as wide as they are probable, summed over all structures that were scored twice.
# Arrows of the best structure are drawn solid. Hidden variables have no names of their own; the h0 and h1 of different
# structures were matched by their children.

DAGDisplay.from_search(search, node_labels={"h0": "h0", "h1": "h1"})
plt.show()

# %%
# And who shares a hidden parent with whom, which needs no names:

SharedParentDisplay.from_estimator(search)
plt.show()

# %%
# Two ways to cheat?
# ------------------
# 319 students said whether they had ever lied to avoid an examination or a term paper, bought a term paper or seen an
# examination beforehand (fraud), or copied in an examination. They also gave their grade point average, in five
# groups. Four gave no average: these cells are missing, and stay so.
#
# The textbook fits two classes of students, cheaters and others. We allow one hidden variable or two, each behind any
# of the answers: 527 structures.

warnings.filterwarnings("ignore", ".*not the best, have scores that should not be trusted", SearchWarning)
students = load_cheating(as_frame=True).data
students.columns = ["exam", "paper", "fraud", "copied", "grades"]
spaces = [BipartiteSpace(latents, students.columns, childless=False) for latents in ({"h0": 2}, {"h0": 2, "h1": 2})]
search = StructureSearchCV(
    VBDiscreteDAG(n_init=3),
    spaces[0] + spaces[1],
    scoring="collapsed_ascent",
    rescoring="ais",
    n_rescored=16,
    random_state=0,
).fit(students)
StructureSearchDisplay.from_estimator(search, scores="ais")
plt.show()

# %%
# Nothing wins here. The best structure has a fifth of the probability, and a dozen others have a few percent each.
# Only a sum over all of them says what is known. (The weights of AIS are uneven at times: three of the sixteen scores
# are not to be trusted, and the search says so in ``cv_results_["doubts"]``. The best is not among them.)

hidden = search.hidden_parent_counts_
print(f"{'hidden parents':<16}" + "".join(f"{name:>9}" for name in hidden.levels[1]))
for n, row in zip(hidden.levels[0], hidden.values):
    print(f"{n:<16}" + "".join(f"{share:>9.0%}" for share in row))
DAGDisplay.from_search(search)
plt.show()

# %%
# One hidden variable, h0, is behind all four ways to cheat, as the textbook has it. But what the two kinds of lies
# have in common is more than that: they probably hang on a second one as well. 319 students do not settle what that
# is. Mind also that the space has many more structures with two hidden variables than with one, and that all of them
# were taken as equally probable beforehand.
