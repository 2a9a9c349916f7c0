"""Every score by name: adding a line here gives it to all estimators, tables, scorers and tests.

A line names the capabilities that the score needs of a model; see `skvbem.capabilities`.
"""

from collections.abc import Mapping
from functools import partial
from math import log, pi
from typing import Any

from skvbem._names import did_you_mean, shown
from skvbem.evidence.ais import anchored_ais
from skvbem.evidence.annealed_bridge import annealed_bridge
from skvbem.evidence.asymptotic import bic, bicp, draper
from skvbem.evidence.automatic import auto
from skvbem.evidence.base import Evidence, Score
from skvbem.evidence.bridge_sampling import bridge_sampling
from skvbem.evidence.cheeseman_stutz import cheeseman_stutz, mled
from skvbem.evidence.collapsed import collapsed
from skvbem.evidence.evaluation import Evaluation
from skvbem.evidence.exact import exact
from skvbem.evidence.growing_data import growing_smc
from skvbem.evidence.importance import importance, importance_gibbs
from skvbem.evidence.laplace import laplace
from skvbem.evidence.linear_response import linear_response
from skvbem.evidence.lower_bound import lower_bound
from skvbem.evidence.metropolis import metropolis_ais
from skvbem.evidence.smc import smc

_CHAINS = ("points", "annealing", "relabelings")
_DRAWS = ("points", "relabelings")
_COMPLETED = ("complete_evidence", "entropy")
_AVERAGED = (*_COMPLETED, "annealing")

# What scores may say of themselves, see `Score`.
_SUMS: dict[str, Any] = {"sums_over_rows": True}
_EXACT: dict[str, Any] = {"exact_if_complete": True}
_ANY_Q: dict[str, Any] = {"bounds_by_any_q": True}
_COLLAPSED: dict[str, Any] = {"closes_gap_of_clusters": True, **_EXACT, **_ANY_Q}
_DRAWN: dict[str, Any] = {"random": True, **_EXACT}

_SCORES = (
    Score("auto", auto, _CHAINS, **_DRAWN),
    Score("lower_bound", lower_bound, form="vb", **_SUMS, **_EXACT, **_ANY_Q),
    Score("collapsed", collapsed, _AVERAGED, form="vb", **_COLLAPSED),
    Score("collapsed_ascent", partial(collapsed, n_sweeps=4), _AVERAGED, form="vb", **_COLLAPSED),
    Score("linear_response", linear_response, ("relabelings",), form="vb", **_SUMS, **_EXACT),
    Score("laplace", laplace, ("information",), form="map"),
    Score("cheeseman_stutz", cheeseman_stutz, _COMPLETED, form="map", **_SUMS, **_EXACT, **_ANY_Q),
    Score(
        "cheeseman_stutz_dagger",
        partial(cheeseman_stutz, corrected=True),
        ("dimension", *_COMPLETED),
        form="map",
        **_EXACT,
    ),
    Score("mled", mled, _COMPLETED, form="map", **_SUMS, **_EXACT),
    Score("draper", draper, form="map", **_SUMS, penalty_discount=0.5 * log(2 * pi)),
    Score("bicp", bicp, form="map", **_SUMS),
    Score("bic", bic, form="ml", **_SUMS, penalty_discount=0.0),
    Score("exact", exact, ("enumeration",), always_exact=True, **_EXACT, **_ANY_Q),
    Score("bridge", bridge_sampling, _CHAINS, form="vb", **_DRAWN),
    Score("annealed_bridge", annealed_bridge, _CHAINS, form="vb", **_DRAWN),
    Score("ais", anchored_ais, _CHAINS, form="vb", **_DRAWN, **_ANY_Q),
    Score("ais_prior", partial(anchored_ais, fractions=(0.0,), n_chains=16, n_steps=1024), _CHAINS, **_DRAWN),
    Score("ais_metropolis", metropolis_ais, ("points", "metropolis"), random=True),
    Score("importance", importance, _DRAWS, form="vb", **_DRAWN, **_SUMS),
    Score("importance_gibbs", importance_gibbs, _CHAINS, form="vb", **_DRAWN),
    Score("smc", smc, _CHAINS, form="vb", **_DRAWN),
    Score("smc_data", growing_smc, ("points", "annealing", "batches"), **_DRAWN),
)

#: The score of a search that names none, unless its estimator has another.
DEFAULT_SCORE = "collapsed_ascent"
#: Every score by name.
SCORES = {score.name: score for score in _SCORES}
#: Names of the scores of the library itself.
LIBRARY_SCORES = frozenset(SCORES)


def register_score(score: Score) -> Score:
    """Make a score known by its name, so that `log_evidence`, searches, scorers and tables find it.

    A search sends the score along to its workers.

    Parameters
    ----------
    score : Score

    Returns
    -------
    score : Score
        The same.

    Raises
    ------
    TypeError
        If it is no `Score`.
    ValueError
        If its name is that of another score.

    See Also
    --------
    Score : what a score is, and what it may ask of a model.
    """
    if not isinstance(score, Score):
        raise TypeError(f"register_score takes a Score, such as Score('mine', function). Got {score!r}.")
    if SCORES.setdefault(score.name, score) is not score:
        raise ValueError(f"The name {score.name!r} belongs to another score. Take another name.")
    return score


def get_score(name: str | Score) -> Score:
    """The score of a name; a score itself as it is.

    Raises
    ------
    TypeError
        If it is neither a string nor a score.
    ValueError
        If there is no such score, with all names.
    """
    if isinstance(name, Score):
        return name
    if not isinstance(name, str):
        raise TypeError(f"The 'kind' of a score is its name, a string such as 'ais', or a Score. Got {shown(name)}.")
    if name not in SCORES:
        hint = did_you_mean(name, SCORES)
        raise ValueError(f"There is no score {name!r}.{hint} The scores are {', '.join(SCORES)}.")
    return SCORES[name]


def score_of(evaluation: Evaluation, kind: str | Score, options: Mapping[str, Any]) -> Evidence:
    """The evidence by a score, or by that of a name.

    Raises
    ------
    ValueError
        If the score looks at rows, and these come in blocks.
    """
    score = get_score(kind)
    if not evaluation.rows_are_in_memory and score.needs_rows_in_memory(options):
        what = f"with alias=True {score.name!r}" if score.sums_over_rows else repr(score.name)
        raise ValueError(
            f"The score {what} looks at rows in memory; X comes in blocks. Use a score that only passes over rows: "
            f"{', '.join(repr(name) for name, each in SCORES.items() if each.sums_over_rows)}."
        )
    return score(evaluation, **options)
