"""Generates input for checks: the same for the same seed, in a fixed number, and without a search for smaller cases.

All of it is synchronous, so checks run it in a thread (`holdfast.check.bridge`).
"""

import contextlib
import functools
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import hypothesis
from hypothesis import strategies

from holdfast.check.finding import Finding
from holdfast.check.transcript import shortened

if TYPE_CHECKING:
    import requests


# Property testers parse source as they go, and CPython 3.11 loses its count when two threads do (`bridge`).
_ONE_AT_A_TIME = threading.RLock()


def try_examples(seed: int, strategy: Any, count: int, try_one: Callable[[Any], None]) -> None:
    """Draws `count` examples with the seed and calls `try_one` with each; the first exception ends it."""

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[hypothesis.Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategy)
    def each(example: Any) -> None:
        try_one(example)

    with _ONE_AT_A_TIME:
        each()


def json_values(*names: str) -> strategies.SearchStrategy[Any]:
    """Returns a strategy for any JSON value, and for objects with some of these names and any values."""
    leaves = strategies.one_of(
        strategies.none(),
        strategies.booleans(),
        strategies.integers(),
        strategies.floats(),
        strategies.text(max_size=20),
    )
    values = strategies.recursive(
        leaves,
        lambda inner: strategies.lists(inner, max_size=4) | strategies.dictionaries(strategies.text(max_size=8), inner),
        max_leaves=8,
    )
    first, *others = names
    return values | strategies.fixed_dictionaries({first: values}, optional=dict.fromkeys(others, values))


@dataclass(frozen=True)
class Round:
    """Requests of one kind: valid or invalid (`sound`), by one caller, with these ids as path parameters."""

    caller: Any
    sound: bool = True
    ids: Mapping[str, str] = field(default_factory=dict)


def fuzz(
    contract: Mapping[str, Any], tag: str, rounds: Sequence[Round], *, seed: int, count: int, ask: Callable[..., Any]
) -> None:
    """Makes `count` requests for each operation under the tag and each round, and judges the answer of each.

    `ask(case, caller)` sends one and returns the response. Raises Finding for an answer that is not documented.
    """
    with _ONE_AT_A_TIME:  # reading the contract parses source too
        _fuzz(contract, tag, rounds, seed=seed, count=count, ask=ask)


def _fuzz(
    contract: Mapping[str, Any], tag: str, rounds: Sequence[Round], *, seed: int, count: int, ask: Callable[..., Any]
) -> None:
    # Imported here: it takes half a second, which every run would pay.
    import schemathesis
    from schemathesis.generation import GenerationMode

    def ask_and_judge(caller: Any, case: Any) -> None:
        judge_documented(case, ask(case, caller))

    schema = schemathesis.openapi.from_dict(dict(contract)).include(tag=tag)
    for operation in (found.ok() for found in schema.get_all_operations()):  # type: ignore[union-attr]  # an Err raises
        for each in rounds:
            ids = {name: value for name, value in each.ids.items() if f"{{{name}}}" in operation.path}
            mode = GenerationMode.POSITIVE if each.sound else GenerationMode.NEGATIVE
            cases = operation.as_strategy(generation_mode=mode, path_parameters=ids or None)
            with contextlib.suppress(
                hypothesis.errors.Unsatisfiable
            ):  # an operation without input can't be made invalid
                try_examples(seed, cases, count, functools.partial(ask_and_judge, each.caller))


def answered(send: Callable[[], Any]) -> Any:
    """Returns the response that `send` gets. Raises Finding if none comes."""
    import requests

    try:
        return send()
    except requests.RequestException as error:
        how = "it took too long" if isinstance(error, requests.Timeout) else "no connection, or it was cut"
        raise Finding(["a documented answer"], f"no answer ({how})", late=True) from error


def https_session(tls: ssl.SSLContext) -> "requests.Session":
    """Returns a session that shows the certificate of this context and does not compare host names."""
    import requests
    from requests.adapters import HTTPAdapter

    class Certified(HTTPAdapter):
        def init_poolmanager(self, *args: Any, **more: Any) -> None:
            super().init_poolmanager(*args, **more, ssl_context=tls, assert_hostname=False)

    session = requests.Session()
    session.mount("https://", Certified())
    session.trust_env = False
    return session


def judge_documented(case: Any, response: Any) -> None:
    """Raises Finding if the response is not documented by the contract that the request was made from."""
    from schemathesis.core.failures import FailureGroup
    from schemathesis.specs.openapi import checks

    documented = [
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_headers_conformance,
        checks.response_schema_conformance,
    ]
    try:
        case.validate_response(response, checks=documented)
    except FailureGroup as group:
        failures = "; ".join(f"{failure.title}: {failure.message}" for failure in group.exceptions)
        request = shortened(case.as_curl_command(), 500)
        raise Finding(["a documented answer"], f"{shortened(failures, 500)}, for {request}") from None
