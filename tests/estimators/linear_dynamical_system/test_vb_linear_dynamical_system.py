"""`VBLinearDynamicalSystem`: known fits, states, forecasts, imputation, evidence, inputs, sequences, errors."""

import pickle

import numpy as np
import pandas as pd
import pytest
from reference import linear_dynamical_system as literal
from reproduction.real_tables import air_quality, is_here
from scipy.stats import norm
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from skvbem import StructureSearchCV, VBLinearDynamicalSystem
from skvbem.errors import DataWarning, EvidenceWarning, TooLargeError
from skvbem.estimators.sequences import steps_of_question
from skvbem.vbem import posteriors

approx = pytest.approx
INITS = ("pca", "subspace", "random")


@pytest.fixture(scope="module")
def nile():
    """The flow of the Nile at Aswan, 1871-1970, 10^8 m^3 a year (public domain; Durbin & Koopman 2012)."""
    flow = """1120 1160 963 1210 1160 1160 813 1230 1370 1140 995 935 1110 994 1020 960 1180 799 958 1140 1100 1210 1150
    1250 1260 1220 1030 1100 774 840 874 694 940 833 701 916 692 1020 1050 969 831 726 456 824 702 1120 1100 832 764 821
    768 845 864 862 698 845 744 796 1040 759 781 865 845 944 984 897 822 1010 771 676 649 846 812 742 801 1040 860 874
    848 890 744 749 838 1050 918 986 797 923 975 815 1020 906 901 1170 912 746 919 718 714 740"""
    return np.array(flow.split(), dtype=float)[:, None]


def system(rng, lengths, *, k=2, p=3, a=None):
    """Sequences of a system of two states that turn, and its inputs."""
    a = np.array([[0.8, 0.4], [-0.4, 0.8]])[:k, :k] if a is None else a
    c, b = rng.normal(size=(p, k)), np.array([1.5, -1.0])[:k]
    tables, inputs = [], []
    for n in lengths:
        u, x = rng.normal(size=(n, 1)), np.zeros((n, k))
        x[0] = rng.normal(size=k)
        for t in range(1, n):
            x[t] = a @ x[t - 1] + b * u[t] + rng.normal(size=k)
        tables.append(5.0 + 3.0 * (x @ c.T) + rng.normal(size=(n, p)))
        inputs.append(u)
    return tables, inputs


# A noise like two steps of the variance of the column, under which figures were published.
KNOWN_RATE = {"noise_rate_prior": 1.0}


# In standardized units, with precisions of 1; the densities of data have the unit's volume besides.
@pytest.mark.parametrize(("k", "bound"), [(1, -138.5303), (2, -148.2341), (3, -162.4690)])
def test_bounds_of_the_nile(nile, k, bound):
    model = VBLinearDynamicalSystem(k, transition_precision_prior=1.0, **KNOWN_RATE, random_state=0).fit(nile)
    assert model.lower_bound_ + 100 * np.log(nile.std()) == approx(bound, abs=1e-4)


def test_default_precision_is_better_for_two_states(nile):
    model = VBLinearDynamicalSystem(2, **KNOWN_RATE, random_state=0).fit(nile)
    assert model.lower_bound_ + 100 * np.log(nile.std()) == approx(-147.18, abs=5e-3)


def test_a_hidden_rate_of_noise_costs_little_and_follows_the_data(nile, rng):
    """A tenth of a nat where noise is much of a column; where it is a thousandth, what finding the rate takes."""
    trend = np.linspace(0, 30, 80)[:, None] + rng.normal(size=(80, 1)) / 4
    for X, best_by_hand, cost in ((nile, 0.1, 0.1), (trend, 0.001, 7.0)):
        hidden, known, far_off = (
            VBLinearDynamicalSystem(1, noise_rate_prior=rate, n_init=1, tol=1e-3, random_state=0).fit(X).lower_bound_
            for rate in (None, best_by_hand, 100 * best_by_hand)
        )
        assert known > hidden > known - cost
        assert hidden > far_off


def test_maximum_likelihood_is_that_of_the_nile(nile):
    """As statsmodels' maximum: -125.0417010588 in standardized units, a = 0.83006, and a share of noise of 0.39386."""
    model = VBLinearDynamicalSystem(1, method="ml", tol=1e-9, random_state=0).fit(nile)
    assert model.log_likelihood_ + 100 * np.log(nile.std()) == approx(-125.0417010588, abs=1e-5)
    assert model.transition_.item() == approx(0.83006, abs=1e-4)
    assert model.noise_variance_.item() / nile.var() == approx(0.39386, abs=1e-4)
    assert model.score(nile) == approx(model.log_likelihood_ / 100, rel=1e-9)


@pytest.fixture(scope="module")
def air():
    """Days of the air of New York, and the volume of the units of its columns, nats."""
    if not is_here("air_quality"):
        pytest.skip("the table is in a checkout only, under its own license")
    X = air_quality()
    return X, (~np.isnan(X)).sum(axis=0) @ np.log(np.nanstd(X, axis=0))


@pytest.mark.parametrize(
    ("k", "bound"),
    [(1, -705.2953), (2, -709.8010), pytest.param(3, -726.8014, marks=pytest.mark.slow)],
)
def test_bounds_of_the_air(air, k, bound):
    """Four columns with gaps; of six starts at least five meet."""
    X, volume = air
    options = {"transition_precision_prior": 1.0, "n_init": 6, "random_state": 0}
    model = VBLinearDynamicalSystem(k, **KNOWN_RATE, **options).fit(X)
    assert model.lower_bound_ + volume == approx(bound, abs=1e-4)
    assert model.restarts_.n_best >= 5


@pytest.mark.parametrize(("k", "likelihood"), [(1, -651.75270648), (2, -635.58669992)])
def test_maximum_likelihood_is_that_of_the_air(air, k, likelihood):
    """As the maximum of statsmodels' likelihood, of the same model with first states N(0, I)."""
    X, volume = air
    model = VBLinearDynamicalSystem(k, method="ml", n_init=1, tol=1e-8, random_state=0).fit(X)
    assert model.log_likelihood_ + volume == approx(likelihood, abs=1e-5)


def test_subspace_starts_end_where_others_do(nile, rng):
    tables, _ = system(rng, [40, 25])
    for X in (nile, tables):
        bounds = [VBLinearDynamicalSystem(2, init=init, random_state=0).fit(X).lower_bound_ for init in INITS]
        assert bounds == approx(bounds[:1] * len(INITS), abs=1e-3)


@pytest.mark.parametrize("gaps", [0.0, 0.1])
def test_a_start_finds_the_state_that_is_a_smooth_column(gaps):
    """One that hardly changes, beside three that go together: hundreds of nats better than what explains most."""
    rng, n_steps = np.random.default_rng(0), 150
    shock, x = rng.normal(size=(n_steps, 1)), np.zeros((n_steps, 1))
    for t in range(1, n_steps):
        x[t] = 0.8 * x[t - 1] + shock[t]
    smooth = np.cumsum(np.cumsum(rng.normal(size=n_steps)))
    X = np.column_stack([x + 0.5 * rng.normal(size=(n_steps, 3)), smooth])
    X[rng.random(X.shape) < gaps] = np.nan
    model = VBLinearDynamicalSystem(1, n_init=5, random_state=0).fit(X)
    assert model.restarts_.kinds == ("pca", "random", "changes", "random", "pca")
    bounds = np.array(model.restarts_.bounds)
    assert bounds.argmax() == 2
    assert bounds[2] > bounds[[0, 1]].max() + 100
    shares = model.noise_variance_ / np.nanvar(X, axis=0)
    assert shares[3] < 0.1 < shares[:3].min()


def test_learned_strengths_of_the_nile(nile):
    """Type II maximum: alpha 1.439, gamma 2.381."""
    model = VBLinearDynamicalSystem(1, learn_prior="strength", **KNOWN_RATE, random_state=0).fit(nile)
    assert model.lower_bound_ + 100 * np.log(nile.std()) == approx(-138.3751, abs=1e-4)
    assert model.transition_precision_.item() == approx(1.439, abs=5e-3)
    assert model.loading_precision_[0] == approx(2.381, abs=1e-2)
    assert model.log_evidence(kind="lower_bound").details is not None


def test_strengths_are_learned_above_hidden_rates(nile):
    """As strengths that are sought by hand."""

    def fitted(**options):
        return VBLinearDynamicalSystem(1, n_init=1, tol=1e-7, random_state=0, **options).fit(nile)

    model = fitted(learn_prior="strength")
    best = model.transition_precision_.item(), model.loading_precision_[0]
    prior = {"transition_precision_prior": best[0], "loading_precision_prior": best[1]}
    assert fitted(**prior).lower_bound_ == approx(model.lower_bound_, abs=1e-4)
    for name, by in ((name, by) for name in prior for by in (0.9, 1.1)):
        assert fitted(**prior | {name: by * prior[name]}).lower_bound_ < model.lower_bound_


def test_states_that_are_not_needed_are_taken_away(nile):
    models = [VBLinearDynamicalSystem(k, learn_prior="ard", random_state=0).fit(nile) for k in (1, 3)]
    assert [model.n_components_ for model in models] == [1, 1]
    assert models[0].lower_bound_ == approx(models[1].lower_bound_, abs=1e-3)
    assert models[1].transform(nile).shape == (100, 1)
    assert models[1].transform(nile).shape[1] == len(models[1].get_feature_names_out())
    with pytest.raises(ValueError, match=r"'mled' leaves out the entropy .* Take 'cheeseman_stutz'"):
        models[0].log_evidence(nile, kind="mled")
    kept = VBLinearDynamicalSystem(2, learn_prior="ard", prune=False, random_state=0).fit(nile)
    assert kept.n_components_ == 2
    assert kept.lower_bound_ < models[0].lower_bound_


def test_states_that_are_needed_stay(rng):
    tables, _ = system(rng, [60, 50])
    model = VBLinearDynamicalSystem(3, learn_prior="ard", random_state=0).fit(tables)
    assert model.n_components_ >= 2


def test_evidence_of_the_nile(nile):
    """A sampled one lies above the bound; BIC counts what is identifiable if it is asked to."""
    model = VBLinearDynamicalSystem(1, random_state=0).fit(nile)
    assert model.log_evidence(kind="lower_bound").value == model.lower_bound_
    with pytest.warns(EvidenceWarning, match="importance"):
        importance = model.log_evidence(nile, kind="importance", n_draws=256)
    assert importance.value > model.lower_bound_
    free, found = (model.log_evidence(nile, kind="bic", dimension=which) for which in ("free", "identifiable"))
    assert (free.n_free_parameters, found.n_free_parameters) == (4, 4)
    assert model.bic(nile) == approx(-2 * free.value)
    assert model.log_evidence(nile, kind="laplace").value == approx(importance.value, abs=1.5)
    two = VBLinearDynamicalSystem(2, random_state=0).fit(nile)
    with pytest.raises(TypeError, match=r"'laplace' has no meaning for a Linear.* Turns .* change nothing"):
        two.log_evidence(nile, kind="laplace")
    with pytest.raises(TypeError, match=r"'exact' has no meaning .* states are real numbers"):
        model.log_evidence(nile, kind="exact")
    with pytest.raises(ValueError, match="other data"):
        model.log_evidence(nile[1:], kind="bic")


# --- states -----------------------------------------------------------------------------------------------------------


def literal_states(model, y, u, upto):
    """Means and covariances of the states at the published parameters given the first so many rows, densely."""
    m = model
    e = literal.of_point(
        m.transition_, m.input_, m.loadings_, np.column_stack([m.offset_, m.output_input_]), m.noise_variance_
    )
    rows, k = y.copy(), m.n_components_
    rows[upto:] = np.nan
    log_z, means, covariance = literal.states(rows, u, np.ones((len(y), 1)), e, m.initial_mean_, m.initial_covariance_)
    blocks = covariance.reshape(len(y), k, len(y), k)
    return log_z, means, np.array([blocks[t, :, t] for t in range(len(y))])


@pytest.mark.parametrize("initial", ["unit", "learned"])
def test_smoothed_and_filtered_states_are_those_of_one_dense_normal_distribution(initial, rng):
    tables, inputs = system(rng, [12, 7])
    tables[0][3, 1] = tables[0][5] = np.nan
    tables[0][10:] = np.nan
    model = VBLinearDynamicalSystem(2, initial=initial, n_init=1, tol=1e-2, random_state=0).fit(tables, inputs=inputs)
    smoothed, covariances = model.transform(tables, inputs=inputs, return_cov=True)
    filtered, of_filtered = model.filter(tables, inputs=inputs, return_cov=True)
    for n, (y, u) in enumerate(zip(tables, inputs)):
        _, means, covariance = literal_states(model, y, u, len(y))
        assert smoothed[n] == approx(means, rel=1e-8, abs=1e-8)
        assert covariances[n] == approx(covariance, rel=1e-8, abs=1e-10)
        for t in range(len(y)):
            _, means, covariance = literal_states(model, y[: t + 1], u[: t + 1], t + 1)
            assert filtered[n][t] == approx(means[t], rel=1e-8, abs=1e-8)
            assert of_filtered[n][t] == approx(covariance[t], rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("initial", ["unit", "learned"])
def test_scores_are_densities_at_the_published_parameters(initial, rng):
    tables, inputs = system(rng, [9, 6])
    model = VBLinearDynamicalSystem(2, initial=initial, n_init=1, tol=1e-2, predictive="mean", random_state=0)
    model.fit(tables, inputs=inputs)
    scores = model.score_samples(tables, inputs=inputs)
    wanted = [literal_states(model, y, u, len(y))[0] for y, u in zip(tables, inputs)]
    assert scores == approx(wanted, rel=1e-9)
    below = model.set_params(predictive="vb").score_samples(tables, inputs=inputs)
    average, error = model.set_params(predictive="average").score_samples(tables, inputs=inputs, return_error=True)
    assert np.all(below < average + 3 * error)
    assert model.score(tables, inputs=inputs) == approx(average.sum() / 15)


# --- predictions ------------------------------------------------------------------------------------------------------


def test_forecasts_at_known_parameters_are_those_of_steps_whose_cells_are_missing(rng):
    tables, inputs = system(rng, [20])
    model = VBLinearDynamicalSystem(2, n_init=1, predictive="mean", random_state=0).fit(tables, inputs=inputs)
    future = rng.normal(size=(4, 1))
    ahead = model.forecast(tables, 4, inputs=inputs, future_inputs=future, level=0.9)
    y, u = np.concatenate([tables[0], np.full((4, 3), np.nan)]), np.concatenate([inputs[0], future])
    _, means, covariance = literal_states(model, y, u, 20)
    wanted = model.offset_ + means[20:] @ model.loadings_.T
    variance = model.noise_variance_ + np.einsum("sk,tkl,sl->ts", model.loadings_, covariance[20:], model.loadings_)
    assert ahead.mean[0] == approx(wanted, rel=1e-8)
    assert ahead.variance[0] == approx(variance, rel=1e-8)
    assert ahead.upper[0] == approx(wanted + norm.ppf(0.95) * np.sqrt(variance), rel=1e-8)
    imputed, of_imputed = model.impute([y], inputs=[u], return_variance=True)
    assert imputed[0][20:] == approx(wanted, rel=1e-8)
    assert of_imputed[0][20:] == approx(variance, rel=1e-8)
    assert np.array_equal(imputed[0][:20], y[:20])


def test_intervals_that_average_over_parameters_are_wider(nile):
    average = VBLinearDynamicalSystem(1, random_state=0).fit(nile[:25])
    plug_in = pickle.loads(pickle.dumps(average)).set_params(predictive="mean")
    wide, narrow = (model.forecast(nile[:25], 8) for model in (average, plug_in))
    assert np.all(wide.upper - wide.lower > narrow.upper - narrow.lower)
    assert wide.variance == approx(average.forecast(nile[:25], 8).variance, rel=1e-12)
    assert 0 <= wide.explosive_share < 1


def test_variances_of_forecasts_hold_what_parameters_differ_by(nile):
    """The law of total variance over the draws, one forecast for each."""
    model = VBLinearDynamicalSystem(1, n_draws=20, random_state=0).fit(nile[:25])
    fitted, _, data = steps_of_question(model, nile[:25])
    future, naturals = (np.zeros((1, 3, 0)),) * 2, list(fitted.draws_to_average("average", 20))
    each = [fitted.forecast(data, 3, future, 0.95, [natural]) for natural in naturals]
    means, variances = np.array([one.mean for one in each]), np.array([one.variance for one in each])
    ahead = model.forecast(nile[:25], 3)
    assert ahead.mean == approx(means.mean(axis=0))
    assert ahead.variance == approx(variances.mean(axis=0) + means.var(axis=0))
    assert np.all(means.var(axis=0) > 0)


def test_the_ends_of_forecasts_are_quantiles_of_a_mixture_over_draws(nile):
    model = VBLinearDynamicalSystem(1, n_draws=20, random_state=0).fit(nile[:25])
    fitted, _, data = steps_of_question(model, nile[:25])
    future, naturals = (np.zeros((1, 3, 0)),) * 2, list(fitted.draws_to_average("average", 20))
    ahead = model.forecast(nile[:25], 3, level=0.9)
    each = [fitted.forecast(data, 3, future, 0.9, [natural]) for natural in naturals]
    for end, probability in ((ahead.lower, 0.05), (ahead.upper, 0.95)):
        below = [norm(one.mean, np.sqrt(one.variance)).cdf(end) for one in each]
        assert np.mean(below, axis=0) == approx(probability, abs=1e-9)


def test_draws_have_the_covariances_of_forecasts(nile):
    """Of many long sequences drawn, first and second moments are those of the fit."""
    model = VBLinearDynamicalSystem(1, method="ml", random_state=0).fit(nile)
    rows, states = model.sample([50] * 400, random_state=1)
    ends = np.array([sequence[-1, 0] for sequence in rows])
    variance = 1 / (1 - model.transition_.item() ** 2)
    wanted = model.loadings_.item() ** 2 * variance + model.noise_variance_.item()
    assert ends.mean() == approx(model.offset_.item(), abs=4 * np.sqrt(wanted / 400))
    assert ends.var() == approx(wanted, rel=4 * np.sqrt(2 / 400))
    assert states[0].shape == (50, 1)


# --- sequences, inputs, batches ---------------------------------------------------------------------------------------


def test_forms_of_sequences_are_one(rng):
    tables, inputs = system(rng, [9, 12, 7])
    X, u = np.concatenate(tables), np.concatenate(inputs)
    ids, options = np.repeat([3, 1, 2], [9, 12, 7]), {"n_init": 2, "tol": 1e-3, "random_state": 0}
    listed = VBLinearDynamicalSystem(2, **options).fit(tables, inputs=inputs)
    of_ids = VBLinearDynamicalSystem(2, **options).fit(X, sequence_id=ids, inputs=u)
    of_lengths = VBLinearDynamicalSystem(2, **options).fit(X, lengths=[9, 12, 7], inputs=u)
    assert listed.lower_bound_ == of_ids.lower_bound_ == of_lengths.lower_bound_
    other = VBLinearDynamicalSystem(2, **options).fit(tables[::-1], inputs=inputs[::-1])
    assert other.lower_bound_ == approx(listed.lower_bound_, abs=1e-9 * abs(listed.lower_bound_))
    interleaved = np.argsort(np.concatenate([np.arange(n) for n in (9, 12, 7)]), kind="stable")
    woven = VBLinearDynamicalSystem(2, **options).fit(
        X[interleaved], sequence_id=ids[interleaved], inputs=u[interleaved]
    )
    assert woven.lower_bound_ == approx(listed.lower_bound_, rel=1e-12)
    states = woven.transform(X[interleaved], sequence_id=ids[interleaved], inputs=u[interleaved])
    assert states == approx(np.concatenate(listed.transform(tables, inputs=inputs))[interleaved], rel=1e-6, abs=1e-8)


def test_weights_are_repeats(rng):
    tables, inputs = system(rng, [9, 12, 7])
    options = {"n_init": 1, "tol": 1e-8, "random_state": 0}
    weighted = VBLinearDynamicalSystem(1, **options).fit(tables, sample_weight=[2, 0, 1], inputs=inputs)
    which = [0, 0, 2]
    repeated = VBLinearDynamicalSystem(1, **options).fit([tables[k] for k in which], inputs=[inputs[k] for k in which])
    assert weighted.lower_bound_ == approx(repeated.lower_bound_, abs=1e-6)
    assert weighted.n_samples_ == repeated.n_samples_ == 25


def test_inputs_are_found(rng):
    tables, inputs = system(rng, [40] * 6)
    model = VBLinearDynamicalSystem(2, random_state=0).fit(tables, inputs=inputs)
    without = VBLinearDynamicalSystem(2, random_state=0).fit(tables)
    assert model.lower_bound_ > without.lower_bound_ + 20
    # the effect of an input on columns at its own step does not hang on the basis of states
    u, effect = np.concatenate(inputs)[1:, 0], model.loadings_ @ model.input_
    change = np.array([np.cov(column[1:], u)[0, 1] for column in np.concatenate(tables).T]) / u.var()
    assert np.corrcoef(effect.ravel(), change)[0, 1] > 0.95
    of_columns = VBLinearDynamicalSystem(1, random_state=0).fit(
        [3 * u + rng.normal(size=u.shape) for u in inputs], output_inputs=inputs
    )
    assert of_columns.output_input_.item() == approx(3.0, abs=0.2)


def test_batches_and_warm_starts(rng):
    tables, _ = system(rng, [30, 30, 30])
    model = VBLinearDynamicalSystem(2, random_state=0).partial_fit(tables[:2])
    first = model.lower_bound_
    model.partial_fit(tables[2:])
    assert np.isfinite(model.batch_lower_bound_)
    assert not hasattr(model, "lower_bound_")
    assert first != model.batch_lower_bound_
    warm = VBLinearDynamicalSystem(2, warm_start=True, tol=1e-6, random_state=0).fit(tables)
    bound, n_iter = warm.lower_bound_, warm.n_iter_
    warm.fit(tables)
    assert warm.lower_bound_ == approx(bound, abs=1e-4)
    assert warm.n_iter_ <= n_iter


def test_units_of_columns_change_nothing_but_the_volume(rng):
    tables, _ = system(rng, [40])
    model = VBLinearDynamicalSystem(2, random_state=0).fit(tables)
    other = VBLinearDynamicalSystem(2, random_state=0).fit([1e8 * tables[0] - 3e8])
    assert other.lower_bound_ + 120 * np.log(1e8) == approx(model.lower_bound_, abs=1e-6)
    assert other.loadings_ == approx(1e8 * model.loadings_, rel=1e-4)


def test_reports_and_intervals(nile):
    model = VBLinearDynamicalSystem(1, random_state=0).fit(nile)
    text = str(model.summary(nile, method="vb"))
    assert "1 state of 1 column" in text
    lower, upper = model.credible_intervals(nile, method="vb")["states"]["transition"]
    assert lower.item() < model.transition_.item() < upper.item()
    fitted = model.fitted
    assert np.array_equal(fitted.form.of(fitted.model.prior, fitted.statistics[:, None])[0][:, 0], fitted.natural("vb"))
    assert fitted.form is posteriors.VB


# --- what is refused --------------------------------------------------------------------------------------------------


def test_gaps_in_inputs_are_refused_by_name(rng):
    tables, inputs = system(rng, [9])
    inputs[0][4, 0] = np.nan
    with pytest.raises(ValueError, match=r"'inputs' must be finite.*Row 4 of column 0"):
        VBLinearDynamicalSystem().fit(tables, inputs=inputs)
    with pytest.raises(ValueError, match="a row for each row of X"):
        VBLinearDynamicalSystem().fit(tables, inputs=[inputs[0][:3]])
    fitted = VBLinearDynamicalSystem(random_state=0).fit(tables)
    with pytest.raises(ValueError, match="was fitted with 0 columns of 'inputs'"):
        fitted.transform(tables, inputs=[np.ones((9, 1))])


@pytest.mark.parametrize("kind", ["inputs", "output_inputs"])
def test_tables_of_inputs_are_compared_by_name(rng, kind):
    """In another order, or of other names, they would give other numbers."""
    u = pd.DataFrame({"price": rng.normal(size=45), "promo": 100 * rng.normal(size=45)})
    Y = pd.DataFrame({"sales": 2 * u.price + u.promo / 200 + 0.1 * rng.normal(size=45)})
    past, to_come, future = u[:40], u[40:], f"future_{kind}"
    model = VBLinearDynamicalSystem(1, random_state=0).fit(Y[:40], **{kind: past})
    right = model.forecast(Y[:40], 5, **{kind: past, future: to_come}).mean
    plain = VBLinearDynamicalSystem(1, random_state=0).fit(Y[:40], **{kind: past.to_numpy()})
    same = plain.forecast(Y[:40], 5, **{kind: past.to_numpy(), future: to_come.to_numpy()}).mean
    assert np.array_equal(right, same)
    in_lists = model.forecast(Y[:40], 5, **{kind: past, future: [to_come]}).mean
    assert np.array_equal(in_lists, right)
    turned = past[["promo", "price"]]
    begun = lambda: clone(model).partial_fit(Y[:40], **{kind: past})  # noqa: E731
    asked = {
        "score_samples": lambda table: model.score_samples(Y[:40], **{kind: table}),
        "transform": lambda table: model.transform(Y[:40], **{kind: table}),
        "filter": lambda table: model.filter(Y[:40], **{kind: table}),
        "impute": lambda table: model.impute(Y[:40], **{kind: table}),
        "log_evidence": lambda table: model.log_evidence(Y[:40], kind="bic", **{kind: table}),
        "sample": lambda table: model.sample([40], **{kind: table}),
        "partial_fit": lambda table: begun().partial_fit(Y[:40], **{kind: table}),
    }
    for call in asked.values():
        with pytest.raises(ValueError, match=f"names of '{kind}' should match.*\n.*must be in the same order"):
            call(turned)
        with pytest.raises(ValueError, match=f"names of '{kind}' should match.*\nFeature names unseen.*\n- cost"):
            call(past.rename(columns={"promo": "cost"}))
    with pytest.raises(ValueError, match=f"names of '{future}' should match"):
        model.forecast(Y[:40], 5, **{kind: past, future: to_come[["promo", "price"]]})
    with pytest.warns(UserWarning, match=f"{kind} does not have valid feature names"):
        model.transform(Y[:40], **{kind: past.to_numpy()})
    with pytest.warns(UserWarning, match=f"{kind} has feature names, but"):
        plain.transform(Y[:40], **{kind: past})


def test_tables_of_inputs_in_a_list_are_taken_by_name(rng):
    u = pd.DataFrame({"price": rng.normal(size=40), "promo": 100 * rng.normal(size=40)})
    Y = pd.DataFrame({"sales": 2 * u.price + u.promo / 200 + 0.1 * rng.normal(size=40)})
    pair, one, other = [Y[:20], Y[20:]], u[:20], u[20:]
    bound = VBLinearDynamicalSystem(1, random_state=0).fit(pair, inputs=[one, other]).lower_bound_
    turned = [one, other[["promo", "price"]]]
    assert VBLinearDynamicalSystem(1, random_state=0).fit(pair, inputs=turned).lower_bound_ == bound
    with pytest.raises(ValueError, match=r"tables of .inputs. must have the same columns\. Table 0 has \[.price"):
        VBLinearDynamicalSystem(1, random_state=0).fit(pair, inputs=[one, other.rename(columns={"promo": "cost"})])


def test_parameters_that_make_no_sense_are_refused(nile):
    with pytest.raises(ValueError, match="with method='vb'"):
        VBLinearDynamicalSystem(learn_prior="ard", method="ml").fit(nile)
    with pytest.raises(ValueError, match="'future_inputs' must be finite and of shape"):
        VBLinearDynamicalSystem(random_state=0).fit(nile, inputs=nile / 1000).forecast(nile, 2, inputs=nile / 1000)
    with pytest.raises(ValueError, match="observed cell"):
        VBLinearDynamicalSystem().fit(np.full((4, 2), np.nan))


@pytest.mark.parametrize("k", [1, 3])
def test_columns_that_say_nothing_and_few_steps(rng, k):
    X = rng.normal(size=(6, 3))
    X[:, 1] = 2.0
    with pytest.warns(DataWarning, match="says nothing of the states"):
        model = VBLinearDynamicalSystem(k, random_state=0).fit(X)
    assert np.isfinite(model.lower_bound_)
    assert np.isfinite(model.forecast(X, 2).mean).all()
    X[:, 1] = np.nan
    with pytest.raises(ValueError, match="no observed cell"):
        VBLinearDynamicalSystem(k, random_state=0).fit(X)
    assert np.isfinite(VBLinearDynamicalSystem(k, random_state=0).fit(X[:2, [0, 2]]).lower_bound_)


def test_explosive_systems_have_a_finite_fit(rng):
    x = 1.3 ** np.arange(60)[:, None] * np.array([[1.0, -2.0]]) + rng.normal(size=(60, 2))
    model = VBLinearDynamicalSystem(1, random_state=0).fit(x)
    assert np.isfinite(model.lower_bound_)
    assert np.all(np.diff(model.lower_bounds_) > -1e-6)


def test_units_of_inputs_change_nothing(rng):
    tables, inputs = system(rng, [15, 12], k=1)
    options = {"n_init": 1, "tol": 1e-8, "random_state": 0}
    model = VBLinearDynamicalSystem(1, **options).fit(tables, inputs=inputs)
    for unit in (1e-8, 1e8):
        other = VBLinearDynamicalSystem(1, **options).fit(tables, inputs=[unit * u for u in inputs])
        assert other.lower_bound_ == approx(model.lower_bound_, abs=1e-4)
        assert unit * other.input_ == approx(model.input_, rel=1e-3)
    nothing = VBLinearDynamicalSystem(1, **options).fit(tables, inputs=[0 * u for u in inputs])
    assert np.isfinite(nothing.lower_bound_)


def test_scores_and_searches_take_inputs(rng):
    tables, inputs = system(rng, [15, 12], k=1)
    model = VBLinearDynamicalSystem(1, n_init=1, random_state=0).fit(tables, inputs=inputs)
    bic = model.log_evidence(tables, kind="bic", inputs=inputs)
    assert model.bic(tables, inputs=inputs) == approx(-2 * bic.value)
    assert model.aic(tables, inputs=inputs) == approx(
        model.bic(tables, inputs=inputs) - bic.n_free_parameters * (np.log(27) - 2)
    )
    search = StructureSearchCV(model, {"n_components": [1, 2]}, scoring="lower_bound").fit(tables, inputs=inputs)
    assert search.best_score_ == approx(model.lower_bound_, abs=1e-4)
    grid = GridSearchCV(
        model, {"n_components": [1, 2]}, cv=[(np.arange(2), np.arange(2))], scoring=lambda m, X, y=None: m.lower_bound_
    ).fit(tables, inputs=inputs)
    assert grid.best_params_ == search.best_params_ == {"n_components": 1}


def test_what_is_no_number_is_refused_in_words(rng, nile):
    fit = VBLinearDynamicalSystem(1).fit
    with pytest.raises(ValueError, match=r"Column 'x0' of X holds 'x', where a number is expected. Make numbers"):
        fit(np.array([["x"], ["y"]], dtype=object))
    with pytest.raises(TooLargeError, match=r"A system of 1e[+]09 states"):
        VBLinearDynamicalSystem(10**9).fit(nile)
    with pytest.raises(ValueError, match=r"form: 2 tables of 9, 4 rows. Got 13 tables of 1, 1, 1, ... rows"):
        fit([rng.normal(size=(9, 1)), rng.normal(size=(4, 1))], inputs=np.zeros((13, 1)))
    model = VBLinearDynamicalSystem(1, n_init=1, random_state=0).fit(nile, inputs=nile[::-1])
    with pytest.raises(ValueError, match="'future_inputs' must hold numbers"):
        model.forecast(nile, 2, inputs=nile[::-1], future_inputs=["a", "b"])
    one, other = (model.forecast(nile, 2, inputs=nile[::-1], future_inputs=given) for given in ([1, 2], [[1], [2]]))
    assert np.array_equal(one.mean, other.mean)


def test_one_step_and_columns_that_hold_one_value():
    assert np.isfinite(VBLinearDynamicalSystem(1, random_state=0).fit(np.array([[1.0, 2.0]])).lower_bound_)
    with pytest.warns(DataWarning, match="holds one value wherever observed"):
        model = VBLinearDynamicalSystem(2, random_state=0).fit(np.full((8, 2), 3.0))
    assert model.forecast(np.full((8, 2), 3.0), 2).mean == approx(3.0, abs=1.0)


# --- first states that are learned ------------------------------------------------------------------------------------


def patients(rng, n, n_steps=6):
    """Sequences that begin at 4 +- 0.5 and come to rest: states, and two columns of them."""
    x = 4 + 0.5 * rng.normal(size=n)
    steps = [x]
    for _ in range(n_steps - 1):
        steps.append(0.8 * steps[-1] + rng.normal(size=n))
    states = np.stack(steps, axis=1)[:, :, None]
    return list(3 + states * [1.0, -2.0] + 0.5 * rng.normal(size=(n, n_steps, 2)))


def test_first_states_are_learned(rng):
    """What columns are at first, and how wide, is found; the bound, the likelihood and forecasts gain by it."""
    X = patients(rng, 80)
    unit, model = (VBLinearDynamicalSystem(1, initial=each, random_state=0).fit(X) for each in ("unit", "learned"))
    assert unit.initial_mean_.tolist() == [0.0]
    assert unit.initial_covariance_.tolist() == [[1.0]]
    assert model.lower_bound_ > unit.lower_bound_ + 30
    at_first = model.loadings_ @ model.initial_mean_ + model.offset_
    assert at_first == approx([7, -5], abs=0.3)
    assert at_first == approx(np.mean([each[0] for each in X], axis=0), abs=0.1)
    assert np.sqrt(model.initial_covariance_[0, 0]) * abs(model.loadings_[0, 0]) == approx(0.5, abs=0.4)
    assert model.score(patients(rng, 20)) > unit.score(patients(rng, 20))
    # what is said of a sequence of which nothing is known is what is drawn of one
    nothing = np.full((1, 2), np.nan)
    drawn, states = model.sample([3] * 4000, random_state=0)
    ahead = model.forecast([nothing], n_steps=2)
    assert np.mean(drawn, axis=0)[1:] == approx(ahead.mean[0], abs=0.15)
    assert np.var(drawn, axis=0)[1:] == approx(ahead.variance[0], rel=0.1)
    assert np.mean(states, axis=0)[0] == approx(model.initial_mean_, abs=0.1)
    assert model.impute([nothing])[0][0] == approx(at_first, abs=0.1)
    assert "first states" in str(model.summary())


def test_likelihoods_of_learned_first_states(rng):
    """Maximum likelihood is above that of fixed first states, and of known columns it is the density of their rows."""
    X = patients(rng, 40)
    unit, model = (
        VBLinearDynamicalSystem(1, initial=each, method="ml", tol=1e-4, random_state=0).fit(X)
        for each in ("unit", "learned")
    )
    wanted = sum(literal_states(model, each, np.zeros((6, 0)), 6)[0] for each in X)
    assert model.log_likelihood_ == approx(wanted, rel=1e-6)
    assert model.log_likelihood_ > unit.log_likelihood_ + 20
    assert model.n_free_parameters_ == unit.n_free_parameters_ + 2
    with pytest.raises(ValueError, match="takes more sequences than states: 2 first states"):
        VBLinearDynamicalSystem(2, initial="learned", method="ml").fit(X[:2])
    at_mode = VBLinearDynamicalSystem(1, initial="learned", method="map", tol=1e-3, random_state=0).fit(X)
    assert abs(at_mode.initial_mean_[0]) == approx(abs(model.initial_mean_[0]), abs=1.5)


def test_intervals_of_first_states_are_quantiles_of_draws(rng):
    model = VBLinearDynamicalSystem(2, initial="learned", tol=1e-3, random_state=0).fit(patients(rng, 15))
    intervals = model.credible_intervals(method="vb")["first states"]
    drawn = [model._fitted_.posterior.sample(rng)[2] for _ in range(4000)]
    means = np.array([each.mean[0] for each in drawn])
    variances = np.array([np.diagonal(np.linalg.inv(each.precision[0])) for each in drawn])
    for name, values in (("mean", means), ("variance", variances)):
        for end, probability in zip(intervals[name], (0.025, 0.975)):
            below = (values < end).mean(axis=0)
            assert below == approx(probability, abs=0.01)


def test_learned_first_states_in_all_that_fits(rng):
    """Batches, warm starts, precisions that are learned; permuted sequences and repeats have the same bound."""
    X = patients(rng, 24)
    options = {"initial": "learned", "n_init": 1, "random_state": 0}
    whole = VBLinearDynamicalSystem(1, **options).fit(X)
    bound = whole.lower_bound_
    assert VBLinearDynamicalSystem(1, **options).fit(X[::-1]).lower_bound_ == approx(bound, abs=1e-4)
    half = VBLinearDynamicalSystem(1, **options).fit(X[:12], sample_weight=np.full(12, 2.0))
    assert half.lower_bound_ == approx(VBLinearDynamicalSystem(1, **options).fit(X[:12] * 2).lower_bound_, abs=1e-4)
    batches = VBLinearDynamicalSystem(1, **options).partial_fit(X[:12]).partial_fit(X[12:])
    assert abs(batches.initial_mean_[0]) == approx(abs(whole.initial_mean_[0]), rel=0.3)
    again = whole.set_params(warm_start=True).fit(X)
    assert again.lower_bound_ == approx(bound, abs=1e-4)
    assert again.n_iter_ < 12
    learned = VBLinearDynamicalSystem(2, learn_prior="ard", **options).fit(X)
    assert len(learned.initial_mean_) == learned.n_components_ <= 2
    stronger = VBLinearDynamicalSystem(1, learn_prior="strength", **options).fit(X)
    assert stronger.lower_bound_ > bound
    assert pickle.loads(pickle.dumps(learned)).initial_mean_ == approx(learned.initial_mean_)
