"""Fits of the candidates that were scored last, so that a further score of one does not fit it anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from skvbem.evidence.evaluation import Evaluation
from skvbem.search.tuning import TUNING
from skvbem.spaces.settings import value_key


class Evaluations:
    """Evaluations of the candidates that were asked for last, by their settings; none of large tables.

    Threads may share them. Processes do not: a copy that is sent to another is empty.
    """

    def __init__(self) -> None:
        self._by_setting: dict[frozenset, Evaluation] = {}

    def of(self, setting: Mapping, n_cells: float, evaluate: Callable[[], Evaluation]) -> Evaluation:
        """The evaluation of a setting, on data of so many cells: the one that is kept, or a new one."""
        key = frozenset((name, type(value), value_key(value)) for name, value in setting.items())
        evaluation = self._by_setting.pop(key, None) or evaluate()
        if n_cells <= TUNING.kept_cells:
            self._by_setting[key] = evaluation
            n_kept = int(min(TUNING.n_kept, TUNING.all_kept_cells / n_cells))
            for oldest in list(self._by_setting)[:-n_kept]:
                self._by_setting.pop(oldest, None)
        return evaluation

    def __reduce__(self) -> tuple:
        return type(self), ()
