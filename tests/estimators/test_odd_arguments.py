"""Arguments that nobody means: every error names the argument, and what would be right."""

import numpy as np
import pandas as pd
import pytest

from skvbem import Network, VBClassifier, VBDiscreteDAG, VBMixture, load, save, write_bif

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
CODES = pd.DataFrame(RNG.integers(0, 2, size=(40, 2)), columns=list("ab"))


@pytest.fixture(scope="module")
def mixture():
    return VBMixture(1).fit(X)


@pytest.fixture(scope="module")
def dag():
    return VBDiscreteDAG("[a][b|a]").fit(CODES)


@pytest.mark.parametrize("n_jobs", ["x", [1], 1e300, -np.inf, 0, True])
def test_numbers_of_jobs(mixture, n_jobs):
    with pytest.raises(ValueError, match="The 'n_jobs' parameter of bootstrap must be None or an int other than 0"):
        mixture.bootstrap(X, n_draws=2, n_jobs=n_jobs)


def test_files(mixture, dag):
    for path in (["a"], None, 3):
        with pytest.raises(TypeError, match="The 'path' of load must be a str or a path"):
            load(path)
        with pytest.raises(TypeError, match="The 'path' of save must be a str or a path"):
            save(mixture, path)
    for size in ("x", 2**63, 0, None):
        with pytest.raises(ValueError, match="The 'max_bytes' parameter of load"):
            load("there_is_none", max_bytes=size)
    with pytest.raises(TypeError, match=r"write_bif takes a Network first. Got a str"):
        write_bif("x")
    with pytest.raises(TypeError, match=r"Got a VBDiscreteDAG instead. Its network is 'network_'"):
        write_bif(dag)


def test_networks(dag):
    with pytest.raises(TypeError, match=r"states of a Network must be a mapping of nodes. Got 2"):
        Network(2, 2, 2)
    with pytest.raises(TypeError, match=r"from_networkx takes a networkx.DiGraph. Got a list"):
        Network.from_networkx([1])
    with pytest.raises(ValueError, match=r"array\(3\) is not a node of this network"):
        dag.query(np.array(3))
    with pytest.raises(ValueError, match=r"array\(\[1, 2, 3\]\) is not a state of 'a', whose states are 0, 1"):
        dag.query("b", do={"a": np.array([1, 2, 3])})


def test_cells_and_parameters():
    with pytest.raises(ValueError, match="The 'missing_values' parameter of VBMixture must be a scalar or a list"):
        VBMixture(1, missing_values=np.array(3)).fit(X)
    with pytest.raises(TypeError, match="Column 'a' of X holds array"):
        VBMixture(1).fit(pd.DataFrame({"a": [np.ones(2)] * 5 + [1.0] * 5}))
    with pytest.raises(TypeError, match="The 'emission' parameter of VBClassifier must be 'auto'"):
        VBClassifier(emission=2).fit(CODES[["a"]], CODES["b"])
