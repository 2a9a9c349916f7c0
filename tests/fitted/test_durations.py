"""Distributions of stays against draws of stays, and against sums of their probabilities."""

import numpy as np
import pytest

from skvbem import VBHMM
from skvbem.durations import Hazards, Stages
from skvbem.emissions import Softmax
from skvbem.plotting import DurationsDisplay

approx = pytest.approx
rng = np.random.default_rng(20261128)
STATES = np.repeat(rng.integers(0, 2, 60), rng.integers(2, 9, 60))
X = rng.normal(3.0 * STATES)[:, None]
FAMILIES = ["geometric", Hazards(6), Hazards(5, bins="single", prior=(1.0, 2.0)), Stages(3)]


def fitted(durations, **options):
    return VBHMM(2, durations=durations, n_init=2, random_state=0, **options).fit(X)


@pytest.mark.parametrize("durations", FAMILIES, ids=str)
def test_stays_of_a_long_sequence(durations):
    """Of ML parameters: frequencies of stays drawn, their mean and quantiles."""
    model = fitted(durations, method="ml")
    told = model.duration_distribution(n_steps=400)
    assert np.isnan(told.mean_intervals).all()
    drawn = model.sample(40_000, random_state=1)[1]
    changes = np.flatnonzero(np.diff(drawn)) + 1
    lengths, states = np.diff(changes), drawn[changes[:-1]]
    for k in range(2):
        stays = lengths[states == k]
        error = np.sqrt(1 / len(stays))
        assert told.means[k] == approx(stays.mean(), abs=4 * stays.std() * error)
        for steps in (1, 3, 6):
            assert told.lasts[k, steps] == approx((stays > steps).mean(), abs=2.5 * error)
        assert told.probabilities[k] @ np.arange(1, 401) == approx(told.means[k], rel=1e-6)
        median = int(told.quantile(0.5)[0][k])
        assert told.lasts[k, median] <= 0.5 < told.lasts[k, median - 1]


@pytest.mark.parametrize("durations", FAMILIES, ids=str)
def test_intervals_are_those_of_draws(durations):
    model = fitted(durations)
    told = model.duration_distribution(level=0.8)
    lower, upper = told.lasts_intervals
    assert (lower <= upper).all()
    assert (lower[:, 0] == 1).all()
    low, high = told.mean_intervals
    assert (low < told.means).all()
    assert (told.means < high).all()
    draws = model.sample_posterior(X, n_draws=20, random_state=0)
    by_draws = model.duration_distribution(1, draws=draws)
    assert by_draws.means_drawn.shape == (20, 1)
    if durations == "geometric":
        stays = draws.parameters["chain"]["transmat"][:, 1, 1]
        assert by_draws.means_drawn[:, 0] == approx(1 / (1 - stays))


def test_the_table_is_that_of_a_frame():
    pytest.importorskip("pandas")
    told = fitted(Stages(2)).duration_distribution(0, n_steps=5)
    frame = told.to_frame()
    assert frame["probability"].to_numpy() == approx(told.probabilities[0])
    assert frame["lasts_longer"].to_numpy() == approx(told.lasts[0, 1:])
    assert "10 %" in repr(told)
    assert "<table" in told._repr_html_()


def test_what_has_no_distribution_is_refused():
    model = fitted("geometric")
    with pytest.raises(ValueError, match=r"must be a state of this VBHMM, one of 0, 1\. Got 'rest' instead"):
        model.duration_distribution("rest")
    with pytest.raises(ValueError, match=r"The 'probability' of quantile must be between 0 and 1\. Got 1\.0 instead"):
        model.duration_distribution().quantile(1.0)
    with pytest.raises(ValueError, match="'draws' parameter of duration_distribution must be what sample_posterior"):
        model.duration_distribution(draws=3)
    driven = VBHMM(2, transitions=Softmax([1]), n_init=1, random_state=0).fit(np.c_[X, X])
    with pytest.raises(ValueError, match="so that stays have no one distribution"):
        driven.duration_distribution()


def test_a_state_that_is_never_left():
    words = [np.array(list(word))[:, None] for word in ("aaabbb", "aabbbb", "aaaab")]
    model = VBHMM(2, transmat_mask="left-to-right", durations=Hazards(3), random_state=0).fit(words)
    told = model.duration_distribution(n_steps=8)
    assert told.means[1] == np.inf
    assert told.lasts[1] == approx(np.ones(9))
    assert np.isfinite(model.lower_bound_)


def test_pictures():
    pytest.importorskip("matplotlib")
    model = fitted(Hazards(6))
    display = DurationsDisplay.from_estimator(model, level=0.9)
    line = display.axes_[0, 1].lines[1]
    lasts = model.duration_distribution(level=0.9).lasts[1]
    assert np.asarray(line.get_ydata()) == approx(lasts)
    assert DurationsDisplay.from_estimator(fitted("geometric", method="ml"), state=0).axes_.shape == (1, 1)
