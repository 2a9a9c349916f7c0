"""Durations of `VBHMM`: figures of another program, and one age as the Markov chain."""

import numpy as np
import pytest

from skvbem import VBHMM, datasets
from skvbem.durations import Hazards, Stages

approx = pytest.approx
SEVEN = np.array([[0, 0, 1, 1, 0, 0, 1]]).T


def plain(n):
    """Hazards of single ages with the prior of transitions."""
    return Hazards(n, bins="single", prior="transitions")


@pytest.mark.parametrize(
    ("durations", "evidence", "bound"),
    [
        (plain(1), -5.45666556, -7.26002540),
        (plain(2), -5.20694309, -7.120762),
        (plain(3), -5.19213873, -7.148885),
        (Stages(2, prior="transitions"), -4.93957226, -6.347348),
    ],
    ids=str,
)
def test_seven_symbols(durations, evidence, bound):
    """The evidence by another program's sum over all paths; the best bound that it found."""
    chosen = {"emission": "categorical", "n_init": 10, "tol": 1e-10, "max_iter": 5000, "random_state": 0}
    model = VBHMM(2, durations=durations, **chosen).fit(SEVEN)
    assert model.log_evidence(SEVEN, kind="exact", max_terms=10**7).value == approx(evidence, abs=6e-9)
    assert bound - 1e-6 <= model.lower_bound_ <= evidence


@pytest.mark.parametrize(
    ("durations", "bound"),
    [
        (plain(1), -352.283467),
        (plain(2), -356.4635),
        (plain(3), -360.4051),
        (plain(5), -365.5169),
        (Stages(2, prior="transitions"), -350.0925),
        (Stages(3, prior="transitions"), -348.7912),
        (Stages(5, prior="transitions"), -349.6044),
    ],
    ids=str,
)
def test_earthquakes(durations, bound):
    """The best bound that another program found."""
    chosen = {"emission": "poisson", "n_init": 5, "tol": 1e-7, "max_iter": 3000, "random_state": 0}
    model = VBHMM(3, durations=durations, **chosen).fit(datasets.load_earthquakes().data)
    assert bound - 1e-4 <= model.lower_bound_ < bound + 0.5


def growth():
    """Monthly changes of the carbon dioxide, months without a measurement among them."""
    data = np.asarray(datasets.load_co2().data, dtype=float)[:, -1:]
    return np.diff(data, axis=0)


def letters():
    """The first letters of a book, spaces among them."""
    return np.array(list(datasets.load_alice()[:2000]))[:, None]


SEQUENCES = {
    "earthquakes": (3, "poisson", lambda: datasets.load_earthquakes().data),
    "fetal lamb": (2, "poisson", lambda: datasets.load_fetal_lamb().data),
    "nile": (2, "gaussian", lambda: datasets.load_nile().data),
    "co2": (3, "gaussian", growth),
    "alice": (4, "categorical", lambda: letters()),
}


@pytest.mark.parametrize("durations", [Hazards(1, prior="transitions"), Stages(1, prior="transitions")], ids=str)
@pytest.mark.parametrize("name", SEQUENCES)
def test_one_age_is_the_markov_chain(name, durations):
    """A chain with one age, or one stage, and the plain chain from one start: equal bounds, states and next states."""
    n_states, emission, load = SEQUENCES[name]
    X, rng = load(), np.random.default_rng(3)
    start = np.repeat(rng.dirichlet(np.ones(n_states), size=-(-len(X) // 8)), 8, axis=0)[: len(X)]
    chosen = {"emission": emission, "init": start, "tol": 1e-12, "max_iter": 3000, "transmat_prior": 0.7, "sticky": 2.0}
    chain, model = (VBHMM(n_states, **chosen, **more).fit(X) for more in ({}, {"durations": durations}))
    assert model.lower_bound_ == approx(chain.lower_bound_, rel=0, abs=1e-9 * max(abs(chain.lower_bound_), 1))
    assert model.predict_proba(X) == approx(chain.predict_proba(X), abs=1e-4)
    staying = np.diag(chain.transmat_)
    leaving = np.ravel(model.parameters_["chain"]["stage_ends" if isinstance(durations, Stages) else "hazards"])
    assert leaving == approx(1 - staying, abs=1e-4)
    others = (chain.transmat_ - np.diag(staying)) / (1 - staying)[:, None]
    assert model.transmat_ == approx(others, abs=1e-4)
