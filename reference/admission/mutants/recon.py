"""Violations of the reconnection rows."""

from holdfast.reference.admission.mutants.registry import violation

violation(
    "AD-RECON-04",
    2,
    "The token record is stored with a TTL of 900 s.",
    settings=lambda given: {"token_ttl": 15 * given.token_ttl},
)
