"""Advice in messages about effects: followed, and it works."""

import numpy as np
import pandas as pd
import pytest
from estimators.advice import keywords, message
from sklearn.base import clone

from skvbem import DAGSpace, StructureSearchCV, VBDiscreteDAG, VBNetwork
from skvbem.emissions import Regression

RNG = np.random.default_rng(0)
X = pd.DataFrame({"g": RNG.choice(["u", "v", "w"], 60), "x": RNG.normal(size=60)})
X = X.assign(y=X["x"] + RNG.normal(size=60), h=np.where(X["g"] == "u", "a", RNG.choice(["a", "b"], 60)))
NETWORK = VBNetwork({"y": ["x", "g"], "h": ["g"]}).fit(X)


@pytest.mark.parametrize(
    ("nodes", "options", "part"),
    [
        (("g", "y"), {}, "is a category: name the two states that it changes from and to, as in change="),
        (("g", "h"), {"change": ("u", "v")}, "Name it, as in state="),
    ],
)
def test_what_is_named_is_taken(nodes, options, part):
    text = message(lambda: NETWORK.effect(*nodes, **options), part)
    advised = {name: values[0] for name, values in keywords(text.partition(" Got ")[0]).items()}
    assert advised
    assert len(NETWORK.effect(*nodes, **options, **advised).values) == 1000


@pytest.mark.parametrize(
    ("options", "part", "name"),
    [
        ({"change": (0, 1)}, "holds numbers: its effect is that of one unit more. Leave 'change' out.", "change"),
        ({"state": "on"}, "Leave 'state' out.", "state"),
    ],
)
def test_what_is_left_out_is_not_missed(options, part, name):
    assert part in message(lambda: NETWORK.effect("x", "y", **options), part)
    assert NETWORK.effect("x", "y", **{key: of for key, of in options.items() if key != name}).mean > 0.5


def test_posteriors_have_intervals():
    at_a_point = clone(NETWORK).set_params(method="ml").fit(X)
    part = "This one is a single point, of a fit by 'map' or 'ml'. Fit with method='vb'."
    text = message(lambda: at_a_point.effect("x", "y").interval(), part)
    low, high = at_a_point.set_params(method=keywords(text)["method"][0]).fit(X).effect("x", "y").interval()
    assert low < high


def test_searches_that_keep_fits_have_effects():
    numbers = X[["x", "y"]]
    search = StructureSearchCV(VBNetwork(), DAGSpace(["x", "y"]), random_state=0).fit(numbers)
    text = message(lambda: search.effect("x", "y"), "Search with averaging=True.")
    kept = clone(search).set_params(averaging=keywords(text)["averaging"][0]).fit(numbers)
    text = message(lambda: kept.effect("x", "y", method="adjustment"), "Take method='graphs'.")
    assert kept.effect("x", "y", method=keywords(text)["method"][-1]).mean != 0
    known = keywords(text.replace("Regression(", "Regression( "))
    prior = Regression(prior=known["prior"][0])
    joint = StructureSearchCV(VBNetwork(emission=prior), DAGSpace(["x", "y"]), random_state=0).fit(numbers)
    assert joint.effect("x", "y", method="adjustment").mean != 0
    part = "hold numbers, which have no states. Leave 'change' out."
    assert "'x' and 'y'" in message(lambda: joint.effect("x", "y", change=(0, 1)), part)


def test_networks_of_any_columns_have_effects():
    codes = X[["g", "h"]]
    space = DAGSpace(["g", "h"], forbidden=[("h", "g")])
    tables = StructureSearchCV(VBDiscreteDAG(), space, averaging=True, random_state=0).fit(codes)
    assert "VBNetwork" in message(
        lambda: tables.effect("g", "h"), "has no effects. Search over structures of a VBNetwork."
    )
    search = StructureSearchCV(VBNetwork(), space, averaging=True, random_state=0).fit(codes)
    assert search.effect("g", "h", change=("u", "v"), state="b").mean > 0
