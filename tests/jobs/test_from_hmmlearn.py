"""Jobs of people who come from hmmlearn and depmixS4, with hmmlearn's own numbers or a forward pass written out."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import poisson

from skvbem import VBHMM
from skvbem.datasets import load_alice, load_earthquakes

pd = pytest.importorskip("pandas")
approx = pytest.approx
DATA = Path(__file__).parents[1] / "data"
GPL = DATA / "third_party" / "gpl"
in_checkout = pytest.mark.skipif(not GPL.exists(), reason="the table is in a checkout only, under its own license")


@pytest.fixture(scope="module")
def quakes():
    return load_earthquakes().data


@pytest.fixture(scope="module")
def model(quakes):
    return VBHMM(3, emission="poisson", method="ml", random_state=0).fit(quakes)


@pytest.fixture(scope="module")
def theirs(model):
    """hmmlearn's model at the parameters of ours."""
    hmm = pytest.importorskip("hmmlearn.hmm")
    theirs = hmm.PoissonHMM(3)
    theirs.startprob_, theirs.transmat_, theirs.lambdas_ = (
        model.startprob_,
        model.transmat_,
        model.parameters_["poisson"]["rates"],
    )
    theirs.n_features = 1
    return theirs


def test_log_likelihood_path_and_states_are_those_of_hmmlearn(model, theirs, quakes):
    """'The numbers that I had: score, decode, predict_proba.'"""
    log_likelihood, states = theirs.score_samples(quakes)
    best, path = theirs.decode(quakes)
    assert model.score_samples(quakes).sum() == approx(log_likelihood)
    np.testing.assert_allclose(model.predict_proba(quakes), states, atol=1e-9)
    np.testing.assert_array_equal(model.predict(quakes), path)
    assert model.decode(quakes)[1][0] == approx(best)


def test_how_many_states_by_bic(quakes):
    """'BIC for one to four states.' Log likelihoods of thirty starts of an independent program."""
    reference = json.loads((DATA / "earthquakes.ref.json").read_text())["by_K"]
    for k in (1, 2, 3):
        fit = VBHMM(k, emission="poisson", method="ml", random_state=0).fit(quakes)
        assert fit.bic(quakes) == approx(reference[str(k)]["bic_minus2_form"], abs=1e-3)


def test_what_comes_next(model, quakes):
    """'Probabilities of the states and the expected count in the coming years.'"""
    rates = model.parameters_["poisson"]["rates"][:, 0]
    ahead = model.forecast(quakes, n_steps=2)
    states = model.filter(quakes)[-1]
    for step in (0, 1):
        states = states @ model.transmat_
        np.testing.assert_allclose(ahead.state_probabilities[0, step], states)
        assert ahead.expected["x0"][0, step] == approx(states @ rates)


def test_years_without_a_count(quakes):
    """'Five years were not counted.' The forward pass, which multiplies by one there."""
    gaps = quakes.astype(float)
    gaps[40:45] = np.nan
    model = VBHMM(2, emission="poisson", method="ml", random_state=0).fit(gaps)
    often = poisson.pmf(gaps, model.parameters_["poisson"]["rates"].T)
    often[40:45] = 1
    states, total = model.startprob_ * often[0], 0.0
    for row in often[1:]:
        total, states = total + np.log(states.sum()), (states / states.sum()) @ model.transmat_ * row
    assert model.log_likelihood_ == approx(total + np.log(states.sum()))
    assert not np.isnan(model.impute(gaps)).any()


@in_checkout
def test_several_series_of_response_times():
    """'Three series of response times, two states': depmixS4's vignette, thirty starts of an independent program."""
    speed = pd.read_csv(GPL / "speed.csv")
    model = VBHMM(2, method="ml", random_state=0).fit(speed[["rt"]], sequence_id=speed["series"])
    assert model.log_likelihood_ == approx(-84.341714, abs=1e-4)
    np.testing.assert_allclose(np.sort(model.means_[:, 0]), [5.5111, 6.3855], atol=1e-3)


@in_checkout
def test_a_panel_of_people_with_weights():
    """'237 young people, five waves, tabulated.' Rows of people, as often as the table says."""
    table = pd.read_csv(GPL / "marijuana_panel_counts.csv")
    people = [waves[:, None] for waves in table[["V1", "V2", "V3", "V4", "V5"]].astype(str).to_numpy()]
    model = VBHMM(2, method="ml", random_state=0).fit(people, sample_weight=table["V6"])
    assert model.log_likelihood_ == approx(-697.697595, abs=1e-4)


def test_vowels_and_consonants():
    """'Two states of letters, without an encoding.'"""
    letters = np.array([each for each in load_alice()[:3000] if each != " "])[:, None]
    model = VBHMM(2, random_state=0).fit(letters)
    often = pd.DataFrame(model.parameters_["categorical"]["probabilities"][:, 0], columns=model.categories_["x0"])
    state_of_e = often["e"].argmax()
    assert (often[list("aeiou")].to_numpy().argmax(axis=0) == state_of_e).all()
    assert (often[list("bdlrstw")].to_numpy().argmin(axis=0) == state_of_e).all()
