"""Models whose parameters are given: answers against hmmlearn and SciPy, files to the bit, refusals that say why."""

from __future__ import annotations

import copy
import pickle
from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp
from sklearn.base import clone

from skvbem import VBHMM, VBMixture, load, save
from skvbem.emissions import (
    Categorical,
    Censored,
    Exponential,
    FactorGaussian,
    Gaussian,
    Interval,
    Ordinal,
    Poisson,
    Regression,
)
from skvbem.errors import DataWarning

STARTPROB = np.array([0.6, 0.4, 0.0])
TRANSMAT = np.array([[0.8, 0.2, 0.0], [0.1, 0.7, 0.2], [0.3, 0.0, 0.7]])
WEIGHTS = np.array([0.5, 0.2, 0.3])
MEANS = np.array([[1000.0, 3.0], [1002.0, 2.0], [997.0, 5.0]])
ROOTS = np.array([[[1.0, 0.0], [0.9, 0.3]], [[2.0, 0.0], [-0.5, 1.0]], [[0.5, 0.0], [0.1, 2.0]]])
MATRICES = ROOTS @ ROOTS.swapaxes(-1, -2)
COVARIANCES = {
    "full": MATRICES,
    "tied": MATRICES[0],
    "diag": np.diagonal(MATRICES, axis1=1, axis2=2),
    "spherical": MATRICES[:, 0, 0],
}


def gaussian(kind):
    return {"means": MEANS, "covariances": COVARIANCES[kind]}


def matrices(kind):
    return [Gaussian(kind).covariances(gaussian(kind), [0, 1])[k] for k in range(3)]


# Against hmmlearn -----------------------------------------------------------------------------------------------------


def hmmlearn_model(kind):
    hmm = pytest.importorskip("hmmlearn.hmm")
    if kind in COVARIANCES:
        theirs = hmm.GaussianHMM(3, kind)
        theirs.n_features, theirs.means_, theirs.covars_ = 2, MEANS, COVARIANCES[kind]
        ours = {"parameters": gaussian(kind), "emission": "gaussian", "covariance_type": kind}
    elif kind == "categorical":
        theirs = hmm.CategoricalHMM(3)
        theirs.emissionprob_ = np.array([[0.5, 0.5, 0.0], [0.1, 0.2, 0.7], [1 / 3, 1 / 3, 1 / 3]])
        theirs.n_features = 3
        ours = {"parameters": {"probabilities": theirs.emissionprob_}, "emission": "categorical"}
    elif kind == "multinomial":
        theirs = hmm.MultinomialHMM(3, n_trials=8)
        theirs.emissionprob_ = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [1 / 3, 1 / 3, 1 / 3]])
        theirs.n_features = 3
        ours = {"parameters": {"shares": theirs.emissionprob_, "n_trials": 8}, "emission": "multinomial"}
    else:
        theirs = hmm.PoissonHMM(3)
        theirs.lambdas_ = np.array([[1.0, 20.0], [4.0, 0.5], [9.0, 3.0]])
        theirs.n_features = 2
        ours = {"parameters": {"rates": theirs.lambdas_}, "emission": "poisson"}
    theirs.startprob_, theirs.transmat_ = STARTPROB, TRANSMAT
    return theirs, VBHMM.from_parameters(STARTPROB, TRANSMAT, **ours)


@pytest.mark.parametrize("kind", [*COVARIANCES, "categorical", "multinomial", "poisson"])
@pytest.mark.filterwarnings("ignore:MultinomialHMM has undergone")
def test_answers_are_those_of_hmmlearn(kind):
    theirs, ours = hmmlearn_model(kind)
    X, _ = theirs.sample(120, random_state=3)
    lengths = [50, 70]
    assert ours.score_samples(X, lengths=lengths).sum() == pytest.approx(theirs.score(X, lengths), abs=1e-10, rel=1e-12)
    np.testing.assert_allclose(ours.predict_proba(X, lengths=lengths), theirs.predict_proba(X, lengths), atol=1e-10)
    log_probability, states = theirs.decode(X, lengths)
    our_states, ours_of_each = ours.decode(X, lengths=lengths)
    np.testing.assert_array_equal(our_states, states)
    assert ours_of_each.sum() == pytest.approx(log_probability, abs=1e-10, rel=1e-12)


def test_expectation_maximization_goes_on_from_parameters_that_were_given():
    theirs, ours = hmmlearn_model("poisson")
    X, _ = theirs.sample(150, random_state=0)
    theirs.set_params(init_params="", n_iter=1000, tol=1e-9).fit(X)
    ours.set_params(method="ml", warm_start=True).fit(X)
    assert ours.log_likelihood_ == pytest.approx(theirs.score(X), abs=1e-4)
    np.testing.assert_allclose(ours.parameters_["poisson"]["rates"], theirs.lambdas_, rtol=1e-3)
    assert not hasattr(clone(ours), "transmat_")


# Against SciPy --------------------------------------------------------------------------------------------------------

RATES = np.array([[0.5, 3.0], [2.0, 1.0], [7.0, 10.0]])
TABLES = np.array(
    [[[0.2, 0.8, 0.0], [0.1, 0.3, 0.6]], [[1.0, 0.0, 0.0], [0.5, 0.25, 0.25]], [[0.5, 0.5, 0], [0, 0, 1]]]
)
SHARES = np.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1], [0.6, 0.2, 0.2]])


def cases():
    normal = {
        kind: (
            {"emission": "gaussian", "covariance_type": kind, "parameters": gaussian(kind)},
            MEANS[[0, 1, 2, 0]] + [[0.3, -1.0], [1.0, 1.0], [0.0, 0.1], [5.0, 5.0]],
            lambda x, k, kind=kind: stats.multivariate_normal(MEANS[k], matrices(kind)[k]).logpdf(x),
        )
        for kind in COVARIANCES
    }
    counts = np.array([[0, 2], [3, 1], [9, 12]])
    return normal | {
        "poisson": (
            {"emission": Poisson(), "parameters": {"rates": RATES}},
            counts,
            lambda x, k: stats.poisson(RATES[k]).logpmf(x).sum(),
        ),
        "exponential": (
            {"emission": Exponential(), "parameters": {"rates": RATES}},
            counts + 0.25,
            lambda x, k: stats.expon(scale=1 / RATES[k]).logpdf(x).sum(),
        ),
        "bernoulli": (
            {"emission": "bernoulli", "parameters": {"probabilities": TABLES[:, :, 0]}},
            np.array(list(product([0, 1], [0, 1]))),
            lambda x, k: stats.bernoulli(TABLES[k, :, 0]).logpmf(x).sum(),
        ),
        "categorical": (
            {
                "emission": Categorical(),
                "parameters": {"probabilities": np.where(np.arange(3) < [[2], [3]], TABLES, np.nan)},
                "categories": {"x0": ["no", "yes"]},
            },
            np.array(list(product(["no", "yes"], [0, 1, 2])), dtype=object),
            lambda x, k: np.log(TABLES[k, 0, ["no", "yes"].index(x[0])] * TABLES[k, 1, x[1]]),
        ),
        "multinomial": (
            {"emission": "multinomial", "parameters": {"shares": SHARES}},
            np.array([[3, 0, 1], [0, 2, 2], [5, 5, 5]]),
            lambda x, k: stats.multinomial(x.sum(), SHARES[k]).logpmf(x),
        ),
    }


@pytest.mark.parametrize("name", cases())
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_densities_of_mixtures_are_those_of_scipy(name):
    options, X, log_density = cases()[name]
    model = VBMixture.from_parameters(WEIGHTS, **options)
    log_joint = np.log(WEIGHTS) + [[log_density(row, k) for k in range(3)] for row in X]
    total = logsumexp(log_joint, axis=1)
    np.testing.assert_allclose(model.score_samples(X), total, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(model.predict_proba(X), np.exp(log_joint - total[:, None]), atol=1e-11)


@pytest.mark.parametrize("columns", [None, 2])
def test_measurements_between_ends_are_given_by_two_columns_each(columns):
    parameters = {"means": [[0.0], [3.0]], "covariances": [[1.0], [4.0]]}
    model = VBMixture.from_parameters([0.3, 0.7], parameters, emission=Interval(), columns=columns)
    X = np.array([[0.0, 1.0], [np.nan, 2.0], [2.0, np.nan], [-9.0, -8.0]])
    low, high = np.where(np.isnan(X), [-np.inf, np.inf], X).T[:, :, None]
    parts = stats.norm([0.0, 3.0], [1.0, 2.0])
    assert model.score_samples(X) == pytest.approx(np.log((parts.cdf(high) - parts.cdf(low)) @ [0.3, 0.7]), rel=1e-9)
    drawn = model.sample(20, random_state=0)[0]
    assert drawn.shape == (20, 2)
    assert (drawn[:, 0] == drawn[:, 1]).all()
    censored = VBMixture.from_parameters([0.3, 0.7], parameters, emission=Censored(above=2.0))
    of_last = parts.cdf([[-1.0], [np.inf]]) - parts.cdf([[-np.inf], [2.0]])
    density = [parts.pdf([-1.0]) @ [0.3, 0.7], of_last[1] @ [0.3, 0.7]]
    assert censored.score_samples([[-1.0], [2.0]]) == pytest.approx(np.log(density), rel=1e-9)


EDGES = np.array([[-1.0, 0.0, 1.0], [0.0, 0.5, np.nan]])
NUMBERS = {"means": np.array([[0.0, 1.0], [2.0, -1.0]]), "covariances": np.array([[1.0, 2.0], [0.5, 1.0]])}


def test_ordered_answers_that_are_given_have_the_mass_between_edges():
    levels = {"b": ["no", "perhaps", "yes"]}
    given = {"columns": ["a", "b"], "categories": levels}
    among = VBMixture.from_parameters([0.3, 0.7], NUMBERS | {"edges": EDGES}, emission=Ordinal(), **given)
    own = VBMixture.from_parameters([0.3, 0.7], NUMBERS, emission=Ordinal([EDGES[0], EDGES[1, :2]]), **given)
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(list(product(range(4), levels["b"])), columns=["a", "b"])
    ends = [np.r_[-np.inf, edges[np.isfinite(edges)], np.inf] for edges in EDGES]
    laws = stats.norm(NUMBERS["means"][:, :, None], np.sqrt(NUMBERS["covariances"])[:, :, None])
    mass = [np.diff(laws.cdf(of_column)[:, j], axis=1) for j, of_column in enumerate(ends)]
    total = np.einsum("k,ki,kj->ij", [0.3, 0.7], *mass).ravel()
    again = VBMixture.from_parameters([0.3, 0.7], among.parameters_, emission=Ordinal(), **given)
    for model in (among, own, again):
        assert model.score_samples(X) == pytest.approx(np.log(total), abs=1e-11)
        assert model.parameters_["ordinal"]["probabilities"][:, 1, :3] == pytest.approx(mass[1])
    unnamed = VBMixture.from_parameters([0.3, 0.7], NUMBERS | {"edges": EDGES}, emission=Ordinal())
    assert [levels.tolist() for levels in unnamed.categories_.values()] == [[0, 1, 2, 3], [0, 1, 2]]
    drawn = np.asarray(among.sample(4000, random_state=0)[0], dtype=object)
    assert (drawn[:, 1] == "no").mean() == pytest.approx(mass[1][:, 0] @ [0.3, 0.7], abs=0.03)
    chain = VBHMM.from_parameters([0.3, 0.7], [[1.0, 0.0], [0.0, 1.0]], among.parameters_, emission=Ordinal(), **given)
    assert chain.score(X[:1]) == pytest.approx(np.log(total[0]), abs=1e-11)


def test_edges_that_are_given_are_those_of_all_components():
    for edges, text in (
        (None, "must have 'edges', unless the emission has them"),
        (EDGES[:1], "must have 2 entries, one for each of its columns. Got 1"),
        (-EDGES, "position 0, which has 4 answers, 3 numbers up to 1e\\+06 in size, each above the last"),
        (np.stack([EDGES, EDGES + 1.0]), "or the same one for each component"),
        (3.0, "an array of columns by edges"),
    ):
        with pytest.raises(ValueError, match=text):
            VBMixture.from_parameters([0.3, 0.7], NUMBERS | {"edges": edges}, emission=Ordinal())
    levels = {"b": ["no", "yes"]}
    with pytest.raises(ValueError, match="have 2 levels of column 'b'"):
        VBMixture.from_parameters(
            [0.3, 0.7], NUMBERS | {"edges": EDGES}, emission=Ordinal(), columns=["a", "b"], categories=levels
        )


def test_regressions_that_are_given_are_those_of_their_definition():
    slopes, at_zero, variances = np.array([[[2.0, -1.0]], [[0.5, 3.0]]]), np.array([[10.0], [-3.0]]), [[0.5], [2.0]]
    parameters = {"coefficients": slopes, "intercepts": at_zero, "variances": variances}
    emission = Regression(covariates=["u", "v"])
    model = VBMixture.from_parameters([0.3, 0.7], parameters, emission=emission, columns=["u", "y", "v"])
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame({"u": [0.0, 1.5, -2.0], "y": [9.0, 0.0, 4.0], "v": [1.0, 2.0, 0.5]})
    means = at_zero[:, 0] + X[["u", "v"]].to_numpy() @ slopes[:, 0].T
    log_joint = np.log([0.3, 0.7]) + stats.norm(means, np.sqrt(variances)[:, 0]).logpdf(X[["y"]])
    np.testing.assert_allclose(model.score_samples(X), logsumexp(log_joint, axis=1), rtol=1e-12)
    assert model.parameters_["regression"]["intercepts"] == pytest.approx(at_zero)


def test_an_autoregression_that_is_given_has_the_density_of_its_steps():
    parameters = {"coefficients": [[[0.5, 0.25]]], "intercepts": [[3.0]], "variances": [[0.04]]}
    model = VBHMM.from_parameters([1.0], [[1.0]], parameters, emission=Regression(lags=2))
    y = np.array([12.0, 11.5, 11.9, 12.2, 12.0])
    means = 3.0 + 0.5 * y[1:-1] + 0.25 * y[:-2]
    expected = stats.norm(means, 0.2).logpdf(y[2:]).sum()
    assert model.score_samples(y[:, None])[0] == pytest.approx(expected, rel=1e-12)
    assert model.forecast([y[:, None]]).expected["x0"][0, 0] == pytest.approx(3.0 + 0.5 * y[-1] + 0.25 * y[-2])


def test_groups_of_columns_are_given_by_name():
    pandas = pytest.importorskip("pandas")
    emission = [("visits", Poisson(), ["n"]), ("kind", Categorical(), ["a", "b"])]
    parameters = {"visits": {"rates": RATES[:, :1]}, "kind": {"probabilities": TABLES}}
    options = {"emission": emission, "columns": ["a", "n", "b"], "categories": {"a": ["p", "q", "r"]}}
    model = VBMixture.from_parameters(WEIGHTS, parameters, **options)
    X = pandas.DataFrame({"a": ["p", "q"], "n": [2, 0], "b": [1, 2]})
    of_counts = stats.poisson(RATES[:, 0]).pmf(X[["n"]])
    joint = WEIGHTS * of_counts * TABLES[:, 0, [0, 1]].T * TABLES[:, 1, [1, 2]].T
    np.testing.assert_allclose(model.score_samples(X), np.log(joint.sum(axis=1)), rtol=1e-12)
    assert model.feature_names_in_.tolist() == ["a", "n", "b"]
    assert model.groups_ == {"visits": ["n"], "kind": ["a", "b"]}


def test_sticks_have_the_weights_that_are_given():
    options = {"emission": "poisson", "weight_concentration_prior_type": "dirichlet_process"}
    model = VBMixture.from_parameters(WEIGHTS, {"rates": RATES}, **options)
    np.testing.assert_allclose(model.weights_, WEIGHTS, rtol=1e-14)


def test_rows_are_drawn_at_the_parameters():
    model = VBMixture.from_parameters(WEIGHTS, gaussian("full"), emission="gaussian")
    X, components = model.sample(40_000, random_state=0)
    np.testing.assert_allclose(np.bincount(components) / len(X), WEIGHTS, atol=0.01)
    for k in range(3):
        np.testing.assert_allclose(X[components == k].mean(axis=0), MEANS[k], atol=0.08)
        np.testing.assert_allclose(np.cov(X[components == k].T), MATRICES[k], atol=0.15)
    shares = VBMixture.from_parameters(WEIGHTS, {"shares": SHARES, "n_trials": 7}, emission="multinomial")
    assert set(shares.sample(50, random_state=0)[0].sum(axis=1)) == {7}
    _, states = VBHMM.from_parameters(STARTPROB, TRANSMAT, {"rates": RATES}, emission="poisson").sample(5000, 0)
    assert not ((states[:-1] == 2) & (states[1:] == 1)).any()
    assert states[0] != 2


# Files ----------------------------------------------------------------------------------------------------------------


def models():
    gaps = {"x0": ["no", "yes"]}
    return {
        "hmm": VBHMM.from_parameters(STARTPROB, TRANSMAT, gaussian("full"), emission="gaussian"),
        "tables": VBHMM.from_parameters(
            STARTPROB, TRANSMAT, {"probabilities": TABLES}, emission="categorical", categories=gaps
        ),
        "mixture": VBMixture.from_parameters(WEIGHTS, gaussian("diag"), emission="gaussian", covariance_type="diag"),
        "regression": VBMixture.from_parameters(
            WEIGHTS,
            {"coefficients": np.ones((3, 1, 1)), "intercepts": MEANS[:, :1], "variances": [[1.0]] * 3},
            emission=Regression(covariates=[1]),
            columns=2,
        ),
    }


@pytest.mark.parametrize("name", models())
def test_a_file_holds_them_to_the_bit(tmp_path, name):
    model = models()[name]
    save(model, tmp_path / "model.skvbem")
    X = np.array([["no", 1], ["yes", 2]], dtype=object) if name == "tables" else MEANS
    for again in (load(tmp_path / "model.skvbem"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        for ours, theirs in zip(model.fitted.point, again.fitted.point, strict=True):
            np.testing.assert_array_equal(
                np.concatenate([*map(np.ravel, ours)]), np.concatenate([*map(np.ravel, theirs)])
            )


# Refusals -------------------------------------------------------------------------------------------------------------


def test_what_needs_data_is_refused_with_the_reason():
    model, X = models()["hmm"], MEANS
    for ask in (
        model.log_evidence, lambda: model.log_evidence(X, kind="ais"), lambda: model.bic(X), lambda: model.bootstrap(X),
        lambda: model.credible_intervals(X), lambda: model.credible_intervals(method="vb"), lambda: model.summary(X),
        lambda: model.partial_fit(X), lambda: model.sample_posterior(X), lambda: model.standard_errors(X),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="The parameters of this VBHMM were given, so that"):
            ask()
    for name in ("lower_bound_", "log_likelihood_", "counts_", "restarts_", "latent_states_", "mean_prior_"):
        with pytest.raises(AttributeError, match=f"no '{name}': its parameters were given"):
            getattr(model, name)
    with pytest.raises(AttributeError, match="has no attribute 'coefficients_'"):
        model.coefficients_  # noqa: B018


def test_a_report_says_that_parameters_were_given():
    report = models()["mixture"].summary()
    assert report.facts["parameters"] == "given, and not fitted"
    assert "none: the parameters were given" in repr(report)
    assert report.tables[0].rows == ["weight"]
    assert report.states == {}
    assert report.doubts == ()


def test_a_step_that_no_path_can_make_is_of_no_state():
    model = models()["tables"]
    X = np.array([["no", 2], ["no", 0], ["yes", 0]], dtype=object)  # only state 0 can begin so, and ...
    tables = {"probabilities": [[1.0, 0.0], [0.5, 0.5]]}
    stuck = VBHMM.from_parameters([1.0, 0.0], np.eye(2), tables, emission="categorical")
    with pytest.warns(DataWarning, match="steps have probability 0"):
        np.testing.assert_array_equal(stuck.predict_proba([[0], [1]]), np.full((2, 2), 0.5))
    assert stuck.score_samples([[0], [1]])[0] == -np.inf
    assert np.isfinite(model.predict_proba(X)).all()


WRONG = [
    ({"startprob": [0.5, 0.4, 0.0]}, "'startprob' of VBHMM must hold numbers >= 0 that sum to one"),
    ({"startprob": [[1.0, 0.0, 0.0]]}, "'startprob' of VBHMM must be an array of probabilities"),
    ({"transmat": TRANSMAT * [[1.0], [1.1], [1.0]]}, "'transmat' of VBHMM must hold numbers >= 0 that sum to one"),
    ({"transmat": TRANSMAT + np.array([-0.9, 0.9, 0.0])}, "'transmat' of VBHMM must hold numbers >= 0"),
    ({"transmat": TRANSMAT[:2]}, r"must have the shape \(3, 3\)"),
    ({"transmat": "sticky"}, "'transmat' of VBHMM must be an array of numbers"),
    ({"transmat_mask": 0}, "'transmat' of VBHMM is > 0 somewhere where a prior or mask rules it out"),
    ({"emission": "auto"}, "no X that tells what columns hold"),
    ({"emission": "gausssian"}, "Did you mean 'gaussian'"),
    ({"emission": [("one", Gaussian(), [0, 1])]}, "needs 'columns'"),
    ({"emission": FactorGaussian(1)}, None),
    ({"columns": 3}, "of 3 components and 3 columns"),
    ({"columns": ["a", "a"]}, "different names"),
    ({"parameters": {"means": MEANS}}, "There is no 'covariances'"),
    ({"parameters": [1.0]}, "must be a mapping of names to arrays"),
    ({"parameters": {"means": MEANS, "covariance": MATRICES}}, "no parameter 'covariance'. Did you mean 'covariances'"),
    ({"parameters": {"means": MEANS, "covariances": -MATRICES}}, "symmetric and positive definite.* on its diagonal"),
    ({"parameters": {"means": MEANS, "covariances": ROOTS}}, "number 0 is not symmetric"),
    ({"parameters": {"means": MEANS, "covariances": np.ones((3, 2, 2))}}, "the eigenvalue"),
    ({"parameters": {"means": MEANS, "covariances": MATRICES[:, 0]}}, "must be an array of 3 axes"),
    ({"parameters": {"means": MEANS * np.nan, "covariances": MATRICES}}, "'means' of Gaussian must be finite"),
    ({"parameters": {"means": MEANS[:2], "covariances": MATRICES[:2]}}, "of 3 components and 2 columns"),
    ({"emission": "poisson", "parameters": {"rates": RATES - 0.5}}, "'rates' of Poisson must be > 0"),
    ({"emission": "bernoulli", "parameters": {"probabilities": RATES}}, "must lie between 0 and 1"),
    ({"emission": "categorical", "parameters": {"probabilities": TABLES * 0.9}}, "Some sum to 0.9"),
    ({"emission": "multinomial", "parameters": {"shares": SHARES, "n_trials": 1.5}}, "whole number >= 1"),
    (
        {"emission": "categorical", "parameters": {"probabilities": TABLES}, "categories": {"x1": [1, 2]}},
        "have 2 levels of column 'x1'",
    ),
    (
        {
            "emission": Regression(covariates=["u"]),
            "columns": ["u", "y"],
            "parameters": {"coefficients": np.ones((3, 1, 2)), "intercepts": RATES[:, :1], "variances": RATES[:, :1]},
        },
        r"must have the shape \(3, 1, 1\)",
    ),
    ({"method": "bayes"}, "'method' parameter of VBHMM"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_parameters_that_make_no_model_are_refused(change, message):
    given = {"startprob": STARTPROB, "transmat": TRANSMAT, "parameters": gaussian("full"), "emission": "gaussian"}
    kind = TypeError if message is None else ValueError
    with pytest.raises(kind, match=message or "Parameters of FactorGaussian cannot be given"):
        VBHMM.from_parameters(**given | change)
    if "startprob" not in change:
        return
    with pytest.raises(ValueError, match="'weights' of VBMixture must"):
        VBMixture.from_parameters(change["startprob"], gaussian("full"), emission="gaussian")
