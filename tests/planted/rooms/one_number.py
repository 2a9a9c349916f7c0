"""Errors in families of one integrated number, and in their emissions: sizes, shapes and concentrations."""

TESTS = (
    "families/test_one_dimensional.py",
    "emissions/test_one_dimensional.py",
    "families/test_laws.py",
    "emissions/test_laws.py",
)

ERRORS = {
    "nodes of an integral are taken as evenly spaced in the logarithm": [
        ("+ np.log(np.cosh(u))", "+ np.zeros_like(u)"),
    ],
    "integrals end where the integrand has fallen by six nats": [
        ("REACH, _FALL = 42.0, 36.0", "REACH, _FALL = 42.0, 6.0"),
    ],
    "the end of sizes and shapes takes no mass away": [
        ("return np.log1p(1 / most) - 2 * np.logaddexp(0.0, log_x)", "return 0 * most - 2 * np.logaddexp(0.0, log_x)"),
    ],
    "concentrations hang on the direction from which angles are counted": [
        ("away = cells[2] - np.hypot(cells[3], cells[4])", "away = cells[2] - np.abs(cells[3])"),
    ],
    "the prior of a rate of gamma numbers has no constant": [
        (
            "of_rate = (1 + n0 * alpha) * np.log(n0) - log_gamma(1 + n0 * alpha)",
            "of_rate = (1 + n0 * alpha) * np.log(n0)",
        ),
    ],
    "rows of counts weigh for the probability as if sizes were 1": [
        ("cells[0] * b + r * cells[2] - cells[1]", "cells[0] * b + cells[2] - cells[1]"),
    ],
    "polynomials between counts have a wrong constant": [
        ("np.where(k > 0, 2.0, 1.0)", "np.where(k > 0, 2.0, 2.0)"),
    ],
    "degrees have the density of radians": [
        ("* -np.log(2 * np.pi * self.per_radian)", "* -np.log(2 * np.pi)"),
    ],
    "the derivative of a concentration forgets its Bessel function": [
        ("second[0, 0, 2] = -(x**2) * (1 - ratio**2)", "second[0, 0, 2] = -(x**2)"),
    ],
}
