"""Terms of rows of sequences against the definition, row by row."""

import numpy as np
import pytest

from skvbem._kernels._residuals import terms_of_rows


def _given(n, k=2, n_output_inputs=1, n_inputs=1, n_columns=3, n_groups=1, begins=(0,), seed=0):
    """Arguments of the kernel but for the terms; NaN-free, all groups observed if there is one."""
    rng = np.random.default_rng(seed)
    d, e = k + n_output_inputs, k + n_inputs
    group = np.arange(n_columns) % n_groups
    spread, transition_spread = rng.normal(size=(n_groups, d, d)), rng.normal(size=(e, e))
    follows = np.ones(n)
    follows[list(begins)] = 0.0
    return {
        "output": rng.normal(size=(n_columns, d)),
        "precision": rng.gamma(2.0, size=n_columns),
        "constant": rng.normal(size=n_columns),
        "group": group.astype(np.int64),
        "spread": spread + spread.swapaxes(1, 2),
        "transition": rng.normal(size=(k, e)),
        "transition_spread": transition_spread + transition_spread.T,
        "measured": rng.normal(size=(n, n_columns)),
        "observed": rng.integers(2, size=(n, n_groups)).astype(float) if n_groups > 1 else np.empty((0, 1)),
        "regressors": rng.normal(size=(n, d)),
        "inputs": rng.normal(size=(n, n_inputs)),
        "follows": follows if len(begins) > 1 else np.empty(0),
    }


def _of_row(t, given):
    """The definition: half the squares of residuals and of spreads, of cells seen and of a step into the row."""
    r, k, total = given["regressors"][t], len(given["transition"]), 0.0
    for g, spread in enumerate(given["spread"]):
        here = given["group"] == g
        left = (given["measured"][t] - given["output"] @ r)[here]
        cells = given["constant"][here] - 0.5 * given["precision"][here] * left**2
        seen = given["observed"][t, g] if len(given["observed"]) else 1.0
        total += seen * (cells.sum() - 0.5 * r @ spread @ r)
    if t == 0 or (len(given["follows"]) and not given["follows"][t]):
        return total
    z = np.concatenate([given["regressors"][t - 1, :k], given["inputs"][t]])
    left = r[:k] - given["transition"] @ z
    return total - 0.5 * (left @ left + z @ given["transition_spread"] @ z)


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 150])
@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {"n_output_inputs": 0, "n_inputs": 0},
        {"k": 3, "n_output_inputs": 2, "n_inputs": 0, "n_groups": 2},
        {"k": 1, "n_columns": 5, "n_groups": 5, "n_inputs": 2},
    ],
    ids=str,
)
def test_terms_are_those_of_the_definition(n, sizes):
    begins = (0, n // 2) if n > 2 and sizes else (0,)
    given, terms = _given(n, **sizes, begins=begins), np.full(n, np.nan)
    terms_of_rows(**given, terms=terms)
    np.testing.assert_allclose(terms, [_of_row(t, given) for t in range(n)], rtol=1e-12, atol=1e-12)


def test_no_rows_have_no_terms():
    terms_of_rows(**_given(0, begins=()), terms=np.empty(0))
