"""Errors in structural time series: the filter, the smoother, ln Z, what is asked after a fit."""

TESTS = (
    "models/structural/test_structural_time_series.py",
    "estimators/linear_dynamical_system/test_blocks.py",
    "laws/test_models.py",
)

ERRORS = {
    "ln Z of blocks has no term of the steps of states": [
        ("of_inputs + at.of_step[:, None] * (np.diff(sequence, prepend=-1) == 0)", "of_inputs")
    ],
    "ln Z of blocks counts a step at the beginning of each sequence": [
        ("at.of_step[:, None] * (np.diff(sequence, prepend=-1) == 0)", "at.of_step[:, None] * np.ones(len(sequence))")
    ],
    "ln Z of blocks leaves out how unsure effects of inputs are": [
        ("of_rows = at.of_cell @ seen.T + of_inputs", "of_rows = at.of_cell @ seen.T + 0.0 * of_inputs")
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
}
