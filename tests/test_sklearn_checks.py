"""scikit-learn's own checks of estimators: those `check_estimator` runs, and those it leaves to be called by hand."""

import inspect

import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline
from sklearn.utils import estimator_checks, get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from skvbem import (
    VBHMM,
    StructureSearchCV,
    VBClassifier,
    VBDiscreteDAG,
    VBFactorAnalysis,
    VBImputer,
    VBLinearDynamicalSystem,
    VBMixture,
    VBNetwork,
)
from skvbem.emissions import COVARIANCE_TYPES

# The checks' own data are what these warnings are for: fractions, negative values, constant columns, one row.
pytestmark = [
    pytest.mark.filterwarnings("ignore::skvbem.errors.DataWarning"),
    pytest.mark.filterwarnings("ignore:Latent 'h0' has:UserWarning"),
    pytest.mark.filterwarnings("ignore:Latent 'h1' has:UserWarning"),
    pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names:UserWarning"),
    pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning"),  # classes that are infinite
]

ONE_EDGE = [("h0", "x0")]  # the checks' tables differ in width, but all have a first column
TWO_LATENTS = [("h0", "x0"), ("h1", "x0"), ("h0", "h1")]

ESTIMATORS = {
    "default": VBDiscreteDAG(random_state=0),
    "three states": VBDiscreteDAG(latents=3, random_state=0),
    "vb": VBDiscreteDAG(method="vb", acceleration=False, random_state=0),
    "map": VBDiscreteDAG(method="map", random_state=0),
    "map in probabilities": VBDiscreteDAG(method="map", map_basis="probability", prior=2.0, random_state=0),
    "ml": VBDiscreteDAG(method="ml", random_state=0),
    "no race": VBDiscreteDAG(init="random", random_state=0),
    "annealing": VBDiscreteDAG(annealing=[0.1, 0.5], random_state=0),
    "learned prior": VBDiscreteDAG(learn_prior=True, random_state=0),
    "BDeu": VBDiscreteDAG(prior="bdeu", random_state=0),
    "unknown is missing": VBDiscreteDAG(handle_unknown="missing", random_state=0),
    "unknown is an error": VBDiscreteDAG(handle_unknown="error", random_state=0),
    "a structure": VBDiscreteDAG(ONE_EDGE, latents=2, random_state=0),
    "linked latents": VBDiscreteDAG(TWO_LATENTS, latents=["h0", "h1"], random_state=0),
    "two threads": VBDiscreteDAG(n_jobs=2, random_state=0),
}
# Where the search for an optimum is not what differs, one start is enough.
ONE_START = {"init": "random", "n_init": 1, "random_state": 0}
MIXTURES = {
    "mixture": VBMixture(random_state=0),
    "grown mixture": VBMixture("auto", covariance_type="spherical", n_init=1, tol=0.1, random_state=0),
    "three components": VBMixture(3, covariance_type="diag", n_init=1, tol=0.1, random_state=0),
    **{shape: VBMixture(2, covariance_type=shape, **ONE_START) for shape in COVARIANCE_TYPES},
    "mixture by map": VBMixture(2, method="map", **ONE_START),
    "mixture by ml": VBMixture(2, method="ml", **ONE_START),
    "sticks": VBMixture(4, weight_concentration_prior_type="dirichlet_process", **ONE_START),
    "categories": VBMixture(2, emission="categorical", **ONE_START),
    "mixture, two threads": VBMixture(2, n_init=2, init="random", n_jobs=2, random_state=0),
}
FACTOR_ANALYSES = {
    "factor analysis": VBFactorAnalysis(n_init=1, tol=0.1, random_state=0),
    "two factors, promax": VBFactorAnalysis(2, rotation="promax", n_init=1, tol=0.1, random_state=0),
    "principal components by ml": VBFactorAnalysis(1, noise="spherical", method="ml", n_init=1, random_state=0),
}
# In the row form: the checks' tables are one sequence each.
HMMS = {
    "hmm": VBHMM(n_init=1, random_state=0),
    "three states of a chain": VBHMM(3, n_init=2, init="random", n_jobs=2, tol=0.1, random_state=0),
    "left to right": VBHMM(
        2,
        transmat_mask="left-to-right",
        learn_prior=True,
        predictive="average",
        n_draws=5,
        tol=0.1,
        **ONE_START,
    ),
    "hmm of categories by ml": VBHMM(2, emission="categorical", method="ml", tol=0.1, **ONE_START),
}
SYSTEMS = {
    "linear dynamical system": VBLinearDynamicalSystem(n_init=1, n_draws=5, tol=0.1, random_state=0),
    "two states by ml": VBLinearDynamicalSystem(2, method="ml", n_init=1, tol=0.1, max_iter=1000, random_state=0),
}


MIXED = {
    "network of measurements": VBNetwork(latents=2, n_init=1, init="random", tol=0.1, random_state=0),
}


def searched(estimator, space, **options):
    return StructureSearchCV(estimator, space, random_state=0, **options)


LATENTS = {"latents": [2, 3]}
# scikit-learn checks its own searches around these estimators.
REDUCED_RIDGE = Pipeline([("pca", PCA()), ("ridge", Ridge())])
SEARCHES = {
    "search": searched(VBDiscreteDAG(), {"latents": [1, 2]}),
    "search, rows held out": searched(VBDiscreteDAG(), LATENTS, cv=2, error_score="raise"),
    "search, averaging": searched(VBDiscreteDAG(), LATENTS, scoring="bic", averaging=True),
    "search, greedy": searched(VBDiscreteDAG(), LATENTS, strategy="greedy", scoring="lower_bound", n_jobs=2),
    "search, mixtures": searched(VBMixture(init="random", n_init=1), {"n_components": [1, 2]}, scoring="lower_bound"),
    "search, regressor": searched(Ridge(), {"alpha": [0.1, 1.0]}, cv=2, error_score="raise"),
    "search, classifier": searched(LogisticRegression(tol=0.01), {"C": [0.1, 1.0]}, cv=2, error_score="raise"),
    "search, pipeline": searched(REDUCED_RIDGE, {"ridge__alpha": [0.1, 1.0]}, cv=2, error_score="raise"),
}

IMPUTERS = {
    "imputer": VBImputer(VBMixture(2, **ONE_START)),
}

CLASSIFIERS = {
    "naive classifier": VBClassifier(n_init=1, random_state=0),
}

STRICT = {"xfail_strict": True} if "xfail_strict" in inspect.signature(parametrize_with_checks).parameters else {}

A_LIST = (
    "With several latents predict_proba returns a list, one array for each, as scikit-learn's multi-output classifiers "
    "do. The check compares arrays."
)
UNKNOWN = "The check asks about rows of weight 0, whose categories count for nothing: they are unknown, hence an error."


WITHOUT_Y = (
    "As in scikit-learn's own searches: without y they call fit(X), which an estimator that needs y cannot take."
)
OF_A_SEQUENCE = "The rows of a table are one sequence: a state hangs on those before and after, a score on all of them."
OF_ROWS = "Sequences count as a whole: weights that differ between the rows of one are refused."
OF_NUMBERS = (
    "A mapping in a cell is refused by a ValueError that names the column; the check asks for NumPy's TypeError."
)
# The four that rows which hang together cannot pass.
OF_SEQUENCES = {
    "check_methods_sample_order_invariance": OF_A_SEQUENCE,
    "check_methods_subset_invariance": OF_A_SEQUENCE,
    "check_sample_weight_equivalence_on_dense_data": OF_ROWS,
    "check_sample_weights_not_overwritten": OF_ROWS,
}


def expected_failures(estimator):
    if isinstance(estimator, (VBHMM, VBLinearDynamicalSystem)):
        return OF_SEQUENCES
    if isinstance(estimator, VBFactorAnalysis):
        return {"check_dtype_object": OF_NUMBERS}
    if not isinstance(estimator, VBDiscreteDAG):
        needs_y = isinstance(getattr(estimator, "estimator", None), (Ridge, LogisticRegression))
        return {"check_requires_y_none": WITHOUT_Y} if needs_y else {}
    if estimator.latents == ["h0", "h1"]:
        return {"check_methods_sample_order_invariance": A_LIST, "check_methods_subset_invariance": A_LIST}
    if estimator.handle_unknown == "error":
        return {"check_sample_weight_equivalence_on_dense_data": UNKNOWN}
    return {}


@parametrize_with_checks(
    [
        *ESTIMATORS.values(),
        *MIXTURES.values(),
        *FACTOR_ANALYSES.values(),
        *HMMS.values(),
        *SYSTEMS.values(),
        *MIXED.values(),
        *SEARCHES.values(),
        *IMPUTERS.values(),
        *CLASSIFIERS.values(),
    ],
    expected_failed_checks=expected_failures,
    **STRICT,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


# They name the columns of a frame as they like.
WITH_NAMED_COLUMNS = {
    "check_dataframe_column_names_consistency",
    "check_global_output_transform_pandas",
    "check_global_set_output_transform_polars",
    "check_set_output_transform_pandas",
    "check_set_output_transform_polars",
    "check_transformer_get_feature_names_out_pandas",
}
EXTRA_CHECKS = [
    "check_dataframe_column_names_consistency",
    "check_estimators_partial_fit_n_features",
    "check_get_feature_names_out_error",
    "check_global_output_transform_pandas",
    "check_global_set_output_transform_polars",
    "check_inplace_ensure_writeable",
    "check_param_validation",
    "check_set_output_transform",
    "check_set_output_transform_pandas",
    "check_set_output_transform_polars",
    "check_transformer_get_feature_names_out",
    "check_transformer_get_feature_names_out_pandas",
    "check_transformer_preserve_dtypes",
]


# A frame is made of the array that transform returns and of its columns' names, whatever the options of the fit. One
# check of containers is for all estimators; the others, in four disguises, are for each class and number of columns.
IN_FRAMES = {
    "check_global_output_transform_pandas",
    "check_global_set_output_transform_polars",
    "check_set_output_transform_pandas",
    "check_set_output_transform_polars",
}
FRAMED = {
    *("default", "three states", "mixture", "full", "categories", "factor analysis"),
    *("principal components by ml", "hmm", "three states of a chain", "linear dynamical system", "search, averaging"),
    "network of measurements",
    "imputer",
}
TRANSFORMERS = (
    ESTIMATORS
    | MIXTURES
    | FACTOR_ANALYSES
    | HMMS
    | SYSTEMS
    | MIXED
    | IMPUTERS
    | {name: each for name, each in SEARCHES.items() if get_tags(each).transformer_tags is not None}
)


def test_frames_are_checked_for_every_class():
    assert set(TRANSFORMERS) >= FRAMED
    assert {type(TRANSFORMERS[name]) for name in FRAMED} == {type(each) for each in TRANSFORMERS.values()}


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        pytest.param(estimator, check, id=f"{check}-{name}")
        for check in EXTRA_CHECKS
        for name, estimator in TRANSFORMERS.items()
        if check not in IN_FRAMES or name in FRAMED
    ],
)
def test_extra_check(estimator, name):
    check = getattr(estimator_checks, name, None)
    if check is None:
        pytest.skip(f"this scikit-learn has no {name}")
    if name == "check_estimators_partial_fit_n_features" and not hasattr(estimator, "partial_fit"):
        pytest.skip("partial_fit needs method='vb'")
    if name in WITH_NAMED_COLUMNS and getattr(estimator, "structure", None) is not None:
        pytest.skip("the structure names other columns")
    check(type(estimator).__name__, estimator)
