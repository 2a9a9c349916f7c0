"""Transfers of rows between normal components, judged by the evidence of rows of known components.

Priors are Normal-Wishart, a precision matrix for each component.
"""

from libc.math cimport NAN
from libc.stdint cimport int64_t, intptr_t
from libc.stdlib cimport free

from skvbem._kernels._memory cimport room_for


cdef extern from "_partitions.h" nogil:
    ctypedef struct skvbem_components:
        intptr_t d, n_components
        const double *precision
        const double *freedom
        const double *mean
        const double *scale
    intptr_t skvbem_components_size(intptr_t n_components, intptr_t d)
    void skvbem_place_components(skvbem_components* of, double* room)
    intptr_t skvbem_transfer_rows(skvbem_components* of, intptr_t n_rows, const double* rows, const double* weight,
                                  const int64_t* order, intptr_t n_free, double least, intptr_t n_sweeps,
                                  int64_t* labels)
    double skvbem_log_evidence_of_components(const skvbem_components* of)


def transfer(const double[::1] precision, const double[::1] freedom, const double[:, ::1] mean,
             const double[:, :, ::1] scale, const double[:, ::1] rows, const double[::1] weight,
             const int64_t[::1] order, double least, intptr_t n_sweeps, int64_t[::1] labels):
    """Move rows, one by one, to the component where rows and labels together are most probable.

    Parameters
    ----------
    precision, freedom : (K,) IN
        Weights of means, and degrees of freedom, of the prior.
    mean : (K, D) IN
    scale : (K, D, D) IN
        Lower triangles count.
    rows : (N, D) IN
    weight : (N,) IN
        > 0.
    order : (M,) IN
        Rows that may move, in the order in which they are asked.
    least : double
        Gain, nats, up to which a row stays where it is.
    n_sweeps : int
        At most.
    labels : (N,) IN and OUT

    Returns
    -------
    float
        ln p(rows, labels), but for what does not hang on labels, nats; NaN where a scale is not positive.
    """
    cdef skvbem_components of
    cdef intptr_t n
    cdef double evidence
    of.n_components, of.d = mean.shape[0], mean.shape[1]
    if not labels.shape[0] or not order.shape[0]:
        return NAN
    of.precision, of.freedom, of.mean, of.scale = &precision[0], &freedom[0], &mean[0, 0], &scale[0, 0, 0]
    cdef double* room = room_for(skvbem_components_size(of.n_components, of.d))
    with nogil:
        skvbem_place_components(&of, room)
        n = skvbem_transfer_rows(&of, rows.shape[0], &rows[0, 0], &weight[0], &order[0], order.shape[0], least,
                                 n_sweeps, &labels[0])
        evidence = skvbem_log_evidence_of_components(&of) if n >= 0 else NAN
        free(room)
    return evidence
