"""Advice in messages about effects: followed, and it works."""

import numpy as np
import pandas as pd
import pytest
from estimators.advice import keywords, message
from sklearn.base import clone

from skvbem import VBNetwork

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
