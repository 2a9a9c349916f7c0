"""Files between this library, pgmpy and pyAgrum: each reads what another wrote, by names of nodes and states."""

import gzip
import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pytest

from skvbem import Network, read_bif, read_network, write_network
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
    """Numbers are read in single precision (half a unit in the last of 24 bits), of XML in double; 6 digits written."""

    def __init__(self):
        self.read_error = {"bif": 2.0**-23, "bifxml": 1e-15, "net": 2.0**-23, "dsl": 2.0**-23}
        self.written_error = {"bif": 2.0**-22, "bifxml": 2e-6, "net": 1e-15, "dsl": 2e-6}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its bindings, which an error would crash
            self.library = pytest.importorskip("pyagrum")

    def read(self, path):
        return self.library.loadBN(str(path))

    def write(self, model, path):
        self.library.saveBN(model, str(path))

    def network(self, model, order):
        states = {node: model.variable(node).labels() for node in order}
        families = ((node, [model.variable(k).name() for k in model.parents(node)]) for node in order)
        text = "".join(f"[{node}{'|' * bool(parents)}{':'.join(parents)}]" for node, parents in families)
        return network_of(text, states, lambda node: (model.cpt(node).names[::-1], model.cpt(node).toarray(), states))


class Pgmpy:
    """Doubles are read and written as they are, but written with 8 digits to NET; DSL is not known."""

    def __init__(self):
        self.read_error = {"bif": 0, "bifxml": 0, "net": 0}
        self.written_error = {"bif": 0, "bifxml": 0, "net": 2e-8}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.library = pytest.importorskip("pgmpy.readwrite")

    def of(self, path, what):
        return getattr(self.library, {"bif": "BIF", "bifxml": "XMLBIF", "net": "NET"}[path.suffix[1:]] + what)

    def read(self, path):
        return self.of(path, "Reader")(str(path)).get_model()

    def write(self, model, path):
        self.of(path, "Writer")(model).write(str(path))

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


def check_both_ways(peer, network, end, tmp_path, is_written=True):
    order, words = network.dag.nodes, words_of(network)
    if end not in peer.read_error:
        pytest.skip("a format that the other does not know")
    ours, theirs = tmp_path / f"ours.{end}", tmp_path / f"theirs.{end}"
    write_network(network, ours)
    model = peer.read(ours)
    check_equal(peer.network(model, order), words, peer.read_error[end])
    if not is_written:
        return
    peer.write(model, theirs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # tables printed with few digits
        read = read_network(theirs)
    assert set(read.dag.nodes) == set(order)
    states = {node: read.states[node] for node in order}
    reordered = network_of(
        str(read.dag.reorder(order)), states, lambda node: (read.dag.family(node), read.tables[node], states)
    )
    check_equal(words_of(reordered), words, peer.written_error[end] + peer.read_error[end])


def check_equal(found, expected, error):
    assert found.dag == expected.dag
    assert found.dag.nodes == expected.dag.nodes
    assert found.states == expected.states
    for node, table in expected.tables.items():
        np.testing.assert_allclose(found.tables[node], table, rtol=0, atol=error, err_msg=node)


ENDS = ("bif", "bifxml", "net", "dsl")


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("seed", range(3))
def test_random_networks(peer, seed, end, tmp_path):
    check_both_ways(peer, random_network(seed), end, tmp_path)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(
    "name",
    ["asia", "child", *(pytest.param(n, marks=pytest.mark.slow) for n in ("cancer", "earthquake", "sachs", "alarm"))],
)
def test_published_networks(peer, name, end, tmp_path):
    path = PUBLISHED / f"{name}.bif"
    if not path.exists():
        pytest.skip(f"{name}.bif is not part of this distribution")
    network = read_bif(path)
    if name == "child" and (end == "dsl" or (end == "bif" and isinstance(peer, PyAgrum))):
        pytest.skip("a format or a reader that has no slash in a name")
    if end == "bif":
        check_equal(peer.network(peer.read(path), network.dag.nodes), network, 2e-7)
    # Of the states "<5" and ">=7.5" both write XML, and pyAgrum NET, that nobody can read.
    check_both_ways(peer, network, end, tmp_path, is_written=name != "child" or end == "bif")


def example_networks():
    """Files of networks that pgmpy ships; those of 1.0.0, since later ones fetch them."""
    found = importlib.util.find_spec("pgmpy")
    return sorted(Path(found.origin).parent.glob("utils/example_models/*.bif.gz")) if found and found.origin else []


@pytest.mark.slow
def test_networks_that_pgmpy_ships(tmp_path):
    """All are read, come back from every format, and pyAgrum reads the same, with the same marginals."""
    paths, gum = example_networks(), PyAgrum()
    if not paths:
        pytest.skip("this pgmpy ships no networks")
    assert len(paths) >= 24
    for path in paths:
        network = read_network(path)
        names = ("bif", "xmlbif", "net") if "child" in path.name else ("bif", "xmlbif", "net", "dsl")
        for name in names:
            assert read_network(write_network(network, format=name), name) == network
        if "child" not in path.name:  # of which pyAgrum cannot read a slash
            plain = tmp_path / "theirs.bif"
            plain.write_bytes(gzip.decompress(path.read_bytes()))
            check_equal(gum.network(gum.read(plain), network.dag.nodes), network, 2e-6)
        write_network(network, tmp_path / "ours.bifxml")
        model = gum.read(tmp_path / "ours.bifxml")
        check_equal(gum.network(model, network.dag.nodes), network, 1e-15)
        if path.name.startswith(("munin", "link")):  # cliques of up to 2e7 cells
            continue
        marginals = network.marginals()
        inference = gum.library.LazyPropagation(model)
        nodes = network.dag.nodes[:: max(len(network.dag.nodes) // 10, 1)]
        inference.setTargets(set(nodes))
        for node in nodes:
            found, expected = inference.posterior(node).toarray(), marginals[node].values
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10, err_msg=f"{path.name} {node}")
