"""Advice in messages about numbers that rows of networks hide beside their children: followed, and it works."""

import numpy as np
import pandas as pd
import pytest

from skvbem import VBNetwork

RNG = np.random.default_rng(0)
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
