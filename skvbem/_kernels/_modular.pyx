"""Linear algebra modulo the prime 2**31 - 1, in which nothing rounds."""

from libc.stdint cimport intptr_t, uint64_t


cdef extern from *:
    """
    #include "_lanes.h"

    #define SKVBEM_PRIME 2147483647ULL

    /* x modulo 2^31 - 1 for any 64-bit x, up to one multiple too many */
    static inline uint64_t skvbem_folded(uint64_t x) {
        x = (x & SKVBEM_PRIME) + (x >> 31);
        return (x & SKVBEM_PRIME) + (x >> 31);
    }

    /* target += factor * source, residues below 2^31; both factors fit 32 bits, so that the product vectorizes */
    SKVBEM_CLONES
    static void skvbem_add_multiple(intptr_t n, uint64_t factor, const uint64_t *restrict source,
                                    uint64_t *restrict target) {
        for (intptr_t k = 0; k < n; k++)
            target[k] = skvbem_folded(target[k] + (uint64_t) (uint32_t) factor * (uint32_t) source[k]);
    }
    """
    uint64_t skvbem_folded(uint64_t x) nogil
    void skvbem_add_multiple(intptr_t n, uint64_t factor, const uint64_t* source, uint64_t* target) nogil


cdef uint64_t PRIME = 2147483647


cdef uint64_t inverse(uint64_t x) noexcept nogil:
    """x to the power of the prime less 2."""
    cdef uint64_t result = 1, power = PRIME - 2
    while power:
        if power & 1:
            result = result * x % PRIME
        x = x * x % PRIME
        power >>= 1
    return result


def rank(uint64_t[:, ::1] matrix):
    """The rank of a matrix of residues modulo 2**31 - 1, by elimination.

    Parameters
    ----------
    matrix : (n, m) IN, changed
    """
    cdef Py_ssize_t n = matrix.shape[0], m = matrix.shape[1], found = 0, column, row, k
    cdef uint64_t factor, swap, leading
    with nogil:
        for column in range(m):
            for row in range(found, n):
                matrix[row, column] %= PRIME
                if matrix[row, column]:
                    break
            else:
                continue
            if row != found:
                for k in range(column, m):
                    swap = matrix[row, k]
                    matrix[row, k] = matrix[found, k]
                    matrix[found, k] = swap
            leading = inverse(matrix[found, column])
            for row in range(found + 1, n):
                factor = matrix[row, column] % PRIME
                if factor:
                    factor = PRIME - factor * leading % PRIME
                    skvbem_add_multiple(m - column, factor, &matrix[found, column], &matrix[row, column])
            found += 1
            if found == n:
                break
    return found
