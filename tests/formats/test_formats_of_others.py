"""BIF between this library, pgmpy and pyAgrum: each reads what another wrote, by names of nodes and states."""

import warnings
from pathlib import Path

import numpy as np
import pytest

from skvbem import Network, read_bif, write_bif
from skvbem.errors import DataWarning
from skvbem.graphs.dag import DAG

PUBLISHED = Path(__file__).parents[1] / "data" / "third_party" / "cc-by-sa"
WORDS = ("no", "yes", "A1", "_x", "State_2", "TRUE", "b0", "zz")


def network_of(model_string, states, values):
    """A network whose axes and states are those of another library, in ours."""
    dag = DAG.from_string(model_string)
    tables = {}
    for node in dag.nodes:
        axes, array, names = values(node)
        array = np.asarray(array).transpose([axes.index(member) for member in dag.family(node)])
        for axis, member in enumerate(dag.family(node)):
            array = np.take(array, [list(names[member]).index(state) for state in states[member]], axis)
        tables[node] = array
    return Network(dag, states, tables)


class PyAgrum:
    """Numbers are read in single precision (half a unit in the last of 24 bits), and written so."""

    read_error, written_error = 2.0**-23, 2.0**-22

    def __init__(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its bindings, which an error would crash
            self.library = pytest.importorskip("pyagrum")

    def read(self, path):
        return self.library.loadBN(str(path))

    def write(self, model, path):
        model.saveBIF(str(path))

    def network(self, model, order):
        states = {node: model.variable(node).labels() for node in order}
        families = ((node, [model.variable(k).name() for k in model.parents(node)]) for node in order)
        text = "".join(f"[{node}{'|' * bool(parents)}{':'.join(parents)}]" for node, parents in families)
        return network_of(text, states, lambda node: (model.cpt(node).names[::-1], model.cpt(node).toarray(), states))


class Pgmpy:
    """Doubles are read and written as they are."""

    read_error, written_error = 0, 0

    def __init__(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.library = pytest.importorskip("pgmpy.readwrite")

    def read(self, path):
        return self.library.BIFReader(str(path)).get_model()

    def write(self, model, path):
        self.library.BIFWriter(model).write(str(path))

    def network(self, model, order):
        tables = {node: model.get_cpds(node) for node in order}
        states = {node: tuple(tables[node].state_names[node]) for node in order}
        families = ((node, tables[node].variables[1:]) for node in order)
        text = "".join(f"[{node}{'|' * bool(parents)}{':'.join(parents)}]" for node, parents in families)
        return network_of(
            text, states, lambda node: (tables[node].variables, tables[node].values, tables[node].state_names)
        )


@pytest.fixture(scope="module", params=[PyAgrum, Pgmpy], ids=lambda peer: peer.__name__)
def peer(request):
    return request.param()


def words_of(network):
    """The network as others see it: its states are words."""
    states = {node: tuple(map(str, states)) for node, states in network.states.items()}
    return Network(network.dag, states, network.tables)


def random_network(seed):
    rng = np.random.default_rng(seed)
    nodes = rng.permutation([f"{word}_{k}" for k, word in enumerate(WORDS[: rng.integers(1, 8)])]).tolist()
    parents = {
        child: rng.permutation(nodes[:place])[: rng.integers(0, 4)].tolist() for place, child in enumerate(nodes)
    }
    kinds = (lambda n: rng.permutation(WORDS)[:n], lambda n: rng.permutation(20)[:n], lambda n: [True, False][:n])
    states = {node: tuple(kinds[rng.integers(3)](rng.integers(2, 5))) for node in nodes}
    dag = DAG(rng.permutation(nodes).tolist(), parents)
    tables = {}
    for node in nodes:
        table = rng.gamma(0.3, size=[len(states[member]) for member in dag.family(node)])
        table[..., 1:][rng.random(table[..., 1:].shape) < 0.2] = 0
        tables[node] = table / table.sum(-1, keepdims=True)
    return Network(dag, states, tables)


def check_both_ways(peer, network, tmp_path):
    order, words = network.dag.nodes, words_of(network)
    write_bif(network, tmp_path / "ours.bif")
    model = peer.read(tmp_path / "ours.bif")
    check_equal(peer.network(model, order), words, peer.read_error)
    peer.write(model, tmp_path / "theirs.bif")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # tables printed with few digits
        read = read_bif(tmp_path / "theirs.bif")
    assert set(read.dag.nodes) == set(order)
    states = {node: read.states[node] for node in order}
    reordered = network_of(
        str(read.dag.reorder(order)), states, lambda node: (read.dag.family(node), read.tables[node], states)
    )
    check_equal(reordered, words, peer.written_error)


def check_equal(found, expected, error):
    assert found.dag == expected.dag
    assert found.dag.nodes == expected.dag.nodes
    assert found.states == expected.states
    for node, table in expected.tables.items():
        np.testing.assert_allclose(found.tables[node], table, rtol=0, atol=error, err_msg=node)


@pytest.mark.parametrize("seed", range(3))
def test_random_networks(peer, seed, tmp_path):
    check_both_ways(peer, random_network(seed), tmp_path)


@pytest.mark.parametrize(
    "name",
    ["asia", "child", *(pytest.param(n, marks=pytest.mark.slow) for n in ("cancer", "earthquake", "sachs", "alarm"))],
)
def test_published_networks(peer, name, tmp_path):
    path = PUBLISHED / f"{name}.bif"
    if not path.exists():
        pytest.skip(f"{name}.bif is not part of this distribution")
    network = read_bif(path)
    if name == "child" and isinstance(peer, PyAgrum):
        pytest.skip("pyAgrum reads no slash in a name")
    check_equal(peer.network(peer.read(path), network.dag.nodes), network, 2e-7)
    check_both_ways(peer, network, tmp_path)
