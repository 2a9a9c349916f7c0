"""From log likelihoods of rows under components to responsibilities, in place."""

from libc.stdint cimport intptr_t


cdef extern from "_mixture.h" nogil:
    double skvbem_responsibilities(intptr_t n_components, intptr_t n_rows, const double* log_weight,
                                   const double* weight, double* joint)


def responsibilities(const double[:, ::1] log_weights, const double[::1] weight, double[:, :, ::1] joint,
                     double[::1] log_z):
    """Turn log likelihoods into responsibilities times the weights of rows, and add up ln Z of the rows.

    Parameters
    ----------
    log_weights : (n_lanes, n_components) IN
        Expected log weights of the components; they need not be normalized.
    weight : (n_rows,) IN
        How often each row counts.
    joint : (n_lanes, n_components, n_rows) IN and OUT
    log_z : (n_lanes,) IN and OUT
        Nats are added. -inf for a row that no component can make; its responsibilities are 0.
    """
    cdef Py_ssize_t lane
    if joint.shape[2] == 0:
        return
    with nogil:
        for lane in range(joint.shape[0]):
            log_z[lane] += skvbem_responsibilities(joint.shape[1], joint.shape[2], &log_weights[lane, 0],
                                                   &weight[0], &joint[lane, 0, 0])
