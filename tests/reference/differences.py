"""Derivatives by finite differences."""

import numpy as np


def hessian(of, at, h=2e-3):
    """Second differences, of the fourth order."""
    d = len(at)
    a, b = (h * np.eye(d)[:, k] for k in np.indices((d, d)).reshape(2, -1))

    def second(s):
        signs = ((1, 1, 1), (-1, 1, -1), (-1, -1, 1), (1, -1, -1))
        return sum(sign * of(at[:, None] + s * (i * a + j * b)) for sign, i, j in signs).reshape(d, d) / 4

    return (4 * second(1.0) - second(2.0) / 4) / (3 * h**2)


def gradient(of, at, h=1e-3):
    """First differences, of the fourth order, of a function of one vector."""
    steps = h * np.eye(len(at))
    return np.array([(8 * (of(at + s) - of(at - s)) - (of(at + 2 * s) - of(at - 2 * s))) / (12 * h) for s in steps])
