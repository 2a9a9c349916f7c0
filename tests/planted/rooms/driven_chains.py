"""Errors in chains that covariates drive."""

TESTS = (
    "families/test_softmax_rows.py",
    "models/hmm/test_covariates.py",
    "estimators/hmm/test_driven_chains.py",
    "evidence/test_driven_evidences.py",
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
            "np.append(softmax.intercept_variance, np.full(len(coding.mean), slope_variance))",
            "np.full(1 + len(coding.mean), softmax.intercept_variance)",
        )
    ],
    "transitions of a step are normalized to one": [
        (
            "partition, is_new = -bounds[place], place < 0",
            "partition, is_new = -bounds[place], place < len(place)",
        )
    ],
    "a row of transitions counts as used whatever states are": [
        (
            "np.bincount(cells.ravel(), used[:, :, j].ravel(), np.prod(shape))",
            "np.bincount(cells.ravel(), used.mean(axis=2).ravel(), np.prod(shape))",
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
            "logs = np.where(allowed, np.tensordot(regressors, w, axes=(1, 2)), -np.inf)",
            "logs = np.tensordot(regressors, w, axes=(1, 2))",
        )
    ],
    "rows with covariates alone are observed": [
        (
            "return [of_group for group, of_group in pairs if not group.specification.are_given]",
            "return [of_group for group, of_group in pairs]",
        )
    ],
    "drawn paths count a transition into the first step of a sequence": [
        ("into[:, whole.starts[whole.ends > whole.starts]] = 0.0", "into[:, :1] = 0.0"),
    ],
    "sequences that are put in order leave their covariates behind": [
        (
            "tuple(None if of is None else of[at] for of, at in zip(self.covariates, (sequences, rows)))",
            "tuple(None if of is None else of[at * 0] for of, at in zip(self.covariates, (sequences, rows)))",
        )
    ],
    "rows that are not taken keep the partition of what was proposed": [
        (
            "np.where(taken, partition_there, partition)",
            "np.where(taken, partition_there, partition_there)",
        )
    ],
    "the joint of a row leaves out how often it was used": [
        (
            "((statistics - 0.5 * precision * w) * w).sum(axis=(1, 2)) + (weight * partition).sum(axis=0)",
            "((statistics - 0.5 * precision * w) * w).sum(axis=(1, 2))",
        )
    ],
    "categories of a chain are taken for numbers": [
        (
            "sizes = [len(group.levels[at]) if group.levels else 0 for at in selected]",
            "sizes = [0 for at in selected]",
        )
    ],
    "hidden precisions of slopes are those of one row": [
        ("c = prior.n_free_parameters // p", "c = 1"),
    ],
    "scores of moved points are derivatives where they came from": [
        (
            "prior.jacobian(p).T @ u for p, u in zip(points, expected.T)",
            "jacobian.T @ u for p, u in zip(points, expected.T)",
        )
    ],
    "coefficients are in deviations of covariates": [
        (
            "in_units = np.moveaxis(np.tensordot(self.coding.effects, point, axes=(1, 2)), 0, 2)",
            "in_units = np.moveaxis(np.tensordot(self.coding.effects.T, point, axes=(1, 2)), 0, 2)",
        ),
        (
            "to_units[0, 1:] = -self.mean / self.unit",
            "to_units[0, 1:] = 0.0",
        ),
    ],
}
