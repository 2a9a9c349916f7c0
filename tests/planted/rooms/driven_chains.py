"""Errors in chains that covariates drive."""

TESTS = (
    "families/test_softmax_rows.py",
    "models/hmm/test_covariates.py",
    "estimators/hmm/test_driven_chains.py",
)

ERRORS = {
    "covariates at departure come a step late": [
        (
            "return values if at_arrival else np.concatenate([values[:1], values[:-1]])",
            "return values if at_arrival else np.concatenate([values[:1], values[:1], values[:-2]])[: len(values)]",
        )
    ],
    "slopes of transitions have the prior of intercepts": [
        (
            "np.append(softmax.intercept_variance, np.full(len(selected), float(softmax.slope_prior)))",
            "np.full(1 + len(selected), softmax.intercept_variance)",
        )
    ],
    "transitions of a step are normalized to one": [
        (
            "partition = np.where(place[:, None] >= 0, -bounds[place], np.logaddexp.reduce(logs, axis=2))",
            "partition = np.logaddexp.reduce(logs, axis=2)",
        )
    ],
    "a row of transitions counts as used whatever states are": [
        (
            "of_patterns[:, j] = np.bincount(np.maximum(place, 0), used[:, j], len(of_patterns))",
            "of_patterns[:, j] = np.bincount(np.maximum(place, 0), used.mean(axis=1), len(of_patterns))",
        )
    ],
    "what is to come leaves out the row that is left": [
        (
            "here = beta[k] + logs[k, t] - scale[t]",
            "here = beta[k] - scale[t]",
        )
    ],
    "weights of sequences are left out of transitions": [
        ("share = weight * exp(alpha[t - 1, j] + room[j])", "share = exp(alpha[t - 1, j] + room[j])"),
    ],
    "a maximum forgets that rows count anew": [
        (
            "near = design.bound(best.mean, None if is_point else best.covariance)",
            "near = best",
        ),
        ("    MAX_STEPS = 200\n", "    MAX_STEPS = 0\n"),
    ],
    "masked transitions are a part of the softmax": [
        (
            "logs = np.where(self.allowed, np.tensordot(regressors, w, axes=(1, 2)), -np.inf)",
            "logs = np.tensordot(regressors, w, axes=(1, 2))",
        )
    ],
    "rows with covariates alone are observed": [
        (
            "return [of_group for group, of_group in pairs if not group.specification.are_given]",
            "return [of_group for group, of_group in pairs]",
        )
    ],
    "coefficients are in deviations of covariates": [
        (
            "in_units = np.moveaxis(np.tensordot(self.to_units, point, axes=(1, 2)), 0, 2)",
            "in_units = np.moveaxis(np.tensordot(self.to_units.T, point, axes=(1, 2)), 0, 2)",
        ),
        (
            "matrix[0, 1:] = -mean / unit",
            "matrix[0, 1:] = 0.0",
        ),
    ],
}
