"""Errors in steps of pipelines and classifiers."""

TESTS = ("estimators/steps/test_vb_classifier.py", "estimators/steps/test_vb_imputer.py")

ERRORS = {
    "trees are chosen by how features hang together, whatever the class": [
        (
            "np.ravel_multi_index((classes[known], a[known], b[known]), sizes)",
            "np.ravel_multi_index((0 * classes[known], a[known], b[known]), sizes)",
        )
    ],
    "an edge between features counts the class twice": [
        (
            "- without_edge + log_evidence(",
            "- without_edge - log_evidence(",
        )
    ],
    "forests take edges that lower the evidence": [
        (
            "best, parent = np.zeros(n_features), np.full(n_features, -1)",
            "best, parent = np.full(n_features, -1e9), np.full(n_features, -1)",
        )
    ],
    "weights do not count where trees are chosen": [
        ("weight=np.ones(len(codes)) if weight is None else weight", "weight=np.ones(len(codes))")
    ],
    "classes that weigh nothing are forgotten": [
        (
            "of_class = Column(codes, None, list(range(n_classes)))",
            "of_class = Column(codes.astype(float))",
        )
    ],
    "the class may be missing from a structure": [("if self.class_node not in dag.nodes:", "if not dag.nodes:")],
    "the imputer fits the estimator that it was given": [
        (
            "self.estimator_ = clone(estimator).fit(X, sample_weight=sample_weight)",
            "self.estimator_ = estimator.fit(X, sample_weight=sample_weight)",
        )
    ],
    "the imputer forgets weights": [
        (
            "self.estimator_ = clone(estimator).fit(X, sample_weight=sample_weight)",
            "self.estimator_ = clone(estimator).fit(X)",
        )
    ],
    "filled frames lose the types of their columns": [
        ("return completed if stays or not hasattr", "return completed if not hasattr")
    ],
}
