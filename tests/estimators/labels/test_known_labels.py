"""Labels known in part, against what defines them: networks with a column of classes, and sums over unknown labels."""

import pickle
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln, logsumexp, multigammaln
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skvbem import VBHMM, StructureSearchCV, VBDiscreteDAG, VBMixture, blocks_of, load, save
from skvbem.emissions import FactorGaussian, Gaussian
from skvbem.fitting.evaluation import evaluation_of, simulated
from skvbem.graphs.dag import DAG

EXACTLY = {"random_state": 0, "tol": 1e-10}
KNOWN_PRIOR = Gaussian(
    mean_prior=np.zeros(2), mean_precision_prior=0.5, degrees_of_freedom_prior=3.0, covariance_prior=np.eye(2)
)


def log_dirichlet(counts):
    """ln of the evidence of counts under a Dirichlet prior of ones."""
    counts = np.asarray(counts, dtype=float)
    return gammaln(len(counts)) - gammaln(len(counts) + counts.sum()) + gammaln(counts + 1.0).sum()


def log_gaussian(rows, kappa=0.5, nu=3.0):
    """ln of the evidence of rows under the Normal-Wishart prior `KNOWN_PRIOR`."""
    n, d = rows.shape
    if n == 0:
        return 0.0
    mean = rows.mean(axis=0)
    scale = np.eye(d) + (rows - mean).T @ (rows - mean) + kappa * n / (kappa + n) * np.outer(mean, mean)
    return (
        -n * d / 2 * np.log(np.pi)
        + multigammaln((nu + n) / 2, d)
        - multigammaln(nu / 2, d)
        - (nu + n) / 2 * np.linalg.slogdet(scale)[1]
        + d / 2 * np.log(kappa / (kappa + n))
    )


def all_labels(known, n_components):
    """All completions of labels, of which -1 is not known."""
    return map(np.array, product(*(range(n_components) if label < 0 else [label] for label in known)))


def exact_mixture(rows, known, n_components, log_rows):
    return logsumexp(
        [
            log_dirichlet(np.bincount(labels, minlength=n_components))
            + sum(log_rows(rows[labels == k]) for k in range(n_components))
            for labels in all_labels(known, n_components)
        ]
    )


def log_binary(rows):
    return sum(log_dirichlet(np.bincount(column, minlength=2)) for column in rows.astype(int).T)


def exact_hmm(rows, known, n_states, log_rows):
    def of_path(path):
        pairs = np.zeros((n_states, n_states))
        np.add.at(pairs, (path[:-1], path[1:]), 1)
        chain = log_dirichlet(np.bincount(path[:1], minlength=n_states)) + sum(map(log_dirichlet, pairs))
        return chain + sum(log_rows(rows[path == k]) for k in range(n_states))

    return logsumexp([of_path(path) for path in all_labels(known, n_states)])


@pytest.fixture(scope="module")
def classes():
    """A table of binary columns with missing cells, classes known of some rows, and weights."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, 3, 80)
    rows = (rng.random((80, 4)) < 0.1 + 0.35 * true[:, None]).astype(float)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    rows[:4] = np.nan
    known = np.where(rng.random(80) < 0.3, true, -1)
    known[:3] = 0, 2, 0
    return rows, known, rng.integers(0, 4, 80)


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(3)
    true = np.repeat([0, 1, 2], 50)
    rows = rng.normal(size=(150, 3)) + np.array([[0, 0, 0], [3, 0, 0], [0, 4, 0]])[true]
    known = np.where(rng.random(150) < 0.15, true, -1)
    return rows, true, known


# Definitions ----------------------------------------------------------------------------------------------------------


def test_bound_is_that_of_a_network_with_the_class_as_a_column(classes):
    rows, known, weight = classes
    mixture = VBMixture(3, emission="categorical", **EXACTLY).fit(rows, sample_weight=weight, labels=known)
    names = list("abcd")
    frame = pd.DataFrame(rows, columns=names)
    frame["class"] = [f"c{label}" if label >= 0 else None for label in known]
    network = VBDiscreteDAG(DAG.naive_bayes("class", names), **EXACTLY).fit(frame, sample_weight=weight)
    assert mixture.lower_bound_ == pytest.approx(network.lower_bound_, abs=1e-9)
    by_name = VBMixture(3, emission="categorical", **EXACTLY).fit(rows, sample_weight=weight, labels=frame["class"])
    assert by_name.lower_bound_ == mixture.lower_bound_
    assert by_name.component_names_.tolist() == ["c0", "c1", "c2"]
    assert mixture.component_names_.tolist() == [0, 1, 2]


def test_weights_are_repeats(classes):
    rows, known, weight = classes
    fitted = VBMixture(3, emission="categorical", **EXACTLY).fit(rows, sample_weight=weight, labels=known)
    repeated = np.repeat(np.arange(len(rows)), weight)
    again = VBMixture(3, emission="categorical", **EXACTLY).fit(rows[repeated], labels=known[repeated])
    assert again.lower_bound_ == pytest.approx(fitted.lower_bound_, abs=1e-9)
    order = np.random.default_rng(1).permutation(len(rows))
    turned = VBMixture(3, emission="categorical", **EXACTLY).fit(
        rows[order], sample_weight=weight[order], labels=known[order]
    )
    assert turned.lower_bound_ == pytest.approx(fitted.lower_bound_, abs=1e-9)


@pytest.mark.parametrize(
    "known", [[0, -1, 0, -1, 1, -1, -1, 1], [0, 0, 0, 1, 1, 1, 0, 1], [2, -1, -1, 0, -1, 2, -1, -1]]
)
def test_exact_evidence_is_the_sum_over_unknown_labels(known):
    rng = np.random.default_rng(5)
    measured, binary = rng.normal(size=(8, 2)) + 2 * rng.integers(0, 2, size=(8, 1)), rng.integers(0, 2, size=(8, 3))
    n_components = max(known) + 1
    for emission, rows, log_rows in ((KNOWN_PRIOR, measured, log_gaussian), ("categorical", binary, log_binary)):
        fitted = VBMixture(n_components, emission=emission, **EXACTLY).fit(rows, labels=known)
        exact = exact_mixture(rows, known, n_components, log_rows)
        assert fitted.log_evidence(rows, labels=known, kind="exact").value == pytest.approx(exact, abs=1e-9)
        assert fitted.lower_bound_ < exact + 1e-9
        if min(known) >= 0:
            assert fitted.lower_bound_ == pytest.approx(exact, abs=1e-9)
        hmm = VBHMM(n_components, emission=emission, **EXACTLY).fit(rows, labels=known)
        exact = exact_hmm(rows, known, n_components, log_rows)
        assert hmm.log_evidence(rows, labels=known, kind="exact").value == pytest.approx(exact, abs=1e-9)
        assert hmm.lower_bound_ < exact + 1e-9
        if min(known) >= 0:
            assert hmm.lower_bound_ == pytest.approx(exact, abs=1e-9)


def test_exact_evidence_of_sticks_of_tied_covariances_and_of_several_sequences():
    rng = np.random.default_rng(6)
    rows, known = rng.integers(0, 2, size=(7, 2)), np.array([1, -1, -1, 0, -1, -1, 1])
    sticks = VBMixture(2, emission="categorical", weight_concentration_prior_type="dirichlet_process", **EXACTLY)
    value = sticks.fit(rows, labels=known).log_evidence(rows, labels=known, kind="exact").value

    def log_sticks(labels):  # one stick, Beta(1, 1)
        return log_dirichlet(np.bincount(labels, minlength=2))

    expected = [
        log_sticks(labels) + sum(log_binary(rows[labels == k]) for k in range(2)) for labels in all_labels(known, 2)
    ]
    assert value == pytest.approx(logsumexp(expected), abs=1e-9)

    sequences, of_each = [rows[:4], rows[4:]], [known[:4], [None, None, 1]]
    hmm = VBHMM(2, emission="categorical", **EXACTLY).fit(sequences, labels=of_each, sample_weight=[2, 1])
    written = VBHMM(2, emission="categorical", **EXACTLY).fit(
        [rows[:4], rows[:4], rows[4:]], labels=[known[:4], known[:4], known[4:]]
    )
    exact = hmm.log_evidence(sequences, labels=of_each, sample_weight=[2, 1], kind="exact").value
    again = written.log_evidence([rows[:4], rows[:4], rows[4:]], labels=[known[:4], known[:4], known[4:]], kind="exact")
    assert exact == pytest.approx(again.value, abs=1e-9)
    assert hmm.lower_bound_ == pytest.approx(written.lower_bound_, abs=1e-9)


def test_states_are_fixed_in_the_forward_backward_pass():
    """ln Z and posteriors of states at a point, by maximum likelihood, against all paths through the known states."""
    rows, known = np.array([[0, 1, 2, 0, 2, 1, 1]]).T, np.array([-1, 1, -1, -1, 0, -1, 2])
    hmm = VBHMM(3, emission="categorical", method="ml", random_state=0, max_iter=3, tol=1e3).fit(rows, labels=known)
    evaluation = evaluation_of(hmm, rows, labels=known)
    natural = evaluation.model.prior.natural(hmm.fitted.point)
    first, pairs, tables = hmm.startprob_, hmm.transmat_, hmm.parameters_["categorical"]["probabilities"][:, 0]
    total, states = 0.0, np.zeros((7, 3))
    for path in all_labels(known, 3):
        chance = first[path[0]] * np.prod(pairs[path[:-1], path[1:]]) * np.prod(tables[path, rows[:, 0]])
        total += chance
        states[np.arange(7), path] += chance
    assert evaluation.model.log_normalizers_of_sequences(natural, evaluation.data)[0] == pytest.approx(np.log(total))
    np.testing.assert_allclose(evaluation.model.smoothed(natural, evaluation.data), states / total, atol=1e-12)


@pytest.mark.parametrize(
    "model", [VBMixture(4, emission="categorical", **EXACTLY), VBHMM(4, emission="categorical", **EXACTLY)]
)
def test_sampled_evidence_counts_relabelings_of_components_without_labels_alone(model):
    rng = np.random.default_rng(8)
    rows, known = rng.integers(0, 2, size=(7, 2)), np.array([0, -1, -1, 1, -1, 0, -1])
    model = clone(model).fit(rows, labels=known)
    exact = model.log_evidence(rows, labels=known, kind="exact").value
    for kind in ("ais", "importance", "importance_gibbs"):
        sampled = model.log_evidence(rows, labels=known, kind=kind)
        assert sampled.details["n_relabelings"] == 2  # components 2 and 3 change places
        assert abs(sampled.value - exact) < 4 * sampled.standard_error + 0.01
    laplace = [model.log_evidence(rows, labels=known, kind="laplace", alias=alias).value for alias in (True, False)]
    assert laplace[0] - laplace[1] == pytest.approx(np.log(2))
    with pytest.raises(TypeError, match=r"labels are known, which say more of its parameters. Take dimension='free'"):
        model.log_evidence(rows, labels=known, kind="bic", dimension="identifiable")


# What is as it was ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [[-1] * 30, [None] * 30, [np.nan] * 30, pd.array([pd.NA] * 30, dtype="Int64")])
def test_labels_of_no_row_leave_the_fit_as_it_is_to_the_bit(labels):
    rows = np.random.default_rng(9).normal(size=(30, 2))
    for model in (VBMixture(2, random_state=0), VBHMM(2, random_state=0)):
        plain, labeled = clone(model).fit(rows), clone(model).fit(rows, labels=labels)
        np.testing.assert_array_equal(labeled.lower_bounds_, plain.lower_bounds_)
        np.testing.assert_array_equal(labeled.means_, plain.means_)
        assert not hasattr(labeled, "component_names_")


def test_one_component_has_nothing_to_label():
    rows = np.random.default_rng(9).normal(size=(30, 2))
    for model in (VBMixture(1), VBHMM(1)):
        plain, labeled = clone(model).fit(rows), clone(model).fit(rows, labels=[0, None, 0] * 10)
        assert labeled.lower_bound_ == pytest.approx(plain.lower_bound_, abs=1e-9)


def test_y_is_ignored(blobs):
    rows, true, known = blobs
    with_y = VBMixture(3, random_state=0).fit(rows, true, labels=known)
    assert with_y.lower_bound_ == VBMixture(3, random_state=0).fit(rows, labels=known).lower_bound_
    assert (
        VBMixture(3, random_state=0).fit(rows, true).lower_bound_ == VBMixture(3, random_state=0).fit(rows).lower_bound_
    )


# Starts and moves -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"n_components": 3},
        {"n_components": 5},
        {"n_components": "auto"},
        {"n_components": 3, "method": "ml"},
        {"n_components": 4, "method": "map", "init": "k-means++"},
        {"n_components": 3, "init": "random"},
        {"n_components": 5, "weight_concentration_prior_type": "dirichlet_process"},
        {"n_components": "auto", "weight_concentration_prior_type": "dirichlet_process"},
        {"n_components": "auto", "emission": FactorGaussian("auto")},
    ],
    ids=str,
)
def test_components_keep_the_names_of_their_rows(blobs, settings):
    """Names are given against the order of sizes, and of anything else that starts and moves could put in order."""
    rows, true, known = blobs
    kept = true != 1
    kept[55:62] = True  # the component of the middle name is the smallest
    rows, true = rows[kept], true[kept]
    names = np.array(["b", "a", "c"], dtype=object)
    labels = np.where(known[kept] >= 0, names[true], None)
    labels[np.flatnonzero(true == 1)[:4]] = "a"
    model = VBMixture(random_state=0, **settings).fit(rows, labels=labels)
    assert model.component_names_[:3].tolist() == ["a", "b", "c"]
    found = model.component_names_[model.predict(rows)]
    assert np.mean(found == names[true]) > 0.85
    is_known = labels != None  # noqa: E711
    assert np.mean(found[is_known] == labels[is_known]) > 0.9
    assert "a" in model.fitted.report(None)[0].columns


@pytest.mark.parametrize("init", ["k-means++", "random"])
@pytest.mark.parametrize("kind", [VBMixture, VBHMM])
def test_one_start_puts_components_where_their_labels_are(kind, init):
    """Five clumps far apart, one row of each labeled: where a start has them elsewhere no step brings them there."""
    rng = np.random.default_rng(13)
    true = rng.permutation(np.repeat(np.arange(5), 20))
    centers = 30 * np.column_stack([np.cos(np.arange(5)), np.sin(np.arange(5))])
    rows = rng.normal(size=(100, 2)) + centers[true]
    labels = np.full(100, -1)
    for k in range(5):
        labels[np.flatnonzero(true == k)[0]] = k
    for seed in range(3):
        model = kind(5, n_init=1, init=init, random_state=seed).fit(rows, labels=labels)
        np.testing.assert_array_equal(model.predict(rows), true)


def test_number_of_components_starts_from_the_names():
    rng = np.random.default_rng(11)
    rows = rng.normal(size=(120, 2)) + np.repeat([[0, 0], [7, 0], [0, 7]], 40, axis=0)
    labels = [None] * 120
    labels[0], labels[1], labels[45] = "y", "x", "z"  # two names in one cluster
    model = VBMixture("auto", random_state=0).fit(rows, labels=labels)
    assert model.component_names_.tolist() == ["x", "y", "z", 3]
    assert sorted(model.counts_.round())[2:] == [40, 40]


def test_hmm_finds_states_by_the_steps_whose_states_are_known():
    rng = np.random.default_rng(12)
    path = np.repeat(rng.permutation(np.tile([0, 1, 2], 12)), 6)
    rows = rng.normal(size=(len(path), 1)) + np.array([4.0, 0.0, 8.0])[path][:, None]
    labels = np.where(rng.random(len(path)) < 0.1, path, -1)
    for settings in ({}, {"transmat_prior": 0.5}, {"method": "ml"}, {"learn_prior": True}):
        hmm = VBHMM(3, random_state=0, **settings).fit(rows, labels=labels)
        assert np.mean(hmm.predict(rows) == path) > 0.97
    ids = rng.permutation(np.repeat(["one", "two"], len(path) // 2))
    at = np.concatenate([np.flatnonzero(ids == "one"), np.flatnonzero(ids == "two")])
    by_id = VBHMM(3, random_state=0).fit(rows[at], labels=labels[at], lengths=[len(path) // 2] * 2)
    mixed = VBHMM(3, random_state=0).fit(rows, labels=labels, sequence_id=ids)
    assert mixed.lower_bound_ == pytest.approx(by_id.lower_bound_, abs=1e-6)


# Everything else that is asked ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [VBMixture(3, random_state=0), VBHMM(3, random_state=0)], ids=repr)
def test_scores_draws_and_reports_need_the_labels_again(blobs, model, tmp_path):
    rows, _, known = blobs
    names = np.array(["b", "a", "c"], dtype=object)[known]
    names[known < 0] = None
    model = clone(model).fit(rows, labels=names)
    bound = model.log_evidence(rows, labels=names)
    assert bound.value == pytest.approx(model.lower_bound_, abs=1e-4)
    with pytest.raises(ValueError, match=r"knew labels of rows: give VB.* the same 'labels' again"):
        model.log_evidence(rows)
    with pytest.raises(ValueError, match="is other data"):
        model.log_evidence(rows, labels=known)
    assert model.bic(rows, labels=names) == -2 * model.log_evidence(rows, labels=names, kind="bic").value
    draws = model.sample_posterior(rows, 50, labels=names)
    means = draws.parameters["gaussian"]["means"].mean(axis=0)
    np.testing.assert_allclose(means, model.means_, atol=0.5)
    assert "a" in str(model.summary(rows, labels=names, method="linear_response"))
    with pytest.raises(ValueError, match="bootstrap of kind='nonparametric' keeps rows and labels together"):
        simulated(model, rows, labels=names)
    save(model, tmp_path / "model.fit")
    loaded = [pickle.loads(pickle.dumps(model)), load(tmp_path / "model.fit")]
    for again in loaded:
        np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
        assert again.component_names_.tolist() == ["a", "b", "c"]
        assert again.log_evidence(rows, labels=names).value == bound.value
    warm = model.set_params(warm_start=True).fit(rows, labels=names)
    assert warm.lower_bound_ == pytest.approx(bound.value, abs=1e-3)
    assert model.partial_fit(rows).component_names_.tolist() == ["a", "b", "c"]


def test_bootstrap_keeps_rows_and_labels_together(blobs):
    rows, _, known = blobs
    model = VBMixture(3, random_state=0).fit(rows, labels=known)
    draws = model.bootstrap(rows, 20, labels=known)
    assert draws.errors["gaussian"]["means"].max() < 1.0
    with pytest.raises(ValueError, match="keeps rows and labels together"):
        model.bootstrap(rows, 2, kind="parametric", labels=known)


def test_metadata_routing_brings_labels_through_a_pipeline(blobs):
    rows, true, known = blobs
    with config_context(enable_metadata_routing=True):
        model = VBMixture(3, random_state=0).set_fit_request(labels=True)
        pipeline = make_pipeline(StandardScaler(), model).fit(rows, true, labels=known)
    alone = VBMixture(3, random_state=0).fit(StandardScaler().fit_transform(rows), labels=known)
    assert pipeline[-1].lower_bound_ == alone.lower_bound_
    assert np.mean(pipeline.predict(rows) == true) > 0.85


def test_a_search_gives_labels_to_all_candidates(blobs):
    rows, _, known = blobs
    search = StructureSearchCV(VBMixture(random_state=0), {"n_components": [3, 4]}, scoring="lower_bound")
    search.fit(rows, labels=known)
    assert search.best_score_ == pytest.approx(
        VBMixture(3, random_state=0).fit(rows, labels=known).lower_bound_, abs=1e-3
    )
    assert search.best_estimator_.component_names_.tolist() == [0, 1, 2]


# Bad input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "error", "words"),
    [
        ([0] * 9, ValueError, "one label for each of the 10 rows of X. Got 9"),
        ([-2] + [0] * 9, ValueError, "must be whole, from 0 to 2147483647. Row 0 has -2"),
        ([0, 0.5] + [0] * 8, ValueError, "must be whole, from 0 to 2147483647. Row 1 has 0.5"),
        ([np.inf] + [0] * 9, ValueError, "must be whole, from 0 to 2147483647. Row 0 has inf"),
        ([2**70] + [0] * 9, ValueError, "must be whole, from 0 to 2147483647. Row 0 has"),
        ([10**9] + [0] * 9, ValueError, "hold 1000000000, and 'n_components' is 2"),
        ([0, "a"] * 5, ValueError, r"mix kinds of values: 0 \(number\) and 'a' \(string\)"),
        ([3] + [None] * 9, ValueError, "hold 3, and 'n_components' is 2: numbers of .* are 0 to 1"),
        (list("abcabcabca"), ValueError, "hold 3 different names, 'a', 'b', 'c', and 'n_components' is 2"),
        ([""] + ["a"] * 9, ValueError, "hold the empty string"),
        ([[0]] * 10, TypeError, "must be strings, numbers of components or booleans"),
        (np.zeros((10, 2)), ValueError, r"of shape \(n_rows,\). Got an array of shape \(10, 2\)"),
        ([1j] * 10, TypeError, "Got 1j, a complex"),
        ("aaaaaaaaaa", TypeError, "must be array-like"),
        (3, TypeError, "must be array-like"),
    ],
)
def test_bad_labels_are_refused(labels, error, words):
    rows = np.random.default_rng(0).normal(size=(10, 1))
    for model in (VBMixture(2), VBHMM(2)):
        with pytest.raises(error, match=f"'labels' of {type(model).__name__}.*{words}"):
            model.fit(rows, labels=labels)


def test_labels_that_do_not_go_with_the_model_are_refused():
    rows = np.random.default_rng(0).normal(size=(10, 1))
    with pytest.raises(ValueError, match=r"must have a row of each of the numbers 0 to 2. None has 1"):
        VBMixture("auto").fit(rows, labels=[0, 2] * 5)
    with pytest.raises(ValueError, match=r"each of the numbers 0 to 1000000000. None has 1\."):
        VBMixture("auto").fit(rows, labels=[0, 10**9] * 5)
    with pytest.raises(ValueError, match="'labels' of VBMixture need rows in memory"):
        VBMixture(2).fit(blocks_of([rows, rows]), labels=[0, 1] * 10)
    with pytest.raises(ValueError, match="init='hierarchical' of VBMixture joins rows whatever their labels"):
        VBMixture(2, init="hierarchical").fit(rows, labels=[0, 1] * 5)
    with pytest.raises(ValueError, match=r"a list of 2 sequences.*'labels' of VBHMM.*Got item 1 of another length"):
        VBHMM(2).fit([rows, rows], labels=[[0] * 10, [0] * 9])
    with pytest.raises(ValueError, match=r"on no path that 'transmat_mask' and the priors .* leave.*sequence 1"):
        VBHMM(3, transmat_mask="left-to-right").fit(rows, labels=[0, -1, 2, -1, -1, 1, -1, 0, -1, -1], lengths=[5, 5])


def test_categories_and_booleans_name_components_in_their_order():
    rows = np.random.default_rng(0).normal(size=(10, 1))
    labels = pd.Categorical(["lo", None] * 5, categories=["lo", "hi"])
    assert VBMixture(3).fit(rows, labels=labels).component_names_.tolist() == ["lo", "hi", 2]
    assert VBMixture(2).fit(rows, labels=[True, None] * 5).component_names_.tolist() == [False, True]
    hidden = [0] + [1] * 9
    weighted = VBMixture(2).fit(rows, sample_weight=hidden, labels=["z"] + ["a", None, "b"] * 3)
    assert weighted.component_names_.tolist() == ["a", "b"]  # a row of weight 0 is as if absent
