"""Networks in XMLBIF, NET and DSL, and what all formats have in common: round trips, refusals, limits."""

import gzip
import io
import re
import time
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skvbem import Network, read_bif, read_network, write_bif, write_network
from skvbem.errors import DataWarning, StructureError, TooLargeError
from skvbem.graphs.dag import DAG

PUBLISHED = Path(__file__).parents[1] / "data" / "third_party" / "cc-by-sa"
FORMATS = ("bif", "xmlbif", "net", "dsl")

RAIN = Network(
    DAG.from_string("[rain][wet|rain][slip|rain:wet]"),
    {"rain": ("no", "yes"), "wet": ("dry", "damp", "soaked"), "slip": ("no", "yes")},
    {
        "rain": [0.75, 0.25],
        "wet": [[0.5, 0.25, 0.25], [0.125, 0.375, 0.5]],
        "slip": [[[1, 0], [0.75, 0.25], [0.5, 0.5]], [[0.875, 0.125], [0.625, 0.375], [0.25, 0.75]]],
    },
)

XMLBIF = """<?xml version="1.0" encoding="US-ASCII"?>
<!DOCTYPE BIF [
  <!ELEMENT BIF ( NETWORK )*>
  <!ATTLIST BIF VERSION CDATA #REQUIRED>
  <!ATTLIST VARIABLE TYPE (nature|decision|utility) "nature">
]>
<BIF VERSION="0.3">
<NETWORK>
<NAME>Rain &amp; more</NAME>
<PROPERTY>a comment</PROPERTY>
<VARIABLE TYPE="nature">
  <NAME> rain </NAME> <OUTCOME>no</OUTCOME> <OUTCOME> yes </OUTCOME> <PROPERTY>position = (1, 2)</PROPERTY>
</VARIABLE>
<VARIABLE><NAME>wet</NAME><OUTCOME>dry</OUTCOME><OUTCOME>damp</OUTCOME><OUTCOME>soaked</OUTCOME></VARIABLE>
<VARIABLE><NAME>slip</NAME><OUTCOME>no</OUTCOME><OUTCOME>yes</OUTCOME></VARIABLE>
<DEFINITION><FOR>slip</FOR><GIVEN>wet</GIVEN><GIVEN>rain</GIVEN>
  <TABLE>1 0 .875 .125 <!-- wet is dry; now damp --> .75 .25 .625 .375
  5e-1 5E-1 +.25 .75</TABLE></DEFINITION>
<DEFINITION><FOR>wet</FOR><GIVEN>rain</GIVEN><TABLE>.5 .25 .25 .125 .375 .5</TABLE></DEFINITION>
<DEFINITION><FOR>rain</FOR><TABLE>0.75 0.25</TABLE></DEFINITION>
</NETWORK>
</BIF>
"""

NET = r"""% written by hand
net { node_size = (50 50); HR_Desc = "a \"b; c}"; HR_Zoom = 1.5; }
node rain { label = ""; position = (1 2); states = ("no" "yes"); HR_LinkMode = "[wet:0]"; }
discrete node wet { states = (dry "damp" soaked); subtype = label; }
node slip { states = ("no" "yes"); }
potential ( slip | wet rain )
{
  data = ((( 1 0 ) % wet=dry rain=no; ( )
    ( .875 .125 )) (( .75 .25 ) ( .625 .375 )) ((5e-1 5E-1)(+.25 .75)));
  experience = ((1 2) (3 4) (5 6)); % cases
}
potential ( wet | rain ) { data = (.5 .25 .25 .125 .375 .5); }
potential ( rain | ) { data = ( 0.75 0.25 ); }
"""

DSL = r"""net "Rain" // written by hand
{
 HEADER = { ID = Rain; NAME = "a {b}; \"c\""; };
 NUMSAMPLES = 1000;
 USER_PROPERTIES = { author = "me"; };
 node rain
 {
  TYPE = CPT; HEADER = { ID = rain; NAME = "Rain, 50%"; };
  SCREEN = { POSITION = { CENTER_X = 0; WIDTH = 76; }; COLOR = 16250597; };
  PARENTS = ();
  DEFINITION = { NAMESTATES = (no, yes); PROBABILITIES = (0.75, 0.25); };
  EXTRA_DEFINITION = { FAULT_NAMES = ("", ""); DOCUMENTATION = { }; QUESTION = ""; };
 };
 node wet
 {
  TYPE = CPT; PARENTS = (rain);
  DEFINITION = { NAMESTATES = (dry, damp, soaked); PROBABILITIES = (.5, .25, .25 | .125, .375, .5); };
 };
 node slip
 {
  TYPE = CPT; PARENTS = (wet, rain);
  DEFINITION = {
   NAMESTATES = (no, yes); /* rain runs faster than wet */
   PROBABILITIES = (1, 0, .875, .125, .75, .25, .625, .375, // and when it is soaked
     5e-1, 5E-1, +.25, .75);
  };
 };
};
"""
TEXTS = {"xmlbif": XMLBIF, "net": NET, "dsl": DSL}


def with_change(format, old, new):
    assert TEXTS[format].count(old) == 1
    return TEXTS[format].replace(old, new)


@pytest.mark.parametrize("format", TEXTS)
@pytest.mark.parametrize("change", [str, str.encode, lambda text: text.replace("\n", "\r\n"), lambda t: "\ufeff" + t])
def test_a_text_as_others_write_it(format, change):
    assert read_network(change(TEXTS[format]), format) == RAIN


def random_network(seed, format):
    """Nodes in any order, awkward names where the format has them, states of every kind, rows with zeros."""
    rng = np.random.default_rng(seed)
    names = ["node", "states", "_1", "net", "data", "CPT", "None", "a2"]
    words = ["no", "yes", "0", "_x", "nan", "TRUE", "50", "default"]
    if format in ("bif", "xmlbif"):
        names += ["two words", "a<b>&", "x|y", "ä", "{", "%", "'", "//"]
    if format == "xmlbif":
        names += ['"', "&amp;", "<!--", "]]>", "a  b"]
    if format != "dsl":
        words += ["<5", ">=7.5", "two words", "a,b", "(", "%", "{", ";", "Ω", "//"]
    nodes = rng.permutation(names)[: rng.integers(1, 7)].tolist()
    parents = {
        child: rng.permutation(nodes[:place])[: rng.integers(0, 4)].tolist() for place, child in enumerate(nodes)
    }
    kinds = (
        lambda n: rng.permutation(words)[:n].tolist(),
        lambda n: (rng.permutation(20) - 5)[:n].tolist(),
        lambda n: [True, False][:n],
        lambda n: rng.normal(size=n).tolist(),
        lambda n: pd.IntervalIndex.from_breaks([-np.inf, *range(n - 1), 1e300]).tolist(),
    )
    states = {node: kinds[rng.integers(len(kinds))](rng.integers(1, 5)) for node in nodes}
    dag = DAG(rng.permutation(nodes).tolist(), parents)
    tables = {}
    for node in nodes:
        table = rng.gamma(0.3, size=[len(states[member]) for member in dag.family(node)])
        table[..., 1:][rng.random(table[..., 1:].shape) < 0.2] = 0
        tables[node] = table / table.sum(-1, keepdims=True)
    return Network(dag, states, tables)


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_written_comes_back_bit_for_bit(format):
    for seed in range(40):
        network = random_network(seed, format)
        text = write_network(network, format=format)
        read = read_network(text, format)
        assert read == network
        assert repr(read.states) == repr(network.states)  # 1, 1.0 and True are equal
        assert all(read.tables[node].tobytes() == table.tobytes() for node, table in network.tables.items())
        assert write_network(read, format=format) == text


def test_parents_stand_before_their_children_in_dsl():
    """Which pyAgrum needs; the order of the nodes stands in a property."""
    network = Network(
        RAIN.dag.reorder(("slip", "wet", "rain")), RAIN.states, RAIN.tables | {"slip": np.full((3, 2, 2), 0.5)}
    )
    text = write_network(network, format="dsl")
    assert re.findall(r"^ node (\w+)$", text, re.MULTILINE) == ["rain", "wet", "slip"]
    assert read_network(text, "dsl") == network


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["asia", "sachs", "alarm"])
def test_published_networks(name, format):
    if not (PUBLISHED / f"{name}.bif").exists():
        pytest.skip("third-party data are not part of the source distribution")
    network = read_network(PUBLISHED / f"{name}.bif")
    assert read_network(write_network(network, format=format), format) == network


class TestFormats:
    """The format is that of the path's end, or of `format`."""

    @pytest.mark.parametrize("end", [".bif", ".xml", ".xmlbif", ".bifxml", ".net", ".dsl", ".NET"])
    def test_the_end_of_a_path(self, end, tmp_path):
        for path in (tmp_path / f"rain{end}", str(tmp_path / f"rain{end}.gz")):
            text = write_network(RAIN, path)
            data = Path(path).read_bytes()
            assert (gzip.decompress(data) if str(path).endswith(".gz") else data) == text.encode()
            assert read_network(path) == RAIN
            with open(path, "rb") as file:
                assert read_network(file) == RAIN

    def test_equal_networks_are_equal_compressed_files(self, tmp_path):
        write_bif(RAIN, tmp_path / "a.bif.gz")
        assert (tmp_path / "a.bif.gz").read_bytes()[4:8] == bytes(4)  # no time of writing

    def test_the_format_counts_more_than_the_end(self, tmp_path):
        write_network(RAIN, tmp_path / "rain.bif", "xmlbif")
        assert read_network(tmp_path / "rain.bif", "xmlbif") == RAIN
        with pytest.raises(
            ValueError, match=r"line 1, column 1: this is XML, as of XMLBIF: read_network\(..., format='x"
        ):
            read_network(tmp_path / "rain.bif")

    @pytest.mark.parametrize("source", [NET, NET.encode(), io.StringIO(NET), "rain.xdsl", "rain"])
    def test_no_format(self, source):
        with pytest.raises(
            ValueError, match=r"^read_network takes the format from the end of a path, \.bif, .* format=, one"
        ):
            read_network(source)
        with pytest.raises(
            ValueError, match=r"'format' must be one of 'bif', .*Got 'nett' instead\. Did you mean 'net'"
        ):
            read_network(source, "nett")
        with pytest.raises(ValueError, match="'format' must be one of"):
            read_network(source, 5)

    def test_no_format_to_write(self):
        with pytest.raises(
            ValueError, match=r"write_network takes the format from the end of a path, .* Got no path instead"
        ):
            write_network(RAIN)
        with pytest.raises(TypeError, match=r"write_network takes a Network first\. Got a str instead"):
            write_network("x", format="net")

    @pytest.mark.parametrize("format", TEXTS)
    def test_origins_in_messages(self, format, tmp_path):
        path = tmp_path / f"empty.{format}"
        path.write_text(" ")
        with pytest.raises(ValueError, match=re.escape(f"{path}, line 1, column ")):
            read_network(path, format)
        title = format.upper()
        with pytest.raises(ValueError, match=f"^{title} text, line 1, column "):
            read_network(" ", format)
        with pytest.raises(TypeError, match=f"source must be a path, {title} text or a file object"):
            read_network(5, format)


class TestNamesThatCannotBeWritten:
    @pytest.mark.parametrize(
        ("format", "name"),
        [
            *(("xmlbif", name) for name in (" a", "a ", "", "a\nb", "a\0", "\ud800", "\uffff", 5)),
            *(("net", name) for name in ("two words", "1a", "a-b", "ä", "", "a\n", 5)),
            *(("dsl", name) for name in ("two words", "1a", "a-b", "ä", "", "a\n", 5)),
        ],
    )
    def test_names(self, format, name):
        network = Network(DAG([name], {}), {name: ("a", "b")}, {name: [0.5, 0.5]})
        with pytest.raises(
            ValueError, match=rf"{format.upper()}.* name .*|name in .*{re.escape(repr(name))} instead; rename"
        ):
            write_network(network, format=format)

    @pytest.mark.parametrize(
        ("format", "state"),
        [
            *(("xmlbif", state) for state in (" a", "", "a\tb")),
            *(("net", state) for state in ('a"b', "a\\b", "a\nb")),
            *(("dsl", state) for state in ("a b", "<5", "a\n", "")),
        ],
    )
    def test_states(self, format, state):
        network = Network(DAG(["x"], {}), {"x": (state, "b")}, {"x": [0.5, 0.5]})
        with pytest.raises(ValueError, match=rf"{re.escape(repr(state))}.* instead; rename"):
            write_network(network, format=format)

    @pytest.mark.parametrize("format", FORMATS)
    @pytest.mark.parametrize("states", [(None,), (0, None), (0.0, np.inf), (1, 2.5), (b"a", b"b")])
    def test_states_of_other_types(self, format, states):
        network = Network(DAG(["x"], {}), {"x": states}, {"x": np.full(len(states), 1 / len(states))})
        with pytest.raises(ValueError, match=r"The states of node 'x' must be all str, .* X\.astype\(str\)"):
            write_network(network, format=format)


FAULTS = [
    (
        "xmlbif",
        "<FOR>rain</FOR>",
        "<FOR>Rain</FOR>",
        "line 12, column 3: variable 'rain' has no probability block. Each needs one.",
    ),
    (
        "xmlbif",
        "<GIVEN>rain</GIVEN><TABLE>.5",
        "<GIVEN>wet</GIVEN><TABLE>.5",
        "line 19, column 13: The graph must have no",
    ),
    (
        "xmlbif",
        "<TABLE>0.75 0.25<",
        "<TABLE>0.75<",
        "line 20, column 28: expected 2 numbers, 2 states x 1 configurations",
    ),
    (
        "xmlbif",
        "<TABLE>0.75 0.25<",
        "<TABLE>0.75 x<",
        "line 20, column 28: a probability is a number from 0 to 1. Found 'x'.",
    ),
    (
        "xmlbif",
        "<TABLE>0.75 0.25<",
        "<TABLE>0.75 NaN<",
        "line 20, column 28: a probability is a number from 0 to 1. Found 'NaN'",
    ),
    ("xmlbif", "<TABLE>0.75 0.25</TABLE>", "", "line 20, column 13: the block of 'rain' has no probabilities."),
    (
        "xmlbif",
        ".125 .375 .5<",
        "NaN NaN NaN<",
        "line 19, column 13: the block of 'wet' has no row for (yes), and no default.",
    ),
    (
        "xmlbif",
        ".125 .375 .5<",
        ".125 .375 .4<",
        "line 19, column 46: probabilities must sum to one. These sum to 0.9. They are the row for (yes).",
    ),
    (
        "xmlbif",
        '<VARIABLE TYPE="nature">',
        '<VARIABLE TYPE="decision">',
        "line 11, column 1: a Network has variables of TYPE 'nature' only. Found 'decision'.",
    ),
    ("xmlbif", "<NAME>slip</NAME>", "", "line 15, column 1: a VARIABLE must have one NAME and an OUTCOME or more."),
    ("xmlbif", "<NAME>slip</NAME>", "<NAME>wet</NAME>", "line 15, column 11: variable 'wet' is declared twice."),
    ("xmlbif", "<OUTCOME>damp<", "<OUTCOME>dry<", "line 14, column 49: state 'dry' is listed twice."),
    ("xmlbif", "<FOR>wet</FOR>", "", "line 19, column 1: a DEFINITION must be FOR one variable, with one TABLE."),
    (
        "xmlbif",
        "<FOR>wet</FOR>",
        "<FOR>slip</FOR>",
        "line 19, column 13: variable 'slip' has a probability block already.",
    ),
    (
        "xmlbif",
        "<PROPERTY>a comment</PROPERTY>",
        "<DATA/>",
        "line 10, column 1: expected NAME, PROPERTY, VARIABLE or DEFINITION, found 'DATA'.",
    ),
    ("xmlbif", "</NETWORK>", "", "line 22, column 3: this is no well-formed XML: mismatched tag."),
    (
        "xmlbif",
        "<DEFINITION><FOR>rain</FOR><TABLE>0.75 0.25</TABLE></DEFINITION>",
        "",
        "line 12, column 3: variable 'rain' has no probability",
    ),
    (
        "net",
        "( wet | rain )",
        "( wet | Rain )",
        "line 12, column 19: there is no variable 'Rain'. Did you mean 'rain'?",
    ),
    ("net", "( wet | rain )", "( wet rain )", "line 12, column 17: expected '|' or ')', found 'rain'."),
    ("net", "( 0.75 0.25 )", "( 0.75 0.25 0 )", "line 13, column 31: expected 2 numbers, 2 states x 1 configurations"),
    (
        "net",
        "( 0.75 0.25 )",
        "( 0.75 abc )",
        "line 13, column 38: a number of a potential is not negative, and not above 1e100. Found 'abc'.",
    ),
    (
        "net",
        "( 0.75 0.25 )",
        "( 0.75 -0.25 )",
        "line 13, column 38: a number of a potential is not negative, and not above 1e100. Found '-0.25'.",
    ),
    (
        "net",
        "( 0.75 0.25 )",
        "( normal ( 0, 1 ) )",
        "line 13, column 33: a number of a potential is not negative, and not above 1e100. Found 'normal'.",
    ),
    ("net", "( 0.75 0.25 )", "0.75 0.25", "line 13, column 31: expected '(' before the probabilities, found '0.75'."),
    ("net", "( 0.75 0.25 )", "(( 0.75 0.25 )", "line 13, column 45: expected a number or ')', found ';'."),
    ("net", "data = ( 0.75 0.25 ); ", "", "line 13, column 13: the block of 'rain' has no probabilities."),
    (
        "net",
        ".125 .375 .5)",
        "0 0 0)",
        "line 12, column 35: probabilities must sum to one. These sum to 0. They are the row for (yes).",
    ),
    (
        "net",
        "discrete node wet",
        "utility wet",
        "line 4, column 1: expected 'net', 'node' or 'potential' (a Network has discrete nodes of chance",
    ),
    (
        "net",
        "discrete node wet",
        "discrete decision wet",
        "line 4, column 10: expected 'node' (a Network has nodes of chance only), found 'decision'.",
    ),
    (
        "net",
        'states = (dry "damp" soaked); ',
        "",
        "line 4, column 15: node 'wet' must have one list of states, of 1 or more.",
    ),
    ("net", '(dry "damp" soaked)', "()", "line 4, column 15: node 'wet' must have one list of states, of 1 or more."),
    ("net", '(dry "damp" soaked)', '(dry "damp" damp)', "line 4, column 42: state 'damp' is listed twice."),
    ("net", '"[wet:0]"', '"[wet:0]', "line 5, column 32: this quoted name is not closed"),
    ("net", "(50 50)", "(50 50", "line 2, column 25: expected the closing bracket of this value, found ';'."),
    (
        "dsl",
        "PARENTS = (rain)",
        "PARENTS = (Rain)",
        "line 16, column 26: there is no variable 'Rain'. Did you mean 'rain'?",
    ),
    (
        "dsl",
        "TYPE = CPT; PARENTS = (rain)",
        "TYPE = NOISY_MAX; PARENTS = (rain)",
        "line 16, column 10: expected CPT, the type of nodes that a Network has, found 'NOISY_MAX'.",
    ),
    ("dsl", "(0.75, 0.25)", "(0.75, x)", "line 11, column 65: a probability is a number from 0 to 1. Found 'x'."),
    ("dsl", "(0.75, 0.25)", "(0.75)", "line 11, column 58: expected 2 numbers, 2 states x 1 configurations"),
    ("dsl", "PROBABILITIES = (0.75, 0.25);", "", "line 6, column 7: the block of 'rain' has no probabilities."),
    ("dsl", "NAMESTATES = (dry, damp, soaked);", "", "line 14, column 7: node 'wet' must have one list NAMESTATES"),
    ("dsl", 'net "Rain"', 'network "Rain"', "line 1, column 1: expected 'net', found 'network'."),
    (
        "dsl",
        "NUMSAMPLES = 1000;",
        "NUMSAMPLES = (1000;",
        "line 4, column 20: expected the closing bracket of this value, found ';'.",
    ),
    (
        "dsl",
        'author = "me";',
        'skvbem_nodes = "rain wet";',
        "line 5, column 37: the order must name each variable once.",
    ),
]


@pytest.mark.parametrize(("format", "old", "new", "message"), FAULTS)
def test_faults_are_told_with_their_place(format, old, new, message):
    with pytest.raises(ValueError, match=re.escape(f"{format.upper()} text, {message}")) as caught:
        read_network(with_change(format, old, new), format)
    assert len(str(caught.value)) < 300


class TestCommonToAllFormats:
    @pytest.mark.parametrize("format", FORMATS)
    def test_rounding_tolerance_and_missing_rows(self, format):
        text = write_network(RAIN, format=format)
        text, n = re.subn(r"\b0\.75(, | )0\.25\b", r"0.333333\g<1>0.666669", text, count=1)
        assert n == 1
        if format != "net":  # in which numbers are weights
            with pytest.raises(
                ValueError, match=r"sum to 1\.000002\. If that is near enough, tolerance=2e-6 divides such rows"
            ):
                read_network(text, format)
        with pytest.warns(
            DataWarning, match=r"line \d+, column \d+: probabilities as printed sum to 1\.000002"
        ) as told:
            network = read_network(text, format, tolerance=2e-6)
        assert told[0].filename == __file__
        np.testing.assert_allclose(network.tables["rain"], np.array([0.333333, 0.666669]) / 1.000002, rtol=1e-12)
        with pytest.raises(ValueError, match=r"'tolerance' must be a number from 0 to 1"):
            read_network(text, format, tolerance=-1)
        text = text.replace("0.333333", "NaN").replace("0.666669", "NaN")
        with pytest.raises(ValueError, match=r"line \d+, column \d+: the block of 'rain' has no probabilities"):
            read_network(text, format)

    @pytest.mark.parametrize("format", FORMATS)
    def test_limits(self, format):
        text = write_network(RAIN, format=format)
        assert read_network(text, format, max_bytes=len(text), max_nodes=3, max_cells=20) == RAIN
        for limit in ({"max_bytes": len(text) - 1}, {"max_nodes": 2}, {"max_cells": 19}):
            with pytest.raises(TooLargeError, match=f"{next(iter(limit))}=\\d+"):
                read_network(text, format, **limit)

    @pytest.mark.parametrize("format", FORMATS)
    def test_a_huge_table_is_refused_with_its_size(self, format):
        nodes = [f"x{i}" for i in range(40)]
        network = Network(DAG(nodes, {}), dict.fromkeys(nodes, ("a", "b")), {node: [0.5, 0.5] for node in nodes})
        text = write_network(network, format=format)
        edit = {
            "bif": (r"\( x0 \)", f"( x0 | {' '.join(nodes[1:])} )"),
            "net": (r"\(x0\)", f"(x0 | {' '.join(nodes[1:])})"),
            "xmlbif": ("<FOR>x0</FOR>", f"<FOR>x0</FOR>{''.join(f'<GIVEN>{node}</GIVEN>' for node in nodes[1:])}"),
            "dsl": (r"PARENTS = \(\)", f"PARENTS = ({', '.join(nodes[1:])})"),
        }[format]
        text, n = re.subn(*edit, text, count=1)
        assert n == 1
        start = time.process_time()
        with pytest.raises(TooLargeError, match=r"1099511627776 of them here; .* would take 8\.8e\+03 GB"):
            read_network(text, format)
        assert time.process_time() - start < 0.5

    def test_numbers_of_net_are_weights(self):
        text = with_change("net", "( 0.75 0.25 )", "( 30 10 )").replace(".5 .25 .25 .125 .375 .5", "4 2 2 1 3 4")
        with pytest.warns(DataWarning, match=r"line 12, .* sum to 8, not to one\. .* as in 3 rows in all"):
            assert read_network(text, "net") == RAIN
        for number in ("1e101", "-1", "inf"):
            with pytest.raises(ValueError, match="a number of a potential is not negative, and not above 1e100"):
                read_network(with_change("net", "( 0.75 0.25 )", f"( 1 {number} )"), "net")

    def test_a_default_of_bif_is_a_row_or_a_whole_table(self):
        head = "".join(f"variable {v} {{ type discrete [ 2 ] {{ f, t }}; }}\n" for v in "ab")
        head += "probability ( a ) { default 0.5 0.5; }\n"
        whole = read_bif(head + "probability ( b | a ) { default 0.1 0.2 0.9 0.8; }").tables["b"]
        np.testing.assert_array_equal(whole, [[0.1, 0.9], [0.2, 0.8]])
        beside = read_bif(head + "probability ( b | a ) { (t) 1 0; default 0.1 0.2 0.9 0.8; }").tables["b"]
        np.testing.assert_array_equal(beside, [[0.1, 0.9], [1, 0]])
        with pytest.raises(
            ValueError, match=r"line 4, column 25: expected 4 numbers, 2 states x 2 configurations .* Found 3"
        ):
            read_bif(head + "probability ( b | a ) { default 0.1 0.2 0.9; }")


class TestHostileXML:
    @pytest.mark.parametrize(
        "doctype",
        [
            '<!DOCTYPE BIF [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>',
            '<!DOCTYPE BIF [<!ENTITY a SYSTEM "file:///etc/passwd">]>',
            '<!DOCTYPE BIF [<!ENTITY % a SYSTEM "http://127.0.0.1/x"> %a;]>',
        ],
    )
    def test_entities_are_refused(self, doctype):
        text = f"{doctype}\n<BIF><NETWORK><NAME>&a;</NAME></NETWORK></BIF>"
        with pytest.raises(
            ValueError, match=r"^XMLBIF text, line 1, column \d+: .* entity 'a'\. Entities are not read"
        ):
            read_network(text, "xmlbif")

    def test_a_billion_laughs(self):
        lines = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
        text = f'<!DOCTYPE BIF [<!ENTITY l0 "lol">{lines}]>\n<BIF><NETWORK><NAME>&l9;</NAME></NETWORK></BIF>'
        tracemalloc.start()
        start = time.process_time()
        with pytest.raises(ValueError, match="Entities are not read"):
            read_network(text, "xmlbif")
        assert time.process_time() - start < 0.5
        assert tracemalloc.get_traced_memory()[1] < 10**6
        tracemalloc.stop()

    def test_entities_of_files_elsewhere(self, tmp_path):
        (tmp_path / "secret.dtd").write_text('<!ENTITY a "secret">')
        for name in (tmp_path / "secret.dtd", "secret.dtd"):
            text = f'<!DOCTYPE BIF SYSTEM "{name}">\n<BIF><NETWORK><NAME>&a;</NAME></NETWORK></BIF>'
            with pytest.raises(ValueError, match=r"line 2, column 21: .* entity 'a'"):
                read_network(text, "xmlbif")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("<BIF>" * 10**4, "elements stand in each other more than 100 deep"),
            (
                f'<!DOCTYPE BIF [<!ATTLIST b a CDATA "{"x" * 10**6}">]><BIF>{"<b/>" * 10**4}</BIF>',
                "or longer attributes",
            ),
            (f"<!DOCTYPE BIF [{'<!ATTLIST b a CDATA #IMPLIED>' * 10**4}]><BIF/>", "declares more"),
            ("<BIF>" + "<NETWORK/>" * 10**4 + "</BIF>", "one NETWORK in it, found 'BIF' with 10000"),
            ("<BIF>" + "&amp;" * 10**4 + "</BIF>", "one NETWORK in it, found 'BIF' with 0"),
            ("<BIF " + " ".join(f"a{i}=''" for i in range(10**4)) + "/>", "found 'BIF' with 0"),
            ("<BIF><NETWORK><VARIABLE><NAME>x</NAME>" + "<OUTCOME/>" * 10**4, "no well-formed XML: no element found"),
            ("\n" * 10**6, "no well-formed XML: no element found"),
            ("<\0>", "no well-formed XML"),
            ("<BIF>\ud800</BIF>", "no well-formed XML"),
            ('<?xml version="1.0" encoding="UTF-16"?><BIF/>', "found 'BIF' with 0"),
            ("<smile version='1.0'/>", "expected an element BIF with one NETWORK in it, found 'smile' with 0."),
        ],
    )
    def test_time_is_linear_and_faults_have_a_place(self, text, message):
        start = time.process_time()
        with pytest.raises(ValueError, match=rf"^XMLBIF text, line \d+, column \d+: .*{message}"):
            read_network(text, "xmlbif")
        assert time.process_time() - start < 2


@pytest.mark.parametrize("format", ["net", "dsl"])
@pytest.mark.parametrize(
    "text",
    [
        " " * 10**6 + "{",
        "/*" * 10**6,
        "//\n" * 10**5 + "{",
        "net x { a = " + "(" * 10**5,
        "net x { a = " + "{" * 10**5,
        'net x { a = "' + "\\" * 10**6,
        'net x { a = "' + '\\"' * 10**6,
        "net { } node x { states = (" + "a " * 3 * 10**4,
        "net { } node x { states = (a b); } potential (x) { data = (" + "0 " * 10**5,
        "net { } node x { states = (a b); } potential (x) { data = " + "(" * 10**5,
        "net x { node x { DEFINITION = { PROBABILITIES = (" + "0, " * 10**5,
        "net { } " + "potential (x) { data = (0 %\n x); } " * 10**3,
    ],
)
def test_time_is_linear(format, text):
    start = time.process_time()
    with pytest.raises(ValueError, match=rf"^{format.upper()} text, line \d+, column \d+: ") as caught:
        read_network(text, format)
    assert time.process_time() - start < 5
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("format", TEXTS)
def test_changed_texts_are_read_or_refused(format):
    rng = np.random.default_rng(0)
    pieces = [
        *'{}()<>/|,;="%&\\ \n\0',
        "0.1",
        "-1",
        "nan",
        "node",
        "states",
        "<TABLE>",
        "]]>",
        "\ud800",
        "data",
        "1e999",
    ]
    n_read, faults = 0, []
    for _ in range(300):
        text = TEXTS[format]
        for _ in range(rng.integers(1, 4)):
            start = rng.integers(len(text))
            text = text[:start] + str(rng.choice(pieces)) * rng.integers(0, 2) + text[start + rng.integers(0, 4) :]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            try:
                network = read_network(text, format)
            except ValueError as error:
                faults.append(str(error))
            else:
                n_read += 1
                assert all(np.allclose(table.sum(-1), 1, atol=1e-12) for table in network.tables.values())
    assert 20 < n_read < 280
    assert all(re.match(rf"{format.upper()} text, line \d+, column \d+: ", fault) for fault in faults)


def test_structure_errors_are_their_own_kind():
    for old, new in (("| rain )", "| Rain )"), ("( rain | )", "( rain | slip )")):
        with pytest.raises(StructureError):
            read_network(with_change("net", old, new), "net")
