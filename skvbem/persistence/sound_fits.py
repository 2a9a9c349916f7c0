"""What readings of columns, fits and estimators of a saved file must mean; see `skvbem.persistence.soundness`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from skvbem._compat import check_parameters
from skvbem.emissions.base import parts_of
from skvbem.fitting.fit import is_of_data, objective_name
from skvbem.fitting.kind import kind_of
from skvbem.fitting.restarts import Restarts
from skvbem.optima.tuning import EFFORTS
from skvbem.persistence.soundness import SOUND, check, checks, conforms, counts, floats, same
from skvbem.reading.tables import missing_markers
from skvbem.reading.time_axis import is_name_of_frequency
from skvbem.vbem import posteriors

__all__ = ["SOUND"]

_FORMS = (posteriors.VB, posteriors.MAP, posteriors.ML, posteriors.MAP_IN_PROBABILITIES)

# How columns are read -------------------------------------------------------------------------------------------------


@checks("CategoryEncoder")
def _encoder(encoder: Any) -> None:
    missing_markers(encoder.missing_values, encoder.owner)
    check(encoder.handle_unknown in ("warn", "missing", "error"), "no way to handle what is not known")
    if hasattr(encoder, "categories_"):
        sizes = [len(levels) for levels in encoder.categories_ if levels.ndim == 1]
        check(len(sizes) == len(encoder.names_) == len(encoder.categories_), "categories of other columns")
        check(same(encoder.n_categories_, sizes), "other numbers of categories")
        check(encoder.code_dtype_ in (np.int8, np.int16, np.int32), "codes of no such type")
        check(max(sizes, default=0) <= np.iinfo(encoder.code_dtype_).max, "more categories than codes")
        check(all(len({*x.tolist()}) == len(x) > 0 for x in encoder.categories_), "categories that come twice")
        kinds = {x.dtype.kind for x in encoder.categories_}
        check(kinds <= {*"biufOU"}, "categories that are none")
        floats = [x for x in encoder.categories_ if x.dtype.kind == "f"]
        check(all(np.isfinite(x).all() for x in floats), "categories that are no numbers")


@checks("Group")
def _group(group: Any) -> None:
    group.specification.check_parameters()
    hides = type(group.specification).__name__ == "HiddenNumber"
    check(hides == group.is_hidden and (not hides or group.names == (group.name,)), "hidden numbers with columns")
    check(hides or len(group.names) == len(group.columns) > 0, "columns without names")
    check(group.encoder is None or group.encoder.names_ == [*group.names], "categories of other columns")
    coded = [] if group.given_encoder is None else group.given_encoder.names_
    check(not coded or group.specification.are_given, "categories that are not given")
    check({*coded} <= {*group.names}, "categories of other columns")
    check((group.encoder is None) != group.specification.holds_categories, "categories, or none")


@checks("ColumnGroups")
def _column_groups(columns: Any) -> None:
    missing_markers(columns.missing_values, columns.owner)
    n = len(columns.names)
    check(columns.groups and len({*columns.names}) == n, "columns without names of their own")
    for group in columns.groups:
        check({*group.columns, *group.given} <= {*range(n)}, "columns that are not there")
        of_columns = tuple(columns.names[k] for k in group.columns)
        check(group.is_hidden or of_columns == group.names, "columns of other names")
    split = {*columns.intervals}
    check(len(split) == len(columns.intervals) and split <= {*range(columns.n_columns)}, "intervals of other columns")
    owned = [k for group in columns.groups for k in group.columns]
    check(len({*owned}) == len(owned), "columns of two groups")


@checks(
    "Bernoulli",
    "Categorical",
    "Censored",
    "Autoregression",
    "Cycle",
    "Exponential",
    "FactorGaussian",
    "GammaSpecification",
    "Gaussian",
    "Given",
    "Hazards",
    "HiddenNumber",
    "Interval",
    "Level",
    "LogNormal",
    "Multinomial",
    "NegativeBinomial",
    "Ordinal",
    "Poisson",
    "RegressionSpecification",
    "Season",
    "Softmax",
    "Stages",
    "StudentT",
    "Trend",
    "VonMises",
    "ZeroInflated",
)
def _specification(specification: Any) -> None:
    specification.check_parameters()


# A family that networks alone have.
@checks("UnitNoise")
def _unit_noise(family: Any) -> None:
    k, d = family.n_components, family.n_regressors
    counts([k], "components")
    counts([d], "regressors", 0)
    floats(family.coordinates, k * (d * (d + 1) // 2 + d + 2), what="coordinates")


# Fits -----------------------------------------------------------------------------------------------------------------


@checks("FittedFactorAnalysis", "FittedHMM", "FittedLDS", "FittedMixture", "FittedStructural")
def _fitted(fitted: Any) -> None:
    _seed(fitted)
    why = fitted.damage()
    check(not why, f"damage: {why}")
    n = fitted.model.n_cells
    if fitted.drawn is not None:
        floats(fitted.drawn, n, what="numbers that were drawn")
    check(fitted.model.prior.is_valid, "a prior that is no density")
    check(~np.isnan(fitted.natural_of_q), "parameters that are no numbers")
    check(fitted.point is not None, "no point")  # if there is one, it can be found
    if hasattr(fitted.model, "n_components"):
        for group, emission in zip(fitted.columns.groups, parts_of(fitted.model.emission)):
            check(len(group.given) == getattr(emission, "n_covariates", 0), "columns explained by others")
            check(group.specification.lags == getattr(emission, "n_lags", 0), "rows explained by others")
    elif hasattr(fitted.model, "origin"):
        check(len(fitted.columns.names) == len(fitted.model.origin), "other columns")


@checks("FittedNetwork")
def _fitted_network(fitted: Any) -> None:
    _fitted(fitted)
    names = fitted.columns.names_
    check(fitted.model.dag.nodes[-len(names) :] == tuple(names), "columns of other nodes")


@checks("FittedMixedNetwork")
def _fitted_mixed(fitted: Any) -> None:
    """Refuse columns that are not those of the nodes of a network."""
    _fitted(fitted)
    model, layout, numbers = fitted.model, fitted.model.layout, dict(zip(fitted.with_emission, fitted.model.emissions))
    sizes = dict(zip(layout.names, layout.cardinalities))
    groups = [group for group in fitted.columns.groups if not group.specification.are_given]
    given_columns = sum(len(group.columns) for group in fitted.columns.groups) - sum(len(g.columns) for g in groups)
    check({group.name for group in groups if not group.specification.has_table} == {*numbers}, "columns of other nodes")
    for group in groups:
        if not group.specification.has_table:
            emission = numbers[group.name]
            check(group.is_hidden or emission.n_columns == len(group.columns), "columns of other emissions")
            check(group.encoder is None or emission.n_outcomes == (*map(len, group.levels),), "other categories")
        else:
            check(all(sizes.get(name) == len(x) for name, x in zip(group.names, group.levels)), "other categories")
    for k, covariates in model.drivers.values():
        n_columns = sum(model.emissions[each].n_columns for each in covariates) or given_columns
        check(model.emissions[k].n_columns == n_columns, "covariates that are other columns")
    for emission, given in zip(model.emissions, model.given):
        n_given = sum(model.emissions[k].n_columns for k in given)
        check(getattr(emission, "n_covariates", 0) == n_given, "columns explained by others")


@checks("FactorStarts", "LDSStarts", "LabelStarts", "MixedStarts", "StructuralStarts", "TableStarts")
def _seed(of: Any) -> None:
    counts(of.seed, "seeds", 0)
    counts([getattr(of, "n_starts", 1)], "starts")
    given = getattr(of, "given", None)
    if isinstance(given, np.ndarray):
        floats(given, None, None, what="starts")


@checks("FitPlan")
def _plan(plan: Any) -> None:
    _seed(plan)
    starts, limits = plan.starts, plan.limits
    if not callable(starts):
        check(isinstance(starts, np.ndarray), "no starts")
        floats(starts, None, None, what="starts")
    counts([plan.n_starts], "starts")
    known = {"tol": float, "max_iter": int, "accelerate": bool}
    check(limits.keys() == known.keys() and all(conforms(limits[k], known[k]) for k in limits), "limits of no run")
    check(limits.get("tol", 0) >= 0 and limits.get("max_iter", 1) >= 1, "limits of no run")
    check(all(0 < each <= 1 for each in plan.inverse_temperatures), "temperatures that are none")
    check(plan.effort in EFFORTS, "an effort of no search")


@checks("Fit")
def _record(fit: Any) -> None:
    n = len(fit.restart_objectives)
    floats(fit.statistics, None, what="statistics")
    floats(fit.optima, len(fit.statistics), None, what="optima")
    if fit.state is not None:
        floats(fit.state, None, what="states of nodes")
    _starts(n, fit.restart_objectives, fit.restart_n_iter, fit.restart_converged, fit.restart_counts)
    check(fit.restart_to_come.shape == (n,) and fit.restart_to_come.dtype.kind == "f", "starts of other numbers")
    check(len(fit.restart_traces) == n and len(fit.restart_kinds) in (0, n), "starts of other numbers")
    check(fit.n_iter >= 0 and not np.isnan(fit.objective), "no objective")


def _starts(n: int, objectives: Any, n_iter: Any, *flags: Any) -> None:
    check(objectives.shape == n_iter.shape == (n,), "starts of other numbers")
    check(objectives.dtype == np.float64 and n_iter.dtype.kind == "i" and n_iter >= 0, "starts of other numbers")
    check([flag is None or (flag.shape == (n,) and flag.dtype == bool) for flag in flags], "starts of other numbers")


@checks("Restarts")
def _restarts(restarts: Any) -> None:
    n = len(restarts.bounds)
    _starts(n, restarts.bounds, restarts.n_iter, restarts.converged, restarts.refused)
    check(0 <= restarts.n_best <= n and len(restarts.traces) in (0, n), "starts of other numbers")
    check(len(restarts.kinds) in (0, n) and all(x.dtype == np.float64 for x in restarts.traces), "other starts")


@checks("FittedRun")
def _run(run: Any) -> None:
    plan, n = run.plan, len(run.fit.statistics)
    given = getattr(plan.starts, "given", plan.starts)
    check(not isinstance(given, np.ndarray) or len(given) == n, "starts of another fit")


@checks("Extent")
def _extent(extent: Any) -> None:
    sizes = (extent.n_columns, extent.n_rows, extent.n_missing, extent.n_sequences)
    counts([n for n in sizes if n is not None], "sizes of data", 0)


@checks("LatentStates")
def _latent_states(states: Any) -> None:
    n = len(states.mass)
    floats(states.mass, None, what="rows of states")
    check(sorted((*states.in_use, *states.empty)) == [*range(n)], "states that are not there")
    check(all({*pair} <= {*states.in_use} for pair in states.duplicates), "duplicates that are not there")


@checks("LabeledTable")
def _labeled_table(table: Any) -> None:
    check(len(table.axes) == len(table.levels) == table.values.ndim, "axes of another table")
    check(table.values.shape == tuple(map(len, table.levels)), "levels of another table")


@checks("LabeledTables")
def _labeled_tables(tables: Any) -> None:
    model, flat, levels = tables.__reduce__()[1]
    layout = model.layout
    check(isinstance(flat, np.ndarray), "no tables")
    floats(flat, layout.n_table_cells, what="tables")
    check({*levels} == {*layout.names[: layout.n_tables]}, "tables of other nodes")
    sizes = {node: layout.cardinalities[model.position[node]] for node in levels}
    check(all(np.shape(levels[node]) == (sizes[node],) for node in levels), "tables of other states")


@checks("VBDiscreteDAG", "VBFactorAnalysis", "VBHMM", "VBLinearDynamicalSystem", "VBMixture", "VBNetwork")
def _estimator(estimator: Any) -> None:
    """Refuse a fit whose record is that of another."""
    check_parameters(estimator)
    frames = vars(estimator).get("_frames_of_", "pandas")
    check(isinstance(frames, str) and frames in ("pandas", "polars"), "frames of no library")
    is_frame, has_names = (name in vars(estimator) for name in ("_frames_of_", "feature_names_in_"))
    check(has_names or not is_frame, "a frame without names")
    fitted, run = (vars(estimator).get(name) for name in ("_fitted_", "_run_"))
    if fitted is None:  # it is not fitted, and has nothing of a fit
        if any(name.endswith("_") for name in vars(estimator)):
            raise ValueError("it is not fitted, and has attributes of a fit")
        return
    columns, names = fitted.columns, getattr(estimator, "feature_names_in_", None)
    known = columns.names_in_x if hasattr(columns, "groups") else columns.names_
    check(names is None or [*names] == [*known], "columns of other names")
    check(estimator.n_features_in_ == len(known), "other columns")
    of_inputs = vars(estimator).get("_input_names_", {})
    check(conforms(of_inputs, dict[str, list[str] | None]), "inputs without names")
    check(is_name_of_frequency(vars(estimator).get("_frequency_", "D")), "times of no frequency")
    published = dict(kind_of(estimator).attributes(fitted))
    if fitted.given is not None:  # parameters that were given have no attributes of data or priors
        published = {name: each for name, each in published.items() if not is_of_data(name)}
    batches = "batch_lower_bound_" in vars(estimator)
    check(run is not None or batches or fitted.given is not None, "a fit without its record")
    if run is not None:  # of one fit, and not of batches
        fit = run.fit
        published |= {"n_iter_": fit.n_iter, "converged_": fit.converged, "restarts_": Restarts.of(fit)}
        published |= {
            objective_name(fitted.form.name, fit.state is None): fit.objective,
            "lower_bounds_": np.array(fit.trace),
        }
        check(type(run.plan.method) is type(kind_of(estimator).method), "a fit of another model")
        is_proper = fitted.form.prior_share and len(fit.optima) == len(fitted.statistics)
        check(not is_proper or (fitted.model.prior + fit.optima).is_valid, "optima that are none")
    check(0 < vars(estimator).get("n_samples_", 1) < np.inf, "data of no weight")
    for name, of_fit in published.items():
        check(_alike(vars(estimator).get(name), of_fit), f"another {name!r} than its fit")


def _alike(one: Any, other: Any) -> bool:
    """Whether two values are of one type and equal, floats up to what machines round differently."""
    if isinstance(other, (float, np.floating, np.ndarray)):
        one, other = np.asarray(one), np.asarray(other)
        if one.dtype != other.dtype or one.shape != other.shape:
            return False
        is_float = other.dtype.kind == "f"
        return np.allclose(one, other, 1e-6, 1e-9, equal_nan=True) if is_float else np.array_equal(one, other)
    if type(one) is not type(other):
        return False
    if isinstance(other, Mapping):
        return list(one) == list(other) and all(_alike(one[key], other[key]) for key in other)
    if isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_alike, one, other))
    if is_dataclass(other):
        return all(_alike(getattr(one, each.name), getattr(other, each.name)) for each in fields(other))
    return bool(one == other)


@checks(
    "DAG",
    "HMMMethod",
    "LDSMethod",
    "MixedNetworkMethod",
    "MixtureMethod",
    "Move",
    "Network",
    "NetworkMethod",
    "Partition",
    "PriorStart",
    "StructuralMethod",
    "UndirectedGraph",
)
def _anything(value: Any) -> None:
    """Nothing to check beyond types: it holds no numbers that others rely on, or its constructor checks all."""


@checks("VBClassifier", "VBImputer")
def _step(estimator: Any) -> None:
    """Refuse a step of a pipeline whose model is of other columns, or none, or whose parameters are none of its own."""
    check_parameters(estimator)
    inner = vars(estimator).get("estimator")
    check(inner is None or hasattr(inner, "get_params"), "a model that is none")
    for name, n_more in (("network_", 1), ("estimator_", 0)):  # the class is a column more
        model = vars(estimator).get(name)
        if hasattr(model, "n_features_in_"):  # what is not fitted is refused by name
            check(model.n_features_in_ == estimator.n_features_in_ + n_more, "a model of other columns")
    network = vars(estimator).get("network_")
    if hasattr(network, "n_features_in_"):
        layout, classes = network.fitted.model.layout, vars(estimator).get("classes_")
        check(isinstance(classes, np.ndarray) and classes.ndim == 1, "no classes")
        check(len({*classes.tolist()}) == len(classes), "classes that come twice")
        sizes = dict(zip(layout.names, layout.cardinalities))
        check(sizes.get(estimator.class_node) == len(classes), "classes of another network")
        copied = [(vars(estimator).get(name), getattr(network, name)) for name in ("structure_", "n_iter_")]
        check(all(_alike(one, other) for one, other in copied), "another structure than its network")


@checks("Form")
def _the_form(form: Any) -> Any:
    """The form itself, of which there is one each."""
    for known in _FORMS:
        if form == known:
            return known
    raise ValueError(f"there is no form of q(theta) like {form!r:.80}")
