r"""Durations of the states of `VBHMM`: how long a stay in a state lasts.

A Markov chain leaves a state with the same probability at every step, so that stays last geometrically long. Both
families here have it as a special case, are conjugate, and cut nothing off: a stay that the end of a sequence ends, or
a gap hides, is summed over exactly. See :doc:`/user_guide/durations`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Integral
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from skvbem._arguments import is_option, is_real
from skvbem._compat import Interval, StrOptions, SuggestingMixin
from skvbem._names import did_you_mean, shown

__all__ = ["Hazards", "Stages"]

#: Both concentrations as the prior of transitions has them.
TRANSITIONS = "transitions"
#: One strength and mean for all ages of a state, which are hidden.
HIERARCHICAL = "hierarchical"
# Octaves of the steps that a stay lasts in the mean under a hierarchical prior, the part of one between two means, and
# counts of strengths: stays of 1 to 512 steps, and hazards from all apart to all alike. Means a whole octave apart draw
# strong hazards away from the truth, as tests/reproduction/durations_prior.py has it.
_OCTAVES, _APART = 9, 0.5
_STRENGTHS = np.array([1.0, 4.0, 16.0, 64.0, 256.0])


class Duration(SuggestingMixin, BaseEstimator, ABC):
    """A family of durations as a user says it."""

    _parameter_constraints: ClassVar[dict] = {}

    #: True if ages are stages, each of which a stay goes through.
    are_stages: ClassVar[bool] = False
    prior: object
    first: str

    def check_parameters(self) -> None:
        """Refuse parameters that make no prior."""
        self._validate_params()
        names = HIERARCHICAL, TRANSITIONS
        if is_option(self.prior, *names):
            return
        pair = np.asarray(self.prior, dtype=object)
        if pair.shape != (2,) or not all(is_real(each) and 1e-100 <= each <= 1e100 for each in pair):
            raise ValueError(
                f"The 'prior' parameter of {type(self).__name__} must be {HIERARCHICAL!r}, {TRANSITIONS!r} or two "
                f"concentrations > 0, of leaving and of staying, such as (1.0, 1.0). Got {shown(self.prior)} instead."
                f"{did_you_mean(self.prior, names) if isinstance(self.prior, str) else ''}"
            )

    @property
    @abstractmethod
    def bins_of_ages(self) -> np.ndarray:
        """The bin of each age, from 0 on, (n_ages,)."""

    @property
    def _means(self) -> np.ndarray:
        """Mean probabilities of leaving, or of ending a stage: of each half octave of stays one."""
        n_stages = len(self.bins_of_ages) if self.are_stages else 1
        octaves = np.arange(0.0, _OCTAVES + np.ceil(np.log2(n_stages)), _APART)
        means = n_stages * 2.0 ** -(octaves + _APART / 2)
        return means[means < 1.0]

    def concentrations(self, leaving: np.ndarray, staying: np.ndarray) -> np.ndarray:
        """Concentrations (n_alternatives, n_states, n_bins, 2) of leaving and staying in each bin.

        Parameters
        ----------
        leaving, staying : ndarray of shape (n_states,)
            As the prior of transitions has them; 0 where there is no such step.
        """
        pairs = np.stack([leaving, staying], axis=-1)
        n_bins = int(self.bins_of_ages[-1]) + 1
        if is_option(self.prior, HIERARCHICAL):
            means, strengths = (each.ravel() for each in np.meshgrid(self._means, _STRENGTHS))
            alternatives = np.stack([strengths * means, strengths * (1.0 - means)], axis=-1)[:, None]
        elif isinstance(self.prior, str):
            alternatives = pairs[None]
        else:
            alternatives = np.array(self.prior, dtype=float)[None, None]
        alternatives = np.broadcast_to(alternatives, (len(alternatives), *pairs.shape)) * (pairs > 0)
        return np.repeat(alternatives[:, :, None], n_bins, axis=2)


class Hazards(Duration):
    r"""Durations by hazards: at each age a probability of leaving of its own.

    Parameters
    ----------
    max_age : int, default=32
        The last age with a hazard of its own, which holds from there on: stays may last longer, geometrically. 1 is the
        Markov chain.
    bins : {"doubling", "single"}, default="doubling"
        Ages that share a hazard: 1, 2, 3-4, 5-8, ..., or none.
    prior : {"hierarchical", "transitions"} or (float, float), default="hierarchical"
        Beta distributions of the hazards. "hierarchical": those of a state share a mean and a strength, which are
        hidden: stays of 1 to 512 steps in the mean, every octave with the same probability, and strengths of 1, 4, 16,
        64 and 256 counts. Hazards that need not differ then cost little. "transitions": as `transmat_prior` and
        `sticky` have them, the counts of all other states and that of staying; ``max_age=1`` then is the Markov chain
        to the digit. A pair: counts of leaving and of staying.
    first : {"new", "any"}, default="new"
        Whether sequences begin with a new stay, or with one of an unknown age: "any" gives the first age of each state
        a Dirichlet distribution with a total of one count.

    Notes
    -----
    A stay of state k that has lasted a steps ends with the probability :math:`h_{ka}`, so that it lasts d steps with

    .. math:: p_k(d) = h_{kd} \prod_{a < d} (1 - h_{ka}), \qquad h_{ka} \sim \mathrm{Beta}(\alpha, \beta),

    and a stay that is cut off after d steps has the probability :math:`\prod_{a < d} (1 - h_{ka})`: a product of the
    same kind, so that censored stays need no treatment.

    Examples
    --------
    >>> from skvbem import VBHMM
    >>> from skvbem.datasets import load_earthquakes
    >>> from skvbem.durations import Hazards
    >>> X = load_earthquakes().data
    >>> geometric = VBHMM(3, emission="poisson", random_state=0).fit(X)
    >>> alike = VBHMM(3, emission="poisson", durations=Hazards(1, prior="transitions"), random_state=0).fit(X)
    >>> abs(geometric.lower_bound_ - alike.lower_bound_) < 1e-4
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "max_age": [Interval(Integral, 1, 2**15, closed="both")],
        "bins": [StrOptions({"doubling", "single"})],
        "prior": "no_validation",
        "first": [StrOptions({"new", "any"})],
    }

    def __init__(self, max_age=32, *, bins="doubling", prior=HIERARCHICAL, first="new"):
        self.max_age = max_age
        self.bins = bins
        self.prior = prior
        self.first = first

    @property
    def bins_of_ages(self) -> np.ndarray:
        """The bin of each age, from 0 on, (n_ages,)."""
        ages = np.arange(1, self.max_age + 1)
        return np.ceil(np.log2(ages)).astype(np.int64) if self.bins == "doubling" else ages - 1


class Stages(Duration):
    r"""Durations by equal stages: a stay goes through r of them, one after the other.

    Parameters
    ----------
    n_stages : int, default=2
        r. A stay lasts r steps at least; 1 is the Markov chain.
    prior : {"hierarchical", "transitions"} or (float, float), default="hierarchical"
        The Beta distribution of the probability of ending a stage. "hierarchical": a mean and a strength that are
        hidden, as of `Hazards`: stays of r to 512 r steps in the mean, r rounded up to a power of two for the latter,
        every octave with the same probability. "transitions": as `transmat_prior` and `sticky` have leaving and
        staying. A pair: counts of ending and of staying.
    first : {"new", "any"}, default="new"
        Whether sequences begin in the first stage, or in any: "any" gives the first stage of each state a Dirichlet
        distribution with a total of one count.

    Notes
    -----
    A stage ends at each step with the probability :math:`p_k`, so that a stay lasts r steps and a negative binomial
    number more: in the mean :math:`r / p_k`, with the variance :math:`r (1 - p_k) / p_k^2`. The coefficient of
    variation is at most :math:`1 / \sqrt r`: stays are more regular than geometric ones.

    Examples
    --------
    >>> from skvbem import VBHMM
    >>> from skvbem.datasets import load_earthquakes
    >>> from skvbem.durations import Stages
    >>> X = load_earthquakes().data
    >>> for n_stages in (1, 2, 3):
    ...     model = VBHMM(3, emission="poisson", durations=Stages(n_stages), random_state=0).fit(X)
    ...     print(n_stages, round(model.lower_bound_, 1))
    1 -347.6
    2 -348.1
    3 -349.0
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_stages": [Interval(Integral, 1, 2**15, closed="both")],
        "prior": "no_validation",
        "first": [StrOptions({"new", "any"})],
    }

    are_stages: ClassVar[bool] = True

    def __init__(self, n_stages=2, *, prior=HIERARCHICAL, first="new"):
        self.n_stages = n_stages
        self.prior = prior
        self.first = first

    @property
    def bins_of_ages(self) -> np.ndarray:
        """One bin for all stages, (n_stages,)."""
        return np.zeros(self.n_stages, dtype=np.int64)
