"""Errors in hidden Markov models."""

TESTS = (
    "models/**/test_hmm*.py",
    "kernels/test_hmm.py",
    "laws/test_models.py",
    "laws/test_scores.py",
    "evidence/**/test_hmm*.py",
    "estimators/hmm/test_vb_hmm.py",
)

ERRORS = {
    "expected transitions are normalized before the E step": [
        (
            "return initial_cells.T, np.moveaxis(pair_cells, -1, 0)",
            "return initial_cells.T, np.moveaxis(pair_cells - np.logaddexp.reduce(pair_cells, axis=1)[:, None], -1, 0)",
        )
    ],
    "weights of sequences are forgotten in the bound": [
        (
            "(weight * np.where(weight > 0, log_z, 0.0)).sum(axis=1), passes",
            "np.where(weight > 0, log_z, 0.0).sum(axis=1), passes",
        )
    ],
    "steps after the last observed one are summed, not left out": [
        ("ends = np.where(before[1:] > before[:-1], last + 1, starts[:-1]).astype(np.int64)", "ends = starts[1:]")
    ],
    "states of the steps after the last observed one stay as they are": [
        ("states = into(states[going], rows)", "states = states[going]")
    ],
    "what a mask rules out is only improbable": [
        ("self.transitions.matrix(pairs, -np.inf)", "self.transitions.matrix(pairs, -9.0)")
    ],
    "the first row of each sequence but one counts as a transition": [
        ("weight[self.starts[:-1][self.lengths > 0]] = 0.0", "weight[:1] = 0.0")
    ],
    "relabelings of states leave the rows of transitions in place": [
        (
            "rows = orders if n_rows > 1 else np.zeros((*orders.shape[:-1], 1), dtype=int)\n",
            "rows = np.broadcast_to(np.arange(n_rows), (*orders.shape[:-1], n_rows))\n",
        )
    ],
    "Laplace's covariance forgets steps before a transition": [
        ("crossed = self.crossed + pair_scores.T @", "crossed = self.crossed + 0.0 * pair_scores.T @")
    ],
    "Laplace's recursion loses states out of the range of doubles": [
        (
            "                log_alpha = self.log_first + by_row\n",
            "                log_alpha = self.log_first + np.where(by_row < by_row.max() - 745, -np.inf, by_row)\n",
        )
    ],
    "the exact sum takes all sequences for one": [("begins[data.starts[:-1]] = True", "begins[0] = True")],
    "the dimension is that of sequences of two steps less": [
        ("2 * model.n_components - 1)", "2 * model.n_components - 3)")
    ],
    "the entropy of paths is that of independent steps": [
        ("_expected(of_chain, natural[: model.first_emission_cell])", "_expected(passes.first_counts[0], natural[:1])")
    ],
}
