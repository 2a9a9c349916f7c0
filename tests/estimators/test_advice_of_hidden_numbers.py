"""Advice in messages about numbers that rows of networks hide beside their children: followed, and it works."""

import numpy as np
import pandas as pd
import pytest

from skvbem import VBDiscreteDAG, VBNetwork
from skvbem.emissions import Regression

RNG = np.random.default_rng(0)
ADVICE = "Turn the edge round, leave it out, or make 'f' a latent with states, as in latents={'f': 2}."
PARTS = (
    "Only measurements depend on hidden numbers. Turn the edge round, leave it out, or make ",
    " a latent with states, ",
)
X = pd.DataFrame({"x": RNG.normal(size=40)}).assign(y=lambda table: table["x"] + RNG.normal(size=40))
GAPS = X.assign(x=X["x"].mask(np.arange(40) < 5))


def test_sampled_evidences_stand_in_for_exact_ones():
    says = "Scores such as 'ais' approximate it."
    emission = {"gaussian": ["x", "y"]}
    network = VBNetwork({"y": ["x"]}, emission=emission, random_state=0).fit(GAPS)
    with pytest.raises((ValueError, TypeError)) as error:
        network.log_evidence(GAPS, kind="exact")
    assert says in str(error.value) or "importance_gibbs" in str(error.value)
    assert network.log_evidence(GAPS, kind="ais", n_chains=4, n_steps=8).value > network.lower_bound_ - 3


def test_hidden_numbers_have_no_children_with_states():
    table = X.assign(c=np.where(X["x"] > 0, "u", "v"))
    emission = {"gaussian": ["x", "y"], "categorical": ["c"]}
    edges = [("f", "x"), ("f", "y"), ("f", "c")]
    with pytest.raises(ValueError) as error:
        VBNetwork(edges, latents={"f": "number"}, emission=emission).fit(table)
    assert str(error.value).endswith(ADVICE)
    assert all(part in str(error.value) for part in PARTS)
    options = {"emission": emission, "random_state": 0}
    bounds = [
        VBNetwork([*edges[:2], ("c", "f")], latents={"f": "number"}, **options).fit(table).lower_bound_,
        VBNetwork(edges[:2], latents={"f": "number"}, **options).fit(table).lower_bound_,
        VBNetwork(edges, latents={"f": 2}, **options).fit(table).lower_bound_,
    ]
    assert np.isfinite(bounds).all()


def test_hidden_numbers_have_means_and_columns_are_filled():
    of_number = VBNetwork(latents={"f": "number"}, random_state=0).fit(X)
    with pytest.raises(ValueError, match="take 'latent_means' for its hidden numbers") as error:
        of_number.predict_proba(X)
    assert "has no latents with states to predict. Declare some, or " in str(error.value)
    assert of_number.latent_means(X).shape == (40, 1)
    network = VBNetwork([("x", "y")], random_state=0).fit(X)
    with pytest.raises(ValueError, match="use 'impute'"):
        network.predict_proba(X)
    assert network.impute(GAPS).notna().all(axis=None)
    with pytest.raises(ValueError) as error:
        VBNetwork(latents=2, random_state=0).fit(X).latent_means(X)
    assert "as in latents={'ability': 'number'}, or take 'predict_proba' for latents with" in str(error.value)
    assert VBNetwork(latents={"ability": "number"}, random_state=0).fit(X).latent_means(X).shape == (40, 1)
    assert VBNetwork(latents=2, random_state=0).fit(X).predict_proba(X).shape == (40, 2)


def test_priors_of_hidden_numbers_are_precisions_of_coefficients():
    says = "as in prior={'f': Regression(coefficient_precision_prior=1.0)}. Got 1.0 instead."
    with pytest.raises(ValueError) as error:
        VBNetwork(latents={"f": "number"}, prior={"f": 1.0}).fit(X)
    assert str(error.value).endswith(says)
    prior = {"f": Regression(coefficient_precision_prior=1.0)}
    assert np.isfinite(VBNetwork(latents={"f": "number"}, prior=prior, random_state=0).fit(X).lower_bound_)


def test_networks_of_categories_have_no_hidden_numbers():
    cells = X.gt(0).astype(str)
    with pytest.raises(ValueError) as error:
        VBDiscreteDAG(latents={"f": "number"}).fit(cells)
    assert str(error.value).endswith("Got 'number' instead. VBNetwork takes 'number' for one that holds a number.")
    assert np.isfinite(VBNetwork(latents={"f": "number"}, random_state=0).fit(X).lower_bound_)


def test_priors_of_measurements_are_those_of_their_emissions():
    says = "Its prior is that of its emission: give 'emission' one with such a prior for "
    sure, options = Regression(coefficient_precision_prior=50.0), {"random_state": 0}
    with pytest.raises(ValueError) as error:
        VBNetwork([("x", "y")], prior={"y": sure}, **options).fit(X)
    assert str(error.value).endswith(says + "['y'].")
    emission = [("y", sure, ["y"]), ("x", "gaussian", ["x"])]
    network, default = VBNetwork([("x", "y")], emission=emission, **options), VBNetwork([("x", "y")], **options)
    slopes = [model.fit(X).parameters_["y"]["coefficients"].item() for model in (network, default)]
    assert slopes[0] < slopes[1] - 0.2
