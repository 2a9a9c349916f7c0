"""Results as readers meet them: names of variables and states in text, HTML that nothing breaks, frames."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest

from skvbem import DAG, VBHMM, LabeledTable, Network, VBDiscreteDAG, VBLinearDynamicalSystem, VBMixture, compare
from skvbem.datasets import load_ability_tests, load_carcinoma, load_faithful
from skvbem.estimators import VBFactorAnalysis
from skvbem.evidence import evidence_table
from skvbem.graphs.undirected import UndirectedGraph

RISKY = "<script>&'\""


class Page(HTMLParser):
    """The cells of a page, which closes every tag that it opens."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.cells = [], set(), []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.cells.append(data)


@pytest.fixture(scope="module")
def results():
    slides = load_carcinoma().data
    two = VBDiscreteDAG(latents=2, random_state=0, n_init=2).fit(slides)
    tests = load_ability_tests()
    mixture = VBMixture(2, random_state=0, n_init=2).fit(load_faithful().data)
    chain = DAG([(RISKY, "b"), ("b", "c")])
    table = LabeledTable(np.array([[0.25, 0.75]]), (RISKY, "b"), (np.array([RISKY]), np.array(["no", "yes"])))
    states = {RISKY: ("no", RISKY), "b": (0, 1), "c": (0, 1)}
    even = [[0.5, 0.5], [0.5, 0.5]]
    walk = np.cumsum(np.random.default_rng(0).normal(size=(40, 1)), axis=0)
    parameters = {"rates": [[2.0], [9.0]]}
    counts = VBHMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], parameters, emission="poisson")
    return {
        "dag": (chain, {RISKY, "b", "parents"}),
        "undirected": (UndirectedGraph([RISKY, "b"], [(RISKY, "b")]), {RISKY, "neighbors"}),
        "essential": (chain.essential(), {RISKY, "b", "c"}),
        "network": (Network(chain, states, {RISKY: [0.2, 0.8], "b": even, "c": even}), {RISKY, f"no, {RISKY}"}),
        "labeled table": (table, {RISKY, "b=yes", "0.7500"}),
        "long run": (counts.long_run(), {"mean stay", "10"}),
        "goodness of fit": (two.goodness_of_fit(slides), {"entropy R2", "AIC / BIC"}),
        "evidence": (two.log_evidence(slides, kind="ais", n_chains=8, n_steps=16), {"ais, lower bound"}),
        "evidence table": (evidence_table(two, slides, ["lower_bound", "bic"]), {"score", "lower_bound"}),
        "comparison": (compare({RISKY: two}, slides), {RISKY, "bound"}),
        "summary": (two.summary(), {"lower bound", "free parameters"}),
        "intervals": (mixture.credible_intervals(method="vb"), {"mixture", "weights", "gaussian"}),
        "forecast": (counts.forecast([[[3], [8]]], n_steps=2, level=0.9), {"state=0", "x0", "90 % interval"}),
        "system forecast": (
            VBLinearDynamicalSystem(1, random_state=0, n_init=1, max_iter=20, tol=1.0).fit(walk).forecast(walk, 2),
            {"x0", "95 % interval"},
        ),
        "fit indices": (
            VBFactorAnalysis(2, method="ml", random_state=0)
            .fit(tests.data, sample_weight=tests.sample_weight)
            .fit_indices(tests.data, sample_weight=tests.sample_weight),
            {"RMSEA", "SRMR"},
        ),
    }  # fmt: skip


NAMES = (
    "dag", "undirected", "essential", "network", "labeled table", "goodness of fit", "evidence", "evidence table",
    "comparison", "summary", "intervals", "forecast", "system forecast", "fit indices",
)  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*did not converge", "ignore::skvbem.errors.EvidenceWarning")
@pytest.mark.parametrize("name", NAMES)
def test_notebooks_show_a_table_that_names_cannot_break(results, name):
    result, cells = results[name]
    page = Page(result._repr_html_())
    assert "table" in page.tags
    assert page.tags <= {"table", "caption", "tr", "th", "td", "p", "div", "h4"}
    assert cells <= set(page.cells)


def test_long_tables_are_cut_and_say_where_all_of_it_is():
    dag = DAG.from_edges([], nodes=map(str, range(45)))
    assert "5 more rows: `edges` has all." in dag._repr_html_()
    table = LabeledTable(np.full((50, 2), 0.5), ("a", "b"), (np.arange(50), np.arange(2)))
    assert repr(table).splitlines()[-1] == "10 more rows: to_frame() has all."
    assert len(table.to_frame()) == 50
    wide = LabeledTable(np.full((1, 60), 1 / 60), ("a", "b"), (np.arange(1), np.arange(60)))
    assert max(map(len, repr(wide).splitlines())) <= 110
    assert repr(wide).count("0.0167") == 60


def test_intervals_have_a_row_for_each_parameter(results):
    intervals, _ = results["intervals"]
    frame = intervals.to_frame()
    assert frame.columns.tolist() == ["group", "name", "position", "lower", "upper"]
    row = frame[(frame.name == "means") & (frame.position == "1, 0")].iloc[0]
    assert (row.lower, row.upper) == tuple(ends[1, 0] for ends in intervals["gaussian"]["means"])
    assert isinstance(intervals, dict)


def test_forecasts_have_names_steps_and_intervals():
    tables = {"probabilities": [[0.9, 0.1], [0.2, 0.8]]}
    parameters = {"kind": tables, "count": {"rates": [[2.0], [9.0]]}}
    model = VBHMM.from_parameters(
        [0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], parameters, columns=2, categories={"x0": ["no", "yes"]},
        emission=[("kind", "categorical", 0), ("count", "poisson", 1)],
    )  # fmt: skip
    ahead = model.forecast([np.array([["no", 1], ["yes", 12]], dtype=object)], n_steps=2, level=0.8)
    frame = ahead.to_frame()
    assert frame.step.tolist() == [1] * 5 + [2] * 5
    second = frame[frame.step == 2]
    assert second[second.column == "state"].expected.tolist() == ahead.state_probabilities[0, 1].tolist()
    yes = second[(second.column == "x0") & (second.category == "yes")].iloc[0]
    assert yes.expected == ahead.expected["x0"][0, 1, 1]
    assert np.isnan(yes.lower)
    count = second[second.column == "x1"].iloc[0]
    assert (count.expected, count.lower, count.upper) == tuple(
        of["x1"][0, 1] for of in (ahead.expected, ahead.lower, ahead.upper)
    )
    assert "80 % interval" in repr(ahead)
    assert repr(ahead).splitlines()[-1].split(maxsplit=4)[4] == f"[{count.lower:.0f}, {count.upper:.0f}]"
