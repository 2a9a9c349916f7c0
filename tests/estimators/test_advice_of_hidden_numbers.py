"""Advice in messages about numbers that rows of networks hide beside their children: followed, and it works."""

import numpy as np
import pandas as pd
import pytest

from skvbem import VBNetwork

RNG = np.random.default_rng(0)
X = pd.DataFrame({"x": RNG.normal(size=40)}).assign(y=lambda table: table["x"] + RNG.normal(size=40))
GAPS = X.assign(x=X["x"].mask(np.arange(40) < 5))


def test_bootstraps_and_sampled_evidences_stand_in_for_the_information():
    says = "Take 'bootstrap' for standard errors, and a sampled evidence such as 'importance' for the score."
    network = VBNetwork({"y": ["x"]}, method="ml", random_state=0).fit(GAPS)
    with pytest.raises(ValueError, match=r"beside their children is not known here\.") as error:
        network.standard_errors(GAPS)
    assert says in str(error.value)
    assert network.bootstrap(GAPS, 3, random_state=0) is not None
    network.set_params(method="vb").fit(GAPS)
    with pytest.raises(ValueError, match=r"beside their children is not known here\."):
        network.log_evidence(GAPS, kind="laplace")
    assert network.log_evidence(GAPS, kind="importance", n_draws=256).value > network.lower_bound_ - 1


def test_sampled_evidences_stand_in_for_exact_ones():
    says = "Scores such as 'ais' approximate it."
    emission = {"gaussian": ["x", "y"]}
    network = VBNetwork({"y": ["x"]}, emission=emission, random_state=0).fit(GAPS)
    with pytest.raises((ValueError, TypeError)) as error:
        network.log_evidence(GAPS, kind="exact")
    assert says in str(error.value) or "importance_gibbs" in str(error.value)
    assert network.log_evidence(GAPS, kind="ais", n_chains=4, n_steps=8).value > network.lower_bound_ - 3
