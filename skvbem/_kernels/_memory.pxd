"""Room for numbers that a loop works with."""

from libc.stdint cimport intptr_t
from libc.stdlib cimport malloc


cdef inline double* room_for(intptr_t n) except NULL:
    """Room for so many doubles, to be freed by whoever asks; MemoryError where there is none."""
    cdef double* room = <double*> malloc((n if n > 0 else 1) * sizeof(double))
    if room == NULL:
        raise MemoryError
    return room
