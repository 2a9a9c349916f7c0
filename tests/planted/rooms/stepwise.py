"""Errors in covariates and outcomes of classes, in steps."""

TESTS = ("reports/stepwise",)

ERRORS = {
    "the table of assignments has classes in its columns": [
        (
            "return self.assigned(assignment) @ np.linalg.inv(table)",
            "return self.assigned(assignment) @ np.linalg.inv(table.T)",
        )
    ],
    "assignments are taken for classes": [("table.T[to]", "np.eye(len(table))[to]")],
    "the likelihood of a row in two steps is its posterior": [
        ("evidence = at_hand.posterior / at_hand.proportions", "evidence = at_hand.posterior")
    ],
    "the sandwich counts weights twice": [
        (
            "covariance = bread @ ((by_row.T * self.row_weight) @ by_row) @ bread",
            "covariance = bread @ ((by_row.T * self.row_weight**2) @ by_row) @ bread",
        )
    ],
    "the information leaves out that classes are uncertain": [
        ("np.subtract.at(curvature, self.row, of_entries)", "np.subtract.at(curvature, self.row, 0 * of_entries)")
    ],
    "a bootstrap keeps the classes of the fit": [
        (
            "return self.estimate(self.classified.refitted(weight))",
            "return self.estimate(Classified(self.classified.fit, None, 0, self.classified.posterior, weight))",
        )
    ],
    "rows are drawn again in the order in which they stand": [
        (
            "order = np.lexsort(np.hstack([beside, np.round(self.posterior, _DIGITS)]).T)",
            "order = np.arange(len(self.posterior))",
        )
    ],
    "the intercept is that of centred covariates": [("one[0] -= mean / deviation", "one[0] -= 0 * mean / deviation")],
}
