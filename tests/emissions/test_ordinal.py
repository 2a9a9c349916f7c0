"""Ordered answers, against intervals, quadrature over parameters and edges, and enumeration of rows."""

import csv
import warnings
from itertools import combinations, product
from math import comb
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import betaln, logsumexp

import skvbem
from skvbem import VBHMM, VBMixture
from skvbem.blocks import Blocks
from skvbem.emissions import Interval, Ordinal, Poisson
from skvbem.emissions.ordinal import chosen_edges
from skvbem.errors import DataWarning

approx = pytest.approx
#: Means N(0, 1 / tau), tau ~ Gamma(1, 1/2).
KNOWN = {"mean_precision_prior": 1.0, "degrees_of_freedom_prior": 2.0}


def questionnaire(rng, n=200, n_columns=4, n_answers=5):
    """Answers 1, 2, ... of two kinds of people."""
    center = rng.integers(2, size=n)[:, None] * 2.0
    edges = np.linspace(-0.5, 2.5, n_answers - 1)
    return np.digitize(rng.normal(center, 1.0, size=(n, n_columns)), edges) + 1


def fitted(X, emission, n_components=2, n_init=2, **options):
    return VBMixture(n_components, emission=emission, n_init=n_init, random_state=0, tol=1e-10).fit(X, **options)


def log_evidence(answers, edges):
    """ln p(answers | edges) of one column in one component, nats, by quadrature."""
    mean, log_tau = np.linspace(-12, 12, 481)[:, None], np.linspace(-9, 6, 301)
    deviation = np.exp(-log_tau / 2)
    ends = np.array([-np.inf, *edges, np.inf])
    density = stats.norm(0, deviation).logpdf(mean) + stats.expon(scale=2.0).logpdf(np.exp(log_tau)) + log_tau
    for answer in answers:
        law = stats.norm(mean, deviation)
        with np.errstate(divide="ignore"):
            density = density + np.log(law.cdf(ends[answer + 1]) - law.cdf(ends[answer]))
    return logsumexp(density) + np.log(24 / 480 * 15 / 300)


def edges_of(n_points, places):
    return stats.norm.ppf(np.sin(np.pi / 2 * (np.array(places) - 0.5) / n_points) ** 2)


# --- edges ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_answers", [2, 3, 4, 5, 7])
def test_edges_are_a_choice_among_those_that_are_paid_for(n_answers, rng):
    for _ in range(40):
        counts = rng.multinomial(int(rng.integers(0, 60)), rng.dirichlet(np.full(n_answers, 0.3))).astype(float)
        edges, price = chosen_edges(counts)
        n_points = max(int(np.ceil(np.pi / 2 * np.sqrt(counts.sum()))), n_answers - 1)
        n_points += (n_points - n_answers + 1) % 2
        assert price == approx(np.log(comb(n_points, n_answers - 1)), abs=1e-9)
        places = np.arcsin(np.sqrt(stats.norm.cdf(edges))) * 2 / np.pi * n_points + 0.5
        assert places == approx(places.round(), abs=1e-6)
        assert ((places.round() >= 1) & (places.round() <= n_points)).all()
        assert (np.diff(edges) > 0).all()
        assert chosen_edges(counts[::-1])[0] == approx(-edges[::-1], abs=1e-9)


def test_edges_are_within_a_point_of_the_shares_of_frequent_answers(rng):
    counts = rng.multinomial(4000, [0.1, 0.3, 0.25, 0.2, 0.15])
    share = np.cumsum(counts)[:-1] / 4000
    error = np.arcsin(np.sqrt(stats.norm.cdf(chosen_edges(counts.astype(float))[0]))) - np.arcsin(np.sqrt(share))
    assert abs(error).max() <= 0.5 / np.sqrt(4000) + 1e-9


def test_edges_that_made_the_answers_are_found(rng):
    made = np.array([-1.2, -0.3, 0.4, 1.5])
    answers = np.digitize(rng.normal(size=(20_000, 1)), made)
    model = fitted(answers, Ordinal(), 1)
    assert model.parameters_["ordinal"]["edges"][0, 0] == approx(made, abs=0.05)
    assert model.parameters_["ordinal"]["means"] == approx(0.0, abs=0.05)


# --- bounds -----------------------------------------------------------------------------------------------------------


def test_the_bound_is_that_of_intervals_between_the_edges(rng):
    answers = questionnaire(rng).astype(float)
    answers[rng.random(answers.shape) < 0.1] = np.nan
    edges = [np.array([-1.0, -0.2, 0.5, 1.1]) + j / 10 for j in range(4)]
    ends = np.array([[np.nan, *row, np.nan] for row in edges])
    code = np.nan_to_num(answers - 1, nan=0).astype(int)
    pairs = np.stack([ends[np.arange(4), code + upper] for upper in (0, 1)], axis=-1)
    pairs = np.where(np.isnan(answers)[..., None], np.nan, pairs).reshape(len(answers), 8)
    ordered = fitted(answers, Ordinal(edges, covariance_prior=[1.0] * 4, **KNOWN))
    between = fitted(pairs, Interval(mean_prior=[0.0] * 4, covariance_prior=[1.0] * 4, **KNOWN))
    assert ordered.lower_bound_ == approx(between.lower_bound_, abs=1e-7)
    assert ordered.score_samples(answers) == approx(between.score_samples(pairs), rel=1e-6)


@pytest.mark.parametrize("n_components", [1, 2])
def test_the_bound_is_below_the_evidence_over_all_edges(n_components):
    """Of tiny data: sums over edges and labels of integrals over means and precisions."""
    answers = np.array([0, 2, 2, 1, 0])
    n_points = 4  # ceil(pi / 2 sqrt(5)) = 4, as even as the number of edges
    by_edges = []
    for places in combinations(range(1, n_points + 1), 2):
        edges, known, terms = edges_of(n_points, places), {}, []
        for labels in product(range(n_components), repeat=len(answers)):
            counts = np.bincount(labels, minlength=2)
            term = betaln(*(1 + counts)) - betaln(1, 1) if n_components == 2 else 0.0
            for k in range(n_components):
                rows = tuple(sorted(answers[np.array(labels) == k].tolist()))
                if rows not in known:
                    known[rows] = log_evidence(rows, edges) if rows else 0.0
                term += known[rows]
            terms.append(term)
        by_edges.append(logsumexp(terms))
    exact = logsumexp(by_edges) - np.log(comb(n_points, 2))
    model = fitted(answers[:, None], Ordinal(covariance_prior=[1.0], **KNOWN), n_components)
    assert exact - 5.0 < model.lower_bound_ < exact
    edges = model.parameters_["ordinal"]["edges"][0, 0]
    given = fitted(answers[:, None], Ordinal([edges], covariance_prior=[1.0], **KNOWN), n_components)
    assert given.lower_bound_ - model.lower_bound_ == approx(np.log(comb(n_points, 2)), abs=1e-7)


def test_answers_in_the_reverse_order_have_the_same_bound(rng):
    answers = questionnaire(rng).astype(float)
    answers[rng.random(answers.shape) < 0.2] = np.nan
    assert fitted(6 - answers, Ordinal()).lower_bound_ == approx(fitted(answers, Ordinal()).lower_bound_, abs=1e-6)


def test_weights_are_repeats_and_blocks_are_all_rows(rng):
    answers, weight = questionnaire(rng, 60), rng.integers(1, 4, size=60)
    model = fitted(answers, Ordinal(), sample_weight=weight)
    assert fitted(np.repeat(answers, weight, axis=0), Ordinal()).lower_bound_ == approx(model.lower_bound_, abs=1e-6)
    whole = fitted(answers, Ordinal())
    blocks = Blocks(lambda: iter([answers[:25], answers[25:]]))
    assert fitted(blocks, Ordinal()).lower_bound_ == approx(whole.lower_bound_, abs=1e-6)


# Five questions of six answers on neuroticism, 2 694 people: bounds of 1 to 4 components between the quantiles of the
# shares of answers, from a program of its own for each step.
BFI = Path(__file__).parents[1] / "data" / "third_party" / "gpl" / "bfi.csv"
BOUNDS = {1: -23467.920, 2: -21955.453, 3: -21456.622}


@pytest.mark.skipif(not BFI.exists(), reason="tables under copyleft licenses are part of a checkout only")
def test_bounds_of_a_questionnaire_are_those_of_record():
    header, *rows = csv.reader(BFI.read_text("utf-8").splitlines())
    columns = [header.index(f"N{k}") for k in range(1, 6)]
    whole = [[row[j] for j in columns] for row in rows]
    answers = np.array([row for row in whole if all(cell.isdigit() for cell in row)], dtype=int)
    shares = [np.cumsum(np.bincount(column, minlength=7)[1:-1]) / len(answers) for column in answers.T]
    prior = {"covariance_prior": [1.0] * 5, **KNOWN}
    for n_components, bound in BOUNDS.items():
        model = fitted(answers, Ordinal([stats.norm.ppf(share) for share in shares], **prior), n_components)
        assert model.lower_bound_ == approx(bound, abs=1e-3)
    chosen, unordered = fitted(answers, Ordinal(**prior), 3), fitted(answers, "categorical", 3)
    assert 5 * 17.18 < bound - chosen.lower_bound_ < 5 * (17.19 + 5 / 2)  # ln of 83 over 5, and half a nat an edge
    assert unordered.lower_bound_ == approx(-21468.822, abs=1e-3)


# --- what a fit says --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["vb", "map", "ml"])
def test_predictions_sum_to_one_without_the_price(method, rng):
    answers = questionnaire(rng, 80, 2, 3)
    model = VBMixture(2, emission=Ordinal(), method=method, n_init=2, random_state=0).fit(answers)
    every = np.array(list(product([1, 2, 3], repeat=2)))
    assert np.exp(model.score_samples(every)).sum() == approx(1.0, abs=1e-6)
    price = sum(chosen_edges(np.bincount(column - 1).astype(float))[1] for column in answers.T)
    if method == "ml":
        assert model.log_likelihood_ == approx(model.score_samples(answers).sum() - price, abs=1e-6)


def test_every_score_has_the_price(rng):
    answers = questionnaire(rng, 80, 3, 4)
    model = fitted(answers, Ordinal())
    edges = list(model.parameters_["ordinal"]["edges"][0])
    given = fitted(answers, Ordinal(edges))
    price = given.lower_bound_ - model.lower_bound_
    assert price == approx(sum(chosen_edges(np.bincount(column - 1).astype(float))[1] for column in answers.T))
    for kind in ("laplace", "bic", "linear_response", "bridge"):
        scores = [each.log_evidence(answers, kind=kind, random_state=0).value for each in (given, model)]
        assert scores[0] - scores[1] == approx(price, abs=0.05 if kind == "bridge" else 1e-3)


def test_answers_are_predicted_filled_and_drawn_as_answers(rng, tmp_path):
    pandas = pytest.importorskip("pandas")
    words = ["never", "seldom", "often", "always"]
    codes = questionnaire(rng, 300, 3, 4) - 1
    frame = pandas.DataFrame({name: np.array(words)[column] for name, column in zip("abc", codes.T)})
    frame["visits"] = rng.poisson(1.0 + 5 * (codes.mean(axis=1) > 1.5))
    gaps = frame.copy()
    gaps.loc[rng.random(300) < 0.2, "a"] = None
    emission = [("mood", Ordinal(), ["a", "b", "c"]), ("visits", Poisson(), ["visits"])]
    levels = dict.fromkeys("abc", words)
    model = VBMixture(2, emission=emission, categories=levels, n_init=2, random_state=0).fit(gaps)
    filled = model.impute(gaps)
    assert set(filled["a"]) <= set(words)
    assert (filled["a"] == frame["a"]).mean() > 0.85
    probabilities = model.parameters_["mood"]["probabilities"]
    assert probabilities.sum(axis=2) == approx(np.ones((2, 3)))
    drawn = model.sample(4000, random_state=0)[0]
    frequency = [(drawn["a"] == word).mean() for word in words]
    assert frequency == approx(model.weights_ @ probabilities[:, 0], abs=0.03)
    skvbem.save(model, tmp_path / "model")
    assert skvbem.load(tmp_path / "model").score_samples(gaps) == approx(model.score_samples(gaps), abs=0)
    assert "a = never" in repr(model.summary(gaps))


def test_a_chain_and_batches_have_the_edges_of_the_first_rows(rng):
    state = np.arange(160) // 20 % 2
    answers = np.digitize(rng.normal(2.0 * state, 1.0), [0, 0.7, 1.4])[:, None] + 1
    chain = VBHMM(2, emission=Ordinal(), n_init=2, random_state=0).fit(answers)
    found = chain.predict(answers)
    assert max(np.mean(found == state), np.mean(found != state)) > 0.9
    (ahead,) = chain.forecast(answers, 1).expected.values()
    assert ahead.sum(axis=-1) == approx(1.0)
    model = fitted(answers[:100], Ordinal(), 1)
    edges = model.parameters_["ordinal"]["edges"]
    model.partial_fit(answers[100:])
    assert model.parameters_["ordinal"]["edges"] == approx(edges)
    given = fitted(answers[:100], Ordinal([edges[0, 0]]), 1).partial_fit(answers[100:])
    assert model.batch_lower_bound_ == approx(given.batch_lower_bound_, abs=1e-6)


@pytest.mark.parametrize("method", ["vb", "map", "ml"])
def test_edges_far_from_the_numbers_are_those_of_numbers_there(method, rng):
    """Starts are there too; a shift of all edges shifts the likelihood's maximum along."""
    answers = rng.integers(3, size=(100, 1))
    shares = np.bincount(answers[:, 0]) / 100
    for edges in ([50.0, 60.0], [-60.0, -50.0], [999_999.0, 1e6]):
        model = VBMixture(1, emission=Ordinal([edges]), method=method, random_state=0, tol=1e-10).fit(answers)
        found = model.parameters_["ordinal"]
        assert np.isfinite(found["means"]).all()
        if method == "ml":
            assert found["probabilities"][0, 0] == approx(shares, abs=1e-4)
    with pytest.raises(ValueError, match="2 numbers up to 1e\\+06 in size"):
        VBMixture(1, emission=Ordinal([[0.0, 1e200]]), method=method).fit(answers)


def test_starts_are_expected_numbers_between_edges(rng):
    edges = [-1.0, 0.5, 2.0]
    codes = np.array([[0], [1], [2], [3], [-1]], dtype=np.int8)
    emission = Ordinal([edges]).for_data(codes, n_categories=np.array([4]))
    numbers = rng.normal(size=400_000)
    means = [numbers[np.digitize(numbers, edges) == code].mean() for code in range(4)]
    assert emission.seeding_coordinates(emission.prepare(codes))[:, 0] == approx([*means, 0.0], abs=0.01)


@pytest.mark.filterwarnings("ignore:Column 'x3' of X holds only one")  # which is the point here
def test_a_column_of_one_answer_costs_nothing_given_the_prior(rng):
    answers = questionnaire(rng, 80, 3, 4)
    beside = np.c_[answers, np.ones(80, dtype=int)]
    known = [Ordinal(covariance_prior=[1.0] * d, **KNOWN) for d in (3, 4)]
    assert fitted(beside, known[1]).lower_bound_ == approx(fitted(answers, known[0]).lower_bound_, abs=1e-6)
    learned = [fitted(X, Ordinal()).lower_bound_ for X in (answers, beside)]
    assert 0.8 < learned[0] - learned[1] < 1.7  # as the docstring says


@pytest.mark.filterwarnings("ignore:Column 'x3' of X holds only one")  # which is the point here
def test_two_answers_count_for_one_number_and_one_for_none(rng):
    """Ranks of the derivatives of probabilities by means and precisions."""
    answers = np.column_stack([*(questionnaire(rng, 80, 1, n) for n in (4, 3, 2)), np.ones(80, dtype=int)])
    for n_components in (1, 2):
        model = VBMixture(n_components, emission=Ordinal(), random_state=0, n_init=1).fit(answers)
        found = model.parameters_["ordinal"]
        steps = np.linspace(-1e-4, 1e-4, 3)[[0, 2]]
        rank = 0
        for j, n in enumerate([4, 3, 2, 1]):
            ends = np.r_[-np.inf, found["edges"][0, j, : n - 1], np.inf]
            mean, deviation = found["means"][0, j], np.sqrt(found["covariances"][0, j])
            by_mean = np.subtract(*(np.diff(stats.norm(mean + h, deviation).cdf(ends)) for h in steps))
            by_spread = np.subtract(*(np.diff(stats.norm(mean, deviation * (1 + h)).cdf(ends)) for h in steps))
            rank += np.linalg.matrix_rank(np.stack([by_mean, by_spread]), tol=1e-9)
        assert model.n_free_parameters_ == n_components * rank + n_components - 1 == n_components * 5 + n_components - 1


@pytest.mark.parametrize("kind", [VBMixture, VBHMM])
def test_criteria_of_rows_have_the_price_of_their_edges(kind, rng):
    answers = questionnaire(rng, 80, 3, 4).astype(float)
    answers[rng.random(answers.shape) < 0.1] = np.nan
    model = kind(2, emission=Ordinal(), method="ml", n_init=2, random_state=0).fit(answers)
    found, others = model.goodness_of_fit(answers), model.goodness_of_fit(answers[:40])
    counts = [np.bincount(column[~np.isnan(column)].astype(int) - 1).astype(float) for column in answers.T]
    assert found.price == approx(sum(chosen_edges(each)[1] for each in counts))
    assert "price of edges" in repr(found)
    assert (found.aic, found.bic) == approx((model.aic(answers), model.bic(answers)))
    assert found.log_likelihood - found.price == approx(model.log_likelihood_)
    assert others.price == 0.0
    assert "price" not in repr(others)
    assert others.aic == approx(-2 * others.log_likelihood + 2 * others.n_free_parameters)


def test_edges_that_are_none_are_refused(rng):
    answers = questionnaire(rng, 40, 2, 3)
    for edges, text in (
        ([[0.0, 1.0]], "must have 2 entries, one for each of its columns. Got 1"),
        ([[0.0, 1.0], [1.0, 0.0]], "for the column at position 1, which has 3 answers, 2 numbers"),
        ([[0.0, 1.0], [1.0]], "position 1"),
        ("wide", "a sequence of arrays of numbers"),
        (3, "a sequence of arrays of numbers. Got 3"),
    ):
        with pytest.raises(ValueError, match=text):
            VBMixture(1, emission=Ordinal(edges)).fit(answers)


def test_answers_in_words_need_an_order():
    words = pd.DataFrame({"a": ["never", "sometimes", "often", "always"] * 10, "b": list("yn") * 20})
    with pytest.warns(DataWarning, match="Column 'a' of X holds answers in words, whose data type says no order"):
        VBMixture(1, emission=Ordinal(), random_state=0).fit(words)
    order = ["never", "sometimes", "often", "always"]
    for unordered in (words.astype("category"), words.assign(a=pd.Categorical(words["a"], order)), words.to_numpy()):
        with pytest.warns(DataWarning, match="answers in words, whose data type says no order"):
            VBMixture(1, emission=Ordinal(), random_state=0).fit(unordered)
    polars = pytest.importorskip("polars")
    for dtype, n_warnings in ((polars.String, 1), (polars.Categorical, 1), (polars.Enum(order), 0)):
        frame = polars.DataFrame({"a": polars.Series(words["a"].tolist(), dtype=dtype)})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            VBMixture(1, emission=Ordinal(), random_state=0).fit(frame)
        assert len([each for each in caught if issubclass(each.category, DataWarning)]) == n_warnings
    ordered = words.assign(a=pd.Categorical(words["a"], order, ordered=True))
    declared = VBMixture(1, emission=Ordinal(), categories={"a": order}, random_state=0).fit(words)
    assert VBMixture(1, emission=Ordinal(), random_state=0).fit(ordered).lower_bound_ == approx(declared.lower_bound_)
    assert VBMixture(1, emission="categorical", random_state=0).fit(words).lower_bound_ < 0
