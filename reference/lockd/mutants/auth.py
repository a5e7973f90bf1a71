"""Violations of the auth rules and of the mTLS requirement."""

import hashlib
import ssl
from typing import Any
from uuid import uuid4

from holdfast.reference.lockd.boot import Boot
from holdfast.reference.lockd.certificates import server_context
from holdfast.reference.lockd.http import Call, Http
from holdfast.reference.lockd.identity import Caller, Identity
from holdfast.reference.lockd.mutants.table import violates, violation
from holdfast.reference.lockd.wire import Refusal
from holdfast.reference.shared.settings import BadSetting


def skips_trust(number: int, *paths: str) -> None:
    """Registers a mutant without the trust check on the given routes; all others keep it."""
    sentence = f"The trust check is missing on {' and '.join(paths)}."

    class Unchecked(Identity):
        def authorize_client(self, caller: Caller | None, path: str) -> None:
            if path not in paths:
                super().authorize_client(caller, path)

    violates("TC-AUTH-01", number, sentence)(Unchecked)


skips_trust(1, "/v1/tc/leader")
skips_trust(2, "/v1/tc/lease/acquire")
skips_trust(3, "/v1/tc/lease/renew", "/v1/tc/lease/release")
skips_trust(4, "/v1/tc/cluster/list")
skips_trust(5, "/v1/tc/rm/list")


class AsksOnly(Identity):
    """Asks callers for a certificate and accepts those without one."""

    def listener(self, trusted: Any) -> Any:
        assert self.bundle is not None
        context = server_context(self.bundle, trusted)
        context.verify_mode = ssl.CERT_OPTIONAL
        return context


@violates("TC-AUTH-01", 6, "Callers without any certificate are served on the leader and list routes.")
class AnonymousReaders(AsksOnly):
    def authorize_client(self, caller: Caller | None, path: str) -> None:
        if caller is not None:
            super().authorize_client(caller, path)


def client_auth_will_do(number: int, name: str, path: str) -> None:
    class ClientWillDo(Identity):
        def authorize_server(self, caller: Caller | None, asked: str) -> None:
            check = self.authorize_client if asked == path else super().authorize_server
            check(caller, asked)

    violates("TC-AUTH-02", number, f"{name} checks client auth only.")(ClientWillDo)


client_auth_will_do(1, "Announce", "/v1/tc/cluster/announce")
client_auth_will_do(2, "Leave", "/v1/tc/cluster/leave")
client_auth_will_do(3, "Register", "/v1/tc/rm/register")
client_auth_will_do(4, "Unregister", "/v1/tc/rm/unregister")


@violates(
    "TC-AUTH-02", 5, "The listener asks for a certificate without requiring one, and callers without one are served."
)
class AnonymousServers(AsksOnly):
    def authorize_server(self, caller: Caller | None, path: str) -> None:
        if caller is not None:
            super().authorize_server(caller, path)


@violates("TC-AUTH-03", 1, "Client-auth routes demand a spiffe://lockd/tc/ URI.", also=("TC-RM-05",))
class TcRoleOnly(Identity):
    def authorize_client(self, caller: Caller | None, path: str) -> None:
        super().authorize_client(caller, path)
        if caller and "txn" not in path and not any(uri.startswith("spiffe://lockd/tc/") for uri in caller.uris):
            raise Refusal(403, "tc_forbidden")


@violates("TC-AUTH-03", 2, "Register demands a certificate of a distinct RM role.", also=("TC-RM-01", "TC-RM-03"))
class RmRoleOnly(Identity):
    def authorize_server(self, caller: Caller | None, path: str) -> None:
        super().authorize_server(caller, path)
        if path == "/v1/tc/rm/register" and not any("/rm/" in uri for uri in (caller.uris if caller else ())):
            raise Refusal(403, "tc_forbidden")


@violates("TC-AUTH-04", 1, "With auth disabled the identity check is skipped as well.")
class AnonymousMembers(Identity):
    def member_identity(self, caller: Caller | None) -> str:
        if self.settings.tc_disable_auth and caller is not None:
            return self.identity_from_cert(caller) or caller.common_name
        return super().member_identity(caller)


violation("TC-AUTH-04", 2, "The flag has no effect.", lambda _: {"tc_disable_auth": False})


class LooseStart(Boot):
    """Starts where `check_startup` would have refused."""

    def refused(self) -> bool:
        return True

    def check_startup(self) -> None:
        try:
            super().check_startup()
        except BadSetting:
            if self.refused():
                raise


@violates("TC-AUTH-05", 1, "The node starts in clear text and announces without a certificate.")
class ClearText(LooseStart):
    def refused(self) -> bool:
        return self.node.settings.mtls


@violates("TC-AUTH-05", 2, "Without a SPIFFE URI the node joins under a hash of its endpoint.")
class HashedMember(Identity):
    def own(self) -> str:
        return super().own() or hashlib.sha256(self.settings.self_endpoint.encode()).hexdigest()


@violates("TC-AUTH-05", 3, "tc-disable-auth skips the mTLS check.")
class DisabledAll(LooseStart):
    def refused(self) -> bool:
        return not self.node.settings.tc_disable_auth


@violates("TC-AUTH-06", 1, "Disabling mTLS with any --join value is rejected.")
class NoJoinInClear(Boot):
    def check_startup(self) -> None:
        super().check_startup()
        if self.node.settings.disable_mtls and self.node.settings.join:
            raise BadSetting("--join needs mTLS.")


@violates("TC-AUTH-06", 2, "Without TLS the membership identity is taken from the payload or the remote address.")
class IdentityFromPayload(Http):
    def identity_of(self, call: Call) -> str:
        if self.node.settings.disable_mtls:
            return str(call.body.get("identity") or call.body.get("self_endpoint") or "remote")
        return super().identity_of(call)


@violates("TC-AUTH-06", 3, "leader_id is a random value drawn at each start.")
class RandomId(Identity):
    def own(self) -> str:
        return uuid4().hex if self.bundle is None else super().own()
