"""Errors in factor analysis: rotations, draws of rotated loadings, fit indices, imputed cells."""

TESTS = (
    "fitted/test_rotations.py",
    "reports/test_fit_indices.py",
    "estimators/factor_analysis/test_vb_factor_analysis.py",
)

ERRORS = {
    "loadings of oblique factors are turned as those of orthogonal ones": [
        (
            "return np.linalg.solve(turns, loadings.swapaxes(-1, -2)).swapaxes(-1, -2)",
            "return loadings @ turns",
        )
    ],
    "draws are rotated without their names": [
        (
            "return np.take_along_axis(turns, order[:, None, :], axis=2) * signs[:, None, :]",
            "return turns",
        ),
        (
            "turns = onto @ ROTATIONS[self.rotation].near(loadings @ onto, like.turn)",
            "turns = ROTATIONS[self.rotation].near(loadings, np.eye(loadings.shape[-1]))",
        ),
    ],
    "correlations are taken for rows without a word": [
        ('if values.dtype.kind in "iuf" and np.allclose(values, values.T):', "if values.dtype.kind in {}:")
    ],
    "varimax forgets to weigh columns alike": [
        ('"varimax": Rotation(varimax, normalizes=True)', '"varimax": Rotation(varimax)')
    ],
    "the test of factors forgets Bartlett's factor": [
        ("(bartlett - 2 * n_factors / 3)", "(n - 1)"),
    ],
    "turns of factors count as free parameters": [
        (
            "return self.prior.n_free_parameters - n_redundant_parameters(self.emission, everywhere)",
            "return self.prior.n_free_parameters",
        )
    ],
    "variances of imputed cells forget what is not known of the factors": [
        (
            'return emission.unit**2 * (noise * times + np.einsum("ja,nab,jb->nj", loadings, covariances, loadings))',
            "return emission.unit**2 * (noise * times)",
        )
    ],
    "scores are not turned with the loadings": [
        ("return means @ self.turn, self.turn.T", "return means, self.turn.T"),
    ],
    "promax turns factors that no column tells apart": [
        ("has_inverse = np.linalg.matrix_rank(map) == map.shape[-1]", "has_inverse = np.linalg.matrix_rank(map) >= 0")
    ],
}
