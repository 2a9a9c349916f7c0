"""Errors in pseudo-residuals, and in the cumulative probabilities that they are from."""

TESTS = ("reports/test_pseudo_residuals.py",)

ERRORS = {
    "a step given others leaves later ones out": [
        (
            "return _normalized(states_given_earlier(model, natural, data) * later)",
            "return states_given_earlier(model, natural, data)",
        )
    ],
    "later steps are told from along transitions the wrong way": [
        ("seen[::-1][rows + 1] @ np.exp(log_transition[0]).T", "seen[::-1][rows + 1] @ np.exp(log_transition[0])")
    ],
    "later steps of driven chains are left out": [
        ("log_matrices + (logs + log_later)[rows + 1, None]", "log_matrices + logs[rows + 1, None]")
    ],
    "a step is forecast from its own state": [
        ("states[rows] = into(filtered[rows - 1], rows)", "states[rows] = filtered[rows]")
    ],
    "a count has no step": [
        ("below = self.cumulative(values - 1, means, deviations) if self.holds_counts else up_to", "below = up_to")
    ],
    "inflated zeros are below zero": [
        ("return below + inflation * (values > 0), up_to", "return below + inflation * (values >= 0), up_to")
    ],
    "a base has the means of all cells": [
        ('named["means"] = named["means"] / np.maximum(1 - named["inflation"], np.finfo(float).tiny)', "pass")
    ],
    "angles are counted from their direction": [(" - vonmises.cdf(-np.pi - directions, concentrations)", "")],
    "regressors count for nothing in residuals": [
        (
            'means = values[:, d:] @ parameters["coefficients"]',
            'means = 0.0 * values[:, d:] @ parameters["coefficients"]',
        )
    ],
    "autocorrelations go on from one sequence to the next": [
        ("at = np.flatnonzero(step >= lag)", "at = np.arange(lag, len(in_time))")
    ],
    "pairs at gaps count in the squares": [
        (
            "yield np.where(lacking, 0.0, later), np.where(lacking, 0.0, earlier)",
            "yield np.nan_to_num(later), np.nan_to_num(earlier)",
        )
    ],
    "residuals stand in the order of time": [("place = np.argsort(order)", "place = np.arange(len(order))")],
}
