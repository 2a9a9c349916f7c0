"""Errors in the compiled kernels."""

TESTS = ("kernels", "families", "models", "vbem", "laws", "evidence", "estimators/hmm/test_vb_hmm.py")

ERRORS = {
    "a part of the sum over rows of one code is taken away": [
        ("return ((parts[0] + parts[4]) + (parts[2]", "return ((parts[0] - parts[4]) + (parts[2]")
    ],
    "a step into a row is counted where a sequence begins": [
        ("first + b == 0 ? 0.0 : run->follows ? run->follows[first + b] : 1.0;", "first + b == 0 ? 0.0 : 1.0;")
    ],
    "groups of columns count where they are missing": [
        ("run->observed ? run->observed[(first + b) * run->n_groups + g] * sum[b] : sum[b]", "sum[b]")
    ],
    "a draw of weight one may fall beside all cells": [("p[lane] = 1.0 - above[lane];", "p[lane] = above[lane];")],
    "a row that counts many times has one component drawn": [
        ("row[i] = times[i] > 1.0 ? row[i] : hit;", "row[i] = hit;")
    ],
    "components are drawn by the probability of those before": [
        (
            "(draw[i] >= before) & ((draw[i] < after) | is_last)",
            "(draw[i] >= before) & ((draw[i] < before + 0.9 * row[i]) | is_last)",
        )
    ],
    "tiny shapes of Gamma variates are not lifted back": [
        ("drawn[k, lane] = x * exp(lift) if lift else x", "drawn[k, lane] = x")
    ],
    "the KL of the first table row is dropped": [
        (
            "for row in range(n_rows):\n        for lane in range(n_lanes):\n            at = row * n_lanes + lane\n",
            "for row in range(1, n_rows):\n"
            "        for lane in range(n_lanes):\n"
            "            at = row * n_lanes + lane\n",
        ),
        (
            "    for cell in range(n_cells):\n        if offset[cell] < 32.0:",
            "    for cell in range(starts[1], n_cells):\n        if offset[cell] < 32.0:",
        ),
    ],
    "expected parameters are normalized before the E step": [
        (
            "            natural[cell * n_lanes + lane] = value;\n"
            "            exp_natural[cell * n_lanes + lane] = skvbem_exp(value);\n"
            "        }\n",
            "            natural[cell * n_lanes + lane] = value;\n"
            "            exp_natural[cell * n_lanes + lane] = skvbem_exp(value);\n"
            "        }\n"
            "    for (intptr_t lane = 0; lane < n_lanes; lane++) {\n"
            "        double total = 0.0;\n"
            "        for (intptr_t cell = 0; cell < n_cells; cell++) total += exp_natural[cell * n_lanes + lane];\n"
            "        for (intptr_t cell = 0; cell < n_cells && total > 0.0; cell++) {\n"
            "            exp_natural[cell * n_lanes + lane] /= total;\n"
            "            natural[cell * n_lanes + lane] -= log(total);\n"
            "        }\n"
            "    }\n",
        )
    ],
    "the last context of a run is skipped": [
        (
            "for (intptr_t context = first; context < last; context++) {",
            "for (intptr_t context = first; context < last - 1; context++) {",
        )
    ],
    "threads start a block one context late": [
        ("self.program.block_context[block],\n", "self.program.block_context[block] + (1 if block > 0 else 0),\n")
    ],
    "the scale is lost where logarithms take over": [
        (
            "log_z[lane] += weight * (z - self.scale_undone(plan, context, lane, n_lanes, exp_natural))",
            "log_z[lane] += weight * z",
        )
    ],
    "the scale of messages is lost": [
        ("log_scale[lane] += self.mass[self.slot_mass[slot] + value] * (power * LN_2)", "log_scale[lane] += 0.0")
    ],
    "messages are not divided out on the way back": [
        ("                            ratio[s] /= target[s]\n", "                            pass\n")
    ],
    "of means that share a precision one is in its scale": [
        (
            "scale[(i * d + j) * n + lane] -= mine[lane] * total[j * n + lane];",
            "scale[(i * d + j) * n + lane] -= (k == 0) * mine[lane] * total[j * n + lane];",
        )
    ],
    "the evidence of Gaussian rows forgets their mean": [
        ("increment[lane] -= 0.5 * (double) d * log1p(u[lane] / kappa[lane]);", "increment[lane] -= 0.0;")
    ],
    "a variance at its floor passes for one above": [
        ("int is = trace[lane] * floor <= 1.0 &&", "int is = trace[lane] > 0.0 &&")
    ],
    "a Gaussian that is no density has a normalizer": [
        ("if (!valid[lane]) normalizer[lane] = NAN;", "if (!valid[lane]) normalizer[lane] = 0.0;")
    ],
    "the MAP penalty is of the other basis": [
        ("penalty[lane] += offset[cell] * natural[at]", "penalty[lane] += (offset[cell] - 1.0) * natural[at]")
    ],
    "a sign is wrong in the log rising factorial": [
        (
            "(skvbem_stirling_tail(a + n) - skvbem_stirling_tail(a))",
            "(skvbem_stirling_tail(a) - skvbem_stirling_tail(a + n))",
        )
    ],
    "one coefficient of the digamma series is off": [
        ("z * (1.0 / 12 - z * (1.0 / 120 -", "z * (1.0 / 12 - z * (1.0 / 122 -")
    ],
    "the ratio of annealed densities forgets the anchor": [
        (
            "trace[step, lane] -= (there - here) * anchor_counts[cell, lane] * log_point[cell, lane]",
            "trace[step, lane] -= 0.99 * (there - here) * anchor_counts[cell, lane] * log_point[cell, lane]",
        )
    ],
    "chains draw tables at the temperature before": [
        (
            "prior[cell] + (1.0 - there) * anchor_counts[cell, lane] + there * counts[cell, lane])",
            "prior[cell] + (1.0 - here) * anchor_counts[cell, lane] + here * counts[cell, lane])",
        )
    ],
    "proposals are accepted as if they were symmetric": [
        (
            "add_log_density(starts, n_lanes, 1.0, concentration,",
            "add_log_density(starts, n_lanes, 0.0, concentration,",
        ),
        (
            "add_log_density(starts, n_lanes, -1.0, concentration,",
            "add_log_density(starts, n_lanes, 0.0, concentration,",
        ),
    ],
    "proposals are accepted without regard to the prior": [
        ("log_odds[lane] += (prior[cell] - 1.0) *", "log_odds[lane] += 0.0 *")
    ],
    "small gamma variates are not lifted": [
        (
            "concentration[i] = skvbem_gamma(&stream, concentration[i], log_point + i);",
            "concentration[i] = skvbem_gamma(&stream, concentration[i], log_point + i), log_point[i] = 0.0;",
        )
    ],
    "transitions are counted from the end of a sequence to the next one": [
        ("left[j] = ends ? 0.0 : left[j] * share;", "left[j] = left[j] * share;")
    ],
    "what is out of range is not passed over in logarithms": [
        (
            "if (least if at_every_row else share) >= 1.0 - SKVBEM_LOST:",
            "if (least if at_every_row else share) >= -1.0:",
        )
    ],
    "best paths are followed back one step late": [
        (
            "                states[t] = state\n                state = source[t, state]\n",
            "                state = source[t, state]\n                states[t] = state\n",
        )
    ],
    "of equal states a best path ends in the last": [
        ("                if here[j] > top:", "                if here[j] >= top:")
    ],
    "drawn transitions between pieces are not counted": [
        ("pairs[t & 1][4 * state + next]++;", "pairs[t & 1][4 * state + next] += t < to - 1;"),
        ("counts[state * n + next] += 1.0;", "counts[state * n + next] += t < to - 1 ? 1.0 : 0.0;"),
    ],
    "states are drawn as if the next were always the first": [
        ("(intptr_t) states[4 * t + next];", "(intptr_t) states[4 * t];")
    ],
    "of more than four states none looks at the next": [
        ("weight[i] = here[i] * chain->transition_least[i * width + next];", "weight[i] = here[i];")
    ],
    "directions of hidden cells keep their units": [
        ("logs += 2.0 * log(size)", "logs += 0.0 * log(size)"),
    ],
    "the evidence of hidden cells forgets their spread": [
        ("found[r, k, 0] = peak[k] + (m * LOG_2PI - log_det - logs) / 2.0", "found[r, k, 0] = peak[k] - logs / 2.0")
    ],
    "what is left of hidden cells is about the origin": [
        ("found[r, k, 0] -= 0.5 * found[r, k, 1 + i] * mean[k, i]", "found[r, k, 0] -= 0.0 * mean[k, i]")
    ],
    "rows without hidden cells are not added to completed ones": [
        (
            "                for i in range(n_sums):\n                    total[k, i] += added[i]",
            "                for i in range(n_sums if m else 0):\n                    total[k, i] += added[i]",
        )
    ],
    "hidden cells of all patterns are those of the first": [
        (
            "                directions_of(whitener, &columns[ends[r]], m, hidden)",
            "                directions_of(whitener, &columns[0], m, hidden)",
        )
    ],
    "all members complete their sums by the first matrix": [
        ("&root[member // each, 0, 0], &crossed[member // each, 0, 0],", "&root[0, 0, 0], &crossed[0, 0, 0],")
    ],
}
