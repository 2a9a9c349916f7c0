"""The definitions that other tests trust, held against known numbers, against each other and against theory."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference import facts
from reference.discrete_network import (
    FORMS,
    MISSING,
    Data,
    Network,
    bdeu_prior,
    completions,
    counts_distribution,
    each,
    em,
    entropy,
    every_completion,
    exact_collapsed_bound,
    exact_evidence,
    exact_log_evidence,
    expected_counts,
    expected_log,
    free_energy,
    joint_completions,
    joint_mode,
    kl,
    kl_to_posterior,
    latent_posterior,
    log_bd,
    log_likelihood,
    logs,
    lower_bound,
    map_probability,
    map_softmax,
    marginals,
    mean_tables,
    ml,
    n_completions,
    objective_after_e,
    objective_after_m,
    posterior,
    precise_log_bd,
    predictive_probability,
    row_log_normalizer,
    row_posterior,
    uniform_prior,
    vb,
)
from reference.random_networks import random_network, random_problem, random_tables, sample
from reference.scores import (
    bic,
    cheeseman_stutz,
    draper,
    identifiable_dimension,
    laplace,
    log_prior,
    mled,
    n_aliases,
)
from reference.strategies import counts as any_counts
from reference.strategies import networks, probabilities, problems

approx = pytest.approx
few = settings(max_examples=25, deadline=None, derandomize=True)
LC2 = facts.latent_class(2, (2, 2, 2))
UNIFORM = uniform_prior(LC2)


def from_responsibilities(network, data, responsibilities):
    """q(x) of a network whose only hidden node is c, from P(c) of each row."""
    return [
        (weight, list(zip(completions(network, row), probabilities.tolist())))
        for (row, weight), probabilities in zip(data.rows(), np.asarray(responsibilities))
    ]


def fit(form, network=LC2, prior=UNIFORM, data=facts.TWENTY_ROWS, start=facts.START, n_steps=150):
    """The last step of EM from responsibilities."""
    counts = expected_counts(network, from_responsibilities(network, data, start))
    for _ in range(n_steps):
        (step,) = em(form, network, data, prior, counts, 1)
        change = max(np.abs(step.counts[node] - counts[node]).max() for node in counts)
        counts = step.counts
        if change < 1e-12:
            return step
    raise AssertionError(f"not converged after {n_steps} steps: {change}")


def random_start(data, n_classes, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(n_classes), len(data.cells))


def some_counts(network, data, seed=0):
    """Expected counts at random tables."""
    tables = random_tables(np.random.default_rng(seed), network)
    return expected_counts(network, latent_posterior(network, logs(tables), data))


# --- known evidences --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fact", facts.EVIDENCES, ids=lambda fact: fact.name)
def test_exact_evidence(fact):
    assert exact_evidence(fact.network, fact.data, fact.prior) == fact.value
    assert exact_log_evidence(fact.network, fact.data, fact.prior) == approx(fact.log_value, abs=1e-11)


def test_published_logarithms():
    logarithms = {fact.name: fact.log_value for fact in facts.EVIDENCES}
    assert logarithms["twenty rows, LC(2)"] == approx(-42.601677723015548, abs=1e-13)
    assert logarithms["forty rows, LC(2)"] == approx(-52.4082045431062, abs=1e-12)
    assert logarithms["two latents, one shared"] == approx(-13.6016068273642, abs=1e-12)


@pytest.mark.parametrize("fact", facts.LIZARD_SCORES, ids=lambda fact: fact.name)
def test_complete_data_scores_of_bnlearn(fact):
    q = latent_posterior(fact.network, fact.network.full(0.0), facts.LIZARDS)
    log_theta, _ = ml(None, expected_counts(fact.network, q))
    assert log_likelihood(fact.network, log_theta, facts.LIZARDS) == approx(fact.log_likelihood, abs=1e-9)
    assert bic(fact.network, log_theta, facts.LIZARDS) == approx(fact.bic, abs=1e-9)
    assert fact.network.n_free_parameters == fact.n_free_parameters
    for prior, value in fact.evidences:
        assert exact_log_evidence(fact.network, facts.LIZARDS, prior) == approx(value, abs=1e-9)


# --- known fits -------------------------------------------------------------------------------------------------------


def test_vb_trace():
    start = from_responsibilities(LC2, facts.TWENTY_ROWS, facts.START)
    first, second = em(vb, LC2, facts.TWENTY_ROWS, UNIFORM, expected_counts(LC2, start), 2)
    trace = objective_after_m(vb, LC2, UNIFORM, start), first.after_e, first.after_m, second.after_e
    assert trace == approx(facts.VB_TRACE, abs=1e-11)


def test_vb_converged():
    last = fit(vb)
    assert last.after_e == approx(facts.VB_BOUND, abs=1e-11)
    assert last.after_m == approx(facts.VB_BOUND, abs=1e-11)
    for (row, _), (_, choices) in zip(facts.TWENTY_ROWS.rows(), last.q):
        cells = tuple(row.values())
        mirrored = cells not in facts.VB_RESPONSIBILITIES
        expected = facts.VB_RESPONSIBILITIES[tuple(1 - cell for cell in cells) if mirrored else cells]
        assert choices[int(mirrored)][1] == approx(expected, abs=2e-10)
    assert exact_collapsed_bound(LC2, UNIFORM, last.q) == approx(facts.VB_COLLAPSED_BOUND, abs=1e-10)


@pytest.mark.parametrize("form", [ml, map_probability])
def test_ml_converged_and_map_of_probabilities_under_a_uniform_prior_is_ml(form):
    last = fit(form)
    log_theta, _ = form(UNIFORM, last.counts)
    theta = each(np.exp, log_theta)
    assert theta["c"] == approx([0.5, 0.5], abs=1e-9)
    assert [theta[f"y{j}"][0, 0] for j in range(3)] == approx(facts.ML_FIRST_CLASS, abs=1e-8)
    assert log_likelihood(LC2, log_theta, facts.TWENTY_ROWS) == approx(facts.ML_LOG_LIKELIHOOD, abs=1e-11)
    assert bic(LC2, log_theta, facts.TWENTY_ROWS) == approx(facts.ML_BIC, abs=1e-11)
    assert cheeseman_stutz(LC2, log_theta, facts.TWENTY_ROWS, UNIFORM) == approx(facts.ML_CHEESEMAN_STUTZ, abs=1e-10)


def test_map_converged():
    last = fit(map_softmax)
    log_theta, _ = map_softmax(UNIFORM, last.counts)
    assert last.after_e == approx(facts.MAP_OBJECTIVE, abs=1e-11)
    assert log_likelihood(LC2, log_theta, facts.TWENTY_ROWS) == approx(facts.MAP_LOG_LIKELIHOOD, abs=1e-10)
    assert cheeseman_stutz(LC2, log_theta, facts.TWENTY_ROWS, UNIFORM) == approx(facts.MAP_CHEESEMAN_STUTZ, abs=1e-10)
    assert laplace(LC2, log_theta, facts.TWENTY_ROWS, UNIFORM) == approx(facts.MAP_LAPLACE, abs=1e-10)


def test_order_of_the_scores_on_twenty_rows():
    last = fit(ml)
    q = latent_posterior(LC2, ml(None, last.counts)[0], facts.TWENTY_ROWS)
    assert lower_bound(LC2, UNIFORM, q) == approx(facts.ML_CHEESEMAN_STUTZ, abs=1e-10)
    from_there = fit(vb, start=np.array([[p for _, p in choices] for _, choices in q]))
    assert from_there.after_m == approx(facts.VB_BOUND, abs=1e-11)
    exact = next(fact for fact in facts.EVIDENCES if fact.name == "twenty rows, LC(2)").log_value
    ordered = [
        facts.ML_BIC,
        facts.ML_CHEESEMAN_STUTZ,
        facts.VB_BOUND,
        facts.VB_COLLAPSED_BOUND,
        exact - math.log(2),
        exact,
    ]
    assert ordered == sorted(ordered)


@pytest.mark.parametrize("concentration", facts.VB_BOUND_BY_CONCENTRATION)
def test_vb_bound_by_concentration(concentration):
    bound = fit(vb, prior=uniform_prior(LC2, concentration)).after_m
    assert bound == approx(facts.VB_BOUND_BY_CONCENTRATION[concentration], abs=1e-11)


@pytest.mark.parametrize("n_classes", [1, 3, 4])
def test_vb_bound_by_classes(n_classes):
    network = facts.latent_class(n_classes, (2, 2, 2))
    start = random_start(facts.TWENTY_ROWS, n_classes)
    last = fit(vb, network, uniform_prior(network), start=start, n_steps=300)
    assert last.after_m == approx(facts.BEST_VB_BOUND_BY_CLASSES[n_classes], abs=1e-8)


@pytest.mark.parametrize("n_features", facts.BEST_BOUND_OF_ONE_ROW)
def test_one_row(n_features):
    network = facts.latent_class(2, (2,) * n_features)
    data, prior = facts.cells({"0" * n_features: 1}), uniform_prior(network)
    bounds = [fit(vb, network, prior, data, start, n_steps=2000).after_m for start in ([[0.5, 0.5]], [[0.6, 0.4]])]
    assert bounds[0] == approx(facts.symmetric_bound_of_one_row(n_features), abs=1e-12)
    assert max(bounds) == approx(facts.BEST_BOUND_OF_ONE_ROW[n_features], abs=1e-9)


def test_six_rows_creep_to_the_symmetric_point():
    network = facts.latent_class(2, (2, 2))
    prior = uniform_prior(network)
    symmetric = fit(vb, network, prior, facts.SIX_ROWS, np.full((4, 2), 0.5))
    assert symmetric.after_m == approx(facts.SIX_ROWS_VB_BOUND, abs=1e-11)
    start = from_responsibilities(network, facts.SIX_ROWS, random_start(facts.SIX_ROWS, 2))
    bounds = [step.after_m for step in em(vb, network, facts.SIX_ROWS, prior, expected_counts(network, start), 300)]
    assert bounds[-1] == approx(facts.SIX_ROWS_VB_BOUND, abs=1e-5)


def test_an_empty_class_costs_what_the_closed_form_says():
    network = facts.latent_class(3, (2, 2, 2))
    two = fit(vb)
    three = [(w, [*choices, ({**choices[0][0], "c": 2}, 0.0)]) for w, choices in two.q]
    cost = lower_bound(network, uniform_prior(network), three) - two.after_m
    assert cost == approx(facts.empty_class(2, 20, 1), abs=1e-11)
    assert facts.empty_class(1, 20, 1) == approx(facts.EMPTY_CLASS_OF_TWENTY_ROWS, abs=1e-12)
    best = facts.BEST_VB_BOUND_BY_CLASSES
    assert all(best[k + 1] >= best[k] + facts.empty_class(k, 20, 1) for k in (1, 2, 3))


@pytest.mark.parametrize("r", [0.0, 0.3, 0.5])
def test_a_childless_latent_costs_bound_only_if_it_is_not_pruned(r):
    """Neither exact evidence nor the pruned bound know it is there."""
    lonely = Network({**LC2.cards, "z": 2}, {**LC2.parents, "z": ()})
    prior, last = uniform_prior(lonely), fit(vb)
    counts = {**last.counts, "z": np.array([3.0, 7.0])}
    (pruned,) = em(vb, lonely, facts.TWENTY_ROWS, prior, counts, 1)
    assert pruned.after_m == approx(facts.VB_BOUND, abs=1e-11)
    kept = [(w, [({**x, "z": z}, p * (r, 1 - r)[z]) for x, p in choices for z in (0, 1)]) for w, choices in last.q]
    cost = lower_bound(lonely, prior, kept) - facts.VB_BOUND
    assert cost == approx(facts.childless_latent(20, r), abs=1e-10)
    assert cost <= facts.CHILDLESS_LATENT_OF_TWENTY_ROWS + 1e-11
    network = Network({"z": 2, "y0": 2, "c": 3, "y1": 2}, {"c": (), "y0": ("c",), "y1": ("c",), "z": ("y0",)})
    without = facts.latent_class(3, (2, 2))
    evidences = [exact_evidence(m, facts.SIX_ROWS, uniform_prior(m)) for m in (network, without)]
    assert evidences[0] == evidences[1]


# --- known dimensions, counts and symmetries --------------------------------------------------------------------------


@pytest.mark.parametrize(("n_classes", "cards", "d_complete", "d"), facts.LATENT_CLASS_DIMENSIONS)
def test_dimension_of_latent_class_models(n_classes, cards, d_complete, d):
    network = facts.latent_class(n_classes, cards)
    columns = [node for node in network.cards if node != "c"]
    assert network.n_free_parameters == d_complete
    assert max(identifiable_dimension(network, columns, seed) for seed in (0, 1)) == d
    assert d <= min(d_complete, math.prod(cards) - 1)


@pytest.mark.parametrize(("parents", "n_labeled", "d_complete", "d", "aliases"), facts.BIPARTITE_DIMENSIONS)
def test_bipartite_structures(parents, n_labeled, d_complete, d, aliases):
    network, columns = facts.bipartite(parents, (5, 5, 5, 5)), ("y0", "y1", "y2", "y3")
    swapped = [p.translate(str.maketrans("12", "21"))[:: -1 if len(p) == 2 else 1] for p in parents]
    like_it = {order for side in (parents, swapped) for order in itertools.permutations(side)}
    assert len(like_it) == n_labeled
    assert network.n_free_parameters == d_complete
    assert max(identifiable_dimension(network, columns, seed) for seed in (0, 1)) == d
    assert n_aliases(network, columns, uniform_prior(network)) == aliases


def test_bipartite_structures_are_all_there():
    assert sum(n_labeled for _, n_labeled, *_ in facts.BIPARTITE_DIMENSIONS) == 256


@pytest.mark.parametrize(("n_hidden", "n_observed"), facts.BIPARTITE_COUNTS)
def test_bipartite_counts(n_hidden, n_observed):
    subsets = [frozenset(s) for k in range(n_hidden + 1) for s in itertools.combinations(range(n_hidden), k)]
    renamings = list(itertools.permutations(range(n_hidden)))
    structures = {
        min(tuple(tuple(sorted(renaming[h] for h in parents)) for parents in structure) for renaming in renamings)
        for structure in itertools.product(subsets, repeat=n_observed)
    }
    assert len(structures) == facts.BIPARTITE_COUNTS[n_hidden, n_observed]


def test_aliases():
    ((cards, expected),) = facts.ALIASES_OF_HIDDEN_PARENTS.items()
    hidden = [f"h{i}" for i in range(len(cards))]
    network = Network({**dict(zip(hidden, cards)), "y": 2}, {**dict.fromkeys(hidden, ()), "y": tuple(hidden)})
    prior = uniform_prior(network)
    assert n_aliases(network, ["y"], prior) == expected
    assert n_aliases(network, ["y"], {**prior, "h0": np.array([1, 1, 2])}) == expected / 2 / 3
    assert n_aliases(LC2, facts.TWENTY_ROWS.columns, {**UNIFORM, "c": np.array([1, 2])}) == 1


# --- the definitions against each other -------------------------------------------------------------------------------


@given(problems(max_completions=2**7))
@few
def test_exact_evidence_is_the_sum_over_joint_completions(problem):
    network, data, prior = problem
    one_by_one = list(joint_completions(network, every_completion(network, data)))
    assert len(one_by_one) == n_completions(network, data)
    evidence = exact_log_evidence(network, data, prior)
    assert evidence == approx(math.log(sum(math.exp(log_bd(counts, prior)) for counts, _ in one_by_one)), abs=1e-10)
    exact = exact_evidence(network, data, prior)
    assert evidence == approx(math.log(exact.numerator) - math.log(exact.denominator), abs=1e-10)


@given(problems(max_completions=2**7))
@few
def test_gap_of_the_bound_is_the_divergence_from_the_posterior(problem):
    """ln p(y) − F = KL(q ‖ posterior) at any q(x) and q(θ), pruned or not; collapsed and plain bounds lie between."""
    network, data, prior = problem
    evidence = exact_log_evidence(network, data, prior)
    counts = some_counts(network, data)
    log_tables, penalty = vb(prior, counts)
    for prune in (False, True):
        q = latent_posterior(network, logs(random_tables(np.random.default_rng(1), network)), data, prune)
        bound = free_energy(log_tables, penalty, expected_counts(network, q), entropy(q))
        assert evidence - bound == approx(kl_to_posterior(network, data, prior, q, counts), abs=1e-9)
        collapsed = exact_collapsed_bound(network, prior, q)
        assert bound <= lower_bound(network, prior, q) + 1e-9
        assert lower_bound(network, prior, q) <= collapsed + 1e-9
        assert collapsed <= evidence + 1e-9


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@given(problem=problems())
@few
def test_objective_never_falls_and_is_the_free_energy(form, problem):
    network, data, prior = problem
    if form is map_probability:
        prior = each(lambda a: a + 1, prior)
    counts = some_counts(network, data)
    for prune in (True, False):
        trace = em(form, network, data, prior, counts, 4, prune)
        objectives = [value for step in trace for value in (step.after_e, step.after_m)]
        assert np.diff(objectives).min() >= -1e-9
        before = counts
        for step in trace:
            log_tables, penalty = form(prior, before)
            direct = free_energy(log_tables, penalty, step.counts, entropy(step.q))
            assert step.after_e == approx(direct, abs=1e-9)
            assert step.after_e == approx(objective_after_e(form, network, data, prior, before, prune), abs=1e-12)
            before = step.counts


@given(problems())
@few
def test_bound_after_m_is_entropy_plus_log_bd(problem):
    network, data, prior = problem
    q = latent_posterior(network, logs(random_tables(np.random.default_rng(0), network)), data)
    assert objective_after_m(vb, network, prior, q) == approx(lower_bound(network, prior, q), abs=1e-9)


@given(problems(max_completions=2**7))
@few
def test_scores_are_ordered_at_any_parameters(problem):
    """MLED <= Cheeseman-Stutz = H(q) + ln BD(N̄) <= VB from there <= ln p(y)."""
    network, data, prior = problem
    log_theta = logs(random_tables(np.random.default_rng(2), network))
    q = latent_posterior(network, log_theta, data)
    score = cheeseman_stutz(network, log_theta, data, prior)
    assert score == approx(lower_bound(network, prior, q), abs=1e-9)
    assert mled(network, log_theta, data, prior) <= score + 1e-9
    (step,) = em(vb, network, data, prior, expected_counts(network, q), 1)
    assert score <= step.after_m + 1e-9
    assert step.after_m <= exact_log_evidence(network, data, prior) + 1e-9


@given(problems(max_hidden=0, missing=False))
@few
def test_complete_data_leave_no_gap(problem):
    network, data, prior = problem
    q = latent_posterior(network, network.full(0.0), data)
    evidence = exact_log_evidence(network, data, prior)
    assert entropy(q) == 0
    assert evidence == approx(log_bd(expected_counts(network, q), prior), abs=1e-10)
    (step,) = em(vb, network, data, prior, network.full(0.0), 1)
    assert step.after_m == approx(evidence, abs=1e-10)


@given(problems(max_completions=2**7))
@few
def test_weights_are_repeated_rows_and_order_is_nothing(problem):
    network, data, prior = problem
    long = Data(data.columns, np.repeat(data.cells, data.weights, axis=0)[::-1])
    counts = some_counts(network, data)
    assert n_completions(network, data) == n_completions(network, long)
    assert exact_log_evidence(network, data, prior) == approx(exact_log_evidence(network, long, prior), abs=1e-10)
    short, repeated = (em(vb, network, d, prior, counts, 2)[-1] for d in (data, long))
    assert short.after_m == approx(repeated.after_m, abs=1e-10)
    assert exact_collapsed_bound(network, prior, short.q) == approx(
        exact_collapsed_bound(network, prior, repeated.q), abs=1e-9
    )


@given(problems(max_completions=2**7))
@few
def test_a_missing_cell_is_the_sum_over_its_values(problem):
    network, data, prior = problem
    assume(len(data.cells))
    log_theta = logs(random_tables(np.random.default_rng(0), network))
    evidences, likelihoods = [], []
    for value in (MISSING, *range(network.cards[data.columns[0]])):
        cells, weights = data.cells.copy(), data.weights.copy()
        cells[0, 0], weights[0] = value, 1
        filled = Data(data.columns, cells, weights)
        evidences.append(exact_evidence(network, filled, prior))
        likelihoods.append(math.exp(log_likelihood(network, log_theta, filled)))
    assert evidences[0] == sum(evidences[1:])
    assert likelihoods[0] == approx(sum(likelihoods[1:]))


@given(problems(max_completions=2**6))
@few
def test_a_row_without_cells_changes_nothing(problem):
    network, data, prior = problem
    empty = np.full((1, len(data.columns)), MISSING)
    longer = Data(data.columns, np.vstack([data.cells, empty]), np.append(data.weights, 1))
    assume(n_completions(network, longer) <= 2**8)
    assert exact_evidence(network, longer, prior) == exact_evidence(network, data, prior)
    counts = some_counts(network, data)
    (pruned,), (pruned_longer,) = (em(vb, network, d, prior, counts, 1) for d in (data, longer))
    assert pruned_longer.after_m == approx(pruned.after_m, abs=1e-12)
    unpruned, unpruned_longer = (objective_after_e(vb, network, d, prior, counts, False) for d in (data, longer))
    assert unpruned_longer <= unpruned + 1e-12


@given(problems())
@few
def test_pruning_changes_no_probability_and_never_lowers_the_bound(problem):
    network, data, prior = problem
    log_theta = logs(random_tables(np.random.default_rng(0), network))
    pruned = log_likelihood(network, log_theta, data, prune=True)
    assert pruned == approx(log_likelihood(network, log_theta, data, prune=False), abs=1e-10)
    counts = some_counts(network, data)
    bounds = [objective_after_e(vb, network, data, prior, counts, prune) for prune in (False, True)]
    assert bounds[0] <= bounds[1] + 1e-10


def test_pruning_keeps_what_the_row_bears_on():
    """a -> b -> c, a -> d: with only b observed c and d go; with only d observed b and c go."""
    network = Network(dict.fromkeys("abcd", 2), {"a": (), "b": ("a",), "c": ("b",), "d": ("a",)})
    assert [set(x) for x in completions(network, {"b": 0}, prune=True)] == [{"a", "b"}] * 2
    assert [set(x) for x in completions(network, {"d": 1}, prune=True)] == [{"a", "d"}] * 2
    assert completions(network, {}, prune=True) == [{}]
    assert len(completions(network, {"b": 0})) == 8


@given(problems(max_completions=2**7), st.data())
@few
def test_relabeling_states_and_reordering_parents_changes_nothing(problem, draw):
    network, data, prior = problem
    node = draw.draw(st.sampled_from(sorted(network.cards)))
    order = draw.draw(st.permutations(range(network.cards[node])))
    reversed_parents = {child: parents[::-1] for child, parents in network.parents.items()}
    other = Network(network.cards, reversed_parents)

    def renamed(tables):
        changed = {}
        for child, table in tables.items():
            family = (*network.parents[child], child)
            table = np.take(table, order, family.index(node)) if node in family else table
            changed[child] = table.transpose([*range(table.ndim - 1)[::-1], table.ndim - 1])
        return changed

    cells = data.cells.copy()
    if node in data.columns:
        column = cells[:, data.columns.index(node)]
        column[column != MISSING] = np.argsort(order)[column[column != MISSING]]
    relabeled = Data(data.columns, cells, data.weights)
    counts = some_counts(network, data)
    before, after = (
        em(vb, m, d, p, n, 2)[-1].after_m
        for m, d, p, n in ((network, data, prior, counts), (other, relabeled, renamed(prior), renamed(counts)))
    )
    assert after == approx(before, abs=1e-9)
    assert exact_log_evidence(other, relabeled, renamed(prior)) == approx(
        exact_log_evidence(network, data, prior), abs=1e-10
    )


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_equal_responsibilities_stay_equal(form):
    start = from_responsibilities(LC2, facts.TWENTY_ROWS, np.full((8, 2), 0.5))
    (step,) = em(form, LC2, facts.TWENTY_ROWS, UNIFORM, expected_counts(LC2, start), 1)
    assert [p for _, choices in step.q for _, p in choices] == approx([0.5] * 16)


# --- Dirichlet distributions ------------------------------------------------------------------------------------------


def test_one_row_of_any_latent_model_under_symmetric_priors_is_one_of_all_cells():
    for parents in (("", "", ""), ("1", "12", "2"), ("12", "12", "12")):
        network = facts.bipartite(parents, (2, 3, 5))
        data = Data(("y0", "y1", "y2"), np.array([[1, 2, 4]]))
        for concentration in (1, Fraction(1, 3)):
            assert exact_evidence(network, data, uniform_prior(network, concentration)) == Fraction(1, 30)


@given(problems(max_hidden=0, missing=False))
@few
def test_evidence_of_complete_data_is_the_product_of_its_predictions(problem):
    """ln p(y) = Σ ln p(y_i | y_1 ... y_{i−1}), each the plug-in at the posterior means, in any order."""
    network, data, prior = problem
    rows = np.repeat(data.cells, data.weights, axis=0)[::-1]
    seen, total = network.full(0.0), 0.0
    for row, _ in Data(data.columns, rows).rows():
        total += math.log(predictive_probability(network, mean_tables(prior, seen), row))
        seen = each(np.add, seen, expected_counts(network, [(1, [(row, 1)])]))
    assert total == approx(exact_log_evidence(network, data, prior), abs=1e-10)


def test_bdeu_scores_equivalent_structures_equally():
    cards = {"y0": 2, "y1": 2}
    forward, backward = Network(cards, {"y0": (), "y1": ("y0",)}), Network(cards, {"y0": ("y1",), "y1": ()})
    score = [exact_log_evidence(m, facts.FORTY_ROWS, bdeu_prior(m, 3)) for m in (forward, backward)]
    assert score[0] == approx(score[1], abs=1e-12)
    uniform = [exact_evidence(m, facts.FORTY_ROWS, uniform_prior(m)) for m in (forward, backward)]
    assert uniform[0] != uniform[1]


@given(networks().flatmap(lambda pair: st.tuples(st.just(pair[0]), any_counts(pair[0]))))
@few
def test_map_of_probabilities_is_map_of_softmax_at_one_less(case):
    network, counts = case
    prior = uniform_prior(network, 1.75)
    log_theta, penalty = map_probability(each(lambda a: a + 1, prior), counts)
    other, _ = map_softmax(prior, counts)
    for node in network.cards:
        assert log_theta[node] == approx(other[node], abs=1e-12)
    assert penalty == approx(log_prior(log_theta, each(lambda a: a + 1, prior), "probability"), abs=1e-9)
    assert map_softmax(prior, counts)[1] == approx(log_prior(other, prior, "softmax"), abs=1e-9)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_q_of_theta_is_the_best_for_its_counts(form):
    """No other q(θ) of the same form has more free energy at these counts: the M step maximizes."""
    network = Network({"a": 2, "b": 3}, {"a": (), "b": ("a",)})
    rng = np.random.default_rng(0)
    prior, counts = uniform_prior(network, 1.5), {"a": np.array([3.0, 0.5]), "b": rng.exponential(size=(2, 3))}
    best = free_energy(*form(prior, counts), counts, 0.0)
    for _ in range(50):
        other = each(lambda n: n * np.exp(0.1 * rng.standard_normal(n.shape)), counts)
        assert free_energy(*form(prior, other), counts, 0.0) <= best


def test_map_of_probabilities_has_no_mode_below_one():
    network = Network({"a": 2}, {"a": ()})
    with pytest.raises(ValueError, match="no mode"):
        map_probability(uniform_prior(network, 0.5), {"a": np.array([0.0, 3.0])})


def test_a_table_row_without_counts_is_uniform_in_ml():
    network = Network({"a": 2, "b": 3}, {"a": (), "b": ("a",)})
    log_theta, _ = ml(None, {"a": np.array([4.0, 0.0]), "b": np.array([[1.0, 3.0, 0.0], [0.0, 0.0, 0.0]])})
    assert np.exp(log_theta["a"]) == approx([1, 0])
    assert np.exp(log_theta["b"]) == approx(np.array([[0.25, 0.75, 0], [1 / 3, 1 / 3, 1 / 3]]))
    data = Data(("a", "b"), np.array([[0, 2]]))
    assert log_likelihood(network, log_theta, data) == -math.inf
    with pytest.raises(ValueError, match="impossible"):
        row_posterior(network, log_theta, {"a": 0, "b": 2})


def test_log_bd_against_fractions_and_digits():
    prior, counts = {"a": np.array([[2.0, 3.0, 0.5]])}, {"a": np.array([[4.0, 0.0, 2.0]])}
    rising = Fraction(2 * 3 * 4 * 5) * Fraction(1, 2) * Fraction(3, 2)
    exact = rising / math.prod(Fraction(11, 2) + i for i in range(6))
    assert log_bd(counts, prior) == approx(math.log(exact), abs=1e-13)
    with mpmath.workdps(50):
        assert abs(precise_log_bd(counts, prior) - mpmath.log(mpmath.mpf(exact.numerator) / exact.denominator)) < 1e-45


def test_kl_and_expected_log_against_quadrature():
    a, b = np.array([2.5, 0.7]), np.array([1.0, 3.0])

    def expect(function):
        norm = mpmath.beta(*a)
        return mpmath.quad(lambda t: t ** (a[0] - 1) * (1 - t) ** (a[1] - 1) / norm * function(t), [0, 0.5, 1])

    def log_ratio(t):
        return (
            (a[0] - b[0]) * mpmath.log(t)
            + (a[1] - b[1]) * mpmath.log(1 - t)
            + mpmath.log(mpmath.beta(*b) / mpmath.beta(*a))
        )

    assert kl(a, b) == approx(float(expect(log_ratio)), abs=1e-8)
    assert expected_log(a)[0] == approx(float(expect(mpmath.log)), abs=1e-8)
    assert np.exp(expected_log(a)).sum() < 1
    assert kl(a, a) == 0


@given(problems(max_completions=2**6))
@few
def test_candidate_identity(problem):
    """p(y) = p(y | θ) p(θ) / p(θ | y) at every θ, with p(θ | y) = Σ_x p(x | y) Dir(θ; λ + N(x, y))."""
    network, data, prior = problem
    log_theta = logs(random_tables(np.random.default_rng(3), network, 3.0))
    evidence = exact_log_evidence(network, data, prior)
    density = 0.0
    for counts, _ in joint_completions(network, every_completion(network, data)):
        weight = log_bd(counts, prior) - evidence
        density += math.exp(weight + log_prior(log_theta, posterior(prior, counts), "softmax"))
    joint = log_likelihood(network, log_theta, data) + log_prior(log_theta, prior, "softmax")
    assert joint - math.log(density) == approx(evidence, abs=1e-8)


# --- prediction -------------------------------------------------------------------------------------------------------


@given(networks().flatmap(lambda pair: st.tuples(st.just(pair), any_counts(pair[0]))))
@few
def test_predictions_sum_to_one_and_the_vb_point_to_less(case):
    (network, columns), counts = case
    prior = uniform_prior(network, 0.5)
    rows = [dict(zip(columns, s)) for s in itertools.product(*(range(network.cards[node]) for node in columns))]
    tables, (log_tables, _) = mean_tables(prior, counts), vb(prior, counts)
    assert sum(predictive_probability(network, tables, row) for row in rows) == approx(1)
    point = [math.exp(row_log_normalizer(network, log_tables, row)) for row in rows]
    assert all(p <= predictive_probability(network, tables, row) + 1e-12 for p, row in zip(point, rows))
    assert sum(point) <= 1 + 1e-12


@given(networks().flatmap(lambda pair: st.tuples(st.just(pair), probabilities(pair[0]))), st.data())
@few
def test_mode_and_marginals(case, draw):
    (network, columns), tables = case
    choices = {node: st.sampled_from([*range(network.cards[node]), None]) for node in columns}
    row = {node: state for node, state in draw.draw(st.fixed_dictionaries(choices)).items() if state is not None}
    completion, probability = joint_mode(network, tables, row)
    evidence = predictive_probability(network, tables, row)
    assert probability == approx(predictive_probability(network, tables, completion) / evidence)
    assert completion.items() >= row.items()
    assert probability == max(p for _, p in row_posterior(network, logs(tables), row, prune=False))
    for node, distribution in marginals(network, tables, row).items():
        assert distribution.sum() == approx(1)
        if node not in row:
            ratios = [
                predictive_probability(network, tables, {**row, node: k}) / evidence for k in range(len(distribution))
            ]
            assert distribution == approx(ratios)


def test_samples_have_the_probabilities_of_the_network():
    network = Network({"y": 2, "h": 3, "z": 2}, {"y": ("h",), "h": (), "z": ("y", "h")})
    rng = np.random.default_rng(0)
    tables = random_tables(rng, network)
    rows = sample(rng, network, tables, 4000)
    for completion in completions(network, {}):
        p = predictive_probability(network, tables, completion)
        share = np.mean([row == completion for row in rows])
        assert share == approx(p, abs=4.5 * math.sqrt(p * (1 - p) / 4000))


def test_random_problems_are_of_every_kind():
    """Hidden roots, hidden inner nodes, linked hidden nodes, childless and isolated ones; missing cells; weights."""
    rng = np.random.default_rng(0)
    kinds = set()
    for _ in range(60):
        network, data, _ = random_problem(rng, max_completions=2**8)
        assert n_completions(network, data) <= 2**8
        hidden = set(network.cards) - set(data.columns)
        children = {node: {c for c, parents in network.parents.items() if node in parents} for node in network.cards}
        for node in hidden:
            kinds.add(("hidden root" if not network.parents[node] else "hidden child", bool(children[node])))
            kinds.update("linked" for _ in children[node] & hidden)
        kinds.update(["missing"] * bool(np.any(data.cells == MISSING)), ["weights"] * (data.weights is not None))
    hidden_kinds = set(itertools.product(["hidden root", "hidden child"], [True, False]))
    assert kinds >= hidden_kinds | {"linked", "missing", "weights"}
    network, columns = random_network(rng, n_nodes=5, max_card=4, n_hidden=2, max_parents=3)
    assert len(network.cards) == 5
    assert len(columns) == 3


def test_counts_distribution_is_a_distribution():
    q = from_responsibilities(LC2, facts.TWENTY_ROWS, random_start(facts.TWENTY_ROWS, 2))
    distribution = counts_distribution(LC2, q)
    assert len(distribution) <= math.prod(weight + 1 for weight in facts.TWENTY_ROWS.weights)
    assert math.fsum(distribution.values()) == approx(1, abs=1e-12)


def test_draper_adds_the_constant_of_laplace_to_bic():
    log_theta = logs(random_tables(np.random.default_rng(0), LC2))
    difference = draper(LC2, log_theta, facts.TWENTY_ROWS) - bic(LC2, log_theta, facts.TWENTY_ROWS)
    assert difference == approx(7 / 2 * math.log(2 * math.pi))


def test_laplace_is_exact_enough_for_complete_data_and_refuses_a_saddle():
    """One binary node, Dir(a, b): the integral is a Beta function, Laplace its Stirling formula; LC(2) has a saddle."""
    network, data = Network({"y0": 2}, {"y0": ()}), facts.cells({"0": 400, "1": 600})
    prior = {"y0": np.array([2.0, 0.3])}
    log_theta, _ = map_softmax(prior, expected_counts(network, every_completion(network, data)))
    assert laplace(network, log_theta, data, prior) == approx(exact_log_evidence(network, data, prior), abs=1e-3)
    saddle = each(lambda p: np.log(p / p.sum(-1, keepdims=True)), LC2.full(1.0))
    assert math.isnan(laplace(LC2, saddle, facts.TWENTY_ROWS, UNIFORM))
