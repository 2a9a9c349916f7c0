"""Every score by name: adding a line here gives it to all estimators, tables, scorers and tests.

A line names the capabilities that the score needs of a model; see `skvbem.capabilities`.
"""

from functools import partial

from skvbem.evidence.ais import anchored_ais
from skvbem.evidence.asymptotic import bic, bicp, draper
from skvbem.evidence.base import Score
from skvbem.evidence.cheeseman_stutz import cheeseman_stutz, mled
from skvbem.evidence.collapsed import collapsed
from skvbem.evidence.exact import exact
from skvbem.evidence.importance import importance, importance_gibbs
from skvbem.evidence.laplace import laplace
from skvbem.evidence.lower_bound import lower_bound
from skvbem.evidence.metropolis import metropolis_ais
from skvbem.evidence.smc import smc

_CHAINS = ("points", "annealing", "relabelings")
_DRAWS = ("points", "relabelings")

_SCORES = (
    Score("lower_bound", lower_bound, form="vb"),
    Score("collapsed", collapsed, ("entropy", "annealing"), form="vb"),
    Score("collapsed_ascent", partial(collapsed, n_sweeps=4), ("entropy", "annealing"), form="vb"),
    Score("laplace", laplace, ("information",), form="map"),
    Score("cheeseman_stutz", cheeseman_stutz, ("entropy",), form="map"),
    Score(
        "cheeseman_stutz_dagger",
        partial(cheeseman_stutz, corrected=True),
        ("dimension", "entropy"),
        form="map",
    ),
    Score("mled", mled, ("entropy",), form="map"),
    Score("draper", draper, form="map"),
    Score("bicp", bicp, form="map"),
    Score("bic", bic, form="ml"),
    Score("exact", exact, ("enumeration",)),
    Score("ais", anchored_ais, _CHAINS, form="vb", random=True),
    Score(
        "ais_prior",
        partial(anchored_ais, shares=(0.0,), n_chains=16, n_steps=1024),
        _CHAINS,
        random=True,
    ),
    Score("ais_metropolis", metropolis_ais, ("points", "metropolis"), random=True),
    Score("importance", importance, _DRAWS, form="vb", random=True),
    Score("importance_gibbs", importance_gibbs, _CHAINS, form="vb", random=True),
    Score("smc", smc, _CHAINS, form="vb", random=True),
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
