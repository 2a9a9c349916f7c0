"""The numbers of the search for optima, in one value.

Behind each number stand its unit and where it comes from: *record*, chosen on the problems marked "tuning" of
`tests/reproduction/optima`; *large tables*, on those of `large_tables`; *rounding*, far above that of sums and far
below what is looked for; *time* and *memory*, where more costs more than it brings; *definition*, what a word is to
mean.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """Numbers of runs, of what is compared, and of what moves propose."""

    # How long candidates run, and which are compared ------------------------------------------------------------------
    n_steps: int = 11  # steps of a round; record
    n_steps_alone: int = 8  # steps of a round before a candidate may be left behind; record
    n_steps_alone_where_wide: int = 5  # the same where columns are many, for the better half after two steps; time
    reach: float = 6.0  # multiples of the estimated gain to come that a candidate may be behind the best; record
    reach_of_sizes: float = 3.0  # the same among starts of one move that changes numbers, and at the end; record
    nearly: float = 0.1  # nats to come below which a candidate of a round has ended; record
    different: float = 0.01  # nats by which two optima differ at least; definition
    same: float = 1e-10  # share of an objective that is no difference; rounding
    n_steps_per_start: int = 500  # steps of all candidates, for each start, before no more moves are made; time
    n_steps_where_dear: int = 50  # the same where rows are many and not sampled, or columns many; time
    many_rows: int = 4096  # rows above which starts see a sample, and divisions are the only moves; time
    many_products: int = 2**20  # rows times statistics of a component from which a step is as dear; time
    growth_of_samples: int = 4  # times as many rows in each sample as in the one before; time
    largest_share: int = 4  # times as many rows in all as in a sample, at least; record
    most_weight: float = 4.0  # rows that a sampled row counts as at most; record
    alike: float = 0.01  # share of rows by which sorted counts of copies of one optimum differ; by hand
    largest_sample: int = 2**15  # rows of the largest sample; memory
    # Rows for each column of a component, by ML, up to which better optima are nearer to spikes; by hand. With half of
    # it 300 rows of 50 columns end with 51 in a component, in 4.8 s for .08; with double 600 no longer end with 55.
    # None of the 64 problems by ML of `tests/reproduction/optima` has another bound with either.
    rows_per_column: float = 2.5
    nats_of_sample: float = 100.0  # nats behind the best on a sample that more of its rows may make up for; record

    # When a search is over, and which optima are kept -----------------------------------------------------------------
    patience: int = 4  # rounds in a row that may find nothing better, at least; record
    patience_per_start: float = 0.4  # the same, for each start; record
    returned: float = 0.5  # shares of proposals that came back to the best, summed over rounds, that are enough; record
    few_returned: float = 0.12  # share of proposals below which hardly any came back: there are many optima; record
    n_rounds_where_rugged: int = 2  # more rounds in a row that may find nothing better there; record
    n_moved: int = 5  # optima that moves change; record
    n_survivors: int = 12  # optima of a sample that see more rows; large tables
    nats_of_mode: float = 12.0  # nats below the best at which an optimum may have a part of the posterior; definition
    n_optima: int = 16  # optima that a fit keeps; memory
    n_kept_doubles: int = 2**21  # numbers that these may take; memory
    n_offered: int = 8  # optima that chains are offered; time
    n_steps_to_end: int = 100  # steps of an optimum to its end, before chains start there; time
    n_alternations: int = 100  # alternations of learned strengths and runs; time

    # What moves propose -----------------------------------------------------------------------------------------------
    n_divisions: int = 12  # divisions of components in a round; record
    n_of_kind: int = 4  # proposals of any other kind, changes in turn of a search among partitions; record
    n_cheap: int = 8  # proposals of kinds that find most: draws, rows around one by ML, states of networks; record
    n_seldom: int = 3  # proposals of kinds that find little: draws of other optima, rooms, drops; record
    least_share: float = 1e-300  # share of a row below which no component of a crossing has it; rounding
    n_crossed: int = 2  # crossings of each pair of optima, joins that leave a room empty, draws of simple ones; record
    n_joins: int = 6  # pairs of components that are joined to have one less; record
    smoothing: float = 1e-3  # share of all counts in each count of a proposal, where no prior has one; record
    fractions_of_draws: tuple[float, ...] = (
        0.02,
        0.05,
        0.15,
    )  # shares of counts that parameters are drawn after; record
    overlap: float = 0.04  # nats a row below which components are simple to tell apart; record
    cells_of_searches: int = 3000  # rows times components that searches among partitions go through; time
    n_pairs_per_component: int = 3  # pairs whose union is scored, for each component; time
    n_pairs: int = 64  # pairs whose union is scored; time
    n_tries: int = 4  # divisions tried of each component, half of them for one step alone; record
    n_fills: int = 4  # times as many where an empty component is filled; large tables
    excess: float = 1.0  # nats beyond chance of a combination of categories from which components are filled; by hand
    n_steps_of_halves: int = 5  # steps in which two halves compete; record
    elsewhere: float = 0.001  # share of a row that does not go to the nearest seed of a half; record
    n_tied_tries: int = 4  # divisions tried of each component by the value of a column with ties; by hand
    n_tied: int = 16  # proposals of components of one value of a column with ties; by hand, of 4 to 16
    most_frequent: float = 0.5  # probability that this is the most frequent value; by hand
    next_column: float = 0.25  # probability that the next component is of another column with ties; by hand
    min_rows: float = 2.0  # rows of a component that can be divided; definition
    empty: float = 0.5  # rows below which a component is empty; definition
    lowest: float = -1e5  # nats of a row that a component cannot make; definition
    n_asked: int = 192  # rows whose transfer is looked at in a sweep; time
    n_weighed: int = 48  # of these, rows that are weighed exactly; time
    n_sweeps: int = 6  # sweeps of transfers; time
    min_gain: float = 1e-6  # nats that a transfer gains; rounding
    n_steps_as_point: int = 30  # steps of every other start of a chain whose prior is sharp; record
    explained: float = 0.5  # share of the variance of columns that drawn loadings explain; definition

    # Numbers of components and factors --------------------------------------------------------------------------------
    rise_of_same_numbers: float = 0.3  # nats that new starts of the same numbers gain: steps to come bring less; record
    rows_per_parameter: float = 5.0  # from which the optima of components that lie apart are few; by hand
    nats_of_sizes: float = 100.0  # nats that a split or join loses, where no start is better; by hand
    max_from_nothing: int = 20  # components of which moves know better than starts from nothing; record


TUNING = Tuning()


@dataclass(frozen=True)
class Effort:
    """How much a search may cost.

    Parameters
    ----------
    most_starts : int or None
        Starts that race at most; None for as many as are asked for.
    rounds : float
        Multiple of the rounds of moves that may find nothing better, and of the steps that all may cost; 0: no moves.
    hastens : bool
        The search ends the sooner, the more starts agree.
    """

    most_starts: int | None = None
    rounds: float = 1.0
    hastens: bool = True


#: Efforts by the name that users give; by hand.
EFFORTS = {"auto": Effort(), "fast": Effort(3, 0.0), "thorough": Effort(None, 3.0, False)}
