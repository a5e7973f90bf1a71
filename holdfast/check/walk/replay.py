"""A walk as a file: its steps by the model's own names, so that it means the same on every fresh target."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.check.walk.vocabulary import Command, Step

VERSION = 1


class ReplayError(ValueError):
    """Raised for a file that is no walk; the text says what is wrong with it."""


@dataclass(frozen=True)
class Replay:
    """`rows` are those that the walk broke; `walk` names the check that it belongs to."""

    spec: str
    walk: str
    seed: int
    steps: tuple[Step, ...]
    rows: tuple[str, ...] = ()
    story: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        return {
            "holdfast": "walk",
            "version": VERSION,
            "spec": self.spec,
            "walk": self.walk,
            "seed": self.seed,
            "rows": list(self.rows),
            "steps": [[command.to_json() for command in step] for step in self.steps],
            "story": list(self.story),
        }

    @classmethod
    def from_json(cls, record: Any, source: str = "the walk") -> "Replay":
        if not isinstance(record, dict) or record.get("holdfast") != "walk":
            raise ReplayError(f'{source}: not a walk; a walk is a JSON object with "holdfast": "walk"')
        if record.get("version") != VERSION:
            raise ReplayError(f"{source}: version {record.get('version')!r}; this Holdfast reads version {VERSION}")
        try:
            steps = tuple(tuple(Command.from_json(each) for each in step) for step in record["steps"])
            return cls(
                str(record["spec"]),
                str(record["walk"]),
                int(record["seed"]),
                steps,
                tuple(record.get("rows", ())),
                tuple(record.get("story", ())),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ReplayError(f"{source}: {error!r}; the file was changed or cut, record the walk again") from error


def read(path: Path) -> Replay:
    """Reads a walk from a file. Raises ReplayError."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ReplayError(f"{path}: can't be read ({error.strerror}); name a file that a walk has written") from error
    except ValueError as error:
        raise ReplayError(f"{path}: not JSON ({error})") from error
    return Replay.from_json(record, str(path))


def text_of(replay: Replay) -> str:
    return json.dumps(replay.to_json(), ensure_ascii=False, indent=1) + "\n"


def single(commands: Sequence[Command]) -> tuple[Step, ...]:
    """Returns commands as steps of one each."""
    return tuple((command,) for command in commands)
