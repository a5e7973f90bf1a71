"""CTRF, the common test report format (`specVersion` 0.0.0).

As in JUnit one test is one requirement row; its checks are the steps. CTRF has no word for "could not judge", so
such rows are `other`, which readers neither count as passed nor as failed; `environment.healthy` is true only for
exit 0. `rawStatus` has the verdict itself.

    pass → passed · fail, fixed → failed · error, inconclusive, not-observable → other · the rest → skipped

In a run of mutants one test is one mutant, and each check that failed on a clean copy is a failed test of its own.

    killed → passed · survived → failed · not-judged → other · excluded → skipped
"""

import uuid
from datetime import UTC, datetime

from holdfast.reports.finding import citation, render_finding
from holdfast.reports.summary import alarm_of, group_of, group_of_mutant, mutant_name
from holdfast.reports.text import Json
from holdfast.spec.verdict import Verdict

STATUS: dict[str, str] = dict.fromkeys(map(str, Verdict), "skipped") | {
    Verdict.PASS: "passed",
    Verdict.FAIL: "failed",
    Verdict.FIXED: "failed",
    Verdict.ERROR: "other",
    Verdict.INCONCLUSIVE: "other",
    Verdict.NOT_OBSERVABLE: "other",
}
OF_A_MUTANT = {"killed": "passed", "survived": "failed", "not-judged": "other", "excluded": "skipped"}


def render(document: Json) -> Json:
    checks = {check["check"]: check for check in document["checks"]}
    tests = [_test(row, checks) for row in document["requirements"]]
    if mutants := document["mutants"]:
        tests += [*map(_mutant, mutants), *map(_alarm, document["checks"])]
    return {
        "reportFormat": "CTRF",
        "specVersion": "0.0.0",
        "reportId": str(uuid.uuid5(uuid.NAMESPACE_OID, document["run_id"])),
        "generatedBy": "holdfast",
        "results": {
            "tool": {"name": "holdfast", "version": document["holdfast"]},
            "summary": _summary(document, tests),
            "tests": tests,
            "environment": _environment(document),
        },
    }


def epoch_ms(started: str) -> int:
    """Returns when the run started, in milliseconds since 1970; 0 if the stream does not say."""
    try:
        moment = datetime.fromisoformat(started)
    except ValueError:
        return 0
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _summary(document: Json, tests: list[Json]) -> Json:
    statuses = [test["status"] for test in tests]
    start = epoch_ms(document["started"])
    counts = {status: statuses.count(status) for status in ("passed", "failed", "skipped", "pending", "other")}
    extra: Json = {"exit": document["summary"]["exit"], "verdicts": {v: document["summary"][v] for v in Verdict}}
    extra |= {"narrowed": document["summary"].get("narrowed", []), "blocked": document.get("blocked", [])}
    if document["summary"]["mutants"]:
        extra["mutants"] = document["summary"]["mutants"]
    stop = start + _ms(document["wall_s"])
    return {"tests": len(tests), **counts, "start": start, "stop": stop, "extra": extra}


def _test(row: Json, checks: dict[str, Json]) -> Json:
    mine = [checks[check] for check in row["checks"]]
    retries = sum(not attempt["final"] for check in mine for attempt in check["attempts"])
    test = {
        "name": f"{row['id']} {row['title']}",
        "status": STATUS[row["verdict"]],
        "rawStatus": row["verdict"],
        "duration": _ms(sum(check["duration_s"] for check in mine)),
        "suite": [row["spec"], group_of(row["id"])],
        "type": "conformance",
        "tags": [row["id"], row["level"]],
        "retries": retries,
        "flaky": row["verdict"] == Verdict.PASS and retries > 0,
        "steps": [{"name": check["title"] or check["check"], "status": STATUS[check["verdict"]]} for check in mine],
        "extra": {
            "kind": row["kind"],
            "lines": row["lines"],
            "rests_on": citation(row),
            "blocked_by": row["blocked_by"],
            "checks": row["checks"],
        },
    }
    if row["reason"]:
        test["message"] = row["reason"]
    if row["finding"]:
        test["trace"] = render_finding([row], row["finding"], whole=True)
    return test


def _mutant(mutant: Json) -> Json:
    test = {
        "name": mutant_name(mutant),
        "status": OF_A_MUTANT[mutant["status"]],
        "rawStatus": mutant["status"],
        "duration": _ms(mutant["duration_s"]),
        "suite": ["mutants", group_of_mutant(mutant)],
        "type": "mutant",
        "tags": [mutant["id"], *filter(None, [mutant["requirement"]])],
        "extra": {"by": mutant["by"], "also": mutant["also"], "declared": mutant["declared"], "drawn": mutant["drawn"]},
    }
    return test | ({"message": mutant["reason"]} if mutant["reason"] else {})


def _alarm(check: Json) -> Json:
    return {
        "name": check["check"],
        "status": "failed",
        "rawStatus": check["verdict"],
        "duration": _ms(check["duration_s"]),
        "suite": ["clean copies"],
        "type": "clean copy",
        "tags": [claim["id"] for claim in check["verifies"]],
        "message": f"false alarm on a clean copy: {check['reason']}",
        "trace": render_finding([], alarm_of(check), whole=True),
    }


def _environment(document: Json) -> Json:
    target = document["target"]
    return {
        "appName": target.get("name", ""),
        "appVersion": str(target.get("version", "")),
        "osPlatform": document["versions"]["platform"],
        "testEnvironment": document["profile"],
        "healthy": document["summary"]["exit"] == 0,
        "extra": {key: document[key] for key in ("run_id", "time_scale", "seed", "launcher", "command", "versions")},
    }


def _ms(value: float | None) -> int:
    return round((value or 0.0) * 1000)
