"""Predictions sum to one, data come in batches, equivalent structures score alike."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from bridge import estimator_of, fitted, frame_of, published, quietly
from laws.problems import enumerable, larger
from reference import discrete_network as literal
from reference import facts
from reference.discrete_network import MISSING, Data, Network, Problem, bdeu_prior, uniform_prior

from skvbem import VBDiscreteDAG

approx = pytest.approx
METHODS = pytest.mark.parametrize("method", ["vb", "map", "ml"])


def every_row(network, columns):
    """All observable rows, complete ones."""
    return np.array([*itertools.product(*(range(network.cards[column]) for column in columns))])


# --- predictive distribution ------------------------------------------------------------------------------------------


@METHODS
@pytest.mark.parametrize("number", range(15))
def test_probabilities_of_all_rows_sum_to_one(number, method):
    problem = larger(number)
    model = fitted(problem, n_init=2, random_state=0, method=method, max_iter=100_000)
    network, columns = problem.network, problem.data.columns
    rows = frame_of(Data(columns, every_row(network, columns)))
    scores = model.score_samples(rows)
    assert math.fsum(np.exp(scores)) == approx(1, abs=1e-10)
    one_missing = rows.drop_duplicates(subset=rows.columns[1:]).copy()
    one_missing[columns[0]] = np.nan
    assert math.fsum(np.exp(model.score_samples(one_missing))) == approx(1, abs=1e-10)
    by_rest = rows.assign(p=np.exp(scores)).groupby([*columns[1:]], sort=True)["p"].sum()
    summed = np.exp(model.score_samples(one_missing.sort_values([*columns[1:]])))
    assert summed == approx(by_rest.to_numpy(), rel=1e-10)


@pytest.mark.parametrize("number", range(10))
def test_the_prediction_of_a_row_is_the_average_over_q(number, rng):
    """Exactly at the posterior means; the variational point exp E[ln theta] gives less."""
    problem = enumerable(number, hidden=True)
    model = fitted(problem, n_init=2, random_state=0)
    network, data, prior = problem
    concentrations = published(network, model.posterior_)
    rows = every_row(network, data.columns)[:20]
    scores = model.score_samples(frame_of(Data(data.columns, rows)))
    counts = literal.each(np.subtract, concentrations, prior)
    mean, (point, _) = literal.mean_tables(prior, counts), literal.vb(prior, counts)
    for score, states in zip(scores, rows.tolist()):
        row = dict(zip(data.columns, states))
        assert score == approx(math.log(literal.predictive_probability(network, mean, row)), abs=1e-9)
        assert literal.row_log_normalizer(network, point, row, prune=True) <= score + 1e-12
    draws = np.empty((200, len(rows)))
    for draw in draws:
        theta = {node: _dirichlet(rng, table) for node, table in concentrations.items()}
        draw[:] = [literal.predictive_probability(network, theta, dict(zip(data.columns, r))) for r in rows.tolist()]
    standard_error = draws.std(axis=0) / math.sqrt(len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - np.exp(scores)) <= 5 * standard_error + 1e-3)


def _dirichlet(rng, concentrations):
    draws = rng.standard_gamma(concentrations) + 1e-300
    return draws / draws.sum(-1, keepdims=True)


# --- batches ----------------------------------------------------------------------------------------------------------


def complete(number, n_rows=60):
    """A network of observed nodes alone."""
    return enumerable(number, max_hidden=0, missing_rate=0.0, max_rows=n_rows)


@pytest.mark.parametrize("number", range(20))
def test_complete_data_in_batches_are_the_batch(number, rng):
    """Exact whatever the batches: the sum of their bounds is the log evidence."""
    problem = complete(number)
    network, data, prior = problem
    whole = fitted(problem, random_state=0)
    frame = frame_of(data)
    weights = np.ones(len(frame)) if data.weights is None else np.asarray(data.weights, dtype=float)
    frame, weights = frame[weights > 0], weights[weights > 0]
    model = estimator_of(network, data, prior, random_state=0)
    total = 0.0
    for rows in np.array_split(rng.permutation(len(frame)), min(4, len(frame))):
        quietly(model.partial_fit, frame.iloc[rows], sample_weight=weights[rows])
        total += model.batch_lower_bound_
    assert total == approx(whole.lower_bound_, rel=1e-10)
    ours, theirs = published(network, model.posterior_), published(network, whole.posterior_)
    assert all(ours[node] == approx(theirs[node], rel=1e-12) for node in network.cards)
    assert model.n_samples_ == approx(whole.n_samples_)
    counts = published(network, model.counts_)
    assert all(counts[node] == approx(theirs[node] - prior[node], abs=1e-10) for node in network.cards)


@pytest.mark.parametrize("number", range(5))
def test_one_batch_is_the_batch(number):
    """Also with hidden nodes and missing cells."""
    problem = larger(number)
    whole = fitted(problem, n_init=3, random_state=0)
    model = estimator_of(*problem, n_init=3, random_state=0)
    quietly(model.partial_fit, frame_of(problem.data))
    assert model.batch_lower_bound_ == model.lower_bound_ == whole.lower_bound_
    ours, theirs = (published(problem.network, m.posterior_) for m in (model, whole))
    assert all(np.array_equal(ours[node], theirs[node]) for node in ours)


def test_a_batch_is_bounded_given_the_approximate_past(rng):
    """The second batch's bound is at most the evidence under the first batch's posterior as its prior."""
    network = facts.latent_class(2, (2, 2))
    prior = uniform_prior(network)
    for _ in range(10):
        cells = rng.integers(-1, 2, size=(14, 2))
        cells[0] = 0, 1
        data = Data(("y0", "y1"), cells)
        model = estimator_of(network, data, prior, random_state=0)
        quietly(model.partial_fit, frame_of(data).iloc[:8])
        middle = published(network, model.posterior_)
        quietly(model.partial_fit, frame_of(data).iloc[8:])
        evidence = literal.exact_log_evidence(network, Data(data.columns, cells[8:]), middle)
        assert model.batch_lower_bound_ <= evidence + 1e-10
        assert not hasattr(model, "lower_bound_")
        last = published(network, model.posterior_)
        assert all(np.all(last[node] >= middle[node] - 1e-12) for node in last)


def test_annealing_at_temperature_one_is_plain():
    """Annealed steps at beta = 1 are steps: the run goes on from there to the same end."""
    for number in range(6):
        problem = larger(number)
        plain = fitted(problem, init="random", n_init=2, tol=1e-10, random_state=0)
        annealed = fitted(problem, n_init=2, tol=1e-10, random_state=0, annealing=[1.0])
        assert annealed.lower_bound_ == approx(plain.lower_bound_, abs=1e-7)


def test_annealing_reports_only_the_bound_of_the_plain_run():
    """What is published is a fixed point of the unannealed step, and its bound stays below the evidence."""
    for number in range(10):
        problem = enumerable(number, hidden=True)
        model = fitted(problem, n_init=3, tol=1e-10, random_state=0, annealing=np.linspace(0.1, 1, 20))
        assert model.lower_bound_ <= literal.exact_log_evidence(*problem) + 1e-9
        counts = literal.each(np.subtract, published(problem.network, model.posterior_), problem.prior)
        exact = literal.objective_after_e(literal.vb, *problem, counts)
        assert model.lower_bound_ == approx(exact, rel=1e-9)


# --- structures -------------------------------------------------------------------------------------------------------


def test_bdeu_scores_equivalent_structures_equally(rng):
    """A -> B and B -> A on complete data; chains turned round; not so with one per cell."""
    for _ in range(20):
        cards = dict(zip("abc", rng.integers(2, 4, size=3).tolist()))
        cells = np.stack([rng.integers(0, cards[node], size=40) for node in "abc"], axis=1)
        cells[rng.random(40) < 0.5, 1] = 0
        data = Data(("a", "b", "c"), cells)
        chains = [{"b": ("a",), "c": ("b",)}, {"b": ("c",), "a": ("b",)}, {"a": ("b",), "c": ("b",)}]
        networks = [Network(cards, {**dict.fromkeys("abc", ()), **chain}) for chain in chains]
        scores = {
            prior: [
                quietly(
                    estimator_of(m, data, {}).set_params(prior=prior, equivalent_sample_size=3.0).fit, frame_of(data)
                )
                for m in networks
            ]
            for prior in ("bdeu", 1.0, "per_row")
        }
        bdeu = [model.lower_bound_ for model in scores["bdeu"]]
        assert bdeu == approx([bdeu[0]] * 3, abs=1e-10)
        exact = literal.log_bd(
            literal.expected_counts(networks[0], literal.every_completion(networks[0], data)),
            bdeu_prior(networks[0], 3),
        )
        assert bdeu[0] == approx(exact, abs=1e-10)
        uniform = [model.lower_bound_ for model in scores[1.0]]
        assert len({round(score, 9) for score in uniform}) > 1


def test_one_class_is_independence():
    """A latent of one state, no latent, and the structure without edges: the same exact score."""
    columns = facts.TWENTY_ROWS.columns
    network, apart = facts.latent_class(1, (2, 2, 2)), Network(dict.fromkeys(columns, 2), dict.fromkeys(columns, ()))
    scores = [
        fitted(Problem(m, facts.TWENTY_ROWS, uniform_prior(m)), random_state=0).lower_bound_ for m in (network, apart)
    ]
    assert scores == approx([-45.513941256977631] * 2, abs=1e-12)


def test_one_class_stays_exact_with_missing_cells(rng):
    """Missing leaves are pruned: each column is counted where it was seen."""
    network = facts.latent_class(1, (2, 3, 2))
    cells = np.stack([rng.integers(-1, 2, 30), rng.integers(-1, 3, 30), rng.integers(-1, 2, 30)], axis=1)
    data, prior = Data(("y0", "y1", "y2"), cells), uniform_prior(network, 0.7)
    exact = sum(
        literal.log_bd({"y": np.bincount(column[column != MISSING], minlength=r)}, {"y": np.full(r, 0.7)})
        for column, r in zip(cells.T, (2, 3, 2))
    )
    assert fitted(Problem(network, data, prior), random_state=0).lower_bound_ == approx(exact, abs=1e-11)


@METHODS
def test_no_structure_is_one_class_above_every_column(method):
    """And a latent class written out as a network is the same model, start by start."""
    frame = pd.DataFrame(
        np.repeat(facts.TWENTY_ROWS.cells, facts.TWENTY_ROWS.weights, axis=0), columns=["y0", "y1", "y2"]
    )
    named = {"latents": {"c": 2}, "random_state": 0, "method": method}
    implied = VBDiscreteDAG(**named).fit(frame)
    written = VBDiscreteDAG({"y0": "c", "y1": "c", "y2": "c"}, **named).fit(frame)
    assert np.array_equal(implied.restarts_.bounds, written.restarts_.bounds)
    assert implied.structure_ == written.structure_
