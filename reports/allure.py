"""Allure results, written straight from the results document.

The plug-in for pytest keeps its step context per thread and would lose the steps of checks that overlap on one
loop. One Allure test is one check; every requirement that it verifies is a label. Attempts and repeats are steps of
that one test. Written as Allure retries, only the last would count, and a repeat that failed would be hidden.

    pass → passed · fail → failed · error, inconclusive → broken · the rest → skipped, labelled with the verdict

In a run of mutants one Allure test is one mutant, and each check that failed on a clean copy is a failed test.

    killed → passed · survived → failed · not-judged → broken · excluded → skipped
"""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

from holdfast.reports.ctrf import epoch_ms
from holdfast.reports.finding import citation, render_finding, transcript_lines
from holdfast.reports.summary import group_of, group_of_mutant, mutant_name
from holdfast.reports.text import Json
from holdfast.spec.verdict import Verdict

STATUS: dict[str, str] = dict.fromkeys(map(str, Verdict), "skipped") | {
    Verdict.PASS: "passed",
    Verdict.FAIL: "failed",
    Verdict.ERROR: "broken",
    Verdict.INCONCLUSIVE: "broken",
}
OF_A_MUTANT = {"killed": "passed", "survived": "failed", "not-judged": "broken", "excluded": "skipped"}
_SEVERITY = {"MUST": "critical", "SHOULD": "normal", "MAY": "minor"}
_SPACE = uuid.uuid5(uuid.NAMESPACE_OID, "holdfast.reports.allure")


def write(document: Json, folder: Path) -> None:
    """Fills the folder with the results of this run alone; those of an earlier one would be counted with it."""
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in ("*-result.json", "*-attachment.txt"):
        for old in folder.glob(pattern):
            old.unlink()
    for name, text in render(document).items():
        (folder / name).write_text(text, "utf-8")


def render(document: Json) -> dict[str, str]:
    """Returns the content of each file by its name."""
    files = {"environment.properties": _environment(document)}
    rows = {row["id"]: row for row in document["requirements"]}
    zero = epoch_ms(document["started"])
    for check in document["checks"]:
        writer = _Test(document["run_id"], check, rows, zero)
        result = _as_alarm(writer.result()) if document["mutants"] else writer.result()
        files |= _file(result) | writer.attachments
    for mutant in document["mutants"]:
        files |= _file(_mutant(document["run_id"], mutant, zero))
    return files


def _file(result: Json) -> dict[str, str]:
    return {f"{result['uuid']}-result.json": json.dumps(result, ensure_ascii=False, indent=1) + "\n"}


def _as_alarm(result: Json) -> Json:
    """Returns the result as a failed test: on a clean copy a `warn` is a false alarm too."""
    suite = {"name": "suite", "value": "clean copies"}
    return {**result, "status": "failed", "labels": [*result["labels"], suite]}


def _change(mutant: Json) -> list[str]:
    return [f"```\n{mutant['drawn']['diff']}\n```"] if mutant["drawn"] else []


def _mutant(run_id: str, mutant: Json, zero: int) -> Json:
    stable = str(uuid.uuid5(_SPACE, mutant["id"]))
    labels = {
        "framework": "holdfast",
        "suite": "mutants",
        "mutant": mutant["status"],
        "requirement": mutant["requirement"],
        "feature": group_of_mutant(mutant),
    }
    return {
        "uuid": str(uuid.uuid5(_SPACE, "\0".join([run_id, mutant["id"], "mutant"]))),
        "historyId": stable,
        "testCaseId": stable,
        "fullName": mutant["id"],
        "name": mutant_name(mutant),
        "status": OF_A_MUTANT[mutant["status"]],
        "statusDetails": {"message": f"{mutant['status']}: {mutant['reason']}" if mutant["reason"] else ""},
        "stage": "finished",
        "description": "\n\n".join([*(f"killed by `{check}`" for check in mutant["by"]), *_change(mutant)]),
        "steps": [],
        "attachments": [],
        "labels": [{"name": name, "value": value} for name, value in labels.items()],
        "start": zero,
        "stop": zero + round(mutant["duration_s"] * 1000),
    }


class _Test:
    def __init__(self, run_id: str, check: Json, rows: dict[str, Json], zero: int) -> None:
        self.check = check
        self.rows = [rows[item["id"]] for item in check["verifies"] if item["id"] in rows]
        self.rows = list({row["id"]: row for row in self.rows}.values())
        self.zero = zero
        self.run_id = run_id
        self.uuid = self._uuid("result")
        self.attachments: dict[str, str] = {}

    def _uuid(self, what: str) -> str:
        """Returns the same id for the same run and check, so that reporting twice gives the same files."""
        return str(uuid.uuid5(_SPACE, "\0".join([self.run_id, self.check["check"], what])))

    def result(self) -> Json:
        check, attempts = self.check, self.check["attempts"]
        stable = str(uuid.uuid5(_SPACE, check["check"]))
        single = self._attempt(attempts[0]) if len(attempts) == 1 else None
        started = min((attempt["started_s"] for attempt in attempts), default=0.0)
        stopped = max((attempt["started_s"] + attempt["duration_s"] for attempt in attempts), default=0.0)
        return {
            "uuid": self.uuid,
            "historyId": stable,
            "testCaseId": stable,
            "fullName": check["check"],
            "name": check["title"],
            "status": STATUS[check["verdict"]],
            "statusDetails": self._details(),
            "stage": "finished",
            "description": "\n\n".join(map(_described, self.rows)),
            "steps": single["steps"] if single else [self._attempt(attempt) for attempt in attempts],
            "attachments": single["attachments"] if single else [],
            "labels": [{"name": name, "value": value} for name, value in self._labels()],
            "start": self._ms(started),
            "stop": self._ms(stopped),
        }

    def _ms(self, offset_s: float) -> int:
        return self.zero + round(offset_s * 1000)

    def _details(self) -> Json:
        check = self.check
        known = check["verdict"] == Verdict.KNOWN
        details: Json = {"message": f"{check['verdict']}: {check['reason']}" if check["reason"] else "", "known": known}
        deciding = next((a for a in check["attempts"] if a["final"] and a["verdict"] == check["verdict"]), None)
        if deciding and check["verdict"] != Verdict.PASS:
            details["trace"] = render_finding(self.rows, deciding | {"check": check["check"]}, whole=True)
        return details

    def _labels(self) -> Iterator[tuple[str, str]]:
        seen: set[tuple[str, str]] = set()
        for label in self._all_labels():
            if label not in seen:
                seen.add(label)
                yield label

    def _all_labels(self) -> Iterator[tuple[str, str]]:
        yield "verdict", self.check["verdict"]
        yield "framework", "holdfast"
        if self.check["blocked_by"]:
            yield "blocked by", self.check["blocked_by"]
        yield "package", self.check["check"].partition("::")[0].removesuffix(".py").replace("/", ".")
        levels = [row["level"] for row in self.rows]
        yield "severity", next((severity for level, severity in _SEVERITY.items() if level in levels), "normal")
        for row in self.rows:
            yield "requirement", row["id"]
            yield "epic", row["spec"]
            yield "feature", group_of(row["id"])
            yield "story", row["title"]

    def _attempt(self, attempt: Json) -> Json:
        return {
            "name": f"repeat {attempt['repeat']}, attempt {attempt['attempt']}: {attempt['verdict']}",
            "status": STATUS[attempt["verdict"]],
            "statusDetails": {"message": attempt["reason"]},
            "stage": "finished",
            "steps": [self._step(step, attempt["started_s"]) for step in attempt["steps"]],
            "attachments": list(self._transcript(attempt)),
            "start": self._ms(attempt["started_s"]),
            "stop": self._ms(attempt["started_s"] + attempt["duration_s"]),
        }

    def _step(self, step: Json, began_s: float) -> Json:
        """Returns the step with absolute times: its own count from the start of its attempt."""
        status = step.get("status", "passed")
        return {
            "name": step.get("name", ""),
            "status": STATUS.get(status, status),
            "stage": "finished",
            "start": self._ms(began_s + step.get("start_ms", 0.0) / 1000),
            "stop": self._ms(began_s + step.get("stop_ms", 0.0) / 1000),
        }

    def _transcript(self, attempt: Json) -> Iterator[Json]:
        lines = transcript_lines(attempt, whole=True)
        if lines:
            which = f"{attempt['repeat']}.{attempt['attempt']}"
            name = f"{self._uuid(which)}-attachment.txt"
            self.attachments[name] = "\n".join(lines) + "\n"
            yield {"name": "transcript", "source": name, "type": "text/plain"}


def _described(row: Json) -> str:
    cited = citation(row)
    return f"**{row['id']}** {row['level']} {row['text']}" + (f" ({cited})" if cited else "")


def _environment(document: Json) -> str:
    target = document["target"]
    said = {
        "target": f"{target.get('name', '')} {target.get('version', '')}".strip(),
        "specs": ", ".join(document["specs"]),
        "profile": document["profile"],
        "time_scale": document["time_scale"],
        "seed": document["seed"],
        "launcher": document["launcher"],
        "holdfast": document["holdfast"],
        "python": document["versions"]["python"],
        "platform": document["versions"]["platform"],
        "exit": document["summary"]["exit"],
        "narrowed": ", ".join(document["summary"].get("narrowed", [])),
    }
    return "".join(f"{key}={_property(str(value))}\n" for key, value in said.items())


def _property(value: str) -> str:
    """Returns the value as a Java properties file has it: backslashes doubled, and ASCII only."""
    text = value.replace("\\", "\\\\").replace("\n", "\\n")
    return "".join(char if char.isascii() else _utf16(char) for char in text)


def _utf16(char: str) -> str:
    units = char.encode("utf-16-be").hex(" ", 2).split()
    return "".join(f"\\u{unit}" for unit in units)
