"""Mixtures of regressions, autoregressive chains and networks, against closed forms, quadrature and sums over paths."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp
from sklearn.base import clone

from skvbem import VBHMM, VBMixture, VBNetwork
from skvbem.blocks import blocks_of
from skvbem.emissions import Gaussian, Poisson, Regression
from skvbem.emissions.regression import lagged
from skvbem.errors import StructureError

approx = pytest.approx
KNOWN = {"coefficient_precision_prior": 0.7, "degrees_of_freedom_prior": 3.0, "variance_prior": 2.0}


def lines(rng, n=60):
    """Rows of two lines, with the covariate after the response."""
    u = rng.uniform(-1, 1, size=n)
    slope = np.where(rng.random(n) < 0.5, 3.0, -2.0)
    return np.column_stack([1.0 + slope * u + rng.normal(scale=0.2, size=n), u])


def switching(rng, n=300):
    """A sequence about 5 that follows the value before, or runs against it."""
    y, state = np.full(n, 5.0), 0
    for t in range(1, n):
        state = 1 - state if rng.random() < 0.05 else state
        y[t] = 5 + (0.9, -0.7)[state] * (y[t - 1] - 5) + rng.normal()
    return y[:, None]


def closed_form(y, given, emission, j=0, intercept=True):
    """Log density of responses, Student t together [Gelman et al., Bayesian Data Analysis, ch. 14], under `KNOWN`."""
    seen = ~np.isnan(y)
    y, given = (y[seen] - emission.origin[j]) / emission.unit[j], given[seen]
    given = (given - emission.given_origin) / emission.given_unit
    r = np.column_stack([np.ones((len(y), int(intercept))), given])
    kappa, dof, variance = KNOWN.values()
    shape = variance / emission.unit[j] ** 2 * (np.eye(len(y)) + r @ r.T / kappa)
    return stats.multivariate_t(np.zeros(len(y)), shape, df=dof).logpdf(y) - len(y) * np.log(emission.unit[j])


# Bayesian linear regression -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
def test_one_component_is_bayesian_linear_regression(intercept, rng):
    given = rng.normal(3.0, 2.0, size=(25, 2))
    X = np.column_stack([4 + given @ [1.0, -2.0] + rng.normal(size=25), 100 * rng.normal(size=25), given])
    X[3, 0] = X[5, 1] = np.nan
    model = VBMixture(emission=Regression([2, 3], intercept=intercept, **KNOWN)).fit(X)
    emission = model._fitted_.emission
    exact = sum(closed_form(X[:, j], X[:, 2:], emission, j, intercept) for j in range(2))
    assert model.lower_bound_ == approx(exact, rel=1e-10)
    new = np.array([[2.0, 30.0, 1.0, 7.0]])
    both = sum(closed_form(np.r_[X[:, j], new[:, j]], np.r_[X, new][:, 2:], emission, j, intercept) for j in range(2))
    assert model.score_samples(new)[0] == approx(both - exact, rel=1e-8)


def test_intervals_are_those_of_ordinary_regression_under_a_weak_prior(rng):
    u = rng.normal(7.0, 3.0, size=40)
    X = np.column_stack([2 - 0.5 * u + rng.normal(size=40), u])
    weak = {"coefficient_precision_prior": 1e-9, "degrees_of_freedom_prior": 1e-9, "variance_prior": None}
    model = VBMixture(emission=Regression([1], **weak)).fit(X)
    line = stats.linregress(u, X[:, 0])
    of_group = model.parameters_["regression"]
    assert of_group["coefficients"].item() == approx(line.slope, rel=1e-6)
    assert of_group["intercepts"].item() == approx(line.intercept, rel=1e-6)
    assert of_group["means"].item() == approx(X[:, 0].mean(), rel=1e-6)
    # the prior's count of degrees of freedom takes none for the coefficients: n of them, of n - 2 as textbooks have it
    width = line.stderr * np.sqrt(38 / 40) * stats.t(40).ppf(0.975)
    low, high = model.credible_intervals(method="vb")["regression"]["coefficients"]
    assert (high.item() - low.item()) / 2 == approx(width, rel=1e-6)


def test_hidden_scales_are_below_the_evidence_by_quadrature(rng):
    """One slope, no constant: precision of the slope and scale of the noise integrated out, with every constant."""
    u = rng.normal(size=8)
    X = np.column_stack([1.5 * u + 0.4 * rng.normal(size=8), u])
    model = VBMixture(emission=Regression([1], intercept=False)).fit(X)
    emission = model._fitted_.emission
    y, r = X[:, 0] / emission.unit, u / emission.given_unit

    # both Gamma(1/2, 1/2), by their logarithms; the matrix 1 + r r' / kappa has one eigenvalue that is not 1
    logs = np.linspace(-60, 6, 1500)
    of_prior = stats.gamma(0.5, scale=2.0).logpdf(np.exp(logs)) + logs
    kappa, scale = np.exp(logs)[:, None], np.exp(logs)
    squares = y @ y - (y @ r) ** 2 / (kappa + r @ r)
    log = gammaln(5.5) - gammaln(1.5) - 4 * np.log(3 * np.pi * scale) - 0.5 * np.log1p(r @ r / kappa)
    log = log - 5.5 * np.log1p(squares / (3 * scale)) + of_prior[:, None] + of_prior
    exact = logsumexp(log) + 2 * np.log(logs[1] - logs[0]) - 8 * np.log(emission.unit[0])
    assert exact - 1.0 < model.lower_bound_ < exact


def test_a_covariate_may_be_modeled_by_another_group(rng):
    X = lines(rng)
    both = VBMixture(emission=[("y", Regression([1], **KNOWN), [0]), ("u", Gaussian("diag"), [1])]).fit(X)
    alone = VBMixture(emission=Regression([1], **KNOWN)).fit(X), VBMixture(emission=Gaussian("diag")).fit(X[:, 1:])
    assert both.lower_bound_ == approx(sum(model.lower_bound_ for model in alone), rel=1e-10)
    assert both.sample(3, random_state=0, given=X[:3])[0].shape == (3, 2)


# Mixtures -------------------------------------------------------------------------------------------------------------


def test_two_lines_are_found_and_counted(rng):
    X = lines(rng, 150)
    emission = Regression(covariates=["u"])
    models = [
        VBMixture(k, emission=emission, random_state=0).fit(pd.DataFrame(X, columns=["y", "u"])) for k in (1, 2, 3)
    ]
    assert np.argmax([model.lower_bound_ for model in models]) == 1
    of_group = models[1].parameters_["regression"]
    order = np.argsort(of_group["coefficients"].ravel())
    assert of_group["coefficients"].ravel()[order] == approx([-2.0, 3.0], abs=0.15)
    assert of_group["intercepts"].ravel() == approx([1.0, 1.0], abs=0.1)
    assert np.sqrt(of_group["variances"]).ravel() == approx([0.2, 0.2], abs=0.05)
    assert models[1].coefficient_precision_prior_.shape == (1, 2)
    assert "y per u" in str(models[1].summary())
    assert models[1].groups_ == {"regression": ["y"]}


def test_weights_order_and_units_of_rows(rng):
    X, weight = lines(rng, 40), rng.integers(1, 4, size=40)
    mixture = VBMixture(2, emission=Regression([1]), random_state=0, tol=1e-9)
    repeated = mixture.fit(np.repeat(X, weight, axis=0)).lower_bound_
    assert mixture.fit(X, sample_weight=weight).lower_bound_ == approx(repeated, rel=1e-9)
    bound = mixture.fit(X).lower_bound_
    assert mixture.fit(X[rng.permutation(40)]).lower_bound_ == approx(bound, rel=1e-9)
    moved = np.column_stack([7 - 100 * X[:, 0], 30 + 1e-3 * X[:, 1]])
    assert mixture.fit(moved).lower_bound_ == approx(bound - 40 * np.log(100), rel=1e-8)
    assert mixture.fit(blocks_of(lambda: iter([X[:15], X[15:]]))).lower_bound_ == approx(bound, rel=1e-9)


def test_missing_responses_are_integrated_out_and_filled_on_the_lines(rng):
    X = lines(rng)
    model = VBMixture(2, emission=Regression([1]), random_state=0).fit(X)
    gaps = np.vstack([X, [[np.nan, 0.5], [np.nan, np.nan]]])
    filled = model.impute(gaps)
    of_group = model.parameters_["regression"]
    means = of_group["intercepts"][:, 0] + 0.5 * of_group["coefficients"][:, 0, 0]
    assert filled[-2, 0] == approx(model.weights_ @ means)
    assert filled[-1, 0] == approx(model.weights_ @ of_group["means"][:, 0])
    assert np.isnan(filled[-1, 1])
    assert model.predict_proba(gaps)[-1] == approx(model.weights_)


def test_rows_are_drawn_at_their_covariates(rng):
    X = lines(rng, 200)
    model = VBMixture(2, emission=Regression([1]), random_state=0).fit(X)
    drawn, components = model.sample(given=np.repeat(X, 20, axis=0), random_state=0)
    assert np.array_equal(drawn[:, 1], np.repeat(X[:, 1], 20))
    of_group = model.parameters_["regression"]
    for k in range(2):
        line = stats.linregress(drawn[components == k, 1], drawn[components == k, 0])
        assert line.slope == approx(of_group["coefficients"][k].item(), abs=0.1)
        away = drawn[components == k, 0] - line.intercept - line.slope * drawn[components == k, 1]
        assert away.std() == approx(np.sqrt(of_group["variances"][k].item()), rel=0.1)
    with pytest.raises(ValueError, match="'sample' of VBMixture needs 'x1'"):
        model.sample(3)


@pytest.mark.parametrize("method", ["map", "ml"])
def test_points_and_their_bootstrap(method, rng):
    X = lines(rng, 40)
    model = VBMixture(2, emission=Regression([1]), method=method, random_state=0, n_init=3).fit(X)
    assert np.sort(model.parameters_["regression"]["coefficients"].ravel()) == approx([-2, 3], abs=0.3)
    draws = model.bootstrap(X, n_draws=4, kind="parametric", random_state=0)
    assert np.isfinite(draws.parameters["regression"]["coefficients"]).all()


# Sequences ------------------------------------------------------------------------------------------------------------


def test_earlier_values_stay_within_their_sequence():
    y = np.arange(12.0).reshape(6, 2)
    none = [np.nan, np.nan]
    expected = [[*none, *none], [0, 1, *none], [2, 3, 0, 1], [*none, *none], [6, 7, *none], [8, 9, 6, 7]]
    assert np.array_equal(lagged(y, [3, 3], 2), expected, equal_nan=True)


def test_one_state_is_autoregression_given_the_first_rows(rng):
    sequences = [rng.normal(size=(n, 1)).cumsum(axis=0) for n in (9, 2, 14)]
    model = VBHMM(1, emission=Regression(lags=2, **KNOWN)).fit(sequences)
    y = np.concatenate([each[2:, 0] for each in sequences])
    before = np.concatenate([np.column_stack([each[1:-1], each[:-2]]) for each in sequences])
    assert model.lower_bound_ == approx(closed_form(y, before, model._fitted_.emission), rel=1e-10)


def test_first_order_by_quadrature(rng):
    """p(y_2, ... | y_1) as the integral over the coefficient and the precision."""
    y = rng.normal(size=6)
    emission = Regression(lags=1, intercept=False, **KNOWN)
    model = VBHMM(1, emission=emission).fit(y[:, None])
    unit = model._fitted_.emission.unit[0]
    z, (kappa, dof, variance) = y / unit, KNOWN.values()
    log_rho, x = np.linspace(-30, 6, 800)[:, None, None], np.linspace(-12, 12, 400)[:, None]
    rho = np.exp(log_rho)
    c = z[:-1] @ z[1:] / (z[:-1] @ z[:-1] + kappa) + x / np.sqrt(rho)  # about where the integrand is highest
    log = stats.norm(c * z[:-1], rho**-0.5).logpdf(z[1:]).sum(axis=-1, keepdims=True)
    log = log + stats.norm(0, (rho * kappa) ** -0.5).logpdf(c) - 0.5 * log_rho + log_rho
    log = log + stats.gamma(dof / 2, scale=2 * unit**2 / dof / variance).logpdf(rho)
    exact = logsumexp(log) + np.log(36 / 799 * 24 / 399) - 5 * np.log(unit)
    assert model.lower_bound_ == approx(exact, abs=1e-8)


def test_two_states_are_below_the_sum_over_paths(rng):
    y = switching(rng, 7)
    model = VBHMM(2, emission=Regression(lags=1, **KNOWN), startprob_prior=1.0, transmat_prior=1.0, random_state=0).fit(
        y
    )
    emission, logs = model._fitted_.emission, []
    for path in product(range(2), repeat=7):
        counts = np.zeros((2, 2))
        np.add.at(counts, (path[:-1], path[1:]), 1)
        log = np.log(0.5) + sum(gammaln(2) - gammaln(2 + row.sum()) + gammaln(1 + row).sum() for row in counts)
        states = np.array(path[1:])
        logs.append(log + sum(closed_form(y[1:, 0][states == k], y[:-1][states == k], emission) for k in set(states)))
    exact = np.logaddexp.reduce(logs)
    assert exact - 4 < model.lower_bound_ < exact
    assert model.log_evidence(y, kind="exact").value == approx(exact, rel=1e-9)


def test_a_switching_autoregression_is_found(rng):
    y = switching(rng)
    bounds = [VBHMM(k, emission=Regression(lags=1), random_state=0).fit(y).lower_bound_ for k in (1, 2)]
    model = VBHMM(2, emission=Regression(lags=1), random_state=0).fit(y)
    assert bounds[1] > bounds[0] + 20
    assert np.sort(model.parameters_["regression"]["coefficients"].ravel()) == approx([-0.7, 0.9], abs=0.15)
    assert "x0 per x0 1 before" in str(model.summary())


def test_forecasts_are_sums_over_paths(rng):
    y = switching(rng, 120)
    model = VBHMM(2, emission=Regression(lags=2), method="map", random_state=0).fit([y])
    told = model.forecast([y], 3, level=0.9)
    of_group, now = model.parameters_["regression"], model.filter([y])[0][-1]
    first = second = below = 0.0
    for path in product(range(2), repeat=4):
        weight = now[path[0]] * np.prod(model.transmat_[path[:-1], path[1:]])
        mean, spread = np.array([y[-1, 0], y[-2, 0]]), np.zeros((2, 2))
        for k in path[1:]:
            move = np.array([of_group["coefficients"][k, 0], [1.0, 0.0]])
            mean = move @ mean + [of_group["intercepts"][k, 0], 0.0]
            spread = move @ spread @ move.T + np.diag([of_group["variances"][k, 0], 0.0])
        first += weight * mean[0]
        second += weight * (spread[0, 0] + mean[0] ** 2)
        below += weight * stats.norm(mean[0], np.sqrt(spread[0, 0])).cdf(
            [told.lower["x0"][0, 2], told.upper["x0"][0, 2]]
        )
    assert told.expected["x0"][0, 2] == approx(first, rel=1e-9)
    assert told.variance["x0"][0, 2] == approx(second - first**2, rel=1e-9)
    assert below == approx([0.05, 0.95], abs=0.02)
    averaged = VBHMM(2, emission=Regression(lags=2), random_state=0).fit([y]).forecast([y, y[:50]], 3)
    assert averaged.expected["x0"].shape == averaged.upper["x0"].shape == (2, 3)


def test_sequences_are_drawn_step_by_step(rng):
    y = switching(rng)
    model = VBHMM(1, emission=Regression(lags=1), method="map").fit(y)
    drawn, _ = model.sample([1500, 3], random_state=0)
    line = stats.linregress(drawn[0][:-1, 0], drawn[0][1:, 0])
    of_group = model.parameters_["regression"]
    assert line.slope == approx(of_group["coefficients"].item(), abs=0.08)
    assert (drawn[0][1:, 0] - line.intercept - line.slope * drawn[0][:-1, 0]).var() == approx(
        of_group["variances"].item(), rel=0.15
    )
    again = model.sample(5, random_state=0, given=y[40:45])[0]
    assert again[0] == y[40]
    assert (again[1:] != y[41:45]).all()


def test_beside_other_groups_and_covariates(rng):
    """Lags, a covariate and counts together; new data are scored as the first ones were read."""
    y, u = switching(rng, 60), rng.normal(size=(60, 1))
    X = pd.DataFrame(np.column_stack([y + u, u, rng.poisson(3.0, size=60)]), columns=["y", "u", "n"])
    emission = [("y", Regression(["u"], lags=1), ["y"]), ("n", Poisson(), ["n"])]
    model = VBHMM(2, emission=emission, random_state=0).fit([X.iloc[:30], X.iloc[30:]])
    assert model.parameters_["y"]["coefficients"].shape == (2, 1, 2)
    assert np.isfinite(model.score_samples([X.iloc[:30], X.iloc[30:]])).all()
    gaps = X.iloc[30:].copy()
    gaps.iloc[-1, 0] = np.nan
    assert np.isfinite(model.impute([gaps])[0].to_numpy()).all()
    drawn, _ = model.sample(30, given=X.iloc[30:], random_state=0)
    assert np.array_equal(drawn["u"], X["u"][30:])
    with pytest.raises(ValueError, match="'forecast' of VBHMM would need 'u'"):
        model.forecast([X], 2)


# Refused --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("emission", "message"),
    [
        (Regression(["z"]), "'covariates' parameter of Regression names 'z', which is no column"),
        (Regression(["u", 1]), "names a column twice"),
        (Regression(["y", "u"]), "names all columns of 'regression'"),
        (Regression(intercept=False), "nothing to explain its columns by"),
        (Regression(["u"], lags=1), "by earlier values .* VBHMM has sequences"),
        (Regression(["u"], variance_prior=-1.0), "'variance_prior' parameter of Regression must be > 0"),
        (Regression(["u"], coefficient_precision_prior=1e300), "between 1e-100 and 1e12"),
        (Regression(["u"], prior="bge", coefficient_precision_prior=1.0, variance_prior=2.0), "Leave it out"),
        (Regression(["u"], prior="bge", coefficient_precision_prior=1.0, intercept=False), "needs intercept=True"),
    ],
    ids=str,
)
def test_what_is_said_wrong(emission, message, rng):
    with pytest.raises(ValueError, match=message):
        VBMixture(emission=emission).fit(pd.DataFrame(lines(rng, 10), columns=["y", "u"]))


def test_missing_regressors_of_observed_columns(rng):
    X = lines(rng, 10)
    model = VBMixture(emission=Regression([1])).fit(X)
    X[4, 1] = np.nan
    for ask in (VBMixture(emission=Regression([1])).fit, model.predict):
        with pytest.raises(ValueError, match="Row 4 of X has no 'x1', which explains 'x0' there"):
            ask(X)
    y = switching(rng, 20)
    y[7] = np.nan
    with pytest.raises(ValueError, match="Sequence 0 of X has an observed cell of 'x0' within 2 rows after a missing"):
        VBHMM(emission=Regression(lags=2)).fit(y)
    split = VBHMM(emission=Regression(lags=2)).fit([y[:8], y[8:]])
    with pytest.raises(ValueError, match="Sequence 0 of X lacks one of its last 2 rows"):
        split.forecast([y[:8]])


# Networks -------------------------------------------------------------------------------------------------------------

WEIGHED = {"mean_precision_prior": 0.5, "degrees_of_freedom_prior": 3.0, "covariance_prior": [2.0]}
OF_NODES = [("g", "categorical", ["g"]), ("u", Gaussian("diag", **WEIGHED), ["u"]), ("y", Regression(**KNOWN), ["y"])]


def conditional(rng, n=40):
    """Rows in which y follows u, more steeply in one group."""
    g, u = rng.integers(0, 2, size=n), rng.normal(3.0, 2.0, size=n)
    frame = pd.DataFrame({"g": np.array(["a", "b"])[g], "u": u, "y": 1 + (2.0 - 3 * g) * u + rng.normal(size=n)})
    return frame


def test_a_complete_network_is_a_sum_of_closed_forms(rng):
    X = conditional(rng)
    network = VBNetwork([("g", "y"), ("u", "y")], emission=OF_NODES).fit(X)
    counts = X["g"].value_counts()
    exact = gammaln(2) - gammaln(42) + gammaln(1 + counts).sum()
    exact += VBMixture(emission=OF_NODES[1][1]).fit(X[["u"]]).lower_bound_
    emission = network._fitted_.model.emissions[1]
    exact += sum(closed_form(of["y"].to_numpy(), of[["u"]].to_numpy(), emission) for _, of in X.groupby("g"))
    assert network.lower_bound_ == approx(exact, rel=1e-10)
    assert network.parameters_["y"]["coefficients"].shape == (2, 1, 1)
    assert "y per u" in str(network.summary())
    without = VBNetwork([("g", "y"), ("g", "u")], emission=[*OF_NODES[:2], ("y", Regression(**KNOWN), ["y"])]).fit(X)
    assert network.lower_bound_ > without.lower_bound_ + 20


def test_a_latent_over_numbers_is_a_mixture_of_regressions(rng):
    X = pd.DataFrame(lines(rng), columns=["y", "u"])
    network = VBNetwork(
        [("h", "u"), ("h", "y"), ("u", "y")], latents={"h": 2}, emission=OF_NODES[1:], random_state=0, tol=1e-9
    ).fit(X)
    groups = [("u", OF_NODES[1][1], ["u"]), ("y", Regression(["u"], **KNOWN), ["y"])]
    mixture = VBMixture(2, emission=groups, random_state=0, tol=1e-9).fit(X)
    assert network.lower_bound_ == approx(mixture.lower_bound_, rel=1e-8)
    assert network.score_samples(X[:5]) == approx(mixture.score_samples(X[:5]), rel=1e-4)
    few = X[:5]
    small = clone(network).fit(few)
    exact = clone(mixture).fit(few).log_evidence(few, kind="exact").value
    assert small.log_evidence(few, kind="exact").value == approx(exact, rel=1e-9)
    assert small.lower_bound_ < exact
    drawn = small.log_evidence(few, kind="importance_gibbs", random_state=0)  # which relabels states, cell by cell
    assert drawn.value == approx(exact, abs=5 * drawn.standard_error)
    assert drawn.standard_error < 0.1


def test_chains_of_numbers_with_hidden_parents_and_gaps(rng):
    """u -> y -> z, by default priors; a missing child says nothing, a missing parent of what is seen is summed out."""
    X = conditional(rng, 80).assign(z=lambda x: 0.5 * x["y"] + rng.normal(size=80))
    structure = [("g", "y"), ("u", "y"), ("y", "z"), ("h", "z")]
    network = VBNetwork(structure, latents={"h": 2}, random_state=0, n_init=3, tol=1e-10).fit(X)
    gaps = X[:2].assign(z=np.nan)
    shorter = VBNetwork(structure[:2], tol=1e-10).fit(X[["g", "u", "y"]])
    assert network.score_samples(gaps) == approx(shorter.score_samples(gaps[["g", "u", "y"]]), rel=1e-6)
    lost = X[:2].assign(z=np.nan, y=np.nan)
    filled, of_y = network.impute(lost), network.parameters_["y"]
    k = int(X["g"][0] == "b")
    mean = of_y["intercepts"][k, 0] + of_y["coefficients"][k, 0, 0] * X["u"][0]
    assert filled["y"][0] == approx(mean)
    of_z = network.parameters_["z"]
    means = of_z["intercepts"][:, 0] + of_z["coefficients"][:, 0, 0] * mean
    assert filled["z"][0] == approx(network.query("h").values @ means)
    drawn, _ = network.sample(4000, random_state=0)
    of_a = drawn[drawn["g"] == "a"]
    line = stats.linregress(of_a["u"], of_a["y"])
    assert line.slope == approx(of_y["coefficients"][0].item(), abs=0.15)
    assert np.isfinite(network.log_evidence(X, kind="bic").value)
    spacing = 0.05
    grid = pd.concat([X[1:2]] * 600).assign(y=X["y"][1] + spacing * (np.arange(600) - 300))
    summed = np.log(spacing * np.exp(network.score_samples(grid)).sum())
    unseen = network.score_samples(X[:2].assign(y=[1.0, np.nan]))[1]
    assert unseen == approx(summed, abs=0.05)  # an average over draws of parameters


@pytest.mark.filterwarnings("ignore:Column 'y' of X holds whole numbers:skvbem.errors.DataWarning")
@pytest.mark.parametrize(
    ("structure", "emission", "message"),
    [
        ([("u", "g")], "auto", "Node 'u' holds numbers, and is a parent of 'g' .* no children with a table"),
        ([("u", "y"), ("g", "y")], {"poisson": ["y"], "gaussian": ["u"], "categorical": ["g"]}, "no conjugate prior"),
        ([("u", "y")], [("y", Gaussian(mean_precision_prior=1.0), ["y"]), *OF_NODES[:2]], r"Give Regression\(\)"),
        ([("u", "y")], [("y", Regression(["u"]), ["y"]), *OF_NODES[:2]], "In a network edges do"),
        ([("u", "y")], [("y", Regression(lags=1), ["y"]), *OF_NODES[:2]], "by earlier values"),
    ],
)
def test_parents_of_numbers_that_are_refused(structure, emission, message, rng):
    X = conditional(rng).assign(y=lambda x: x["y"].abs().round())
    with pytest.raises((StructureError, ValueError), match=message):
        VBNetwork(structure, emission=emission).fit(X)
