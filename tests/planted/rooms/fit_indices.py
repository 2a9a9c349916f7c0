"""Errors in fit indices, likelihood-ratio tests, profiles with covariates, and in what messages suggest."""

TESTS = (
    "reports/test_goodness_of_fit.py",
    "estimators/**/test_messages.py",
    "uncertainty/test_likelihood_ratio.py",
    "plotting/**/test_mixture_displays.py",
)

ERRORS = {
    "fit indices of mixtures are those of the predictive density": [
        ("for rows, log_joint in self._log_joint_at(self.model.prior.natural(self.point), values):\n            scores",
         "for rows, log_joint in self.log_joint(values):\n            scores")
    ],
    "cells of sequences are single steps": [
        ("return Cells(codes.reshape(len(lengths), -1), [*sizes] * n_steps)",
         "return Cells(codes[::n_steps], [*sizes])")
    ],
    "sequences of several lengths are one table": [
        ("if len(lengths) < 2 or (lengths != n_steps).any() or", "if len(lengths) < 2 or")
    ],
    "a likelihood-ratio test draws from nobody": [
        ("fitted, reading = self.fitted, self.reading.kept().refilled(values)",
         "fitted, reading = self.fitted, self.reading.kept()")
    ],
    "a p value forgets the table at hand": [
        ("return float((1 + (self.drawn >= self.statistic).sum()) / (1 + len(self.drawn)))",
         "return float((self.drawn >= self.statistic).mean())")
    ],
    "a likelihood-ratio test depends on the order of rows": [
        ("return reading.in_order().one_by_one()", "return reading.one_by_one()")
    ],
    "names that other libraries give to parameters mean nothing": [
        ("return did_you_mean(name, known, _LIKENESS_OF_PARAMETERS) if meant is None",
         "return did_you_mean(name, known, _LIKENESS_OF_PARAMETERS) if True")
    ],
    "an attribute that is not there has no reason of its own": [
        ("return object.__getattribute__(self, name)  # to raise its own reason again", "pass")
    ],
    "classes with covariates weigh as their first table": [
        ("weights = estimator.query(latent).values if is_below else estimator.tables_[latent].values",
         "weights = estimator.tables_[latent].values.reshape(-1, 2)[0]")
    ],
}  # fmt: skip
