"""A fitted model on its data, as scores see it; estimators make one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from skvbem.vbem import posteriors
from skvbem.vbem.fit import Fit

#: The forms of q(theta) by name.
FORMS = {
    "vb": posteriors.VB,
    "map": posteriors.MAP,
    "map_probability": posteriors.MAP_IN_PROBABILITIES,
    "ml": posteriors.ML,
}


class Evaluation:
    """A model, its data, and its fits of every form.

    Parameters
    ----------
    model : model
        With `prior` and `expect`; see `skvbem.evidence.base.Score` for what else a score may need.
    program : object
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
    """

    def __init__(
        self,
        model,
        program,
        run: Callable,
        fit: Fit,
        method: str,
        n_samples: float,
        hidden: tuple,
        seed: Sequence[int],
        n_jobs: int = 1,
        note: str = "",
    ):
        self.model, self.program, self.method = model, program, method
        self.n_samples, self.hidden, self.n_jobs, self.note = n_samples, hidden, n_jobs, note
        self._run, self._seed, self._fits = run, list(seed), {method: fit}

    @property
    def rows_are_in_memory(self) -> bool:
        """Whether scores may look at rows; of data in blocks they can only sum over them."""
        return getattr(self.program, "rows_are_in_memory", True)

    def fit(self, form: str) -> Fit:
        """The fit of a form: the one at hand, or one started from its statistics and from the same starts."""
        if form not in FORMS:
            raise ValueError(f"A form of fit must be one of {', '.join(map(repr, FORMS))}. Got {form!r} instead.")
        if form not in self._fits:
            self._fits[form] = self._run(FORMS[form], self._fits[self.method])
        return self._fits[form]

    def doubts_of(self, form: str | None) -> tuple[str, ...]:
        """Why scores at a fit that was made for them should not be trusted; the fit at hand was warned of."""
        if form == self.method or form not in self._fits or self._fits[form].converged:
            return ()
        return (f"The {form.upper()} fit of this score did not converge. Raise 'max_iter' of the estimator.",)

    def point(self, form: str) -> Any:
        """The point of a fit, as the prior takes it: the mode found, or that of a VB fit's q(theta).

        Of tables these are flat probabilities (n_cells,), and of a VB fit their posterior means.
        """
        statistics = self.fit(form).statistics
        return FORMS[form].point_of(self.model.prior, statistics)

    def log_likelihood(self, point: Any) -> float:
        """ln p(data | point), nats."""
        natural = self.model.prior.natural(point)
        return float(self.model.expect(natural[:, None], self.program).log_normalizer[0])

    def seeds(self, n: int) -> np.ndarray:
        """Seeds of n independent random streams, (n, 4) of uint64; the first ones the same for any n."""
        return np.array([np.random.SeedSequence([*self._seed, k]).generate_state(4, np.uint64) for k in range(n)])

    def generator(self, *key: int) -> np.random.Generator:
        """A random generator of its own for every key."""
        return np.random.default_rng([*self._seed, 2**32, *key])
