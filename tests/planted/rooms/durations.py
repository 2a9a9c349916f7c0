"""Errors in durations of the states of chains."""

TESTS = (
    "kernels/test_stays.py",
    "estimators/hmm/test_durations.py",
    "estimators/hmm/test_chains_with_durations.py",
    "fitted/test_durations.py",
    "reports/test_long_run.py",
    "laws/test_models.py",
    "laws/test_inference.py",
    "laws/test_bound.py",
)

ERRORS = {
    "the last stay of a sequence counts as complete": [
        (
            "for (intptr_t a = 0; a < width; a++) new[k * width + a] = factor[k];",
            "for (intptr_t a = 0; a < width; a++) new[k * width + a] = factor[k] * chain->leave[k * width + a];",
        )
    ],
    "the last stay counts as complete where numbers are small": [
        (
            "for (intptr_t c = 0; c < size; c++) to_come[c] = 0.0;",
            "for (intptr_t c = 0; c < size; c++) to_come[c] = chain->leave[c];",
        )
    ],
    "the last age is left for the age before it": [
        ("const intptr_t a = is_last ? last : 0;", "const intptr_t a = is_last && last ? last - 1 : 0;")
    ],
    "hazards are those of the age before": [
        (
            "cells[:, 3, :, : self.n_ages] = leave[:, :, self.bins]",
            "cells[:, 3, :, : self.n_ages] = leave[:, :, self.bins[np.maximum(np.arange(self.n_ages) - 1, 0)]]",
        )
    ],
    "staying in the last age has the hazard of the first": [
        ("cells[:, 2, :, last] = stay[:, :, self.bins[-1]]", "cells[:, 2, :, last] = stay[:, :, self.bins[0]]")
    ],
    "a tied cell is counted once": [
        (
            "of_leaving = np.stack([np.add.reduceat(each, starts, axis=-1) for each in (leave, up + keep)], axis=-1)",
            "of_leaving = np.stack([each[..., starts] for each in (leave, up + keep)], axis=-1)",
        )
    ],
    "ends of stages are those of the last alone": [
        (
            "of_leaving = np.stack([(up + leave).sum(axis=-1), keep.sum(axis=-1)]",
            "of_leaving = np.stack([leave.sum(axis=-1), keep.sum(axis=-1)]",
        )
    ],
    "ends of the last stage are counted twice": [
        (
            "of_leaving = np.stack([(up + leave).sum(axis=-1), keep.sum(axis=-1)]",
            "of_leaving = np.stack([(up + 2 * leave).sum(axis=-1), keep.sum(axis=-1)]",
        )
    ],
    "the step into a stay counts as one of staying": [
        (
            "out = steps[:, :, :, :, 0] * (1.0 - np.eye(n_states))[:, None]",
            "counts[:, 2, :, 0] += steps[:, :, :, :, 0].sum(axis=(1, 2))\n"
            "        out = steps[:, :, :, :, 0] * (1.0 - np.eye(n_states))[:, None]",
        )
    ],
    "the first step of a sequence counts as one of staying": [
        (
            "for (intptr_t c = 0; c < size; c++) first_counts[c] += weight * old[c];",
            "for (intptr_t c = 0; c < size; c++) keep_counts[c] += weight * old[c], first_counts[c] += old[c];",
        )
    ],
    "doubling bins wrap an age early": [
        ("np.ceil(np.log2(ages)).astype(np.int64)", "np.floor(np.log2(ages)).astype(np.int64)")
    ],
    "next states that are ruled out are only improbable": [
        ("self.jumps.matrix(of_jumps, -np.inf)", "self.jumps.matrix(of_jumps, -9.0)")
    ],
    "a jump leads into the state that is left": [
        ("others = concentration * (1.0 - np.eye(transitions.n_states))", "others = concentration")
    ],
    "weights of sequences are left out of durations": [
        (
            "after, weight = np.zeros((self.n_lanes, self.size + 8)), np.ascontiguousarray(weight)",
            "after, weight = np.zeros((self.n_lanes, self.size + 8)), np.ones(len(weight))",
        )
    ],
    "paths that are drawn forget the age": [
        (
            "                    next_cell = cell\n",
            "                    next_cell = cell // width * width\n",
        )
    ],
    "the octave of the prior is left out of the bound": [
        (
            "octaves = np.arange(0.0, _OCTAVES + np.ceil(np.log2(n_stages)), _APART)",
            "octaves = np.arange(0.0, _OCTAVES - 1 + np.ceil(np.log2(n_stages)), _APART)",
        )
    ],
    "bins of a state do not share their alternative": [
        (
            "tables = np.append(np.arange(0, n_rows + 1, n_bins), n_rows + 1 + np.arange(len(rest)))",
            "tables = np.append(np.arange(0, n_rows + 1), n_rows + 1 + np.arange(len(rest)))",
        )
    ],
    "first ages are as probable as the first": [
        (
            "np.full((n_states, len(bins)), 1.0 / len(bins))",
            "np.full((n_states, len(bins)), 1.0)",
        )
    ],
    "forecasts begin stays anew": [
        (
            "            cells[:, :, 0] += entering\n",
            "            cells[:, :, 0] = cells.sum(axis=-1) + entering\n            cells[:, :, 1:] = 0.0\n",
        )
    ],
    "mean stays leave out what comes beyond the last age": [
        ("return 1.0 + lasts[..., :-1].sum(axis=-1) + beyond", "return 1.0 + lasts.sum(axis=-1)")
    ],
    "stays go on in the last age for nothing": [("    later = cells * keep\n", "    later = cells * 0.0\n")],
    "posteriors given all other steps take the step itself": [
        ("without, weight, which, carries[k], after", "False, weight, which, carries[k], after")
    ],
    "a piece of a sequence forgets the age in which the one before ended": [
        (
            "memcpy(taken_up, carry, size * sizeof(double));",
            "memset(taken_up, 0, size * sizeof(double));\n"
            "        for (intptr_t c = 0; c < size; c++) taken_up[c / width * width] += carry[c];",
        )
    ],
}
