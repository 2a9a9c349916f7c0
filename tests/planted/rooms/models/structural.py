"""Errors in structural time series: the filter, the smoother, ln Z, what is asked after a fit."""

TESTS = (
    "models/structural/test_structural_time_series.py",
    "models/structural/test_autoregressions.py",
    "estimators/linear_dynamical_system/test_blocks.py",
    "estimators/linear_dynamical_system/test_autoregressive_blocks.py",
    "laws/test_models.py",
)

ERRORS = {
    "ln Z of blocks has no term of the steps of states": [
        ("of_columns + at.of_step[:, None] * (np.diff(sequence, prepend=-1) == 0)", "of_columns")
    ],
    "ln Z of blocks counts a step at the beginning of each sequence": [
        ("at.of_step[:, None] * (np.diff(sequence, prepend=-1) == 0)", "at.of_step[:, None] * np.ones(len(sequence))")
    ],
    "ln Z of blocks leaves out how unsure effects of inputs are": [
        ("@ seen.T + of_inputs", "@ seen.T + 0.0 * of_inputs")
    ],
    "a noise of several states counts as one": [
        (
            "np.broadcast_to(0.5 * n_steps * of_noise.sum(axis=1), (n_lanes, len(of_noise)))",
            "np.broadcast_to(0.5 * n_steps * of_noise.max(axis=1), (n_lanes, len(of_noise)))",
        )
    ],
    "a season starts as wide in each wave as in all of them": [
        ("noise, (False,) * k, np.full(k, 1.0 / n))", "noise, (False,) * k, np.ones(k))")
    ],
    "a wave turns the other way in one of its states": [
        ("[-np.sin(angle), np.cos(angle)]])", "[np.sin(angle), np.cos(angle)]])")
    ],
    "series with a level have an offset, too": [
        ("output_inputs = np.concatenate([np.zeros((n, 1)), output_inputs[:, 1:]], axis=1)", "pass")
    ],
    "states of blocks are published without the unit of their columns": [
        (
            "return self._gone_on(data, natural, self.shift + scale * mean, scale[:, None] * scale * covariance)",
            "return self._gone_on(data, natural, self.shift + mean, scale[:, None] * scale * covariance)",
        )
    ],
    "variances of noises of blocks are those of the model's unit": [
        ("return self.scale**2 * variance", "return self.scale * variance")
    ],
    "a variance whose best value is 0 is left on its way there": [
        ("if not objectives[best] > fit.objective:", "if objectives[best] > -np.inf:")
    ],
    "the slope of a quasi-Newton method of rates has the other sign": [
        (
            "return -objective, -precision * (after[rates, 0] - at[rates])",
            "return -objective, precision * (after[rates, 0] - at[rates])",
        )
    ],
    "the smoothed square of a move has no variance": [
        ("tail = of.q[j] - of.q[j] * of.q[j] * room.information[j * k + j]", "tail = 0.0")
    ],
    "how unsure learned rows are is no penalty of states": [
        ("roots.reshape(n_lanes, -1)", "0.0 * roots.reshape(n_lanes, -1)")
    ],
    "cells of 0 keep their constants in ln Z": [
        ("log_density += self._constants(at, data) + cells.constants(data)", "log_density += self._constants(at, data)")
    ],
    "second moments of lags are products of means": [("value += other[1 + groups[g] + i]", "value += 0.0")],
    "learned rows have no term of the precision of their noise": [
        ("of_step = of_step + learned.of_datum.sum(axis=1)", "pass")
    ],
    "coefficients of an autoregression have a prior in the unit of the column": [
        ("(1.0 if given is None else float(given)) * step**2", "(1.0 if given is None else float(given)) * step**0")
    ],
    "the first step of a sequence has cells of 0": [("follows[data.first_rows] = 0", "pass")],
}
