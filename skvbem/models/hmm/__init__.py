"""Hidden Markov models of any emission."""
