"""Questions to networks with known tables, against the joint distribution by definition and another program."""

import itertools
import warnings
from pathlib import Path

import numpy as np
import pytest

from skvbem import DAG, Network, VBDiscreteDAG, VBNetwork, read_bif
from skvbem.errors import PosteriorWarning

pd = pytest.importorskip("pandas")

FILES = Path(__file__).parents[1] / "data" / "third_party" / "cc-by-sa"


def random_network(seed, n_nodes=5, zeros=False):
    """A graph of random edges over nodes of two or three states, some of them impossible if asked for."""
    rng = np.random.default_rng(seed)
    names = [f"n{k}" for k in rng.permutation(n_nodes)]
    edges = [pair for pair in itertools.combinations(names, 2) if rng.random() < 0.5]
    dag = DAG.from_edges(edges, nodes=names)
    states = {node: tuple(range(rng.integers(2, 4))) for node in names}
    tables = {}
    for node in names:
        table = rng.dirichlet(np.ones(len(states[node])), size=[len(states[parent]) for parent in dag.parents(node)])
        if zeros:
            table[..., 0] = np.where(rng.random(table.shape[:-1]) < 0.3, 0, table[..., 0])
            table /= table.sum(-1, keepdims=True)
        tables[node] = table
    return Network(dag, states, tables)


def joint_by_definition(network, do=()):
    """The product of all tables, one axis for each node; nodes that are set have only the state they are set to."""
    nodes, do = network.dag.nodes, dict(do)
    joint = np.ones([len(network.states[node]) for node in nodes])
    for states in itertools.product(*(network.states[node] for node in nodes)):
        of = dict(zip(nodes, states))
        for node in nodes:
            row = tuple(of[member] for member in network.dag.family(node))
            joint[states] *= of[node] == do[node] if node in do else network.tables[node][row]
    return joint


def answer_by_definition(network, targets, evidence=(), likelihoods=(), do=()):
    nodes, joint = network.dag.nodes, joint_by_definition(network, do)
    for node, state in dict(evidence).items():
        chosen = np.zeros(len(network.states[node]))
        chosen[state] = 1
        joint = np.moveaxis(np.moveaxis(joint, nodes.index(node), -1) * chosen, -1, nodes.index(node))
    for node, values in dict(likelihoods).items():
        joint = np.moveaxis(np.moveaxis(joint, nodes.index(node), -1) * values, -1, nodes.index(node))
    kept = [nodes.index(node) for node in targets]
    answer = joint.sum(axis=tuple(k for k in range(len(nodes)) if k not in kept))
    answer = answer.transpose(np.argsort(np.argsort(kept))) if len(kept) > 1 else answer
    return answer / answer.sum()


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_a_query_is_a_sum_over_the_joint_distribution(seed, zeros):
    network = random_network(seed, zeros=zeros)
    rng = np.random.default_rng([seed, 1])
    first, second, seen, told, done = rng.permutation(network.dag.nodes)
    states = {node: len(network.states[node]) for node in network.dag.nodes}
    likelihood = rng.random(states[told])
    do = {done: int(rng.integers(states[done]))}
    for asked in ({}, {"do": do}):
        joint = joint_by_definition(network, **asked)
        margin = joint.sum(axis=tuple(k for k, node in enumerate(network.dag.nodes) if node != seen))
        evidence = {seen: int(np.argmax(margin))}
        answer = network.query([first, second], evidence | {told: likelihood.tolist()}, **asked)
        expected = answer_by_definition(network, [first, second], evidence, {told: likelihood}, **asked)
        assert answer.axes == (first, second)
        np.testing.assert_allclose(answer, expected, atol=1e-12)
        np.testing.assert_allclose(network.query(first, **asked), answer_by_definition(network, [first], **asked))


@pytest.mark.parametrize("seed", range(12))
def test_marginals_are_those_of_queries_one_by_one(seed):
    """Of every node by one call, as sums over the joint distribution have them."""
    network = random_network(seed, zeros=False)
    rng = np.random.default_rng([seed, 2])
    *_, seen, told, done = rng.permutation(network.dag.nodes)
    likelihood = rng.random(len(network.states[told]))
    for evidence, do in (({}, {}), ({seen: 0}, {}), ({seen: 0, told: likelihood.tolist()}, {done: 1})):
        marginals = network.marginals(evidence, do=do)
        assert list(marginals) == list(network.dag.nodes)
        observed = {node: state for node, state in evidence.items() if node != told}
        told_of = {told: likelihood} if told in evidence else {}
        for node, table in marginals.items():
            if node in observed or node in do:
                state = {**observed, **do}[node]
                expected = np.eye(len(network.states[node]))[state]
            else:
                expected = answer_by_definition(network, [node], observed, told_of, do=do)
            assert table.axes == (node,)
            np.testing.assert_allclose(table, expected, atol=1e-12)
    with pytest.raises(ValueError, match="may not be both seen and set"):
        network.marginals({seen: 0}, do={seen: 1})


def test_likelihoods_have_no_unit_and_may_be_of_a_target():
    network = random_network(3)
    target = network.dag.nodes[0]
    prior = np.asarray(network.query(target))
    likelihood = np.arange(1.0, len(prior) + 1)
    expected = prior * likelihood / (prior @ likelihood)
    for given in (likelihood, 1e-9 * likelihood, dict(enumerate(likelihood.tolist()))):
        np.testing.assert_allclose(network.query(target, {target: given}), expected, rtol=1e-12)
    certain = network.query(network.dag.nodes[1], {target: {1: 0.2}})  # states without a number are impossible
    np.testing.assert_allclose(certain, network.query(network.dag.nodes[1], {target: 1}), rtol=1e-12)


def test_the_front_door_gives_the_effect_in_spite_of_a_hidden_cause():
    """Pearl (2009), section 3.3: 0.4525 and 0.4975; and as the adjustment by tar finds it from what is observed."""
    dag = DAG("[gene][smokes|gene][tar|smokes][cancer|gene:tar]")
    tables = {
        "gene": [0.5, 0.5],
        "smokes": [[1, 0], [0, 1]],
        "tar": [[0.95, 0.05], [0.05, 0.95]],
        "cancer": [[[0.9, 0.1], [0.95, 0.05]], [[0.1, 0.9], [0.15, 0.85]]],
    }
    network = Network(dag, dict.fromkeys(dag.nodes, ("no", "yes")), tables)
    effects = [network.query("cancer", do={"smokes": state})["cancer":"yes"] for state in ("yes", "no")]
    np.testing.assert_allclose(effects, [0.4525, 0.4975], atol=1e-12)
    observed = np.asarray(network.query(["smokes", "tar", "cancer"]))
    of_smokes, of_tar = observed.sum((1, 2)), observed.sum(2) / observed.sum((1, 2))[:, None]
    with np.errstate(invalid="ignore"):
        of_cancer = np.asarray(network.tables["cancer"])  # smokes and gene are one here
    by_adjustment = [of_tar[s] @ (of_smokes @ of_cancer[:, :, 1]) for s in (1, 0)]
    np.testing.assert_allclose(effects, by_adjustment, atol=1e-12)


def test_rows_have_the_probabilities_of_the_joint_distribution():
    network = random_network(7, zeros=True)
    joint = joint_by_definition(network)
    nodes = network.dag.nodes
    every = pd.DataFrame(list(itertools.product(*(network.states[node] for node in nodes))), columns=list(nodes))
    np.testing.assert_allclose(np.exp(network.log_likelihood(every)), joint.ravel(), atol=1e-15)
    some = every.iloc[np.flatnonzero(joint.ravel())].drop(columns=[nodes[1]]).astype(object)
    some.iloc[::2, 0] = None
    probability = network.predict_proba(some)
    assert list(probability) == [nodes[1]]
    for k in (0, 1, len(some) - 1):
        seen = {node: state for node, state in some.iloc[k].items() if state is not None}
        np.testing.assert_allclose(probability[nodes[1]][k], network.query(nodes[1], seen), atol=1e-12)
        both = network.decode(some.iloc[[k]], [nodes[0], nodes[1]])
        free = [node for node in nodes if node not in seen]
        best = answer_by_definition(network, free, {node: int(state) for node, state in seen.items()})
        at = dict(zip(free, np.unravel_index(best.argmax(), best.shape)))
        assert all(both[node][0] == at.get(node, seen.get(node)) for node in (nodes[0], nodes[1]))


def test_draws_are_of_the_network():
    network = random_network(5)
    rows = network.sample(40_000, random_state=0)
    assert list(rows) == list(network.dag.nodes)
    for node in network.dag.nodes:
        p = np.asarray(network.query(node))
        share = np.bincount(rows[node], minlength=len(p)) / 40_000
        assert (abs(share - p) < 4.5 * np.sqrt(p * (1 - p) / 40_000)).all()
    assert np.isfinite(network.log_likelihood(rows)).all()
    again = network.sample(40_000, random_state=np.random.default_rng(0))
    assert all((rows[node] == again[node]).all() for node in rows)


def test_draws_given_some_states_are_of_the_joint_distribution():
    network = random_network(5)
    nodes = list(network.dag.nodes)
    given = {nodes[-1]: network.states[nodes[-1]][0], nodes[2]: network.states[nodes[2]][1]}
    rows = network.sample(20_000, random_state=0, given=pd.Series(given), as_frame=True)
    assert list(rows) == nodes
    assert all((rows[node] == state).all() for node, state in given.items())
    first, second = [node for node in nodes if node not in given][:2]
    joint = np.asarray(network.query([first, second], given))
    drawn = np.zeros(joint.shape)
    np.add.at(drawn, (rows[first].to_numpy(), rows[second].to_numpy()), 1 / 20_000)
    assert (abs(drawn - joint) < 4.5 * np.sqrt(joint * (1 - joint) / 20_000) + 1e-9).all()
    certain = Network(DAG("[a][b|a]"), {"a": (0, 1), "b": (0, 1)}, {"a": [0.5, 0.5], "b": [[1, 0], [0, 1]]})
    with pytest.raises(ValueError, match="have probability 0 together"):
        certain.sample(given={"a": 0, "b": 1})


def test_a_series_is_evidence():
    network = random_network(3)
    nodes = list(network.dag.nodes)
    row = pd.Series({nodes[1]: 0, nodes[2]: np.nan}, dtype=object)
    np.testing.assert_array_equal(network.query(nodes[0], row), network.query(nodes[0], {nodes[1]: 0}))
    X = pd.DataFrame({"a": list("xyxy") * 5, "b": list("uuvv") * 5})
    for model in (VBDiscreteDAG("[a][b|a]"), VBNetwork("[a][b|a]")):
        model.fit(X)
        np.testing.assert_array_equal(model.query("b", X.loc[0, ["a"]]), model.query("b", {"a": "x"}))


def test_a_fit_and_its_network_answer_alike():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(["x", "y"], 60), "b": rng.integers(0, 3, 60), "c": rng.random(60) < 0.4})
    model = VBDiscreteDAG([("h", "a"), ("h", "b"), ("a", "c")], latents=["h"], random_state=0).fit(X)
    network = model.network_
    X.loc[::3, "a"] = None
    np.testing.assert_allclose(network.log_likelihood(X), model.score_samples(X), rtol=1e-12)
    np.testing.assert_allclose(network.predict_proba(X)["h"], model.predict_proba(X), rtol=1e-12)
    np.testing.assert_array_equal(network.decode(X)["h"], model.decode(X))
    for asked in ({"evidence": {"b": 2}}, {"do": {"a": "y"}}, {"evidence": {"b": [1, 2, 3]}}):
        np.testing.assert_allclose(model.query("c", **asked), network.query("c", **asked), rtol=1e-12)

    np.testing.assert_allclose(model.marginals({"b": 2})["c"], network.query("c", {"b": 2}), rtol=1e-12)
    with pytest.warns(PosteriorWarning, match="is not identified"):  # of b it is not
        marginals = model.marginals(do={"a": "y"})
    np.testing.assert_allclose(marginals["c"], network.query("c", do={"a": "y"}), rtol=1e-12)


def test_an_effect_that_hidden_nodes_confound_is_given_with_a_warning():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, size=(40, 2)), columns=["treated", "well"])
    edges = [("risk", "treated"), ("risk", "well"), ("treated", "well")]
    hidden = VBDiscreteDAG(edges, latents=["risk"], random_state=0).fit(X)
    with pytest.warns(PosteriorWarning, match="What setting 'treated' does to 'well' is not identified: with 'risk'"):
        hidden.query("well", do={"treated": 1})
    seen = VBDiscreteDAG(edges, random_state=0).fit(X.assign(risk=rng.integers(0, 2, size=40)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        seen.query("well", do={"treated": 1})
        hidden.query("well", {"treated": 1})


def test_states_keep_their_kind_and_names_of_any_kind_are_nodes():
    dag = DAG.from_edges([(0, ("b", 1))])
    network = Network(dag, {0: (False, True), ("b", 1): (0.5, 1.5)}, {0: [0.5, 0.5], ("b", 1): [[1, 0], [0, 1]]})
    rows = network.sample(20, random_state=1)
    assert rows[0].dtype == bool
    assert rows[("b", 1)].dtype == float
    assert network.query(("b", 1), {0: True})[("b", 1) : 1.5] == 1
    np.testing.assert_allclose(network.log_likelihood(rows), np.log(0.5))
    np.testing.assert_allclose(network.log_likelihood({0: [True, None]}), [np.log(0.5), 0], atol=1e-15)


RAIN = Network(
    DAG("[rain][wet|rain]"),
    dict.fromkeys(("rain", "wet"), ("no", "yes")),
    {"rain": [0.8, 0.2], "wet": [[1, 0], [0, 1]]},
)


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda: RAIN.query("rainy"), ValueError, "'rainy' is not a node of this network. Did you mean 'rain'"),
        (
            lambda: RAIN.query("rain", {"wet": "damp"}),
            ValueError,
            "'damp' is not a state of 'wet', whose states are 'no'",
        ),
        (lambda: RAIN.query("rain", {"rain": "no"}), ValueError, "not also in the evidence or in do"),
        (lambda: RAIN.query("rain", {"wet": "no"}, do={"wet": "yes"}), ValueError, "may be both seen and set"),
        (
            lambda: RAIN.query("rain", {"wet": [1, 2, 3]}),
            ValueError,
            "likelihoods of 'wet' must be 2 finite numbers >= 0",
        ),
        (lambda: RAIN.query("rain", {"wet": [0, 0]}), ValueError, "not all 0"),
        (lambda: RAIN.query("rain", {"wet": {"damp": 1}}), ValueError, "'damp' is not a state of 'wet'"),
        (lambda: RAIN.query("rain", do=[("wet", "no")]), TypeError, "The do of a query must be a mapping of nodes to"),
        (
            lambda: RAIN.query("wet", {"rain": {"yes": 1}}, do={"rain": "no"}),
            ValueError,
            "may be both seen and set",
        ),
        (lambda: RAIN.log_likelihood([["no", "yes"]]), TypeError, "X must name its columns, which are nodes"),
        (
            lambda: RAIN.log_likelihood({"wett": ["no"]}),
            ValueError,
            "Column 'wett' of X is not a node.*Did you mean 'wet'",
        ),
        (
            lambda: RAIN.log_likelihood({"wet": ["dry"]}),
            ValueError,
            "contains 'dry', which is not among the 2 states of",
        ),
        (lambda: RAIN.log_likelihood({"wet": ["no"], "rain": ["no", "no"]}), ValueError, "flat and of one length"),
        (lambda: RAIN.predict_proba({"wet": ["no"]}, "snow"), ValueError, "'snow' is not a node of this network"),
        (lambda: RAIN.sample(0), ValueError, "n_samples"),
    ],
)
def test_bad_questions_are_refused_by_name(ask, error, words):
    with pytest.raises(error, match=words):
        ask()


def test_impossible_evidence_is_refused():
    joint = Network(
        DAG("[rain][wet|rain][snow|rain]"),
        dict.fromkeys(("rain", "wet", "snow"), ("no", "yes")),
        {"rain": [0.8, 0.2], "wet": [[1, 0], [0, 1]], "snow": [[1, 0], [1, 0]]},
    )
    with pytest.raises(ValueError, match="has probability 0 under these tables: nothing follows"):
        joint.query("rain", {"snow": "yes"})
    assert joint.log_likelihood({"snow": ["yes", "no"]}).tolist() == [-np.inf, 0.0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["asia", "sachs", "child", "alarm"])
def test_random_queries_are_answered_as_by_another_program(name):
    gum = pytest.importorskip("pyagrum")
    if not (FILES / f"{name}.bif").exists():
        pytest.skip("third-party data are not part of the source distribution")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # printed tables miss one by their rounding
        network = read_bif(FILES / f"{name}.bif")
    other = gum.BayesNet(name)
    for node in network.dag.nodes:
        other.add(gum.LabelizedVariable(node, node, [str(state) for state in network.states[node]]))
    for parent, child in network.dag.edges:
        other.addArc(parent, child)
    for node, table in network.tables.items():
        parents = network.dag.parents(node)
        for states in itertools.product(*(range(len(network.states[parent])) for parent in parents)):
            other.cpt(node)[dict(zip(parents, states))] = table[states].tolist()
    rng = np.random.default_rng(0)
    for _ in range(250):
        target, *seen = rng.choice(network.dag.nodes, size=rng.integers(1, 5), replace=False)
        row = network.sample(1, random_state=rng)  # evidence that is possible
        evidence = {node: row[node][0] for node in seen}
        codes = {node: network.states[node].index(state) for node, state in evidence.items()}
        inference = gum.LazyPropagation(other)
        inference.setEvidence(codes)
        expected = inference.posterior(target).toarray()
        np.testing.assert_allclose(network.query(target, evidence), expected, atol=1e-10)


def test_intervals_are_named_by_a_number_within_or_by_their_text():
    """In queries, marginals, actions, draws and rows; a number at an open end belongs to the interval that has it."""
    cells = pd.DataFrame({"size": pd.cut([0.5, 1.5, 2.5, 0.2, 2.9, 1.0], [0, 1, 2, 3]), "kind": list("abaabb")})
    model = VBDiscreteDAG([("size", "kind")], random_state=0).fit(cells)
    middle = pd.Interval(1, 2)
    expected = np.asarray(model.query("kind", {"size": middle}))
    for state in (1.5, 2, np.float32(1.25), "(1, 2]"):
        for asked in (model, model.network_):
            np.testing.assert_array_equal(asked.query("kind", {"size": state}), expected)
            np.testing.assert_array_equal(asked.query("kind", do={"size": state}), expected)
            np.testing.assert_array_equal(asked.marginals({"size": state})["kind"], expected)
        assert model.sample(3, random_state=0, given={"size": state})[0]["size"].tolist() == [middle] * 3
        assert model.network_.sample(3, random_state=0, given={"size": state})["size"].tolist() == [middle] * 3
    rows = cells.assign(size=[0.5, 1.5, 2.5, 0.2, 2.9, 1.0])
    np.testing.assert_array_equal(model.score_samples(rows), model.score_samples(cells))
    proba = model.network_.predict_proba(rows[["size"]])["kind"]
    np.testing.assert_array_equal(proba, model.network_.predict_proba(cells[["size"]])["kind"])
    for state in (0, 3.5, np.nan, True, "(1,2]", "[1, 2]"):
        with pytest.raises(ValueError, match="is not a state of 'size', whose states are"):
            model.query("kind", {"size": state})
    ends = pd.IntervalIndex.from_tuples([(0, 1), (1, 2)], closed="both")
    overlapping = Network(DAG(["size"], {}), {"size": tuple(ends)}, {"size": [0.5, 0.5]})
    with pytest.raises(ValueError, match="1 is not a state"):  # of two
        overlapping.query("size", {"size": 1})


def test_a_row_of_a_frame_is_a_row():
    network = random_network(1)
    frame = pd.DataFrame(network.sample(3, random_state=0))[["n0", "n3"]]
    expected = network.predict_proba(frame)
    for number in range(3):
        for node, proba in network.predict_proba(frame.iloc[number]).items():
            np.testing.assert_array_equal(proba, expected[node][[number]])
        assert network.decode(frame.iloc[number]).keys() == network.decode(frame).keys()
