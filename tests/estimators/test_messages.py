"""Natural mistakes of newcomers: each message says whose what is wrong, what was expected, what came and what to do."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture

import skvbem
from skvbem import (
    DAG,
    VBHMM,
    DAGSpace,
    GridSpace,
    LatentClassSpace,
    Network,
    StructureSearchCV,
    VBClassifier,
    VBDiscreteDAG,
    VBFactorAnalysis,
    VBImputer,
    VBLinearDynamicalSystem,
    VBMixture,
    VBNetwork,
    bootstrap_lrt,
    compare,
    load,
    read_bif,
    save,
)
from skvbem.datasets import load_carcinoma, load_earthquakes, load_faithful, load_nile
from skvbem.emissions import Gaussian, Poisson
from skvbem.errors import SavedFitError, StructureError, TooLargeError
from skvbem.evidence import scorer

pd = pytest.importorskip("pandas")
SLIDES, GEYSER = load_carcinoma(as_frame=True).data, load_faithful().data
QUAKES, NILE = load_earthquakes().data, load_nile().data
COINS = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (50, 11)), columns=[f"c{i}" for i in range(11)])
INFINITE = np.where(np.arange(544).reshape(272, 2) == 7, np.inf, GEYSER)
QUICK = {"n_init": 2, "random_state": 0}


class Fits:
    """Fits that are asked, made when the first of them is."""

    def __getattr__(self, name):
        fitted = {
            "classes": lambda: VBDiscreteDAG(latents=2, **QUICK).fit(SLIDES),
            "likely": lambda: VBDiscreteDAG(latents=2, method="ml", **QUICK).fit(SLIDES),
            "mixture": lambda: VBMixture(2, **QUICK).fit(GEYSER),
            "chain": lambda: VBHMM(2, emission="poisson", **QUICK).fit(QUAKES),
            "search": lambda: StructureSearchCV(VBDiscreteDAG(), LatentClassSpace([1, 2], SLIDES.columns)),
        }[name]()
        setattr(self, name, fitted)
        return fitted


FITS = Fits()


def search(space, estimator=None, **options):
    return StructureSearchCV(VBDiscreteDAG() if estimator is None else estimator, space, **options)


# Mistake, error, and what its message has to say: whose, what was expected, what came, what to do.
CONSTRUCTORS = [
    (
        "the name that mixtures have",
        lambda: VBDiscreteDAG(n_components=3),
        TypeError,
        "VBDiscreteDAG has no parameter 'n_components'. Did you mean 'latents'?",
    ),
    (
        "the name that k-means has",
        lambda: VBMixture(n_clusters=3),
        TypeError,
        "Did you mean 'n_components'?",
    ),
    (
        "the name that pomegranate has",
        lambda: VBHMM(n_states=3),
        TypeError,
        "VBHMM has no parameter 'n_states'. Did you",
    ),
    (
        "the name that pgmpy has",
        lambda: VBDiscreteDAG(dag=[("a", "b")]),
        TypeError,
        "Did you mean 'structure'?",
    ),
    (
        "a letter too few",
        lambda: VBFactorAnalysis(n_factor=2),
        TypeError,
        "Did you mean 'n_factors'?",
    ),
    (
        "the seed of other libraries",
        lambda: VBLinearDynamicalSystem(seed=0),
        TypeError,
        "Did you mean 'random_state'?",
    ),
    (
        "a letter too many later",
        lambda: VBMixture(3).set_params(n_inits=2),
        ValueError,
        "Did you mean 'n_init'?",
    ),
    (
        "a name that nothing has",
        lambda: VBHMM(covars_prior=1),
        TypeError,
        "Its parameters are acceleration,",
    ),
    (
        "a parameter of the emission",
        lambda: VBMixture(mean_prior=0.0),
        TypeError,
        "VBMixture(emission=Gaussian(mean_prior",
    ),
    (
        "a number in quotes",
        lambda: VBMixture("3").fit(GEYSER),
        ValueError,
        "'n_components' parameter of VBMixture must",
    ),
    (
        "no components",
        lambda: VBHMM(0).fit(QUAKES),
        ValueError,
        "an int in the range [1, inf)",
    ),
    (
        "a method in capitals",
        lambda: VBMixture(2, method="MAP").fit(GEYSER),
        ValueError,
        "Did you mean 'map'?",
    ),
    (
        "a type of covariance in full",
        lambda: VBMixture(2, covariance_type="diagonal").fit(GEYSER),
        ValueError,
        "among {'diag', 'full', 'spherical', 'tied'}. Got 'diagonal' instead. Did you mean 'diag'?",
    ),
    (
        "a family in the plural",
        lambda: VBMixture(2, emission="gaussians").fit(GEYSER),
        ValueError,
        "Did you mean 'gaussian'?",
    ),
    (
        "a class for an object",
        lambda: VBMixture(2, emission=Poisson).fit(GEYSER),
        ValueError,
        "Give an object of it: Poisson()",
    ),
    (
        "a column that is none",
        lambda: VBMixture(2, emission={"gaussian": ["wait"], "poisson": ["eruptions"]}).fit(
            load_faithful(as_frame=True).data
        ),
        ValueError,
        "which is no column of X",
    ),
    (
        "a word for a tolerance",
        lambda: VBDiscreteDAG(latents=2, tol="small").fit(SLIDES),
        ValueError,
        "Got 'small' instead",
    ),
    (
        "a seed that is a word",
        lambda: VBHMM(2, random_state="seed").fit(QUAKES),
        ValueError,
        "'random_state' parameter of",
    ),
    (
        "an option of an emission",
        lambda: VBMixture(2, emission=Gaussian(covariance_type="ful")).fit(GEYSER),
        ValueError,
        "The 'covariance_type' parameter of Gaussian",
    ),
]

DATA = [
    (
        "nothing",
        lambda: VBDiscreteDAG(latents=2).fit(pd.DataFrame()),
        ValueError,
        "0 sample(s)",
    ),
    (
        "one column as an array",
        lambda: VBMixture(2).fit(GEYSER[:, 0]),
        ValueError,
        "array.reshape(-1, 1)",
    ),
    (
        "a cube",
        lambda: VBMixture(2).fit(GEYSER[None]),
        ValueError,
        "while VBMixture needs dim 2",
    ),
    (
        "the name of a file",
        lambda: VBNetwork(latents=2).fit("data.csv"),
        TypeError,
        "Got a str instead",
    ),
    (
        "infinity",
        lambda: VBMixture(2).fit(INFINITE),
        ValueError,
        "Column 'x1' of X holds infinity",
    ),
    (
        "no cell",
        lambda: VBMixture(2).fit(np.full((5, 2), np.nan)),
        ValueError,
        "has no observed cell. Leave such a column out",
    ),
    (
        "words among numbers",
        lambda: VBLinearDynamicalSystem(1).fit([["a"], ["b"]]),
        ValueError,
        "where a number is expected",
    ),
    (
        "negative counts",
        lambda: VBMixture(2, emission="poisson").fit([[1, -2], [3, 4]]),
        ValueError,
        "Column 'x1' of X holds -2",
    ),
    (
        "half a count",
        lambda: VBHMM(2, emission="poisson").fit([[1.5], [2.0]]),
        ValueError,
        "counts are whole numbers >= 0",
    ),
    (
        "a two among zeros and ones",
        lambda: VBMixture(2, emission="bernoulli").fit([[0, 2], [1, 1]]),
        ValueError,
        "for 'bernoulli' it must hold 0 and 1",
    ),
    (
        "too few weights",
        lambda: VBMixture(2).fit(GEYSER, sample_weight=np.ones(5)),
        ValueError,
        "'sample_weight' must have 272 weights, one for each row of X, or for each sequence of a list. Got an array of "
        "shape (5,)",
    ),
    (
        "negative weights",
        lambda: VBDiscreteDAG(latents=2).fit(SLIDES, sample_weight=-np.ones(118)),
        ValueError,
        "must be >= 0. Got -1, for row 0",
    ),
    (
        "too few labels",
        lambda: VBMixture(2).fit(GEYSER, labels=[0, 1]),
        ValueError,
        "for each of the 272 rows of X. Got 2",
    ),
    (
        "renamed columns",
        lambda: FITS.classes.predict(SLIDES.rename(columns={"A": "Z"})),
        ValueError,
        "- Z",
    ),
    (
        "a column less",
        lambda: FITS.mixture.predict(GEYSER[:, :1]),
        ValueError,
        "X has 1 features, but VBMixture is expecting 2",
    ),
    (
        "lengths that do not add up",
        lambda: VBHMM(2, emission="poisson").fit(QUAKES, lengths=[50, 50]),
        ValueError,
        "'lengths' add up to 100, but X has 107 rows",
    ),
    (
        "lengths in the place of y",
        lambda: VBHMM(2, emission="poisson").fit(QUAKES, [50, 57]),
        ValueError,
        "name them: fit(X, lengths=",
    ),
    (
        "a name for ids",
        lambda: VBHMM(2).fit(QUAKES, sequence_id="id"),
        ValueError,
        "Give the ids themselves",
    ),
    (
        "an empty sequence",
        lambda: VBHMM(2, emission="poisson").fit([QUAKES[:50], QUAKES[:0]]),
        ValueError,
        "Sequence 1 of X is empty (0 rows). Leave such sequences out",
    ),
]

ASKING = [
    (
        "before fit",
        lambda: VBMixture(2).predict(GEYSER),
        NotFittedError,
        "This VBMixture instance is not fitted yet",
    ),
    (
        "an attribute before fit",
        lambda: VBMixture(2).weights_,
        NotFittedError,
        "so that it has no 'weights_'. Call 'fit' first",
    ),
    (
        "a letter too few",
        lambda: FITS.mixture.weight_,
        AttributeError,
        "Did you mean 'weights_'?",
    ),
    (
        "a method that is almost one",
        lambda: FITS.mixture.predict_probs(GEYSER),
        AttributeError,
        "Did you mean 'predict_proba'?",
    ),
    (
        "the bound of a likelihood",
        lambda: FITS.likely.lower_bound_,
        AttributeError,
        "The fit is by method='ml', and what it has reached is 'log_likelihood_'",
    ),
    (
        "labels of scikit-learn",
        lambda: FITS.mixture.labels_,
        AttributeError,
        "predict(X) has the most probable state",
    ),
    (
        "classes of scikit-learn",
        lambda: FITS.mixture.classes_,
        AttributeError,
        "VBClassifier is the classifier",
    ),
    (
        "tables of a mixture",
        lambda: FITS.mixture.tables_,
        AttributeError,
        "'parameters_' holds what is learned",
    ),
    (
        "a node that is none",
        lambda: FITS.classes.query("h"),
        ValueError,
        "Did you mean 'h0'?",
    ),
    (
        "a state that is none",
        lambda: FITS.classes.query("h0", {"A": "yes"}),
        ValueError,
        "'yes' is not a state of 'A', whose states are 1, 2",
    ),
    (
        "a criterion without data",
        lambda: FITS.mixture.bic(),
        TypeError,
        "needs X, the data of the fit, as in bic(X)",
    ),
    (
        "the evidence of other data",
        lambda: FITS.mixture.log_evidence(GEYSER[:100]),
        ValueError,
        "belong to the data of its fit",
    ),
    (
        "a score in capitals",
        lambda: FITS.mixture.log_evidence(GEYSER, kind="AIS"),
        ValueError,
        "Did you mean 'ais'?",
    ),
    (
        "an option in the singular",
        lambda: FITS.mixture.log_evidence(GEYSER, kind="ais", n_chain=4),
        TypeError,
        "Did you mean 'n_chains'?",
    ),
    (
        "intervals of a point",
        lambda: FITS.likely.credible_intervals(SLIDES),
        ValueError,
        "Take standard_errors(X)",
    ),
    (
        "errors of a posterior",
        lambda: FITS.classes.standard_errors(SLIDES),
        ValueError,
        "Take credible_intervals",
    ),
    (
        "a number of steps alone",
        lambda: FITS.chain.forecast(5),
        TypeError,
        "Name the number of steps: forecast(X, n_steps=5)",
    ),
    (
        "per cent",
        lambda: FITS.chain.forecast(QUAKES, 3, level=95),
        ValueError,
        "a number between 0 and 1, such as 0.95. Got 95",
    ),
    (
        "no rows to draw",
        lambda: FITS.mixture.sample(0),
        ValueError,
        "'n_samples' parameter of sample must be an int >= 1. Got 0",
    ),
    (
        "one fit to compare",
        lambda: compare(FITS.mixture, GEYSER),
        TypeError,
        "as in compare([two, three], X)",
    ),
    (
        "a likelihood ratio of bounds",
        lambda: bootstrap_lrt(FITS.classes, FITS.classes, SLIDES),
        ValueError,
        "Fit both with method='ml'",
    ),
    (
        "a step of a table",
        lambda: FITS.classes.tables_["A"]["A":7],
        KeyError,
        "7 is not a state of 'A', whose states are 1, 2",
    ),
]

NETWORKS = [
    (
        "a circle",
        lambda: DAG([("a", "b"), ("b", "a")]),
        StructureError,
        "It has a -> b -> a; remove or turn one",
    ),
    (
        "a hidden node that nobody declares",
        lambda: VBDiscreteDAG([("A", "mood")]).fit(SLIDES),
        StructureError,
        "latents={'mood': 2}",
    ),
    (
        "a latent that is a column",
        lambda: VBDiscreteDAG(latents={"A": 2}).fit(SLIDES),
        StructureError,
        "Rename the latent",
    ),
    (
        "half a state",
        lambda: VBDiscreteDAG(latents=1.5).fit(SLIDES),
        TypeError,
        "Got 1.5 instead",
    ),
    (
        "a prior below zero",
        lambda: VBDiscreteDAG(latents=2, prior=-1).fit(SLIDES),
        ValueError,
        "finite concentrations > 0. Got -1",
    ),
    (
        "a table that does not sum to one",
        lambda: Network([("a", "b")], {"a": ["x", "y"], "b": ["x", "y"]}, {"a": [0.5, 0.6], "b": [[0.5, 0.5]] * 2}),
        ValueError,
        "that sum to one over its last axis. Got [0.5, 0.6]",
    ),
    (
        "a node without states",
        lambda: Network([("a", "b")], {"a": ["x", "y"]}, {}),
        StructureError,
        "They differ in 'b'",
    ),
    (
        "all graphs of eleven nodes",
        lambda: search(DAGSpace(COINS.columns), strategy="exhaustive").fit(COINS),
        TooLargeError,
        "DAGSpace has 3.16e+22 settings. Take strategy='structural'",
    ),
    (
        "a score in letters of its own",
        lambda: search(LatentClassSpace([1, 2], SLIDES.columns), scoring="BIK").fit(SLIDES),
        ValueError,
        "Did you mean 'bic'?",
    ),
    (
        "a name for an estimator",
        lambda: search(GridSpace({"n_components": [1]}), "VBMixture").fit(GEYSER),
        ValueError,
        "Got 'VBMixture' instead",
    ),
    (
        "a grid over no parameter",
        lambda: search(GridSpace({"n_component": [1, 2]}), VBMixture()).fit(GEYSER),
        ValueError,
        "VBMixture has no parameter 'n_component'. Did you mean 'n_components'?",
    ),
    (
        "required and forbidden",
        lambda: DAGSpace(["a", "b"], required=[("a", "b")], forbidden=[("a", "b")]),
        StructureError,
        "Drop one of the two",
    ),
    (
        "the best before fit",
        lambda: FITS.search.best_estimator_,
        AttributeError,
        "This StructureSearchCV instance is not fitted yet, so that it has no 'best_estimator_'. Call 'fit' first.",
    ),
    (
        "a scorer that is none",
        lambda: scorer("bicc"),
        ValueError,
        "There is no score 'bicc'. Did you mean 'bic'?",
    ),
    (
        "a word for a network",
        lambda: VBClassifier(structure="tann").fit(GEYSER, GEYSER[:, 0] > 3),
        ValueError,
        "Did you mean 'tan'?",
    ),
    (
        "a rule for an estimator",
        lambda: VBImputer("mean").fit(GEYSER),
        ValueError,
        "implementing 'fit' and 'impute'",
    ),
    (
        "a class in capitals",
        lambda: skvbem.VBHmm,
        AttributeError,
        "Did you mean 'VBHMM'?",
    ),
    (
        "a fit of another library",
        lambda: save(GaussianMixture(2).fit(GEYSER), "unused"),
        TypeError,
        "Got GaussianMixture",
    ),
    (
        "file and fit exchanged",
        lambda: save("unused", FITS.mixture),
        TypeError,
        "The estimator comes first: save(estimator, path)",
    ),
]

ALL = [*CONSTRUCTORS, *DATA, *ASKING, *NETWORKS]


@pytest.mark.parametrize(("mistake", "kind", "told"), [each[1:] for each in ALL], ids=[each[0] for each in ALL])
def test_a_mistake_is_told(mistake, kind, told):
    with pytest.raises(kind) as caught:
        mistake()
    text = str(caught.value)
    assert told in text
    assert "__init__" not in text
    assert "Mixin" not in text


def test_there_are_as_many_as_were_promised():
    assert len(ALL) >= 60


def test_files_that_are_none(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("network {")
    with pytest.raises(SavedFitError, match=r"notes\.txt' cannot be loaded: it is no zip archive"):
        load(path)
    with pytest.raises(ValueError, match=r"notes\.txt, line 1, column 10: expected 'property' or '}'"):
        read_bif(path)


def test_displays_of_other_models():
    pytest.importorskip("matplotlib")
    from skvbem.plotting import ClassProfileDisplay, DAGDisplay

    with pytest.raises(TypeError, match="Got VBMixture, which has no graph: see ClassProfileDisplay"):
        DAGDisplay.from_estimator(FITS.mixture)
    with pytest.raises(NotFittedError):
        DAGDisplay.from_estimator(VBDiscreteDAG(latents=2))
    with pytest.raises(ValueError, match="Did you mean 'A'"):
        ClassProfileDisplay.from_estimator(FITS.classes, features=["AA"])


def test_signatures_and_reasons_stay():
    """What suggests stands before what is there: signatures, and errors that have a reason of their own."""
    from inspect import signature

    assert next(iter(signature(VBMixture).parameters)) == "n_components"
    assert "structure" in signature(VBDiscreteDAG.__init__).parameters
    assert VBMixture.__init__.__qualname__ == "VBMixture.__init__"

    class Mine(VBMixture):
        def __init__(self, n_components=2, extra=1):
            super().__init__(n_components)
            self.extra = extra

    with pytest.raises(TypeError, match=r"Mine has no parameter 'extras'\. Did you mean 'extra'\?"):
        Mine(extras=1)
    assert Mine(extra=3).extra == 3
    with pytest.raises(AttributeError) as caught:
        VBMixture(method="ml").partial_fit  # noqa: B018
    assert "needs method='vb'" in str(caught.value.__cause__)
    assert not hasattr(VBMixture(), "weights_")
    assert not hasattr(VBFactorAnalysis(), "fit_predict")  # which depends on another attribute that is not there
    assert "transform" in dir(VBFactorAnalysis())
    assert getattr(VBMixture(), "anything", None) is None


def test_what_was_meant_is_looked_for_where_it_is_read(monkeypatch):
    """`hasattr` asks for many attributes, of scikit-learn's as of ours, and reads no message."""
    model = VBMixture().fit(load_faithful().data)
    with pytest.raises(AttributeError) as caught:
        model.weight_  # noqa: B018
    sent = pickle.loads(pickle.dumps(caught.value))
    assert type(sent) is AttributeError
    assert str(sent) == str(caught.value) == "'VBMixture' object has no attribute 'weight_'. Did you mean 'weights_'?"

    def refused(*names):
        raise AssertionError("Nobody reads this.")

    monkeypatch.setattr("skvbem._absent.did_you_mean", refused)
    assert not hasattr(model, "weight_")
    assert getattr(model, "predict_probs", None) is None
