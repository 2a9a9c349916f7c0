"""What users read after a fit, recomputed by hand and compared with published figures."""

import itertools
import math
import re
import warnings

import numpy as np
import pytest
from scipy import stats

from skvbem import LabeledTable, VBDiscreteDAG
from skvbem.datasets import load_carcinoma, load_coleman_panel
from skvbem.estimators import LatentStates

pd = pytest.importorskip("pandas")
approx = pytest.approx

PANEL_EDGES = [("member", "A"), ("member", "C"), ("attitude", "B"), ("attitude", "D"), ("member", "attitude")]


@pytest.fixture(scope="module")
def panel():
    return load_coleman_panel(as_frame=True).data


@pytest.fixture(scope="module")
def linked(panel):
    latents = {"member": 2, "attitude": 2}
    return {m: VBDiscreteDAG(PANEL_EDGES, latents=latents, method=m, random_state=0).fit(panel) for m in ("vb", "ml")}


# --- one table --------------------------------------------------------------------------------------------------------


def test_a_labeled_table():
    values = np.arange(6).reshape(2, 3) / 15
    table = LabeledTable(values, ("class", "item"), (np.arange(2), np.array(["a", "b", "c"])))
    assert table["class":1, "item":"c"] == values[1, 2]
    assert isinstance(table["class":1, "item":"c"], float)
    assert table["item":"b"].tolist() == values[:, 1].tolist()
    assert np.asarray(table) is table.values or np.array_equal(np.asarray(table), values)
    assert np.asarray(table, dtype=np.float32).dtype == np.float32
    assert table.shape == (2, 3)
    assert repr(table).splitlines() == [
        "class  item=a  item=b  item=c",
        "0      0.0000  0.0667  0.1333",
        "1      0.2000  0.2667  0.3333",
    ]
    assert repr(LabeledTable(values[1] / 0.8, ("item",), table.levels[1:])).splitlines()[1:] == [
        "a     0.2500",
        "b     0.3333",
        "c     0.4167",
    ]
    frame = table.to_frame()
    assert frame.index.names == ["class"]
    assert frame.loc[1, "item=c"] == values[1, 2]
    three = LabeledTable(np.arange(8).reshape(2, 2, 2) / 28, ("a", "b", "c"), (np.arange(2),) * 3)
    assert three.to_frame().loc[(1, 0), "c=1"] == 5 / 28
    assert repr(three).splitlines()[3] == "1  0  0.1429  0.1786"
    series = table.to_series("p")
    assert series.name == "p"
    assert series.index.names == ["class", "item"]
    assert series[(1, "b")] == values[1, 1]
    assert series.unstack("item").to_numpy().tolist() == values.tolist()


# --- goodness of fit --------------------------------------------------------------------------------------------------


def by_hand(estimator, cells, counts):
    """G2 and X2 from the probabilities of all cells of the table."""
    p = np.exp(estimator.score_samples(cells))
    n = counts.sum()
    seen = counts > 0
    g2 = 2 * (counts[seen] * np.log(counts[seen] / (n * p[seen]))).sum()
    return g2, ((counts - n * p) ** 2 / (n * p)).sum(), p


def test_fit_indices_by_hand(panel, linked):
    estimator = linked["vb"]
    found = estimator.goodness_of_fit(panel)
    cells = pd.DataFrame(list(itertools.product([0, 1], repeat=4)), columns=panel.columns)
    counts = panel.value_counts().reindex(cells.itertuples(index=False, name=None), fill_value=0).to_numpy()
    g2, x2, p = by_hand(estimator, cells, counts)
    n, d = len(panel), 1 + 2 + 4 * 2
    assert (found.g2, found.x2) == approx((g2, x2))
    assert (found.n_samples, found.n_free_parameters, found.degrees_of_freedom) == (n, d, 16 - 1 - d)
    log_likelihood = (counts * np.log(p)).sum()
    assert found.log_likelihood == approx(log_likelihood)
    assert found.aic == approx(-2 * log_likelihood + 2 * d)
    assert found.bic == approx(-2 * log_likelihood + d * math.log(n))
    assert found.sabic == approx(-2 * log_likelihood + d * math.log((n + 2) / 24))
    assert found.caic == approx(-2 * log_likelihood + d * (math.log(n) + 1))
    for latent, proba in zip(estimator.latent_names_, estimator.predict_proba(panel)):
        entropy = -(proba * np.log(proba)).sum()
        assert found.entropy_r2[latent] == approx(1 - entropy / (n * math.log(2)))
    for first, second in itertools.combinations(panel.columns, 2):
        observed = pd.crosstab(panel[first], panel[second]).to_numpy()
        expected = n * pd.Series(p).groupby([cells[first], cells[second]]).sum().to_numpy().reshape(2, 2)
        assert found.bivariate_residuals[first, second] == approx(((observed - expected) ** 2 / expected).sum())


def test_chi_square_counts_the_cells_without_rows():
    """108 of the 128 cells of this table are empty."""
    X = load_carcinoma(as_frame=True).data
    estimator = VBDiscreteDAG(latents=3, method="ml", n_init=20, tol=1e-8, random_state=0).fit(X)
    cells = pd.DataFrame(list(itertools.product([1, 2], repeat=7)), columns=X.columns)
    counts = X.value_counts().reindex(cells.itertuples(index=False, name=None), fill_value=0).to_numpy()
    assert (counts == 0).sum() == 108
    found = estimator.goodness_of_fit(X)
    assert (found.g2, found.x2) == approx(by_hand(estimator, cells, counts)[:2])
    assert found.x2 == approx(20.5034, abs=6e-4)


def test_fit_indices_of_weighted_rows_are_those_of_repeated_rows(panel, linked):
    counts = panel.value_counts()
    distinct = pd.DataFrame(list(counts.index), columns=panel.columns)
    weights = counts.to_numpy()
    odd = pd.concat([distinct, distinct.iloc[:2]], ignore_index=True)
    for estimator in linked.values():
        whole = estimator.goodness_of_fit(panel)
        for rows, w in ((distinct, weights), (odd, np.append(weights, [0, 0]))):
            found = estimator.goodness_of_fit(rows, sample_weight=w)
            for name in ("log_likelihood", "g2", "x2", "bic", "n_samples", "entropy_r2", "bivariate_residuals"):
                assert getattr(found, name) == approx(getattr(whole, name))


def test_rows_with_gaps_count_in_the_likelihood_and_not_in_the_chi_squares(panel, linked):
    estimator = linked["ml"]
    gappy = panel.astype(float).head(50)
    gappy.iloc[:, 1] = np.nan
    both = estimator.goodness_of_fit(pd.DataFrame(np.vstack([panel, gappy]), columns=panel.columns))
    alone = estimator.goodness_of_fit(panel)
    assert (both.g2, both.x2) == approx((alone.g2, alone.x2))
    assert both.bivariate_residuals == approx(alone.bivariate_residuals)
    assert both.log_likelihood == approx(alone.log_likelihood + estimator.score_samples(gappy).sum())
    only_gaps = estimator.goodness_of_fit(gappy)
    assert np.isnan([only_gaps.g2, only_gaps.x2]).all()
    assert np.isfinite(only_gaps.bic)
    assert only_gaps.bivariate_residuals == {}


def test_an_impossible_row_fits_infinitely_badly():
    X = [[0, 0], [1, 1], [1, 1]]
    estimator = VBDiscreteDAG([("x0", "x1")], method="ml").fit(X)
    found = estimator.goodness_of_fit([*X, [0, 1]])
    assert found.log_likelihood == -np.inf
    assert found.g2 == found.x2 == found.bic == found.bivariate_residuals["x0", "x1"] == np.inf


def test_residuals_of_pairs_too_large_are_not_a_number(panel, linked):
    estimator = linked["ml"]
    before = estimator.max_table_cells
    try:
        found = estimator.set_params(max_table_cells=4).goodness_of_fit(panel)
    finally:
        estimator.set_params(max_table_cells=before)
    assert np.isnan(found.bivariate_residuals["A", "B"])
    assert found.g2 == approx(1.27, abs=0.005)


@pytest.mark.parametrize(
    ("n_classes", "log_likelihood", "g2", "bic"),
    [(2, -317.2568, 62.3654, 706.074), (3, -293.705, 15.2617, 697.136), (4, -289.2858, 6.4235, 726.463)],
)
def test_carcinoma_as_published(n_classes, log_likelihood, g2, bic):
    """poLCA's manual, after Agresti (2002), tables 13.2 and 13.3."""
    X = load_carcinoma().data
    estimator = VBDiscreteDAG(latents=n_classes, method="ml", n_init=30, tol=1e-8, random_state=0).fit(X)
    found = estimator.goodness_of_fit(X)
    assert (found.log_likelihood, found.g2, found.bic) == approx((log_likelihood, g2, bic), abs=6e-4)
    assert found.n_free_parameters == estimator.n_free_parameters_ == 8 * n_classes - 1


def test_coleman_panel_as_published(panel, linked):
    """Goodman (1974): 1.27 on 4 degrees of freedom, and 249.50 on 6 for one class of two states."""
    found = linked["ml"].goodness_of_fit(panel)
    assert (round(found.g2, 2), found.degrees_of_freedom) == (1.27, 4)
    found = VBDiscreteDAG(latents=2, method="ml", random_state=0).fit(panel).goodness_of_fit(panel)
    assert (round(found.g2, 2), found.degrees_of_freedom) == (249.5, 6)


def test_fit_indices_read_well(panel, linked):
    text = repr(linked["ml"].goodness_of_fit(panel))
    assert re.search(r"-8494\.67\d\d nats, 11 free parameters, n = 3398", text)
    assert re.search(r"1\.2[67]\d\d / 1\.28\d\d on 4 degrees of freedom", text)
    assert text.count("(lower is better)") == 2
    assert "member 0." in text
    alone = VBDiscreteDAG([]).fit(panel[["A"]]).goodness_of_fit(panel[["A"]])
    assert "entropy R2            none" in repr(alone)
    assert "residual  none" in repr(alone)


# --- states of latents ------------------------------------------------------------------------------------------------


def two_classes(n=300):
    rng = np.random.default_rng(0)
    z = rng.integers(2, size=(n, 1))
    return np.where(rng.random((n, 5)) < 0.9, z, 1 - z)


def test_states_that_the_data_do_not_need_are_empty():
    X = two_classes()
    states = VBDiscreteDAG(latents=5, prior=0.1, random_state=0).fit(X).latent_states_["h0"]
    assert isinstance(states, LatentStates)
    assert len(states.in_use) == 2
    assert len(states.empty) == 3
    assert states.mass.sum() == approx(300)
    assert states.mass[list(states.in_use)].sum() > 297
    assert states.duplicates == ()


def test_states_that_are_copies_of_each_other_are_found():
    """Two states that start alike stay alike."""
    X = two_classes()
    table = np.array([[0.2, 0.8], [0.8, 0.2], [0.8, 0.2]])
    init = {f"x{j}": table for j in range(5)}
    states = VBDiscreteDAG(latents=3, method="ml", init=init).fit(X).latent_states_["h0"]
    assert states.duplicates == ((1, 2),)
    assert states.in_use == (0, 1, 2)
    assert states.mass[1] == approx(states.mass[2])


def test_copies_must_be_copies_for_every_child_and_parent_state():
    """State 1 of h and state 2 differ for x0 only, and only where x1 = 1."""
    alike, apart = [[0.9, 0.1], [0.1, 0.9], [0.1, 0.9]], [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]
    x0 = np.stack([alike, [[0.9, 0.1], [0.9, 0.1], [0.1, 0.9]]], axis=1)  # axes h, x1, x0
    prior = {"h": [1e6] * 3, "x1": np.multiply(apart, 1e6), "x0": x0 * 1e6}
    edges = [("h", "x0"), ("h", "x1"), ("x1", "x0")]
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 10)
    parameters = {"latents": {"h": 3}, "init": {"x0": x0}}
    assert VBDiscreteDAG(edges, prior=prior, **parameters).fit(X).latent_states_["h"].duplicates == ()
    prior["x0"] = np.stack([alike, alike], axis=1) * 1e6
    assert VBDiscreteDAG(edges, prior=prior, **parameters).fit(X).latent_states_["h"].duplicates == ((1, 2),)


def test_no_latents_no_states():
    assert VBDiscreteDAG([("x0", "x1")]).fit([[0, 1], [1, 0]]).latent_states_ == {}


def test_p_values_of_chi_squares(panel, linked):
    found = linked["ml"].goodness_of_fit(panel)
    assert found.g2_p_value == approx(stats.chi2.sf(found.g2, 4))
    assert found.x2_p_value == approx(stats.chi2.sf(found.x2, 4))
    assert f"p = {found.g2_p_value:.3g} / {found.x2_p_value:.3g}" in repr(found)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rich = VBDiscreteDAG(latents=9, random_state=0, n_init=1).fit(panel).goodness_of_fit(panel)
    assert rich.degrees_of_freedom < 0
    assert np.isnan([rich.g2_p_value, rich.x2_p_value]).all()
    assert "degrees of freedom: no test, as the model has as many parameters as the table has cells" in repr(rich)
