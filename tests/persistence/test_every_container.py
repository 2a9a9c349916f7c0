"""Every estimator, by every method, fitted to every kind of table, comes back from a file to the last bit."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from persistence.fits import CODES, NUMBERS, OPTIONS, THREE
from sklearn.base import BaseEstimator

from skvbem import (
    VBHMM,
    VBClassifier,
    VBDiscreteDAG,
    VBFactorAnalysis,
    VBImputer,
    VBLinearDynamicalSystem,
    VBMixture,
    VBNetwork,
    load,
    save,
)
from skvbem.errors import SavedFitError

NAMES = ["x0", "x1", "x2"]
CLASS = np.array(["sick", "well"])[np.arange(len(NUMBERS)) % 2]
MADE = {
    "dag": lambda method: VBDiscreteDAG(THREE, latents={"h": 2}, method=method, **OPTIONS),
    "network": lambda method: VBNetwork(THREE, latents={"h": 2}, method=method, **OPTIONS),
    "mixture": lambda method: VBMixture(2, method=method, **OPTIONS),
    "hmm": lambda method: VBHMM(2, method=method, **OPTIONS),
    "factors": lambda method: VBFactorAnalysis(1, method=method, **OPTIONS),
    "system": lambda method: VBLinearDynamicalSystem(1, method=method, **OPTIONS),
    "classifier": lambda method: VBClassifier(method=method, random_state=0),
    "imputer": lambda method: VBImputer(VBMixture(2, method=method, **OPTIONS)),
}
CONTAINERS = {
    "list": lambda X: X.tolist(),
    "array": lambda X: X,
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES, nan_to_null=True),
}


def answer(fit, X):
    said = fit.predict_proba(X) if hasattr(fit, "predict_proba") else fit.transform(X)
    return np.asarray(said[0] if isinstance(said, tuple) else said, dtype=float)


@pytest.mark.parametrize("method", ["vb", "map", "ml"])
@pytest.mark.parametrize("name", MADE)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_fit_of_any_table_comes_back(name, method, tmp_path):
    X = CODES if name == "dag" else NUMBERS
    path, copy = tmp_path / "fit.skvbem", tmp_path / "copy.skvbem"
    for held_in in CONTAINERS.values():
        table = held_in(X)
        fit = MADE[name](method).fit(table, CLASS if name == "classifier" else None)
        save(fit, path)
        again = load(path)
        assert type(again) is type(fit)
        assert vars(again).keys() == vars(fit).keys()
        assert answer(again, table).tobytes() == answer(fit, table).tobytes()
        save(again, copy)
        assert copy.read_bytes() == path.read_bytes()


def test_a_step_without_a_fitted_model_is_refused(tmp_path):
    path = tmp_path / "fit.skvbem"
    for wrong in (VBMixture(2), None, CLASS):
        step = VBImputer(VBMixture(2, **OPTIONS)).fit(NUMBERS)
        step.estimator_ = wrong
        save(step, path)
        with pytest.raises(SavedFitError, match=r"cannot be loaded: .*not fitted"):
            load(path)


def test_a_step_around_an_estimator_of_others_is_refused_by_name(tmp_path):
    class Mean(BaseEstimator):
        """Fills by nothing."""

    step = VBImputer(VBMixture(2, **OPTIONS)).fit(NUMBERS)
    step.estimator_ = Mean()
    with pytest.raises(TypeError, match=r"cannot hold this VBImputer: VBImputer\.estimator_ is an object of the class"):
        save(step, tmp_path / "fit.skvbem")
