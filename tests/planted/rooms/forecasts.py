"""Errors in the intervals of forecasts."""

TESTS = ("fitted/test_forecast_intervals.py",)

ERRORS = {
    "intervals of angles end at half a turn": [("- before + (angles < opposite)", "- before")],
    "angles are counted from the expected direction": [
        ("np.remainder(center, period) - half", "np.remainder(center, half)")
    ],
    "zeros of their own are no ends": [
        ("np.where((low < 0) & (high > 0), 0.0, 0.5 * (low + high))", "0.5 * (low + high)")
    ],
    "quantiles lie within ten deviations": [("reach *= _FURTHER", "break")],
    "quantiles of counts lie between counts": [
        ("np.where(high - low > 1.0, np.floor(middle), high)", "np.where(high - low > 1.0, middle, high)")
    ],
    "forecasts of limits end at limits": [
        (
            "return self.cumulative(values, self.means(parameters)[:, None], self.deviations(parameters)[:, None])",
            "return self.cumulative_of_cells(values, parameters)[1]",
        )
    ],
    "intervals are those at the first draw of parameters": [
        (
            "specification.cumulative_of_values(cells, of_draw)",
            "specification.cumulative_of_values(cells, parameters[0])",
        )
    ],
    "intervals are at one sequence's states": [
        (
            "weights = [np.concatenate([each.reshape(-1, each.shape[-1])] * 2) for each in states]",
            "weights = [np.concatenate([states[0].reshape(-1, each.shape[-1])] * 2) for each in states]",
        )
    ],
}
