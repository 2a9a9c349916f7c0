"""How `fit` and `partial_fit` leave an estimator: all or nothing, whatever happens on the way."""

import copy
import io
import pickle
import re
import threading
import time
import tracemalloc
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skvbem import VBHMM, VBDiscreteDAG, VBFactorAnalysis, VBLinearDynamicalSystem, VBMixture
from skvbem.datasets import load_carcinoma, load_coleman_panel
from skvbem.errors import BoundFellError, DataWarning, StructureError, TooLargeError

approx = pytest.approx
OBJECTIVES = {"vb": "lower_bound_", "map": "log_posterior_", "ml": "log_likelihood_"}
METHODS = pytest.mark.parametrize("method", OBJECTIVES)


def table(n_rows=80, n_columns=4, seed=0):
    """Rows of two classes."""
    rng = np.random.default_rng(seed)
    z = rng.integers(2, size=(n_rows, 1))
    return np.where(rng.random((n_rows, n_columns)) < 0.85, z, rng.integers(3, size=(n_rows, n_columns)))


def state_of(estimator):
    return {name: pickle.dumps(value) for name, value in vars(estimator).items()}


# --- a fit that fails leaves things as they were ----------------------------------------------------------------------


def explode(*args, **kwargs):
    raise BoundFellError("planted")


def interrupt(*args, **kwargs):
    raise KeyboardInterrupt


FAILURES = {
    "1-d X": ({}, lambda X: X[:, 0], None, ValueError),
    "no rows": ({}, lambda X: X[:0], None, ValueError),
    "infinity": ({}, lambda X: np.where(X == 1, np.inf, X), None, ValueError),
    "weights": ({}, lambda X: X, np.zeros(80), ValueError),
    "parameter": ({"method": "em"}, lambda X: X, None, ValueError),
    "structure": ({"structure": [("x0", "z")]}, lambda X: X, None, StructureError),
    "latents": ({"latents": 0}, lambda X: X, None, ValueError),
    "prior": ({"prior": -1}, lambda X: X, None, ValueError),
    "init": ({"init": {"h0": [2.0, 1.0]}}, lambda X: X, None, ValueError),
    "annealing": ({"annealing": [2.0]}, lambda X: X, None, ValueError),
    "learn_prior": ({"learn_prior": True, "method": "ml"}, lambda X: X, None, ValueError),
    "n_jobs": ({"n_jobs": 0}, lambda X: X, None, ValueError),
    "too large": ({"max_memory": 10}, lambda X: X, None, TooLargeError),
    "no interior mode": ({"method": "map", "map_basis": "probability", "prior": 0.1}, lambda X: X, None, ValueError),
    "a warning that is an error": ({"max_iter": 1}, lambda X: X, None, ConvergenceWarning),
    "another width": ({"latents": 0}, lambda X: X[:, :2], None, ValueError),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("fitted_before", [True, False])
def test_a_fit_that_raises_changes_nothing(failure, fitted_before):
    parameters, spoil, weights, error = FAILURES[failure]
    X = table()
    estimator = VBDiscreteDAG(random_state=0, n_init=2)
    if fitted_before:
        estimator.fit(X)
    estimator.set_params(**parameters)
    before = state_of(estimator)
    with pytest.raises(error):
        estimator.fit(spoil(X), sample_weight=weights)
    assert state_of(estimator) == before
    if fitted_before:
        estimator.set_params(max_memory=1e9)  # a limit acts at once
        assert estimator.predict(X).shape == (80,)


KIND = "skvbem.estimators.network.kind."
STEPS = [KIND + "read_table", "skvbem.reading.tables.Table.names_of_fit", "skvbem.optima.plan.FitPlan.run"]
STEPS += [f"{KIND}NetworkKind.{step}" for step in ("model", "fitted", "attributes", "data_attributes")]
ONLY_IN_FIT = {"names_of_fit", "model", "fitted"}


@pytest.mark.parametrize("where", STEPS)
@pytest.mark.parametrize(("happens", "error"), [(explode, BoundFellError), (interrupt, KeyboardInterrupt)])
def test_a_fit_that_is_stopped_anywhere_changes_nothing(monkeypatch, where, happens, error):
    estimator = VBDiscreteDAG(random_state=0, n_init=2).fit(table())
    before = state_of(estimator)
    monkeypatch.setattr(where, happens)
    with pytest.raises(error):
        estimator.fit(table(50, 3, seed=1))
    assert state_of(estimator) == before


@pytest.mark.parametrize("where", [step for step in STEPS if step.split(".")[-1] not in ONLY_IN_FIT])
@pytest.mark.parametrize(("happens", "error"), [(explode, BoundFellError), (interrupt, KeyboardInterrupt)])
def test_a_batch_that_is_stopped_anywhere_changes_nothing(monkeypatch, where, happens, error):
    estimator = VBDiscreteDAG(random_state=0, n_init=2).partial_fit(table())
    before = state_of(estimator)
    monkeypatch.setattr(where, happens)
    with pytest.raises(error):
        estimator.partial_fit(table(seed=1))
    assert state_of(estimator) == before


def test_another_fit_forgets_the_last_one_whole():
    pd = pytest.importorskip("pandas")
    X = table()
    estimator = VBDiscreteDAG(random_state=0, n_init=2).partial_fit(pd.DataFrame(X, columns=list("abcd")))
    estimator.set_params(method="ml").fit(X[:, :3])
    fresh = VBDiscreteDAG(random_state=0, n_init=2, method="ml").fit(X[:, :3])
    assert sorted(vars(estimator)) == sorted(vars(fresh))
    assert estimator.n_features_in_ == 3
    assert estimator.log_likelihood_ == fresh.log_likelihood_
    for gone in ("feature_names_in_", "lower_bound_", "batch_lower_bound_", "posterior_"):
        assert not hasattr(estimator, gone)


def test_two_threads_that_fit_one_object_leave_one_of_the_two_fits():
    first, second = table(60, 3, seed=1), table(90, 5, seed=2)
    alone = [VBDiscreteDAG(random_state=0, n_init=2).fit(X).lower_bound_ for X in (first, second)]
    estimator = VBDiscreteDAG(random_state=0, n_init=2)
    threads = [threading.Thread(target=lambda X=X: [estimator.fit(X) for _ in range(20)]) for X in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (estimator.n_features_in_, estimator.lower_bound_) in zip((3, 5), alone)
    assert estimator.predict(first if estimator.n_features_in_ == 3 else second).ndim == 1


@pytest.mark.parametrize(
    "parameters",
    [
        {"latents": {"h0": 10**9}},
        {"structure": [(f"x{i}", "x30") for i in range(30)]},
        {"latents": [f"h{i}" for i in range(30)], "structure": [(f"h{i}", "x0") for i in range(30)]},
        {"n_init": 10**9},
        {"latents": 10**5, "max_memory": 1e6},
    ],
)
def test_what_is_too_large_is_refused_at_once_and_without_memory(parameters):
    X = np.random.default_rng(0).integers(0, 4, (50, 31))
    tracemalloc.start()
    began = time.process_time()
    with pytest.raises(TooLargeError, match=r"'max_(table_cells|memory)' allows"):
        VBDiscreteDAG(**parameters).fit(X)
    seconds, (_, peak) = time.process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2e6
    assert seconds < 1.0  # 0.02 s where nothing else runs


# --- callbacks --------------------------------------------------------------------------------------------------------


class Listener:
    """Counts what it is told; stops, or does something else, after some iterations."""

    def __init__(self, after=None, action=lambda: True):
        self.after, self.action = after, action
        self.log = []
        self.fitted = None

    def setup(self, estimator, context):
        self.log.append("setup")

    def teardown(self, estimator, context):
        self.log.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, X, metadata, fitted_estimator):
        self.log.append(context.task_name)
        self.X, self.metadata = X, metadata
        if context.task_name == "fit":
            self.fitted = fitted_estimator
        return self.action() if self.log.count("iteration") == self.after else False

    @property
    def n_iterations(self):
        return self.log.count("iteration")


needs_callbacks = pytest.mark.skipif(
    not hasattr(VBDiscreteDAG, "set_callbacks"), reason="scikit-learn has callbacks from 1.9 on"
)


@needs_callbacks
def test_callbacks_see_every_cycle_and_the_fitted_estimator():
    X, listener = table(), Listener()
    weights = np.full(80, 2.0)
    estimator = VBDiscreteDAG(random_state=0).set_callbacks(listener).fit(X, sample_weight=weights)
    assert listener.log[0] == "setup"
    assert listener.log[-2:] == ["fit", "teardown"]
    assert listener.n_iterations >= 3
    assert listener.X is X
    assert listener.metadata["sample_weight"] is weights
    assert listener.fitted.lower_bound_ == estimator.lower_bound_
    assert np.array_equal(listener.fitted.predict(X), estimator.predict(X))


@needs_callbacks
@METHODS
def test_a_callback_that_stops_leaves_a_usable_fit(method):
    X, listener = table(), Listener(after=2)
    whole = VBDiscreteDAG(random_state=0, method=method, tol=1e-10).fit(X)
    estimator = VBDiscreteDAG(random_state=0, method=method, tol=1e-10).set_callbacks(listener).fit(X)
    assert listener.n_iterations == 2
    assert listener.log[-1] == "teardown"
    assert not estimator.converged_
    assert getattr(estimator, OBJECTIVES[method]) < getattr(whole, OBJECTIVES[method])
    assert estimator.predict_proba(X).sum(axis=1) == approx(1.0)


@needs_callbacks
@pytest.mark.parametrize("runs", [0, 1, 2])
def test_a_stop_also_ends_the_search_for_the_prior(runs):
    """In whichever run it comes: the first, or one of those after a change of the prior."""
    first, whole = Listener(), Listener()
    VBDiscreteDAG(random_state=0).set_callbacks(first).fit(table())
    VBDiscreteDAG(random_state=0, learn_prior=True).set_callbacks(whole).fit(table())
    after = first.n_iterations + runs - 1
    assert whole.n_iterations > after + 1
    listener = Listener(after=after)
    estimator = VBDiscreteDAG(random_state=0, learn_prior=True).set_callbacks(listener).fit(table())
    assert listener.n_iterations == after
    assert estimator.predict(table()).shape == (80,)


@needs_callbacks
@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
@pytest.mark.parametrize("fitted_before", [True, False])
def test_an_error_in_a_callback_passes_through_and_changes_nothing(error, fitted_before):
    def fail():
        raise error

    estimator = VBDiscreteDAG(random_state=0)
    if fitted_before:
        estimator.fit(table())
    before = state_of(estimator)
    listener = Listener(after=2, action=fail)
    estimator.set_callbacks(listener)
    with pytest.raises(error):
        estimator.fit(table(50, 3, seed=1))
    assert listener.log[-1] == "teardown"
    assert state_of(estimator.set_callbacks()) == before


@needs_callbacks
def test_callbacks_hear_of_batches():
    listener = Listener()
    estimator = VBDiscreteDAG(random_state=0).set_callbacks(listener)
    estimator.partial_fit(table()).partial_fit(table(seed=1))
    assert listener.log.count("fit") == 2
    assert listener.log.count("setup") == listener.log.count("teardown") == 2
    assert listener.fitted.batch_lower_bound_ == estimator.batch_lower_bound_


@needs_callbacks
def test_scores_can_be_monitored():
    callback = pytest.importorskip("sklearn.callback")
    monitor = callback.ScoringMonitor(scoring=None) if hasattr(callback, "ScoringMonitor") else None
    if monitor is None:
        pytest.skip("this scikit-learn has no ScoringMonitor")
    VBDiscreteDAG(random_state=0).set_callbacks(monitor).fit(table())


# --- the run ----------------------------------------------------------------------------------------------------------


@METHODS
def test_verbose_prints_the_objective_of_every_cycle(method, capsys):
    estimator = VBDiscreteDAG(random_state=0, method=method, verbose=1).fit(table())
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"[VBDiscreteDAG] step 2: {OBJECTIVES[method][:-1]} -")
    told = re.fullmatch(
        r"\[VBDiscreteDAG\] step (\d+): \w+ (\S+), (\S+) nats to come, (\d+) starts? going on, (\S+) s", lines[-1]
    )
    assert float(told[2]) == approx(getattr(estimator, OBJECTIVES[method]), abs=1e-6)
    assert float(told[3]) < 1e-5
    assert int(told[4]) == 0
    assert 0 <= float(told[5]) < 60
    VBDiscreteDAG(random_state=0).fit(table())
    assert capsys.readouterr().out == ""


def test_on_a_terminal_one_line_moves(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdout", screen)
    VBDiscreteDAG(latents=2, random_state=0, n_init=2, init="random", verbose=1).fit(table())
    shown = screen.getvalue()
    assert shown.count("\r") >= 2
    assert shown.endswith("\n")
    last, before = shown.rstrip("\n").split("\r")[-1], shown.split("\r")[-2]
    assert len(last) >= len(before.rstrip())


@METHODS
def test_a_run_that_does_not_converge_says_so(method):
    estimator = VBDiscreteDAG(random_state=0, method=method, max_iter=1)
    with pytest.warns(ConvergenceWarning, match=r"did not converge in 1 steps \(tol=1e-05 nats\). Raise 'max_iter'"):
        estimator.fit(table())
    assert not estimator.converged_
    assert estimator.predict(table()).shape == (80,)


def test_only_the_attribute_of_the_method_exists():
    for method, name in OBJECTIVES.items():
        estimator = VBDiscreteDAG(random_state=0, method=method, n_init=1).fit(table())
        assert [other for other in OBJECTIVES.values() if hasattr(estimator, other)] == [name]
        assert estimator.lower_bounds_[-1] == getattr(estimator, name)


@METHODS
def test_restarts(method):
    estimator = VBDiscreteDAG(latents=3, random_state=0, n_init=8, method=method, init="random")
    estimator.fit(load_coleman_panel().data)
    restarts = estimator.restarts_
    assert restarts.bounds.shape == restarts.n_iter.shape == restarts.converged.shape == (8,)
    best = np.argmax(restarts.bounds)
    assert getattr(estimator, OBJECTIVES[method]) == restarts.bounds[best]
    assert (estimator.n_iter_, estimator.converged_) == (restarts.n_iter[best], restarts.converged[best])
    assert restarts.n_best == (restarts.bounds > restarts.bounds[best] - 0.01).sum()
    assert restarts.n_best < 8
    assert "8 starts, 8 run to the end" in repr(restarts)


def test_restarts_repr():
    from skvbem.estimators import Restarts

    bounds = np.array([-1.0, np.nan, -3.0, -1.0])
    text = repr(Restarts(bounds, np.ones(4, int), np.ones(4, bool), 2))
    assert text == "Restarts(4 starts, 3 run to the end; best -1 met 2 times, median -1, worst -3)"


def test_seeds():
    """The kinds scikit-learn takes; a RandomState moves on, so that two fits differ."""
    X = table()
    seeded = [VBDiscreteDAG(random_state=seed, n_init=3).fit(X).restarts_.bounds for seed in (7, np.int64(7), 8)]
    assert np.array_equal(seeded[0], seeded[1])
    assert not np.array_equal(seeded[0], seeded[2])
    rng = np.random.RandomState(0)
    moving = [VBDiscreteDAG(random_state=rng, n_init=3).fit(X).restarts_.bounds for _ in range(2)]
    assert not np.array_equal(*moving)
    again = VBDiscreteDAG(random_state=np.random.RandomState(0), n_init=3).fit(X).restarts_.bounds
    assert np.array_equal(again, moving[0])
    unseeded = [VBDiscreteDAG(n_init=3).fit(X).restarts_.bounds for _ in range(2)]
    assert not np.array_equal(*unseeded)


def test_fit_does_not_touch_the_global_random_state():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    VBDiscreteDAG(random_state=0).fit(table()).sample(3)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_fit_leaves_parameters_and_data_alone():
    X, weights = table(), np.ones(80)
    prior = {"h0": np.array([2.0, 3.0])}
    structure = [("h0", f"x{j}") for j in range(4)]
    estimator = VBDiscreteDAG(structure, latents={"h0": 2}, prior=prior, random_state=0, annealing=[0.5])
    given = copy.deepcopy((X, weights, estimator.get_params()))
    estimator.fit(X, sample_weight=weights)
    assert np.array_equal(given[0], X)
    assert np.array_equal(given[1], weights)
    assert prior["h0"].tolist() == [2.0, 3.0]
    assert repr(estimator.get_params()) == repr(given[2])


def test_learn_prior_raises_the_bound_and_publishes_the_prior():
    X = load_coleman_panel().data
    plain = VBDiscreteDAG(random_state=0).fit(X)
    learned = VBDiscreteDAG(random_state=0, learn_prior=True).fit(X)
    assert learned.lower_bound_ > plain.lower_bound_
    assert learned.posterior_["x0"].values == approx(learned.prior_["x0"].values + learned.counts_["x0"].values)
    assert not np.allclose(learned.prior_["x0"].values, 1.0)
    given = VBDiscreteDAG(random_state=0, prior=dict(learned.prior_)).fit(X)
    assert given.lower_bound_ == approx(learned.lower_bound_, abs=1e-3)


# --- weights and rows -------------------------------------------------------------------------------------------------


@METHODS
def test_rows_of_weight_zero_are_as_if_absent(method):
    """Also their categories."""
    X = table()
    weights = np.random.default_rng(0).integers(0, 3, 80).astype(float)
    X[weights == 0] = 99
    estimator = VBDiscreteDAG(random_state=0, method=method)
    weighted = estimator.fit(X, sample_weight=weights)
    bound, categories = getattr(weighted, OBJECTIVES[method]), weighted.categories_
    repeated = estimator.fit(np.repeat(X, weights.astype(int), axis=0))
    assert bound == approx(getattr(repeated, OBJECTIVES[method]), rel=1e-9)
    assert all(np.array_equal(a, b) for a, b in zip(categories, repeated.categories_))
    assert estimator.n_samples_ == weights.sum()


def test_a_weight_may_be_one_number():
    X = table()
    first = VBDiscreteDAG(random_state=0).fit(X, sample_weight=3.0)
    second = VBDiscreteDAG(random_state=0).fit(X, sample_weight=np.full(80, 3))
    assert first.lower_bound_ == second.lower_bound_
    assert first.n_samples_ == 240.0


def test_rows_without_observed_cells_change_nothing():
    X = table().astype(float)
    more = np.vstack([X, np.full((3, 4), np.nan)])
    plain, gappy = (VBDiscreteDAG(random_state=0).fit(data) for data in (X, more))
    assert (plain.n_rows_all_missing_, gappy.n_rows_all_missing_) == (0, 3)
    assert gappy.lower_bound_ == approx(plain.lower_bound_, rel=1e-12)
    assert gappy.n_samples_ == 80


def test_y_is_ignored():
    X = table()
    plain = VBDiscreteDAG(random_state=0).fit(X)
    assert VBDiscreteDAG(random_state=0).fit(X, X[:, 0] == 1).lower_bound_ == plain.lower_bound_
    assert plain.score(X, X[:, 0]) == plain.score(X)


def test_one_row_is_fitted_with_a_warning():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator = VBDiscreteDAG(random_state=0).fit([[0, 1]])
    of_data = [line for w in caught if w.category is DataWarning for line in str(w.message).split("\n")]
    assert "X has one row: the fit is mostly prior." in of_data
    assert estimator.predict([[0, 1]]).shape == (1,)


# --- warm starts ------------------------------------------------------------------------------------------------------


@METHODS
@pytest.mark.parametrize("annealing", [None, [0.01, 0.5]])
def test_a_warm_start_at_the_optimum_stays_there(method, annealing):
    X = load_carcinoma().data
    estimator = VBDiscreteDAG(latents=3, random_state=0, method=method, warm_start=True, annealing=annealing).fit(X)
    before, steps = getattr(estimator, OBJECTIVES[method]), estimator.n_iter_
    estimator.fit(X)
    assert getattr(estimator, OBJECTIVES[method]) == approx(before, abs=1e-3)
    assert estimator.n_iter_ <= 6 < steps
    assert len(estimator.restarts_.bounds) == 1


@METHODS
def test_a_warm_start_goes_on_where_the_last_fit_ended(method):
    """In parts as in one: the bound only rises."""
    X = load_carcinoma().data
    whole = VBDiscreteDAG(latents=3, random_state=0, n_init=1, method=method).fit(X)
    estimator = VBDiscreteDAG(latents=3, random_state=0, n_init=1, method=method, warm_start=True, max_iter=5)
    reached = []
    for _ in range(200):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            estimator.fit(X)
        reached.append(getattr(estimator, OBJECTIVES[method]))
        if estimator.converged_:
            break
    assert np.all(np.diff(reached) > -1e-3)
    assert reached[-1] == approx(getattr(whole, OBJECTIVES[method]), abs=0.01)


@pytest.mark.parametrize(
    "change",
    [
        {"latents": 3},
        {"structure": [("h0", "x0"), ("h0", "x1")], "latents": 2},
        {"categories": {"x0": [0, 1, 2, 3]}},
        {"categories": {"x0": [2, 1, 0]}},
    ],
)
def test_a_warm_start_from_another_network_is_a_cold_one(change):
    X = table()
    estimator = VBDiscreteDAG(random_state=0, warm_start=True).fit(X).set_params(**change).fit(X)
    cold = VBDiscreteDAG(random_state=0, **change).fit(X)
    assert estimator.lower_bound_ == cold.lower_bound_
    assert len(estimator.restarts_.bounds) == 10


def test_a_warm_start_can_take_what_the_last_data_ruled_out():
    """By maximum likelihood a category not seen has probability 0; more data may have it."""
    few = table()[:20]
    few[:, 0] = few[:, 0] % 2
    estimator = VBDiscreteDAG(random_state=0, method="ml", warm_start=True, categories={"x0": [0, 1, 2]}).fit(few)
    assert estimator.tables_["x0"]["x0":2].tolist() == [0.0, 0.0]
    estimator.fit(table())
    assert np.isfinite(estimator.log_likelihood_)
    assert estimator.tables_["x0"]["x0":2].sum() > 0


# --- batches ----------------------------------------------------------------------------------------------------------


def test_batches_of_complete_data_give_the_posterior_of_all():
    """Beal (2.114)-(2.117), exact where nothing is hidden, in any cut, with weights."""
    X, weights = table(90), np.random.default_rng(0).integers(0, 3, 90)
    edges = [("x0", "x1"), ("x1", "x2"), ("x0", "x3")]
    weights[[0, 89]] = 2
    whole = VBDiscreteDAG(edges, categories=[[0, 1, 2]] * 4).fit(X, sample_weight=weights)
    for cuts in ([30, 60], [1, 89], [45]):
        online = VBDiscreteDAG(edges, categories=[[0, 1, 2]] * 4)
        evidence = 0.0
        for rows, w in zip(np.split(X, cuts), np.split(weights, cuts)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)
                online.partial_fit(rows, sample_weight=w)
            evidence += online.batch_lower_bound_
        assert evidence == approx(whole.lower_bound_, rel=1e-12)
        for node, table_ in whole.posterior_.items():
            assert online.posterior_[node].values == approx(table_.values, rel=1e-12)
        assert online.n_samples_ == whole.n_samples_


def test_batches_with_a_latent_keep_learning():
    X = load_coleman_panel().data[np.random.default_rng(0).permutation(3398)]
    online = VBDiscreteDAG(random_state=0)
    for rows in np.array_split(X, 5):
        online.partial_fit(rows)
        assert online.converged_
    whole = VBDiscreteDAG(random_state=0).fit(X)
    assert online.n_samples_ == whole.n_samples_
    ours, theirs = online.tables_["x0"]["x0":1], whole.tables_["x0"]["x0":1]
    assert np.sort(ours) == approx(np.sort(theirs), abs=0.05)
    assert online.latent_states_["h0"].mass.sum() == approx(3398)


def test_what_a_batch_publishes():
    estimator = VBDiscreteDAG(random_state=0).partial_fit(table())
    assert estimator.batch_lower_bound_ == estimator.lower_bound_
    bound, structure = estimator.batch_lower_bound_, estimator.structure_
    estimator.partial_fit(table(seed=1))
    assert estimator.batch_lower_bound_ != bound
    assert estimator.structure_ is structure
    assert estimator.posterior_["h0"].values == approx(estimator.prior_["h0"].values + estimator.counts_["h0"].values)
    for gone in ("lower_bound_", "lower_bounds_", "restarts_"):
        assert not hasattr(estimator, gone)
    estimator.fit(table())
    assert not hasattr(estimator, "batch_lower_bound_")


def test_a_batch_may_use_what_fit_has_learned():
    estimator = VBDiscreteDAG(random_state=0).fit(table())
    counted = estimator.n_samples_
    estimator.partial_fit(table(30, seed=1))
    assert estimator.n_samples_ == counted + 30


def test_a_batch_has_the_columns_and_categories_of_the_first():
    estimator = VBDiscreteDAG(random_state=0, handle_unknown="error").partial_fit(table())
    with pytest.raises(ValueError, match="X has 3 features, but VBDiscreteDAG is expecting 4 features as input"):
        estimator.partial_fit(table(n_columns=3))
    with pytest.raises(ValueError, match="Column 'x0' of X contains 7, which is not among the 3 categories"):
        estimator.partial_fit(np.full((3, 4), 7))


@pytest.mark.parametrize("method", ["ml", "map"])
def test_only_vb_has_partial_fit(method):
    estimator = VBDiscreteDAG(random_state=0, method=method)
    assert not hasattr(estimator, "partial_fit")
    with pytest.raises(AttributeError, match="has no attribute 'partial_fit'") as caught:
        estimator.partial_fit(table())
    assert f"needs method='vb', whose posterior is the prior of the next batch. Got method='{method}'" in str(
        caught.value.__cause__
    )
    estimator.fit(table()).set_params(method="vb")
    with pytest.raises(ValueError, match=f"this VBDiscreteDAG was fitted by method='{method}'. Fit it again."):
        estimator.partial_fit(table())


def test_a_batch_of_another_magnitude_moves_a_noise_of_a_system():
    """States have units of their own: what remains of the first batch are its counts, beside squares of the second."""
    X, large = np.random.default_rng(0).normal(size=(60, 2)), np.full((20, 2), 2**63, dtype=np.uint64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        online = VBLinearDynamicalSystem(1, random_state=0).partial_fit(X).partial_fit(large)
    assert np.isfinite(online.batch_lower_bound_)
    deviations = np.sqrt(online.noise_variance_ + online.loadings_[:, 0] ** 2) / 2.0**63
    assert np.all((deviations > 0.1) & (deviations < 1))


@pytest.mark.parametrize("estimator", [VBMixture(2), VBHMM(2), VBFactorAnalysis(1)])
def test_a_batch_of_another_magnitude_is_refused_with_advice_that_works(estimator):
    """Nothing is left of the first batch beside it, as squares of numbers have sixteen digits."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    large = np.full((20, 2), 2**63, dtype=np.uint64)
    warnings.simplefilter("ignore")
    online = clone(estimator).set_params(random_state=0).partial_fit(X)
    before = online.score_samples(X)
    with pytest.raises(ValueError, match=r"its largest number is 9\.22e\+18.* Rescale X, or give as first batch"):
        online.partial_fit(large)
    np.testing.assert_array_equal(online.score_samples(X), before)
    online.partial_fit(X[:20] / 2)
    clone(online).partial_fit(np.concatenate([X, X * 2.0**63])).partial_fit(X * 2.0**63)
