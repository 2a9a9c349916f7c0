"""From log likelihoods of rows under components to responsibilities, or to components drawn, in place."""

from libc.stdint cimport intptr_t, uint64_t


cdef extern from "_mixture.h" nogil:
    double skvbem_responsibilities(intptr_t n_components, intptr_t n_rows, const double* log_weight,
                                   const double* weight, double* joint)
    ctypedef struct skvbem_stream:
        pass
    skvbem_stream skvbem_load(const uint64_t* streams, intptr_t lane, intptr_t n_lanes)
    void skvbem_store(const skvbem_stream* stream, uint64_t* streams, intptr_t lane, intptr_t n_lanes)
    double skvbem_draw_components(intptr_t n_components, intptr_t n_rows, const double* log_weight,
                                  const double* weight, skvbem_stream* stream, double* joint)


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


def draw(const double[:, ::1] log_weights, const double[::1] weight, uint64_t[:, ::1] streams,
         double[:, :, ::1] joint, double[::1] log_z):
    """Turn log likelihoods into counts of components drawn from the responsibilities, and add up ln Z of the rows.

    Parameters
    ----------
    log_weights : (n_lanes, n_components) IN
        As in `responsibilities`.
    weight : (n_rows,) IN
        How often each row counts, a whole number: so often a component is drawn for it.
    streams : (4, n_lanes) IN and OUT
        As in `skvbem._kernels._random`.
    joint : (n_lanes, n_components, n_rows) IN and OUT
    log_z : (n_lanes,) IN and OUT
        Nats are added.
    """
    cdef Py_ssize_t lane, n_lanes = joint.shape[0]
    cdef skvbem_stream stream
    if joint.shape[2] == 0:
        return
    with nogil:
        for lane in range(n_lanes):
            stream = skvbem_load(&streams[0, 0], lane, n_lanes)
            log_z[lane] += skvbem_draw_components(joint.shape[1], joint.shape[2], &log_weights[lane, 0], &weight[0],
                                                  &stream, &joint[lane, 0, 0])
            skvbem_store(&stream, &streams[0, 0], lane, n_lanes)
