"""Errors in regressions: mixtures of them, chains that follow themselves, and numbers as parents of numbers."""

TESTS = ("estimators/labels/test_regression.py", "families/test_regression_hyperpriors.py")

ERRORS = {
    "regressions are without their constant": [
        (
            "np.concatenate([np.ones((int(self.intercept), len(columns))), columns.T])",
            "np.concatenate([np.zeros((int(self.intercept), len(columns))), columns.T])",
        )
    ],
    "earlier values are those of one row too early": [
        ("before[rows, lag - 1] = responses[rows - lag]", "before[rows, lag - 1] = responses[rows - lag - 1]")
    ],
    "earlier values come from the sequence before": [
        ("rows = np.flatnonzero(step >= lag)", "rows = np.arange(lag, len(responses))")
    ],
    "predictions of regressions take coefficients for known": [
        (
            """spread = 1 + np.einsum("in,sij,jn->sn", regressors, posterior.covariance, regressors)""",
            "spread = np.ones((posterior.n_rows, len(block)))",
        )
    ],
    "forecasts of chains that follow themselves are without the noise": [
        (
            "squares[:, :, ahead, ahead] += probability[:, :, None] * self.variance",
            "squares[:, :, ahead, ahead] += 0.0 * self.variance",
        )
    ],
    "responses are drawn without the noise": [
        (
            "rows[at, :d] = self.origin + self.unit * (means + noise[at])",
            "rows[at, :d] = self.origin + self.unit * means",
        )
    ],
    "the unit of responses is left out of their density": [
        (
            "log_root = log_root - np.log(self.unit)\n        if complete:\n            products",
            "if complete:\n            products",
        )
    ],
    "hidden scales of regressions are not those of all components": [
        ("power = np.bincount(rate_of, split(coordinates)[-2] / 2, n)", "power = split(coordinates)[-2][:n] / 2")
    ],
    "numbers are drawn without the numbers above them": [
        (
            "given = np.concatenate([unknown, *before], axis=1)",
            "given = np.concatenate([unknown, *(0 * each for each in before)], axis=1)",
        )
    ],
    "the determinants of precisions of coefficients are left out": [
        ("total += of->n_sharing[k] * log_root[k];", "total += 0.0 * log_root[k];"),
        ("total -= 0.5 * of->n_sharing[k] * skvbem_log", "total -= 0.0 * of->n_sharing[k] * skvbem_log"),
    ],
}
