"""Errors in what mixtures and hidden Markov models share: seeds among rows."""

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
    "seeds keep close to each other": [("            away = nearest\n", "            away = 1 / (1 + nearest)\n")],
    "seeds depend on the order of rows": [
        (
            "    order = np.argsort(rows.hashes)\n    coordinates",
            "    order = np.arange(len(rows))\n    coordinates",
        )
    ],
}
