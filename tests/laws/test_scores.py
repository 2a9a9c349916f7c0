"""Scores and models together: laws of `skvbem.testing`, on every family of models and on every score."""

from dataclasses import replace

import pytest
from laws.models import having, hold, of

from skvbem.evidence import SCORES, metropolis
from skvbem.testing import EXAMPLES, ModelCase, capabilities, check_score
from skvbem.testing.scores import LAWS

# Every model with every other sampler and every sampler with every other model; slow tests try the rest.
SAMPLED = [
    pytest.param(case, kind, marks=pytest.mark.slow if (i + j) % 2 else (), id=f"{case}-{kind}")
    for i, case in enumerate(having("exact"))
    for j, kind in enumerate(ModelCase.sampled)
]


@pytest.mark.parametrize(("case", "kind"), SAMPLED)
def test_sampled_evidences_are_right(case, kind, rng):
    capabilities.sampled_evidences_are_right(case, rng, [kind])


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*ModelCase.sampled, "importance"])
@of(having("exact"))
def test_deviations_are_standard_normal(case, kind, rng):
    capabilities.deviations_are_standard_normal(case, kind, rng)


def test_closed_forms_are_in_their_order(any_model, rng):
    hold("closed_forms_are_in_their_order", any_model, rng)


def test_entropy_is_the_log_normalizer_less_expected_terms(any_model, rng):
    hold("entropy_is_the_log_normalizer_less_expected_terms", any_model, rng)


def test_chains_do_not_depend_on_others(any_model, rng):
    hold("chains_do_not_depend_on_others", any_model, rng)


def test_weights_are_repeats_for_chains(any_model, rng):
    hold("weights_are_repeats_for_chains", any_model, rng)


def test_fractions_count_for_chains_without_labels(any_model, rng):
    hold("fractions_count_for_chains_without_labels", any_model, rng)


def test_batches_grow_to_the_data(any_model, rng):
    hold("batches_grow_to_the_data", any_model, rng)


def test_enumeration_is_the_definition(any_model, rng):
    hold("enumeration_is_the_definition", any_model, rng)


def test_every_score_knows_every_model(any_model, rng, monkeypatch):
    monkeypatch.setattr(
        metropolis, "TUNING", replace(metropolis.TUNING, metropolis_steps=1)
    )  # any strength of proposals gives a number
    hold("every_score_knows_the_model", any_model, rng)


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("kind", SCORES)
def test_every_score_keeps_the_laws(kind, name, rng):
    """On the tiny models of the registry; what is not tried is for the other kind of score."""
    small = {
        "n_chains": 12,
        "n_steps": 16,
        "n_draws": 128,
        "n_runs": 8,
        "n_particles": 8,
        "max_particles": 8,
        "n_completions": 16,
        "exact_terms": 0,
    }
    options = {option: value for option, value in small.items() if option in SCORES[kind].options}
    (report,) = check_score(kind, EXAMPLES[name], options=options, rng=rng)
    of_chance = {"sampled_evidence_is_right", "seed_decides_the_value"}
    of_none = {
        "bound_is_not_above_the_evidence",
        "order_of_rows_changes_nothing",
        "names_of_hidden_states_change_nothing",
    }
    lacking = of_none if SCORES[kind].random else of_chance
    assert set(report.lacking) - {"capabilities_it_needs_are_named"} == lacking
    assert ("capabilities_it_needs_are_named" in report.held) == bool(SCORES[kind].needs)
    assert set(report.held) | set(report.lacking) == set(LAWS)
