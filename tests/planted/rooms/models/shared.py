"""Errors in what several models share: relabelings and Gibbs sampling."""

TESTS = (
    "models/test_sums_over_parts.py",
    "models",
    "laws",
    "evidence",
    "kernels/test_random.py",
    "estimators/mixture/test_vb_mixture.py",
    "estimators/mixture/test_vb_mixture_blocks.py",
)

ERRORS = {
    "sums of threads are added from the last one on": [
        ("tree_sum(pool.map(arithmetic(step), parts))", "tree_sum([*pool.map(step, parts)][::-1])")
    ],
    "each eighth part counts twice": [
        (
            "            term = added(waiting[level][0], term)\n",
            "            term = added(added(waiting[level][0], term), term)\n",
        )
    ],
    "rows in parts have the expansion of the last part alone": [
        (
            "return Expectation(self.statistics(sums), sums[1], expansion=self.step.expansion(sums[0]))",
            "return Expectation(self.statistics(sums), sums[1], expansion=self.step.expansion(self.step.zeros()))",
        )
    ],
    "picks in turn are those of the first state": [
        (
            "log_h += entries[k, k] - log_sum_exp(entries[k, turns[at:]])",
            "log_h += entries[k, k] - log_sum_exp(entries[k])",
        )
    ],
    "permanents leave a column out": [
        (
            "columns = [column for column in range(n) if subset >> column & 1]",
            "columns = [column for column in range(n) if subset >> column & 1][: max(n - 1, 1)]",
        )
    ],
    "Metropolis chains of mixtures forget the prior": [
        ("log_odds = there_prior - log_prior + there", "log_odds = 0.5 * (there_prior - log_prior) + there")
    ],
}
