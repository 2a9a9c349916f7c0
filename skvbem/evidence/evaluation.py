"""A fitted model on its data, as scores see it; estimators make one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import fields
from enum import IntEnum
from operator import attrgetter
from typing import Any, Protocol

import numpy as np

from skvbem.capabilities import OF_KNOWN_HYPERPARAMETERS, Capabilities
from skvbem.errors import check_memory
from skvbem.vbem import posteriors
from skvbem.vbem.fit import Fit

#: The forms of q(theta) by name.
FORMS = {
    "vb": posteriors.VB,
    "map": posteriors.MAP,
    "map_probability": posteriors.MAP_IN_PROBABILITIES,
    "ml": posteriors.ML,
}


class Stream(IntEnum):
    """First key of each random stream of an evaluation; streams that no score uses together share a number."""

    CERTAIN = 1
    PILOT = 2
    METROPOLIS = 3
    PROPOSAL = 4
    GIBBS = 5
    LABELS = ORDER = 6
    BACKWARDS = PARTICLES = 7
    CHOICE = 8
    SCORE = 9
    FIRST_UNIT = 10
    RESPONSE = 11
    TURNS = 12
    PARAMETERS = 2**20
    # in the place of 2**32, which all of the above have behind the seed
    RESEEDED = 2**33


class ScoredModel(Protocol):
    """A model as every score sees it: the prior, and the E step. Whatever else they need is a capability."""

    prior: Any

    @property
    def n_free_parameters(self) -> int:
        """Parameters that are free."""
        ...

    def expect(self, natural: np.ndarray, data: Any) -> Any:
        """Expected statistics (n_cells, n_lanes) and ln Z of q(x), and whether this is exact."""
        ...


class Evaluation:
    """A model, its data, and its fits of every form.

    Parameters
    ----------
    model : LatentModel
        See `skvbem.models.base`.
    capabilities : Capabilities
        What the model can do beyond its prior and E step; scores name those they need.
    data : object
        The data as the model compiled them.
    run : callable of (Form, Fit or None) to Fit
        Fits a form of q(theta), from the starts of the fit at hand and from its statistics.
    fit : Fit
        The fit at hand.
    method : str
        Its form, a name in `FORMS`; a mode is that in the natural basis ("map") or in probabilities.
    n_samples : float
        Sum of the weights of the rows.
    hidden : tuple
        Names of nodes never observed.
    seed : sequence of int
    n_jobs : int
    note : str
        What every score of it is conditional on.
    max_memory : float, default=inf
        Bytes that a score may hold.
    owner : str, default="estimator"
        Class of the estimator that has this limit.
    run_optima : callable of Fit to ndarray (n_cells, n_optima), optional
        Runs the optima of a VB fit to their ends, the best first; by default they are taken as they are.
    mode : {"map", "map_probability"}, default="map"
        The form that scores take for "map", in the basis that the estimator names.
    """

    def __init__(
        self,
        model: ScoredModel,
        capabilities: Capabilities,
        data: Any,
        run: Callable,
        fit: Fit,
        method: str,
        n_samples: float,
        hidden: tuple,
        seed: Sequence[int],
        n_jobs: int = 1,
        note: str = "",
        max_memory: float = np.inf,
        owner: str = "estimator",
        run_optima: Callable[[Fit], np.ndarray] = attrgetter("optima"),
        mode: str = "map",
    ):
        self.model, self.capabilities, self.data, self.method = model, capabilities, data, method
        self.n_samples, self.hidden, self.n_jobs, self.note = n_samples, hidden, n_jobs, note
        self.max_memory, self.owner, self.mode = max_memory, owner, mode
        self._run, self._run_optima, self._seed, self._fits = run, run_optima, list(seed), {method: fit}
        #: Linear response around so many of the optima, which several scores take.
        self.responses: dict[int, Any] = {}

    @property
    def rows_are_in_memory(self) -> bool:
        """True if scores may look at rows; of data in blocks they can only sum over them."""
        return getattr(self.data, "rows_are_in_memory", True)

    @property
    def few_rows(self) -> Any:
        """Rows with the likelihood and the bound of the data, few if there are such; the data themselves if not."""
        condensed = getattr(self.model, "condensed", None)
        return self.data if condensed is None else condensed(self.data)

    @property
    def has_turns(self) -> bool:
        """True if hidden variables of rows may be rotated, and no likelihood tells."""
        return self.capabilities.quotient is not None and self.capabilities.quotient.has_turns

    @property
    def is_exact(self) -> bool:
        """True if q(x) keeps the joint of all that is hidden in a row, as far as the compiled data say."""
        return getattr(self.data, "is_exact", True)

    def fit(self, form: str) -> Fit:
        """The fit of a form: the one at hand, or one started from its statistics and from the same starts."""
        if form not in FORMS:
            raise ValueError(f"A form of fit must be one of {', '.join(map(repr, FORMS))}. Got {form!r} instead.")
        if form not in self._fits:
            self._fits[form] = self._run(FORMS[form], self._fits[self.method])
        return self._fits[form]

    def ended_optima(self) -> np.ndarray:
        """Statistics (n_cells, n_optima) of different optima of VB, the best first, for chains to start from."""
        return self._run_optima(self.fit("vb"))

    def doubts_of(self, form: str | None) -> tuple[str, ...]:
        """Warnings of a fit that was made for scores, and did not converge; the fit at hand was warned of."""
        if form == self.method or form not in self._fits or self._fits[form].converged:
            return ()
        return (f"The {form.upper()} fit of this score did not converge. Raise 'max_iter' of the estimator.",)

    def point(self, form: str) -> Any:
        """The point of a fit, as the prior takes it: the mode found, or that of a VB fit's q(theta).

        Of tables these are flat probabilities (n_cells,), and of a VB fit their posterior means.
        """
        statistics = self.fit(form).statistics
        return FORMS[form].point_of(self.model.prior, statistics)

    def capability(self, name: str, what: str = "The score") -> Any:
        """A capability of the model, by the name of a field of `Capabilities`.

        Raises
        ------
        TypeError
            If there is no such capability, or the model lacks it. `what` is what needs it, as in "The score 'laplace'".
        """
        known = [field.name for field in fields(self.capabilities)]
        if name not in known:
            raise TypeError(f"{name!r} is no capability of models. There are {', '.join(known)}.")
        capability = getattr(self.capabilities, name)
        if capability is None:
            reason = getattr(self.model, "reasons", {}).get(name)
            if reason is not None:
                raise TypeError(f"{what} has no meaning for a {type(self.model).__name__}. {reason}")
            if name in OF_KNOWN_HYPERPARAMETERS:
                self.check_known_hyperparameters(what)
            model = type(self.model).__name__
            raise TypeError(f"{what} needs the capability {name!r} of a model, which {model} does not have.")
        return capability

    def check_known_hyperparameters(self, what: str) -> None:
        """Refuse what needs the evidence of complete rows in closed form, where hyperparameters are hidden."""
        if self.model.prior.hyperprior is None:
            return
        reason = getattr(self.model, "reasons", {}).get(OF_KNOWN_HYPERPARAMETERS[0])
        if reason is not None:
            raise TypeError(f"{what} has no meaning for a {type(self.model).__name__}. {reason}")
        sampled = "importance_gibbs" if self.data.has_whole_weights else "importance"
        raise TypeError(
            f"{what} needs the evidence of rows whose hidden variables are known. It has no closed form here: "
            f"the prior of {type(self.model).__name__} has hyperparameters that are hidden themselves, as the "
            "default prior of measurements has. Take 'laplace', or a sampled evidence such as "
            f"{sampled!r}, or fit with a prior without hidden hyperparameters: for measurements "
            "Gaussian(covariance_prior=None, mean_precision_prior=1.0)."
        )

    def expectation(
        self, natural: np.ndarray, what: str = "The score", *, of_clusters: bool = False
    ) -> tuple[np.ndarray, float]:
        """Expected statistics (n_cells,) and ln Z of q(x), nats, at natural parameters (n_cells,).

        With `of_clusters` ln Z may be the bound that a q(x) in clusters leaves of it.

        Raises
        ------
        ValueError
            If the E step of the model is not exact, so that ln Z is not the log likelihood of a point. `what` is what
            needs it, as in "The score 'laplace'".
        """
        expectation = self.model.expect(natural[:, None], self.data)
        if not expectation.is_exact and not (of_clusters and not self.is_exact):
            raise ValueError(
                f"{what} needs an exact log likelihood; the E step of {type(self.model).__name__} gives a "
                "lower bound of it. Take the score 'lower_bound'."
            )
        return expectation.statistics[:, 0], float(expectation.log_normalizer[0])

    def log_likelihood(self, point: Any, what: str = "The score") -> float:
        """ln p(data | point), nats; ValueError if the E step of the model is not exact."""
        return self.expectation(self.model.prior.natural(point), what)[1]

    def reseeded(self, number: int) -> Evaluation:
        """The evaluation with random streams that are independent of its own, for each number >= 1; fits are shared."""
        other = copy(self)
        other._seed = [*self._seed, Stream.RESEEDED + number]
        return other

    def check_memory(self, what: str, n_numbers: float, least: str) -> None:
        """Refuse to hold more numbers than the estimator allows; see `skvbem.errors.check_memory`."""
        check_memory(what, n_numbers, least, self.max_memory, self.owner)

    def seeds(self, n: int) -> np.ndarray:
        """Seeds of n independent random streams, (n, 4) of uint64; the first ones the same for any n."""
        return np.array([np.random.SeedSequence([*self._seed, k]).generate_state(4, np.uint64) for k in range(n)])

    def streams(self, n: int, *key: int) -> np.ndarray:
        """Independent random streams for n lanes, as capabilities take them, (4, n) of uint64.

        They are `seeds`, or of a key numbers of its generator.
        """
        if key:
            return self.generator(*key).integers(0, 2**64, size=(4, n), dtype=np.uint64)
        return np.ascontiguousarray(self.seeds(n).T)

    def generator(self, *key: int) -> np.random.Generator:
        """A random generator of its own for every key."""
        return np.random.default_rng([*self._seed, 2**32, *key])
