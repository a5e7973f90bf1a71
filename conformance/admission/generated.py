"""Generated examples, as checks use them: the same for the same seed, bounded, never shrunk at the check's expense."""

from collections.abc import Callable
from typing import Any

import hypothesis

from holdfast.conformance.admission.client import Admission


def try_examples(admission: Admission, strategy: Any, count: int, try_one: Callable[[Any], None]) -> None:
    """Synchronous, so it belongs into a thread (`holdfast.bridge`)."""

    @hypothesis.seed(admission.context.seed)
    @hypothesis.settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[hypothesis.Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategy)
    def each(example: Any) -> None:
        try_one(example)

    each()
