"""What a check leaves for the reader of the report: transcript lines, judged timings, steps, faults.

These records are part of the event stream's vocabulary (`holdfast.run.events`). Every field has a default that means
"not recorded", because streams of other versions, and streams that end in the middle, are read too.
"""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class TranscriptLine:
    """`t` is in milliseconds since the check began; `dir` is →, ←, · (a note) or ! (a fault)."""

    t: float = 0.0
    dir: str = "·"
    text: str = ""
    detail: dict[str, Any] | None = None


@dataclass(frozen=True)
class JudgedTiming:
    name: str = ""
    source: str = ""
    kind: str = ""
    budget_s: float | None = None
    floor_s: float | None = None
    tolerance_s: float | None = None
    observed_s: list[float] | None = None
    margin: float | None = None
    verdict: str | None = None
    note: str = ""


@dataclass(frozen=True)
class Step:
    name: str = ""
    start_ms: float = 0.0
    stop_ms: float = 0.0
    status: str | None = None


@dataclass(frozen=True)
class ReceiptSeen:
    seen: str = ""
    proven: bool = False


@dataclass(frozen=True)
class FaultSeen:
    """One fault with its window, in seconds since the check began."""

    fault: str = ""
    subject: str = ""
    text: str = ""
    asked_s: float = 0.0
    in_force_s: float = 0.0
    healed_s: float = 0.0
    receipts: list[ReceiptSeen] = field(default_factory=list)
    proven: bool = False


@dataclass(frozen=True)
class WalkSeen:
    """What the walks of a check reached: `pairs` of `pairs_goal`, those `never` reached, and what they found.

    `judged` says how often a rule of each row was held up to the target. `replay` is the walk that broke one, as the
    file that repeats it; `tries` and `failures` tell how often it was performed again and failed. `against` is the
    target that took the same walks, `differences` what the model allows and the two did differently.
    """

    walks: int = 0
    steps: int = 0
    cut: dict[str, int] = field(default_factory=dict)
    pairs: int = 0
    pairs_goal: int = 0
    triples: int = 0
    never: list[str] = field(default_factory=list)
    beyond: list[str] = field(default_factory=list)
    judged: dict[str, int] = field(default_factory=dict)
    story: list[str] = field(default_factory=list)
    replay: dict[str, Any] | None = None
    tries: int = 0
    failures: int = 0
    against: str = ""
    differences: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Evidence:
    """All that one attempt of a check leaves behind; `dropped` lines of the transcript were counted and not kept."""

    transcript: tuple[TranscriptLine, ...] = ()
    dropped: int = 0
    timings: tuple[JudgedTiming, ...] = ()
    warnings: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    faults: tuple[FaultSeen, ...] = ()
    walk: WalkSeen | None = None
    schedule: str = ""

    def transcript_lines(self) -> list[str]:
        return [f"{line.t / 1000:+9.3f}  {line.dir} {line.text}" for line in self.transcript]
