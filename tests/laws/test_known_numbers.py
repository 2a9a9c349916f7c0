"""Two classes on twenty rows, and other small problems with known trajectories, optima and order of scores."""

import math

import numpy as np
import pytest
from bridge import FORMS, FastNetwork, estimator_of, fitted, frame_of, published, quietly
from reference import discrete_network as literal
from reference import facts
from reference.discrete_network import Network, Problem, uniform_prior
from reference.random_networks import random_tables

from skvbem.vbem.driver import run

approx = pytest.approx
LC2 = facts.latent_class(2, (2, 2, 2))
DATA = facts.TWENTY_ROWS
EXACT = next(fact for fact in facts.EVIDENCES if fact.name == "twenty rows, LC(2)").log_value


def from_responsibilities(network, data, responsibilities):
    """q(x) of a network whose only hidden node is c, from P(c) of each row."""
    return [
        (weight, list(zip(literal.completions(network, row), probabilities)))
        for (row, weight), probabilities in zip(data.rows(), np.asarray(responsibilities).tolist())
    ]


START = from_responsibilities(LC2, DATA, facts.START)


def fast_network(concentration=1.0, network=LC2):
    return FastNetwork(network, uniform_prior(network, concentration))


def start_of(fast, q=START):
    """Expected counts of q(x), (n_cells, 1)."""
    return fast.flat(literal.expected_counts(fast.network, q))[:, None]


def converged(fast, form="vb", data=DATA, start=None):
    result = run(fast.ascent(data, form), start_of(fast) if start is None else start, tol=0.0, max_iter=100_000)
    assert result.converged.all()
    return result


def entropy(fast, natural, expectation):
    """H(q(x)) = ln Z - sum of expected counts x natural parameters."""
    return expectation.log_normalizer[0] - (expectation.statistics[:, 0] * natural).sum()


def q_of(fast, natural, data=DATA):
    """q(x) at natural parameters."""
    return literal.latent_posterior(fast.network, fast.tables(natural), data)


# --- half steps -------------------------------------------------------------------------------------------------------


def test_the_first_half_steps():
    """F after M, E, M, E from responsibilities of 0.9 and 0.1."""
    fast = fast_network()
    program = fast.program(DATA)
    counts, h = start_of(fast)[:, 0], literal.entropy(START)
    trace = []
    for _ in range(2):
        trace.append(h + float(fast.model.prior.log_evidence(counts)))
        q = fast.model.prior + counts
        natural = q.expected_natural()
        expectation = fast.model.expect(natural[:, None], program)
        trace.append(float(expectation.log_normalizer[0] - q.kl(fast.model.prior)))
        counts, h = expectation.statistics[:, 0], entropy(fast, natural, expectation)
    assert trace == approx(facts.VB_TRACE, abs=1e-11)
    compiled = fast.ascent(DATA).advance(start_of(fast), 2)
    assert compiled[:, 0] == approx(facts.VB_TRACE[1::2], abs=1e-11)


def test_no_half_step_falls_and_both_bounds_agree_at_the_end():
    fast = fast_network()
    program, counts, trace = fast.program(DATA), start_of(fast)[:, 0], []
    for _ in range(60):
        q = fast.model.prior + counts
        natural = q.expected_natural()
        expectation = fast.model.expect(natural[:, None], program)
        counts = expectation.statistics[:, 0]
        trace.append(float(expectation.log_normalizer[0] - q.kl(fast.model.prior)))
        trace.append(entropy(fast, natural, expectation) + float(fast.model.prior.log_evidence(counts)))
    assert np.diff(trace).min() >= -1e-10 * abs(trace[-1])
    assert trace[-1] == approx(trace[-2], abs=1e-10)
    assert trace[-1] == approx(facts.VB_BOUND, abs=1e-10)


def test_the_converged_fit():
    fast = fast_network()
    result = converged(fast)
    assert result.objective[0] == approx(facts.VB_BOUND, abs=1e-11)
    posterior = fast.model.prior + result.statistics[:, 0]
    for (row, _), (_, choices) in zip(DATA.rows(), q_of(fast, posterior.expected_natural())):
        cells = tuple(row.values())
        mirrored = cells not in facts.VB_RESPONSIBILITIES
        expected = facts.VB_RESPONSIBILITIES[tuple(1 - cell for cell in cells) if mirrored else cells]
        assert choices[int(mirrored)][1] == approx(expected, abs=1e-7)


@pytest.mark.parametrize("concentration", facts.VB_BOUND_BY_CONCENTRATION)
def test_bounds_by_concentration(concentration):
    result = converged(fast_network(concentration))
    assert result.objective[0] == approx(facts.VB_BOUND_BY_CONCENTRATION[concentration], abs=1e-10)


def test_restarts_find_a_better_optimum_where_there_is_one():
    model = fitted(Problem(LC2, DATA, uniform_prior(LC2, 0.25)), n_init=60, tol=1e-10, random_state=0)
    assert model.lower_bound_ == approx(-48.018837817333, abs=1e-8)


@pytest.mark.parametrize("n_classes", facts.BEST_VB_BOUND_BY_CLASSES)
def test_best_bounds_by_number_of_classes(n_classes):
    network = facts.latent_class(n_classes, (2, 2, 2))
    model = fitted(Problem(network, DATA, uniform_prior(network)), n_init=60, tol=1e-10, random_state=0)
    assert model.lower_bound_ == approx(facts.BEST_VB_BOUND_BY_CLASSES[n_classes], abs=1e-7)


# --- ML, MAP and the order of the scores ------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["ml", "map_probability"])
def test_maximum_likelihood(form):
    """Also the mode in the probability basis under a uniform prior."""
    fast = fast_network()
    result = converged(fast, form)
    theta = fast.tables(FORMS["ml"].point(fast.model.prior, result.statistics[:, 0]))
    constant = 0.0 if form == "ml" else -float(fast.model.prior.log_normalizer())
    assert result.objective[0] - constant == approx(facts.ML_LOG_LIKELIHOOD, abs=1e-10)
    assert theta["c"] == approx([0.5, 0.5], abs=1e-6)
    assert [theta[f"y{j}"][0, 0] for j in range(3)] == approx(facts.ML_FIRST_CLASS, abs=1e-6)


def test_softmax_map():
    fast = fast_network()
    result = converged(fast, "map")
    assert result.objective[0] == approx(facts.MAP_OBJECTIVE, abs=1e-10)
    log_theta = fast.tables(np.log((fast.model.prior + result.statistics[:, 0]).mean()))
    assert literal.log_likelihood(LC2, log_theta, DATA) == approx(facts.MAP_LOG_LIKELIHOOD, abs=1e-7)


def cheeseman_stutz(fast, natural):
    """(CS, MLED, expected counts) at ln theta, from the E step and the evidence of its counts."""
    expectation = fast.model.expect(natural[:, None], fast.program(DATA))
    mled = float(fast.model.prior.log_evidence(expectation.statistics[:, 0]))
    return mled + entropy(fast, natural, expectation), mled, expectation.statistics


def test_vb_from_the_cheeseman_stutz_posterior_starts_at_its_score():
    """MLED <= CS <= VB from there <= collapsed <= evidence; and the published order of the scores."""
    fast = fast_network()
    for form, score in (("ml", facts.ML_CHEESEMAN_STUTZ), ("map", facts.MAP_CHEESEMAN_STUTZ)):
        result = converged(fast, form)
        counts = result.statistics[:, 0] + (0 if form == "ml" else fast.model.prior.concentration)
        natural = np.log(counts / fast.model.prior.per_cell(fast.model.prior.row_sums(counts)))
        cs, mled, statistics = cheeseman_stutz(fast, natural)
        assert cs == approx(score, abs=1e-7)
        from_there = run(fast.ascent(DATA), statistics, tol=0.0, max_iter=10_000)
        assert mled <= cs <= from_there.traces[0][0] + 1e-12
        assert from_there.objective[0] == approx(facts.VB_BOUND, abs=1e-10)
    bic = facts.ML_LOG_LIKELIHOOD - fast.model.prior.n_free_parameters / 2 * math.log(20)
    assert bic == approx(facts.ML_BIC, abs=1e-11)
    q = q_of(fast, (fast.model.prior + from_there.statistics[:, 0]).expected_natural())
    collapsed = literal.exact_collapsed_bound(LC2, uniform_prior(LC2), q)
    assert collapsed == approx(facts.VB_COLLAPSED_BOUND, abs=1e-6)
    ordered = [bic, facts.ML_CHEESEMAN_STUTZ, from_there.objective[0], collapsed, EXACT - math.log(2), EXACT]
    assert ordered == sorted(ordered)


def test_cheeseman_stutz_at_any_point_is_a_lower_bound(rng):
    fast = fast_network()
    for _ in range(50):
        tables = random_tables(rng, LC2, 0.5)
        cs, mled, _ = cheeseman_stutz(fast, np.log(fast.flat(tables)))
        assert mled <= cs <= EXACT


def test_any_responsibilities_give_a_lower_bound(rng):
    """H(q) + ln BD of the expected counts never passes the evidence."""
    fast = fast_network()
    for _ in range(50):
        q = from_responsibilities(LC2, DATA, rng.dirichlet([0.3, 0.3], size=8))
        counts = start_of(fast, q)[:, 0]
        assert literal.entropy(q) + fast.model.prior.log_evidence(counts) <= EXACT + 1e-12


def test_the_gap_is_the_divergence_from_the_posterior():
    """ln p(y) - F = KL(q || p(x, theta | y)), over completions and parameters."""
    network = facts.latent_class(2, (2, 2))
    fast, data = fast_network(0.7, network), facts.SIX_ROWS
    ascent = fast.ascent(data)
    statistics = fast.random_starts(ascent, np.random.default_rng(0))
    evidence = literal.exact_log_evidence(network, data, uniform_prior(network, 0.7))
    for _ in range(5):
        before = statistics[:, 0].copy()
        (bound,) = ascent.advance(statistics, 1)[0]
        q = q_of(fast, (fast.model.prior + before).expected_natural(), data)
        gap = literal.kl_to_posterior(network, data, uniform_prior(network, 0.7), q, fast.tables(before))
        assert evidence - bound == approx(gap, abs=1e-10)


@pytest.mark.parametrize("fact", facts.EVIDENCES, ids=lambda fact: fact.name)
def test_bounds_stay_below_known_evidences(fact):
    model = fitted(Problem(fact.network, fact.data, fact.prior), n_init=20, random_state=0)
    hidden = len(fact.network.cards) > len(fact.data.columns)
    if "LC(1)" in fact.name or "no arcs" in fact.name:
        assert model.lower_bound_ == approx(fact.log_value, abs=1e-11)
    else:
        assert hidden
        assert model.lower_bound_ < fact.log_value


# --- small n, empty classes, saddles ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_features", facts.BEST_BOUND_OF_ONE_ROW)
def test_one_row(n_features):
    network = facts.latent_class(2, (2,) * n_features)
    data = facts.cells({"0" * n_features: 1})
    model = fitted(Problem(network, data, uniform_prior(network)), n_init=30, tol=1e-12, random_state=0)
    assert model.lower_bound_ == approx(facts.BEST_BOUND_OF_ONE_ROW[n_features], abs=1e-8)
    fast = fast_network(network=network)
    equal = start_of(fast, from_responsibilities(network, data, [[0.5, 0.5]]))
    (symmetric,) = fast.ascent(data).advance(equal, 1)[0]
    assert symmetric == approx(facts.symmetric_bound_of_one_row(n_features), abs=1e-12)


def test_six_rows_creep_to_the_symmetric_point():
    network = facts.latent_class(2, (2, 2))
    problem = Problem(network, facts.SIX_ROWS, uniform_prior(network))
    model = fitted(problem, init="random", n_init=50, tol=1e-10, random_state=0)
    assert model.restarts_.bounds == approx(np.full(50, facts.SIX_ROWS_VB_BOUND), abs=1e-6)


@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_an_empty_class_costs_what_the_closed_form_says(n_classes):
    """Adding a class without rows to a converged fit: exact, so the best bound of one class more is at least that."""
    network, wider = (facts.latent_class(k, (2, 2, 2)) for k in (n_classes, n_classes + 1))
    fast, wide = fast_network(network=network), fast_network(network=wider)
    ascent = fast.ascent(DATA)
    result = converged(fast, start=fast.random_starts(ascent, np.random.default_rng(1)))
    counts = fast.tables(result.statistics[:, 0])
    padded = {node: np.concatenate([table, np.zeros((1, *table.shape[1:]))]) for node, table in counts.items()}
    cost = facts.empty_class(n_classes, 20, 1)
    difference = wide.model.prior.log_evidence(wide.flat(padded)) - fast.model.prior.log_evidence(
        result.statistics[:, 0]
    )
    assert difference == approx(cost, abs=1e-10)
    onward = run(wide.ascent(DATA), wide.flat(padded)[:, None], tol=1e-9, max_iter=10_000)
    assert onward.objective[0] >= result.objective[0] + cost - 1e-9


def test_equal_responsibilities_stay_equal(any_form):
    """The saddle: stationary for every form under symmetric priors."""
    fast = fast_network(1.5)
    statistics = start_of(fast, from_responsibilities(LC2, DATA, np.full((8, 2), 0.5)))
    ascent = fast.ascent(DATA, any_form)
    ascent.advance(statistics, 50)
    counts = fast.tables(statistics[:, 0])
    assert counts["c"] == approx([10, 10])
    for j in range(3):
        assert counts[f"y{j}"] == approx(np.full((2, 2), 5.0))


@pytest.mark.parametrize("method", ["vb", "map", "ml"])
def test_a_start_at_the_saddle_is_refused(method):
    """All states alike for all children, whatever the class weights; one child that differs is enough."""
    alike = {"c": np.array([0.3, 0.7]), **{f"y{j}": np.tile([0.4, 0.6], (2, 1)) for j in range(3)}}
    frame = frame_of(DATA)
    for init in (alike, {"c": np.array([0.3, 0.7])}):
        model = estimator_of(LC2, DATA, uniform_prior(LC2), init=dict(init), method=method)
        with pytest.raises(ValueError, match=r"make all states of 'c' alike .* saddle"):
            quietly(model.fit, frame, sample_weight=DATA.weights)
    alike["y2"] = np.array([[0.4, 0.6], [0.6, 0.4]])
    model = fitted(Problem(LC2, DATA, uniform_prior(LC2)), init=alike, method=method, tol=1e-8)
    differences = [np.abs(np.diff(published(LC2, model.tables_)[f"y{j}"], axis=0)).max() for j in range(3)]
    assert min(differences) > 0.1


def test_no_random_start_ends_at_the_saddle():
    """Most meet the best; some empty one class nearly, a local optimum; none shares all rows equally."""
    model = fitted(Problem(LC2, DATA, uniform_prior(LC2)), init="random", n_init=100, tol=1e-9, random_state=0)
    fast = fast_network()
    saddle = start_of(fast, from_responsibilities(LC2, DATA, np.full((8, 2), 0.5)))
    (saddle_bound,) = fast.ascent(DATA).advance(saddle, 1)[0]
    assert saddle_bound < -48.3
    assert model.restarts_.bounds.min() > saddle_bound + 0.1
    assert np.sum(model.restarts_.bounds > facts.VB_BOUND - 1e-6) >= 75


# --- childless and one-child latents, dimensions ----------------------------------------------------------------------


@pytest.mark.parametrize("parents", [(), ("y0",)], ids=["alone", "below an observed node"])
@pytest.mark.parametrize("form", ["vb", "ml"])
def test_a_childless_latent_changes_nothing(parents, form):
    """It is pruned: kept in q it would cost 1.308 nats and more."""
    lonely = Network({**LC2.cards, "z": 3}, {**LC2.parents, "z": parents})
    without, fast = fast_network(), fast_network(network=lonely)
    start = fast.tables(np.zeros(fast.model.layout.n_cells)) | without.tables(start_of(without)[:, 0])
    bounds = [
        run(m.ascent(DATA, form), m.flat(counts)[:, None], tol=1e-10, max_iter=10_000).objective[0]
        for m, counts in ((without, {node: start[node] for node in LC2.cards}), (fast, start))
    ]
    assert bounds[1] == approx(bounds[0], abs=1e-9)
    assert facts.childless_latent(20) < -1.3


def test_a_latent_with_one_child_cannot_be_told_from_none():
    """Identifiable dimension and maximum likelihood are those of the structure without it."""
    network = Network({**LC2.cards, "z": 2}, {**LC2.parents, "z": (), "y2": ("c", "z")})
    likelihoods = [
        fitted(Problem(m, DATA, uniform_prior(m)), method="ml", n_init=30, tol=1e-9, random_state=0).log_likelihood_
        for m in (LC2, network)
    ]
    assert likelihoods[1] == approx(likelihoods[0], abs=1e-6)


@pytest.mark.parametrize(("n_classes", "cards", "d_complete", "_d"), facts.LATENT_CLASS_DIMENSIONS)
def test_numbers_of_parameters(n_classes, cards, d_complete, _d):
    network = facts.latent_class(n_classes, cards)
    assert fast_network(network=network).model.prior.n_free_parameters == d_complete


@pytest.mark.parametrize(("parents", "_n", "d_complete", "_d", "_aliases"), facts.BIPARTITE_DIMENSIONS)
def test_numbers_of_parameters_of_two_latents(parents, _n, d_complete, _d, _aliases):
    network = facts.bipartite(parents, (5, 5, 5, 5))
    assert fast_network(network=network).model.prior.n_free_parameters == d_complete
