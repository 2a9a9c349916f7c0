"""`VBHMM("auto")`: the number of states whose bound is the highest, for any emission, chain and known labels."""

import numpy as np
import pytest
from estimators.hmm.test_vb_hmm import chains

from skvbem import VBHMM
from skvbem.datasets import load_earthquakes
from skvbem.emissions import FactorGaussian, Gaussian, Softmax
from skvbem.errors import TooLargeError

approx = pytest.approx
SEED = {"random_state": 0}


def visits(rng, allowed, n_steps=300):
    """The states of a chain that stays for some five steps, and then goes on to any state allowed."""
    states, leave = [0], allowed & ~np.eye(len(allowed), dtype=bool)
    for _ in range(n_steps - 1):
        here = states[-1]
        ways = np.flatnonzero(leave[here])
        states.append(int(rng.choice(ways)) if len(ways) and rng.random() < 0.2 else here)
    return np.array(states)


def best_of_numbers(X, numbers, fit=None, **options):
    """The bound of each number of states, fitted by itself."""
    return {k: VBHMM(k, **options, **SEED).fit(X, **(fit or {})).lower_bound_ for k in numbers}


def assert_is_best(X, numbers, fit=None, **options):
    """The fit whose bound is no lower than that of each number, and which has the states of the best."""
    auto = VBHMM("auto", **options, **SEED).fit(X, **(fit or {}))
    bounds = best_of_numbers(X, numbers, fit, **options)
    assert auto.lower_bound_ >= max(bounds.values()) - 0.01
    assert auto.n_components_ == max(bounds, key=bounds.get)
    assert auto.n_components_ == len(auto.transmat_) == auto.moves_[-1].n_components
    return auto


ALL = np.ones((3, 3), dtype=bool)
DRAWS = {
    "gaussian": lambda rng, s: rng.normal(3.0 * s[:, None], 1.0, (len(s), 2)),
    "poisson": lambda rng, s: rng.poisson(1.0 + 6.0 * s**2)[:, None],
    "gamma": lambda rng, s: rng.gamma(5.0, 8.0**s)[:, None],
    "categorical": lambda rng, s: np.where(
        rng.random((len(s), 2)) < 0.8, s[:, None], rng.integers(3, size=(len(s), 2))
    ),
}


@pytest.mark.parametrize("emission", DRAWS)
def test_the_number_is_that_of_the_highest_bound(emission, rng):
    X = DRAWS[emission](rng, visits(rng, ALL, 150))
    auto = assert_is_best(X, range(1, 5), emission=emission)
    assert auto.n_components_ == 3
    bounds = [move.lower_bound for move in auto.moves_]
    assert bounds == sorted(bounds)
    assert auto.lower_bound_ >= bounds[-1] - 0.1  # moves are judged nearly at their ends


def test_noise_is_one_state(rng):
    assert VBHMM("auto", **SEED).fit(rng.normal(size=(100, 2))).n_components_ == 1
    assert VBHMM("auto", **SEED).fit(rng.normal(size=(2, 2))).n_components_ == 1
    assert VBHMM("auto", **SEED).fit([rng.normal(size=(1, 2)) for _ in range(3)]).n_components_ == 1


def test_states_that_look_alike_are_told_apart_by_the_next_one():
    """The two letters A of AAB are two states: no row is of another kind than a row of the other."""
    X = np.array(list("AAB" * 60))[:, None]
    assert assert_is_best(X, range(1, 5)).n_components_ == 3


@pytest.mark.parametrize(("mask", "reach"), [("left-to-right", (0, 1)), (1, (-1, 1))])
def test_masks_that_are_a_rule_hold_for_any_number(mask, reach, rng):
    """Three levels, which a chain goes through from the first to the last, or up and down."""
    away = np.arange(3) - np.arange(3)[:, None]
    paths = [visits(rng, (away >= reach[0]) & (away <= reach[1]), 40) for _ in range(5)]
    X = [rng.normal(5.0 * ((path + 1) % 3)[:, None], 1.0) for path in paths]
    auto = assert_is_best(X, range(1, 5), transmat_mask=mask)
    assert auto.n_components_ == 3
    assert (auto.transmat_[(away < reach[0]) | (away > reach[1])] == 0).all()


def test_known_labels_are_states_of_their_own(rng):
    X, states = chains(rng, (60, 60))
    labels = [np.where(np.arange(60) % 6 == 0, np.array(["low", "high"])[path], None) for path in states]
    auto = VBHMM("auto", **SEED).fit(X, labels=labels)
    assert auto.n_components_ == 2
    assert auto.component_names_.tolist() == ["high", "low"]
    beyond = [*X, rng.normal(20.0, 1.0, (30, 2))]
    more = VBHMM("auto", **SEED).fit(beyond, labels=[*labels, np.full(30, None)])
    assert more.component_names_.tolist() == ["high", "low", 2]
    split = [np.where(path == 0, "a", "b") for path in states]
    split[0] = np.where((states[0] == 0) & (np.arange(60) % 2 == 0), "c", split[0])
    assert VBHMM("auto", **SEED).fit(X, labels=split).n_components_ == 3  # never fewer states than names


def test_covariates_of_transitions(rng):
    driven = rng.integers(2, size=150)
    states = np.cumsum(np.r_[0, rng.random(149) < np.where(driven[1:] == 1, 0.5, 0.02)]) % 2
    X = np.column_stack([rng.normal(4.0 * states, 1.0), driven])
    auto = assert_is_best(X, range(1, 4), transitions=Softmax([1]), start=Softmax([1]))
    assert auto.n_components_ == 2


def test_numbers_of_factors_are_found_beside(rng):
    X, _ = chains(rng, (150,), d=4)
    common = rng.normal(size=(150, 1)) @ np.array([[2.0, 2.0, -2.0, 2.0]])
    auto = VBHMM("auto", emission=FactorGaussian("auto"), **SEED).fit(X[0] + common)
    assert auto.n_components_ == 2
    assert auto.n_factors_.tolist() == [1, 1]


def test_weights_are_repeats_and_threads_and_order_change_nothing(rng):
    X, _ = chains(rng, (50, 40, 30))
    weighted = VBHMM("auto", **SEED).fit(X, sample_weight=[1, 2, 1])
    repeated = VBHMM("auto", **SEED).fit([X[0], X[1], X[1], X[2]])
    assert weighted.n_components_ == repeated.n_components_ == 2
    assert weighted.lower_bound_ == approx(repeated.lower_bound_, abs=1e-4)
    again = VBHMM("auto", n_jobs=2, **SEED).fit(X, sample_weight=[1, 2, 1])
    assert np.array_equal(weighted.transmat_, again.transmat_)
    turned = VBHMM("auto", **SEED).fit(X[::-1], sample_weight=[1, 2, 1])
    assert turned.lower_bound_ == approx(weighted.lower_bound_, abs=1e-4)


def test_what_may_be_done_with_any_fit(rng, capsys):
    X = load_earthquakes().data
    auto = VBHMM("auto", emission="poisson", verbose=1, **SEED).fit(X)
    told = capsys.readouterr().out
    assert "[VBHMM] split: 3 states, lower_bound -352.28" in told
    fixed = VBHMM(3, emission="poisson", **SEED).fit(X)
    assert auto.lower_bound_ == approx(fixed.lower_bound_, abs=1e-4)
    for kind in ("bic", "cheeseman_stutz"):
        assert auto.log_evidence(X, kind=kind).value == approx(fixed.log_evidence(X, kind=kind).value, abs=1e-2)
    learned = VBHMM("auto", emission="poisson", learn_prior=True, **SEED).fit(X)
    assert learned.lower_bound_ > auto.lower_bound_
    fast = VBHMM("auto", emission="poisson", search_effort="fast", **SEED).fit(X)
    assert fast.lower_bound_ == approx(
        VBHMM(fast.n_components_, emission="poisson", **SEED).fit(X).lower_bound_, abs=0.1
    )
    again = auto.set_params(warm_start=True, verbose=0).fit(X)
    assert again.n_components_ == 3
    assert auto.partial_fit(X).n_components_ == 3


def test_no_more_states_than_memory_has_room_for(rng):
    X = DRAWS["gaussian"](rng, visits(rng, ALL, 400))
    with pytest.raises(TooLargeError, match="'max_memory' parameter of VBHMM"):
        VBHMM("auto", emission=Gaussian(), max_memory=2e4, **SEED).fit(X)


def test_names_that_label_no_step_are_refused(rng):
    with pytest.raises(ValueError, match="'labels' must have a row of each of the numbers 0 to 2"):
        VBHMM("auto").fit(rng.normal(size=(4, 1)), labels=[0, 2, -1, -1])
