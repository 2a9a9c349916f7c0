"""Errors in budgets, progress and what is said at the end of long calls, and in reports of two posteriors."""

TESTS = ("test_long_calls.py", "search/**/test_limits.py", "reports/**/test_one_posterior.py")

ERRORS = {
    "a budget is ignored": [
        (
            "over = self.deadline is not None and time.monotonic() >= self.deadline",
            "over = self.deadline is not None and time.monotonic() < 0.0",
        )
    ],
    "an inner call outlives the outer one": [
        ("LongCall(name, verbose, min(deadlines, default=None)", "LongCall(name, verbose, max(deadlines, default=None)")
    ],
    "inner steps are no part of the outer ones": [("level.done + (share or 0.0)", "level.done + 0.0 * (share or 0.0)")],
    "a best at the edge is not said": [
        ("len(numbers) > 2 and _number_of(value) == numbers[-1]", "len(numbers) > 2 and _number_of(value) == -1")
    ],
    "candidates without time have no probability": [
        ("n_asked[asked[is_reached]] = step + 1", "n_asked[asked] = step + 1")
    ],
    "edges that were not reached are certain": [
        ("if is_cut_off and graphs is None else published", "if not is_cut_off and graphs is None else published")
    ],
    "an estimate of q stands beside brackets of draws": [
        ("np.where(np.isnan(means._ends()[0]), self.values, means._ends()[0])", "1.0 * self.values")
    ],
    "a mean beyond its interval stays": [
        ("np.where(is_beyond, medians._ends()[0], values)", "np.where(is_beyond, values, values)")
    ],
    "empty states have rows and columns": [("if empty.isdisjoint(states[k].items())", "if states[k] is not None")],
}
