"""Errors in reports, standard errors, bootstraps, and the intervals of displays."""

TESTS = (
    "uncertainty/test_standard_errors.py",
    "uncertainty/test_bootstrap.py",
    "reports/test_summary.py",
    "plotting/**/test_mixture_displays.py",
)

ERRORS = {
    "standard errors take hidden states for known": [
        (
            "observed[np.ix_(block.free, block.free)] -= block.covariance",
            "observed[np.ix_(block.free, block.free)] -= 0.0 * block.covariance",
        )
    ],
    "a probability of 0 has a standard error": [("inside = coordinates >= EDGE\n", "inside = coordinates >= 0\n")],
    "standard errors of what the data do not identify": [
        ("errors[at_edge | unknown] = np.nan", "errors[at_edge] = np.nan")
    ],
    "a mode in probabilities has the information of one in natural coordinates": [
        ("coordinates + prior.probability_shift if in_probabilities else coordinates", "coordinates")
    ],
    "bootstrap fits keep the labels they happen to have": [
        (
            "natural = aligned(relabelings, fitted.statistics, np.stack([each for each, *_ in estimates], axis=1))",
            "natural = np.stack([each for each, *_ in estimates], axis=1)",
        )
    ],
    "bootstrap fits begin at probabilities of 0": [
        ("TUNING.lift * ~fitted.model.prior.signed", "0.0 * ~fitted.model.prior.signed")
    ],
    "weights of fractions are resampled in the order of rows": [
        ("order = np.lexsort((weight, hashes))", "order = np.arange(len(hashes))")
    ],
    "a bootstrap draws every distinct row as often as any other": [
        ("times = rng.multinomial(round(count.sum()), count / count.sum())",
         "times = rng.multinomial(round(count.sum()), np.full(len(count), 1 / len(count)))")
    ],
    "reports give the ends of intervals to the wrong columns": [
        ("pair = None if self.intervals is None else tuple(end[:, k] for end in self.intervals)",
         "pair = None if self.intervals is None else tuple(end[:, 0] for end in self.intervals)")
    ],
    "facts of a report are those of the next fit": [
        ('facts["prior"] = run.prior', 'facts["prior"] = self._prior_in_words(self._fitted_.columns)')
    ],
    "zero has a sign in reports": [("value = 0.0  # and not -0.0", "value = -0.0  #")],
    "reports and displays draw no rows": [
        ("if n_sweeps >= 2 * TUNING.draws_of_chain:", "if n_sweeps < 0:")
    ],
    "a display says linear response whatever it draws": [
        ("return DrawnIntervals(draws.intervals(level), level, draws.method)",
         'return DrawnIntervals(draws.intervals(level), level, "linear_response")')
    ],
}  # fmt: skip
