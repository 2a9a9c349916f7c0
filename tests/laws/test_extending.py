"""What somebody adds from outside the package, in one file and one line each, works wherever ours does."""

import pickle

import numpy as np
import pandas as pd
import pytest
from laws.geometric import Geometric
from scipy.special import betaln
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from skvbem import VBHMM, StructureSearchCV, VBMixture
from skvbem.emissions import EMISSIONS, register_emission

approx = pytest.approx

# An emission ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def geometric():
    """The one line, taken back after the test."""
    yield register_emission("geometric", Geometric)
    del EMISSIONS["geometric"]


def failures(rng, n_rows=120, p=(0.7, 0.1)):
    """A table of failures of two kinds of rows, and the kinds."""
    kind = rng.integers(0, 2, n_rows)
    return rng.geometric(np.array(p)[kind][:, None] * [1.0, 0.8]) - 1.0, kind


@pytest.mark.usefixtures("geometric")
def test_an_emission_is_fitted_by_its_name(rng):
    X, kind = failures(rng)
    X[::9, 0] = np.nan
    for estimator in (VBMixture(2, emission="geometric", random_state=0), VBHMM(2, emission="geometric")):
        model = clone(estimator).set_params(random_state=0).fit(X)
        assert list(model.parameters_) == ["geometric"]
        assert np.sort(model.parameters_["geometric"]["probabilities"][:, 0]) == approx([0.1, 0.7], abs=0.12)
        low, high = model.credible_intervals()["geometric"]["probabilities"]
        assert (low < high).all()
    accurate = np.mean(VBMixture(2, emission="geometric", random_state=0).fit_predict(X) == kind)
    assert max(accurate, 1 - accurate) > 0.8


def test_an_object_needs_no_name(rng):
    X, _ = failures(rng)
    model = VBMixture(2, emission=Geometric(2.0), random_state=0).fit(X)
    assert list(model.groups_) == ["geometric"]
    assert pickle.loads(pickle.dumps(model)).score(X) == model.score(X)
    assert model.get_params()["emission__success_prior"] == 2.0


def test_the_bound_of_one_component_is_the_evidence(rng):
    X, _ = failures(rng, 30)
    n, total = len(X), X.sum(axis=0)
    evidence = (betaln(2.0 + n, 3.0 + total) - betaln(2.0, 3.0)).sum()
    emission = Geometric(2.0, 3.0)
    assert VBMixture(1, emission=emission).fit(X).lower_bound_ == approx(evidence, rel=1e-12)
    model = VBMixture(1, emission=emission).fit(X[:-1])
    before = VBMixture(1, emission=emission).fit(X[:-1]).lower_bound_
    assert model.score_samples(X[-1:])[0] == approx(evidence - before, rel=1e-9)


@pytest.mark.parametrize("cell", [-1.0, 0.5])
@pytest.mark.parametrize("estimator", [VBMixture, VBHMM])
@pytest.mark.usefixtures("geometric")
def test_bad_cells_are_refused_in_its_words(estimator, cell):
    frame = pd.DataFrame({"tries": [1.0, cell, 3.0, 0.0]})
    text = f"Column 'tries' of X holds {cell:g}, but for 'geometric' failures are whole numbers >= 0."
    with pytest.raises(ValueError, match=text.replace(".", r"\.")):
        estimator(2, emission="geometric").fit(frame)
    with pytest.raises(ValueError, match=r"'emission' parameter of .* Families are .*'geometric'"):
        estimator(2, emission={"geometrik": ["tries"]}).fit(frame)
    with pytest.raises(ValueError, match=r"The priors of Geometric\(success_prior=-1\) must be > 0"):
        estimator(2, emission=Geometric(-1)).fit([[1], [2], [3]])


def test_its_columns_are_drawn(rng):
    pytest.importorskip("matplotlib")
    from skvbem.plotting import ClassProfileDisplay, ComponentsDisplay, StatePathDisplay

    X, _ = failures(rng)
    model = VBMixture(2, emission=Geometric(), random_state=0).fit(X)
    profile = ClassProfileDisplay.from_estimator(model).profiles[0]
    p = model.parameters_["geometric"]["probabilities"][:, 0]
    assert profile.values == approx(1 / p - 1)
    low, high = profile.intervals
    assert (low < profile.values).all()
    assert (profile.values < high).all()
    with pytest.raises(ValueError, match=r"ellipses over two measurements.* this fit has none"):
        ComponentsDisplay.from_estimator(model, X)
    chain = VBHMM(2, emission=Geometric(), random_state=0).fit(X)
    track = StatePathDisplay.from_estimator(chain, X).tracks[0]
    assert set(track.levels) <= set(1 / chain.parameters_["geometric"]["probabilities"][:, 0] - 1)


def test_it_is_forecast_imputed_and_sampled(rng):
    X, _ = failures(rng)
    model = VBHMM(2, emission=Geometric(), random_state=0).fit(X)
    ahead = model.forecast(X, n_steps=3)
    expected = ahead.state_probabilities @ (1 / model.parameters_["geometric"]["probabilities"][:, 0] - 1)
    assert ahead.expected["x0"] == approx(expected)
    mixture = VBMixture(2, emission=Geometric(), random_state=0).fit(X)
    holed = X.copy()
    holed[0, 0] = np.nan
    filled = mixture.impute(holed)
    assert filled[0, 0] > 0
    assert np.array_equal(filled[1:], X[1:])
    drawn, _ = mixture.sample(50, random_state=0)
    assert (drawn == np.floor(drawn)).all()
    assert (drawn >= 0).all()


def test_it_is_searched(rng):
    X, _ = failures(rng, 200)
    search = StructureSearchCV(
        VBMixture(emission=Geometric()), {"n_components": [1, 2, 3]}, scoring="lower_bound", random_state=0
    ).fit(X)
    assert search.best_params_ == {"n_components": 2}
    grid = GridSearchCV(
        VBMixture(2, emission=[("tries", Geometric(), slice(None))], n_init=2, random_state=0),
        {"emission__tries__success_prior": [1.0, 1000.0]},
        cv=2,
    ).fit(X)
    assert grid.best_params_ == {"emission__tries__success_prior": 1.0}


@pytest.mark.parametrize("estimator", [VBMixture, VBHMM])
def test_its_evidence_is_sampled(estimator, rng):
    X, _ = failures(rng, 8)
    model = estimator(2, emission=Geometric(2.0, 2.0), n_init=5, random_state=0).fit(X)
    exact = model.log_evidence(X, kind="exact").value
    assert model.lower_bound_ < exact
    sampled = model.log_evidence(X, kind="ais", n_chains=64, random_state=1)
    assert sampled.value == approx(exact, abs=4 * sampled.standard_error + 0.02)
    mixed = estimator(2, emission=[("tries", Geometric(), [0]), ("size", "gaussian", [1])], random_state=0).fit(X)
    assert np.isfinite(mixed.log_evidence(X, kind="ais", n_chains=4).value)


def test_what_is_no_emission_is_not_registered(geometric):
    with pytest.raises(TypeError, match="takes a class that derives from EmissionSpecification"):
        register_emission("other", geometric())
    with pytest.raises(ValueError, match=r"must be an identifier .* other than 'auto'"):
        register_emission("auto", geometric)
    with pytest.raises(ValueError, match="The name 'poisson' is that of Poisson"):
        register_emission("poisson", geometric)
    assert register_emission("geometric", geometric) is geometric
