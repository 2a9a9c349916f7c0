"""Pictures of fits, in scikit-learn's Display convention; the only room that knows matplotlib.

``SomeDisplay.from_estimator(estimator)`` draws and returns the display, whose ``ax_`` (or ``axes_``) and ``figure_``
can be changed further; its ``plot`` draws again elsewhere. matplotlib is needed only when something is drawn:
``pip install 'skvbem[plot]'``.
"""

from typing import TYPE_CHECKING

from skvbem._lazy import names_on_demand

if TYPE_CHECKING:
    from skvbem.plotting.blocks import BlocksDisplay
    from skvbem.plotting.bound import BoundDisplay
    from skvbem.plotting.classes import ClassProfileDisplay
    from skvbem.plotting.components import ComponentsDisplay
    from skvbem.plotting.dag import DAGDisplay
    from skvbem.plotting.durations import DurationsDisplay
    from skvbem.plotting.factors import FactorNumberDisplay, LoadingsDisplay, ResidualsDisplay, ScoresDisplay
    from skvbem.plotting.fitted_columns import FittedColumnsDisplay
    from skvbem.plotting.probabilities import ClassProbabilitiesDisplay
    from skvbem.plotting.pseudo_residuals import PseudoResidualsDisplay
    from skvbem.plotting.rank import RankDisplay
    from skvbem.plotting.sequences import StatePathDisplay, TransitionsDisplay
    from skvbem.plotting.shared_parent import SharedParentDisplay
    from skvbem.plotting.structure_search import StructureSearchDisplay
    from skvbem.plotting.systems import ForecastDisplay, PolesDisplay

__all__ = [
    "BlocksDisplay",
    "BoundDisplay",
    "ClassProfileDisplay",
    "ClassProbabilitiesDisplay",
    "ComponentsDisplay",
    "DAGDisplay",
    "DurationsDisplay",
    "FactorNumberDisplay",
    "FittedColumnsDisplay",
    "ForecastDisplay",
    "LoadingsDisplay",
    "PolesDisplay",
    "PseudoResidualsDisplay",
    "RankDisplay",
    "ResidualsDisplay",
    "ScoresDisplay",
    "SharedParentDisplay",
    "StatePathDisplay",
    "StructureSearchDisplay",
    "TransitionsDisplay",
]

__getattr__, __dir__ = names_on_demand(
    __name__,
    {
        "skvbem.plotting.blocks": ("BlocksDisplay",),
        "skvbem.plotting.bound": ("BoundDisplay",),
        "skvbem.plotting.classes": ("ClassProfileDisplay",),
        "skvbem.plotting.components": ("ComponentsDisplay",),
        "skvbem.plotting.dag": ("DAGDisplay",),
        "skvbem.plotting.durations": ("DurationsDisplay",),
        "skvbem.plotting.factors": (
            "FactorNumberDisplay",
            "LoadingsDisplay",
            "ResidualsDisplay",
            "ScoresDisplay",
        ),
        "skvbem.plotting.fitted_columns": ("FittedColumnsDisplay",),
        "skvbem.plotting.pseudo_residuals": ("PseudoResidualsDisplay",),
        "skvbem.plotting.rank": ("RankDisplay",),
        "skvbem.plotting.sequences": ("StatePathDisplay", "TransitionsDisplay"),
        "skvbem.plotting.shared_parent": ("SharedParentDisplay",),
        "skvbem.plotting.probabilities": ("ClassProbabilitiesDisplay",),
        "skvbem.plotting.structure_search": ("StructureSearchDisplay",),
        "skvbem.plotting.systems": (
            "ForecastDisplay",
            "PolesDisplay",
        ),
    },
)
