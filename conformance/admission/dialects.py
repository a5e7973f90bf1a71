"""How targets spell the contract: a codec builds requests and translates answers, so that checks speak one language.

The contract dialect is canonical. `tilemud-code` is what the upstream source speaks. Which one a target speaks is in
its descriptor (`[dialect] name`). Every answer of a driver passes through its codec, also those to requests that no
codec would build; checks that build such requests take the names of fields from it.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from holdfast.check.finding import NotObservable
from holdfast.conformance.admission.wire import REASONS, Answer
from holdfast.conformance.shared.wire import Request


class Contract:
    """The contract dialect: OpenAPI names, structured outcomes with HTTP 200."""

    name = "contract"
    # What an attempt calls its parts, for bodies that no codec would build.
    character_field = "characterId"
    build_field = "clientBuild"
    token_field = "reconnectionToken"  # noqa: S105 - a name, no token

    def connect(
        self,
        instance: str,
        *,
        character: Any,
        build: str | None,
        token: Any = None,
        replace: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Request:
        body = {self.character_field: character, self.build_field: build, self.token_field: token, **(extra or {})}
        said = {name: value for name, value in body.items() if value is not None}
        query = {"replaceToken": replace} if replace else {}
        return Request("POST", f"/instances/{instance}/connect", said, query=query)

    def read(self, answer: Answer) -> Answer:
        return answer


class TilemudCode(Contract):
    """The upstream code's own spelling."""

    name = "tilemud-code"
    build_field = "clientVersion"
    _OUTCOMES: ClassVar[dict[str, tuple[str, str | None]]] = {
        "admitted": ("success", None),
        "replaced": ("success", None),
        "already_in_session": ("failed", "ALREADY_IN_SESSION"),
        "invalid_replace_token": ("failed", "INVALID_REPLACE_TOKEN"),
        "suspended": ("failed", "CHARACTER_SUSPENDED"),
        "invalid_instance": ("failed", "INVALID_INSTANCE"),
        "invalid_request": ("failed", "INVALID_REQUEST"),
        "drain_mode": ("failed", "DRAIN_MODE"),
        "rate_limited": ("failed", "RATE_LIMITED"),
        "timeout": ("timeout", "TIMEOUT"),
        "server_error": ("failed", "INTERNAL_ERROR"),
    }

    def connect(
        self,
        instance: str,
        *,
        character: Any,
        build: str | None,
        token: Any = None,
        replace: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Request:
        request = super().connect(instance, character=character, build=build, token=token, extra=extra)
        return dataclasses.replace(request, body=request.body | ({"replaceToken": replace} if replace else {}))

    def read(self, answer: Answer) -> Answer:
        if not isinstance(answer.body, dict) or "outcome" not in answer.body:
            return answer
        body = dict(answer.body)
        outcome, reason = self._OUTCOMES.get(str(body["outcome"]), (body["outcome"], None))
        body["outcome"] = outcome
        # Refusals for which this dialect has no outcome are server errors, with the code as their message.
        told = str(body.get("message", "")).upper()
        if reason:
            body["reason"] = told if reason == "INTERNAL_ERROR" and told in REASONS else reason
        for contract_name, own_name in (
            ("sessionId", "sessionToken"),
            ("position", "queuePosition"),
            ("attemptId", "correlationId"),
        ):
            if own_name in body:
                body.setdefault(contract_name, body[own_name])
        return dataclasses.replace(answer, body=body)


DIALECTS: dict[str, Contract] = {codec.name: codec for codec in (Contract(), TilemudCode())}


def dialect(name: str) -> Contract:
    """Returns the codec of this name. Raises NotObservable if there is none."""
    if name not in DIALECTS:
        raise NotObservable(f"[dialect] name as one of {', '.join(DIALECTS)}", f'it says "{name}"')
    return DIALECTS[name]
