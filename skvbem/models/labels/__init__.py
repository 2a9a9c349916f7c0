"""Models whose rows have one hidden label each: what mixtures and hidden Markov models share."""
