"""Covariates and outcomes in steps: against StepMix, plain logits, derivatives, simulated truth and invariances."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import log_softmax, logsumexp, softmax

from skvbem import VBHMM, VBDiscreteDAG, VBMixture, VBNetwork, distal, three_step, two_step
from skvbem.datasets import load_cheating
from skvbem.errors import TooLargeError
from skvbem.reports.stepwise.classification import classified
from skvbem.reports.stepwise.logit import ClassLogit

pd = pytest.importorskip("pandas")
QUESTIONS = ["LIEEXAM", "LIEPAPER", "FRAUD", "COPYEXAM"]


@pytest.fixture(scope="module")
def students():
    table = load_cheating(as_frame=True).data.dropna()
    return table.assign(GPA=table["GPA"].astype(float))


@pytest.fixture(scope="module")
def cheats(students):
    fit = VBDiscreteDAG(latents={"class": 2}, method="ml", tol=1e-12, max_iter=10_000, random_state=0)
    return fit.fit(students[QUESTIONS])


@pytest.fixture(scope="module")
def honest(cheats):
    return int(cheats.tables_["class"].values.argmax())


@pytest.fixture(scope="module")
def three_classes():
    """500 rows of five items, two covariates of three classes, and an outcome."""
    rng = np.random.default_rng(7)
    u = rng.normal(size=(500, 2))
    proportions = softmax(np.c_[np.ones(500), u] @ np.array([[0, 0, 0], [-0.5, 1, -0.5], [0.3, -0.8, 0.6]]).T, axis=1)
    label = (proportions.cumsum(axis=1) < rng.random((500, 1))).sum(axis=1)
    items = np.array([[0.1, 0.1, 0.2, 0.8, 0.7], [0.8, 0.7, 0.9, 0.3, 0.2], [0.2, 0.8, 0.3, 0.9, 0.9]])
    answers = (rng.random((500, 5)) < items[label]).astype(float)
    table = pd.DataFrame(np.c_[answers, u.round(6), (label + rng.normal(size=500)).round(6)], columns=list("abcdeuvy"))
    fit = VBMixture(3, emission="bernoulli", method="ml", n_init=10, tol=1e-12, max_iter=20_000, random_state=0)
    fit.fit(table[list("abcde")])
    posterior = fit.predict_proba(table[list("abcde")])
    return table, fit, np.argsort(posterior.T @ table["a"] / posterior.sum(axis=0))


@pytest.mark.parametrize(
    ("method", "assignment", "expected"),
    [
        ("ml", "modal", (-0.24165, -0.70312)),
        ("bch", "modal", (-0.22533, -0.71431)),
        ("ml", "proportional", (-0.10453, -0.78283)),
        ("bch", "proportional", (-0.07672, -0.80270)),
    ],
)
def test_three_steps_of_cheating_students(students, cheats, honest, method, assignment, expected):
    """Grades of cheating students, as StepMix 3.0.0 has them for modal assignments."""
    result = three_step(cheats, students, "GPA", method=method, assignment=assignment, reference=honest)
    np.testing.assert_allclose(result.coefficients[1 - honest], expected, atol=1e-4)
    assert (result.coefficients[honest] == 0).all()
    if (method, assignment) == ("ml", "modal"):
        assert result.log_likelihood == pytest.approx(-138.35485, abs=1e-4)
        order = [honest, 1 - honest]
        table = result.classification[np.ix_(order, order)]
        np.testing.assert_allclose(table, [[0.953784, 0.046216], [0.180900, 0.819100]], atol=1e-5)


def test_two_steps_of_cheating_students(students, cheats, honest):
    result = two_step(cheats, students, students[["GPA"]], reference=honest)
    np.testing.assert_allclose(result.coefficients[1 - honest], (-0.04747, -0.80988), atol=1e-4)
    assert result.log_likelihood == pytest.approx(-430.077382, abs=1e-4)


def test_grades_of_students_who_cheat(students, cheats, honest):
    result = distal(cheats, students, "GPA")
    np.testing.assert_allclose(result.means[[honest, 1 - honest], 0], [2.46255, 1.62577], atol=1e-4)


@pytest.mark.parametrize(
    ("steps", "method", "assignment", "expected"),
    [
        (2, "ml", "modal", [[0.12757, -0.49586, 0.381065], [-0.495924, 1.041123, -0.390128]]),
        (3, "ml", "modal", [[0.138129, -0.495415, 0.412936], [-0.458968, 1.034116, -0.312599]]),
        (3, "bch", "modal", [[0.14286, -0.482812, 0.422082], [-0.457268, 1.02101, -0.332364]]),
        (3, "bch", "proportional", [[0.143418, -0.488435, 0.394307], [-0.438925, 0.967875, -0.330987]]),
    ],
)
def test_three_classes_as_stepmix_has_them(three_classes, steps, method, assignment, expected):
    """Figures of StepMix 3.0.0, ten starts, abs_tol 1e-13, 300 Newton iterations."""
    table, fit, order = three_classes
    if steps == 2:
        result = two_step(fit, table, ["u", "v"], reference=int(order[0]))
        assert result.log_likelihood == pytest.approx(-1418.470953, abs=1e-4)
    else:
        keys = {"method": method, "assignment": assignment, "reference": int(order[0])}
        result = three_step(fit, table, ["u", "v"], **keys)
    np.testing.assert_allclose(result.coefficients[order[1:]], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("assignment", "means", "variances"),
    [
        ("modal", [0.539395, 1.743592, 1.075458], [1.757345, 1.231946, 0.822871]),
        ("proportional", [0.538524, 1.745987, 1.073082], [1.773643, 1.203161, 0.839495]),
    ],
)
def test_outcomes_of_three_classes_as_stepmix_has_them(three_classes, assignment, means, variances):
    """Figures of StepMix 3.0.0, ``structural="gaussian_diag"``, corrected by BCH."""
    table, fit, order = three_classes
    outcome = distal(fit, table, "y", assignment=assignment)
    np.testing.assert_allclose(outcome.means[order, 0], means, atol=1e-5)
    np.testing.assert_allclose(outcome.deviations[order] ** 2, variances, atol=1e-5)


def test_proportional_assignments_have_two_definitions_by_maximum_likelihood(three_classes):
    """Vermunt's expands rows by their assignments; StepMix's averages ln P(assigned | class) over these."""
    table, fit, order = three_classes
    u, posterior = np.c_[np.ones(500), table[["u", "v"]]], fit.predict_proba(table[list("abcde")])[:, order]
    log_p = np.log(posterior.T @ posterior / posterior.sum(axis=0)[:, None])

    def log_classes(free):
        return log_softmax(u @ np.vstack([np.zeros(3), free.reshape(2, 3)]).T, axis=1)

    def expanded(free):
        return -(posterior * logsumexp(log_classes(free)[:, :, None] + log_p, axis=1)).sum()

    def averaged(free):
        return -logsumexp(log_classes(free) + posterior @ log_p.T, axis=1).sum()

    ours = three_step(fit, table, ["u", "v"], assignment="proportional", reference=int(order[0]))
    np.testing.assert_allclose(
        ours.coefficients[order[1:]].ravel(), minimize(expanded, np.zeros(6), tol=1e-9).x, atol=1e-4
    )
    # StepMix 3.0.0, assignment="soft"; within 5e-6 at the posterior of its own first step. The first step has a ridge:
    # likelihoods that are 2e-8 nats apart have posteriors under which these coefficients differ by .01
    stepmix = [0.085841, -0.582086, 0.415214, -0.701437, 1.446193, -0.517424]
    np.testing.assert_allclose(minimize(averaged, np.zeros(6), tol=1e-9).x, stepmix, atol=0.02)


@pytest.mark.parametrize("corrected", [False, True])
def test_derivatives_of_the_objective(corrected):
    rng = np.random.default_rng(0)
    u, row = np.c_[np.ones(9), rng.normal(size=(9, 2))], np.repeat(np.arange(9), 2)
    evidence = rng.dirichlet(np.ones(3), 18)
    evidence = evidence + np.array([0.3, -0.3, 0.0]) * corrected
    logit = ClassLogit(u, row, rng.random(18), evidence, rng.random(9), 1, corrected)
    free = rng.normal(size=6)
    gradient, information, by_row = logit._derivatives(free)
    np.testing.assert_allclose(gradient, approx_fprime(free, logit._objective, 1e-7), atol=1e-5)
    numeric = [approx_fprime(free, lambda x, j=j: logit._derivatives(x)[0][j], 1e-7) for j in range(6)]
    np.testing.assert_allclose(-information, numeric, atol=1e-5)
    np.testing.assert_allclose(logit.row_weight @ by_row, gradient, rtol=1e-12)


def test_classes_without_doubt_have_a_plain_logit(three_classes):
    """Where every row is surely of its class, every way is the multinomial logit, whose errors statsmodels has."""
    sm = pytest.importorskip("statsmodels.api")
    rng, u = np.random.default_rng(1), three_classes[0][["u", "v"]].to_numpy()
    label = np.array([rng.choice(3, p=p) for p in softmax(u @ [[0, 1, -1], [0, 0.5, 1]], axis=1)])
    table = pd.DataFrame(100.0 * np.eye(3)[label] + rng.normal(size=(500, 3)), columns=list("abc")).assign(
        u=u[:, 0], v=u[:, 1]
    )
    fit = VBMixture(3, covariance_type="diag", random_state=0).fit(table[list("abc")])
    posterior = fit.predict_proba(table[list("abc")])
    assert posterior.max(axis=1).min() > 1 - 1e-9
    known = posterior.argmax(axis=1)
    plain = sm.MNLogit(known, sm.add_constant(u)).fit(disp=0, tol=1e-12, cov_type="HC0")
    for result in (
        two_step(fit, table, ["u", "v"]),
        three_step(fit, table, ["u", "v"]),
        three_step(fit, table, ["u", "v"], method="bch"),
    ):
        np.testing.assert_allclose(result.coefficients[1:], plain.params.T, atol=1e-6)
        np.testing.assert_allclose(result.standard_errors[1:], plain.bse.T, rtol=1e-5)
    outcome = distal(fit, table, "u")
    for k in range(3):
        chosen = table["u"][known == k]
        assert outcome.means[k, 0] == pytest.approx(chosen.mean(), abs=1e-9)
        assert outcome.standard_errors[k, 0] == pytest.approx(chosen.std(ddof=0) / np.sqrt(len(chosen)), rel=1e-6)
        assert outcome.deviations[k] == pytest.approx(chosen.std(ddof=0), rel=1e-6)


@pytest.mark.parametrize("method", ["ml", "bch"])
def test_order_weights_and_units_change_nothing(students, cheats, honest, method):
    result = three_step(cheats, students, "GPA", method=method, reference=honest)
    shuffled = students.sample(frac=1, random_state=3)
    other = three_step(cheats, shuffled, "GPA", method=method, reference=honest)
    np.testing.assert_allclose(other.coefficients, result.coefficients, atol=1e-7)
    np.testing.assert_allclose(other.covariance, result.covariance, atol=1e-7)
    metres = three_step(cheats, students, students["GPA"] * 100 + 7, method=method, reference=honest)
    np.testing.assert_allclose(metres.coefficients[:, 1] * 100, result.coefficients[:, 1], atol=1e-7)
    swapped = three_step(cheats, students, "GPA", method=method, reference=1 - honest)
    np.testing.assert_allclose(swapped.coefficients[honest], -result.coefficients[1 - honest], atol=1e-7)
    np.testing.assert_allclose(swapped.standard_errors[honest], result.standard_errors[1 - honest], atol=1e-7)


def test_weights_are_repeats(students):
    once = students.iloc[-90:]
    weight = np.arange(90) % 3 + 1.0
    twice = once.loc[once.index.repeat(weight.astype(int))]
    results = []
    for table, weights in ((once, weight), (twice, None)):
        fit = VBMixture(2, emission="categorical", random_state=0, tol=1e-10).fit(
            table[QUESTIONS], sample_weight=weights
        )
        reference = int(fit.weights_.argmax())
        keys = {"sample_weight": weights, "reference": reference}
        regression = three_step(fit, table, "GPA", **keys)
        outcome = distal(fit, table, "GPA", sample_weight=weights)
        order = [reference, 1 - reference]
        results.append((regression.coefficients[1 - reference], regression.covariance, outcome.means[order]))
    for one, other in zip(*results):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_categories_are_covariates_and_outcomes(students, cheats, honest):
    words = students["GPA"].map({1.0: "low", 2.0: "low", 3.0: "middle", 4.0: "high", 5.0: "high"})
    grades = pd.Categorical(words, categories=["low", "middle", "high"])
    result = three_step(cheats, students, pd.DataFrame({"grade": grades}), reference=honest)
    assert result.names == ("intercept", "grade=middle", "grade=high")
    by_level = result.class_probabilities(pd.DataFrame({"grade": ["low", "high"]}))
    assert by_level[0, 1 - honest] > by_level[1, 1 - honest]
    outcome = distal(cheats, students, grades)
    assert outcome.levels == ("low", "middle", "high")
    np.testing.assert_allclose(outcome.means.sum(axis=1), 1.0)
    assert outcome.wald_test[1] == 2
    assert [*outcome.to_frame().index.names] == ["class", "level"]


def test_a_bootstrap_takes_all_steps_anew(students, cheats, honest):
    """Its errors hold the uncertainty of the classes: wider than those of rows alone; any order of rows, any jobs."""
    keys = {"reference": honest, "n_boot": 12}
    rows = three_step(cheats, students, "GPA", reference=honest)
    result = three_step(cheats, students, "GPA", **keys)
    again = three_step(cheats, students.sample(frac=1, random_state=1), "GPA", n_jobs=2, **keys)
    np.testing.assert_allclose(again.standard_errors, result.standard_errors, rtol=1e-4)
    assert (result.standard_errors[1 - honest] > rows.standard_errors[1 - honest]).all()
    assert "12 tables" in repr(result)
    assert "rows alone" in repr(rows)


def test_a_drawn_table_is_fitted_and_classified_anew(students, cheats, honest):
    """An estimate of the bootstrap is that of three steps on the table of the rows drawn, fitted from scratch."""
    at_hand = classified(cheats, students, "three_step")
    weight = np.random.default_rng(5).multinomial(315, np.full(315, 1 / 315)).astype(float)
    table, assigned = at_hand.refitted(weight).table("modal"), students.loc[students.index.repeat(weight.astype(int))]
    fit = VBDiscreteDAG(latents={"class": 2}, method="ml", tol=1e-12, max_iter=10_000, random_state=0)
    fit.fit(assigned[QUESTIONS])
    honest_again = int(fit.tables_["class"].values.argmax())
    order, again = [honest, 1 - honest], [honest_again, 1 - honest_again]
    expected = three_step(fit, assigned, "GPA").classification[np.ix_(again, again)]
    np.testing.assert_allclose(table[np.ix_(order, order)], expected, atol=1e-4)
    assert abs(expected - at_hand.table("modal")[np.ix_(order, order)]).max() > 0.01

    def proportions(rows):
        return rows.table("modal").ravel()

    drawn = at_hand.by_resampling("three_step", proportions, np.zeros((315, 1)), 2, 5, None)
    places = np.lexsort(np.round(at_hand.posterior, 9).T)
    for k, estimate in enumerate(drawn):
        times = np.random.default_rng((5, 2**35 + 2, k)).multinomial(315, np.full(315, 1 / 315))
        weight = times[np.argsort(places)].astype(float)
        np.testing.assert_allclose(estimate, proportions(at_hand.refitted(weight)), atol=1e-9)


@pytest.mark.slow
def test_slopes_and_their_errors_on_200_tables():
    """Slope 1 of the second class: no bias of its own, and intervals over rows that cover, where classes are clear."""
    items, estimates, errors = np.array([[0.05, 0.1, 0.1, 0.15, 0.1], [0.9, 0.85, 0.9, 0.8, 0.9]]), [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        u = rng.normal(size=400)
        label = (rng.random(400) < 1 / (1 + np.exp(1 - u))).astype(int)
        answers = (rng.random((400, 5)) < items[label]).astype(float)
        fit = VBMixture(2, emission="bernoulli", method="ml", random_state=0).fit(answers)
        first = int((fit.predict_proba(answers).T @ answers[:, 0] / fit.counts_).argmin())
        result = three_step(fit, answers, u, reference=first)
        estimates.append(result.coefficients[1 - first, 1])
        errors.append(result.standard_errors[1 - first, 1])
    estimates, errors = np.array(estimates), np.array(errors)
    assert abs(estimates.mean() - 1) < 3 * estimates.std() / np.sqrt(200)
    covered = (abs(estimates - 1) < 1.96 * errors).mean()
    assert 0.91 <= covered <= 0.985


def test_a_network_with_two_hidden_nodes_needs_a_name(students):
    table = students[["LIEEXAM", "FRAUD"]]
    fit = VBNetwork([("h", "LIEEXAM"), ("g", "FRAUD")], latents={"h": 2, "g": 2}, random_state=0, tol=1.0).fit(table)
    with pytest.raises(ValueError, match="needs the name of a hidden node"):
        three_step(fit, table, students["GPA"])


def test_separated_classes_have_no_maximum(students, cheats, honest):
    far = pd.get_dummies(cheats.predict(students[QUESTIONS]) == honest).iloc[:, 0].astype(float)
    result = three_step(cheats, students, far, reference=honest)
    assert any("no maximum" in doubt for doubt in result.doubts)
    assert np.isnan(result.standard_errors[1 - honest]).any()
    assert np.isnan(result.wald_tests()["True" if "True" in result.names else result.names[1]][0])


@pytest.mark.filterwarnings("ignore:The best start")
def test_classes_that_no_row_is_assigned_to(students):
    """The advice of the message works where it is given."""
    same = students.iloc[:60]
    fit = VBMixture(2, emission="categorical", random_state=0).fit(same[QUESTIONS])
    with pytest.raises(ValueError, match="Fit fewer classes"):
        distal(fit, same, "GPA")
    rows = pd.DataFrame({"a": [0.0, 1.0] * 40, "y": np.arange(80.0)})
    proportions = np.where(rows[["a"]] > 0, [0.55, 0.45], [0.95, 0.05])
    fit = VBMixture(2, emission="bernoulli", init=proportions, max_iter=1, tol=1e-3).fit(rows[["a"]])
    with pytest.raises(ValueError, match="Take assignment='proportional'"):
        distal(fit, rows, "y")
    assert np.isfinite(distal(fit, rows, "y", assignment="proportional").means).all()


def test_mistakes_are_named(students, cheats):
    rows = students[QUESTIONS]
    with pytest.raises(TypeError, match="takes a fitted VBMixture"):
        three_step(VBHMM(2), rows, students["GPA"])
    with pytest.raises(ValueError, match="linearly dependent"):
        three_step(cheats, students, students.assign(same=2 * students["GPA"])[["GPA", "same"]])
    with pytest.raises(ValueError, match=r"'x' .* is not in X"):
        three_step(cheats, students, "x")
    with pytest.raises(ValueError, match="has 3 rows"):
        three_step(cheats, rows, np.ones((3, 1)))
    with pytest.raises(ValueError, match="missing, or not finite, in 1 of 315"):
        three_step(cheats, rows, students["GPA"].where(np.arange(315) > 0))
    with pytest.raises(ValueError, match="takes the data of the fit"):
        three_step(cheats, students.iloc[:100], "GPA")
    with pytest.raises(ValueError, match="'method' parameter"):
        three_step(cheats, students, "GPA", method="naive")
    with pytest.raises(ValueError, match="'reference' parameter"):
        three_step(cheats, students, "GPA", reference=2)
    with pytest.raises(ValueError, match="'n_boot' parameter"):
        three_step(cheats, students, "GPA", n_boot=1)
    with pytest.raises(TooLargeError, match="'n_boot'"):
        three_step(cheats, students, "GPA", n_boot=10**12)
    with pytest.raises(ValueError, match="no hidden node"):
        three_step(cheats, students, "GPA", latent=np.zeros(3))
    with pytest.raises(TypeError, match="Got None"):
        distal(cheats, students, None)
    result = three_step(cheats, students, "GPA")
    with pytest.raises(ValueError, match="must have the columns 'GPA'"):
        result.class_probabilities(pd.DataFrame({"other": [1.0]}))
    with pytest.raises(ValueError, match="must be numbers"):
        result.class_probabilities(pd.DataFrame({"GPA": ["high"]}))


def test_outcomes_with_gaps_are_left_out(students, cheats):
    gaps = students["GPA"].where(np.arange(315) % 5 > 0)
    result = distal(cheats, students, gaps)
    assert result.n_missing == 63
    assert "left out: 63" in repr(result)
    assert "<table" in result._repr_html_()
