"""Errors in the search for numbers of factors."""

TESTS = ("optima/test_factor_moves.py",)

ERRORS = {
    "the factor that matters most is the first to go": [
        ("s = int(squares[k, :most].argmin())", "s = int(squares[k, :most].argmax())")
    ],
    "a new factor points where columns vary together least": [
        ("axis = axes[:, -1] * np.sign(", "axis = axes[:, 0] * np.sign(")
    ],
    "a new factor is taken twice with those there are": [
        ("crossed = -0.5 * weighted[columns]", "crossed = -1.0 * weighted[columns]")
    ],
    "principal components have the scale of correlations": [
        (
            "coefficients[k, :, 1 : 1 + loadings.shape[1]] = deviation[:, None] * loadings",
            "coefficients[k, :, 1 : 1 + loadings.shape[1]] = loadings",
        )
    ],
    "components of other numbers of factors change places": [
        (
            "return np.array(self.emission.numbers(n_components))",
            "return np.zeros(n_components, dtype=int)",
        )
    ],
    "rows are drawn with factors that their component has not": [
        (
            "n_regressors) * self.in_use(shape[-2])[:, None]",
            "n_regressors)",
        )
    ],
}
