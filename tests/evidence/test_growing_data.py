"""A population over growing data: what it says of its own error, and that it is moved."""

import tracemalloc
import warnings

import numpy as np
import pytest
from evidence.evaluations import evaluation_of
from laws.models import MODELS
from laws.problems import enumerable
from reference.discrete_network import exact_log_evidence

from skvbem import VBDiscreteDAG, VBMixture
from skvbem.datasets import load_carcinoma
from skvbem.errors import TooLargeError
from skvbem.evidence import get_score
from skvbem.fitting.evaluation import fit_at_hand
from skvbem.testing.capabilities import deviations, evaluations

N_RUNS = 60


def test_populations_are_right_on_average_and_as_uncertain_as_they_say():
    """The mean of exp(value) is the evidence; the stated variance is that of 60 populations, or up to thrice as much.

    Offspring are rounded by systematic resampling, which the stated variance takes for chance.
    """
    problem = enumerable(5, 2**9, hidden=True)
    score, exact = get_score("smc_data"), exact_log_evidence(*problem)
    found = [
        score(evaluation_of(problem, seed=seed), n_particles=256, max_particles=256).details["runs"][0]
        for seed in range(N_RUNS)
    ]
    weights = np.exp([each.log_evidence - exact for each in found])
    assert abs(weights.mean() - 1) < 3.5 * weights.std() / np.sqrt(N_RUNS)
    stated = np.mean([each.relative_variance for each in found])
    assert 0.7 < stated / weights.var() < 3.0


def measured_far_from_the_prior():
    """Twelve rows of four columns whose widths differ, and a model of one component under hidden hyperparameters."""
    X = 5.0 + np.random.default_rng(0).normal(size=(12, 4)) * [0.5, 1.0, 2.0, 0.3]
    return X, VBMixture(1, emission="gaussian", random_state=0).fit(X)


def test_where_the_first_row_leaves_few_more_particles_see_it():
    """Still without bias: of 256 particles less than one in twenty is left by the first row, in every run."""
    X, model = measured_far_from_the_prior()
    exact = model.log_evidence(X, kind="importance_gibbs", n_draws=16_384).value
    evaluation, score = fit_at_hand(model, X).evaluation, get_score("smc_data")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [
            score(evaluation.reseeded(seed), n_particles=256, max_particles=256).details["runs"][0]
            for seed in range(40)
        ]
    weights = np.exp([each.log_evidence - exact for each in found])
    assert abs(weights.mean() - 1) < 3.5 * weights.std() / np.sqrt(len(found))
    assert 0.5 < np.mean([each.relative_variance for each in found]) / weights.var() < 3.0


def test_hidden_hyperparameters_are_uncertain_though_no_row_is():
    """One component: labels are known, scales of measurements are not."""
    X, model = measured_far_from_the_prior()
    found, other = (model.log_evidence(X, kind=kind) for kind in ("smc_data", "importance_gibbs"))
    assert abs(found.value - other.value) < 4 * found.standard_error < 1.0


def test_populations_are_moved_where_data_are_many():
    """118 rows: without moves particles would be copies of a few, and their likelihoods too."""
    X = load_carcinoma().data
    model = VBDiscreteDAG(latents=2, random_state=0).fit(X)
    found = model.log_evidence(X, kind="smc_data", n_particles=1024, max_particles=1024)
    population = found.details["runs"][0]
    assert population.n_resamplings > 10
    assert len(np.unique(population.log_weights)) == 1024
    assert abs(found.value + 357.31) < 4 * found.standard_error  # of importance_gibbs and ais, ± 0.01


def test_a_population_of_few_lines_is_doubted():
    X = load_carcinoma().data
    model = VBDiscreteDAG(latents=2, random_state=0).fit(X)
    with pytest.warns(match="descend from"):
        model.log_evidence(X, kind="smc_data", n_particles=32, max_particles=32)


def test_memory_is_planned():
    """What is refused is refused with the estimate, which what is held comes near to; populations grow no further."""
    X = load_carcinoma().data
    model = VBDiscreteDAG(latents=2, random_state=0).fit(X)
    evaluation = fit_at_hand(model, X).evaluation
    evaluation.max_memory = 8 * (6 * evaluation.model.n_cells + 16) * 300 + 16 * 118
    with pytest.raises(TooLargeError, match="'smc_data' with 301 particles on data that count 118 would take"):
        get_score("smc_data")(evaluation, n_particles=301)
    with pytest.raises(TooLargeError, match=r"'smc_data' with 10,000,000 particles on data that count 118 would take"):
        model.log_evidence(X, kind="smc_data", n_particles=10_000_000)
    with pytest.raises(
        TooLargeError, match=r"'importance_gibbs' with 1,000,000,000 draws would take at least 6.*e\+10"
    ):
        model.log_evidence(X, kind="importance_gibbs", n_draws=1_000_000_000)
    tracemalloc.start()
    found = get_score("smc_data")(evaluation, n_particles=256, error=0.01)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [each.n_particles for each in found.details["runs"]] == [256, 300]
    assert held < 3 * evaluation.max_memory


@pytest.mark.parametrize("error", [0, -1.0, "x", None])
def test_an_error_that_is_none_is_refused(error):
    with pytest.raises(ValueError, match="'error' to be a number of nats above 0"):
        get_score("smc_data")(evaluation_of(enumerable(5, 2**9, hidden=True)), error=error)


def deviations_of(family, n):
    """From sums over all that is hidden, in standard errors, of so many tiny models of a family, every emission's."""
    cases = [case for name, case in MODELS.items() if name.startswith(family)]
    options = {"n_particles": 1024, "error": 0.2, "max_particles": 4096}
    of_each = (
        deviations("smc_data", evaluations(cases[k % len(cases)], 1, np.random.default_rng([k, 7])), 0.01, **options)
        for k in range(n)
    )
    return np.concatenate(list(of_each))


@pytest.mark.parametrize("family", ["network", "mixture", "HMM"])
def test_a_few_tiny_models(family):
    z = deviations_of(family, 10)
    assert len(z) == 10
    assert np.abs(z).max() < 4


@pytest.mark.slow
@pytest.mark.parametrize("family", ["network", "mixture", "HMM"])
def test_two_hundred_tiny_models(family):
    """No fit has a say in these populations: their agreement with sums is what others are confirmed by."""
    z = deviations_of(family, 200)
    assert len(z) > 190
    assert np.mean(np.abs(z) < 2) > 0.9
    assert abs(z.mean()) < 0.3
    assert 0.7 < z.std() < 1.4
    assert np.abs(z).max() < 5.5
