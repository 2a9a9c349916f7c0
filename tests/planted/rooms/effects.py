"""Errors in effects of one node on another, given a graph and over graphs."""

TESTS = ("estimators/mixed_network/test_effects.py",)

ERRORS = {
    "effects go along one path": [
        ("for i, p in enumerate(given) if p in change)", "for i, p in list(enumerate(given))[:1] if p in change)"),
    ],
    "coefficients in other states of categories count alike": [
        (
            "return coefficients[:, states], constants[:, states]",
            "return coefficients[:, 0 * states], constants[:, states]",
        ),
    ],
    "effects of categories leave those below them as they were": [
        (
            "return (self._probabilities(categories, done) * means[outcome])",
            "return (self._probabilities(categories, {}) * means[outcome])",
        ),
    ],
    "all draws of effects are of the same tables": [
        ("(self._tables[:, k], *self.fitted.point[1:])", "(self._tables[:, 0], *self.fitted.point[1:])"),
    ],
    "parts of an effect spread by their scales": [("1 + 2 / np.where(dof > 2, dof - 2, 1.0)", "1 + 0 * dof")],
    "an effect of nothing has no weight of its own": [
        ("                return float(point)\n", "                pass\n"),
    ],
}
