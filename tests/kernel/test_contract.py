"""Answers held against a published contract: each kind of problem is reported, and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from holdfast import rooms
from holdfast.spec.contract import Contract, document

JSON = {"Content-Type": "application/json; charset=utf-8"}


@dataclass(frozen=True)
class Asked:
    method: str
    path: str


@dataclass(frozen=True)
class Answered:
    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=lambda: JSON)

    def describe(self) -> str:
        return str(self.status)


MEMBERS = Asked("GET", "/v1/tc/cluster/list")
SOUND = {"endpoints": ["https://127.0.0.1:1"], "updated_at_unix": 1}


@pytest.mark.parametrize(
    ("asked", "answered", "expected"),
    [
        (MEMBERS, Answered(200, SOUND), None),
        (MEMBERS, Answered(403, {"error": "tc_forbidden"}), None),
        (Asked("GET", "/healthz"), Answered(200, None, {}), None),
        (MEMBERS, Answered(418, SOUND), "418 is not among the documented"),
        (MEMBERS, Answered(200, SOUND, {"Content-Type": "text/html"}), "Content-Type 'text/html'"),
        (MEMBERS, Answered(200, {"endpoints": [5]}), "$.endpoints[0]: 5 is not of type 'string'"),
        (MEMBERS, Answered(200, {}), "'endpoints' is a required property"),
        (MEMBERS, Answered(403, {"detail": "no"}), "'error' is a required property"),
        (Asked("DELETE", "/v1/tc/cluster/list"), Answered(200, SOUND), "the contract has no DELETE"),
        (Asked("GET", "/v1/nowhere"), Answered(200, SOUND), "the contract has no GET /v1/nowhere"),
    ],
)
def test_each_problem_is_reported(asked: Asked, answered: Answered, expected: str | None) -> None:
    problem = Contract("lockd").problem(asked, answered)
    assert problem is None if expected is None else problem is not None and expected in problem


def test_every_documented_media_type_is_held_against_its_schema() -> None:
    """Problem documents of RFC 9457 are JSON under a name of their own, which is the same in any case."""
    asked, kind = Asked("POST", "/api/v3/intents"), {"Content-Type": "Application/Problem+JSON; charset=utf-8"}
    contract = Contract("intents")
    assert "Content-Type 'application/json'" in (contract.problem(asked, Answered(400, {})) or "")
    assert "is a required property" in (contract.problem(asked, Answered(400, {}, kind)) or "")


def test_paths_with_ids_find_their_template() -> None:
    status = Asked("GET", "/instances/i-1/queue/status")
    assert "418 is not among" in (Contract("admission").problem(status, Answered(418)) or "")


@pytest.mark.parametrize("key", sorted(file.parent.name for file in rooms.folder("proto").glob("*/openapi.yaml")))
def test_every_contract_can_be_read(key: str) -> None:
    assert document(key)["paths"]


def test_of_many_answers_the_undocumented_ones_are_named() -> None:
    exchanges = [(MEMBERS, Answered(200, SOUND)), (MEMBERS, Answered(418, SOUND))]
    (sentence,) = Contract("lockd").undocumented(exchanges)
    assert sentence.startswith("GET /v1/tc/cluster/list → 418: 418 is not among the documented")
