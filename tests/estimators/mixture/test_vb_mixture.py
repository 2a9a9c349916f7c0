"""`VBMixture` from the user's side: columns of any kind, units, missing cells, scores, and published answers."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats
from sklearn.base import clone
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skvbem import DAG, StructureSearchCV, VBDiscreteDAG, VBMixture
from skvbem.datasets import load_carcinoma, load_faithful
from skvbem.emissions import COVARIANCE_TYPES, EMISSIONS, Categorical, Gaussian, Poisson
from skvbem.errors import DataWarning
from skvbem.evidence import certify_evidence

approx = pytest.approx
FAITHFUL = load_faithful().data
REFERENCE = json.loads((Path(__file__).parents[2] / "data" / "mixtures.ref.json").read_text())["faithful"]


def clumps(rng, n=120, d=2, apart=5.0):
    """Two clumps of rows."""
    return np.concatenate([rng.normal(size=(n // 2, d)), rng.normal(size=(n - n // 2, d)) + apart])


def mixed_frame(rng, n=150, missing=0.1):
    """A measurement, a count and a category that two classes decide, some cells missing."""
    kind = rng.integers(0, 2, n)
    frame = pd.DataFrame(
        {
            "height": rng.normal(170 + 15 * kind, 5),
            "visits": rng.poisson(2 + 6 * kind).astype(float),
            "blood": np.where(rng.random(n) < 0.2, "AB", np.where(kind, "A", "0")),
            "smoker": rng.random(n) < 0.2 + 0.5 * kind,
        }
    )
    frame["smoker"] = frame["smoker"].astype(object)
    return frame.mask(rng.random(frame.shape) < missing), kind


MIXED = {"gaussian": "height", "poisson": ["visits"], "categorical": ["blood", "smoker"]}


# Published answers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scale", "shift"), [((1, 1), 0), ((60, 1), 0), ((0.01, 1000), 0), ((1, 1), 1e6)])
def test_old_faithful_has_two_components_in_any_unit(scale, shift):
    X = FAITHFUL * np.array(scale) + shift
    bounds = [VBMixture(k, n_init=3, random_state=0).fit(X).lower_bound_ for k in range(1, 5)]
    assert int(np.argmax(bounds)) + 1 == 2
    plain = [VBMixture(k, n_init=3, random_state=0).fit(FAITHFUL).lower_bound_ for k in (1, 2)]
    change = len(X) * np.log(scale).sum()
    assert bounds[:2] == approx([bound - change for bound in plain], abs=1e-3)


def test_bic_of_mclust():
    """EEE with three components; mclust prints 2 ln L - d ln n, where more is better."""
    found = [
        -VBMixture(k, covariance_type="tied", method="ml", random_state=0).fit(FAITHFUL).bic(FAITHFUL)
        for k in (2, 3, 4)
    ]
    assert int(np.argmax(found)) == 1
    assert found[1] == approx(REFERENCE["mclust_6_0_0"]["bic"], abs=0.05)
    assert found[1] >= REFERENCE["mclust_6_0_0"]["bic"]


@pytest.mark.parametrize("n_components", [1, 2])
def test_likelihoods_of_full_gaussians(n_components):
    model = VBMixture(n_components, method="ml", random_state=0).fit(FAITHFUL)
    reference = REFERENCE["gmm_full"][str(n_components)]
    assert model.log_likelihood_ == approx(reference["max_loglik"], abs=1e-3)
    assert model.bic(FAITHFUL) == approx(reference["bic"], abs=2e-3)
    peer = GaussianMixture(n_components, n_init=5, reg_covar=0, tol=1e-10, max_iter=1000, random_state=0).fit(FAITHFUL)
    order = np.argsort(model.means_[:, 0]), np.argsort(peer.means_[:, 0])
    assert model.means_[order[0]] == approx(peer.means_[order[1]], rel=1e-4)
    assert model.covariances_[order[0]] == approx(peer.covariances_[order[1]], rel=1e-3)
    assert model.precisions_[order[0]] == approx(peer.precisions_[order[1]], rel=1e-3)
    assert model.weights_[order[0]] == approx(peer.weights_[order[1]], rel=1e-4)


@pytest.mark.parametrize("covariance_type", ["full", "diag", "spherical"])
def test_hyperparameters_are_those_of_scikit_learn(covariance_type, rng):
    """Prior and posterior of one component, which no start decides."""
    X = rng.normal(size=(30, 2)) @ np.array([[2.0, 0.5], [0.0, 0.3]]) + [10.0, -3.0]
    prior = {
        "mean_prior": np.array([9.0, -2.0]),
        "mean_precision_prior": 0.7,
        "degrees_of_freedom_prior": 3.5,
        "covariance_prior": {
            "full": np.array([[2.0, 0.1], [0.1, 0.5]]),
            "diag": np.array([2.0, 0.5]),
            "spherical": 1.5,
        }[covariance_type],
    }
    emission, weights = Gaussian(covariance_type, **prior), {"weight_concentration_prior": 0.8}
    ours = VBMixture(1, emission=emission, **weights).fit(X)
    theirs = BayesianGaussianMixture(
        covariance_type=covariance_type,
        weight_concentration_prior_type="dirichlet_distribution",
        reg_covar=0,
        **prior,
        **weights,
    ).fit(X)
    for name in (
        *(f"{name}_" for name in (prior | weights)),
        "weight_concentration_",
        "mean_precision_",
        "degrees_of_freedom_",
    ):
        assert getattr(ours, name) == approx(getattr(theirs, name), rel=1e-9), name
    for name in ("means_", "covariances_", "precisions_"):
        assert getattr(ours, name) == approx(getattr(theirs, name), rel=1e-9), name
    point = VBMixture(1, covariance_type=covariance_type, method="ml").fit(X)
    assert not hasattr(point, "mean_precision_")
    assert point.mean_prior_ == approx(X.mean(axis=0))
    sticks = VBMixture(3, weight_concentration_prior_type="dirichlet_process", random_state=0).fit(X)
    assert sticks.weight_concentration_prior_ == 1.0
    after = np.cumsum(sticks.counts_[::-1])[::-1]
    assert sticks.weight_concentration_ == approx(1 + np.column_stack([sticks.counts_[:-1], after[1:]]))


# Categories are those of the network ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["vb", "map", "ml"])
def test_categories_are_the_latent_class_network(method):
    """All scores, from the same starts."""
    bunch = load_carcinoma()
    X = bunch.data
    mixture = VBMixture(2, emission="categorical", method=method, tol=1e-8, random_state=0).fit(X)
    network = VBDiscreteDAG(latents=2, method=method, tol=1e-8, random_state=0).fit(X)
    objective = {"vb": "lower_bound_", "map": "log_posterior_", "ml": "log_likelihood_"}[method]
    assert getattr(mixture, objective) == approx(getattr(network, objective), abs=1e-4)
    assert mixture.n_free_parameters_ == network.n_free_parameters_
    order = np.argsort(mixture.weights_)
    h0 = network.tables_["h0"].values
    assert mixture.weights_[order] == approx(np.sort(h0), abs=2e-3)
    for kind in ("bic", "draper", "bicp", "cheeseman_stutz", "lower_bound"):
        ours, theirs = (model.log_evidence(X, kind=kind).value for model in (mixture, network))
        assert ours == approx(theirs, abs=2e-3), kind
    assert mixture.score_samples(X) == approx(network.score_samples(X), abs=2e-3)
    assert np.sort(mixture.predict_proba(X)) == approx(np.sort(network.predict_proba(X)), abs=5e-3)


# Predictive densities -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("n", [5, 60])
def test_the_predictive_density_integrates_to_one(covariance_type, n, rng):
    X = clumps(rng, n, d=1)
    model = VBMixture(2, covariance_type=covariance_type, random_state=0).fit(X)
    # heavy tails: y = sinh(t)
    total, _ = integrate.quad(
        lambda t: np.exp(model.score_samples([[np.sinh(t)]])[0]) * np.cosh(t),
        -40,
        40,
        limit=500,
        points=[-1, 0, 1, 2.4],
    )
    assert total == approx(1.0, abs=1e-6)


def test_the_predictive_distribution_of_mixed_rows_sums_to_one(rng):
    frame, _ = mixed_frame(rng)
    model = VBMixture(2, emission=MIXED, random_state=0).fit(frame)
    rows = [
        {"height": np.nan, "visits": visits, "blood": blood, "smoker": smoker}
        for visits in range(400)
        for blood in ("0", "A", "AB")
        for smoker in (False, True)
    ]
    assert np.exp(model.score_samples(pd.DataFrame(rows))).sum() == approx(1.0, abs=1e-6)


def test_a_missing_cell_is_integrated_out(rng):
    X = clumps(rng) @ np.array([[1.0, 0.6], [0.0, 0.8]])
    X[rng.random(X.shape) < 0.1] = np.nan
    model = VBMixture(2, random_state=0).fit(X)
    for value in (-1.0, 2.0, 6.0):

        def density(t, value=value):
            return np.exp(model.score_samples([[value, np.sinh(t)]])[0]) * np.cosh(t)

        whole, _ = integrate.quad(density, -40, 40, limit=500, points=[-1, 0, 1, 2.5])
        assert model.score_samples([[value, np.nan]])[0] == approx(np.log(whole), abs=1e-6)
    assert model.score_samples([[np.nan, np.nan]])[0] == approx(0.0, abs=1e-12)


def test_samples_are_like_the_data(rng):
    frame, _ = mixed_frame(rng, n=400)
    model = VBMixture(2, emission=MIXED, random_state=0).fit(frame)
    X, components = model.sample(4000, random_state=0)
    drawn = pd.DataFrame(X, columns=frame.columns)
    assert np.bincount(components) / 4000 == approx(model.weights_, abs=0.03)
    assert drawn["height"].astype(float).mean() == approx(frame["height"].mean(), abs=1.5)
    assert drawn["visits"].astype(float).mean() == approx(frame["visits"].mean(), abs=0.5)
    assert set(drawn["blood"]) == {"0", "A", "AB"}
    assert model.score(drawn) == approx(model.score(mixed_frame(rng, n=4000, missing=0.0)[0]), abs=0.2)


# Columns --------------------------------------------------------------------------------------------------------------


def test_columns_are_read_by_their_types(rng):
    frame, kind = mixed_frame(rng)
    with pytest.warns(DataWarning, match="'visits' of X holds whole numbers, as counts are"):
        model = VBMixture(2, random_state=0).fit(frame)
    assert model.groups_ == {"gaussian": ["height", "visits"], "categorical": ["blood", "smoker"]}
    named = VBMixture(2, emission=MIXED, random_state=0).fit(frame)
    assert named.groups_ == {"gaussian": ["height"], "poisson": ["visits"], "categorical": ["blood", "smoker"]}
    assert np.mean((named.predict(frame) == named.predict(frame)[0]) == (kind == kind[0])) > 0.9
    by_position = VBMixture(2, emission={"gaussian": 0, "poisson": 1, "categorical": [2, 3]}, random_state=0).fit(frame)
    assert by_position.lower_bound_ == named.lower_bound_
    assert named.means_.shape == (2, 1)
    assert named.parameters_["poisson"]["rates"].shape == (2, 1)


def test_imputed_cells_follow_their_rows(rng):
    frame, kind = mixed_frame(rng)
    model = VBMixture(2, emission=MIXED, random_state=0).fit(frame)
    completed = model.impute(frame)
    assert list(completed.columns) == list(frame.columns)
    assert not completed.isna().any().any()
    kept = frame.notna()
    assert (completed[kept] == frame[kept])[kept].all().all() or completed.where(kept).equals(frame.where(kept))
    gaps = frame["height"].isna().to_numpy()
    filled = completed.loc[gaps, "height"].to_numpy()
    assert filled[kind[gaps] == 1].mean() > filled[kind[gaps] == 0].mean() + 5


@pytest.mark.filterwarnings("ignore:Column '(visits|x1)' of X holds whole numbers:skvbem.errors.DataWarning")
def test_polars_and_lists(rng):
    polars = pytest.importorskip("polars")
    frame, _ = mixed_frame(rng, missing=0.0)
    frame["smoker"] = frame["smoker"].astype(bool)
    one = VBMixture(2, random_state=0).fit(frame)
    other = VBMixture(2, random_state=0).fit(polars.DataFrame({name: frame[name].tolist() for name in frame}))
    assert other.groups_ == one.groups_
    assert other.lower_bound_ == approx(one.lower_bound_, rel=1e-12)
    listed = VBMixture(2, random_state=0).fit(frame.to_numpy().tolist())
    assert listed.lower_bound_ == approx(one.lower_bound_, rel=1e-12)


BAD = {
    "a fractional count": ({"poisson": "visits"}, {"visits": 1.5}, "Column 'visits' of X holds 1.5, but for 'poisson'"),
    "a negative count": ({"poisson": "visits"}, {"visits": -1.0}, "counts are whole numbers >= 0"),
    "a negative time": ({"exponential": "visits"}, {"visits": -1.0}, "waiting times are >= 0"),
    "no zero and one": ({"bernoulli": "visits"}, {"visits": 2.0}, "it must hold 0 and 1"),
    "no square": ({"gaussian": "visits"}, {"visits": 1e200}, "holds 1e.200. Numbers beyond 1e.140 have products"),
    "infinity": ({"gaussian": "visits"}, {"visits": np.inf}, "Column 'visits' of X holds infinity"),
}


@pytest.mark.parametrize("case", BAD)
def test_values_that_no_component_makes(case, rng):
    emission, cells, message = BAD[case]
    frame = pd.DataFrame({"visits": [0.0, 1.0, 1.0, 0.0]})
    frame.loc[2, "visits"] = cells["visits"]
    with pytest.raises(ValueError, match=message):
        VBMixture(2, emission=emission).fit(frame)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"emission": "gaussain"}, "The 'emission' parameter of VBMixture must be 'auto'"),
        ({"emission": {"gaussain": ["a"]}}, r"names the family 'gaussain'. Did you mean 'gaussian'"),
        ({"emission": {"gaussian": ["a", "c"]}}, "names 'c', which is no column of X"),
        ({"emission": {"gaussian": ["a"]}}, "gives no family to 'b'"),
        ({"emission": {"gaussian": ["a", "b"], "poisson": "a"}}, "names column 'a' more than once"),
        ({"weight_concentration_prior": 0.0}, "The 'weight_concentration_prior' parameter of VBMixture must be > 0"),
        ({"weight_concentration_prior": [1.0, 2.0, 3.0]}, "must be a number or have one for each of the 2 components"),
        ({"init": np.ones((3, 2))}, r"The 'init' parameter of VBMixture must have a row for each of the 20 rows of X"),
        ({"categories": {"a": [1, 2]}}, "names 'a', which holds no categories"),
        (
            {"emission": Gaussian(degrees_of_freedom_prior=1.0)},
            "'degrees_of_freedom_prior' parameter of Gaussian must be above 1",
        ),
        (
            {"emission": Gaussian(mean_prior=[1.0, 2.0, 3.0])},
            r"'mean_prior' parameter of Gaussian must be a finite array of shape \(2,\)",
        ),
        (
            {"emission": Gaussian(covariance_prior=np.eye(3))},
            r"'covariance_prior' parameter of Gaussian must be a finite array of shape",
        ),
        (
            {"emission": Gaussian(covariance_prior=-np.eye(2))},
            "'covariance_prior' parameter of Gaussian must be symmetric and positive",
        ),
        ({"emission": Gaussian("diag", covariance_prior=[1.0, 0.0])}, "'covariance_prior' parameter .* must be > 0"),
        ({"n_components": 0}, "'n_components' parameter of VBMixture must be an int"),
        ({"covariance_type": "round"}, "'covariance_type' parameter of VBMixture"),
    ],
)
def test_bad_parameters(params, message, rng):
    frame = pd.DataFrame({"a": rng.normal(size=20), "b": rng.normal(size=20)})
    with pytest.raises(ValueError, match=message):
        VBMixture(**{"n_components": 2, **params}).fit(frame)


def test_a_string_among_numbers_says_what_to_do():
    frame = pd.DataFrame({"a": [1.0, "x", 2.0]})
    with pytest.raises(ValueError, match=r"Column 'a' of X holds 'x', where a number is expected.*'categorical'"):
        VBMixture(emission="gaussian").fit(frame)


# What makes no difference ---------------------------------------------------------------------------------------------


def test_order_of_rows_weights_and_threads(rng):
    frame, _ = mixed_frame(rng)
    model = VBMixture(2, emission=MIXED, random_state=0)
    one = clone(model).fit(frame)
    shuffled = clone(model).fit(frame.sample(frac=1, random_state=1))
    assert shuffled.lower_bound_ == approx(one.lower_bound_, rel=1e-9)
    repeats = rng.integers(0, 3, len(frame))
    repeated = clone(model).fit(frame.iloc[np.repeat(np.arange(len(frame)), repeats)])
    weighted = clone(model).fit(frame, sample_weight=repeats)
    assert weighted.lower_bound_ == approx(repeated.lower_bound_, rel=1e-6)
    assert weighted.n_samples_ == repeats.sum()
    assert clone(model).set_params(n_jobs=2).fit(frame).lower_bound_ == one.lower_bound_


def test_linear_maps_change_no_choice(rng):
    X = clumps(rng)
    for transform in (lambda Z: Z * [0.01, 100.0], lambda Z: Z + 1e8, lambda Z: Z @ np.array([[2.0, 1.0], [0.5, 3.0]])):
        one, other = (VBMixture(2, random_state=0).fit(Z) for Z in (X, transform(X)))
        same = one.predict(X) == other.predict(transform(X))
        assert same.all() or not same.any()


# Among other things ---------------------------------------------------------------------------------------------------


def test_it_works_in_scikit_learn(rng):
    X = clumps(rng)
    grid = GridSearchCV(VBMixture(random_state=0), {"n_components": [1, 2, 3]}, cv=3).fit(X)
    assert grid.best_params_ == {"n_components": 2}
    pipe = make_pipeline(StandardScaler(), VBMixture(2, random_state=0)).fit(X)
    assert pipe.predict(X).shape == (len(X),)
    search = StructureSearchCV(
        VBMixture(), {"n_components": range(1, 5)}, scoring=["lower_bound", "bic"], random_state=0
    ).fit(X)
    assert search.best_params_ == {"n_components": 2}
    assert search.score_weights_.argmax() == 1


def test_evidence_is_that_of_the_data_of_the_fit(rng):
    X = clumps(rng)
    model = VBMixture(2, emission=Gaussian(covariance_prior=None, mean_precision_prior=1.0), random_state=0).fit(X)
    assert model.log_evidence().value == model.lower_bound_
    assert model.log_evidence(X[::-1]).value == approx(model.lower_bound_)
    with pytest.raises(ValueError, match="is other data"):
        model.log_evidence(X[:-1])

    laplace = model.log_evidence(X, kind="laplace", alias=True)
    assert laplace.value == approx(model.log_evidence(X, kind="ais").value, abs=0.5)


def test_sticks_and_empty_components(rng):
    X = clumps(rng)
    sticks = {"weight_concentration_prior_type": "dirichlet_process", "weight_concentration_prior": 0.1}
    known = Gaussian(covariance_prior=None, mean_precision_prior=1.0)
    model = VBMixture(8, emission=known, random_state=0, **sticks).fit(X)
    assert model.weights_.sum() == approx(1.0)
    assert (model.counts_ > 1).sum() == 2
    assert model.counts_.sum() == approx(len(X))


def test_given_responsibilities(rng):
    X = clumps(rng)
    given = np.zeros((len(X), 2))
    given[np.arange(len(X)), (np.arange(len(X)) >= 60).astype(int)] = 1.0
    model = VBMixture(2, init=given).fit(X)
    assert model.predict(X).tolist() == [0] * 60 + [1] * 60
    holed = X.copy()
    holed[::7, 0] = np.nan
    weights = np.ones(len(X))
    weights[3] = 0
    assert VBMixture(2, init=given).fit(holed, sample_weight=weights).predict(X[60:]).tolist() == [1] * 60


def test_one_component_is_student_t(rng):
    """The predictive density of one Gaussian, by SciPy."""
    X = rng.normal(size=(20, 1))
    prior = {"mean_prior": [0.0], "mean_precision_prior": 1.0, "covariance_prior": [[1.0]]}
    model = VBMixture(1, emission=Gaussian(degrees_of_freedom_prior=3.0, **prior)).fit(X)
    kappa, dof = 1.0 + 20, 3.0 + 20
    mean = X.sum() / kappa
    scale = 3.0 * 0 + 1.0 + (X**2).sum() - kappa * mean**2
    expected = stats.t(dof, mean, np.sqrt(scale * (kappa + 1) / (kappa * dof))).logpdf(X[:, 0])
    assert model.score_samples(X) == approx(expected, abs=1e-9)


def test_graphs_of_one_class_are_its_networks():
    """DAG and mixture of one component are the same model of independent columns."""
    X = load_carcinoma().data
    one = VBMixture(1, emission="categorical").fit(X)
    graph = VBDiscreteDAG(DAG([f"x{j}" for j in range(7)], {}), random_state=0).fit(X)
    assert one.lower_bound_ == approx(graph.lower_bound_, rel=1e-12)


# Under hidden scales few of so many short chains count, which ais says of itself.
@pytest.mark.filterwarnings("ignore:ais:skvbem.errors.EvidenceWarning")
@pytest.mark.parametrize("emission", ["gaussian", "poisson", "categorical", "multinomial"])
def test_both_sides_of_the_evidence_of_simulated_rows(emission, rng):
    """Forwards too low, backwards too high, in expectation."""
    counts = rng.poisson(4.0, size=(25, 2)).astype(float)
    X = rng.normal(size=(25, 2)) if emission == "gaussian" else counts % 3 if emission == "categorical" else counts
    model = VBMixture(2, emission=emission, n_init=3, random_state=0).fit(X)
    found = certify_evidence(model, X, n_chains=128, n_steps=192, random_state=0)
    assert -0.7 < found.gap < 1.5


def test_draws_of_a_density_are_predictive(rng):
    """Of one Gaussian after five rows: Student's t, whose spread is wider than that of the mean parameters."""
    X = rng.normal(size=(5, 1))
    model = VBMixture(1, random_state=0).fit(X)
    drawn, _ = model.sample(4000, random_state=0)
    quantiles = np.quantile(drawn[:, 0], [0.1, 0.25, 0.5, 0.75, 0.9])
    grid = np.linspace(-60, 60, 40001)
    cumulative = np.cumsum(np.exp(model.score_samples(grid[:, None]))) * (grid[1] - grid[0])
    assert np.interp(quantiles, grid, cumulative) == approx([0.1, 0.25, 0.5, 0.75, 0.9], abs=0.03)


@pytest.mark.parametrize(
    ("emission", "params", "message"),
    [
        ("categorical", {"concentration_prior": -1.0}, "'concentration_prior' parameter of Categorical must be > 0"),
        ("categorical", {"concentration_prior": [[1.0, 1.0]]}, "must be a number or have 2 entries"),
        ("multinomial", {"concentration_prior": [1.0]}, "must be a number or have 2 entries"),
        ("poisson", {"shape_prior": 0.0}, "'shape_prior' parameter of Poisson must be > 0"),
        ("poisson", {"rate_prior": [1.0, np.inf]}, "'rate_prior' parameter of Poisson must be > 0"),
    ],
)
def test_bad_priors(emission, params, message, rng):
    with pytest.raises(ValueError, match=message):
        VBMixture(2, emission=EMISSIONS[emission](**params)).fit(rng.integers(0, 2, size=(20, 2)))


def test_priors_by_column(rng):
    X = rng.integers(0, 2, size=(20, 2))
    one = VBMixture(2, emission=Categorical([[1.0, 2.0], 1.0]), random_state=0).fit(X)
    other = VBMixture(2, emission=Categorical(1.0), random_state=0).fit(X)
    assert one.lower_bound_ != other.lower_bound_
    unit = VBMixture(2, emission=Poisson([1.0, 2.0], [0.5, 1.0]), random_state=0).fit(X)
    assert np.isfinite(unit.lower_bound_)


def test_credible_intervals_hold_the_parameters_and_need_a_posterior(rng):
    frame = pd.DataFrame({"a": rng.normal(size=60), "b": rng.choice(["x", "y", "z"], 60), "c": rng.poisson(3, 60)})
    model = VBMixture(2, emission={"gaussian": "a", "categorical": "b", "poisson": "c"}, n_init=2, random_state=0)
    model.fit(frame)
    assert {name: levels.tolist() for name, levels in model.categories_.items()} == {"b": ["x", "y", "z"]}
    wide, narrow = (model.credible_intervals(level=level, method="vb") for level in (0.95, 0.5))
    for family, parameter in (("gaussian", "means"), ("categorical", "probabilities"), ("poisson", "rates")):
        ends = (wide[family][parameter][0], narrow[family][parameter][0], model.parameters_[family][parameter])
        assert np.all(np.diff([*ends, narrow[family][parameter][1], wide[family][parameter][1]], axis=0) > 0)
    with pytest.raises(ValueError, match=r"'level' parameter of credible_intervals .* Got 95 instead"):
        model.credible_intervals(level=95)
    with pytest.raises(ValueError, match=r"fit by 'map' is a point\. Take standard_errors\(X\)"):
        VBMixture(2, method="map", n_init=1, random_state=0).fit(frame[["a"]]).credible_intervals()


# Reports --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 1e-20, 1e20])
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_planted_duplicates_and_empty_components(scale, covariance_type, rng):
    """Two clumps, the first shared evenly by two components, and one component without rows."""
    X = clumps(rng, apart=8.0) * scale
    given = np.zeros((len(X), 4))
    given[:60, :2], given[60:, 2] = 0.5, 1.0
    model = VBMixture(4, covariance_type=covariance_type, method="ml", init=given).fit(X)
    states = model.latent_states_["component"]
    assert states.mass == approx([30.0, 30.0, 60.0, 0.0], abs=0.1)
    assert (states.in_use, states.empty, states.duplicates) == ((0, 1, 2), (3,), ((0, 1),))
    assert states.effective == approx(np.exp(1.5 * np.log(2)), rel=1e-3)


@pytest.mark.parametrize("emission", ["categorical", "bernoulli", "poisson", "multinomial", "exponential"])
def test_planted_duplicates_of_every_family(emission, rng):
    kind = np.repeat([0, 1], 60)
    X = rng.poisson(2 + 28 * kind[:, None], size=(120, 2)).astype(float)
    if emission in ("categorical", "bernoulli"):
        X = (rng.random((120, 8)) < 0.05 + 0.9 * kind[:, None]).astype(float)
    elif emission == "multinomial":
        X[:, 0] = 10
    given = np.zeros((120, 4))
    given[:60, :2], given[60:, 2] = 0.5, 1.0
    states = VBMixture(4, emission=emission, method="ml", init=given).fit(X).latent_states_["component"]
    assert (states.in_use, states.empty, states.duplicates) == ((0, 1, 2), (3,), ((0, 1),))


def test_components_of_a_bayesian_fit_are_told_apart(rng):
    frame, _ = mixed_frame(rng)
    states = VBMixture(2, emission=MIXED, random_state=0).fit(frame).latent_states_["component"]
    assert (states.in_use, states.empty, states.duplicates) == ((0, 1), (), ())
    assert 1.9 < states.effective <= 2.0
    many = VBMixture(6, weight_concentration_prior=0.01, random_state=0).fit(clumps(rng)).latent_states_["component"]
    assert (len(many.in_use), len(many.empty), many.duplicates) == (2, 4, ())
    assert many.effective == approx(2.0, abs=0.05)


def test_divergence_is_that_of_two_gaussians(rng):
    """Of two with unit variances, (distance / sd)^2, when rows are as the components say."""
    X = np.concatenate([rng.normal(size=(20_000, 1)), rng.normal(size=(20_000, 1)) + 6.0])
    given = np.repeat(np.eye(2), 20_000, axis=0)
    fitted = VBMixture(2, covariance_type="tied", method="ml", init=given).fit(X)._fitted_
    data = fitted.model.compile(fitted.emission.prepare(X))
    natural, _ = fitted.form.of(fitted.model.prior, fitted.statistics[:, None])
    found = fitted.model.divergences(natural[:, 0], data)
    assert found == approx(np.array([[0.0, 36.0], [36.0, 0.0]]), rel=0.02)


# Maximum likelihood without a maximum ---------------------------------------------------------------------------------


@pytest.mark.parametrize("covariance_type", ["full", "diag", "spherical"])
@pytest.mark.parametrize("kind", ["one row", "repeats", "a line"])
def test_singular_fits_end_at_the_floor(covariance_type, kind, rng):
    """Of the variance of X, below which none goes: the objective still rises, and all is finite."""
    X = clumps(rng, apart=8.0)
    if kind == "one row":
        X = X[:61]
    elif kind == "repeats":
        X[60:] = X[60]
    else:
        X[60:, 1] = 2 * X[60:, 0] + 3
    given = np.zeros((len(X), 2))
    given[:60, 0] = given[60:, 1] = 1.0
    model = VBMixture(2, covariance_type=covariance_type, method="ml", init=given)
    if kind == "a line" and covariance_type != "full":
        model.fit(X)  # a line has width in both columns
    else:
        message = (
            r"^Component 1 has no width in some direction: the variance there is the floor of 1e-06 times that of X"
        )
        with pytest.warns(DataWarning, match=message):
            model.fit(X)
        least = (
            np.linalg.eigvalsh(model.covariances_[1])[0] if covariance_type == "full" else model.covariances_[1].min()
        )
        assert 1e-8 * X.var() < least < 1e-5 * X.var()
    assert np.isfinite(model.log_likelihood_)
    assert np.isfinite(model.score_samples(X)).all()
    assert (np.diff(model.lower_bounds_) >= -1e-9 * np.abs(model.lower_bounds_[1:])).all()


@pytest.mark.parametrize("init", ["auto", "hierarchical"])
def test_data_without_an_observed_cell_have_an_evidence_of_one(init):
    model = VBMixture(2, n_init=2, init=init, random_state=0).fit(np.arange(6.0)[:, None])
    found = certify_evidence(model, np.full((5, 1), np.nan), n_chains=2, n_steps=4)
    assert (found.lower.value, found.upper.value) == approx((0.0, 0.0), abs=1e-12)


def test_a_bend_without_steps_is_refused():
    """It shapes a schedule of so many steps; without their number the schedule adapts itself."""
    X = np.arange(6.0)[:, None]
    model = VBMixture(2, n_init=2, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"'bend' of 'smc' .* Got bend=0.5 alone"):
        model.log_evidence(X, kind="smc", bend=0.5)
    few = {"n_runs": 4, "n_particles": 4, "n_steps": 8, "random_state": 0}
    bent, straight, default = (
        model.log_evidence(X, kind="smc", **few, **bend).value for bend in ({"bend": -1.5}, {"bend": 0.5}, {})
    )
    assert bent == default != straight


def test_by_maximum_likelihood_a_spike_is_refused_where_a_proper_solution_is_less_likely():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(180, 2)) + np.repeat([[0, 0], [4, 4], [8, 0]], 60, axis=0)
    X[1] = X[0] + 1e-6
    around_both = np.repeat(np.eye(4)[:3], 60, axis=0)
    around_both[:2] = np.eye(4)[3]
    with pytest.warns(DataWarning, match="no width|no more rows|spike"):
        spike = VBMixture(4, method="ml", init=around_both).fit(X)
    proper = VBMixture(4, method="ml", random_state=0).fit(X)
    assert spike.restarts_.refused.all()
    assert spike.log_likelihood_ > proper.log_likelihood_ + 5
    assert proper.counts_.min() > 3
    assert np.linalg.eigvalsh(proper.covariances_).min() > 0.1
