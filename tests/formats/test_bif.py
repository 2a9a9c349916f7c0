import copy
import gzip
import io
import os
import pickle
import re
import time
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from skvbem import Network, read_bif, write_bif
from skvbem.errors import DataWarning, StructureError, TooLargeError
from skvbem.graphs.dag import DAG

PUBLISHED = Path(__file__).parents[1] / "data" / "third_party" / "cc-by-sa"

laws = settings(deadline=None)

RAIN = """network unknown {
}
variable rain {
  type discrete [ 2 ] { no, yes };
}
variable wet {
  type discrete [ 3 ] { dry, damp, soaked };
}
variable slip {
  type discrete [ 2 ] { no, yes };
}
probability ( rain ) {
  table 0.75, 0.25;
}
probability ( wet | rain ) {
  (no) 0.5, 0.25, 0.25;
  (yes) 0.125, 0.375, 0.5;
}
probability ( slip | rain, wet ) {
  (no, dry) 1.0, 0.0;
  (no, damp) 0.75, 0.25;
  (no, soaked) 0.5, 0.5;
  (yes, dry) 0.875, 0.125;
  (yes, damp) 0.625, 0.375;
  (yes, soaked) 0.25, 0.75;
}
"""

TABLES = {
    "rain": [0.75, 0.25],
    "wet": [[0.5, 0.25, 0.25], [0.125, 0.375, 0.5]],
    "slip": [[[1, 0], [0.75, 0.25], [0.5, 0.5]], [[0.875, 0.125], [0.625, 0.375], [0.25, 0.75]]],
}


def rain_with(old, new):
    assert RAIN.count(old) == 1
    return RAIN.replace(old, new)


def one_variable(row, states="a, b", head="table"):
    count = len(states.split(","))
    return f"variable x {{ type discrete [ {count} ] {{ {states} }}; }}\nprobability ( x ) {{ {head} {row}; }}\n"


names = st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"], exclude_characters='"'), max_size=6)
keywords = ("network", "variable", "probability", "property", "type", "discrete", "table", "default", "skvbem_states")
awkward = ("__class__", "../../x", "a//b", "/*", "🐑", "-", "two words", "{", "", "nan", "it's", "e\u0301", "1", "\\")
awkward_names = st.sampled_from(awkward + keywords)
states_of_a_node = (
    st.lists(names | awkward_names, unique=True, min_size=1, max_size=3)
    | st.lists(st.integers(), unique=True, min_size=1, max_size=3)
    | st.lists(st.floats(allow_nan=False, allow_infinity=False), unique=True, min_size=1, max_size=3)
    | st.permutations([False, True])
)


@st.composite
def networks(draw):
    nodes = draw(st.lists(names | awkward_names, unique=True, min_size=1, max_size=5))
    parents = {
        child: draw(st.lists(st.sampled_from(nodes[:place]), unique=True, max_size=3)) if place else []
        for place, child in enumerate(nodes)
    }
    dag = DAG(draw(st.permutations(nodes)), parents)
    states = {node: draw(states_of_a_node) for node in nodes}
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    slack = draw(st.sampled_from([0, 9e-7]))
    tables = {}
    for node in nodes:
        table = rng.gamma(0.5, size=[len(states[other]) for other in dag.family(node)]) + 1e-300
        tables[node] = table / table.sum(-1, keepdims=True) * (1 + slack * rng.uniform(-1, 1))
    return Network(dag, states, tables)


class TestReading:
    def test_a_small_network(self):
        network = read_bif(RAIN)
        assert network.dag == DAG.from_string("[rain][wet|rain][slip|rain:wet]")
        assert network.dag.nodes == ("rain", "wet", "slip")
        assert network.states == {"rain": ("no", "yes"), "wet": ("dry", "damp", "soaked"), "slip": ("no", "yes")}
        for node, table in TABLES.items():
            np.testing.assert_array_equal(network.tables[node], table)

    @pytest.mark.parametrize(
        ("name", "n_nodes", "n_arcs", "n_parameters"),
        [
            ("cancer", 5, 4, 10),
            ("earthquake", 5, 4, 10),
            ("asia", 8, 8, 18),
            ("sachs", 11, 17, 178),
            ("child", 20, 25, 230),
            ("alarm", 37, 46, 509),
        ],
    )
    def test_published_networks(self, name, n_nodes, n_arcs, n_parameters):
        path = PUBLISHED / f"{name}.bif"
        if not path.exists():
            pytest.skip(f"{name}.bif is not part of this distribution")
        network = read_bif(path)
        cardinalities = {node: len(states) for node, states in network.states.items()}
        assert len(network.dag.nodes) == n_nodes
        assert len(network.dag.edges) == n_arcs
        assert network.dag.n_free_parameters(cardinalities) == n_parameters
        assert read_bif(write_bif(network)) == network

        text = path.read_text()
        for block in re.findall(r"probability \( (.*?) \) {(.*?)}", text, re.DOTALL):
            child, *parents = re.split(r" \| |, ", block[0])
            for key, row in re.findall(r"\((.*?)\) (.*?);", block[1]):
                state = dict(zip(parents, key.split(", ")))
                at = tuple(network.states[parent].index(state[parent]) for parent in network.dag.parents(child))
                np.testing.assert_allclose(network.tables[child][at], [float(p) for p in row.split(",")], rtol=1e-6)

    def test_sources(self, tmp_path):
        expected = read_bif(RAIN)
        path = tmp_path / "rain.bif"
        path.write_bytes(RAIN.encode())
        with open(path) as text_file, open(path, "rb") as binary_file, open(path, "rb", buffering=0) as raw_file:
            sources = [path, str(path), RAIN.encode(), io.StringIO(RAIN), text_file, binary_file, raw_file]
            for source in sources:
                assert read_bif(source) == expected

    @pytest.mark.parametrize(
        "text",
        [
            RAIN.replace("\n", "\r\n"),
            RAIN.replace("\n", "\r"),
            "\ufeff" + RAIN,
            RAIN.replace("\n", " "),
            RAIN.replace(",", " "),
            re.sub(r"\b(rain|wet|slip|no|yes|dry|damp|soaked)\b", r'"\1"', RAIN),
            RAIN.replace("{", "{ // a comment { ; ( \n").replace(";", "/* another\n // ; { */;"),
            RAIN.replace("};\n}", '};\n property a = (1, 2) ; property "b ; }";\n}'),
            rain_with("unknown {", 'unknown { property author "a; b" ; property x ;'),
            rain_with("network unknown {\n}\n", ""),
            rain_with("( wet | rain )", "( wet rain )"),
            rain_with("0.5, 0.25, 0.25", "+.5, 25E-2, 0.250e+0"),
            rain_with("  (no) 0.5, 0.25, 0.25;\n", "  default 0.5, 0.25, 0.25;\n"),
            rain_with(
                "  (no) 0.5, 0.25, 0.25;\n  (yes) 0.125, 0.375, 0.5;\n", "  table 0.5 0.125 0.25 0.375 0.25 0.5;\n"
            ),
            rain_with("table 0.75, 0.25", "() 0.75, 0.25"),
        ],
    )
    def test_spellings_of_one_network(self, text):
        assert read_bif(text) == read_bif(RAIN)
        assert read_bif(text.encode()) == read_bif(RAIN)

    @laws
    @given(networks(), st.randoms(use_true_random=False), st.booleans())
    def test_tables_are_read_by_name(self, network, rng, as_tables):
        """Blocks, rows and parents in any order, written here by definition, give the same network."""
        declarations, blocks = [], []
        for node in network.dag.nodes:
            states = " ".join(f'"{state}"' for state in network.states[node])
            declarations.append(f'variable "{node}" {{ type discrete [{len(network.states[node])}] {{ {states} }}; }}')
            parents = list(network.dag.parents(node))
            rng.shuffle(parents)
            table = network.tables[node].transpose(*(network.dag.parents(node).index(p) for p in parents), -1)
            keys = list(np.ndindex(*table.shape[:-1]))
            if as_tables:
                flat = [table[(*key, state)] for state in range(table.shape[-1]) for key in keys]
                rows = [f"table {' '.join(map(repr, map(float, flat)))};"]
            else:
                rng.shuffle(keys)
                rows = []
                for key in keys:
                    labels = ", ".join(f'"{network.states[p][place]}"' for p, place in zip(parents, key))
                    rows.append(f"({labels}) {', '.join(map(repr, table[key].tolist()))};")
            given = " ".join(f'"{parent}"' for parent in parents)
            blocks.append(f'probability ("{node}" | {given}) {{ {" ".join(rows)} }}')
        rng.shuffle(blocks)
        parts = [*declarations, *blocks] if rng.random() < 0.5 else [*blocks, *declarations]
        other = read_bif("\n".join(parts))
        assert other.dag == network.dag
        for node, table in other.tables.items():
            np.testing.assert_allclose(table, network.tables[node], rtol=1e-12)


class TestRowSums:
    @pytest.mark.parametrize("row", ["0.5, 0.5", "0.5000005, 0.5000003", "0.3333333, 0.6666666", "1, 0", "1.0e0, 0"])
    def test_within_a_millionth_nothing_is_said(self, row):
        table = read_bif(one_variable(row)).tables["x"]
        values = np.array([float(p) for p in row.split(",")])
        np.testing.assert_allclose(table, values / values.sum(), rtol=1e-15)

    @pytest.mark.parametrize(
        "row", ["0.333, 0.333, 0.333", "0.33, 0.33, 0.33", "1.00e-05, 3.333e-01, 6.668e-01", "0.1667 0.1667 0.6667"]
    )
    def test_printed_rounding_is_divided_out_with_a_warning(self, row):
        numbers = [float(p) for p in row.replace(",", " ").split()]
        with pytest.warns(DataWarning, match=rf"line 2, column 21: .* sum to {sum(numbers):.10g}.* 1 rows"):
            network = read_bif(one_variable(row, "a, b, c"))
        np.testing.assert_allclose(network.tables["x"], np.array(numbers) / sum(numbers), rtol=1e-15)

    @pytest.mark.parametrize(
        ("row", "states", "total"),
        [
            ("1.0, 0.3", "a, b", "1.3"),
            ("0.5, 0.499", "a, b", "0.999"),
            ("0.5, 0.501", "a, b", "1.001"),
            ("0.499, 0.500", "a, b", "0.999"),
            ("0.333000, 0.333000, 0.333000", "a, b, c", "0.999"),
            ("3.330e-01, 3.330e-01, 3.330e-01", "a, b, c", "0.999"),
            ("0.3, 0.3, 0.3", "a, b, c", "0.9"),
            ("0, 0, 0", "a, b, c", "0"),
            ("1, 1, 1", "a, b, c", "3"),
            ("1e-7, 1e-7", "a, b", "2e-07"),
        ],
    )
    def test_other_sums_are_errors(self, row, states, total):
        message = f"line 2, column 21: probabilities must sum to one. These sum to {total}."
        with pytest.raises(ValueError, match=re.escape(message)):
            read_bif(one_variable(row, states))

    @laws
    @given(st.integers(0, 2**32), st.integers(3, 8), st.integers(2, 9), st.sampled_from("fe"))
    def test_any_distribution_may_be_rounded_in_print(self, seed, n_states, digits, style):
        probabilities = np.random.default_rng(seed).dirichlet(np.ones(n_states))
        numbers = [f"{p:.{digits}{style}}" for p in probabilities]
        assume(abs(sum(map(float, numbers)) - 1) <= 0.01)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            network = read_bif(one_variable(", ".join(numbers), ", ".join("abcdefgh"[:n_states])))
        np.testing.assert_allclose(network.tables["x"], probabilities, atol=0.011)

    @pytest.mark.parametrize(
        "numbers",
        [
            ["0.588359", "0.109311", "0.155316", "0.135314", "0.0117012", "0"],  # sums to 1.0000012
            ["0.03784", "0.9622"],
        ],
    )
    def test_significant_digits_explain_a_sum_too(self, numbers):
        values = np.array(numbers, dtype=float)
        with pytest.warns(DataWarning, match="were divided by their sum"):
            network = read_bif(one_variable(", ".join(numbers), ", ".join("abcdefghijkl"[: len(numbers)])))
        np.testing.assert_allclose(network.tables["x"], values / values.sum(), rtol=1e-14)

    @laws
    @given(st.integers(0, 2**32), st.integers(2, 8), st.integers(2, 9))
    def test_any_distribution_may_be_rounded_to_significant_digits(self, seed, n_states, digits):
        probabilities = np.random.default_rng(seed).dirichlet(np.full(n_states, 0.3))
        numbers = [f"{p:.{digits}g}" for p in probabilities]
        total = sum(map(float, numbers))
        # Two numbers, rounded alike, miss nothing: one of them ends as the other does not.
        assume(abs(total - 1) <= 0.01 and (n_states > 2 or probabilities.min() < 0.1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            network = read_bif(one_variable(", ".join(numbers), ", ".join("abcdefgh"[:n_states])))
        np.testing.assert_allclose(network.tables["x"], np.array(numbers, float) / total, rtol=1e-12)

    @pytest.mark.parametrize("numbers", [("0.576946", "0.423053"), ("0.158552", "0.533141", "0.308308")])
    def test_a_millionth_in_print_is_a_millionth(self, numbers):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            network = read_bif(one_variable(", ".join(numbers), ", ".join("abc"[: len(numbers)])))
        assert abs(network.tables["x"].sum() - 1) < 1e-15

    def test_a_tolerance_lets_a_mistyped_digit_pass(self):
        text = one_variable("0.5, 0.500035")
        with pytest.raises(ValueError, match=r"sum to 1\.000035\. If .* tolerance=4e-5 divides such rows"):
            read_bif(text)
        with pytest.warns(DataWarning, match=r"sum to 1\.000035"):
            network = read_bif(text, tolerance=4e-5)
        np.testing.assert_allclose(network.tables["x"], np.array([0.5, 0.500035]) / 1.000035, rtol=1e-15)
        with pytest.raises(ValueError, match="must sum to one"):
            read_bif(text, tolerance=3e-5)

    @pytest.mark.parametrize("tolerance", [-1e-9, 1, float("nan"), "much", None])
    def test_a_tolerance_is_a_share(self, tolerance):
        with pytest.raises(ValueError, match="'tolerance' must be a number from 0 to 1"):
            read_bif(one_variable("0.5, 0.5"), tolerance=tolerance)

    def test_the_warning_counts_rows(self):
        text = one_variable("0.333, 0.333, 0.333", "a, b, c")
        text += text.replace("variable x", "variable y").replace("( x )", "( y )")
        with pytest.warns(DataWarning, match="in 2 rows in all"):
            read_bif(text)

    @pytest.mark.parametrize("closed", ["left", "right", "both", "neither"])
    @pytest.mark.parametrize("breaks", [[0, 1, 5], [-0.5, 1e-7, 1e22], [-np.inf, 0.1 + 0.2, np.inf]])
    def test_intervals_are_written_and_come_back(self, breaks, closed):
        states = tuple(pd.IntervalIndex.from_breaks(breaks, closed=closed))
        network = Network(DAG(["x"], {}), {"x": states}, {"x": [0.25, 0.75]})
        text = write_bif(network)
        assert "property skvbem_states interval;" in text
        assert read_bif(text).states["x"] == states
        with pytest.raises(ValueError, match="must be different and of type interval"):
            read_bif(text.replace(str(states[0]), "word"))

    def test_intervals_of_dates_are_no_states_of_bif(self):
        states = tuple(pd.interval_range(pd.Timestamp("2020-01-01"), periods=2))
        network = Network(DAG(["x"], {}), {"x": states}, {"x": [0.25, 0.75]})
        with pytest.raises(ValueError, match=r"all pandas\.Interval of numbers .* X\.astype\(str\)"):
            write_bif(network)


class TestFilesOfOthers:
    """Rows of NaN as bnlearn writes them, networks without a name, compressed files."""

    @staticmethod
    def with_row(row):
        text = (
            "network {\n}\nvariable a { type discrete [ 2 ] { f, t }; }\nvariable b { type discrete [ 2 ] { f, t }; }\n"
        )
        return text + f"probability ( a ) {{ table 0.5, 0.5; }}\nprobability ( b | a ) {{ (f) 0.25, 0.75; {row} }}\n"

    @pytest.mark.parametrize("nan", ["NaN, NaN", "nan nan", "NA, NA"])
    def test_a_row_of_nan_is_the_default_row(self, nan):
        table = read_bif(self.with_row(f"(t) {nan}; default 0.125, 0.875;")).tables["b"]
        np.testing.assert_array_equal(table, [[0.25, 0.75], [0.125, 0.875]])

    @pytest.mark.parametrize("row", ["(t) NaN, NaN;", "default NaN, NaN;"])
    def test_a_row_of_nan_without_a_default_is_none(self, row):
        with pytest.raises(ValueError, match=r"the block of 'b' has no row for \(t\), and no default"):
            read_bif(self.with_row(row))

    @pytest.mark.parametrize("row", ["(t) 0.5, NaN;", "(t) NaN, 0.5;"])
    def test_numbers_beside_nan_are_refused(self, row):
        with pytest.raises(ValueError, match=r"a probability is a number from 0 to 1\. Found 'NaN'"):
            read_bif(self.with_row(row))

    def test_a_table_of_nan_is_none(self):
        with pytest.raises(ValueError, match="the block of 'x' has no probabilities"):
            read_bif(one_variable("NaN, NaN"))

    def test_a_compressed_file_is_read(self, tmp_path):
        text = self.with_row("(t) 0.5, 0.5;").encode()
        path = tmp_path / "net.bif.gz"
        path.write_bytes(gzip.compress(text))
        for source in (path, str(path), path.read_bytes(), io.BytesIO(path.read_bytes())):
            np.testing.assert_array_equal(read_bif(source).tables["b"], [[0.25, 0.75], [0.5, 0.5]])

    def test_a_compressed_file_is_no_bomb(self, tmp_path):
        packed = gzip.compress(b" " * 10**7)
        tracemalloc.start()
        with pytest.raises(TooLargeError, match="longer than max_bytes=1000"):
            read_bif(packed, max_bytes=1000)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 10**6
        with pytest.raises(ValueError, match="no whole gzip file: it ends too early"):
            read_bif(gzip.compress(self.with_row("(t) 0.5, 0.5;").encode())[:-20])
        with pytest.raises(ValueError, match="no whole gzip file"):
            read_bif(b"\x1f\x8b" + bytes(40))


class TestRoundTrip:
    @laws
    @given(networks())
    def test_written_networks_are_read_bit_for_bit(self, network):
        text = write_bif(network)
        other = read_bif(text)
        assert write_bif(other) == text
        assert other.dag.nodes == network.dag.nodes
        assert other.dag == network.dag
        assert repr(other.states) == repr(network.states)  # 1, 1.0 and True are equal
        for node, table in network.tables.items():
            assert other.tables[node].tobytes() == table.tobytes()
        assert other == network

    def test_states_that_are_no_words(self):
        states = {"flag": (True, False), "count": (10, -2), "dose": (0.1, 1e-300), "word": ("1", "True")}
        dag = DAG.from_string("[flag][count|flag][dose][word|dose]")
        tables = {node: np.full([2] * len(dag.family(node)), 0.5) for node in dag.nodes}
        network = Network(dag, states, tables)
        text = write_bif(network)
        assert text.count("property") == 3
        assert "type discrete [ 2 ] { True, False };\n  property skvbem_states bool;\n}" in text
        assert "(10)" not in text  # count has no child
        assert "(True) 0.5, 0.5;" in text
        for spelled in (text, text.replace("  type", "  property a b;\n  type").replace("states int", "states  int ")):
            assert repr(read_bif(spelled).states) == repr(network.states)
        words = read_bif(text.replace("property skvbem_states", "property states"))
        assert words.states["flag"] == ("True", "False")

    def test_states_of_numpy_are_those_of_python(self):
        levels = {"a": np.array([False, True]), "b": np.arange(2), "c": np.array([0.5, 1.5]), "d": np.array(["x", "y"])}
        network = Network(DAG(levels, {}), levels, {node: [0.5, 0.5] for node in levels})
        assert {type(state) for states in network.states.values() for state in states} == {bool, int, float, str}
        assert repr(read_bif(write_bif(network)).states) == repr(network.states)

    def test_files_are_replaced_whole(self, tmp_path, monkeypatch):
        path = tmp_path / "rain.bif"
        network = read_bif(RAIN)
        text = write_bif(network, path)
        assert text == RAIN
        assert path.read_bytes() == RAIN.encode()
        path.chmod(0o640)
        changed = Network(network.dag, network.states, network.tables | {"rain": [0.5, 0.5]})
        write_bif(changed, str(path))
        assert read_bif(path) == changed
        if os.name == "posix":
            assert path.stat().st_mode & 0o777 == 0o640

        def disk_full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", disk_full)
        with pytest.raises(OSError, match="No space left"):
            write_bif(network, path)
        assert read_bif(path) == changed
        assert os.listdir(tmp_path) == ["rain.bif"]

    @pytest.mark.parametrize("name", ['a"b', "a\nb", "a\0b", "\ud800", 5, ("a",)])
    def test_names_that_cannot_be_written(self, name):
        network = Network(DAG([name], {}), {name: ("a", "b")}, {name: [0.5, 0.5]})
        with pytest.raises(ValueError, match="A BIF name must be a str without double quotes, line breaks"):
            write_bif(network)

    @pytest.mark.parametrize("state", ['a"b', "a\nb", "a\0b", "\ud800", ("a",), 5, True, 0.5, None])
    def test_states_that_cannot_be_written(self, state):
        network = Network(DAG(["x"], {}), {"x": (state, "b")}, {"x": [0.5, 0.5]})
        told = f"Got {state!r} instead; rename it" if isinstance(state, str) else f"Got {(state, 'b')!r} instead."
        with pytest.raises(ValueError, match=rf"node 'x'.*{re.escape(told)}"):
            write_bif(network)

    @pytest.mark.parametrize("states", [(None,), (0, None), (0.5, np.nan), (0.0, np.inf), (1, 2.5), (b"a", b"b")])
    def test_states_for_which_there_is_no_property(self, states):
        network = Network(DAG(["x"], {}), {"x": states}, {"x": np.full(len(states), 1 / len(states))})
        with pytest.raises(ValueError, match="The states of node 'x' must be all str, all int, all bool, all finite"):
            write_bif(network)


class TestNetwork:
    def test_it_is_a_value(self):
        network = read_bif(RAIN)
        for other in (copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
            assert other == network
        with pytest.raises(AttributeError):
            network.dag = None
        with pytest.raises(TypeError):
            network.tables["rain"] = None
        with pytest.raises(ValueError, match="read-only"):
            network.tables["rain"][0] = 1
        table = np.array([0.5, 0.5])
        other = Network(DAG(["x"], {}), {"x": ["a", "b"]}, {"x": table})
        table[:] = 0
        assert other.tables["x"].sum() == 1
        assert other != network
        assert other != Network(other.dag, {"x": ("a", "c")}, other.tables)
        assert other != Network(other.dag, other.states, {"x": [0.25, 0.75]})
        assert other != "network"

    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            ({"states": {"x": ("a", "b")}}, StructureError, "states must name every node of the graph and no other"),
            ({"tables": {}}, StructureError, "They differ in 'x', 'y'"),
            (
                {"states": {"x": "ab", "y": "cd"}},
                StructureError,
                "must have one state or more, all different. Got 'ab'",
            ),
            ({"states": {"x": ("a", "a"), "y": ("c", "d")}}, StructureError, "Node 'x' must have one state or more"),
            ({"states": {"x": (), "y": ("c", "d")}}, StructureError, "Node 'x' must have one state or more"),
            (
                {"y": [0.5, 0.5]},
                StructureError,
                "'y' must have the shape (2, 2), an axis for each of ('x', 'y'). Got (2,)",
            ),
            (
                {"y": [[0.5, 0.5], [0.5, 0.6]]},
                ValueError,
                "The table of node 'y' must hold numbers >= 0 that sum to one",
            ),
            ({"y": [[0.5, 0.5], [-0.5, 1.5]]}, ValueError, "The table of node 'y' must hold numbers >= 0"),
            ({"y": [[0.5, 0.5], [np.nan, 1]]}, ValueError, "The table of node 'y' must hold numbers >= 0"),
        ],
    )
    def test_what_does_not_fit(self, change, error, message):
        tables = {"x": [0.5, 0.5], "y": [[0.5, 0.5], [0.5, 0.5]]}
        tables |= {key: value for key, value in change.items() if key == "y"}
        parts = {"states": {"x": ("a", "b"), "y": ("c", "d")}, "tables": tables}
        parts |= {key: value for key, value in change.items() if key != "y"}
        with pytest.raises(error, match=re.escape(message)):
            Network(DAG.from_string("[x][y|x]"), **parts)


SYNTAX = [
    ("", "line 1, column 1: the text ends without a variable"),
    ("  \n \n", "line 3, column 1: the text ends without a variable"),
    ("network unknown {\n}\n", "line 3, column 1: the text ends without a variable"),
    ("{", "line 1, column 1: expected 'network', 'variable' or 'probability', found '{'."),
    ("hello {\n}", "line 1, column 1: expected 'network', 'variable' or 'probability', found 'hello'."),
    ('"variable" x {\n}', "line 1, column 1: expected 'network', 'variable' or 'probability', found 'variable'."),
    ("network {\n}", "line 2, column 2: the text ends without a variable; a network has at least one."),
    ("network ( x ) {\n}", "line 1, column 9: expected the name of the network, found '('."),
    ("network x {\n  author y;\n}", "line 2, column 3: expected 'property' or '}', found 'author'."),
    ("network x {\n  property a = 1\n}", "line 2, column 3: this property is not closed by ';'."),
    ('network x {\n  property a = "1 ;\n}', "line 2, column 3: this property is not closed by ';'."),
    ("\n /* open {", "line 2, column 2: this comment is not closed by '*/'."),
    ("/* /* */ */\n", "line 1, column 10: expected 'network', 'variable' or 'probability', found '*/'."),
    ("variable x\0 {\n}", "line 1, column 11: the character '\\x00' cannot stand here."),
    ('variable "x {\n}', "line 1, column 10: this quoted name is not closed, or holds a control character."),
    (RAIN[: RAIN.index("0.375, 0.5;")], "line 17, column 16: expected a number, found the end of the text."),
    (RAIN.rstrip()[:-1], "line 26, column 1: expected 'table', 'default', '(', 'property' or '}', found the end"),
    (
        rain_with("rain {\n  type", "rain {\n  kind"),
        "line 4, column 3: expected 'type', 'property' or '}', found 'kind'.",
    ),
    (
        rain_with("  type discrete [ 3 ] { dry, damp, soaked };\n", ""),
        "line 6, column 10: variable 'wet' must have one type. It has 0.",
    ),
    (
        rain_with("[ 3 ]", "[ 2 ]"),
        "line 7, column 19: the number of states must be 1 or more and that of the names listed, 3 or more. Got '2'",
    ),
    (
        rain_with("[ 3 ]", "[ 4 ]"),
        "line 7, column 19: the number of states must be 1 or more and that of the names listed, 3. Got '4'",
    ),
    (rain_with("[ 3 ]", "[ three ]"), "line 7, column 19: the number of states must be 1 or more"),
    (rain_with("[ 3 ] { dry, damp, soaked }", "[ 0 ] { }"), "listed, 0. Got '0' instead."),
    (rain_with("[ 3 ]", "[ 99999999999999999999 ]"), "line 7, column 19: the number of states must be 1 or more"),
    (
        rain_with("discrete [ 3 ]", "integer [ 3 ]"),
        "line 7, column 8: expected 'discrete', the one type there is, found 'integer'.",
    ),
    (rain_with("dry, damp, soaked };", "dry, damp,, soaked };"), "line 7, column 35: expected a state, found ','."),
    (rain_with("dry, damp, soaked };", "dry, damp, };"), "line 7, column 36: expected a state, found '}'."),
    (rain_with("dry, damp, soaked };", "dry, damp, soaked }"), "line 8, column 1: expected ';', found '}'."),
    (rain_with("( rain ) {", "[ rain ] {"), "line 12, column 13: expected '(', found '['."),
    (rain_with("( rain ) {", "( rain ) ("), "line 12, column 22: expected '{', found '('."),
    (rain_with("rain, wet )", "rain, wet }"), "expected a parent or ')', found '}'."),
    (
        rain_with("0.75, 0.25;\n}\nprobability ( wet", "0.75, 0.25\n}\nprobability ( wet"),
        "line 14, column 1: expected a number or ';', found '}'.",
    ),
    (
        rain_with("table 0.75, 0.25", "table 1.25, -0.25"),
        "line 13, column 9: a probability is a number from 0 to 1. Found '1.25'.",
    ),
    (
        rain_with("table 0.75, 0.25", "table 0.75, -0.25"),
        "line 13, column 15: a probability is a number from 0 to 1. Found '-0.25'.",
    ),
    (
        rain_with("table 0.75, 0.25", "table nan, 0.25"),
        "line 13, column 9: a probability is a number from 0 to 1. Found 'nan'.",
    ),
    (
        rain_with("table 0.75, 0.25", "table 0.75, 1e999"),
        "line 13, column 15: a probability is a number from 0 to 1. Found '1e999'.",
    ),
    (
        rain_with("table 0.75, 0.25", "table 0_0.75, 0.25"),
        "line 13, column 9: a probability is a number from 0 to 1. Found '0_0.75'.",
    ),
    (rain_with("table 0.75, 0.25", "table ٠.75, 0.25"), "line 13, column 9: a probability is a number from 0 to 1."),
    (rain_with("table 0.75, 0.25", "table 0.75, , 0.25"), "line 13, column 15: expected a number, found ','."),
    (rain_with("table 0.75, 0.25", "table 0.75"), "line 13, column 3: expected 2 numbers, 2 states x 1 configurations"),
    (
        rain_with("table 0.75, 0.25", "table"),
        "line 13, column 3: expected 2 numbers, 2 states x 1 configurations of parents. Found 0.",
    ),
    (
        rain_with("table 0.75, 0.25;", "table 0.75, 0.25; table 0.75, 0.25;"),
        "line 13, column 21: a 'table' is the whole of a block",
    ),
    (rain_with("table 0.75, 0.25;", ""), "line 12, column 15: the block of 'rain' has no probabilities."),
    (
        rain_with("(yes) 0.125, 0.375, 0.5;", "(yes) 0.5, 0.5;"),
        "line 17, column 3: expected 3 numbers, one for each state. Found 2.",
    ),
    (rain_with("(yes) 0.125", "(no) 0.125"), "line 17, column 3: this configuration of the parents has a row already."),
    (rain_with("(yes) 0.125", "(Yes) 0.125"), "line 17, column 3: 'Yes' is no state of 'rain'. Did you mean 'yes'?"),
    (rain_with("(yes, damp)", "(damp, yes)"), "line 24, column 3: 'damp' is no state of 'rain'."),
    (rain_with("(yes, damp)", "(yes)"), "line 24, column 3: expected 2 states, one for each parent. Found 1."),
    (
        rain_with("  (yes, damp) 0.625, 0.375;\n", ""),
        "line 19, column 15: the block of 'slip' has no row for (yes, damp), and no default.",
    ),
    (
        rain_with("(yes) 0.125, 0.375, 0.5;", "default 0.125, 0.375, 0.5; default 1, 0, 0;"),
        "line 17, column 30: a second 'default' row begins here.",
    ),
]

STRUCTURE = [
    (rain_with("variable wet", "variable rain"), "line 6, column 10: variable 'rain' is declared twice."),
    (rain_with("dry, damp, soaked }", "dry, damp, dry }"), "line 7, column 36: state 'dry' is listed twice."),
    (
        rain_with("( wet | rain )", "( wet | Rain )"),
        "line 15, column 21: there is no variable 'Rain'. Did you mean 'rain'?",
    ),
    (rain_with("( wet | rain )", "( wetter | rain )"), "line 6, column 10: variable 'wet' has no probability block."),
    (RAIN + "probability ( snow ) { table 1; }", "line 27, column 15: there is no variable 'snow'."),
    (
        RAIN + "probability ( rain ) { table 0, 1; }",
        "line 27, column 15: variable 'rain' has a probability block already.",
    ),
    (rain_with("rain, wet )", "rain, rain )"), "line 19, column 28: parent 'rain' is listed twice."),
    (
        rain_with("( rain )", "( rain | slip )"),
        "line 12, column 15: The graph must have no directed cycle. It has rain -> slip -> rain;",
    ),
    (
        rain_with("( rain )", "( rain | rain )"),
        "line 12, column 15: The graph must have no directed cycle. It has rain -> rain;",
    ),
]


class TestHostileTexts:
    @pytest.mark.parametrize(("text", "message"), SYNTAX)
    def test_syntax_and_numbers(self, text, message):
        with pytest.raises(ValueError, match=re.escape(message)) as caught:
            read_bif(text)
        assert re.match(r"BIF text, line \d+, column \d+: ", str(caught.value))

    @pytest.mark.parametrize(("text", "message"), STRUCTURE)
    def test_structure(self, text, message):
        with pytest.raises(StructureError, match=re.escape(message)):
            read_bif(text)

    def test_the_message_names_the_file(self, tmp_path):
        path = tmp_path / "bad.bif"
        path.write_bytes(b"network unknown {\r\n}\r\nvariable caf\xe9 {\r\n")
        with pytest.raises(ValueError, match=re.escape(f"{path}, line 3, column 13: byte 0xe9 is not UTF-8")):
            read_bif(path)
        path.write_bytes(RAIN.encode("utf-16"))
        with pytest.raises(ValueError, match=re.escape(f"{path}, line 1, column 1: byte 0x")):
            read_bif(path)

    def test_paths(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"nothing\.bif"):
            read_bif(tmp_path / "nothing.bif")
        with pytest.raises(OSError, match="is no regular file"):
            read_bif(tmp_path)
        with pytest.raises(OSError, match="is no regular file"):
            write_bif(read_bif(RAIN), tmp_path)
        with pytest.raises(ValueError, match=r"path '\\ud800' holds characters that no name of a file may have"):
            read_bif("\ud800")
        with pytest.raises(FileNotFoundError, match="missing"):
            write_bif(read_bif(RAIN), tmp_path / "missing" / "rain.bif")
        if hasattr(os, "mkfifo"):
            os.mkfifo(tmp_path / "pipe")
            with pytest.raises(OSError, match="is no regular file"):
                read_bif(tmp_path / "pipe")
        with pytest.raises(TypeError, match=r"must be a path, BIF text or a file object\. Got 5 instead"):
            read_bif(5)

    def test_limits(self):
        for source in (RAIN, RAIN.encode(), io.StringIO(RAIN), io.BytesIO(RAIN.encode())):
            assert read_bif(source, max_bytes=len(RAIN), max_nodes=3, max_cells=20) == read_bif(RAIN)
        for source in (RAIN, RAIN.encode(), io.StringIO(RAIN), io.BytesIO(RAIN.encode())):
            with pytest.raises(TooLargeError, match=f"longer than max_bytes={len(RAIN) - 1}"):
                read_bif(source, max_bytes=len(RAIN) - 1)
        with pytest.raises(TooLargeError, match="line 9, column 10: there are more than max_nodes=2 variables"):
            read_bif(RAIN, max_nodes=2)
        with pytest.raises(
            TooLargeError, match="line 19, column 15: the tables have 20 cells, 12 of them here; max_cells=19"
        ):
            read_bif(RAIN, max_cells=19)

    @pytest.mark.parametrize(
        ("cardinality", "n_parents", "message"), [(4, 30, "4611686018427387904 of them"), (1, 64, "at most 63")]
    )
    def test_tables_are_measured_before_they_are_made(self, cardinality, n_parents, message):
        states = ", ".join("abcd"[:cardinality])
        text = "".join(
            f"variable x{i} {{ type discrete [ {cardinality} ] {{ {states} }}; }}\n" for i in range(n_parents + 1)
        )
        row = ", ".join([repr(1 / cardinality)] * cardinality)
        text += "".join(f"probability ( x{i} ) {{ table {row}; }}\n" for i in range(1, n_parents + 1))
        parents = ", ".join(f"x{i}" for i in range(1, n_parents + 1))
        text += f"probability ( x0 | {parents} ) {{ default {row}; }}\n"
        start = time.process_time()
        with pytest.raises(TooLargeError, match=message):
            read_bif(text)
        assert time.process_time() - start < 0.5

    @pytest.mark.parametrize(
        "text",
        [
            " " * 10**6 + "{",
            "/*" * 10**6,
            "/**/" * 10**5 + "{",
            "//\n" * 10**5 + "{",
            "variable " + "/ " * 10**5,
            "variable " + "a/" * 10**6,
            "variable " + '"' * 10**6,
            "network x {" + 'property "' * 10**5,
            "{" * 10**6,
            "variable x { type discrete [ 2 ] { a, b }; } probability ( x ) { table " + "0 " * 10**5,
            "variable x { type discrete [ 2 ] { a, b }; } probability ( x ) {" + "(a) 1;" * 10**5,
            "variable x { type discrete [ 2 ] { a, b }; } probability ( x ) { table " + "0" * 10**6 + "." * 2 + ";}",
        ],
    )
    def test_time_is_linear(self, text):
        start = time.process_time()
        with pytest.raises(ValueError, match=r"^BIF text, line \d+, column \d+: ") as caught:
            read_bif(text)
        assert time.process_time() - start < 5
        assert len(str(caught.value)) < 300

    @pytest.mark.parametrize(
        ("told", "states", "message"),
        [
            ("property skvbem_states str;", "0, 1", "line 3, column 1: the property skvbem_states must stand once and"),
            ("property skvbem_states;", "0, 1", "line 3, column 1: the property skvbem_states must stand once and"),
            (
                "property skvbem_states int bool;",
                "0, 1",
                "line 3, column 1: the property skvbem_states must stand once",
            ),
            ("property skvbem_states int;\nproperty skvbem_states int;", "0, 1", "line 4, column 1: the property skv"),
            ("property skvbem_states int;", "0, b", "line 3, column 1: the states must be different and of type int"),
            ("property skvbem_states int;", "0, 01", "line 3, column 1: the states must be different and of type int"),
            ("property skvbem_states int;", "0, +1", "line 3, column 1: the states must be different and of type int"),
            ("property skvbem_states int;", "0, 1_0", "line 3, column 1: the states must be different and of type int"),
            ("property skvbem_states int;", "0, 1.0", "line 3, column 1: the states must be different and of type int"),
            ("property skvbem_states int;", "0, " + "9" * 10**5, "line 3, column 1: the states must be different and"),
            (
                "property skvbem_states float;",
                "0.0, -0.0",
                "line 3, column 1: the states must be different and of type",
            ),
            ("property skvbem_states float;", "0.0, nan", "line 3, column 1: the states must be different and of type"),
            ("property skvbem_states float;", "0.0, inf", "line 3, column 1: the states must be different and of type"),
            ("property skvbem_states float;", "0.0, 1", "line 3, column 1: the states must be different and of type"),
            ("property skvbem_states bool;", "True, 0", "line 3, column 1: the states must be different and of type"),
        ],
    )
    def test_what_a_property_says_of_states_is_checked(self, told, states, message):
        text = f"variable x {{ type discrete [2] {{ {states} }};\n\n{told} }}\nprobability (x) {{ default 0.5 0.5; }}"
        with pytest.raises(ValueError, match=re.escape(message)):
            read_bif(text)

    def test_other_properties_are_skipped(self):
        text = one_variable("0.5, 0.5").replace("}; }", "}; property skvbem_states_x int; property x skvbem_states; }")
        assert read_bif(text).states["x"] == ("a", "b")

    def test_xml_is_told_apart(self, tmp_path):
        path, secret = tmp_path / "net.xml", tmp_path / "secret"
        secret.write_text("secret")
        for text in (
            f'<?xml version="1.0"?>\n<!DOCTYPE BIF [<!ENTITY x SYSTEM "file://{secret}">]>\n<BIF>&x;</BIF>',
            "<!DOCTYPE BIF [\n<!ELEMENT BIF (NETWORK)*>\n]>",
            "\n<BIF VERSION='0.3'></BIF>",
        ):
            path.write_text(text)
            for source in (path, text):
                with pytest.raises(
                    ValueError, match=r"line [12], column 1: this is XML, as of XMLBIF: read_network\(.* reads that"
                ) as caught:
                    read_bif(source)
                assert "secret" not in str(caught.value)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("variable x { type discrete [ 2 ] { ", "line 1, column 30: the number of states must be"),
            ("probability ( x | ", "line 1, column 145: a table has at most 63 parents"),
            ("probability ( x ) { (", "line 1, column 21: a row has at most 63 states of parents"),
            ("probability ( x ) { table ", "line 1, column 27: a probability is a number"),
        ],
    )
    def test_lists_are_not_read_beyond_what_they_may_hold(self, text, message):
        text += "b " * 10**6
        tracemalloc.start()
        with pytest.raises(ValueError, match=message):
            read_bif(text)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 10 * len(text)  # tokens take 75 bytes for one

    def test_names_are_plain_strings(self):
        for name in ("__class__", "../../x", "x" * 10**5, "🐑", "-", "two words", "%s{}", "nan"):
            network = read_bif(write_bif(Network(DAG([name], {}), {name: (name, "b")}, {name: [0.5, 0.5]})))
            assert network.dag.nodes == (name,)
            assert network.states[name] == (name, "b")

    @settings(deadline=None, max_examples=300)
    @given(st.data())
    def test_a_damaged_text_is_read_or_refused_with_its_place(self, data):
        text = RAIN
        for _ in range(data.draw(st.integers(1, 3))):
            start = data.draw(st.integers(0, len(text)))
            end = data.draw(st.integers(start, min(start + 3, len(text))))
            text = text[:start] + data.draw(st.text(alphabet='{}()[]|,;"/* \n0.1-eno\0', max_size=3)) + text[end:]
        self.read_or_refused(text)
        self.read_or_refused(text[: data.draw(st.integers(0, len(text)))])

    def read_or_refused(self, text):
        assume("{" in text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            try:
                network = read_bif(text)
            except ValueError as error:
                refused = str(error)
            else:
                refused = ""
                assert all(np.allclose(table.sum(-1), 1, atol=1e-12) for table in network.tables.values())
        assert not refused or re.match(r"BIF text, line \d+, column \d+: ", refused)
