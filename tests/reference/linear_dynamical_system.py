"""Linear dynamical systems by definition: one dense normal distribution over all states of a sequence.

Slow on purpose. Nothing is imported from the package.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln, multigammaln, psi


class Expectations(NamedTuple):
    """What an E step asks of parameters; of a point, the products themselves."""

    m: np.ndarray  # <[A B]>, (k, k + q)
    mm: np.ndarray  # <[A B]'[A B]>
    rho_c: np.ndarray  # <rho [C D]>, (p, k + r)
    rho_cc: np.ndarray  # <rho c c'> of each column
    rho: np.ndarray  # <rho>, (p,)
    log_rho: np.ndarray  # <ln rho>


def of_point(a, b, c, d, noise_variance):
    """The expectations of known parameters."""
    m, cd, rho = np.column_stack([a, b]), np.column_stack([c, d]), 1 / np.asarray(noise_variance, dtype=float)
    squares = rho[:, None, None] * cd[:, :, None] * cd[:, None, :]
    return Expectations(m, m.T @ m, rho[:, None] * cd, squares, rho, np.log(rho))


def states(y, u, v, e, m0, v0):
    """ln Z of one sequence, the means (T, k) of its states, and their covariance (T k, T k)."""
    n, k = len(y), len(m0)
    j, h, c = np.zeros((n * k, n * k)), np.zeros(n * k), 0.0
    at = [slice(t * k, (t + 1) * k) for t in range(n)]
    prior = np.linalg.inv(v0)
    j[at[0], at[0]] += prior
    h[at[0]] += prior @ m0
    c -= 0.5 * m0 @ prior @ m0 + 0.5 * np.linalg.slogdet(2 * np.pi * v0)[1]
    for t in range(1, n):  # -1/2 <|x_t - A x_{t-1} - B u_t|^2>
        j[at[t], at[t]] += np.eye(k)
        j[at[t - 1], at[t - 1]] += e.mm[:k, :k]
        j[at[t], at[t - 1]] -= e.m[:, :k]
        j[at[t - 1], at[t]] -= e.m[:, :k].T
        h[at[t]] += e.m[:, k:] @ u[t]
        h[at[t - 1]] -= e.mm[:k, k:] @ u[t]
        c -= 0.5 * u[t] @ e.mm[k:, k:] @ u[t] + k / 2 * np.log(2 * np.pi)
    for t in range(n):
        for s in np.flatnonzero(~np.isnan(y[t])):
            j[at[t], at[t]] += e.rho_cc[s][:k, :k]
            h[at[t]] += e.rho_c[s, :k] * y[t, s] - e.rho_cc[s][:k, k:] @ v[t]
            c += 0.5 * e.log_rho[s] - 0.5 * np.log(2 * np.pi) - 0.5 * e.rho[s] * y[t, s] ** 2
            c += e.rho_c[s, k:] @ v[t] * y[t, s] - 0.5 * v[t] @ e.rho_cc[s][k:, k:] @ v[t]
    covariance = np.linalg.inv(j)
    log_z = c + 0.5 * h @ covariance @ h - 0.5 * np.linalg.slogdet(j)[1] + n * k / 2 * np.log(2 * np.pi)
    return log_z, (covariance @ h).reshape(n, k), covariance


class Moments(NamedTuple):
    """Expected sums over the steps of sequences: what parameters are asked of states."""

    w: np.ndarray  # sum <z z'>
    s: np.ndarray  # sum <z x'>
    g: np.ndarray  # sum <r r'> over the observed cells of each column
    c: np.ndarray  # sum y <r'>
    n: np.ndarray
    yy: np.ndarray


def moments(y, u, v, means, covariance):
    """The moments of one sequence whose states have these means (T, k) and covariance (T k, T k)."""
    (n, k), q, r, p = means.shape, u.shape[1], v.shape[1], y.shape[1]
    at = [slice(t * k, (t + 1) * k) for t in range(n)]
    total = Moments(
        np.zeros((k + q, k + q)), np.zeros((k + q, k)), np.zeros((p, k + r, k + r)), np.zeros((p, k + r)),
        np.zeros(p), np.zeros(p),
    )  # fmt: skip
    for t in range(1, n):
        z = np.concatenate([means[t - 1], u[t]])
        total.w[:] += np.outer(z, z)
        total.w[:k, :k] += covariance[at[t - 1], at[t - 1]]
        total.s[:] += np.outer(z, means[t])
        total.s[:k] += covariance[at[t - 1], at[t]]
    for t in range(n):
        x = np.concatenate([means[t], v[t]])
        for s in np.flatnonzero(~np.isnan(y[t])):
            total.g[s] += np.outer(x, x)
            total.g[s, :k, :k] += covariance[at[t], at[t]]
            total.c[s] += y[t, s] * x
            total.n[s] += 1
            total.yy[s] += y[t, s] ** 2
    return total


def entropy(covariance):
    """The entropy of a normal distribution, nats."""
    return 0.5 * np.linalg.slogdet(2 * np.pi * np.e * covariance)[1]


def posterior(u, alpha, gamma, a0, b0):
    """Expectations after an M step at moments, and the sum of the divergences of q(theta) from the prior."""
    k = u.s.shape[1]
    sig = np.linalg.inv(np.diag(alpha) + u.w)
    m = u.s.T @ sig
    kl = k / 2 * (np.trace(np.diag(alpha) @ sig) - len(alpha) - np.linalg.slogdet(np.diag(alpha) @ sig)[1])
    kl += 0.5 * np.trace(m @ np.diag(alpha) @ m.T)
    rho_c, rho_cc, rho, log_rho = [], [], [], []
    for g, c, n, yy, shape0, rate0 in zip(u.g, u.c, u.n, u.yy, a0, b0):
        precision = np.diag(gamma) + g
        inverse = np.linalg.inv(precision)
        mu = inverse @ c
        a, b = shape0 + n / 2, rate0 + 0.5 * (yy - c @ mu)
        kl += 0.5 * (np.trace(np.diag(gamma) @ inverse) - len(gamma) + np.linalg.slogdet(precision)[1])
        kl += -0.5 * np.log(gamma).sum() + 0.5 * a / b * mu @ np.diag(gamma) @ mu
        kl += a * np.log(b) - gammaln(a) - shape0 * np.log(rate0) + gammaln(shape0)
        kl += (a - shape0) * (psi(a) - np.log(b)) - (b - rate0) * a / b
        rho_c.append(a / b * mu)
        rho_cc.append(a / b * np.outer(mu, mu) + inverse)
        rho.append(a / b)
        log_rho.append(psi(a) - np.log(b))
    parts = (np.array(x) for x in (rho_c, rho_cc, rho, log_rho))
    return Expectations(m, m.T @ m + k * sig, *parts), kl


def log_joint(u, first, later, n_first, n_transitions, e, m0, v0):
    """E ln p(x, y | theta), nats, term by term, at moments, squares of first states and of those after others."""
    squares, sums = first
    k, prior = len(m0), np.linalg.inv(v0)
    value = -0.5 * n_first * np.linalg.slogdet(2 * np.pi * v0)[1]
    value -= 0.5 * (np.trace(prior @ squares) - 2 * m0 @ prior @ sums + n_first * m0 @ prior @ m0)
    value -= n_transitions * k / 2 * np.log(2 * np.pi)
    value -= 0.5 * (np.trace(later) - 2 * np.trace(e.m @ u.s) + np.trace(e.mm @ u.w))
    for s in range(len(u.n)):
        value += u.n[s] * 0.5 * (e.log_rho[s] - np.log(2 * np.pi)) - 0.5 * e.rho[s] * u.yy[s]
        value += e.rho_c[s] @ u.c[s] - 0.5 * np.trace(e.rho_cc[s] @ u.g[s])
    return value


def bound_with_free_covariance(y, x, gamma, n_steps=150):
    """The bound at convergence where the covariance Q of what moves states is learned, too; y (T,) has no gaps.

    Rows of A have the prior N(0, Q), and the inverse of Q a Wishart distribution of k + 1 degrees of freedom and mean 1
    (matrix normal Wishart). Noise has the prior Gamma(1, 1); `gamma` are precisions of C and of the offset. After each
    E step states go into a better basis, so that few steps suffice. x (T, k) are the means of states at the start.
    """
    (n, k), bound = x.shape, -np.inf
    covariance, u, v = np.eye(n * k), np.zeros((n, 0)), np.ones((n, 1))
    for _ in range(n_steps):
        blocks = covariance.reshape(n, k, n, k)
        of = moments(y[:, None], u, v, x, covariance)
        second = [np.outer(x[t], x[t]) + blocks[t, :, t] for t in range(n)]
        hidden = entropy(covariance)

        def after_m_step(basis, of=of, second=second, hidden=hidden):
            """The bound, and expectations that the next E step asks for."""
            whole = np.eye(k + 1)
            whole[:k, :k] = basis
            turned = Moments(
                basis @ of.w @ basis.T, basis @ of.s @ basis.T, (whole @ of.g[0] @ whole.T)[None],
                (whole @ of.c[0])[None], of.n, of.yy,
            )  # fmt: skip
            later = basis @ sum(second[1:]) @ basis.T
            value, moved = _matrix_normal_wishart(turned, later, n - 1)
            value += _normal_gamma(turned, gamma) + hidden + n * np.linalg.slogdet(basis)[1]
            value -= k / 2 * np.log(2 * np.pi) + 0.5 * np.trace(basis @ second[0] @ basis.T)
            return value, moved, turned

        def lost(flat, f=after_m_step):
            return -f(flat.reshape(k, k))[0]

        found = minimize(lost, np.eye(k).ravel(), method="BFGS", options={"maxiter": 5})
        value, (precision, link, squares), turned = after_m_step(found.x.reshape(k, k))
        e, _ = posterior(turned, np.ones(k), gamma, np.ones(1), np.ones(1))
        j = np.zeros((n, k, n, k))
        for t in range(n):
            j[t, :, t] += e.rho_cc[0][:k, :k] + (precision if t else np.eye(k)) + (squares if t < n - 1 else 0.0)
            if t:
                j[t, :, t - 1], j[t - 1, :, t] = -link, -link.T
        covariance = np.linalg.inv(j.reshape(n * k, n * k))
        x = (covariance @ (y[:, None] * e.rho_c[0, :k] - e.rho_cc[0][:k, k]).ravel()).reshape(n, k)
        if value - bound < 1e-6:
            return value
        bound = value
    return bound


def _matrix_normal_wishart(u, later, n):
    """ln evidence of n transitions at moments and squares of the states after them; <Q^-1>, <Q^-1 A>, <A' Q^-1 A>."""
    k = len(later)
    sig = np.linalg.inv(np.eye(k) + u.w)
    m, freedom, scale = u.s.T @ sig, k + 1, (k + 1) * np.eye(k) + later - u.s.T @ sig @ u.s
    value = -n * k / 2 * np.log(np.pi) + k / 2 * np.linalg.slogdet(sig)[1] + freedom / 2 * k * np.log(freedom)
    value -= (freedom + n) / 2 * np.linalg.slogdet(scale)[1]
    value += multigammaln((freedom + n) / 2, k) - multigammaln(freedom / 2, k)
    precision = (freedom + n) * np.linalg.inv(scale)
    return value, (precision, precision @ m, m.T @ precision @ m + k * sig)


def _normal_gamma(u, gamma):
    """ln evidence of one column at moments, under Gamma(1, 1)."""
    precision, a = np.diag(gamma) + u.g[0], 1 + u.n[0] / 2
    b = 1 + 0.5 * (u.yy[0] - u.c[0] @ np.linalg.solve(precision, u.c[0]))
    log_det = np.log(gamma).sum() - np.linalg.slogdet(precision)[1]
    return -u.n[0] / 2 * np.log(2 * np.pi) + 0.5 * log_det - a * np.log(b) + gammaln(a)


class LearnedFirst(NamedTuple):
    """q(mean, precision) of first states: mean m, weight kappa of it, freedom nu and scale S of the precision."""

    m: np.ndarray
    kappa: float
    nu: float
    scale: np.ndarray

    @classmethod
    def after(cls, prior, n, total, squares):
        """The posterior after n first states with this sum and this sum of squares."""
        kappa, at_zero = prior.kappa + n, prior.scale + prior.kappa * np.outer(prior.m, prior.m)
        m = (prior.kappa * prior.m + total) / kappa
        return cls(m, kappa, prior.nu + n, at_zero + squares - kappa * np.outer(m, m))

    @property
    def expected(self):
        """<L>, <ln|L|>, by the digamma functions of Bartlett's decomposition."""
        k = len(self.m)
        log_det = psi((self.nu - np.arange(k)) / 2).sum() + k * np.log(2) - np.linalg.slogdet(self.scale)[1]
        return self.nu * np.linalg.inv(self.scale), log_det

    def log_likelihood(self, n, total, squares):
        """<ln p(first states | mean, precision)> at their expected sums, nats."""
        k, (precision, log_det) = len(self.m), self.expected
        about = squares - np.outer(total, self.m) - np.outer(self.m, total) + n * np.outer(self.m, self.m)
        return n * (0.5 * log_det - k / 2 * np.log(2 * np.pi) - 0.5 * k / self.kappa) - 0.5 * np.trace(
            precision @ about
        )

    def kl(self, prior):
        """The divergence from a prior: of the mean given the precision, averaged, and of Wishart distributions."""
        k, (precision, log_det) = len(self.m), self.expected
        ratio = prior.kappa / self.kappa
        value = 0.5 * (
            k * (ratio - 1 - np.log(ratio)) + prior.kappa * (self.m - prior.m) @ precision @ (self.m - prior.m)
        )

        def log_density(nu, scale):
            """<ln Wishart(L; nu, S^-1)> under this distribution."""
            base = nu / 2 * np.linalg.slogdet(scale)[1] - nu * k / 2 * np.log(2) - multigammaln(nu / 2, k)
            return base + (nu - k - 1) / 2 * log_det - 0.5 * np.trace(scale @ precision)

        return value + log_density(self.nu, self.scale) - log_density(prior.nu, prior.scale)
