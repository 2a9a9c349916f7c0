"""Reports of fits: summaries, comparisons, goodness of fit, fit indices."""
