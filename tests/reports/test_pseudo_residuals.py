"""Pseudo-residuals: definitions, uniformity under the model itself, wrong families, gaps, and their display."""

from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from skvbem import VBHMM, VBMixture
from skvbem.emissions import (
    Bernoulli,
    Censored,
    Exponential,
    Gamma,
    Gaussian,
    Interval,
    NegativeBinomial,
    Ordinal,
    Poisson,
    Regression,
    Softmax,
    StudentT,
    VonMises,
    ZeroInflated,
)

approx = pytest.approx
WEIGHTS = np.array([0.3, 0.7])
STARTS, STAYS = np.array([0.8, 0.2]), np.array([[0.9, 0.1], [0.3, 0.7]])
MEANS = {"means": [[1.0, 20.0], [6.0, 4.0]]}
SPREAD = [[1.0, 3.0], [0.6, 20.0]]


def test_residuals_of_a_mixture_are_its_cumulative_probabilities(rng):
    means, variances = np.array([[0.0, 3.0], [4.0, -1.0]]), np.array([[1.0, 2.0], [0.5, 4.0]])
    gaussian = VBMixture.from_parameters(WEIGHTS, {"means": means, "covariances": variances}, emission=Gaussian("diag"))
    X = rng.normal(size=(30, 2)) * 3
    X[3, 1] = np.nan
    residuals = gaussian.pseudo_residuals(X)
    expected = (WEIGHTS[:, None, None] * stats.norm(means[:, None], np.sqrt(variances)[:, None]).cdf(X)).sum(axis=0)
    assert residuals.uniform == approx(expected, abs=1e-14, nan_ok=True)
    assert residuals.below is not residuals.uniform
    assert residuals.normal == approx(stats.norm.ppf(expected), abs=1e-9, nan_ok=True)
    assert np.isnan(residuals.normal[3]).tolist() == [False, True]

    rates = np.array([[0.5, 3.0], [9.0, 1.0]])
    poisson = VBMixture.from_parameters(WEIGHTS, {"rates": rates}, emission="poisson")
    counts = rng.poisson(4.0, size=(30, 2)).astype(float)
    ends = [(WEIGHTS[:, None, None] * stats.poisson(rates[:, None]).cdf(counts - less)).sum(axis=0) for less in (1, 0)]
    middle = poisson.pseudo_residuals(counts, discrete="middle")
    assert middle.below == approx(ends[0], abs=1e-14)
    assert middle.up_to == approx(ends[1], abs=1e-14)
    assert middle.uniform == approx(np.mean(ends, axis=0), abs=1e-14)
    drawn = [poisson.pseudo_residuals(counts, random_state=seed).uniform for seed in (0, 0, 1)]
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])
    assert ((ends[0] <= drawn[0]) & (drawn[0] <= ends[1])).all()


@pytest.mark.parametrize("kind", ["forecast", "ordinary"])
def test_residuals_of_a_chain_are_those_of_its_paths(kind, rng):
    """By enumeration: a step given those before, or given all others, with gaps, of sequences of several lengths."""
    rates = np.array([[1.0, 8.0], [6.0, 2.0]])
    model = VBHMM.from_parameters(STARTS, STAYS, {"rates": rates}, emission="poisson")
    sequences = [rng.poisson(4.0, size=(n, 2)).astype(float) for n in (5, 1, 4)]
    sequences[0][2] = np.nan
    sequences[2][3, 1] = np.nan
    residuals = model.pseudo_residuals(sequences, kind=kind)
    at = 0
    for rows in sequences:
        likelihood = stats.poisson(rates).pmf(rows[:, None])
        likelihood = np.where(np.isnan(likelihood), 1.0, likelihood).prod(axis=2)
        for t in range(len(rows)):
            states = np.zeros(2)
            for path in product([0, 1], repeat=len(rows)):
                p = STARTS[path[0]] * np.prod([STAYS[a, b] for a, b in pairwise(path)])
                used = [s for s in range(len(rows)) if (s < t if kind == "forecast" else s != t)]
                states[path[t]] += p * np.prod([likelihood[s, path[s]] for s in used])
            states /= states.sum()
            for ends, less in ((residuals.below, 1), (residuals.up_to, 0)):
                expected = states @ stats.poisson(rates).cdf(rows[t] - less)
                assert ends[at + t] == approx(np.where(np.isnan(rows[t]), np.nan, expected), abs=1e-12, nan_ok=True)
        at += len(rows)


SIMULATED = {
    "gaussian": (Gaussian("diag"), MEANS | {"covariances": SPREAD}),
    "full": (Gaussian("full"), MEANS | {"covariances": [[[2.0, 1.0], [1.0, 3.0]], [[1.0, -0.9], [-0.9, 1.0]]]}),
    "student_t": (StudentT(df=3), MEANS | {"scales": [[[2.0, 1.0], [1.0, 3.0]], [[1.0, -0.9], [-0.9, 1.0]]]}),
    "poisson": (Poisson(), {"rates": MEANS["means"]}),
    "exponential": (Exponential(), {"rates": SPREAD}),
    "bernoulli": (Bernoulli(), {"probabilities": [[0.2, 0.9], [0.7, 0.4]]}),
    "negative_binomial": (NegativeBinomial(), MEANS | {"sizes": SPREAD}),
    "gamma": (Gamma(), MEANS | {"shapes": SPREAD}),
    "von_mises": (VonMises(unit="degrees"), {"means": [[170.0, 0.0], [20.0, -100.0]], "concentrations": SPREAD}),
    "zeros": (ZeroInflated(Poisson()), {"rates": MEANS["means"], "inflation": [[0.3, 0.1], [0.0, 0.6]]}),
    "spread_zeros": (
        ZeroInflated(NegativeBinomial()),
        MEANS | {"sizes": SPREAD, "inflation": [[0.3, 0.1], [0.0, 0.6]]},
    ),
    "steps": (ZeroInflated(Gamma()), MEANS | {"shapes": SPREAD, "inflation": [[0.3, 0.1], [0.0, 0.6]]}),
    "censored": (Censored(below=3.0, above=[np.nan, 21.0]), MEANS | {"covariances": SPREAD}),
}


def largest_gap_is_that_of_chance(uniform):
    """Kolmogorov's test does not see a difference; the seeds are fixed, so that this is no matter of luck."""
    return all(stats.kstest(column, "uniform").pvalue > 0.002 for column in uniform.T)


@pytest.mark.parametrize("name", SIMULATED)
def test_residuals_are_uniform_under_the_model_that_made_the_data(name):
    emission, parameters = SIMULATED[name]
    parameters = {each: np.array(values) for each, values in parameters.items()}
    mixture = VBMixture.from_parameters(WEIGHTS, parameters, emission=emission)
    X, _ = mixture.sample(3000, random_state=1)
    residuals = mixture.pseudo_residuals(X, random_state=2)
    assert residuals.uniform.shape == (3000, 2)
    assert largest_gap_is_that_of_chance(residuals.uniform)
    assert residuals.normal.std(axis=0) == approx([1.0, 1.0], abs=0.05)
    assert residuals.largest_gaps == approx([stats.kstest(u, "uniform").statistic for u in residuals.uniform.T])
    chain = VBHMM.from_parameters(STARTS, STAYS, parameters, emission=emission)
    X, _ = chain.sample([600] * 5, random_state=1)
    for kind in ("forecast", "ordinary"):
        residuals = chain.pseudo_residuals(X, kind=kind, random_state=2)
        assert largest_gap_is_that_of_chance(residuals.uniform[:: 1 if kind == "forecast" else 3])
    forecast = chain.pseudo_residuals(X, random_state=2)
    assert np.abs(forecast.autocorrelations(5)[1:]).max() < 4.2 / np.sqrt(3000)


def test_pairs_of_ends_have_one_residual_each(rng):
    waits = rng.normal(5.0, 2.0, size=(2000, 1))
    classes = np.hstack([np.floor(waits), np.floor(waits) + 1])
    residuals = VBMixture(1, emission=Interval(), random_state=0).fit(classes).pseudo_residuals(classes)
    assert residuals.names == ("x0",)
    assert residuals.normal.std() == approx(1.0, abs=0.02)


def test_residuals_of_regressions_are_given_the_regressors(rng):
    u = rng.normal(size=400)
    X = np.column_stack([1 + 2 * u + rng.normal(size=400), u])
    model = VBMixture(1, emission=Regression(covariates=[1]), method="ml").fit(X)
    of = model.parameters_["regression"]
    mean, deviation = of["intercepts"] + of["coefficients"][0] * X[:, 1], np.sqrt(of["variances"])
    normal = model.pseudo_residuals(X).normal
    assert normal == approx(((X[:, 0] - mean) / deviation).reshape(-1, 1), abs=1e-6)
    walk = np.cumsum(rng.normal(size=(300, 1)), axis=0)
    chain = VBHMM(1, emission=Regression(lags=1), random_state=0).fit(walk)
    residuals = chain.pseudo_residuals(walk)
    assert np.isnan(residuals.normal).ravel().tolist() == [True] + [False] * 299
    assert abs(residuals.autocorrelations(1)[1]) < 0.15


def test_covariates_of_the_component_say_what_to_expect():
    rng = np.random.default_rng(3)
    u = rng.uniform(-3, 3, size=600)
    y = rng.normal(8.0 * (rng.random(600) < 1 / (1 + np.exp(-4 * u))))
    X = np.column_stack([y, u])
    model = VBMixture(2, membership=Softmax([1]), random_state=0).fit(X)
    residuals = model.pseudo_residuals(X)
    assert residuals.names == ("x0",)
    assert abs(np.corrcoef(residuals.normal[:, 0], u)[0, 1]) < 0.1
    blind = VBMixture(2, emission={"gaussian": [0], "remainder": "drop"}, random_state=0).fit(X)
    assert np.corrcoef(blind.pseudo_residuals(X).normal[:, 0], u)[0, 1] > 0.5


def test_a_wrong_family_is_seen():
    rng = np.random.default_rng(0)
    cases = [
        (rng.negative_binomial(1.0, 0.1, size=(300, 1)), "poisson", "negative_binomial"),
        (rng.gamma(0.7, 2.0, size=(300, 1)), "exponential", "gamma"),
        (rng.standard_t(2.0, size=(300, 1)), "gaussian", StudentT(df=2)),
    ]
    for X, wrong, right in cases:
        gap, fine = (
            VBMixture(1, emission=emission, random_state=0).fit(X).pseudo_residuals(X).largest_gaps[0]
            for emission in (wrong, right)
        )
        assert gap > 1.5 * stats.kstwobign.ppf(0.95) / np.sqrt(300) or gap > 2 * fine, wrong
        assert fine < stats.kstwobign.ppf(0.95) / np.sqrt(300), right


def test_rows_of_sequences_stand_as_in_x(rng):
    sequences = [rng.poisson(4.0, size=(n, 1)).astype(float) for n in (7, 3, 5)]
    model = VBHMM(2, emission="poisson", n_init=1, random_state=0).fit(sequences)
    listed = model.pseudo_residuals(sequences, discrete="middle")
    assert listed.lengths.tolist() == [7, 3, 5]
    ids = np.repeat([0, 1, 2], [7, 3, 5])
    which = rng.permutation(ids)
    rows = np.argsort(which, kind="stable")  # sequences interleaved, each in its order
    X = np.empty((15, 1))
    X[rows] = np.concatenate(sequences)
    together = model.pseudo_residuals(X, sequence_id=which, discrete="middle")
    assert together.uniform[rows] == approx(listed.uniform)
    first = list(dict.fromkeys(which.tolist()))
    assert together.lengths.tolist() == [[7, 3, 5][k] for k in first]
    assert together.autocorrelations(3) == approx(listed.autocorrelations(3))


def test_autocorrelations_leave_gaps_and_ends_of_sequences_out(rng):
    sequences = [rng.normal(size=(n, 1)) for n in (6, 4)]
    sequences[0][2] = np.nan
    model = VBHMM.from_parameters([1.0], [[1.0]], {"means": [[0.0]], "covariances": [[1.0]]}, emission=Gaussian("diag"))
    z = [each.ravel() - np.nanmean(np.concatenate(sequences)) for each in sequences]
    for lag in (1, 2):
        pairs = np.concatenate([np.column_stack([each[lag:], each[:-lag]]) for each in z])
        pairs = pairs[~np.isnan(pairs).any(axis=1)]
        expected = pairs.prod(axis=1).sum() / np.sqrt((pairs**2).sum(axis=0).prod())
        residuals = model.pseudo_residuals(sequences)
        assert residuals.autocorrelations(lag)[lag] == approx(expected)
        assert residuals.n_pairs(lag)[lag].tolist() == [len(pairs)]


def test_autocorrelations_of_columns_with_many_gaps_are_correlations():
    """One pair of large residuals among small ones: over the mean square of all, its product would be -2.5."""
    X = np.full((11, 1), np.nan)
    X[::2, 0] = [3.0, 0.1, -0.1, 0.1, -0.1, 0.0]
    X[1] = -3.0
    model = VBHMM.from_parameters([1.0], [[1.0]], {"means": [[0.0]], "covariances": [[1.0]]}, emission=Gaussian("diag"))
    residuals = model.pseudo_residuals(X)
    correlations = residuals.autocorrelations(9)[:, 0]
    z = X[~np.isnan(X)] - np.nanmean(X)
    assert z[0] * z[1] / 2 / np.mean(z**2) < -1
    assert residuals.n_pairs(9)[:, 0].tolist() == [7, 2, 5, 1, 4, 1, 3, 1, 2, 1]
    assert correlations[0] == 1.0
    assert correlations[1] == approx((z[0] * z[1] + z[1] * z[2]) / np.hypot(z[0], z[1]) / np.hypot(z[1], z[2]))
    assert (np.abs(correlations) <= 1).all()
    assert np.isnan(residuals.autocorrelations(11)[11, 0])


def test_columns_without_an_order_have_none():
    frame = pd.DataFrame({"kind": list("abab") * 5, "count": np.arange(20) % 4})
    model = VBMixture(1, emission={"categorical": "kind", "poisson": "count"}).fit(frame)
    residuals = model.pseudo_residuals(frame)
    assert residuals.names == ("count",)
    assert residuals.to_frame().columns.tolist() == ["row", "column", "below", "up_to", "uniform", "normal"]
    assert "largest gap" in repr(residuals)
    assert "largest gap" in residuals._repr_html_()
    with pytest.raises(ValueError, match="Rows of a mixture have no order"):
        residuals.autocorrelations()
    alone = VBMixture(1).fit(frame[["kind"]])
    with pytest.raises(ValueError, match=r"categories have no order.*'kind'"):
        alone.pseudo_residuals(frame[["kind"]])
    with pytest.raises(ValueError, match="'discrete' parameter of pseudo_residuals must be 'random' or 'middle'"):
        model.pseudo_residuals(frame, discrete="low")


@pytest.mark.parametrize("driven", [{"transitions": Softmax([1])}, {"start": Softmax([1])}, {}], ids=str)
def test_ordinary_residuals_are_those_of_a_step_that_is_missing(driven, rng):
    """Its states are then those that `predict_proba` has of it, with transitions of its own or not."""
    sequences = [np.column_stack([rng.normal(3 * (np.arange(n) // 4 % 2)), rng.normal(size=n)]) for n in (9, 1, 12)]
    sequences[2][5, 0] = np.nan
    emission = {"gaussian": [0], "remainder": "drop"} if not driven else "auto"
    model = VBHMM(2, n_init=2, random_state=0, emission=emission, **driven).fit(sequences)
    found = model.pseudo_residuals(sequences, kind="ordinary").uniform[:, 0]
    of = model.parameters_["gaussian"]
    normal = stats.norm(of["means"][:, 0], np.sqrt(of["covariances"][:, 0, 0]))
    expected = []
    for rows in sequences:
        for t in range(len(rows)):
            without = rows.copy()
            without[t, 0] = np.nan
            expected.append(model.predict_proba([without])[0][t] @ normal.cdf(rows[t, 0]))
    assert found == approx(expected, abs=1e-12, nan_ok=True)


def test_chains_that_never_go_back_have_ordinary_residuals(rng):
    """Where some transitions, and paths, do not exist; driven by covariates or not."""
    X = np.column_stack([np.repeat([0.0, 8.0], 20) + rng.normal(size=40), rng.normal(size=40)])
    for driven in ({"transitions": Softmax([1])}, {"emission": {"gaussian": [0], "remainder": "drop"}}):
        model = VBHMM(2, transmat_mask="left-to-right", n_init=2, random_state=0, **driven).fit(X)
        normal = model.pseudo_residuals(X, kind="ordinary").normal
        assert np.isfinite(normal).all()
        assert np.abs(normal).max() < 5


def test_ordered_answers_have_residuals_and_others_none():
    rng = np.random.default_rng(2)
    mood = rng.normal(rng.integers(2, size=2000)[:, None] * 2.0, 1.0, size=(2000, 3))
    answers = np.digitize(mood, [0.0, 1.0, 2.5]) + 1.0
    answers[5, 1] = np.nan
    model = VBMixture(2, emission=Ordinal(), n_init=2, random_state=0).fit(answers)
    residuals = model.pseudo_residuals(answers)
    sums = np.cumsum(model.parameters_["ordinal"]["probabilities"], axis=2)
    for row, column in ((0, 0), (7, 2)):
        code = int(answers[row, column]) - 1
        assert residuals.up_to[row, column] == approx(model.weights_ @ sums[:, column, code])
        before = model.weights_ @ sums[:, column, code - 1] if code else 0.0
        assert residuals.below[row, column] == approx(before, abs=1e-12)
    assert np.isnan(residuals.normal).sum() == 1
    assert residuals.normal[6:].std(axis=0) == approx([1.0] * 3, abs=0.05)
    with pytest.raises(ValueError, match="categories have no order"):
        VBMixture(2, emission="categorical", n_init=1).fit(answers).pseudo_residuals(answers)
