"""The phase of the migration that a target is in, and the one that a check judges.

The catalogue says "phase 2 unless a row says otherwise", so the suite's deployments are in phase 2, and a check of
phase 1 has one of its own with the flag set (`settings=PHASE_1`). A target may be elsewhere (`[dialect] phase`): where
the flag is gone there is no phase 1 to judge, and what is started in phase 1 answers conflicts with 409, which rows
about phase 2 would take for violations.
"""

from collections.abc import Mapping

from holdfast.check.context import Context
from holdfast.check.finding import NotApplicable, NotObservable

# Settings of an API in the two phases that a flag tells apart.
PHASE_1: Mapping[str, str] = {"api_leases": "true"}
PHASE_2: Mapping[str, str] = {"api_leases": "false"}
# The row about a target without the flag brings it into its phase by itself.
_CHOOSES = "IN-PHASE-07"


def must_fit(context: Context) -> None:
    """Raises NotApplicable or NotObservable where the target is in another phase than the check is about."""
    phase = context.target.dialect.get("phase", 2)
    flag = context.spec.settings.get("api_leases")
    if phase == 3 and flag == PHASE_1["api_leases"]:
        raise NotApplicable("the target is in phase 3, where there is no flag")
    if phase == 1 and flag is None and not any(claim.id == _CHOOSES for claim in context.spec.claims):
        raise NotObservable("[dialect] phase = 2", "the descriptor starts the target in phase 1, with the flag on")
