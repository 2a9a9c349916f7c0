"""Shares of states in the long run and mean stays: against eigenvectors, powers and closed forms."""

import numpy as np
import pytest
from scipy.stats import beta

from skvbem import VBHMM
from skvbem.datasets import load_earthquakes
from skvbem.durations import Hazards, Stages
from skvbem.emissions import Softmax
from skvbem.reports.long_run import closed_states, mean_stays, stationary_distributions

approx = pytest.approx
QUAKES = load_earthquakes().data


@pytest.fixture(scope="module")
def two():
    return VBHMM(2, emission="poisson", random_state=0).fit(QUAKES)


def known(transmat):
    """A chain with these transitions."""
    n = len(transmat)
    return VBHMM.from_parameters(
        np.full(n, 1 / n), transmat, {"rates": np.arange(1.0, n + 1)[:, None]}, emission="poisson"
    )


@pytest.mark.parametrize("n", [1, 2, 5])
def test_shares_are_the_left_eigenvector(n, rng):
    transitions = rng.dirichlet(np.full(n, 0.3), size=(20, n))
    shares = stationary_distributions(transitions, np.arange(n))
    assert np.einsum("bi,bij->bj", shares, transitions) == approx(shares, rel=1e-12)
    assert shares.sum(axis=1) == approx(np.ones(20))
    values, vectors = np.linalg.eig(transitions[0].T)
    of_one = vectors[:, np.argmin(np.abs(values - 1))].real
    assert shares[0] == approx(of_one / of_one.sum(), rel=1e-8)


def test_two_states_have_a_closed_form():
    run = known([[0.9, 0.1], [0.3, 0.7]]).long_run()
    assert run.stationary == approx([0.75, 0.25], rel=1e-14)
    assert run.mean_stays == approx([10, 10 / 3], rel=1e-14)
    assert run.method == "none"
    assert np.isnan([*run.stationary_interval, *run.mean_stays_interval]).all()


def test_small_shares_have_all_their_digits():
    """A state that is hardly ever entered: a difference of ones would leave nothing of its share."""
    transitions = np.array([[1 - 1e-25, 1e-25], [0.5, 0.5]])
    assert stationary_distributions(transitions, np.arange(2))[1] == approx(2e-25, rel=1e-12)


def test_mean_stays_are_means_of_runs(rng):
    transitions = np.array([[0.8, 0.1, 0.1], [0.3, 0.5, 0.2], [0.05, 0.05, 0.9]])
    _, states = known(transitions).sample(200_000, random_state=0)
    ends = np.flatnonzero(np.diff(states))
    lasted, of_state = np.diff(np.r_[-1, ends]), states[ends]
    found = [lasted[of_state == k].mean() for k in range(3)]
    assert mean_stays(transitions) == approx(found, rel=0.03)
    assert stationary_distributions(transitions, np.arange(3)) == approx(np.bincount(states) / len(states), abs=0.01)


def test_states_that_are_left_for_good_have_no_share():
    run = known([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]).long_run()
    assert run.stationary.tolist() == [0, 0, 1]
    assert run.mean_stays.tolist() == [2, 2, np.inf]
    assert closed_states(np.array([[0.5, 0.25, 0.25], [0, 0.5, 0.5], [0, 0.5, 0.5]])).tolist() == [1, 2]
    assert known([[0.0, 1.0], [1.0, 0.0]]).long_run().stationary == approx([0.5, 0.5])  # which no power ends in
    assert known([[1.0]]).long_run().stationary.tolist() == [1.0]


def test_several_sets_that_are_never_left_are_refused():
    with pytest.raises(ValueError, match=r"never leaves \{0\} or \{1, 2\} once it is there"):
        known([[1.0, 0, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]]).long_run()


def test_intervals_of_q_are_quantiles_of_a_beta_distribution(two):
    run, concentration = two.long_run(level=0.9), two.transmat_concentration_
    stay, leave = np.diagonal(concentration), concentration[[0, 1], [1, 0]]
    for end, p in zip(run.mean_stays_interval, (0.05, 0.95)):
        assert end == approx(1 / (1 - beta.ppf(p, stay, leave)), rel=0.08)  # of 2000 draws
    assert run.method == "vb"
    again = two.long_run(level=0.9)
    assert np.array_equal(run.stationary_interval, again.stationary_interval)


def test_intervals_are_those_of_draws(two):
    draws = two.sample_posterior(QUAKES, 200, method="linear_response")
    run, drawn = two.long_run(draws=draws), draws.parameters["chain"]["transmat"]
    a, b = drawn[:, 0, 1], drawn[:, 1, 0]
    assert run.stationary_interval[0][0] == approx(np.quantile(b / (a + b), 0.025))
    assert run.mean_stays_interval[1] == approx(np.quantile([1 / a, 1 / b], 0.975, axis=1))
    assert run.method == "linear_response"
    assert (run.stationary_interval[0] < run.stationary).all()
    assert (run.stationary < run.stationary_interval[1]).all()
    of_data = two.long_run(QUAKES)
    assert of_data.method in ("draws", "linear_response")
    halves = two.long_run(QUAKES[:, None, 0], lengths=[len(QUAKES)])
    assert np.array_equal(halves.stationary_interval, of_data.stationary_interval)


@pytest.mark.parametrize("method", ["ml", "map"])
def test_intervals_of_points_are_those_of_the_observed_information(method):
    fit = VBHMM(2, emission="poisson", method=method, random_state=0).fit(QUAKES)
    run, errors = fit.long_run(QUAKES), fit.standard_errors(QUAKES)
    lower, upper = errors.intervals()["chain"]["transmat"]
    ends = 1 / (1 - np.diagonal(lower)), 1 / (1 - np.diagonal(upper))
    for found, expected in zip(run.mean_stays_interval, ends):
        assert np.log(found) == approx(np.log(expected), abs=0.25)  # logits of draws are normal, not its own
    assert np.array_equal(fit.long_run(draws=errors).stationary_interval, run.stationary_interval)
    assert np.isnan(fit.long_run().stationary_interval).all()


@pytest.mark.parametrize("durations", [Hazards(4), Stages(2), Hazards(1, prior="transitions")], ids=str)
def test_with_durations_shares_are_those_of_stays_times_their_means(durations, two):
    """Of two states, which stays take in turn; at the fit and at draws."""
    lasting = VBHMM(2, emission="poisson", durations=durations, random_state=0).fit(QUAKES)
    run, stays = lasting.long_run(level=0.8), lasting.duration_distribution()
    assert run.mean_stays == approx(stays.means)
    assert run.stationary == approx(stays.means / stays.means.sum())
    draws = lasting.sample_posterior(QUAKES, 50, method="linear_response")
    means = lasting.duration_distribution(draws=draws).means_drawn
    of_draws = lasting.long_run(draws=draws, level=0.8)
    for expected, found in (
        (means, of_draws.mean_stays_interval),
        (means / means.sum(axis=1, keepdims=True), of_draws.stationary_interval),
    ):
        assert np.array(found) == approx(np.quantile(expected, [0.1, 0.9], axis=0))
    if durations == Hazards(1, prior="transitions"):  # the Markov chain
        alike = two.long_run(level=0.8)
        assert np.sort(run.stationary) == approx(np.sort(alike.stationary), rel=1e-3)
        ends = [np.sort(each.mean_stays_interval, axis=1) for each in (run, alike)]
        assert ends[0] == approx(ends[1], rel=0.1)  # of 2000 draws


def test_intervals_of_points_with_durations():
    fit = VBHMM(2, emission="poisson", durations=Stages(2), method="ml", random_state=0).fit(QUAKES)
    run, errors = fit.long_run(QUAKES), fit.standard_errors(QUAKES)
    lower, upper = errors.intervals()["chain"]["stage_ends"]
    for found, expected in zip(run.mean_stays_interval, (2 / upper, 2 / lower)):
        assert np.log(found) == approx(np.log(expected), abs=0.15)  # of 2000 points


def test_it_is_shown(two):
    run = two.long_run()
    assert "mean stay" in repr(run)
    assert "95 % intervals by vb" in run._repr_html_()
    frame = run.to_frame()
    assert frame["stationary"].tolist() == run.stationary.tolist()
    assert frame["mean_stay_upper"].tolist() == run.mean_stays_interval[1].tolist()
    named = VBHMM(2, emission="poisson", random_state=0).fit(
        QUAKES, labels=np.where(QUAKES[:, 0] > 35, "strong", np.where(QUAKES[:, 0] < 8, "calm", None))
    )
    assert named.long_run().to_frame()["state"].tolist() == ["calm", "strong"]


def test_what_has_no_long_run_is_refused(two, rng):
    X = np.column_stack([rng.normal(size=60), rng.normal(size=60)])
    driven = VBHMM(2, transitions=Softmax([1]), n_init=1, random_state=0).fit(X)
    with pytest.raises(ValueError, match="long_run needs transitions that are the same at every step"):
        driven.long_run()
    with pytest.raises(ValueError, match="'level' parameter of long_run"):
        two.long_run(level=2.0)
    with pytest.raises(TypeError, match="'draws' parameter of long_run"):
        two.long_run(draws=3)
    with pytest.raises(ValueError, match="data"):
        two.long_run(QUAKES[:50])
