"""Errors in mixtures."""

TESTS = (
    "models/**/test_mixture*.py",
    "laws/test_models.py",
    "laws/test_scores.py",
    "evidence/**/test_mixture*.py",
    "estimators/mixture/test_vb_mixture.py",
    "estimators/mixture/test_vb_mixture_blocks.py",
    "emissions",
    "families",
)

ERRORS = {
    "a larger sample of rows has not those of a smaller one": [
        (
            "sample = (sampled if are_here else sampled_elsewhere)(data.parts, len(data), 0, most)",
            "sample = (sampled if are_here else sampled_elsewhere)(data.parts, len(data), most, most)",
        )
    ],
    "a component counts once for each row, whatever the row's weight": [
        (
            "self.log_weights, part.weight[rows], log_z)\n",
            "self.log_weights, 0.0 * part.weight[rows] + 1.0, log_z)\n",
        )
    ],
    "rows without an observed cell count for the weights": [
        ("effective = given if observed is None else np.where(observed, given, 0.0)", "effective = given")
    ],
    "log weights of the components are left out": [
        (
            "self.log_weights = np.ascontiguousarray(self",
            "self.log_weights = 0.0 * np.ascontiguousarray(self",
        )
    ],
    "what is left of a stick is forgotten": [
        ("np.concatenate([none, np.cumsum(left, axis=0)])", "np.concatenate([none, 0.0 * np.cumsum(left, axis=0)])")
    ],
    "hidden cells have no part in the information": [
        ("+= derivative.T @ hidden[k] @ derivative", "+= 0.0 * derivative.T @ hidden[k] @ derivative")
    ],
    "weights and parameters of a component are taken to be independent": [
        ("second[np.ix_(weights, of)] += crossed\n", "second[np.ix_(weights, of)] += 0.0 * crossed\n")
    ],
    "equal rows are allocated in one way": [
        ("logsumexp(mine + others[::-1] + _log_ways(weight, strides))", "logsumexp(mine + others[::-1])")
    ],
    "the exact sum forgets how the weights share the rows": [
        ("rest = _convolved(mine, others, weight, strides) - whole", "rest = _convolved(mine, others, weight, strides)")
    ],
    "the entropy of the components is that of rows counted once": [
        ("total -= float(part.weight[rows] @ xlogy(q, q).sum(axis=1))", "total -= float(xlogy(q, q).sum())")
    ],
}
