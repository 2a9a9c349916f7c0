"""Errors in rows of experiments, whose nodes were set."""

TESTS = (
    "models/network/test_set_cells.py",
    "estimators/network/test_interventions.py",
    "search/test_interventions.py",
    "estimators/mixed_network/test_interventions_mixed.py",
    "estimators/mixed_network/test_do_of_numbers.py",
    "estimators/mixed_network/test_score_cells.py",
)

ERRORS = {
    "the table of a node counts rows in which it was set": [
        ("        kept.append(columns[node] < sizes[node])\n", "        pass\n"),
    ],
    "the factor of a node that was set is in sums over hidden nodes": [
        (
            "            factors[(codes < 0) | (codes >= layout.cardinalities[family]), :, k] =",
            "            factors[codes < 0, :, k] =",
        ),
    ],
    "hidden parents of nodes that were set are not pruned": [
        ("            if node not in are_set:\n", "            if True:\n"),
    ],
    "nodes that were set tell their children nothing": [
        (
            "return np.where(codes >= n_categories, codes - n_categories, codes) if",
            "return np.where(codes >= n_categories, 0, codes) if",
        ),
    ],
    "families of numbers that were set count where children are observed": [
        ("        alive[:, places] &= ~are_set[:, places]\n", "        pass\n"),
    ],
    "children of numbers that were set do not see them": [
        ("of if to is None else np.where(np.isnan(to), of, to)", "of"),
    ],
    "rows are alike that were set to other numbers": [
        ("partial(row_hashes, [*values, *values_set.values()])", "partial(row_hashes, list(values))"),
    ],
    "rows drawn anew draw numbers that were set": [
        ("columns[k] = np.where(np.isnan(like.values_set[k]), columns[k], like.values_set[k])", "pass"),
    ],
    "some rows have what others were set to": [
        ("{node: of_node[units] for node, of_node in self.values_set.items()}", "dict(self.values_set)"),
    ],
    "cells have the density of their row": [
        ("= whole[which] - rest", "= whole[which]"),
    ],
    "clusters have factors of nodes that were set": [
        ("        return (codes >= 0) & (codes < self.layout.cardinalities[node])\n", "        return codes >= 0\n"),
    ],
    "modes weigh factors of nodes that were set": [
        (
            "has = ((codes >= 0) & (codes < layout.cardinalities[family])).reshape(",
            "has = (codes >= 0).reshape(",
        ),
    ],
    "completions weigh factors of nodes that were set": [
        (
            "grown[(last[row[grown], family] == place) & ~is_set[row[grown], family]]",
            "grown[last[row[grown], family] == place]",
        ),
    ],
    "parents of nodes that were set are completed by q(theta)": [
        ("        kept[:, node] &= ~is_set[:, node]\n", ""),
        (
            "    kept = observed.copy()\n",
            "    kept = observed | is_set\n",
        ),
    ],
    "families of a search count rows in which their node was set": [
        (
            "completed, sizes = self.completed.without_rows_set(self.nodes[child]), self._cardinality",
            "completed, sizes = self.completed, self._cardinality",
        ),
    ],
    "the dynamic program counts rows in which a node was set": [
        ("            if node in self.rows_set:\n", "            if node in ():\n"),
    ],
    "the ceiling takes what was set for what was seen": [
        (
            "np.where(distinct.codes < n_categories, np.minimum(distinct.codes, 0), distinct.codes)",
            "np.minimum(distinct.codes, 0)",
        ),
    ],
    "equivalence classes know nothing of experiments": [
        ("any(len({*edge}.intersection(target)) == 1 for target in targets)", "False"),
    ],
    "rows that were all set count in n": [
        ("        tell = (codes >= 0) & (codes < self.columns.n_categories_)\n", "        tell = codes >= 0\n"),
    ],
    "rows are simulated as if nothing was set": [
        ("drawn[node] = np.where(codes >= n_categories, codes - n_categories, drawn[node])", "pass"),
    ],
    "columns of a frame of booleans are taken by their places": [
        ("_place(name, table, owner) if given.has_own_names else j] =", "j] ="),
    ],
    "rows of weight 0 shift what was set": [
        (
            "is_set = is_set if is_set is None or kept is None else is_set[kept]",
            "is_set = is_set if is_set is None or kept is None else is_set[: sum(kept)]",
        ),
    ],
    "numbers that were set count as if they were seen": [
        ("np.where(cells, np.nan if group.encoder is None else -1, of_group)", "np.where(cells, of_group, of_group)"),
    ],
    "emissions know parents by their codes": [
        ("        codes = self.categories(counting)\n", "        codes = dict(columns)\n"),
    ],
}
