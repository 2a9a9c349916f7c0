"""Errors in linear dynamical systems: their E step, their bound, the basis of states, what is asked after a fit."""

TESTS = (
    "models/linear_dynamical_system/test_linear_dynamical_system.py",
    "models/linear_dynamical_system/test_learned_first_states.py",
    "estimators/linear_dynamical_system/test_vb_linear_dynamical_system.py",
    "estimators/linear_dynamical_system/test_identified_states.py",
)

ERRORS = {
    "states turn the wrong way to where they are uncorrelated": [
        ("turned = self._turned(axes.T)", "turned = self._turned(axes)")
    ],
    "the order of states leaves their signs where they were": [("signs = signs[order]", "pass")],
    "states that turn leave the rows of the dynamics where they are": [
        ("rows @ total @ map.T, counts, squares", "total @ map.T, counts, squares")
    ],
    "learned precisions count among the squares of states": [
        ("of_data = self.statistics - self.model.prior.hyperparameters(self.natural_of_q)", "of_data = self.statistics")
    ],
    "scores of complete data are certain": [("return complete + (slope + slope.T) / 2", "return 0.0 * complete")],
    "the dynamics are taken at their means: the covariance of A is left out": [
        (
            "return self.transition.swapaxes(-1, -2) @ self.transition + self.transition_spread",
            "return self.transition.swapaxes(-1, -2) @ self.transition",
        )
    ],
    "loadings are taken at their means: their covariance is left out": [
        (
            "return weighted[..., :, None] * self.output[..., None, :] + self.output_spread",
            "return weighted[..., :, None] * self.output[..., None, :]",
        )
    ],
    "what the next input says of a state is left out": [
        ("linear[:-1] -= of_next @ potentials.squares[:k, k:].T", "linear[:-1] -= 0.0 * of_next[:, :1]")
    ],
    "an input moves the state of its own step, one step too early": [
        (
            "of_next = data.inputs[1:] if data.follows is None else data.inputs[1:] * data.follows[1:, None]",
            "of_next = data.inputs[:-1] if data.follows is None else data.inputs[:-1] * data.follows[1:, None]",
        )
    ],
    "steps after the last observed one are kept": [
        (
            "rows = np.flatnonzero(np.arange(len(measured)) < ends[sequence])",
            "ends = given[1:]\n        rows = np.arange(len(measured))",
        )
    ],
    "turns of states leave the rows of the dynamics where they are": [
        ("by_block[0][rows[i]] += dynamics_cells[rows[j]]", "by_block[0][rows[i]] += 0.0 * dynamics_cells[rows[j]]"),
        ("by_block[0][rows[j]] -= dynamics_cells[rows[i]]", "by_block[0][rows[j]] -= 0.0 * dynamics_cells[rows[i]]"),
    ],
    "the recursion is taken for settled too early": [("REPEATS = 1e-15", "REPEATS = 1e-3")],
    "the covariance of two successive states is turned around": [
        ("crossed[:k, :k] += covariances.crossed.T", "crossed[:k, :k] += covariances.crossed")
    ],
    "the basis of states gains nothing in entropy": [("double value = of->n * log_det;", "double value = 0.0;")],
    "states are put into a basis under which the bound falls": [
        ("return map if value > here + _NEGLIGIBLE * n else None", "return 2.0 * map if value > here else None")
    ],
    "states are shifted, and columns do not undo it": [
        (
            "memcpy(whole, map, (size_t) (of->k * d) * sizeof(double));",
            "for (intptr_t i = 0; i < of->k; i++) memcpy(whole + i * d, map + i * d, (size_t) of->k * sizeof(double));",
        )
    ],
    "a hidden rate of noise has half of its statistics": [
        ("_loadings(rate_of, cells, np.full(len(cells), 2.0)", "_loadings(rate_of, cells, np.full(len(cells), 1.0)")
    ],
    "states that grow unseen are smoothed by differences of nearly equal numbers": [
        ("if np.isnan(log_det):  # nearly singular", "if log_det > np.inf:  # nearly singular")
    ],
    "draws of states go without the noise of their last step": [
        (
            "if (noise != NULL)\n            for (intptr_t i = 0;",
            "if (noise != NULL && t < b - 1)\n            for (intptr_t i = 0;",
        )
    ],
    "precisions that are learned count rows instead of coefficients": [
        ("minlength=len(learned))[block] / 2", "minlength=len(learned))[block] * 1.0")
    ],
    "forecasts leave out that parameters differ from draw to draw": [
        ("variance.mean(axis=0) + mean.var(axis=0)", "variance.mean(axis=0)")
    ],
    "filtered states know of the step after them": [
        ("np.linalg.inv(inverse) - later[:, None, None] * squares[:k, :k]", "np.linalg.inv(inverse)")
    ],
    "a piece of a long sequence begins as the first one does": [
        ("&gain[0, 0, 0], &cuts[piece, 1, 0, 0], &x[0, 0], stride)", "&gain[0, 0, 0], front.gain, &x[0, 0], stride)")
    ],
    "steps from one sequence into the next one count": [
        ("crossed -= (r[follows] * weight).T @ z", "crossed -= 0.0 * (r[follows] * weight).T @ z")
    ],
    "the covariance of first states is left out of the basis that is most likely": [
        ("left = left + self.first.precision[0, 0] * self.moments.first[:k, :k]", "left = left + 0.0")
    ],
    "what regressions explain is noise": [
        ("rate[of->noise_of[s]] -= squares[s];", "rate[of->noise_of[s]] -= 0.0 * squares[s];")
    ],
    "the basis of states goes by half of what first states are asked for": [
        ("slope[i * d + j] += pull - rest[i * d + j];", "slope[i * d + j] += 0.5 * (pull - rest[i * d + j]);")
    ],
    "a new basis of states of chains gains no volume": [
        (
            "volume = (self.model.n_inputs - self.model.n_columns) * np.trace(away, axis1=1, axis2=2)",
            "volume = 0.0 * np.trace(away, axis1=1, axis2=2)",
        )
    ],
    "chains change the basis of states, not what is read of them": [
        (
            "c = np.concatenate([c[..., :k] @ back, c[..., k:]], axis=-1)\n    return",
            "c = np.concatenate([c[..., :k] @ map, c[..., k:]], axis=-1)\n    return",
        )
    ],
    "chains leave states in the basis of the fit": [("((self._turned,) if t < 1.0 else ())", "()")],
    "hidden precisions of states are taken for alike": [
        (
            "prior.coordinates @ natural + prior.log_normalizer_of_hyperparameters(natural)\n    return",
            "prior.coordinates @ natural\n    return",
        )
    ],
    "each start of chains that turn stands for all of the evidence": [
        ("log_fractions = np.log(np.bincount(which)[which] / len(which))", "log_fractions = np.zeros(len(which))")
    ],
    "signs that hold chains to the end are not put right": [
        ("(1.0 - schedule[-2]) * self.statistics if", "0.0 * self.statistics if")
    ],
    "spare states beyond columns count in the dimension": [("p - m * (m + 1) // 2 + k * n_inputs", "p + k * n_inputs")],
    "likelihoods of many parameters leave the spread of loadings out": [
        ("total -= 0.5 * skvbem_quadratic(nr, lane->spreads + of->pattern[t] * nr * nr, r);", "")
    ],
    "drawn states of many parameters see an input one step early": [
        (
            "double));\n            for (intptr_t j = 0; j < n_u; j++) z[k + j] = of->inputs[t * n_u + j];",
            "double));\n            for (intptr_t j = 0; j < n_u; j++) z[k + j] = of->inputs[(t - 1) * n_u + j];",
        )
    ],
    "draws turn away from the fit": [("rises = there[0] > risen[0]", "rises = there[0] < risen[0]")],
    "the basis that is most likely gains half of what it does": [
        ("rise = 0.5 * float((n * np.log(n / variances)", "rise = 0.25 * float((n * np.log(n / variances)")
    ],
    "scores without a meaning say no more than that something lacks": [
        ('reason = getattr(self.model, "reasons", {}).get(name)', "reason = None")
    ],
    "first states are taken at their learned mean, whatever is known of it": [
        ("constant = of_log + 0.5 * k * LOG_2PI + of_mean + 0.5 *", "constant = of_log + 0.5 * k * LOG_2PI + 0.0 *")
    ],
    "the mean of first states stays behind where states turn": [
        ("return np.concatenate([[0.0, 0.0], turn @ total,", "return np.concatenate([[0.0, 0.0], 0.0 * total,")
    ],
    "a new basis of states leaves the offset out of what first states become": [
        (
            "statistics(first[-1, -1], of_states[:, -1], of",
            "statistics(first[-1, -1], map[:, : self.k] @ first[: self.k, -1], of",
        )
    ],
    "chains that shift states move the mean of first states the wrong way": [
        ("first_states.shifted(part, -np.einsum", "first_states.shifted(part, np.einsum")
    ],
    "states of a subspace see noise: lagged covariances begin at no lag": [("lagged[i + j + 1]", "lagged[i + j]")],
    "a missing cell counts as a mean in lagged covariances": [
        ("pairs = (observed * weight).T @ delayed(data, observed, lag)", "pairs = weight.sum() * np.ones((p, p))")
    ],
    "states of a subspace keep the unit of the decomposition": [("c = c * np.sqrt(scale)", "c = c * 1.0")],
    "columns have the unit of their levels in the start that is of their changes": [
        (
            "_principal(model, data, centered_cells(data)[0] / changes_of_columns(data), noise)",
            "_principal(model, data, centered_cells(data)[0], noise)",
        )
    ],
    "what follows a gap counts as a change": [
        (
            "return changes(np.where(observed > 0, centered, np.nan), data.starts, data.row_weight)",
            "return changes(centered, data.starts, data.row_weight)",
        )
    ],
}
