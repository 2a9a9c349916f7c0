"""Errors in the sum over numbers that rows of networks hide: clusters, elimination, draws, and answers."""

TESTS = (
    "models/mixed_network/test_hidden_numbers.py",
    "laws/test_models.py",
)

ERRORS = {
    "missing numbers without an observed child stay in the sum": [
        ("alive = seen & ~are_set", "alive = np.ones_like(seen)")
    ],
    "expected squares of hidden numbers have no variance": [
        ("hidden = hidden + n_rows * self.inverse", "hidden = hidden + 0.0 * self.inverse")
    ],
    "the volume of hidden numbers has the other sign": [
        ("0.5 * self.n_hidden * log(2 * pi) - log_root", "0.5 * self.n_hidden * log(2 * pi) + log_root")
    ],
    "units of regressors outside a cluster count as its density": [
        ("responses.intersection(cluster.observed)", "cluster.observed")
    ],
    "hidden numbers that share a family stay in clusters of their own": [
        ("if nodes & scope:", "if nodes & scope & 0:")
    ],
    "rows that hide numbers count once, whatever their weights": [
        (
            "products.append((others[rows].T * weight[rows]) @ others[rows])",
            "products.append(others[rows].T @ others[rows])",
        )
    ],
    "the noise of rows has as many directions beyond those of the others": [
        ("degrees = (n_rows - n_directions)[..., None]", "degrees = n_rows[..., None]")
    ],
    "noise drawn has no products with the others": [("cross = cross + beside", "cross = cross + 0.0 * beside")],
    "missing parents are imputed without their children": [
        ("columns[k] = with_hidden(k, filled[:, : emission.n_columns])", "columns[k] = filled[:, : emission.n_columns]")
    ],
    "missing parents that are drawn are means": [
        ('values += np.einsum("nji,nj->ni", roots, rng.standard_normal(values.shape))', "pass")
    ],
    "rows of a cluster with any known parent count as rows with all of them": [
        ("is_known &= of_parent >= 0", "is_known |= of_parent >= 0")
    ],
    "rows that hide numbers count as rows that lack them, too": [
        (
            "*(seen & ~numbers.involved[k] if k in numbers.involved else seen for k, seen in enumerate(observed)),",
            "*observed,",
        )
    ],
    "states of a cluster's parents go to families in another order": [
        (
            "component = component * self.layout.cardinalities[p] + digits[p]",
            "component = component + digits[p] * self.layout.cardinalities[parents[0]] ** parents.index(p)",
        )
    ],
}
