"""Fits of `VBMixture` to rows in blocks: those of all rows together, whatever the blocks, columns and weights."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skvbem import Blocks, VBDiscreteDAG, VBMixture, blocks_of
from skvbem.blocks import is_dask
from skvbem.emissions import COVARIANCE_TYPES, Gaussian
from skvbem.fitting.fit import read
from skvbem.fitting.kind import kind_of
from skvbem.models.mixture.model import MixtureAscent
from skvbem.vbem.posteriors import VB

approx = pytest.approx
N = 240


def tables(rng, missing=0.0, n=N):
    """Rows of three classes for every family."""
    kind = rng.integers(0, 3, n)
    gaussian = rng.normal(size=(n, 3)) @ rng.normal(size=(3, 3)) + 6 * kind[:, None]
    multinomial = rng.multinomial(8, rng.dirichlet(np.ones(4), size=3)[kind]).astype(float)
    found = {
        **dict.fromkeys(COVARIANCE_TYPES, gaussian),
        "categorical": np.where(rng.random((n, 5)) < 0.2, rng.integers(0, 4, (n, 5)), kind[:, None]).astype(float),
        "bernoulli": (rng.random((n, 6)) < 0.1 + 0.4 * kind[:, None]).astype(float),
        "poisson": rng.poisson(1 + 6 * kind[:, None], size=(n, 3)).astype(float),
        "exponential": rng.exponential(1.0 + 9 * kind[:, None], size=(n, 3)),
        "multinomial": multinomial,
    }
    if missing:
        found = {name: np.where(rng.random(X.shape) < missing, np.nan, X) for name, X in found.items()}
        found["multinomial"] = np.where(rng.random((n, 1)) < missing, np.nan, multinomial)
    return found


def mixture(family, **params):
    if family in COVARIANCE_TYPES:
        params = {"emission": "gaussian", "covariance_type": family, **params}
    else:
        params = {"emission": family, **params}
    return VBMixture(3, **{"n_init": 2, "tol": 1e-9, "random_state": 0, **params})


def cut(X, ends):
    """X in blocks that end there."""
    return [X[a:b] for a, b in pairwise([0, *ends, len(X)])]


CUTS = {"one": [], "single rows, an empty block and long ones": [1, 2, 3, 100, 100, 230]}
FAMILIES = [*COVARIANCE_TYPES, "categorical", "bernoulli", "poisson", "exponential", "multinomial"]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_a_fit_of_blocks_is_that_of_all_rows(family, missing, rng):
    X = tables(rng, missing)[family]
    model = mixture(family)
    whole = clone(model).fit(X)
    for ends in list(CUTS.values())[missing > 0 :]:
        in_blocks = clone(model).fit(blocks_of(cut(X, ends)))
        assert in_blocks.lower_bound_ == approx(whole.lower_bound_, rel=1e-9)
        # which of several starts that meet is the best, and so the order of components, is a matter of rounding
        assert np.sort(in_blocks.weights_) == approx(np.sort(whole.weights_), rel=1e-5)
        assert in_blocks.restarts_.bounds == approx(whole.restarts_.bounds, rel=1e-9)
        assert in_blocks._run_.fingerprint == whole._run_.fingerprint
        assert in_blocks.n_samples_ == np.count_nonzero(~np.isnan(X).all(axis=1))
    alone = mixture(family, init="k-means++", n_init=1)
    one, other = (clone(alone).fit(data) for data in (X, blocks_of(cut(X, [40, 230]))))
    assert one.weights_ == approx(other.weights_, rel=1e-6)
    assert (one.predict(X) == other.predict(X)).all()


@pytest.mark.parametrize("family", ["full", "diag", "categorical", "poisson", "multinomial"])
@pytest.mark.parametrize("whole_numbers", [False, True])
def test_weights_of_blocks(family, whole_numbers, rng):
    X = tables(rng, 0.1)[family]
    weight = rng.integers(0, 3, N).astype(float) if whole_numbers else rng.uniform(0, 2, N)
    weight[80:120] = 0.0  # a block that does not count
    model = mixture(family, method="map", n_init=1)
    whole = clone(model).fit(X, sample_weight=weight)
    ends = [80, 120, 200]
    blocks = blocks_of(cut(X, ends))
    # how weights are handed over is one matter for all families and numbers
    forms = (weight, weight.tolist()) if family == "diag" and whole_numbers else ()
    for given in (*forms, blocks_of(cut(weight, ends))):
        in_blocks = clone(model).fit(blocks, sample_weight=given)
        assert in_blocks.log_posterior_ == approx(whole.log_posterior_, rel=1e-9)
        assert in_blocks.n_samples_ == approx(weight[~np.isnan(X).all(axis=1)].sum())
        assert in_blocks._run_.fingerprint == whole._run_.fingerprint
        with pytest.raises(ValueError, match="is other data"):
            in_blocks.bic(blocks, sample_weight=weight[::-1].copy())
    bic = whole.bic(X, sample_weight=weight)
    assert in_blocks.bic(blocks, sample_weight=weight) == approx(bic, rel=1e-9)


def test_one_weight_decides_whether_all_are_whole(rng):
    X, weight = tables(rng)["diag"], np.ones(N)
    blocks = blocks_of(cut(X, [100, 200]))
    for at in (0, 150, 220):
        for value, whole in ((0.5, False), (2.0, True)):
            given = weight.copy()
            given[at] = value
            model = mixture("diag").fit(blocks, sample_weight=given)
            rows = read(model, blocks, None, given, columns=model.fitted.columns)
            assert rows.compiled(model._fitted_.model).has_whole_weights == whole


def test_many_rows_of_which_starts_choose_some(rng):
    """More distinct rows than may be candidates."""
    X = rng.normal(size=(9000, 2)) + 6 * rng.integers(0, 3, size=(9000, 1))
    model = VBMixture(3, n_init=2, random_state=0, max_iter=30, tol=1e-2)
    whole, in_blocks = clone(model).fit(X), clone(model).fit(blocks_of(cut(X, [10, 4000, 4100])))
    starts = [
        fit._run_.plan.starts(
            MixtureAscent(fit._fitted_.model, kind_of(fit).compiled(fit, fit._fitted_.model, read(fit, data), 2), VB)
        )
        for fit, data in ((whole, X), (in_blocks, blocks_of(cut(X, [10, 4000, 4100]))))
    ]
    assert starts[1] == approx(starts[0], rel=1e-9, abs=1e-9)
    assert in_blocks.lower_bound_ == approx(whole.lower_bound_, rel=1e-9)


def frame(rng, n=400):
    kind = rng.integers(0, 2, n)
    made = pd.DataFrame(
        {
            "height": rng.normal(170 + 15 * kind, 5),
            "visits": rng.poisson(2 + 6 * kind).astype(float),
            "blood": np.where(rng.random(n) < 0.1, "AB", np.where(kind, "A", "0")),
            "smoker": np.where(rng.random(n) < 0.2 + 0.5 * kind, "yes", "no"),
        }
    )
    made.loc[:150, "blood"] = made.loc[:150, "blood"].replace("AB", "A")  # a category of later blocks alone
    made.loc[160:200, "smoker"] = None
    made.loc[::9, "height"] = np.nan
    return made


@pytest.mark.filterwarnings("ignore:Column 'visits' of X holds whole numbers:skvbem.errors.DataWarning")
@pytest.mark.parametrize("emission", ["auto", {"gaussian": "height", "poisson": "visits", "categorical": [2, 3]}])
def test_frames_of_mixed_columns(emission, rng):
    X = frame(rng)
    model = VBMixture(2, emission=emission, n_init=1, tol=1e-9, random_state=0)
    whole = clone(model).fit(X)
    parts = [X.iloc[a:b] for a, b in pairwise([0, 150, 161, 200, 400])]
    parts[2] = parts[2].astype({"smoker": float})  # as a file of nothing but gaps is read
    for source in (parts, tuple(parts), lambda: iter(parts), lambda: (part.copy() for part in parts)):
        in_blocks = clone(model).fit(blocks_of(source))
        assert in_blocks.lower_bound_ == approx(whole.lower_bound_, rel=1e-9)
        assert in_blocks.groups_ == whole.groups_
        assert in_blocks.feature_names_in_.tolist() == X.columns.tolist()
        assert in_blocks._run_.fingerprint == whole._run_.fingerprint
        assert [in_blocks.predict(part).tolist() for part in parts] == [whole.predict(part).tolist() for part in parts]
        assert in_blocks.impute(parts[1]).notna().all(axis=None)


@pytest.mark.filterwarnings("ignore:Column 'visits' of X holds whole numbers:skvbem.errors.DataWarning")
def test_declared_levels(rng):
    X = frame(rng)
    X["blood"] = X["blood"].astype(pd.CategoricalDtype(["AB", "B", "A", "0"]))
    parts = [X.iloc[:150], X.iloc[150:]]
    model = VBMixture(2, n_init=1, tol=1e-9, random_state=0)
    whole, in_blocks = clone(model).fit(X), clone(model).fit(blocks_of(parts))
    assert in_blocks.lower_bound_ == approx(whole.lower_bound_, rel=1e-9)
    assert in_blocks._fitted_.groups.meaning() == whole._fitted_.groups.meaning()
    others = [part.assign(blood=part["blood"].cat.remove_unused_categories()) for part in parts]
    as_seen = clone(model).fit(blocks_of(others))
    plain = clone(model).fit(X.assign(blood=X["blood"].astype(object)))
    assert as_seen._fitted_.groups.meaning() == plain._fitted_.groups.meaning()
    given = clone(model).set_params(categories={"blood": ["0", "A", "B", "AB"]})
    assert given.fit(blocks_of(others)).lower_bound_ == approx(whole.lower_bound_, rel=1e-9)


def test_scores_that_pass_over_the_rows(rng):
    X = tables(rng, 0.1)["full"]
    blocks = blocks_of(cut(X, [50, 100]))
    known = mixture(Gaussian(covariance_prior=None, mean_precision_prior=1.0), n_init=1)
    whole, in_blocks = clone(known).fit(X), known.fit(blocks)
    for kind in ("lower_bound", "bic", "draper", "bicp", "cheeseman_stutz", "mled"):
        expected = whole.log_evidence(X, kind=kind).value
        # the likelihood is not at its highest at a MAP fit, so that these two tell where exactly the run ended
        close = approx(expected, rel=1e-5 if kind in ("draper", "bicp") else 1e-8)
        assert in_blocks.log_evidence(blocks, kind=kind).value == close
        assert in_blocks.log_evidence(X, kind=kind).value == close
    assert in_blocks.log_evidence().value == in_blocks.lower_bound_
    one, other = (
        model.log_evidence(data, kind="importance", n_draws=64, random_state=0).value
        for model, data in ((whole, X), (in_blocks, blocks))
    )
    assert other == approx(one, abs=0.05)  # weights differ by many nats, which magnifies the last digits of the fits
    with pytest.raises(ValueError, match="'ais' looks at rows in memory; X comes in blocks"):
        in_blocks.log_evidence(blocks, kind="ais")
    with pytest.raises(ValueError, match="with alias=True 'lower_bound' looks at rows in memory"):
        in_blocks.log_evidence(blocks, alias=True)
    with pytest.raises(ValueError, match="is other data"):
        in_blocks.log_evidence(blocks_of(cut(X, [100])[:1]), kind="bic")
    for options in ({"n_components": "auto"}, {"init": "hierarchical"}):
        with pytest.raises(ValueError, match="needs rows in memory; X comes in blocks"):
            VBMixture(**options).fit(blocks)


@pytest.mark.parametrize("params", [{"method": "ml"}, {"init": "random"}, {"init": "k-means++"}, {"n_jobs": 2}])
def test_parameters_mean_what_they_mean(params, rng):
    X = tables(rng)["diag"]
    model = mixture("diag", **params)
    whole, in_blocks = clone(model).fit(X), clone(model).fit(blocks_of(cut(X, [133])))
    objective = "log_likelihood_" if model.method == "ml" else "lower_bound_"
    assert getattr(in_blocks, objective) == approx(getattr(whole, objective), rel=1e-9)


# dask -----------------------------------------------------------------------------------------------------------------


def test_arrays_of_dask(rng):
    arrays = pytest.importorskip("dask.array")
    X, weight = tables(rng, 0.1)["full"], rng.uniform(0, 2, N)
    whole = mixture("full").fit(X, sample_weight=weight)
    for chunks in ((100, 3), (70, 2)):
        given = arrays.from_array(X, chunks=chunks)
        weights = arrays.from_array(weight, chunks=chunks[0])
        assert is_dask(given)
        in_blocks = mixture("full").fit(given, sample_weight=weights)
        assert in_blocks.lower_bound_ == approx(whole.lower_bound_, rel=1e-9)
        assert in_blocks.bic(given, sample_weight=weights) == approx(whole.bic(X, sample_weight=weight), rel=1e-9)
    lazy = given[given[:, 0] > np.nanmin(X)]  # of chunks whose sizes are not known
    assert np.isfinite(mixture("full").fit(blocks_of(lazy)).lower_bound_)


def test_data_frames_of_dask(rng):
    frames = pytest.importorskip("dask.dataframe")
    X, weight = frame(rng), rng.integers(0, 3, 400)
    whole = VBMixture(2, n_init=2, random_state=0).fit(X, sample_weight=weight)
    given = frames.from_pandas(X.assign(weight=weight), npartitions=3)
    in_blocks = VBMixture(2, n_init=2, random_state=0).fit(given.drop(columns="weight"), sample_weight=given["weight"])
    assert in_blocks.lower_bound_ == approx(whole.lower_bound_, rel=1e-9)
    assert in_blocks.groups_ == whole.groups_


# What is refused ------------------------------------------------------------------------------------------------------


def once(X):
    yield X


def shrinking(X):
    """A source that has less to give in every pass."""
    left = [10]

    def iterate():
        left[0] -= 1
        return iter([X] * left[0])

    return iterate


def test_what_comes_once_is_refused(rng):
    X = rng.normal(size=(20, 2))
    for source in (once(X), iter([X, X])):
        with pytest.raises(TypeError, match="Blocks must come again for every pass over the rows"):
            blocks_of(source)
    for source in (5, "rows.csv", None):
        with pytest.raises(TypeError, match="Blocks are made of a sequence of tables"):
            blocks_of(source)
    generator = once(X)
    with pytest.raises(ValueError, match="X has no rows: none of its blocks has any, or they do not come again"):
        VBMixture(2).fit(blocks_of(lambda: generator))
    with pytest.raises(ValueError, match="Blocks must be the same for every pass over the rows"):
        VBMixture(2).fit(blocks_of(shrinking(X)))
    assert isinstance(blocks_of(blocks_of(X)), Blocks)
    assert [block.shape for block in blocks_of(X)] == [(20, 2)]


@pytest.mark.parametrize(
    ("blocks", "weight", "message"),
    [
        ([], None, "X has no rows"),
        ([np.ones((0, 2))], None, "X has no rows"),
        ([np.eye(2), np.eye(3)], None, r"Blocks must have the same columns. The first one of X has \['x0', 'x1'\]"),
        ([np.eye(2), np.array([[1.0, np.inf]])], None, "Column 'x1' of X holds infinity"),
        ([np.full((3, 2), np.nan)], None, "Column 'x0' of X has no observed cell"),
        ([np.eye(2), np.array([["a", "b"]])], None, "Column 'x0' of X holds numbers in some blocks and categories"),
        ([np.eye(2), np.eye(2)], [1.0, 1.0, 1.0], "Block 1 of X has 2 rows, but there are 1 weights"),
        ([np.eye(2)], [1.0, 1.0, 1.0], "'sample_weight' has 3 weights, and X has 2 rows"),
        ([np.eye(2), np.eye(2)], blocks_of([[1.0, 1.0]]), "There are more blocks of X than of sample_weight"),
        ([np.eye(2)], blocks_of([[1.0, 1.0]] * 2), "There are more blocks of sample_weight than of X"),
        ([np.eye(2)], blocks_of([[1.0, -1.0]]), "Sample weights say how often rows count, and must be >= 0."),
        ([np.eye(2)], blocks_of([[0.0, 0.0]]), "Sample weights must contain at least one non-zero number"),
    ],
)
def test_blocks_that_do_not_agree(blocks, weight, message):
    with pytest.raises(ValueError, match=message):
        VBMixture(1).fit(blocks_of(blocks), sample_weight=weight)


def test_what_takes_no_blocks_says_so(rng):
    X = rng.normal(size=(40, 2))
    blocks = blocks_of([X, X])
    model = VBMixture(2, n_init=2, random_state=0).fit(blocks)
    for method in (model.predict, model.score_samples, model.predict_proba, model.impute, model.score):
        with pytest.raises(TypeError, match="X comes in blocks, which only fit and the scores of VBMixture take"):
            method(blocks)
    with pytest.raises(TypeError, match="X comes in blocks"):
        VBDiscreteDAG().fit(blocks)
    with pytest.raises(ValueError, match="'init' parameter of VBMixture must be a name where X comes in blocks"):
        VBMixture(2, init=np.full((80, 2), 0.5)).fit(blocks)


def test_dask_is_not_imported_for_other_data():
    code = """
import sys
import numpy as np
from skvbem import VBMixture, blocks_of
VBMixture().fit(blocks_of([np.eye(2)]))
assert "dask" not in sys.modules
"""
    subprocess.run([sys.executable, "-P", "-c", code], check=True)
