"""Answers of a node, held against the published contract."""

from functools import partial
from importlib import resources
from typing import Any

import jsonschema
import yaml

from tests.reference.lockd.world import REPLICA, XID, Answer, until, world

CONTRACT: dict[str, Any] = yaml.safe_load(
    resources.files("holdfast.proto").joinpath("lockd", "openapi.yaml").read_text(encoding="utf-8")
)


def holds(path: str, method: str, answer: Answer) -> None:
    """Fails unless the answer has the form that the contract gives for its status."""
    reply = CONTRACT["paths"][f"/v1/{path}"][method]["responses"][str(answer["status"])]
    if "$ref" in reply:
        reply = CONTRACT["components"]["responses"][reply["$ref"].rpartition("/")[2]]
    schema = {**reply["content"]["application/json"]["schema"], "components": CONTRACT["components"]}
    body = {name: value for name, value in answer.items() if name != "status"}
    jsonschema.Draft202012Validator(schema).validate(body)


async def test_answers_have_the_published_form() -> None:
    async with world() as w:
        caller, seen = w.server(), await until(partial(w.leader, 0))
        lease = {"candidate_id": "x", "candidate_endpoint": "https://h:1", "leader_id": "x", "ttl_ms": 1000}
        pair = {"backend_hash": "h", "endpoint": "https://h:1"}
        txn = {"txn_id": XID, "state": "commit"}
        for path in ("tc/leader", "tc/cluster/list", "tc/rm/list"):
            holds(path, "get", await caller.get(0, path))
        for path, body, headers in (
            ("tc/lease/acquire", {**lease, "term": seen["term"] + 1}, None),
            ("tc/lease/renew", {**lease, "term": seen["term"]}, None),
            ("tc/lease/release", {}, None),
            ("tc/cluster/announce", {"self_endpoint": "https://h:1"}, None),
            ("tc/cluster/leave", {}, None),
            ("tc/rm/register", pair, REPLICA),
            ("tc/rm/unregister", pair, REPLICA),
            ("txn/replay", txn, None),
            ("txn/decide", txn, None),
            ("txn/replay", txn, None),
            ("txn/commit", {**txn, "tc_term": seen["term"]}, None),
            ("txn/rollback", txn, None),
        ):
            holds(path, "post", await caller.post(0, path, body, headers))


def test_every_route_of_the_server_is_published() -> None:
    from holdfast.reference.lockd.http import Http

    served = Http(None)  # type: ignore[arg-type]  # only its tables are read
    published = {path for path in CONTRACT["paths"] if path.startswith("/v1/")}
    assert {*served.client_routes, *served.server_routes} == published
