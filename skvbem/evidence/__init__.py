"""Approximations to the log marginal likelihood ln p(data | structure), and its exact value for tiny data.

Every score takes an `Evaluation` (a model, its data and its fits) and returns an `Evidence`, in total nats, higher is
better, with every constant kept.
"""

from functools import partial

from skvbem.evidence.asymptotic import bic, bicp, draper
from skvbem.evidence.base import Evidence, Score
from skvbem.evidence.cheeseman_stutz import cheeseman_stutz, mled
from skvbem.evidence.collapsed import collapsed
from skvbem.evidence.exact import exact
from skvbem.evidence.laplace import laplace
from skvbem.evidence.lower_bound import lower_bound

_SCORES = (
    Score("lower_bound", lower_bound, form="vb"),
    Score("collapsed", collapsed, ("row_marginals",), form="vb"),
    Score("collapsed_ascent", partial(collapsed, n_sweeps=4), ("row_marginals",), form="vb"),
    Score("laplace", laplace, ("score_covariance",), form="map"),
    Score("cheeseman_stutz", cheeseman_stutz, form="map"),
    Score("cheeseman_stutz_dagger", partial(cheeseman_stutz, corrected=True), ("identifiable_dimension",), form="map"),
    Score("mled", mled, form="map"),
    Score("draper", draper, form="map"),
    Score("bicp", bicp, form="map"),
    Score("bic", bic, form="ml"),
    Score("exact", exact, ("completions", "complete_counts")),
)

#: Every score by name.
SCORES = {score.name: score for score in _SCORES}


def get_score(name: str) -> Score:
    """The score of a name.

    Raises
    ------
    ValueError
        If there is none, with all names.
    """
    if name not in SCORES:
        raise ValueError(f"There is no score {name!r}. The scores are {', '.join(SCORES)}.")
    return SCORES[name]


__all__ = ["SCORES", "Evidence", "Score", "get_score"]
