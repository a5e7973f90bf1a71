"""Compares two runs: which rows changed their verdict, which are new and which are gone."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.reports.finding import WIDTH
from holdfast.reports.text import Json, count, cut, visible
from holdfast.spec.verdict import WORST_FIRST, Verdict

_CONTEXT = ("specs", "target", "profile", "time_scale", "seed", "launcher", "holdfast")


@dataclass(frozen=True, slots=True)
class Change:
    id: str
    title: str
    before: Verdict | None
    after: Verdict | None

    @property
    def word(self) -> str:
        if self.before is None:
            return "new"
        if self.after is None:
            return "gone"
        return "worse" if WORST_FIRST.index(self.after) < WORST_FIRST.index(self.before) else "better"


_ORDER = ("worse", "gone", "new", "better")


def diff(a: Json, b: Json) -> list[Change]:
    """Returns the rows whose verdict differs between two results documents, those that got worse first."""
    before, after = _rows(a), _rows(b)
    changes = [
        Change(
            requirement,
            (after.get(requirement) or before[requirement])["title"],
            _verdict(before.get(requirement)),
            _verdict(after.get(requirement)),
        )
        for requirement in dict.fromkeys([*after, *before])
    ]
    changed = [change for change in changes if change.before is not change.after]
    return sorted(changed, key=lambda change: (_ORDER.index(change.word), change.id))


def differences(a: Json, b: Json) -> list[str]:
    """Returns what else differs between the runs, because that alone may have changed a verdict."""
    changed = (key for key in _CONTEXT if a.get(key) != b.get(key))
    return [f"{key}: {visible(_plain(a.get(key)))} -> {visible(_plain(b.get(key)))}" for key in changed]


def render(changes: Sequence[Change], context: Sequence[str] = (), width: int = WIDTH) -> str:
    """Returns the changes as plain lines; `context` is what `differences` returns for the same two runs."""
    lines = [*context, *map(_line, changes), _total(changes)]
    return "\n".join(cut(line, width) for line in lines)


def _rows(document: Json) -> dict[str, Json]:
    return {row["id"]: row for row in document["requirements"]}


def _verdict(row: Json | None) -> Verdict | None:
    return Verdict(row["verdict"]) if row else None


def _plain(value: object) -> str:
    match value:
        case dict():
            return " ".join(str(value[key]) for key in ("name", "version") if value.get(key))
        case list():
            return ", ".join(map(str, value))
        case _:
            return str(value)


def _line(change: Change) -> str:
    move = f"{change.before or '–'} -> {change.after or '–'}"
    return f"{change.word:<6}  {change.id:<12}  {move:<30}  {visible(change.title)}"


def _total(changes: Sequence[Change]) -> str:
    words = [change.word for change in changes]
    said = [f"{words.count(word)} {word}" for word in _ORDER if word in words]
    return f"{count(len(changes), 'row')} changed: {', '.join(said)}" if said else "no row changed"
