"""What holds of draws beside a long run of another sampler, in the record of a run, and that sampler itself."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from reproduction import independent_gibbs
from reproduction.interval_coverage import PROBLEMS, Classes, Mixture
from reproduction.pages import check_page
from scipy.special import gammaln, logsumexp

PAGE = Path(__file__).parents[2] / "doc" / "user_guide" / "intervals.rst"
LINES = independent_gibbs.read()
OF_PROBLEM = {
    "classes, K = 2": ("weights", "tables"),
    "classes, K = 3": ("weights", "tables"),
    "mixture, K = 2": ("weights", "means", "precisions"),
    "chain, K = 2": ("first", "transitions", "emissions"),
}
KINDS = [(problem, what) for problem, names in OF_PROBLEM.items() for what in names]


def lines_of(problem):
    return [line for line in LINES if line["problem"] == problem]


def test_simulations_are_recorded_once():
    names = [(line["problem"], line["n"], line["seed"]) for line in LINES]
    assert len(set(names)) == len(names)
    assert {name for name, *_ in names} == set(PROBLEMS) == set(OF_PROBLEM)
    assert min(len(lines_of(problem)) for problem in PROBLEMS) >= 20


@pytest.mark.parametrize(("problem", "what"), KINDS)
def test_draws_hold_the_truth_as_often_as_a_long_run_does(problem, what):
    """Within two in a hundred, and two standard errors of what differs from one simulation to the next."""
    shares = np.array([line["held"][what] for line in lines_of(problem)], dtype=float)
    shares = shares[..., :-1] / shares[..., -1:]
    differences = shares[:, 0] - shares[:, 1]
    error = differences.std(axis=0) / np.sqrt(len(differences))
    assert (np.abs(differences.mean(axis=0)) <= 0.02 + 2 * error).all()


@pytest.mark.parametrize(("problem", "what"), KINDS)
def test_intervals_are_those_of_a_long_run(problem, what):
    assert np.mean([line["common"][what] for line in lines_of(problem)]) >= 0.93


@pytest.mark.parametrize(("problem", "what"), KINDS)
def test_effective_sizes_are_honest(problem, what):
    """Squares of standard normal numbers have mean 1, however many of one simulation go together."""
    squares = np.array([line["squares"][what] for line in lines_of(problem)])
    assert squares.mean() <= 1 + 3 * squares.std() / np.sqrt(len(squares))
    assert squares.mean() >= 0.3


def test_the_page_shows_the_record():
    check_page(PAGE, independent_gibbs.table(LINES))


# The sampler itself, by sums over all labels of a few rows ------------------------------------------------------------


@pytest.fixture
def long(monkeypatch):
    monkeypatch.setattr(independent_gibbs, "N_SWEEPS", 1500)
    monkeypatch.setattr(independent_gibbs, "N_CHAINS", 16)


def log_dirichlet(counts):
    """ln of the probability of counts (..., n) in turn, under a uniform prior."""
    n = counts.shape[-1]
    return gammaln(n) - gammaln(n + counts.sum(axis=-1)) + gammaln(1 + counts).sum(axis=-1)


def expected(log_joint, values):
    """The posterior mean of values of each labeling."""
    weights = np.exp(log_joint - logsumexp(log_joint))
    return np.tensordot(weights, values, 1)


def close(drawn, exact):
    """Chains' means agree with the exact mean."""
    of_chains = drawn.mean(axis=1)
    error = of_chains.std(axis=0, ddof=1) / np.sqrt(len(of_chains))
    assert np.abs(of_chains.mean(axis=0) - exact).max() < 5 * error.max()


@pytest.mark.usefixtures("long")
def test_the_sampler_of_classes_by_enumeration(rng):
    X = rng.integers(0, 3, (6, 5))
    labels = np.array(list(product(range(2), repeat=6)))
    member = independent_gibbs.counted(labels, 2)
    sizes = member.sum(axis=1)
    cells = np.einsum("lnk,njv->ljkv", member, independent_gibbs.counted(X, 3))
    log_joint = log_dirichlet(sizes) + log_dirichlet(cells).sum(axis=(1, 2))
    drawn = independent_gibbs.long_run(Classes(2), X, rng)
    squares = (1 + sizes) * (2 + sizes) / (8 * 9)  # E of a weight squared: labels change places, and the mean says less
    close(drawn["weights"] ** 2, expected(log_joint, squares))
    both = (1 + cells[:, 0, 0, 0]) / (3 + cells[:, 0, 0].sum(axis=-1))
    both = both * (1 + cells[:, 1, 0, X[0, 1]]) / (3 + cells[:, 1, 0].sum(axis=-1))
    close(drawn["tables"][:, :, 0, 0, 0] * drawn["tables"][:, :, 1, 0, X[0, 1]], expected(log_joint, both))


@pytest.mark.usefixtures("long")
def test_the_sampler_of_mixtures_by_enumeration(rng):
    X = np.array([-2.0, -1.5, 0.2, 1.9, 2.4])[:, None]
    labels = np.array(list(product(range(2), repeat=5)))
    member = independent_gibbs.counted(labels, 2)
    n, total, square = (np.einsum("lnk,n->lk", member, X[:, 0] ** power) for power in range(3))
    k, a, b = 0.1 + n, 2 + n / 2, 1 + 0.5 * (square - total**2 / (0.1 + n))
    log_joint = log_dirichlet(n) + (0.5 * np.log(0.1 / k) + gammaln(a) - a * np.log(b)).sum(axis=1)
    drawn = independent_gibbs.long_run(Mixture(2), X, rng)
    close(drawn["precisions"][..., 0], expected(log_joint, (a / b)[:, 0]))
    close(drawn["means"][..., 0] ** 2, expected(log_joint, (b / ((a - 1) * k) + (total / k) ** 2)[:, 0]))


@pytest.mark.usefixtures("long")
def test_the_sampler_of_chains_by_enumeration(rng):
    codes = np.array([[0, 0, 2, 2], [0, 1, 2, 0]])
    paths = np.array(list(product(range(2), repeat=8))).reshape(-1, 2, 4)
    at = independent_gibbs.counted(paths, 2)
    first, pairs = at[:, :, 0].sum(axis=1), np.einsum("pstk,pstl->pkl", at[:, :, :-1], at[:, :, 1:])
    cells = np.einsum("pstk,stv->pkv", at, independent_gibbs.counted(codes, 3))
    log_joint = log_dirichlet(first) + log_dirichlet(pairs).sum(axis=1) + log_dirichlet(cells).sum(axis=1)
    drawn = independent_gibbs.long_run(PROBLEMS["chain, K = 2"], [each[:, None] for each in codes], rng)
    stays = (1 + pairs[:, 0, 0]) / (2 + pairs[:, 0].sum(axis=-1))
    close(drawn["transitions"][..., 0, 0], expected(log_joint, stays))
    squares = (1 + cells[:, 0, 0]) * (2 + cells[:, 0, 0]) / ((3 + cells[:, 0].sum(-1)) * (4 + cells[:, 0].sum(-1)))
    close(drawn["emissions"][..., 0, 0] ** 2, expected(log_joint, squares))
    close(drawn["first"][..., 0] ** 2, expected(log_joint, (1 + first[:, 0]) * (2 + first[:, 0]) / (4 * 5)))
