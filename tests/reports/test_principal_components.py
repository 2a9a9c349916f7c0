"""Minka's evidence of the number of principal components, against that of scikit-learn."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.decomposition._pca import _assess_dimension

from skvbem.estimators import minka_evidence


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_it_is_what_scikit_learn_maximizes(load):
    X = load().data
    ours = minka_evidence(X)
    variance = PCA().fit(X).explained_variance_
    theirs = [_assess_dimension(variance, k, len(X)) for k in range(1, X.shape[1])]
    assert ours == pytest.approx(theirs, abs=1e-6)
    assert PCA("mle").fit(X).n_components_ == ours.argmax() + 1


def test_components_without_variance_are_refused(rng):
    X = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 5))
    ours = minka_evidence(X)
    assert np.isfinite(ours[:2]).all()
    assert (ours[2:] == -np.inf).all()


def test_more_columns_than_rows(rng):
    assert minka_evidence(rng.normal(size=(5, 8))).shape == (4,)


@pytest.mark.parametrize(("X", "message"), [(np.ones((2, 3)), "three rows"), ([[1.0, np.nan]] * 4, "no missing")])
def test_tables_that_have_no_such_evidence_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        minka_evidence(X)
