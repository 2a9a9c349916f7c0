"""Columns of pandas intervals beside the same ends in two columns: fits, answers, gaps, errors, files."""

import re

import numpy as np
import pandas as pd
import pytest

from skvbem import VBHMM, VBMixture, VBNetwork, blocks_of, load, save
from skvbem.emissions import Gaussian, Interval

approx = pytest.approx
OPTIONS = {"n_init": 2, "random_state": 0}
RNG = np.random.default_rng(5)
KIND = RNG.integers(2, size=80)
Y = RNG.normal(4.0 * KIND)
LOW, HIGH = np.floor(Y), np.floor(Y) + 1.0
LOW[3], HIGH[4], LOW[5] = -np.inf, np.inf, HIGH[5]  # open below, open above, a point
ENDS = pd.DataFrame({"low": LOW, "high": HIGH}).replace([np.inf, -np.inf], np.nan)
ENDS.iloc[7] = np.nan
BESIDE = pd.DataFrame({"z": RNG.normal(2.0 * KIND), "kind": np.where(RNG.random(80) < 0.9, KIND, 1 - KIND).astype(str)})


def of_type(form):
    """The column, as one data type or another."""
    closed = form if form in ("left", "neither", "both") else "right"
    column = pd.Series(pd.arrays.IntervalArray.from_arrays(LOW, HIGH, closed=closed), name="y")
    column[7] = np.nan
    if form in ("object", "points"):
        column = column.astype(object)
        if form == "points":
            column[5] = LOW[5]
    return column.astype("category") if form == "category" else column


FORMS = ("right", "left", "neither", "both", "object", "points", "category")
MODELS = {
    "mixture": lambda emission: VBMixture(2, emission=emission, **OPTIONS),
    "chain": lambda emission: VBHMM(2, emission=emission, **OPTIONS),
    "network": lambda emission: VBNetwork("[h][y|h][z|h][kind|h]", latents={"h": 2}, emission=emission, **OPTIONS),
}


def emission_of(columns):
    return [("y", Interval(), columns), ("z", Gaussian(), ["z"]), ("kind", "categorical", ["kind"])]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("form", FORMS)
def test_a_column_of_intervals_is_that_of_its_ends(form, model):
    one, two = pd.concat([BESIDE["z"], of_type(form), BESIDE["kind"]], axis=1), pd.concat([ENDS, BESIDE], axis=1)
    fits = MODELS[model](emission_of(["y"])).fit(one), MODELS[model](emission_of(["low", "high"])).fit(two)
    assert fits[0].lower_bound_ == fits[1].lower_bound_
    assert fits[0].groups_["y"] == ["y", "y_high"]
    assert fits[0].n_features_in_ == 3
    assert fits[0].feature_names_in_.tolist() == ["z", "y", "kind"]
    answers = [np.asarray(fit.predict_proba(X)) for fit, X in zip(fits, (one, two))]
    assert np.array_equal(*answers)
    assert fits[0].score(one) == approx(fits[1].score(two), abs=1e-12)
    assert fits[0].log_evidence(one, kind="lower_bound").value == fits[0].lower_bound_


@pytest.mark.parametrize("model", MODELS)
def test_missing_intervals_are_filled_with_points(model):
    one, two = pd.concat([of_type("right"), BESIDE], axis=1), pd.concat([ENDS, BESIDE], axis=1)
    fits = MODELS[model](emission_of(["y"])).fit(one), MODELS[model](emission_of(["low", "high"])).fit(two)
    filled, ends = fits[0].impute(one), fits[1].impute(two)
    point = filled["y"].iloc[7]
    assert point.left == point.right == ends["low"].iloc[7] == ends["high"].iloc[7]
    assert point.left in point
    known = np.arange(80) != 7
    assert filled["y"][known].tolist() == one["y"][known].tolist()  # open ends are what is known
    drawn = fits[0].sample(5, random_state=1)[0]
    assert drawn.columns.tolist() == ["y", "z", "kind"]
    assert all(each.left == each.right for each in drawn["y"])


def test_forecasts_and_residuals_are_of_the_measurement():
    one, two = of_type("right").to_frame(), ENDS
    fits = [VBHMM(2, emission=Interval(), **OPTIONS).fit(X) for X in (one, two)]
    ahead = [fit.forecast([X], 2) for fit, X in zip(fits, (one, two))]
    assert np.array_equal(ahead[0].expected["y"], ahead[1].expected["low"])
    assert np.array_equal(ahead[0].upper["y"], ahead[1].upper["high"])
    residuals = fits[0].pseudo_residuals(one, random_state=0)
    assert residuals.names == ("y",)
    assert residuals.uniform == approx(fits[1].pseudo_residuals(two, random_state=0).uniform, nan_ok=True)


def test_weights_and_blocks_of_rows():
    one, weights = of_type("right").to_frame(), RNG.integers(0, 3, size=80)
    whole = VBMixture(2, emission=Interval(), **OPTIONS).fit(one, sample_weight=weights)
    two = VBMixture(2, emission=Interval(), **OPTIONS).fit(ENDS, sample_weight=weights)
    assert whole.lower_bound_ == two.lower_bound_
    in_blocks = VBMixture(2, emission=Interval(), **OPTIONS).fit(blocks_of([one[:8], one[8:50], one[50:]]))
    at_once = VBMixture(2, emission=Interval(), **OPTIONS).fit(one)
    assert in_blocks.lower_bound_ == approx(at_once.lower_bound_, abs=1e-6)
    assert in_blocks.groups_ == {"interval": ["y", "y_high"]}


def test_several_columns_and_pairs_in_one_group():
    other = pd.Series(pd.arrays.IntervalArray.from_breaks(np.arange(81.0)), name="w")
    X = pd.concat([of_type("right"), ENDS, other], axis=1)
    model = VBMixture(1, emission=Interval(), **OPTIONS).fit(X)
    assert model.groups_["interval"] == ["y", "y_high", "low", "high", "w", "w_high"]
    means = model.parameters_["interval"]["means"][0]
    assert means[0] == means[1]
    assert means[2] == approx(40.0, abs=1.0)


def test_categories_of_intervals_stay_categories():
    """By the emission alone: `Categorical` takes intervals for names."""
    frame = pd.DataFrame({"y": pd.cut(Y, 3)})
    assert len(VBMixture(2, emission="categorical", **OPTIONS).fit(frame).categories_["y"]) == 3
    cut = VBMixture(2, emission=Interval(), **OPTIONS).fit(frame)
    assert cut.groups_ == {"interval": ["y", "y_high"]}
    assert sorted(cut.parameters_["interval"]["means"][:, 0].round().tolist()) == [0.0, 4.0]


def test_a_network_takes_intervals_as_evidence_and_as_set():
    one = pd.concat([of_type("right"), BESIDE], axis=1)
    model = MODELS["network"](emission_of(["y"])).fit(one)
    pairs = MODELS["network"](emission_of(["low", "high"])).fit(pd.concat([ENDS, BESIDE], axis=1))
    for low, high in ((-0.5, -0.5), (4.0, 5.0)):
        value = low if low == high else pd.Interval(low, high)
        told, expected = model.query("kind", {"y": value}), pairs.query("kind", {"low": low, "high": high})
        assert np.asarray(told) == approx(np.asarray(expected), abs=1e-12)
        assert np.asarray(told).max() > 0.8
    with pytest.raises(ValueError, match="Column 'y' holds numbers: as evidence it takes a finite one"):
        model.query("kind", {"y": "low"})
    set_there = np.where(np.arange(80) // 10 == 1, "y", None)
    told = MODELS["network"](emission_of(["y"])).fit(one, interventions=set_there)
    without = one.copy()
    without.loc[10:19, "y"] = np.nan
    assert told.lower_bound_ == approx(MODELS["network"](emission_of(["y"])).fit(without).lower_bound_, abs=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_a_saved_fit_reads_intervals_again(model, tmp_path):
    one = pd.concat([BESIDE["z"], of_type("right"), BESIDE["kind"]], axis=1)
    fit = MODELS[model](emission_of(["y"])).fit(one)
    save(fit, tmp_path / "fit.skvbem")
    again = load(tmp_path / "fit.skvbem")
    assert np.array_equal(np.asarray(again.predict_proba(one)), np.asarray(fit.predict_proba(one)))
    assert again.impute(one).equals(fit.impute(one))


def refused(message, X, fit_to=None, columns=None):
    emission = Interval() if columns is None else [("y", Interval(), columns)]
    model = VBMixture(2, emission=emission, **OPTIONS)
    with pytest.raises(ValueError, match=message):
        model.fit(X) if fit_to is None else model.fit(fit_to).predict(X)


def test_errors_name_the_column():
    one = of_type("right").to_frame()
    refused("Column 'y' of X holds intervals, whose upper ends VBMixture calls 'y_high'", one.assign(y_high=1.0, z=1.0))
    between = pd.concat([ENDS["low"], one, ENDS["high"]], axis=1)
    refused("Column 'y' of X holds intervals, and stands between 'low' and the other end", between)
    refused("Column 'y' of X holds 'b', where an interval is expected", pd.DataFrame({"y": ["b"] * 3}), one)
    mixed = one.astype(object)
    mixed.iloc[2, 0] = "much"
    refused("Column 'y' of X holds 'much', where an interval is expected", mixed)
    days = pd.Series(pd.interval_range(pd.Timestamp("2026-01-01"), periods=5)).to_frame("day")
    refused("Column 'day' of X holds .*Make numbers of times first", days)
    refused(re.escape("Interval takes two columns for each measurement, or one of pandas intervals"), one.assign(z=1.0))
    upside = pd.DataFrame({"y": [pd.Interval(np.inf, np.inf, closed="both"), pd.Interval(0, 1)]})
    refused("Column 'y' of X holds infinity", upside)
