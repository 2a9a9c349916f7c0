"""Errors in linear dynamical systems: their E step, their bound, the basis of states, what is asked after a fit."""

TESTS = ("models/**/test_linear_dynamical_system.py", "estimators/**/test_vb_linear_dynamical_system.py")

ERRORS = {
    "the dynamics are taken at their means: the covariance of A is left out": [
        (
            "return self.transition.T @ self.transition + self.transition_spread",
            "return self.transition.T @ self.transition",
        )
    ],
    "loadings are taken at their means: their covariance is left out": [
        (
            "return weighted[:, :, None] * self.output[:, None, :] + self.output_spread",
            "return weighted[:, :, None] * self.output[:, None, :]",
        )
    ],
    "what the next input says of a state is left out": [
        ("linear[before] -= of_next @ potentials.squares[:k, k:].T", "linear[before] -= 0.0 * of_next[:, :1]")
    ],
    "an input moves the state of its own step, one step too early": [
        ("of_next = data.inputs[before + 1]\n", "of_next = data.inputs[before]\n")
    ],
    "steps after the last observed one are kept": [
        (
            "rows = np.flatnonzero(np.arange(len(measured)) < ends[sequence])",
            "ends = given[1:]\n        rows = np.arange(len(measured))",
        )
    ],
    "the recursion is taken for settled too early": [("REPEATS = 1e-15", "REPEATS = 1e-3")],
    "the covariance of two successive states is turned around": [
        ("s[:k] += covariances.crossed", "s[:k] += covariances.crossed.T")
    ],
    "the basis of states gains nothing in entropy": [("value = n * log_det - 0.5", "value = 0.0 * log_det - 0.5")],
    "states are put into a basis under which the bound falls": [
        ("reached[0] = value, flat", "reached[0] = value, 2.0 * flat")
    ],
    "draws of states go without the noise of their last step": [
        (
            "if drawn:\n                    for i in range(k):",
            "if drawn and t < b - 1:\n                    for i in range(k):",
        )
    ],
    "precisions that are learned count rows instead of coefficients": [
        ("power = np.full(n, prior.n_rows / 2)", "power = np.full(n, float(prior.n_rows))")
    ],
    "forecasts leave out that parameters differ from draw to draw": [
        ("variance.mean(axis=0) + mean.var(axis=0)", "variance.mean(axis=0)")
    ],
    "filtered states know of the step after them": [
        ("np.linalg.inv(inverse) - later[:, None, None] * squares[:k, :k]", "np.linalg.inv(inverse)")
    ],
}
