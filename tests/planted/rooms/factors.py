"""Errors in factor analyzers: what rows hide, the regressions on it, the map of factors, and their evidence."""

TESTS = (
    "families/**/test_regression.py",
    "reports/**/test_principal_components.py",
    "emissions/**/test_factor.py",
    "emissions/**/test_factor_expansion.py",
    "emissions/**/test_factor_groups.py",
    "emissions/**/test_factor_group_moves.py",
    "kernels/**/test_factor_map.py",
    "models/mixture/test_analyzer_ascent.py",
    "estimators/factor_analysis/test_group_factor_analysis.py",
    "estimators/factor_analysis/test_vb_factor_analysis.py",
    "estimators/test_rows_that_are_alike.py",
    "emissions",
    "evidence/**/test_mixture*.py",
)

ERRORS = {
    "second moments forget how factors of a row vary": [
        ("sum += n * covariance[cell];", "sum += 0.0 * n * covariance[cell];")
    ],
    "the objective of second moments forgets the means of columns": [
        ("sums[j * regressors] * moments[1 + j];", "0.0 * sums[j * regressors] * moments[1 + j];")
    ],
    "drawn scales of factors forget the volume of the coefficients": [
        ("power = self.products[:, 0, 0] - loadings.shape[1]", "power = self.products[:, 0, 0]")
    ],
    "drawn shears of factors forget the rows": [
        ("(weighted @ pull)[:, 0] - self.products[:, i]", "(weighted @ pull)[:, 0]")
    ],
    "hidden weights of prior means count their columns twice": [
        ("in (hidden.shape, hidden.rate, len(mean) / 2))", "in (hidden.shape, hidden.rate, len(mean)))")
    ],
    "hidden weights of prior means are of means of 0": [
        ("means[:, 0], first[0, 0] = mean, 1.0", "means[:, 0], first[0, 0] = 0.0, 1.0")
    ],
    "hidden rates forget what squares have of prior means": [
        ("coordinates[cells] = regression.squares_of_means", "coordinates[cells] = 0.0")
    ],
    "hidden rates of noise have the prior of a variance ten times as large": [
        ("_SHAPE_OF_NOISE, _HIDDEN_RATE = 1.5, (0.5, 1 / 3)", "_SHAPE_OF_NOISE, _HIDDEN_RATE = 1.5, (0.5, 1 / 30)")
    ],
    "each component has rates of its own": [
        ("rate_of = np.arange(layout.n_noises) % (1 if self.spherical else d)", "rate_of = np.arange(layout.n_noises)")
    ],
    "one noise is that of standardized columns": [
        ("if spherical and not standardize:", "if spherical and standardize:")
    ],
    "the step of Newton's method forgets the weight of prior means": [
        ("slope[k * d] / (share + both[k])", "slope[k * d] / share")
    ],
    "factors that change no row are a start as good as any": [
        ("return of_means <= _UNKNOWN * (expected + 1)", "return of_means < 0.0 * expected")
    ],
    "batches start from the last solution alone": [
        ("if self.data.total_weight < most and not kind.leads_nowhere(last):", "if True:")
    ],
    "the covariance of loadings and mean is forgotten, as older code forgets it": [
        (
            "natural[cell] = of->n_sharing[k] * inverses[(k * d + i) * d + j];",
            "natural[cell] = i == 0 && j > 0 ? 0.0 : of->n_sharing[k] * inverses[(k * d + i) * d + j];",
        )
    ],
    "coefficients of regressions are taken for known": [
        ("natural[cell] = of->n_sharing[k] * inverses[(k", "natural[cell] = 0.0 * inverses[(k")
    ],
    "factors of complete rows are taken for known": [
        ("+= products[:, :1] * covariance", "+= 0.0 * products[:, :1] * covariance")
    ],
    "factors of rows with gaps are taken for known": [
        ("regressors, covariance, products)", "regressors, 0.0 * covariance, products)")
    ],
    "the determinant of the precision of factors is left out": [
        ("constant += self.at_origin @ observed.T", "constant[:] = self.at_origin @ observed.T")
    ],
    "missing columns count in the matrix that columns share": [
        ("covariance[..., None] * seen.sum(axis=1)", "covariance[..., None] * len(columns)")
    ],
    "precisions of loadings count each column twice": [
        (
            "power = np.bincount(block_of[prior.precision_of], minlength=len(learned))[block] / 2",
            "power = np.bincount(block_of[prior.precision_of], minlength=len(learned))[block]",
        )
    ],
    "a group's precisions count the columns of all groups": [
        (
            "power = np.bincount(block_of[prior.precision_of], minlength=len(learned))[block] / 2",
            "power = np.full(n, len(prior.precision_of) / 2)",
        )
    ],
    "columns of other groups share a matrix": [
        (
            "np.unique(self.group_of_column[~self.alone], return_inverse=True)",
            "np.unique(0 * self.group_of_column[~self.alone], return_inverse=True)",
        )
    ],
    "the turn of factors forgets all groups but the first": [
        (
            "each = axes.swapaxes(-1, -2)[..., None, :, :] @ matrices @ axes[..., None, :, :]",
            "each = axes.swapaxes(-1, -2)[..., None, :, :] @ matrices[..., :1, :, :] @ axes[..., None, :, :]",
        )
    ],
    "groups of columns are those of the whole table, not of the emission": [
        (
            "[[group.columns.index(position) for position in of_group] for of_group in positions]",
            "[sorted(of_group) for of_group in positions]",
        )
    ],
    "the entropy of factors has the wrong sign in their map": [
        ("/ n - log(root[i * q + i]);", "/ n + log(root[i * q + i]);")
    ],
    "Newton's step counts half of the volume that it changes": [
        ("return n * log_det - 0.5 * change;", "return 0.5 * n * log_det - 0.5 * change;")
    ],
    "Newton's step forgets the slope of sums": [
        ("skvbem_add_transposed(form->n_rows, d, d, of_sums, sums, slope);", "")
    ],
    "the posterior of the next step is that before the map": [
        ("of_all = of_complete.posterior", "of_all = as_it_is.posterior")
    ],
    "halves of natural parameters are lost after a map": [("*++cell *= halves;", "*++cell *= 1.0;")],
    "few rows in place of all vary too little": [
        ("np.sqrt((d + 1) / (rank * (rank + 1)))", "np.sqrt(d / (rank * (rank + 1)))")
    ],
    "signs of factors are no aliases": [("return 2**q * factorial(q)", "return factorial(q)")],
    "cells of rows with factors count as certain": [
        ("certain[self.model.first_emission_cell :] = 0.0", "certain[self.model.first_emission_cell :] *= 1.0")
    ],
    "drawn factors are not scattered as they vary": [
        (
            "_factors.scatter(factors.pattern, factors.root, noise,",
            "_factors.scatter(factors.pattern, factors.root, 0.9 * noise,",
        )
    ],
    "a tail of weights without variance has the error of one with it": [
        (
            "n ** np.clip(shape - 0.5, 0.0, 0.5)",
            "n ** np.clip(shape - 0.5, 0.0, 0.0)",
        )
    ],
    "Minka's evidence lacks the volume of the variances": [
        ("0.5 * (m + k) * np.log(2 * np.pi)", "0.5 * m * np.log(2 * np.pi)")
    ],
}
