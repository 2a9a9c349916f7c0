"""Errors in posterior draws and in linear response."""

TESTS = (
    "uncertainty",
    "evidence/test_linear_response.py",
    "uncertainty/test_posterior_draws.py",
    "reproduction/test_interval_coverage.py",
)

ERRORS = {
    "draws keep the labels that chains happen to have": [
        (
            "if relabelings is None or relabelings.n == 1:",
            "if relabelings is None or relabelings.n >= 1:",
        )
    ],
    "linear response forgets what is hidden": [
        (
            "left = rest - rest @ (root.T @ hidden @ root) @ rest + turns @ turns.T",
            "left = np.eye(root.shape[1])",
        )
    ],
    "linear response widens turns of factors": [
        (
            "turns, lengths = _orthonormal(root, model.rotation_tangents(natural))",
            "turns, lengths = np.zeros((root.shape[1], 0)), np.zeros(0)",
        )
    ],
    "linear response forgets hidden hyperparameters": [
        (
            "return model.expect(moved, data).statistics + model.prior.hyperparameters(moved)",
            "return model.expect(moved, data).statistics",
        )
    ],
    "draws of linear response are those of q(theta)": [
        ("free = free + slopes.T @ (wider @ unit)", "free = free + 0.0 * slopes.T @ (wider @ unit)")
    ],
    "draws of linear response are widened by variances": [
        ("wider = (axes * (np.sqrt(values) - 1)) @ axes.T", "wider = (axes * (values - 1)) @ axes.T")
    ],
    "optima count as their bounds say": [
        ("evidences.append(bound + responses[-1].above_the_bound)", "evidences.append(bound)"),
    ],
    "what a bound forgets is counted twice": [
        (
            "return 0.5 * float(np.linalg.slogdet(self.inflation)[1])",
            "return float(np.linalg.slogdet(self.inflation)[1])",
        )
    ],
    "draws of other optima keep their labels": [
        (
            "if len(responses.weights) == 1 or relabelings is None:",
            "if len(responses.weights) >= 1 or relabelings is None:",
        )
    ],
    "chains that are elsewhere are taken to agree": [
        (
            "total = covariance[:, 0] + chains.mean(axis=2).var(axis=1, ddof=1)",
            "total = covariance[:, 0] * length / (length - 1)",
        )
    ],
    "effective sizes sum autocorrelations once": [
        (
            "times = 2 * np.minimum.accumulate(pairs, axis=1).sum(axis=1) - 1",
            "times = np.minimum.accumulate(pairs, axis=1).sum(axis=1)",
        )
    ],
    "chains stop however much they differ": [
        (
            "converged = bool(sizes.min() >= least and r_hat.max() <= TUNING.r_hat)",
            "converged = True",
        )
    ],
    "labels nearest to a fit are those furthest from it": [
        (
            "orders].sum(axis=2).argmax(axis=1)",
            "orders].sum(axis=2).argmin(axis=1)",
        )
    ],
    "many labels nearest to a fit are those furthest from it": [
        (
            "linear_sum_assignment(of_point, maximize=True)",
            "linear_sum_assignment(of_point, maximize=False)",
        )
    ],
    "labels are drawn for rows in the order in which they came": [
        (
            "distinct = self\n        if self.row_hashes is not None:",
            "distinct = self\n        if self.row_hashes is None:",
        )
    ],
    "sequences are drawn in the order in which they came": [
        ('np.argsort(sequences._hashes(self), kind="stable")', "np.arange(sequences.n_sequences)")
    ],
    "where a cell of a sequence stands makes no difference to its place": [
        ("+ mixed(steps.astype(np.uint64)))", "+ 0 * mixed(steps.astype(np.uint64)))")
    ],
}
