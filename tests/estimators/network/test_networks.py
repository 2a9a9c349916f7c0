"""Fitted tables out and in: a fit as a Network, a Network as the start of a fit."""

import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skvbem import DAG, Network, VBDiscreteDAG, read_bif, write_bif

pd = pytest.importorskip("pandas")

EDGES = [("h", "size"), ("h", "sold"), ("h", "count"), ("size", "sold"), ("h", "dose")]


def table(n_samples=400, seed=0):
    """Columns of four kinds of categories, three of them declared out of order, and one hidden cause."""
    rng = np.random.default_rng(seed)
    h = rng.random(n_samples) < 0.4
    noise = rng.random((4, n_samples)) < 0.2
    size = np.where(rng.random(n_samples) < 0.3, 2, h ^ noise[0])
    return pd.DataFrame(
        {
            "sold": h ^ noise[1],
            "size": pd.Categorical.from_codes(size, ["S", "L", "M"]),
            "dose": pd.Categorical.from_codes((h ^ noise[3]).astype(int), [1.5, 0.5]),
            "count": np.where(h ^ noise[2], 10, 2),
        }
    )


def fitted(**parameters):
    return VBDiscreteDAG(EDGES, latents=["h"], random_state=0, n_init=2, **parameters).fit(table())


def likelihood_at_start(X, **parameters):
    """Log likelihood one step from the tables that a fit starts from."""
    return VBDiscreteDAG(**parameters, method="ml", tol=1e9).fit(X).lower_bounds_[0]


@pytest.mark.parametrize("method", ["vb", "map", "ml"])
def test_a_fit_is_a_network(method, tmp_path):
    model = fitted(method=method)
    network = model.network_
    assert network.dag == model.structure_
    assert network.dag.nodes == ("h", "sold", "size", "dose", "count")
    assert dict(network.states) == {
        "h": (0, 1),
        "sold": (False, True),
        "size": ("S", "L", "M"),
        "dose": (1.5, 0.5),
        "count": (2, 10),
    }
    for node, values in network.tables.items():
        np.testing.assert_array_equal(values, model.tables_[node])
    path = tmp_path / "fit.bif"
    write_bif(network, path)
    other = read_bif(path)
    assert other == network
    assert repr(other.states) == repr(network.states)
    assert all(other.tables[node].tobytes() == values.tobytes() for node, values in network.tables.items())


def test_the_network_is_a_copy():
    model = fitted()
    before = np.array(model.tables_["h"])
    with pytest.raises(ValueError, match="read-only"):
        model.network_.tables["h"][0] = 1
    assert np.array_equal(model.tables_["h"], before)
    with pytest.raises(NotFittedError):
        _ = VBDiscreteDAG().network_


def test_a_fit_goes_on_where_its_network_was_read():
    model = fitted(method="ml", tol=1e-9)
    again = VBDiscreteDAG(**read_bif(write_bif(model.network_)).parameters("h"), method="ml").fit(table())
    assert again.n_iter_ < model.n_iter_
    assert abs(again.log_likelihood_ - model.log_likelihood_) < 1e-5
    assert again.network_.states == model.network_.states
    for node in model.structure_.nodes:
        np.testing.assert_allclose(again.tables_[node], model.tables_[node], atol=1e-3)
    assert again.lower_bounds_[0] == pytest.approx(model.log_likelihood_, abs=1e-4)


def test_tables_are_matched_by_name():
    """The first point of a run does not depend on the order of nodes, columns, categories and axes."""
    X, model = table(), fitted(method="ml")
    network = model.network_
    dag = network.dag.reorder(["size", "count", "h", "sold", "dose"])
    states = {**network.states, "size": ("M", "S", "L"), "sold": (True, False), "h": ("no", "yes")}
    tables = {}
    for node in dag.nodes:
        family, order = network.dag.family(node), dag.family(node)
        values = network.tables[node].transpose([family.index(member) for member in order])
        for axis, member in enumerate(order):
            if member != "h":
                values = np.take(values, [network.states[member].index(s) for s in states[member]], axis)
        tables[node] = values
    shuffled = Network(dag, states, tables)
    expected = likelihood_at_start(X, **network.parameters("h"))
    assert expected == pytest.approx(model.log_likelihood_, abs=model.tol)
    for columns in (list(X), ["count", "size", "sold", "dose"]):
        for parameters in ({}, {"categories": "auto"}):
            found = likelihood_at_start(X[columns], **shuffled.parameters("h") | parameters)
            assert found == pytest.approx(expected, abs=1e-9)


def test_tables_of_a_fit_are_matched_by_name():
    model = fitted(method="ml")
    X = table()
    reordered = X[["count", "size", "sold", "dose"]]
    expected = likelihood_at_start(X, **model.network_.parameters("h"))
    for init in (model.tables_, dict(model.tables_)):
        found = likelihood_at_start(reordered, structure=EDGES, latents=["h"], init=init)
        assert found == pytest.approx(expected, abs=1e-9)


def test_an_estimator_holds_a_network():
    estimator = VBDiscreteDAG(**fitted().network_.parameters("h"))
    copied, stored = clone(estimator), pickle.loads(pickle.dumps(estimator))
    assert copied.init == stored.init == estimator.init
    assert len(repr(estimator)) < 1000
    assert copied.fit(table()).lower_bound_ == estimator.fit(table()).lower_bound_


def two_nodes(**changes):
    parts = {"dag": DAG.from_string("[h][y|h]"), "states": {"h": ("a", "b"), "y": ("no", "yes")}}
    parts |= {"tables": {"h": [0.5, 0.5], "y": [[0.75, 0.25], [0.25, 0.75]]}} | changes
    return Network(**parts)


def test_parameters():
    network = two_nodes()
    assert network.cardinalities == {"h": 2, "y": 2}
    assert network.parameters(["h"]) == {
        "structure": network.dag,
        "latents": {"h": 2},
        "categories": {"y": ("no", "yes")},
        "init": network,
    }
    assert network.parameters()["latents"] == {}
    with pytest.raises(ValueError, match="Latent 'g' is not a node of this network"):
        network.parameters(["g"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"structure": [("h", "x0"), ("h", "y")]}, "must have the shape"),
        ({"latents": {"h": 3}}, "must have the shape"),
        (
            {"structure": [("y", "h")]},
            "The table of node 'h' in the 'init' parameter of VBDiscreteDAG must have one axis",
        ),
        (
            {"structure": "[h][z|h][y|z]", "latents": ["h", "z"]},
            "node 'y' in the 'init' parameter of VBDiscreteDAG must",
        ),
        (
            {"categories": {"y": ["yes", "no", "maybe"]}},
            "must have the categories of column 'y', ['yes', 'no', 'maybe']",
        ),
        ({"init": two_nodes(tables={"h": [0, 1], "y": [[0.75, 0.25], [0.25, 0.75]]})}, "Network.smoothed"),
    ],
)
def test_networks_that_do_not_fit(change, message):
    X = pd.DataFrame({"y": ["no", "yes", "no", "yes"]})
    if change.get("structure") == [("h", "x0"), ("h", "y")]:
        X["x0"] = X["y"]
        change = {"structure": change["structure"], "latents": {"h": 4}}
    with pytest.raises(ValueError, match=re.escape(message)):
        VBDiscreteDAG(**two_nodes().parameters("h") | change).fit(X)


def test_zeros_are_smoothed():
    network = two_nodes(tables={"h": [0.5, 0.5], "y": [[1, 0], [0, 1]]})
    smooth = network.smoothed(0.2)
    np.testing.assert_allclose(smooth.tables["y"], [[0.9, 0.1], [0.1, 0.9]], rtol=1e-15)
    assert smooth.states == network.states
    assert np.all(network.smoothed(1).tables["y"] == 0.5)
    for share in (0, -0.1, 1.1, np.nan, "0.5", None):
        with pytest.raises(ValueError, match="must be above 0 and at most 1"):
            network.smoothed(share)
    VBDiscreteDAG(**smooth.parameters("h")).fit(pd.DataFrame({"y": ["no", "yes", "no", "yes"]}))


def test_numbers_in_files_of_others_are_words():
    """A BIF without our property has states 'True', not True: the message says so."""
    network = read_bif(re.sub("  property.*\n", "", write_bif(fitted().network_)))
    with pytest.raises(ValueError, match=r"Column 'sold' of X contains (True|False), which is not among the 2 levels"):
        VBDiscreteDAG(**network.parameters("h")).fit(table())
    with pytest.raises(
        ValueError, match=r"must have the categories of column 'sold', \[False, True\]. It has \['False'"
    ):
        VBDiscreteDAG(**network.parameters("h") | {"categories": "auto"}).fit(table())


def test_networkx_carries_states_and_tables():
    pytest.importorskip("networkx")
    network = fitted().network_
    graph = network.to_networkx()
    assert graph.nodes["size"]["states"] == ("S", "L", "M")
    assert graph.nodes["sold"]["table"].shape == (2, 3, 2)
    other = Network.from_networkx(graph)
    assert other == network
    assert other.dag.nodes == network.dag.nodes
    assert DAG.coerce(graph) == network.dag
    del graph.nodes["sold"]["table"]
    with pytest.raises(ValueError, match=r"Node 'sold' of the networkx graph must have the attributes .* no 'table'"):
        Network.from_networkx(graph)
