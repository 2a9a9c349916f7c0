"""Errors in E steps whose q(x) is a product over clusters of hidden nodes."""

TESTS = (
    "models/network/test_merge_gains.py",
    "models/network/test_structured.py",
    "estimators/network/test_inference.py",
    "laws/test_inference.py",
)

ERRORS = {
    "the bound counts messages between clusters twice": [
        ("return counts + by_member, log_z - twice, after", "return counts + by_member, log_z, after")
    ],
    "the message to the last cluster of a family is taken off the bound": [
        ("senders[part][place == len(member.places) - 1].append", "senders[part][False].append"),
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
        (
            "add_counts(member.code[rows], group.weight[rows], by_place, by_code)",
            "add_counts(member.code[rows], np.ones(rows.stop - rows.start), by_place, by_code)",
        )
    ],
    "clusters are joined though they do not fit": [
        ("if largest_clique(sizes, scopes, both) <= max_table_cells:", "if len(both) > 0:")
    ],
    "edges between hidden nodes are joined last": [("return not has_edge, -gains", "return has_edge, -gains")],
    "what joining two nodes gains is not asked": [
        ("return not has_edge, -gains.get(pair, 0.0),", "return not has_edge,")
    ],
    "joining two nodes seems to gain what each hears of the other already": [
        ("return joint - to_one[:, None] - to_other", "return joint")
    ],
    "chains by clusters forget the density that their hidden states are drawn from": [
        ("* log_point).sum(axis=0) - states.log_q", "* log_point).sum(axis=0)")
    ],
    "clusters hear as much of q(x) at every inverse temperature": [("each += (1.0 - t) * fixed", "each += fixed")],
    "rows that count several times share their hidden states in chains": [
        ("rows if weight is None else np.repeat(rows, np.round(weight[rows]).astype(int))", "rows")
    ],
    "points are scored by a bound of their likelihood": [
        ('if not (self.bounds_by_any_q or getattr(evaluation, "is_exact", True)):', "if False:")
    ],
}
