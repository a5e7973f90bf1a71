"""`holdfast`: the command line. Heavy parts are imported in the commands that need them."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from holdfast import __version__
from holdfast.catalogue import CatalogueError
from holdfast.chaos.schedule import ScheduleError
from holdfast.cli.relay import FLAGS_ARE_ITS_OWN, relay
from holdfast.deployment import StartError
from holdfast.plan import PlanError
from holdfast.reports.model import StreamError
from holdfast.target import TargetError

app = typer.Typer(
    name="holdfast",
    help="Proves that session, lease and leadership services keep their promises.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Key = Annotated[str, typer.Argument(help="a spec, e.g. admission")]
Target = Annotated[Path | None, typer.Option(help="descriptor of the target; the built-in reference if left out")]
Json = Annotated[bool, typer.Option("--json", help="one JSON document on standard output, nothing else")]


class Level(StrEnum):
    MUST = "must"
    SHOULD = "should"
    MAY = "may"


class Launcher(StrEnum):
    FORK = "fork"
    EXEC = "exec"


class FaultEngine(StrEnum):
    RELAY = "relay"
    TOXIPROXY = "toxiproxy"


class Tool(StrEnum):
    TOXIPROXY = "toxiproxy"


def _version(*, wanted: bool) -> None:
    if wanted:
        typer.echo(f"holdfast {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=lambda value: _version(wanted=value), is_eager=True, help="and leave")
    ] = False,
) -> None:
    del version


@app.command()
def run(
    keys: Annotated[list[str] | None, typer.Argument(help="specs; every one there is if left out")] = None,
    target: Target = None,
    catalogue: Annotated[str | None, typer.Option(help="insist on this version of the catalogue")] = None,
    time_scale: Annotated[float | None, typer.Option(help="1 = the spec's own time")] = None,
    profile: Annotated[str | None, typer.Option(help="wire, store, control or full")] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="this requirement (AD-RATE-03) or group (AD-RATE) alone")
    ] = None,
    level: Annotated[Level | None, typer.Option(help="leave weaker requirements out")] = None,
    results: Annotated[Path, typer.Option(help="where the reports go")] = Path("holdfast-results"),
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="stop at the first failure")] = False,
    last_failed: Annotated[bool, typer.Option("--last-failed", help="only what failed in the last run")] = False,
    repeat: Annotated[int, typer.Option(help="run every check so many times")] = 1,
    stress: Annotated[int, typer.Option(help="keep so many cores busy meanwhile")] = 0,
    budget: Annotated[str | None, typer.Option(help="the most telling checks that fit, e.g. 30m")] = None,
    launcher: Annotated[Launcher, typer.Option(help="how Python nodes are started")] = Launcher.FORK,
    redis_url: Annotated[str | None, typer.Option(help="use this Redis instead of the embedded one")] = None,
    seed: Annotated[int, typer.Option(help="of every random draw in the suite")] = 1,
    as_json: Json = False,
) -> None:
    """Run the conformance suite of one or more specs against a target."""
    from holdfast.cli.run import Asked, run_all

    asked = Asked(
        target=target,
        catalogue=catalogue,
        time_scale=time_scale,
        profile=profile,
        only=tuple(only or ()),
        level=level,
        results=results,
        fail_fast=fail_fast,
        last_failed=last_failed,
        repeat=repeat,
        stress=stress,
        budget=budget,
        launcher=launcher,
        redis_url=redis_url,
        seed=seed,
        as_json=as_json,
    )
    raise typer.Exit(run_all(keys or [], asked))


@app.command()
def chaos(
    what: Annotated[
        list[str] | None, typer.Argument(help="a spec, then scenarios of it (C3 C7); all of every spec if left out")
    ] = None,
    target: Target = None,
    engine: Annotated[FaultEngine, typer.Option(help="what stands between the target's parts")] = FaultEngine.RELAY,
    seed: Annotated[int, typer.Option(help="of every draw; the same seed repeats a run")] = 1,
    random: Annotated[int, typer.Option(help="so many schedules drawn with --seed instead of the named scenarios")] = 0,
    schedule: Annotated[Path | None, typer.Option(help="run this schedule of faults (TOML) instead")] = None,
    time_scale: Annotated[float | None, typer.Option(help="1 = the spec's own time")] = None,
    results: Annotated[Path, typer.Option(help="where the reports go")] = Path("holdfast-results"),
    repeat: Annotated[int, typer.Option(help="run every scenario so many times")] = 1,
    launcher: Annotated[Launcher, typer.Option(help="how Python nodes are started")] = Launcher.FORK,
    as_json: Json = False,
) -> None:
    """Run the chaos scenarios of a spec: whole stories under fault, every fault with its receipt."""
    from holdfast.cli.run import Asked, Scenarios, run_all

    key, *names = what or [""]
    asked = Asked(
        target=target,
        catalogue=None,
        time_scale=time_scale,
        profile="full",  # whoever runs chaos wants all of it that the target can have
        only=(),
        level=None,
        results=results,
        fail_fast=False,
        last_failed=False,
        repeat=repeat,
        stress=0,
        budget=None,
        launcher=launcher,
        redis_url=None,
        seed=seed,
        as_json=as_json,
        scenarios=Scenarios(tuple(names), engine, random or int(schedule is not None), schedule),
    )
    raise typer.Exit(run_all([key] if key else [], asked))


@app.command()
def serve(
    key: Key,
    nodes: Annotated[int, typer.Option(help="how many nodes")] = 3,
    time_scale: Annotated[float | None, typer.Option(help="1 = the spec's own time")] = None,
    violate: Annotated[str | None, typer.Option(help="serve a mutant, e.g. AD-RATE-03/1")] = None,
    descriptor: Annotated[Path | None, typer.Option(help="write the descriptor to this file too")] = None,
) -> None:
    """Start the reference servers of a spec and print the descriptor that points the suite at them."""
    from holdfast.cli.serve import serve as start

    raise typer.Exit(start(key, nodes=nodes, time_scale=time_scale, violate=violate, descriptor=descriptor))


@app.command()
def mutants(
    key: Key,
    only: Annotated[list[str] | None, typer.Option(help="mutants of this requirement, or one (AD-RATE-03/1)")] = None,
    sample: Annotated[int | None, typer.Option(help="so many, drawn with --seed")] = None,
    seed: Annotated[int, typer.Option(help="of the draw and of the checks")] = 1,
    all_checks: Annotated[
        bool, typer.Option("--all-checks", help="run every check, to see what else kills it")
    ] = False,
    time_scale: Annotated[float | None, typer.Option(help="1 = the spec's own time")] = None,
    as_json: Json = False,
) -> None:
    """Run each deliberately broken server against the checks of its requirement: the kill matrix."""
    from holdfast.cli.mutants import kill_matrix

    code = kill_matrix(
        key,
        only=tuple(only or ()),
        sample=sample,
        seed=seed,
        all_checks=all_checks,
        time_scale=time_scale,
        as_json=as_json,
    )
    raise typer.Exit(code)


@app.command()
def init(
    spec: Annotated[str, typer.Argument(help="the spec that your server implements")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="file to write; standard output if left out")
    ] = None,
) -> None:
    """Write a commented descriptor to fill in for your own server."""
    from holdfast.cli.describe import commented_descriptor

    text = commented_descriptor(spec)
    if output is None:
        typer.echo(text, nl=False)
        return
    if output.exists():
        raise TargetError(f"{output} exists already; choose another name, or remove it first")
    output.write_text(text)
    typer.echo(f"wrote {output}; fill it in, then: holdfast doctor {output}")


@app.command()
def doctor(
    target: Annotated[Path | None, typer.Argument(help="descriptor of the target")] = None,
    disruptive: Annotated[bool, typer.Option("--disruptive", help="also try kill, pause and restart hooks")] = False,
    install: Annotated[Tool | None, typer.Option(help="build this tool into the user's cache first, with Go")] = None,
) -> None:
    """Try what a descriptor promises and print what was seen."""
    if install:
        from holdfast.cli.install import install_toxiproxy

        typer.echo(install_toxiproxy())
    if target is not None:
        from holdfast.cli.doctor import examine

        raise typer.Exit(examine(target, disruptive=disruptive))
    if not install:
        raise TargetError("name a descriptor to try, or a tool to --install")


@app.command()
def requirements(
    key: Annotated[str | None, typer.Argument(help="a spec; all if left out")] = None,
    as_json: Json = False,
) -> None:
    """List the catalogue."""
    from holdfast.cli.describe import list_requirements

    typer.echo(list_requirements(key, as_json=as_json))


@app.command()
def explain(requirement: Annotated[str, typer.Argument(help="e.g. AD-RATE-03")]) -> None:
    """Tell all about one requirement: text, parts, timings, violations and checks."""
    from holdfast.cli.describe import explain as tell

    typer.echo(tell(requirement))


@app.command()
def report(folder: Annotated[Path, typer.Argument(help="results folder of a run")]) -> None:
    """Write every report again from a run's events."""
    from holdfast.reports.files import write_all

    results = write_all(folder)
    typer.echo(f"wrote results.json, junit.xml, ctrf.json, allure-results and report.html to {folder}")
    raise typer.Exit(results.exit)


@app.command()
def diff(
    before: Annotated[Path, typer.Argument(help="results folder or results.json")],
    after: Annotated[Path, typer.Argument(help="results folder or results.json")],
) -> None:
    """Say which rows changed their verdict between two runs."""
    from holdfast.reports.diff import diff as compare
    from holdfast.reports.diff import render
    from holdfast.reports.files import read_results

    typer.echo(render(compare(read_results(before), read_results(after))))


app.command(context_settings=FLAGS_ARE_ITS_OWN)(relay)


def main() -> None:
    """A user's mistake is a sentence and exit code 2, never a traceback."""
    try:
        app()
    except (TargetError, CatalogueError, PlanError, StreamError, StartError, ScheduleError, OSError) as error:
        typer.echo(f"holdfast: {error}", err=True)
        sys.exit(2)
