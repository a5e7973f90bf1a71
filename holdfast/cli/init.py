"""`holdfast init`: a commented descriptor, made from the schema of descriptors and the built-in target of the spec."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from holdfast import rooms
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
    """Every section with every key as a comment; what has to be filled in is no comment and has an example."""
    catalogue = builtin(spec)
    public = rooms.folder("fixtures") / "targets" / "upstream" / f"{spec}.toml"
    names = load(public).settings if public.is_file() else None
    return commented(spec, least_profile(catalogue), load(builtin_path(spec)), catalogue, names)


def commented(
    spec: str,
    profile: str,
    example: Target,
    catalogue: Catalogue | None = None,
    public: Mapping[str, Setting] | None = None,
) -> str:
    """The same after any target that has what the spec needs; `public` are the settings of a server that all know."""
    lines = [f"# Target descriptor for the suite `{spec}`. Lines that start with # are optional; fill in the others."]
    own = {section.name: section for section in catalogue.sections} if catalogue else {}
    node = example.nodes[0]
    for section, keys in SECTIONS.items():
        doc = own[section].doc if section in own else SECTION_DOC[section]
        lines += ["", f"# {doc}", "[[node]]" if section == "node" else f"[{section}]"]
        known = {"spec": f'"{spec}"', "profile": f'"{profile}"'}
        shown = {"profile"} if profile != next(iter(PROFILES)) else set[str]()
        if section == "node":
            known, shown = _of_the_node(node, catalogue)
        lines += [_line(name, key, known, shown, node) for name, key in keys.items()]
        lines += _own_keys(own[section].keys, (section,)) if section in own else _spec_lines(section, example, public)
        lines += _hook_lines(section, catalogue) if catalogue else []
    lines += own_sections(catalogue) if catalogue else []
    return "\n".join(lines) + "\n"


def _of_the_node(node: NodeSpec, catalogue: Catalogue | None) -> tuple[dict[str, str], set[str]]:
    """What the entry of a node says in this spec, and what of it is no comment."""
    known, shown = {"role": f'"{node.role}"'}, set[str]()
    if node.role != NODE:
        known |= {"name": f'"{node.name}"'}
        shown |= {"name", "role"}
    if catalogue and catalogue.urls:
        known["urls"] = "{ " + ", ".join(f'{kind} = "{url}"' for kind, url in catalogue.urls.items()) + " }"
    if node.ready and node.ready.kind == "http" and node.ready.what != "/health":
        known["ready"] = f'"{node.ready.what}"'
        shown.add("ready")
    if node.ready_as:
        known["ready_as"] = f'"certs/{Path(node.ready_as).name}"'
        shown.add("ready_as")
    return known, shown


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


def _spec_lines(section: str, example: Target, public: Mapping[str, Setting] | None) -> list[str]:
    """What the suite of this spec knows by name, as commented suggestions."""
    match section:
        case "node":
            return [line for role in example.roles[1:] for line in _further_role(example, role)]
        case "settings":
            names = [name for name in example.settings if name not in _OURS]
            ways = example.settings if public is None else public
            of_nobody = {name: Setting(env=name.upper()) for name in names}
            return [f"# {name} = {_ways(ways.get(name, of_nobody[name]))}" for name in names]
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
    fields = {"env": way.env, "flag": way.flag, "default": way.default, "unit": way.unit, "roles": list(way.roles)}
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
    for section in (each for each in catalogue.sections if each.name not in SECTIONS):
        lines += ["", f"# {section.doc}", f"[{section.name}]", *_own_keys(section.keys, (section.name,))]
    return lines


def _own_keys(keys: Mapping[str, OwnKey], path: tuple[str, ...]) -> list[str]:
    """Keys in the order of the catalogue; tables last, as TOML wants them."""
    lines = []
    for name, key in keys.items():
        if not key.keys:
            value = key.example or (json.dumps(key.default) if key.default is not None else '""')
            choice = f" ({', '.join(map(str, key.one_of))})" if key.one_of else ""
            lines.append(f"{'' if key.required or key.shown else '# '}{name} = {value}  # {key.doc}{choice}")
    for name, key in keys.items():
        if key.keys:
            lines += [f"# {key.doc}", f"[{'.'.join((*path, name))}]", *_own_keys(key.keys, (*path, name))]
    return lines
