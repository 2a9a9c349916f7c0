"""Rows that are elsewhere: the fit of rows in memory, however they are divided, whoever is done first."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from blocks.engines import Losing, Shuffled, cut, elsewhere
from sklearn.base import clone

from skvbem import VBMixture, blocks_of
from skvbem.blocks import map_reduce
from skvbem.emissions import Gaussian
from skvbem.errors import LostBlockError

approx = pytest.approx
N = 300


def tables(rng):
    kind = rng.integers(0, 3, N)
    return {
        "full": rng.normal(size=(N, 3)) @ rng.normal(size=(3, 3)) + 6 * kind[:, None],
        "diag": rng.normal(size=(N, 2)) + 6 * kind[:, None],
        "categorical": np.where(rng.random((N, 5)) < 0.2, rng.integers(0, 4, (N, 5)), kind[:, None]).astype(float),
        "poisson": rng.poisson(1 + 6 * kind[:, None], size=(N, 3)).astype(float),
    }


def mixture(family, **params):
    if family in ("full", "diag"):
        params = {"emission": "gaussian", "covariance_type": family, **params}
    else:
        params = {"emission": family, **params}
    return VBMixture(3, **{"n_init": 2, "tol": 1e-9, "random_state": 0, **params})


def published(model):
    """All numbers of a fit, for comparisons of bits."""
    return pickle.dumps([model.lower_bounds_, model._fitted_.statistics, model.restarts_.bounds])


@pytest.mark.parametrize("family", ["full", "diag", "categorical", "poisson"])
@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_the_bound_is_that_of_rows_in_memory_for_any_division(family, missing, rng):
    X = tables(rng)[family]
    X = np.where(rng.random(X.shape) < missing, np.nan, X)
    whole = mixture(family).fit(X)
    for _ in range(3):
        ends = np.sort(rng.integers(0, N, rng.integers(1, 12))).tolist()  # empty parts may be among them
        model = mixture(family).fit(elsewhere(X, ends))
        assert model.lower_bound_ == approx(whole.lower_bound_, rel=1e-9)
        assert model.restarts_.bounds == approx(whole.restarts_.bounds, rel=1e-9)
        assert model.n_samples_ == whole.n_samples_
        assert model._run_.fingerprint == whole._run_.fingerprint


def test_the_same_division_has_the_same_bits_in_any_order(rng):
    X, ends = tables(rng)["full"], [10, 100, 110, 200, 250]
    fits = {published(mixture("full").fit(elsewhere(X, ends, Shuffled(seed)))) for seed in range(4)}
    assert fits == {published(mixture("full").fit(blocks_of(cut(X, ends))))}


@pytest.mark.parametrize("form", ["map", "ml"])
def test_other_forms_of_q(form, rng):
    X = tables(rng)["categorical"]
    one, other = (mixture("categorical", method=form).fit(data) for data in (X, elsewhere(X, [100, 120])))
    objective = {"map": "log_posterior_", "ml": "log_likelihood_"}[form]
    assert getattr(other, objective) == approx(getattr(one, objective), rel=1e-9)


def test_weights(rng):
    X, weight, ends = tables(rng)["diag"], rng.uniform(0, 2, N), [50, 60, 200]
    weight[50:60] = 0.0  # a part that does not count
    whole = mixture("diag").fit(X, sample_weight=weight)
    parts = elsewhere(X, ends)
    for given in (weight, elsewhere(weight, ends, parts.engine), blocks_of(cut(weight, ends))):
        model = mixture("diag").fit(parts, sample_weight=given)
        assert model.lower_bound_ == approx(whole.lower_bound_, rel=1e-9)
        assert model.bic(parts, sample_weight=given) == approx(whole.bic(X, sample_weight=weight), rel=1e-9)
    twice = mixture("diag").fit(parts, sample_weight=2.0)
    assert twice.lower_bound_ == approx(mixture("diag").fit(X, sample_weight=2.0).lower_bound_, rel=1e-9)


def test_frames_of_mixed_columns(rng):
    kind = rng.integers(0, 2, N)
    X = pd.DataFrame(
        {
            "height": rng.normal(170 + 15 * kind, 5),
            "blood": np.where(rng.random(N) < 0.1, "AB", np.where(kind, "A", "0")),
            "smoker": np.where(rng.random(N) < 0.2 + 0.5 * kind, "yes", "no"),
        }
    )
    X.loc[:150, "blood"] = X.loc[:150, "blood"].replace("AB", "A")  # a category of later parts alone
    X.loc[160:200, "smoker"] = None
    X.loc[::9, "height"] = np.nan
    model = VBMixture(2, n_init=1, tol=1e-9, random_state=0)
    whole, other = clone(model).fit(X), clone(model).fit(elsewhere(X, [150, 161, 201]))
    assert other.lower_bound_ == approx(whole.lower_bound_, rel=1e-9)
    assert other.feature_names_in_.tolist() == X.columns.tolist()
    assert other.groups_ == whole.groups_
    assert other.impute(X).notna().all(axis=None)


def test_scores_that_pass_over_the_rows(rng):
    X = tables(rng)["full"]
    known = mixture(Gaussian(covariance_prior=None, mean_precision_prior=1.0), n_init=1)
    parts = elsewhere(X, [50, 100])
    whole, model = clone(known).fit(X), clone(known).fit(parts)
    for kind in ("lower_bound", "bic", "cheeseman_stutz"):
        assert model.log_evidence(parts, kind=kind).value == approx(whole.log_evidence(X, kind=kind).value, rel=1e-8)
    with pytest.raises(ValueError, match="'ais' looks at rows in memory; X comes in blocks"):
        model.log_evidence(parts, kind="ais")
    with pytest.raises(ValueError, match="is other data"):
        model.log_evidence(elsewhere(X[:200], [50, 100]), kind="bic")


def test_statistics_come_back_and_rows_do_not(rng):
    """Of a step as much whatever the rows; samples that starts look at are small beside them."""
    for n in (20_000, 200_000):
        X = rng.normal(size=(n, 10)) + 6 * rng.integers(0, 2, size=(n, 1))
        parts = elsewhere(X, [n // 4, n // 2])
        VBMixture(2, n_init=1, random_state=0, max_iter=5, tol=1.0).fit(parts)
        assert max(parts.engine.sizes[-6:]) < 3000
    assert sum(parts.engine.sizes) < X.nbytes


def test_a_part_that_cannot_be_had_ends_the_fit(rng):
    X = tables(rng)["diag"]
    n_passes = elsewhere(X, [100, 200])
    mixture("diag").fit(n_passes)
    for last in (0, 2, n_passes.engine.n_passes - 1):
        model = mixture("diag")
        with pytest.raises(LostBlockError, match="Block 1 of X cannot be had"):
            model.fit(elsewhere(X, [100, 200], Losing(1, last)))
        assert not hasattr(model, "lower_bound_")


@pytest.mark.parametrize(
    ("blocks", "weight", "message"),
    [
        ([np.ones((0, 2))], None, "X has no rows"),
        ([np.eye(2), np.eye(3)], None, r"Blocks must have the same columns. The first one of X has \['x0', 'x1'\]"),
        ([np.eye(2), np.array([[1.0, np.inf]])], None, "Column 'x1' of X holds infinity"),
        ([np.full((3, 2), np.nan)], None, "Column 'x0' of X has no observed cell"),
        ([np.eye(2), np.array([["a", "b"]])], None, "Column 'x0' of X holds numbers in some blocks and categories"),
        ([np.eye(2), np.eye(2)], [1.0, 1.0, 1.0], "'sample_weight' has 3 weights, and X has 4 rows"),
        ([np.eye(2), np.eye(2)], blocks_of([[1.0, 1.0]]), "There are more blocks of X than of sample_weight"),
        ([np.eye(2)], blocks_of([[1.0, 1.0]] * 2), "There are more blocks of sample_weight than of X"),
        ([np.eye(2), np.eye(2)], blocks_of([[1.0, 1.0], [1.0]]), "Block 1 of X has 2 rows, but there are 1 weights"),
        ([np.eye(2)], blocks_of([[1.0, -1.0]]), "Sample weights say how often rows count, and must be >= 0."),
        ([np.eye(2)], blocks_of([[0.0, 0.0]]), "Sample weights must contain at least one non-zero number"),
    ],
)
def test_parts_that_do_not_agree(blocks, weight, message):
    parts = elsewhere(np.empty((0, 1)), [])
    parts = type(parts)(parts.engine, [type(parts.parts[0])(k, (block,)) for k, block in enumerate(blocks)])
    with pytest.raises(ValueError, match=message):
        VBMixture(1).fit(parts, sample_weight=weight)


def test_sums_are_those_of_parts_here():
    terms = list(np.random.default_rng(0).normal(size=(20, 3)))
    parts = elsewhere(np.array(terms), list(range(1, 20)))
    assert np.array_equal(map_reduce(partial(np.sum, axis=0), parts), map_reduce(lambda row: row, terms))
    assert len(parts.those([3, 1])) == 2
    assert [number for _, number in parts.beside(range(20))] == list(range(20))
