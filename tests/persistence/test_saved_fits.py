"""A fit comes back from a file to the last bit; what cannot come back is refused when it is saved."""

import os
import warnings
from dataclasses import fields, is_dataclass

import numpy as np
import pandas as pd
import pytest
from persistence.fits import CODES, MEMBERSHIPS, NUMBERS, OPTIONS, SETTINGS, THREE, drawn, fitted
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from skvbem import DAG, DAGSpace, Network, StructureSearchCV, VBDiscreteDAG, VBMixture, load, save
from skvbem.emissions import Gaussian
from skvbem.persistence.registry import CLASSES, FUNCTIONS, class_called, function_called

QUESTIONS = ("predict", "predict_proba", "score_samples", "transform", "decode", "impute")


def equal(one, other):
    """Whether two answers are the same to the last bit, of the same types."""
    if isinstance(one, (pd.DataFrame, pd.Series)):
        return one.equals(other) and type(one) is type(other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, np.ndarray) and one.dtype.kind != "O":
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    return str(one) == str(other) and type(one) is type(other)


def answers(estimator, X, where):
    """What a fit says of rows, by method; a score that fits anew shows that the plan of the fit is whole."""
    found, evidence = {}, "bic" if getattr(estimator, "inference", "exact") == "exact" else "lower_bound"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in QUESTIONS:
            try:
                found[name] = getattr(estimator, name)(X, **where)
            except (AttributeError, ValueError) as error:  # a network without latents predicts none
                found[name] = str(error)
        if hasattr(estimator, "sample"):
            found["sample"] = drawn(estimator, X, where)
        if estimator.method == "vb":
            found["evidence"] = estimator.log_evidence(X, kind=evidence, **where).value
    return found


def saved(tmp_path, estimator):
    path = tmp_path / "fit.skvbem"
    save(estimator, path)
    return path


@pytest.mark.parametrize("name", SETTINGS)
def test_a_fit_comes_back_to_the_last_bit(name, tmp_path):
    estimator, X, where = fitted(name)
    again = load(saved(tmp_path, estimator))
    assert type(again) is type(estimator)
    assert vars(again).keys() == vars(estimator).keys()
    public = [key for key in vars(estimator) if not key.startswith("_")]
    for key in public:
        assert equal(getattr(again, key), getattr(estimator, key)) or isinstance(getattr(again, key), BaseEstimator), (
            key
        )
    assert equal(answers(again, X, where), answers(estimator, X, where))
    save(again, tmp_path / "again.skvbem")
    assert (tmp_path / "again.skvbem").read_bytes() == (tmp_path / "fit.skvbem").read_bytes()


@pytest.mark.parametrize("name", MEMBERSHIPS)
def test_a_fit_with_covariates_comes_back(name, tmp_path):
    estimator, X, where = fitted(name)
    again = load(saved(tmp_path, estimator))
    one, other = answers(estimator, X, where), answers(again, X, where)
    assert one.pop("evidence", 0.0) == pytest.approx(other.pop("evidence", 0.0), abs=1e-9)
    assert equal(one, other)
    (group,) = {"chain", "membership", "h"} & estimator.parameters_.keys()
    assert equal(again.parameters_[group], estimator.parameters_[group])


def test_a_network_comes_back(tmp_path):
    states = {"rain": ("no", "yes"), "wet": (False, True, 2, 0.5)}
    tables = {"rain": [0.8, 0.2], "wet": [[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1]]}
    network = Network(DAG.from_string("[rain][wet|rain]"), states, tables)
    again = load(saved(tmp_path, network))
    assert again == network
    assert [[type(state) for state in again.states[node]] for node in states] == [[str] * 2, [bool, bool, int, float]]


def test_what_goes_on_after_a_fit_goes_on_after_a_file(tmp_path):
    batch = VBMixture(2, **OPTIONS).partial_fit(NUMBERS[:20])
    again = load(saved(tmp_path, batch))
    assert again.partial_fit(NUMBERS[20:]).means_.tobytes() == batch.partial_fit(NUMBERS[20:]).means_.tobytes()
    warm = VBMixture(2, warm_start=True, **OPTIONS).fit(NUMBERS)
    again = load(saved(tmp_path, warm))
    assert again.fit(NUMBERS + 0.1).lower_bound_ == warm.fit(NUMBERS + 0.1).lower_bound_


@pytest.mark.parametrize("missing", [None, pd.NA, "?", -1.0, ["?", "-"], np.int64(-1), np.float32(-1)], ids=repr)
def test_markers_of_missing_cells_come_back(missing, tmp_path):
    X = np.array([["a", "b"], ["b", "b"], ["a", "a"]] * 3, dtype=object)
    fit = VBDiscreteDAG(missing_values=missing, n_init=1, random_state=0).fit(X)
    again = load(saved(tmp_path, fit))
    assert again.missing_values is missing or again.missing_values == missing
    assert type(again.missing_values) is type(missing)
    assert again.lower_bound_ == fit.lower_bound_


def test_forms_and_defaults_are_themselves(tmp_path):
    fit = VBDiscreteDAG(THREE, latents={"h": 2}, method="map", map_basis="probability", prior=2.0, **OPTIONS).fit(CODES)
    again = load(saved(tmp_path, fit))
    assert again.missing_values is np.nan
    assert again.log_evidence(CODES, kind="bic").form == fit.log_evidence(CODES, kind="bic").form
    assert again.fitted.form is fit.fitted.form


@pytest.mark.parametrize(
    "missing",
    [-np.inf, np.inf, [np.inf, np.nan], np.array([["a", None, "b"], [2, np.inf, 1.5]], dtype=object)],
    ids=repr,
)
def test_parameters_that_json_has_no_number_for_come_back(missing, tmp_path):
    """Numbers that are not finite, and arrays of objects with their shape."""
    fit = VBDiscreteDAG(THREE, latents={"h": 2}, **OPTIONS).fit(CODES).set_params(missing_values=missing)
    assert equal(load(saved(tmp_path, fit)).missing_values, missing)
    shape = np.shape(missing)
    assert np.shape(load(saved(tmp_path, fit)).missing_values) == shape


# What cannot be saved -------------------------------------------------------------------------------------------------


class FromOutside(Gaussian):
    pass


def test_what_is_no_fit_of_ours_is_refused_by_name(tmp_path):
    fit, X, _ = fitted("dag of arrays, vb")
    search = StructureSearchCV(VBDiscreteDAG(n_init=1, random_state=0), DAGSpace(["x0", "x1"])).fit(X[:, :2])
    for other, hint in (
        (search, "Got StructureSearchCV. Save its best_estimator_."),
        (make_pipeline(fit), "Got Pipeline. Save its steps."),
        ({"a": 1}, "Got dict. Other objects are kept by pickle or joblib, whose files can run code."),
        (type("VBMixture", (BaseEstimator,), {})(), "Got VBMixture."),
    ):
        with pytest.raises(TypeError, match=f"^save takes a fitted VBDiscreteDAG, .*{hint}"):
            save(other, tmp_path / "fit.skvbem")
    with pytest.raises(NotFittedError):
        save(VBMixture(), tmp_path / "fit.skvbem")
    assert not [*tmp_path.iterdir()]
    assert load(saved(tmp_path, search.best_estimator_)).lower_bound_ == search.best_estimator_.lower_bound_


def test_what_is_no_data_is_refused_with_its_place(tmp_path):
    import networkx as nx

    graph = VBDiscreteDAG(nx.DiGraph([("x0", "x1")]), n_init=1, random_state=0).fit(CODES)
    with pytest.raises(
        TypeError, match=r"cannot hold this VBDiscreteDAG: VBDiscreteDAG.structure is an object of the c"
    ):
        save(graph, tmp_path / "fit.skvbem")
    outside = VBMixture(2, emission=FromOutside(), **OPTIONS).fit(NUMBERS)
    with pytest.raises(TypeError, match=r"VBMixture\.\S+ is an object of the class \S*FromOutside\..*pickle or joblib"):
        save(outside, tmp_path / "fit.skvbem")
    fit = VBMixture(2, **OPTIONS).fit(NUMBERS)
    fit.note = "mine"
    with pytest.raises(TypeError, match=r"VBMixture\.note is no parameter and nothing that fit leaves"):
        save(fit, tmp_path / "fit.skvbem")


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path, monkeypatch):
    fit, _, _ = fitted("mixture, vb")
    path = saved(tmp_path, fit)
    before = path.read_bytes()

    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="No space left"):
        save(fitted("hmm, vb")[0], path)
    assert path.read_bytes() == before
    assert [*tmp_path.iterdir()] == [path]


# The format -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "bound"),
    [("network", "-0x1.72447ae529c2dp+5"), ("mixture", "-0x1.72f3c4b123689p+6")],
)
def test_files_of_version_1_are_read(name, bound):
    """They were written once and stay as they are: a change of the classes that they are made of must read them."""
    path = os.path.join(os.path.dirname(__file__), "..", "data", f"saved_{name}_version_1.skvbem")
    fit = load(path)
    assert fit.lower_bound_.hex() == bound
    X = pd.DataFrame({"a": ["u", "v", None], "b": [True, False, True], "size": [0.5, np.nan, 3.0]})
    X = X[["a", "b"]] if name == "network" else X
    assert np.isfinite(fit.score_samples(X)).all()


def test_every_class_in_the_registry_is_there():
    for name in CLASSES:
        kind = class_called(name)
        assert kind.type.__module__ == CLASSES[name][0]
        if is_dataclass(kind.type):
            assert [field.name for field in fields(kind.type) if field.init] == [*kind.parts]
    assert all(callable(function_called(name)) for name in FUNCTIONS)


def test_models_are_made_of_the_parts_that_the_registry_names():
    for name in ("dag, vb", "network, vb", "mixture, vb", "hmm, vb", "system, vb"):
        model = fitted(name)[0].fitted.model
        assert {*class_called(type(model).__name__).parts} <= {*vars(model)} | {*dir(model)}
        derived = {*vars(model)} - {*class_called(type(model).__name__).parts}
        assert all(hasattr(type(model), name) for name in derived), "an attribute that files do not hold"
