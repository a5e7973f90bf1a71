"""What a locustfile of ours adds to Locust's command line, and how it comes to its plan.

`holdfast load` writes the plan to a file and names it (`--plan`). Whoever starts Locust himself names a campaign and a
target that runs already (`--campaign`, `--target`); then the plan is made here, and the result is printed at the end.
"""

import tempfile
from pathlib import Path
from typing import Any

from locust import events
from locust.argument_parser import LocustArgumentParser
from locust.env import Environment

from holdfast.load.campaign import campaign
from holdfast.load.fold import read
from holdfast.load.plan import Plan, PlanError, plan_of
from holdfast.spec.catalogue import builtin
from holdfast.target.descriptor import load


def options(key: str) -> None:
    """Adds our options to Locust's command line, for the campaigns of this spec."""

    def add(parser: LocustArgumentParser, **_more: Any) -> None:
        ours = parser.add_argument_group("Holdfast")
        ours.add_argument("--plan", help="written by holdfast load; leave it out otherwise", default="")
        ours.add_argument("--campaign", help=f"which campaign: see holdfast load {key} --list", default="L1")
        ours.add_argument("--target", help="descriptor of a target that runs, with urls", default="")
        ours.add_argument("--seed", help="of every random draw", type=int, default=1)

    def tell(environment: Environment, **_more: Any) -> None:
        plan = getattr(environment, "holdfast_plan", None)
        if plan is not None and not _given(environment):
            _print(plan)

    events.init_command_line_parser.add_listener(add)  # type: ignore[no-untyped-call]  # Locust's
    events.quitting.add_listener(tell)  # type: ignore[no-untyped-call]  # Locust's


def _given(environment: Environment) -> str:
    return str(getattr(environment.parsed_options, "plan", ""))


def plan_of_this_run(environment: Environment) -> Plan:
    """Returns the plan that was named, or makes one. Raises PlanError without a target."""
    if named := _given(environment):
        return Plan.read(Path(named).read_text("utf-8"))
    asked = environment.parsed_options
    if asked is None or not asked.target:
        raise PlanError("name the target: --target FILE, as holdfast serve writes it with --descriptor")
    target = load(Path(asked.target))
    urls = {node.name: dict(node.urls) for node in target.nodes}
    out = Path(tempfile.mkdtemp(prefix="holdfast-load-")) / "generator.jsonl"
    chosen = campaign(target.spec, asked.campaign)
    plan = plan_of(chosen, target, target.timings(builtin(target.spec)), urls, out, seed=asked.seed)
    environment.holdfast_plan = plan  # type: ignore[attr-defined]  # for the words at the end
    return plan


def _print(plan: Plan) -> None:
    folded = read(Path(plan.out))
    for name in folded.names:
        ours, theirs = folded.latencies(name).summary(), folded.locust.get(name, {})
        counted = ", ".join(f"{outcome} {count}" for outcome, count in folded.outcomes(name).most_common())
        print(f"{name}: {counted}")  # noqa: T201 - the words of a program that runs in a terminal
        print(f"  from when it was due: P50 {ours['p50']:.4f} s, P95 {ours['p95']:.4f} s, max {ours['max']:.4f} s")  # noqa: T201
        print(f"  as Locust shows it:   P50 {theirs.get('p50', 0):.4f} s, P95 {theirs.get('p95', 0):.4f} s")  # noqa: T201
    for sentence in (*folded.missing(), *folded.saturated()):
        print(f"not to be judged: {sentence}")  # noqa: T201
