"""Normal chains of vectors whose joint precision J is block tridiagonal, as one block Cholesky factorization.

J_tt = block of the step's pattern + (first step ? precision of first states : I) + (last step ? 0 : squares), and
J_{t, t-1} = -link. Forward D_t = J_tt - link D_{t-1}^-1 link', gain K_t = D_t^-1 link'; backward V_t = D_t^-1 +
K_t V_{t+1} K_t', the covariance of step t, and K_t V_{t+1}, that of steps t and t + 1. These depend on lengths and
patterns alone: sequences with the same ones have one *shape*, and share them. Where the recursion repeats itself it is
not gone through any more, and steps share a *slot* of D^-1 and K: D -> J - link D^-1 link' is a contraction.
"""

from libc.stdint cimport intptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy


# Share of a diagonal entry of J below which a pivot has lost half of its digits.
cdef double LOST = 1.5e-8


cdef extern from "_block_chain.h" nogil:
    ctypedef struct skvbem_block_chain:
        const long long* pattern
        const double* blocks
        const double* first
        const double* link
        const double* squares
        double tolerance
        double lost
    ctypedef struct skvbem_front:
        double* d
        double* before
        double* gain
        double log_det
        int repeats
    ctypedef struct skvbem_back:
        double* v
        double* newer
        double* crossed
    intptr_t skvbem_forward_blocks(intptr_t k, const skvbem_block_chain* chain, intptr_t a, intptr_t b, intptr_t start,
                                   intptr_t end, intptr_t n_slots, long long* slot, double* inverse, double* gain,
                                   double* log_det, skvbem_front* front, double* root)
    int skvbem_back_blocks(intptr_t k, const skvbem_block_chain* chain, intptr_t a, intptr_t b, intptr_t start,
                           intptr_t end, const long long* slot, const double* inverse, const double* gain,
                           double weight, double* of_pattern, double* sums, double* marginal, skvbem_back* back)
    int skvbem_eliminate(intptr_t k, intptr_t a, intptr_t start, intptr_t end, const long long* slot,
                         const double* gain, const double* before, double* x, intptr_t stride)
    int skvbem_put_back(intptr_t k, intptr_t b, intptr_t start, intptr_t end, const long long* slot,
                        const double* inverse, const double* gain, double* x, intptr_t stride, const double* noise,
                        double* room)
    ctypedef struct skvbem_sequences:
        intptr_t k
        intptr_t p
        intptr_t nz
        intptr_t nr
        intptr_t n_patterns
        const long long* pattern
        const unsigned char* seen
        const double* measured
        const double* inputs
        const double* outputs
        const double* mean
        const double* linear
    ctypedef struct skvbem_lane:
        const double* transition
        const double* squares
        const double* spread
        const double* output
        const double* precision
        const double* blocks
        const double* spreads
        const double* constant
    ctypedef struct skvbem_products:
        double* before
        double* steps
        double* by_pattern
        double* total
    void skvbem_linear_terms(const skvbem_sequences* of_all, const skvbem_lane* lane, intptr_t a, intptr_t b, double* x)
    double skvbem_residuals(const skvbem_sequences* of_all, const skvbem_lane* lane, const double* first, intptr_t a,
                            intptr_t b, const double* x, double* z)
    void skvbem_away(intptr_t k, intptr_t n, const long long* slot, const double* inverse, double* noise, double* root)
    void skvbem_roots(const skvbem_sequences* of_all, const skvbem_lane* lane, const double* first, double* roots,
                      double* work)
    double skvbem_forward_roots(intptr_t k, const skvbem_block_chain* chain, const double* roots, intptr_t n_patterns,
                                intptr_t n, long long* slot, double* root, double* gain, double* work)
    void skvbem_put_back_by_roots(intptr_t k, intptr_t n, const double* root, const double* gain, double* x,
                                  const double* noise)
    void skvbem_add_products(const skvbem_sequences* of_all, intptr_t a, intptr_t b, const double* x, double* z,
                             skvbem_products* sums)


cdef double* _shared_out(Py_ssize_t k, skvbem_front* front, skvbem_back* back) except NULL:
    """Memory for recursions: what steps leave to each other, then room for a factor, (k, k), and for 2 k numbers."""
    cdef Py_ssize_t kk = k * k
    cdef double* memory = <double*> calloc(7 * kk + 2 * k, sizeof(double))
    if memory == NULL:
        raise MemoryError()
    front.d, front.before, front.gain = memory, memory + kk, memory + 2 * kk
    front.repeats = 0
    back.v, back.newer, back.crossed = memory + 3 * kk, memory + 4 * kk, memory + 5 * kk
    return memory


cdef skvbem_block_chain _chain(const long long[::1] pattern, const double[:, :, ::1] blocks,
                               const double[:, ::1] first, const double[:, ::1] link, const double[:, ::1] squares,
                               double tolerance):
    cdef skvbem_block_chain chain
    chain.pattern, chain.blocks, chain.first = &pattern[0], &blocks[0, 0, 0], &first[0, 0]
    chain.link, chain.squares, chain.tolerance = &link[0, 0], &squares[0, 0], tolerance
    chain.lost = 0.0
    return chain


def covariances(const long long[::1] pattern, const long long[::1] starts, const long long[::1] ends,
                const double[::1] weight, const double[:, :, ::1] blocks, const double[:, ::1] first,
                const double[:, ::1] link, const double[:, ::1] squares, double tolerance,
                long long[::1] slot, double[:, :, ::1] inverse, double[:, :, ::1] gain, double[::1] log_det,
                double[:, :, ::1] of_pattern, double[:, :, ::1] sums, double[:, :, ::1] marginal):
    """Factor the precision of each shape, and sum the covariances of its steps; slots used, -1 if nearly singular.

    Parameters
    ----------
    pattern : (n_rows,) IN
        Which of the blocks each row has.
    starts, ends : (n_shapes,) IN
        Rows of a sequence of each shape.
    weight : (n_shapes,) IN
        Weights of all sequences of the shape together.
    blocks : (n_patterns, k, k) IN
    first : (k, k) IN
        Precision of first states.
    link, squares : (k, k) IN
    tolerance : IN
        Share of its largest entry up to which a matrix repeats itself; never if negative.
    slot : (n_rows,) OUT
        Of the rows of shapes.
    inverse, gain : (n_slots, k, k) OUT
        D^-1 and K of each slot; as many as rows are enough.
    log_det : (n_shapes,) OUT
        ln|J|.
    of_pattern : (n_patterns, k, k) IN, OUT
        Sums of covariances of steps, by pattern.
    sums : (4, k, k) IN, OUT
        Of covariances of first steps, of steps before another, of steps after another, and of two successive steps.
    marginal : (n_rows, k, k) or (0, k, k) OUT
        Covariances of the rows of shapes.
    """
    cdef Py_ssize_t k = link.shape[0], shape, n_slots = 0, a, b
    cdef skvbem_block_chain chain
    cdef skvbem_front front
    cdef skvbem_back back
    cdef double* memory
    cdef double* kept = &marginal[0, 0, 0] if marginal.shape[0] else NULL
    if k == 0 or pattern.shape[0] == 0:
        return 0
    chain = _chain(pattern, blocks, first, link, squares, tolerance)
    chain.lost = LOST
    memory = _shared_out(k, &front, &back)
    with nogil:
        for shape in range(starts.shape[0]):
            log_det[shape] = 0.0
            a, b = starts[shape], ends[shape]
            if a < b and n_slots >= 0:
                n_slots = skvbem_forward_blocks(k, &chain, a, b, a, b, n_slots, &slot[0], &inverse[0, 0, 0],
                                                &gain[0, 0, 0], &log_det[shape], &front, memory + 6 * k * k)
                if n_slots >= 0:
                    skvbem_back_blocks(k, &chain, a, b, a, b, &slot[0], &inverse[0, 0, 0], &gain[0, 0, 0],
                                       weight[shape], &of_pattern[0, 0, 0], &sums[0, 0, 0], kept, &back)
    free(memory)
    return n_slots


def covariances_by_roots(const long long[::1] pattern, const unsigned char[:, ::1] seen, const long long[::1] starts,
                         const long long[::1] ends, const double[::1] weight, const double[:, ::1] output,
                         const double[::1] precision, const double[:, :, ::1] spreads, const double[:, ::1] spread,
                         const double[:, ::1] first, const double[:, ::1] link, long long[::1] slot,
                         double[:, :, ::1] inverse, double[:, :, ::1] gain, double[::1] log_det,
                         double[:, :, ::1] of_pattern, double[:, :, ::1] sums, double[:, :, ::1] marginal):
    """What `covariances` does, where J is nearly singular, by triangular factors of D; a slot for each row.

    Parameters
    ----------
    pattern, starts, ends, weight, first, link IN
        As of `covariances`.
    seen : (n_patterns, p) IN
        Which cells are observed.
    output, precision : (p, nr), (p,) IN
    spreads : (n_patterns, nr, nr) IN
        What squares of the output have beyond its mean, times precisions, of all observed columns.
    spread : (nz, nz) IN
        What squares of the transition have beyond its mean.
    slot, inverse, gain, log_det, of_pattern, sums, marginal OUT
        As of `covariances`.
    """
    cdef Py_ssize_t k = link.shape[0], kk = k * k, shape, t, a, b, i, j, m
    cdef double* kept = &marginal[0, 0, 0] if marginal.shape[0] else NULL
    cdef double total
    cdef skvbem_sequences of_all
    cdef skvbem_lane of_lane
    cdef skvbem_front front
    cdef skvbem_back back
    cdef skvbem_block_chain chain
    cdef double* shared = _shared_out(k, &front, &back)
    cdef double* roots = <double*> calloc((seen.shape[0] + 6) * kk, sizeof(double))
    cdef double* work = roots + (seen.shape[0] + 2) * kk
    if roots == NULL:
        free(shared)
        raise MemoryError()
    of_all.k, of_all.p, of_all.nz, of_all.nr = k, output.shape[0], spread.shape[0], output.shape[1]
    of_all.n_patterns, of_all.seen = seen.shape[0], &seen[0, 0]
    of_lane.spread, of_lane.output, of_lane.precision = &spread[0, 0], &output[0, 0], &precision[0]
    of_lane.spreads, chain.link, chain.tolerance = &spreads[0, 0, 0], &link[0, 0], -1.0
    with nogil:
        skvbem_roots(&of_all, &of_lane, &first[0, 0], roots, work)
        for shape in range(starts.shape[0]):
            log_det[shape] = 0.0
            a, b = starts[shape], ends[shape]
            if a == b:
                continue
            chain.pattern = &pattern[a]
            log_det[shape] = skvbem_forward_roots(k, &chain, roots, seen.shape[0], b - a, &slot[a], &inverse[a, 0, 0],
                                                  &gain[a, 0, 0], work)
            for t in range(a, b):  # the inverse of a root, and its product with its transpose
                slot[t] = t
                for j in range(k):
                    for i in range(k - 1, -1, -1):
                        total = 1.0 if i == j else 0.0
                        for m in range(i + 1, k):
                            total -= inverse[t, i, m] * work[m * k + j]
                        work[i * k + j] = total / inverse[t, i, i]
                for i in range(k):
                    for j in range(k):
                        total = 0.0
                        for m in range(k):
                            total += work[i * k + m] * work[j * k + m]
                        inverse[t, i, j] = total
            chain.pattern = &pattern[0]
            skvbem_back_blocks(k, &chain, a, b, a, b, &slot[0], &inverse[0, 0, 0], &gain[0, 0, 0], weight[shape],
                               &of_pattern[0, 0, 0], &sums[0, 0, 0], kept, &back)
    free(shared)
    free(roots)


def means(const long long[::1] starts, const long long[::1] ends, const long long[::1] first_row,
          const long long[::1] slot, const double[:, :, ::1] inverse, const double[:, :, ::1] gain,
          double[:, ::1] x):
    """Solve J x = h in place, for all sequences: their means.

    Parameters
    ----------
    starts, ends : (n_sequences,) IN
        Rows of each sequence.
    first_row : (n_sequences,) IN
        The first row of the sequence that the slots of its shape stand at.
    slot : (n_rows,) IN
    inverse, gain : (n_slots, k, k) IN
    x : (n_rows, at least k) IN, OUT
        h, in the first k columns.
    """
    cdef Py_ssize_t k = inverse.shape[1], stride = x.shape[1], n, a, b
    cdef skvbem_front front
    cdef skvbem_back back
    cdef double* memory
    if k == 0 or x.shape[0] == 0 or inverse.shape[0] == 0:
        return
    memory = _shared_out(k, &front, &back)
    with nogil:
        for n in range(starts.shape[0]):
            a, b = starts[n], ends[n]
            if a < b:
                skvbem_eliminate(k, 0, 0, b - a, &slot[first_row[n]], &gain[0, 0, 0], NULL, &x[a, 0], stride)
                skvbem_put_back(k, b - a, 0, b - a, &slot[first_row[n]], &inverse[0, 0, 0], &gain[0, 0, 0], &x[a, 0],
                                stride, NULL, memory + 7 * k * k)
    free(memory)


def states_by_pieces(const long long[::1] pattern, double weight, const double[:, :, ::1] blocks,
                     const double[:, ::1] first, const double[:, ::1] link, const double[:, ::1] squares,
                     double tolerance, long long[::1] slot, double[:, :, ::1] inverse, double[:, :, ::1] gain,
                     double[:, :, :, ::1] cuts, double[:, :, ::1] of_pattern, double[:, :, ::1] sums, double[:, ::1] x):
    """`covariances` and `means` of a sequence with memory for matrices of a piece of it; ln|J|, NaN if nearly singular.

    Forward, what one piece leaves to the next is kept; on the way back each is gone through forward again.

    Parameters
    ----------
    pattern : (n_rows,) IN
    weight : IN
    blocks : (n_patterns, k, k) IN
    first, link, squares : (k, k) IN
    tolerance : IN
    slot : (n_rows_of_a_piece,) OUT
    inverse, gain : (n_rows_of_a_piece, k, k) OUT
    cuts : (n_pieces, 2, k, k) OUT
        D and K of the step before each piece.
    of_pattern : (n_patterns, k, k) IN, OUT
    sums : (4, k, k) IN, OUT
    x : (n_rows, at least k) IN, OUT
        h, then means, in the first k columns.
    """
    cdef Py_ssize_t k = link.shape[0], kk = k * k, stride = x.shape[1], n = pattern.shape[0], size = slot.shape[0]
    cdef Py_ssize_t piece, start, end
    cdef intptr_t used = 0
    cdef skvbem_block_chain chain = _chain(pattern, blocks, first, link, squares, tolerance)
    cdef skvbem_front front
    cdef skvbem_back back
    cdef double* memory = _shared_out(k, &front, &back)
    chain.lost = LOST
    cdef double* root = memory + 6 * kk
    cdef double log_det = 0.0, again = 0.0
    # rows of a piece are numbered as those of the sequence
    cdef long long* of_row
    with nogil:
        for piece in range(cuts.shape[0]):
            start = piece * size
            end = min(start + size, n)
            of_row = &slot[0] - start
            memcpy(&cuts[piece, 0, 0, 0], front.d, kk * sizeof(double))
            memcpy(&cuts[piece, 1, 0, 0], front.gain, kk * sizeof(double))
            used = skvbem_forward_blocks(k, &chain, 0, n, start, end, 0, of_row, &inverse[0, 0, 0], &gain[0, 0, 0],
                                         &log_det, &front, root)
            if used < 0:
                break
            skvbem_eliminate(k, 0, start, end, of_row, &gain[0, 0, 0], &cuts[piece, 1, 0, 0], &x[0, 0], stride)
        if used >= 0:
            for piece in range(cuts.shape[0] - 1, -1, -1):
                start = piece * size
                end = min(start + size, n)
                of_row = &slot[0] - start
                if piece < cuts.shape[0] - 1:
                    memcpy(front.d, &cuts[piece, 0, 0, 0], kk * sizeof(double))
                    memcpy(front.gain, &cuts[piece, 1, 0, 0], kk * sizeof(double))
                    skvbem_forward_blocks(k, &chain, 0, n, start, end, 0, of_row, &inverse[0, 0, 0],
                                          &gain[0, 0, 0], &again, &front, root)
                skvbem_back_blocks(k, &chain, 0, n, start, end, of_row, &inverse[0, 0, 0], &gain[0, 0, 0], weight,
                                   &of_pattern[0, 0, 0], &sums[0, 0, 0], NULL, &back)
                skvbem_put_back(k, n, start, end, of_row, &inverse[0, 0, 0], &gain[0, 0, 0], &x[0, 0], stride, NULL,
                                memory + 7 * kk)
    free(memory)
    return log_det if used >= 0 else float("nan")


cdef const double* _begin(const double[:, ::1] matrix) noexcept:
    """The first number of a matrix, NULL if it has none."""
    return &matrix[0, 0] if matrix.shape[0] and matrix.shape[1] else NULL


cdef void _fill_blocks(Py_ssize_t k, const skvbem_sequences* of_all, const skvbem_lane* of_lane, const double* first,
                       double* linear, double* link, double* of_link, double* of_states) noexcept nogil:
    """The parts that states alone have of the matrices of a lane, and the linear term of first states."""
    cdef Py_ssize_t i, j, g
    for i in range(k):
        linear[i] = 0.0
        for j in range(k):
            linear[i] += first[i * k + j] * of_all.mean[j]
            link[i * k + j] = of_lane.transition[i * of_all.nz + j]
            of_link[i * k + j] = of_lane.squares[i * of_all.nz + j]
            for g in range(of_all.n_patterns):
                of_states[(g * k + i) * k + j] = of_lane.blocks[(g * of_all.nr + i) * of_all.nr + j]


def lanes(const long long[::1] pattern, const unsigned char[:, ::1] seen, const long long[::1] starts,
          const double[:, ::1] measured, const double[:, ::1] inputs, const double[:, ::1] outputs,
          const double[:, ::1] mean, const double[:, :, ::1] first, const double[:, :, ::1] transition,
          const double[:, :, ::1] squares, const double[:, :, ::1] spread, const double[:, :, ::1] output,
          const double[:, ::1] precision, const double[:, :, :, ::1] blocks, const double[:, :, :, ::1] spreads,
          const double[:, ::1] constant, double tolerance, double[:, :, ::1] noise, double[:, ::1] log_z,
          double[:, :, ::1] before, double[:, :, ::1] steps, double[:, :, :, ::1] by_pattern, double[:, :, ::1] total,
          double[:, :, ::1] at_first):
    """ln Z of each sequence at many natural parameters, constants of first states left out, and sums of drawn states.

    NaN where J is not definite. Sequences of which J is nearly singular go by roots.

    Parameters
    ----------
    pattern : (n_rows,) IN
    seen : (n_patterns, p) IN
        Which cells are observed.
    starts : (n_sequences + 1,) IN
    measured, inputs, outputs : (n_rows, p), (n_rows, n_inputs), (n_rows, n_output_inputs) IN
        Measurements, 0 where a cell is missing.
    mean, first : (n_lanes, k), (n_lanes, k, k) IN
        Mean and precision of first states.
    transition : (n_lanes, k, nz) IN
    squares, spread : (n_lanes, nz, nz) IN
        Of the transition, and what these have beyond those of its mean.
    output, precision : (n_lanes, p, nr), (n_lanes, p) IN
    blocks, spreads : (n_lanes, n_patterns, nr, nr) IN
        Of the observed columns of each pattern in units of their noise, and what these have beyond their means.
    constant : (n_lanes, n_patterns) IN
    tolerance : IN
    noise : (n_lanes, n_rows, k) or (0, n_rows, k) IN, OUT
        Normal numbers with which states are drawn; used up.
    log_z : (n_lanes, n_sequences) OUT
    before, steps, by_pattern, total : (n_lanes, nz, nz), (n_lanes, k, nz), (n_lanes, n_patterns, nr, nr), \
            (n_lanes, p, nr) IN, OUT
        Sums of z z', x z', r r' and y r' at drawn states, if there is noise.
    at_first : (n_lanes, k + 1, k) IN, OUT
        Sums of x x', and of x in the last row, at drawn first states, if there is noise.
    """
    cdef Py_ssize_t k = first.shape[1], kk = k * k, nz = transition.shape[2], nr = output.shape[2]
    cdef Py_ssize_t lane, n, a, b, i, j
    cdef Py_ssize_t longest = 0, n_sequences = starts.shape[0] - 1, n_lanes = transition.shape[0]
    cdef bint draws = noise.shape[0] > 0
    cdef skvbem_sequences of_all
    cdef skvbem_lane of_lane
    cdef skvbem_products sums
    cdef skvbem_block_chain chain
    cdef skvbem_front front
    cdef skvbem_back back
    cdef double* shared
    cdef double* room
    cdef long long* slot
    cdef double log_det
    cdef intptr_t used
    for n in range(n_sequences):
        longest = max(longest, starts[n + 1] - starts[n])
    if longest == 0:
        return
    shared = _shared_out(k, &front, &back)
    # D^-1 and K of each step, states and their means; blocks of states by pattern, link and squares; two rows; a root;
    # roots of blocks, of the first precision, and of the spread, with room for rotations
    room = <double*> calloc(2 * longest * (kk + k) + (2 * seen.shape[0] + 9) * kk + nz + nr + 2 * k, sizeof(double))
    slot = <long long*> calloc(longest, sizeof(long long))
    if room == NULL or slot == NULL:
        free(shared)
        free(room)
        free(slot)
        raise MemoryError()
    cdef double* inverse = room
    cdef double* gain = inverse + longest * kk
    cdef double* means = gain + longest * kk
    cdef double* drawn = means + longest * k
    cdef double* of_states = drawn + longest * k
    cdef double* link = of_states + seen.shape[0] * kk
    cdef double* of_link = link + kk
    cdef double* z = of_link + kk
    cdef double* linear = z + nz + nr
    cdef double* root = linear + k
    cdef double* roots = root + kk + k
    cdef double* work = roots + (seen.shape[0] + 2) * kk
    of_all.k, of_all.p, of_all.nz, of_all.nr, of_all.n_patterns = k, measured.shape[1], nz, nr, seen.shape[0]
    of_all.pattern, of_all.seen, of_all.measured = &pattern[0], &seen[0, 0], &measured[0, 0]
    of_all.inputs, of_all.outputs = _begin(inputs), _begin(outputs)
    of_all.linear = linear
    chain.blocks, chain.link, chain.squares = of_states, link, of_link
    chain.tolerance, chain.lost = tolerance, LOST
    with nogil:
        for lane in range(n_lanes):
            of_lane.transition, of_lane.squares = &transition[lane, 0, 0], &squares[lane, 0, 0]
            of_lane.spread, of_lane.output = &spread[lane, 0, 0], &output[lane, 0, 0]
            of_lane.precision, of_lane.blocks = &precision[lane, 0], &blocks[lane, 0, 0, 0]
            of_lane.spreads, of_lane.constant = &spreads[lane, 0, 0, 0], &constant[lane, 0]
            of_all.mean, chain.first = &mean[lane, 0], &first[lane, 0, 0]
            _fill_blocks(k, &of_all, &of_lane, chain.first, linear, link, of_link, of_states)
            for n in range(n_sequences):
                a, b = starts[n], starts[n + 1]
                log_z[lane, n] = 0.0
                if a == b:
                    continue
                chain.pattern = &pattern[a]
                front.repeats = 0
                log_det = 0.0
                used = skvbem_forward_blocks(k, &chain, 0, b - a, 0, b - a, 0, slot, inverse, gain, &log_det, &front,
                                             shared + 6 * kk)
                if used < 0:
                    skvbem_roots(&of_all, &of_lane, chain.first, roots, work)
                    log_det = skvbem_forward_roots(k, &chain, roots, seen.shape[0], b - a, slot, inverse, gain, work)
                skvbem_linear_terms(&of_all, &of_lane, a, b, means)
                skvbem_eliminate(k, 0, 0, b - a, slot, gain, NULL, means, k)
                if draws:
                    memcpy(drawn, means, (b - a) * k * sizeof(double))
                if used < 0:
                    skvbem_put_back_by_roots(k, b - a, inverse, gain, means, NULL)
                else:
                    skvbem_put_back(k, b - a, 0, b - a, slot, inverse, gain, means, k, NULL, shared + 7 * kk)
                log_z[lane, n] = skvbem_residuals(&of_all, &of_lane, chain.first, a, b, means, z) - 0.5 * log_det
                if draws:
                    if used < 0:
                        skvbem_put_back_by_roots(k, b - a, inverse, gain, drawn, &noise[lane, a, 0])
                    else:
                        skvbem_away(k, b - a, slot, inverse, &noise[lane, a, 0], root)
                        skvbem_put_back(k, b - a, 0, b - a, slot, inverse, gain, drawn, k, &noise[lane, a, 0],
                                        shared + 7 * kk)
                    sums.before, sums.steps = &before[lane, 0, 0], &steps[lane, 0, 0]
                    sums.by_pattern, sums.total = &by_pattern[lane, 0, 0, 0], &total[lane, 0, 0]
                    skvbem_add_products(&of_all, a, b, drawn, z, &sums)
                    for i in range(k):
                        at_first[lane, k, i] += drawn[i]
                        for j in range(k):
                            at_first[lane, i, j] += drawn[i] * drawn[j]
    free(shared)
    free(room)
    free(slot)
