"""Mixed networks beside models that they contain: discrete networks, and mixtures of independent groups of columns."""

import numpy as np
import pytest
from bridge import FORMS, FastNetwork
from laws.mixed_networks import MixedNetworkCase
from reference.random_networks import random_problem

from skvbem.emissions import EMISSIONS, Gaussian, Regression
from skvbem.emissions.categorical import CategoricalEmission
from skvbem.emissions.independent import Independent
from skvbem.emissions.moments import weighted_moments
from skvbem.graphs.dag import DAG
from skvbem.models.mixed_network.beliefs import latent_entropy
from skvbem.models.mixed_network.data import MixedRows
from skvbem.models.mixed_network.model import MixedNetwork, MixedNetworkAscent
from skvbem.models.mixed_network.queries import Predictive
from skvbem.models.mixture.model import Mixture, MixtureAscent
from skvbem.models.mixture.weights import FiniteWeights
from skvbem.models.network import assembly
from skvbem.optima.network import random_starts
from skvbem.vbem.driver import run

approx = pytest.approx


def with_emissions(rng, network, data, prior):
    """A discrete network of the reference, some of whose observed leaves have a categorical emission for a table.

    Returns the network, the same with emissions, rows of the latter, and where its statistics stand in the former's.
    """
    fast = FastNetwork(network, prior)
    dag, layout, tables = fast.dag, fast.model.layout, fast.model.tables(fast.model.prior.concentration)
    parents_of_any = {p for node in dag.nodes for p in dag.parents(node)}
    leaves = [node for node in data.columns if node not in parents_of_any]
    chosen = [node for node in leaves if rng.random() < 0.7]
    if not chosen or len(chosen) == len(dag.nodes):
        return None
    emissions, priors = {}, {}
    for node in chosen:
        emissions[node] = CategoricalEmission((network.cards[node],))
        concentrations = tables[node].reshape(-1, network.cards[node])
        flat = emissions[node].default_prior(len(concentrations))
        priors[node] = flat + (concentrations.ravel() - flat.coordinates)
    mixed = MixedNetwork(
        dag,
        {node: network.cards[node] for node in dag.nodes if node not in chosen},
        {node: tables[node] for node in dag.nodes if node not in chosen},
        emissions,
        priors,
    )
    cells = np.asarray(data.cells)
    columns = [node for node in data.columns if node not in chosen]
    of_column = {node: cells[:, data.columns.index(node)] for node in data.columns}
    rows = MixedRows(
        tuple(columns),
        np.stack([of_column[node] for node in columns], axis=1) if columns else np.zeros((len(cells), 0), dtype=int),
        tuple(emissions[node].prepare(of_column[node][:, None]) for node in chosen),
        tuple(of_column[node] >= 0 for node in chosen),
        np.ones(len(cells)) if data.weights is None else np.asarray(data.weights, dtype=float),
    )
    places = [
        np.arange(layout.table_cells(fast.model.position[node])) + layout.first_cell[fast.model.position[node]]
        for node in mixed.layout.names
    ]
    return fast, mixed, rows, np.concatenate(places)


def test_categorical_emissions_are_tables(any_form, rng, monkeypatch):
    """Steps of every form are those of the discrete network, whatever is hidden, block by block."""
    monkeypatch.setattr(assembly, "_BLOCK_WORK", 64)
    least, n_tried = float(any_form == "map_probability"), 0
    while n_tried < 12:
        network, data, prior = random_problem(rng, max_nodes=7, max_hidden=3, missing_rate=0.3, max_completions=2**9)
        made = with_emissions(rng, network, data, {node: table + least for node, table in prior.items()})
        if made is None:
            continue
        n_tried += 1
        fast, mixed, rows, places = made
        ascent = fast.ascent(data, any_form)
        statistics = fast.random_starts(ascent, rng, 2)
        of_mixed = statistics[places]
        trace = ascent.advance(statistics, 3)
        theirs = MixedNetworkAscent(mixed, mixed.compile(rows), FORMS[any_form]).advance(of_mixed, 3)
        assert theirs == approx(trace, rel=1e-10, abs=1e-9)
        assert of_mixed == approx(statistics[places], rel=1e-8, abs=1e-9)


def columns_of_all_kinds(rng, n):
    """Measurements, counts and categories, with gaps, by name of the emission."""
    values = {
        "measured": (Gaussian("full"), rng.normal(size=(n, 2)) * 3 + rng.integers(0, 2, (n, 1)) * 4),
        "alone": (Gaussian("diag"), rng.normal(size=(n, 1))),
        "counted": (EMISSIONS["poisson"](), rng.poisson(4.0, size=(n, 2)).astype(float)),
    }
    for _, columns in values.values():
        columns[rng.random(columns.shape) < 0.15] = np.nan
    return values


@pytest.mark.parametrize("form", ["vb", "map"])
def test_one_latent_root_is_a_mixture_of_independent_groups(form, rng):
    """The bound, step by step from the same statistics; categories are a table here, an emission there."""
    n, n_classes = 60, 3
    values, codes = columns_of_all_kinds(rng, n), rng.integers(-1, 3, size=(n, 1))
    weight = rng.uniform(0.5, 2.0, n)
    emissions = {name: specification.for_data(columns) for name, (specification, columns) in values.items()}
    priors = {name: emission.default_prior(n_classes) for name, emission in emissions.items()}
    category = CategoricalEmission((3,))
    together = Independent((*emissions.values(), category))
    mixture = Mixture(together, FiniteWeights(np.full(n_classes, 0.7)), together.default_prior(n_classes))
    tables = [emission.prepare(values[name][1]) for name, emission in emissions.items()]
    table = together.prepare([*(columns for _, columns in values.values()), codes])
    observed = [~np.isnan(columns).all(axis=1) for _, columns in values.values()]
    of_mixture = mixture.compile(table, weight, np.any([*observed, codes[:, 0] >= 0], axis=0))
    dag = DAG.naive_bayes("class", ["category", *emissions])
    concentrations = category.default_prior(n_classes).coordinates.reshape(n_classes, 3)
    network = MixedNetwork(
        dag, {"class": n_classes, "category": 3}, {"class": np.full(3, 0.7), "category": concentrations}, emissions,
        priors,
    )  # fmt: skip
    of_network = network.compile(MixedRows(("category",), codes, tuple(tables), tuple(observed), weight))
    start = mixture.statistics_of(rng.dirichlet(np.ones(n_classes), size=n), of_mixture)
    weights, of_emission = mixture.prior.split(start)
    *of_groups, of_category = mixture.prior.blocks[1].split(of_emission)
    one, other = start[:, None].copy(), np.concatenate([weights, of_category, *of_groups])[:, None]
    traces = (
        MixtureAscent(mixture, of_mixture, FORMS[form]).advance(one, 30),
        MixedNetworkAscent(network, of_network, FORMS[form]).advance(other, 30),
    )
    assert traces[1] == approx(traces[0], rel=1e-11, abs=1e-9)


def test_rows_without_measurements_are_pruned(rng):
    """Where all cells of an emission are missing, it says nothing of its parents: these rows cost no bound."""
    instance = MixedNetworkCase("measurements", "full", "diag").dozens(rng, 2)
    for rows in instance.rows.values():
        rows.values[:6] = np.nan
    instance.codes[:6] = (0, 1, 2, -1, -1, -1)
    program = instance.compile().program
    without = [plan.rows.tolist() for plan in program.plans if not plan.factors]
    assert without == [[0, 1, 2]]
    assert not {3, 4, 5} & {row for plan in program.plans for row in plan.rows.tolist()}


def test_entropy_of_rows_with_several_cliques(rng):
    """Cliques less separators: differences of H are those of ln Z less natural parameters times statistics."""
    case = MixedNetworkCase("counts", "poisson", "bernoulli")
    instance = case.dozens(rng, 1)
    while not any(len(plan.tree.cliques) > 1 for plan in instance.compile().program.plans):
        instance = case.dozens(rng, 1)
    data, model = instance.compile(), instance.model
    natural = instance.natural(data, rng, 2)
    expectation = model.expect(natural, data)
    wanted = expectation.log_normalizer - (natural * expectation.statistics).sum(axis=0)
    one, two = (latent_entropy(model, np.ascontiguousarray(lane), data) for lane in natural.T)
    assert one - two == approx(wanted[0] - wanted[1], rel=1e-9)
    assert min(one, two) > 0


def test_threads_share_rows(rng, monkeypatch):
    monkeypatch.setattr("skvbem.models.mixed_network.model._WORTH_THREADS", 0)
    monkeypatch.setattr(assembly, "_BLOCK_WORK", 64)
    instance = MixedNetworkCase("measurements", "full", "diag").many(rng, 0)
    data = instance.compile()
    assert data.program.contraction.n_blocks > 8
    natural = instance.natural(data, rng, 2)
    one, two = (instance.model.expect(natural, data, n_threads) for n_threads in (1, 2))
    assert np.array_equal(one.statistics, two.statistics)
    assert np.array_equal(one.log_normalizer, two.log_normalizer)


# --- starts and questions ---------------------------------------------------------------------------------------------


def groups_of_rows(rng, n=300):
    """Two classes of rows that two measurements, a count and a category tell apart; a network over them."""
    label = rng.integers(0, 2, n)
    measured = rng.normal(size=(n, 2)) + 6 * label[:, None]
    counted = rng.poisson(np.where(label, 20.0, 3.0))[:, None].astype(float)
    codes = np.where(rng.random(n) < 0.9, label, 1 - label)[:, None]
    for values in (measured, counted):
        values[rng.random(values.shape) < 0.1] = np.nan
    emissions = {"measured": Gaussian("full").for_data(measured), "counted": EMISSIONS["poisson"]().for_data(counted)}
    network = MixedNetwork(
        DAG.naive_bayes("class", ["category", *emissions]),
        {"class": 2, "category": 2},
        {"class": np.ones(2), "category": np.ones((2, 2))},
        emissions,
        {name: emission.default_prior(2) for name, emission in emissions.items()},
    )
    tables = (emissions["measured"].prepare(measured), emissions["counted"].prepare(counted))
    observed = (~np.isnan(measured).all(axis=1), ~np.isnan(counted).all(axis=1))
    return network, MixedRows(("category",), codes, tables, observed, np.ones(n)), label, (measured, counted)


@pytest.fixture(scope="module")
def fitted_groups():
    rng = np.random.default_rng(7)
    network, rows, label, values = groups_of_rows(rng)
    data = network.compile(rows)
    ascent = MixedNetworkAscent(network, data, FORMS["vb"])
    result = run(ascent, random_starts(network, data, 4, rng), tol=1e-6, max_iter=500)
    best = result.statistics[:, result.objective.argmax()]
    return network, rows, label, values, result, best


def test_random_starts_find_classes(fitted_groups):
    """Every start ends at the same optimum, where rows are in the class that made them."""
    network, rows, label, _, result, best = fitted_groups
    assert np.ptp(result.objective) < 1e-3
    found = Predictive(network, network.prior + best).posteriors(rows, ["class"]).argmax(axis=1)
    assert max((found == label).mean(), (found != label).mean()) > 0.99


def test_the_first_starts_are_the_same_however_many(rng):
    network, rows, *_ = groups_of_rows(rng, 60)
    data = network.compile(rows)
    few, many = (random_starts(network, data, n, np.random.default_rng(3)) for n in (2, 5))
    assert np.array_equal(few, many[:, :2])


@pytest.mark.parametrize("case", ["counts", "measurements"])
def test_predictive_densities_are_ratios_of_evidences(case, rng):
    """Of a row after rows of which nothing is hidden; with all that may be missing in it, and its posteriors."""
    cases = {"counts": ("poisson", "bernoulli"), "measurements": ("spherical", "diag")}
    for k in range(4):
        instance = MixedNetworkCase(case, *cases[case])._drawn(
            rng, 5, k, gaps=0.3, structure={"c": (), "a": ("c",), "b": ("c",)}
        )
        instance.codes[:4] = rng.integers(0, 3, 4)
        model, known = instance.model, instance.compile(range(4))
        posterior = model.prior + model.expect(model.prior.expected_natural()[:, None], known).statistics[:, 0]
        predictive = Predictive(model, posterior)
        ratio = instance.log_evidence(range(5)) - instance.log_evidence(range(4))
        assert predictive.log_densities(instance.compile([4]).source) == approx([ratio], rel=1e-9)
        joint = []
        for code in range(3):
            instance.codes[4] = code
            joint.append(instance.log_evidence(range(5)))
        instance.codes[4] = -1
        of_class = predictive.posteriors(instance.compile([4]).source, ["c"])[0]
        assert of_class == approx(np.exp(joint - np.logaddexp.reduce(joint)), rel=1e-9)


def told_apart(instance, rng):
    """A posterior whose components are unlike, so that emissions tell states apart, as those of a prior do not."""
    return instance.model.prior + random_starts(instance.model, instance.compile(), 1, rng)[:, 0]


def test_posteriors_of_several_nodes_are_the_joint_ones(rng):
    """The sum over a node is the posterior of the others; what is observed is certain."""
    case = MixedNetworkCase("measurements", "full", "diag")
    for k in range(4):
        instance = case.dozens(rng, k)
        rows = instance.compile().source
        predictive = Predictive(instance.model, None, told_apart(instance, rng).mode())
        nodes = [node for node in ("h", "g", "c") if node in instance.parents]
        joint = predictive.posteriors(rows, nodes).reshape(len(rows), *(3 if node == "c" else 2 for node in nodes))
        assert joint.reshape(len(rows), -1).sum(axis=1) == approx(1.0, rel=1e-12)
        for axis, node in enumerate(nodes):
            others = tuple(1 + other for other in range(len(nodes)) if other != axis)
            assert joint.sum(axis=others) == approx(predictive.posteriors(rows, [node]), rel=1e-9, abs=1e-12)
        seen = instance.codes >= 0
        assert np.array_equal(predictive.posteriors(rows, ["c"])[seen], np.eye(3)[instance.codes[seen]])


def test_joint_modes_are_those_of_joint_posteriors(rng):
    """Of all hidden nodes and missing cells that bear on them, under a posterior and at a point."""
    case, n_apart = MixedNetworkCase("measurements", "full", "diag"), 0
    for k in range(8):
        instance = case.dozens(rng, k)
        model, rows = instance.model, instance.compile().source
        posterior = told_apart(instance, rng)
        predictive = Predictive(model, posterior) if k % 2 else Predictive(model, None, posterior.mode())
        nodes = [node for node in ("h", "g", "c") if node in instance.parents]
        modes = predictive.joint_modes(rows, nodes)
        joint = predictive.posteriors(rows, nodes)
        sizes = [3 if node == "c" else 2 for node in nodes]
        chosen = np.ravel_multi_index([modes[node] for node in nodes], sizes)
        assert joint[np.arange(len(rows)), chosen] == approx(joint.max(axis=1), rel=1e-9)
        one_by_one = [predictive.posteriors(rows, [node]).argmax(axis=1) for node in nodes]
        n_apart += sum(np.any(modes[node] != alone) for node, alone in zip(nodes, one_by_one))
    assert n_apart


def test_one_pass_answers_for_all_groups_of_nodes(rng):
    """As passes of their own do, also of nodes that nothing observed is below."""
    case = MixedNetworkCase("counts", "poisson", "bernoulli")
    for k in range(4):
        instance = case.dozens(rng, k)
        for each in instance.rows.values():
            each.values[::3] = -1 if each.values.dtype.kind == "i" else np.nan
        rows = instance.compile().source
        predictive = Predictive(instance.model, told_apart(instance, rng))
        groups = [["h"], ["c"], ["c", "h"], []]
        for group, posterior in zip(groups, predictive.all_posteriors(rows, groups)):
            assert posterior == approx(predictive.posteriors(rows, group), rel=1e-9, abs=1e-12)
        root = instance.model.layout.table(predictive.tables, instance.model.position["h"])
        of_none = predictive.posteriors(rows.without_cells(), ["h"])  # nothing is observed below
        assert of_none == approx(np.tile(root, (len(rows), 1)), rel=1e-9)


def test_missing_cells_are_filled_from_the_class_of_their_row(fitted_groups):
    network, rows, label, values, _, best = fitted_groups
    predictive = Predictive(network, network.prior + best)
    _, completed = predictive.completed(rows, ["category"])
    for k, (filled, columns) in enumerate(zip(completed, values)):
        missing = np.isnan(columns)
        assert np.array_equal(filled[~missing], columns[~missing])
        of_class = np.broadcast_to(label[:, None], columns.shape)[missing]
        wanted = np.where(of_class, (6.0, 20.0)[k], (0.0, 3.0)[k])
        assert np.abs(filled[missing] - wanted).max() < (4.5, 8.0)[k]


def test_samples_are_like_the_rows(fitted_groups):
    """Means of columns and categories, and how they go together."""
    network, rows, _, values, _, best = fitted_groups
    codes, columns = Predictive(network, network.prior + best).sample(4000, np.random.default_rng(0))
    for drawn, given in zip(columns, values):
        assert drawn.mean(axis=0) == approx(np.nanmean(given, axis=0), abs=0.1 * np.nanstd(given) + 0.2)
    assert codes["category"].mean() == approx(rows.codes.mean(), abs=0.05)
    assert np.corrcoef(codes["category"], columns[0][:, 0])[0, 1] == approx(
        np.corrcoef(rows.codes[:, 0], np.nan_to_num(values[0][:, 0], nan=3.0))[0, 1], abs=0.1
    )


@pytest.mark.parametrize("has_gap", [False, True])
def test_a_regression_of_moments_of_its_columns_is_that_of_their_table(has_gap):
    rng = np.random.default_rng(4)
    values, weight = rng.normal(3.0, [1.0, 2.0, 3.0], (50, 3)), rng.integers(1, 4, 50).astype(float)
    values[7, 2] = np.nan if has_gap else 3.0
    specification = Regression(covariates=["u", "v"])
    moments = [weighted_moments(values[:, [k]], weight) for k in range(3)]
    emission, wanted = specification.of_moments(moments), specification.for_data(values, weight)
    for name in ("origin", "unit", "given_origin", "given_unit", "given_mean", "total_weight"):
        np.testing.assert_allclose(getattr(emission, name), getattr(wanted, name), rtol=1e-14, atol=1e-14)
    assert [bool(each.has_gaps.any()) for each in moments] == [False, False, has_gap]
    if not has_gap:
        survey, of_rows = emission.survey_of_complete(moments[0]), emission.survey(values)
        assert (survey.complete, of_rows.complete, len(survey)) == (True, True, 0)
        np.testing.assert_array_equal(survey.reach, of_rows.reach)
