"""Errors in columns of intervals."""

TESTS = ("reading/test_interval_columns.py",)

ERRORS = {
    "an end that is infinite is a number": [
        ('return np.nan if end == (-np.inf if side == "left" else np.inf) else end', "return end")
    ],
    "upper ends are lower ones": [
        (
            '_ends(table.names[intervals[j - n]], table.column(intervals[j - n]), "right")',
            '_ends(table.names[intervals[j - n]], table.column(intervals[j - n]), "left")',
        )
    ],
    "an open end is filled": [("are_missing[:, list(self.intervals)] &= are_missing[:, self.n_columns :]", "pass")],
    "a pair may have an interval between its ends": [("if at in upper and len(columns) % 2:", "if False:")],
    "levels that are missing are the last one": [
        (
            "np.array([*map(end, column.levels), np.nan], dtype=object)",
            "np.array([*map(end, column.levels)], dtype=object)",
        )
    ],
    "one end of an interval is set": [
        (
            "is_set[:, list(columns.intervals)]], axis=1)",
            "0 * is_set[:, list(columns.intervals)]], axis=1).astype(bool)",
        )
    ],
}
