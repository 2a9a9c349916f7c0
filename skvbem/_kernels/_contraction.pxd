from libc.stdint cimport uint64_t


cdef extern from "_random.h" nogil:
    ctypedef struct skvbem_stream:
        uint64_t s[4]
    skvbem_stream skvbem_load(const uint64_t* streams, Py_ssize_t lane, Py_ssize_t n_lanes)
    void skvbem_store(const skvbem_stream* stream, uint64_t* streams, Py_ssize_t lane, Py_ssize_t n_lanes)
    void skvbem_multinomial(skvbem_stream* stream, double n, Py_ssize_t n_cells, double* p, Py_ssize_t stride,
                            double total)


cdef struct row_factors:
    double** tables  # per factor of one plan: logarithms (n_lanes, n_cells, n_rows), then what is expected of them
    Py_ssize_t n_rows
    Py_ssize_t first_context  # whose row is the first


cdef class Contraction:
    cdef readonly dict arrays  # what it was made from, by name
    cdef readonly Py_ssize_t n_cells, n_table_cells, n_contexts, n_blocks
    cdef readonly Py_ssize_t scratch_cells, scratch_separator, scratch_factors, most_slots
    cdef int unscaled_power  # tables are scaled when their largest entry lies outside 2**-unscaled_power ... 1
    # per plan
    cdef const long long[::1] plan_context, plan_clique, plan_slot, plan_code
    # per clique
    cdef const long long[::1] clique_cells, clique_at, clique_slot, separator_cells, separator_at
    cdef const long long[::1] out_map, in_map, parent
    cdef const int[::1] maps
    # per factor of contexts
    cdef const long long[::1] plan_factor, factor_clique, factor_cells, factor_map
    # per slot
    cdef const long long[::1] slot_table, slot_arity, slot_factor, slot_codes, slot_mass
    cdef const int[::1] factors
    cdef const double[::1] mass
    # per context
    cdef const unsigned short[::1] narrow_codes
    cdef const int[::1] wide_codes
    cdef bint wide
    cdef const double[::1] weight
    # per block of contexts
    cdef const long long[::1] block_context, block_plan, block_table, block_at
    cdef const double[::1] complete_counts

    cdef Py_ssize_t code(self, Py_ssize_t at) noexcept nogil
    cdef void make_tables(self, Py_ssize_t n_lanes, const double* exp_natural, double* tables,
                          double* log_scale) noexcept nogil
    cdef double scale_undone(self, Py_ssize_t plan, Py_ssize_t context, Py_ssize_t lane, Py_ssize_t n_lanes,
                             const double* exp_natural) noexcept nogil
    cdef double context_in_logs(self, Py_ssize_t plan, Py_ssize_t context, Py_ssize_t lane, Py_ssize_t n_lanes,
                                const double* natural, const double* log_factors, double* beliefs,
                                Py_ssize_t stride) noexcept nogil
    cdef void gather_factors(self, Py_ssize_t plan, Py_ssize_t context, Py_ssize_t n_lanes, const row_factors* given,
                             double* log_factors, double* factors, double* largest, double* psi) noexcept nogil
    cdef void spread_factors(self, Py_ssize_t plan, Py_ssize_t context, Py_ssize_t n_lanes, const row_factors* given,
                             double* factors, const double* psi) noexcept nogil
    cdef void run_contexts(self, Py_ssize_t block, Py_ssize_t n_lanes, const double* natural, const double* exp_natural,
                           const double* tables, const row_factors* given, uint64_t* streams, double* expected,
                           double* log_z, double* row_log_z, double* beliefs, Py_ssize_t first_context,
                           Py_ssize_t last_context) noexcept nogil
    cdef void run_rows(self, Py_ssize_t block, Py_ssize_t plan, Py_ssize_t n_lanes, const double* natural,
                       const double* exp_natural, const double* tables, const row_factors* given, double* expected,
                       double* log_z, Py_ssize_t first_context, Py_ssize_t last_context) noexcept nogil
    cdef void draw_states(self, Py_ssize_t plan, double weight, Py_ssize_t lane, Py_ssize_t n_lanes, double* psi,
                          skvbem_stream* stream, double* separator) noexcept nogil
    cdef void add_counts(self, Py_ssize_t block, Py_ssize_t n_lanes, const double* expected,
                         double* counts) noexcept nogil
