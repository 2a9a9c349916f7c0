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
        (
            "            factors[(codes < 0) | (codes >= layout.cardinalities[family]), :, k] = layout.n_table_cells\n",
            "            factors[codes < 0, :, k] = by_cell\n",
        )
    ],
    "values that no table of a row needs tell contexts apart": [
        (
            "            if (len(users) > (node in users) or have_set(codes[node], sizes[node])) and gappy",
            "            if False and gappy",
        )
    ],
    "of families that a context does not have the cells are summed over as well": [
        ("at[at < n_cells] + offsets[:, at < n_cells] for", "np.minimum(at, n_cells - 1) + 0 * offsets for")
    ],
    "the most probable state of a row counts families that it does not have": [
        ("has = ((codes >= 0) & (codes < layout.cardinalities[family])).reshape(", "has = (codes >= -1).reshape(")
    ],
    "missing cells of complete families are counted as the last category": [
        (
            "kept = [columns[m] >= 0 for m in layout.strides[node]",
            "kept = [columns[m] > -2 for m in layout.strides[node]",
        ),
        ("categories_of(columns[member][rows], sizes[member]) for", "columns[member][rows] % sizes[member] for"),
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
