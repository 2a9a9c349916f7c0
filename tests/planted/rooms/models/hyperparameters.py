"""Errors in hidden hyperparameters: their terms in the E step, in chains and in scores."""

TESTS = ("families/test_hierarchical.py", "models/test_hidden_hyperparameters.py")

ERRORS = {
    "ln Z of hyperparameters is left out of the bound": [
        ("expectation.log_normalizer + log_normalizer", "expectation.log_normalizer + 0.0 * log_normalizer")
    ],
    "the normalizer of the hyperprior is forgotten": [
        ("float(log_rising(self.shape, self.power).sum())", "0.0 * float(self.power.sum())")
    ],
    "paths forget the hyperparameters of where they begin": [
        (
            "slope = slope + np.where(prior.leaves_hyperparameters(statistics), 0.0, of_hyperparameters)",
            "slope = slope + 0.0 * of_hyperparameters",
        )
    ],
    "chains from the prior temper their hyperparameters": [
        (
            "statistics += np.where(prior.leaves_hyperparameters(path.statistics), 1.0, there) * of_prior",
            "statistics += there * of_prior",
        )
    ],
    "weights of chains forget hyperparameters": [
        (
            "log_ratios[step] += prior.log_normalizer_of_hyperparameters(at_there)",
            "log_ratios[step] += prior.log_normalizer_of_hyperparameters(at_here)",
        )
    ],
    "starts from the prior have no density of their own": [
        (
            "return prior.leaves_hyperparameters(statistics.T)[:, None] * prior",
            "return 0.0 * prior.leaves_hyperparameters(statistics.T)[:, None] * prior",
        )
    ],
    "draws importance is sampled with forget the hyperprior": [
        (
            "log_weights += prior.log_normalizer_of_hyperparameters(log_points)  #",
            "log_weights += 0.0 * prior.log_normalizer_of_hyperparameters(log_points)  #",
        )
    ],
    "maximum likelihood asks the hyperprior": [
        (
            "self.hyperprior = model.prior.hyperprior if form.density or form.prior_share else None",
            "self.hyperprior = model.prior.hyperprior",
        ),
    ],
}
