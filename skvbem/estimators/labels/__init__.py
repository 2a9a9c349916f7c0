"""What the estimators of mixtures and of hidden Markov models share."""
