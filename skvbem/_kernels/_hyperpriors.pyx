"""Hidden rates and precisions: what is expected of them, from the few parameters that stand below each."""

from libc.math cimport log


def expect_rates(const int[::1] starts, const int[::1] cells, const double[::1] loadings, const double[::1] shape,
                 const double[::1] rate, const double[:, ::1] natural, double[:, ::1] statistics, double[::1] grown):
    """Add expected rates under Gamma densities to statistics, and what their log normalizers lose against the prior.

    Parameters
    ----------
    starts : (n_groups + 1,) IN
        Where the cells of each rate begin.
    cells, loadings : (n_loadings,) IN
        Natural parameters below the rates, and how often they count.
    shape, rate : (n_groups,) IN
        Shapes of the densities, and rates of the prior.
    natural : (n_cells, n_lanes) IN
    statistics : (n_cells, n_lanes) IN and OUT
    grown : (n_lanes,) IN and OUT
        Nats; NaN where a rate has no density.
    """
    cdef Py_ssize_t group, lane, at, n_lanes = natural.shape[1]
    cdef double here
    with nogil:
        for group in range(shape.shape[0]):
            for lane in range(n_lanes):
                here = 0.0
                for at in range(starts[group], starts[group + 1]):
                    here += loadings[at] * natural[cells[at], lane]
                here = rate[group] - here
                grown[lane] += shape[group] * log(here / rate[group])
                here = shape[group] / here
                for at in range(starts[group], starts[group + 1]):
                    statistics[cells[at], lane] += loadings[at] * here
