cdef void natural_and_penalty(
        Py_ssize_t n_rows, Py_ssize_t n_lanes, const long long* starts, const double* offset,
        const double* log_gamma_offset, const double* row_offset, const double* log_gamma_row_offset, bint density,
        const double* counts, double* scratch, double* natural, double* exp_natural,
        double* penalty) noexcept nogil
