"""`VBFactorAnalysis`: one model with mixtures and chains, definitions, other packages, every container, bad input."""

import pickle
import re
import tracemalloc
import warnings

import numpy as np
import pytest
from estimators.inputs import refused, warned
from reproduction.real_tables import GPL, columns_of
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.decomposition import PCA, FactorAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skvbem import VBHMM, StructureSearchCV, VBFactorAnalysis, VBMixture, blocks_of
from skvbem.emissions import FactorGaussian, Gaussian
from skvbem.errors import DataWarning

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
approx = pytest.approx

#: Priors that references were computed under.
KNOWN = {"noise_prior": (1.0, 0.5), "mean_precision_prior": 1.0}


def standardized(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


WINE, IRIS = standardized(load_wine().data), standardized(load_iris().data)


def factors(rng, n=200, d=6, q=2, noise=0.6):
    """Rows of which each factor explains some columns, and a little of the others."""
    loadings = np.kron(np.eye(q), np.ones((d // q, 1))) + 0.2 * np.sin(np.arange(d * q)).reshape(d, q)
    loadings *= np.linspace(1.4, 0.8, q)
    return rng.normal(size=(n, q)) @ loadings.T + noise * rng.normal(size=(n, d))


def with_gaps(X, rng, share=0.15):
    return np.where(rng.random(X.shape) < share, np.nan, X)


# One model under several names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["diag", "spherical"])
@pytest.mark.parametrize("gaps", [False, True])
def test_it_is_a_mixture_of_one_component_and_a_chain_of_one_state(noise, gaps, rng):
    X = with_gaps(factors(rng, n=60), rng) if gaps else factors(rng, n=60)
    emission, exactly = FactorGaussian(2, noise=noise), {"n_init": 1, "tol": 1e-8, "random_state": 0}
    model = VBFactorAnalysis(2, noise=noise, **exactly).fit(X)
    mixture = VBMixture(1, emission=emission, **exactly).fit(X)
    for other in (mixture, VBHMM(1, emission=emission, **exactly).fit(X)):
        assert model.lower_bound_ == approx(other.lower_bound_, abs=1e-6)
        np.testing.assert_allclose(model.get_covariance(), other.parameters_["factor"]["covariances"][0], atol=1e-4)
    np.testing.assert_allclose(model.impute(X), mixture.impute(X), atol=1e-4)


@pytest.mark.parametrize("noise", ["diag", "spherical"])
def test_without_factors_it_is_the_gaussian_of_independent_columns(noise):
    d = 4 if noise == "spherical" else 1
    covariance = 1.0 if noise == "spherical" else np.ones(4)
    known = {"degrees_of_freedom_prior": 2.0, "covariance_prior": covariance, "mean_precision_prior": 0.7}
    diagonal = VBMixture(1, emission=Gaussian(noise, mean_prior=np.zeros(4), **known)).fit(IRIS)
    model = VBFactorAnalysis(0, noise=noise, noise_prior=(d, d / 2), mean_precision_prior=0.7).fit(IRIS)
    assert model.lower_bound_ == approx(diagonal.lower_bound_, abs=1e-8)
    assert model.transform(IRIS).shape == (150, 0)
    assert model.components_.shape == (0, 4)


def test_the_bound_counts_the_factors():
    """As in fits of every number of them, one by one."""
    bounds = [VBFactorAnalysis(q, **KNOWN, n_init=1, random_state=0).fit(WINE).lower_bound_ for q in range(7)]
    model = VBFactorAnalysis(**KNOWN, random_state=0).fit(WINE)
    assert model.n_factors_ == model.n_components_ == np.argmax(bounds) == 4
    assert model.lower_bound_ == approx(max(bounds), abs=0.01)
    assert model.moves_[-1].n_factors == ((4,),)
    refused(ValueError, "needs method='vb'", VBFactorAnalysis(method="ml").fit, WINE)


# Bounds and likelihoods that other programs found ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "noise", "bounds"),
    [
        (WINE, "diag", [-3349.925, -3008.168, -2896.551, -2869.112, -2863.279, -2877.796, -2896.118]),
        (WINE, "spherical", [-3320.943, -3100.513, -2985.095, -2938.700, -2932.119, -2918.774]),
        (IRIS, "diag", [-871.145, -597.903, -586.703, -590.827]),
    ],
)
def test_bounds_of_another_program_are_met_or_beaten(X, noise, bounds):
    for q, bound in enumerate(bounds):
        assert VBFactorAnalysis(q, noise=noise, **KNOWN, random_state=0).fit(X).lower_bound_ >= bound - 6e-4


DIGITS = load_digits().data
DIGITS = standardized(DIGITS[:, DIGITS.std(axis=0) > 0.5])


@pytest.mark.parametrize(
    ("X", "q", "log_likelihood", "of_one_noise", "noise"),
    [
        (WINE, 1, -16.259945415, -17.004466767, 0.691179),
        (WINE, 2, -15.433657597, -16.155259888, 0.527016),
        (WINE, 3, -15.080249758, -15.701791975, 0.435110),
        (IRIS, 1, -3.560907929, -4.680896697, 0.360501),
        (DIGITS, 5, -63.647032479, -64.749536266, 0.577088),
        (DIGITS, 10, -59.213696877, -60.595774369, 0.409291),
    ],
    ids=["wine 1", "wine 2", "wine 3", "iris 1", "digits 5", "digits 10"],
)
@pytest.mark.filterwarnings("ignore:Column x2 has next to no noise:skvbem.errors.DataWarning")
def test_likelihoods_of_another_program_are_met(X, q, log_likelihood, of_one_noise, noise):
    """By a profile over the noises, and of one noise in closed form [Tipping & Bishop 1999]."""
    exactly = {"method": "ml", "tol": 1e-8, "random_state": 0}
    assert VBFactorAnalysis(q, **exactly).fit(X).log_likelihood_ / len(X) == approx(log_likelihood, abs=2e-9)
    model = VBFactorAnalysis(q, noise="spherical", **exactly).fit(X)
    assert model.log_likelihood_ / len(X) == approx(of_one_noise, abs=2e-9)
    np.testing.assert_allclose(model.noise_variance_, noise, atol=1e-5)


def third_party(name):
    """A table of numbers under a copyleft license, which is part of a checkout only; NaN where a cell is missing."""
    if not (GPL / f"{name}.csv").exists():
        pytest.skip(f"{name}.csv is not here")
    columns = columns_of(GPL / f"{name}.csv")
    numbers = [cells for cells in columns.values() if all(re.fullmatch(r"[\d.]*", cell) for cell in cells)]
    return np.array([[float(cell or "nan") for cell in cells] for cells in numbers]).T


@pytest.mark.parametrize(
    ("name", "q", "log_likelihood", "of_one_noise", "noise"),
    [
        ("us_arrests", 1, -4.832272384, -5.109840766, 0.506586),
        ("crabs", 1, -0.837293228, -1.995018626, 0.052791),
        ("bfi", 1, -33.924022329, -34.022718978, 0.827737),
        ("bfi", 5, -32.040946386, -32.232729015, 0.578530),
        ("bfi", 6, -31.918419856, -32.104074578, 0.552475),
    ],
)
@pytest.mark.filterwarnings("ignore:Column x2 has next to no noise:skvbem.errors.DataWarning")
def test_likelihoods_of_tables_of_other_packages_are_met(name, q, log_likelihood, of_one_noise, noise):
    """Of complete rows, as those of the tables above."""
    X = third_party(name)
    test_likelihoods_of_another_program_are_met(
        standardized(X[~np.isnan(X).any(axis=1)]), q, log_likelihood, of_one_noise, noise
    )


@pytest.mark.parametrize(("q", "log_likelihood"), [(0, -98604.87655), (1, -94471.70677), (5, -89473.68853)])
def test_the_likelihood_of_a_questionnaire_with_gaps_is_met(q, log_likelihood):
    """Of observed cells, in standard deviations of these, from six starts of another program."""
    X = third_party("bfi")
    X = (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)
    model = VBFactorAnalysis(q, method="ml", n_init=1, tol=1e-5, random_state=0).fit(X)
    assert model.log_likelihood_ == approx(log_likelihood, abs=2e-5)


def test_the_likelihood_of_a_tiny_table_is_met():
    """One noise is at its floor, 0.005 of the variance of its column."""
    rows = (
        "-0.2,0.3,0.1 0,0.4,-0.2 -0.3,1.4,1.5 -0.2,-2.7,-2.2 0,2.1,2.5 0.1,0.4,-0.8 -0.3,0.7,0.1 0.1,0,-0.6 "
        "0.7,-0.2,-0.2 0.2,1.2,0 0.3,1.6,0.3 0.2,-0.5,0.1 -0.2,-0.3,-0.1 -0.4,1.4,1 0.2,-1.7,-0.7 0.2,-2.6,-1.9 "
        "0.6,1.5,-0.2 0.4,-0.9,-1 -0.6,-2.5,-3.5 0.3,-0.7,-2"
    )
    Y = np.array([[float(cell) for cell in row.split(",")] for row in rows.split()])
    model = VBFactorAnalysis(1, method="ml", tol=1e-9, random_state=0)
    warned(DataWarning, "next to no noise", model.fit, Y)
    assert model.log_likelihood_ == approx(-62.222479386, abs=1e-8)
    assert model.fit_indices(Y).n_free_parameters == 9


# Under the names of scikit-learn --------------------------------------------------------------------------------------


def test_by_maximum_likelihood_it_is_scikit_learns(rng):
    X = factors(rng) + 3
    theirs = FactorAnalysis(2, tol=1e-12, max_iter=100_000, svd_method="lapack").fit(X)
    ours = VBFactorAnalysis(2, method="ml", tol=1e-10, random_state=0).fit(X)
    assert ours.score(X) == approx(theirs.score(X), abs=1e-8)
    np.testing.assert_allclose(ours.get_covariance(), theirs.get_covariance(), atol=1e-4)
    np.testing.assert_allclose(ours.get_precision() @ ours.get_covariance(), np.eye(6), atol=1e-10)
    np.testing.assert_allclose(ours.noise_variance_, theirs.noise_variance_, atol=1e-4)
    np.testing.assert_allclose(ours.mean_, theirs.mean_, atol=1e-6)
    scores, of_theirs = ours.transform(X), theirs.transform(X)
    expected = of_theirs @ np.linalg.lstsq(of_theirs, scores, rcond=None)[0]  # in some turn of the factors
    np.testing.assert_allclose(scores, expected, atol=1e-3)
    np.testing.assert_allclose(ours.components_, ours.loadings_.T)


def test_scores_by_maximum_likelihood_are_those_of_regression(rng):
    X = factors(rng)
    model = VBFactorAnalysis(2, method="ml", rotation="oblimin", random_state=0).fit(X)
    phi, L = model.factor_correlations_, model.loadings_
    expected = (X - model.mean_) @ model.get_precision() @ L @ phi
    np.testing.assert_allclose(model.transform(X), expected, atol=1e-9)
    covariance = phi - phi @ L.T @ model.get_precision() @ L @ phi
    np.testing.assert_allclose(model.score_covariance(X[:3]), np.stack([covariance] * 3), atol=1e-9)
    np.testing.assert_allclose(L @ phi @ L.T + np.diag(model.noise_variance_), model.get_covariance())


def test_scores_with_gaps_are_those_of_the_observed_cells(rng):
    X = factors(rng)
    model = VBFactorAnalysis(2, method="ml", rotation="varimax", random_state=0).fit(X)
    row = np.array([[np.nan, 1.0, np.nan, -0.5, 2.0, 0.1]])
    seen = [1, 3, 4, 5]
    precision = np.linalg.inv(model.get_covariance()[np.ix_(seen, seen)])
    gain = model.loadings_[seen].T @ precision
    np.testing.assert_allclose(model.transform(row)[0], gain @ (row[0, seen] - model.mean_[seen]), atol=1e-9)
    np.testing.assert_allclose(model.score_covariance(row)[0], np.eye(2) - gain @ model.loadings_[seen], atol=1e-9)
    nothing = np.full((1, 6), np.nan)
    assert model.transform(nothing).tolist() == [[0.0, 0.0]]
    np.testing.assert_allclose(model.score_covariance(nothing)[0], np.eye(2), atol=1e-12)


def test_imputed_cells_have_the_conditional_mean_and_variance(rng):
    X = factors(rng)
    model = VBFactorAnalysis(2, method="ml", random_state=0).fit(X)
    row = np.array([[np.nan, 1.0, np.nan, -0.5, 2.0, 0.1]])
    seen, gone, sigma = [1, 3, 4, 5], [0, 2], model.get_covariance()
    gain = sigma[np.ix_(gone, seen)] @ np.linalg.inv(sigma[np.ix_(seen, seen)])
    filled, variances = model.impute(row, return_variances=True)
    np.testing.assert_allclose(filled[0, gone], model.mean_[gone] + gain @ (row[0, seen] - model.mean_[seen]))
    np.testing.assert_allclose(
        variances[0, gone], np.diag(sigma[np.ix_(gone, gone)] - gain @ sigma[np.ix_(seen, gone)])
    )
    assert (variances[0, seen] == 0).all()
    assert (filled[0, seen] == row[0, seen]).all()


def test_variances_of_imputed_cells_hold_what_is_not_known_of_the_parameters(rng):
    """As draws from q(theta) q(x) have it."""
    X = factors(rng, n=12, d=4, q=1)
    model = VBFactorAnalysis(1, random_state=0).fit(X)
    fitted, row = model.fitted, np.array([[np.nan, 1.0, -0.5, 2.0]])
    posterior, n = fitted.posterior.blocks[-1], 100_000
    mean, covariance = (each[0] for each in fitted._factors([row]))
    x = np.column_stack([np.ones(n), rng.normal(mean[0], np.sqrt(covariance[0, 0]), n)])
    tau = rng.gamma(posterior.shape[0], 1 / posterior.rate[0], n)
    root = np.linalg.cholesky(posterior.covariance[posterior.precision_of[0]])
    w = posterior.mean[0] + (rng.normal(size=(n, 2)) @ root.T) / np.sqrt(tau)[:, None]
    drawn = fitted.emission.unit[0] * ((w * x).sum(axis=1) + rng.normal(size=n) / np.sqrt(tau))
    _, variances = model.impute(row, return_variances=True)
    assert variances[0, 0] == approx(drawn.var(), rel=0.02)


def test_deviations_of_loadings_are_those_of_draws_with_the_rotation_held(rng):
    X = factors(rng, n=60)
    fitted = VBFactorAnalysis(2, rotation="varimax", random_state=0).fit(X).fitted
    points = [fitted.posterior.sample(rng)[-1] for _ in range(4000)]
    drawn = np.array([fitted.emission.parameters(point)["loadings"][0] for point in points]) @ fitted.turn
    np.testing.assert_allclose(fitted.loadings_deviations, drawn.std(axis=0), rtol=0.06)


def test_rows_come_back_from_their_scores(rng):
    X = factors(rng, noise=0.05)
    model = VBFactorAnalysis(2, rotation="oblimin", random_state=0).fit(X)
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, atol=0.3)
    refused(ValueError, "scores on its 2 factors. Got 6 columns", model.inverse_transform, X)


def test_sampled_rows_have_the_moments_of_the_model(rng):
    model = VBFactorAnalysis(2, random_state=0).fit(factors(rng, n=2000))
    drawn = model.sample(20_000, random_state=1)
    assert drawn.shape == (20_000, 6)
    np.testing.assert_allclose(np.cov(drawn.T), model.get_covariance(), atol=0.15)


def test_communalities_and_shares_add_up(rng):
    model = VBFactorAnalysis(2, rotation="promax", random_state=0).fit(factors(rng))
    np.testing.assert_allclose(model.communalities_ + model.uniquenesses_, 1.0)
    assert model.factor_variance_.sum() == approx(model.communalities_.sum())
    assert (np.diff(model.factor_variance_) <= 0).all()
    deviations = np.sqrt(np.diag(model.get_covariance()))
    np.testing.assert_allclose(model.standardized_loadings_ * deviations[:, None], model.loadings_)
    largest = np.abs(model.standardized_loadings_).argmax(axis=0)
    assert (model.standardized_loadings_[largest, [0, 1]] > 0).all()
    assert model.relevance_.shape == (2,)
    assert not hasattr(VBFactorAnalysis(2, relevance="fixed").fit(factors(rng)), "relevance_")


@pytest.mark.parametrize("rotation", [None, "varimax", "oblimin"])
def test_signs_and_order_do_not_hang_on_the_seed_nor_on_rows(rotation):
    one, other = (
        VBFactorAnalysis(3, rotation=rotation, n_init=1, tol=1e-6, random_state=seed).fit(X)
        for seed, X in enumerate((WINE, WINE[::-1]))
    )
    np.testing.assert_allclose(other.loadings_, one.loadings_, atol=2e-3)


# Intervals ------------------------------------------------------------------------------------------------------------


def test_intervals_are_around_rotated_loadings(rng):
    X = factors(rng, n=100)
    model = VBFactorAnalysis(2, rotation="varimax", n_init=1, random_state=0).fit(X)
    low, high = model.loadings_interval(X, n_draws=100)
    assert ((low < model.loadings_) & (model.loadings_ < high)).all()
    of_draws = model.credible_intervals(X, n_draws=100)["factor"]
    np.testing.assert_array_equal(of_draws["loadings"][0], low)
    assert {name: pair[0].shape for name, pair in of_draws.items()} == {
        name: each.shape for name, each in model.parameters_["factor"].items()
    }
    narrow = model.loadings_interval(level=0.5, method="vb")
    assert (narrow[1] - narrow[0] < high - low).all()
    assert model.credible_intervals(method="vb").keys() == {"factor"}
    refused(ValueError, "needs X, the data of the fit", model.loadings_interval)
    refused(ValueError, "is a point", VBFactorAnalysis(1, method="ml").fit(X).loadings_interval, X)


def test_summaries_show_loadings_with_intervals(rng):
    X = pd.DataFrame(factors(rng, n=80), columns=list("abcdef"))
    model = VBFactorAnalysis(2, rotation="promax", random_state=0).fit(X)
    report = model.summary(X, method="vb")
    assert report.title == "VBFactorAnalysis: 2 factors of 6 columns, promax"
    assert [table.title for table in report.tables] == ["factors", "correlations of factors", "loadings"]
    assert list(report.tables[-1].rows) == list("abcdef")
    assert report.facts["prior"] == "FactorGaussian(n_factors=2)"
    by_draws = model.summary(X, method="linear_response").tables[-1].intervals
    assert np.isfinite(by_draws[0]).all()
    most_likely = VBFactorAnalysis(2, method="ml", rotation="varimax", random_state=0).fit(X).summary(X)
    assert not any("standard error" in doubt for doubt in most_likely.doubts)
    assert np.isfinite(most_likely.tables[-1].intervals[0]).all()


@pytest.mark.slow
def test_standard_errors_of_rotated_loadings_are_those_of_the_bootstrap(rng):
    X = factors(rng, n=400)
    model = VBFactorAnalysis(2, method="ml", rotation="varimax", random_state=0).fit(X)
    errors = model.standard_errors(X).errors["factor"]["loadings"]
    bootstrap = model.bootstrap(X, 200, random_state=0).errors["factor"]["loadings"]
    assert np.median(errors / bootstrap) == approx(1.0, abs=0.15)


# Containers, steps and searches ---------------------------------------------------------------------------------------


def test_frames_in_and_out(rng):
    X = with_gaps(factors(rng), rng)
    names = list("abcdef")
    in_pandas = pd.DataFrame(X, columns=names)
    model = VBFactorAnalysis(2, random_state=0).set_output(transform="pandas").fit(in_pandas)
    scores = model.transform(in_pandas)
    assert (
        scores.columns.tolist() == model.get_feature_names_out().tolist() == ["vbfactoranalysis0", "vbfactoranalysis1"]
    )
    assert isinstance(model.impute(in_pandas), pd.DataFrame)
    frame = pl.DataFrame(dict(zip(names, X.T.tolist())))
    other = VBFactorAnalysis(2, random_state=0).set_output(transform="polars").fit(frame)
    np.testing.assert_allclose(other.transform(frame).to_numpy(), scores.to_numpy(), atol=1e-12)
    assert isinstance(other.impute(frame), pl.DataFrame)
    assert other.lower_bound_ == model.lower_bound_


def test_weights_are_repeats_and_rows_come_in_any_order_or_blocks(rng):
    X, weight = with_gaps(factors(rng), rng), rng.integers(0, 4, 200)
    exactly = {"tol": 1e-6, "n_init": 1, "random_state": 0}
    model = VBFactorAnalysis(2, **exactly).fit(X, sample_weight=weight)
    repeated = np.repeat(X, weight, axis=0)
    for other in (repeated, rng.permutation(repeated), blocks_of([repeated[:150], repeated[150:]])):
        assert VBFactorAnalysis(2, **exactly).fit(other).lower_bound_ == approx(model.lower_bound_, abs=1e-4)
    assert VBFactorAnalysis(2, n_jobs=2, **exactly).fit(X, sample_weight=weight).lower_bound_ == model.lower_bound_


def test_batches_warm_starts_and_pickles(rng):
    X = factors(rng, n=400)
    model = VBFactorAnalysis(2, random_state=0).partial_fit(X[:200]).partial_fit(X[200:])
    whole = VBFactorAnalysis(2, random_state=0).fit(X)
    np.testing.assert_allclose(model.get_covariance(), whole.get_covariance(), atol=0.1)
    again = VBFactorAnalysis(2, warm_start=True, random_state=0).fit(X)
    before = again.lower_bound_
    again.fit(X)
    assert again.lower_bounds_[0] > before - 1.0
    assert again.lower_bound_ == approx(before, abs=1e-3)
    again.fit(3 * X + 1)  # other units
    assert again.lower_bound_ == approx(before - X.size * np.log(3), abs=1e-3)
    loaded = pickle.loads(pickle.dumps(whole))
    np.testing.assert_array_equal(loaded.transform(X), whole.transform(X))
    assert clone(whole).get_params().keys() == whole.get_params().keys()


def test_a_pipeline_with_a_classifier_behind_and_searches_over_the_number_of_factors():
    X, y = load_wine(return_X_y=True)
    pipeline = make_pipeline(
        StandardScaler(), VBFactorAnalysis(4, rotation="varimax", n_init=1, random_state=0), LogisticRegression()
    )
    assert pipeline.fit(X, y).score(X, y) > 0.95
    space, model = {"n_factors": [1, 4, 6]}, VBFactorAnalysis(n_init=1, random_state=0)
    grid = GridSearchCV(
        model, space, cv=[(np.arange(178), np.arange(178))],
        scoring=lambda estimator, X: estimator.lower_bound_,
    )  # fmt: skip
    assert grid.fit(WINE).best_params_ == {"n_factors": 4}
    folds = KFold(3, shuffle=True, random_state=0)
    assert GridSearchCV(model, space, cv=folds).fit(WINE).best_estimator_.n_factors_ > 1
    search = StructureSearchCV(model, space, scoring="lower_bound").fit(WINE)
    assert search.best_estimator_.n_factors_ == 4


# Bad input ------------------------------------------------------------------------------------------------------------


def test_duplicate_columns_are_named_and_finite(rng):
    X = pd.DataFrame(factors(rng, n=400), columns=list("abcdef"))
    X["copy"] = X["a"]
    for method in ("vb", "map", "ml"):
        model = VBFactorAnalysis(2, method=method, random_state=0)
        if method == "ml":
            warned(DataWarning, "next to no noise", model.fit, X)
        else:
            model.fit(X)
        assert model.heywood_ == ["a", "copy"]
        assert all(np.isfinite(each).all() for each in (model.loadings_, model.noise_variance_, model.score_samples(X)))
        assert any("Heywood" in doubt for doubt in model.summary().doubts)


def test_a_constant_column_is_named(rng):
    X = factors(rng)
    X[:, 2] = 7.0
    model = VBFactorAnalysis(1, random_state=0)
    warned(DataWarning, "'x2' of X holds one value", model.fit, X)
    assert np.isfinite(model.loadings_).all()
    assert np.isfinite(model.score_samples(X)).all()


def test_a_column_without_observation_is_refused(rng):
    X = factors(rng)
    X[:, 2] = np.nan
    refused(ValueError, "Column 'x2' of X has no observed cell. Leave", VBFactorAnalysis(2).fit, X)


def test_more_columns_than_rows_and_one_row(rng):
    X = rng.normal(size=(8, 30))
    model = VBFactorAnalysis(2, rotation="varimax", random_state=0).fit(X)
    assert np.isfinite(model.lower_bound_)
    assert VBFactorAnalysis(random_state=0).fit(X).n_factors_ <= 8
    model = VBFactorAnalysis(1, random_state=0)
    warned(DataWarning, "one row", model.fit, X[:1])
    assert np.isfinite(model.lower_bound_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_factors": -1}, "'n_factors'"),
        ({"n_factors": "many"}, "'n_factors'"),
        ({"rotation": "sideways"}, "'rotation'"),
        ({"noise": "full"}, "'noise'"),
        ({"noise_prior": (1.0, -1.0)}, "'noise_prior'"),
        ({"relevance_prior": 3.0}, "'relevance_prior'"),
        ({"mean_prior": [0.0]}, "'mean_prior'"),
        ({"init": "k-means++"}, "'init'"),
    ],
)
def test_parameters_are_checked(parameters, message, rng):
    refused(ValueError, message, VBFactorAnalysis(**{"n_factors": 1, **parameters}).fit, factors(rng))


def test_what_is_no_number_is_refused(rng):
    refused(ValueError, "a number is expected", VBFactorAnalysis(1).fit, [["a", "b"], ["c", "d"], ["e", "f"]])
    model = VBFactorAnalysis(1).fit(factors(rng))
    refused(ValueError, "6 features", model.transform, np.zeros((2, 5)))
    refused(AttributeError, "fit_predict", getattr, model, "fit_predict")
    refused(ValueError, "VBFactorAnalysis has no parameter 'emission'", model.set_params, emission="gaussian")


def test_it_is_principal_components_where_noise_is_alike(rng):
    """Loadings span what PCA finds."""
    X = factors(rng, n=500)
    ours = VBFactorAnalysis(2, noise="spherical", method="ml", random_state=0).fit(X / X.std(axis=0))
    axes = PCA(2).fit(X / X.std(axis=0)).components_
    np.testing.assert_allclose(np.linalg.lstsq(axes.T, ours.loadings_, rcond=None)[1], 0.0, atol=1e-8)


@pytest.mark.parametrize("standardize", [False, True])
def test_its_covariance_is_that_of_principal_components(standardize, rng):
    """Of the data in their own units, or in standard deviations, with n for n - 1."""
    X = factors(rng, n=100) * [1.0, 2.0, 0.5, 3.0, 1.0, 0.7]
    unit = X.std(axis=0) if standardize else np.ones(6)
    exactly = {"method": "ml", "tol": 1e-10, "random_state": 0}
    ours = VBFactorAnalysis(2, noise="spherical", standardize=standardize, **exactly).fit(X)
    expected = PCA(2).fit(X / unit).get_covariance() * 99 / 100 * unit * unit[:, None]
    np.testing.assert_allclose(ours.get_covariance(), expected, atol=1e-6)


def test_three_dimensions_of_principal_components_are_found():
    """In six tables of six."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        axes = np.linalg.qr(rng.normal(size=(10, 3)))[0]
        X = rng.normal(size=(200, 3)) * [3, 2, 1] @ axes.T + 0.5 * rng.normal(size=(200, 10))
        assert VBFactorAnalysis(noise="spherical", random_state=0).fit(X).n_factors_ == 3


@pytest.mark.parametrize("u", [0.005, 0.05, 0.5])
def test_noises_of_any_size_are_found(u):
    """In the median over some tables; a known prior of ordinary noise makes the least twice as large."""
    ratios = []
    for seed in range(6):
        rng = np.random.default_rng([seed, 1])
        X = np.sqrt(1 - u) * rng.normal(size=(200, 1)) + np.sqrt(u) * rng.normal(size=(200, 6))
        ratios.append(VBFactorAnalysis(1, random_state=0).fit(X).noise_variance_ / u)
    assert np.median(ratios) == approx(1.0, abs=0.05)


def test_factors_of_clusters_far_apart_are_found():
    rng = np.random.default_rng(0)
    one = [rng.normal(size=(100, 1)) * rng.normal(size=4) + 0.3 * rng.normal(size=(100, 4)) for _ in range(3)]
    X = np.concatenate([rows + 80 * k * np.array([1, 1, 0, 0.5]) for k, rows in enumerate(one)])
    model = VBMixture(3, emission=FactorGaussian("auto"), random_state=0).fit(X)
    assert model.n_factors_.tolist() == [1, 1, 1]


@pytest.mark.parametrize("as_container", [np.asarray, pd.DataFrame, pl.DataFrame])
def test_a_matrix_of_correlations_in_the_place_of_rows_is_told(as_container):
    """Other programs take one; here six correlations would be six rows."""
    correlations = as_container(np.corrcoef(WINE[:, :6].T))
    with pytest.warns(DataWarning, match="6 rows and as many columns: .* make_rows_with_moments"):
        VBFactorAnalysis(1, n_init=1, random_state=0).fit(correlations)


def test_rows_that_are_as_many_as_columns_are_rows():
    VBFactorAnalysis(1, n_init=1, random_state=0).fit(WINE[:13])


def test_memory_beside_rows_without_gaps_does_not_grow_with_them(rng):
    """A few rows with the same moments stand for all."""
    peaks, model = [], VBFactorAnalysis(2, max_iter=10, n_init=1, tol=1.0, random_state=0)
    for n in (60_000, 160_000):  # of some blocks, and of many
        X = factors(rng, n, 12)
        model.fit(X[:100])  # what is imported late is imported now
        tracemalloc.start()
        model.fit(X)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 0.02 * X.nbytes


def test_more_factors_than_columns_are_warned_of():
    X = np.random.default_rng(0).normal(size=(40, 2))
    with pytest.warns(DataWarning, match=r"^7 factors cannot be told apart where columns are fewer \(2\)"):
        VBFactorAnalysis(7, random_state=0).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        VBFactorAnalysis(2, random_state=0).fit(X)
