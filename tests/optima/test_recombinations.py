"""What components gain by division and lose by joins, and what moves make of statistics, against the definitions."""

from functools import partial

import numpy as np
import pytest
from emissions.members import PROBLEMS

from skvbem import VBMixture
from skvbem.data import row_hashes
from skvbem.models.labels.distinct_rows import DistinctRows
from skvbem.models.mixture.model import Mixture
from skvbem.models.mixture.weights import FiniteWeights
from skvbem.optima.recombinations import Recombinations

approx = pytest.approx
NAMES = ["full", "diag", "poisson", "categorical", "independent"]


def recombinations(name, rng, n=4, gaps=0.0, n_rows=60):
    problem = PROBLEMS[name](rng, n_rows=n_rows, gaps=gaps)
    emission, values = problem.emission, problem.values
    model = Mixture(emission, FiniteWeights(np.ones(n)), emission.default_prior(n))
    marks = partial(row_hashes, values if isinstance(values, (list, tuple)) else [values])
    data = model.compile(emission.prepare(values), row_hashes=marks)
    statistics = model.statistics_of(rng.dirichlet(np.ones(n), n_rows), data)
    for _ in range(3):
        natural = (model.prior + statistics).expected_natural()
        statistics = model.expect(natural[:, None], data).statistics[:, 0]
    natural = (model.prior + statistics).expected_natural()
    rows = DistinctRows.of(emission, data)
    expected_rows = model.expected_rows(natural, data, rows)
    return model, data, Recombinations(model, rows, statistics, natural, expected_rows, 0), natural


@pytest.mark.parametrize("name", NAMES)
def test_shares_at_distinct_rows_make_the_statistics_of_all(name, rng):
    model, data, parts, natural = recombinations(name, rng)
    expected = model.expect(natural[:, None], data).statistics[model.first_emission_cell :, 0]
    assert parts.whole == approx(expected, rel=1e-8, abs=1e-8)
    assert parts.counts.sum() == approx(60)


@pytest.mark.parametrize("name", NAMES)
def test_a_join_loses_what_the_bound_of_complete_rows_says(name, rng):
    """ln evidence of the rows' statistics, entropy and log likelihood of the labels, before and after."""
    model, _, parts, _ = recombinations(name, rng)
    prior, expected_rows = model.prior.blocks[-1], parts.expected_rows

    def value(expected_rows, of_emission):
        counts = expected_rows.sum(axis=1)
        logs = np.log(np.maximum(expected_rows, 1e-300))
        return float(
            prior.log_evidence(of_emission) - (expected_rows * logs).sum() + counts @ np.log(np.maximum(counts, 1e-300))
        )

    for loss, one, other in parts.joins()[:3]:
        joined, of_emission = expected_rows.copy(), parts.whole.copy()
        joined[one] += joined[other]
        joined[other] = 0.0
        of_emission[parts.cells[one]] += of_emission[parts.cells[other]]
        of_emission[parts.cells[other]] = 0.0
        assert loss == approx(value(expected_rows, parts.whole) - value(joined, of_emission), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_halves_add_up_to_what_was_divided(name, rng):
    _, _, parts, _ = recombinations(name, rng)
    halves = parts.halves(parts.expected_rows)
    n = 8 if parts.has_ties else 4
    assert halves.counts.sum(axis=1) == approx(np.tile(parts.counts, (n, 1)))
    wholes = parts.whole[parts.cells]
    assert halves.statistics.sum(axis=1) == approx(np.tile(wholes, (n, 1, 1)), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_proposals_keep_rows_and_go_on_from_a_density(name, rng):
    """All rows where two are joined, all but those of one where that is dropped."""
    model, data, parts, _ = recombinations(name, rng)
    kinds, statistics = parts.proposals(12)
    assert len(kinds) == statistics.shape[1] > 0
    assert (model.prior + statistics).is_valid.all()
    counts = model.weights.counts(model.prior.split(statistics)[0])
    for kind, of_proposal in zip(kinds, counts.T):
        if kind != "split, drop":
            assert of_proposal.sum() == approx(60)
        assert of_proposal.min() > -1e-9
    assert np.isfinite(model.expect((model.prior + statistics).expected_natural(), data).log_normalizer).all()


def test_proposals_are_the_same_for_any_order_of_rows(rng):
    found = []
    problem = PROBLEMS["full"](rng, n_rows=50)
    expected_rows = rng.dirichlet(np.ones(3), 50)
    for order in (np.arange(50), rng.permutation(50)):
        values, emission = np.ascontiguousarray(problem.values[order]), problem.emission
        model = Mixture(emission, FiniteWeights(np.ones(3)), emission.default_prior(3))
        data = model.compile(emission.prepare(values), row_hashes=partial(row_hashes, [values]))
        statistics = model.statistics_of(expected_rows[order], data)
        natural = (model.prior + statistics).expected_natural()
        rows = DistinctRows.of(emission, data)
        parts = Recombinations(model, rows, statistics, natural, model.expected_rows(natural, data, rows), 3)
        found.append(parts.proposals(8))
    assert found[0][0] == found[1][0]
    assert found[0][1] == approx(found[1][1], rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_empty_components_are_filled_one_or_several_at_once(name, rng):
    """Rows of two of five components, and those of three that are filled with halves of others, are the same rows."""
    model, _, parts, _ = recombinations(name, rng, n=5)
    joined = parts.expected_rows.copy()
    joined[0] += joined[2] + joined[4]
    joined[[2, 4]] = 0.0
    statistics = parts.of_expected_rows(joined[None])[:, 0]
    natural = (model.prior + statistics).expected_natural()
    around = Recombinations(model, parts.rows, statistics, natural, joined, 0)
    kinds, filled = around.filled(2)
    assert kinds == ["split"] * 3
    counts = [model.weights.counts(model.prior.split(each)[0]) for each in filled.T]
    assert [int((each < 1e-6).sum()) for each in counts] == [1, 1, 0]
    first = model.first_emission_cell
    for each, of_components in zip(filled.T, counts):
        assert of_components.sum() == approx(60)
        before, after = (u[first:][around.cells].sum(axis=0) for u in (statistics, each))
        assert after == approx(before, rel=1e-8, abs=1e-8)
    gains = around.halves(joined).gain.max(axis=0)
    largest = np.argsort(-np.where(around.counts < 2, -np.inf, gains))[0]
    assert counts[0][largest] < around.counts[largest] - 1e-3


def test_by_maximum_likelihood_spikes_are_half_of_the_divisions_at_most(rng):
    """Halves of a few rows gain most; where components lie apart, the most promising divisions have none of them."""
    model, _, parts, natural = recombinations("full", rng, n_rows=40)
    by_ml = Recombinations(model, parts.rows, parts.statistics, natural, parts.expected_rows, 0, smoothing=1e-3)
    halves = by_ml.halves(parts.expected_rows)
    n_tries, n_sets = halves.gain.shape
    lanes = np.zeros((len(parts.whole), 2 * n_tries))
    lanes[parts.cells] = np.moveaxis(halves.statistics.reshape(2 * n_tries, n_sets, -1), 0, -1)
    spikes = parts.prior.are_spikes(lanes).T.reshape(n_tries, 2, n_sets).any(axis=1)
    assert (halves.are_spikes == spikes).all()
    assert 0 < spikes.sum() < spikes.size
    assert not parts.halves(parts.expected_rows).are_spikes.any()

    def n_spikes(**options):
        lanes = by_ml.proposals(8, **options)[1][model.first_emission_cell :] - 1e-3 * parts.whole[:, None]
        return int(parts.prior.are_spikes(lanes).any(axis=0).sum())

    by_ml.smoothing = 1e-12
    assert n_spikes() <= 4
    assert n_spikes(with_unions=False) == 0


def test_clumps_are_found_by_maximum_likelihood():
    """Ten starts leave a clump divided and two together; each division that gained most was a spike."""
    rng = np.random.default_rng([500, 8, 10])
    means = 4 * rng.normal(size=(10, 8))
    labels = rng.integers(10, size=500)
    X = means[labels] + rng.normal(size=(500, 8))
    true = VBMixture(10, method="ml", init=0.98 * np.eye(10)[labels] + 0.002).fit(X).log_likelihood_
    found = [VBMixture(10, method="ml", random_state=seed).fit(X).log_likelihood_ for seed in range(2)]
    assert found == approx([true, true], abs=0.01)
