"""The value a score returns, what a score asks for, and the registry."""

import math
import pickle
from dataclasses import fields, replace

import numpy as np
import pytest
from evidence.evaluations import evaluation_of
from reference import facts
from reference.discrete_network import Data, Problem, uniform_prior

from skvbem.capabilities import Capabilities
from skvbem.evidence import SCORES, get_score, register_score, scorer
from skvbem.evidence.base import Evidence, Score
from skvbem.evidence.evaluation import Evaluation

LC2 = facts.latent_class(2, (2, 2, 2))


@pytest.fixture
def evaluation():
    return evaluation_of(Problem(LC2, facts.TWENTY_ROWS, uniform_prior(LC2)))


def evidence(value, **fields):
    return Evidence(value, "bic", is_lower_bound=False, n_free_parameters=7, n_samples=20.0, **fields)


def test_evidences_compare_by_value_with_each_other_and_with_numbers():
    low, high = evidence(-46.1), evidence(-45.0)
    assert low < high
    assert high >= low
    assert high == -45.0
    assert high > -45.5
    assert low != high
    assert hash(high) == hash(evidence(-45.0))
    assert max([low, high]) is high
    assert float(high) == -45.0
    assert high != "high"


def test_an_evidence_prints_in_one_line():
    assert repr(evidence(-46.126006, form="ml")) == "Evidence(-46.1260 nats, bic, at the ML fit, d=7, n=20)"
    drawn = Evidence(-42.6, "ais", is_lower_bound=True, standard_error=0.0123, n_free_parameters=7)
    assert repr(drawn) == "Evidence(-42.6000 ± 0.012 nats, ais, lower bound on average, d=7, n=0)"


def test_an_evidence_is_never_nan():
    with pytest.raises(FloatingPointError, match=r"'bic' is not a number"):
        evidence(math.nan)


def lacking(evaluation, *names):
    """The evaluation of a model without some capabilities."""
    without = replace(evaluation.capabilities, **dict.fromkeys(names))
    fit = evaluation.fit("vb")
    return Evaluation(
        evaluation.model, without, evaluation.data, lambda form, fit: None, fit, "vb", 20.0, evaluation.hidden, [0]
    )


def test_a_model_that_lacks_what_a_score_needs_gets_one_error(evaluation):
    score = Score("sums", lambda evaluation: evidence(0.0), ("marginals", "information"))
    assert score(evaluation) == 0.0
    with pytest.raises(
        TypeError, match=r"score 'sums' needs the capability 'information' of a model, which DiscreteDAG does not have"
    ):
        score(lacking(evaluation, "information"))


@pytest.mark.parametrize(("name", "need"), [(name, need) for name in SCORES for need in SCORES[name].needs])
def test_every_score_refuses_a_model_without_a_capability_it_needs(name, need, evaluation):
    with pytest.raises(TypeError, match=rf"score {name!r} needs the capability {need!r} of a model, which DiscreteDAG"):
        get_score(name)(lacking(evaluation, need))


@pytest.mark.parametrize("name", SCORES)
def test_scores_do_with_the_capabilities_they_name(name, evaluation, monkeypatch):
    """And without all others, as far as no option asks for more."""
    others = {field.name for field in fields(Capabilities)} - {*SCORES[name].needs}
    needed = replace(evaluation.capabilities, **dict.fromkeys(others))
    monkeypatch.setattr(evaluation, "capabilities", needed)
    assert np.isfinite(get_score(name)(evaluation).value)


def test_a_score_may_only_need_what_is_a_capability():
    with pytest.raises(ValueError, match=r"'sums' needs 'row_marginals', which is no capability. These are points, "):
        Score("sums", lambda evaluation: evidence(0.0), ("row_marginals",))


@pytest.mark.parametrize(
    ("option", "lacks"), [({"alias": True}, "relabelings"), ({"dimension": "identifiable"}, "dimension")]
)
def test_options_that_need_more_say_so(option, lacks, evaluation):
    (what,) = (f"{name}={value!r}" for name, value in option.items())
    with pytest.raises(TypeError, match=rf"{what} needs the capability {lacks!r} of a model, which DiscreteDAG does"):
        get_score("bic")(lacking(evaluation, lacks), form="vb", **option)


@pytest.mark.parametrize("name", ["bic", "laplace", "mled", "cheeseman_stutz", "collapsed", "draper"])
def test_scores_of_a_point_refuse_an_e_step_that_is_a_bound(name, evaluation, monkeypatch):
    evaluation.fit("map"), evaluation.fit("ml")
    expect = evaluation.model.expect
    monkeypatch.setattr(
        evaluation.model, "expect", lambda natural, data: replace(expect(natural, data), is_exact=False)
    )
    with pytest.raises(ValueError, match=rf"The score {name!r} needs an exact log likelihood; the E step of DiscreteD"):
        get_score(name)(evaluation)
    assert get_score("lower_bound")(evaluation).is_lower_bound


@pytest.mark.parametrize("name", SCORES)
def test_the_network_has_what_scores_of_the_registry_need(name, evaluation):
    assert all(getattr(evaluation.capabilities, need) is not None for need in SCORES[name].needs)
    found = get_score(name)(evaluation)
    assert found.kind == SCORES[name].name == name
    assert found.form == SCORES[name].form
    assert found.n_samples == 20
    assert np.isfinite(found.value)


def test_unknown_names_and_options_are_named(evaluation):
    with pytest.raises(ValueError, match=r"no score 'elbo'. The scores are auto, lower_bound, collapsed"):
        get_score("elbo")
    with pytest.raises(TypeError, match=r"'exact' has no option 'n_steps'. Its options are max_terms"):
        get_score("exact")(evaluation, n_steps=3)
    with pytest.raises(ValueError, match=r"form of fit must be one of 'vb', 'map', 'map_probability', 'ml'. Got 'em'"):
        get_score("bic")(evaluation, form="em")
    with pytest.raises(ValueError, match=r"'free' or 'identifiable'. Got 'true'"):
        get_score("bic")(evaluation, dimension="true")


@pytest.mark.parametrize("name", ["collapsed", "collapsed_ascent", "exact"])
def test_scores_that_complete_rows_want_whole_weights(name):
    data = Data(("y0", "y1", "y2"), np.array([[0, 0, 0], [0, 1, 1]]), np.array([1.5, 2.0]))
    evaluation = evaluation_of(Problem(LC2, data, uniform_prior(LC2)))
    with pytest.raises(ValueError, match=r"completes rows and needs whole-number sample weights"):
        get_score(name)(evaluation)
    assert np.isfinite(get_score("laplace")(evaluation).value)


def constant(evaluation):
    """A score from outside the library: the bound, under a name of its own."""
    return Evidence(evaluation.fit("vb").objective, "constant", is_lower_bound=True)


@pytest.fixture
def registered():
    yield register_score(Score("constant", constant))
    SCORES.pop("constant", None)


def test_a_registered_score_is_known_by_its_name(registered):
    assert get_score("constant") is registered
    assert register_score(registered) is registered
    with pytest.raises(ValueError, match="The name 'constant' belongs to another score"):
        register_score(Score("constant", constant, random=True))


def test_a_registered_score_is_known_where_a_scorer_of_it_is_sent(registered):
    """As to the workers of a search."""
    sent = pickle.dumps(scorer("constant"))
    del SCORES["constant"]
    assert pickle.loads(sent) == scorer("constant")
    assert get_score("constant").compute is constant


def test_what_is_no_score_is_refused():
    with pytest.raises(TypeError, match="register_score takes a Score"):
        register_score(constant)
    with pytest.raises(TypeError, match=r"needs a tuple of capabilities\. Got the text 'points'"):
        Score("mine", constant, needs="points")
    with pytest.raises(ValueError, match=r"The 'form' of the score 'mine' must be None or one of 'vb', .* Got 'bayes'"):
        Score("mine", constant, form="bayes")
    with pytest.raises(
        ValueError, match=r"'form' of the score 'mine' must be that of its function, 'map', .* Got 'ml'"
    ):
        Score("mine", lambda evaluation, *, form="map": 3.0, form="ml")


def test_the_form_of_a_score_is_that_of_its_function():
    assert Score("mine", lambda evaluation, *, form="map": 3.0).form == "map"
    assert Score("mine", lambda evaluation: 3.0).form is None


def test_a_score_must_return_an_evidence():
    with pytest.raises(TypeError, match=r"The score 'mine' must return an Evidence. It returned 3.0."):
        Score("mine", lambda evaluation: 3.0)(None)
