"""The bootstrap likelihood-ratio test: where its distribution is known, and whatever the order of rows and of jobs."""

import numpy as np
import pytest

from skvbem import VBHMM, VBDiscreteDAG, VBFactorAnalysis, VBMixture, blocks_of, bootstrap_lrt
from skvbem.datasets import load_carcinoma, load_earthquakes, load_faithful
from skvbem.estimators import LikelihoodRatioTest

approx = pytest.approx


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(0)
    first = rng.integers(0, 2, 200)
    return np.stack([first, np.where(rng.random(200) < 0.6, first, 1 - first)], axis=1)


@pytest.fixture(scope="module")
def apart_and_together(pairs):
    return [VBDiscreteDAG(edges, method="ml", random_state=0).fit(pairs) for edges in ([], [("x0", "x1")])]


@pytest.fixture(scope="module")
def slides():
    return load_carcinoma(as_frame=True).data


@pytest.fixture(scope="module")
def classes(slides):
    return {k: VBDiscreteDAG(latents=k, method="ml", n_init=4, random_state=0).fit(slides) for k in (2, 3)}


def test_two_independent_columns_have_a_chi_square(pairs, apart_and_together):
    """G² of a table of two by two, drawn under independence, is chi-square with one degree of freedom."""
    test = bootstrap_lrt(*apart_and_together, pairs, n_boot=600)
    observed = np.histogram2d(*pairs.T, bins=2)[0]
    expected = np.outer(observed.sum(axis=1), observed.sum(axis=0)) / 200
    assert test.statistic == approx(2 * (observed * np.log(observed / expected)).sum())
    assert test.n_more_parameters == 1
    assert test.drawn.mean() == approx(1, abs=4 * np.sqrt(2 / 600))
    for probability, quantile in ((0.5, 0.4549), (0.9, 2.7055), (0.95, 3.8415)):  # of a table of chi-square
        share = (test.drawn < quantile).mean()
        assert share == approx(probability, abs=4 * np.sqrt(probability * (1 - probability) / 600))
    n_beyond = (test.drawn >= test.statistic).sum()
    assert test.p_value == (1 + n_beyond) / 601
    assert test.standard_error == approx(np.sqrt(test.p_value * (1 - test.p_value) / 600))


def test_a_third_class_is_more_than_chance(slides, classes):
    test = bootstrap_lrt(classes[2], classes[3], slides, n_boot=19)
    assert test.statistic == approx(2 * (317.2568 - 293.7050), abs=2e-3)
    assert (test.p_value, test.n_more_parameters, test.doubts) == (0.05, 8, ())
    assert (test.drawn > 0).all()


def test_neither_order_nor_jobs_nor_weights_matter(slides, classes):
    two, three = classes[2], classes[3]
    found = bootstrap_lrt(two, three, slides, n_boot=6).drawn
    rows = slides.sample(frac=1, random_state=1)
    assert bootstrap_lrt(two, three, rows, n_boot=6).drawn == approx(found, abs=1e-6)
    assert np.array_equal(bootstrap_lrt(two, three, slides, n_boot=6, n_jobs=2).drawn, found)
    assert np.array_equal(bootstrap_lrt(two, three, slides, n_boot=3).drawn, found[:3])
    other = bootstrap_lrt(two, three, slides, n_boot=6, random_state=5).drawn
    assert not np.array_equal(other, found)
    counts = slides.value_counts()
    distinct, n = counts.index.to_frame(index=False), counts.to_numpy()
    options = {"method": "ml", "n_init": 4, "random_state": 0}
    of_weights = [VBDiscreteDAG(latents=k, **options).fit(distinct, sample_weight=n) for k in (2, 3)]
    weighted = bootstrap_lrt(*of_weights, distinct, n_boot=6, sample_weight=n)
    assert weighted.statistic == approx(2 * (317.2568 - 293.7050), abs=2e-3)
    assert weighted.drawn.mean() == approx(found.mean(), rel=0.6)  # of as many rows: 2 ln L grows with them


def test_the_order_of_rows_with_gaps_does_not_matter(pairs):
    gappy = pairs.astype(object)
    gappy[:70, 1] = None
    fits = [VBDiscreteDAG(edges, method="ml", random_state=0).fit(gappy) for edges in ([], [("x0", "x1")])]
    found = bootstrap_lrt(*fits, gappy, n_boot=8).drawn
    assert bootstrap_lrt(*fits, gappy[::-1], n_boot=8).drawn == approx(found, abs=1e-6)


def test_the_larger_model_is_fitted_to_what_the_smaller_one_draws():
    """A table that one component drew: another is by chance, and the statistic is one of many."""
    X = np.random.default_rng(3).normal(size=(80, 2))
    one, two = (VBMixture(k, covariance_type="diag", method="ml", n_init=3, random_state=0).fit(X) for k in (1, 2))
    test = bootstrap_lrt(one, two, X, n_boot=19)
    assert test.p_value > 0.1
    assert test.drawn.std() > 0
    assert np.median(test.drawn) > 3  # five parameters more, of which some are free of charge


def test_states_components_and_factors():
    quakes, faithful = load_earthquakes().data, load_faithful().data
    chains = [VBHMM(k, emission="poisson", method="ml", n_init=2, random_state=0).fit(quakes) for k in (1, 2)]
    assert bootstrap_lrt(*chains, quakes, n_boot=9).p_value == 0.1
    mixtures = [VBMixture(k, method="ml", n_init=2, random_state=0).fit(faithful) for k in (1, 2)]
    test = bootstrap_lrt(*mixtures, faithful, n_boot=9)
    assert (test.p_value, test.n_more_parameters) == (0.1, 6)
    X = np.random.default_rng(0).normal(size=(60, 6)) + 2 * np.random.default_rng(1).normal(size=(60, 1))
    factors = [VBFactorAnalysis(k, method="ml", random_state=0).fit(X) for k in (1, 2)]
    test = bootstrap_lrt(*factors, X, n_boot=9)
    assert (test.p_value > 0.1, test.n_more_parameters) == (True, 5)


def test_it_prints_what_a_paper_reports():
    test = LikelihoodRatioTest(8.84, np.array([1.0, 9.0, 2.5]), 8, ("In 2 of 3 tables a fit did not converge.",))
    assert repr(test).splitlines() == [
        "2 ln likelihood ratio    8.840, with 8 parameters more",
        "under the smaller model  median 2.500, 95 % below 8.350, of 3 tables",
        "p value                  0.500, standard error 0.29",
        "doubt 1                  In 2 of 3 tables a fit did not converge.",
    ]
    assert "<td" in test._repr_html_()


def test_fits_that_fail_are_told(pairs):
    X = np.column_stack([pairs, pairs[:, ::-1], pairs])
    X = (X + (np.random.default_rng(1).random(X.shape) < 0.3)) % 2
    options = {"method": "ml", "max_iter": 3, "n_init": 2, "random_state": 0, "init": "random"}
    with pytest.warns(UserWarning, match="converge"):
        one, two = (VBDiscreteDAG(latents=k, **options).fit(X) for k in (1, 2))
    told = " ".join(bootstrap_lrt(one, two, X, n_boot=5).doubts)
    assert "a fit did not converge: raise 'max_iter'" in told


def test_what_it_cannot_compare(pairs, apart_and_together):
    small, large = apart_and_together
    bayes = VBDiscreteDAG([], random_state=0).fit(pairs)
    cases = [
        ((large, small, pairs), ValueError, "takes the smaller model first"),
        ((small, small, pairs), ValueError, "the second 2 and"),
        ((small, bayes, pairs), ValueError, "method='vb'. Fit both with method='ml'"),
        ((pairs, small, large), TypeError, "and then X, as in"),
        ((small, large, 1 - pairs), ValueError, "other data"),
        ((small, VBMixture(2, emission="categorical", method="ml", random_state=0).fit(pairs), pairs), TypeError,
         "Got VBDiscreteDAG and VBMixture"),
    ]  # fmt: skip
    for args, kind, words in cases:
        with pytest.raises(kind, match=words):
            bootstrap_lrt(*args, n_boot=2)
    with pytest.raises(ValueError, match="n_boot"):
        bootstrap_lrt(small, large, pairs, n_boot=0)
    weight = np.random.default_rng(0).uniform(0.5, 1.5, 200)
    weighted = [VBDiscreteDAG(edges, method="ml").fit(pairs, sample_weight=weight) for edges in ([], [("x0", "x1")])]
    with pytest.raises(ValueError, match="whole-number sample weights"):
        bootstrap_lrt(*weighted, pairs, n_boot=2, sample_weight=weight)
    rows = load_faithful().data
    blocks = [VBMixture(k, method="ml", n_init=1, random_state=0).fit(blocks_of([rows])) for k in (1, 2)]
    with pytest.raises(TypeError, match="X comes in blocks"):
        bootstrap_lrt(*blocks, blocks_of([rows]), n_boot=2)
