"""Laws of the sampling scores: right on average, as uncertain as they say, and a warning where they are not."""

from functools import cache

import numpy as np
import pytest
from bridge import FastNetwork
from evidence.evaluations import evaluate, evaluation_of, naive_bayes
from laws.problems import enumerable
from reference import facts
from reference.discrete_network import Problem, exact_log_evidence, uniform_prior

from skvbem.data import Rows
from skvbem.evidence import SCORES, get_score
from skvbem.evidence.certify import reverse_ais
from skvbem.evidence.chains import pooled
from skvbem.evidence.exact import exact
from skvbem.models.network import queries

RANDOM = tuple(name for name, score in SCORES.items() if score.random)
# Settings at which a score of a small problem takes milliseconds.
QUICK = {
    "auto": {"exact_terms": 0, "n_draws": 1024, "n_particles": 256, "max_particles": 4096},
    "bridge": {"n_draws": 256, "n_components": 32},
    "annealed_bridge": {"n_steps": 16, "burn_in": 50, "spacing": 10},
    "ais": {},
    "ais_prior": {"n_chains": 64, "n_steps": 256},
    "ais_metropolis": {"n_chains": 16, "n_steps": 2048},
    "importance": {"n_draws": 1024},
    "importance_gibbs": {"n_draws": 1024, "n_completions": 64},
    "smc": {},
    "smc_data": {"n_particles": 64},
}
# What makes a run of each longer.
SIZES = {
    **dict.fromkeys(("ais", "ais_prior", "ais_metropolis"), ("n_chains",)),
    **dict.fromkeys(("bridge", "annealed_bridge", "importance", "importance_gibbs"), ("n_draws",)),
    "smc": ("n_runs",),
    "smc_data": ("n_particles",),
    "auto": ("n_draws",),
}


def asked(kind, evaluation, **options):
    """A score, and whether it came without a doubt."""
    found = get_score(kind)(evaluation, **{**QUICK[kind], **options})
    return found, not found.doubts


@cache
def evaluation_and_exact(number):
    """A random problem, fitted, and its evidence: all scores are asked for the same ones."""
    problem = enumerable(number, 2**9, hidden=True)
    return evaluation_of(problem, seed=number, n_init=3, tol=1e-6), exact_log_evidence(*problem)


def standard_scores(kind, numbers):
    """(estimate - exact) / standard error of those problems that gave no warning, and how many gave one.

    Standard errors below 1e-6 are of problems where nothing is uncertain: there the estimate must be right.
    """
    z, n_warned = [], 0
    for number in numbers:
        evaluation, exact = evaluation_and_exact(number)
        found, trusted = asked(kind, evaluation)
        if found.standard_error < 1e-6:
            assert found.value == pytest.approx(exact, abs=1e-5), number
        elif trusted:
            z.append((found.value - exact) / found.standard_error)
        else:
            n_warned += 1
    return np.array(z), n_warned


@pytest.mark.parametrize("kind", RANDOM)
def test_as_uncertain_as_they_say(kind):
    """40 problems: mean of z within 3.5 / sqrt(n), its s.d. as far from one as 40 draws may be."""
    z, n_warned = standard_scores(kind, range(40))
    assert n_warned <= 10
    assert abs(z.mean()) < 3.5 / np.sqrt(len(z)), z
    assert 0.6 < z.std() < 1.6, z
    assert np.abs(z).max() < 5, z


@pytest.mark.slow
@pytest.mark.parametrize("kind", RANDOM)
def test_as_uncertain_as_they_say_on_200_problems(kind):
    z, _ = standard_scores(kind, range(200))
    print(f"{kind}: {len(z)} without a warning, mean {z.mean():.3f}, s.d. {z.std():.3f}, largest {np.abs(z).max():.2f}")
    assert abs(z.mean()) < 0.2
    assert 0.8 < z.std() < 1.3
    assert np.mean(np.abs(z) > 5) <= 0.005


SYMMETRIC = {
    "two classes, twenty rows": (2, facts.TWENTY_ROWS),
    "three classes, forty rows": (3, facts.cells({"00": 6, "01": 2, "10": 2, "11": 6})),
    "three classes, six rows": (3, facts.SIX_ROWS),
}


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.slow if "forty" in case else ()) for case in SYMMETRIC]
)
@pytest.mark.parametrize("kind", RANDOM)
def test_right_on_average_with_labels_that_may_switch(kind, case):
    """mean(Z^ / Z) = 1 over runs of their own seeds, where a posterior has 2 or 6 equal pieces."""
    n_classes, data = SYMMETRIC[case]
    network = facts.latent_class(n_classes, (2,) * len(data.columns))
    problem = Problem(network, data, uniform_prior(network))
    exact = exact_log_evidence(*problem)
    ratios = []
    for seed in range(24):
        found, _ = asked(kind, evaluation_of(problem, seed=seed, n_init=3, tol=1e-6))
        ratios.append(np.exp(found.value - exact))
    ratios = np.array(ratios)
    error = ratios.std(ddof=1) / np.sqrt(len(ratios))
    assert abs(ratios.mean() - 1) < 3.5 * error, (ratios.mean(), error)
    assert error < 0.15


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ais", "smc", "importance_gibbs"])
def test_twenty_rows_to_a_hundredth(kind):
    network = facts.latent_class(2, (2, 2, 2))
    evaluation = evaluation_of(Problem(network, facts.TWENTY_ROWS, uniform_prior(network)), seed=1)
    options = {"ais": {"n_chains": 4000}, "smc": {"n_runs": 200}, "importance_gibbs": {"n_draws": 100_000}}[kind]
    found, trusted = asked(kind, evaluation, **options)
    assert trusted
    assert found.standard_error < 0.02
    assert found.value == pytest.approx(-42.601677723015548, abs=3.5 * found.standard_error)


@pytest.mark.parametrize("kind", RANDOM)
def test_with_nothing_uncertain_every_weight_is_the_evidence(kind):
    """Nothing hidden: chains from q are exact; those from the prior and Metropolis chains are right on average."""
    network = facts.latent_class(1, (2, 3))
    data = facts.cells({"00": 3, "01": 2, "12": 4})
    problem = Problem(network, data, uniform_prior(network))
    found, trusted = asked(kind, evaluation_of(problem))
    exact = exact_log_evidence(*problem)
    if kind == "ais_metropolis":
        assert found.value == pytest.approx(exact, abs=4 * found.standard_error)
    else:
        assert trusted
        assert found.value == pytest.approx(exact, abs=1e-9)
        assert np.ptp(found.details["log_weights"]) < 1e-9


@pytest.mark.parametrize("kind", RANDOM)
def test_threads_change_no_bit(kind):
    problem = enumerable(5, 2**9, hidden=True)
    one, two = (asked(kind, evaluation_of(problem, seed=3, n_jobs=n_jobs))[0] for n_jobs in (1, 2))
    assert one.value == two.value
    assert np.array_equal(one.details["log_weights"], two.details["log_weights"])


@pytest.mark.parametrize("kind", RANDOM)
def test_seeds_and_what_is_told(kind):
    problem = enumerable(5, 2**9, hidden=True)
    one, other = (asked(kind, evaluation_of(problem, seed=seed))[0] for seed in (1, 2))
    assert one.value != other.value
    assert one.standard_error > 0
    n = len(one.details["log_weights"]) + np.size(one.details.get("chain_log_weights", ()))
    assert 1 <= one.details["effective_sample_size"] <= n + 1e-9
    for stratum in one.details.get("strata", ()):  # populations have none
        assert stratum.inverse_temperatures[0] == 0
        assert stratum.inverse_temperatures[-1] == 1
        assert np.all(np.diff(stratum.inverse_temperatures) > 0)
        assert stratum.trace.shape == (len(stratum.inverse_temperatures), len(stratum.log_weights))
        assert np.all(stratum.trace[0] == 0)


@pytest.mark.parametrize("kind", RANDOM)
def test_repeated_rows_are_weights(kind):
    rng = np.random.default_rng(0)
    model = naive_bayes(2, 3)
    codes = rng.integers(0, 2, (6, 3)).astype(np.int8)
    weights = np.array([1.0, 3.0, 2.0, 1.0, 4.0, 2.0])
    columns = ("y0", "y1", "y2")
    weighted = evaluate(model, Rows(columns, codes, weights), ["c"])
    repeated = evaluate(model, Rows(columns, np.repeat(codes, weights.astype(int), axis=0)), ["c"])
    assert asked(kind, weighted)[0].value == pytest.approx(asked(kind, repeated)[0].value, rel=1e-9)


@pytest.mark.parametrize("kind", RANDOM)
def test_fractional_weights(kind):
    """Scores that complete rows refuse them; the others integrate p(theta) prod p(row | theta)^weight."""
    model = naive_bayes(2, 2)
    codes = np.array([[0, 0], [0, 1], [1, 1]], dtype=np.int8)
    weights = np.array([1.5, 0.5, 2.25])
    evaluation = evaluate(model, Rows(("y0", "y1"), codes, weights), ["c"])
    if kind not in ("auto", "importance", "ais_metropolis"):
        with pytest.raises(ValueError, match="whole-number"):
            asked(kind, evaluation)
        return
    found, _ = asked(kind, evaluation)
    assert found.value == pytest.approx(_integral(codes, weights), abs=4 * found.standard_error)
    assert found.standard_error < 0.1


def _integral(codes, weights, n_points=24):
    """ln of the integral over five probabilities on a Gauss-Legendre grid: two classes, two binary columns."""
    nodes, areas = np.polynomial.legendre.leggauss(n_points)
    nodes, areas = (nodes + 1) / 2, areas / 2
    total = 0.0
    a, b = np.meshgrid(nodes, nodes, indexing="ij")  # P(1 | class) of the two columns in one class
    likelihood = [np.where(y0, a, 1 - a) * np.where(y1, b, 1 - b) for y0, y1 in codes]
    flat = [each.ravel() for each in likelihood]
    area = np.outer(areas, areas).ravel()
    for fraction, weight in zip(nodes, areas):
        log = sum(w * np.log(fraction * f[:, None] + (1 - fraction) * f[None, :]) for w, f in zip(weights, flat))
        total += weight * float(area @ np.exp(log) @ area)
    return np.log(total)


@pytest.mark.parametrize("kind", RANDOM)
def test_time_runs_out_and_progress_is_told(kind):
    problem = enumerable(5, 2**9, hidden=True)
    told = []
    full, _ = asked(kind, evaluation_of(problem, seed=3), progress=lambda done, of: told.append((done, of)))
    assert told[-1][0] == told[-1][1]
    assert "bridge" in kind or told[-1][1] == len(told)  # which counts its chains, then the weights of draws
    more = {name: 8 * value for name, value in {"n_chains": 32, **QUICK[kind]}.items() if name in SIZES[kind]}
    short, _ = asked(kind, evaluation_of(problem, seed=3), time_budget=0.0, **more)
    most = 8 * len(full.details["log_weights"]) + ("bridge" in kind)  # whose chains of few rows are one batch
    assert 0 < len(short.details["log_weights"]) < most
    assert np.isfinite(short.value)


@pytest.mark.parametrize("kind", [kind for kind in RANDOM if "n_chains" in SIZES[kind]])
def test_too_few_chains_are_told_of(kind):
    problem = enumerable(5, 2**9, hidden=True)
    found, _ = asked(kind, evaluation_of(problem), n_chains=1)
    assert "no standard error" in found.doubts[0]


def test_chains_that_are_too_short_are_told_of():
    """200 rows, one step from the prior: the weights are worth a single one."""
    model = naive_bayes(2, 4)
    rng = np.random.default_rng(0)
    codes = (rng.random((200, 4)) < np.where(rng.random((200, 1)) < 0.5, 0.9, 0.1)).astype(np.int8)
    evaluation = evaluate(model, Rows(tuple(f"y{j}" for j in range(4)), codes), ["c"])
    for kind, options in (
        ("ais_prior", {"n_chains": 16, "n_steps": 1}),
        ("importance", {"n_draws": 256, "fractions": (0.0,)}),
    ):
        assert "not to be trusted" in asked(kind, evaluation, **options)[0].doubts[0]


def test_one_step_from_the_prior_is_importance_sampling_from_the_prior():
    """The weights are likelihoods of draws from the prior: same mean and spread as computed directly."""
    network = facts.latent_class(2, (2, 2))
    problem = Problem(network, facts.SIX_ROWS, uniform_prior(network))
    evaluation = evaluation_of(problem)
    found, _ = asked("ais_prior", evaluation, n_chains=4000, n_steps=1)
    rng = np.random.default_rng(5)
    points = np.stack([evaluation.model.prior.sample(rng) for _ in range(4000)], axis=1)
    direct = evaluation.capabilities.points.log_likelihoods(evaluation.data, np.log(points))
    ours = found.details["log_weights"]
    error = np.hypot(ours.std(), direct.std()) / np.sqrt(4000)
    assert abs(ours.mean() - direct.mean()) < 4 * error
    assert np.std(ours) == pytest.approx(np.std(direct), rel=0.1)


def test_longer_chains_have_larger_log_weights_on_average():
    problem = Problem(
        facts.latent_class(2, (2, 2, 2)), facts.TWENTY_ROWS, uniform_prior(facts.latent_class(2, (2, 2, 2)))
    )
    found = [asked("ais_prior", evaluation_of(problem), n_chains=400, n_steps=k)[0] for k in (1, 8, 64, 512)]
    means = [each.details["mean_log_weight"] for each in found]
    assert means == sorted(means)
    error = np.std(found[-1].details["log_weights"]) / np.sqrt(400)
    assert means[-1] < exact_log_evidence(*problem) + 3 * error


def backward_ratios(prior_of_class, fraction, n, **options):
    """Z / Z^ of backward chains from the tables that made the rows: a draw of the posterior."""
    network, columns = facts.latent_class(2, (2, 2, 2)), ("y0", "y1", "y2")
    prior = uniform_prior(network) | {"c": np.array(prior_of_class, dtype=float)}
    model, rng, ratios = FastNetwork(network, prior).model, np.random.default_rng(7), []
    for seed in range(n):
        point = model.prior.sample(rng)
        drawn = queries.sample(model, point, 8, rng)
        codes = np.stack([drawn[column] for column in columns], axis=1).astype(np.int8)
        evaluation = evaluate(model, Rows(columns, codes), ["c"], seed=seed, n_init=3, tol=1e-6)
        found = reverse_ais(evaluation, np.log(point), fraction=fraction, **options)
        ratios.append(np.exp(exact_log_evidence(network, facts.Data(columns, codes), prior) - found.value))
    return np.mean(ratios), np.std(ratios, ddof=1) / np.sqrt(n)


@pytest.mark.parametrize(("prior_of_class", "fraction"), [((3, 1), 0.5), ((3, 1), 0.0), ((1, 1), 0.0)])
def test_backward_chains_are_right_on_average(prior_of_class, fraction):
    mean, error = backward_ratios(prior_of_class, fraction, 100, n_chains=8, n_steps=32)
    assert abs(mean - 1) < 3.5 * error, (mean, error)
    assert error < 0.1


def test_backward_chains_to_one_labeling_are_rather_too_high():
    """Chains of so few rows change labels freely, and seldom is one the other way round from where all others end."""
    mean, error = backward_ratios((1, 1), 0.5, 100, n_chains=8, n_steps=32)
    assert 0.5 < mean < 1 - 3.5 * error


def test_particles_drawn_again_at_every_step_leave_the_mean_right():
    network = facts.latent_class(2, (2, 2, 2))
    problem = Problem(network, facts.TWENTY_ROWS, uniform_prior(network))
    from_prior = {"fractions": (0.0,), "n_steps": 4, "resample_below": 1.0}
    found, _ = asked("smc", evaluation_of(problem, seed=2, n_init=3), n_runs=1000, **from_prior)
    assert found.standard_error < 0.1
    assert found.value == pytest.approx(exact_log_evidence(*problem), abs=4 * found.standard_error)


@pytest.mark.parametrize(("kind", "options"), [("ais", {"n_chains": 4000}), ("smc", {"n_runs": 600, "n_steps": 24})])
@pytest.mark.parametrize(("n_classes", "counts"), [(3, {"00": 3, "01": 1, "11": 2}), (2, {"000": 20, "111": 20})])
def test_chains_of_each_start_alone_find_all_of_the_evidence(kind, options, n_classes, counts):
    """A start's part of a point is a mean over labelings, whether chains change their labels or never do."""
    data = facts.cells(counts)
    network = facts.latent_class(n_classes, (2,) * len(data.columns))
    evaluation = evaluation_of(Problem(network, data, uniform_prior(network)), seed=1, n_init=3, tol=1e-6)
    found, trusted = asked(kind, evaluation, **options)
    assert trusted
    assert len(found.details["strata"]) > 1
    for stratum in found.details["strata"]:
        value, error, _ = pooled([stratum.log_wholes])
        assert error < 0.25  # fits are sure, the prior less so
        assert value == pytest.approx(exact(evaluation).value, abs=4 * error)
