"""Forms of q(theta): what is added to counts, the constant of the penalty, the point."""

import numpy as np
import pytest
from bridge import FORMS
from families.members import CASES

from skvbem.families import Dirichlet
from skvbem.vbem import posteriors

approx = pytest.approx


def test_the_forms_have_the_names_users_give():
    assert {name: form.name for name, form in FORMS.items()} == {
        "vb": "vb",
        "map": "map",
        "map_probability": "map",
        "ml": "ml",
    }
    assert [form.density for form in FORMS.values()] == [True, False, False, False]


def test_offsets_and_points(rng):
    """The mean of Dir(counts + offset): of the posterior, its natural mode, its mode in probabilities, the counts."""
    for _ in range(20):
        case = CASES["dirichlet"](rng)
        prior = Dirichlet(case.coordinates[:, 0] + 1.01, case.prior.row_starts)
        counts = case.statistics[:, 0] + 0.1
        posterior = prior + counts
        assert posteriors.VB.point(prior, counts) == approx(posterior.mean(), rel=1e-12)
        assert posteriors.MAP.point(prior, counts) == approx(posterior.mode("natural"), rel=1e-12)
        in_probabilities = posteriors.MAP_IN_PROBABILITIES.point(prior, counts)
        assert in_probabilities == approx(posterior.mode("probability"), rel=1e-9)
        shares = counts / prior.per_cell(prior.row_sums(counts))
        assert posteriors.ML.point(prior, counts) == approx(shares, rel=1e-12)


def test_the_constant_completes_the_log_density(rng):
    """Penalty = sum of offset x ln theta + constant = ln p(theta) in the form's own basis."""
    for _ in range(20):
        prior = Dirichlet.from_rows(rng.uniform(1.1, 5, size=(3, 4)))
        point = prior.sample(rng)
        for form, basis in ((posteriors.MAP, "natural"), (posteriors.MAP_IN_PROBABILITIES, "probability")):
            penalty = (form.offset(prior) * np.log(point)).sum() + form.constant(prior)
            assert penalty == approx(float(prior.log_density(point, basis)), rel=1e-12)
        assert posteriors.VB.constant(prior) == posteriors.ML.constant(prior) == 0
        assert not posteriors.ML.offset(prior).any()


def test_a_row_of_one_cell_is_no_parameter():
    prior = Dirichlet.from_rows([[0.3], [2.0, 3.0]])
    for form in FORMS.values():
        assert form.point(prior, np.array([0.0, 1.0, 1.0]))[0] == 1.0
        assert form.point(prior, np.array([5.0, 1.0, 1.0]))[0] == 1.0
        assert np.isfinite(form.constant(prior))


def test_rows_without_mass_are_uniform():
    prior = Dirichlet.from_rows([[1.0, 1.0], [1.0, 1.0, 1.0]])
    counts = np.array([0.0, 0.0, 1.0, 0.0, 3.0])
    assert posteriors.ML.point(prior, counts) == approx([0.5, 0.5, 0.25, 0, 0.75])
    assert posteriors.MAP_IN_PROBABILITIES.point(prior, counts) == approx([0.5, 0.5, 0.25, 0, 0.75])
