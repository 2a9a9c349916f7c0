"""Errors in networks of mixed columns, and in factors that contexts have of their own."""

TESTS = (
    "kernels/test_row_factors.py",
    "models/mixed_network/test_mixed_network.py",
    "models/mixed_network/test_mixed_network_curvature.py",
    "laws",
)

ERRORS = {
    "observed parents of an emission are taken to be in their first state": [
        (
            "by_parent[p] if p in by_parent else np.maximum(codes[p][at], 0)[None]",
            "by_parent[p] if p in by_parent else 0 * codes[p][at][None]",
        )
    ],
    "rows whose parents are all observed count once": [
        (
            "known = KnownRows(k, at, table, states, rows.weight[at])",
            "known = KnownRows(k, at, table, states, np.ones(len(at)))",
        )
    ],
    "log densities that no parameter of an emission touches are left out": [
        ("log_base=float(log_z[0] - statistics @ natural)", "log_base=0.0")
    ],
    "an emission without an observed cell says something of its parents": [
        ("columns[node] = np.where(seen, 0, -1).astype(np.int8)", "columns[node] = np.zeros(len(seen), dtype=np.int8)")
    ],
    "the entropy of a row counts separators twice": [
        (
            "by_row += xlogy(shared, shared).reshape(n, -1).sum(axis=1)",
            "by_row += 0.0 * xlogy(shared, shared).reshape(n, -1).sum(axis=1)",
        )
    ],
    "contexts redone in logarithms forget their own factors": [
        (
            "                    psi[self.clique_at[q] + cell] += log_factors[factor[cell] * n_lanes + lane]",
            "                    psi[self.clique_at[q] + cell] += 0.0 * log_factors[factor[cell] * n_lanes + lane]",
        )
    ],
    "rows of one clique have the codes of the first rows": [
        (
            "const intptr_t at = (first + i) * run->n_slots + slot - run->first_slot;",
            "const intptr_t at = i * run->n_slots + slot - run->first_slot;",
        )
    ],
    "joint posteriors have the states of their nodes the other way round": [
        (
            "joint = np.ravel_multi_index(np.broadcast_arrays(*digits), self.sizes)",
            "joint = np.ravel_multi_index(np.broadcast_arrays(*digits[::-1]), self.sizes[::-1])",
        )
    ],
    "the joint mode of a row forgets what emissions say": [
        (
            "yield plan, max_product(model.layout, plan, log_tables, columns, by_cell)",
            "yield plan, max_product(model.layout, plan, log_tables, columns)",
        )
    ],
    "nodes asked for together are pruned where nothing is observed below": [
        ("wanted = frozenset(wanted).union(*together)", "wanted = frozenset(wanted)")
    ],
    "the information of mixed networks counts each row once": [
        ("weighted = weight[:, None] * responsibilities", "weighted = 1.0 * responsibilities")
    ],
    "missing cells take no information in mixed networks": [
        (
            "total += self._of_missing_cells(k, table[rows], by_component)",
            "total += 0.0 * self._of_missing_cells(k, table[rows], by_component)",
        )
    ],
    "a measurement does not show the states of its parents to the dimension": [
        (
            "np.ones(n_states, dtype=bool))\n            observed |= set(with_table)",
            "np.ones(n_states, dtype=bool))\n            observed |= set()",
        )
    ],
}
