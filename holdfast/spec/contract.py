"""Holds answers against the published contract of a spec (`proto/<key>/openapi.yaml`).

An answer is documented if the contract has the path and method, lists the status, allows the content type, and the JSON
body fits the schema. The first of these that fails is the answer's problem; later ones would only follow from it.
Schemas are addressed by JSON pointer inside the whole document, so that `$ref`s between them resolve without a copy.
What the contract leaves open (a response without `content`) is documented whatever it holds.

`Asked` and `Answered` are the least that a driver's request and answer must have; any suite's classes fit.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import yaml
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from holdfast import rooms

_URI = "urn:holdfast:contract"


class Asked(Protocol):
    @property
    def method(self) -> str: ...

    @property
    def path(self) -> str: ...


class Answered(Protocol):
    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def body(self) -> Any: ...

    def describe(self) -> str: ...


def document(key: str) -> dict[str, Any]:
    """Returns the OpenAPI document of this spec."""
    text = (rooms.folder("proto") / key / "openapi.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


class Contract:
    """The contract of one spec, ready to judge answers."""

    def __init__(self, key: str) -> None:
        self._document = document(key)
        resource = DRAFT202012.create_resource(self._document)
        self._registry: Registry[Any] = Registry().with_resource(_URI, resource)

    def problem(self, request: Asked, answer: Answered) -> str | None:
        """Returns what is wrong with an answer, in one sentence; None if it is documented."""
        template = self._template(request.path)
        operation = self._document["paths"].get(template, {}).get(request.method.lower())
        if operation is None:
            return f"the contract has no {request.method} {request.path}"
        pointer = f"/paths/{escaped(template)}/{request.method.lower()}/responses/{answer.status}"
        response = operation["responses"].get(str(answer.status))
        if response is None:
            return f"{answer.status} is not among the documented {', '.join(operation['responses'])}"
        if "$ref" in response:
            pointer = response["$ref"].removeprefix("#")
            response = self._document["components"]["responses"][pointer.rsplit("/", 1)[-1]]
        if "content" not in response:  # the contract leaves it open
            return None
        kind = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        documented = {media.lower(): media for media in response["content"]}  # media types are the same in any case
        if kind not in documented:
            return f"Content-Type {kind!r} is not among the documented {', '.join(response['content'])}"
        if not _is_json(kind) or "schema" not in response["content"][documented[kind]]:
            return None
        return self._mismatch(f"{pointer}/content/{escaped(documented[kind])}/schema", answer)

    def undocumented(self, exchanges: Iterable[tuple[Asked, Answered]]) -> set[str]:
        """Returns one sentence for each different problem among these requests and their answers."""
        return {
            f"{request.method} {request.path} → {answer.describe()}: {problem}"
            for request, answer in exchanges
            if (problem := self.problem(request, answer))
        }

    def _template(self, path: str) -> str:
        """Returns the documented path that this one fits; of several, the one with the fewest parameters."""
        parts = path.split("/")
        fitting = [template for template in self._document["paths"] if _fits(template.split("/"), parts)]
        return min(fitting, key=lambda template: template.count("{"), default=path)

    def _mismatch(self, pointer: str, answer: Answered) -> str | None:
        validator = Draft202012Validator(
            {"$ref": f"{_URI}#{pointer}"}, registry=self._registry, format_checker=FormatChecker()
        )
        errors = sorted(validator.iter_errors(answer.body), key=lambda error: error.json_path)
        return "; ".join(f"{error.json_path}: {error.message}" for error in errors)[:500] or None


def _fits(template: list[str], parts: list[str]) -> bool:
    return len(template) == len(parts) and all(
        fixed == part or fixed.startswith("{") for fixed, part in zip(template, parts, strict=True)
    )


def _is_json(media: str) -> bool:
    """Whether this is JSON, or a type built on it such as application/problem+json."""
    return media == "application/json" or media.endswith("+json")


def escaped(text: str) -> str:
    """Returns the text as one part of a JSON pointer inside a URI."""
    return text.replace("~", "~0").replace("/", "~1").replace("{", "%7B").replace("}", "%7D")
