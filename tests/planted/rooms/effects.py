"""Errors in effects of one node on another, given a graph and over graphs."""

TESTS = ("estimators/mixed_network/test_effects.py", "search/test_effects_over_structures.py")

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
    "layers of graphs have parents anywhere": [
        ("of_node = _log_difference(of_node, self._log_a[j, union & ~last])", "of_node = np.full(len(last), of_node)"),
    ],
    "nodes of a layer have no parent in the last": [
        ("options = options[(options & last) > 0] if union else options", "options = options[(options & last) >= 0]"),
    ],
    "sets of parents are as probable as those of the best graph": [
        ("parts = [(of_sinks[of] * np.exp(scores[child, mask] - log_a[of])).sum()", "parts = [(of_sinks[of]).sum()"),
    ],
    "coefficients of graphs have a degree of freedom for each column": [
        (
            "shape = 0.5 * (data.degrees_of_freedom + data.total_weight + len(above))",
            "shape = 0.5 * data.total_weight / 2",
        ),
    ],
    "effects over graphs are in standard deviations": [
        (
            "draws = np.linalg.inv(identity - slopes)[:, y, x] * self.data.unit[y] / self.data.unit[x]",
            "draws = np.linalg.inv(identity - slopes)[:, y, x]",
        ),
    ],
    "an outcome among the parents of its cause has an effect on itself": [
        ("            if y not in above:\n                parts", "            if True:\n                parts"),
    ],
    "only edges are paths": [("reached = np.minimum(reached @ reached, 1.0)", "pass")],
}
