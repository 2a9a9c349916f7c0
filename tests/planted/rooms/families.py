"""Errors in the exponential families: their normalizers, divergences and draws."""

TESTS = (
    "families",
    "vbem",
    "kernels",
    "models",
    "laws",
    "emissions",
    "evidence/**/test_mixture*.py",
    "estimators/mixture/test_vb_mixture.py",
    "estimators/mixture/test_vb_mixture_blocks.py",
    "estimators/hmm/test_vb_hmm.py",
)

ERRORS = {
    "what counts say of the strength of a table is left out": [
        (
            "return self._log_evidences - log_sum_exp(self._log_evidences)",
            "return 0.0 * self._log_evidences - np.log(len(self.alternatives))",
        )
    ],
    "the evidence of tables is that of their most probable strength": [
        (
            "(log_sum_exp(before + rises) - log_sum_exp(before + np.zeros_like(rises)))",
            "((before + rises).max(axis=0) - before.max(axis=0))",
        )
    ],
    "the density of a mixture is that of one member": [
        ("return reduce(np.logaddexp, terms).sum(axis=0)", "return terms.max(axis=0).sum(axis=0)")
    ],
    "KL is taken the other way round": [
        (
            "natural = self.expected_natural() if expected_natural is None else expected_natural",
            "natural = other.expected_natural()",
        )
    ],
    "the natural measure of precisions is that of variances": [
        ("(means - d - 1) / 2 * log_det", "(means + d + 1) / 2 * log_det")
    ],
    "precisions are drawn with as many degrees of freedom in every direction": [
        (
            "halves = last_axes_first((dof[..., None] - np.arange(d)) / 2, 2)",
            "halves = last_axes_first((dof[..., None] - np.arange(d) * 0) / 2, 2)",
        )
    ],
    "means that chains draw are as sure as one row": [
        ("+ noise / np.sqrt(kappa)[..., None]\n        log_pivots", "+ noise\n        log_pivots")
    ],
    "the bound leaves out the prior of the first state": [
        (
            "np.sum([block.log_normalizer_increment(u) for block, u in parts], axis=0)",
            "np.sum([block.log_normalizer_increment(u) for block, u in list(parts)[1:]], axis=0)",
        )
    ],
    "rows of a regression that share a matrix count its inverse once": [
        ("natural[cell] = of->n_sharing[k] * inverses[(k", "natural[cell] = inverses[(k")
    ],
    "what an inverse leaves of a row of nearly collinear regressors is lost": [
        (
            "squares[b] += solution[i + b] * (h[i + b] + left[i + b]) + left[i + b] * mended[i + b];",
            "squares[b] += solution[i + b] * h[i + b];",
        )
    ],
    "what a regression explains is taken about zero": [
        ("explained[b] += c[i] * (sum + rests);", "explained[b] += c[i] * sum;")
    ],
}
