"""Violations of the SPIFFE identity."""

import hashlib
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509

from holdfast.reference.lockd.certificates import Bundle, load_bundle, server_context
from holdfast.reference.lockd.http import Call, Http
from holdfast.reference.lockd.identity import Caller, Identity
from holdfast.reference.lockd.issue import CLIENT, EVERYTHING, SERVER, Issuer
from holdfast.reference.lockd.members import PREFIX, Lease, Members
from holdfast.reference.lockd.mutants.table import violates
from holdfast.reference.lockd.peers import Peers
from holdfast.reference.lockd.wire import Refusal


class _ShowsAnother(Identity):
    """Listens with another certificate than the one in its bundle, which the harness has made."""

    def another(self, uris: list[str], usages: list[x509.ObjectIdentifier]) -> Bundle:
        place = Path(self.settings.bundle).parent
        made = Issuer().leaf(load_bundle(place.parent / "ca.pem"), self.own(), uris, usages, ["*"])
        shown = place / "shown.pem"
        shown.write_bytes(made)
        return load_bundle(shown)


@violates("TC-IDENT-01", 1, "The node-id is put into the common name only.")
class NodeIdInTheCommonName(_ShowsAnother):
    def listener(self, trusted: tuple[x509.Certificate, ...]) -> ssl.SSLContext | None:
        return server_context(self.another([EVERYTHING], [SERVER, CLIENT]), trusted)


@violates(
    "TC-IDENT-01",
    2,
    "The certificate is issued for serverAuth only, so peers cannot authenticate its outgoing calls.",
)
class ServerAuthOnly(_ShowsAnother):
    def listener(self, trusted: tuple[x509.Certificate, ...]) -> ssl.SSLContext | None:
        return server_context(self.another(Issuer().server_uris(self.own(), ""), [SERVER]), trusted)


@violates("TC-IDENT-02", 1, "The node-id is taken from the common name, so all default bundles share it.")
class NamedByCommonName(Issuer):
    def server_uris(self, node_id: str, name: str) -> list[str]:  # noqa: ARG002  # the seam's form
        return super().server_uris(name, name)


@violates("TC-IDENT-02", 2, "Re-issuing draws a new node-id.")
class NewIdEachTime(Issuer):
    def node_id(self, out: Path) -> str:
        return super().node_id(out.with_suffix(".none"))


@violates("TC-IDENT-02", 3, "TC client certificates carry the sdk path.")
class TcAsSdk(Issuer):
    def tc_client_uris(self, name: str) -> list[str]:
        return self.sdk_client_uris(name, [])


@violates("TC-IDENT-02", 4, "SDK certificates carry no SPIFFE URI.")
class NamelessSdk(Issuer):
    def sdk_client_uris(self, name: str, claims: Any) -> list[str]:  # noqa: ARG002  # the seam's form
        return list(claims)


@violates(
    "TC-IDENT-03", 1, "The lease is keyed by certificate serial, fingerprint or public key.", also=("TC-IDENT-07",)
)
class KeyedBySerial(Http):
    def identity_of(self, call: Call) -> str:
        super().identity_of(call)
        return f"{call.caller.serial:x}" if call.caller else ""


@violates("TC-IDENT-03", 2, "The lease key includes the endpoint, so endpoints accumulate per identity.")
class KeyedByEndpointToo(Members):
    def key(self, identity: str, endpoint: str) -> str:
        return PREFIX + identity + hashlib.sha256(endpoint.encode()).hexdigest()[:8]


@violates("TC-IDENT-03", 3, "A repeated announce extends the expiry but keeps the first endpoint.")
class FirstEndpointStays(Members):
    def renewed(self, old: Lease | None, identity: str, endpoint: str, now: int) -> Lease:
        return super().renewed(old, identity, old.endpoint if old else endpoint, now)


@violates("TC-IDENT-04", 1, "Announce falls back to the certificate's common name.")
class CommonNameWillDo(Identity):
    def identity_from_cert(self, caller: Caller) -> str:
        return super().identity_from_cert(caller) or caller.common_name


@violates("TC-IDENT-04", 2, "Leave with an empty identity deletes every lease, or answers 200.")
class AnonymousLeave(Http):
    async def leave(self, call: Call) -> Any:
        try:
            return await super().leave(call)
        except Refusal:
            return await self.members(call)


@violates("TC-IDENT-04", 3, "Any spiffe://lockd/* URI is accepted and its last path segment used.")
class AnyPath(Identity):
    def identity_from_cert(self, caller: Caller) -> str:
        paths = [urlsplit(uri).path for uri in caller.uris if uri.startswith("spiffe://lockd/")]
        return paths[0].rpartition("/")[2] if paths else ""


@violates("TC-IDENT-05", 1, "A payload field identity overrides the certificate, so X replaces A's lease.")
class PayloadSpeaks(Http):
    def identity_of(self, call: Call) -> str:
        return str(call.body.get("identity") or super().identity_of(call))


@violates("TC-IDENT-06", 1, "Outgoing calls use default TLS host verification.")
class VerifiesHosts(Peers):
    def open_session(self, certificate: str) -> Any:
        session = super().open_session(certificate)
        if isinstance(context := getattr(session.connector, "_ssl", None), ssl.SSLContext):
            context.check_hostname = True
        return session


@violates("TC-IDENT-07", 1, "leader_id is derived from the certificate's public key.", also=("TC-DATA-02",))
class LeaderByKey(Identity):
    def own(self) -> str:
        super().own()
        assert self.bundle is not None
        return hashlib.sha256(repr(self.bundle.leaf.serial_number).encode()).hexdigest()


@violates(
    "TC-IDENT-07",
    2,
    "A node-id is pinned to the first certificate seen, so the rotated certificate is refused until the old lease "
    "expires.",
)
class Pinned(Http):
    seen: dict[str, bytes] = {}  # noqa: RUF012  # one node a process

    def identity_of(self, call: Call) -> str:
        identity = super().identity_of(call)
        assert call.caller is not None
        if self.seen.setdefault(identity, call.caller.public_key) != call.caller.public_key:
            raise Refusal(403, "tc_forbidden")
        return identity


@violates("TC-IDENT-08", 1, "An announce purges other leases with the same host or certificate subject.")
class PurgesTheHost(Members):
    async def announce(self, identity: str, endpoint: str) -> Lease:
        host = urlsplit(endpoint).hostname
        for lease in await self.leases():
            if urlsplit(lease.endpoint).hostname == host and lease.endpoint != self.node.settings.self_endpoint:
                await self.remove(lease.identity)
        return await super().announce(identity, endpoint)
