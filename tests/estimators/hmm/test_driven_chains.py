"""`VBHMM` with covariates: rows to come, gaps, masks, known states, orders, files, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import skvbem
from skvbem import VBHMM, StructureSearchCV, VBMixture
from skvbem.emissions import Softmax
from skvbem.errors import TooLargeError
from skvbem.families.softmax_maximum import contrasts
from skvbem.models.hmm.capabilities import capabilities_of
from skvbem.plotting import ClassProfileDisplay, StatePathDisplay, TransitionsDisplay

COLUMNS = {"gaussian": ["y"], "poisson": ["n"]}
ONE = {"emission": COLUMNS, "random_state": 0, "n_init": 1, "search_effort": "fast"}


def sequences_of(rng, n=4, length=50):
    """Sequences whose second state is likelier after large z."""
    tables, paths = [], []
    for _ in range(n):
        z, states = rng.choice([-1.5, -0.5, 0.5, 1.5], length), np.zeros(length, dtype=int)  # few patterns are swift
        for t in range(1, length):
            odds = (2.0 if states[t - 1] else -2.0) + 1.5 * z[t - 1]
            states[t] = rng.random() < 1 / (1 + np.exp(-odds))
        values = {"y": rng.normal(3.0 * states), "n": rng.poisson(2 + 5 * states).astype(float), "z": z}
        tables.append(pd.DataFrame(values))
        paths.append(states)
    return tables, paths


@pytest.fixture(scope="module")
def fitted():
    X, paths = sequences_of(np.random.default_rng(1))
    model = VBHMM(2, transitions=Softmax("z"), start=Softmax("z"), **ONE).fit(X)
    return model, X, paths


def test_covariates_that_drive_raise_the_bound_and_have_their_slopes(fitted):
    model, X, paths = fitted
    constant = [table.assign(z=1.0) for table in X]
    without = clone(model).fit(constant)
    assert model.lower_bound_ > without.lower_bound_ + 10
    late = clone(model).set_params(transitions__at="arrival").fit(X)
    assert model.lower_bound_ > late.lower_bound_ + 10  # covariates of the step that was left are those that drive
    second = int(model.parameters_["gaussian"]["means"].argmax())
    slope = model.parameters_["chain"]["transition_coefficients"]
    assert slope.shape == (2, 2, 1)
    assert slope.sum(axis=1) == pytest.approx(0)
    assert (slope[:, second] - slope[:, 1 - second])[:, 0] == pytest.approx([1.5, 1.5], abs=0.7)
    agree = np.mean([np.mean(a == b) for a, b in zip(model.predict(X), paths)])
    assert max(agree, 1 - agree) > 0.95
    assert model.transmat_.sum(axis=1) == pytest.approx(1)
    assert model.startprob_.sum() == pytest.approx(1)
    assert {"start_intercepts", "start_coefficients"} < {*model.parameters_["chain"]}


def test_rows_to_come_follow_their_covariates(fitted):
    model, X, _ = fitted
    known = X[0].iloc[:20]
    ahead = pd.DataFrame({"y": np.nan, "n": np.nan, "z": [4.0, -4.0, 0.0]})
    whole = pd.concat([known, ahead], ignore_index=True)
    states = model.predict_proba([whole])[0]
    point = model._fitted_.point[1]
    rows = model._fitted_.model.transitions
    before = model.predict_proba([known])[0][-1]
    assert states[:20] == pytest.approx(model.predict_proba([known])[0], abs=1e-12)
    for t in range(20, 23):
        u = np.array([1.0, (whole["z"][t - 1] - rows.coding.mean[0]) / rows.coding.unit[0]])
        logits = point @ u
        before = before @ (np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True))
        assert states[t] == pytest.approx(before, abs=1e-10)
    assert model.score_samples([whole]) == pytest.approx(model.score_samples([known]), abs=1e-10)
    filled = model.impute([whole])[0]
    means = model.parameters_["gaussian"]["means"][:, 0]
    assert filled["y"].to_numpy()[-3:] == pytest.approx(states[-3:] @ means, abs=1e-6)
    assert model.filter([whole])[0][-1] == pytest.approx(states[-1], abs=1e-10)
    with pytest.raises(ValueError, match="append rows with them"):
        model.forecast(X)


def test_unseen_steps_at_an_end_say_nothing(fitted):
    """The bound is that of the sequences without them, though their covariates are there."""
    _, X, _ = fitted
    longer = [pd.concat([table, table.iloc[:5].assign(y=np.nan, n=np.nan)], ignore_index=True) for table in X]
    raw = Softmax("z", standardize=False)
    one, other = (VBHMM(2, transitions=raw, tol=1e-9, **ONE).fit(each) for each in (X, longer))
    assert other.lower_bound_ == pytest.approx(one.lower_bound_, abs=1e-6)
    assert other.n_samples_ == one.n_samples_


def test_order_of_states_sequences_and_covariates_changes_nothing(rng):
    X, _ = sequences_of(rng, 3, 40)
    X = [table.assign(w=rng.choice([0.0, 1.0, 3.0], 40)) for table in X]
    start = rng.dirichlet(np.ones(3), 120)
    options = ONE | {"n_init": 1, "tol": 1e-9, "max_iter": 2000}

    def bound(X, covariates, init):
        softmax = {"transitions": Softmax(covariates), "start": Softmax(covariates[:1])}
        return VBHMM(3, init=init, **softmax, **options).fit(X).lower_bound_

    value = bound(X, ["z", "w"], start)
    assert bound(X, ["z", "w"], start[:, [2, 0, 1]]) == pytest.approx(value, abs=1e-9)
    assert bound(X[::-1], ["z", "w"], np.concatenate([start[80:], start[40:80], start[:40]])) == pytest.approx(
        value, abs=1e-9
    )
    turned = [table.assign(z=-9 * table["z"] + 2)[["w", "z", "n", "y"]] for table in X]
    assert bound(turned, ["z", "w"], start) == pytest.approx(value, abs=1e-9)


def test_weights_are_repeats(rng):
    X, _ = sequences_of(rng, 3, 30)
    options = ONE | {"tol": 1e-9, "max_iter": 2000}
    model = VBHMM(2, transitions=Softmax("z"), start=Softmax("z"), **options)
    weighted = clone(model).fit(X, sample_weight=[1, 2, 1])
    repeated = clone(model).fit([X[0], X[1], X[1], X[2]])
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, abs=1e-9)


def test_masks_and_known_states_hold(rng):
    X, paths = sequences_of(rng, 3, 30)
    mask = np.array([[True, True, False], [True, True, True], [True, True, True]])
    model = VBHMM(3, transitions=Softmax("z"), transmat_mask=mask, **ONE).fit(X)
    assert model.transmat_[0, 2] == 0
    assert model.n_free_parameters_ == 2 + 2 * (1 + 2 + 2) + 6 + 3
    assert all(not ((path[:-1] == 0) & (path[1:] == 2)).any() for path in model.predict(X))
    left = VBHMM(2, transitions=Softmax("z"), start=Softmax("z"), transmat_mask="left-to-right", **ONE).fit(X)
    assert left.startprob_.tolist() == [1.0, 0.0]
    assert left.transmat_[1].tolist() == [0.0, 1.0]
    known = VBHMM(2, transitions=Softmax("z"), **ONE).fit(X, labels=paths)
    counts = sum(np.bincount(path, minlength=2) for path in paths)
    assert known.counts_ == pytest.approx(counts)


@pytest.mark.parametrize("method", ["vb", "map", "ml"])
def test_files_copies_grids_reports_and_draws(method, fitted, tmp_path):
    _, X, _ = fitted
    model = VBHMM(2, transitions=Softmax("z"), start=Softmax("z"), method=method, **ONE).fit(X)
    skvbem.save(model, tmp_path / "chain.skvbem")
    again = skvbem.load(tmp_path / "chain.skvbem")
    for one, other in zip(model.predict_proba(X), again.predict_proba(X)):
        assert one == pytest.approx(other, abs=1e-12)
    assert again.transitions.covariates == "z"
    text = str(model.summary(method="vb") if method == "vb" else model.summary())
    assert "transitions by covariates" in text
    assert "log odds per z" in text
    drawn, states = model.sample([5, 4], random_state=0, given=[X[0].iloc[:5], X[1].iloc[:4]])
    assert [len(each) for each in drawn] == [5, 4] == [len(each) for each in states]
    assert drawn[0]["z"].tolist() == X[0]["z"].iloc[:5].tolist()
    assert np.isfinite(model.log_evidence(X, kind="bic").value)
    if method == "vb":
        grid = GridSearchCV(clone(model), {"transitions__at": ["departure", "arrival"]}, cv=2).fit(X)
        assert grid.best_params_ == {"transitions__at": "departure"}
        low, high = model.credible_intervals(method="vb")["chain"]["transition_coefficients"]
        assert (low < model.parameters_["chain"]["transition_coefficients"]).all()
        assert (high > model.parameters_["chain"]["transition_coefficients"]).all()
        assert model.set_params(predictive="average", n_draws=20).fit(X).score(X) < 0


def test_displays_take_chains_that_covariates_drive(fitted):
    pytest.importorskip("matplotlib")
    model, X, _ = fitted
    for display in (ClassProfileDisplay, TransitionsDisplay):
        display.from_estimator(model, X)
    axes = {ax.get_ylabel(): ax for ax in StatePathDisplay.from_estimator(model, X).axes_}
    bottom, top = axes["z"].get_ylim()
    assert bottom < X[0]["z"].min() < X[0]["z"].max() < top  # a covariate is drawn as numbers, without expected ones
    assert len(axes["z"].lines) < len(axes["y"].lines)


def test_intervals_by_linear_response_are_wider_than_those_of_q(fitted):
    _, X, _ = fitted
    few = [table.assign(z=np.sign(table["z"]), y=table["y"] / 2) for table in X]
    model = VBHMM(2, transitions=Softmax("z"), **ONE).fit(few)
    wide = model.credible_intervals(few, method="linear_response")["chain"]["transition_coefficients"]
    narrow = model.credible_intervals(method="vb")["chain"]["transition_coefficients"]
    assert ((wide[1] - wide[0]) > 0.95 * (narrow[1] - narrow[0])).all()
    assert ((wide[1] - wide[0]) < 4 * (narrow[1] - narrow[0])).all()


@pytest.mark.parametrize("kind", ["parametric", "nonparametric"])
def test_slopes_of_bootstraps_vary_as_linear_response_says(kind):
    X, _ = sequences_of(np.random.default_rng(1), n=12)
    model = VBHMM(2, transitions=Softmax("z"), method="ml", **ONE).fit(X)
    drawn = model.bootstrap(X, n_draws=30, kind=kind, random_state=0).parameters["chain"]["transition_coefficients"]
    ends = clone(model).set_params(method="vb").fit(X).credible_intervals(X, method="linear_response", level=0.6827)
    low, high = ends["chain"]["transition_coefficients"]
    deviation, wanted = drawn.std(axis=0), (high - low) / 2
    errors = model.standard_errors(X).errors["chain"]["transition_coefficients"]
    assert errors == pytest.approx(wanted, rel=0.2)
    assert drawn.mean(axis=0) == pytest.approx(model.parameters_["chain"]["transition_coefficients"], abs=0.1)
    assert ((wanted / 2 < deviation) & (deviation < 2 * wanted)).all()


def test_relabelings_of_states_are_listed_up_to_a_limit(fitted):
    model, X, _ = fitted
    assert model.log_evidence(X, kind="linear_response").value > model.lower_bound_
    few = capabilities_of(VBHMM(4, transitions=Softmax("z"), **ONE).fit(X).fitted.model).relabelings
    assert few.relabelings(()).n == 24
    with pytest.raises(TooLargeError):
        few.listed_relabelings((), 23)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"transitions": "z"}, "must be None or a Softmax"),
        ({"transitions": Softmax([])}, "names no column"),
        ({"start": Softmax(["z", "z"])}, "names a column twice"),
        ({"transitions": Softmax(["z"], selected=["y"])}, "none of its 'covariates'"),
        ({"transitions": Softmax(["z", "y", "n"])}, "all columns of X"),
        ({"transmat_prior": 2.0}, "takes the place of 'transmat_prior'"),
        ({"start": Softmax(["z"]), "startprob_prior": "unit"}, "takes the place of 'startprob_prior'"),
        ({"sticky": 3.0}, "Leave 'sticky' at 0"),
        ({"learn_prior": True}, "Leave it False"),
        ({"predictive": "vb"}, "Take 'mean' or 'average'"),
    ],
)
def test_what_does_not_go_together_is_refused_by_name(parameters, message, fitted):
    _, X, _ = fitted
    with pytest.raises((TypeError, ValueError), match=message):
        VBHMM(2, **ONE | {"transitions": Softmax(["z"])} | parameters).fit(X)


def test_what_is_not_there_is_refused_with_advice(fitted):
    model, X, _ = fitted
    lacking = [X[0].copy(), *X[1:]]
    lacking[0].loc[3, "z"] = np.nan
    with pytest.raises(ValueError, match="Row 3 of X has no 'z', a covariate"):
        clone(model).fit(lacking)
    with pytest.raises(ValueError, match="Fit all sequences at once"):
        clone(model).partial_fit(X)
    with pytest.raises(ValueError, match="Leave them out, or fit"):
        VBHMM.from_parameters([1.0], [[1.0]], {"rates": [[1.0]]}, emission="poisson", columns=1, start=Softmax("z"))
    with pytest.raises(ValueError, match="Give rows that have them"):
        model.sample(3)
    for kind in ("smc_data", "exact", "cheeseman_stutz"):
        with pytest.raises(TypeError, match="Take 'auto', 'lower_bound', 'bic', 'laplace' or 'linear_response'"):
            model.log_evidence(X, kind=kind, random_state=0)
    twice = [table.assign(twice=2 * table["z"]) for table in X]
    with pytest.raises(ValueError, match="the covariate 'twice' follows from those before it"):
        VBHMM(2, transitions=Softmax(["z", "twice"]), method="ml", **ONE).fit(twice)


def test_categories_are_contrasts_of_which_no_level_is_a_reference(fitted, tmp_path):
    """The bound is that of columns of contrasts about their means; levels in another order change nothing."""
    _, X, _ = fitted
    levels = np.array(["dry", "wet", "windy"])
    codes = [np.random.default_rng(k).integers(0, 3, len(table)) for k, table in enumerate(X)]
    one = ONE | {"tol": 1e-9, "max_iter": 2000}
    named = [table.assign(weather=levels[code]) for table, code in zip(X, codes)]
    model = VBHMM(2, transitions=Softmax(["z", "weather"]), start=Softmax("weather"), **one).fit(named)
    h = contrasts(3)
    every = np.concatenate(codes)

    def columns(of):
        return [
            table.assign(z=(table["z"] - all_z.mean()) / all_z.std(), a=c[:, 0], b=c[:, 1])
            for table, c in zip(X, [h[code] - h[of].mean(axis=0) for code in codes])
        ]

    all_z = np.concatenate([table["z"] for table in X])
    raw = VBHMM(2, transitions=Softmax(["z", "a", "b"], standardize=False), **one).fit(columns(every))
    alone = VBHMM(2, transitions=Softmax(["z", "weather"]), **one).fit(named)
    assert alone.lower_bound_ == pytest.approx(raw.lower_bound_, abs=1e-8)
    slopes = alone.parameters_["chain"]["transition_coefficients"]
    assert slopes.shape == (2, 2, 4)
    of_raw = raw.parameters_["chain"]["transition_coefficients"]
    assert slopes[..., 1:] == pytest.approx(of_raw[..., 1:] @ h.T, abs=1e-6)
    other = np.array(["z", "a", "m"])
    turned = [table.assign(weather=other[code]) for table, code in zip(X, codes)]
    assert clone(model).fit(turned).lower_bound_ == pytest.approx(model.lower_bound_, abs=1e-9)
    text = str(model.summary(method="vb"))
    assert "log odds of weather=wet" in text
    skvbem.save(model, tmp_path / "chain.skvbem")
    again = skvbem.load(tmp_path / "chain.skvbem").predict_proba(named)
    assert np.concatenate(again) == pytest.approx(np.concatenate(model.predict_proba(named)), abs=1e-12)
    with pytest.raises(ValueError, match="weather"):
        model.predict([named[0].assign(weather="fog")])


def test_numbers_of_states_are_compared_by_evidences_of_refits(fitted):
    _, X, _ = fitted
    grid = {"n_components": [1, 2, 3]}
    search = StructureSearchCV(VBHMM(2, transitions=Softmax("z"), **ONE), grid, scoring="bic", random_state=0).fit(X)
    assert search.best_params_ == {"n_components": 2}
    refit = VBHMM(2, transitions=Softmax("z"), **ONE).set_params(n_components=2).fit(X)
    assert search.best_score_ == pytest.approx(refit.log_evidence(X, kind="bic").value, abs=1e-3)


@pytest.mark.parametrize("slope_prior", [1.0, "hierarchical"])
def test_chains_of_one_step_have_the_bound_of_a_mixture_with_membership(slope_prior, rng):
    """Transitions have no data there, and cost nothing."""
    X = np.column_stack([rng.integers(0, 2, size=(80, 3)), rng.normal(size=80), rng.integers(0, 3, 80)]).astype(float)
    X[:, :3] = np.where(rng.random((80, 3)) < 0.8, (X[:, 3] > 0)[:, None], X[:, :3])
    softmax = Softmax([3, 4], slope_prior=slope_prior)
    options = {"emission": {"bernoulli": [0, 1, 2]}, "tol": 1e-10, "max_iter": 5000, "random_state": 0, "n_init": 3}
    chain = VBHMM(2, start=softmax, **options).fit(X, lengths=np.ones(80, dtype=int))
    mixture = VBMixture(2, membership=softmax, **options).fit(X)
    assert chain.lower_bound_ == pytest.approx(mixture.lower_bound_, abs=1e-6)


def test_hidden_precisions_of_slopes_are_learned_and_draws_refused_by_name(fitted, tmp_path):
    _, X, _ = fitted
    noise = [table.assign(w=np.random.default_rng(k).integers(0, 3, len(table))) for k, table in enumerate(X)]
    learned = Softmax(["z", "w"], slope_prior="hierarchical")
    model = VBHMM(2, transitions=learned, **ONE).fit(noise)
    assert (np.diff(model.lower_bounds_) > -1e-7).all()
    known = clone(model).set_params(transitions__slope_prior=1.0).fit(noise)
    slopes, of_known = (np.abs(each.parameters_["chain"]["transition_coefficients"]) for each in (model, known))
    assert slopes[..., 1].sum() < of_known[..., 1].sum()  # those of noise are drawn to 0
    assert abs(model.lower_bound_ - known.lower_bound_) < 5
    assert model.log_evidence(noise, kind="laplace").value > model.lower_bound_ - 5
    low, high = model.credible_intervals(method="vb")["chain"]["transition_coefficients"]
    assert (low < high).all()
    with pytest.raises(TypeError, match=r"Set slope_prior=1.0 in Softmax"):
        model.sample_posterior(noise, 10)
    skvbem.save(model, tmp_path / "chain.skvbem")
    again = skvbem.load(tmp_path / "chain.skvbem")
    assert np.concatenate(again.predict_proba(noise)) == pytest.approx(np.concatenate(model.predict_proba(noise)))
