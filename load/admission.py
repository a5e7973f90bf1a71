"""Load of the admission service. Works with Locust directly: `locust -f load/admission.py --headless --campaign L1`."""

from collections.abc import Mapping
from typing import Any, ClassVar

from holdfast.load.admitting import AdmissionUser, Direct, Limited, Stampede, Waiting
from holdfast.load.locustfile import options, plan_of_this_run
from holdfast.load.messages import take_part
from holdfast.load.queueing import Audited, Churning
from holdfast.load.returning import Recovering, Returning


class Admission(AdmissionUser):
    behaviours: ClassVar[Mapping[str, Any]] = {
        "direct": Direct,
        "stampede": Stampede,
        "waiting": Waiting,
        "limited": Limited,
        "churning": Churning,
        "audited": Audited,
        "returning": Returning,
        "recovering": Recovering,
    }


options("admission")
take_part(plan_of_this_run)
