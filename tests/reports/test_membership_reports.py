"""Odds ratios, probabilities of classes and tests of covariates, by their definitions and published likelihoods."""

import numpy as np
import pandas as pd
import pytest
from estimators.mixture.test_membership import CHEATING, classes
from scipy.special import softmax
from scipy.stats import chi2, norm

from skvbem import VBMixture
from skvbem.emissions import Softmax
from skvbem.errors import DataWarning

approx = pytest.approx
GPA = {name: classes(Softmax("GPA"), method=name).fit(CHEATING) for name in ("vb", "ml", "map")}


@pytest.fixture(scope="module")
def three():
    """Three classes of yes/no items, two numbers and three regions that drive them: the table, and fits by name."""
    rng = np.random.default_rng(5)
    n = 240
    table = pd.DataFrame({"age": rng.normal(50, 10, n), "score": rng.normal(size=n), "region": rng.choice([*"abc"], n)})
    odds = np.column_stack([np.zeros(n), (table["age"] - 50) / 10, 1.0 * (table["region"] == "b")])
    label = (odds + rng.gumbel(size=odds.shape)).argmax(axis=1)
    items = np.array([[0.1] * 6, [0.9] * 6, [0.1] * 3 + [0.9] * 3])
    for j in range(6):
        table[f"y{j}"] = (rng.random(n) < items[label, j]).astype(float)
    covariates = Softmax(["age", "score", "region"])
    emission = {"bernoulli": [f"y{j}" for j in range(6)]}
    options = {
        "emission": emission,
        "membership": covariates,
        "random_state": 0,
        "n_init": 2,
        "search_effort": "fast",
        "tol": 1e-6,
    }
    return table, {method: VBMixture(3, method=method, **options).fit(table) for method in ("vb", "ml")}


def test_tests_of_grades_are_those_of_the_published_likelihoods():
    """Of 315 rows with grades -429.638384, without -438.258466."""
    ratios = GPA["ml"].odds_ratios(CHEATING, likelihood_ratio=True)
    slope, error = (
        ratios.coefficients[0, 1],
        2 * GPA["ml"].standard_errors(CHEATING).errors["membership"]["coefficients"],
    )
    (wald, likelihood_ratio) = ratios.tests
    assert wald[:2] == ("GPA", "Wald")
    assert wald[2] == approx((slope / error[0, 0]) ** 2, rel=1e-3)
    assert wald[3:] == (1, approx(chi2.sf(wald[2], 1)))
    assert likelihood_ratio[2] == approx(2 * (438.258466 - 429.638384), abs=1e-4)
    reach = norm.ppf(0.975) * error[0, 0]
    assert ratios.lower[0, 1] == approx(slope - reach, rel=1e-3)
    assert ratios.upper[0, 1] == approx(slope + reach, rel=1e-3)
    assert abs(slope) == approx(0.8425, abs=1e-4)


def test_ratios_are_differences_of_draws_in_the_units_of_the_data(three):
    table, fits = three
    draws = fits["vb"].sample_posterior(table, 300, method="linear_response")
    ratios = fits["vb"].odds_ratios(draws=draws, reference=1, level=0.8)
    assert ratios.names == ("intercept", "age", "score", "region=a", "region=b", "region=c")
    of = draws.parameters["membership"]["coefficients"]
    differences = (of - of[:, [1]])[:, [0, 2]]
    np.testing.assert_allclose(ratios.coefficients[:, 1:], differences.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(ratios.lower[:, 1:], np.quantile(differences, 0.1, axis=0), rtol=1e-9)
    np.testing.assert_allclose(ratios.upper[:, 1:], np.quantile(differences, 0.9, axis=0), rtol=1e-9)
    largest = fits["vb"].odds_ratios(draws=draws)
    assert largest.reference == fits["vb"].counts_.argmax()
    frame = largest.to_frame()
    np.testing.assert_allclose(frame["odds_upper"], np.exp(frame["upper"]))
    assert "Odds against class" in repr(largest)
    assert "region=b" in largest._repr_html_()


def test_units_and_order_change_no_test_and_levels_are_tested_together(three):
    table, fits = three
    tests = fits["ml"].odds_ratios(table).tests
    assert [test[0] for test in tests] == ["age", "score", "region"]
    assert [test[3] for test in tests] == [2, 2, 4]
    assert tests[0][4] < 1e-4
    assert tests[1][4] > 0.01
    moved = table.assign(age=table["age"] / 10 + 3)[table.columns[::-1]]
    again = VBMixture(**fits["ml"].get_params(deep=False)).fit(moved).odds_ratios(moved).tests
    np.testing.assert_allclose([test[2] for test in again], [test[2] for test in tests], rtol=1e-3)
    large = fits["ml"].odds_ratios(table, likelihood_ratio=True).tests
    pairs = zip(large[:3], large[3:])
    assert [test[1] for test in large] == 3 * ["Wald"] + 3 * ["likelihood ratio"]
    assert all(ratio[3] == wald[3] and 0.4 < (ratio[2] + 1) / (wald[2] + 1) < 2.5 for wald, ratio in pairs)


def test_probabilities_are_means_over_rows_of_each_draw(three):
    table, fits = three
    draws = fits["vb"].sample_posterior(table, 50, method="vb")
    for covariate, values in (("age", [40.0, 55.0]), ("region", ["c", "a"])):
        of = fits["vb"].class_probabilities(table, covariate, values, draws=draws, level=0.9)
        wanted = []
        for value in values:
            moved = table.assign(**{covariate: value})
            indicators = np.column_stack([moved["age"], moved["score"], *(moved["region"] == each for each in "abc")])
            drawn = draws.parameters["membership"]
            odds = drawn["intercepts"][:, None] + indicators.astype(float) @ drawn["coefficients"].swapaxes(1, 2)
            wanted.append(softmax(odds, axis=2).mean(axis=1))
        wanted = np.array(wanted)
        np.testing.assert_allclose(of.probabilities, wanted.mean(axis=1), rtol=1e-9)
        np.testing.assert_allclose(of.lower, np.quantile(wanted, 0.05, axis=1), rtol=1e-9)
        np.testing.assert_allclose(of.upper, np.quantile(wanted, 0.95, axis=1), rtol=1e-9)
        np.testing.assert_allclose(of.probabilities.sum(axis=1), 1)
        assert [*of.to_frame().columns] == [covariate, "class", "probability", "lower", "upper"]
    assert "class 2" in repr(of)
    weight = np.zeros(len(table))
    weight[:3] = 2.0
    few = fits["vb"].class_probabilities(table, "age", [50.0], draws=draws, sample_weight=weight)
    alone = fits["vb"].class_probabilities(table[:3], "age", [50.0], draws=draws)
    np.testing.assert_allclose(few.probabilities, alone.probabilities, rtol=1e-9)


def test_bands_of_points_have_the_width_of_their_information():
    of = GPA["ml"].class_probabilities(CHEATING, "GPA", [2.0])
    moved = CHEATING.assign(GPA=CHEATING["GPA"] - 2.0)
    at_two = classes(Softmax("GPA"), method="ml").fit(moved).odds_ratios(moved)
    ends = [1 / (1 + np.exp(-of[0, 0])) for of in (at_two.lower, at_two.upper)]
    smaller = GPA["ml"].counts_.argmin()
    assert [of.lower[0, smaller], of.upper[0, smaller]] == approx(ends, abs=0.01)
    assert at_two.method == "observed_information"
    assert GPA["map"].odds_ratios(CHEATING).tests == ()


def test_covariates_without_slopes_have_no_test_and_move_that_of_no_other():
    """A category of one level; and a single class."""
    one_level = CHEATING.assign(form="long")
    wanted = GPA["ml"].odds_ratios(CHEATING).tests
    with pytest.warns(DataWarning, match="only one category"):
        model = classes(Softmax(["form", "GPA"]), method="ml").fit(one_level)
    (test,) = model.odds_ratios(one_level).tests
    assert test[:2] == ("GPA", "Wald")
    assert test[2:] == approx(wanted[0][2:], rel=1e-3)
    assert classes(Softmax("GPA"), 1, method="ml").fit(CHEATING).odds_ratios(CHEATING).tests == ()


def test_summaries_have_odds_ratios_against_the_largest_class():
    draws = GPA["vb"].sample_posterior(CHEATING, 100, method="linear_response")
    table, ratios = GPA["vb"].summary(draws=draws).tables[-1], GPA["vb"].odds_ratios(draws=draws)
    assert table.title == f"odds ratios against {ratios.reference}"
    np.testing.assert_allclose(table.values, np.exp(ratios.coefficients[:, 1:].T))
    assert [each.title for each in GPA["vb"].summary().tables] == ["components", "bernoulli", "membership"]


def test_what_has_no_membership_or_names_no_covariate_is_told(three):
    table, fits = three
    plain = VBMixture(2, emission="gaussian", random_state=0).fit(CHEATING[["GPA"]])
    with pytest.raises(ValueError, match="needs covariates of the component"):
        plain.odds_ratios(CHEATING[["GPA"]])
    with pytest.raises(ValueError, match="one of 'age', 'score', 'region'"):
        fits["vb"].class_probabilities(table, "y0")
    with pytest.raises(ValueError, match="among 'a', 'b', 'c'"):
        fits["vb"].class_probabilities(table, "region", ["d"])
    for values in ("a", 3):
        with pytest.raises(TypeError, match="a sequence of levels of 'region'"):
            fits["vb"].class_probabilities(table, "region", values)
    for values in (50.0, "fifty", ["fifty"], [50.0, np.nan], [[50.0]], {50.0}):
        with pytest.raises(TypeError, match="a sequence of finite numbers, as 'age' holds numbers"):
            fits["vb"].class_probabilities(table, "age", values)
    for weight in (np.ones(3), np.zeros(len(table)), -np.ones(len(table))):
        with pytest.raises(ValueError, match=r"(?i)sample.weight"):
            fits["vb"].class_probabilities(table, "age", sample_weight=weight)
    with pytest.raises(TypeError, match="an int from 0 to 2"):
        fits["vb"].odds_ratios(table, 3)
    with pytest.raises(TypeError, match="draws"):
        fits["vb"].odds_ratios(draws=3)
    with pytest.raises(TypeError, match="likelihood_ratio"):
        fits["vb"].odds_ratios(table, likelihood_ratio=True)


def test_the_display_draws_lines_of_numbers_and_marks_of_levels(three):
    pytest.importorskip("matplotlib")
    from skvbem.plotting import ClassProbabilitiesDisplay

    table, fits = three
    draws = fits["vb"].sample_posterior(table, 50, method="vb")
    display = ClassProbabilitiesDisplay.from_estimator(fits["vb"], table, "age", draws=draws)
    np.testing.assert_allclose(display.ax_.lines[1].get_ydata(), display.probabilities.probabilities[:, 1])
    assert display.ax_.lines[0].get_xdata()[[0, -1]].tolist() == [table["age"].min(), table["age"].max()]
    levels = ClassProbabilitiesDisplay.from_estimator(fits["vb"], table, "region", draws=draws)
    assert [label.get_text() for label in levels.ax_.get_xticklabels()] == ["a", "b", "c"]
