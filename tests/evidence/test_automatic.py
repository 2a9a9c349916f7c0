"""The score that asks several samplers: whom it asks, whom it believes, and when it says that it does not know."""

import numpy as np
import pytest
from evidence.evaluations import evaluation_of
from laws.problems import enumerable
from reference.discrete_network import exact_log_evidence

from skvbem import VBDiscreteDAG, VBMixture
from skvbem.datasets import load_coleman_panel, load_stouffer_toby
from skvbem.errors import EvidenceWarning
from skvbem.evidence import Evidence, automatic, get_score
from skvbem.evidence.growing_data import ParticleRun

AUTO = get_score("auto")
# ln p of three classes of Stouffer and Toby's respondents, and its standard error, by a population of 8 192 particles.
STOUFFER_3, STOUFFER_3_ERROR = -523.58, 0.06


def said(value, error, *, sure=True, kind="importance_gibbs", worth=None, pareto_k=None):
    """What a sampler says of 100 weights; one that is not sure says that these are worth few, of a heavy tail."""
    details = {
        "log_weights": np.full(100, value),
        "effective_sample_size": worth or (90.0 if sure else 5.0),
        "pareto_k": pareto_k or (0.3 if sure else 0.9),
    }
    doubts = () if sure else (f"{kind}: not to be trusted.",)
    return Evidence(value, kind, True, error, details=details, doubts=doubts)


def population(value, error, *, complete=True, hopeless=False):
    """A population; one that is given up resampled for every unit it saw, or for every tenth."""
    n_resamplings = 10 if complete else (5 if hopeless else 1)
    trace = np.array([[0.0, 0.0], [5.0 if not complete else 50.0, value]])
    return ParticleRun(value, error**2, n_resamplings, 50, trace, np.full(512, value), 1.0 if complete else 0.1)


@pytest.fixture
def asked(monkeypatch):
    """The score of a problem whose samplers say what is given, one answer after another; no bridges where none are."""

    def ask(importances, populations=(), chains=(), bridges=(), annealed=(), **options):
        answers = {"importance": iter(importances), "populations": iter(populations), "chains": iter(chains)}
        answers["bridges"] = iter(bridges)
        answers["annealed"] = iter(annealed)
        monkeypatch.setattr(automatic._CrossCheck, "has_few_cells", bool(bridges))
        monkeypatch.setattr(automatic._CrossCheck, "has_annealed_bridge", bool(annealed))
        monkeypatch.setattr(automatic, "annealed_bridge", lambda *_, **__: next(answers["annealed"]))
        monkeypatch.setattr(automatic, "bridge_sampling", lambda *_, **__: next(answers["bridges"]))
        monkeypatch.setattr(automatic, "importance_gibbs", lambda *_, **__: next(answers["importance"]))
        monkeypatch.setattr(automatic, "particle_runs", lambda *_, **__: [next(answers["populations"])])
        monkeypatch.setattr(automatic, "anchored_ais", lambda *_, **__: next(answers["chains"]))
        return AUTO(evaluation_of(enumerable(5, 2**9, hidden=True)), exact_terms=0, **options)

    return ask


def test_few_terms_are_summed():
    problem = enumerable(5, 2**9, hidden=True)
    found = AUTO(evaluation_of(problem))
    assert found.value == pytest.approx(exact_log_evidence(*problem), abs=1e-9)
    assert (found.standard_error, found.is_lower_bound, found.doubts) == (0.0, True, ())
    assert list(found.details["asked"]) == ["exact"]
    sampled = AUTO(evaluation_of(problem), exact_terms=1)
    assert sampled.standard_error > 0
    assert "exact" not in sampled.details["asked"]


def test_without_a_closed_form_of_complete_rows_samplers_are_asked(rng):
    """Full covariances and a missing cell: no enumeration, however few the terms."""
    X = rng.normal(size=(6, 2))
    X[0, 0] = np.nan
    model = VBMixture(2, random_state=0).fit(X)
    found = model.log_evidence(X, kind="auto", error=1.0)
    assert found.details["taken"] == ("bridge",)


def bridge(value, error, pareto_k=0.3):
    """What bridge sampling says, as sure as its diagnostics make it."""
    return said(value, error, sure=error <= 0.2 and pareto_k <= 1.5, kind="bridge", pareto_k=pareto_k)


def test_diagnostics_of_a_bridge_decide(asked):
    """A small error and no heavy tail are an answer; else longer chains follow, then the other samplers."""
    found = asked([], bridges=[bridge(-100.0, 0.09, pareto_k=1.4)])
    assert (found.value, found.standard_error, found.details["taken"]) == (-100.0, 0.09, ("bridge",))
    assert not found.is_lower_bound
    for first in (bridge(-100.5, 0.11), bridge(-100.5, 0.05, pareto_k=1.6)):
        found = asked([], bridges=[first, bridge(-100.0, 0.09)])
        assert (found.value, found.details["taken"]) == (-100.0, ("bridge 2",))
    found = asked([said(-99.8, 0.02)], [population(-99.9, 0.2)], bridges=[bridge(-100.5, 0.3), bridge(-100.3, 0.15)])
    assert (found.value, found.details["taken"]) == (-99.8, ("importance_gibbs",))
    assert list(found.details["asked"]) == ["bridge", "bridge 2", "importance_gibbs", "smc_data"]
    found = asked([], bridges=[bridge(-100.5, 0.15)], error=0.2)
    assert found.details["taken"] == ("bridge",)


def test_annealed_chains_follow_where_longer_ones_will_not_do(asked):
    """Twice the work halves an error: of a rough bridge chains are annealed at once, and longer if need be."""
    found = asked([], bridges=[bridge(-103.0, 0.9)], annealed=[bridge(-100.0, 0.09)])
    assert (found.value, found.details["taken"]) == (-100.0, ("annealed_bridge",))
    assert list(found.details["asked"]) == ["bridge", "annealed_bridge"]
    found = asked([], bridges=[bridge(-103.0, 0.9)], annealed=[bridge(-100.3, 0.2), bridge(-100.0, 0.15)])
    assert (found.value, found.details["taken"]) == (-100.0, ("annealed_bridge 2",))
    assert "were wanted" in found.doubts[0]
    rough = [bridge(-103.0, 0.9)], [bridge(-100.3, 0.4), bridge(-100.0, 0.3)]
    found = asked([said(-99.8, 0.02)], [population(-99.9, 0.2)], bridges=rough[0], annealed=rough[1])
    assert found.details["taken"] == ("importance_gibbs",)


def test_bridges_from_the_same_optima_do_not_confirm_each_other(asked):
    """They agree with each other where a hill is missed by both; another sampler confirms them."""
    rough = [bridge(-100.5, 0.15), bridge(-100.4, 0.12)]
    lost, doubted = population(-20.0, 0.5, complete=False), said(-104.0, 9.0, sure=False)
    chains = said(-101.0, 0.3, sure=False, kind="ais")
    found = asked([doubted, doubted, doubted], [lost, lost], [chains, chains], bridges=rough)
    assert found.doubts
    sure = said(-100.3, 0.1, worth=10)
    found = asked([doubted, doubted, sure], [lost, lost], [chains, chains], bridges=rough)
    assert (found.value, found.details["taken"], found.doubts) == (-100.3, ("importance_gibbs 3",), ())


def test_the_cheapest_is_believed_where_another_confirms_it(asked):
    found = asked([said(-100.0, 0.02)], [population(-100.1, 0.2)])
    assert (found.value, found.details["taken"], found.doubts) == (-100.0, ("importance_gibbs",), ())
    assert found.standard_error == 0.02


def test_an_error_is_not_smaller_than_witnesses_allow(asked):
    """A witness 2.2 standard errors away is asked again; then the error is what makes that two of them."""
    found = asked([said(-100.0, 0.02)], [population(-99.56, 0.2), population(-99.78, 0.1)])
    assert list(found.details["asked"]) == ["importance_gibbs", "smc_data", "smc_data 2"]
    assert found.value == -100.0
    assert np.hypot(found.standard_error, 0.1) == pytest.approx(0.22 / 2)


def test_a_sampler_in_doubt_is_not_believed(asked):
    """Weights of a heavy tail: a population takes its place, a larger one where the first is given up."""
    doubted = [said(-101.0, 0.1, sure=False), said(-101.0, 0.08, sure=False)]
    found = asked(doubted, [population(-99.9, 0.08)])
    assert (found.value, found.details["taken"], found.doubts) == (-99.9, ("smc_data",), ())
    lost, chains = population(-20.0, 0.5, complete=False), said(-99.0, 0.05, sure=False, kind="ais")
    found = asked(doubted, [lost, population(-99.9, 0.08)], [chains, chains])
    assert (found.value, found.details["taken"], found.doubts) == (-99.9, ("smc_data 2",), ())


@pytest.mark.parametrize("hopeless", [False, True])
def test_annealed_chains_are_asked_where_gibbs_draws_and_a_small_population_lead_nowhere(asked, hopeless):
    """They are believed where a larger population confirms them, as far as it does, though it is less exact."""
    doubted = [said(-107.0, 26.0, sure=False), said(-104.0, 60.0, sure=False)]
    lost = population(-20.0, 0.5, complete=False, hopeless=hopeless)
    found = asked(doubted, [lost, population(-99.8, 0.3)], [said(-100.0, 0.06, kind="ais")])
    assert (found.value, found.standard_error, found.details["taken"]) == (-100.0, 0.06, ("ais",))
    assert not found.doubts
    in_doubt, vague = said(-101.0, 0.05, sure=False, kind="ais"), said(-101.0, 0.4, kind="ais")
    for first in (in_doubt, vague):
        found = asked(doubted, [lost, population(-99.8, 0.3)], [first, said(-100.0, 0.06, kind="ais")])
        assert (found.value, found.details["taken"], found.doubts) == (-100.0, ("ais 2",), ())
    witness = population(-100.6, 0.25)
    found = asked(doubted, [lost, witness], [said(-100.0, 0.06, kind="ais")], error=0.2)
    assert found.standard_error == pytest.approx(np.sqrt(0.3**2 - 0.25**2))
    assert not found.doubts
    far, none = population(-98.0, 0.25), said(-107.0, 26.0, sure=False)
    found = asked([*doubted, none], [lost, far, far], [said(-100.0, 0.06, kind="ais")])
    assert (found.value, len(found.doubts)) == (-98.0, 1)
    low = population(-103.0, 0.25)
    found = asked([*doubted, none], [lost, low, low], [said(-100.0, 0.06, kind="ais")])
    assert (found.value, len(found.doubts)) == (-100.0, 1)


def test_annealed_chains_are_not_asked_before_what_is_sure_of_itself(asked):
    """Weights of a heavy tail that do not doubt themselves are no reason; nor are chains right that lie far below them.

    These are the values of a run on the eruptions of Old Faithful in three components, where ln p is -1162.65.
    """
    heavy = [said(-1162.71, 0.07, worth=10, pareto_k=0.6), said(-1162.62, 0.02, worth=10, pareto_k=0.6)]
    lost, low = population(-20.0, 0.5, complete=False), said(-1162.95, 0.05, kind="ais")
    found = asked(heavy, [lost, population(-1162.6, 0.09)], [low])
    assert (found.value, found.details["taken"]) == (-1162.6, ("smc_data 2",))
    assert "ais" not in found.details["asked"]
    doubted, longer = [heavy[1], said(-1162.6, 0.5, sure=False)], said(-1162.63, 0.03, worth=10)
    found = asked([*doubted, longer], [lost, population(-1162.8, 0.15), population(-1162.8, 0.15)], [low])
    assert "ais" in found.details["asked"]
    assert found.value in (-1162.62, -1162.63)


@pytest.mark.parametrize("shape_of_more", [0.49, 0.3])
def test_weights_of_a_heavy_tail_that_look_sure_are_not_believed(asked, shape_of_more):
    """Two runs that did not meet the largest weights are low together, and a population of little error contradicts.

    These are the values of a run on the Nile, where ln p is -647.03. The shape of few weights may look light by chance.
    """
    runs = [said(-647.49, 0.048, worth=10, pareto_k=0.46), said(-647.44, 0.048, worth=10, pareto_k=shape_of_more)]
    found = asked(runs, [population(-647.07, 0.09)])
    assert (found.value, found.details["taken"], found.doubts) == (-647.07, ("smc_data",), ())
    assert found.standard_error == pytest.approx(0.09)


def test_a_heavy_tail_is_not_confirmed_by_what_is_vague(asked):
    """Where no population is as sure as was wanted, any other confirmed sampler is taken before such weights."""
    runs = [said(-100.4, 0.05, worth=10, pareto_k=0.5) for _ in range(3)]
    found = asked(runs, [population(-100.1, 0.2)], [said(-100.05, 0.09, kind="ais")])
    assert (found.value, found.details["taken"], found.doubts) == (-100.05, ("ais",), ())


def test_a_population_far_below_weights_of_a_heavy_tail_settles_nothing(asked):
    """All are rarely too high, and three runs of one kind are too low rather than too high together."""
    runs = [said(-100.0, 0.05, worth=10, pareto_k=0.5) for _ in range(3)]
    found = asked(runs, [population(-101.0, 0.05)])
    assert (found.value, found.details["taken"]) == (-100.0, ("importance_gibbs",))


@pytest.mark.parametrize(("worth", "pareto_k", "taken"), [(40, 0.6, " 2"), (40, 0.4, ""), (80, 0.6, "")])
def test_weights_without_a_variance_have_more_completions(asked, worth, pareto_k, taken):
    """But where they are nearly equal, and little is in their tail."""
    runs = [said(-100.0, 0.02, worth=worth, pareto_k=pareto_k), said(-99.9, 0.02)]
    found = asked(runs, [population(-99.95, 0.2)])
    assert found.details["taken"] == (f"importance_gibbs{taken}",)


def test_samplers_of_one_anchor_are_wrong_together_where_populations_are_higher(asked):
    """Two populations that know of no fit and agree outweigh any number of samplers that begin at one."""
    anchored = [said(-100.0, 0.02), said(-100.0, 0.01)]
    found = asked(anchored, [population(-98.0, 0.2), population(-98.1, 0.1)])
    assert (found.value, found.details["taken"], found.doubts) == (-98.1, ("smc_data 2",), ())


def test_where_nothing_agrees_the_highest_is_taken_and_doubted(asked):
    anchored = [said(-100.0, 0.02), said(-100.0, 0.01)]
    found = asked(anchored, [population(-98.0, 0.2), population(-96.5, 0.1)], [said(-100.0, 0.1, kind="ais")])
    assert found.value == -96.5
    assert found.standard_error > 1.0
    assert "no two samplers" in found.doubts[0]


def test_where_the_prior_is_far_two_runs_confirm_each_other(asked):
    far = population(-20.0, 0.5, complete=False, hopeless=True)
    found = asked([said(-100.0, 0.02), said(-100.02, 0.02)], [far])
    assert found.details["taken"] == ("importance_gibbs", "importance_gibbs 2")
    assert found.details["asked"]["smc_data"] is None
    assert -100.02 < found.value < -100.0
    assert not found.doubts


def test_two_runs_that_disagree_are_doubted(asked):
    far = population(-20.0, 0.5, complete=False, hopeless=True)
    runs = [said(-100.0, 0.02), said(-101.0, 0.02), said(-102.0, 0.02)]
    found = asked(runs, [far], [said(-104.0, 0.1, kind="ais")])
    assert found.value == -100.0
    assert found.standard_error > 1.0
    assert "gave up" in found.doubts[0]


def test_a_vague_witness_confirms_nothing(asked):
    found = asked(
        [said(-100.0, 0.02), said(-90.0, 0.02)],
        [population(-99.0, 0.9), population(-99.0, 0.8)],
        [said(-95.0, 0.9, kind="ais")],
    )
    assert found.doubts


def test_an_error_that_is_not_reached_is_told(asked):
    found = asked([said(-100.0, 0.2), said(-100.1, 0.2)], [population(-100.1, 0.2)])
    assert "were wanted" in found.doubts[0]


def test_time_runs_out_and_nothing_is_confirmed(asked):
    found = asked([said(-100.0, 0.02)], time_budget=0.0)
    assert list(found.details["asked"]) == ["importance_gibbs"]
    assert "no two samplers" in found.doubts[0]


def test_three_classes_where_importance_is_in_doubt(monkeypatch):
    """Stouffer and Toby's respondents: the weights have a heavy tail, and populations of growing size are right."""
    monkeypatch.setattr(automatic._CrossCheck, "has_annealed_bridge", False)
    X = load_stouffer_toby().data
    model = VBDiscreteDAG(latents=3, random_state=0).fit(X)
    found = model.log_evidence(X, kind="auto")
    assert found.details["asked"]["importance_gibbs"].doubts
    assert found.details["taken"] == ("smc_data",)
    assert abs(found.value - STOUFFER_3) < 4 * np.hypot(found.standard_error, STOUFFER_3_ERROR)
    assert found.standard_error <= 0.1


def test_three_classes_where_mixtures_are_too_rough():
    """The same respondents: a class of a few rows is what no optimum shows, and annealed chains of both sides find."""
    X = load_stouffer_toby().data
    found = VBDiscreteDAG(latents=3, random_state=0).fit(X).log_evidence(X, kind="annealed_bridge")
    assert abs(found.value - STOUFFER_3) < 3 * np.hypot(found.standard_error, STOUFFER_3_ERROR)
    assert found.standard_error < 0.25
    assert not found.doubts


def test_too_few_of_everything_is_doubted():
    X = load_coleman_panel().data
    model = VBDiscreteDAG(latents=3, random_state=0).fit(X)
    with pytest.warns(EvidenceWarning, match="auto: "):
        model.log_evidence(X, kind="auto", n_draws=64, n_particles=32, max_particles=64)


@pytest.mark.parametrize(
    "option", [{"error": 0}, {"exact_terms": -1}, {"n_draws": 1}, {"n_particles": 1.5}, {"time_budget": -1}]
)
def test_options_that_make_no_sense_are_refused(option):
    with pytest.raises(ValueError, match=next(iter(option))):
        AUTO(evaluation_of(enumerable(5, 2**9, hidden=True)), **option)
