"""What cannot occur: cells that are filled together, joint modes, and the warnings of impossible rows."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest

from skvbem import VBHMM, VBDiscreteDAG, VBImputer, VBMixture, VBNetwork
from skvbem.errors import DataWarning

A = np.repeat([0, 1, 2], [400, 300, 300])
EXCLUSIVE = pd.DataFrame({"A": A, "B": (A > 0).astype(int), "C": (A > 0).astype(int)})
EMPTY = pd.DataFrame({"A": [np.nan], "B": [np.nan], "C": [np.nan]})
GRAPH = "[A][B|A][C|A]"


def networks():
    for method in ("ml", "map", "vb"):
        yield VBDiscreteDAG(GRAPH, method=method, random_state=0)
        yield VBNetwork(GRAPH, method=method, emission="categorical", random_state=0)


def with_zeros(seed):
    """A network without zeros in no table, of three columns of three states, and all of its rows."""
    rng = np.random.default_rng(seed)
    rows = np.array(list(itertools.product(range(3), repeat=3)))
    seen = rows[rng.random(27) < 0.4]
    X = pd.DataFrame(np.repeat(seen, rng.integers(1, 9, len(seen)), axis=0), columns=list("abc"))
    model = VBDiscreteDAG("[a][b|a][c|a:b]", method="ml", categories=dict.fromkeys("abc", range(3)), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X), pd.DataFrame(rows, columns=list("abc"))


@pytest.mark.parametrize("seed", range(8))
def test_rows_filled_together_are_the_best_by_enumeration(seed):
    model, complete = with_zeros(seed)
    every = list(itertools.product([np.nan, 0, 1, 2], repeat=3))
    gappy = pd.DataFrame(every, columns=list("abc"))
    density = np.exp(model.score_samples(complete))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        filled = {fill: model.impute(gappy, fill=fill).to_numpy() for fill in ("cells", "joint", "auto")}
    for k, row in enumerate(every):
        fits = np.all(np.isnan(row) | (complete.to_numpy() == row), axis=1)
        if density[fits].sum() < 1e-12:
            continue
        of = {fill: density[(complete.to_numpy() == filled[fill][k]).all(axis=1)][0] for fill in filled}
        assert of["joint"] == pytest.approx(density[fits].max())
        assert of["auto"] > 0
        expected = "cells" if of["cells"] > 1e-4 * of["joint"] else "joint"
        assert filled["auto"][k].tolist() == filled[expected][k].tolist()
        for j in range(3):
            marginal = [density[fits & (complete.to_numpy()[:, j] == state)].sum() for state in range(3)]
            assert marginal[int(filled["cells"][k][j])] == pytest.approx(max(marginal))


@pytest.mark.parametrize("model", [*networks()], ids=lambda model: f"{type(model).__name__} {model.method}")
def test_what_excludes_itself(model):
    model.fit(EXCLUSIVE)
    with pytest.warns(DataWarning, match="position 0.*fill='cells'"):
        assert np.asarray(model.impute(EMPTY)).tolist() == [[0, 0, 0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.asarray(model.impute(EMPTY, fill="cells")).tolist() == [[0, 1, 1]]
        assert np.asarray(model.impute(EMPTY, fill="joint")).tolist() == [[0, 0, 0]]
        assert np.asarray(model.decode(EMPTY)).tolist() == [[0, 0, 0]]
        assert np.asarray(VBImputer(model, fill="joint").fit(EXCLUSIVE).transform(EMPTY)).tolist() == [[0, 0, 0]]
    with pytest.raises(ValueError, match=r"'fill' parameter of impute.*Did you mean 'joint'"):
        model.impute(EMPTY, fill="joins")


def test_numbers_beside_categories_that_are_filled_together():
    rng = np.random.default_rng(0)
    X = EXCLUSIVE.assign(size=np.where(A == 0, 0.0, 50.0) + rng.normal(size=1000))
    empty = EMPTY.assign(size=np.nan)
    gaussian = {"gaussian": ["size"], "categorical": ["A", "B", "C"]}
    network = VBNetwork("[A][B|A][C|A][size|B]", emission=gaussian, random_state=0).fit(X)
    mixture = VBMixture(3, emission=gaussian, random_state=0, n_init=3).fit(X)
    for model in (network, mixture):
        filled = model.impute(empty, fill="joint")
        assert filled[["A", "B", "C"]].to_numpy().tolist() == [[0, 0, 0]]
        assert abs(filled["size"][0]) < 1


def two_components():
    """Components that make 'a' and 'a', or 'b' and one of 'c' and 'd'; 'b' is the most probable, and so is 'a'."""
    X = pd.DataFrame({"x": ["a"] * 4 + ["b"] * 6, "y": ["a"] * 4 + ["c"] * 3 + ["d"] * 3})
    return VBMixture(2, method="ml", random_state=0).fit(X), pd.DataFrame({"x": [None, "a"], "y": [None, None]})


def test_components_that_exclude_each_other():
    model, gaps = two_components()
    assert model.impute(gaps, fill="cells").to_numpy().tolist() == [["b", "a"], ["a", "a"]]
    with pytest.warns(DataWarning, match="1 of 2 rows, the first at position 0"):
        filled = model.impute(gaps)
    assert filled.to_numpy().tolist() == [["a", "a"], ["a", "a"]]
    assert np.isfinite(model.score_samples(filled)).all()


def test_steps_that_exclude_each_other():
    """Paths of letters a a (0.4), b c and b d (0.3 each): cell by cell b is the best first one, and a the second."""
    change = np.zeros((5, 5))
    change[[0, 1, 2, 3, 4], [0, 3, 4, 3, 4]] = 1
    letters = {"probabilities": np.eye(4)[[0, 1, 1, 2, 3]]}
    of_columns = {"emission": "categorical", "categories": {"x0": list("abcd")}}
    model = VBHMM.from_parameters([0.4, 0.3, 0.3, 0, 0], change, letters, **of_columns)
    gaps = [np.array([[None], [None]], dtype=object), np.array([["b"], [None]], dtype=object)]
    assert [each.ravel().tolist() for each in model.impute(gaps, fill="cells")] == [["b", "a"], ["b", "c"]]
    with pytest.warns(DataWarning, match="1 of 2 sequences, the first at position 0"):
        filled = model.impute(gaps)
    assert [each.ravel().tolist() for each in filled] == [["a", "a"], ["b", "c"]]
    assert np.isfinite(model.score_samples(filled)).all()
    together = model.impute(gaps, fill="joint")
    assert [each.ravel().tolist() for each in together] == [["a", "a"], ["b", "c"]]


def test_impossible_rows_are_named_and_decoded_as_empty_ones():
    network = VBDiscreteDAG(GRAPH, method="ml").fit(EXCLUSIVE).network_
    rows = {"B": [1, 0], "C": [0, 0]}
    with pytest.warns(DataWarning, match="1 of 2 rows have probability 0.*position 0"):
        modes = network.decode(rows)
    assert [modes["A"].tolist(), sorted(modes)] == [[0, 0], ["A"]]
    with pytest.warns(DataWarning, match="position 0"):
        network.predict_proba(rows)
    mixed = VBNetwork(GRAPH, method="ml", emission="categorical").fit(EXCLUSIVE)
    gaps = pd.DataFrame({"A": [np.nan], "B": [1], "C": [0]})
    with pytest.warns(DataWarning, match="have probability 0"):
        assert np.asarray(mixed.decode(gaps)).tolist() == [[0, 1, 0]]
