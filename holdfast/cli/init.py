"""`holdfast init`: a commented descriptor, made from the schema of descriptors and the built-in target of the spec."""

import json
from collections.abc import Iterator, Mapping

from holdfast.spec.capability import PROFILES, in_profile
from holdfast.spec.catalogue import Catalogue, builtin
from holdfast.spec.own import OwnKey
from holdfast.target.descriptor import NodeSpec, Target, builtin_path, load
from holdfast.target.roles import NODE
from holdfast.target.schema import SECTION_DOC, SECTIONS, Key
from holdfast.target.settings import Setting

# Those that make a reference server a mutant or a stranger; no server of anybody else has them.
_OURS = {"violate", "stranger"}


def commented_descriptor(spec: str) -> str:
    """Every section with every key as a comment; what this spec needs filled in from the built-in target."""
    catalogue = builtin(spec)
    return commented(spec, least_profile(catalogue), load(builtin_path(spec)), catalogue)


def commented(spec: str, profile: str, example: Target, catalogue: Catalogue | None = None) -> str:
    """The same after any target that has what the spec needs."""
    lines = [f"# Target descriptor for the suite `{spec}`. Lines that start with # are optional."]
    for section, keys in SECTIONS.items():
        lines += ["", f"# {SECTION_DOC[section]}", "[[node]]" if section == "node" else f"[{section}]"]
        first = example.nodes[0]
        known = {"spec": f'"{spec}"', "profile": f'"{profile}"', "role": f'"{first.role}"'}
        shown = {"profile"} if profile != next(iter(PROFILES)) else set[str]()
        if first.role != NODE:
            shown |= {"name", "role"} if section == "node" else set()
            known |= {"name": f'"{first.name}"'} if section == "node" else {}
        lines += [_line(name, key, known, shown, first) for name, key in keys.items()]
        lines += _spec_lines(section, example)
        lines += _hook_lines(section, catalogue) if catalogue else []
    lines += own_sections(catalogue) if catalogue else []
    return "\n".join(lines) + "\n"


def least_profile(catalogue: Catalogue) -> str:
    """The narrowest profile under which the spec has rows: of a spec without a wire of its own it is not `wire`."""
    for profile in PROFILES:
        seen = in_profile(profile, catalogue.capabilities)
        if any(part.needs <= seen for row in catalogue if not row.excluded for part in row.parts):
            return profile
    return next(reversed(PROFILES))


def _line(name: str, key: Key, known: dict[str, str], shown: set[str], node: NodeSpec) -> str:
    visible = key.required or name in shown or (key.shown and bool(node.urls))
    return f"{'' if visible else '# '}{name} = {known.get(name) or key.example or chr(34) * 2}  # {key.doc}"


def _spec_lines(section: str, example: Target) -> list[str]:
    """What the suite of this spec knows by name, as commented suggestions."""
    match section:
        case "node":
            return [line for role in example.roles[1:] for line in _further_role(example, role)]
        case "settings":
            names = [name for name in example.settings if name not in _OURS]
            return [f"# {name} = {_ways(example.settings[name])}" for name in names]
        case "credentials":
            return [f'# {name} = "env:{name.upper()}"' for name in example.credentials]
        case "dialect":
            return [f"# {name} = {json.dumps(value)}" for name, value in example.dialect.items()]
        case _:
            return []


def _further_role(example: Target, role: str) -> Iterator[str]:
    """One more entry for each further role of the spec, with what a node of that role has."""
    node = next(each for each in example.nodes if each.role == role)
    yield from ("", "[[node]]", f'name = "{node.name}"', f'role = "{role}"')
    if node.urls:
        urls = ", ".join(f'{kind} = "{url.partition("{")[0]}…"' for kind, url in node.urls.items())
        yield f"# urls = {{ {urls} }}"
    if node.after:
        yield f"# after = {json.dumps(list(node.after))}"


def _ways(setting: Setting) -> str:
    ways = [_way(way) for way in setting.ways()]
    return ways[0] if len(ways) == 1 else f"[{', '.join(ways)}]"


def _way(way: Setting) -> str:
    """The way by which the built-in target takes it, as an example; the names are the stranger's own."""
    fields = {"env": way.env, "flag": way.flag, "unit": way.unit, "roles": list(way.roles)}
    return "{ " + ", ".join(f"{name} = {json.dumps(value)}" for name, value in fields.items() if value) + " }"


def _hook_lines(section: str, catalogue: Catalogue) -> list[str]:
    """The hooks that checks of this spec call, each with what it does and the parameters that it is given."""
    lines = []
    for hook in catalogue.hooks:
        if hook.section == section:
            given = f" ({', '.join(f'{{{name}}}' for name in hook.parameters)})" if hook.parameters else ""
            example = hook.example or '{ exec = "" }'
            lines.append(f"# {hook.name} = {example}  # {hook.doc}{given}")
    return lines


def own_sections(catalogue: Catalogue) -> list[str]:
    """The sections that only this spec has."""
    lines = []
    for section in catalogue.sections:
        lines += ["", f"# {section.doc}", f"[{section.name}]", *_own_keys(section.keys, (section.name,))]
    return lines


def _own_keys(keys: Mapping[str, OwnKey], path: tuple[str, ...]) -> list[str]:
    """Keys in the order of the catalogue; tables last, as TOML wants them."""
    lines = []
    for name, key in keys.items():
        if not key.keys:
            value = key.example or (json.dumps(key.default) if key.default is not None else '""')
            choice = f" ({', '.join(map(str, key.one_of))})" if key.one_of else ""
            lines.append(f"{'' if key.required else '# '}{name} = {value}  # {key.doc}{choice}")
    for name, key in keys.items():
        if key.keys:
            lines += [f"# {key.doc}", f"[{'.'.join((*path, name))}]", *_own_keys(key.keys, (*path, name))]
    return lines
