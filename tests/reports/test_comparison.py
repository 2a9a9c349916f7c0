"""Fits of the same data side by side."""

import numpy as np
import pandas as pd
import pytest

from skvbem import VBHMM, VBDiscreteDAG, VBFactorAnalysis, VBMixture, compare
from skvbem.datasets import load_carcinoma, load_coleman_panel, load_faithful

approx = pytest.approx
X = load_carcinoma().data


@pytest.fixture(scope="module")
def classes():
    return [VBDiscreteDAG(latents=n, method="ml", n_init=20, random_state=0).fit(X) for n in (2, 3)]


def test_the_table_of_a_paper(classes):
    """Of the poLCA manual (Linzer & Lewis 2011): pathologists, two and three classes."""
    two, three = compare(classes, X).records()
    assert (two["log_likelihood"], three["log_likelihood"]) == approx((-317.2568, -293.7050), abs=1e-3)
    assert (two["aic"], three["aic"]) == approx((664.5137, 633.4100), abs=2e-3)
    assert (two["bic"], three["bic"]) == approx((706.0739, 697.1357), abs=2e-3)
    assert (two["n_free_parameters"], three["n_free_parameters"]) == (15, 23)
    for row, fit in zip((two, three), classes):
        assert row["entropy_r2"] == approx(fit.goodness_of_fit(X).entropy_r2["h0"], rel=1e-12)
        assert row["bic"] == fit.bic(X)
        assert row["aic"] == fit.aic(X)
        assert row["lower_bound"] == fit.log_evidence(X, kind="lower_bound").value
        assert row["evidence"] is row["standard_error"] is row["probability"] is None


def test_evidences_are_probabilities():
    """Nothing is sampled here: where all is observed evidences have closed forms."""
    rows = load_coleman_panel(as_frame=True).data
    fits = {
        "chain": VBDiscreteDAG("[A][B|A][C|B][D|C]"),
        "apart": VBDiscreteDAG([]),
        "turned": VBDiscreteDAG("[B][A|B][C|B][D|C]"),
    }
    table = compare(
        {name: fit.set_params(prior="bdeu").fit(rows) for name, fit in fits.items()}, rows, evidence="exact"
    )
    shares = [row["probability"] for row in table.records()]
    assert shares == approx([0.5, 0.0, 0.5], abs=1e-9)
    assert table.best in ("chain", "turned")
    assert table.rows["chain"]["evidence"] == approx(table.rows["chain"]["lower_bound"], rel=1e-12)


def test_fits_of_different_classes():
    """One component, one state, and one factor less: all of the same rows; hidden states of a few only."""
    rows = load_faithful().data
    fits = [VBMixture(2, n_init=2, random_state=0), VBHMM(2, n_init=2, random_state=0), VBFactorAnalysis(1)]
    table = compare([fit.fit(rows) for fit in fits], rows)
    assert list(table.rows) == ["VBMixture()", "VBHMM()", "VBFactorAnalysis()"]
    certain = fits[0].predict_proba(rows)
    entropy = -np.sum(certain * np.log(np.maximum(certain, 1e-300)))
    assert table.rows["VBMixture()"]["entropy_r2"] == approx(1 - entropy / len(rows) / np.log(2))
    assert table.rows["VBFactorAnalysis()"]["entropy_r2"] is None
    assert table.best == "VBHMM()"


def test_weights_and_sequences_count_as_in_fits():
    rows, weight = X[::3], np.arange(40) % 3
    fit, repeated = (VBDiscreteDAG(latents=2, random_state=0) for _ in range(2))
    weighted = compare([fit.fit(rows, sample_weight=weight)], rows, sample_weight=weight).records()[0]
    (alike,) = compare([repeated.fit(np.repeat(rows, weight, axis=0))], np.repeat(rows, weight, axis=0)).records()
    assert weighted["entropy_r2"] == approx(alike["entropy_r2"], rel=1e-6)
    assert weighted["bic"] == approx(alike["bic"], rel=1e-9)
    series = [load_faithful().data[:60], load_faithful().data[60:100]]
    chain = VBHMM(2, n_init=1, random_state=0).fit(series)
    ids = np.repeat([0, 1], [60, 40])
    as_list, as_rows = compare([chain], series), compare([chain], np.vstack(series), sequence_id=ids)
    assert as_list.records() == as_rows.records()


def test_names_tell_fits_apart(classes):
    assert list(compare(classes, X).rows) == ["VBDiscreteDAG(latents=2)", "VBDiscreteDAG(latents=3)"]
    assert list(compare([classes[0], classes[0]], X).rows) == ["1. VBDiscreteDAG()", "2. VBDiscreteDAG()"]


def test_the_table_is_shown(classes):
    table = compare({"two": classes[0], "<three>": classes[1]}, X)
    text = repr(table).splitlines()
    assert text[0].split() == ["d", "bound", "log", "likelihood", "AIC", "BIC", "entropy", "R2"]
    assert text[1].split()[:2] == ["two", "15"]
    assert "&lt;three&gt;" in table._repr_html_()
    frame = table.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame.loc["two", "bic"] == approx(706.0739, abs=2e-3)
    assert "evidence" not in frame


def test_what_does_not_exist_is_remarked_on():
    """No closed form sums over so many hidden states."""
    fit = VBDiscreteDAG(latents=3, random_state=0).fit(X)
    table = compare([fit], X, evidence="exact")
    assert table.records()[0]["evidence"] is None
    assert "VBDiscreteDAG(): " in repr(table)
    assert table.best == "VBDiscreteDAG()"


def test_what_cannot_be_compared_is_refused(classes):
    with pytest.raises(ValueError, match="belong to the data of its fit"):
        compare(classes, X[:100])
    with pytest.raises(TypeError, match="compare takes fitted estimators of this library"):
        compare([classes[0], 3], X)
    with pytest.raises(ValueError, match=r"compare needs at least one fit\. Got \[\]"):
        compare([], X)
    with pytest.raises(ValueError, match="There is no score 'waic'"):
        compare(classes, X, evidence="waic")
