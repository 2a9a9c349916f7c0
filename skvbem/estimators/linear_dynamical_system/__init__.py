"""Linear dynamical systems as scikit-learn estimators."""
