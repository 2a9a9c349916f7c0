"""The numbers of samplers of the evidence, of draws of parameters and of their intervals, in one value.

Behind each number stand its unit and the record of `tests/reproduction` that shows what comes of it: *calibration* is
`evidence_calibration`, 93 problems of known values; *tempering* `data_tempering`; *systems* `linear_system_evidences`;
*intervals* `interval_coverage`; *gibbs* `independent_gibbs`. They hold for these values; others were not put on record.
A *round* value is one that no record looks at. Published numbers of an algorithm, and tolerances of rounding, stand in
the line that uses them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """Numbers of samplers and intervals, in the order in which a user of "auto" and of a summary meets them."""

    # Work -------------------------------------------------------------------------------------------------------------
    at_once: int = 512  # draws of a batch, and steps of a chain between two looks at whether the user stops it; round
    lanes: int = 32  # E steps side by side, and fewest chains that are worth a batch; width of kernels
    tasks: int = 4  # parts that work is cut into for each thread or process, so that all end together; round

    # Importance sampling about Gibbs draws ----------------------------------------------------------------------------
    chains: int = 16  # Gibbs chains that proposals are made of, and chains of the pilot run of a schedule; round
    burn_in: int = 100  # sweeps before the first draw that is kept; calibration
    sweeps_between: int = 5  # sweeps between two of these; calibration
    kept: float = 0.8  # share of the uncertain counts of a completion that its component keeps, to be wide; calibration
    defense: float = 0.1  # share of components about fits, and of the prior, which bound the weights; round
    operations: float = 2e10  # of sums over relabelings before components are left out, some ten seconds; round
    fewest_components: int = 16  # components that are there all the same; round
    effective_share: float = (
        0.5  # of their number that weights or draws are worth where all is well; calibration, gibbs
    )

    # Bridges between draws by linear response and Gibbs chains --------------------------------------------------------
    far_optimum: float = 12.0  # nats below the best bound at which an optimum is left out; by hand
    response_factor: float = 1.2  # times as wide as linear response says completed counts are drawn; bridge
    drawn_back: float = 0.7  # share of its way from the fit that a draw keeps which is no density; bridge
    times_drawn_back: int = 40  # to 6e-7 of its way; then a draw has only what is certain; bridge
    bridge_operations: float = 1e9  # of sums over relabelings before components are left out, some second; by hand
    response_cells: int = 600  # statistics of a model above which "auto" asks for no linear response; by hand
    rough: float = 0.2  # nats, standard error above which bridges cover too little; bridge
    bridge_r_hat: float = 1.8  # R-hat of ln weights above which chains are taken for stuck; by hand
    bridge_shape: float = 1.5  # Pareto shape of draws above which bridges cover too little; bridge
    annealed_share: float = 0.5  # share of uncertain counts that densities keep which are annealed; bridge
    rough_annealed: float = 0.8  # nats, standard error above which bridges of annealed chains are in doubt; bridge
    times_too_rough: float = 3.0  # times the error wanted that four times the chains may make up for; bridge
    usual_error: float = 0.1  # nats, error of "auto"; a smaller one that is wanted is not given up as sharp; by hand
    degrees_of_freedom: float = 8.0  # of proposals of coordinates, up to turns or not; factors
    rows_of_normal: float = 20.0  # rows' worth said of each parameter from which posteriors are normal; calibration
    skewness: float = 0.25  # largest of a density that is near normal, of counts from 16 on; calibration
    least_part: float = 0.01  # share of the posterior below which an optimum need not be normal; round
    forgotten: float = 4.0  # sweeps over 1 - lambda before chains from weighted draws are kept, at most; calibration
    orders_up_to_turns: int = 120  # of labels that proposals up to turns are summed over, 5!; time
    draws_up_to_turns: int = 4  # times as many draws up to turns, which are cheap; factors

    # Annealed chains --------------------------------------------------------------------------------------------------
    prior_every: int = 4  # chains of which one starts from the prior; calibration
    fewest_chains: int = 4  # chains of a start, for its standard error; round
    least_share: float = 0.25  # of their number that weights must be worth to be trusted; calibration
    enough_weights: float = 200.0  # effective weights that are enough, whatever their share; calibration
    far_above: float = 3.0  # standard errors by which chains of one start may be above all; one in 700 by chance
    metropolis_chains: int = 8  # chains of the pilot run of Metropolis steps; round
    metropolis_pieces: int = 64  # pieces of the path in which the pilot run tunes the reach of proposals; round
    metropolis_steps: int = 16  # steps of a piece; round
    metropolis_gain: float = 8.0  # change of the log reach for a share of accepted proposals that is off by one; round

    # Particles over growing data --------------------------------------------------------------------------------------
    sweeps: int = 2  # Gibbs sweeps after each resampling; tempering
    worth: float = 0.3  # share of their number that particles are worth at least before they are resampled; tempering
    lineages: int = 20  # fewest first particles with descendants, for the error to be an estimate; calibration
    growth: float = 8.0  # times as many particles in a run as in the one before, at most; round
    runs: int = 4  # most runs; round
    low_share: float = 0.05  # share that the first unit may leave before more are drawn from the prior; systems
    first_particles: int = 2**16  # most of these; systems

    # The score "auto" -------------------------------------------------------------------------------------------------
    near: float = 2.0  # standard errors of their difference by which the first two values agree; calibration
    far: float = 2.5  # the same of later ones; calibration
    vague: float = 0.6  # nats, the error of a difference above which agreement means nothing; calibration
    sharp: float = 0.25  # nats, the error that makes a check sharp enough, if less was wanted; calibration
    heavy_shape: float = 0.4  # Pareto shape of a tail that may have no variance: 0.5, less what 100 weights tell
    draws_per_completion: int = 16  # draws for each Gibbs draw of a proposal; calibration
    longer: int = 4  # times as long that a longer run is, and the root of the most; round
    draws_per_chain: int = 20  # draws of the first run for each annealed chain; calibration
    units_per_resampling: float = 1.5  # units of data below which the prior is too far for particles; calibration

    # Draws and intervals of parameters --------------------------------------------------------------------------------
    relabelings: int = 5040  # tried one by one for each draw, 7!; time
    quantile_draws: int = 2000  # draws whose quantiles are intervals; round
    chains_of_draws: int = 32  # chains that draws are from; gibbs
    summary_operations: float = 1e9  # of about a nanosecond, that the intervals of a summary may take; by hand
    summary_numbers: int = 2_500_000  # natural parameters of draws from q(theta) that a summary takes; by hand
    fewest_draws: int = 500  # of these draws: their 2.5 % are off by 0.7 %; round
    sweep_operations: float = 3e3  # of a sweep of a chain of a network, besides its rows; timed on 6 networks
    emission_operations: float = 4e4  # the same of other models; timed on 11 models of 60 to 3000 rows
    work_operations: float = 1.5  # of a sweep of such a chain for each unit of its work; the same
    response_operations: float = 4.0  # of linear response, for each row and pair of parameters; timed on 20 models
    regression_operations: float = 6e3  # of linear response, for each pair of parameters; the same
    draws_of_chain: int = 64  # kept of each chain, at least, to judge it by; gibbs
    fewest_sweeps: int = 8  # of chains that a time budget ends, half of which count: for an R-hat at all; round
    r_hat: float = 1.05  # largest of chains that agree; gibbs
    hope: float = 1.25  # times the draws that they will be worth, for chains to go on in a summary; by hand
    pilot_draws: int = 256  # draws of q(theta) that the scales of parameters are from; round
    heavy_tail: float = 10.0  # deviations of `pilot_draws`, 2.5 at most of light tails, 1000 of heavy ones; by hand
    response_width: float = 2e-3  # standard deviations, half of a difference in linear response; round
    response_draws: int = 4096  # draws of q(theta) in the regression of linear response, at least; intervals
    draws_per_direction: int = 8  # the same for each of its directions; intervals
    error_width: float = 1e-3  # unconstrained coordinates, half of a difference for standard errors; round
    no_information: float = 1e-6  # share of the information of complete data at which the data say nothing; round
    edge_change: float = 0.1  # relative change with a probability of 0 by which a parameter stands at its edge; round
    lift: float = 0.1  # counts added where a bootstrap fit starts, as maximum likelihood never leaves 0; round
    failed_share: float = 0.01  # share of bootstrap fits that may fail without a warning; round


#: The numbers in use.
TUNING = Tuning()
