"""Jobs of people who come from poLCA, Mplus and StepMix, with what these print or what enumeration gives."""

import json
from pathlib import Path

import numpy as np
import pytest

from skvbem import LatentClassSpace, StructureSearchCV, VBDiscreteDAG, VBMixture, bootstrap_lrt
from skvbem.datasets import load_carcinoma, load_cheating

pd = pytest.importorskip("pandas")
approx = pytest.approx
DATA = Path(__file__).parents[1] / "data"
QUESTIONS = ["LIEEXAM", "LIEPAPER", "FRAUD", "COPYEXAM"]


@pytest.fixture(scope="module")
def slides():
    return load_carcinoma(as_frame=True).data


@pytest.fixture(scope="module")
def students():
    return load_cheating(as_frame=True).data


def test_a_table_of_fit_indices_for_one_to_four_classes(slides):
    """'I want log likelihood, BIC and G2 of one to four classes side by side, as poLCA prints them.'"""
    rows = {}
    for k in (1, 2, 3, 4):
        fit = VBDiscreteDAG(latents=k, method="ml", random_state=0).fit(slides).goodness_of_fit(slides)
        rows[k] = [fit.log_likelihood, fit.bic, fit.g2, fit.n_free_parameters]
    table = pd.DataFrame(rows, index=["log likelihood", "BIC", "G2", "parameters"]).T
    polca = [[-317.2568, 706.074, 62.3654, 15], [-293.705, 697.136, 15.2617, 23], [-289.2858, 726.463, 6.4235, 31]]
    np.testing.assert_allclose(table.loc[2:], polca, atol=6e-4)


def test_class_sizes_and_answers_of_each_class(students):
    """'How many students cheat, and what do those who cheat say?' Estimates published by Dayton (1998), table 3.3."""
    model = VBDiscreteDAG(latents={"class": 2}, method="ml", tol=1e-9, random_state=0).fit(students[QUESTIONS])
    assert model.log_likelihood_ == approx(-440.0271, abs=1e-4)
    honest, cheating = np.argsort(-model.tables_["class"].values)
    yes = pd.DataFrame({name: model.tables_[name].values[[honest, cheating], 1] for name in QUESTIONS})
    assert model.tables_["class"]["class":cheating] == approx(0.161, abs=5e-4)
    np.testing.assert_allclose(yes, [[0.017, 0.029, 0.037, 0.182], [0.577, 0.589, 0.216, 0.376]], atol=6e-4)


def test_to_which_class_each_person_belongs(students):
    """'Give me everybody's posterior probabilities and the modal class.'"""
    X = students[QUESTIONS]
    model = VBDiscreteDAG(latents={"class": 2}, method="ml", random_state=0).fit(X)
    posterior, modal = model.predict_proba(X), model.predict(X)
    joint = (
        model.tables_["class"].values
        * np.prod([model.tables_[q].values[:, X[q].astype(int) - 1] for q in QUESTIONS], axis=0).T
    )
    np.testing.assert_allclose(posterior, joint / joint.sum(axis=1, keepdims=True), atol=1e-12)
    assert (modal == posterior.argmax(axis=1)).all()


def test_people_who_did_not_answer_everything_stay(students):
    """'na.rm=FALSE: use whatever each person answered.'"""
    model = VBDiscreteDAG(latents={"class": 2}, method="ml", random_state=0).fit(students)
    one = students.iloc[[np.flatnonzero(students["GPA"].isna())[0]]]
    shares = model.tables_["class"].values
    for name in QUESTIONS:
        shares = shares * model.tables_[name].values[:, int(one[name].iloc[0]) - 1]
    assert model.n_samples_ == 319
    assert model.score_samples(one)[0] == approx(np.log(shares.sum()))


def test_a_covariate_of_class_membership(students):
    """'Does the grade predict who cheats?' poLCA has -429.6384, with one slope in place of shares."""
    complete = students.dropna()
    edges = [("GPA", "class"), *(("class", name) for name in QUESTIONS)]
    model = VBDiscreteDAG(edges, latents={"class": 2}, method="ml", random_state=0).fit(complete)
    grades = VBDiscreteDAG([], method="ml").fit(complete[["GPA"]])
    assert -429.6384 < model.log_likelihood_ - grades.log_likelihood_ < -429.4
    cheating = np.argmin(model.counts_["class"].values.sum(axis=0))
    assert (np.diff(model.tables_["class"].values[:, cheating]) < 0).all()


def test_how_probable_each_number_of_classes_is(slides):
    """'Two or three classes, and how sure is that?' Evidences by importance sampling of an independent program."""
    reference = json.loads((DATA / "carcinoma.ref.json").read_text())["by_K"]
    search = StructureSearchCV(VBDiscreteDAG(), LatentClassSpace([2, 3], slides.columns), random_state=0).fit(slides)
    odds = np.exp(reference["2"]["ln_evidence"] - reference["3"]["ln_evidence"])
    assert search.structure_posterior_[0] == approx(odds / (1 + odds), rel=0.2)


def test_a_bootstrap_test_of_two_classes_against_three(slides):
    """'TECH14: is a third class more than chance?'"""
    two, three = (VBDiscreteDAG(latents=k, method="ml", n_init=3, random_state=0).fit(slides) for k in (2, 3))
    test = bootstrap_lrt(two, three, slides, n_boot=19)
    assert test.statistic == approx(2 * (317.2568 - 293.705), abs=1e-3)
    assert test.p_value == 1 / 20


def test_the_same_classes_as_a_mixture(students):
    """'Entropy, BIC and bivariate residuals of a mixture, as Mplus prints them.' They are those of the network."""
    X = students[QUESTIONS]
    network = VBDiscreteDAG(latents=2, method="ml", tol=1e-9, random_state=0).fit(X)
    mixture = VBMixture(2, emission="categorical", method="ml", tol=1e-9, random_state=0).fit(X)
    fit, same = network.goodness_of_fit(X), mixture.goodness_of_fit(X)
    assert same.entropy_r2["component"] == approx(fit.entropy_r2["h0"], abs=1e-4)
    assert (same.bic, same.g2, same.degrees_of_freedom) == approx((fit.bic, fit.g2, fit.degrees_of_freedom), abs=1e-4)
    assert same.bivariate_residuals == approx(fit.bivariate_residuals, abs=1e-3)


def test_a_profile_of_measurements_and_categories():
    """'A class for flowers by lengths and by a category that I made, in one model.'"""
    from sklearn.datasets import load_iris

    frame = load_iris(as_frame=True).data.iloc[:, :3]
    frame["wide"] = np.where(load_iris().data[:, 3] > 1, "wide", "narrow")
    model = VBMixture(2, covariance_type="diag", random_state=0).fit(frame)
    shares = model.parameters_["categorical"]["probabilities"][:, 0, list(model.categories_["wide"]).index("wide")]
    assert sorted(np.round(shares, 1)) == [0.0, 0.9]
