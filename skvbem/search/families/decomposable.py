"""Decomposable scores of a search: those that are sums over families of nodes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from math import inf, log
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator

from skvbem._compat import check_parameters
from skvbem._lazy import cached_property
from skvbem.evidence import SCORES, EvidenceScorer, score_of
from skvbem.evidence.base import Score
from skvbem.fitting.evaluation import evaluate
from skvbem.fitting.kind import find_kind, kind_of
from skvbem.graphs.dag import DAG
from skvbem.models.network.completed_rows import CompletedRows
from skvbem.search.execution.readings import candidate, shallow_candidate
from skvbem.search.families.family_scores import Families, FamilyScores, FittedFamilies, MaximizedLikelihood
from skvbem.search.families.hidden_scale import HiddenScaleScores
from skvbem.search.families.normal_wishart_scores import NormalWishartScores
from skvbem.spaces.settings import resolve_latents, value_key

#: What a score has to be, to be a sum over families, before anything else.
NEEDS_EVIDENCE = "needs scores of the evidence of all rows, with cv=None, of a network such as VBDiscreteDAG"
_NO_LATENTS = "needs complete data; there are latents"
#: Scores of families of measurements under one prior of all of them.
OfMeasurements: TypeAlias = NormalWishartScores | HiddenScaleScores


class NotDecomposable(ValueError):
    """The reason why a score is no sum over families: what a strategy would need."""


class DecomposableScores:
    """The scores of a search that are sums over families: of networks without latents, on rows without missing cells.

    Parameters
    ----------
    estimator : estimator
    reading : NetworkReading, MixedReading or None
        Of all candidates; None if they read X in different ways.
    scorers : mapping of str to callable
    most_cells : float, default=inf
        Cells of the largest table of a node with parents.
    """

    def __init__(self, estimator: BaseEstimator, reading: Any, scorers: Mapping[str, Any], most_cells: float = inf):
        self._estimator, self._reading, self._scorers, self._most_cells = estimator, reading, scorers, most_cells
        self._remembered: dict[Hashable, FamilyScores] = {}
        self._fitted: dict[Hashable, FittedFamilies] = {}
        self._jointly_normal: dict[Hashable, OfMeasurements | None] = {}

    def scores(self, setting: Mapping, name: str) -> Families:
        """The families whose scores sum up to the score of that name, for a setting and others of unlike graphs.

        Raises
        ------
        NotDecomposable
            If it is no such sum.
        """
        return self._scores(self._given(setting), rest(setting), name)

    def record(self, setting: Mapping) -> dict[str, Any] | None:
        """Fields of the `Record` of a candidate whose scores are all sums; None where one is not."""
        if not hasattr(find_kind(self._estimator), "network"):  # sums are of fits, and a fit is what there is to know
            return self._record_of_measurements(setting)
        try:
            estimator, key = self._given(setting), rest(setting)
            network = self._network(estimator)
            every = {name: self._of_tables(estimator, network, key, name) for name in self._scorers}
        except NotDecomposable:
            return None
        if self._may_be_refused(estimator):
            return None
        network.check_size()
        values = {name: scores.bound(network.dag) for name, scores in every.items()}
        if not np.isfinite(list(values.values())).all():
            return None  # a fit says why
        return {
            "values": values,
            "errors": {name: 0.0 for name, scorer in self._scorers.items() if SCORES[scorer.kind].random},
            "n_free_parameters": network.n_free_parameters,
        }

    def _record_of_measurements(self, setting: Mapping) -> dict[str, Any] | None:
        """Fields of the `Record` of a candidate whose columns are measurements under one prior of all of them."""
        try:
            estimator = self._given(setting)
            scores, summed = self._measurements(estimator, rest(setting)), map(self._summed, self._scorers)
            if scores is None or any(score.is_penalized_likelihood for score in summed):
                return None
        except NotDecomposable:
            return None
        if self._may_be_refused(estimator):
            return None
        dag, _ = kind_of(estimator).graph(estimator, self._reading)
        return {
            "values": dict.fromkeys(self._scorers, scores.log_evidence(dag)),
            "errors": {name: 0.0 for name, scorer in self._scorers.items() if SCORES[scorer.kind].random},
            "n_free_parameters": 2 * len(dag.nodes) + len(dag.edges),
        }

    def _may_be_refused(self, estimator) -> bool:
        """True where a score may refuse its options, or a graph have no mode."""
        has_options = any(scorer.options for scorer in self._scorers.values())
        return has_options or estimator.method == "map"

    @cached_property
    def _is_complete(self) -> bool:
        return self._reading.is_complete

    def _given(self, setting: Mapping) -> Any:
        """The estimator of a setting, to look at."""
        if self._reading is None or not hasattr(find_kind(self._estimator), "graph"):
            raise NotDecomposable(NEEDS_EVIDENCE)
        return shallow_candidate(self._estimator, setting)

    def _scores(self, estimator, key: Hashable, name: str) -> Families:
        if hasattr(find_kind(estimator), "network"):
            return self._of_tables(estimator, self._network(estimator), key, name)
        return self._by_fits(estimator, (key, name), name)

    def _by_fits(self, estimator, key: tuple[Hashable, str], name: str) -> Families:
        """The families of a network that has more than tables: fits, where no formula has them all."""
        dag, latents = kind_of(estimator).graph(estimator, self._reading)
        if latents:
            raise NotDecomposable(_NO_LATENTS)
        score = self._summed(name)
        measurements = self._measurements(estimator, key[0])
        if measurements is not None and not score.is_penalized_likelihood:
            return measurements
        if key not in self._fitted:

            def evaluation_of(graph: DAG):
                return evaluate(candidate(estimator, {"structure": graph}), self._reading.of_nodes(graph.nodes))

            def value_of(graph: DAG) -> float:
                return float(score_of(evaluation_of(graph), score.name, self._scorers[name].options))

            has_known_prior = evaluation_of(DAG(dag.nodes, {})).model.prior.hyperprior is None
            needed = self._reading.nodes_with_tables
            self._fitted[key] = FittedFamilies(dag.nodes, needed, value_of, has_known_prior)
        return self._fitted[key]

    def _measurements(self, estimator, key: Hashable) -> OfMeasurements | None:
        """The scores of columns that are measurements under one prior of all of them; None where others are among them.

        Raises
        ------
        NotDecomposable
            If there are latents, or cells are missing.
        """
        if key not in self._jointly_normal:
            self._jointly_normal[key] = self._of_measurements(estimator)
        return self._jointly_normal[key]

    def _of_measurements(self, estimator) -> OfMeasurements | None:
        groups = self._reading.columns.groups
        prior, *others = {getattr(group.specification, "joint_prior", None) for group in groups}
        if prior is None or others or not self._is_complete or any(len(group.columns) > 1 for group in groups):
            return None
        check_parameters(estimator)
        for group in groups:
            group.specification.check_parameters()
        dag, latents = kind_of(estimator).graph(estimator, self._reading)
        if latents or {*dag.nodes} != {group.name for group in groups}:
            return None
        (scale, dof), ((values, weight),) = prior, self._reading.blocks
        names = [group.name for group in groups]
        scores = NormalWishartScores.of_rows(names, np.hstack(values), weight, degrees_of_freedom=dof)
        return HiddenScaleScores(scores) if scale is None else scores.with_scale(scale)

    def _network(self, estimator):
        """The network of an estimator that has no latents."""
        if resolve_latents(estimator.latents):
            raise NotDecomposable(_NO_LATENTS)
        return kind_of(estimator).network(estimator, self._reading)

    def _of_tables(self, estimator, network, key: Hashable, name: str) -> FamilyScores:
        """The families of a network of tables alone."""
        if network.latents:
            raise NotDecomposable(_NO_LATENTS)
        if network.ties:
            raise NotDecomposable("needs a table of its own for every node; some are tied")
        if network.undirected is not None and network.given_prior != "bdeu":
            raise NotDecomposable("needs prior='bdeu' for undirected structures: tables have to fit each graph")
        score = self._summed(name)
        key = key, score.is_penalized_likelihood, score.penalty_discount
        if key not in self._remembered:
            self._remembered[key] = self._made(estimator, network, score)
        return self._remembered[key]

    def _summed(self, name: str) -> Score:
        """The score of a name, if it is a sum over the families of complete rows."""
        if not self._is_complete:
            raise NotDecomposable("needs complete data; some cells are missing")
        scorer = self._scorers[name]
        score = SCORES[scorer.kind] if isinstance(scorer, EvidenceScorer) else None
        is_penalized = score is not None and score.is_penalized_likelihood and not scorer.options
        if score is None or not (is_penalized or score.exact_if_complete):
            penalized = ", ".join(repr(each.name) for each in SCORES.values() if each.is_penalized_likelihood)
            exact = ", ".join(each.name for each in SCORES.values() if each.exact_if_complete)
            raise NotDecomposable(f"needs a score that is a sum over families: {penalized}, or one of {exact}")
        return score

    def _made(self, estimator, network, score: Score) -> FamilyScores:
        if estimator.learn_prior:
            raise NotDecomposable(
                "needs learn_prior=False: a prior learned anew for each graph does not fall into families"
            )
        check_parameters(estimator)
        network.check_prior()
        completed = CompletedRows.of_complete(self._reading.rows, network.cardinalities)
        if not score.is_penalized_likelihood:
            limits = {"max_table_cells": network.max_table_cells, "most_cells": self._most_cells}
            return FamilyScores(completed, network, **limits)
        return FamilyScores(
            completed,
            MaximizedLikelihood(),
            per_parameter=0.5 * log(self._reading.rows.total_weight) - (score.penalty_discount or 0.0),
            max_table_cells=network.max_table_cells,
        )


def rest(setting: Mapping) -> Hashable:
    """The parameters that a setting gives besides the graph."""
    return value_key({name: value for name, value in setting.items() if name not in ("structure", "latents")})
