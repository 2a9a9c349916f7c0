"""Errors in ordered answers: their edges, the price of these, and answers as nodes of networks."""

TESTS = (
    "emissions/test_ordinal.py",
    "estimators/mixed_network/test_vb_network.py",
    "estimators/test_given_parameters.py",
)

ERRORS = {
    "edges stand at the ends of their parts, not at the middles": [
        (
            "edges = ndtri(np.sin(np.pi / 2 * (number - 0.5) / n_points) ** 2)",
            "edges = ndtri(np.sin(np.pi / 2 * number / (n_points + 1)) ** 2)",
        ),
    ],
    "edges in another order are another choice": [
        (
            "of_all, *of_parts = log_gamma(np.array([n_points, n, n_points - n]) + 1.0)",
            "of_all, *of_parts = log_gamma(np.array([n_points, 0, n_points - n]) + 1.0)",
        ),
    ],
    "missing answers pay for edges": [
        (
            "base = table.points.base - (np.asarray(values) >= 0) @ self.price",
            "base = table.points.base - np.ones(np.shape(values)) @ self.price",
        ),
    ],
    "rows that are scored pay for edges": [
        ("return self if of_fit == self.has_price else replace(self, has_price=of_fit)", "return self"),
    ],
    "rows that networks score pay for edges": [
        ("emissions = tuple(emission.priced(of_fit) for emission in self.emissions)", "emissions = self.emissions"),
    ],
    "criteria of rows that chose no edges have their price": [
        (
            "return under._replace(price=price) if run and price and run.fingerprint == reading.fingerprint else under",
            "return under._replace(price=price)",
        ),
    ],
    "criteria have the price of missing answers": [
        ("        counts = np.asarray(values) >= 0\n", "        counts = np.asarray(values) >= -1\n"),
    ],
    "two answers tell two numbers of a component": [
        ("sum(max(3 - size, 0) for size in self.n_categories)", "sum(max(2 - size, 0) for size in self.n_categories)"),
    ],
    "starts are at squares of numbers between edges": [
        ("return block.cells.of_cells(moments)[0, 1].T", "return block.cells.of_cells(moments)[0, 2].T"),
    ],
    "answers above the mean have all that is above their lower edge": [
        (
            "inside = np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))",
            "inside = np.where(low > 0, ndtr(-low), ndtr(high) - ndtr(low))",
        ),
    ],
    "columns of parameters that are given have as many answers as the longest": [
        ("range(np.count_nonzero(of_group[:, k] >= 0))", "range(len(of_group))"),
    ],
    "words of a type without an order have one": [
        ("(seen.levels is not None and seen.are_ordered)", "seen.levels is not None"),
    ],
}
