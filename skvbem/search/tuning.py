"""The numbers that a search depends on, each with its unit and where it comes from.

"By hand" was set once to a round value and never measured against another. Records stand in `tests/reproduction`.
Options of strategies and of the search itself are parameters of theirs, with their own defaults.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """Limits and thresholds of searches, see `TUNING`."""

    # Candidates and graphs
    n_listed: int = 100  #: best candidates that a climb's table lists, an average holds, or samplers score; by hand
    n_examined: int = (
        10  #: best candidates scored again by a named score, best graphs with all neighbors valued; by hand
    )
    n_looked_through: int = 10_000  #: settings listed at once, for a random one, ways to read X, or to be tried; 0.1 s
    n_first_batch: int = 256  #: settings handed over before a limit of time can hold, or at most when pruning; by hand
    n_walk: int = 50  #: random moves to a start in a space too large to go through; by hand
    cache_bytes: float = 2.0**25  #: bytes of each store of scores, gains or neighbors; by hand
    # Complete rows
    max_operations: float = 2e8  #: of some nanoseconds each: half a second for "exact" to be chosen, or a sum made
    fit_operations: float = 1e5  #: operations that the fit of a small network counts as; measured on four columns
    max_summed_nodes: int = 12  #: nodes of the sum over all graphs: a second, and threefold with each node more
    n_grown: int = 8  #: sets of parents that an order's search extends, and parents they gain; reproduction.strategies
    words_per_row: float = (
        12.0  #: words of 64 rows compared, for each row, to count a table by bits; measured, 5 000 rows
    )
    n_turning_sweeps: int = 2  #: times that each covered edge may turn, to draw from an equivalence class; by hand
    dropped_share: float = 0.5  #: share of edges that a perturbed graph loses; of .3 to .7 on forty tables
    # Structural climbs with hidden nodes
    max_group: int = 5  #: columns that a hidden node is first put above; by hand
    n_groups: int = 2  #: groups fitted with all columns, for each hidden node; by hand
    n_group_starts: int = 4  #: starts of a group's latent classes; by hand
    group_tol: float = 0.1  #: nats, at which these have converged; by hand
    max_group_steps: int = 100  #: steps of theirs; by hand
    min_fraction: float = (
        1e-6  #: least share of a completion for each state of a hidden node, so that none is ruled out
    )
    split_share: float = 0.9  #: share of a state that follows the node by which it is split; by hand
    max_cells: int = 4096  #: joint states of a group, and cells of all families that chains draw from; by hand
    # Chains over structures
    n_chains: int = 96  #: chains side by side; reproduction.posterior_calibration
    first_sweeps: int = 256  #: sweeps before the first look at their errors; reproduction.posterior_calibration
    max_sweeps: int = 4096  #: sweeps at most; reproduction.posterior_calibration
    small_error: float = (
        0.015  #: standard error of a probability at which chains end; reproduction.posterior_calibration
    )
    max_correlation: float = 0.5  #: of chains' differences in both halves: above, they stay where they began; by hand
    max_graphs: int = 20_000  #: graphs drawn from at once: 10 ms a sweep; by hand
    max_latents: int = 5  #: hidden nodes drawn together in a sweep; by hand
    # Evidences of candidates
    negligible: float = 1e-12  #: probability that nothing published shows; rounding
    improbable: float = 1e-3  #: probability not worth a sampler, or a place in an average; by hand
    unlikely: float = 5e-3  #: probability, or error of one, that stuck chains count for nothing; by hand
    max_rest: float = 0.01  #: probability of all candidates without an evidence; reproduction.posterior_calibration
    doubtful: float = 0.05  #: probability from which a candidate's doubts are told; by hand
    n_at_once: int = 8  #: candidates sampled between two looks at the rest, at first half as many; by hand
    near: float = 20.0  #: nats below the best at which a candidate is sampled at first; by hand
    large_error: float = 0.2  #: of a probability, from which an evidence is sampled anew: a quarter of `evidence_error`
    max_terms: int = 2**16  #: of a sum that is the evidence, some hundredths of a second; by hand
    max_responses: int = 600  #: free parameters above which linear response costs more than bridges; by hand
    unknown_error: float = 3.0  #: nats, error of an evidence that states none and of few gaps; by hand
    one_nat: float = 1.0  #: nats, least error of a gap, and gain that makes one more fit worth its time
    n_error_draws: int = 2000  #: draws of evidences by their errors: 0.01 in a probability
    evidence_error: float = 0.8  #: nats, at which samplers end: posteriors take it into account
    n_evidence_draws: int = 1024  #: draws of importance samplers; reproduction.posterior_calibration
    n_particles: int = 128  #: particles of others, doubled where these are too few; reproduction.posterior_calibration
    max_particles: int = 2048  #: particles at most; reproduction.posterior_calibration
    n_kept: int = 256  #: candidates whose fits are kept for further scores and as starts of chains; round
    kept_cells: float = 1e6  #: cells of data above which no fits are kept, 8 megabytes for each; round
    all_kept_cells: float = 3.2e7  #: cells of data of all fits that are kept, a quarter of a gigabyte; round
    # Workers, files and the screen
    batch_seconds: float = 0.25  #: of work in a batch, or worth sending; by hand
    measured_seconds: float = 0.1  #: of work that tells what a candidate costs, before workers start; by hand
    start_seconds: float = 3.0  #: of work worth starting workers for: they import the library
    n_round: int = 12  #: batches for each worker, where joblib returns all at once; by hand
    shared_bytes: int = 2**16  #: of an array that is shared, not sent along, or of a journal worth taking in; by hand
    tick: float = 1.0  #: seconds between looks at the parent process, and syncs of a journal


#: The values in force.
TUNING = Tuning()
