"""Scores of the evidence, the capabilities that they may ask for, and the value that they return.

A score approximates ln p(data | structure), the log marginal likelihood, in total nats with every constant: values
compare across structures, numbers of states and estimator classes, and more is better. Scores know families and the
algorithm, never models: what a score needs of one it declares by name, as capabilities (`skvbem.capabilities`), and a
model that lacks one gets an error that says so.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import total_ordering
from typing import Any

from skvbem._names import did_you_mean
from skvbem._progress import long_call
from skvbem._tabular import named_values
from skvbem.capabilities import Capabilities
from skvbem.evidence.evaluation import FORMS, Evaluation

#: Options of every score: its time budget, and its progress; see `skvbem._progress.long_call`.
OF_LONG_CALLS = ("verbose", "time_budget", "progress")


@total_ordering
@dataclass(frozen=True, eq=False)
class Evidence:
    """An approximation to the log marginal likelihood.

    Evidences compare by value, with each other and with numbers.

    Parameters
    ----------
    value : float
        Total nats; higher is better.
    kind : str
        Name of the score.
    is_lower_bound : bool
        Whether the value cannot exceed the log marginal likelihood; of sampling scores, in expectation.
    standard_error : float or None
        Standard error of the value, nats, where it is random.
    form : {"vb", "map", "map_probability", "ml"} or None
        The fit the score was evaluated at; modes in the natural basis or in probabilities.
    n_free_parameters : int
        The dimension d that entered, or the count of free parameters.
    n_samples : float
        The n that entered: sum of the weights of the rows.
    details : mapping
        What else the score found, such as effective sample sizes and traces.
    note : str
        What else the value is conditional on, such as a prior optimized on the same data.
    doubts : tuple of str
        Why the value should not be trusted; estimators make each an `EvidenceWarning`.
    """

    value: float
    kind: str
    is_lower_bound: bool
    standard_error: float | None = None
    form: str | None = None
    n_free_parameters: int = 0
    n_samples: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    doubts: tuple[str, ...] = ()

    def __post_init__(self):
        if math.isnan(self.value):
            raise FloatingPointError(f"The score {self.kind!r} is not a number. That is a defect of the score.")

    def __float__(self):
        return float(self.value)

    def __lt__(self, other):
        return self.value < float(other)

    def __eq__(self, other):
        try:
            return self.value == float(other)
        except (TypeError, ValueError):
            return NotImplemented

    def __hash__(self):
        return hash(self.value)

    def _repr_html_(self):
        facts = {"log evidence": f"{self.value:,.4f} nats", "score": self.kind + ", lower bound" * self.is_lower_bound}
        if self.standard_error is not None:
            facts["standard error"] = f"{self.standard_error:.2g} nats"
        if self.form:
            facts["at the fit by"] = self.form
        facts |= {"free parameters": f"{self.n_free_parameters:,}", "rows": f"{self.n_samples:g}"}
        if self.note:
            facts["note"] = self.note
        return named_values(facts | {f"doubt {k}": doubt for k, doubt in enumerate(self.doubts, start=1)})

    def __repr__(self):
        error = "" if self.standard_error is None else f" ± {self.standard_error:.2g}"
        bound = ", lower bound" if self.is_lower_bound and self.kind != "exact" else ""
        if bound and self.standard_error is not None:
            bound += " on average"
        form = f", at the {self.form.upper()} fit" if self.form else ""
        note = f", {self.note}" if self.note else ""
        size = f"d={self.n_free_parameters}, n={self.n_samples:g}"
        return f"Evidence({self.value:.4f}{error} nats, {self.kind}{bound}{form}, {size}{note})"


@dataclass(frozen=True)
class Score:
    """A way to approximate the evidence.

    Parameters
    ----------
    name : str
    compute : callable
        Takes an Evaluation and options by name, and returns an Evidence.
    needs : tuple of str
        The capabilities that it needs of a model, fields of `skvbem.capabilities.Capabilities`.
    form : {"vb", "map", "ml"} or None
        The form of fit it is evaluated at by default: that of the function's option `form`, if it has one.
    random : bool
        Whether it draws, so that its value has a standard error and depends on a seed.
    sums_over_rows : bool
        Whether it needs no more of the rows than sums over them, so that they need not be in memory all at once. What
        corrects it for relabelings, its option `alias`, does.
    exact_if_complete : bool
        Whether it is the evidence itself where nothing is hidden, and so a sum over families.
    bounds_by_any_q : bool
        Whether it is right for a q(x) that is a product over clusters of hidden nodes, too.
    closes_gap_of_clusters : bool
        Whether it makes up for most of what a bound loses where q(x) is such a product.
    always_exact : bool
        Whether it is the evidence itself whatever is hidden.
    penalty_discount : float or None
        For a log likelihood less a penalty for each free parameter: half ln n less this penalty, nats; else None.
    """

    name: str
    compute: Callable[..., Evidence]
    needs: tuple[str, ...] = ()
    form: str | None = None
    random: bool = False
    sums_over_rows: bool = False
    exact_if_complete: bool = False
    bounds_by_any_q: bool = False
    closes_gap_of_clusters: bool = False
    always_exact: bool = False
    penalty_discount: float | None = None

    @property
    def is_evidence(self) -> bool:
        """Whether it is the evidence, up to a standard error that it states."""
        return self.random or self.always_exact

    @property
    def is_penalized_likelihood(self) -> bool:
        """True if it is the highest log likelihood less the same for each free parameter."""
        return self.form == "ml" and self.penalty_discount is not None

    def needs_rows_in_memory(self, options: Mapping[str, Any]) -> bool:
        """True if the score looks at rows, with these options."""
        return not self.sums_over_rows or bool(options.get("alias"))

    def __post_init__(self):
        known = [field.name for field in fields(Capabilities)]
        if isinstance(self.needs, str):
            raise TypeError(f"The score {self.name!r} needs a tuple of capabilities. Got the text {self.needs!r}.")
        if self.form not in (None, *FORMS):
            forms = ", ".join(map(repr, FORMS))
            raise ValueError(
                f"The 'form' of the score {self.name!r} must be None or one of {forms}. Got {self.form!r}."
            )
        default = inspect.signature(self.compute).parameters.get("form")
        if default is not None and default.default in FORMS and self.form != default.default:
            if self.form is not None:
                raise ValueError(
                    f"The 'form' of the score {self.name!r} must be that of its function, {default.default!r}, or left "
                    f"out. Got {self.form!r}."
                )
            object.__setattr__(self, "form", default.default)
        for need in self.needs:
            if need not in known:
                names = ", ".join(known)
                raise ValueError(f"The score {self.name!r} needs {need!r}, which is no capability. These are {names}.")

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options that the score takes."""
        parameters = inspect.signature(self.compute).parameters.values()
        return tuple(p.name for p in parameters if p.kind == p.KEYWORD_ONLY)

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raise a TypeError if there is an option it does not have, beside those of all long calls."""
        for name in options:
            if name not in self.options and name not in OF_LONG_CALLS:
                known = f"Its options are {', '.join(self.options)}." if self.options else "It has none."
                hint = did_you_mean(name, (*self.options, *OF_LONG_CALLS))
                raise TypeError(f"The score {self.name!r} has no option {name!r}.{hint} {known}")

    def __call__(self, evaluation: Evaluation, **options) -> Evidence:
        """The evidence by this score; TypeError for options it does not have, and models that lack what it needs."""
        limits = {name: options.pop(name) for name in OF_LONG_CALLS if name in options and name not in self.options}
        self.check_options(options)
        with long_call(f"{getattr(evaluation, 'owner', 'evidence')}: {self.name}", **limits) as call:
            evidence = self._computed(evaluation, options)
        doubts = [*evidence.doubts, *evaluation.doubts_of(evidence.form)]
        if call.was_cut:
            doubts.append(cut_short(evidence))
        return replace(evidence, note=evaluation.note, doubts=tuple(doubts))

    def _computed(self, evaluation: Evaluation, options: Mapping[str, Any]) -> Evidence:
        if not (self.bounds_by_any_q or getattr(evaluation, "is_exact", True)):
            raise needs_exact_inference(self.name)
        for need in self.needs:
            evaluation.capability(need, f"The score {self.name!r}")
        if options.get("form", self.form) == "map" and "form" in self.options:
            options = {**options, "form": getattr(evaluation, "mode", "map")}
        evidence = self.compute(evaluation, **options)
        if not isinstance(evidence, Evidence):
            raise TypeError(f"The score {self.name!r} must return an Evidence. It returned {evidence!r}.")
        return evidence


def cut_short(evidence: Evidence) -> str:
    """The warning of a value for which the time was too short."""
    error = evidence.standard_error
    reached = "" if error is None or math.isnan(error) else f", with a standard error of {error:.2g} nats"
    return (
        f"{evidence.kind}: the 'time_budget' ended before all that was planned was drawn. The value is from what was "
        f"drawn until then{reached}. Give it more seconds, or none."
    )


def needs_exact_inference(kind: str) -> ValueError:
    """The error that says which scores there are where q(x) is a product over clusters of hidden nodes."""
    return ValueError(
        f"The score {kind!r} needs ln p(data | parameters) exactly, and q of the hidden variables is a product over "
        "clusters here: it has a lower bound of that. Take 'collapsed', the tightest bound there is, 'lower_bound', "
        "'cheeseman_stutz' with form='vb', 'ais', 'exact' of tiny data, or fit with inference='exact'."
    )


def check_whole_weights(evaluation: Evaluation, kind: str) -> None:
    """Scores that complete rows draw or enumerate hidden states row by row: a row counts a whole number of times."""
    if not evaluation.data.has_whole_weights:
        raise ValueError(
            f"The score {kind!r} completes rows and needs whole-number sample weights. Use 'auto' or "
            "'importance', which sum hidden variables out, or a deterministic score such as 'lower_bound'."
        )
