"""The kind of linear systems of normal states, free ones or those of blocks: sequences with inputs, and their data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from skvbem.errors import DataWarning, warn
from skvbem.estimators.sequences import read_steps
from skvbem.fitting.kind import Kind
from skvbem.models.linear_dynamical_system.data import LDSData
from skvbem.reading.column_groups import ColumnGroups, ColumnOptions
from skvbem.reading.inputs import InputReading, SequencesWithInputs, check_input_names, read_with_inputs
from skvbem.reading.rows import ranges, warn_of_marks
from skvbem.reading.sequences import refuse_lengths_as_y
from skvbem.reading.tables import Table
from skvbem.reading.time_axis import frequency_of_fit


class StateSpaceKind(Kind):
    """Linear systems of normal states, whatever moves these."""

    located_by = ("sequence_id", "lengths", "inputs", "output_inputs", "time")
    reading_parameters = frozenset({"missing_values"})
    default_score = "lower_bound"

    def located(
        self, estimator, X, *, is_fit=False, sequence_id=None, lengths=None, inputs=None, output_inputs=None, time=None
    ) -> SequencesWithInputs:
        """X as sequences with inputs, which every method takes in place of X."""
        of_fit, owner = None if is_fit else frequency_of_fit(estimator), type(estimator).__name__
        return read_with_inputs(X, sequence_id, lengths, inputs, output_inputs, owner, time, of_fit)

    def read(self, estimator, X, sample_weight, columns: ColumnGroups | None, where: Mapping) -> InputReading:
        """The reading of sequences and their inputs."""

        def learned(table: Table) -> tuple[ColumnGroups, list[np.ndarray]]:
            options = ColumnOptions(
                type(estimator).__name__, "gaussian", "diag", missing_values=estimator.missing_values
            )
            return ColumnGroups.learned(table, options)

        sequences = self.located(estimator, X, is_fit=columns is None, **where)
        if columns is not None:
            check_input_names(sequences.input_names, estimator)
        return InputReading.of(read_steps(estimator, sequences, X, sample_weight, columns, learned))

    def check_y(self, y, reading: Any) -> None:
        """Refuse lengths in the place of y."""
        if y is not None:
            refuse_lengths_as_y(y, reading.sequences, "fit")

    def compiled(self, estimator, model, reading: InputReading, n_starts: int) -> LDSData:
        """Sequences as the model takes them."""
        return reading.compiled(model)

    def warn_of_data(self, estimator, reading: InputReading, model, data: LDSData) -> None:
        """Warn of columns that say nothing of states, and of codes of missing cells."""
        reading.warn_of_missing_steps()
        warn_of_marks(reading.as_independent, 0, *ranges(reading.as_independent, 0))
        for name, column in zip(reading.columns.names, reading.values[0].T):
            seen = column[~np.isnan(column)]
            if len(seen) > 1 and (seen == seen[0]).all():
                says = "it says nothing of the states"
                warn(f"Column {name!r} of X holds one value wherever observed: {says}.", DataWarning)

    def hidden(self, fitted) -> tuple:
        """The state."""
        return ("state",)

    def data_attributes(self, fitted, reading, data, before: Mapping | None) -> dict[str, Any]:
        """No hidden label: states are numbers."""
        return {"latent_states_": {}}
