"""Emissions as users hold them: their parameters, the forms of the `emission` parameter, and what is refused."""

import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
from laws.geometric import Geometric, GeometricEmission
from sklearn.base import clone
from sklearn.compose import make_column_selector
from sklearn.model_selection import GridSearchCV

from skvbem import VBHMM, StructureSearchCV, VBMixture, blocks_of
from skvbem.emissions import (
    EMISSIONS,
    Bernoulli,
    Categorical,
    EmissionSpecification,
    Exponential,
    FactorGaussian,
    Gaussian,
    Multinomial,
    Poisson,
    register_emission,
)
from skvbem.errors import BoundFellError
from skvbem.plotting import ClassProfileDisplay

approx = pytest.approx
any_estimator = pytest.mark.parametrize("estimator", [VBMixture, VBHMM])


@pytest.fixture
def frame(rng):
    kind = rng.integers(0, 2, 60)
    return pd.DataFrame(
        {
            "height": rng.normal(165 + 15 * kind, 5),
            "weight": rng.normal(60 + 20 * kind, 5),
            "visits": rng.poisson(2 + 6 * kind),
            "days": rng.poisson(1 + 2 * kind),
            "blood": rng.choice(["A", "B", "0"], 60),
        }
    )


def listed(**changed):
    """A list of groups, two of which have the same family."""
    emissions = {"size": Gaussian("diag"), "visits": Poisson(), "days": Poisson(2.0), "blood": "categorical"} | changed
    columns = {"size": ["height", "weight"], "visits": "visits", "days": "days", "blood": "blood"}
    return [(name, emission, columns[name]) for name, emission in emissions.items()]


# Objects --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", EMISSIONS)
def test_an_object_is_a_small_estimator(family):
    made = EMISSIONS[family]()
    assert isinstance(made, EmissionSpecification)
    assert made.get_params() == clone(made).get_params()
    assert repr(made) == f"{type(made).__name__}()"
    assert repr(pickle.loads(pickle.dumps(made))) == repr(made)
    name = next(iter(made.get_params()))
    assert made.set_params(**{name: 2.0}).get_params()[name] == 2.0
    assert repr(made) == f"{type(made).__name__}({name}=2.0)"
    with pytest.raises(ValueError, match="has no parameter 'nothing'"):
        made.set_params(nothing=1)


@pytest.mark.parametrize(
    ("made", "X"),
    [
        (Gaussian("tied"), [[0.5, 1.0], [1.5, -2.0], [3.0, 0.0]]),
        (FactorGaussian(), [[0.5, 1.0], [1.5, -2.0], [3.0, 0.0]]),
        (Categorical(), [["a", "b"], ["b", "b"], ["a", "c"]]),
        (Bernoulli(), [[0, 1], [1, 1], [0, 0]]),
        (Multinomial(), [[3, 1], [0, 2], [5, 5]]),
        (Poisson(), [[3, 1], [0, 2], [5, 5]]),
        (Exponential(), [[3.5, 1], [0, 2], [5, 5]]),
    ],
    ids=lambda each: type(each).__name__,
)
@any_estimator
def test_an_object_is_the_name_at_its_defaults(estimator, made, X):
    (name,) = (name for name, known in EMISSIONS.items() if known is type(made))
    shape = {"covariance_type": "tied"} if name == "gaussian" else {}
    named = estimator(2, emission=name, n_init=2, random_state=0, **shape).fit(X)
    held = estimator(2, emission=made, n_init=2, random_state=0).fit(X)
    alone = estimator(2, emission=[("all", made, slice(None))], n_init=2, random_state=0).fit(X)
    assert held.lower_bound_ == named.lower_bound_ == alone.lower_bound_
    assert list(held.groups_) == list(named.groups_) == [name]
    assert list(alone.groups_) == list(alone.parameters_) == ["all"]
    assert "all" in alone.credible_intervals(method="vb")


def test_a_fit_has_an_object_of_its_own(rng):
    X = rng.normal(size=(20, 2))
    made = Gaussian()
    model = VBMixture(emission=made).fit(X)
    made.set_params(covariance_type="spherical")
    pytest.importorskip("matplotlib")
    profiles = ClassProfileDisplay.from_estimator(model).profiles
    assert [each.deviations for each in profiles] == approx(np.sqrt(np.diagonal(model.covariances_[0]))[:, None])
    assert model.fit(X).covariances_.shape == (1,)


# Nested parameters ----------------------------------------------------------------------------------------------------


@any_estimator
def test_nested_parameters_of_an_object(estimator):
    model = estimator(emission=Gaussian())
    assert model.get_params()["emission__covariance_type"] == "full"
    assert model.set_params(emission__covariance_type="diag").emission.covariance_type == "diag"
    copied = clone(model)
    assert copied.emission is not model.emission
    assert copied.emission.covariance_type == "diag"
    assert "emission__covariance_type" not in model.get_params(deep=False)


@any_estimator
def test_nested_parameters_of_a_list(estimator):
    model = estimator(emission=listed())
    params = model.get_params()
    assert params["emission__days__shape_prior"] == 2.0
    assert params["emission__days"] is model.emission[2][1]
    assert params["emission__blood"] == "categorical"
    given = model.emission
    model.set_params(emission__blood=Categorical(), emission__blood__concentration_prior=0.5, n_components=3)
    assert model.emission is not given
    assert given[3][1] == "categorical"
    assert model.get_params()["emission__blood__concentration_prior"] == 0.5
    assert model.n_components == 3
    model.set_params(emission=listed(), emission__visits__rate_prior=3.0)
    assert model.get_params()["emission__visits__rate_prior"] == 3.0
    copied = clone(model)
    assert copied.emission[1][1] is not model.emission[1][1]
    assert copied.get_params()["emission__visits__rate_prior"] == 3.0
    assert "('days', Poisson(shape_prior=2.0), 'days')" in repr(model)


def test_grids_reach_into_emissions(frame, tmp_path):
    model = VBMixture(2, emission=listed(), n_init=1, random_state=0)
    grid = GridSearchCV(model, {"emission__days__shape_prior": [1.0, 2.0], "emission__size": [Gaussian()]}, cv=2)
    assert set(grid.fit(frame).best_params_) == {"emission__days__shape_prior", "emission__size"}
    space = {"emission__size__covariance_type": ["full", "spherical"], "n_components": [1, 2]}
    settings = {"scoring": "lower_bound", "random_state": 0, "checkpoint": str(tmp_path / "search.json")}
    search = StructureSearchCV(model, space, **settings).fit(frame)
    assert search.best_params_["n_components"] == 2
    bounds = [clone(model).set_params(**params).fit(frame).lower_bound_ for params in search.cv_results_["params"]]
    assert np.argmax(bounds) == search.best_index_
    again = StructureSearchCV(model, space, **settings).fit(frame)
    assert again.best_params_ == search.best_params_


@pytest.mark.parametrize(
    ("emission", "name", "message"),
    [
        (
            "gaussian",
            "emission__covariance_type",
            "A name stands for its defaults; hold the object: emission=Gaussian().",
        ),
        ("auto", "emission__covariance_type", "emission='auto' has no parameters. Hold an object, such as emission="),
        (listed(), "emission__visit__shape_prior", "'emission' has no group 'visit'. Did you mean 'visits'?"),
        (
            listed(),
            "emission__blood__concentration_prior",
            "'categorical' and has no parameters. A name stands for its defaults; hold the object: Categorical().",
        ),
        (listed(), "emission__visits__shape", "Poisson has no parameter 'shape'"),
        (Poisson(), "emission__shape", "Poisson has no parameter 'shape'"),
    ],
    ids=str,
)
def test_nested_parameters_that_are_none(emission, name, message):
    with pytest.raises(ValueError, match=r"(Invalid|has no) parameter") as caught:
        VBMixture(emission=emission).set_params(**{name: 1.0})
    assert message in str(caught.value)


# Parameters that moved ------------------------------------------------------------------------------------------------


MOVED = {
    **dict.fromkeys(
        ("mean_prior", "mean_precision_prior", "degrees_of_freedom_prior", "covariance_prior"), "Gaussian({}=...)"
    ),
    "concentration_prior": "Bernoulli({}=...)",
    **dict.fromkeys(("shape_prior", "rate_prior"), "Exponential({}=...)"),
}


@any_estimator
@pytest.mark.parametrize("name", MOVED)
def test_a_parameter_that_moved_says_where_it_is(estimator, name):
    owner = estimator.__name__
    expected = f"{name!r} is a parameter of the emission now: {owner}(emission={MOVED[name].format(name)})"
    with pytest.raises(TypeError) as caught:
        estimator(2, **{name: 1.0})
    assert str(caught.value).startswith(expected)
    with pytest.raises(ValueError, match="is a parameter of the emission now") as caught:
        estimator(2).set_params(**{name: 1.0})
    assert str(caught.value).startswith(expected)
    with pytest.raises(ValueError, match="is a parameter of the emission now"):
        GridSearchCV(estimator(), {name: [1.0]}, error_score="raise").fit(np.ones((9, 1)))


@any_estimator
def test_other_unknown_parameters_come_with_those_that_there_are(estimator):
    with pytest.raises(TypeError, match=r"has no parameter 'mean'\. Its parameters are acceleration,"):
        estimator(mean=1.0)
    with pytest.raises(ValueError, match="has no parameter 'mean'"):
        estimator().set_params(mean=1.0)


def test_constructors_have_few_parameters():
    sizes = {kind: len(inspect.signature(kind).parameters) for kind in (VBMixture, VBHMM)}
    assert sizes[VBMixture] <= 22
    assert sizes[VBHMM] <= 29  # of which two name covariates, and one durations
    assert all(name not in inspect.signature(kind).parameters for kind in sizes for name in MOVED)


# Covariance types -----------------------------------------------------------------------------------------------------


@any_estimator
def test_a_covariance_type_is_said_once(estimator, rng):
    X = rng.normal(size=(20, 2))
    with pytest.raises(ValueError, match="covariance_type") as caught:
        estimator(2, emission=Gaussian("tied"), covariance_type="diag").fit(X)
    assert str(caught.value).startswith(
        f"covariance_type='diag' of {estimator.__name__} is for emissions given by name, and its 'emission' parameter "
        "holds Gaussian(covariance_type='tied')."
    )
    assert estimator(2, emission=Gaussian("diag"), covariance_type="diag").fit(X).covariances_.shape == (2, 2)
    assert estimator(2, emission=Gaussian("diag")).fit(X).covariances_.shape == (2, 2)
    assert estimator(2, emission=[("a", "gaussian", [0, 1])], covariance_type="spherical").fit(
        X
    ).covariances_.shape == (2,)


# Lists ----------------------------------------------------------------------------------------------------------------


@any_estimator
def test_groups_have_the_names_of_the_list(estimator, frame):
    model = estimator(2, emission=listed(), n_init=2, random_state=0).fit(frame)
    assert model.groups_ == {"size": ["height", "weight"], "visits": ["visits"], "days": ["days"], "blood": ["blood"]}
    assert list(model.parameters_) == list(model.groups_)
    assert set(model.credible_intervals(method="vb")) - {"chain", "mixture"} == set(model.groups_)
    assert model.means_.shape == (2, 2)
    assert list(model.categories_) == ["blood"]
    loaded = pickle.loads(pickle.dumps(model))
    assert np.array_equal(loaded.predict(frame), model.predict(frame))
    holed = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.1)
    assert not model.impute(holed).isna().any().any()
    assert np.isfinite(model.log_evidence(frame, kind="ais", n_chains=2, n_steps=8).value)


def test_a_list_is_the_mapping_where_families_differ(frame):
    columns = {"gaussian": ["height", "weight"], "poisson": ["visits", "days"], "categorical": "blood"}
    mapped = VBMixture(2, emission=columns, random_state=0).fit(frame)
    as_list = VBMixture(2, emission=[(name, name, at) for name, at in columns.items()], random_state=0).fit(frame)
    assert as_list.lower_bound_ == mapped.lower_bound_
    assert as_list.groups_ == mapped.groups_


def test_two_groups_of_a_family_are_that_family_where_columns_are_independent(frame):
    apart = VBMixture(2, emission=listed(days=Poisson()), n_init=2, random_state=0).fit(frame)
    columns = {"gaussian": ["height", "weight"], "poisson": ["visits", "days"], "categorical": "blood"}
    together = VBMixture(2, emission=columns, covariance_type="diag", n_init=2, random_state=0).fit(frame)
    assert apart.lower_bound_ == approx(together.lower_bound_, rel=1e-9)


def test_attributes_of_two_groups_of_measurements_are_by_group(frame):
    two = [("tall", Gaussian(mean_precision_prior=1.0), [0]), ("wide", Gaussian("diag", mean_precision_prior=0.5), [1])]
    model = VBMixture(2, emission=two, n_init=2, random_state=0).fit(frame[["height", "weight"]])
    assert model.mean_precision_prior_ == {"tall": 1.0, "wide": 0.5}
    assert model.means_["tall"].shape == model.means_["wide"].shape == (2, 1)
    assert model.covariances_["tall"].shape == (2, 1, 1)


@any_estimator
def test_columns_of_a_group_are_in_the_order_of_the_list(estimator, frame):
    frame = frame[["height", "weight"]]
    model = estimator(emission=[("size", Gaussian(), ["weight", "height"])]).fit(frame)
    assert model.groups_ == {"size": ["weight", "height"]}
    assert model.means_[0] == approx(frame[["weight", "height"]].mean(), rel=1e-2)
    holed = frame.copy()
    holed.iloc[0, 1] = np.nan
    assert model.impute(holed)["height"].tolist() == frame["height"].tolist()


@pytest.mark.parametrize(
    "columns",
    [
        ["visits", "days"], [2, 3], np.array([2, 3]), pd.Index(["visits", "days"]), slice(2, 4),
        slice("visits", "days"),
        [False, False, True, True, False], np.array([0, 0, 1, 1, 0], dtype=bool),
        make_column_selector(dtype_include=int), lambda X: [name for name in X.columns if name in ("visits", "days")],
    ],
    ids=lambda columns: type(columns).__name__,
)  # fmt: skip
@any_estimator
def test_columns_are_said_as_in_column_transformer(estimator, columns, frame):
    groups = [("counts", Poisson(), columns), ("size", "gaussian", slice("weight")), ("blood", "categorical", [4])]
    model = estimator(2, emission=groups, n_init=1, random_state=0).fit(frame)
    assert model.groups_ == {"counts": ["visits", "days"], "size": ["height", "weight"], "blood": ["blood"]}
    weight = np.arange(len(frame)) % 3 > 0
    if estimator is VBMixture:
        assert estimator(2, emission=groups, random_state=0).fit(frame, sample_weight=weight).groups_ == model.groups_


WHOSE = "The 'emission' parameter of VBMixture "


@pytest.mark.parametrize(
    ("emission", "message"),
    [
        ([("a", Poisson(), 0), ("a", Poisson(), 1)], f"{WHOSE}has two groups named 'a'. Names must differ."),
        ([("a__b", Poisson(), [0, 1])], "whose names must be strings without two underscores in a row, other"),
        ([(0, Poisson(), [0, 1])], f"{WHOSE}is a list of (name, emission, columns), whose names must be strings"),
        ([("chain", Poisson(), [0, 1])], "in a row, other than 'chain' and 'mixture'. Got the name 'chain'."),
        ([("a", "poison", [0, 1])], f"{WHOSE}names the family 'poison'. Did you mean 'poisson'? Families are"),
        ([("a", "drop", [0]), ("b", Poisson(), [1])], f"{WHOSE}names the family 'drop'."),
        ([("a", Poisson, [0, 1])], f"{WHOSE}holds the class Poisson. Give an object of it: Poisson()."),
        (Poisson, f"{WHOSE}holds the class Poisson. Give an object of it: Poisson()."),
        ([("a", Poisson(), [True])], f"{WHOSE}has a mask of 1 columns. X has 2: give one for each."),
        ([("a", Poisson(), [])], f"{WHOSE}gives no column to 'a'. Leave it out."),
        ([("a", Poisson(), [0])], f"{WHOSE}gives no family to 'x1'. Name every column of X"),
        ([("a", Poisson(), [0, 1]), ("b", "gaussian", 1)], f"{WHOSE}names column 'x1' more than once."),
        ([("a", Poisson(), "x3")], f"{WHOSE}names 'x3', which is no column of X."),
        ([("a", Poisson())], f"{WHOSE}must be 'auto', one of 'bernoulli', "),
        (
            [("a", Poisson([1.0, 2.0, 3.0]), [0, 1])],
            "The 'shape_prior' parameter of Poisson must be a number or have 2",
        ),
        ([("a", Gaussian("round"), [0, 1])], "The 'covariance_type' parameter of Gaussian must be a str among"),
    ],
    ids=str,
)
def test_lists_that_are_none(emission, message):
    with pytest.raises(ValueError, match=r"emission|parameter") as caught:
        VBMixture(emission=emission).fit(np.arange(20).reshape(10, 2))
    assert message in str(caught.value)


# From outside ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def failures(rng):
    """A table of failures of two kinds of rows."""
    return rng.geometric([[0.7, 0.6], [0.1, 0.2]] * 30) - 1.0


def test_an_emission_from_outside_takes_blocks(failures):
    model = VBMixture(2, emission=Geometric(), random_state=0).fit(failures)
    of_blocks = VBMixture(2, emission=Geometric(), random_state=0).fit(blocks_of([failures[:25], failures[25:]]))
    assert of_blocks.lower_bound_ == approx(model.lower_bound_, rel=1e-9)


class Mismatched(Geometric):
    """An emission some of whose methods are replaced."""

    def __init__(self, **methods):
        self.methods = methods

    def for_data(self, values, weight=None):
        """An emission of a class made for it."""
        made = super().for_data(values, weight)
        return type("MismatchedEmission", (GeometricEmission,), self.methods | {"__module__": "elsewhere"})(
            **vars(made)
        )

    def prior_options(self, emission, names):
        """The defaults."""
        return {}

    def get_params(self, deep=True):
        """No parameters: classes are not cloned by their methods."""
        return {}

    def __sklearn_clone__(self):
        return self


@pytest.mark.parametrize(
    ("methods", "error", "start"),
    [
        (
            {"unfold": lambda self, sums, complete: GeometricEmission.unfold(self, sums, complete)[..., ::-1]},
            BoundFellError,
            "The objective fell by ",
        ),
        (
            {"log_base": lambda self, values: np.full(len(values), np.nan)},
            FloatingPointError,
            "The objective is not a number. ",
        ),
    ],
    ids=["fell", "nan"],
)
@any_estimator
def test_a_defect_of_an_emission_from_outside_is_said_to_be_its_own(estimator, methods, error, start, failures):
    mixed = [("tries", Mismatched(**methods), [0]), ("more", Geometric(), [1])]
    for emission in (Mismatched(**methods), mixed):
        with pytest.raises(error) as caught:
            estimator(2, emission=emission, random_state=0, acceleration=False).fit(failures)
        assert str(caught.value).startswith(start)
        assert "in the emission MismatchedEmission" in str(caught.value)
        assert "`features`, `fold` and `unfold` must belong together and to `default_prior`" in str(caught.value)
        assert "please report" not in str(caught.value)


class Unchecked(Geometric):
    """A specification that hands its parameters on as they are."""

    def __init__(self, a=1.0, b=1.0):
        self.a, self.b = a, b

    def prior_options(self, emission, names):
        """Not checked."""
        return {"success": self.a, "failure": self.b}


@pytest.mark.parametrize(
    ("a", "what"),
    [
        (-1.0, "numbers of a Dirichlet prior must be > 0, and one is -1."),
        (np.nan, "in the units of the data its numbers exceed"),
    ],
)
def test_unchecked_parameters_of_a_prior_are_named(a, what, failures):
    names = "The parameters 'a', 'b' of Unchecked make no prior for this X: "
    for emission in (Unchecked(a), [("one", Geometric(), [0]), ("two", Unchecked(a), [1])]):
        with pytest.raises(ValueError, match="make no prior") as caught:
            VBMixture(emission=emission).fit(failures)
        assert str(caught.value).startswith(names + what)


@pytest.mark.parametrize("prior", [0.0, np.inf, "one", [1.0, 2.0, 3.0]], ids=str)
def test_parameters_from_outside_are_checked_as_ours(prior, failures):
    messages = []
    for emission in (Geometric(prior), Poisson(prior)):
        with pytest.raises(ValueError, match="_prior' parameter of") as caught:
            VBMixture(emission=emission).fit(failures)
        messages.append(str(caught.value))
    assert messages[0] == messages[1].replace("Poisson", "Geometric").replace("shape_prior", "success_prior")


def test_what_an_emission_from_outside_fills_in_is_the_predictive_mean(failures):
    holed = failures.copy()
    holed[:5, 0] = np.nan
    model = VBMixture(1, emission=Geometric(3.0, 2.0)).fit(holed)
    rows = np.stack([np.arange(4000.0), np.full(4000, np.nan)], axis=1)
    probabilities = np.exp(model.score_samples(rows))
    assert probabilities.sum() == approx(1.0, rel=1e-9)
    assert model.impute(holed)[0, 0] == approx(probabilities @ rows[:, 0], rel=1e-9)


def test_what_is_missing_is_in_the_middle_of_the_seeding_coordinates(failures):
    holed = failures.copy()
    holed[3, 0] = np.nan
    made = Geometric().for_data(holed)
    coordinates = made.seeding_coordinates(made.prepare(holed))
    assert coordinates.shape == holed.shape
    assert coordinates[3, 0] == 0.0
    assert (coordinates.min(axis=0) < 0).all()
    assert (coordinates.max(axis=0) > 0).all()


@pytest.mark.parametrize(
    ("method", "returned", "wanted", "came"),
    [
        ("features", lambda *_: np.ones((2, 3)), "(n_features, 2)", "an array of shape (2, 3)"),
        ("features", lambda *_: [[1.0, 2.0]], "(n_features, 2)", "a list"),
        ("fold", lambda *_: np.ones((2, 9)), "(2, {n_features})", "an array of shape (2, 9)"),
        ("unfold", lambda *_: np.ones(4), "(2, {n_cells})", "an array of shape (4,)"),
        ("seeding_coordinates", lambda *_: np.ones(1), "({n_rows}, n_axes)", "an array of shape (1,)"),
    ],
    ids=["features", "list", "fold", "unfold", "points"],
)
@any_estimator
def test_a_method_from_outside_that_returns_the_wrong_is_named(estimator, method, returned, wanted, came, failures):
    made = Mismatched(**{method: returned})
    for emission, d in ((made, 2), ([("a", Poisson(), [0]), ("b", made, [1])], 1)):
        with pytest.raises(ValueError, match="of the emission MismatchedEmission") as caught:
            estimator(2, emission=emission, random_state=0).fit(failures)
        n_rows = len(np.unique(np.asarray(failures), axis=0))
        shape = wanted.format(n_features=d + 1, n_cells=2 * d, n_rows=n_rows)
        assert str(caught.value) == (
            f"`{method}` of the emission MismatchedEmission must return an array of shape {shape} here. It returned "
            f"{came}."
        )


@any_estimator
def test_points_from_outside_that_are_not_finite_are_refused(estimator, failures):
    failures[4, 1] = np.nan
    made = Mismatched(seeding_coordinates=lambda self, block: block.values)
    for emission in (made, [("a", Poisson(), [0]), ("b", made, [1])]):
        with pytest.raises(ValueError, match="of the emission MismatchedEmission returned numbers that are not finite"):
            estimator(2, emission=emission, random_state=0).fit(failures)


@any_estimator
def test_a_prior_from_outside_of_other_cells_is_refused(estimator, failures):
    emission = Mismatched(default_prior=lambda self, n_components: GeometricEmission.default_prior(self, 3))
    with pytest.raises(
        ValueError,
        match="MismatchedEmission contradicts itself: `default_prior` returned a prior of 12 cells for 2 comp",
    ):
        estimator(2, emission=emission).fit(failures)


class Unfinished(EmissionSpecification):
    """A specification that lacks methods."""

    def for_data(self, values, weight=None):
        """The only one it has."""


class OfSize(Geometric):
    """A specification that a name cannot stand for."""

    def __init__(self, size, *, success_prior=1.0, failure_prior):
        self.size, self.success_prior, self.failure_prior = size, success_prior, failure_prior


@pytest.mark.parametrize(
    ("specification", "message"),
    [
        (Unfinished, "takes a class that can be made. Unfinished lacks expected, profiles."),
        (OfSize, "These parameters of OfSize have none: 'size', 'failure_prior'."),
    ],
)
def test_a_class_that_its_name_does_not_make_is_not_registered(specification, message):
    with pytest.raises(TypeError, match="register_emission takes") as caught:
        register_emission("unfinished", specification)
    assert message in str(caught.value)
    assert "unfinished" not in EMISSIONS


def test_a_registered_name_says_which_object_has_parameters():
    register_emission("geometric", Geometric)
    try:
        with pytest.raises(ValueError, match=r"stands for its defaults; hold the object: emission=Geometric\(\)\."):
            VBMixture(emission="geometric").set_params(emission__success_prior=2.0)
    finally:
        del EMISSIONS["geometric"]
