"""Draws of parameters against the exact posterior, a sum over all that is hidden; and what users get of them."""

import warnings
from itertools import pairwise, permutations, product

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp
from sklearn.base import clone

from skvbem import VBHMM, VBDiscreteDAG, VBMixture, blocks_of
from skvbem.emissions import Poisson
from skvbem.errors import EvidenceWarning, PosteriorWarning

approx = pytest.approx
# Standard errors that an average of draws may be off, of some hundred that are looked at.
_REACH = 4.5


def log_beta(concentration):
    """ln of the normalizer of a Dirichlet distribution."""
    return gammaln(concentration).sum(axis=-1) - gammaln(concentration.sum(axis=-1))


def check_marginal(drawn, ess, weights, parts):
    """Draws of one parameter against a mixture of distributions: the mean, and the mass below five quantiles."""
    mean = sum(w * part.mean() for w, part in zip(weights, parts))
    spread = np.sqrt(sum(w * (part.var() + (part.mean() - mean) ** 2) for w, part in zip(weights, parts)))
    assert drawn.mean() == approx(mean, abs=_REACH * spread / np.sqrt(ess))
    for share in (0.025, 0.25, 0.5, 0.75, 0.975):
        end = np.quantile(drawn, share)
        below = sum(w * part.cdf(end) for w, part in zip(weights, parts))
        assert below == approx(share, abs=_REACH * np.sqrt(share * (1 - share) / ess))


# Exact posteriors -----------------------------------------------------------------------------------------------------


def test_tables_are_drawn_from_the_sum_over_all_completions(rng):
    """Two classes with priors that tell them apart; seven rows, one with a missing cell, one that counts twice."""
    X = pd.DataFrame(rng.integers(0, 2, size=(7, 2)).astype(float), columns=["a", "b"])
    X.loc[2, "b"] = np.nan
    repeats = np.array([1, 1, 1, 2, 1, 1, 1])
    prior = {"h": [1.0, 2.0], "a": [[2.0, 0.7], [0.6, 1.5]], "b": [[1.0, 1.0], [0.5, 2.0]]}
    model = VBDiscreteDAG(
        {"a": ["h"], "b": ["h"]}, latents={"h": 2}, categories=[[0, 1], [0, 1]], prior=prior, n_init=3, random_state=0
    ).fit(X, sample_weight=repeats)
    rows = np.repeat(X.to_numpy(), repeats, axis=0)
    logs, tables = [], []
    for classes in product((0, 1), repeat=len(rows)):
        counts = {node: np.array(table) for node, table in prior.items()}
        for k, (a, b) in zip(classes, rows):
            counts["h"][k] += 1
            counts["a"][k, int(a)] += 1
            if not np.isnan(b):
                counts["b"][k, int(b)] += 1
        logs.append(
            sum(log_beta(table).sum() - log_beta(np.array(prior[node])).sum() for node, table in counts.items())
        )
        tables.append(counts)
    weights = np.exp(logs - logsumexp(logs))
    likely = np.flatnonzero(weights > 1e-7)
    draws = model.sample_posterior(X, 2000, sample_weight=repeats)
    assert draws.converged
    for node, index in (("h", (0,)), ("a", (0, 0)), ("a", (1, 0)), ("b", (0, 1)), ("b", (1, 1))):
        parts = [
            stats.beta(c[node][index], c[node][index[:-1]].sum() - c[node][index]) for c in (tables[k] for k in likely)
        ]
        drawn, ess = draws.parameters["tables"][node][(slice(None), *index)], draws.ess["tables"][node][index]
        check_marginal(drawn, ess, weights[likely], parts)


def test_rates_of_components_that_are_alike_are_aligned_as_the_fit_is(rng):
    """Draws of the exact posterior, labels chosen by the divergence of rows from those of the fit, written out."""
    X = np.array([[0], [1], [2], [4], [6], [9]])
    model = VBMixture(2, emission=Poisson(1.0, 0.2), weight_concentration_prior=1.0, random_state=0, tol=1e-9).fit(X)
    logs, posteriors = [], []
    for classes in product((0, 1), repeat=len(X)):
        of = np.eye(2)[list(classes)]
        n, total = of.sum(axis=0), of.T @ X[:, 0]
        shape, rate = 1.0 + total, 0.2 + n
        logs.append(log_beta(1.0 + n) + (gammaln(shape) - shape * np.log(rate)).sum())
        posteriors.append((1.0 + n, shape, rate))
    n_exact = 5_000
    which = rng.choice(len(logs), size=n_exact, p=np.exp(logs - logsumexp(logs)))
    q = np.concatenate(list(model.fitted.e_step([X])))
    exact = np.empty((n_exact, 4))
    for k, completion in enumerate(which):
        concentration, shape, rate = posteriors[completion]
        weights, rates = rng.dirichlet(concentration), rng.gamma(shape) / rate
        joint = np.log(weights) + X * np.log(rates) - rates
        log_p = joint - logsumexp(joint, axis=1, keepdims=True)
        orders = [list(order) for order in permutations(range(2))]
        best = max(orders, key=lambda order: (q * log_p[:, order]).sum())
        exact[k] = *weights[best], *rates[best]
    draws = model.sample_posterior(X, 1000)
    found = np.column_stack([draws.parameters["mixture"]["weights"], draws.parameters["poisson"]["rates"][:, :, 0]])
    ess = np.concatenate([draws.ess["mixture"]["weights"], draws.ess["poisson"]["rates"][:, 0]])
    for j in range(4):
        error = np.sqrt(1 / ess[j] + 1 / n_exact)
        assert found[:, j].mean() == approx(exact[:, j].mean(), abs=_REACH * exact[:, j].std() * error)
        for share in (0.025, 0.5, 0.975):
            below = (exact[:, j] <= np.quantile(found[:, j], share)).mean()
            assert below == approx(share, abs=_REACH * np.sqrt(share * (1 - share)) * error)
    # the two sums over labels differ: components change places in the chains
    assert exact[:, 2].mean() != approx(exact[:, 3].mean(), rel=0.2)


def test_chains_are_drawn_from_the_sum_over_all_paths(rng):
    """Two states with priors of transitions that tell them apart; two sequences of four steps."""
    sequences = [np.array(codes)[:, None] for codes in ([0, 0, 1, 2], [2, 1, 1, 0])]
    first, pairs, emitted = np.array([2.0, 1.0]), np.array([[3.0, 1.0], [0.5, 1.0]]), 1.0
    model = VBHMM(2, emission="categorical", startprob_prior=first, transmat_prior=pairs, n_init=3, random_state=0).fit(
        sequences
    )
    logs, counted = [], []
    for path in product((0, 1), repeat=8):
        counts = [first.copy(), pairs.copy(), np.full((2, 3), emitted)]
        for states, codes in ((path[:4], sequences[0]), (path[4:], sequences[1])):
            counts[0][states[0]] += 1
            for a, b in pairwise(states):
                counts[1][a, b] += 1
            for state, code in zip(states, codes[:, 0]):
                counts[2][state, code] += 1
        logs.append(sum(log_beta(table).sum() for table in counts))
        counted.append(counts)
    weights = np.exp(logs - logsumexp(logs))
    draws = model.sample_posterior(sequences, 1000)
    for group, name, at, index in (
        ("chain", "startprob", 0, (0,)),
        ("chain", "transmat", 1, (0, 0)),
        ("chain", "transmat", 1, (1, 0)),
        ("categorical", "probabilities", 2, (0, 2)),
    ):
        place = (index[0], 0, index[1]) if group == "categorical" else index
        parts = [stats.beta(c[at][index], c[at][index[:-1]].sum() - c[at][index]) for c in counted]
        drawn = draws.parameters[group][name][(slice(None), *place)]
        check_marginal(drawn, draws.ess[group][name][place], weights, parts)


# What users get -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def binary():
    rng = np.random.default_rng(0)
    group = rng.random(120) < 0.4
    return (rng.random((120, 3)) < np.where(group, 0.85, 0.2)[:, None]).astype(int)


@pytest.fixture(scope="module")
def classes(binary):
    return VBDiscreteDAG(latents=2, random_state=0).fit(binary)


def test_intervals_of_linear_response_and_of_draws_are_wider_than_those_of_vb(classes, binary):
    narrow = classes.credible_intervals(method="vb")
    for method in ("draws", "linear_response"):
        wide = classes.credible_intervals(binary, method=method)
        assert {group: list(of) for group, of in wide.items()} == {group: list(of) for group, of in narrow.items()}
        for node, (low, high) in wide["tables"].items():
            assert low.shape == classes.tables_[node].values.shape
            assert (high - low > np.subtract(*narrow["tables"][node][::-1])).all()
    default = classes.credible_intervals(binary)
    assert (
        default["tables"]["h0"][0].tolist()
        == classes.credible_intervals(binary, 0.95, "draws")["tables"]["h0"][0].tolist()
    )
    inner = classes.credible_intervals(binary, 0.5)["tables"]["x0"]
    assert (inner[0] > default["tables"]["x0"][0]).all()


def test_intervals_of_vb_are_quantiles_of_beta_distributions(classes):
    low, high = classes.credible_intervals(level=0.9, method="vb")["tables"]["x1"]
    concentration = classes.posterior_["x1"].values
    rest = concentration.sum(axis=-1, keepdims=True) - concentration
    assert low == approx(stats.beta.ppf(0.05, concentration, rest))
    assert high == approx(stats.beta.ppf(0.95, concentration, rest))


def test_draws_are_those_of_their_seed(classes, binary):
    one, other = (classes.sample_posterior(binary, 50, random_state=seed).natural for seed in (1, 2))
    assert not np.array_equal(one, other)
    assert np.array_equal(one, classes.sample_posterior(binary[::-1], 50, random_state=1).natural)
    assert np.array_equal(*(classes.sample_posterior(binary, 50).natural for _ in range(2)))


def test_draws_of_vb_are_those_of_its_density(classes, binary):
    draws = classes.sample_posterior(binary, 20_000, method="vb")
    low, high = classes.credible_intervals(level=0.5, method="vb")["tables"]["x2"]
    of_draws = draws.intervals(0.5)["tables"]["x2"]
    assert of_draws[0] == approx(low, abs=0.005)
    assert of_draws[1] == approx(high, abs=0.005)
    assert len(draws) == 20_000
    assert repr(draws).startswith("PosteriorDraws(20000 draws by vb; effective size 20000 or more")


def test_weights_of_sticks_have_quantiles(rng):
    X = rng.normal(np.repeat([0.0, 6.0], 30), 1.0)[:, None]
    kind = {"weight_concentration_prior_type": "dirichlet_process"}
    model = VBMixture(2, random_state=0, **kind).fit(X)
    low, high = model.credible_intervals(level=0.9, method="vb")["mixture"]["weights"]
    a, b = model.weight_concentration_[0]
    assert [low[0], high[0]] == approx(stats.beta.ppf([0.05, 0.95], a, b), abs=0.003)
    assert [low[1], high[1]] == approx(1 - stats.beta.ppf([0.95, 0.05], a, b), abs=0.003)


def test_a_function_of_draws_has_a_value_for_each(classes, binary):
    draws = classes.sample_posterior(binary, 200)
    gaps = draws.of(lambda drawn: drawn["tables"]["x0"][0] - drawn["tables"]["x0"][1])
    assert gaps.shape == (200, 2)
    assert (
        gaps[7].tolist() == (draws.parameters["tables"]["x0"][7, 0] - draws.parameters["tables"]["x0"][7, 1]).tolist()
    )


def test_estimators_answer_with_the_parameters_of_each_draw(binary, classes, rng):
    """Probabilities of rows and of their labels, written out at each draw; the estimator itself is as it was."""
    draws = classes.sample_posterior(binary, 20)
    new = np.array([[0, 1, 1], [1, 1, 0]])
    tables = draws.parameters["tables"]
    joint = tables["h0"][:, None] * np.prod([tables[f"x{j}"][:, :, new[:, j]].swapaxes(1, 2) for j in range(3)], axis=0)
    assert draws.ask(lambda one: one.score_samples(new)) == approx(np.log(joint.sum(axis=2)))
    assert draws.ask(lambda one: one.predict_proba(new)) == approx(joint / joint.sum(axis=2, keepdims=True))
    assert draws.ask(lambda one: one.tables_["x1"].values) == approx(tables["x1"])
    assert not hasattr(draws.at(draws.natural[:, 0]), "posterior_")
    assert classes.credible_intervals(method="vb")

    counts = rng.poisson(np.repeat([1.0, 8.0], 15))[:, None]
    model = VBMixture(2, emission="poisson", random_state=0).fit(counts)
    draws = model.sample_posterior(counts, 20, method="linear_response")
    rates, weights = draws.parameters["poisson"]["rates"], draws.parameters["mixture"]["weights"]
    density = (weights * stats.poisson.pmf(3, rates[:, :, 0])).sum(axis=1)
    assert draws.ask(lambda one: one.score_samples([[3]])[0]) == approx(np.log(density))
    assert draws.ask(lambda one: one.weights_) == approx(weights)

    chain = VBHMM(2, emission="poisson", random_state=0).fit([counts])
    draws = chain.sample_posterior([counts], 20, method="vb")
    rates, first = draws.parameters["poisson"]["rates"], draws.parameters["chain"]["startprob"]
    density = (first * stats.poisson.pmf(3, rates[:, :, 0])).sum(axis=1)
    assert draws.ask(lambda one: one.score_samples([[[3]]])[0]) == approx(np.log(density))
    assert draws.ask(lambda one: one.transmat_) == approx(draws.parameters["chain"]["transmat"])


@pytest.mark.parametrize("kind", ["gaussian", "gaussian with gaps", "categories", "chains", "network"])
def test_draws_do_not_hang_on_the_order_of_rows(kind, rng):
    """Nor on whether equal rows come one by one or as weights; nor do evidences that chains sample."""
    X = np.round(rng.normal(np.repeat([0.0, 4.0], 20)[:, None], 1.0, (40, 2)), 1)
    weight, order = rng.integers(1, 4, 40), rng.permutation(40)
    if kind == "gaussian with gaps":
        X[rng.random(X.shape) < 0.2] = np.nan
    if kind in ("categories", "network"):
        X = (X > 2.0).astype(int)
    emission = "categorical" if kind == "categories" else "gaussian"
    model = VBMixture(2, emission=emission, n_init=2, random_state=0)
    if kind == "network":
        model = VBDiscreteDAG(latents=2, categories=[[0, 1], [0, 1]], random_state=0)
    given: list = [(X, weight), (X[order], weight[order])]
    if kind == "chains":
        model = VBHMM(2, random_state=0)
        sequences = [X[:10], X[10:13], X[13:30], X[29:12:-1]]
        given = [(sequences, [1, 2, 1, 1]), ([sequences[k] for k in (3, 0, 2, 1)], [1, 1, 1, 2])]
        given.append(([*sequences, sequences[1]], None))
    else:
        given.append((np.repeat(X, weight, axis=0), None))
    found = []
    for rows, times in given:
        fitted = clone(model).fit(rows, sample_weight=times)
        draws = fitted.sample_posterior(rows, 16, sample_weight=times)
        options = {"n_particles": 16, "max_particles": 16}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EvidenceWarning)
            evidence = fitted.log_evidence(rows, kind="smc_data", sample_weight=times, **options)
        found.append((draws.natural, evidence.value))
    for natural, evidence in found[1:]:
        assert natural == approx(found[0][0], rel=1e-6, abs=1e-6)
        assert evidence == approx(found[0][1], abs=1e-6)


def test_chains_that_do_not_settle_are_told(binary):
    model = VBDiscreteDAG(latents=4, random_state=0).fit(binary)
    with pytest.warns(PosteriorWarning, match=r"chains of this VBDiscreteDAG did not settle in 128 sweeps"):
        draws = model.sample_posterior(binary, 200, max_sweeps=100)
    assert not draws.converged


def test_what_has_no_draws_is_refused(classes, binary):
    with pytest.raises(ValueError, match=r"credible_intervals by method='draws' needs X, the data of the fit"):
        classes.credible_intervals()
    with pytest.raises(ValueError, match=r"'method' parameter of credible_intervals must be one of 'draws', 'linear_"):
        classes.credible_intervals(method="gibbs")
    with pytest.raises(
        ValueError, match=r"(?s)'level' parameter of credible_intervals .* Data are given by name, as X=X"
    ):
        classes.credible_intervals(level=binary)
    with pytest.raises(ValueError, match=r"'X' parameter .* must be the data of the fit.* Got 0.9 .* as level=0.9"):
        classes.credible_intervals(0.9, "vb")
    with pytest.raises(ValueError, match=r"'n_draws' parameter of credible_intervals must be an int >= 1"):
        classes.credible_intervals(binary, n_draws=0)
    with pytest.raises(ValueError, match=r"'n_draws' parameter of sample_posterior must be an int >= 1"):
        classes.sample_posterior(binary, 0)
    with pytest.raises(ValueError, match="is other data"):
        classes.sample_posterior(binary[:-1])
    point = VBDiscreteDAG(latents=2, method="ml", random_state=0, n_init=2).fit(binary)
    with pytest.raises(ValueError, match=r"sample_posterior needs a posterior, and this fit by 'ml' is a point"):
        point.sample_posterior(binary)
    in_batches = VBDiscreteDAG(latents=2, random_state=0, n_init=2).partial_fit(binary[:60]).partial_fit(binary[60:])
    with pytest.raises(ValueError, match=r"sample_posterior needs one fit to all data; .* updated by partial_fit"):
        in_batches.sample_posterior(binary)
    weight = np.linspace(0.5, 1.5, len(binary))
    weighted = VBDiscreteDAG(latents=2, random_state=0, n_init=2).fit(binary, sample_weight=weight)
    with pytest.raises(ValueError, match=r"need whole-number sample weights\. Take method='linear_response'"):
        weighted.credible_intervals(binary, sample_weight=weight)
    low, high = weighted.credible_intervals(binary, sample_weight=weight, method="linear_response")["tables"]["h0"]
    assert (low < high).all()


def test_rows_in_blocks_have_linear_response(rng):
    X = rng.poisson(np.repeat([2.0, 9.0], 40))[:, None]
    blocks = blocks_of([X[:50], X[50:]])
    model = VBMixture(2, emission="poisson", random_state=0).fit(blocks)
    with pytest.raises(ValueError, match=r"which must be in memory; X comes in blocks\. Take method='linear_response'"):
        model.credible_intervals(blocks)
    whole = VBMixture(2, emission="poisson", random_state=0).fit(X)
    ends = [
        each.credible_intervals(of, method="linear_response")["poisson"]["rates"]
        for each, of in ((model, blocks), (whole, X))
    ]
    assert np.sort(ends[0][0], axis=0) == approx(np.sort(ends[1][0], axis=0), rel=0.02)
