"""Errors in what is known of labels, and in warnings of what columns may hold."""

TESTS = ("estimators/labels/test_known_labels.py", "reading/test_guesses.py")

ERRORS = {
    "a known label rules out nothing": [("    logs[..., known, :] = -np.inf\n", "")],
    "components that label rows change places as any do": [
        ("named[list(emission.named)] = 1 + np.arange(len(emission.named))", "named[list(emission.named)] = 0")
    ],
    "the exact evidence leaves out rows of known labels": [
        (
            "    statistics, weight, log_base = _distinct_rows(model, data)\n    log_base += known_terms\n",
            "    statistics, weight, log_base = _distinct_rows(model, data)\n",
        )
    ],
    "a component with a name makes room for another": [
        (
            "small = small[small >= self.emission.n_levels]",
            "small = small[small >= 0]",
        ),
        ("return (one, other) if other >= self.n_levels else (other, one)", "return one, other"),
        ("if one.model.n_components == self.fewest:", "if state.model.n_components == 1:"),
        (
            "one, other = one[one >= self.n_levels], other[one >= self.n_levels]",
            "one, other = one[one >= 0], other[one >= 0]",
        ),
    ],
    "starts know no labels": [
        ("    labels = None if rows.labels is None else rows.labels[order]\n", "    labels = None\n"),
        ("weighted = with_known_labels(weighted, block.labels)", "pass"),
        ("return with_known_labels(probability, data.table[block].labels) if", "return probability if"),
    ],
    "a row of which nothing but the label is known says nothing": [
        ("return observed if labels is None else observed | (labels.codes >= 0)", "return observed")
    ],
    "labels are no part of what tells data from others": [
        ("return values if labels is None else [*values, labels.codes[:, None]]", "return values")
    ],
    "numbers that are said to be measurements are warned of": [
        (
            "[[group.columns.index(at) for at in group.guessed] for group in emission_groups]",
            "[[*range(len(group.columns))] for group in emission_groups]",
        )
    ],
    "whole numbers of any number of values look like categories": [
        ("if k <= _MAX_CATEGORIES and k * _ROWS_PER_CATEGORY <= n:", "if k * _ROWS_PER_CATEGORY <= n:")
    ],
    "names of rows are those of all columns of many levels": [
        ("n_levels > max(MIN_LEVELS, _SHARE_OF_ROWS * len(seen))", "n_levels > MIN_LEVELS")
    ],
}
