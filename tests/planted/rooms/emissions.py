"""Errors in the emissions: their densities, statistics and missing cells."""

TESTS = (
    "emissions",
    "laws/**/test_extending.py",
    "families",
    "models/**/test_mixture*.py",
    "evidence/**/test_mixture*.py",
    "estimators/mixture/test_vb_mixture.py",
    "estimators/mixture/test_vb_mixture_blocks.py",
)

ERRORS = {
    "combinations of categories are expected as if components were equal": [
        ("np.repeat(counts[:, None], len(part), axis=1)", "np.full((len(counts), len(part)), counts.mean())")
    ],
    "halves that gain what chance gives are no chance": [
        (".eigvalsh(residuals)[-1]) ** 2 / 4 - n_free", ".eigvalsh(residuals)[-1]) ** 2 / 4")
    ],
    "components are filled whatever rows there are": [
        ("if excess is not None and excess < TUNING.excess:", "if excess is not None and excess < -1e9:")
    ],
    "a narrow component beside others has another peak": [
        ("peak = constant[far] + 0.5 * (linear[far] * mean)", "peak = constant[far] + (linear[far] * mean)")
    ],
    "sums over many columns leave out small shares": [("NEGLIGIBLE_ROOT = 1e-20", "NEGLIGIBLE_ROOT = 1e-3")],
    "a step over many columns is never dear": [
        ("len(ascent.data) * n_own > TUNING.many_products", "len(ascent.data) * n_own < 0")
    ],
    "completed cells of a Gaussian are as good as observed ones": [
        (
            "product += root[i * m + c] * (n * root[j * m + c] - w",
            "product += root[i * m + c] * (0.0 * root[j * m + c] - w",
        )
    ],
    "the volume of hidden Gaussian cells is left out": [
        ("(self.root.shape[-1] * LOG_2PI - self.log_det_hidden) / 2", "(self.root.shape[-1] * LOG_2PI) / 2")
    ],
    "the unit of measurements is left out of their density": [
        ("norm + log_root - np.log(self.unit)", "norm + log_root")
    ],
    "Poisson exposures are counted in rows, not in units": [
        ("sums[..., :d].shape) * self.unit]", "sums[..., :d].shape)]")
    ],
    "a Student t has a degree of freedom too many": [
        ("squares *= ((dof - m + 1) / 2)[:, None]", "squares *= ((dof - m + 2) / 2)[:, None]")
    ],
    "multinomial coefficients are left out": [
        (
            "log_rising(1.0, counts.sum(axis=1)) - log_rising(1.0, counts).sum(axis=1)",
            "0.0 * log_rising(1.0, counts.sum(axis=1))",
        )
    ],
    "chains leave missing Gaussian cells where they are expected": [
        (
            "observed.shift[lane, k][:, None] + root @ noise[:, which == k]",
            "observed.shift[lane, k][:, None] + 0.0 * root @ noise[:, which == k]",
        )
    ],
    "intervals of means that fall with their parameter are upside down": [
        ("return np.minimum(one, other), np.maximum(one, other)", "return one, other"),
    ],
}
