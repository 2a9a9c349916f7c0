"""The kind of `VBLinearDynamicalSystem` with `blocks`: structural time series."""

from __future__ import annotations

from typing import Any

import numpy as np

from skvbem._arguments import is_option
from skvbem._names import shown
from skvbem.errors import check_memory
from skvbem.estimators.linear_dynamical_system.kind import mean_squares, moments
from skvbem.estimators.linear_dynamical_system.state_space import StateSpaceKind
from skvbem.families.hierarchical import hidden_rate_prior, with_hidden_rates
from skvbem.families.hyperpriors import floor_of_scales
from skvbem.families.regression import Regression
from skvbem.fitted.structural import FittedStructural
from skvbem.models.linear_dynamical_system.data import LDSData
from skvbem.models.linear_dynamical_system.model import HIDDEN_RATE
from skvbem.models.linear_dynamical_system.starts import changes
from skvbem.models.structural.design import Design
from skvbem.models.structural.model import StructuralModel
from skvbem.models.structural.starts import StructuralStarts
from skvbem.optima.structural import StructuralMethod
from skvbem.reading.inputs import InputReading
from skvbem.structural import Block
from skvbem.vbem.posteriors import VB

# Parameters that do not go with blocks, but for one value.
_ALONE: dict[str, Any] = {"n_components": 1, "learn_prior": False, "initial": "unit", "init": "pca"}
# The least variance of a column's noise where it is most likely, as a share of the column's.
_FLOOR = 1e-10
# Shape of the precisions of noises of blocks, and of their rates: a half-Cauchy distribution of deviations [Gelman06].
_HALF = 0.5


class StructuralKind(StateSpaceKind):
    """Structural time series: linear systems whose states are those of blocks."""

    method = StructuralMethod()
    fitted = FittedStructural
    prior_parameters = (
        "blocks",
        "transition_precision_prior",
        "state_scale_prior",
        "noise_shape_prior",
        "noise_rate_prior",
    )

    def check(self, estimator, X) -> None:
        """Refuse what are no blocks, blocks that cannot be told apart, and what does not go with blocks."""
        owner, blocks = type(estimator).__name__, estimator.blocks
        if not isinstance(blocks, (list, tuple)) or not blocks or not all(isinstance(each, Block) for each in blocks):
            raise ValueError(
                f"The 'blocks' parameter of {owner} must be None or a list of blocks of skvbem.structural, such as "
                f"[Trend(), Season(12)]. Got {shown(blocks)} instead."
            )
        for block in blocks:
            block.check_parameters()
        labels = [block.label for block in blocks]
        twice = [label for k, label in enumerate(labels) if label in labels[:k]]
        levels = [repr(block) for block in blocks if block.has_level]
        learned = [repr(block) for block in blocks if block.states.order]
        if twice or len(levels) > 1 or len(learned) > 1:
            pair = f"two of a {twice[0]}" if twice else " and ".join(levels if len(levels) > 1 else learned)
            raise ValueError(
                f"The 'blocks' parameter of {owner} has {pair}: sums of them are all that a series shows, and no data "
                "can tell them apart. Leave one out."
            )
        for name, value in _ALONE.items():
            given = getattr(estimator, name)
            if not (given is value or given == value or (isinstance(value, str) and is_option(given, value))):
                raise ValueError(
                    f"{name}={given!r} of {owner} does not go with 'blocks', which say what the states are. Leave it "
                    f"{value!r}, or leave 'blocks' out."
                )

    def model(self, estimator, reading: InputReading) -> StructuralModel:
        """The structural time series of the blocks."""
        owner, p = type(estimator).__name__, reading.values[0].shape[1]
        if reading.inputs.shape[1]:
            raise ValueError(
                f"{owner} with 'blocks' has no 'inputs' of states: blocks say how states move. Give them as "
                "'output_inputs', summed over time where what they change stays."
            )
        k = p * sum(len(block.states.reading) for block in estimator.blocks)
        n = int(reading.lengths.max(initial=0))
        check_memory(f"Blocks of {k:.3g} states", n * p * (k + 2) + 4 * k * k, "fewer", estimator.max_memory, owner)
        return resolve_structural_model(estimator, reading)

    def starts(self, estimator, model, data: LDSData, reading: InputReading, seed: tuple) -> StructuralStarts:
        """Starts by variances."""
        return StructuralStarts(estimator.n_init, seed)

    def new_starts(self, plan, seed: tuple[int, ...]) -> StructuralStarts:
        """As many starts from other variances."""
        return StructuralStarts(plan.n_starts, seed)

    def learns_prior(self, estimator) -> bool:
        """False: priors of blocks are known."""
        return False

    def start_from(self, last: FittedStructural, model, data: LDSData, reading: InputReading) -> np.ndarray:
        """Statistics under the states of the last solution."""
        return model.started(model.expect(last.natural_of_q[:, None], data).statistics[:, 0])

    def drawn_like(self, like: InputReading, model: StructuralModel, point, rng: np.random.Generator):
        """Sequences of the lengths, and with the inputs, of a reading."""
        system = FittedStructural(like.columns, model, VB, np.zeros(model.n_cells))
        return like.columns.as_emission_takes([system.drawn_like(point, like, rng)])

    def title(self, fitted: FittedStructural) -> str:
        """Blocks and numbers of columns."""
        p = fitted.model.n_columns
        return f"{', '.join(fitted.model.design.block_names)} of {p} column{'s' * (p > 1)}"

    def attributes(self, fitted: FittedStructural) -> dict[str, Any]:
        """Matrices of the system, and deviations of noises by name."""
        named = fitted.named_parameters(fitted.point)
        return {
            **{f"{name}_": value for name, value in fitted.matrices._asdict().items()},
            "state_deviation_": named["states"],
            **({"autoregression_": named["autoregression"]["coefficient"]} if named["autoregression"] else {}),
            "n_components_": fitted.model.n_states,
            "spectral_radius_": fitted.spectral_radius(fitted.matrices),
            "n_free_parameters_": fitted.model.n_free_parameters,
        }


def resolve_structural_model(estimator: Any, reading: InputReading) -> StructuralModel:
    """The model of the blocks, whose priors are in units of the columns and of their changes."""
    values, lengths = reading.values[0], reading.lengths
    weight = np.ones(len(lengths)) if reading.weight is None else reading.weight
    of_rows = np.repeat(weight, lengths)
    origin, unit = moments(values, of_rows)
    p = len(unit)
    step = changes(values / unit, np.cumsum(lengths)[:-1], of_rows)
    seen = ~np.isnan(values)
    floor = floor_of_scales(of_rows @ seen) / 2
    squares = mean_squares(reading.output_inputs, of_rows * seen.any(axis=1))
    precision = np.concatenate(
        [[float(estimator.offset_precision_prior)], float(estimator.loading_precision_prior) * squares]
    )
    rate, one_each = estimator.noise_rate_prior, np.arange(p)
    emission: Any = Regression.from_parameters(
        np.zeros((p, len(precision))),
        np.repeat(np.diag(precision)[None], p, axis=0),
        np.full(p, float(estimator.noise_shape_prior)),
        np.full(p, 1.0 if rate is None else float(rate)),
        one_each,
        one_each,
        floor=_FLOOR,
    )
    if rate is None:
        emission = with_hidden_rates(emission, *HIDDEN_RATE, floor)
    design = Design.of(estimator.blocks, step)
    noise, column = None, design.column_of_noise
    if design.n_noises:
        scale, half = float(estimator.state_scale_prior) * step[column], np.full(design.n_noises, _HALF)
        noise = hidden_rate_prior(1, half, _HALF, _HALF * scale**2, floor=0.0)
    return StructuralModel(emission, noise, design, origin, unit, _autoregression(estimator, design, step))


def _autoregression(estimator: Any, design: Design, step: np.ndarray) -> Any:
    """The prior of learned rows of A and of their noises, whose columns change by so much in a step; None without."""
    if not len(design.learned):
        return None
    p, order, given = len(step), design.order, estimator.transition_precision_prior
    precision = (1.0 if given is None else float(given)) * step**2
    of_rows = Regression.from_parameters(
        np.zeros((p, order)),
        precision[:, None, None] * np.eye(order),
        np.full(p, _HALF),
        np.ones(p),
        np.arange(p),
        np.arange(p),
        floor=_FLOOR,
    )
    return with_hidden_rates(of_rows, _HALF, 1 / (float(estimator.state_scale_prior) * step) ** 2, 0.0)
