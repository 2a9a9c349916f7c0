"""`StructureSearchCV`: the best model of a space, how sure one is of it, and averages over all."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from skvbem._absent import absent
from skvbem._arithmetic import ArithmeticMixin
from skvbem._compat import (
    N_JOBS,
    CallbackSupportMixin,
    HasMethods,
    Interval,
    IterationReport,
    Options,
    StrOptions,
    SuggestingMixin,
    fit_context,
    keep_parameters,
)
from skvbem._progress import LongCall, long_call
from skvbem.evidence import EvidenceScorer, scorer
from skvbem.fitted.effects import Effect
from skvbem.fitting.evaluation import read_again
from skvbem.fitting.kind import find_kind
from skvbem.graphs.dag import DAG
from skvbem.reports.evidence_tables import last_step
from skvbem.search.checkpoint.checkpoint import Checkpoint
from skvbem.search.checkpoint.fingerprints import content
from skvbem.search.defaults import with_numbers_of_data, with_prior_of_tables, with_priors_of_graphs
from skvbem.search.delegation import BestEstimatorDelegation
from skvbem.search.execution.jobs import (
    AllRowsJob,
    EvidenceJob,
    HeldOutJob,
    Job,
    n_splits,
    scorer_for,
    scorings_by_name,
)
from skvbem.search.execution.readings import Readings
from skvbem.search.execution.runner import Runner
from skvbem.search.families.hidden_scale import PosteriorOverGraphs
from skvbem.search.posterior import tables
from skvbem.search.posterior.effects import OVER_GRAPHS, effect_over_structures, effects_over
from skvbem.search.posterior.ranking import EVIDENCE, Ranker, Ranking
from skvbem.search.posterior.states_in_use import states_in_use
from skvbem.search.posterior.tables import average_over
from skvbem.search.reporting import (
    Progress,
    remark_on_result,
    results_table,
    warn_of_failures,
    warn_of_unfinished,
)
from skvbem.search.strategies import Problem, resolve_strategy
from skvbem.search.strategies.exact import posterior_over_space
from skvbem.search.tuning import TUNING
from skvbem.spaces import Space, coerce_space
from skvbem.spaces.combinations import ProductSpace
from skvbem.spaces.settings import hidden_graph, resolve_latents
from skvbem.spaces.structures import StructureSpace
from skvbem.tables import LabeledTable

# What the best estimator knows of its data.
_ATTRIBUTES_OF_BEST = ("n_features_in_", "feature_names_in_", "classes_")
# The random stream of what finds the posterior, beside that of the strategy.
_POSTERIOR = 1


class StructureSearchCV(
    ArithmeticMixin,
    BestEstimatorDelegation,
    SuggestingMixin,
    CallbackSupportMixin,
    MetaEstimatorMixin,
    BaseEstimator,
):
    r"""Search over structures, numbers of states or any parameters, by the evidence of all rows or by rows held out.

    It is used like `sklearn.model_selection.GridSearchCV`. Without `cv` each candidate is fitted once, to all rows, and
    scored by an approximation to its log marginal likelihood, which has its penalty for complexity built in. Those that
    may matter are then looked at more closely, for a posterior over the candidates, from which follow probabilities of
    edges and averages over models.

    Parameters
    ----------
    estimator : estimator
        An estimator of this library; for callables as `scoring` or with `cv`, any of scikit-learn.
    space : Space, mapping or list
        The candidates: a space of `skvbem.spaces` such as `BipartiteSpace`, a parameter grid such as
        ``{"n_components": range(1, 9)}``, or a list of structures or of settings. Settings that differ only by the
        names of exchangeable latents are one candidate.
    strategy : str or strategy, default="auto"
        Which candidates are tried. "exhaustive" tries all, "exact" finds the best graph by dynamic programming, and
        others, such as "structural", "greedy" or "mc3", go where they are led. An instance of a strategy
        (`skvbem.search.strategies`) sets its options. "auto" takes the one that suits: all of up to 10 000 structures,
        the best graph where nothing is hidden and nodes are few, else a climb. `strategy_` says which.
    scoring : str, callable, list, tuple or mapping, default=None
        Without `cv`: names of scores of the evidence (see `skvbem.evidence.SCORES`), by default "collapsed_ascent", of
        `VBHMM` "lower_bound"; or callables of (estimator, X, y), more is better. With `cv`: scikit-learn's scoring, by
        default the estimator's own `score`, the mean log predictive probability of the rows held out. Several scores
        are a list or a mapping of names to scores.
    cv : int, splitter, iterable or None, default=None
        None scores all rows by their evidence. Anything else as in `GridSearchCV`.
    rescoring : {"evidence"}, str, EvidenceScorer, False or None, default=None
        What is done once all were tried. "evidence" finds the posterior, which then ranks candidates. For networks
        with the same hidden nodes it comes from Monte Carlo chains that go through all of them. For other candidates,
        and where chains do not mix, it comes from the recommended score of the evidence, for as many candidates as may
        matter. The name of a score such as "ais", or a scorer, scores the best `n_rescored` candidates again. They are
        then ranked by it, ahead of all others, with a posterior over them alone. False does nothing. None is
        "evidence" if `scoring` is None and no scores of the evidence itself are known. It is False if a score is
        named, or if the time ran out.
    n_rescored : int, default=None
        How many candidates are scored again at most, by default 10, and 100 by "evidence".
    refit : bool, str or callable, default=True
        Whether the best candidate is fitted to all rows as `best_estimator_`. A string names the score that ranks, if
        there are several (the first by default); a callable takes `cv_results_` and returns the position of the best.
    prior : "auto", "uniform", "labeled", callable or prior, default="auto"
        Prior over candidates. "uniform" is equal for all, "labeled" is proportional to the number of labeled graphs
        that a structure stands for. Else a prior of `skvbem.spaces.priors`, or a callable of a setting that returns ln
        of its prior up to a constant. "auto" is "uniform", but in a `DAGSpace` of p columns without latents, if the
        `prior` of its networks is "auto" or "bdla". There each edge has the odds 1 / (p + 1), and no table of a node
        with parents has more cells than there are rows. `prior_` says which was taken.
    averaging : bool, default=False
        Whether the candidates that hold nearly all of the posterior (or of `score_weights_`) are refitted, so that
        `score_samples` averages their predictive densities.
    n_jobs : int, default=None
        Workers, as joblib and its backends understand it; results do not depend on it. Work that takes less time than
        workers need to start is done without them.
    max_candidates : int, default=None
        Most candidates to try.
    time_budget : float, default=None
        Seconds after which no further candidate is begun or scored again; the best so far is then the result, with a
        warning of what was not reached, and `timed_out_` is true.
    error_score : "raise" or float, default=np.nan
        Score of a candidate that fails; the rest go on.
    checkpoint : str or path-like, default=None
        A file to which candidates are written as soon as they have their scores, and from which an interrupted search
        goes on; candidates that failed are tried again. It needs a `random_state`.
    random_state : int, RandomState instance or None, default=None
        Seed of every candidate, if the estimator has none of its own, and of strategies that draw.
    verbose : int, default=0
        Whether to print how far the search is, about every second; above 1, every candidate.

    Attributes
    ----------
    cv_results_ : dict of str to array
        In `GridSearchCV`'s layout, in the order in which candidates were first asked for. It has parameters, times,
        scores and their ranks, standard errors, numbers of free parameters and log priors. It says why a candidate
        failed, why its score should not be trusted, and whether its `inference` was "exact" or in "clusters".
    best_estimator_ : estimator
        Fitted to all rows (with `refit`).
    best_params_ : dict
    best_score_ : float
        Nats of all rows, or the mean of the scores of rows held out.
    best_index_ : int
        Without `cv`, the most probable candidate; with `score_weights_` alone, under the uniform prior, that with the
        highest score.
    best_structure_ : DAG or UndirectedGraph
        If candidates have structures.
    structure_posterior_ : ndarray of shape (n_candidates,)
        p(m | y) [Beal (2.1)], aligned with `cv_results_` (without `cv`). It comes from evidences: by sampling, or by
        scores that are the evidence. Over complete data of up to 12 nodes it is a sum over all graphs of the space,
        tried or not. If there are only bounds or other approximations, there is no posterior.
    structure_posterior_errors_ : ndarray of shape (n_candidates,)
        Standard errors of these probabilities, 0 where they are exact.
    score_weights_ : ndarray of shape (n_candidates,)
        In proportion to the prior times exp of the score (without `cv`). They are the posterior only where scores are
        the evidence: the shares of bounds are too sure by far, most often of too little structure.
    space_ : Space
        The space that was searched. For a `VBNetwork` it is `space` with the `numbers` of the data, where a `DAGSpace`
        was given none: they have no children with tables. Ordered answers have no children, and no edges lead from
        numbers to nodes that cannot depend on them, such as counts.
    prior_ : prior
        The prior over candidates.
    strategy_ : Strategy
        The strategy that searched, with its options.
    log_evidence_ : float
        ln of exp of the score, averaged over the candidates under the prior, nats (without `cv`): ln p(y) where scores
        are the evidence, below it where they are bounds.
    edge_probabilities_ : LabeledTable
        P(parent -> child), by the posterior, or by `score_weights_` where there is none; an edge without a direction
        counts both ways. Latents bear the names of those of the best structure that they are most alike.
    shared_parent_probabilities_ : LabeledTable
        P(two observed nodes share a hidden parent, or, in undirected structures, neighbor), free of latents' names; its
        diagonal, P(a node has one).
    hidden_parent_counts_ : LabeledTable
        P(a node has so many hidden parents).
    intervention_targets_ : tuple of tuple
        The columns that were set together, in rows of X: () where nothing was. Empty without `interventions`.
    covariate_probabilities_ : LabeledTable
        P(a covariate is selected), of a `CovariateSpace`, by the posterior, or by `score_weights_` where there is none.
    averaged_ : Average
        The models averaged over and their weights (with `averaging`).
    timed_out_ : bool
    stopped_by_ : str
        "max_candidates", "time_budget" or "stopped" (a callback) if candidates were left untried, else "".
    n_features_in_, feature_names_in_, classes_
        The attributes of `best_estimator_`, if it has them.

    Notes
    -----
    Ties are settled by fewer parameters, then by the setting's name.

    Examples
    --------
    How many classes of dentists' slides are there?

    >>> from skvbem import StructureSearchCV, VBDiscreteDAG
    >>> from skvbem.datasets import load_carcinoma
    >>> X = load_carcinoma().data
    >>> search = StructureSearchCV(VBDiscreteDAG(), {"latents": [1, 2, 3, 4]}, scoring="ais", random_state=0).fit(X)
    >>> search.best_params_
    {'latents': 3}
    """

    _parameter_constraints: ClassVar[dict] = {
        "estimator": [HasMethods(["fit", "get_params"])],
        "space": "no_validation",
        "strategy": "no_validation",
        "scoring": "no_validation",
        "cv": "no_validation",
        "rescoring": [str, EvidenceScorer, Options(bool, {False}), None],
        "n_rescored": [Interval(Integral, 1, None, closed="left"), None],
        "refit": ["boolean", str, callable],
        "prior": "no_validation",
        "averaging": ["boolean"],
        "n_jobs": N_JOBS,
        "max_candidates": [Interval(Integral, 1, None, closed="left"), None],
        "time_budget": [Interval(Real, 0, None, closed="neither"), None],
        "error_score": [StrOptions({"raise"}), Real],
        "checkpoint": "no_validation",
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator,
        space,
        *,
        strategy="auto",
        scoring=None,
        cv=None,
        rescoring=None,
        n_rescored=None,
        refit=True,
        prior="auto",
        averaging=False,
        n_jobs=None,
        max_candidates=None,
        time_budget=None,
        error_score=np.nan,
        checkpoint=None,
        random_state=None,
        verbose=0,
    ):
        keep_parameters(self, locals())

    def __sklearn_tags__(self):
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "transformer_tags"):
            setattr(tags, name, getattr(inner, name))
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        return tags

    def _absent(self, name: str) -> AttributeError:
        """The error of a public attribute that is not there; it says why there is no posterior, where there is none."""
        if name in ("structure_posterior_", "structure_posterior_errors_") and "score_weights_" in vars(self):
            return AttributeError(
                f"This {type(self).__name__} has no {name!r}: its scores are bounds or other approximations, whose "
                "shares, in 'score_weights_', are no probabilities. Search with rescoring='evidence'."
            )
        return absent(self, name, is_fitted="cv_results_" in vars(self))

    # Searching --------------------------------------------------------------------------------------------------------

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, **params):
        """Try the candidates, rank them, and fit the best.

        Parameters
        ----------
        X : array-like, data frame or list
            As the estimator's `fit` takes it.
        y : array-like, default=None
            As the estimator's `fit` takes it.
        **params
            Passed to `fit` of the estimator, such as `sample_weight`; with `cv`, `groups` goes to the splitter.

        Returns
        -------
        self : StructureSearchCV
            Fitted. A search that raises or is interrupted leaves it as it was; what a `checkpoint` holds is kept.
        """
        with long_call(type(self).__name__, time_budget=self.time_budget) as call:
            state = self._searched(call, X, y, params)
        self.__dict__ = {**{name: value for name, value in vars(self).items() if not name.endswith("_")}, **state}
        return self

    def _searched(self, call: LongCall, X, y, params: dict) -> dict:
        """All that is published of a search, together."""
        if self.checkpoint is not None and self.random_state is None:
            raise ValueError(
                f"A search that goes on from the 'checkpoint' of {type(self).__name__} must draw as before. Set "
                "'random_state' to a number."
            )
        space = coerce_space(self.space)
        seed = self._drawn_seed()
        estimator = self._seeded(clone(self.estimator), seed)
        names = self._scorers()
        ranking = self.refit if isinstance(self.refit, str) else next(iter(names))
        names = {ranking: names[ranking], **names}
        estimator = with_prior_of_tables(estimator, space, names[ranking])
        job = self._job(estimator, space, names, X, y, params)
        space = with_numbers_of_data(space, job)
        prior, job = with_priors_of_graphs(self.prior, job, space)
        given = resolve_strategy(self.strategy)
        strategy = given.chosen_for(space, job, ranking, prior)
        rescoring = self._rescoring(names[ranking])
        n_stages = 1 + (rescoring is not None) + (self.refit is not False)
        report = IterationReport(self, X, y, max_iterations=n_stages, metadata=params or None)
        progress = Progress(type(self).__name__, self.verbose, report)
        if strategy is not given:
            progress.tell(f"the strategy that suits is {strategy!r}")
        limits = {"n_jobs": self.n_jobs, "seconds": self.time_budget, "most": self.max_candidates}
        with Checkpoint.opened(self.checkpoint, job.fingerprint) as checkpoint:
            n = _least(strategy.n_candidates(space), self.max_candidates)
            with (
                progress.stage("search", ranking, n, self.time_budget) as tell,
                Runner(job, **limits, checkpoint=checkpoint, tell=tell) as runner,
            ):
                strategy.search(Problem(space, runner, ranking, prior, job, np.random.default_rng(seed)))
            tried = runner.tried
            if not tried:
                none = "there is none" if space.n_settings == 0 else f"the strategy {strategy!r} tried none"
                raise ValueError(f"{type(self).__name__} has no candidate: {none} in {space!r}.")
            warn_of_failures(tried, self.error_score, type(self).__name__)
            log_priors = np.array([prior.log_weight(setting, space) for setting, _ in tried], dtype=float)
            graphs = None
            if not isinstance(rescoring, EvidenceScorer):
                graphs = posterior_over_space(space, job, ranking, prior)
            if self.rescoring is None and runner.over in ("time_budget", "stopped"):
                rescoring = None
            ranker = self._ranker(job, ranking, rescoring, progress, checkpoint, seed, call)
            ranked = ranker.ranked(tried, log_priors, len(tried) == space.n_settings, graphs)
            state = self._state(job, ranked, names, ranking, log_priors)
            state[OVER_GRAPHS] = effects_over(graphs)
        timed_out = runner.over == "time_budget" or call.was_cut or ranker.was_cut
        state |= {"space_": space, "strategy_": strategy, "prior_": prior, "stopped_by_": runner.over}
        state |= {"timed_out_": timed_out, "n_splits_": n_splits(job)}
        is_cut_off = runner.over in ("time_budget", "stopped") and space.has_more_than(len(tried))
        if is_cut_off and graphs is None:
            warn_of_unfinished(runner.over, len(tried), space.n_settings_in_words())
        state |= self._structures(job, state, graphs, is_cut_off)
        state |= self._refitted(job, state, report)
        remark_on_result(state, job.scorers)
        report.close(lambda: state)
        return state

    def _drawn_seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(0, 2**31 - 1))

    def _seeded(self, estimator, seed: int):
        """The estimator with a seed, if it has none: the same one for every candidate."""
        params = estimator.get_params(deep=False)
        return estimator.set_params(random_state=seed) if params.get("random_state", seed) is None else estimator

    def _scorers(self) -> dict[str, Callable]:
        """The scores by name, callables of (estimator, X, y)."""
        owner = type(self).__name__
        if self.cv is not None and self.rescoring not in (None, False):
            raise ValueError(f"'rescoring' of {owner} is by the evidence of all rows: leave 'cv' None.")
        if self.cv is not None and self.averaging:
            raise ValueError(f"averaging=True of {owner} needs a posterior: leave 'cv' None.")
        if isinstance(self.rescoring, str) and self.rescoring != EVIDENCE:
            scorer(self.rescoring)
        given = scorings_by_name(self.scoring, self.estimator, self.cv, owner)
        if isinstance(self.refit, str) and self.refit not in given:
            raise ValueError(
                f"The 'refit' parameter of {owner} must name one of the scores {', '.join(given)}. "
                f"Got {self.refit!r} instead."
            )
        return {name: scorer_for(each, self.cv, owner) for name, each in given.items()}

    def _job(self, estimator, space: Space, names: Mapping[str, Callable], X, y, params: dict) -> Job:
        if self.cv is not None:
            if params.get("interventions") is not None and not get_config()["enable_metadata_routing"]:
                raise ValueError(
                    "With 'cv', 'interventions' reach the scores of rows held out by metadata routing alone: call "
                    "sklearn.set_config(enable_metadata_routing=True), and set_fit_request(interventions=True) and "
                    "set_score_request(interventions=True) of the estimator."
                )
            rest = {name: value for name, value in params.items() if name != "groups"}
            splits = list(check_cv(self.cv, y, classifier=is_classifier(estimator)).split(X, y, params.get("groups")))
            return HeldOutJob(estimator, X, y, rest, splits, names, self.error_score)
        evidence_scorers = {name: each for name, each in names.items() if isinstance(each, EvidenceScorer)}
        readings = None
        if find_kind(estimator) is not None:
            readings = Readings.for_space(estimator, space, X, {"y": y, **params})
            if evidence_scorers == names:
                return EvidenceJob(estimator, readings, evidence_scorers, self.error_score)
        elif evidence_scorers and find_kind(last_step(estimator)) is None:
            raise TypeError(
                f"{type(estimator).__name__} has no 'log_evidence': score it by a callable, or hold rows out with 'cv'."
            )
        return AllRowsJob(estimator, X, y, params, names, self.error_score, readings)

    def _rescoring(self, score: Callable) -> EvidenceScorer | str | None:
        """The second score: "evidence", a scorer, or None."""
        if isinstance(self.rescoring, str) and self.rescoring != EVIDENCE:
            return scorer(self.rescoring)
        if self.rescoring is None and self.scoring is None and self.cv is None and isinstance(score, EvidenceScorer):
            return EVIDENCE
        return self.rescoring or None

    def _ranker(
        self, job: Job, ranking: str, rescoring, progress: Progress, checkpoint: Checkpoint, seed, call
    ) -> Ranker:
        most = self.n_rescored or (TUNING.n_listed if rescoring == EVIDENCE else TUNING.n_examined)
        return Ranker(
            job,
            ranking,
            rescoring,
            most,
            stage=lambda name, n: progress.stage("rescoring", name, n),
            runner=lambda exact: {
                "n_jobs": self.n_jobs,
                "seconds": call.seconds_left(),
                "checkpoint": checkpoint,
                "stage": content(exact),
            },
            rng=np.random.default_rng([seed, _POSTERIOR]),
        )

    def _state(self, job: Job, ranked: Ranking, names, ranking: str, log_priors: np.ndarray) -> dict:
        """The table of the search, the best of it, and the posterior."""
        table = results_table(ranked.tried, ranked.columns, log_priors)
        if ranked.is_rescored:
            place = np.empty(len(ranked.order), dtype=np.int32)
            place[ranked.order] = np.arange(1, len(ranked.order) + 1)
            table[f"rank_test_{ranking}"] = place
        best = int(self.refit(table)) if callable(self.refit) else ranked.order[0]
        state = {
            "cv_results_": table,
            "scorer_": dict(names) if len(names) > 1 else next(iter(names.values())),
            "multimetric_": len(names) > 1,
            "best_index_": best,
            "best_params_": dict(table["params"][best]),
            "best_score_": float(ranked.values[best]),
        }
        if isinstance(job, HeldOutJob):
            return state
        state |= {"score_weights_": ranked.weights, "log_evidence_": ranked.log_mean}
        if ranked.probabilities is not None:
            state["structure_posterior_"] = ranked.probabilities
            state["structure_posterior_errors_"] = ranked.errors
        return state | tables.covariate_probabilities(table["params"], _weights(state))

    def _structures(self, job: Job, state: dict, graphs: PosteriorOverGraphs | None, is_cut_off: bool) -> dict:
        """Published tables of edges by the posterior, if candidates are graphs; NaN of a search that was cut off."""
        if not (isinstance(job, EvidenceJob) and job.fits_graphs):
            return {}

        def structure(setting) -> tables.HiddenStructure:
            return tables.HiddenStructure(*job.graph(setting))

        settings = state["cv_results_"]["params"]
        best = structure(state["best_params_"])
        published = tables.tables_of(structure, best, settings, _weights(state), graphs)
        common = job.readings.common
        published["intervention_targets_"] = () if common is None else common.intervention_targets
        return tables.without_numbers(published) if is_cut_off and graphs is None else published

    def equivalence_classes(self) -> list[tables.EquivalenceClass]:
        """The candidates in classes that no data tell apart (Markov equivalence), the most probable first.

        Under priors that do not tell members of a class apart, ``prior="bdeu"`` say, the posterior is over classes: how
        it falls to the directed graphs within one means nothing.

        Returns
        -------
        list of EquivalenceClass
            `graph` (an `EssentialGraph`, or the `UndirectedGraph` of an undirected candidate), `probability` and
            `candidates`, positions in `cv_results_`. Edges whose direction the space fixes, by tiers, allowed, required
            or forbidden edges, are arrows, and so are those that follow. Where `fit` was given `interventions`, edges
            between a node that was set and one that was not keep their direction within a class [HB12].

        Examples
        --------
        >>> from skvbem import StructureSearchCV, VBDiscreteDAG
        >>> from skvbem.datasets import load_lizards
        >>> from skvbem.spaces import DAGSpace
        >>> space = DAGSpace(["x0", "x1", "x2"])
        >>> search = StructureSearchCV(VBDiscreteDAG(prior="bdeu"), space, random_state=0).fit(load_lizards().data)
        >>> best = search.equivalence_classes()[0]
        >>> print(best.graph, len(best.candidates), round(best.probability, 3))
        x0 - x1, x0 - x2 3 0.841
        """
        check_is_fitted(self)
        if not hasattr(self, "best_structure_"):
            raise AttributeError(f"This {type(self).__name__} has no equivalence classes: candidates are no networks.")
        given = self.estimator.get_params(deep=False)
        observed = self.shared_parent_probabilities_.levels[0].tolist()

        def structure(setting) -> tables.HiddenStructure:
            both = {name: {**given, **setting}[name] for name in ("structure", "latents")}
            graph, latents = hidden_graph(both) or (None, resolve_latents(both["latents"]) or {"h0": 2})
            graph = DAG.naive_bayes(next(iter(latents)), observed) if graph is None else graph.with_nodes(observed)
            return tables.HiddenStructure(graph, latents)

        parts = self.space_.parts if isinstance(self.space_, ProductSpace) else (self.space_,)
        rules = next((part.rules for part in parts if isinstance(part, StructureSpace)), None)
        settings, targets = self.cv_results_["params"], self.intervention_targets_
        return tables.equivalence_classes(structure, settings, _weights(vars(self)), rules, targets)

    def effect(self, cause, outcome, *, change=None, state=None, method="graphs", n_draws=2000) -> Effect:
        """The total effect of one node of networks on another, over structures and their parameters.

        It is the change of the expected outcome with one unit more of the cause, if that is set. Where no directed
        path leads from the cause to the outcome it is 0. The best structure alone would be too sure of all this. It is
        causal if edges are, and nothing is hidden.

        Parameters
        ----------
        cause, outcome : node
            Columns of numbers or of categories.
        change, state : default=None
            States of categories, as `VBNetwork.effect` takes them.
        method : {"graphs", "adjustment"}, default="graphs"
            "graphs" draws structures from the posterior, and parameters of each. "adjustment" has a closed form: the
            regression of the outcome on the cause and its parents, over the probabilities of these [PTHK20]. Its
            intervals are wider.
        n_draws : int, default=2000
            Draws of structures, or of parameters of each. They are the same in every call.

        Returns
        -------
        Effect
            With `mean`, `interval` and `probability_no_path`.

        Raises
        ------
        ValueError
            If a node is unknown, or the search has not kept enough. Complete measurements under the prior "bge" of
            `skvbem.emissions.Regression`, up to 12 of them, need nothing more: graphs are drawn from the sum over all.
            Other searches need `averaging`.
        TypeError
            If candidates have no effects.

        Examples
        --------
        >>> import numpy as np
        >>> from skvbem import DAGSpace, StructureSearchCV, VBNetwork
        >>> from skvbem.emissions import Regression
        >>> rng = np.random.default_rng(0)
        >>> a, b = rng.normal(size=(2, 60))
        >>> X = np.column_stack([a, b, a + b + rng.normal(size=60)])
        >>> prior = Regression(prior="bge")
        >>> search = StructureSearchCV(VBNetwork(emission=prior), DAGSpace(["x0", "x1", "x2"]), random_state=0).fit(X)
        >>> effect = search.effect("x0", "x2")
        >>> effect.mean > 0.5, effect.probability_no_path < 0.2
        (True, True)
        """
        check_is_fitted(self)
        return effect_over_structures(vars(self), cause, outcome, method, n_draws, change=change, state=state)

    def states_in_use(self, X, n_draws=200, *, max_sweeps=2048, **params) -> LabeledTable:
        """Posterior probabilities of numbers of hidden states in use, over all candidates.

        They are not those of the numbers that models have. A state is in use in a draw of all parameters that expects a
        row or more in it. The fit of a candidate may have fewer states in use: a state of few rows can be empty at the
        optimum, and in use in every draw.

        Parameters
        ----------
        X : array-like, data frame or list
            The data of the search.
        n_draws : int, default=200
            Draws of each candidate, by `sample_posterior`.
        max_sweeps : int, default=2048
            Most sweeps of a chain.
        **params
            Parameters that `fit` was passed, such as `sample_weight`.

        Returns
        -------
        LabeledTable
            Probabilities along the axis "n_in_use" [Nobile04], of the candidates that hold 99 % of
            `structure_posterior_`.

        Raises
        ------
        AttributeError
            If the search has no `structure_posterior_`.
        TypeError
            If candidates are pipelines.
        ValueError
            If X is not the data of the search, or a candidate has several latents.

        Examples
        --------
        >>> from skvbem import StructureSearchCV, VBDiscreteDAG
        >>> from skvbem.datasets import load_carcinoma
        >>> X = load_carcinoma().data
        >>> search = StructureSearchCV(VBDiscreteDAG(), {"latents": [1, 2, 3]}, random_state=0).fit(X)
        >>> round(search.states_in_use(X)["n_in_use":3], 1)
        1.0
        """
        check_is_fitted(self)
        posterior, settings = self.structure_posterior_, self.cv_results_["params"]
        estimator = self._seeded(clone(self.estimator), self._drawn_seed())
        if not hasattr(estimator, "sample_posterior"):
            raise TypeError(
                f"States in use are counted by draws, and {type(estimator).__name__}, which this {type(self).__name__} "
                "searches over, has none. Search over the model that is its last step."
            )
        if hasattr(self, "best_estimator_"):
            read_again(self.best_estimator_, X, **params)
        return states_in_use(estimator, settings, posterior, X, {"n_draws": n_draws, "max_sweeps": max_sweeps}, params)

    def _refitted(self, job: Job, state: dict, report: IterationReport) -> dict:
        fitted: dict = {}
        if self.averaging:
            settings = state["cv_results_"]["params"]
            fitted["averaged_"] = average_over(job, settings, _weights(state), self.n_jobs)
        if self.refit is not False:
            best = job.candidate_of(state["best_params_"])
            began = time.perf_counter()
            with report.handing_on("refit", best):
                job.fit(best)
            fitted |= {"best_estimator_": best, "refit_time_": time.perf_counter() - began}
            fitted |= {name: getattr(best, name) for name in _ATTRIBUTES_OF_BEST if hasattr(best, name)}
        return fitted


def _weights(state: Mapping) -> np.ndarray:
    """The posterior over candidates, or the weights by their scores where there is none."""
    return state["structure_posterior_"] if "structure_posterior_" in state else state["score_weights_"]


def _least(*limits: int | None) -> int | None:
    """The least of some limits, None where there is none."""
    return min((limit for limit in limits if limit is not None), default=None)


__all__ = ["StructureSearchCV"]
