"""Pictures of fits, in scikit-learn's Display convention; the only room that knows matplotlib.

``SomeDisplay.from_estimator(estimator)`` draws and returns the display, whose ``ax_`` (or ``axes_``) and ``figure_``
can be changed further; its ``plot`` draws again elsewhere. matplotlib is needed only when something is drawn:
``pip install 'skvbem[plot]'``.
"""

from typing import TYPE_CHECKING

from skvbem._lazy import names_on_demand

if TYPE_CHECKING:
    from skvbem.plotting.components.class_profile_display import ClassProfileDisplay
    from skvbem.plotting.components.components_display import ComponentsDisplay
    from skvbem.plotting.factors.factor_number_display import FactorNumberDisplay
    from skvbem.plotting.factors.loadings_display import LoadingsDisplay
    from skvbem.plotting.factors.residuals_display import ResidualsDisplay
    from skvbem.plotting.factors.scores_display import ScoresDisplay
    from skvbem.plotting.networks.dag_display import DAGDisplay
    from skvbem.plotting.networks.shared_parent_display import SharedParentDisplay
    from skvbem.plotting.search.bound_display import BoundDisplay
    from skvbem.plotting.search.rank_display import RankDisplay
    from skvbem.plotting.search.structure_search_display import StructureSearchDisplay
    from skvbem.plotting.sequences.state_path_display import StatePathDisplay
    from skvbem.plotting.sequences.transitions_display import TransitionsDisplay
    from skvbem.plotting.systems.forecast_display import ForecastDisplay
    from skvbem.plotting.systems.poles_display import PolesDisplay

__all__ = [
    "BoundDisplay",
    "ClassProfileDisplay",
    "ComponentsDisplay",
    "DAGDisplay",
    "FactorNumberDisplay",
    "ForecastDisplay",
    "LoadingsDisplay",
    "PolesDisplay",
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
        "skvbem.plotting.components.class_profile_display": ("ClassProfileDisplay",),
        "skvbem.plotting.components.components_display": ("ComponentsDisplay",),
        "skvbem.plotting.factors.factor_number_display": ("FactorNumberDisplay",),
        "skvbem.plotting.factors.loadings_display": ("LoadingsDisplay",),
        "skvbem.plotting.factors.residuals_display": ("ResidualsDisplay",),
        "skvbem.plotting.factors.scores_display": ("ScoresDisplay",),
        "skvbem.plotting.networks.dag_display": ("DAGDisplay",),
        "skvbem.plotting.networks.shared_parent_display": ("SharedParentDisplay",),
        "skvbem.plotting.search.bound_display": ("BoundDisplay",),
        "skvbem.plotting.search.rank_display": ("RankDisplay",),
        "skvbem.plotting.search.structure_search_display": ("StructureSearchDisplay",),
        "skvbem.plotting.sequences.state_path_display": ("StatePathDisplay",),
        "skvbem.plotting.sequences.transitions_display": ("TransitionsDisplay",),
        "skvbem.plotting.systems.forecast_display": ("ForecastDisplay",),
        "skvbem.plotting.systems.poles_display": ("PolesDisplay",),
    },
)
