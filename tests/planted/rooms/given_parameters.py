"""Errors in parameters that are given, in rows drawn into frames, and in results as readers meet them."""

TESTS = (
    "estimators/**/test_given_parameters.py",
    "fitted/test_samples.py",
    "reports/test_shown_results.py",
    "fitted/test_forecast_intervals.py",
)

ERRORS = {
    "tables that are given go to the wrong components": [
        ("np.concatenate(tables, axis=1).ravel()", 'np.concatenate(tables, axis=1).ravel(order="F")')
    ],
    "covariances that are given are taken for precisions": [
        ("return NormalPoint(means, root.swapaxes(-1, -2) @ root)", "return NormalPoint(means, in_frame)")
    ],
    "rows of probabilities that are given need not sum to one": [
        ("(table >= 0).all() and (abs(total - 1) <= SLACK).all()", "(table >= 0).all() and (total > 0).all()")
    ],
    "a constant that is given is taken for the value at the means": [
        (
            "constants = at_zero + slopes @ (self.given_origin / self.given_unit)",
            "constants = at_zero + 0.0 * slopes @ self.given_origin",
        )
    ],
    "parameters that were given have intervals": [
        ("self.fitted.check_was_found(caller, self.owner)", "pass")
    ],
    "rows are drawn without the names that fit saw": [
        ('library = getattr(estimator, "_frames_of_", None)', "library = None")
    ],
    "names of variables are markup of a page": [("{escape(cell)}</{kind}>", "{cell}</{kind}>")],
    "steps of a forecast are counted from the last observed one": [
        ("place = at[0], at[1] + 1", "place = at[0], at[1]")
    ],
    "a forecast has the probabilities of the states of the step before": [
        ("now = now @ transmat\n            steps.append(now)", "steps.append(now)\n            now = now @ transmat")
    ],
}  # fmt: skip
