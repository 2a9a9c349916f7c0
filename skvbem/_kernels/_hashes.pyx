"""Hashes of rows of numbers, which their values decide."""

from libc.stdint cimport intptr_t, uint64_t
from libc.string cimport memcpy


cdef uint64_t MULTIPLIER = 0x9E3779B97F4A7C15, NOT_A_NUMBER = 0x7FF8000000000000


cdef inline uint64_t _mixed(uint64_t bits) noexcept nogil:
    """Bits each of which depends on every bit of those given."""
    bits = (bits ^ (bits >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    bits = (bits ^ (bits >> 27)) * <uint64_t> 0x94D049BB133111EB
    return bits ^ (bits >> 31)


def add_floats(const double[:, :] table, uint64_t[::1] hashes):
    """Continue hashes of rows by columns of floats: -0.0 is 0.0, and there is one NaN.

    Parameters
    ----------
    table : (n_rows, n_columns) IN
    hashes : (n_rows,) IN and OUT
    """
    cdef intptr_t i, j
    cdef double value
    cdef uint64_t bits, hashed
    with nogil:
        for i in range(table.shape[0]):
            hashed = hashes[i]
            for j in range(table.shape[1]):
                value = table[i, j] + 0.0
                bits = NOT_A_NUMBER
                if value == value:
                    memcpy(&bits, &value, sizeof(double))
                hashed = hashed * MULTIPLIER + _mixed(bits) + MULTIPLIER
            hashes[i] = hashed


def mix(const uint64_t[::1] hashes, uint64_t[::1] out):
    """Fill hashes each of whose bits depends on every bit of those given.

    Parameters
    ----------
    hashes : (N,) IN
    out : (N,) OUT
    """
    cdef intptr_t i
    with nogil:
        for i in range(hashes.shape[0]):
            out[i] = _mixed(hashes[i])
