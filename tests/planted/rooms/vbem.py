"""Errors in the ascent of the lower bound."""

TESTS = ("vbem", "models", "laws", "families", "kernels")

ERRORS = {
    "the last restart is taken, not the best": [("best = result.best\n", "best = result.objective.size - 1\n")],
    "the mode in probabilities is the natural one": [
        ('Form("map", density=False, lowered_by=1.0)', 'Form("map", density=False)')
    ],
    "an extrapolation is kept though the bound falls": [
        ("accepted = value >= objective\n", "accepted = value == value\n")
    ],
    "the bound of one start is reported for another's tables": [
        ("np.ascontiguousarray(result.statistics[:, best])", "np.ascontiguousarray(result.statistics[:, best - 1])")
    ],
    "a tournament keeps the worse half": [("np.argsort(-objective,", "np.argsort(objective,")],
    "annealing forgets the temperature": [("starts *= inverse_temperature\n", "starts *= 1.0\n")],
}
