"""What estimators of sequences share."""
