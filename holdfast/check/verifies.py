"""Marks a check: a pytest test that verifies requirements. `@verifies` says which ones, and what the check needs.

Checks are ordinary pytest items whose coroutines run overlapped: the scheduler starts a coroutine long before pytest
comes to the item and does its set-up. So the parameters of a check can't be pytest fixtures. A parameter whose
annotation has a `provide` class method is made from the check's `Context`; only the others, which come from
`parametrize`, stay in the signature that pytest sees. That is why the mark wraps the function: node ids, `-k` and
parametrize work as usual, and pytest looks for no fixture of the provided names.

Marks may be stacked, one for each part of a row that the check verifies. All of them write into one `CheckSpec`, which
hangs on the wrapped function; the first mark makes it, and options that a mark does not give keep their values. The
plan reads it without running anything: claims and needs decide whether the check can run on this target, isolation,
nodes and settings which deployment it gets, `waits` how long it may take.
"""

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from holdfast.spec.capability import Capability
from holdfast.spec.catalogue import Catalogue

ISOLATIONS = ("shared", "quiet", "disruptive")
STARTS = ("with the deployment", "by hand")
_ATTRIBUTE = "__holdfast_check__"
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Claim:
    """One part of one requirement that a check verifies; part 1 is the row's own `observe`."""

    id: str
    part: int = 1


@dataclass
class CheckSpec:
    """What the marks of one check say together."""

    function: Callable[..., Any]
    claims: list[Claim] = field(default_factory=list)
    isolation: str = "shared"
    waits: str = "0"
    weight: int = 0
    busy: bool = False
    nodes: int | Mapping[str, int] | None = None
    start: str = STARTS[0]
    settings: dict[str, str] = field(default_factory=dict)
    further_needs: frozenset[str] = frozenset()
    hooks: frozenset[str] = frozenset()
    walk_steps: int = 0

    @property
    def walks(self) -> bool:
        """Whether it performs walks: then it decides single rows of its claims, and looks at what the target shows."""
        return self.walk_steps > 0

    @property
    def started(self) -> bool:
        """Whether the nodes of its deployment run before the check begins."""
        return self.start != "by hand"

    @property
    def title(self) -> str:
        return self.function.__name__.removeprefix("test_").replace("_", " ")

    def provided(self) -> dict[str, type]:
        """Returns the parameters that are made from the context, with their types."""
        hints = typing.get_type_hints(self.function)
        return {
            name: hints[name]
            for name in inspect.signature(self.function).parameters
            if hasattr(hints.get(name), "provide")
        }

    def needs(self, catalogue: Catalogue) -> frozenset[str]:
        """Returns the capabilities that it needs: all that any claim needs, because one body serves them all.

        A walk needs none of its claims' own: it looks at whatever the target shows, and leaves the rest out.
        """
        if self.walks:
            return self.further_needs
        parts = [catalogue.requirements[claim.id].part(claim.part) for claim in self.claims]
        return self.further_needs.union(*(part.needs for part in parts))

    @property
    def taps(self) -> bool:
        """Whether anything that the check asks for listens to what nodes say to Redis (`taps = True` in its class)."""
        return any(getattr(kind, "taps", False) for kind in self.provided().values())

    def is_must(self, catalogue: Catalogue) -> bool:
        return any(catalogue.requirements[claim.id].level == "MUST" for claim in self.claims)


def verifies(
    *ids: str,
    part: int = 1,
    isolation: str | None = None,
    waits: str | None = None,
    weight: int = 0,
    busy: bool = False,
    nodes: int | Mapping[str, int] | None = None,
    start: str | None = None,
    settings: Mapping[str, str] | None = None,
    needs: Iterable[str] = (),
    needs_hooks: Iterable[str] = (),
    walk_steps: int = 0,
) -> Callable[[F], F]:
    """Marks a check. Stack it for several parts; each option may be given in any of the marks.

    isolation: `shared` (own namespace in a common deployment), `quiet` (its own, for exact counters or whole logs) or
    `disruptive` (its own, may be killed). waits: planned waiting as a formula of timings. busy: works as much
    as it waits, so few such checks run at a time. weight: how much of the machine it needs, in the places that all
    working checks share (`holdfast.run.places`: 2 is a busy check, 4 works with no other working check beside it).
    nodes: how many nodes an own deployment has, of the first role or by role ({"api": 2, "worker": 1}; none of a role
    that is not named). start: "by hand" for an own deployment whose nodes the check starts itself, after its stubs.
    settings: spec settings that an own deployment is started with; `worker.NAME` for those of one role.
    needs: capabilities beyond those of the parts that it verifies, such as the faults of a scenario.
    walk_steps: for a check of walks, how many steps they have in an ordinary run.
    needs_hooks: hooks of the descriptor that it calls, as `section.name`; without one of them it is not-observable.
    """
    if isolation not in (None, *ISOLATIONS):
        raise ValueError(f"isolation {isolation!r} is none of {', '.join(ISOLATIONS)}")
    if start not in (None, *STARTS):
        raise ValueError(f"start {start!r} is none of {', '.join(STARTS)}")

    def mark(function: F) -> F:
        spec: CheckSpec | None = getattr(function, _ATTRIBUTE, None)
        wrapped = function if spec else _with_trimmed_signature(function)
        spec = spec or CheckSpec(function)
        spec.claims[:0] = [Claim(id_, part) for id_ in ids]
        spec.isolation = isolation or spec.isolation
        spec.waits = waits or spec.waits
        spec.weight = weight or spec.weight
        spec.busy = busy or spec.busy
        spec.nodes = nodes or spec.nodes
        spec.start = start or spec.start
        spec.settings.update(settings or {})
        spec.further_needs |= {Capability(name) for name in needs}
        spec.hooks |= frozenset(needs_hooks)
        spec.walk_steps = walk_steps or spec.walk_steps
        setattr(wrapped, _ATTRIBUTE, spec)
        return wrapped

    return mark


def spec_of(function: object) -> CheckSpec | None:
    """Returns what the marks say; None for a function that is no check."""
    return getattr(function, _ATTRIBUTE, None)


def _with_trimmed_signature(function: F) -> F:
    """Returns the check as pytest is to see it: without the parameters that are made from the context."""

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
