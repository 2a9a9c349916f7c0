"""Errors in the times of sequences: frequencies, steps that are filled in, and dates that come back."""

TESTS = ("reading/test_times.py", "estimators/test_times.py", "plotting/test_system_displays.py")

ERRORS = {
    "month ends are days of the month": [
        ("return np.minimum(begin + (self.day - 1), end - 1)", "return begin + (self.day - 1)")
    ],
    "times of day are forgotten": [
        ("return np.remainder(self.clock, self.per_day)", "return np.zeros_like(self.clock)")
    ],
    "hours go by the clock": [
        ("(on_clock, even) if shortest[0] >= ticks.per_day else (even, on_clock)", "(on_clock, even)")
    ],
    "days go by the time that passes": [
        ("(on_clock, even) if shortest[0] >= ticks.per_day else (even, on_clock)", "(even, on_clock)")
    ],
    "weekends are missing days": [("if between[inner[1:]].any():  # a weekend that is not there", "if False:")],
    "a rare short step is the frequency": [("return shortest if counts[0] == counts.max() else 0", "return shortest")],
    "steps between sequences count": [("inner[starts] = False", "inner[starts[:1]] = False")],
    "rows of several sequences are sorted together": [("rows[np.lexsort((times, which))]", "rows[np.argsort(times)]")],
    "a step without a row holds the last row": [
        ("values[gone] = -1", "pass"),
        ("missing = gone if missing is None else missing | gone", "pass"),
        ("array[gone] = np.nan", "pass"),
    ],
    "answers of rows stand in the order of time": [
        ("as_rows[self.order[there]] = of_steps[there]", "as_rows[:] = of_steps[there]")
    ],
    "forecasts go on from the last row, not the last step": [
        ("k, n in enumerate(sequences.lengths.tolist())]", "k, n in enumerate(sequences.rows_of_each.tolist())]")
    ],
    "an hour that comes twice is the second one": [
        ("ambiguous=np.ones(len(dates), bool)", "ambiguous=np.zeros(len(dates), bool)")
    ],
    "a fit forgets the frequency of its times": [('names["_frequency_"] = str(times.frequency)', "pass")],
    "labels of filled steps are those of the first row": [
        ("codes[:-1] if rows is None else codes[rows]", "codes[:-1] if rows is None else codes[np.maximum(rows, 0)]")
    ],
    "steps to come are drawn as far apart as the last two": [
        ("if self.times_ahead is not None:", "if False:")
    ],
}  # fmt: skip
