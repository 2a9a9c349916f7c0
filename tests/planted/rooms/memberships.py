"""Errors in softmax regressions of the component."""

TESTS = (
    "families/test_softmax_regression.py",
    "estimators/mixture/test_membership.py",
    "evidence/test_membership_evidences.py",
)

ERRORS = {
    "a tilt becomes the softmax at it": [
        (
            "EACH_ROW here[r] += w[q * SKVBEM_TILT_ROWS + r] * AT(root, q, i)[r] * AT(root, q, j)[r];",
            "EACH_ROW here[r] += 0.0;",
        ),
        (
            "EACH_ROW here[r] = (i == j) - mean[i * SKVBEM_TILT_ROWS + r] * mean[j * SKVBEM_TILT_ROWS + r];",
            "EACH_ROW here[r] = (i == j);",
        ),
        ("            if (!n_higher) break;\n", "            break;\n"),
    ],
    "the slope of a bound by its tilt has the other sign": [
        (
            "EACH_ROW to[r] = of_axis[r] - b[j * SKVBEM_TILT_ROWS + r];",
            "EACH_ROW to[r] = b[j * SKVBEM_TILT_ROWS + r] - of_axis[r];",
        ),
    ],
    "half of the variance of a tilted exponent is left out": [
        (
            "center[i * SKVBEM_TILT_ROWS + r] += 0.5 * AT(root, i, i)[r];",
            "center[i * SKVBEM_TILT_ROWS + r] += AT(root, i, i)[r];",
        )
    ],
    "a maximum keeps the covariance of its start": [
        (
            "                later.precision[i] = near.precision[i] + length * (wanted[i] - near.precision[i])",
            "                later.precision[i] = near.precision[i] + 1e-3 * length * (wanted[i] - near.precision[i])",
        ),
        ("        is_better = has_before and accelerated(", "        is_better = False and accelerated("),
        ("    MAX_STEPS = 200\n", "    MAX_STEPS = 4\n"),
    ],
    "slopes have the prior of intercepts": [
        (
            "intercept_variance, np.full(len(self.coding.mean), 1.0 if slope_variance is None else slope_variance)",
            "intercept_variance, np.full(len(self.coding.mean), intercept_variance)",
        )
    ],
    "prior variances stand for precisions": [
        (
            "SoftmaxRegression.from_precisions(n_components, self.design, 1.0 / variance)",
            "SoftmaxRegression.from_precisions(n_components, self.design, variance)",
        ),
    ],
    "the last step leaves the covariance out of the bound": [
        (
            "value += 0.5 * near.curvature[i * d + j] * (last.covariance[i * d + j] - near.covariance[i * d + j])",
            "value += 0.0",
        )
    ],
    "equal rows count once": [
        (
            "total = np.bincount(which, weight, len(patterns)).astype(float)",
            "total = np.ones(len(patterns))",
        )
    ],
    "contrasts are not of length one": [
        ("h[:, c - 1] /= np.sqrt(c * (c + 1.0))", "h[:, c - 1] /= c + 1.0"),
    ],
    "covariates are measured from zero": [
        (
            "return np.column_stack([np.ones(len(values)), (numbers - self.mean) / self.unit])",
            "return np.column_stack([np.ones(len(values)), numbers / self.unit])",
        ),
    ],
    "predictions go over three times as wide a Gaussian": [
        (
            "w = posterior.mean + h @ drawn.T.reshape(-1, k - 1, p)",
            "w = posterior.mean + 3 * h @ drawn.T.reshape(-1, k - 1, p)",
        ),
    ],
    "rows are drawn as if covariates were turned around": [
        ("return np.exp(log_softmax(block @ point.T, axis=1))", "return np.exp(log_softmax(-block @ point.T, axis=1))"),
    ],
    "covariances of rows leave out what regressors share": [
        (
            "packed[product] = half[(i * p + s) * d + j * p + t] + half[(i * p + t) * d + j * p + s]",
            "packed[product] = half[(i * p + s) * d + j * p + t]",
        )
    ],
    "chains take every coefficient that is proposed": [
        (
            "stays = np.log(rng.random(log_odds.shape)) >= log_odds",
            "stays = np.zeros(log_odds.shape, dtype=bool)",
        ),
        ("_DEGREES, _WIDER = 8.0, 1.15", "_DEGREES, _WIDER = 8.0, 2.0"),
    ],
    "paths forget the density that coefficients begin at": [
        (
            "slope = slope - of.log_start(start, log_point[of.cells]).sum(axis=0)",
            "slope = slope + 0.0",
        )
    ],
    "coefficients are drawn with lighter tails than their density has": [
        (
            "return self.mean + (self.root @ noise[:, :, None])[:, :, 0] * factor[:, None]",
            "return self.mean + (self.root @ noise[:, :, None])[:, :, 0]",
        )
    ],
    "labels are summed over without the densities of coefficients": [
        (
            "yield statistics @ log_points[cells] + correction(log_points[cells])",
            "yield statistics @ log_points[cells]",
        )
    ],
    "rows after the last block count as the first of it": [
        ("weight[r] = r < n ? design->weight[first + r] : 0.0;", "weight[r] = design->weight[first + (r < n ? r : 0)];")
    ],
    "contrasts of categories are standardized one by one": [
        (
            "unit = np.where((deviation > 0) & ~_are_contrasts(sizes), deviation, 1.0)",
            "unit = np.where(deviation > 0, deviation, 1.0)",
        )
    ],
    "contrasts of a category have hidden precisions of less weight": [
        ("0.5 * c * sizes, loadings", "0.5 * c * sizes**0, loadings")
    ],
    "rows of earlier batches weigh as one": [
        ("np.concatenate([n_rows * design.weight, weight])", "np.concatenate([design.weight, weight])")
    ],
    "bounds of batches leave out that designs grow": [("fit.objective + further", "fit.objective")],
    "drawn tables keep the design of the fit": [("model = fitted.model.with_design_of(data)", "model = fitted.model")],
}
