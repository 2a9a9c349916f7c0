"""Errors in emissions that hide one number in each cell."""

TESTS = (
    "emissions/test_zero_inflated.py",
    "emissions/test_student_t.py",
    "emissions/test_intervals.py",
    "emissions/test_ordinal.py",
    "emissions/test_laws.py",
)

ERRORS = {
    "zeros that are not inflated count for the base in full": [
        ("kept = zeros * (1 - self.inflated[0])", "kept = zeros * (1 - 0 * self.inflated[0])"),
    ],
    "an inflated zero is as likely as in the base": [
        (
            "self.zero = np.logaddexp(inflated, self.kept + emission._log_zero(log_zero))",
            "self.zero = np.logaddexp(inflated, self.kept) + emission._log_zero(log_zero)",
        ),
    ],
    "the mean of zero-inflated cells is that of the base": [
        ('"means": (1 - inflation) * means', '"means": (1 - 0 * inflation) * means'),
    ],
    "missing cells of heavy tails vary less where a row is far": [
        ("unweighted = (by_row - weighted)[:, rows]", "unweighted = 0 * (by_row - weighted)[:, rows]"),
    ],
    "squares between ends are in deviations": [
        ("2 * mean * unit * first + unit**2 * second", "2 * mean * unit * first + unit * second"),
    ],
    "rows that share an interval count for all its measurements": [
        (
            "return np.concatenate([counts, counts * at], axis=1) @ of_column",
            "return np.concatenate([counts, counts * at], axis=1) @ np.ones_like(of_column)",
        ),
    ],
    "an interval is as probable as if its mean were known": [
        (
            "log_root + LOG_2PI / 2 - np.log(tau) / 2 + norm + tau * self.mean**2 / 2",
            "log_root + LOG_2PI / 2 - np.log(tau) / 2",
        ),
    ],
    "edges have no price": [("base = table.points.base - ", "base = table.points.base - 0 * ")],
    "answers in the reverse order have other edges": [("n_points += (n_points - n) % 2", "n_points += 0 * n")],
    "all answers of a column pay for its edges": [
        ("np.array(prices) / np.maximum(totals, 1e-300)", "np.array(prices)")
    ],
    "an answer lies above its edges": [("np.maximum(codes, 0) + upper]", "np.maximum(codes - 1, 0) + upper]")],
    "a row of heavy tails has a degree of freedom more": [
        ("result = peak, (self.df + seen) / 2, rate, seen", "result = peak, (self.df + seen + 1) / 2, rate, seen"),
    ],
}
