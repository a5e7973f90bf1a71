"""What is compared: answers without ports, request ids and the words that change between builds of Go."""

import json
import re

from tests.chaos.differential.api_rows import Call
from tests.chaos.differential.servers import Answer, Subject

CLASSES = ("address already in use", "invalid port", "missing port", "too many colons", "unknown port", "cannot assign")


def call_text(call: Call, subject: Subject) -> str:
    return _replaced(call.body, {f"{{{name}}}": str(port) for name, port in subject.ports.items()})


def normal(answer: Answer, subject: Subject) -> tuple[int, dict[str, str], str]:
    status, headers, body = answer.seen()
    known = {f":{port}": f":<{name}>" for name, port in subject.ports.items()}
    body = re.sub(r"(127\.0\.0\.1|\[::\]):(?!0\b)\d+", r"\1:<some>", _replaced(body, known))
    body = re.sub(r'"version": "[^"]*"', '"version": "?"', body)  # one built with Go's own installer says "git"
    if '"error":' in body:
        body = _error(json.loads(body), ends=body.endswith("\n"))
    return status, headers, body


def _error(said: dict[str, object], *, ends: bool) -> str:
    text = str(said["error"])
    if text.startswith("bad request body: ") and not text.endswith(": EOF"):
        said["error"] = "bad request body: …"
    elif said["status"] == 500:
        said["error"] = next((f"<{one}>" for one in CLASSES if one in text), text)
    return json.dumps(said) + ("\n" if ends else "")


def _replaced(text: str, known: dict[str, str]) -> str:
    for old, new in known.items():
        text = text.replace(old, new)
    return text
