"""A fit warns once of its data, at the user's line, however much there is to say."""

import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from skvbem import (
    DAG,
    VBHMM,
    StructureSearchCV,
    UndirectedGraph,
    VBClassifier,
    VBDiscreteDAG,
    VBFactorAnalysis,
    VBImputer,
    VBLinearDynamicalSystem,
    VBMixture,
    VBNetwork,
)
from skvbem.errors import DataWarning, StructureError, together, warn

RNG = np.random.default_rng(20261127)
N = 60
ODD = pd.DataFrame(
    {
        "count": RNG.poisson(RNG.gamma(1.0, 6.0, N)),
        "one": np.ones(N),
        "code": np.where(RNG.random(N) < 0.1, -999, RNG.normal(size=N)),
        "name": [f"p{k}" for k in range(N)],
        "mark": RNG.choice(["?", "a", "b"], N),
    }
)
NUMBERS, CATEGORIES = ["count", "one", "code"], ["name", "mark"]
FEW = {"random_state": 0, "max_iter": 2, "n_init": 1}
FITS = {
    "VBMixture": lambda: VBMixture(2, **FEW).fit(ODD),
    "VBHMM": lambda: VBHMM(2, **FEW).fit(ODD),
    "VBNetwork": lambda: VBNetwork(latents=2, **FEW).fit(ODD),
    "VBDiscreteDAG": lambda: VBDiscreteDAG(latents=2, **FEW).fit(ODD[CATEGORIES]),
    "VBFactorAnalysis": lambda: VBFactorAnalysis(1, **FEW).fit(ODD[NUMBERS]),
    "VBLinearDynamicalSystem": lambda: VBLinearDynamicalSystem(1, **FEW).fit(ODD[NUMBERS]),
    "VBClassifier": lambda: VBClassifier(max_iter=2).fit(ODD, np.arange(N) % 2),
    "VBImputer": lambda: VBImputer(VBMixture(2, **FEW)).fit(ODD),
}


@pytest.mark.parametrize("name", FITS)
def test_one_warning_of_each_category(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        FITS[name]()
    assert max(Counter(each.category for each in caught).values()) == 1
    assert {each.filename for each in caught} == {__file__}
    (of_data,) = (str(each.message) for each in caught if each.category is DataWarning)
    lines = of_data.split("\n")
    assert len(lines) == len(set(lines)) > 1
    assert ("-999" in of_data) == (name != "VBDiscreteDAG")
    assert ("'?'" in of_data) == (name not in ("VBFactorAnalysis", "VBLinearDynamicalSystem"))


def test_warnings_of_the_data_come_before_a_fit_and_with_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        model = VBMixture(2, **FEW)
        with pytest.raises(DataWarning, match="-999"):
            model.fit(ODD)
        assert not hasattr(model, "weights_")
    with (
        pytest.warns(DataWarning, match="-999|counts are"),
        pytest.raises(StructureError, match="neither a column of X"),
    ):
        VBNetwork([("none", "code")]).fit(ODD[NUMBERS])
    with pytest.warns(UserWarning, match="^one\ntwo$") as caught:
        _warn_together()
    assert len(caught) == 1


def test_a_warning_that_is_an_error_leaves_nothing_waiting():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match=r"^one\ntwo$"):
            _warn_together()
    with pytest.warns(UserWarning, match="^three$"):
        warn("three")


def _warn_together():
    with together(), together():
        for word in ("one", "two", "one"):
            warn(word)


GRAPHS = [(DAG, [("a", "b")]), (UndirectedGraph, UndirectedGraph(["a", "b"], [("a", "b")]))]


@pytest.mark.parametrize(("kind", "graph"), GRAPHS)
def test_columns_that_a_structure_does_not_name_stand_in_the_log(kind, graph, caplog):
    X = pd.DataFrame(RNG.integers(0, 2, size=(40, 4)), columns=list("abcd")).astype(str)
    whole = VBDiscreteDAG(graph, prior="bdeu").fit(X)
    (line,) = caplog.messages
    assert "'c', 'd' of X are not in the 'structure' of VBDiscreteDAG" in line
    drop, name = (line.split("as by ")[k].split(", or ")[0].rstrip(".") for k in (1, 2))
    caplog.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alone = VBDiscreteDAG(graph, prior="bdeu").fit(eval(drop))
        named = VBDiscreteDAG(eval(name, {kind.__name__: kind, "structure": graph}), prior="bdeu").fit(X)
        VBDiscreteDAG([]).fit(X)  # no edge at all is meant so
    assert named.lower_bound_ == whole.lower_bound_ < alone.lower_bound_
    assert not caplog.messages
    VBNetwork([("h", "a"), ("b", "c")], latents={"h": 2}, **FEW | {"max_iter": 100}).fit(X)
    assert "Column 'd' of X is not in the 'structure' of VBNetwork: it is a node" in caplog.messages[0]
    caplog.clear()
    edges = {"structure": [[("a", "b")], [("b", "c")]]}
    StructureSearchCV(VBDiscreteDAG(prior="bdeu"), edges, cv=2, refit=False).fit(X)
    assert not [text for text in caplog.messages if "'structure'" in text]
