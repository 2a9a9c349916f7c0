"""Probabilities of the candidates of a search: what scores, samplers and sums over graphs say of them."""
