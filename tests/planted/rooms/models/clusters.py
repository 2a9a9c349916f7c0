"""Errors in E steps whose q(x) is a product over clusters of hidden nodes."""

TESTS = ("models/test_structured.py", "estimators/test_inference.py")

ERRORS = {
    "the bound counts messages between clusters twice": [
        ("return counts + of_members, log_z - twice, after", "return counts + of_members, log_z, after")
    ],
    "the message to the last cluster of a family is taken off the bound": [
        ("if to < len(member.places) - 1:", "if True:"),
    ],
    "a family says something of contexts that lack it": [
        (
            "table = np.zeros((len(self.cells) + 1, natural.shape[1], *self.shape))",
            "table = np.ones((len(self.cells) + 1, natural.shape[1], *self.shape))",
        )
    ],
    "every E step begins anew from uniform clusters": [
        (
            "self._swept(natural, statistics[n_cells:])",
            "self._swept(natural, self.data.uniform(statistics.shape[1]))",
        )
    ],
    "what is impossible silences a whole cluster": [
        ("return np.maximum(table, _LOG_SMALLEST) if len(self.shape) > 1 else table", "return table")
    ],
    "families that cross clusters forget the weights of rows": [
        ("[first * group.weight[rows], *others]", "[first, *others]")
    ],
    "clusters are joined though they do not fit": [
        ("if largest_clique(sizes, scopes, both) <= max_table_cells:", "if len(both) > 0:")
    ],
    "edges between hidden nodes are joined last": [
        ("return not has_edge, -shared[pair]", "return has_edge, -shared[pair]")
    ],
    "points are scored by a bound of their likelihood": [
        ('if not (self.bounds_by_any_q or getattr(evaluation, "is_exact", True)):', "if False:")
    ],
}
