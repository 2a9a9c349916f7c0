"""The laws of scores, on every family of models of the registry."""

import pytest
from laws import score_laws
from laws.instance import Case


@pytest.mark.parametrize("kind", Case.sampled)
def test_sampled_evidences_are_right(any_model, kind, rng):
    score_laws.sampled_evidence_is_right(any_model, kind, rng)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*Case.sampled, "importance"])
def test_deviations_are_standard_normal(any_model, kind, rng):
    score_laws.deviations_are_standard_normal(any_model, kind, rng)


def test_closed_forms_are_in_their_order(any_model, rng):
    score_laws.closed_forms_are_in_their_order(any_model, rng)


def test_chains_do_not_depend_on_others(any_model, rng):
    score_laws.chains_do_not_depend_on_others(any_model, rng)


def test_weights_are_repeats_for_chains(any_model, rng):
    score_laws.weights_are_repeats_for_chains(any_model, rng)


def test_enumeration_is_the_definition(any_model, rng):
    score_laws.enumeration_is_the_definition(any_model, rng)


def test_every_score_knows_every_model(any_model, rng):
    score_laws.every_score_knows_the_model(any_model, rng)
