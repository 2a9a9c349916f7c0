"""Missing cells: what is left is the marginal, with the bound that belongs to it."""

import numpy as np
import pytest
from emissions.members import PROBLEMS
from scipy import integrate, optimize, stats

from skvbem import VBHMM
from skvbem.emissions import Gaussian, Multinomial
from skvbem.emissions.gaussian.dense import DenseGaussian
from skvbem.emissions.moments import weighted_means, weighted_moments
from skvbem.evidence import certify_evidence
from skvbem.testing import check_emission
from skvbem.testing.emissions import missing_cell_is_the_sum

approx = pytest.approx
DENSE = ["full", "tied"]


def mixed(problem, rng):
    """A table, and natural parameters after random responsibilities."""
    emission, values = problem.emission, problem.values
    table, prior = emission.prepare(values), emission.default_prior(problem.n_components)
    shares = rng.dirichlet(np.ones(problem.n_components), size=len(values))
    return table, prior, prior + emission.statistics(table, shares, prior.expected_natural())


@pytest.mark.parametrize(
    "name", [*DENSE, "diag", "spherical", "factor", "exponential", "regression", "categorical", "bernoulli", "poisson"]
)
def test_a_missing_cell_is_the_sum_over_its_values(name, rng):
    """At a point, and for the dense Gaussian at expected natural parameters, which it takes for those of a point."""
    for _ in range(4):
        problem = PROBLEMS[name](rng)
        if problem.values.shape[1] > 1:
            assert check_emission(problem, laws=["missing_cell_is_the_sum_over_its_values"], rng=rng)[0].held
            if name in DENSE:
                missing_cell_is_the_sum(problem, problem.posterior(rng)[2].expected_natural(), rng)


def literal_moments(values, shares, precision, means):
    """Expected counts, sums and squares about the origin of the data, row by row and component by component."""
    n, total, square = [], [], []
    for k, (mean, matrix) in enumerate(zip(means, precision)):
        of_rows = []
        for row, share in zip(values, shares[:, k]):
            gone = np.isnan(row)
            if gone.all():
                continue
            inverse = np.linalg.inv(matrix[np.ix_(gone, gone)]) if gone.any() else np.zeros((0, 0))
            filled, covariance = row.copy(), np.zeros((len(row), len(row)))
            filled[gone] = mean[gone] - inverse @ matrix[np.ix_(gone, ~gone)] @ (row - mean)[~gone]
            covariance[np.ix_(gone, gone)] = inverse
            of_rows.append((share, share * filled, share * (np.outer(filled, filled) + covariance)))
        for sums, parts in zip((n, total, square), zip(*of_rows)):
            sums.append(sum(parts))
    return np.array(n), np.array(total), np.array(square)


@pytest.mark.parametrize("name", DENSE)
def test_hidden_cells_count_by_their_conditional_moments(name, rng):
    for _ in range(8):
        problem = PROBLEMS[name](rng, n_rows=15, gaps=0.4)
        table, prior, posterior = mixed(problem, rng)
        emission, d = problem.emission, problem.values.shape[1]
        shares = rng.dirichlet(np.ones(problem.n_components), size=15)
        point = posterior.mode()  # whose natural precision and mean are the expected ones
        parameters = emission.parameters(point)
        precisions = np.broadcast_to(parameters["precisions"], (problem.n_components, d, d))
        n, total, square = literal_moments(problem.values, shares, precisions, parameters["means"])
        found = prior + emission.statistics(table, shares, posterior.expected_natural())
        # about the origin, in the frame
        centred = total - n[:, None] * emission.origin
        crossed = total[:, :, None] * emission.origin
        about = (
            square - crossed - crossed.swapaxes(1, 2) + n[:, None, None] * np.outer(emission.origin, emission.origin)
        )
        wanted_mean = (prior.mean_precision[:, None] * prior.mean + centred @ emission.whitener.T) / (
            prior.mean_precision + n
        )[:, None]
        assert found.mean_precision == approx(prior.mean_precision + n)
        assert found.mean == approx(wanted_mean, abs=1e-9)
        squares = emission.whitener @ about @ emission.whitener.T
        kappa = (prior.mean_precision + n)[:, None, None]
        added = squares - kappa * (wanted_mean[:, :, None] * wanted_mean[:, None, :])
        added += prior.mean_precision[:, None, None] * prior.mean[:, :, None] * prior.mean[:, None, :]
        if name == "tied":
            added = added.sum(axis=0, keepdims=True)
        assert found.scale == approx(prior.scale + added, abs=1e-8)


def bound_of(emission, table, prior, posterior):
    found = emission.expected_log_likelihood(table, posterior.expected_natural())
    return float(found.sum() - posterior.kl(prior))


def test_with_hidden_cells_the_bound_rises_and_stays_below_the_evidence(rng):
    """One component, one hidden cell: the evidence is the integral over it of the evidence of the rows completed."""
    for _ in range(2):
        values = rng.normal(size=(5, 2)) @ rng.normal(size=(2, 2)) + [3.0, -2.0]
        whole, gappy = values.copy(), values.copy()
        gappy[2, 1] = np.nan
        emission = DenseGaussian.for_data(gappy)
        prior, table = emission.default_prior(1), emission.prepare(gappy)
        ones, posterior, bounds = np.ones((5, 1)), prior, []
        for _ in range(60):
            posterior = prior + emission.statistics(table, ones, posterior.expected_natural())
            bounds.append(bound_of(emission, table, prior, posterior))
        assert np.all(np.diff(bounds) >= -1e-9)

        def complete(value, emission=emission, prior=prior, whole=whole, ones=ones):
            whole[2, 1] = value
            rows = emission.prepare(whole)
            return np.exp(bound_of(emission, rows, prior, prior + emission.statistics(rows, ones, prior.coordinates)))

        spread = 30 * values[:, 1].std()
        centre = values[:, 1].mean()
        exact = np.log(integrate.quad(complete, centre - spread, centre + spread, epsabs=0, limit=500)[0])
        assert exact - 0.5 < bounds[-1] < exact


def test_most_likely_gaussian_of_rows_with_gaps(rng):
    """EM of the emission against a search over the likelihood of what is observed."""
    values = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 3)) + [1.0, 5.0, -3.0]
    values[rng.random(values.shape) < 0.25] = np.nan
    emission = DenseGaussian.for_data(values)
    prior, table, ones = emission.default_prior(1), emission.prepare(values), np.ones((40, 1))
    natural = prior.expected_natural()
    likelihoods = []
    for _ in range(300):
        likelihoods.append(emission.expected_log_likelihood(table, natural).sum())
        natural = prior.natural(prior.most_likely(emission.statistics(table, ones, natural)))
    assert np.all(np.diff(likelihoods[1:]) >= -1e-9)

    def loss(free):
        mean, root = free[:3], np.zeros((3, 3))
        root[np.tril_indices(3)] = free[3:]
        covariance, total = root @ root.T + 1e-12 * np.eye(3), 0.0
        for pattern in np.unique(np.isnan(values), axis=0):
            rows = values[(np.isnan(values) == pattern).all(axis=1)][:, ~pattern]
            if not pattern.all():
                marginal = stats.multivariate_normal(mean[~pattern], covariance[np.ix_(~pattern, ~pattern)])
                total -= marginal.logpdf(rows).sum()
        return total

    start = np.concatenate([np.nanmean(values, axis=0), np.eye(3)[np.tril_indices(3)] * 3])
    found = optimize.minimize(loss, start, options={"gtol": 1e-6})
    assert likelihoods[-1] == approx(-found.fun, abs=1e-6)


def test_gaps_are_filled_by_regression_on_what_is_observed(rng):
    """A cell that follows another exactly is filled by it, whatever the component's mean says."""
    x = rng.normal(size=400)
    values = np.stack([x, 2 * x + 5 + 0.001 * rng.normal(size=400)], axis=1)
    gappy = values.copy()
    gappy[::5, 1] = np.nan
    emission = DenseGaussian.for_data(gappy)
    prior, table, ones = emission.default_prior(1), emission.prepare(gappy), np.ones((400, 1))
    posterior = prior
    for _ in range(50):
        posterior = prior + emission.statistics(table, ones, posterior.expected_natural())
    completed = emission.impute(table, emission.predictive_point(posterior), ones)
    assert completed[::5, 1] == approx(values[::5, 1], abs=0.15)


def test_moments_are_those_of_the_observed_cells(rng):
    values = rng.normal(size=(9000, 3)) * [1.0, 5.0, 0.1] + [0.0, 100.0, -7.0]
    values[rng.random(values.shape) < 0.3] = np.nan
    weight = rng.exponential(size=9000)
    moments = weighted_moments(values, weight)
    for j in range(3):
        seen = ~np.isnan(values[:, j])
        mean = np.average(values[seen, j], weights=weight[seen])
        assert weighted_means(values, weight)[j] == approx(mean, rel=1e-12)
        assert moments.origin[j] + moments.mean[j] == approx(mean, rel=1e-12)
        deviation = np.sqrt(np.average((values[seen, j] - mean) ** 2, weights=weight[seen]))
        assert moments.deviation[j] == approx(deviation, rel=1e-10)


def test_a_column_or_table_without_observed_cells_is_taken(rng):
    values = rng.normal(size=(6, 2))
    values[:, 1] = np.nan
    for covariance_type in ("full", "tied", "diag", "spherical"):
        emission = Gaussian(covariance_type).for_data(values)
        prior, table = emission.default_prior(2), emission.prepare(values)
        statistics = emission.statistics(table, np.full((6, 2), 0.5), prior.expected_natural())
        assert np.isfinite(emission.expected_log_likelihood(table, (prior + statistics).expected_natural())).all()


def test_multinomial_rows_are_whole_or_missing():
    with pytest.raises(ValueError, match=r"Row 1 of multinomial counts has a missing cell.*leave out the whole row"):
        Multinomial().for_data(np.array([[1.0, 2.0], [np.nan, 1.0]]))


@pytest.mark.parametrize("name", sorted(PROBLEMS))
@pytest.mark.parametrize("n_lanes", [None, 2])
def test_a_block_without_rows_says_nothing(name, n_lanes, rng):
    """As of sequences in which nothing was observed."""
    problem = PROBLEMS[name](rng)
    table = problem.emission.prepare(problem.values)
    natural, none = problem.emission.default_prior(problem.n_components).expected_natural(), table[:0]
    lanes = () if n_lanes is None else (n_lanes,)
    step = problem.emission.step(natural if n_lanes is None else np.stack([natural] * n_lanes, axis=1), table)
    log_likelihood = step.log_likelihood(none)
    assert log_likelihood.shape == (*lanes, 0, problem.n_components)
    total = step.zeros()
    step.add(none, np.zeros(log_likelihood.shape), total)
    assert not step.statistics(total).any()


def test_sequences_in_which_nothing_was_observed_have_an_evidence_of_one():
    rows = np.array([[3.0, 1.0], [0.0, 4.0], [2.0, 2.0]])
    for emission in ("multinomial", "poisson", "gaussian"):
        model = VBHMM(2, emission=emission, n_init=1, random_state=0).fit([rows, rows + 1.0])
        found = certify_evidence(model, [np.full((4, 2), np.nan)], n_chains=2, n_steps=4)
        assert found.lower.value == approx(0.0, abs=1e-12)
        assert found.upper.value == approx(0.0, abs=1e-12)
