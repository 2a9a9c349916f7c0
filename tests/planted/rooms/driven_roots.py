"""Errors in covariates of roots of networks."""

TESTS = ("estimators/network/test_driven_roots.py",)

ERRORS = {
    "driven roots keep a table of their own": [
        ("steps = [1 if j in self.driven else size for", "steps = [size for"),
    ],
    "rows in which a column was set count in its regression": [
        (
            "return of_group[:, at] < group.encoder.n_categories_[at]",
            "return of_group[:, at] < 2 * group.encoder.n_categories_[at]",
        )
    ],
    "roots that are driven alike are taken for unlike": [
        ("ways += [] if way in ways else [way]", "ways += [way]"),
        ("parents[node] = (ways.index(way),)", "parents[node] = (len(ways) - 1,)"),
    ],
    "probabilities of new rows sum to one on average": [
        ("            emission = emission.for_new_rows()\n", "            pass\n"),
    ],
}
