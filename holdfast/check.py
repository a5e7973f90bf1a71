"""A check: a pytest test that verifies requirements. `@verifies` says which, and what the check asks for.

The coroutine of a check starts before pytest's set-up, so its parameters are not pytest fixtures: a parameter whose
annotation has a `provide` class method is provided by annotation, and only the others (from parametrize) stay in the
signature that pytest sees.
"""

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from holdfast.capability import Capability
from holdfast.catalogue import Catalogue

ISOLATIONS = ("shared", "quiet", "disruptive")
_ATTRIBUTE = "__holdfast_check__"
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Claim:
    """This check verifies this part of this requirement; part 1 is the row's own `observe`."""

    id: str
    part: int = 1


@dataclass
class CheckSpec:
    function: Callable[..., Any]
    claims: list[Claim] = field(default_factory=list)
    isolation: str = "shared"
    waits: str = "0"
    heavy: bool = False
    busy: bool = False
    nodes: int | None = None
    settings: dict[str, str] = field(default_factory=dict)
    further_needs: frozenset[Capability] = frozenset()

    @property
    def title(self) -> str:
        return self.function.__name__.removeprefix("test_").replace("_", " ")

    def provided(self) -> dict[str, type]:
        hints = typing.get_type_hints(self.function)
        return {
            name: hints[name]
            for name in inspect.signature(self.function).parameters
            if hasattr(hints.get(name), "provide")
        }

    def needs(self, catalogue: Catalogue) -> frozenset[Capability]:
        """The union of what its claims need: the body looks wherever any of them looks."""
        parts = [catalogue.requirements[claim.id].part(claim.part) for claim in self.claims]
        return self.further_needs.union(*(part.needs for part in parts))

    def is_must(self, catalogue: Catalogue) -> bool:
        return any(catalogue.requirements[claim.id].level == "MUST" for claim in self.claims)


def verifies(
    *ids: str,
    part: int = 1,
    isolation: str | None = None,
    waits: str | None = None,
    heavy: bool = False,
    busy: bool = False,
    nodes: int | None = None,
    settings: Mapping[str, str] | None = None,
    needs: Iterable[str] = (),
) -> Callable[[F], F]:
    """Mark a check. Stack it for several parts; the options may stand on any of the marks.

    isolation: `shared` (own namespace in a common deployment), `quiet` (its own, for exact counters or whole logs) or
    `disruptive` (its own, may be killed). waits: planned waiting as a formula of timings. heavy: runs alone, first.
    busy: works as much as it waits, so only few such run at a time.
    nodes: how many nodes an own deployment has. settings: spec settings that an own deployment is started with.
    needs: capabilities beyond those of the parts that it verifies, such as the faults of a scenario.
    """
    if isolation not in (None, *ISOLATIONS):
        raise ValueError(f"isolation {isolation!r} is none of {', '.join(ISOLATIONS)}")

    def mark(function: F) -> F:
        spec: CheckSpec | None = getattr(function, _ATTRIBUTE, None)
        wrapped = function if spec else _with_trimmed_signature(function)
        spec = spec or CheckSpec(function)
        spec.claims[:0] = [Claim(id_, part) for id_ in ids]
        spec.isolation = isolation or spec.isolation
        spec.waits = waits or spec.waits
        spec.heavy = heavy or spec.heavy
        spec.busy = busy or spec.busy
        spec.nodes = nodes or spec.nodes
        spec.settings.update(settings or {})
        spec.further_needs |= {Capability(name) for name in needs}
        setattr(wrapped, _ATTRIBUTE, spec)
        return wrapped

    return mark


def spec_of(function: object) -> CheckSpec | None:
    return getattr(function, _ATTRIBUTE, None)


def _with_trimmed_signature(function: F) -> F:
    async def check(*args: Any, **kwargs: Any) -> Any:
        return await function(*args, **kwargs)

    provided = CheckSpec(function).provided()
    signature = inspect.signature(function)
    kept = [p for name, p in signature.parameters.items() if name not in provided]
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(check, attribute, getattr(function, attribute))
    check.__dict__.update(function.__dict__)
    check.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]  # read by inspect
    return typing.cast("F", check)
