"""Times of the rows that estimators of sequences take: what is filled in, what is refused, what comes back."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skvbem import VBHMM, TimeAxis, VBLinearDynamicalSystem, load, save
from skvbem.emissions import Regression, Softmax
from skvbem.errors import DataWarning

RNG = np.random.default_rng(20261128)
DAYS = pd.date_range("2024-02-01", periods=60, freq="D")
WHOLE = pd.DataFrame({"x": np.sin(np.arange(60) / 4) + 0.2 * RNG.normal(size=60), "y": RNG.normal(size=60)}, index=DAYS)
GONE = [7, 8, 20, 41, 42, 43]
GAPPED = WHOLE.drop(DAYS[GONE])
FILLED = GAPPED.reindex(DAYS)
SHUFFLED = GAPPED.sample(frac=1.0, random_state=0)
SORTED = TimeAxis(order="sort", gaps="missing")
MODELS = [
    VBHMM(2, n_init=1, tol=1e-2, random_state=0),
    VBHMM(2, emission={"gaussian": ["x"], "student_t": ["y"]}, n_init=1, tol=1e-2, random_state=0),
    VBLinearDynamicalSystem(1, n_init=1, tol=1e-2, n_draws=20, random_state=0),
    VBLinearDynamicalSystem(1, method="ml", n_init=1, tol=1e-2, random_state=0),
]


def objective(model):
    return model.lower_bound_ if model.method == "vb" else model.log_likelihood_


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_filled_steps_are_rows_of_missing_cells(model):
    """Gaps in the dates, and rows without an observed cell in their place, are one data set, to the last digit."""
    rows = FILLED.reset_index(drop=True)
    wanted = clone(model).fit(rows)
    with pytest.warns(DataWarning, match=r"6 steps are missing .* frequency is 'D', the first of them 2024-02-08"):
        fit = clone(model).fit(GAPPED)
    assert objective(fit) == objective(wanted)
    kept = np.delete(np.arange(60), GONE)
    assert np.array_equal(fit.predict(GAPPED), wanted.predict(rows)[kept])
    assert np.array_equal(fit.transform(GAPPED), wanted.transform(rows)[kept])
    assert fit.score(GAPPED) == wanted.score(rows)
    assert np.array_equal(fit.filter(GAPPED), wanted.filter(rows)[kept])
    assert fit.log_evidence(GAPPED, kind="bic").value == wanted.log_evidence(rows, kind="bic").value
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        quiet = clone(model).fit(SHUFFLED, time=SORTED)
        assert objective(quiet) == objective(wanted)
        assert objective(clone(model).fit(FILLED)) == objective(wanted)
    shuffled = pd.Series(fit.transform(GAPPED)[:, 0], index=GAPPED.index)[SHUFFLED.index]
    assert np.allclose(quiet.transform(SHUFFLED, time=SORTED)[:, 0], shuffled, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("model", MODELS[::2], ids=str)
def test_every_form_of_the_same_times(model):
    """An index, a column by name, an array, polars, a list of tables, ids: one fit."""
    wanted = objective(clone(model).fit(FILLED))
    quiet = {"gaps": "missing"}
    as_column = GAPPED.reset_index(names="day")
    fits = [
        clone(model).fit(as_column, time=TimeAxis("day", **quiet)),
        clone(model).fit(as_column[["x", "day", "y"]], time=TimeAxis("day", **quiet)),
        clone(model).fit(GAPPED.rename_axis("day"), time=TimeAxis("day", **quiet)),
        clone(model).fit(GAPPED.to_numpy(), time=TimeAxis(GAPPED.index, **quiet)),
        clone(model).fit(GAPPED.to_numpy(), time=TimeAxis(GAPPED.index.to_numpy(), **quiet)),
        clone(model).fit(GAPPED.to_period("D"), time=TimeAxis(**quiet)),
        clone(model).fit([GAPPED], time=TimeAxis(**quiet)),
        clone(model).fit(GAPPED, time=TimeAxis(**quiet), sequence_id=np.zeros(54)),
        clone(model).fit(GAPPED.set_axis(np.flatnonzero(~FILLED.x.isna())), time=TimeAxis("index", **quiet)),
    ]
    assert [objective(fit) for fit in fits] == [wanted] * len(fits)
    assert [fit.n_features_in_ for fit in fits] == [2] * len(fits)
    numbered = clone(model).fit(GAPPED.reset_index(drop=True))
    assert objective(numbered) == objective(clone(model).fit(GAPPED, time=False)) != wanted


@pytest.mark.parametrize("model", MODELS[::2], ids=str)
def test_polars(model):
    pl = pytest.importorskip("polars")
    frame = pl.from_pandas(GAPPED.reset_index(names="day"))
    fit = clone(model).fit(frame, time=TimeAxis("day", gaps="missing"))
    assert objective(fit) == objective(clone(model).fit(FILLED))
    ahead = fit.forecast(frame, 2, time="day")
    assert ahead.times[0].astype("M8[D]").tolist() == [day.date() for day in pd.date_range("2024-04-01", periods=2)]
    completed = fit.impute(frame.with_columns(y=pl.when(pl.col("x") < 0).then(None).otherwise(pl.col("y"))), time="day")
    assert completed.columns == ["day", "x", "y"]
    assert completed["y"].null_count() == 0
    assert completed["day"].to_list() == frame["day"].to_list()


@pytest.mark.parametrize("model", MODELS[::2], ids=str)
def test_results_are_of_the_rows_given(model):
    """Rows in any order, of two sequences with gaps, as a table with ids and as a list: each has its own answer."""
    parts = {"a": GAPPED, "b": GAPPED.iloc[::-1].set_axis(GAPPED.index + pd.Timedelta(30, "D")).drop(DAYS[45])}
    axis = {"time": SORTED}
    table = pd.concat(parts, names=["who", "day"]).reset_index("who")
    table.loc[table.x < -0.5, "y"] = np.nan
    mixed = table.sample(frac=1.0, random_state=1)
    listed = [table[table.who == who].drop(columns="who") for who in ("a", "b")]
    fit = clone(model).fit(listed, **axis)
    ids, X = mixed.who.to_numpy(), mixed.drop(columns="who")
    by_id = clone(model).fit(X, sequence_id=ids, **axis)
    assert objective(by_id) == pytest.approx(objective(fit), rel=1e-9)
    of_list, of_rows = fit.transform(listed, **axis), fit.transform(X, sequence_id=ids, **axis)
    assert [len(each) for each in of_list] == [54, 53]
    for who, each, part in zip("ab", of_list, listed):
        mine = pd.DataFrame(of_rows[ids == who], index=X.index[ids == who]).loc[part.index]
        assert np.allclose(mine, each, rtol=1e-9, atol=1e-12)
    completed, of_each = fit.impute(X, sequence_id=ids, **axis), fit.impute(listed, **axis)
    assert completed.index.equals(X.index)
    assert not completed.isna().any(axis=None)
    assert np.array_equal(completed[X.y.notna()], X[X.y.notna()])
    for who, each, part in zip("ab", of_each, listed):
        assert each.index.equals(part.index)
        assert np.allclose(completed[ids == who].loc[part.index], each, rtol=1e-9, atol=1e-12)
    ahead = fit.forecast(X, 3, sequence_id=ids, **axis)
    assert [*ahead.sequences] == [*dict.fromkeys(ids)]
    for who, times in zip(ahead.sequences, ahead.times):
        last = parts[who].index.max()
        assert times.equals(pd.date_range(last + pd.Timedelta(1, "D"), periods=3))


def test_weights_count_sequences_with_gaps():
    later = WHOLE.set_axis(DAYS + pd.Timedelta(400, "D"))
    table, ids = pd.concat([GAPPED, later, later]), np.repeat([0, 1, 2], [54, 60, 60])
    quiet = {"time": TimeAxis(gaps="missing")}
    for model in MODELS[::2]:
        repeated = clone(model).fit(table, sequence_id=ids, **quiet)
        weight = np.repeat([1, 2], [54, 60])
        weighted = clone(model).fit(table[:114], sequence_id=ids[:114], sample_weight=weight, **quiet)
        assert objective(weighted) == pytest.approx(objective(repeated), rel=1e-9)
        of_one = clone(model).fit(table[:114], sequence_id=ids[:114], sample_weight=1 * (ids[:114] == 0), **quiet)
        assert objective(of_one) == pytest.approx(objective(clone(model).fit(FILLED)), rel=1e-12)


def test_labels_and_starts_of_rows_leave_filled_steps_free():
    labels = pd.Series(np.where(np.arange(60) % 30 < 15, "low", "high"), index=DAYS).astype(object)
    gaps = labels.copy()
    gaps.iloc[GONE] = None
    wanted = VBHMM(2, random_state=0).fit(FILLED, labels=gaps.to_numpy())
    fit = VBHMM(2, random_state=0).fit(SHUFFLED, labels=labels[SHUFFLED.index].to_numpy(), time=SORTED)
    assert fit.lower_bound_ == wanted.lower_bound_
    shares = RNG.dirichlet([1, 1], size=60)
    shares[GONE] = 0.5
    wanted = VBHMM(2, init=shares, random_state=0).fit(FILLED)
    of_rows = pd.DataFrame(shares, index=DAYS).loc[SHUFFLED.index].to_numpy()
    assert VBHMM(2, init=of_rows, random_state=0).fit(SHUFFLED, time=SORTED).lower_bound_ == wanted.lower_bound_


def test_residuals_of_filled_steps():
    wanted = VBHMM(2, random_state=0).fit(FILLED)
    residuals = wanted.pseudo_residuals(FILLED)
    of_gapped = wanted.pseudo_residuals(GAPPED)
    assert np.array_equal(of_gapped.uniform, np.delete(residuals.uniform, GONE, axis=0))
    assert np.allclose(of_gapped.autocorrelations(5), residuals.autocorrelations(5), rtol=1e-10)
    assert np.array_equal(of_gapped.n_pairs(5), residuals.n_pairs(5))


def test_inputs_of_filled_steps():
    wave = pd.DataFrame({"wave": np.cos(np.arange(70.0))}, index=pd.date_range("2024-01-28", periods=70))
    quiet = {"time": TimeAxis(gaps="missing")}
    model = VBLinearDynamicalSystem(1, n_init=1, random_state=0)
    wanted = clone(model).fit(FILLED, output_inputs=wave.loc[DAYS])
    assert clone(model).fit(GAPPED, output_inputs=wave, **quiet).lower_bound_ == wanted.lower_bound_
    assert clone(model).fit([GAPPED], output_inputs=[wave], **quiet).lower_bound_ == wanted.lower_bound_
    rows = SHUFFLED[~SHUFFLED.index.isin(DAYS[[10]])]
    ordered = clone(model).fit(rows, output_inputs=wave, time=SORTED)
    table = rows.sort_index().reindex(DAYS)
    assert ordered.lower_bound_ == clone(model).fit(table, output_inputs=wave.loc[DAYS]).lower_bound_
    for wrong in (wave.loc[GAPPED.index], wave.loc[GAPPED.index].to_numpy()):
        with pytest.raises(
            ValueError, match=r"'output_inputs' must have the inputs of all steps, and 6 steps are miss"
        ):
            clone(model).fit(GAPPED, output_inputs=wrong, **quiet)
    with pytest.raises(ValueError, match="it has none of 2024-02-21"):
        clone(model).fit(GAPPED, inputs=wave.drop(DAYS[20]), **quiet)
    with pytest.raises(ValueError, match="twice"):
        clone(model).fit(GAPPED, inputs=pd.concat([wave, wave]), **quiet)


def test_covariates_of_filled_steps():
    """Those of a column may be missing where the column is; those of the chain may not."""
    emission = [("y", Regression(covariates=["x"]), ["y"])]
    model = VBHMM(2, emission=emission, n_init=1, random_state=0)
    assert objective(clone(model).fit(GAPPED, time=SORTED)) == objective(clone(model).fit(FILLED))
    driven = VBHMM(2, emission={"gaussian": ["y"]}, transitions=Softmax(["x"]), random_state=0)
    with pytest.raises(ValueError, match="'x'"):
        driven.fit(GAPPED, time=SORTED)


@pytest.mark.parametrize("model", MODELS[::2], ids=str)
def test_the_frequency_of_a_fit(model, tmp_path):
    fit = clone(model).fit(WHOLE)
    for other in (fit, load(save(fit, tmp_path / "fit.skvbem") or tmp_path / "fit.skvbem")):
        with pytest.raises(ValueError, match=r"the frequency 'W', and .* was fitted to times of the frequency 'D'"):
            other.score(WHOLE.resample("W").mean())
        assert np.isfinite(other.score(WHOLE.set_axis(range(60))))
        two = other.forecast(WHOLE.iloc[[0, 3]], 1)  # two rows alone might be three days apart
        assert two.times[0][0] == DAYS[4]
        assert other.forecast(WHOLE.iloc[[5]], 1).times[0][0] == DAYS[6]
    again = fit.fit(WHOLE.resample("W").mean())
    assert again.forecast(WHOLE.resample("W").mean(), 1).times[0][0] == pd.Timestamp("2024-04-07")
    assert fit.fit(WHOLE.to_numpy()).forecast(WHOLE.to_numpy(), 1).times is None


def test_batches_have_one_frequency():
    model = VBLinearDynamicalSystem(1, n_init=1, random_state=0)
    model.partial_fit(WHOLE[:30]).partial_fit(WHOLE[30:])
    with pytest.raises(ValueError, match="frequency"):
        model.partial_fit(WHOLE.resample("W").mean())


def test_cross_validation_and_pipelines():
    model = VBLinearDynamicalSystem(1, n_init=1, random_state=0)
    scores = cross_val_score(model, WHOLE, cv=TimeSeriesSplit(3))
    assert np.array_equal(scores, cross_val_score(model, WHOLE.to_numpy(), cv=TimeSeriesSplit(3)))
    steps = make_pipeline(StandardScaler().set_output(transform="pandas"), model)
    with pytest.warns(DataWarning, match="6 steps are missing"):
        steps.fit(GAPPED)
    standardized = StandardScaler().set_output(transform="pandas").fit_transform(GAPPED)
    assert steps[-1].lower_bound_ == clone(model).fit(standardized.reindex(DAYS)).lower_bound_


def test_frames_of_forecasts():
    fit = VBLinearDynamicalSystem(1, n_init=1, random_state=0).fit(WHOLE)
    ahead = fit.forecast(WHOLE, 2)
    assert "2024-04-01  x" in str(ahead).splitlines()[1]
    assert "sequence" not in str(ahead)
    long = ahead.to_frame()
    assert list(long.columns[:4]) == ["sequence", "step", "time", "column"]
    assert long.time.tolist() == np.repeat(pd.date_range("2024-04-01", periods=2), 2).tolist()
    wide = ahead.to_frame("wide")
    assert wide.index.equals(pd.date_range("2024-04-01", periods=2))
    assert np.array_equal(wide["x"], np.stack([ahead.mean[0, :, 0], ahead.lower[0, :, 0], ahead.upper[0, :, 0]], 1))
    alone = VBLinearDynamicalSystem(1, n_init=1, random_state=0).fit(WHOLE["x"]).forecast(WHOLE["x"], 2)
    assert list(alone.to_frame("wide").columns) == ["mean", "lower", "upper"]
    ids = np.repeat(["u", "v"], 30)
    words = WHOLE.assign(y=np.where(WHOLE.y > 0, "up", "down"))
    both = VBHMM(2, random_state=0).fit(words, sequence_id=ids).forecast(words, 2, ids)
    frame = both.to_frame("wide")
    assert frame.index.tolist() == [("u", day) for day in DAYS[30:32]] + [
        ("v", day) for day in pd.date_range("2024-04-01", periods=2)
    ]
    assert frame["y"].columns.tolist() == ["down", "up"]
    assert np.allclose(frame["y"].sum(axis=1), 1.0)
    assert "u         2024-03-02" in str(both)
    with pytest.raises(ValueError, match="layout"):
        ahead.to_frame("tall")


def test_paths_of_a_known_system():
    """Means and covariances of the steps to come, over paths, are those of the recursion from the filtered state."""
    a, c, q, r = 0.8, 2.0, 1.0, 0.5
    model = VBLinearDynamicalSystem.from_parameters([[a]], [[c]], [r])
    x = np.array([1.0, np.nan, 2.0, -1.0])[:, None]
    state, variance = model.filter(x, return_cov=True)
    paths = model.sample_ahead(x, 3, 600, random_state=0)[:, 0, :, 0]
    wanted, covariance = np.empty(3), np.empty((3, 3))
    m, v, of_states = state[-1, 0], variance[-1, 0, 0], np.empty(3)
    for t in range(3):
        m, v = a * m, a * a * v + q
        wanted[t], of_states[t] = c * m, v
    for s in range(3):
        for t in range(3):
            covariance[s, t] = c * c * a ** abs(s - t) * of_states[min(s, t)] + r * (s == t)
    assert np.abs(paths.mean(axis=0) - wanted).max() < 4 * np.sqrt(covariance.max() / 600)
    assert np.abs(np.cov(paths.T) - covariance).max() < 4 * np.sqrt(2 / 600) * covariance.max()


@pytest.mark.parametrize("model", MODELS[::2], ids=str)
def test_paths_are_of_forecasts(model):
    """Steps of paths of two sequences, one of them with gaps and out of order, have the quantiles of forecasts."""
    later = (WHOLE + 3.0).set_axis(DAYS + pd.Timedelta(400, "D"))
    table, ids = pd.concat([SHUFFLED, later]), np.repeat(["a", "b"], [54, 60])
    fit = clone(model).set_params(predictive="average", n_draws=100).fit(table, sequence_id=ids, time=SORTED)
    ahead = fit.forecast(table, 3, ids, time=SORTED, level=0.8)
    paths = fit.sample_ahead(table, 3, 200, ids, time=SORTED, random_state=0)
    assert paths.shape == (200, 2, 3, 2)
    assert np.array_equal(paths, fit.sample_ahead(table, 3, 200, ids, time=SORTED, random_state=0))
    for k, name in enumerate("xy"):
        lower, upper = (ahead.lower[name], ahead.upper[name]) if isinstance(fit, VBHMM) else (
            ahead.lower[..., k], ahead.upper[..., k],
        )  # fmt: skip
        for end, share in ((lower, 0.1), (upper, 0.9)):
            assert np.abs((paths[..., k] <= end).mean(axis=0) - share).max() < 0.07


def test_paths_of_words_and_of_inputs():
    words = WHOLE.assign(y=np.where(WHOLE.y > 0, "up", "down"))
    paths = VBHMM(2, random_state=0).fit(words).sample_ahead(words, 2, 5)
    assert paths.dtype == object
    assert {*paths[..., 1].ravel()} <= {"up", "down"}
    wave = np.cos(np.arange(63.0))[:, None]
    fit = VBLinearDynamicalSystem(1, n_init=1, random_state=0).fit(WHOLE, output_inputs=100.0 * wave[:60])
    with pytest.raises(ValueError, match="future_output_inputs"):
        fit.sample_ahead(WHOLE, 3, output_inputs=100.0 * wave[:60])
    given = {"output_inputs": 100.0 * wave[:60], "future_output_inputs": 100.0 * wave[60:]}
    drawn = fit.sample_ahead(WHOLE, 3, 300, random_state=0, **given)
    ahead = fit.forecast(WHOLE, 3, **given)
    assert np.abs(drawn.mean(axis=0) - ahead.mean).max() < 5 * np.sqrt(ahead.variance.max() / 300)
    with pytest.raises(ValueError, match="n_paths"):
        fit.sample_ahead(WHOLE, 3, 0, **given)
