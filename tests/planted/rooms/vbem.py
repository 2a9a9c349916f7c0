"""Errors in the ascent of the lower bound."""

TESTS = ("vbem", "models", "laws", "families", "kernels")

ERRORS = {
    "the last restart is taken, not the best": [("best, kept = result.best,", "best, kept = len(lanes) - 1,")],
    "the mode in probabilities is the natural one": [
        ('Form("map", density=False, lowered_by=1.0)', 'Form("map", density=False)')
    ],
    "an extrapolation is kept though the bound falls": [
        ("accepted = value >= objective\n", "accepted = value == value\n")
    ],
    "the bound of one start is reported for another's tables": [
        ("np.ascontiguousarray(result.statistics[:, best])", "np.ascontiguousarray(result.statistics[:, best - 1])")
    ],
    "what starts reach on distinct rows is raced again on repeats": [
        ('elif getattr(stages[number - 1], "is_sample", False):', "else:")
    ],
    "a tournament keeps the worse half": [("np.argsort(-objective,", "np.argsort(objective,")],
    "a race is won by what does not count": [
        ("objective = objective[self.counts(statistics)]", "objective = objective[:]")
    ],
    "a move that lowers the objective is kept": [
        ("best.objective < here.objective + _MIN_RISE)", "best.objective < here.objective - 1e3)"),
        ("best.rank <= here.rank or", "best.rank == here.rank or"),
    ],
    "the gain still to come is forgotten in a race": [
        ("(objective + self.reach * to_come < self.best(", "(objective < self.best(")
    ],
    "annealing forgets the temperature": [("starts *= inverse_temperature\n", "starts *= 1.0\n")],
}
