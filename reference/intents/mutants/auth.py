"""Violations of token, scope and the order of the stages (3.1 step 1)."""

from collections.abc import Sequence

from aiohttp import web

from holdfast.reference.intents.acceptance import Acceptance, Call, Stage
from holdfast.reference.intents.mutants.reach import ahead, mapped
from holdfast.reference.intents.mutants.table import violates
from holdfast.reference.intents.principals import ADMIN, WRITE, Principals
from holdfast.reference.intents.problems import Refusal
from holdfast.reference.intents.settings import Token


@violates("IN-AUTH-01", 1, "A request without Authorization header runs as an anonymous principal with all scopes.")
class Anonymous(Principals):
    def authenticate(self, authorization: str, query: dict[str, str]) -> Token:
        return super().authenticate(authorization, query) if authorization else Token("", frozenset({"*"}))


@violates("IN-AUTH-01", 2, "Any non-empty bearer token counts as authenticated.")
class AnyToken(Principals):
    def find(self, given: str) -> Token | None:
        return super().find(given) or (Token(given, frozenset({WRITE})) if given else None)


@violates("IN-AUTH-01", 3, "The configured token is tested with startswith, so its first half authenticates.")
class Beginning(Principals):
    def same(self, known: str, given: str) -> bool:
        return bool(given) and known.startswith(given)


@violates("IN-AUTH-01", 4, "An unknown token gets an empty scope set and is answered 403.")
class NobodyKnown(Principals):
    def find(self, given: str) -> Token | None:
        return super().find(given) or Token(given, frozenset())


@violates("IN-AUTH-01", 5, "A token in the query string is honoured.")
class InTheUrl(Principals):
    def authenticate(self, authorization: str, query: dict[str, str]) -> Token:
        named = [query[name] for name in ("token", "access_token", "api_token") if name in query]
        return super().authenticate(f"Bearer {named[0]}" if named else authorization, query)


@violates("IN-AUTH-02", 1, "Any authenticated token may post intents.")
class AnyScope(Principals):
    def allows(self, scopes: frozenset[str], scope: str) -> bool:
        return scope == WRITE or super().allows(scopes, scope)


@violates("IN-AUTH-02", 2, "v3:admin is demanded, so the write token gets 403.")
class AdminOnly(Principals):
    def allows(self, scopes: frozenset[str], scope: str) -> bool:
        return super().allows(scopes, ADMIN if scope == WRITE else scope)


@violates("IN-AUTH-02", 3, "Substring test on the scope lets v3:write-preview pass.")
class PartOfAWord(Principals):
    def allows(self, scopes: frozenset[str], scope: str) -> bool:
        return super().allows(scopes, scope) or any(scope in each for each in scopes)


@violates("IN-AUTH-03", 1, "Body is decoded before the token is checked: 400 instead of 401.")
class DecodedFirst(Acceptance):
    def stages(self) -> Sequence[Stage]:
        return ahead(super().stages(), self.authenticate, self.decode)


@violates("IN-AUTH-03", 2, "Validation runs between authentication and the scope check: 400 instead of 403.")
class ValidatedBetween(Acceptance):
    def stages(self) -> Sequence[Stage]:
        return ahead(super().stages(), self.authorize, self.decode, self.validate)


@violates(
    "IN-AUTH-03",
    3,
    "Idempotency look-up comes first: an unauthorized repeat of a running start is answered 202 with its session ID.",
)
class LookedUpFirst(Acceptance):
    async def post(self, request: web.BaseRequest, request_id: str) -> web.Response:
        call = Call(request, request_id)
        for stage in ahead(self.stages(), self.authenticate, self.decode, self.validate):
            if stage == self.authenticate and (found := await mapped(self.node, call)):
                call.outcome = found
                break
            await stage(call)
        return self.respond(call)


@violates(
    "IN-AUTH-03",
    4,
    "Key is computed from the raw body before validation, an offset that is no number counting as 0, so the "
    "bad payload is replayed as 202.",
)
class RawKey(Acceptance):
    async def validate(self, call: Call) -> None:
        try:
            await super().validate(call)
        except Refusal:
            call.intent = self.node.payloads.validate({**call.body, "startMs": 0})
            if not await mapped(self.node, call):
                raise
