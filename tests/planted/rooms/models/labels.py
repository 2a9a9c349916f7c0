"""Errors in what mixtures and hidden Markov models share: seeds among rows, samples of rows, shares of rows."""

TESTS = (
    "emissions",
    "families",
    "models",
    "optima",
    "laws",
    "evidence/**/test_mixture*.py",
    "estimators/mixture/test_vb_mixture.py",
    "estimators/mixture/test_vb_mixture_blocks.py",
)

ERRORS = {
    "a row is weighed against a component that it is still in": [
        ("(freedom - w) / 2.0 * log(shrunk)", "freedom / 2.0 * log(shrunk)")
    ],
    "a component that a row has left keeps its center": [
        ("of->center[k * d + i] += sign * weight / after", "of->center[k * d + i] += weight / after")
    ],
    "transfers forget how many rows a component has": [
        ("- of_pi + of_gamma[1] - of_gamma[0]", "- of_pi"),
        ("- of_pi + of_gamma[0] - of_gamma[2]", "- of_pi"),
    ],
    "transfers go through rows as they came": [
        ('self.order = free[np.argsort(rows.hashes[free], kind="stable")]', "self.order = free")
    ],
    "known labels change in searches": [("labels[near & ~self.rows.is_labeled] = gone", "labels[near] = gone")],
    "searches keep what is worse": [("if other is not None and other[1] > best[1]:", "if other is not None:")],
    "a component that is joined into another stays where it was, too": [
        ("joined[self.cells[other].T, lanes] = 0.0", "joined[self.cells[other].T, lanes] *= 1.0")
    ],
    "seeds keep close to each other": [("            away = nearest\n", "            away = 1 / (1 + nearest)\n")],
    "seeds depend on the order of rows": [
        (
            "    order = np.argsort(rows.hashes)\n    coordinates",
            "    order = np.arange(len(rows))\n    coordinates",
        )
    ],
    "a larger sample has not the rows of a smaller one": [
        ("sampled_elsewhere)(data.parts, len(data), 0, most)", "sampled_elsewhere)(data.parts, len(data), most, most)")
    ],
    "rows shared out anew depend on their order": [
        (
            "drawn = draws(rows.hashes, seeds) ** 2",
            "drawn = draws(np.arange(len(rows.hashes), dtype=np.uint64), seeds) ** 2",
        )
    ],
    "a crossing keeps what the other fit has already": [
        ("left = one * np.maximum(1.0 - taken.sum(axis=0) / rows.weight, 0.0)", "left = one * 1.0")
    ],
    "a row that is hardly left to anyone overflows": [
        ("nobodys = total <= TUNING.least_share * rows.weight", "nobodys = total <= 0.0")
    ],
    "copies of one optimum are all that survives a sample": [
        ("is_promising and not any(self.method.are_alike(", "is_promising or not any(self.method.are_alike(")
    ],
    "a sampled row counts as all the rows it stands for": [
        ("replace(self, weight=np.minimum(self.weight, most))", "replace(self, weight=np.maximum(self.weight, most))")
    ],
    "one empty component alone is filled": [("sets.append(order[:n_filled])", "sets.append(order[:1])")],
    "what is divided on more rows is not run": [("if live or archive.is_over or", "if True or archive.is_over or")],
    "a row is weighed against its own component with itself in it": [
        ("lanes[self.cells[out_of].T, at] -= of_rows[at, out_of].T", "lanes[self.cells[out_of].T, at] -= 0.0")
    ],
    "a transfer is judged by what rows gained before others moved": [
        ("                    gain = one_gain[0] - evidence\n", "                    gain = gains[at]\n")
    ],
    "a component that is dropped keeps its rows": [("            each[k] = 0.0\n", "            each[k] *= 1.0\n")],
}
