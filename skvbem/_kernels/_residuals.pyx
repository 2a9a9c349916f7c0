"""What rows of sequences add to the log density at given states, from residuals, in memory that does not grow."""

from libc.stdint cimport intptr_t
from libc.stdlib cimport free

from skvbem._kernels._memory cimport room_for


cdef extern from "_residuals.h" nogil:
    enum:
        SKVBEM_RESIDUAL_ROWS
    ctypedef struct skvbem_residual_rows:
        intptr_t n_columns, n_groups, n_states, n_output_inputs, n_inputs
        const double* output
        const double* precision
        const double* constant
        const long long* group
        const double* spread
        const double* transition
        const double* transition_spread
        const double* measured
        const double* observed
        const double* regressors
        const double* inputs
        const double* follows
    intptr_t skvbem_residual_scratch(const skvbem_residual_rows* run)
    void skvbem_some_terms(const skvbem_residual_rows* run, intptr_t first, intptr_t n, double* scratch, double* terms)


def terms_of_rows(const double[:, ::1] output, const double[::1] precision, const double[::1] constant,
                  const long long[::1] group, const double[:, :, ::1] spread, const double[:, ::1] transition,
                  const double[:, ::1] transition_spread, const double[:, ::1] measured,
                  const double[:, ::1] observed, const double[:, ::1] regressors, const double[:, ::1] inputs,
                  const double[::1] follows, double[::1] terms):
    """Fill in, of each row, ln p(y, x | x of the row before, inputs), nats, but for k/2 ln 2 pi of the states x.

    Parameters
    ----------
    output, precision, constant : (n_columns, d), (n_columns,), (n_columns,) IN
        Means of coefficients of regressors (states, inputs of the measurements), expected precisions of the noise,
        and what a cell adds besides squares.
    group : (n_columns,) IN
        Which of the groups of columns, observed together, each is in.
    spread : (n_groups, d, d) IN
        Covariances of coefficients in units of the noise, summed over the columns of a group.
    transition, transition_spread : (n_states, e), (e, e) IN
        Means of coefficients of (states before, inputs), and covariances summed over states.
    measured : (n_rows, n_columns) IN
    observed : (n_rows, n_groups) IN, 0 or 1; of no rows: all cells are observed
    regressors, inputs : (n_rows, d), (n_rows, e - n_states) IN
    follows : (n_rows,) IN, 0 where a sequence begins, 1 elsewhere; of no rows: there is one sequence
    terms : (n_rows,) OUT
        A row where a sequence begins has the measurements' part alone.
    """
    cdef Py_ssize_t first = 0, n, n_rows = regressors.shape[0]
    cdef skvbem_residual_rows run
    cdef double* scratch
    cdef double nothing = 0.0
    if n_rows == 0:
        return
    run.n_columns, run.n_groups, run.n_states = output.shape[0], spread.shape[0], transition.shape[0]
    run.n_output_inputs, run.n_inputs = regressors.shape[1] - run.n_states, inputs.shape[1]
    run.output, run.precision, run.constant, run.group = &output[0, 0], &precision[0], &constant[0], &group[0]
    run.spread, run.transition = &spread[0, 0, 0], &transition[0, 0]
    run.transition_spread = &transition_spread[0, 0]
    run.measured, run.regressors = &measured[0, 0], &regressors[0, 0]
    run.observed = &observed[0, 0] if observed.shape[0] > 0 else NULL
    run.inputs = &inputs[0, 0] if run.n_inputs > 0 else &nothing
    run.follows = &follows[0] if follows.shape[0] > 0 else NULL
    scratch = room_for(skvbem_residual_scratch(&run))
    with nogil:
        while first < n_rows:
            n = min(n_rows - first, SKVBEM_RESIDUAL_ROWS)
            skvbem_some_terms(&run, first, n, scratch, &terms[0])
            first += n
        free(scratch)
