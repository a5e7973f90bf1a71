"""Fills texts of a descriptor for a check: with the parameters of the call, and the placeholders of the deployment.

A text is filled in one pass, so what a parameter contains is never taken for a placeholder. A parameter wins over a
placeholder of its name. `{redis}`, `{nodes.a.url}` and `{stub.gc}` mean the real addresses here, not a link in front of
them: what the harness does itself must not suffer from a fault that it has put on a node's link.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from holdfast.target.deployment import Deployment

_PLACEHOLDER = re.compile(r"\{([a-z_][a-z0-9_]*)((?:\.[A-Za-z0-9_-]+)*)\}")


def names_in(texts: Iterable[str]) -> set[str]:
    """Returns the names of the placeholders in these texts that have no further part: `{job_id}`, not `{nodes.a}`."""
    return {match[1] for text in texts for match in _PLACEHOLDER.finditer(text) if not match[2]}


class UnknownPlaceholderError(ValueError):
    """A text of the descriptor asks for something that neither the call nor the deployment has."""


class Filling:
    """Fills texts for one call. `{json}` is all of its parameters as one JSON object."""

    def __init__(self, deployment: Deployment, parameters: Mapping[str, Any] | None = None, node: str = "") -> None:
        self._deployment = deployment
        self._given = dict(parameters or {})
        self._parameters = {"json": self._given, **self._given}
        self._node = node

    def text(self, text: str, quote: Callable[[str], str] = str) -> str:
        """Returns the text with everything filled in; `quote` is applied to parameters only."""
        return _PLACEHOLDER.sub(lambda match: self._value(match, quote), text)

    def texts(self, table: Mapping[str, str]) -> dict[str, str]:
        return {name: self.text(text) for name, text in table.items()}

    def value(self, value: Any) -> Any:
        """Fills all texts in tables and lists. A text that is one parameter and nothing else becomes its value."""
        match value:
            case str():
                alone = _PLACEHOLDER.fullmatch(value)
                if alone and not alone[2] and alone[1] in self._parameters:
                    return self._parameters[alone[1]]
                return self.text(value)
            case dict():
                return {name: self.value(each) for name, each in value.items()}
            case list():
                return [self.value(each) for each in value]
            case _:
                return value

    def _value(self, match: re.Match[str], quote: Callable[[str], str]) -> str:
        name, rest = match[1], match[2].removeprefix(".")
        if name in self._parameters and not rest:
            return quote(as_text(self._parameters[name]))
        if name == "redis" and not rest:
            return self._deployment.store_url
        if name == "nodes" and (found := self._address(*rest.split(".", 1))):
            return found
        try:
            return self._deployment.fill(match[0], "" if name == "stub" else self._node)
        except (ValueError, LookupError) as error:
            known = ", ".join(f"{{{each}}}" for each in self._parameters)
            raise UnknownPlaceholderError(
                f"{match[0]} is none of the parameters of this call ({known}) and no placeholder: {error}"
            ) from error

    def _address(self, node: str, kind: str = "url") -> str:
        urls = self._deployment.nodes[node].urls if node in self._deployment.nodes else {}
        return urls.get(kind, "") if kind != "url" else urls.get("http") or next(iter(urls.values()), "")


def as_text(value: Any) -> str:
    """A parameter as a word: texts as they are, nothing for None, everything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
