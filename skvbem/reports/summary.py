"""`Summary`: what a fit found and how sure it is of it, as text, HTML and a frame, one form for all estimators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from skvbem._tabular import WIDTH, data_frame, html_table, text_table
from skvbem.fitted.latent_states import LatentStates
from skvbem.fitted.parameter_tables import ParameterTable
from skvbem.fitting.evaluation import last_run
from skvbem.fitting.fit import objective_name
from skvbem.fitting.kind import kind_of
from skvbem.reports.membership import membership_tables
from skvbem.reports.standardized_tables import standardized_tables
from skvbem.uncertainty.intervals import ReportedIntervals

# Tables that are printed.
_MAX_TABLES = 40


@dataclass(frozen=True, eq=False)
class Summary:
    """A report of a fit: what was fitted, to how much, how well it went, what was found, and intervals of it.

    It prints as text, and as HTML in notebooks.

    Parameters
    ----------
    title : str
    facts : mapping of str to object
        What was fitted, to what, and the objective that it reached, in nats.
    doubts : tuple of str
        Why the fit, or its intervals, should be read with care.
    states : mapping of str to LatentStates
        By latent, which is "component" in a mixture and "state" in a hidden Markov model.
    tables : tuple of ParameterTable
    level : float
        Mass of the intervals.
    method : str
        What the intervals are from.

    Examples
    --------
    >>> from skvbem import VBMixture
    >>> from skvbem.datasets import load_faithful
    >>> X = load_faithful().data
    >>> report = VBMixture(2, random_state=0).fit(X).summary(X)
    >>> report.facts["data"], report.method
    ('272 rows, 2 columns, no missing cells', 'draws')
    >>> [table.title for table in report.tables]
    ['components', 'gaussian']
    """

    title: str
    facts: Mapping[str, Any]
    doubts: tuple[str, ...]
    states: Mapping[str, LatentStates]
    tables: tuple[ParameterTable, ...]
    level: float
    method: str

    @property
    def intervals(self) -> str:
        """The source of intervals, in words."""
        if self.method == "none":
            return "none; those of summary(X) need X, the data of the fit"
        if self.method == "given":
            return "none: the parameters were given"
        estimates = "; estimates are the means of these" if self.method in ("draws", "linear_response") else ""
        return f"{100 * self.level:g} % in brackets, by {self.method.replace('_', ' ')}{estimates}"

    def to_frame(self):
        """All parameters as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            Columns table, row, column, estimate, lower, upper.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        records = [record for table in self.tables for record in table.records()]
        columns = ["table", "row", "column", "estimate", "lower", "upper"]
        return data_frame(records, type(self).__name__, columns=columns)

    def __repr__(self):
        lines = [self.title, "=" * len(self.title), *_listed(self._lines())]
        for table in self._arranged():
            lines += ["", table.title, "-" * len(table.title), *text_table(["", *table.columns], _cells(table))]
        return "\n".join([*lines, *self._rest()])

    def _repr_html_(self):
        facts = html_table((), list(map(list, self._lines())), align="left")
        tables = "".join(map(_table_as_html, self._arranged()))
        rest = "".join(f"<p>{escape(line)}</p>" for line in self._rest())
        return f"<div><h4>{escape(self.title)}</h4>{facts}{tables}{rest}</div>"

    def _arranged(self) -> list[ParameterTable]:
        """The tables that are printed: states in the order of their shares, empty ones left out."""
        return [table.arranged(self.states) for table in self.tables[:_MAX_TABLES]]

    def _lines(self) -> list[tuple[str, str]]:
        """Facts, states in use and doubts, each with its name."""
        of_facts = [(name, f"{value:,.4f} nats" if isinstance(value, float) else str(value)) for name, value in
                    self.facts.items()]  # fmt: skip
        of_states = [(f"{name} in use", _use(states)) for name, states in self.states.items()]
        return [*of_facts, *of_states, ("intervals", self.intervals), *(("doubt", doubt) for doubt in self.doubts)]

    def _rest(self) -> list[str]:
        left_out = len(self.tables) - _MAX_TABLES
        return [f"{left_out} more tables: to_frame() has all."] if left_out > 0 else []


def _use(states: LatentStates) -> str:
    """States in use, empty ones and duplicates, in words."""
    n = len(states.mass)
    text = f"{len(states.in_use)} of {n}, as uncertain as {states.effective:.2f} of one size"
    if states.empty:
        text += f"; empty, and in no table here: {', '.join(map(str, states.empty))}"
    if states.duplicates:
        text += f"; duplicates: {', '.join(f'{a} and {b}' for a, b in states.duplicates)}"
    return text


def _listed(lines: Sequence[tuple[str, str]]) -> list[str]:
    """Names and texts side by side, long texts folded."""
    width = max(len(name) for name, _ in lines) + 2
    folded = []
    for name, text in lines:
        first, *more = _folded(text, WIDTH - width)
        folded += [f"{name:<{width}}{first}", *(" " * width + line for line in more)]
    return folded


def _folded(text: str, width: int) -> list[str]:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".lstrip()
    return lines


def _cells(table: ParameterTable) -> list[list[str]]:
    """The rows of a table as texts, their names first."""
    return [[name, *of_row] for name, of_row in zip(table.rows, table.cells())]


def _table_as_html(table: ParameterTable) -> str:
    return html_table(["", *table.columns], _cells(table), caption=table.title)


# Names of the forms of q(theta) in reports.
_METHODS = {"vb": "variational Bayes", "map": "the posterior mode (MAP)", "ml": "maximum likelihood"}


def summary(estimator, intervals: ReportedIntervals, level: float) -> Summary:
    """The report of a fitted estimator, with intervals of some mass."""
    fitted, kind = estimator.fitted, kind_of(estimator)
    is_given = fitted.given is not None
    return Summary(
        f"{type(estimator).__name__}: {kind.title(fitted)}",
        _facts(estimator),
        (*(() if is_given else _reservations(estimator)), *intervals.doubts),
        {} if is_given else estimator.latent_states_,
        (
            *intervals.tables(fitted),
            *membership_tables(fitted, intervals.draws, level),
            *standardized_tables(fitted, intervals, level),
        ),
        level,
        intervals.method,
    )


def _facts(estimator) -> dict[str, Any]:
    """Data, prior, objective and steps of a fit, by name."""
    fitted, run = estimator.fitted, last_run(estimator)
    n_free, n = estimator.n_free_parameters_, getattr(estimator, "n_samples_", 0)
    if fitted.given is not None:
        return {"parameters": "given, and not fitted", "free parameters": n_free}
    form = fitted.form
    facts: dict[str, Any] = {"fitted by": _METHODS[form.name] + " in probabilities" * bool(form.lowered_by)}
    if run is None or run.extent is None:
        facts["data"] = f"rows of total weight {n:g}, in batches"
        facts["lower bound of the last batch"] = estimator.batch_lower_bound_
    else:
        facts["data"] = f"{run.extent}" + ("" if n == run.extent.n_rows else f", total weight {n:g}")
        if form.prior_share:
            facts["prior"] = run.prior
        objective = objective_name(form.name, run.fit.state is None)
        facts[objective[:-1].replace("_", " ")] = getattr(estimator, objective)
    facts["free parameters"] = n_free
    facts["steps"] = f"{estimator.n_iter_:,}, {'converged' if estimator.converged_ else 'not converged'}"
    if run is not None:
        facts["starts"] = estimator.restarts_.in_words()
    return facts


def _reservations(estimator) -> list[str]:
    """Reasons to read a fit with care."""
    reasons, n_free = [], estimator.n_free_parameters_
    if not estimator.converged_:
        reasons.append("The fit has not converged: raise 'max_iter'.")
    if last_run(estimator) is not None:
        reasons += estimator.restarts_.doubts()
    if n_free > estimator.n_samples_:
        reasons.append(f"There are more free parameters ({n_free:,}) than rows.")
    return [*reasons, *kind_of(estimator).reservations(estimator.fitted)]
