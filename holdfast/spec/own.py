"""What only one spec has in a descriptor: sections of its own, and the hooks that its checks may call.

A catalogue declares both as data, so that the kernel checks, shows and explains them without knowing a word of the
spec. A section (`[[section]]`) has keys with a type and a sentence each; a key of type `table` may have keys of its
own. A hook (`[[hook]]`) is a way to give the target work, to ask its store or to write into it, that the document
leaves open: the descriptor says how it is done with this target (`holdfast.target.hooks`), the catalogue says which
there are and which parameters a check fills in.
"""

import difflib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

TYPES: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "list": (list,),
    "table": (dict,),
}
# Sections of a descriptor whose entries are hooks, and what each is for.
HOOK_SECTIONS: dict[str, str] = {
    "stimulus": "gives the target work for which its document has no call",
    "query": "asks the target's store and answers one JSON document; must change nothing",
    "seed": "writes into the target's store, also while no node runs",
}


@dataclass(frozen=True)
class OwnKey:
    """One key of a section; `types` are names of `TYPES`, `keys` those of a table, `default` what a driver gets."""

    types: tuple[str, ...]
    doc: str
    example: str = ""
    required: bool = False
    shown: bool = False  # `holdfast init` writes it as if it were required
    one_of: tuple[Any, ...] = ()
    default: Any = None
    keys: Mapping[str, "OwnKey"] = field(default_factory=dict)

    def takes(self, value: Any) -> bool:
        kinds = {kind for name in self.types for kind in TYPES[name]}
        return isinstance(value, tuple(kinds)) and (not isinstance(value, bool) or bool in kinds)


@dataclass(frozen=True)
class OwnSection:
    name: str
    doc: str
    keys: Mapping[str, OwnKey]

    def problems(self, content: Any) -> Iterator[str]:
        """Yields what is wrong with this section of a descriptor, one sentence each."""
        if not isinstance(content, dict):
            yield f"[{self.name}] must be a table"
            return
        yield from _key_problems(f"[{self.name}]", self.keys, content)

    def read(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the section with the defaults of keys that the descriptor leaves out."""
        return _with_defaults(self.keys, content)


@dataclass(frozen=True)
class DeclaredHook:
    """A hook that checks of this spec call, by the name `section.name`."""

    section: str
    name: str
    doc: str
    parameters: tuple[str, ...] = ()
    example: str = ""

    @property
    def entry(self) -> str:
        return f"[{self.section}] {self.name}"


def nearest(word: str, known: Collection[str]) -> str:
    """Returns the rest of a sentence on an unknown word: the known one that is close to it, or all known ones."""
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are: {', '.join(known) or 'none'}"


def read_section(raw: Mapping[str, Any]) -> tuple[OwnSection, list[str]]:
    """Reads one `[[section]]` of a catalogue; returns what is wrong with it too."""
    name = str(raw.get("name", ""))
    problems = [] if name else ["[[section]]: name is missing"]
    problems += [f"[[section]] {name}: {key}: no such key" for key in raw.keys() - {"name", "doc", "keys"}]
    keys = _read_keys(raw.get("keys", {}), f"[[section]] {name}", problems)
    return OwnSection(name, str(raw.get("doc", "")), keys), problems


def read_hook(raw: Mapping[str, Any]) -> tuple[DeclaredHook, list[str]]:
    """Reads one `[[hook]]` of a catalogue; returns what is wrong with it too."""
    name = str(raw.get("name", ""))
    section, dot, rest = name.partition(".")
    problems = [f"[[hook]] {name}: {key}: no such key" for key in raw.keys() - {"name", "doc", "parameters", "example"}]
    if section not in HOOK_SECTIONS or not dot or not rest:
        problems.append(f"[[hook]] {name!r}: write section.name; sections are {', '.join(HOOK_SECTIONS)}")
    if not raw.get("doc"):
        problems.append(f"[[hook]] {name}: doc is missing: what the hook does, in one sentence")
    parameters = tuple(map(str, raw.get("parameters", ())))
    return DeclaredHook(section, rest, str(raw.get("doc", "")), parameters, str(raw.get("example", ""))), problems


def _read_keys(raw: Mapping[str, Any], where: str, problems: list[str]) -> dict[str, OwnKey]:
    found = {}
    for name, entry in raw.items():
        place = f"{where} {name}"
        kinds = entry.get("type", "text")
        types = tuple(kinds) if isinstance(kinds, list) else (str(kinds),)
        unknown = [each for each in types if each not in TYPES]
        problems += [f"{place}: type {each!r} is none of {', '.join(TYPES)}" for each in unknown]
        allowed = {"type", "doc", "example", "required", "shown", "one_of", "default", "keys"}
        problems += [f"{place}: {each}: no such key" for each in entry.keys() - allowed]
        if not entry.get("doc"):
            problems.append(f"{place}: doc is missing: what the key means, in one sentence")
        found[name] = OwnKey(
            types=tuple(each for each in types if each in TYPES) or ("text",),
            doc=str(entry.get("doc", "")),
            example=str(entry.get("example", "")),
            required=bool(entry.get("required", False)),
            shown=bool(entry.get("shown", False)),
            one_of=tuple(entry.get("one_of", ())),
            default=entry.get("default"),
            keys=_read_keys(entry.get("keys", {}), place, problems),
        )
    return found


def _key_problems(where: str, keys: Mapping[str, OwnKey], content: Mapping[str, Any]) -> Iterator[str]:
    for name, value in content.items():
        if name not in keys:
            yield f"{where} {name}: no such key{nearest(name, keys)}"
            continue
        key = keys[name]
        if not key.takes(value):
            yield f"{where} {name}: must be {' or '.join(key.types)} ({key.doc})"
        elif key.one_of and value not in key.one_of:
            yield f"{where} {name}: {value!r} is none of {', '.join(map(repr, key.one_of))}"
        elif isinstance(value, dict) and key.keys:
            yield from _key_problems(f"{where} {name}", key.keys, value)
    for name, key in keys.items():
        if key.required and name not in content:
            yield f"{where} {name}: missing ({key.doc}), e.g. {name} = {key.example or '…'}"


def _with_defaults(keys: Mapping[str, OwnKey], content: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(content)
    for name, key in keys.items():
        if key.keys and isinstance(found.get(name, {}), dict):
            found[name] = _with_defaults(key.keys, found.get(name, {}))
        elif name not in found and key.default is not None:
            found[name] = key.default
    return found
