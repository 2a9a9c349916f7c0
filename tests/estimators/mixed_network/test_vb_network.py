"""`VBNetwork` beside the estimators that it contains, and what it says of rows."""

import pickle
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import skvbem
from skvbem import VBDiscreteDAG, VBMixture, VBNetwork
from skvbem.datasets import load_carcinoma, load_faithful
from skvbem.emissions import Categorical, FactorGaussian, Gaussian, Ordinal, Poisson
from skvbem.errors import StructureError
from skvbem.families import Gamma
from skvbem.models.mixed_network.model import MixedNetwork

approx = pytest.approx

EDGES = [("kind", "group"), ("kind", "size"), ("kind", "color"), ("group", "weight"), ("group", "visits")]
EMISSION = {"gaussian": ["size", "weight"], "poisson": ["visits"], "categorical": ["color"]}


def rows_of_two_latents(n=240, seed=0):
    """Two hidden nodes above two measurements, a count and a category; a tenth of the cells missing."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, n)
    group = np.where(rng.random(n) < 0.8, kind, 1 - kind)
    color = np.where(rng.random(n) < 0.85, np.array(["red", "blue"])[kind], "green")
    columns = {
        "size": rng.normal(5.0 * kind),
        "weight": rng.normal(4.0 * group),
        "visits": rng.poisson(2 + 8 * group).astype(float),
        "color": color,
    }
    X = pd.DataFrame(columns)
    return X.mask(rng.random(X.shape) < 0.1), kind, group


@pytest.fixture(scope="module")
def data():
    return rows_of_two_latents()


@pytest.fixture(scope="module")
def network(data):
    options = {"latents": ["kind", "group"], "emission": EMISSION, "n_init": 4, "init": "random", "random_state": 0}
    return VBNetwork(EDGES, **options).fit(data[0])


def test_one_latent_root_is_a_mixture_of_independent_groups():
    """Bounds on measurements that are shipped, one node for each column, and one for both."""
    X, options = load_faithful().data, {"n_init": 3, "init": "random", "random_state": 0, "tol": 1e-9}
    for groups in ([("both", "gaussian", [0, 1])], [("x0", "gaussian", [0]), ("x1", "gaussian", [1])]):
        mixture = VBMixture(2, emission=groups, weight_concentration_prior=1.0, **options).fit(X)
        network = VBNetwork(latents=2, emission=groups, **options).fit(X)
        assert network.lower_bound_ == approx(mixture.lower_bound_, abs=1e-6)
        theirs = network.predict_proba(X)
        assert _matching(mixture.predict_proba(X), theirs) == approx(theirs[:, 0], abs=1e-4)
        assert network.score_samples(X) == approx(mixture.score_samples(X), abs=1e-5)


def _matching(ours, theirs):
    """The column of ours that is most like the first of theirs."""
    return min(ours.T, key=lambda column: np.abs(column - theirs[:, 0]).sum())


def test_categories_alone_are_a_discrete_network():
    X = load_carcinoma().data
    options = {"latents": 2, "n_init": 3, "init": "random", "random_state": 0, "tol": 1e-9}
    network, discrete = VBNetwork(emission="categorical", **options).fit(X), VBDiscreteDAG(**options).fit(X)
    assert network.lower_bound_ == approx(discrete.lower_bound_, abs=1e-7)
    assert network.score_samples(X) == approx(discrete.score_samples(X), abs=1e-5)
    assert network.n_free_parameters_ == discrete.n_free_parameters_


def test_complete_rows_have_a_closed_form():
    """The bound is the sum of the evidences of tables and of counts in each joint state of their parents."""
    rng = np.random.default_rng(2)
    sex, drug = rng.integers(0, 2, 40), rng.integers(0, 3, 40)
    visits = rng.poisson(1 + 2 * drug)
    X = pd.DataFrame({"sex": sex.astype(str), "drug": drug.astype(str), "visits": visits.astype(float)})
    emission = [("visits", Poisson(shape_prior=2.0, rate_prior=0.5), ["visits"]), ("c", "categorical", ["sex", "drug"])]
    network = VBNetwork([("sex", "visits"), ("drug", "visits")], emission=emission, random_state=0).fit(X)
    tables = VBDiscreteDAG(structure=[], random_state=0).fit(X[["sex", "drug"]])
    of_counts = 0.0
    for s in range(2):
        for d in range(3):
            part = visits[(sex == s) & (drug == d)]
            prior = Gamma.from_parameters([[2.0]], [[0.5]])
            of_counts += float(prior.log_evidence(np.array([part.sum(), len(part)], dtype=float)))
            of_counts -= sum(np.log(np.arange(1, y + 1)).sum() for y in part)
    assert network.lower_bound_ == approx(tables.lower_bound_ + of_counts, rel=1e-9)


def test_hidden_nodes_are_found(network, data):
    X, kind, group = data
    for posterior, truth in zip(network.predict_proba(X), (kind, group)):
        found = posterior.argmax(axis=1)
        assert max((found == truth).mean(), (found != truth).mean()) > 0.93
    assert [*network.latent_names_] == ["kind", "group"]
    assert network.transform(X).shape == (len(X), 4)
    assert network.get_feature_names_out().tolist() == ["kind_0", "kind_1", "group_0", "group_1"]


def test_the_evidence_is_above_the_bound(network, data):
    exact = network.log_evidence(data[0], kind="ais", n_chains=32, n_steps=32, random_state=0)
    assert network.lower_bound_ < exact.value + 3 * exact.standard_error
    assert exact.value < network.lower_bound_ + 5


def test_weights_are_repeats(network, data):
    X = data[0].iloc[:60]
    times = np.random.default_rng(1).integers(0, 3, len(X))
    times[0] = 1
    options = {"n_init": 2, "tol": 1e-8}
    repeated = clone(network).set_params(**options).fit(X.loc[np.repeat(X.index, times)])
    weighted = clone(network).set_params(**options).fit(X, sample_weight=times)
    assert weighted.lower_bound_ == approx(repeated.lower_bound_, abs=1e-6)
    assert weighted.n_samples_ == times.sum()


def test_missing_cells_are_filled(network, data):
    X, kind, _ = data
    filled = network.impute(X)
    assert not filled.isna().any().any()
    pd.testing.assert_frame_equal(filled.where(X.notna()), X, check_dtype=False)
    missing = X["size"].isna().to_numpy()
    assert np.abs(filled["size"].to_numpy()[missing] - 5.0 * kind[missing]).mean() < 1.5


def test_rows_are_read_through_once_for_all_nodes(network, data, monkeypatch):
    n_compiled, compile = [], MixedNetwork.compile
    monkeypatch.setattr(MixedNetwork, "compile", lambda *args, **more: n_compiled.append(1) or compile(*args, **more))
    for question in (network.impute, network.predict_proba, network.decode):
        n_compiled.clear()
        question(data[0])
        assert len(n_compiled) == 1


def test_probabilities_of_missing_categories(network, data):
    filled, proba = network.impute(data[0], return_proba=True)
    missing, levels = data[0]["color"].isna().to_numpy(), network.categories_["color"]
    assert [*proba] == ["color"]
    assert np.array_equal(levels[proba["color"].argmax(axis=1)], filled["color"].to_numpy())
    assert proba["color"].sum(axis=1) == approx(1.0)
    assert (proba["color"][~missing].max(axis=1) == 1).all()
    assert (proba["color"][missing].max(axis=1) < 1).any()


def test_queries_are_posteriors_of_rows(network, data):
    """Evidence on measurements, counts and categories: a row of these; on latents: a part of the joint."""
    X = data[0].iloc[:20]
    joint_modes = network.decode(X)
    for k, (of_kind, of_group) in enumerate(zip(*network.predict_proba(X))):
        given = X.iloc[k].dropna().to_dict()
        joint = network.query(["kind", "group"], given)
        assert joint.values.sum(axis=1) == approx(of_kind, rel=1e-9)
        assert joint.values.sum(axis=0) == approx(of_group, rel=1e-9)
        assert joint["kind" : joint_modes[k, 0], "group" : joint_modes[k, 1]] == joint.values.max()
        of_group_one = network.query("kind", given | {"group": 1})
        assert of_group_one.values == approx(joint["group":1] / joint["group":1].sum(), rel=1e-9)
    prior, posterior = (network.query("color", given) for given in (None, {"size": float(data[0]["size"].max())}))
    assert prior.values.sum() == approx(1.0)
    assert np.abs(prior.values - posterior.values).max() > 0.01


@pytest.mark.parametrize(
    ("targets", "evidence", "message"),
    [
        ("visits", None, "'visits' has no table that 'query' could read"),
        ("kind", {"size": "large"}, "Column 'size' holds numbers: as evidence it takes a finite one. Got 'large'"),
        ("kind", {"visits": 1.5}, "Column 'visits' of X holds 1.5, but for 'poisson' counts are whole numbers"),
        ("kind", {"color": "pink"}, "'pink' is not a state of 'color'"),
        ("kind", {"depth": 3.0}, "'depth' is not a node of this network"),
        ("kind", {"kind": 1}, "each named once and not also in the evidence"),
    ],
)
def test_queries_that_make_no_sense(network, targets, evidence, message):
    with pytest.raises(ValueError, match=message):
        network.query(targets, evidence)


def test_samples_have_the_columns_of_the_data(network, data):
    drawn, states = network.sample(400, random_state=3)
    assert states.shape == (400, 2)
    again = pd.DataFrame(drawn, columns=data[0].columns)
    for name in ("size", "weight", "visits"):
        assert again[name].astype(float).mean() == approx(data[0][name].mean(), abs=0.8)
    assert set(again["color"]) == {"red", "blue", "green"}


def test_a_fit_can_be_kept_and_gone_on_with(network, data):
    again = pickle.loads(pickle.dumps(network))
    assert np.array_equal(again.score_samples(data[0]), network.score_samples(data[0]))
    more = clone(network).set_params(warm_start=True).fit(data[0])
    assert more.fit(data[0]).lower_bound_ == approx(network.lower_bound_, abs=1e-4)
    batches = clone(network).partial_fit(data[0].iloc[:120]).partial_fit(data[0].iloc[120:])
    assert batches.n_samples_ == len(data[0])


def test_batches_of_a_network_of_tables_are_those_of_a_discrete_one():
    table = pd.DataFrame({"a": list("xy") * 100, "b": list("pqrs") * 50})
    bounds = [
        kind(latents=2, random_state=0, tol=1e-8).partial_fit(table[:100]).partial_fit(table[100:]).batch_lower_bound_
        for kind in (VBNetwork, VBDiscreteDAG)
    ]
    assert bounds[0] == approx(bounds[1], abs=1e-3)


def test_reports_tell_of_tables_and_emissions(network, data):
    text = str(network.summary())
    for words in ("group | kind", "size | kind", "visits | group", "6 nodes, 5 edges", "visits mean", "size s.d."):
        assert words in text
    few = data[0].iloc[:30]
    draws = clone(network).set_params(n_init=1).fit(few).sample_posterior(few, 20, n_chains=2, random_state=0)
    assert draws.parameters["tables"]["group"].shape == (20, 2, 2)
    assert draws.parameters["visits"]["rates"].shape == (20, 2, 1)


@pytest.mark.parametrize(
    ("structure", "options", "message"),
    [
        ([("size", "color")], {}, "Node 'size' holds numbers, and is a parent of 'color'"),
        ([("kind", "size")], {}, "neither a column of X nor a declared latent"),
    ],
)
def test_networks_that_are_none_are_refused(data, structure, options, message):
    X = data[0].drop(columns="visits") if not options else data[0][["size", "weight"]]
    with pytest.raises(StructureError, match=message):
        VBNetwork(structure, **options).fit(X)


def test_groups_that_a_list_names_are_one_node(data):
    emission = [("both", Gaussian(), ["size", "weight"]), ("n", "poisson", ["visits"]), ("c", "categorical", ["color"])]
    network = VBNetwork(latents=2, emission=emission, n_init=2, init="random", random_state=0).fit(data[0])
    assert network.groups_ == {"both": ["size", "weight"], "n": ["visits"]}
    assert network.structure_.nodes == ("h0", "both", "n", "color")
    assert network.parameters_["both"]["covariances"].shape == (2, 2, 2)


def test_factors_have_a_number(data):
    """Of factor analyzers at a node; the number is not searched for."""
    X = data[0][["size", "weight", "visits"]]
    with pytest.raises(ValueError, match="n_factors='auto' of node 'all' is a search"):
        VBNetwork(latents=2, emission=[("all", FactorGaussian(n_factors="auto"), X.columns.tolist())]).fit(X)
    emission = [("all", FactorGaussian(n_factors=1), X.columns.tolist())]
    options = {"n_init": 1, "init": "random", "random_state": 0, "tol": 0.1}
    network = VBNetwork(latents=2, emission=emission, **options).fit(X)
    assert np.isfinite(network.score_samples(X)).all()
    assert np.all(np.diff(network.lower_bounds_) > -1e-6)


def test_tables_have_their_prior_from_the_network(data):
    """An emission that says another one is not passed over."""
    emission = [("colors", Categorical(2.0), ["color"]), ("sizes", Gaussian("diag"), ["size"])]
    with pytest.raises(
        ValueError, match=r"gives columns \('color',\) a prior of their own.* as in prior=\{'color': 2.0\}"
    ):
        VBNetwork(latents=2, emission=emission).fit(data[0][["color", "size"]])


def test_second_derivatives_serve_scores_and_intervals(network, data):
    """Laplace above the bound, as many dimensions as parameters, and intervals of all of them."""
    laplace = network.log_evidence(data[0], kind="laplace")
    assert network.lower_bound_ < laplace.value < network.lower_bound_ + 15
    plain, identifiable = (network.log_evidence(data[0], kind="bic", dimension=d) for d in ("free", "identifiable"))
    assert identifiable.value == approx(plain.value, abs=1e-9)
    intervals = network.credible_intervals(data[0], method="linear_response")
    for group, parameters in network.parameters_.items():
        for name, values in parameters.items():
            low, high = intervals[group][name]
            assert np.all((low <= values) & (values <= high)), (group, name)


# --- answers in an order ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def answers():
    """A hidden and a known group of people, two questions of five answers and one of two, with gaps."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 120)
    numbers = rng.normal(1.5 * kind[:, None], 1.0, (120, 3))
    X = pd.DataFrame(np.digitize(numbers, [-0.5, 0.5, 1.5, 2.0]) + 1.0, columns=["a", "b", "c"])
    X["c"] = np.where(numbers[:, 2] > 0.5, "yes", "no")
    return X.mask(rng.random(X.shape) < 0.1).assign(kind=np.where(kind, "new", "old"))


def test_a_latent_above_ordered_answers_is_a_mixture_of_them(answers):
    """The bound with the price of edges, one node for each question and one for all, and what is said of rows."""
    X, names = answers[["a", "b", "c"]], ["a", "b", "c"]
    options = {"n_init": 2, "init": "random", "random_state": 0, "tol": 1e-15, "max_iter": 4000}
    for groups in ([(name, Ordinal(), [name]) for name in names], [("all", Ordinal(), names)]):
        mixture = VBMixture(2, emission=groups, weight_concentration_prior=1.0, **options).fit(X)
        network = VBNetwork(latents=2, emission=groups, **options).fit(X)
        assert network.lower_bound_ == approx(mixture.lower_bound_, abs=1e-9)
        theirs = network.predict_proba(X)
        assert _matching(mixture.predict_proba(X), theirs) == approx(theirs[:, 0], abs=1e-6)
        vars(network)["_fitted_"] = replace(network.fitted, statistics=mixture.fitted.statistics)  # the same q(theta)
        assert network.predict_proba(X) == approx(mixture.predict_proba(X), abs=1e-9)
        assert network.score_samples(X) == approx(mixture.score_samples(X), abs=1e-9)
        for kind in ("bic", "laplace"):
            ours, of_mixture = (each.log_evidence(X, kind=kind).value for each in (network, mixture))
            assert ours == approx(of_mixture, abs=1e-4)  # each at a fit of its own
        assert network.n_free_parameters_ == mixture.n_free_parameters_


@pytest.mark.parametrize("method", ["map", "ml"])
def test_answers_that_are_scored_have_no_price(answers, method):
    X = answers[["a", "b", "c"]]
    options = {"method": method, "n_init": 1, "random_state": 0}
    network = VBNetwork(latents=2, emission={"ordinal": ["a", "b", "c"]}, **options).fit(X)
    every = pd.DataFrame(list(product(range(1, 6), range(1, 6), ["no", "yes"])), columns=["a", "b", "c"])
    assert np.exp(network.score_samples(every)).sum() == approx(1.0, abs=1e-9)


def test_edges_are_those_of_all_states_of_parents(answers):
    """Below an observed node the bound is that of rows whose components are known, beside the evidence of the node."""
    X, options = answers[["a", "b"]], {"n_init": 1, "random_state": 0, "tol": 1e-13}
    groups = [(name, Ordinal(), [name]) for name in X]
    network = VBNetwork([("kind", "a"), ("kind", "b")], emission=[*groups, ("k", "categorical", ["kind"])], **options)
    network.fit(answers[["a", "b", "kind"]])
    known = VBMixture(2, emission=groups, weight_concentration_prior=1.0, **options).fit(X, labels=answers["kind"])
    assert network.lower_bound_ == approx(known.lower_bound_, abs=1e-9)
    edges = network.parameters_["a"]["edges"]
    assert edges.shape == (2, 1, 4)
    assert np.array_equal(edges[0], edges[1])
    whole, other = known.parameters_["a"]["probabilities"], network.parameters_["a"]["probabilities"]
    order = [known.component_names_.tolist().index(name) for name in network.categories_["kind"]]
    assert other == approx(whole[order], abs=1e-6)


def test_ordered_answers_are_filled_drawn_set_and_taken_as_evidence(answers, tmp_path):
    emission = {"ordinal": ["a", "b", "c"], "categorical": ["kind"]}
    model = VBNetwork(latents=2, emission=emission, n_init=2, random_state=0)
    network = model.fit(answers)
    filled, drawn = network.impute(answers), network.sample(3000, random_state=0)[0]
    assert set(filled["a"]) <= {1, 2, 3, 4, 5}
    assert set(filled["c"]) == {"no", "yes"}
    assert filled["a"].isna().sum() == 0
    assert (filled["a"] == answers["a"])[answers["a"].notna()].all()
    probabilities = network.tables_[network.latent_names_[0]] @ network.parameters_["c"]["probabilities"][:, 0]
    assert (drawn["c"] == "yes").mean() == approx(probabilities[1], abs=0.03)
    (latent,) = network.latent_names_
    row = pd.DataFrame({"a": [5.0], "b": [np.nan], "c": ["yes"], "kind": [None]})
    assert network.query(latent, {"a": 5, "c": "yes"}).values == approx(network.predict_proba(row)[0])
    for evidence, text in (({"a": 9}, "9 is not a state of 'a'"), ({"c": "perhaps"}, "not a state of 'c'")):
        with pytest.raises(ValueError, match=text):
            network.query(latent, evidence)
    with pytest.raises(ValueError, match="'a' has no table that 'query' could read"):
        network.query("a")
    skvbem.save(network, tmp_path / "network")
    assert np.array_equal(skvbem.load(tmp_path / "network").score_samples(answers), network.score_samples(answers))
    was_set = pd.DataFrame({name: np.arange(120) % 4 == 0 if name == "b" else False for name in answers})
    whole = answers.assign(b=answers["b"].fillna(1.0))
    bound = clone(model).fit(whole, interventions=was_set).lower_bound_
    assert clone(model).fit(whole.mask(was_set)).lower_bound_ == approx(bound, abs=1e-6)


def test_ordered_answers_have_no_children(answers):
    X = answers.assign(size=np.arange(120.0))
    emission = {"ordinal": ["a", "b", "c"], "gaussian": ["size"], "categorical": ["kind"]}
    for child in ("b", "kind", "size", "h"):
        latents = {"h": 2} if child == "h" else None
        with pytest.raises(StructureError, match=f"Node 'a' is 'ordinal', and a parent of '{child}'.*'categorical'"):
            VBNetwork([("a", child)], latents=latents, emission=emission).fit(X)
    with pytest.raises(StructureError, match=r"'size' holds numbers, and is a parent of 'a'.*is 'ordinal'"):
        VBNetwork([("size", "a")], emission=emission).fit(X)
    turned = emission | {"ordinal": ["b", "c"], "categorical": ["a", "kind"]}
    VBNetwork([("a", "b")], emission=turned, n_init=1, random_state=0).fit(X)
