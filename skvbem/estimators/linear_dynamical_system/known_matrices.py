"""A linear dynamical system whose matrices are known, in place of a fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from skvbem._arguments import are_texts, check_argument, is_collection
from skvbem._compat import check_parameters
from skvbem._names import shown
from skvbem.errors import check_memory
from skvbem.families.regression_rows import RegressionPoint
from skvbem.fitted.linear_dynamical_system import FittedLDS
from skvbem.fitted.state_space import Matrices
from skvbem.fitting.fit import attributes_of, is_of_data, published
from skvbem.models.linear_dynamical_system.first_states import FirstStates
from skvbem.models.linear_dynamical_system.model import LinearDynamicalSystem
from skvbem.reading.column_groups import ColumnGroups, ColumnOptions
from skvbem.reading.tables import Column, Table
from skvbem.vbem.posteriors import ML

_OWNER = "VBLinearDynamicalSystem"


def checked_matrices(matrices: Matrices) -> Matrices:
    """Matrices as arrays of sizes that belong together; those that are None are zero, but a covariance the identity.

    Raises
    ------
    ValueError
        If one is no array of finite numbers of its shape, or no variance or covariance; the message names it.
    """
    k = len(_array("transition", matrices.transition, (None, None)))
    p = len(_array("loadings", matrices.loadings, (None, k)))
    by_name = matrices._replace(
        **{
            name: np.zeros((*size, 0)[:n]) if value is None and name != "initial_covariance" else value
            for name, size, n, value in (
                ("input", (k,), 2, matrices.input),
                ("offset", (p,), 1, matrices.offset),
                ("output_input", (p,), 2, matrices.output_input),
                ("initial_mean", (k,), 1, matrices.initial_mean),
            )
        },
        initial_covariance=np.eye(k) if matrices.initial_covariance is None else matrices.initial_covariance,
    )._asdict()
    shapes = ((k, k), (k, None), (p, k), (p,), (p, None), (p,), (k,), (k, k))
    checked = Matrices(*(_array(name, value, shape) for (name, value), shape in zip(by_name.items(), shapes)))
    if not (checked.noise_variance > 0).all():
        raise ValueError(f"The 'noise_variance' of {_OWNER} must be > 0. Got {shown(checked.noise_variance.tolist())}.")
    covariance = checked.initial_covariance
    if not np.allclose(covariance, covariance.T) or np.linalg.eigvalsh(covariance).min() <= 0:
        raise ValueError(f"The 'initial_covariance' of {_OWNER} must be symmetric and positive definite.")
    return checked


def system_of_matrices(estimator: Any, matrices: Matrices, columns: Any) -> Any:
    """An estimator that publishes checked matrices in place of a fit.

    Each column is measured from its offset, in units of the standard deviation of its noise.
    """
    check_parameters(estimator)
    if estimator.blocks is not None:
        raise ValueError(
            f"from_parameters of {_OWNER} takes no 'blocks', whose variances are found by a fit. Leave 'blocks' out: "
            "the matrices say how states move."
        )
    k, p, numbers = len(matrices.transition), len(matrices.loadings), sum(map(np.size, matrices))
    check_memory(f"A system of {k} states and {p} columns", 4 * numbers, "fewer", estimator.max_memory, _OWNER)
    names = range(p) if columns is None else list(columns) if is_collection(columns) else []
    is_right = columns is None or (are_texts(names) and len(set(names)) == p == len(names))
    check_argument(is_right, "columns", "from_parameters", f"{p} different names", columns)
    table = Table(names, 2, lambda j: Column(np.array([-1.0, 1.0])))
    options = ColumnOptions(_OWNER, "gaussian", "diag", missing_values=estimator.missing_values)
    groups, _ = ColumnGroups.learned(table, options)
    unit = np.sqrt(matrices.noise_variance)
    coefficients = np.hstack([matrices.loadings, np.zeros((p, 1)), matrices.output_input]) / unit[:, None]
    model = LinearDynamicalSystem.from_precisions(
        np.ones(k + matrices.input.shape[1]),
        np.ones(coefficients.shape[1]),
        shape=np.ones(p),
        rate=np.ones(p),
        group=np.arange(p),
        n_states=k,
        first=FirstStates(matrices.initial_mean, np.linalg.inv(matrices.initial_covariance)),
        origin=matrices.offset,
        unit=unit,
    )
    moving = RegressionPoint(np.hstack([matrices.transition, matrices.input]), np.empty(0))
    point = (moving, RegressionPoint(coefficients, np.ones(p)))
    fitted = FittedLDS(groups, model, ML, np.zeros(model.n_cells), given=point)
    state = {**table.names_of_fit(), **attributes_of(estimator, fitted)}
    estimator.__dict__ = published(estimator, {name: each for name, each in state.items() if not is_of_data(name)})
    return estimator


def _array(name: str, value: Any, shape: tuple[int | None, ...]) -> np.ndarray:
    """A matrix that a user gives, of a shape in which None stands for any size."""
    try:
        array = np.array(value, dtype=float) if np.asarray(value).dtype.kind in "biuf" else np.empty(())
    except (TypeError, ValueError):
        array = np.empty(())
    fits = array.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, array.shape))
    if not fits or not np.isfinite(array).all() or 0 in array.shape[:1]:
        wanted = " x ".join("any number" if n is None else str(n) for n in shape)
        raise ValueError(
            f"The {name!r} of {_OWNER} must be an array of finite numbers, {wanted}. Got {shown(value)} instead."
        )
    return array
