"""The laws of models, `skvbem.testing.check_model`, on every family of the registry."""

import sys
from dataclasses import fields
from pathlib import Path

import pytest
from laws.models import MODELS, having, hold, of

from skvbem.capabilities import Capabilities
from skvbem.testing import models
from skvbem.testing.cases import ASKED

WITH_FORMS = [(case, form) for case in MODELS.values() for form in case.forms]
WITH_OPTIMA = [(case, form) for case, form in WITH_FORMS if form != "ml" or case in having("maximum_likelihood")]


def test_every_law_is_tried():
    text = "".join((Path(__file__).parent / name).read_text("utf-8") for name in ("test_models.py", "test_scores.py"))
    assert [law for law in models.LAWS if f'"{law}"' not in text and f"s.{law}(" not in text] == []


def test_what_families_lack():
    """No law passes a family by unless it stands here."""
    lacks = {name: set(case.lacks) for name, case in MODELS.items()}
    assert lacks.pop("network") == {"one_by_one", "row_posteriors"}
    of_paths = {"counted", "marginals", "information", "enumeration", "exact", "log_evidence"}
    of_states = {"map_probability", "maximum_likelihood", "row_posteriors", "finite_cells", "complete", "regular"}
    assert lacks.pop("linear dynamical system") == of_paths | of_states
    assert lacks.pop("structural time series") == of_paths | of_states | {"relabeling"}
    of_nodes = {"marginals", "one_by_one", "row_posteriors", "finite_cells", "map_probability"}
    assert lacks.pop("mixed network of counts") == of_nodes
    assert lacks.pop("mixed network of measurements") == of_nodes | {"maximum_likelihood"}
    of_numbers = {"enumeration", "complete", "regular", "maximum_likelihood"}
    assert lacks.pop("network of hidden numbers") == of_nodes | of_numbers
    assert lacks.pop("network of latent numbers") == of_nodes | of_numbers
    for name, lacking in lacks.items():
        emission = name.split(" of ")[1]
        finite = emission in ("categorical", "bernoulli")
        bounded = finite or emission not in ("full", "tied", "diag", "spherical", "independent")
        expected = {
            "map_probability": False,
            "finite_cells": finite,
            "maximum_likelihood": bounded,
            "dimension": emission != "multinomial" and not name.startswith("semi-Markov"),
        }
        assert lacking == {capability for capability, has in expected.items() if not has}, name
    for case in MODELS.values():
        assert set(case.lacks) <= {*ASKED, *(field.name for field in fields(Capabilities))}
        assert all(case.lacks.values())


def test_the_bound_is_the_evidence_where_nothing_is_hidden(any_model, rng):
    hold("bound_is_the_evidence_where_nothing_is_hidden", any_model, rng)


def test_the_evidence_of_complete_data_is_the_definition(any_model, rng):
    hold("evidence_of_complete_data_is_the_definition", any_model, rng)


def test_the_bound_is_below_the_evidence(any_model, rng):
    hold("bound_is_below_the_evidence", any_model, rng)


# An accelerated run takes plain steps, too: runs of these alone stay for one form.
RUNS = [
    pytest.param(case, form, accelerate, marks=() if accelerate or form == "vb" else pytest.mark.slow)
    for accelerate in (False, True)
    for case, form in WITH_FORMS
]


@pytest.mark.parametrize(("case", "form", "accelerate"), RUNS, ids=str)
def test_the_objective_never_falls(case, form, accelerate, rng):
    models.objective_never_falls(case, rng, [form], [accelerate])


@pytest.mark.parametrize(("case", "form"), WITH_OPTIMA, ids=str)
def test_a_fixed_point_stays_fixed(case, form, rng):
    models.fixed_point_stays_fixed(case, rng, [form])


def test_bic_stays_at_a_distance_from_the_bound(any_model, rng):
    hold("bic_stays_at_a_distance_from_the_bound", any_model, rng)


def test_expected_statistics_are_derivatives_of_the_log_normalizer(any_model, rng):
    hold("expected_statistics_are_derivatives_of_the_log_normalizer", any_model, rng)


def test_weights_are_repeats_in_any_order(any_model, rng):
    hold("weights_are_repeats_in_any_order", any_model, rng)


def test_weight_zero_is_absence(any_model, rng):
    hold("weight_zero_is_absence", any_model, rng)


@of(having("one_by_one"))
def test_rows_one_by_one_are_the_weighted_rows(case, rng):
    hold("rows_one_by_one_are_the_weighted_rows", case, rng)


@of(having("finite_cells"))
def test_a_missing_cell_is_the_sum_over_its_values(case, rng):
    hold("missing_cell_is_the_sum_over_its_values", case, rng)


def test_threads_change_no_bit(any_model, rng, monkeypatch):
    instance = any_model.tiny(rng, 0)
    files = [sys.modules[found.__module__] for found in (type(instance.model), instance.ascent)]
    with_threads = [file for file in files if hasattr(file, "_WORTH_THREADS")]
    assert with_threads
    for file in with_threads:
        monkeypatch.setattr(file, "_WORTH_THREADS", 0)
    hold("threads_change_no_bit", any_model, rng)


def test_relabeling_changes_nothing_but_the_order(any_model, rng):
    hold("relabeling_changes_nothing_but_the_order", any_model, rng)


@of(having("row_posteriors"))
def test_relabeling_reorders_the_posteriors_of_rows(case, rng):
    hold("relabeling_reorders_the_posteriors_of_rows", case, rng)


def test_relabelings_leave_likelihood_and_prior(any_model, rng):
    hold("relabelings_leave_likelihood_and_prior", any_model, rng)
