"""Numbers that tune samplers of the evidence, draws of parameters and their intervals: units, and where each is from.

Sources are the records of `tests/reproduction`: *calibration* (`evidence_calibration`, 93 problems of known evidence),
*tempering* (`data_tempering`), *systems* (`linear_system_evidences`), *intervals* (`interval_coverage`), *gibbs*
(`independent_gibbs`). A *round* value was never varied. Published numbers of an algorithm, and tolerances of rounding,
stand in the line that uses them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """Numbers of samplers and intervals, in the order in which a user of "auto" and of a summary meets them."""

    # work ------------------------------------------------------------------------------------------------------------
    #: Draws in one batch, and steps of a chain between two looks at whether the user wants the run to end; round.
    at_once: int = 512
    #: E steps side by side, and fewest chains that are worth a batch; from the width of kernels.
    lanes: int = 32
    #: Tasks that work is cut into for each thread or process, so that all end together; round.
    tasks: int = 4

    # importance sampling about Gibbs draws ----------------------------------------------------------------------------
    #: Gibbs chains that proposals are made of, and chains of the pilot run of a schedule; round.
    chains: int = 16
    #: Sweeps before the first kept draw of these chains, and between two; calibration.
    burn_in: int = 100
    sweeps_between: int = 5
    #: Share of the uncertain counts of completed data that a component keeps, which widens it; calibration.
    kept: float = 0.8
    #: Share of a proposal that components about fits, and the prior, have, so that weights are bounded; [Owen00].
    defense: float = 0.1
    #: Operations of sums over relabelings before components are left out, and fewest components; some ten seconds.
    operations: float = 2e10
    fewest_components: int = 16
    #: Share of their number that weights, or draws of chains, are worth where all is well; calibration, gibbs.
    effective_share: float = 0.5

    # annealed chains --------------------------------------------------------------------------------------------------
    #: One chain in so many starts from the prior; calibration.
    prior_every: int = 4
    #: Fewest chains of a start, for its standard error; round.
    fewest_chains: int = 4
    #: Share of their number that weights are worth at least, and effective weights that are enough; calibration.
    least_share: float = 0.25
    enough_weights: float = 200.0
    #: Standard errors by which chains of one start may be above those of all; three, so one run in 700 by chance.
    far_above: float = 3.0
    #: Metropolis: chains, pieces of the path and steps of a piece of the pilot run, and its gain; reached acceptance.
    metropolis_chains: int = 8
    metropolis_pieces: int = 64
    metropolis_steps: int = 16
    metropolis_gain: float = 8.0

    # particles over growing data --------------------------------------------------------------------------------------
    #: Gibbs sweeps after each resampling; tempering.
    sweeps: int = 2
    #: Share of their number that particles are worth at least before resampling; tempering.
    worth: float = 0.3
    #: Fewest first particles whose descendants make an error an estimate; calibration.
    lineages: int = 20
    #: Growth of the number of particles from one run to the next, at most, and most runs; round.
    growth: float = 8.0
    runs: int = 4
    #: Share that the first unit may leave before more particles are drawn from the prior, and most of these; systems.
    low_share: float = 0.05
    first_particles: int = 2**16

    # "auto" -----------------------------------------------------------------------------------------------------------
    #: Standard errors of their difference by which values agree at first, and at last; calibration.
    near: float = 2.0
    far: float = 2.5
    #: Error of a difference, nats, above which agreement means nothing, and that of a sharp cross-check; calibration.
    vague: float = 0.6
    sharp: float = 0.25
    #: Pareto shape of a tail above which weights may have no variance: 0.5 less the error of an estimate; calibration.
    heavy_shape: float = 0.4
    #: Draws for each Gibbs draw of a proposal; calibration.
    draws_per_completion: int = 16
    #: Factor from one run to a longer one; its square is the largest; round.
    longer: int = 4
    #: Draws of the first run of importance sampling for each annealed chain; calibration.
    draws_per_chain: int = 20
    #: Units of data per resampling below which the prior is too far for particles; calibration.
    units_per_resampling: float = 1.5

    # draws and intervals of parameters --------------------------------------------------------------------------------
    #: Relabelings tried one by one for each draw: 7!.
    relabelings: int = 5040
    #: Draws whose quantiles are intervals; the ends of 95 % intervals are then good to a twentieth of their width.
    quantile_draws: int = 2000
    #: Draws kept of each chain, at least, to judge it by; gibbs.
    draws_of_chain: int = 64
    #: Largest R-hat of chains that agree; [VGSCB21] ask for 1.01 of longer chains.
    r_hat: float = 1.05
    #: Half of the width of differences for linear response, standard deviations, and for standard errors, coordinates.
    response_width: float = 2e-3
    error_width: float = 1e-3
    #: Share of the information of complete data that is none, in a direction in which the data say nothing; round.
    no_information: float = 1e-6
    #: Relative change of a parameter by which a probability of 0 stands at its edge; round.
    edge_change: float = 0.1
    #: Draws of q(theta) that widths of differences are chosen by; round.
    pilot_draws: int = 256
    #: Draws of q(theta) in the regression of linear response: fewest, and for each direction; intervals.
    response_draws: int = 4096
    draws_per_direction: int = 8
    #: Counts added to the start of a bootstrap fit by maximum likelihood, which never leaves 0; round.
    lift: float = 0.1
    #: Share of bootstrap fits that may fail without a warning; round.
    failed_share: float = 0.01


#: The tuning of the library.
TUNING = Tuning()
