"""The wire of the coordinators: names in three spellings, and messages compared as the protocol compares them."""

import pytest

from holdfast.conformance.coordinator import messages, wire
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.wire import (
    ACK,
    DISPATCH,
    HANDOFF,
    STATUS,
    Names,
    decode,
    encode,
    same_handoff,
    says,
)

JOB = Job("6f2c1e9a-0000-4000-8000-000000000001", "6f2c1e9a-0000-4000-8000-000000000002", "email")


def test_the_names_of_the_document_are_the_default() -> None:
    names = Names()
    assert names.channel(DISPATCH, queue="email") == "orchestrix.job.dispatch.email"
    assert names.channel(STATUS, **JOB.ids) == f"orchestrix.job.{JOB.id}.status"
    assert names.channel(ACK, nodeId="a") == "orchestrix.job.handoff.ack.a"
    assert names.lock == "orchestrix:coordinator:leader"


def test_upstream_names_the_execution_and_a_table_replaces_single_names() -> None:
    assert Names("upstream").channel(STATUS, **JOB.ids) == f"orchestrix:job:{JOB.history_id}:status"
    own = Names({"handoff": "my.handoff"})
    assert (own.channel(HANDOFF), own.channel("assigned")) == ("my.handoff", "orchestrix.job.assigned")


def test_a_name_gives_its_ids_back() -> None:
    names = Names()
    assert names.ids_in(ACK, "orchestrix.job.handoff.ack.a") == {"nodeId": "a"}
    assert names.ids_in(ACK, "orchestrix.job.handoff") is None
    assert names.pattern(STATUS) == "orchestrix.job.*.status"


def test_members_are_read_in_any_case_and_the_two_names_of_an_execution_are_one() -> None:
    seen = decode('{"JOBID": "j", "executionId": "e", "historyId": null}')
    assert (seen.job_id, seen.history_id, seen.text("executionId")) == ("j", "e", "e")


@pytest.mark.parametrize(
    ("said", "reason"),
    [("Shutdown", "Shutdown"), ("drain", "Shutdown"), (0, "Shutdown"), ("Crash", "NodeCrash"), (1, "NodeCrash")],
)
def test_upstream_reasons_are_those_of_the_document(said: object, reason: str) -> None:
    assert decode(encode({"reason": said})).reason == reason


def test_another_reason_stays_what_it_is() -> None:
    assert decode('{"reason": "Boredom"}').reason == "Boredom"
    assert decode('{"reason": true}').reason == ""


@pytest.mark.parametrize("said", ["Running", "running", 4, "4"])
def test_a_status_is_known_by_name_and_number(said: object) -> None:
    assert decode(encode({"status": said})).job_status == "Running"


@pytest.mark.parametrize("said", [None, True, 99, "Asleep", ["Running"]], ids=str)
def test_what_is_no_status_is_none(said: object) -> None:
    assert decode(encode({"status": said})).job_status == ""


@pytest.mark.parametrize("data", [None, "", "{", "[1]", "1"], ids=str)
def test_an_entry_without_an_object_has_no_members(data: str | None) -> None:
    seen = decode(data)
    assert seen.members is None
    assert seen.job_id == ""


@pytest.mark.parametrize(
    "said",
    ["2026-01-02T03:04:05.1234567+00:00", "2026-01-02T04:04:05.123456+01:00", 1767323045.123456, 1767323045123.456],
)
def test_times_come_in_several_forms(said: object) -> None:
    at = decode(encode({"timestamp": said})).time("timestamp")
    assert at is not None
    assert abs(at - 1767323045.123456) < 0.001


def test_a_time_without_an_offset_is_none() -> None:
    assert decode('{"timestamp": "2026-01-02T03:04:05"}').time("timestamp") is None


def test_a_legal_message_may_say_more() -> None:
    seen = decode(encode(messages.handoff(JOB, "Drain", from_node="a")))
    assert says(jobId=JOB.id, reason="Shutdown").matches(seen)
    assert not says(jobId=JOB.id, reason="NodeCrash").matches(seen)
    assert not says(newOwner="b").matches(seen)


def test_copies_of_a_handoff_agree_in_job_reason_and_execution() -> None:
    one = decode(encode(messages.handoff(JOB, "Shutdown", from_node="a")))
    assert same_handoff(one, decode(encode(messages.handoff(JOB, "Drain"))))
    assert not same_handoff(one, decode(encode(messages.handoff(JOB, "NodeCrash"))))


def test_a_bare_handoff_has_two_members() -> None:
    assert messages.handoff(JOB, "Shutdown", bare=True) == {"jobId": JOB.id, "reason": "Shutdown"}


def test_an_ack_without_an_owner_is_shorter() -> None:
    assert messages.ack("j", None) == {"jobId": "j"}


def test_the_time_of_an_entry_is_in_its_id() -> None:
    assert wire.milliseconds_of("1767323045123-7") == 1767323045123
