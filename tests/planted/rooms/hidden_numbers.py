"""Errors in emissions that hide one number in each cell."""

TESTS = ("emissions/test_zero_inflated.py", "emissions/test_laws.py")

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
}
