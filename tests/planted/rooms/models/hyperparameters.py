"""Errors in hidden hyperparameters: their terms in the E step, in chains and in scores."""

TESTS = (
    "families/test_hierarchical.py",
    "families/test_normal_hyperpriors.py",
    "models/labels/test_hidden_hyperparameters.py",
    "models/labels/test_hidden_scales.py",
    "estimators/labels/test_hierarchical_priors.py",
)

ERRORS = {
    "ln Z of hyperparameters is left out of the bound": [
        (
            "log_normalizer = log_normalizer + hyperparameter_terms",
            "log_normalizer = log_normalizer + 0.0 * hyperparameter_terms",
        )
    ],
    "the normalizer of the hyperprior is forgotten": [
        ("float((log_rising(self.shape, self.power) - self.power", "float((0.0 * self.power - self.power")
    ],
    "a hidden scale has no divergence from its own prior": [
        ("dof / 2 * float(np.linalg.slogdet(self.scale)[1])", "0.0 * float(np.linalg.slogdet(self.scale)[1])")
    ],
    "a hyperparameter's own divergence is forgotten": [
        (
            "return statistics.reshape(natural.shape), self.log_gain - grown.reshape(natural.shape[1:])",
            "return statistics.reshape(natural.shape), (statistics * lanes).sum(axis=0).reshape(natural.shape[1:])",
        )
    ],
    "Laplace's Gaussian takes hyperparameters for known": [
        (
            "covariance = prior.hyperprior.score_covariance(prior.natural(point), prior.jacobian(point))",
            "covariance = 0.0 * prior.hyperprior.score_covariance(prior.natural(point), prior.jacobian(point))",
        )
    ],
    "Laplace's Gaussian has no expected hyperparameters": [
        (
            "(prior + (statistics + prior.hyperparameters(natural))).coordinates",
            "(prior + (statistics + 0.999 * prior.hyperparameters(natural))).coordinates",
        )
    ],
    "entries of a hidden scale off its diagonal count once": [
        ("turned * np.sqrt(2 * self._posterior_dof * pairings(d))", "turned * np.sqrt(2 * self._posterior_dof)")
    ],
    "a scale that one precision stands on is counted for each component": [
        ("power = n_precisions * degrees_of_freedom / 2", "power = n_components * degrees_of_freedom / 2")
    ],
    "the weight of means counts components, not columns": [
        (
            "loading = family(1.0, 0.0, np.zeros((len(mean),) * 2)).coordinates",
            "loading = family(1.0, 0.0, np.zeros((len(mean),) * 2)).coordinates / len(mean)",
        )
    ],
    "draws of a scale forget the parameters": [
        (
            "return self._drawn(self._posterior_dof, self._factor(natural), rng)",
            "return self._drawn(self._posterior_dof, self._factor(0.0 * natural), rng)",
        )
    ],
    "posteriors of hierarchical priors have no normalizer": [
        ("return posterior.log_normalizer()", "return 0.0 * posterior.log_normalizer()")
    ],
    "published priors are those before the data": [
        (
            "return prior.given_hyperparameters(prior.hyperparameters(natural))",
            "return prior.given_hyperparameters(prior.with_hyperparameters(0.0 * natural))",
        )
    ],
    "a hidden scale has no floor": [
        ("return np.minimum(_FLOOR_OF_ROW * total_weight, _HIGHEST_FLOOR)", "return 1e-300 * total_weight"),
    ],
    "paths forget the hyperparameters of where they begin": [
        (
            "slope = slope + np.where(prior.leaves_hyperparameters(statistics), 0.0, hyperparameter_terms)",
            "slope = slope + 0.0 * hyperparameter_terms",
        )
    ],
    "chains from the prior temper their hyperparameters": [
        (
            "statistics + np.where(from_prior, 1.0, there) * prior_terms",
            "statistics + there * prior_terms",
        )
    ],
    "weights of chains forget hyperparameters": [
        (
            "log_ratios[step] += prior.log_normalizer_of_hyperparameters(of_there)",
            "log_ratios[step] += prior.log_normalizer_of_hyperparameters(of_here)",
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
            "model = model.with_known_hyperparameters()",
            "model = model",
        ),
    ],
}
