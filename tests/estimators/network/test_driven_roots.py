"""Covariates of roots of networks: mixtures with a membership, evidences by enumeration, and what changes nothing."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.special import betaln, expit, polygamma
from sklearn.base import clone

import skvbem
from skvbem import CovariateSpace, StructureSearchCV, VBDiscreteDAG, VBMixture, VBNetwork
from skvbem.datasets import load_cheating
from skvbem.emissions import Softmax
from skvbem.errors import StructureError
from skvbem.plotting import ClassProbabilitiesDisplay, ClassProfileDisplay, DAGDisplay

approx = pytest.approx
ITEMS = ["LIEEXAM", "LIEPAPER", "FRAUD", "COPYEXAM"]
CHEATING = load_cheating(as_frame=True).data.dropna().astype(float)
ONE = [("h0", item) for item in ITEMS]
TWO = [("h0", "a"), ("h0", "b"), ("h1", "b"), ("h1", "c")]
CLOSE = {"random_state": 0, "n_init": 2, "tol": 1e-10}


def with_gaps(rng):
    """Grades and cheating, some answers missing, and a weight for each row."""
    table = CHEATING.copy()
    table[ITEMS] = table[ITEMS].where(rng.random((len(table), 4)) > 0.1)
    return table, rng.integers(1, 4, len(table)).astype(float)


def items(rng, n=40):
    """Three answers of two kinds of persons and of two moods, that two covariates drive."""
    u = rng.normal(size=(n, 2))
    kind, mood = (rng.random((2, n)) < expit(2 * u.T)).astype(int)
    a, b, c = kind, kind | mood, mood
    answers = [np.where(rng.random(n) < 0.15, 1 - each, each) for each in (a, b, c)]
    return pd.DataFrame(np.column_stack([*answers, u]), columns=[*"abc", "u", "v"])


# One latent is a mixture ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["vb", "map", "ml"])
def test_one_driven_latent_is_a_mixture_with_a_membership(method, rng):
    table, weight = with_gaps(rng)
    options = CLOSE | {"method": method}
    mixture = VBMixture(2, emission="categorical", membership=Softmax("GPA"), **options).fit(
        table, sample_weight=weight
    )
    network = VBDiscreteDAG(latents=2, covariates="GPA", **options).fit(table, sample_weight=weight)
    of_edges = VBNetwork(
        [("GPA", "h0"), *ONE], latents=2, emission={"gaussian": ["GPA"], "remainder": "categorical"}, **options
    ).fit(table, sample_weight=weight)
    grades = VBMixture(1, emission="gaussian", **options).fit(table[["GPA"]], sample_weight=weight)
    name = {"vb": "lower_bound_", "map": "log_posterior_", "ml": "log_likelihood_"}[method]
    expected = getattr(mixture, name)
    assert getattr(network, name) == approx(expected, abs=1e-7)
    assert getattr(of_edges, name) == approx(expected + getattr(grades, name), abs=1e-7)
    proba = mixture.predict_proba(table)
    for model in (network, of_edges):
        mine = model.predict_proba(table)
        mine = mine if np.abs(mine - proba).max() < 0.5 else mine[:, ::-1]
        np.testing.assert_allclose(mine, proba, atol=1e-4)
    np.testing.assert_allclose(network.score_samples(table), mixture.score_samples(table), atol=1e-4)
    assert network.n_free_parameters_ == mixture.n_free_parameters_
    given = VBNetwork(ONE, latents=2, covariates="GPA", emission="categorical", **options)
    assert getattr(given.fit(table, sample_weight=weight), name) == approx(expected, abs=1e-7)


def test_batches_are_those_of_a_mixture():
    table, first = CHEATING.sample(frac=1.0, random_state=0), slice(0, 200)
    mixture = VBMixture(2, emission="categorical", membership=Softmax("GPA"), **CLOSE)
    network = VBDiscreteDAG(latents=2, covariates="GPA", **CLOSE)
    for model in (mixture, network):
        model.partial_fit(table[first]).partial_fit(table[200:])
    assert network.batch_lower_bound_ == approx(mixture.batch_lower_bound_, abs=1e-4)


def test_hidden_precisions_and_categories_are_those_of_a_mixture(rng):
    table = CHEATING.assign(kind=rng.choice(["x", "y", "z"], len(CHEATING)))
    softmax = Softmax(["GPA", "kind"], slope_prior="hierarchical")
    mixture = VBMixture(2, emission="categorical", membership=softmax, **CLOSE).fit(table)
    network = VBDiscreteDAG(latents=2, covariates=softmax, **CLOSE).fit(table)
    assert network.lower_bound_ == approx(mixture.lower_bound_, abs=1e-7)
    with pytest.raises(TypeError, match="Draws do not know the hidden precisions"):
        network.log_evidence(table, kind="ais")
    emission = {"gaussian": ["GPA"], "categorical": ITEMS, "remainder": "drop"}
    prior = {"h0": Softmax(slope_prior="hierarchical")}
    of_edges = VBNetwork([("GPA", "h0"), *ONE], latents=2, emission=emission, prior=prior, **CLOSE).fit(table)
    alone = VBDiscreteDAG(ONE, latents=2, covariates=Softmax("GPA", slope_prior="hierarchical"), **CLOSE)
    grades = VBMixture(1, emission="gaussian", **CLOSE).fit(table[["GPA"]])
    alone = alone.fit(table.drop(columns="kind"))
    assert of_edges.lower_bound_ - grades.lower_bound_ == approx(alone.lower_bound_, abs=1e-7)


# Definitions ----------------------------------------------------------------------------------------------------------

# Nodes and weights of a normal distribution, (n,).
_NODES, _WEIGHTS = (np.polynomial.hermite_e.hermegauss(40)[0], np.polynomial.hermite_e.hermegauss(40)[1] / 2.506628275)


def evidences_of_labels(u, *, intercept, slope):
    """p(labels | u) of all labelings of rows by two labels, (2,) * n: log odds are normal in intercept and slope."""
    design = np.column_stack([np.ones(len(u)), (u - u.mean()) / u.std()])
    first, second = (each.ravel() for each in np.meshgrid(_NODES, _NODES))
    odds = design @ np.stack([first * np.sqrt(2 * intercept), second * np.sqrt(2 * slope)])
    weight = np.outer(_WEIGHTS, _WEIGHTS).ravel()
    by_label = np.stack([expit(-odds), expit(odds)])  # (label, row, point)
    labelings = np.array(list(product(range(2), repeat=len(u))))
    return labelings, np.array([(by_label[each, np.arange(len(u))].prod(axis=0) * weight).sum() for each in labelings])


def log_evidence(table):
    """ln p(a, b, c | u, v) by all labelings of both latents, Dirichlet(1) tables integrated out."""
    options = {"intercept": float(polygamma(1, 1.0)), "slope": 1.0}
    kinds, of_kinds = evidences_of_labels(table["u"].to_numpy(), **options)
    moods, of_moods = evidences_of_labels(table["v"].to_numpy(), **options)
    total = 0.0
    for kind, p in zip(kinds, of_kinds):
        for mood, q in zip(moods, of_moods):
            logs = 0.0
            for column, label, n in (("a", kind, 2), ("b", 2 * kind + mood, 4), ("c", mood, 2)):
                yes = np.bincount(label, table[column], n)
                logs += (betaln(1 + yes, 1 + np.bincount(label, minlength=n) - yes) - betaln(1, 1)).sum()
            total += p * q * np.exp(logs)
    return float(np.log(total))


def two_latents(**options):
    """Two latents above three answers, each with a covariate of its own."""
    options = {"random_state": 0, "n_init": 2, "categories": {key: [0.0, 1.0] for key in "abc"}} | options
    return VBDiscreteDAG(TWO, latents=["h0", "h1"], covariates={"h0": "u", "h1": "v"}, **options)


@pytest.mark.parametrize("seed", range(4))
def test_bounds_are_below_evidences_by_enumeration_and_draws_meet_them(seed):
    table = items(np.random.default_rng(seed), 4)
    model, exact = two_latents().fit(table), log_evidence(table)
    assert model.lower_bound_ <= exact + 1e-9
    assert model.lower_bound_ > exact - 4.0
    if seed == 0:
        estimate = model.log_evidence(table, kind="ais", random_state=0, n_chains=16)
        assert abs(estimate.value - exact) < 3 * estimate.standard_error + 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4, 100))
def test_bounds_are_below_evidences_of_many_tables(seed):
    table = items(np.random.default_rng(seed), 2 + seed % 3)
    assert two_latents().fit(table).lower_bound_ <= log_evidence(table) + 1e-9


def test_objectives_never_fall(rng):
    for k in range(6):
        table = items(rng, 30)
        table = table.mask(rng.random(table.shape) < 0.2).assign(u=table["u"], v=table["v"] if k % 3 else 1.0)
        weight = rng.uniform(0.3, 2.0, 30) if k % 2 else None
        model = VBDiscreteDAG(
            TWO, latents={"h0": 2 + k % 2, "h1": 2}, covariates=["u", "v"], random_state=k, n_init=1, tol=1e-8,
            method=["vb", "map", "vb"][k % 3], acceleration=False,
        ).fit(table, sample_weight=weight)  # fmt: skip
        assert np.diff(model.lower_bounds_).min() > -1e-9


# What changes nothing -------------------------------------------------------------------------------------------------


def test_weights_are_repeats_and_units_and_orders_change_nothing(rng):
    table, options = items(rng, 60), CLOSE | {"n_init": 1}
    weight = rng.integers(0, 3, 60)
    model = two_latents(**options)
    repeated = table.loc[table.index.repeat(weight)]
    bound = clone(model).fit(table, sample_weight=weight).lower_bound_
    assert clone(model).fit(repeated).lower_bound_ == approx(bound, abs=1e-9)
    both = clone(model).set_params(covariates=["u", "v"])
    bound = clone(both).fit(table).lower_bound_
    scaled = table.assign(u=1000 * table["u"] - 7, v=3 - table["v"])
    assert clone(both).fit(scaled).lower_bound_ == approx(bound, abs=1e-8)
    turned = table[["v", "c", "u", "b", "a"]]
    assert clone(both).set_params(n_init=3).fit(turned).lower_bound_ == approx(bound, abs=1e-7)
    one_state = clone(model).set_params(latents={"h0": 1, "h1": 2}).fit(table)
    without = VBDiscreteDAG(
        [("h1", "b"), ("h1", "c")], latents=["h1"], covariates="v", **options
    ).fit(table[["a", "b", "c", "v"]])  # fmt: skip
    assert one_state.lower_bound_ == approx(without.lower_bound_, abs=1e-8)


def test_a_column_may_be_driven_and_rows_in_which_it_was_set_leave_that_out():
    table = CHEATING[["FRAUD", "COPYEXAM", "GPA"]]
    was_set = np.where(np.arange(len(table)) % 3 == 0, "FRAUD", None)
    kept = was_set != "FRAUD"
    edge = [("FRAUD", "COPYEXAM")]
    driven, plain = VBDiscreteDAG(edge, covariates={"FRAUD": "GPA"}), VBDiscreteDAG(edge)
    gain = (
        clone(driven).fit(table[kept]).lower_bound_
        - clone(plain).fit(table.loc[kept, ["FRAUD", "COPYEXAM"]]).lower_bound_
    )
    expected = gain + clone(plain).fit(table[["FRAUD", "COPYEXAM"]], interventions=was_set).lower_bound_
    assert clone(driven).fit(table, interventions=was_set).lower_bound_ == approx(expected, abs=1e-8)
    with_set_grades = clone(driven).fit(table, interventions=["GPA"] * len(table))
    assert with_set_grades.lower_bound_ == approx(clone(driven).fit(table).lower_bound_, abs=1e-9)
    some = table.assign(FRAUD=table["FRAUD"].where(kept))  # labels of some rows
    assert clone(driven).fit(some).lower_bound_ > clone(driven).fit(table).lower_bound_


# Faces ----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def network():
    """A network of two latents, and its table."""
    table = items(np.random.default_rng(3), 80)
    return two_latents(n_init=1).fit(table), table


def test_answers_of_a_network(network):
    model, table = network
    assert [each.shape for each in model.predict_proba(table)] == [(80, 2)] * 2
    assert model.predict(table).shape == model.decode(table).shape == (80, 2)
    np.testing.assert_allclose(model.query("h0", {"u": 1.0, "v": 0.0}).values.sum(), 1.0)
    marginals = model.marginals({"u": 1.0, "v": 0.0, "a": 1.0})
    assert marginals["a"].values.tolist() == [0.0, 1.0]
    np.testing.assert_allclose(marginals["h0"].values, model.query("h0", {"u": 1.0, "v": 0.0, "a": 1.0}).values)
    for given in ({"u": 3.0, "v": -3.0}, table[:5]):
        drawn, states = model.sample(5, random_state=0, given=given)
        assert list(drawn.columns) == list(table.columns)
        assert states.shape == (5, 2)
        np.testing.assert_allclose(drawn["u"], 3.0 if isinstance(given, dict) else table["u"][:5])
    gappy = table.assign(a=np.nan)
    assert model.impute(gappy)["a"].isin([0.0, 1.0]).all()
    many = model.impute(gappy, fill="draw", random_state=0)
    assert many["a"].nunique() == 2
    assert np.isfinite(model.score_samples(table)).all()


def test_shares_of_states_given_covariates_are_those_of_draws(network):
    model, _ = network
    at = {"u": 0.7, "v": -0.2}
    _, states = model.sample(1000, random_state=0, given=at)
    expected = model.query("h1", at).values[1]
    assert states[:, 1].mean() == approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / 1000))


def test_reports_of_a_network(network):
    _, table = network
    model = two_latents(n_init=1, method="ml").fit(table)
    with pytest.raises(ValueError, match="odds_ratios is of one node"):
        model.odds_ratios(table)
    ratios = model.odds_ratios(table, node="h1")
    slope = model.coefficients_["h1"].values[:, 1]
    assert ratios.names == ("intercept", "v")
    assert [test[:2] for test in ratios.tests] == [("v", "Wald")]
    np.testing.assert_allclose(ratios.coefficients[0, 1], slope[ratios.classes[0]] - slope[ratios.reference])
    shares = model.class_probabilities(table, "u", [-1.0, 1.0], node="h0")
    np.testing.assert_allclose(shares.probabilities.sum(axis=1), 1.0)
    summary = str(model.summary(table))
    assert "h0 | u" in summary
    assert "log odds per v" in summary
    assert ClassProbabilitiesDisplay.from_estimator(model, table, "v", node="h1").ax_ is not None
    assert DAGDisplay.from_estimator(model).ax_ is not None
    with pytest.raises(ValueError, match="ClassProbabilitiesDisplay along a covariate"):
        ClassProfileDisplay.from_estimator(model, latent="h0")


@pytest.mark.slow
def test_reports_from_draws(network):
    model, table = network
    draws = model.sample_posterior(table, n_draws=200, random_state=0)
    by_draws, by_response = (model.odds_ratios(table, 0, node="h1", draws=each) for each in (draws, None))
    np.testing.assert_allclose(by_draws.coefficients, by_response.coefficients, atol=0.7)
    assert "odds ratios of h1 against" in str(model.summary(table))


def test_files_and_batches_keep_covariates(network, tmp_path):
    model, table = network
    skvbem.save(model, tmp_path / "fit")
    np.testing.assert_array_equal(skvbem.load(tmp_path / "fit").predict(table), model.predict(table))
    parts = clone(model).partial_fit(table[:40]).partial_fit(table[40:])
    assert parts.n_samples_ == 80
    assert np.isfinite(parts.score(table))
    assert clone(model).set_params(warm_start=True).fit(table).lower_bound_ == approx(model.lower_bound_, abs=1e-4)


def test_covariates_that_are_set_after_a_fit_act_from_the_next_fit_on(network):
    model, table = network
    other = clone(model).fit(table)
    expected = other.predict(table)
    other.set_params(covariates=None)
    np.testing.assert_array_equal(other.predict(table), expected)
    other.set_params(structure=None, latents=2, categories="auto").fit(table[[*"abc"]]).set_params(covariates="a")
    assert other.predict(table[[*"abc"]]).shape == (80,)
    assert not hasattr(other, "coefficients_")


def test_searches_over_states_and_over_covariates():
    table = CHEATING.assign(noise=np.random.default_rng(1).normal(size=315))
    model = VBDiscreteDAG(latents=2, n_init=1, random_state=0)
    space = CovariateSpace(Softmax(["GPA", "noise"]), parameter="covariates")
    search = StructureSearchCV(model, space, scoring="lower_bound").fit(table)
    assert search.best_params_["covariates"].selected == ["GPA"]
    grid = skvbem.spaces.CardinalityGrid({"h0": [1, 2]}, ONE)
    search = StructureSearchCV(clone(model).set_params(covariates="GPA"), grid, scoring="lower_bound").fit(CHEATING)
    assert search.best_params_["latents"] == {"h0": 2}
    assert search.best_score_ == approx(-455.876526, abs=1e-4)


def test_two_latents_that_are_driven_alike_may_trade_places():
    edges = [(h, item) for h in ("h0", "h1") for item in ITEMS]
    model = VBDiscreteDAG(edges, latents=["h0", "h1"], covariates="GPA", random_state=0, n_init=1, tol=0.1)
    alike, unlike = (clone(model).set_params(covariates=each).fit(CHEATING) for each in ("GPA", {"h0": "GPA"}))
    corrected = [each.log_evidence(CHEATING, kind="lower_bound", alias=True) for each in (alike, unlike)]
    gains = [evidence.value - each.lower_bound_ for evidence, each in zip(corrected, (alike, unlike))]
    np.testing.assert_allclose(gains, np.log([8.0, 4.0]))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"covariates": "grade"}, ValueError, "which is no column of X"),
        ({"covariates": {"h9": "GPA"}}, StructureError, "'h9', which is no node"),
        ({"covariates": {"FRAUD": "GPA"}}, StructureError, "which has parents with a table, too: 'h0'"),
        ({"covariates": "GPA", "ties": [["FRAUD", "COPYEXAM"]]}, ValueError, "does not go with 'covariates'"),
        ({"covariates": "GPA", "inference": "mean_field"}, ValueError, "Leave it 'exact'"),
        ({"covariates": "GPA", "init": {"h0": [0.5, 0.5]}}, ValueError, "must be 'auto' or 'random'"),
        ({"covariates": list(CHEATING.columns)}, ValueError, "names all columns of X"),
        ({"covariates": "GPA", "structure": [("FRAUD", "h0"), ("h0", "COPYEXAM")]}, StructureError, "Name a root"),
        ({"covariates": "GPA", "categories": [[1, 2]] * 5}, ValueError, "a mapping of columns to levels"),
        ({"covariates": "GPA", "prior": {"h0": Softmax()}}, ValueError, "latents with edges from columns of numbers"),
    ],
)  # fmt: skip
def test_what_does_not_go_with_covariates_is_refused_by_name(options, error, words):
    with pytest.raises(error, match=words):
        VBDiscreteDAG(**{"structure": ONE, "latents": {"h0": 2}, "random_state": 0, "n_init": 1} | options).fit(
            CHEATING
        )


def test_what_a_driven_fit_does_not_have_is_refused_by_name(network):
    model, table = network
    with pytest.raises(ValueError, match="Row 0 of X has no 'u'"):
        model.predict(table.assign(u=np.nan))
    with pytest.raises(ValueError, match="the evidence must name its value"):
        model.query("h0", {"a": 1.0})
    with pytest.raises(ValueError, match="'sample' of VBDiscreteDAG needs"):
        model.sample(3)
    with pytest.raises(ValueError, match="takes no 'do'"):
        model.query("h0", {"u": 1.0, "v": 1.0}, do={"a": 1.0})
    with pytest.raises(AttributeError, match="has no 'network_'"):
        _ = model.network_
    with pytest.raises(TypeError, match="Coefficients of a softmax have no conjugate prior"):
        model.log_evidence(table, kind="collapsed")
    with pytest.raises(ValueError, match="needs covariates of the component"):
        VBDiscreteDAG(latents=2, n_init=1, tol=0.1).fit(table[[*"abc"]]).odds_ratios(table)


def test_edges_from_numbers(rng):
    table = items(rng, 60)
    emission = {"gaussian": ["u", "v"], "remainder": "categorical"}
    edges = [("u", "h0"), ("u", "v"), ("v", "h1"), *TWO]
    model = VBNetwork(edges, latents=["h0", "h1"], emission=emission, random_state=0, n_init=1).fit(table)
    drawn, states = model.sample(50, random_state=0)
    assert drawn.shape == (50, 5)
    assert states.shape == (50, 2)
    given = two_latents().fit(table)
    numbers = VBNetwork([("u", "v"), ("h0", "u")], latents={"h0": 1}, emission="gaussian").fit(table[["u", "v"]])
    assert model.lower_bound_ == approx(given.lower_bound_ + numbers.lower_bound_, abs=1e-3)
    assert model.coefficients_["h1"].axes == ("h1", "covariate")
    assert DAGDisplay.from_estimator(model).ax_ is not None
    with pytest.raises(StructureError, match="parents with a table, too: 'c'"):
        clone(model).set_params(structure=[("u", "h0"), ("c", "h0"), ("h0", "a"), ("h1", "b")]).fit(table)
    with pytest.raises(ValueError, match="a Softmax that names columns"):
        clone(model).set_params(prior={"h0": Softmax("u")}).fit(table)
    with pytest.raises(ValueError, match="has no 'u'"):
        model.predict(table.assign(u=np.nan))
