"""Tries the tokens of the descriptor before the first check, with calls that change nothing."""

import uuid
from typing import NoReturn

from holdfast.check.finding import Inconclusive, WronglyGiven
from holdfast.conformance.intents import wire
from holdfast.conformance.intents.caller import WRITERS
from holdfast.conformance.intents.client import Intents


async def look(intents: Intents) -> list[str]:
    """Returns which tokens the target took; raises WronglyGiven if it refuses one of them.

    A write token is tried with a body that can't be taken: who is not let in learns that before anything else.
    """
    took = list[str]()
    for name in (*WRITERS, "read", "admin"):
        if not intents.has_credential(name):
            continue
        if name in WRITERS:
            answer = await intents.post({}, intents.bearer(name))
            asked = f"POST {wire.INTENTS}"
        else:
            answer = await intents.poll(str(uuid.uuid4()), intents.bearer(name))
            asked = f"GET {wire.SESSIONS}/…"
        if not answer.answered:
            raise Inconclusive(f"no answer to {asked}")
        if answer.status in (401, 403):
            _refused(intents, name, asked, answer.status)
        took += [name] if answer.status < 500 else []
    return took


def _refused(intents: Intents, name: str, asked: str, status: int) -> NoReturn:
    raise WronglyGiven(
        f"[credentials] {name}: the target answers {status} to {asked}; mend it in {intents.context.target.file}"
    )
