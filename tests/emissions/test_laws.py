"""What every emission owes, on random problems of each."""

from itertools import pairwise

import numpy as np
import pytest
from emissions.members import PROBLEMS, n_rows, row_of, rows_of

from skvbem.blocks import Blocks
from skvbem.emissions import COVARIANCE_TYPES, EMISSIONS, Gaussian
from skvbem.emissions.base import relabeled

approx = pytest.approx
GAPS = [0.0, 0.35]


@pytest.fixture(params=PROBLEMS)
def make(request):
    return PROBLEMS[request.param]


@pytest.fixture(params=GAPS, ids=["whole", "gaps"])
def gaps(request):
    return request.param


@pytest.fixture
def problems(make, gaps, rng):
    return [make(rng, gaps=gaps) for _ in range(12)]


def random_shares(rng, n, n_components, lanes=()):
    return rng.dirichlet(np.ones(n_components), size=(*lanes, n))


def some_posterior(problem, rng, n=None):
    """A posterior after the rows, shared among the components at random."""
    emission, values = problem.emission, problem.values
    prior = emission.default_prior(problem.n_components)
    shares = random_shares(rng, n_rows(values), problem.n_components)
    table = emission.prepare(values)
    return prior, table, prior + emission.statistics(table, shares, prior.expected_natural())


def terms(statistics):
    return 1e-12 * (abs(statistics).max() + 1)


def test_every_emission_has_problems():
    assert set(PROBLEMS) == {*EMISSIONS, *COVARIANCE_TYPES, "independent"} - {"gaussian"}


def test_at_a_point_the_log_likelihood_is_that_of_the_definition(problems, rng):
    """Rows with missing cells: of what is observed."""
    for problem in problems:
        prior, table, posterior = some_posterior(problem, rng)
        point = posterior.sample(rng)
        found = problem.emission.expected_log_likelihood(table, prior.natural(point))
        assert found.shape == (len(table), problem.n_components)
        parameters = problem.emission.parameters(point)
        for i in range(len(table)):
            for k in range(problem.n_components):
                wanted = problem.log_density(row_of(problem.values, i), parameters, k)
                assert found[i, k] == approx(wanted, rel=1e-9, abs=1e-8)


def test_a_row_without_observed_cells_says_nothing(make, rng):
    for _ in range(5):
        problem = make(rng, gaps=0.4)
        emission = problem.emission
        parts = problem.values if isinstance(problem.values, tuple) else (problem.values,)
        empty = [np.full_like(part[:1], np.nan if part.dtype.kind == "f" else -1) for part in parts]
        table = emission.prepare(tuple(empty) if len(parts) > 1 else empty[0])
        natural = emission.default_prior(problem.n_components).expected_natural()
        assert np.all(emission.expected_log_likelihood(table, natural) == 0)
        assert np.all(emission.statistics(table, np.ones((1, problem.n_components)), natural) == 0)


def test_statistics_and_log_likelihoods_of_blocks_are_those_of_the_whole(problems, rng):
    for problem in problems:
        _, table, posterior = some_posterior(problem, rng)
        natural, emission = posterior.expected_natural(), problem.emission
        shares = random_shares(rng, len(table), problem.n_components)
        step = emission.step(natural, table)
        total, rows = step.zeros(), [slice(0, 1), slice(1, 5), slice(5, len(table))]
        likelihoods = []
        for part in rows:
            block = table[part]
            likelihoods.append(step.log_likelihood(block))
            step.add(block, shares[part], total)
        whole = emission.statistics(table, shares, natural)
        assert np.all(abs(step.statistics(total) - whole) <= terms(whole))
        assert np.concatenate(likelihoods) == approx(
            emission.expected_log_likelihood(table, natural), rel=1e-11, abs=1e-10
        )


def test_restarts_side_by_side_are_restarts_alone(problems, rng):
    for problem in problems[:6]:
        emission, n_components = problem.emission, problem.n_components
        lanes = [some_posterior(problem, rng)[2].expected_natural() for _ in range(3)]
        table, together = emission.prepare(problem.values), np.stack(lanes, axis=1)
        shares = random_shares(rng, len(table), n_components, (3,))
        found = emission.expected_log_likelihood(table, together)
        sums = emission.statistics(table, shares, together)
        assert found.shape == (3, len(table), n_components)
        for lane, natural in enumerate(lanes):
            alone = emission.expected_log_likelihood(table, natural)
            assert found[lane] == approx(alone, rel=1e-11, abs=1e-10)
            of_lane = emission.statistics(table, shares[lane], natural)
            assert np.all(abs(sums[:, lane] - of_lane) <= terms(of_lane))


def test_responsibilities_may_be_stored_either_way(problems, rng):
    for problem in problems[:4]:
        prior, table, _ = some_posterior(problem, rng)
        shares = random_shares(rng, len(table), problem.n_components)
        natural, emission = prior.expected_natural(), problem.emission
        one, other = (emission.statistics(table, array(shares), natural) for array in (np.asfortranarray, np.array))
        assert np.all(abs(one - other) <= terms(one))


def test_nothing_hidden_the_bound_is_the_evidence_and_the_product_of_the_predictions(problems, rng):
    """One component: ln Z - KL = sum of the log predictive densities of each row after the ones before it."""
    for problem in problems:
        if not problem.conjugate:
            continue
        emission, values = problem.emission, problem.values
        prior, table = emission.default_prior(1), emission.prepare(values)
        posterior = prior + emission.statistics(table, np.ones((len(table), 1)), prior.expected_natural())
        bound = emission.expected_log_likelihood(table, posterior.expected_natural()).sum() - posterior.kl(prior)
        total, seen = 0.0, prior
        for i in rng.permutation(len(table)):
            row = emission.prepare(rows_of(values, slice(i, i + 1)))
            total += emission.log_predictive(row, seen)[0, 0]
            seen = seen + emission.statistics(row, np.ones((1, 1)), seen.expected_natural())
        assert float(bound) == approx(total, rel=1e-9, abs=1e-9)


def test_predictions_side_by_side_are_those_of_each_component(problems, rng):
    """And of the many rows at once, those of each row."""
    for problem in problems[:6]:
        _, table, posterior = some_posterior(problem, rng)
        together = problem.emission.log_predictive(table, posterior)
        assert together.shape == (len(table), problem.n_components)
        for i in range(0, len(table), 3):
            alone = problem.emission.prepare(rows_of(problem.values, slice(i, i + 1)))
            assert problem.emission.log_predictive(alone, posterior)[0] == approx(together[i], rel=1e-11, abs=1e-11)


def test_components_may_change_places(problems, rng):
    for problem in problems[:6]:
        prior, table, _ = some_posterior(problem, rng)
        n_components, emission, natural = problem.n_components, problem.emission, prior.expected_natural()
        shares, order = random_shares(rng, len(table), n_components), rng.permutation(n_components)
        of_cell = emission.component_of_cell(n_components)
        found = relabeled(emission.statistics(table, shares, natural), of_cell, order)
        wanted = emission.statistics(table, shares[:, order], natural)
        assert len(of_cell) == len(found)
        assert np.all(abs(found - wanted) <= terms(wanted))


def test_rows_in_the_order_advised_are_the_same_rows(make, rng):
    problem = make(rng, n_rows=60, gaps=0.4)
    prior, table, _ = some_posterior(problem, rng)
    order = problem.emission.row_order(table)
    order = rng.permutation(60) if order is None else order
    natural, sorted_table = prior.expected_natural(), problem.emission.prepare(rows_of(problem.values, order))
    of_sorted = problem.emission.expected_log_likelihood(sorted_table, natural)
    assert of_sorted == approx(problem.emission.expected_log_likelihood(table, natural)[order], rel=1e-12, abs=1e-11)


def test_draws_have_the_point_as_their_most_likely_one(make, rng):
    problem = make(rng)
    prior, _, posterior = some_posterior(problem, rng)
    point, n = posterior.mode(), 60_000
    components = rng.integers(0, problem.n_components, size=n)
    drawn = problem.emission.sample(point, components, rng)
    shares = (components[:, None] == np.arange(problem.n_components)).astype(float)
    statistics = problem.emission.statistics(problem.emission.prepare(drawn), shares, prior.expected_natural())
    again = prior.most_likely(statistics)
    free, found = prior.to_unconstrained(point), prior.to_unconstrained(again)
    if np.isfinite(free).all():  # no probability of 0 or 1
        assert found == approx(free, abs=0.25)


def test_filled_rows_keep_what_was_observed(make, rng):
    for _ in range(4):
        problem = make(rng, gaps=0.4)
        _, table, posterior = some_posterior(problem, rng)
        shares = random_shares(rng, len(table), problem.n_components)
        filled = problem.emission.impute(table, problem.emission.predictive_point(posterior), shares)
        parts = (filled, problem.values) if isinstance(filled, tuple) else ((filled,), (problem.values,))
        for new, old in zip(*parts):
            observed = ~np.isnan(old) if old.dtype.kind == "f" else old >= 0
            assert np.array_equal(new[observed], old[observed])
            assert np.isfinite(new).all()
            assert np.all(new[~observed] >= 0) or old.dtype.kind == "f"


def test_priors_of_weighted_rows_are_those_of_repeated_rows(make, rng):
    problem = make(rng, gaps=0.2)
    if isinstance(problem.values, tuple):
        return
    weight = rng.integers(1, 4, size=len(problem.values))
    emission = type(problem.emission)
    options = {name: getattr(problem.emission, name) for name in ("tied", "spherical", "n_categories")
               if hasattr(problem.emission, name) and emission.__name__ != "MultinomialEmission"}  # fmt: skip
    one = emission.for_data(problem.values, weight.astype(float), **options).default_prior(2)
    other = emission.for_data(np.repeat(problem.values, weight, axis=0), **options).default_prior(2)
    assert one.sample(np.random.default_rng(0))[0] == approx(other.sample(np.random.default_rng(0))[0], rel=1e-9)
    assert one.expected_natural() == approx(other.expected_natural(), rel=1e-12, abs=1e-12)


def test_drawn_completions_have_the_expected_statistics(make, rng):
    """With known components: the same numbers where nothing missing has statistics, their mean elsewhere."""
    problem = make(rng, gaps=0.35)
    _, table, posterior = some_posterior(problem, rng)
    natural, emission = posterior.expected_natural(), problem.emission
    components = rng.integers(0, problem.n_components, size=len(table))
    shares = (components[:, None] == np.arange(problem.n_components)).astype(float)
    step = emission.step(natural, table)
    wanted, draws = emission.statistics(table, shares, natural), []
    for _ in range(1 if problem.conjugate else 800):
        total = step.zeros()
        step.add_drawn(table, components, [rng], total)
        draws.append(step.statistics(total))
    error = np.std(draws, axis=0) / np.sqrt(len(draws))
    assert np.all(abs(np.mean(draws, axis=0) - wanted) <= 5 * error + terms(wanted))


def test_places_tell_rows_apart_and_know_no_unit(problems):
    """Equal rows are at one place, rows without any cell in the middle."""
    for problem in problems:
        table = problem.emission.prepare(problem.values)
        places = problem.emission.seeding_coordinates(table)
        assert places.shape[0] == len(table)
        assert np.isfinite(places).all()
        for i in range(len(table)):
            assert problem.emission.seeding_coordinates(table[i : i + 1])[0] == approx(places[i], rel=1e-12, abs=1e-12)


def test_quantiles_are_those_of_draws_of_the_posterior(make, rng):
    """Of each mean, rate, probability by itself: its rank among draws is the probability asked for."""
    for _ in range(3):
        problem = make(rng, gaps=0.2)
        emission, n_draws = problem.emission, 2000
        _, _, posterior = some_posterior(problem, rng)
        draws = [as_groups(emission.parameters(posterior.sample(rng))) for _ in range(n_draws)]
        for share in (0.1, 0.5, 0.95):
            for group, quantiles in enumerate(as_groups(emission.quantiles(posterior, share))):
                for name, found in quantiles.items():
                    drawn = np.array([draw[group][name] for draw in draws])
                    assert found.shape == drawn.shape[1:]
                    below = np.mean(drawn < found, axis=0)[~np.isnan(found) & (np.ptp(drawn, axis=0) > 0)]
                    assert np.all(abs(below - share) < 5 * np.sqrt(share * (1 - share) / n_draws))


def as_groups(of_emission):
    return of_emission if isinstance(of_emission, tuple) else (of_emission,)


def test_blocks_prepared_with_the_survey_of_all_are_blocks_of_the_whole_table(problems, rng):
    """Wherever they are cut."""
    for problem in problems:
        emission, values, n = problem.emission, problem.values, n_rows(problem.values)
        _, table, posterior = some_posterior(problem, rng)
        natural, shares = posterior.expected_natural(), random_shares(rng, n, problem.n_components)
        ends = [0, *np.sort(rng.choice(np.arange(1, n), 2, replace=False)).tolist(), n]
        parts = [slice(a, b) for a, b in pairwise(ends)]
        survey = None
        for part in parts:
            survey = emission.survey(rows_of(values, part), survey)
        assert len(survey) == 0
        if hasattr(table, "reach"):  # which decides between two forms of a square
            assert survey.reach == approx(table.reach)
        step, whole = emission.step(natural, survey), emission.step(natural, table)
        total, wanted = step.zeros(), whole.zeros()
        found = [step.log_likelihood(emission.prepare(rows_of(values, part), survey)) for part in parts]
        assert np.concatenate(found) == approx(whole.log_likelihood(table), rel=1e-12, abs=1e-10)
        for part in parts:
            step.add(emission.prepare(rows_of(values, part), survey), shares[part], total)
        whole.add(table, shares, wanted)
        expected = whole.statistics(wanted)
        assert step.statistics(total) == approx(expected, rel=1e-10, abs=terms(expected))


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name not in ("categorical", "independent")])
def test_units_of_blocks_are_those_of_the_whole_table(name, gaps, rng):
    values = PROBLEMS[name](rng, n_rows=50, gaps=gaps).values
    weight = rng.uniform(0.1, 2.0, 50)
    make = (Gaussian(name) if name in COVARIANCE_TYPES else EMISSIONS[name]()).for_data
    blocks = Blocks(lambda: ((values[a:b], weight[a:b]) for a, b in pairwise([0, 7, 7, 30, 50])))
    one, other = make(values, weight), make(blocks)
    for key, unit in vars(one).items():
        assert getattr(other, key) == approx(unit, rel=1e-12, abs=1e-12), key


def test_statistics_of_rows_add_up(problems, rng):
    """Those of each row under each component, in the component's cells and those of all."""
    for problem in problems:
        _, table, posterior = some_posterior(problem, rng)
        emission, n_components = problem.emission, problem.n_components
        natural, shares = posterior.expected_natural(), random_shares(rng, len(table), n_components)
        of_rows = emission.step(natural, table).of_rows(table[0 : len(table)])
        component = emission.component_of_cell(n_components)
        found = np.zeros(len(component))
        for k in range(n_components):
            found[(component == k) | (component == -1)] += shares[:, k] @ of_rows[:, k]
        expected = emission.statistics(table, shares, natural)
        assert found == approx(expected, rel=1e-9, abs=terms(expected))


def test_what_is_hidden_varies_as_draws_do(problems, rng):
    """The covariance of a component's statistics, by drawing what is missing; None where nothing is drawn."""
    for problem in problems[:3]:
        _, table, posterior = some_posterior(problem, rng)
        emission, n_components, n_draws = problem.emission, problem.n_components, 1500
        natural = posterior.expected_natural()
        found = emission.step(natural, table).hidden_covariance(table[0:4], np.ones((4, n_components)))
        if found is None:
            assert problem.conjugate or emission.is_conjugate(table[0:4])
            continue
        assert not emission.is_conjugate(table)
        lanes = emission.step(np.repeat(natural[:, None], n_draws, axis=1), table)
        component, total = emission.component_of_cell(n_components), lanes.zeros()
        lanes.add_drawn(table[0:4], np.zeros((n_draws, 4), dtype=int), [rng] * n_draws, total)
        drawn = lanes.statistics(total)[(component == 0) | (component == -1)]
        covariance, spread = np.cov(drawn), drawn.std(axis=1)
        error = 8 * np.outer(spread, spread) / np.sqrt(n_draws)
        assert np.all(abs(covariance - found[0]) <= error + 1e-9)
