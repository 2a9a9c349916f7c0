"""Reports of fits: what they hold is what estimators publish and `credible_intervals` say, for every estimator."""

from html.parser import HTMLParser

import numpy as np
import pytest

from skvbem import VBHMM, VBDiscreteDAG, VBFactorAnalysis, VBMixture, blocks_of
from skvbem.datasets import load_ability_tests
from skvbem.emissions import Gaussian
from skvbem.estimators import Summary

pd = pytest.importorskip("pandas")
approx = pytest.approx

EDGES = [("h", "a"), ("h", "b"), ("a", "c")]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    group = rng.random(60) < 0.5
    columns = {name: np.where(rng.random(60) < np.where(group, 0.9, 0.2), "yes", "no") for name in "abc"}
    frame = pd.DataFrame(columns).astype(object)
    frame.loc[3, "b"] = frame.loc[5, "c"] = None
    return frame


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(size=(40, 2)), rng.normal((6, 3), 1.0, size=(25, 2))])
    X[2, 1] = np.nan
    return X


@pytest.fixture(scope="module")
def network(table):
    return VBDiscreteDAG(EDGES, latents={"h": 2}, n_init=3, random_state=0).fit(table)


@pytest.fixture(scope="module")
def mixture(numbers):
    return VBMixture(2, n_init=3, random_state=0).fit(numbers)


@pytest.fixture(scope="module")
def chain(numbers):
    return VBHMM(2, n_init=3, random_state=0).fit(numbers, lengths=[30, 35])


def same(found, expected):
    np.testing.assert_allclose(np.stack(found), np.stack(expected), rtol=1e-12)


def shown(report, title):
    """The table of a title as rows by name: values, lower and upper ends."""
    (table,) = (table for table in report.tables if table.title == title)
    return {name: [each[k] for each in (table.values, *table.intervals)] for k, name in enumerate(table.rows)}


# What reports hold ----------------------------------------------------------------------------------------------------


def mean_of(draws):
    """Means of draws, by group and name."""
    return {
        group: {name: each.mean(axis=0) for name, each in of_group.items()}
        for group, of_group in draws.parameters.items()
    }


def test_a_network_has_its_tables_with_intervals(network, table):
    report = network.summary(table, level=0.9, method="linear_response", random_state=3)
    draws = network.sample_posterior(table, 2000, method="linear_response", random_state=3)
    intervals = draws.intervals(0.9)["tables"]
    assert [each.title for each in report.tables] == ["h", "a | h", "b | h", "c | a"]
    for node, each in zip(("h", "a", "b", "c"), report.tables):
        assert each.values.ravel() == approx(draws.parameters["tables"][node].mean(axis=0).ravel())
        same([end.ravel() for end in each.intervals], [end.ravel() for end in intervals[node]])
    assert report.tables[3].rows == ["a=no", "a=yes"]
    assert report.tables[3].columns == ["no", "yes"]


def test_a_mixture_has_weights_rows_means_and_deviations(mixture, numbers):
    report = mixture.summary(numbers, level=0.8, random_state=0)
    draws = mixture.sample_posterior(numbers, 2000, random_state=0)
    means_of, intervals = mean_of(draws), draws.intervals(0.8)
    weights = shown(report, "components")
    same(weights["weight"], [means_of["mixture"]["weights"], *intervals["mixture"]["weights"]])
    assert weights["rows"][0] == approx(mixture.counts_)
    assert np.isnan(weights["rows"][1:]).all()
    cells = shown(report, "gaussian")
    means = [means_of["gaussian"]["means"], *intervals["gaussian"]["means"]]
    covariances = [means_of["gaussian"]["covariances"], *intervals["gaussian"]["covariances"]]
    for j in (0, 1):
        same(cells[f"x{j} mean"], [each[:, j] for each in means])
        same(cells[f"x{j} s.d."], [np.sqrt(each[:, j, j]) for each in covariances])


def test_a_chain_has_transitions_and_what_is_seen_in_each_state(chain, numbers):
    report = chain.summary(numbers, lengths=[30, 35], method="linear_response")
    draws = chain.sample_posterior(numbers, 2000, method="linear_response", lengths=[30, 35])
    means_of, intervals = mean_of(draws), draws.intervals(0.95)
    transitions = shown(report, "transitions")
    same(transitions["first"], [means_of["chain"]["startprob"], *intervals["chain"]["startprob"]])
    of_second = [means_of["chain"]["transmat"][1], *(ends[1] for ends in intervals["chain"]["transmat"])]
    same(transitions["after 1"], of_second)
    assert shown(report, "gaussian")["x1 mean"][0] == approx(means_of["gaussian"]["means"][:, 1])


def test_columns_of_several_kinds_stand_in_groups():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"size": rng.normal(size=40), "color": rng.choice(["red", "blue", "pink"], 40)})
    frame["visits"] = rng.poisson(3.0, 40)
    emission = {"gaussian": ["size"], "categorical": ["color"], "poisson": ["visits"]}
    model = VBMixture(2, emission=emission, n_init=2, random_state=0).fit(frame)
    report = model.summary(frame, method="vb")
    assert [each.title for each in report.tables] == ["components", "gaussian", "categorical", "poisson"]
    colors = shown(report, "categorical")
    assert list(colors) == ["color = blue", "color = pink", "color = red"]
    assert sum(of_level[0] for of_level in colors.values()) == approx(1.0)
    ends = model.credible_intervals(None, 0.95, "vb")["categorical"]["probabilities"]
    for level, (_, *of_level) in enumerate(colors.values()):
        same(of_level, [end[:, 0, level] for end in ends])
    low, high = model.credible_intervals(None, 0.95, "vb")["poisson"]["rates"]
    same(shown(report, "poisson")["visits mean"][1:], [low[:, 0], high[:, 0]])
    assert list(shown(report, "poisson")) == ["visits mean"]  # of a rate the deviation is a function
    assert np.isnan(shown(report, "gaussian")["size s.d."][1:]).all()  # quantiles of q(theta) have none


def test_states_in_use_have_one_name(network, mixture, chain):
    for estimator, names in ((network, ["h"]), (mixture, ["component"]), (chain, ["state"])):
        assert list(estimator.latent_states_) == names
        assert estimator.summary().states.keys() == estimator.latent_states_.keys()
        (states,) = estimator.latent_states_.values()
        assert states.in_use == (0, 1)


# Facts and doubts -----------------------------------------------------------------------------------------------------


def test_facts_say_what_was_fitted_to_what(network, mixture, chain):
    facts = network.summary().facts
    assert facts["data"] == "60 rows, 3 columns, 2 missing cells"
    assert (facts["fitted by"], facts["prior"]) == ("variational Bayes", "prior=1.0")
    assert (facts["lower bound"], facts["free parameters"]) == (network.lower_bound_, 7)
    assert facts["starts"].startswith(f"3, of which {network.restarts_.n_best} met the best")
    assert mixture.summary().facts["data"] == "65 rows, 2 columns, 1 missing cell"
    assert mixture.summary().title == "VBMixture: 2 components, Gaussian() of x0, x1"
    assert chain.summary().facts["data"] == "65 rows in 2 sequences, 2 columns, 1 missing cell"
    assert chain.summary().facts["prior"] == "startprob_prior=1.0, transmat_prior=1.0, Gaussian()"


def test_facts_are_those_of_the_fit(table):
    model = VBDiscreteDAG(EDGES, latents={"h": 2}, n_init=1, random_state=0).fit(table)
    before = str(model.summary())
    assert str(model.set_params(prior=7.0, method="ml", n_init=3).summary()) == before


def test_weights_stand_beside_rows(table):
    weight = np.where(np.arange(60) < 10, 2.0, 1.0)
    weight[-1] = 0.0
    model = VBDiscreteDAG(EDGES, latents={"h": 2}, prior="bdeu", n_init=1, random_state=0)
    facts = model.fit(table, sample_weight=weight).summary().facts
    assert facts["data"] == "59 rows, 3 columns, 2 missing cells, total weight 69"
    assert facts["prior"] == "prior='bdeu', equivalent_sample_size=1.0"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_doubts_are_said(numbers):
    stopped = VBMixture(2, init="random", n_init=2, max_iter=1, random_state=0).fit(numbers)
    assert any("has not converged" in doubt for doubt in stopped.summary().doubts)
    rng = np.random.default_rng(0)
    alone = VBMixture(6, emission=Gaussian(covariance_prior=None), init="random", n_init=6, random_state=0)
    alone.fit(rng.normal(size=(30, 3)))
    assert any("Only one of 6 starts" in doubt for doubt in alone.summary().doubts)
    assert any("more free parameters (59) than rows" in doubt for doubt in alone.summary().doubts)
    assert VBMixture(1, random_state=0).fit(numbers).summary().doubts == ()


@pytest.mark.filterwarnings("ignore::skvbem.errors.DataWarning")
def test_a_component_at_the_floor_is_a_doubt():
    X = np.array([[0.0], [0.0], [0.0], [5.0], [6.0], [7.0]])
    model = VBMixture(2, method="ml", init=np.eye(2)[[0, 0, 0, 1, 1, 1]]).fit(X)
    assert any("No width in some direction: component 0" in doubt for doubt in model.summary().doubts)


def test_after_batches_there_is_the_bound_of_the_last(numbers):
    model = VBMixture(2, n_init=2, random_state=0).partial_fit(numbers[:30]).partial_fit(numbers[30:])
    facts = model.summary().facts
    assert facts["lower bound of the last batch"] == model.batch_lower_bound_
    assert facts["data"] == "rows of total weight 65, in batches"
    assert "starts" not in facts


# Which intervals ------------------------------------------------------------------------------------------------------


def test_intervals_are_those_of_draws_where_rows_can_be_drawn(mixture, numbers):
    assert mixture.summary().method == "none"
    assert mixture.summary(numbers).method == "draws"
    halves = np.full(65, 0.5)
    half = VBMixture(2, n_init=2, random_state=0).fit(numbers, sample_weight=halves)
    assert half.summary(numbers, sample_weight=halves).method == "linear_response"
    blocks = blocks_of([numbers[:30], numbers[30:]])
    by_blocks = VBMixture(2, emission=Gaussian("diag"), init="random", n_init=2, random_state=0).fit(blocks)
    report = by_blocks.summary(blocks)
    assert report.method == "linear_response"
    assert report.facts["data"] == "rows in blocks, 2 columns, total weight 65"


def test_draws_at_hand_are_taken(mixture, numbers):
    draws = mixture.sample_posterior(numbers, 400, random_state=5)
    report = mixture.summary(draws=draws, level=0.5)
    low, high = draws.intervals(0.5)["mixture"]["weights"]
    same(shown(report, "components")["weight"][1:], [low, high])
    assert "50 % in brackets, by draws" in str(report)


def test_a_level_that_is_none_is_refused(mixture):
    with pytest.raises(ValueError, match="'level' parameter of summary must be a number between 0 and 1"):
        mixture.summary(level=95)


# How reports print ----------------------------------------------------------------------------------------------------


class _Cells(HTMLParser):
    """Texts of cells, and whether every tag is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.cells = [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.cells.append(data)


def test_a_report_prints_as_text_and_html(network, table):
    report = network.summary(table, method="linear_response")
    text, page = str(report), _Cells()
    page.feed(report._repr_html_())
    assert page.open == []
    first = report.tables[0]
    cell = f"{first.values[0, 0]:.3f} [{first.intervals[0][0, 0]:.3f}, {first.intervals[1][0, 0]:.3f}]"
    assert cell in text
    assert cell in page.cells
    assert "by linear response" in text
    assert max(map(len, text.splitlines())) <= 110


def test_names_cannot_break_the_page():
    X = pd.DataFrame({"<b>": ["&", "x"] * 5, "y": ["u", "v"] * 5})
    page = _Cells()
    page.feed(VBDiscreteDAG([("<b>", "y")]).fit(X).summary()._repr_html_())
    assert page.open == []
    assert "<b>=&" in page.cells


def test_wide_tables_are_folded_and_long_ones_cut():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"many": np.arange(150) % 50, "y": rng.integers(0, 30, 150)}).astype("category")
    text = str(VBDiscreteDAG([("many", "y")]).fit(X).summary(method="vb"))
    assert max(map(len, text.splitlines())) <= 110
    assert "10 more rows: to_frame() has all." in text


def test_a_frame_has_every_parameter(network, mixture):
    frame = network.summary(method="vb").to_frame()
    assert frame.columns.tolist() == ["table", "row", "column", "estimate", "lower", "upper"]
    assert len(frame) == sum(table.values.size for table in network.tables_.values())
    row = frame[(frame["table"] == "c | a") & (frame["row"] == "a=yes") & (frame["column"] == "no")]
    assert row["estimate"].item() == approx(network.tables_["c"]["a":"yes", "c":"no"])
    assert row["lower"].item() < row["estimate"].item() < row["upper"].item()
    assert mixture.summary().to_frame()["lower"].isna().all()


def test_without_pandas_the_tables_are_still_there(mixture, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    report = mixture.summary()
    assert isinstance(report, Summary)
    with pytest.raises(ImportError, match=r"Summary.to_frame needs pandas"):
        report.to_frame()


def test_zero_has_no_sign():
    tests = load_ability_tests()
    X, n = tests.data, tests.sample_weight
    model = VBFactorAnalysis(1, method="ml", n_init=1, random_state=0).fit(X, sample_weight=n)
    none = VBFactorAnalysis(0).fit(X, sample_weight=n)
    assert (np.abs(model.mean_) < 1e-9).all()
    assert (model.mean_ < 0).any()
    assert "-0.000" not in str(model.summary())
    assert "e-1" not in str(model.summary())
    assert "-0.000" not in str(none.fit_indices(X, n))
