"""Contracts of messages: AsyncAPI for JSON on channels, protobuf for gRPC and framed streams."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from holdfast.spec.asyncapi import MessageContract
from holdfast.spec.protobuf import ProtobufContract

ASYNCAPI = """
asyncapi: 3.0.0
channels:
  assigned:
    address: jobs.assigned
    messages: {assigned: {$ref: '#/components/messages/Assigned'}}
  anything:
    address: jobs.{jobId}
    messages: {free: {payload: {type: object}}}
  status:
    address: jobs.{jobId}.status
    messages:
      running: {payload: {type: object, required: [status], properties: {status: {const: running}}}}
      done:
        payload:
          type: object
          required: [status, result]
          properties: {status: {const: done}, result: {type: [string, 'null']}}
components:
  messages:
    Assigned: {payload: {type: object, required: [jobId], properties: {jobId: {type: string, minLength: 1}}}}
"""
CONTRACT = MessageContract(yaml.safe_load(ASYNCAPI))


@pytest.mark.parametrize(
    ("address", "payload", "problem"),
    [
        ("jobs.assigned", {"jobId": "j1", "more": 1}, None),
        ("jobs.assigned", {"jobId": ""}, "assigned on jobs.assigned: $.jobId: '' should be non-empty"),
        ("jobs.j1.status", {"status": "running"}, None),
        ("jobs.j1.status", {"status": "done", "result": None}, None),
        ("jobs.j1.status", {"status": "done"}, "running on jobs.j1.status: $.status: 'running' was expected"),
        ("jobs.j1", {}, None),
        ("nowhere", {}, "the contract has no channel nowhere"),
    ],
)
def test_a_message_is_held_against_its_channel(address: str, payload: object, problem: str | None) -> None:
    assert CONTRACT.problem(address, payload) == problem


def test_the_channel_with_the_fewest_parameters_counts() -> None:
    assert CONTRACT.channel("jobs.assigned") == "assigned"
    assert CONTRACT.channel("jobs.j1") == "anything"


def test_all_problems_of_a_traffic_are_told_once() -> None:
    traffic = [("jobs.assigned", {}), ("jobs.assigned", {}), ("jobs.assigned", {"jobId": "j"})]
    assert CONTRACT.undocumented(traffic) == {"assigned on jobs.assigned: $: 'jobId' is a required property"}


PROTO = """
syntax = "proto3";
package echo.v1;
enum State { STATE_UNKNOWN = 0; STATE_GOOD = 1; }
message Inner { State state = 1; }
message Said { string text = 1; repeated Inner inner = 2; map<string, Inner> named = 3; }
message Newer { string text = 1; int32 more = 100; }
"""


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    from grpc_tools import protoc

    folder: Path = tmp_path_factory.mktemp("proto")
    (folder / "echo_contract.proto").write_text(PROTO)
    assert protoc.main(["protoc", f"-I{folder}", f"--python_out={folder}", "echo_contract.proto"]) == 0
    sys.path.insert(0, str(folder))
    try:
        yield import_module("echo_contract_pb2")
    finally:
        sys.path.remove(str(folder))


def test_bytes_are_held_against_a_generated_message(generated: ModuleType) -> None:
    contract = ProtobufContract([generated])
    good = generated.Said(text="a", inner=[generated.Inner(state=1)], named={"x": generated.Inner(state=1)})
    assert contract.problem("Said", good.SerializeToString()) is None
    assert contract.problem("echo.v1.Said", b"") is None
    assert contract.problem("Nobody", b"") == "the contract has no message Nobody"
    assert "are no Said" in str(contract.problem("Said", b"\x0a\x05ab"))
    assert "are no Said" in str(contract.problem("Said", b"\x0a\x01\xff")), "a text that is no UTF-8"


def test_an_enum_value_that_the_contract_lacks_is_named(generated: ModuleType) -> None:
    contract = ProtobufContract([generated])
    wrong = generated.Said(inner=[generated.Inner(state=7)])
    assert contract.problem("Said", wrong.SerializeToString()) == "Said.inner.state: 7 is no State"
    hidden = generated.Said(named={"x": generated.Inner(state=9)})
    assert "9 is no State" in str(contract.problem("Said", hidden.SerializeToString()))


def test_unknown_fields_are_legal_and_can_be_seen(generated: ModuleType) -> None:
    contract = ProtobufContract([generated])
    newer = generated.Newer(text="a", more=5).SerializeToString()
    assert contract.problem("Said", newer) is None
    assert contract.unknown_fields("Said", newer) == [100]
