"""Groups of columns in factor analysis: shared and private factors, how groups are given, one model of many names."""

import numpy as np
import pytest

from skvbem import VBHMM, VBFactorAnalysis, VBMixture
from skvbem.emissions import FactorGaussian

pd = pytest.importorskip("pandas")
approx = pytest.approx

NAMES = [f"{group}{j}" for group in "abc" for j in range(4)]
GROUPS = {group: [name for name in NAMES if name.startswith(group)] for group in "abc"}


def three_groups(rng, n=300):
    """One factor of all columns, one of the first group, and one of the second and the third."""
    loadings = rng.choice([-1.0, 1.0], size=(12, 3)) * rng.uniform(0.6, 1.2, size=(12, 3))
    loadings[4:, 1] = loadings[:4, 2] = 0.0
    return pd.DataFrame(rng.normal(size=(n, 3)) @ loadings.T + 0.5 * rng.normal(size=(n, 12)), columns=NAMES)


@pytest.fixture(scope="module")
def table():
    return three_groups(np.random.default_rng(1))


@pytest.fixture(scope="module")
def fit(table):
    return VBFactorAnalysis(groups=GROUPS, random_state=0).fit(table)


def test_shared_and_private_factors_are_found(table, fit):
    """A factor lives in the groups that it explains, and is as good as dead in the others."""
    assert fit.n_factors_ == 3
    assert fit.relevance_.shape == (3, 3)
    alive = fit.relevance_ < 2  # a Gamma(1, 1) prior and four loadings of 0 make 3
    assert sorted(alive.T.tolist()) == [[False, True, True], [True, False, False], [True, True, True]]
    without = VBFactorAnalysis(3, random_state=0).fit(table)
    assert fit.lower_bound_ > without.lower_bound_ + 2
    # without a rotation, factors stand where groups tell them apart
    squares = np.add.reduceat(fit.standardized_loadings_**2, [0, 4, 8])
    np.testing.assert_array_equal(squares > 0.05, alive)
    turned = VBFactorAnalysis(3, groups=GROUPS, rotation="varimax", n_init=1).fit(table)
    np.testing.assert_allclose(turned.relevance_, fit.relevance_, rtol=0.02)


@pytest.mark.parametrize(
    "groups",
    [
        [GROUPS["a"], GROUPS["b"], GROUPS["c"]],
        [[0, 1, 2, 3], slice(4, 8), [False] * 8 + [True] * 4],
        {"one": slice("a0", "a3"), "two": [7, 6, "b1", "b0"], "three": lambda X: [c for c in X if c[0] == "c"]},
    ],
    ids=["names", "positions", "mapping"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_groups_are_given_as_columns_of_emissions_are(groups, table):
    some, known = table.iloc[:60], {"n_init": 1, "max_iter": 20}
    model = VBFactorAnalysis(2, groups=groups, **known).fit(some)
    assert model.lower_bound_ == VBFactorAnalysis(2, groups=GROUPS, **known).fit(some).lower_bound_


def test_no_order_of_columns_or_groups_makes_a_difference(table, fit):
    order = [5, 0, 11, 3, 8, 1, 7, 2, 10, 4, 9, 6]
    groups = {group: GROUPS[group] for group in "cab"}
    model = VBFactorAnalysis(3, groups=groups, n_init=1).fit(table.iloc[:, order])
    assert model.lower_bound_ == approx(fit.lower_bound_, abs=1e-3)
    np.testing.assert_allclose(model.relevance_[[1, 2, 0]], fit.relevance_, rtol=0.02)


def test_one_group_is_no_group(table):
    some = table.iloc[:60]
    one = VBFactorAnalysis(2, groups=[NAMES], random_state=0).fit(some)
    none = VBFactorAnalysis(2, random_state=0).fit(some)
    assert one.lower_bound_ == none.lower_bound_
    np.testing.assert_array_equal(one.relevance_, [none.relevance_])


@pytest.mark.parametrize("gaps", [0.0, 0.1])
def test_it_is_a_mixture_of_one_component_and_a_chain_of_one_state(gaps, table, rng):
    some = table.iloc[:60, 2:6].mask(rng.random((60, 4)) < gaps)
    groups = [["a2", "a3"], ["b0", "b1"]]
    emission, exactly = FactorGaussian(1, groups=groups), {"n_init": 1, "tol": 1e-9, "random_state": 0}
    model = VBFactorAnalysis(1, groups=groups, **exactly).fit(some)
    for other in (VBMixture(1, emission=emission, **exactly), VBHMM(1, emission=emission, **exactly)):
        other.fit(some)
        assert other.lower_bound_ == approx(model.lower_bound_, abs=1e-6)
        np.testing.assert_allclose(other.relevance_, [model.relevance_], rtol=1e-3)
    assert "relevance_" not in vars(VBMixture(1, emission=FactorGaussian(2), n_init=1).fit(some))


def test_components_beside_categories_have_precisions_of_their_own(table, rng):
    """Columns of X are named, of which the emission has some."""
    some = table.iloc[:100, 2:8].assign(kind=rng.integers(0, 2, 100).astype(str))
    emission = [
        ("tests", FactorGaussian(1, groups={"a": ["a2", "a3"], "b": ["b1", "b0", "b2", "b3"]}), list(some.columns[:6])),
        ("kinds", "categorical", ["kind"]),
    ]
    one, other = (VBMixture(2, emission=emission, n_init=1, random_state=0).fit(X) for X in (some, some.iloc[:, ::-1]))
    assert one.relevance_.shape == (2, 2, 1)
    assert one.lower_bound_ == approx(other.lower_bound_, abs=1e-3)
    np.testing.assert_allclose(one.relevance_, other.relevance_, rtol=0.01)


def test_the_mode_has_precisions_of_groups(table):
    model = VBFactorAnalysis(1, groups=GROUPS, method="map", n_init=1, random_state=0).fit(table.iloc[:60])
    assert model.relevance_.shape == (3, 1)
    assert np.all(np.diff(model.lower_bounds_) >= -1e-9)


WHOSE = "The 'groups' parameter of FactorGaussian "


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([["a", "b"]], f"{WHOSE}gives no group to 'c'. Name every column of X"),
        ([["a", "b"], ["b", "c"]], f"{WHOSE}names column 'b' more than once. A column has one group."),
        ([["a", "b"], ["d"]], f"{WHOSE}names 'd', which is no column of X."),
        ({"one": ["a", "b", "c"], "two": []}, f"{WHOSE}gives no column to 'two'. Leave it out."),
        ({"one": [0, 1], "two": 3}, f"{WHOSE}names 3, which is no column of X."),
        (["a", "b", "c"], f"{WHOSE}must be a list of groups, each a list of columns, or a mapping"),
        (3, f"{WHOSE}must be a list of groups, each a list of columns, or a mapping of names to columns. Got 3"),
        ([], f"{WHOSE}must be a list of groups"),
    ],
    ids=str,
)
def test_groups_share_out_the_columns(groups, message, rng):
    X = pd.DataFrame(rng.normal(size=(20, 3)), columns=["a", "b", "c"])
    with pytest.raises(ValueError, match=message):
        VBFactorAnalysis(1, groups=groups).fit(X)


def test_groups_are_of_the_columns_of_the_emission(rng):
    X = pd.DataFrame(rng.normal(size=(20, 3)), columns=["a", "b", "c"])
    emission = [("f", FactorGaussian(1, groups=[["a"], ["c"]]), ["a", "b"]), ("g", "gaussian", ["c"])]
    with pytest.raises(ValueError, match=f"{WHOSE}names column 'c', which is none of its own: 'a', 'b'."):
        VBMixture(1, emission=emission).fit(X)


def test_known_precisions_have_no_groups(rng):
    with pytest.raises(ValueError, match="Leave out 'groups', or take relevance='ard'"):
        VBFactorAnalysis(1, groups=[[0], [1]], relevance="fixed").fit(rng.normal(size=(20, 2)))
