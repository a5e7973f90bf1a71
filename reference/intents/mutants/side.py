"""Violations of "no side effects" of refused requests (section 6)."""

from collections.abc import Sequence

from holdfast.reference.intents.acceptance import Acceptance, Call, Stage
from holdfast.reference.intents.mutants.reach import ahead
from holdfast.reference.intents.mutants.table import violates
from holdfast.reference.intents.payloads import STOP


@violates("IN-SIDE-01", 1, "Mapping or record is written before the token check.")
class RecordedFirst(Acceptance):
    def stages(self) -> Sequence[Stage]:
        return ahead(super().stages(), self.authenticate, self.decode, self.validate, self.record)


@violates("IN-SIDE-01", 2, "A copy of the intent is published before the token check.")
class CopiedFirst(Acceptance):
    async def authenticate(self, call: Call) -> None:
        await self.node.store.publish(self.start_event(call))
        await super().authenticate(call)


@violates("IN-SIDE-01", 3, "The scope is checked after the record was stored.")
class ScopeAfterwards(Acceptance):
    def stages(self) -> Sequence[Stage]:
        return ahead(super().stages(), self.authorize, self.decode, self.validate, self.record)


@violates("IN-SIDE-01", 4, "The event is published before the scope check.")
class PublishedBeforeScope(Acceptance):
    async def authorize(self, call: Call) -> None:
        await self.node.store.publish(self.start_event(call))
        await super().authorize(call)


@violates("IN-SIDE-02", 1, "The scope check is applied to stream.start only.")
class StopsWithoutScope(Acceptance):
    def stages(self) -> Sequence[Stage]:
        return ahead(super().stages(), self.authorize, self.decode, self.validate)

    async def authorize(self, call: Call) -> None:
        if call.intent.type != STOP:
            await super().authorize(call)


@violates("IN-SIDE-02", 2, "The stop mark is written to the record before the token check.")
class MarkedFirst(Acceptance):
    def stages(self) -> Sequence[Stage]:
        return ahead(super().stages(), self.authenticate, self.decode, self.validate, self.mark)

    async def mark(self, call: Call) -> None:
        if call.intent.type == STOP:
            await self.record(call)


class LeaseEarly(Acceptance):
    """Phase 1 with the lease in front of another stage."""

    def stages(self) -> Sequence[Stage]:
        early = (self.decode, self.validate, self.dedup_lease)
        return ahead(super().stages(), self.authorize, *early) if self.phase1 else super().stages()


@violates("IN-SIDE-03", 1, "The lease is taken before the scope check.")
class LeaseBeforeScope(LeaseEarly):
    pass


@violates("IN-SIDE-03", 2, "The lease is taken before validation.")
class LeaseBeforeValidation(Acceptance):
    async def validate(self, call: Call) -> None:
        if self.phase1 and isinstance(ref := call.body.get("serviceRef"), str):
            await self.node.leases.acquire(self.node.leases.key_service({"serviceRef": ref}), call.session_id)
        await super().validate(call)
