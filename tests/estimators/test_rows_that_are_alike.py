"""Rows that are all alike tell nothing of what is hidden: neither batches nor fits after them may be bound by them."""

import numpy as np
import pytest
from scipy.stats import norm

from skvbem import VBHMM, VBFactorAnalysis, VBLinearDynamicalSystem, VBMixture, VBNetwork
from skvbem.emissions import FactorGaussian

pytestmark = [
    pytest.mark.filterwarnings("ignore::skvbem.errors.DataWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def clumps():
    rng = np.random.default_rng(10)
    return rng.normal(size=(200, 3)) + 3 * rng.integers(0, 2, 200)[:, None]


def in_order():
    rng, states = np.random.default_rng(10), np.zeros((200, 2))
    for t in range(1, 200):
        states[t] = 0.9 * states[t - 1] + rng.normal()
    return states + 0.3 * rng.normal(size=states.shape)


NETWORK = {"structure": {f"x{j}": ["h"] for j in range(3)}, "latents": {"h": 2}, "emission": {"gaussian": [0, 1, 2]}}
CASES = {
    "factors": (VBFactorAnalysis, {"n_factors": 1}, clumps),
    "two factors": (VBFactorAnalysis, {"n_factors": 2}, clumps),
    "linear system": (VBLinearDynamicalSystem, {"n_components": 1}, in_order),
    "network": (VBNetwork, NETWORK, clumps),
    "mixture": (VBMixture, {"n_components": 2}, clumps),
    "mixture of factors": (VBMixture, {"n_components": 1, "emission": FactorGaussian(1)}, clumps),
    "chain": (VBHMM, {"n_components": 2}, clumps),
}
# Of which the first batch may be as long as any.
HAVE_SADDLES = ("factors", "two factors", "linear system", "mixture of factors")


def after_batches(name, first):
    """The scores of one fit and of batches after another, and that of columns which nothing hidden joins."""
    make, options, data = CASES[name]
    X = data()
    model = make(**options, random_state=0).partial_fit(first(X.shape[1]))
    for _ in range(8):
        model.partial_fit(X)
    apart = norm.logpdf(X, X.mean(axis=0), X.std(axis=0)).sum() / len(X)
    return make(**options, random_state=0).fit(X).score(X), model.score(X), apart


@pytest.mark.parametrize("name", [*HAVE_SADDLES, "network"])
def test_a_first_batch_of_rows_that_are_alike_is_no_trap(name):
    whole, score, _ = after_batches(name, lambda d: np.full((5, d), 2.0))
    assert score > whole - 0.1


@pytest.mark.parametrize("name", HAVE_SADDLES)
@pytest.mark.parametrize("first", [np.full((200, 3), 2.0), np.random.default_rng(1).normal(size=(400, 3))])
def test_nor_is_a_long_one_nor_one_of_noise(name, first):
    """There loadings shrink to 0, too. Such rows count, so that one fit of the others is not quite met."""
    whole, score, apart = after_batches(name, lambda d: first[:, :d])
    assert score > apart + 0.45 * (whole - apart)


@pytest.mark.parametrize("n", [5, 800])
@pytest.mark.parametrize("name", CASES)
def test_a_warm_start_from_rows_that_are_alike_is_no_trap(name, n):
    if n > 200 and name not in HAVE_SADDLES:
        pytest.skip("components that rows like these need are a start as good as any")
    make, options, data = CASES[name]
    X = data()
    whole = make(**options, random_state=0).fit(X).score(X)
    model = make(**options, random_state=0, warm_start=True).fit(np.full((n, X.shape[1]), 2.0)).fit(X)
    assert model.score(X) > whole - 0.01


@pytest.mark.parametrize("name", HAVE_SADDLES)
def test_solutions_that_lead_nowhere_are_told(name):
    make, options, data = CASES[name]
    X = data()
    for rows, expected in ((X, name == "two factors"), (np.full((50, X.shape[1]), 2.0), True)):
        model = make(**options, random_state=0).fit(rows)
        assert model._kind.leads_nowhere(model.fitted) == expected


def test_a_batch_that_adds_to_more_of_its_kind_goes_on_from_it_alone(monkeypatch):
    """One start: new ones are for what earlier rows could not tell."""
    model, X = VBMixture(2, random_state=0).partial_fit(clumps()), clumps()[:50]
    monkeypatch.setattr(type(model._kind), "new_starts", lambda *arguments: pytest.fail("a new start"))
    model.partial_fit(X)
    VBMixture(2, random_state=0, warm_start=True).fit(clumps()).fit(clumps() + 0.1)
