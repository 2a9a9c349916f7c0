"""Errors in bridges, in what optima and rotations count for, and in draws taken all at once."""

TESTS = (
    "evidence/test_bridge.py",
    "evidence/test_stratified.py",
    "evidence/test_quotient.py",
    "evidence/test_linear_response.py",
    "evidence/test_bridge_sampling.py",
    "fitted/test_parameters_of_draws.py",
    "laws/test_scores.py",
)

ERRORS = {
    "the determinant of linear response has the wrong sign": [
        (
            "return 0.5 * float(np.linalg.slogdet(self.inflation)[1])",
            "return -0.5 * float(np.linalg.slogdet(self.inflation)[1])",
        )
    ],
    "an optimum is counted twice": [
        (
            "optima = evaluation.ended_optima()[:, :n_fits]",
            "optima = np.repeat(evaluation.ended_optima()[:, :n_fits], 2, axis=1)",
        )
    ],
    "the volume of rotations is left out of the score that ranks": [
        ("return float(np.sum(means)) + sum(map(log_volume, self.numbers))", "return float(np.sum(means))")
    ],
    "a proposal of many rows has one order of labels": [
        (
            "relabelings.listed_relabelings(self.evaluation.hidden, TUNING.orders_up_to_turns)",
            "relabelings.listed_relabelings(self.evaluation.hidden, TUNING.orders_up_to_turns)[:1]",
        )
    ],
    "chains of many rows begin at draws whatever their weights": [
        ("drawn[:, again])", "drawn[:, :n_chains])"),
    ],
    "a component without rows is taken for normal": [("max() < TUNING.skewness", "max() < np.inf")],
    "the volume of the quotient is left out": [
        (
            "return log_volume(self.q, self.rank) + (self.q - np.arange(self.rank)) @ logs",
            "return log_volume(self.q, self.rank) + 0.0 * logs.sum(axis=0)",
        )
    ],
    "an orbit is counted twice": [
        (
            "return log_volume(self.q, self.rank) + (self.q - np.arange(self.rank)) @ logs",
            "return np.log(2.0) + log_volume(self.q, self.rank) + (self.q - np.arange(self.rank)) @ logs",
        )
    ],
    "components are proposed in one order": [("for order in self.orders\n", "for order in self.orders[:1]\n")],
    "orders of components are summed, not averaged": [
        (
            "log_proposal = logsumexp(log_terms, axis=0) - np.log(len(self.orders))",
            "log_proposal = logsumexp(log_terms, axis=0)",
        )
    ],
    "the mean of precisions over rotations is left out": [
        (
            "return log_mean_over_turns(grams, power, self._rates[k], rng, n_turns, posterior=posterior) - log_value",
            "return 0.0 * log_value",
        )
    ],
    "directions of rotations are taken for units": [
        ("return axes, np.abs(np.diagonal(lengths))", "return axes, np.ones(len(lengths))")
    ],
    "draws of one chain are taken for independent ones": [
        ("means = posterior.mean(axis=1)", "means = posterior.ravel()")
    ],
    "a bridge forgets how many draws stand on either side": [
        ("log_odds = np.log(n_kept / n_draws)", "log_odds = 0.0 * np.log(n_kept / n_draws)")
    ],
    "the spread of few chains is taken for known": [("* stdtrit(n - 1, ndtr(2.0)) / 2.0)", ")")],
    "how components of a bridge differ is part of its error": [
        ("variance_of_mean(proposed, component)", "variance_of_mean(proposed)")
    ],
    "a component of one draw shows that nothing varies": [("if so_far > 1:", "if so_far > 0:")],
    "components have the weights that they should have, and others the draws": [
        ("log_parts=np.log(number / n_draws)", "log_parts=self.log_parts[drawn]")
    ],
    "fractional weights are rounded down for chains": [
        (
            "return data.for_draws(self._emission) if data.has_whole_weights else data",
            "return data.for_draws(self._emission)",
        )
    ],
    "draws of a shared covariance are those of the first": [
        (
            "precision, covariance = precision[..., 0, :, :], covariance[..., 0, :, :]",
            "precision, covariance = precision[0], covariance[0]",
        )
    ],
    "statistics of a proposal are no wider than linear response says": [
        (
            "drawn = np.maximum(centre + TUNING.response_factor * steps, least)",
            "drawn = np.maximum(centre + 0.2 * steps, least)",
        )
    ],
}
