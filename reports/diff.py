"""Compares two runs: which rows changed their verdict, which are new and which are gone.

A row that a run did not look at, because it was narrowed or had another profile, is neither new nor gone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.reports.finding import WIDTH
from holdfast.reports.text import Json, count, cut, visible
from holdfast.spec.verdict import WORST_FIRST, Verdict, exit_code

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
    if _looked_at_less(a, b):
        after = {id_: row for id_, row in after.items() if id_ in before}
    if _looked_at_less(b, a):
        before = {id_: row for id_, row in before.items() if id_ in after}
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


def exit_code_of(changes: Sequence[Change]) -> int:
    """Returns 1 if a row got worse and fails now, 2 if one got worse or went and is not decided now, 0 else."""
    worse = [change for change in changes if change.word in ("worse", "gone")]
    return exit_code([change.after or Verdict.INCONCLUSIVE for change in worse]) if worse else 0


def not_looked_at(a: Json, b: Json) -> list[str]:
    """Returns how many rows only one of the runs has looked at, where that is what it was asked for."""
    return [*_unseen("first", a, b), *_unseen("second", b, a)]


def _unseen(which: str, one: Json, other: Json) -> Iterator[str]:
    missing = _rows(other).keys() - _rows(one).keys()
    if missing and (why := _looked_at_less(one, other)):
        yield f"the {which} run did not look at {count(len(missing), 'row')} of the other: {why}"


def merged(documents: Sequence[Json]) -> Json:
    """Returns the results of several specs as one document to compare."""
    first = documents[0]
    narrowed = [way for document in documents for way in document["summary"].get("narrowed") or []]
    return {
        **first,
        "specs": [key for document in documents for key in document["specs"]],
        "requirements": [row for document in documents for row in document["requirements"]],
        "summary": {**first["summary"], "narrowed": list(dict.fromkeys(narrowed))},
    }


def _looked_at_less(one: Json, other: Json) -> str:
    """Returns why a run has looked at less than another might have; empty if it has looked at everything."""
    ways = list((one.get("summary") or {}).get("narrowed") or [])
    if one.get("profile") != other.get("profile"):
        ways.append(f"profile {one.get('profile')}")
    if left := [key for key in other.get("specs", []) if key not in one.get("specs", [])]:
        ways.append(f"without {', '.join(left)}")
    return visible(", ".join(ways))


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
