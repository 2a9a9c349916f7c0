r"""The posterior over the number of hidden states in use, which is not the number that a model has.

.. math:: p(K_+ = k \mid y) = \sum_m p(m \mid y)\, p(K_+ = k \mid m, y)  \qquad \text{[Nobile04]}

A state is in use in a draw of all parameters if this expects a row or more in it. The optimum of a bound says less: a
state of a few rows may stand in most draws and be empty at the optimum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from skvbem.search.execution.readings import candidate
from skvbem.search.tuning import TUNING
from skvbem.tables import LabeledTable


def states_in_use(
    estimator: BaseEstimator,
    settings: Sequence[Mapping],
    posterior: np.ndarray,
    X: Any,
    sampling: Mapping[str, int],
    params: Mapping[str, Any],
) -> LabeledTable:
    """The table of probabilities, from draws of the candidates that hold all but a hundredth of the posterior.

    Parameters
    ----------
    estimator : estimator
    settings : sequence of dict
        Of the candidates.
    posterior : ndarray of shape (n_candidates,)
    X : array-like
    sampling : mapping
        Options of `sample_posterior`, of each candidate.
    params : mapping
        What `fit` was passed: weights of rows, lengths of sequences.

    Raises
    ------
    ValueError
        If a candidate has several latents.
    """
    order = np.argsort(-posterior, kind="stable")
    kept = order[: int(np.searchsorted(np.cumsum(posterior[order]), 1.0 - TUNING.max_rest)) + 1]
    numbers = [_numbers(candidate(estimator, settings[k]), X, sampling, params) for k in kept]
    probability = np.zeros(1 + max(int(each.max()) for each in numbers))
    for share, each in zip(posterior[kept] / posterior[kept].sum(), numbers):
        probability += share * np.bincount(each, minlength=len(probability)) / len(each)
    return LabeledTable(probability[1:], ("n_in_use",), (np.arange(1, len(probability)),))


def _numbers(model: Any, X: Any, sampling: Mapping[str, int], params: Mapping[str, Any]) -> np.ndarray:
    """The number of states in use in each draw of a candidate, (n_draws,)."""
    model.fit(X, **params)
    if len(model.latent_states_) > 1:
        raise ValueError(
            "States in use are counted of one hidden variable, and a candidate has the latents "
            f"{', '.join(map(repr, model.latent_states_))}. Ask best_estimator_.latent_states_ for each of them."
        )
    weights = params.get("sample_weight")
    where = {name: value for name, value in params.items() if name != "sample_weight"}

    def in_use(drawn: Any) -> int:
        by_row = drawn.predict_proba(X, **where)
        rows = np.concatenate(by_row) if isinstance(by_row, list) else by_row
        mass = rows.sum(axis=0) if weights is None else np.asarray(weights, dtype=float) @ rows
        return max(int((mass >= 1.0).sum()), 1)

    return model.sample_posterior(X, **sampling, **params).ask(in_use)
