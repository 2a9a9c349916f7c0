"""Approximations to the log marginal likelihood ln p(data | structure), and its exact value for tiny data.

Every score takes an `Evaluation` (a model, its data and its fits) and returns an `Evidence`, in total nats, higher is
better, with every constant kept. Users ask estimators (`log_evidence`), or for several scores at once `evidence_table`.
"""

from skvbem._lazy import names_on_demand
from skvbem.evidence.base import Evidence, Score
from skvbem.evidence.certify import Certificate
from skvbem.evidence.registry import DEFAULT_SCORE, SCORES, get_score, register_score, score_of

__all__ = [
    "DEFAULT_SCORE",
    "SCORES",
    "AllRows",
    "Certificate",
    "Evidence",
    "EvidenceScorer",
    "EvidenceTable",
    "Score",
    "certify_evidence",
    "evidence_table",
    "get_score",
    "register_score",
    "score_of",
    "scorer",
]

# These take fitted estimators, which stand on a higher floor.
__getattr__, __dir__ = names_on_demand(
    __name__,
    {
        "skvbem.reports.evidence_tables": (
            "AllRows",
            "EvidenceScorer",
            "EvidenceTable",
            "certify_evidence",
            "evidence_table",
            "scorer",
        ),
    },
)
