"""Load of intents. Works with Locust directly: `locust -f load/intents.py --headless --campaign L1`."""

from collections.abc import Mapping
from typing import Any, ClassVar

from holdfast.load.cycling import Contending, Cycling, Refusing, Replaying, Seeking
from holdfast.load.locustfile import options, plan_of_this_run
from holdfast.load.messages import take_part
from holdfast.load.starting import Herding, IntentsUser, Rivalling


class Intents(IntentsUser):
    behaviours: ClassVar[Mapping[str, Any]] = {
        "herding": Herding,
        "rivalling": Rivalling,
        "cycling": Cycling,
        "replaying": Replaying,
        "contending": Contending,
        "refusing": Refusing,
        "seeking": Seeking,
    }


options("intents")
take_part(plan_of_this_run)
