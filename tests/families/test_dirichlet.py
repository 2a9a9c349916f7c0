"""The ragged Dirichlet block against closed forms, many digits and numerical optimization."""

import mpmath
import numpy as np
import pytest
from families.members import CASES
from reference import discrete_network as literal
from reference import facts
from scipy.optimize import minimize
from scipy.special import digamma, gammaln

from skvbem.errors import NoInteriorModeError
from skvbem.families import Dirichlet

approx = pytest.approx
CONCENTRATIONS = 10.0 ** np.arange(-6, 13, 2)


def rows_of(block, cells):
    """One array per distribution."""
    return np.split(np.asarray(cells), block.row_starts[1:-1])


def precise(prior, counts, function, digits=60):
    """The sum over rows of a function of (concentrations, counts), worked in many digits."""
    with mpmath.workdps(digits):
        total = mpmath.mpf(0)
        for a, n in zip(rows_of(prior, prior.concentration), rows_of(prior, counts), strict=True):
            total += function([mpmath.mpf(float(x)) for x in a], [mpmath.mpf(float(x)) for x in n])
        return total


def log_evidence(a, n):
    total = mpmath.loggamma(sum(a)) - mpmath.loggamma(sum(a) + sum(n))
    return total + sum(mpmath.loggamma(a_k + n_k) - mpmath.loggamma(a_k) for a_k, n_k in zip(a, n))


def rising(a, n):
    """|ln Gamma(a + n) - ln Gamma(a)|, summed over cells and the row sum: what `log_evidence` is a difference of."""
    pairs = [*zip(a, n), (sum(a), sum(n))]
    return sum(abs(mpmath.loggamma(a_k + n_k) - mpmath.loggamma(a_k)) for a_k, n_k in pairs)


def kl_of_posterior(a, n):
    """KL(Dir(a + n) || Dir(a))."""
    q = [a_k + n_k for a_k, n_k in zip(a, n)]
    return sum(n_k * (mpmath.digamma(q_k) - mpmath.digamma(sum(q))) for n_k, q_k in zip(n, q)) - log_evidence(a, n)


# --- values -----------------------------------------------------------------------------------------------------------


def test_log_evidence_and_kl_are_those_of_the_definition(rng):
    for _ in range(200):
        card, n_rows = rng.integers(1, 6, size=2)
        a, n = 10.0 ** rng.uniform(-2, 1.5, (n_rows, card)), rng.exponential(5, (n_rows, card))
        prior, counts = Dirichlet.from_rows(a), n.ravel()
        assert prior.log_evidence(counts) == approx(literal.log_bd({"t": n}, {"t": a}), abs=1e-11)
        assert (prior + counts).kl(prior) == approx(literal.kl(a + n, a).sum(), abs=1e-10)
        assert prior.log_normalizer() == approx(literal.log_beta(a).sum(), abs=1e-11)
        assert prior.expected_natural() == approx(literal.expected_log(a).ravel(), rel=1e-13)
        assert np.exp(prior.expected_natural()).sum() < n_rows or card == 1


def test_kl_is_that_of_the_definition_whichever_has_more_mass(rng):
    for _ in range(200):
        a, b = 10.0 ** rng.uniform(-2, 3, (2, 1, 4))
        assert Dirichlet.from_rows(a).kl(Dirichlet.from_rows(b)) == approx(literal.kl(a, b).sum(), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("concentration", CONCENTRATIONS)
@pytest.mark.parametrize("counts", [(1, 0), (0, 5, 3), (1e-3, 2.5), (1e6, 1, 0), (1e12, 3e11)], ids=str)
def test_log_evidence_keeps_its_digits_from_sparse_to_rigid_priors(concentration, counts):
    """To 1e-12, or to rounding of its terms; the difference of two log normalizers would be off by 5e-3 at 1e12."""
    for ratio in (1.0, 3.0):
        prior = Dirichlet.from_rows([concentration * ratio ** np.arange(len(counts))])
        counts = np.array(counts, dtype=float)
        exact, terms = (float(precise(prior, counts, function)) for function in (log_evidence, rising))
        assert float(prior.log_evidence(counts)) == approx(exact, rel=1e-12, abs=1e-15 * terms)


@pytest.mark.parametrize("concentration", CONCENTRATIONS)
def test_kl_keeps_its_digits_from_sparse_to_rigid_priors(concentration):
    """Absolutely, relative to the terms that it is a sum of: counts times their log expectations."""
    for counts in ([1, 0, 4], [1e4, 30, 0.1], [1e9, 1e8, 1]):
        counts = np.array(counts, dtype=float)
        prior = Dirichlet.from_rows([concentration * np.array([1.0, 2.0, 3.0])])
        posterior = prior + counts
        terms = counts.sum() * (1 + abs(np.log(posterior.concentration)).max())
        exact = float(precise(prior, counts, kl_of_posterior))
        assert float(posterior.kl(prior)) == approx(exact, rel=1e-12, abs=1e-14 * terms)


def test_smallest_concentrations_give_finite_numbers():
    prior = Dirichlet.from_rows([[1e-320, 1e-320], [1e-310, 1.0]])
    counts = np.array([3.0, 0.0, 2.0, 0.0])
    exact = precise(prior, counts, log_evidence, digits=400)
    assert float(prior.log_evidence(counts)) == approx(float(exact), rel=1e-12)
    assert np.isfinite((prior + counts).kl(prior))
    assert (prior + counts).kl(prior) >= 0
    assert np.all(np.isfinite(prior.mean()))


def test_evidence_of_a_multinomial_tends_to_bic_and_a_constant():
    """ln BD - L + (r - 1)/2 ln n -> (r - 1)/2 ln 2 pi + sum (a_k - 1/2) ln theta_k - ln B(a), the error as 1/n."""
    theta, a = np.array([0.5, 0.2, 0.3]), np.array([1.0, 0.4, 2.5])
    prior, constant = Dirichlet.from_rows([a]), np.log(2 * np.pi) + ((a - 0.5) * np.log(theta)).sum()
    constant -= gammaln(a).sum() - gammaln(a.sum())
    for n in (1e2, 1e4, 1e6):
        difference = prior.log_evidence(n * theta) - (n * theta * np.log(theta)).sum() + np.log(n)
        assert difference == approx(constant, abs=3 / n)


def test_the_evidence_is_the_product_of_its_predictions(rng):
    """ln BD = sum of the log predictive probabilities of each datum after the ones before it, in any order."""
    prior = Dirichlet.from_rows([[0.3, 2.0, 1.0], [1.0, 0.01]])
    data = rng.integers(0, 5, size=200)
    for order in (np.arange(200), rng.permutation(200)):
        total, seen = 0.0, prior
        for cell in data[order]:
            total += np.log(seen.mean()[cell])
            seen = seen + np.bincount([cell], minlength=5)
        assert total == approx(float(prior.log_evidence(np.bincount(data, minlength=5))), abs=1e-10)


@pytest.mark.parametrize("fact", facts.LIZARD_SCORES, ids=lambda fact: fact.name)
def test_scores_of_complete_data(fact):
    counts = literal.expected_counts(fact.network, literal.every_completion(fact.network, facts.LIZARDS))
    for prior, score in fact.evidences:
        block = Dirichlet.from_rows(literal.all_rows(fact.network, prior))
        flat = np.concatenate([np.array(row) for row in literal.all_rows(fact.network, counts)])
        assert float(block.log_evidence(flat)) == approx(score, abs=1e-9)


# --- modes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("basis", ["natural", "probability"])
def test_the_mode_has_the_highest_density_of_its_basis(basis, rng):
    """By numerical optimization over softmax coordinates, from elsewhere."""
    for _ in range(10):
        rows = [rng.uniform(1.1, 9, size=k) for k in rng.integers(2, 5, size=2)]
        block = Dirichlet.from_rows(rows)

        def loss(free, block=block):
            return -float(block.log_density(block.from_unconstrained(free), basis))

        found = minimize(loss, rng.normal(size=block.n_free_parameters), options={"gtol": 1e-9})
        mode = block.mode(basis)
        assert -found.fun == approx(float(block.log_density(mode, basis)), abs=1e-9)
        assert block.from_unconstrained(found.x) == approx(mode, abs=1e-5)


def test_the_mode_of_probabilities_is_the_natural_one_at_one_less(rng):
    for _ in range(20):
        a = rng.uniform(0.01, 20, size=(3, 4))
        above = Dirichlet.from_rows(a + 1)
        assert above.mode("probability") == approx(Dirichlet.from_rows(a).mode("natural"), rel=1e-12)


def test_densities_of_the_two_bases_differ_by_the_jacobian(rng):
    block = Dirichlet.from_rows([[0.4, 2.0, 3.0], [1.0, 5.0]])
    point = block.sample(rng)
    assert block.log_density(point) == approx(float(block.log_density(point, "probability") + np.log(point).sum()))


def test_a_concentration_of_one_or_less_has_no_mode_in_probabilities():
    with pytest.raises(NoInteriorModeError, match=r"concentration of 0\.5 .* no interior mode"):
        Dirichlet.from_rows([[3.0, 2.0], [0.5, 4.0]]).mode("probability")
    with pytest.raises(NoInteriorModeError):
        Dirichlet.from_rows([[1.0, 4.0]]).mode("probability")
    alone = Dirichlet.from_rows([[0.5], [2.0, 3.0]])
    assert alone.mode("probability") == approx([1, 1 / 3, 2 / 3])


def test_probability_density_integrates_to_one():
    block = Dirichlet.from_rows([[0.7, 2.5]])

    def density(t):
        return mpmath.exp(float(block.log_density(np.array([float(t), 1 - float(t)]), "probability")))

    assert float(mpmath.quad(density, [0, 0.01, 0.5, 1])) == approx(1, abs=1e-4)


# --- points and draws -------------------------------------------------------------------------------------------------


def test_unconstrained_coordinates_come_back(rng):
    for _ in range(20):
        block = CASES["dirichlet"](rng).prior
        free = rng.normal(scale=3, size=(block.n_free_parameters, 2))
        point = block.from_unconstrained(free)
        assert block.row_sums(point) == approx(np.ones((block.n_rows, 2)))
        assert block.to_unconstrained(point) == approx(free, abs=1e-9)
        assert block.from_unconstrained(block.to_unconstrained(point)) == approx(point, rel=1e-12)


def test_unconstrained_coordinates_may_be_large():
    block = Dirichlet.from_rows([[1.0, 1.0], [1.0, 1.0, 1.0]])
    point = block.from_unconstrained(np.array([800.0, -800.0, 2.0]))
    assert np.all(np.isfinite(point))
    assert point[:2] == approx([1, 0])


def test_draws_have_the_moments_of_the_distribution(rng):
    a = np.array([0.3, 1.0, 4.0])
    prior = Dirichlet(np.repeat(a[:, None], 40_000, axis=1), np.array([0, 3], dtype=np.int64))
    draws = prior.sample(rng)
    assert draws.sum(axis=0) == approx(np.ones(40_000))
    mean, total = a / a.sum(), a.sum()
    variance = mean * (1 - mean) / (total + 1)
    assert draws.mean(axis=1) == approx(mean, abs=5 * np.sqrt(variance.max() / 40_000))
    assert draws.var(axis=1) == approx(variance, rel=0.05)
    assert np.log(draws).mean(axis=1) == approx(digamma(a) - digamma(total), rel=0.03)


@pytest.mark.parametrize("concentration", [1e-3, 1e-6, 1e-300])
def test_draws_of_tiny_concentrations_are_corners_drawn_evenly(concentration, rng):
    prior = Dirichlet(np.full((3, 3000), concentration), np.array([0, 3], dtype=np.int64))
    draws = prior.sample(rng)
    assert np.all(np.isfinite(draws))
    assert draws.sum(axis=0) == approx(np.ones(3000))
    assert (draws.max(axis=0) > 1 - 1e-9).mean() > 0.95
    assert np.bincount(draws.argmax(axis=0)) == approx(1000, abs=5 * np.sqrt(3000 * 2 / 9))


def test_the_mean_and_the_natural_parameters_of_a_point():
    block = Dirichlet.from_rows([[1.0, 3.0], [2.0]])
    assert block.mean() == approx([0.25, 0.75, 1.0])
    assert block.natural(np.array([0.0, 1.0, 1.0])).tolist() == [-np.inf, 0.0, 0.0]
    assert block.n_free_parameters == 1
    assert block.n_rows == 2


def test_from_rows_takes_rows_of_any_length():
    block = Dirichlet.from_rows([[1], [2, 3, 4], [5, 6]])
    assert block.row_starts.tolist() == [0, 1, 4, 6]
    assert block.concentration.tolist() == [1, 2, 3, 4, 5, 6]
    assert block.row_sums(block.concentration).tolist() == [1, 9, 11]
