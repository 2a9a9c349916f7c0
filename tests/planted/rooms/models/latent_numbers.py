"""Errors in numbers that no row observes: their family, starts, symmetries, dimension, and answers."""

TESTS = (
    "models/mixed_network/test_latent_numbers.py",
    "estimators/test_advice_of_hidden_numbers.py",
)

ERRORS = {
    "the noise of hidden numbers has half the precision": [
        (
            "_OF_COUNT, _OF_SQUARE = -0.5 * np.log(2 * np.pi), -0.5",
            "_OF_COUNT, _OF_SQUARE = -0.5 * np.log(2 * np.pi), -0.25",
        )
    ],
    "the density of hidden numbers lacks its constant": [
        ("_OF_COUNT, _OF_SQUARE = -0.5 * np.log(2 * np.pi), -0.5", "_OF_COUNT, _OF_SQUARE = 0.0, -0.5")
    ],
    "log normalizers count no squares of hidden numbers": [
        (
            "return _OF_COUNT * counts.sum(axis=0) + _OF_SQUARE * squares.sum(axis=0)",
            "return _OF_COUNT * counts.sum(axis=0)",
        )
    ],
    "hidden numbers without parents have a constant": [
        (
            "set_params(covariates=numbers, intercept=below_categories)",
            "set_params(covariates=numbers, intercept=True)",
        )
    ],
    "starts have no slopes": [
        (
            "deviation = np.full(emission.n_regressors, 1.0 if emission.is_hidden else 0.0)\n        if parents:",
            "deviation = np.full(emission.n_regressors, 1.0 if emission.is_hidden else 0.0)\n        if not parents:",
        ),
    ],
    "classes start anywhere, whatever rows observe below hidden numbers": [
        ("squares += _squares_of_numbers(of_numbers, table[rows], seeds)", "pass")
    ],
    "a sign that flips leaves products with other regressors": [
        ("if (one == number) != (other == number):", "if (one == number) != (other == number) and 0 in (one, other):")
    ],
    "signs are those of all states together": [
        ("signs = signs * self.flipped(h, int(state))", "signs = signs * self.flipped(h, 0)")
    ],
    "the least slope is positive": [("best = row[np.abs(row).argmax()]", "best = row[np.abs(row).argmin()]")],
    "the number that explains least comes first": [
        ('np.argsort(np.negative(squares), kind="stable")', 'np.argsort(squares, kind="stable")')
    ],
    "relabelings leave signs out": [
        (
            "return ListedRelabelings(np.concatenate([of[cells] for of in labels]), np.tile(signs, (len(labels), 1)))",
            "return ListedRelabelings(np.concatenate([of[cells] for of in labels]))",
        ),
    ],
    "dimensions take hidden numbers for observed ones": [("observed[rows] = False", "observed[rows] = True")],
    "posterior deviations of hidden numbers leave out how far states are apart": [
        (
            "second = of_states**2 + eliminated.inverse[:, 0, place, place]",
            "second = means[at, column, None] ** 2 + eliminated.inverse[:, 0, place, place]",
        ),
    ],
    "evidence about hidden numbers is lost": [("of_group[:] = given[group.name]", "pass")],
    "hidden numbers without children have a prior with a price": [
        ("if group.is_hidden and group.name not in seen_through:", "if group.is_hidden and group.name in nodes:")
    ],
}
