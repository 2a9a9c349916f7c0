"""Errors in what several models share: relabelings and Gibbs sampling."""

TESTS = (
    "models",
    "laws",
    "evidence",
    "kernels/test_random.py",
    "estimators/mixture/test_vb_mixture.py",
    "estimators/mixture/test_vb_mixture_blocks.py",
)

ERRORS = {
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
