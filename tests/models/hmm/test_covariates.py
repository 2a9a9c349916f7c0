"""Chains that covariates drive: E steps by all paths, the bound literally and below quadrature, published maxima."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import betaln, logsumexp, polygamma

from skvbem import VBHMM
from skvbem.emissions import Gaussian, Softmax
from skvbem.emissions.bernoulli import BernoulliEmission
from skvbem.emissions.coding import Coding
from skvbem.emissions.given import GivenColumns
from skvbem.emissions.independent import Independent
from skvbem.families.softmax_maximum import Design, contrasts
from skvbem.models.hmm.capabilities import log_z
from skvbem.models.hmm.covariates import CovariateHMM, SoftmaxTransitions, covariates_of_transitions
from skvbem.models.hmm.information import score_covariance, score_covariance_by_differences
from skvbem.models.hmm.transitions import Transitions
from skvbem.vbem import posteriors

SPEED = Path(__file__).parents[2] / "data" / "third_party" / "gpl" / "speed.csv"
V0 = float(polygamma(1, 1.0))
approx = pytest.approx


def driven_rows(rng, values, allowed, at_arrival=False):
    """Rows of probabilities that covariates drive, whose design has the patterns of these."""
    p = values.shape[1]
    empty = Design.of(np.ones((1, 1 + p)))
    rows = SoftmaxTransitions(
        allowed,
        Coding(rng.normal(size=p), rng.uniform(0.5, 2, p), (0,) * p),
        tuple(range(p)),
        rng.uniform(0.5, 2, p + 1),
        empty,
        at_arrival,
    )
    return rows.with_design(values)


def test_coefficients_are_those_of_log_odds_in_the_units_of_the_data(rng):
    """Log odds at covariates, by intercepts and slopes, and by regressors; draws are a further axis; of q by draws."""
    values = rng.normal([5.0, -40.0], [1.0, 8.0], size=(6, 2))
    rows = driven_rows(rng, values, np.ones((2, 3), dtype=bool))
    rows = replace(rows, coding=Coding.of(values, np.ones(6), (0, 0))).with_design(values)
    point = rng.normal(size=(2, 3, 3))
    intercepts, slopes = rows.parameters(point).values()
    by_units = intercepts[..., None] + slopes @ values.T
    np.testing.assert_allclose(by_units, point @ rows.regressors(values).T, atol=1e-12)
    posterior = rows.prior + rows.sums(5 * rng.random((6, 2, 3)), rows.patterns(values), slice(None))
    draws = posterior.draws(20_000, np.random.default_rng(0))
    of_lane, quantiles = rows.parameters(draws[..., 7]), rows.quantiles(posterior, 0.8)
    assert list(quantiles) == ["intercepts", "coefficients"]
    for name, of_draws in rows.parameters(draws).items():
        np.testing.assert_allclose(of_draws[..., 7], of_lane[name], atol=1e-12)
        quantile, deviation = np.quantile(of_draws, 0.8, axis=-1), of_draws.std(axis=-1)
        assert (np.abs(quantiles[name] - quantile) < 0.05 * deviation).all()


def random_chain(rng, n, n_states, *, masked=False, start=True, pairs=True, at_arrival=False):
    """A chain of yes/no columns that covariates drive, and its data."""
    values = np.column_stack([rng.integers(0, 2, n).astype(float), rng.choice([-1.0, 0.5, 1.5], n)])
    z = values[:, 1:]
    lengths = np.array([n - n // 3, n // 3]) if n > 2 else np.array([n])
    mask = np.ones((n_states, n_states), dtype=bool)
    if masked and n_states > 1:
        mask[0, -1] = False
    first = np.ones((1, n_states), dtype=bool)
    initial = driven_rows(rng, z, first) if start else Transitions(rng.uniform(0.5, 2, (1, n_states)))
    transitions = Transitions(rng.uniform(0.5, 2, (n_states, n_states)) * mask)
    if pairs:
        transitions = driven_rows(rng, covariates_of_transitions(at_arrival, z), mask, at_arrival)
    emission = Independent((BernoulliEmission((2,)), GivenColumns(1)))
    model = CovariateHMM(emission, initial, transitions, emission.default_prior(n_states), 1)
    weight = rng.uniform(0.5, 2, len(lengths))
    table = emission.prepare((values[:, :1].astype(np.int32), z))
    return model, model.compile(table, lengths, weight), z


def literal_logs(rows, cells, z, natural_of_pattern):
    """Log probabilities out of each row at covariates z, by the definition of the tilted bound's share."""
    if isinstance(rows, Transitions):
        return rows.matrix(cells, -np.inf)
    u = rows.regressors(z[None])[0]
    w, _, bounds = rows.prior.parts(cells)
    logs = np.full(rows.allowed.shape, -np.inf)
    pattern = int(np.flatnonzero((rows.design.regressors == u).all(axis=1))[0])
    for j, k in zip(*np.nonzero(rows.allowed)):
        logs[j, k] = w[j, k] @ u + bounds[pattern, j]
    return logs


@pytest.mark.parametrize("at_arrival", [False, True])
@pytest.mark.parametrize(("start", "pairs"), [(True, True), (False, True), (True, False)])
def test_the_e_step_is_the_sum_over_all_paths(at_arrival, start, pairs, rng):
    for k in range(4):
        n, n_states = int(rng.integers(1, 8)), int(rng.integers(1, 4))
        chain = {"masked": k % 2 == 1, "start": start, "pairs": pairs, "at_arrival": at_arrival}
        model, data, z = random_chain(rng, n, n_states, **chain)
        natural = posteriors.VB.of(model.prior, model.statistics_of(rng.dirichlet(np.ones(n_states), n), data)[:, None])
        at, found = natural[0][:, 0], model.expect(natural[0], data)
        first, pair_cells, of_emission = model.prior.split(at)
        logs = model.emission.expected_log_likelihood(data.table[0:n], of_emission)
        total, log_zs, by_row, paths_best = 0.0, [], np.zeros((n, n_states)), []
        of_first, of_pairs = np.zeros(model.initial.n_cells), np.zeros(model.transitions.n_cells)
        for s, (a, b) in enumerate(zip(data.starts, data.ends)):
            begin = literal_logs(model.initial, first, z[a], None)[0]
            into = {
                t: literal_logs(model.transitions, pair_cells, z[t if at_arrival else t - 1], None)
                for t in range(a + 1, b)
            }
            joint = {
                path: begin[path[0]] + logs[a, path[0]]
                + sum(into[t][path[t - a - 1], path[t - a]] + logs[t, path[t - a]] for t in range(a + 1, b))
                for path in product(range(n_states), repeat=b - a)
            }  # fmt: skip
            log_zs.append(logsumexp(list(joint.values())))
            total += data.weight[s] * log_zs[-1]
            paths_best.append(max(joint.values()))
            for path, value in joint.items():
                mass = data.weight[s] * np.exp(value - log_zs[-1])
                by_row[np.arange(a, b), path] += mass / data.weight[s]
                one = np.zeros((1, 1, n_states))
                one[0, 0, path[0]] = mass
                of_first += model.initial.sums(one, data.covariates[0], slice(s, s + 1))
                for t in range(a + 1, b):
                    one = np.zeros((1, n_states, n_states))
                    one[0, path[t - a - 1], path[t - a]] = mass
                    of_pairs += model.transitions.sums(one, data.covariates[1], slice(t, t + 1))
        assert found.log_normalizer[0] == approx(total, abs=1e-10)
        chain_cells = np.concatenate([of_first, of_pairs])
        assert found.statistics[: len(chain_cells), 0] == approx(chain_cells, abs=1e-9)
        assert model.smoothed(at, data) == approx(by_row, abs=1e-10)
        assert model.log_normalizers_of_sequences(at, data) == approx(log_zs, abs=1e-10)
        assert model.decoded(at, data)[1] == approx(paths_best, abs=1e-10)
        drawn = np.stack([np.eye(n_states)[model.drawn_path(at, data, rng)] for _ in range(300)])
        assert drawn.mean(axis=0) == approx(by_row, abs=0.15)


@pytest.mark.parametrize("at_arrival", [False, True])
def test_statistics_hold_the_covariates_of_the_step_that_is_left_or_arrived_at(at_arrival):
    """Two states that are seen, of known changes: T sums the covariates of these steps, n their number."""
    z, states = np.array([[0.0], [3.0], [5.0], [7.0]]), np.array([0, 1, 1, 0])
    rows = SoftmaxTransitions(
        np.ones((2, 2), bool),
        Coding(np.zeros(1), np.ones(1), (0,)),
        (0,),
        np.ones(2),
        Design.of(np.ones((1, 2))),
        at_arrival,
    ).with_design(covariates_of_transitions(at_arrival, z)[1:])
    emission = Independent((BernoulliEmission((2,)), GivenColumns(1)))
    model = CovariateHMM(emission, Transitions(np.ones((1, 2))), rows, emission.default_prior(2), 1)
    data = model.compile(emission.prepare((states[:, None].astype(np.int32), z)), [4])
    sums, _, used = rows.prior.parts(model.prior.split(model.statistics_of(np.eye(2)[states], data))[1])
    driving = z[1:, 0] if at_arrival else z[:-1, 0]
    for before, after, u in zip(states[:-1], states[1:], driving):
        assert sums[before, after, 0] == 1.0
        assert sums[before, after, 1] == u
    assert used.sum(axis=0).tolist() == [1.0, 2.0]


def literal_bound(fitted, X, z_first, z_into, starts):
    """The lower bound from its definition: ln Z of the chain with m - g, less the divergences of q from the prior."""
    model, q = fitted.model, fitted.posterior
    natural = q.expected_natural()
    data = fitted.model.compile(model.emission.prepare(X), np.diff(starts))
    kl = 0.0
    for block, prior in zip(q.blocks, model.prior.blocks):
        if hasattr(block, "allowed"):
            _, precision, _ = prior.parts(prior.coordinates)
            for row, among in zip(block._maxima[0], block.allowed):
                tau = np.tile(precision, int(among.sum()) - 1)
                m, s = row.bound.mean, row.bound.covariance
                kl += 0.5 * (tau @ (m**2 + np.diag(s)) - len(m) - np.log(tau).sum() - np.linalg.slogdet(s)[1])
        else:
            kl += float(block.kl(prior))
    return model.log_normalizers_of_sequences(natural, data).sum() - kl


@pytest.mark.parametrize("constant", [False, True])
def test_the_bound_is_what_its_definition_says_and_the_coefficients_are_its_best(constant, rng):
    """Of intercepts alone, too, whose column never changes."""
    n = 60
    z = np.full(n, 2.0) if constant else rng.normal(size=n)
    X = np.column_stack([rng.integers(0, 2, n), z])
    model = VBHMM(
        2,
        emission={"bernoulli": [0]},
        transitions=Softmax([1]),
        random_state=0,
        tol=1e-11,
        max_iter=5000,
        n_init=1,
        search_effort="fast",
    )
    fitted = model.fit(X, lengths=[25, 35])._fitted_
    values = X[:, :1].astype(np.int32), X[:, 1:]
    assert model.lower_bound_ == approx(literal_bound(fitted, values, None, None, [0, 25, 60]), abs=1e-7)
    block = fitted.posterior.blocks[1]
    h, w = contrasts(2), block.mean
    for row, j in zip(block._maxima[0], range(2)):
        _, precision, used = block.parts(block.coordinates)
        sums = block.parts(block.coordinates)[0][j]

        def value(m, s):
            bounds = Design(block.design.regressors, used[:, j] / used[:, j].sum()).bound(m, s).value  # noqa: B023
            penalty = precision @ (m**2 + np.diag(s))  # noqa: B023
            return (h.T @ sums).ravel() @ m - used[:, j].sum() * bounds - 0.5 * penalty + 0.5 * np.linalg.slogdet(s)[1]  # noqa: B023

        best = value(row.bound.mean, row.bound.covariance)
        for _ in range(20):
            turn = np.eye(2) + 0.05 * rng.normal(size=(2, 2))
            assert value(row.bound.mean + 0.05 * rng.normal(size=2), turn @ row.bound.covariance @ turn.T) < best
        assert w[j] == approx(h[:, 0][:, None] * row.bound.mean, abs=1e-12)


def evidence_of(y, z, n_nodes=40):
    """Ln p(y) of two states with Beta(1, 1) starts and items, transitions by softmax at departure: all paths."""
    nodes, mass = np.polynomial.hermite_e.hermegauss(n_nodes)
    grid = np.stack(np.meshgrid(nodes * np.sqrt(V0), nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    mass = np.log(np.outer(mass, mass).ravel() / mass.sum() ** 2)
    odds = np.sqrt(2) * (grid[:, :1] + grid[:, 1:] * z)  # (n_grid, n_steps): of state 0 over state 1
    logs = np.stack([-np.logaddexp(0, -odds), -np.logaddexp(0, odds)])
    terms = []
    for path in product(range(2), repeat=len(y)):
        path = np.array(path)
        term = -np.log(2.0)
        for k in range(2):
            term += betaln(1 + (y[path == k] == 1).sum(), 1 + (y[path == k] == 0).sum())
            steps = np.flatnonzero(path[:-1] == k)
            term += logsumexp(mass + sum(logs[path[t + 1], :, t] for t in steps))
        terms.append(term)
    return logsumexp(terms)


def test_the_bound_is_below_the_evidence_by_quadrature_and_that_of_a_known_chain(rng):
    one = {
        "emission": {"bernoulli": [0]},
        "transitions": Softmax([1], standardize=False),
        "random_state": 0,
        "search_effort": "fast",
    }
    y, z = np.array([0, 0, 1, 1, 0, 1, 1]), np.array([-1, -0.5, 1, 0.5, -1, 0, 1])
    assert evidence_of(y, z) == approx(-5.42721196, abs=1e-7)
    model = VBHMM(2, tol=1e-11, **one).fit(np.column_stack([y, z]))
    assert model.lower_bound_ == approx(-7.87319553, abs=1e-7)
    for _ in range(3):
        y, z = rng.integers(0, 2, 6), rng.normal(size=6).round(1)
        fitted = VBHMM(2, n_init=3, **one).fit(np.column_stack([y, z]))
        assert fitted.lower_bound_ < evidence_of(y, z) < fitted.lower_bound_ + 6


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("method", ["vb", "map", "ml"])
@pytest.mark.parametrize("kind", ["plain", "collinear", "separated", "constant"])
def test_bounds_never_fall(method, kind, rng):
    for k in range(2):
        n, n_states, p = int(rng.integers(20, 60)), 2 + k, 2
        z = rng.normal(size=(n, p))
        z[:, 0] = {"constant": np.full(n, 2.0), "separated": 40.0 * np.sign(z[:, 0])}.get(kind, z[:, 0])
        z[:, 1] = -3.0 * z[:, 0] if kind == "collinear" else z[:, 1]
        X = np.column_stack([rng.normal(size=n), rng.integers(0, 2, n), z])
        X[rng.random(n) < 0.2, 0] = np.nan
        columns = [2, 3] if method != "ml" or kind == "plain" else [3]
        options = {
            "acceleration": bool(k % 2),
            "max_iter": 40,
            "n_init": 1,
            "search_effort": "fast",
            "random_state": k,
            "method": method,
        }
        model = VBHMM(
            n_states, emission={"gaussian": [0], "bernoulli": [1], "remainder": "drop"},
            transitions=Softmax(columns, at="arrival" if k else "departure"), start=Softmax([2]), **options,
        )  # fmt: skip
        model.fit(X, lengths=[n // 2, n - n // 2], sample_weight=np.repeat([1.0, 0.7], [n // 2, n - n // 2]))
        rise = np.diff(model.lower_bounds_)
        assert (rise > -1e-7).all()


@pytest.mark.skipif(not SPEED.exists(), reason="the table is in a checkout only, under its own license")
def test_reaction_times_have_the_published_maxima_and_known_bounds():
    """Pay-offs on transitions: -44.2 at departure [Visser 2010, depmixS4]; other figures by a literal program."""
    table = pd.read_csv(SPEED)[["rt", "Pacc"]].astype(float)
    known = {("departure", 1): -44.1995, ("arrival", 1): -44.2889, ("departure", 3): -38.1219, ("arrival", 3): -36.9781}
    lengths = {1: [439], 3: [168, 134, 137]}
    options = {
        "emission": {"gaussian": ["rt"], "remainder": "drop"},
        "n_init": 1,
        "random_state": 0,
        "search_effort": "fast",
    }
    for (at, n), value in known.items():
        model = VBHMM(2, method="ml", tol=1e-8, transitions=Softmax(["Pacc"], at=at), **options)
        model.fit(table, lengths=lengths[n])
        assert model.log_likelihood_ == approx(value, abs=6e-5)
        assert model.n_free_parameters_ == 1 + 4 + 4
    unit = table["rt"].std(ddof=0)
    table["rt"] = (table["rt"] - table["rt"].mean()) / unit
    table["noise"] = np.random.default_rng(0).normal(size=439)
    table["Pacc"] = (table["Pacc"] - table["Pacc"].mean()) / table["Pacc"].std(ddof=0)
    gaussian = Gaussian(
        mean_prior=[0.0], mean_precision_prior=1.0, degrees_of_freedom_prior=2, covariance_prior=[[1.0]]
    )
    options["emission"] = [("times", gaussian, ["rt"]), ("remainder", "drop")]
    for covariates, value in ((["Pacc"], -64.9414), (["Pacc", "noise"], -67.0525)):
        softmax = Softmax(covariates, at="arrival", standardize=False)
        model = VBHMM(2, transitions=softmax, tol=1e-8, **options).fit(table, lengths=lengths[3])
        assert model.lower_bound_ - 439 * np.log(unit) == approx(value, abs=6e-5)  # that of times in their deviation


@pytest.mark.parametrize("kind", [{}, {"start": False}, {"at_arrival": True, "pairs": True, "masked": True}])
def test_scores_vary_as_second_derivatives_of_the_likelihood_say(kind, rng):
    """What is hidden takes from the information of complete data; second differences of ln p(y | theta)."""
    model, data, _ = random_chain(rng, 14, 3, **kind)
    point = model.prior.sample(rng)
    natural, free = model.prior.natural(point), model.prior.to_unconstrained(point)
    (block,) = score_covariance_by_differences(model, point, data)
    complete = model.prior.information(point, model.expect(natural[:, None], data).statistics[:, 0])

    def log_likelihood(moved):
        return log_z(model, model.prior.natural(model.prior.from_unconstrained(moved))[:, None], data)[0]

    for _ in range(4):
        along = rng.normal(size=len(free))
        values = [log_likelihood(free + times * 2e-3 * along) for times in (-2, -1, 0, 1, 2)]
        second = np.dot([-1, 16, -30, 16, -1], values) / 12 / 4e-6
        assert along @ (complete - block.covariance) @ along == approx(-second, rel=1e-5, abs=1e-5)
    by_block = score_covariance_by_differences(model, point, data, joint=False)
    assert sorted(np.concatenate([each.free for each in by_block])) == list(range(len(free)))


def test_scores_of_a_chain_that_nothing_drives_vary_as_those_of_others(rng):
    model, data, _ = random_chain(rng, 20, 2, start=False, pairs=False)
    point = model.prior.sample(rng)
    (found,), (wanted,) = (of(model, point, data) for of in (score_covariance_by_differences, score_covariance))
    assert found.covariance == approx(wanted.covariance, abs=1e-7)
