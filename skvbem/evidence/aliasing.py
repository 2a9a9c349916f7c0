r"""Labels of hidden states are arbitrary: an approximation that knows one of them may count the others.

With S relabelings that leave graph, prior and data as they are, the posterior is S equal pieces. A score that looks at
one of them misses :math:`\ln S` where the pieces lie apart, and less where they overlap: "+ ln S" is a *heuristic*, and
what is a lower bound without it need not be one with it.

A lower bound can do better. The mixture of q over all relabelings is a distribution like any other, and its bound is
that of q plus

.. math::

    \ln S - \Big\langle \ln\Big(1 + \sum_{g \ne 1} q_g / q\Big) \Big\rangle_q
    \;\ge\; \ln S - \tfrac1s \ln\Big(1 + \sum_{g \ne 1} \langle (q_g / q)^s \rangle_q\Big), \qquad 0 < s \le 1,

by Jensen's inequality, where the overlaps have closed form: q(theta) and q(x) are exponential families, and
:math:`\int q^{1-s} q_g^s` is a ratio of normalizers at interpolated natural parameters. That is a *bound*, and next to
:math:`\ln S` where the pieces lie apart.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from skvbem.evidence.evaluation import Evaluation
from skvbem.evidence.tuning import TUNING

# Exponents s to try; at 1 the gain is 0.
_EXPONENTS = (0.5, 0.625, 0.75)


def alias_correction(evaluation: Evaluation) -> float:
    """ln S, nats: of the number of relabelings of hidden nodes and states that graph, prior and data do not tell apart.

    Hidden nodes without observed descendants do not count: their posterior is their prior, symmetric already. Added to
    a score that looks at one piece of the posterior this is a heuristic, right where the pieces lie apart.
    """
    return evaluation.capability("relabelings", "alias=True").log_n_relabelings(evaluation.hidden)


def alias_gain(
    evaluation: Evaluation, natural: np.ndarray, statistics: np.ndarray | None = None, max_relabelings: int = 5040
) -> float:
    """Gain of a lower bound, which stays one, from mixing its q over all relabelings; nats, between 0 and ln S.

    Parameters
    ----------
    evaluation : Evaluation
    natural : ndarray of shape (n_cells,)
        Natural parameters of q(x).
    statistics : ndarray of shape (n_cells,), optional
        q(theta) is the prior plus these; none where the bound has no q(theta), and none of hidden hyperparameters.
    max_relabelings : int, default=5040
        Most relabelings to mix.

    Raises
    ------
    TooLargeError
        If there are more.
    """
    model = evaluation.model
    relabelable = evaluation.capability("relabelings", "alias=True")
    relabelings = relabelable.listed_relabelings(evaluation.hidden, max_relabelings)
    others = relabelings[(relabelings != np.arange(relabelings.shape[1])).any(axis=1)]
    if len(others) == 0:
        return 0.0
    log_z = evaluation.expectation(natural, "alias=True")[1]
    if statistics is not None:
        log_z += float(model.prior.log_normalizer_of_hyperparameters(natural))
    best = 0.0
    for s in _EXPONENTS:
        log_overlaps = []
        for at in range(0, len(others), TUNING.lanes):
            batch = others[at : at + TUNING.lanes].T
            mixed = (1.0 - s) * natural[:, None] + s * natural[batch]
            log_overlap = model.expect(mixed, evaluation.data).log_normalizer - log_z
            if statistics is not None:
                log_overlap = log_overlap + model.prior.log_normalizer_of_hyperparameters(mixed)
                # no relabeling changes the prior
                interpolated = (1.0 - s) * statistics[:, None] + s * statistics[batch]
                log_overlap = (
                    log_overlap + model.prior.log_evidence(interpolated) - model.prior.log_evidence(statistics)
                )
            log_overlaps.append(np.minimum(log_overlap, 0.0))
        total = logsumexp([0.0, *np.concatenate(log_overlaps)])
        best = max(best, float(np.log(len(relabelings)) - total / s))
    return best
