"""What somebody adds from outside the package, in one file and one line each, works wherever ours does."""

import pickle

import numpy as np
import pandas as pd
import pytest
from laws.additions import PENALIZED, Sampled
from laws.geometric import Geometric, GeometricEmission
from laws.two_coins import CoinAscent, CoinCase, CoinInstance, TwoCoins, capabilities_of
from scipy.special import betaln
from scipy.stats import geom
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from skvbem import VBHMM, StructureSearchCV, VBDiscreteDAG, VBMixture
from skvbem.datasets import load_carcinoma
from skvbem.emissions import EMISSIONS, register_emission
from skvbem.evidence import SCORES, evidence_table, get_score, scorer
from skvbem.fitting.evaluation import evaluation_of
from skvbem.models import MODELS, RegisteredModel
from skvbem.search.strategies import STRATEGIES
from skvbem.testing import check_emission, check_model, check_score
from skvbem.vbem import posteriors
from skvbem.vbem.driver import run

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
        low, high = model.credible_intervals(method="vb")["geometric"]["probabilities"]
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
    with pytest.raises(ValueError, match=r"The 'success_prior' parameter of Geometric must be > 0 and finite\. Got -1"):
        estimator(2, emission=Geometric(-1)).fit([[1], [2], [3]])


def test_its_errors_are_those_of_a_closed_form(rng):
    X, _ = failures(rng)
    model = VBMixture(1, emission=Geometric(), method="ml", random_state=0).fit(X)
    p = model.parameters_["geometric"]["probabilities"][0]
    expected = p * np.sqrt((1 - p) / len(X))
    assert model.standard_errors(X).errors["geometric"]["probabilities"][0] == approx(expected)
    draws = model.bootstrap(X, 100, kind="parametric")
    assert draws.errors["geometric"]["probabilities"][0] == approx(expected, rel=4 / np.sqrt(200))
    assert [table.title for table in model.summary(X).tables] == ["components", "geometric"]


def test_its_columns_are_drawn(rng):
    pytest.importorskip("matplotlib")
    from skvbem.plotting import ClassProfileDisplay, ComponentsDisplay, StatePathDisplay

    X, _ = failures(rng)
    model = VBMixture(2, emission=Geometric(), random_state=0).fit(X)
    profile = ClassProfileDisplay.from_estimator(model, X).profiles[0]
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


class Untold(Geometric):
    """Without cumulative probabilities."""

    has_cumulative = False


def test_it_is_forecast_imputed_and_sampled(rng):
    X, _ = failures(rng)
    model = VBHMM(2, emission=Geometric(), random_state=0).fit(X)
    ahead = model.forecast(X, n_steps=3)
    expected = ahead.state_probabilities @ (1 / model.parameters_["geometric"]["probabilities"][:, 0] - 1)
    assert ahead.expected["x0"] == approx(expected)
    assert (ahead.lower["x0"] < expected).all()
    assert (expected < ahead.upper["x0"]).all()
    assert VBHMM(1, emission=Untold(), random_state=0).fit(X).forecast(X).lower == {}
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
    groups = [("tries", Geometric(), [0]), ("size", "gaussian", [1])]
    mixed = estimator(2, emission=groups, init="k-means++", random_state=0).fit(X)
    assert np.isfinite(mixed.log_evidence(X, kind="ais", n_chains=4).value)


def test_what_is_no_emission_is_not_registered(geometric):
    with pytest.raises(TypeError, match="takes a class that derives from EmissionSpecification"):
        register_emission("other", geometric())
    with pytest.raises(ValueError, match=r"must be an identifier .* other than 'auto'"):
        register_emission("auto", geometric)
    with pytest.raises(ValueError, match="The name 'poisson' belongs to Poisson"):
        register_emission("poisson", geometric)
    assert register_emission("geometric", geometric) is geometric


def test_it_keeps_the_laws_of_emissions(rng):
    X, _ = failures(rng, 14)

    def log_density(row, parameters, k):
        p, seen = parameters["probabilities"][k], ~np.isnan(row)
        return (np.log(p) + row * np.log1p(-p))[seen].sum()

    whole, gaps = check_emission(
        Geometric(2.0, 2.0), X, log_density=log_density, cells=lambda row, column: range(5000), refused=0.5
    )
    assert set(whole.lacking) == {"filled_rows_keep_what_was_observed"}
    assert gaps.lacking == {}


@pytest.mark.parametrize("gaps", [False, True])
def test_a_point_at_an_edge_makes_no_nan_of_what_it_excludes(gaps):
    """Where a component holds nothing but zeros, ln(1 - p) is -inf, and 0 failures times it are 0."""
    X = np.array([[0.0, 0], [0, 0], [0, 0], [0, 0], [3, 9], [4, 7], [5, 11]])
    X[0, 0] = np.nan if gaps else 0
    model = VBMixture(2, emission=Geometric(), method="ml", random_state=0).fit(X)
    p = model.parameters_["geometric"]["probabilities"]
    assert p.max(axis=0) == approx([1, 1])
    of_cells = np.where(np.isnan(X[:, None]), 1, geom.pmf(X[:, None] + 1, p))
    by_hand = np.log(of_cells.prod(axis=2) @ model.weights_).sum()
    assert model.log_likelihood_ == approx(by_hand, rel=1e-9)
    assert model.log_evidence(X, kind="bic").value == approx(by_hand - 2.5 * np.log(7), rel=1e-9)
    first = np.argmax(p[:, 0])
    assert model.predict_proba([[1.0, 0]])[0, first] == 0
    assert model.predict_proba([[0.0, 0]])[0, first] > 0.9


class ByRows(GeometricEmission):
    """Predictions with axes in the wrong order."""

    def log_predictive(self, block, posterior):
        """The transpose of what they should be."""
        return super().log_predictive(block, posterior).T


class AsRows(GeometricEmission):
    """Features with axes in the wrong order."""

    def features(self, block):
        """The transpose of what they should be."""
        return super().features(block).T


@pytest.mark.parametrize(("wrong", "method"), [(ByRows, "log_predictive"), (AsRows, "features")])
def test_arrays_of_wrong_shapes_are_refused_by_the_method_in_fits_and_in_laws(wrong, method, rng):
    class Wrong(Geometric):
        def for_data(self, values, weight=None):
            return wrong(2, np.ones(2))

    X, _ = failures(rng, 12)
    for n_components in (2, 3):
        with pytest.raises(ValueError, match=f"`{method}` of the emission {wrong.__name__} must return an array"):
            VBMixture(n_components, emission=Wrong()).fit(X)
    with pytest.raises(AssertionError, match=f"`{method}` of the emission {wrong.__name__} must return an array"):
        check_emission(Wrong(), X)


def test_what_refuses_cells_says_which_and_in_which_words(rng):
    class OneAnswer(Geometric):
        def impossible(self, values):
            return bool((values < 0).any())

    class NoWords(Geometric):
        wanted = ""

    X, _ = failures(rng, 12)
    with pytest.raises(
        TypeError, match=r"`impossible` of OneAnswer must return an array of booleans.* It returned False"
    ):
        VBMixture(2, emission=OneAnswer()).fit(X)
    with pytest.raises(TypeError, match="NoWords refuses cells by `impossible`, but has no words"):
        register_emission("wordless", NoWords)
    with pytest.raises(ValueError, match=r"holds 1e\+07; of failures above 1e\+06 the likelihood keeps too few digits"):
        VBMixture(2, emission=Geometric()).fit([[1e7], [1.0], [2.0]])


# A score --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def penalized(monkeypatch):
    """The one line, taken back after the test."""
    monkeypatch.setitem(SCORES, "penalized", PENALIZED)


@pytest.mark.usefixtures("penalized")
def test_a_score_is_known_to_every_estimator(rng):
    X, _ = failures(rng, 40)
    rows = load_carcinoma().data
    given = {"emission": "gaussian"}
    for estimator, data in ((VBMixture(2, **given), X), (VBHMM(2, **given), X), (VBDiscreteDAG(latents=2), rows)):
        model = estimator.set_params(random_state=0).fit(data)
        found = model.log_evidence(data, kind="penalized", form="ml")
        assert found.value == approx(model.log_evidence(data, kind="bic").value, rel=1e-9)
        assert repr(found).startswith("Evidence(")
        assert "penalized, at the ML fit" in repr(found)
        with pytest.raises(TypeError, match=r"'penalized' has no option 'n_chains'. Its options are form, strength"):
            model.log_evidence(data, kind="penalized", n_chains=4)
    table = evidence_table(model, rows, kinds=["lower_bound", "penalized"])
    assert "penalized" in table
    assert "penalized" in repr(table)
    assert np.isfinite(scorer("penalized")(model, rows))


@pytest.mark.usefixtures("penalized")
def test_a_score_ranks_a_search():
    search = StructureSearchCV(
        VBDiscreteDAG(), {"latents": [2, 3]}, scoring=["lower_bound", "penalized"], refit="penalized", random_state=0
    ).fit(load_carcinoma().data)
    values = search.cv_results_["mean_test_penalized"]
    assert search.best_params_ == search.cv_results_["params"][int(np.argmax(values))]


def test_what_is_no_score_or_capability_is_refused_by_name():
    with pytest.raises(TypeError, match="check_score takes a Score, such as Score"):
        check_score(lambda evaluation: 0.0)
    model = VBMixture(2, random_state=0).fit([[0.0], [1.0], [2.0]])
    with pytest.raises(TypeError, match=r"'foo' is no capability of models\. There are points, "):
        evaluation_of(model, np.array([[0.0], [1.0], [2.0]])).capability("foo")


def test_a_score_keeps_the_laws_of_scores():
    for report in check_score(PENALIZED):
        assert set(report.lacking) == {
            "sampled_evidence_is_right",
            "seed_decides_the_value",
            "capabilities_it_needs_are_named",
        }


# A strategy -----------------------------------------------------------------------------------------------------------


def test_a_strategy_is_searched_with_by_its_name(monkeypatch):
    monkeypatch.setitem(STRATEGIES, "sampled", Sampled)
    spaces = {"latents": [2, 3, 4, 5]}
    of_name, of_object, again = (
        StructureSearchCV(VBDiscreteDAG(), spaces, strategy=strategy, scoring="lower_bound", random_state=0).fit(
            load_carcinoma().data
        )
        for strategy in ("sampled", Sampled(3), Sampled(3))
    )
    assert len(of_name.cv_results_["params"]) == 3
    assert of_name.cv_results_["params"] == of_object.cv_results_["params"] == again.cv_results_["params"]
    best, whole = (
        StructureSearchCV(VBDiscreteDAG(), spaces, strategy=strategy, rescoring=False, random_state=0).fit(
            load_carcinoma().data
        )
        for strategy in (Sampled(4), "exhaustive")
    )
    assert best.best_params_ == whole.best_params_
    with pytest.raises(ValueError, match=r"no strategy 'drawn'. The strategies are .*, sampled\."):
        StructureSearchCV(VBDiscreteDAG(), spaces, strategy="drawn").fit(load_carcinoma().data)


def test_a_strategy_is_drawn():
    pytest.importorskip("matplotlib")
    from skvbem.plotting import StructureSearchDisplay

    search = StructureSearchCV(VBDiscreteDAG(), {"latents": [2, 3, 4]}, strategy=Sampled(2), random_state=0)
    display = StructureSearchDisplay.from_estimator(search.fit(load_carcinoma().data))
    assert display is not None


# A model --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def two_coins(monkeypatch):
    """The one line, taken back after the test."""
    monkeypatch.setitem(MODELS, "two coins", RegisteredModel(TwoCoins, capabilities_of))


def tossed(rng, n_rows=60, n_tosses=12):
    """Rows of tosses of a coin of 0.9 and of one of 0.2."""
    coin = rng.integers(0, 2, n_rows)
    return (rng.random((n_rows, n_tosses)) < np.array([0.9, 0.2])[coin][:, None]).astype(int), coin


@pytest.mark.usefixtures("two_coins")
@pytest.mark.parametrize("form", [posteriors.VB, posteriors.MAP, posteriors.ML], ids=["vb", "map", "ml"])
def test_a_model_is_fitted_in_every_form(form, rng):
    tosses, coin = tossed(rng)
    instance = CoinInstance(tosses)
    data = instance.compile()
    result = run(CoinAscent(instance.model, data, form), instance.random_starts(data, rng, 6), tol=1e-9, max_iter=500)
    assert result.converged.all()
    point = form.point_of(instance.model.prior, result.statistics[:, result.best])
    assert np.sort(point[[2, 4]]) == approx([0.2, 0.9], abs=0.06)
    shares = instance.row_posteriors(np.log(point), data)
    right = np.mean((shares[:, 0] > 0.5) == (coin == (0 if point[2] > 0.5 else 1)))
    assert right > 0.97


@pytest.mark.usefixtures("two_coins")
def test_the_evidence_of_a_model_is_enumerated_and_sampled(rng):
    tosses, _ = tossed(rng, 8, 4)
    instance = CoinInstance(tosses)
    evaluation, exact = instance.evaluation(rng), instance.log_evidence()
    assert get_score("exact")(evaluation).value == approx(exact, rel=1e-11)
    assert get_score("lower_bound")(evaluation).value < exact
    sampled = get_score("ais")(evaluation, n_chains=64)
    assert sampled.value == approx(exact, abs=4 * sampled.standard_error + 0.02)
    with pytest.raises(TypeError, match=r"'laplace' needs the capability 'information' .* TwoCoins does not have"):
        get_score("laplace")(evaluation)


@pytest.mark.usefixtures("two_coins")
def test_a_model_keeps_the_laws_of_models():
    report = check_model(CoinCase())
    assert set(report.lacking) == {
        "bound_is_the_evidence_where_nothing_is_hidden",
        "evidence_of_complete_data_is_the_definition",
        "bic_stays_at_a_distance_from_the_bound",
        "batches_grow_to_the_data",
    }
    assert len(report.held) == 20


@pytest.mark.usefixtures("two_coins")
@pytest.mark.parametrize("kind", ["lower_bound", "cheeseman_stutz", "collapsed", "importance"])
def test_scores_keep_their_laws_on_a_model(kind):
    (report,) = check_score(kind, CoinCase(), options={"n_draws": 256} if kind == "importance" else None)
    assert "value_has_its_name_and_size" in report.held
