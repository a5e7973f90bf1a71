"""A published contract (`proto/<key>/openapi.yaml`) as something to hold an answer against."""

from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any, Protocol

import yaml
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry
from referencing.jsonschema import DRAFT202012

_URI = "urn:holdfast:contract"
_JSON = "application/json"


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
    text = resources.files("holdfast.proto").joinpath(key, "openapi.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


class Contract:
    """Says what is wrong with an answer, in one sentence, or nothing."""

    def __init__(self, key: str) -> None:
        self._document = document(key)
        resource = DRAFT202012.create_resource(self._document)
        self._registry: Registry[Any] = Registry().with_resource(_URI, resource)

    def problem(self, request: Asked, answer: Answered) -> str | None:
        template = self._template(request.path)
        operation = self._document["paths"].get(template, {}).get(request.method.lower())
        if operation is None:
            return f"the contract has no {request.method} {request.path}"
        pointer = f"/paths/{_escaped(template)}/{request.method.lower()}/responses/{answer.status}"
        response = operation["responses"].get(str(answer.status))
        if response is None:
            return f"{answer.status} is not among the documented {', '.join(operation['responses'])}"
        if "$ref" in response:
            pointer = response["$ref"].removeprefix("#")
            response = self._document["components"]["responses"][pointer.rsplit("/", 1)[-1]]
        if "content" not in response:  # left open
            return None
        kind = answer.headers.get("Content-Type", "").partition(";")[0].strip()
        if kind not in response["content"]:
            return f"Content-Type {kind!r} is not among the documented {', '.join(response['content'])}"
        return self._mismatch(f"{pointer}/content/{_escaped(kind)}/schema", answer) if kind == _JSON else None

    def undocumented(self, heard: Iterable[tuple[Asked, Answered]]) -> set[str]:
        return {
            f"{request.method} {request.path} → {answer.describe()}: {problem}"
            for request, answer in heard
            if (problem := self.problem(request, answer))
        }

    def _template(self, path: str) -> str:
        """The documented path that this one fits; the one with the most fixed parts where several do."""
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


def _escaped(text: str) -> str:
    """As one part of a JSON pointer inside a URI."""
    return text.replace("~", "~0").replace("/", "~1").replace("{", "%7B").replace("}", "%7D")
