"""What `VBHMM` is given and cannot use: every message says whose what, what is wrong and what would be right."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from skvbem import VBHMM, VBMixture, blocks_of
from skvbem.durations import Hazards, Stages
from skvbem.emissions import Categorical, Softmax
from skvbem.errors import DataWarning, TooLargeError, UnknownCategoryWarning

X = np.random.default_rng(0).normal(size=(12, 2))
IDS = np.repeat([0, 1, 2], 4)
EMPTY, NARROW = np.empty((0, 2)), np.ones((3, 1))


def message(fit, kind=ValueError):
    with pytest.raises(kind) as caught:
        fit()
    assert "Traceback" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("data", "kind", "part"),
    [
        ([X, EMPTY], ValueError, "Sequence 1 of X is empty (0 rows)"),
        ([X, NARROW], ValueError, "Sequence 0 has 2 and sequence 1 has 1"),
        ([X, X[:, 0]], ValueError, "Sequence 1 of X must be 2-D"),
        ([X, X[None]], ValueError, "Sequence 1 of X must be 2-D, one row for each step. Got 3-D"),
        ([[[1, 2], [3]], [[1, 2]]], ValueError, "Sequence 0 of X must be 2-D, its rows of one length"),
        ([pd.DataFrame(X), X], TypeError, "Sequence 1 of X is no pandas DataFrame"),
        ([pd.DataFrame(X), pd.DataFrame(X, columns=["a", "b"])], ValueError, "the same columns, in the same order"),
        ([sparse.csr_matrix(X)], TypeError, "dense data is required"),
        (np.zeros((2, 3, 2)), ValueError, "give list(X)"),
        (sparse.csr_matrix(X), TypeError, "dense data is required"),
        ([], ValueError, "X holds no sequence"),
        (X[:, 0], ValueError, "Reshape your data"),
        (np.empty((0, 2)), ValueError, "0 sample"),
        ([np.full((3, 1), np.nan)], ValueError, "observed cell"),
        ([np.array([[np.inf]])], ValueError, "holds infinity"),
        ([X.astype(complex)], ValueError, "Complex data not supported"),
    ],
)
def test_sequences_that_are_none(data, kind, part):
    assert part in message(lambda: VBHMM().fit(data), kind)


@pytest.mark.parametrize(
    ("ids", "kind", "part"),
    [
        (IDS[:5], ValueError, "an id for each of the 12 rows"),
        (IDS[:, None], ValueError, "an id for each of the 12 rows of X. Got an array of shape (12, 1)"),
        (np.where(np.arange(12) == 3, np.nan, 0.0), ValueError, "'sequence_id' of row 3 is missing"),
        (np.array(["a", None] * 6, dtype=object), ValueError, "'sequence_id' of row 1 is missing"),
        (pd.array([1, pd.NA] * 6, dtype="Int64"), ValueError, "'sequence_id' of row 1 is missing"),
        (np.array(["2020", "NaT"] * 6, dtype="datetime64[D]"), ValueError, "'sequence_id' of row 1 is missing"),
        (IDS + 1j, TypeError, "must hold numbers, strings or dates"),
    ],
)
def test_ids_that_locate_no_sequences(ids, kind, part):
    assert part in message(lambda: VBHMM().fit(X, sequence_id=ids), kind)


@pytest.mark.parametrize(
    ("lengths", "part"),
    [
        ([5, 5], "'lengths' add up to 10, but X has 12 rows"),
        ([5, 5, 5], "'lengths' add up to 15, but X has 12 rows"),
        ([12, 0], "That of sequence 1 is 0"),
        ([13, -1], "That of sequence 1 is -1"),
        ([6.0, 6.0], "a list of whole numbers"),
        ([[6, 6]], "a list of whole numbers"),
        (12, "a list of whole numbers"),
        (["6", "6"], "a list of whole numbers"),
        ([True] * 12, "a list of whole numbers"),
        ([], "a list of whole numbers"),
    ],
)
def test_lengths_that_locate_no_sequences(lengths, part):
    assert part in message(lambda: VBHMM().fit(X, lengths=lengths))


def test_lengths_in_the_place_of_y():
    """As in hmmlearn's methods, which have no y; any other y is ignored."""
    assert "fit(X, lengths=...)" in message(lambda: VBHMM().fit(X, [4, 8]))
    fit = VBHMM().fit(X, np.arange(12)).fit([X, X], [0, 1])
    assert "fit(X, lengths=...)" in message(lambda: VBHMM().partial_fit(X, [4, 8]))
    assert "score(X, lengths=...)" in message(lambda: fit.score(X, [4, 8]))
    assert fit.score(X, IDS) == fit.score(X)


def test_more_than_one_way_to_locate_sequences():
    assert "not both" in message(lambda: VBHMM().fit(X, sequence_id=IDS, lengths=[12]))
    assert "Leave it out" in message(lambda: VBHMM().fit([X], lengths=[12]))
    assert "Leave it out" in message(lambda: VBHMM().fit([X], sequence_id=IDS))


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"n_components": 0}, "'n_components'"),
        ({"n_components": True}, "'n_components'"),
        ({"n_components": 1.5}, "'n_components'"),
        ({"startprob_prior": -1.0}, "'startprob_prior' parameter of VBHMM must be > 0"),
        ({"startprob_prior": [1.0, 1.0]}, "an array of shape (3,), as there are 3 states"),
        ({"startprob_prior": [0.0, 0.0, 0.0]}, "leaves no state to begin in"),
        ({"startprob_prior": "flat"}, "a number, 'unit' or an array"),
        ({"transmat_prior": np.nan}, "'transmat_prior' parameter of VBHMM must be > 0"),
        ({"transmat_prior": np.ones((2, 2))}, "an array of shape (3, 3), as there are 3 states"),
        ({"transmat_prior": -np.ones((3, 3))}, "finite and >= 0, where 0 rules a state out"),
        ({"transmat_prior": np.diag([1.0, 1.0, 0.0])}, "leave no transition from state 2"),
        ({"transmat_prior": "beal"}, "a number, 'unit' or an array"),
        ({"transmat_mask": np.diag([True, False, True])}, "leave no transition from state 1"),
        ({"transmat_mask": "upper"}, "'transmat_mask' parameter of VBHMM must be None, 'left-to-right'"),
        ({"transmat_mask": -1}, "'transmat_mask' parameter of VBHMM must be None"),
        ({"transmat_mask": True}, "'transmat_mask' parameter of VBHMM must be None"),
        ({"transmat_mask": np.ones((2, 2), bool)}, "a boolean array of shape (3, 3)"),
        ({"transmat_mask": np.full((3, 3), 0.5)}, "a boolean array of shape (3, 3)"),
        ({"sticky": -1.0}, "'sticky'"),
        ({"learn_prior": "yes"}, "'learn_prior'"),
        ({"predictive": "median"}, "'predictive'"),
        ({"n_draws": 0}, "'n_draws'"),
        ({"init": "hierarchical"}, "'init'"),
        ({"init": np.ones((12, 3))}, "responsibilities >= 0 that sum to 1"),
        ({"init": np.ones((11, 3)) / 3}, "a row for each of the 12 rows"),
        ({"random_state": -1}, "'random_state'"),
        ({"max_iter": 0}, "'max_iter'"),
        ({"emission": "student"}, "'emission' parameter of VBHMM"),
        ({"emission": "poisson"}, "counts are whole numbers"),
    ],
)
def test_parameters_that_make_no_model(options, part):
    assert part in message(lambda: VBHMM(**{"n_components": 3, **options}).fit(X))


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"method": "ml"}, "n_components='auto' of VBHMM needs method='vb', whose bound decides. Got method='ml'"),
        ({"init": np.ones((12, 1))}, "n_components='auto' of VBHMM makes its own starts"),
        ({"startprob_prior": [1, 2]}, "n_components='auto' of VBHMM needs one number as 'startprob_prior'"),
        ({"transmat_prior": np.ones((2, 2))}, "n_components='auto' of VBHMM needs one number as 'transmat_prior'"),
        ({"transmat_mask": "upper"}, "a 'transmat_mask' that any number of states can have: None, 'left-to-right'"),
    ],
)
def test_what_makes_no_sense_without_a_number_is_refused(options, part):
    assert part in message(lambda: VBHMM("auto", **options).fit(X))


NO_DURATIONS = "The 'durations' parameter of VBHMM must be 'geometric', or an object of skvbem.durations, such as "
NO_AGE = "The 'max_age' parameter of Hazards must be an int in the range [1, 32768]. Got "
NO_STAGES = "The 'n_stages' parameter of Stages must be an int in the range [1, 32768]. Got "
NO_PAIR = "two concentrations > 0, of leaving and of staying, such as (1.0, 1.0). Got "


@pytest.mark.parametrize(
    ("durations", "kind", "parts"),
    [
        ("hazards", TypeError, [NO_DURATIONS, "Got 'hazards' instead. Did you mean Hazards()?"]),
        ("Geometric", TypeError, [NO_DURATIONS, "Did you mean 'geometric'?"]),
        (Stages, TypeError, [NO_DURATIONS, "Did you mean Stages()?"]),
        (None, TypeError, [NO_DURATIONS, "Got None instead."]),
        (32, TypeError, [NO_DURATIONS, "Got 32 instead."]),
        (np.ones(3), TypeError, [NO_DURATIONS, "Got array([1., 1., 1.]) instead."]),
        ({"max_age": 3}, TypeError, [NO_DURATIONS, "Got {'max_age': 3} instead."]),
        (Hazards(0), ValueError, [f"{NO_AGE}0 instead."]),
        (Hazards(-3), ValueError, [f"{NO_AGE}-3 instead."]),
        (Hazards(2.5), ValueError, [f"{NO_AGE}2.5 instead."]),
        (Hazards(True), ValueError, [f"{NO_AGE}True instead."]),
        (Hazards("32"), ValueError, [f"{NO_AGE}'32' instead."]),
        (Hazards(None), ValueError, [f"{NO_AGE}None instead."]),
        (Hazards(2**15 + 1), ValueError, [f"{NO_AGE}32769 instead."]),
        (Stages(0), ValueError, [f"{NO_STAGES}0 instead."]),
        (Stages(1.0), ValueError, [f"{NO_STAGES}1.0 instead."]),
        (Stages(2**16), ValueError, [f"{NO_STAGES}65536 instead."]),
        (Hazards(4, bins="doublings"), ValueError, ["'bins' parameter of Hazards", "Did you mean 'doubling'?"]),
        (Hazards(4, bins=[1, 2]), ValueError, ["'bins' parameter of Hazards must be a str among", "Got [1, 2]"]),
        (Hazards(4, first="old"), ValueError, ["'first' parameter of Hazards must be a str among", "Got 'old'"]),
        (Hazards(4, prior="flat"), ValueError, ["'prior' parameter of Hazards", f"{NO_PAIR}'flat' instead."]),
        (Stages(2, prior="transition"), ValueError, ["'prior' parameter of Stages", "Did you mean 'transitions'?"]),
        (Hazards(4, prior=1.0), ValueError, [f"{NO_PAIR}1.0 instead."]),
        (Hazards(4, prior=None), ValueError, [f"{NO_PAIR}None instead."]),
        (Hazards(4, prior=(1.0,)), ValueError, [f"{NO_PAIR}(1.0,) instead."]),
        (Hazards(4, prior=(1.0, 0.0)), ValueError, [f"{NO_PAIR}(1.0, 0.0) instead."]),
        (Hazards(4, prior=(1.0, -1.0)), ValueError, [f"{NO_PAIR}(1.0, -1.0) instead."]),
        (Hazards(4, prior=(1.0, np.nan)), ValueError, [f"{NO_PAIR}(1.0, nan) instead."]),
        (Hazards(4, prior=(True, 1.0)), ValueError, [f"{NO_PAIR}(True, 1.0) instead."]),
        (Hazards(4, prior=("a", "b")), ValueError, [f"{NO_PAIR}('a', 'b') instead."]),
    ],
)
@pytest.mark.parametrize("n_components", [1, 2, "auto"])
def test_durations_that_are_none(n_components, durations, kind, parts):
    told = message(lambda: VBHMM(n_components, durations=durations).fit(X), kind)
    assert [part for part in parts if part not in told] == []


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (
            {"transitions": Softmax(["z"])},
            "'transitions' of VBHMM lets covariates drive a chain whose states last geom",
        ),
        ({"start": Softmax(["z"])}, "'start' of VBHMM lets covariates drive a chain whose states last geometrically"),
        ({"learn_prior": True}, "'durations' have concentrations of their own. Leave it False"),
        ({"sticky": 1.0}, "which Hazards(max_age=4) does not take. Leave 'sticky' at 0, or give 'durations' prior="),
        ({"method": "map"}, "so that there is no MAP fit. Take prior='transitions' or a pair of concentrations"),
    ],
)
def test_what_does_not_go_with_durations(options, part):
    frame = pd.DataFrame(X, columns=["x", "z"])
    assert part in message(lambda: VBHMM(2, durations=Hazards(4), **options).fit(frame))


def test_ages_beyond_all_sequences_change_nothing():
    few, many = (VBHMM(2, durations=Hazards(age), n_init=2, random_state=0, tol=1e-10) for age in (16, 2**15))
    assert many.fit(X).lower_bound_ == pytest.approx(few.fit(X).lower_bound_, abs=1e-6)


def test_an_init_of_no_sequence_is_refused():
    assert "a row for each of the 12 rows" in message(lambda: VBHMM(2, init=[]).fit([X[:5], X[5:]]))


def test_what_is_asked_and_cannot_be():
    fit = VBHMM(2, n_init=1, random_state=0).fit(X, sequence_id=IDS)
    before = vars(fit).copy()
    assert "expecting 2 features" in message(lambda: fit.predict([NARROW]))
    assert "'n_steps' parameter of forecast" in message(lambda: fit.forecast(X, n_steps=0))
    assert "forecast(X, n_steps=3)" in message(lambda: fit.forecast(3), TypeError)
    for lengths in (0, [3, 0], 2.5, [], "a"):
        assert "'lengths' parameter of sample" in message(lambda lengths=lengths: fit.sample(lengths))
    assert "at least one non-zero" in message(lambda: fit.fit(X, sequence_id=IDS, sample_weight=np.zeros(12)))
    assert "must be >= 0. Got -1, for row 1" in message(lambda: fit.fit([X, X], sample_weight=[1, -1]))
    assert "2 weights, one for each row of X, or for each sequence" in message(
        lambda: fit.fit([X, X], sample_weight=np.ones(24))
    )
    assert vars(fit) == before or all(vars(fit)[name] is before[name] for name in before)  # a fit that failed left none
    with pytest.raises(TooLargeError, match="max_memory"):
        VBHMM(10**9).fit(X)
    with pytest.raises(TypeError, match="X comes in blocks"):
        VBHMM().fit(blocks_of([X]))


def test_what_is_odd_and_warned_of():
    letters = np.array([["a"], ["b"], ["a"]])
    fit = VBHMM(2, n_init=1, random_state=0).fit([letters, letters])
    with pytest.warns(UnknownCategoryWarning, match="'c'") as caught:
        assert fit.predict_proba([np.array([["a"], ["c"]])])[0].shape == (2, 2)
    assert len(caught) == 1
    with pytest.warns(UnknownCategoryWarning) as caught:
        assert fit.impute(np.array([["a"], ["c"]])).tolist() in ([["a"], ["a"]], [["a"], ["b"]])
    assert len(caught) == 1
    with pytest.raises(ValueError, match="'c'"):
        fit.set_params(handle_unknown="error").fit([letters]).predict([np.array([["c"]])])
    with pytest.warns(DataWarning, match="one row"):
        VBHMM(n_init=1).fit([X[:1]])
    with pytest.warns(UserWarning, match="must stay empty"):
        VBHMM(5, n_init=1).fit([X[:3]])


def test_steps_that_are_impossible_get_an_answer():
    """By maximum likelihood a sequence may have no path: it scores -inf, and its states are those of any step."""
    fit = VBHMM(2, emission="categorical", method="ml", categories={"x0": [0, 1, 2]}, n_init=2, random_state=0)
    fit.fit([np.array([[0], [0], [1], [1]])] * 3)
    back = np.array([[0], [2], [0]])
    assert fit.score_samples([back]) == -np.inf
    with pytest.warns(DataWarning, match="3 of 3 steps have probability 0 under the fit"):
        assert fit.predict_proba([back])[0].sum(axis=1) == pytest.approx(1.0)
    with pytest.warns(DataWarning, match="2 of 3 steps have .* the first at position 1"):
        assert fit.filter([back])[0].sum(axis=1) == pytest.approx(1.0)
    with pytest.warns(DataWarning, match="1 of 2 sequences have .* the first at position 1"):
        assert fit.predict([back[:1], back])[1].shape == (3,)
    with pytest.warns(DataWarning, match="2 of 3 steps have"):
        fit.forecast([back])
    assert fit.score([back, back[:1]], sample_weight=[0, 1]) == pytest.approx(fit.score([back[:1]]))


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (["abc", "cab"], ["Item 0 of X is a string, 'abc'", "reshape"]),
        ([np.arange(3.0), np.arange(4.0)], ["Got rows of 3, 4 cells", "sequences of one column", "reshape"]),
        (np.array([np.arange(3.0), np.arange(4.0)], dtype=object), ["Got rows of 3, 4 cells", "reshape"]),
    ],
)
def test_items_that_are_no_tables_are_told_so(X, words):
    with pytest.raises(ValueError) as caught:
        VBHMM(2).fit(X)
    assert all(word in str(caught.value) for word in words)


def test_ids_that_are_none_are_told_so():
    frame = pd.DataFrame({"id": [0, 0, 1], "x": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match=r"Got 'id'\. Give the ids themselves"):
        VBHMM().fit(frame[["x"]], sequence_id="id")
    ids = np.empty(3, dtype=object)
    ids[:] = ["a", [1], "b"]
    with pytest.raises(TypeError, match="That of row 1 is a list"):
        VBHMM().fit(frame[["x"]], sequence_id=ids)


def test_polars_sequences_do_not_merge_kinds_of_values():
    """As those of pandas: 1 and "1" are never one category; words of any type are."""
    polars = pytest.importorskip("polars")
    words, numbers = polars.DataFrame({"a": ["1", "b"]}), polars.DataFrame({"a": [1, 2]})
    with pytest.raises(ValueError, match="Column 'a' of X mixes kinds of values: Int64 in sequence 1 and String"):
        VBHMM().fit([words, numbers])
    levels = [polars.DataFrame({"a": ["u", *more]}, schema={"a": polars.Enum(["u", *more])}) for more in ("v", "w")]
    assert VBHMM().fit([*levels, words]).categories_["a"].tolist() == ["1", "b", "u", "v", "w"]


@pytest.mark.parametrize("estimator", [VBHMM, VBMixture])
def test_strong_priors_do_not_make_the_mode_seem_to_fall(estimator):
    """The log density of a prior of 1e8 counts is a small difference of numbers of that size."""
    strengths = {"emission": Categorical(concentration_prior=1e8), "n_init": 2}
    if estimator is VBHMM:
        strengths |= {"startprob_prior": 1e8, "transmat_prior": 1e8}
    else:
        strengths |= {"weight_concentration_prior": 1e8}
    rng = np.random.default_rng(0)
    for seed in range(40):
        X = np.concatenate([rng.integers(0, 3, (20, 2)), rng.integers(0, 3, (7, 2))])
        fit = estimator(3, method="map", random_state=seed, **strengths).fit(X)
        assert fit.parameters_["categorical"]["probabilities"] == pytest.approx(1 / 3, abs=1e-6)
