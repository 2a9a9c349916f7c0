"""The posterior over numbers of states in use, beside its definition."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skvbem import StructureSearchCV, VBDiscreteDAG, VBMixture

ROWS = np.array([[0, 0], [0, 0], [1, 1], [1, 1], [1, 0]])


def both_in_use(X, rng, n=100_000):
    """P(both of two classes expect a row or more | y), under uniform priors, by weighted draws from these."""
    weight, tables = rng.random((n, 1)), rng.random((n, 2, 2))  # by draw: of the first class; class, item
    likelihood = np.where(X[:, None, None] == 1, tables, 1 - tables).prod(axis=-1)  # row, draw, class
    joint = likelihood * np.concatenate([weight, 1 - weight], axis=1)
    of_rows = joint.sum(axis=-1)
    mass = (joint / of_rows[..., None]).sum(axis=0)
    of_draws = of_rows.prod(axis=0)
    return float(of_draws @ (mass >= 1).all(axis=1) / of_draws.sum())


@pytest.mark.parametrize("weighted", [False, True])
def test_states_in_use_are_those_of_the_definition(weighted):
    model = VBDiscreteDAG(categories=[[0, 1]] * 2, prior=1.0)
    X, params = (ROWS[::2], {"sample_weight": [2, 2, 1]}) if weighted else (ROWS, {})
    search = StructureSearchCV(model, {"latents": [1, 2]}, random_state=0).fit(X, **params)
    table = search.states_in_use(X, 300, **params)
    expected = search.structure_posterior_[1] * both_in_use(ROWS, np.random.default_rng(0))
    assert table["n_in_use":2] == pytest.approx(expected, abs=0.06)
    assert table.values.sum() == pytest.approx(1)
    assert table.values[1] < 0.9 * search.structure_posterior_[1]  # a second class may be empty


def test_chains_and_mixtures_of_several_states_have_them():
    X = np.r_[np.random.default_rng(0).normal(size=(20, 1)), np.random.default_rng(1).normal(20, 1, size=(20, 1))]
    search = StructureSearchCV(VBMixture(), {"n_components": [2, 3]}, random_state=0).fit(X)
    table = search.states_in_use(X, 100)
    assert table.values[0] == 0
    assert 0 <= table.values[2] <= search.structure_posterior_[1] + 1e-9


def test_what_has_no_number_of_states_is_refused():
    X = np.random.default_rng(0).integers(0, 2, size=(20, 3))
    two = {"structure": [("a", "x0"), ("a", "x1"), ("b", "x1"), ("b", "x2")], "latents": {"a": 2, "b": 2}}
    several = StructureSearchCV(VBDiscreteDAG(categories=[[0, 1]] * 3), [two], refit=False, random_state=0).fit(X)
    with pytest.raises(ValueError, match="one hidden variable, and a candidate has the latents 'a', 'b'"):
        several.states_in_use(X)
    with pytest.raises(AttributeError, match="structure_posterior_"):
        StructureSearchCV(VBDiscreteDAG(), {"latents": [1, 2]}, scoring="bic").fit(X).states_in_use(X)


def test_other_data_than_those_of_the_search_and_pipelines_are_refused():
    X = np.random.default_rng(0).normal(size=(20, 2))
    search = StructureSearchCV(VBMixture(n_init=1), {"n_components": [1, 2]}, random_state=0).fit(X)
    for other in (X[:, :1], X + 1, X[:10]):
        with pytest.raises(ValueError, match=r"X .*is other data|1 features"):
            search.states_in_use(other)
    steps = make_pipeline(StandardScaler(), VBMixture(n_init=1))
    search = StructureSearchCV(steps, {"vbmixture__n_components": [1, 2]}, random_state=0).fit(X)
    with pytest.raises(TypeError, match="Pipeline, which this StructureSearchCV searches over, has none"):
        search.states_in_use(X)
