"""Errors in networks of discrete variables."""

TESTS = ("vbem", "models", "laws", "families", "kernels", "optima", "search/**/test_families.py")

ERRORS = {
    "a state that is joined to another takes its counts away": [
        (
            "statistics[cells[into]] += statistics[cells[gone]]",
            "statistics[cells[into]] += 0.0 * statistics[cells[gone]]",
        )
    ],
    "tables that share cells are shared out at once": [
        ("if self.layout.first_cell[node] in seen:", "if self.layout.first_cell[node] in ():")
    ],
    "counts shared out anew become more": [("share /= share[0] + share[1]", "share /= share.max(axis=0)")],
    "two parents' strides are swapped": [
        ("for member in (node, *reversed(parents)):", "for member in (node, *parents):")
    ],
    "weights of rows with hidden parts are forgotten": [
        ("self._weight = weight if weight is None or rows is None else weight[rows]", "self._weight = None")
    ],
    "weights of complete families are forgotten": [("w = None if weight is None else weight[rows]", "w = None")],
    "missing leaves are summed, not pruned": [
        (
            "kept[node] = node in observed or node in wanted or any(kept[child] for child in layout.children[node])",
            "kept[node] = True",
        )
    ],
    "a missing leaf that shares the plan of others counts as its first state": [
        ("factors[value(family) < 0, :, k] = layout.n_table_cells", "factors[value(family) < 0, :, k] = by_cell")
    ],
    "values that no table of a row needs tell contexts apart": [
        ("if len(users) > (node in users) and gappy.issuperset(users):", "if False:")
    ],
    "of families that a context does not have the cells are summed over as well": [
        ("at[at < n_cells] + offsets[:, at < n_cells] for", "np.minimum(at, n_cells - 1) + 0 * offsets for")
    ],
    "the most probable state of a row counts families that it does not have": [
        ("has = (values_at(family) >= 0).reshape(", "has = (values_at(family) >= -1).reshape(")
    ],
    "missing cells of complete families are counted as the last category": [
        (
            "        rows = np.flatnonzero(np.logical_and.reduce([columns[member] >= 0 for member in gappy]))\n",
            "        columns = {m: np.where(c < 0, layout.cardinalities[m] - 1, c) for m, c in columns.items()}\n",
        )
    ],
    "wholly missing rows are not counted": [
        ("total = float(n_rows if weight is None", "total = 0.0 * float(n_rows if weight is None"),
        ("return float(len(self) if", "return float((self.codes >= 0).any(axis=1).sum() if"),
    ],
    "n is the number of rows, not the sum of weights": [
        ("return float(len(self) if self.weight is None else self.weight.sum())", "return float(len(self))")
    ],
    "the joint mode forgets that separators are settled": [
        (
            "chosen = potential[(np.arange(n), *(states[v] for v in known))]",
            "chosen = potential[(np.arange(n), *(0 * states[v] for v in known))]",
        )
    ],
    "of many joint states of a row the improbable ones are kept": [
        ("order = np.lexsort((-values, row))", "order = np.lexsort((values, row))")
    ],
}
