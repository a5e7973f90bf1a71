"""Violations of the waiting line rows."""

from holdfast.reference.admission.mutants.registry import violation

violation(
    "AD-QUEUE-02",
    2,
    "Scores have millisecond resolution, so equal ones fall back to the order of ids.",
    lua={"enqueue_score": "return math.floor(now / 1000)"},
)
