"""Warnings of columns that may hold what their data types do not say: categories or counts as numbers, ids."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris, load_wine

from skvbem import VBHMM, StructureSearchCV, VBDiscreteDAG, VBMixture, VBNetwork
from skvbem.datasets import load_faithful
from skvbem.emissions import Gaussian
from skvbem.errors import DataWarning

FITS = VBMixture(2, n_init=1, random_state=0), VBHMM(2, n_init=1, random_state=0), VBNetwork(latents=2, n_init=1)


@pytest.fixture(scope="module")
def survey():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "item1": rng.integers(1, 3, 300),
            "weight": rng.normal(70, 10, 300).round(),
            "visits": rng.poisson(3.0, 300),
            "item2": rng.integers(1, 6, 300).astype(float),
            "town": rng.choice(["here", "there"], 300),
        }
    )


def warned(model, X, **given):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, **given)
    return [str(each.message) for each in caught if issubclass(each.category, DataWarning)]


@pytest.mark.parametrize("model", FITS, ids=repr)
def test_one_warning_has_all_columns_and_a_remedy_that_works(survey, model):
    (message,) = warned(model, survey)
    assert message.startswith("Columns 'item1', 'item2' of X hold few whole numbers, as categories are.")
    assert "Column 'visits' of X holds whole numbers, as counts are." in message
    said = re.search(r"emission=(\{.*\});", message)[1]
    emission = {"categorical": ["item1", "item2", "town"], "poisson": ["visits"], "gaussian": ["weight"]}
    assert eval(said) == {name: [*columns] for name, columns in emission.items()} | {
        "categorical": ["item1", "item2", "town"]
    }
    assert warned(type(model)(**model.get_params(deep=False) | {"emission": eval(said)}), survey) == []


def test_columns_of_arrays_are_told_by_their_places(survey):
    rows = survey.drop(columns="town").to_numpy()
    (message,) = warned(VBMixture(2, n_init=1), rows)
    said = eval(re.search(r"emission=(\{.*\});", message)[1])
    assert said == {"categorical": [0, 3], "poisson": [2], "gaussian": [1]}
    assert warned(VBMixture(2, n_init=1, emission=said), rows) == []
    (message,) = warned(VBMixture(2, n_init=1), rows[:, [0, 3]])
    assert "emission='categorical';" in message
    rows[::3, 0] = np.nan  # missing cells are no values
    assert len(warned(VBMixture(2, n_init=1), rows[:, :1])) == 1


@pytest.mark.parametrize("emission", ["gaussian", Gaussian(), [("all", "gaussian", [0])], {"gaussian": [0]}])
def test_what_is_said_is_not_warned_of(emission):
    rows = np.random.default_rng(0).integers(0, 2, size=(100, 1))
    assert warned(VBMixture(2, n_init=1, emission=emission), rows) == []
    assert warned(VBHMM(2, n_init=1, emission=emission), rows) == []


def test_measurements_are_not_warned_of():
    rng = np.random.default_rng(1)
    ordinary = {
        "faithful": load_faithful().data,
        "iris": load_iris().data,
        "wine": load_wine().data,
        "diabetes": load_diabetes().data[:, 2:],  # the second column is the sex
        "rounded": np.column_stack([rng.normal(170, 10, 200), rng.normal(40, 15, 200), rng.normal(15, 6, 200)]).round(),
        "rounded lognormal": rng.lognormal(5, 1, size=(200, 1)).round(),
        "years": rng.integers(1970, 2000, size=(400, 1)),
        "temperatures": rng.normal(0, 8, size=(300, 1)).round(),
        "dice, few rows": rng.integers(1, 7, size=(40, 1)),
        "halves": rng.integers(1, 5, size=(200, 1)) / 2,
        "tiny": rng.integers(0, 2, size=(15, 1)),
    }
    for name, rows in ordinary.items():
        assert warned(VBMixture(1), rows) == [], name


def test_a_search_warns_once():
    rows = np.random.default_rng(0).integers(1, 4, size=(100, 2))
    search = StructureSearchCV(VBMixture(n_init=1), {"n_components": [1, 2, 3]}, scoring="lower_bound", random_state=0)
    with pytest.warns(DataWarning, match="hold few whole numbers") as caught:
        search.fit(rows)
    assert len([each for each in caught if issubclass(each.category, DataWarning)]) == 1


def test_names_of_rows_are_warned_of():
    rng = np.random.default_rng(2)
    rows = pd.DataFrame({"id": [f"p{k}" for k in range(120)], "answer": rng.choice(["yes", "no"], 120)})
    words = "Column 'id' of X has 120 distinct values in 120 rows, each taken as a category"
    for model in (VBDiscreteDAG(latents=2, n_init=1), *FITS):
        (message,) = warned(model, rows)
        assert message.startswith(words)
        assert "leave them out" in message
    rows["other"] = rows["id"]
    (message,) = warned(VBDiscreteDAG(latents=2, n_init=1), rows)
    assert message.startswith("Columns 'id', 'other' of X have 120 distinct values in 120 rows (the first), each")


def test_categories_of_many_rows_or_that_are_declared_are_not_warned_of():
    rng = np.random.default_rng(3)
    names = [f"p{k}" for k in range(60)]
    rows = pd.DataFrame({"town": names, "answer": rng.choice(["yes", "no"], 60)})
    many = pd.concat([rows] * 3, ignore_index=True)
    few = rows[:20]
    for model in (VBDiscreteDAG(latents=2, n_init=1), VBMixture(2, n_init=1)):
        assert warned(model, many) == warned(model, few) == []
        assert len(warned(model, rows)) == 1
        assert warned(type(model)(**model.get_params() | {"categories": {"town": names}}), rows) == []
    assert warned(VBMixture(2, n_init=1, emission="categorical"), rows) == []


@pytest.mark.parametrize("model", FITS, ids=repr)
def test_counts_that_spread_or_have_more_zeros_are_named_so(model):
    rng = np.random.default_rng(5)
    rows = pd.DataFrame(
        {
            "days": rng.negative_binomial(1.0, 1 / 17, 300),
            "catch": np.where(rng.random(300) < 0.5, 0, rng.poisson(6.0, 300)),
            "visits": rng.poisson(3.0, 300),
            "height": rng.normal(170, 10, 300),
        }
    )
    if isinstance(model, VBNetwork):
        rows = rows.drop(columns="days")
    (message,) = warned(model, rows)
    said = eval(re.search(r"emission=(\{.*\});", message)[1])
    expected = {
        "poisson": ["visits"],
        "negative_binomial": ["days"],
        "zero_inflated": ["catch"],
        "gaussian": ["height"],
    }
    expected = {family: columns for family, columns in expected.items() if columns[0] in rows}
    assert said == expected
    assert "'catch' of X holds whole numbers, as counts are with more zeros than Poisson counts." in message
    assert warned(type(model)(**model.get_params(deep=False) | {"emission": said}), rows) == []
