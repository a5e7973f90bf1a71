"""`holdfast doctor` tries the hooks of a descriptor: each is called once, as a check would call it.

Which are called. Queries, and the command that prints a node's store, change nothing and are always called. Those that
give work or write records are called on nodes that we started, or where the user allows it (`--disruptive`). They come
first, so that the queries have something to find.

What they are called with. Nobody knows which jobs or queues a target has, so every parameter gets the same made-up
word. A hook that was reached and then refuses that word is not broken, so such an answer is neither good nor bad. It is
bad if it can't be reached or run, takes too long, names a placeholder that nobody fills, or refuses to work although it
takes no parameters.
"""

from collections.abc import AsyncIterator, Mapping

from holdfast.check.audit import Audit
from holdfast.check.context import Context
from holdfast.check.finding import Inconclusive, NotObservable
from holdfast.check.hook_texts import names_in
from holdfast.check.hooks import HookError, Hooks
from holdfast.check.verifies import CheckSpec
from holdfast.cli.doctor_lines import Seen
from holdfast.spec.catalogue import Catalogue
from holdfast.target.deployment import Deployment
from holdfast.target.descriptor import Target
from holdfast.target.hooks import Hook

MADE_UP = "holdfast-doctor"
# Sections whose hooks change nothing, and the order in which sections are tried.
HARMLESS = ("query", "observe")
ORDER = ("seed", "stimulus", *HARMLESS)
STORE = "observe.store"


async def hook_looks(
    target: Target, catalogue: Catalogue, deployment: Deployment, *, may_disrupt: bool
) -> AsyncIterator[Seen]:
    """Try every hook of the descriptor, and name those that the suite calls and that it lacks."""
    hooks = Hooks(_context(target, catalogue, deployment), deployment)
    declared = {f"{hook.section}.{hook.name}": hook for hook in catalogue.hooks}
    for name, hook in sorted(target.hooks.items(), key=lambda pair: ORDER.index(pair[1].section)):
        if hook.section not in HARMLESS and not may_disrupt:
            yield Seen(None, hook.entry, "not tried: it changes something; add --disruptive")
        elif any("{stub." in text for text in hook.texts()):
            yield Seen(None, hook.entry, "not tried: it needs a stub, which only a check plays")
        else:
            known = declared[name].parameters if name in declared else _unknown(hook, deployment)
            yield await _called(hooks, name, hook, dict.fromkeys(known, MADE_UP), deployment)
    for name in declared.keys() - target.hooks.keys():
        yield Seen(None, declared[name].entry, "not there: what needs it is not-observable")


def _unknown(hook: Hook, deployment: Deployment) -> list[str]:
    """Return the names in a hook's texts that the deployment can't fill: parameters, if no catalogue says."""

    def fills(name: str) -> bool:
        try:
            deployment.fill(f"{{{name}}}")
        except (ValueError, LookupError):
            return False
        return True

    return [name for name in sorted(names_in(hook.texts()) - {"json", "node"}) if not fills(name)]


async def _called(hooks: Hooks, name: str, hook: Hook, parameters: Mapping[str, str], deployment: Deployment) -> Seen:
    node = next(iter(deployment.nodes)) if name == STORE or "node" in names_in(hook.texts()) else ""
    try:
        await hooks.call(name, parameters, node, lines=name == STORE)
    except HookError as error:
        said = f"`{hook.says()}` {error.problem}{f': {error.lines[-1]}' if error.lines else ''}"
        if error.refused and names_in(hook.texts()) & {*parameters, "json"}:
            return Seen(None, hook.entry, f"reached, with {MADE_UP} for {', '.join(parameters)}: {said}")
        return Seen(False, hook.entry, said)
    except NotObservable as missing:
        return Seen(False, hook.entry, str(missing))
    except Inconclusive as undecided:
        return Seen(None, hook.entry, str(undecided))
    return Seen(True, hook.entry, f"`{hook.says()}` answered")


def _context(target: Target, catalogue: Catalogue, deployment: Deployment) -> Context:
    """Return the context of a check that nobody judges."""

    async def another() -> Deployment:
        raise RuntimeError("the doctor looks at one deployment")

    return Context(
        spec=CheckSpec(hook_looks),
        target=target,
        catalogue=catalogue,
        timings=target.timings(catalogue),
        deployment=deployment,
        audit=Audit(),
        seed=0,
        say_waiting=lambda _what, _seconds: None,
        lease=another,
    )
