"""Errors in the estimators."""

TESTS = (
    "estimators/**/test_encoding.py",
    "estimators/**/test_vb_hmm.py",
    "models/**/test_hmm*.py",
    "kernels/test_hmm.py",
    "evidence/**/test_hmm*.py",
    "vbem",
    "models",
    "laws",
)

ERRORS = {
    "an unseen category is the first one": [("codes_of.get(value, -1)", "codes_of.get(value, 0)")],
    "learned strengths are those of half the transitions": [
        (
            "_strengthened(model.transitions, of_pairs, base.transitions)",
            "_strengthened(model.transitions, 0.5 * of_pairs, base.transitions)",
        )
    ],
    "forecasts go back in time": [("filtered = filtered @ self.transmat", "filtered = filtered @ self.transmat.T")],
    "forecasts start from the first step": [
        ("last = np.cumsum(reading.lengths) - 1\n", "last = np.cumsum(reading.lengths) - reading.lengths\n")
    ],
    "the score is the mean over sequences, not over steps": [("/ (weights @ sequences.lengths))", "/ weights.sum())")],
    "the average over q is one of logarithms": [
        ("found = logsumexp(logs, axis=0) - np.log(n_draws)", "found = logs.mean(axis=0)")
    ],
}
