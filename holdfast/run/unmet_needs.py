"""What a check asks of its deployment that a target can't give: settings, nodes of a role, a start by hand, a hook."""

from collections.abc import Mapping

from holdfast.check.verifies import CheckSpec
from holdfast.target.descriptor import Target
from holdfast.target.hooks import entry_of

# The reason why a check can't run on a target, and the entry of the descriptor that would mend it.
Lack = tuple[str, str]


def lacking_hook(spec: CheckSpec, target: Target) -> Lack | None:
    """Returns the first hook that the check calls and the descriptor does not have."""
    missing = sorted(spec.hooks - target.hooks.keys())
    return (f"the descriptor has no {entry_of(missing[0])}", entry_of(missing[0])) if missing else None


def lack(spec: CheckSpec, target: Target) -> Lack | None:
    """Returns the reason why the check can't run on this target, and the entry that would mend it; else None."""
    taken = target.settings.keys() if target.startable else set[str]()
    if missing := sorted({name.rpartition(".")[2] for name in spec.settings} - taken):
        return f"the target can't be started with another {missing[0]}", f"[[node]] start and [settings] {missing[0]}"
    if not spec.started and not target.startable:
        return "the check starts the nodes itself, after its stubs", "[[node]] start"
    return _lacking_role(spec.nodes, target) if isinstance(spec.nodes, Mapping) else None


def _lacking_role(nodes: Mapping[str, int], target: Target) -> Lack | None:
    for role, count in nodes.items():
        listed = target.count(role)
        if count and not listed:
            return f"the target has no node of the role {role}", f'[[node]] role = "{role}"'
        if count > listed and not target.startable:
            return f"the target has {listed} of {count} nodes of the role {role}", f'a further [[node]] role = "{role}"'
    return None
