"""Errors in the estimators."""

TESTS = (
    "test_testing.py",
    "estimators/**/test_robustness.py",
    "reading/test_encoding.py",
    "estimators/labels/test_emission_objects.py",
    "estimators/hmm/test_vb_hmm.py",
    "models/**/test_hmm*.py",
    "kernels/test_hmm.py",
    "evidence/**/test_hmm*.py",
    "vbem",
    "models",
    "laws",
)

ERRORS = {
    "predictions of a mixture pass the reading of its kind by": [
        (
            "        return fitted.responsibilities(reading.values)\n",
            "        reading = VBMixture._kind.read(self, X, None, fitted.columns, {})\n"
            "        return fitted.responsibilities(reading.values)\n",
        )
    ],
    "an unseen category is the first one": [("codes_of.get(value, -1)", "codes_of.get(value, 0)")],
    "learned strengths are those of half the transitions": [
        (
            "_strengthened(model.transitions, of_pairs, base.transitions)",
            "_strengthened(model.transitions, 0.5 * of_pairs, base.transitions)",
        )
    ],
    "forecasts go back in time": [("now = now @ transmat", "now = now @ transmat.T")],
    "forecasts start from the first step": [
        ("last = np.cumsum(reading.lengths) - 1\n", "last = np.cumsum(reading.lengths) - reading.lengths\n")
    ],
    "intervals of forecasts take parameters for known": [
        ("return fitted.draws(self.n_draws, fitted.rng_of_draws)", 'return fitted.natural("mean")[:, None]')
    ],
    "variances of forecasts leave out that states differ": [
        ("deviation**2 + (mean - center[:, :, None]) ** 2", "deviation**2 + 0 * mean")
    ],
    "quantiles of mixtures weigh all states alike": [
        (
            """np.einsum("ik,kij->ij", of_states, specification.cumulative_of_values(cells, of_draw))""",
            "specification.cumulative_of_values(cells, of_draw).mean(axis=0)",
        )
    ],
    "the score is the mean over sequences, not over steps": [("/ (weights @ sequences.lengths))", "/ weights.sum())")],
    "the average over q is one of logarithms": [
        ("log_probabilities = logsumexp(logs, axis=0) - np.log(n_draws)", "log_probabilities = logs.mean(axis=0)")
    ],
    "a slice of names leaves out its last column": [
        ("stop = self._position(stop) + 1", "stop = self._position(stop)"),
    ],
    "fits share an emission with each other and with the user": [
        ("specification: Any = self._copied(emission)", "specification: Any = emission")
    ],
    "an emission that says another covariance type is believed": [
        ("self.covariance_type not in (DEFAULT_COVARIANCE_TYPE, of_emission)", "self.covariance_type is None"),
    ],
    "a group is asked for the values of its columns in the order of the table": [
        (
            "positions = self._positions(list(columns))",
            "positions = sorted(self._positions(list(columns)))",
        ),
    ],
    "columns in another order are taken for those of the fit": [
        ("list(of_fit) != given:", "set(of_fit) != set(given):")
    ],
    "lengths whose sum wraps are believed": [("total = sum(checked.tolist())", "total = checked.sum()")],
    "rounding forgives every fall of the bound": [
        ("broken &= ~(fell <= ascent.rounding(statistics))", "broken &= ~(fell <= np.inf)")
    ],
    "rounding is said to be none": [
        ("_ROUNDING * np.abs(statistics * natural).sum(axis=0)", "0.0 * natural.sum(axis=0)")
    ],
    "a trace goes on from a run that ended higher": [
        ("further.trace[0] >= fit.objective - RELATIVE_SLACK * abs(fit.objective)", "len(further.trace) > 0")
    ],
    "a fit that was loaded may index beyond its tables": [
        ("list(map(len, self.encoder.categories_)) != list(sizes)", "len(self.encoder.categories_) != len(sizes)")
    ],
}
