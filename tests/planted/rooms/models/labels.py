"""Errors in what mixtures and hidden Markov models share: seeds among rows, samples of rows, shares of rows."""

TESTS = (
    "emissions",
    "families",
    "models",
    "laws",
    "evidence/**/test_mixture*.py",
    "estimators/**/test_vb_mixture.py",
    "estimators/**/test_vb_mixture_blocks.py",
)

ERRORS = {
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
        ("_sampled(data.chunks, len(data), 0, most)", "_sampled(data.chunks, len(data), most, most)")
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
    "a row is weighed against its own component with itself in it": [
        ("lanes[self.cells[out_of].T, at] -= of_rows[at, out_of].T", "lanes[self.cells[out_of].T, at] -= 0.0")
    ],
    "a transfer is judged by what rows gained before others moved": [
        ("                    gain = one_gain[0] - evidence\n", "                    gain = gains[at]\n")
    ],
    "a component that is dropped keeps its rows": [("            each[k] = 0.0\n", "            each[k] *= 1.0\n")],
}
