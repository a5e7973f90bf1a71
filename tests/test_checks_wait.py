"""A number that the suite chose never fails a row alone: no wait of a check ends at a bound or a latency.

What has not happened by a row's give-up, or by twice its bound or latency, does not happen (`T.never(name)`). A wait
that gives up at the bound itself would make a failure of what is only worth a warning.
"""

import ast
from collections.abc import Iterator, Mapping

import pytest

from holdfast.spec.catalogue import TimingKind, builtin, builtin_keys
from holdfast.spec.timings import OURS_TO_WARN
from tests.pages import ROOT

WAITS = frozenset({"give_up", "within"})
# Waits that fail nothing: one ends as inconclusive, after the other the check tries further.
HARMLESS = {"admission": frozenset({"test_rate_window.py: T.recovery", "test_security_log.py: T.prompt"})}


def short_waits(source: str, kinds: Mapping[str, TimingKind]) -> Iterator[str]:
    """Yields the arguments of waits that are a bound or a latency and nothing more."""
    for node in ast.walk(ast.parse(source)):
        for keyword in node.keywords if isinstance(node, ast.Call) else ():
            given = keyword.value
            if keyword.arg in WAITS and isinstance(given, ast.Attribute) and kinds.get(given.attr) in OURS_TO_WARN:
                yield ast.unparse(given)


@pytest.mark.parametrize("key", builtin_keys())
def test_no_wait_ends_at_a_bound_of_ours(key: str) -> None:
    kinds = {name: timing.kind for name, timing in builtin(key).timings.items()}
    found = {
        f"{path.name}: {wait}"
        for path in sorted((ROOT / "conformance" / key).rglob("*.py"))
        for wait in short_waits(path.read_text("utf-8"), kinds)
    }
    assert found == HARMLESS.get(key, frozenset()), "wait for T.never(name) instead"


def test_a_wait_that_ends_at_a_bound_is_seen() -> None:
    kinds = {"settled_max": TimingKind.BOUND, "grace": TimingKind.SEED}
    assert list(short_waits("T.until(look, give_up=T.settled_max)", kinds)) == ["T.settled_max"]
    assert not list(short_waits("T.until(look, give_up=T.never('settled_max'))", kinds))
    assert not list(short_waits("T.until(look, give_up=2 * T.settled_max)", kinds))
    assert not list(short_waits("stub.wait_for('it', fits, within=T.grace)", kinds))
