"""Texts that docstrings of several estimators share, filled in once a class is defined."""

from __future__ import annotations

import re
from textwrap import indent
from typing import TypeVar

_Class = TypeVar("_Class", bound=type)
#: A line of a docstring that stands for shared texts, one after the other; or, with an arrow, for the section of
#: parameters, which have such texts, and that of the result, whose type follows.
PLACEHOLDER = re.compile(r"^( *)%\((.+?)(?: -> (.+))?\)s$", re.MULTILINE)

# Parameters of constructors, attributes of fits, parameters of methods. What stands before a dot tells texts of one
# name apart, and is left out.
_TEXTS = """
equivalent_sample_size : float, default=1.0
    Total of "bdeu" and "per_row" priors, in rows of data.

covariates : str, int, list of these, Softmax, or mapping of node to these, default=None
    Columns that are no nodes, and that the states of latents without parents are regressed on: a softmax regression,
    whose priors a `skvbem.emissions.Softmax` holds. They are given: no distribution of theirs is part of the evidence.
    Strings, pandas categories and columns in `categories` are categories, all else are numbers. A mapping says of each
    node which it has, latent or column; any other value is for all latents without parents.

method : {"vb", "map", "ml"}, default="vb"
    Variational Bayes, the posterior mode, or maximum likelihood.

map_basis : {"natural", "probability"}, default="natural"
    Coordinates in which ``method="map"``, and scores of the evidence, take the mode. The natural mode always exists.

n_init : int, default=10
    Number of starts. With ``init="auto"`` more of them search longer; 1 is one start and no search, unless
    ``search_effort="thorough"`` asks for one.

search_effort : {"auto", "fast", "thorough"}, default="auto"
    What ``init="auto"`` may cost. "fast" has three starts at most, which race, and no moves: it may miss better optima.
    "auto" makes moves until rounds of them have found nothing better, the fewer rounds, the more starts agree and
    the more moves come back to the best.
    "thorough" makes three times as many rounds, however many starts agree.

max_iter : int, default=10000
    Most steps of each start.

tol : float, default=1e-5
    A start has converged when the gain of the objective still to come is below this, in total nats.

acceleration : bool, default=True
    Whether steps are extrapolated (SQUAREM) where that raises the objective.

handle_unknown : {"warn", "missing", "error"}, default="warn"
    What a category that fit did not see becomes: a missing cell with a warning, a missing cell, or an error.

missing_values : scalar or list, default=np.nan
    Values that mean "missing" besides NaN, None, pandas.NA and null.

max_table_cells : int, default=2**24
    Most cells of one table, of a node or of hidden nodes summed together.

random_state : int, RandomState instance or None, default=None
    Seed of the starts. The same seed gives the same result for any `n_jobs` and row order.

n_jobs : int, default=None
    Threads that share the rows of a large table; the result does not depend on it.

coefficients_ : dict of node to LabeledTable
    Log odds of the states of each node that covariates drive, against the mean over states: where all covariates are 0,
    and by unit of each. Only with covariates.

lower_bound_ : float
    Lower bound on the log marginal likelihood of the data, total nats (``method="vb"``).

log_posterior_, log_likelihood_ : float
    The objective of ``method="map"`` (log likelihood plus log prior density) and ``method="ml"``.

lower_bounds_ : ndarray of shape (n_points,)
    The objective along the run of the best start; it never falls.

parameters_ : dict of str to dict of str to ndarray
    By group, the parameters of its columns: of VB the mode of q(theta) in natural coordinates, which for
    probabilities, rates and means is the posterior mean.

means_, covariances_, precisions_ : ndarray
    As in scikit-learn's mixtures, if there is a Gaussian group; where there are several, by group, as are the other
    attributes of measurements.

groups_ : dict of str to list of str
    Group -> names of its columns. A group has the name that a list gives it, else that of its emission.

categories_ : dict of str to ndarray
    Levels of each categorical column, in the order of its probabilities.

restarts_ : Restarts
    Where every start ended, of what kind it was, and the moves that led on from there.

n_iter_ : int

converged_ : bool

impute.fill : {"auto", "cells", "joint", "draw"}, default="auto"
    "cells": the most probable category of each cell. "joint": the most probable combination of a row's cells, so that
    they occur together. "auto": as "cells", but as "joint" in rows where that is ten thousand times as probable; a
    warning names them. "draw": cells drawn together from their distribution given the observed ones, under parameters
    that are drawn once for all rows. Several seeds make several completed tables (multiple imputation).

impute.random_state : int, RandomState instance or None, default=None
    Seed of draws. None takes that of the estimator.

n_samples_ : float
    Sum of the weights of the rows with an observed cell: the n of BIC.

n_free_parameters_ : int

n_features_in_ : int

feature_names_in_ : ndarray of str
    If X has string column names.

X : array-like of shape (n_samples, n_features)

rows.X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)

y : None
    Ignored.

sample_weight : array-like of shape (n_samples,), default=None
    As in `fit`.

blocks.X : array-like, pandas or polars DataFrame of shape (n_samples, n_features), dask collection, or Blocks
    NaN, None and NA are missing cells. An array of floats in C order is read where it lies. If rows come in
    blocks (see `blocks_of`), one block at a time is in memory. Partitions of dask stay on the workers of a client.

blocks.sample_weight : array-like of shape (n_samples,), dask array or Blocks, default=None
    How often each row counts; rows of weight 0 are as if absent. Where X comes in blocks, so may these.

fit.sequence_id : array-like of shape (n_rows,), default=None
    Which sequence each row belongs to.

fit.lengths : array-like of int, default=None
    Rows of each sequence, one after the other.

fit.time : str, array-like of shape (n_rows,), TimeAxis or False, default=None
    When rows are: a column by name, "index", dates, periods or numbers; by default an index of dates. False: unknown.

partial_fit.X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
    The first batch is fitted as by `fit`: it fixes columns, categories, units and the priors taken from data.

data.X : array-like of shape (n_samples, n_features)
    The data of the fit, rows in any order.

criterion.X : array-like of shape (n_samples, n_features)
    The data of the fit; without them an error says so.

criterion.**where
    `labels` or `interventions`, if `fit` was given any.

fitted.X : list of tables, or table
    The data of the fit.

fitted.**where
    `inputs` and `output_inputs`, where `fit` takes them.

network.X : pandas or polars DataFrame, mapping of node to array-like of shape (n_samples,), or a row as pandas Series
    As `log_likelihood` takes them.

network.nodes : node or iterable of nodes, default=None
    The nodes without a column if None.

network.ValueError
    As `log_likelihood`, and if a node is unknown.

do : mapping of node to state, default=None
    Nodes that are set from outside, and to what: they lose their parents. The answer is causal if the edges are.

data.**where
    As in `fit`: `sequence_id`, `lengths` or `time` of sequences, `interventions` in networks.

interventions : array-like or str, default=None
    As in `fit`: which columns were set in each row.

sequences.X : list of tables, or table

sequence_id, lengths, time : array-like, default=None
    As in `fit`.

sequences.sample_weight, sequence_id, lengths, time : array-like, default=None
    As in `fit`.

inputs.sequence_id, lengths, inputs, output_inputs, time : array-like, default=None
    As in `fit`.

inputs.sample_weight, sequence_id, lengths, inputs, output_inputs, time : array-like, default=None
    As in `fit`.

interval.level : float, default=0.95
    Mass of each interval.

odds.X : array-like of shape (n_samples, n_features), default=None
    The data of the fit; not needed if `draws` are given.

classes.X : array-like of shape (n_samples, n_features)
    The data of the fit; of `draws` that are given any rows.

classes.values : sequence, default=None
    By default 25 from the smallest number to the largest of X, or all levels.

driven.node : hashable, default=None
    The node that covariates drive; needed where there are several.

interval.draws : PosteriorDraws, BootstrapDraws or StandardErrors, default=None
    What intervals are from; by default as in `summary`.

OddsRatios
    With `coefficients`, their ends `lower` and `upper`, and `tests`; `to_frame` has odds ratios beside them.

ClassProbabilities
    With `probabilities`, and their ends `lower` and `upper`, of shape (n_values, n_classes).

odds.ValueError
    If covariates drive nothing, or no such node, or X is not the data of the fit.

classes.ValueError
    If covariates drive nothing, or no such node, there is no such covariate or level, or X is not the data of the fit.

classes.TypeError
    If `values` are no sequence of levels, or of finite numbers.

argument.TypeError
    If an argument is of another kind.

input_features : array-like of str or None, default=None
    Names of the columns of X, only compared with those that fit saw.

draws.random_state : int, RandomState instance or None, default=None
    By default draws follow from the seed of the fit.

long.verbose : int, default=None
    Above 0 a line says how far it is and how much time is left; by default as the estimator's `verbose`.

long.time_budget : float, default=None
    Seconds after which the best answer so far is returned, with a warning. By default the work is bounded, and not the
    time, so that the same seed gives the same result.

score.random_state : int, RandomState instance or None, default=None
    Seed of scores that draw; by default it follows from the seed of the fit.

sample.random_state : int, RandomState instance or None, default=None
    By default the estimator's own `random_state`.

residuals.discrete : {"random", "middle"}, default="random"
    Where the residual of a count, or of an interval, stands between the probabilities of less and of at most as much: a
    number drawn, so that residuals are uniform [DS96], or the middle.

residuals.random_state : int, RandomState instance or None, default=None
    Seed of what is drawn; by default the estimator's own `random_state`.

sample.n_samples : int, default=1
    Number of rows.

forecast.n_steps : int, default=1
    How many steps ahead.

self : estimator
    Fitted.

return_cov : bool, default=False
    Whether to return the covariances of the states, too.

states : ndarray of shape (n_rows, n_components), or list of these
covariances : ndarray of shape (n_rows, n_components, n_components), or list of these
    If asked for.

return_error : bool, default=False
    Whether to return standard errors, too: 0 but for ``predictive="average"``.

scores : ndarray of shape (n_sequences,)
errors : ndarray of shape (n_sequences,)
    If asked for.

memory.X : array-like of shape (n_samples, n_features)
    The data of the fit, rows in any order, in memory.

Evidence
    With `value` and, where it is random, `standard_error`, in nats.

data.ValueError
    If X is not the data of the fit, or the estimator was updated by `partial_fit`.

fit.ValueError
    If X or a parameter is not what it should be; the message names which and what would be right.
"""


def _by_name(texts: str) -> dict[str, str]:
    """Texts by the first name in their first line, and what tells it apart."""
    parts = [text.strip("\n") for text in texts.split("\n\n")]
    return {re.split(r"[ ,\n]", text)[0]: re.sub(r"^\w+\.", "", text) for text in parts}


TEXTS = _by_name(_TEXTS)


def filled(docstring: str) -> str:
    """The docstring with shared texts in the place of lines such as ``%(tol, n_jobs)s`` and ``%(X -> float)s``.

    Parameters
    ----------
    docstring : str

    Raises
    ------
    KeyError
        If there is no such text.
    """

    def texts(match: re.Match) -> str:
        margin, names, result = match.groups()
        text = "\n".join(TEXTS[name] for name in names.split(", "))
        if result:
            text = f"Parameters\n----------\n{text}\n\nReturns\n-------\n{result}"
        return indent(text, margin)

    return PLACEHOLDER.sub(texts, docstring)


def share_texts(cls: _Class) -> _Class:
    """A decorator of classes: shared texts stand in their docstring and in those of their methods.

    Parameters
    ----------
    cls : type
    """
    for thing in (cls, *vars(cls).values()):
        while "%(" in (getattr(thing, "__doc__", None) or ""):
            thing.__doc__ = filled(thing.__doc__)
            thing = getattr(thing, "__wrapped__", None)
    return cls
