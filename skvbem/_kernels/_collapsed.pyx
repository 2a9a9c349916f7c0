"""Expected ln Gamma of sums of independent counts: the Bayesian Dirichlet score averaged over hidden states.

A count is a known part and a sum R of independent Binomial(weight, p), one for each distinct row. The distribution of R
is found by convolution, on the window that holds its mass. Where its variance is so large that windows would be long,
eight moments say as much: the terms of their series about the mean m, of order Var(R)^(k/2) / m^(k - 1), are then below
rounding from the ninth on.
"""

from libc.math cimport fabs, log as ln
from libc.stdint cimport int64_t, intptr_t
from libc.stdlib cimport free, malloc


cdef extern from "_convolution.h" nogil:
    ctypedef struct skvbem_window:
        int64_t first
        intptr_t length
        double* mass
        double lost
    skvbem_window skvbem_poisson_binomial(intptr_t n, const double* p, const double* weight, double negligible)
    void skvbem_logs(intptr_t n, double a, double* logs)
    void skvbem_log_gamma_digamma(intptr_t n, const double* x, double* log_gamma, double* digamma)
    double skvbem_log_rising(double a, double n, double log_gamma_a, double log_gamma_sum)


# From this variance on, moments replace the window, which would be longer than 1 800.
cdef double LARGE_VARIANCE = 1e4
# Mass that may be cut off each tail of a distribution each time two are convolved.
cdef double NEGLIGIBLE = 1e-20


cdef double log_rising(double a, double n) noexcept nogil:
    cdef double arguments[2]
    cdef double of[2]
    cdef double unused[2]
    if n == 0.0:
        return 0.0
    arguments[0], arguments[1] = a, a + n
    skvbem_log_gamma_digamma(2, arguments, of, unused)
    return skvbem_log_rising(a, n, of[0], of[1])


cdef void central_moments(Py_ssize_t n, const double* p, const double* weight, double* m) noexcept nogil:
    """m[1] the mean of a sum of binomials, m[2] ... m[8] its central moments, of the last two the leading terms."""
    cdef double k2 = 0.0, k3 = 0.0, k4 = 0.0, k5 = 0.0, k6 = 0.0, v, skew
    cdef Py_ssize_t i
    m[1] = 0.0
    for i in range(n):
        v, skew = p[i] * (1.0 - p[i]), 1.0 - 2.0 * p[i]
        m[1] += weight[i] * p[i]
        k2 += weight[i] * v
        k3 += weight[i] * v * skew
        k4 += weight[i] * v * (1.0 - 6.0 * v)
        k5 += weight[i] * v * skew * (1.0 - 12.0 * v)
        k6 += weight[i] * v * (1.0 - 30.0 * v + 120.0 * v * v)
    m[2], m[3] = k2, k3
    m[4] = k4 + 3.0 * k2 * k2
    m[5] = k5 + 10.0 * k3 * k2
    m[6] = k6 + 15.0 * k4 * k2 + 10.0 * k3 * k3 + 15.0 * k2 * k2 * k2
    m[7] = 105.0 * k3 * k2 * k2
    m[8] = 105.0 * k2 * k2 * k2 * k2 + 210.0 * k4 * k2 * k2


cdef double log_gamma_beyond(double x, const double* m) noexcept nogil:
    """E ln Gamma(x + R - m[1]) - ln Gamma(x): sum of m[k] / k! times the k-th derivative."""
    cdef double total = 0.0, power = x, sign = 1.0
    cdef int k
    for k in range(2, 9):
        # psi^(k - 1)(x) / k!, from Stirling's series
        total += sign * m[k] / power * (1.0 / (k * (k - 1)) + 1.0 / (2.0 * k * x) + 1.0 / (12.0 * x * x))
        power *= x
        sign = -sign
    return total


cdef double log_beyond(double x, const double* m) noexcept nogil:
    """E ln(x + R - m[1]) - ln x."""
    cdef double total = 0.0, power = x
    cdef int k
    for k in range(2, 9):
        power *= -x
        total += m[k] / (k * power)
    return total


def expected_log_rising(const long long[::1] starts, const double[::1] p, const double[::1] weight,
                        const long long[::1] source, const double[::1] a, const double[::1] known,
                        double[::1] rising, double[:, ::1] log):
    """Fill expectations of each target; return what cutting tails and series may have changed in all `rising` together.

    Parameters
    ----------
    starts : (n_sources + 1,) IN, where the items of each random count begin
    p, weight : (n_items,) IN, 0 < p < 1 and whole numbers: the count R is the sum of Binomial(weight, p) over its items
    source : (n_targets,) IN, ascending, which random count each target has
    a, known : (n_targets,) IN, a > 0; N = known + R
    rising : (n_targets,) OUT, E[ln Gamma(a + N) - ln Gamma(a)]
    log : (2, n_targets) OUT, E[ln(a + N)] and E[ln(a + N + 1)]
    """
    cdef Py_ssize_t target, k, room = 0
    cdef long long of = -1
    cdef double error = 0.0, total, above, reached, most, x
    cdef double m[9]
    cdef double* logs = NULL
    cdef skvbem_window window
    cdef bint failed = False
    window.mass = NULL
    with nogil:
        for target in range(source.shape[0]):
            if source[target] != of:
                of = source[target]
                free(window.mass)
                window.mass = NULL
                central_moments(starts[of + 1] - starts[of], &p[0] + starts[of], &weight[0] + starts[of], m)
                if m[2] <= LARGE_VARIANCE:
                    window = skvbem_poisson_binomial(
                        starts[of + 1] - starts[of], &p[0] + starts[of], &weight[0] + starts[of], NEGLIGIBLE)
                    if window.mass == NULL:
                        failed = True
                        break
            if window.mass == NULL:
                x = a[target] + known[target] + m[1]
                rising[target] = log_rising(a[target], known[target] + m[1]) + log_gamma_beyond(x, m)
                log[0, target] = ln(x) + log_beyond(x, m)
                log[1, target] = ln(x + 1.0) + log_beyond(x + 1.0, m)
                error += 12.0 * (m[2] / x) ** 5 / (x * x * x * x)
                continue
            if window.length >= room:
                free(logs)
                room = 2 * window.length + 1
                logs = <double*> malloc(room * sizeof(double))
                if logs == NULL:
                    failed = True
                    break
            skvbem_logs(window.length + 1, a[target] + known[target] + window.first, logs)
            reached = log_rising(a[target], known[target] + window.first)
            # ln rising(first + k) = ln rising(first) + sum of ln(a + known + first + j), j < k
            total, above = 0.0, 0.0
            log[0, target], log[1, target] = 0.0, 0.0
            for k in range(window.length):
                total += window.mass[k] * above
                above += logs[k]
                log[0, target] += window.mass[k] * logs[k]
                log[1, target] += window.mass[k] * logs[k + 1]
            rising[target] = reached + total
            most = 0.0
            for k in range(starts[of], starts[of + 1]):
                most += weight[k]
            error += window.lost * (fabs(reached) + fabs(log_rising(a[target], known[target] + most)))
        free(window.mass)
        free(logs)
    if failed:
        raise MemoryError("no room for the distribution of a count")
    return error
