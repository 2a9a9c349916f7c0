"""One path from X to a fit, and from a fit to its evaluation, for every estimator: what differs is in its `Kind`."""
