"""Networks on data that grow context by context."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from skvbem._kernels._contexts import weights
from skvbem._kernels._contraction import Contraction
from skvbem.models.network.assembly import blocks
from skvbem.models.network.program import Program


@dataclass(frozen=True, eq=False)
class NetworkPortions:
    """Portions of a program; see `skvbem.capabilities.Portions`.

    A unit is a context that counts once: given the tables, the hidden parts of a row are independent of each other.
    """

    def order(self, data: Program, rng: np.random.Generator) -> np.ndarray:
        """All units in an order drawn at random, (n_units,): each context as often as it counts."""
        counts = weights(data.contraction).astype(np.int64)
        return rng.permutation(np.repeat(np.arange(len(counts)), counts))

    def portion(self, data: Program, order: np.ndarray, n_units: int) -> Program:
        """The first of so many units in an order, compiled as the data are; plans know of no rows."""
        weight = np.bincount(order[:n_units], minlength=data.contraction.n_contexts).astype(float)
        contraction, sizes = _with_weights(data.contraction.arrays, weight)
        plans = tuple(
            replace(plan, n_contexts=int(n), rows=None, context_of_row=None, row_of_context=None)
            for plan, n in zip(data.plans, sizes)
        )
        return replace(data, contraction=contraction, plans=plans, total_weight=float(n_units))

    def known(self, data: Program) -> np.ndarray:
        """Counts of families of which nothing is hidden, (n_cells,)."""
        return data.contraction.certain_counts()


def _with_weights(arrays: dict, weight: np.ndarray) -> tuple[Contraction, np.ndarray]:
    """A program whose contexts count so often, those of weight 0 left out; how many each plan keeps."""
    starts, slots_at, codes_at = arrays["plan_context"], arrays["plan_slot"], arrays["plan_code"]
    codes, mass, kept, work = [], np.zeros_like(arrays["mass"]), [], []
    for plan, (first, last) in enumerate(pairwise(starts)):
        here = weight[first:last]
        order = np.argsort(here, kind="stable")  # equal weights side by side: their logarithms are taken together
        order = order[np.count_nonzero(here == 0.0) :]
        n_slots = int(slots_at[plan + 1] - slots_at[plan])
        of_plan = arrays["codes"][codes_at[plan] : codes_at[plan + 1]].reshape(last - first, n_slots)[order]
        for slot, column in zip(range(slots_at[plan], slots_at[plan + 1]), of_plan.T):
            size = int(arrays["slot_codes"][slot])
            at = int(arrays["slot_mass"][slot])
            mass[at : at + size] = np.bincount(column, weights=here[order], minlength=size)
        codes.append(of_plan.ravel())
        kept.append(here[order])
        work.append(int(arrays["plan_work"][plan]) // int(last - first) * len(order))
    sizes = np.array([len(each) for each in kept], dtype=np.int64)
    ends = {
        "plan_context": np.concatenate([[0], np.cumsum(sizes)]),
        "plan_code": np.concatenate([[0], np.cumsum(sizes * np.diff(slots_at))]),
    }
    ends = {name: each.astype(np.int64) for name, each in ends.items()}
    pieces = {"codes": codes, "weight": kept}
    joined = {name: np.concatenate([*each, arrays[name][:1]]) for name, each in pieces.items()}  # never empty
    return Contraction(
        arrays
        | ends
        | joined
        | {"mass": mass, "n_contexts": int(sizes.sum()), "plan_work": np.array(work, dtype=np.int64)}
        | blocks(ends["plan_context"], arrays["slot_table"][slots_at], work)
    ), sizes
