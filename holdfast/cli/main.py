"""`holdfast`: the command line. Heavy parts are imported in the commands that need them."""

import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from holdfast import __version__
from holdfast.chaos.schedules.schedule import ScheduleError
from holdfast.check.walk.replay import ReplayError
from holdfast.cli.commands import EXIT_CODES, Group, UsageError, command, usage_sentence
from holdfast.cli.completion import ids, specs
from holdfast.cli.options import takes
from holdfast.cli.relay import FLAGS_ARE_ITS_OWN, relay
from holdfast.cli.violations import as_written
from holdfast.load.extra import LoadError
from holdfast.reports.model import StreamError
from holdfast.run.option_values import OptionError
from holdfast.run.options import RunOptions
from holdfast.run.selection import PlanError
from holdfast.spec.catalogue import CatalogueError, builtin_keys
from holdfast.target.deployment import StartError
from holdfast.target.descriptor import TargetError

app = typer.Typer(
    name="holdfast",
    help="Proves that session, lease and leadership services keep their promises.",
    epilog=EXIT_CODES,
    cls=Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Key = Annotated[str, typer.Argument(help="a spec, e.g. admission", metavar="SPEC", autocompletion=specs)]
Keys = Annotated[
    list[str] | None,
    typer.Argument(help="specs; every one there is if left out", metavar="SPEC", autocompletion=specs),
]
Json = Annotated[bool, typer.Option("--json", help="one JSON document on standard output, nothing else")]


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
        bool,
        typer.Option("--version", callback=lambda value: _version(wanted=value), is_eager=True, help="print it"),
    ] = False,
) -> None:
    del version


RESULTS = Path("holdfast-results")


@command(app)
@takes(
    "target",
    "wait",
    "catalogue",
    "time_scale",
    "profile",
    "only",
    "level",
    "results",
    "fail_fast",
    "last_failed",
    "repeat",
    "jobs",
    "stress",
    "budget",
    "launcher",
    "redis_url",
    "seed",
    "stranger",
    results=RESULTS,
)
def run(
    options: RunOptions,
    keys: Keys = None,
    *,
    as_json: Json = False,
) -> None:
    """Run the conformance suite of one or more specs against a target."""
    from holdfast.cli.run import run_all

    raise typer.Exit(run_all(keys or [], options, as_json=as_json))


@command(app)
@takes(
    *(
        "target",
        "wait",
        "engine",
        "seed",
        "random",
        "schedule",
        "time_scale",
        "results",
        "repeat",
        "jobs",
        "launcher",
        "stranger",
    ),
    results=RESULTS,
)
def chaos(
    options: RunOptions,
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="SPEC", help="specs, then scenarios of them (C3 C7); all of every spec if left out"),
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """Run the chaos scenarios of one or more specs: whole stories under fault, every fault with its receipt."""
    from holdfast.cli.run import run_all

    # The first word is a spec in any case: a mistyped one is to be named as such.
    keys = [word for place, word in enumerate(what or []) if place == 0 or word in builtin_keys()]
    names = [word for word in what or [] if word not in keys]
    drawn = options.random or int(options.schedule is not None)
    if drawn and names:
        raise OptionError(f"{' '.join(names)}: --random and --schedule run storms instead of scenarios; name either")
    # Whoever runs chaos wants all of it that the target can have, so the profile is the widest.
    asked = replace(options, profile="full", scenarios=True, random=drawn)
    raise typer.Exit(run_all(keys, asked, tuple(names), as_json=as_json))


@command(app)
@takes(
    *(
        "target",
        "wait",
        "against",
        "seed",
        "steps",
        "for_",
        "until",
        "replay",
        "stress",
        "time_scale",
        "profile",
        "only",
        "violate",
    ),
    *("results", "launcher", "redis_url"),
    results=RESULTS / "walks",
)
def walk(
    options: RunOptions,
    key: Key,
    *,
    as_json: Json = False,
) -> None:
    """Walk where no requirement looked: commands drawn over a model of the spec, everything compared after each."""
    from holdfast.cli.run import run_all

    raise typer.Exit(run_all([key], replace(options, walks=True, violate=as_written(options.violate)), as_json=as_json))


@command(app)
@takes("target", "time_scale", "seed", "violate", "results", "launcher", results=RESULTS / "load")
def load(
    options: RunOptions,
    key: Key,
    *,
    list_: Annotated[bool, typer.Option("--list", help="list the campaigns that there are, and run none")] = False,
    campaign: Annotated[
        list[str] | None,
        typer.Option(help="run this campaign; all but long ones and headlines if left out", metavar="ID"),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(help="no more than N faults of each kind, also if nothing is proven", metavar="N", min=1),
    ] = None,
    processes: Annotated[
        int, typer.Option(help="make the load in N processes; with --master, wait for N workers", metavar="N", min=1)
    ] = 1,
    master: Annotated[bool, typer.Option("--master", help="let workers of other machines make the load")] = False,
    worker: Annotated[bool, typer.Option("--worker", help="make load for a master elsewhere")] = False,
    master_host: Annotated[
        str, typer.Option(help="of a worker: where its master is; of a master: where it listens", metavar="HOST")
    ] = "127.0.0.1",
    master_port: Annotated[int, typer.Option(help="the port of the master", metavar="PORT", min=1, max=65535)] = 5557,
) -> None:
    """Run load campaigns: requests when they are due, budgets, exact counts and rules over the whole history."""
    from holdfast.cli import load as campaigns

    if list_:
        typer.echo(campaigns.listed(key))
        return
    if worker:
        campaigns.work_for(key, master_host, master_port)
    options = replace(options, violate=as_written(options.violate))
    asked = campaigns.Asked(tuple(campaign or ()), processes, master, master_host, master_port, trials)
    raise typer.Exit(campaigns.load(key, options, asked))


@command(app)
@takes("time_scale", "violate", "stranger")
def serve(
    options: RunOptions,
    key: Key,
    nodes: Annotated[
        str,
        typer.Option(
            metavar="N", help="how many nodes: 3, or by role api=2,worker=1; as many as the built-in target has"
        ),
    ] = "",
    descriptor: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="write the descriptor here once all nodes are ready, instead of printing it; removed at the end",
        ),
    ] = None,
) -> None:
    """Start the reference servers of a spec and print the descriptor that points the suite at them."""
    from holdfast.cli.serve import serve as start

    raise typer.Exit(start(key, options, nodes=nodes, descriptor=descriptor))


@command(app)
@takes(
    *("only", "sample", "drawn", "by", "for_", "cap", "seed", "all_checks", "time_scale", "results", "jobs"),
    results=RESULTS / "mutants",
    jobs=1,
)
def mutants(options: RunOptions, keys: Keys = None, *, as_json: Json = False) -> None:
    """Run each deliberately broken server against the checks of its requirement: the kill matrix.

    With --drawn N the servers are broken mechanically instead, by changes that no catalogue lists, and every check and
    walk may find them. The share that is killed is the power of detection; exit 0 means 90 % or more. --by walks asks
    what walks find by themselves.
    """
    from holdfast.cli.mutants import kill_matrix

    raise typer.Exit(kill_matrix(keys or [], options, as_json=as_json))


@command(app)
def init(
    spec: Annotated[
        str, typer.Argument(help="the spec that your server implements", metavar="SPEC", autocompletion=specs)
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="file to write; standard output if left out")
    ] = None,
) -> None:
    """Write a commented descriptor to fill in for your own server."""
    from holdfast.cli.init import commented_descriptor

    text = commented_descriptor(spec)
    if output is None:
        typer.echo(text, nl=False)
        return
    if output.exists():
        raise TargetError(f"{output} exists already; choose another name, or remove it first")
    output.write_text(text)
    typer.echo(f"wrote {output}; fill it in, then: holdfast doctor {output}")


@command(app)
@takes("wait")
def doctor(
    options: RunOptions,
    target: Annotated[Path | None, typer.Argument(metavar="FILE", help="descriptor of the target")] = None,
    disruptive: Annotated[
        bool, typer.Option("--disruptive", help="also try kill, pause, restart, and hooks that write or give work")
    ] = False,
    install: Annotated[Tool | None, typer.Option(help="build this tool into the user's cache first, with Go")] = None,
) -> None:
    """Try what a descriptor promises and print what was seen."""
    if install:
        from holdfast.cli.install import install_toxiproxy

        typer.echo(install_toxiproxy())
    if target is not None:
        from holdfast.cli.doctor import examine

        raise typer.Exit(examine(target, disruptive=disruptive, wait=options.wait))
    if not install:
        raise TargetError("name a descriptor to try, or a tool to --install")


@command(app)
def requirements(
    key: Annotated[
        str | None, typer.Argument(help="a spec; all if left out", metavar="SPEC", autocompletion=specs)
    ] = None,
    as_json: Json = False,
) -> None:
    """List the catalogue."""
    from holdfast.cli.requirements import list_requirements

    typer.echo(list_requirements(key, as_json=as_json))


@command(app)
def explain(
    requirement: Annotated[
        str,
        typer.Argument(help="a requirement, a group or a mutant, e.g. AD-RATE-03", metavar="ID", autocompletion=ids),
    ],
) -> None:
    """Show a requirement, a group (AD-RATE) or a mutant (AD-RATE-03/1): document, checks, mutants and rules."""
    from holdfast.cli.explain import explain as explained

    typer.echo(explained(requirement))


@command(app)
def report(folder: Annotated[Path, typer.Argument(metavar="DIR", help="results folder of a run")]) -> None:
    """Write every report again from a run's events; for a run of several specs, those of each and index.html."""
    from holdfast.reports.files import anything_happened, write_all
    from holdfast.reports.index import INDEX, rewrite, specs_in

    several = [] if anything_happened(folder) else specs_in(folder)
    code = int(rewrite(folder)["exit"]) if several else write_all(folder).exit
    for place in [folder / key for key in several] or [folder]:
        typer.echo(f"wrote results.json, junit.xml, ctrf.json, allure-results and report.html to {place}")
    if several:
        typer.echo(f"wrote {folder / INDEX}")
    raise typer.Exit(code)


@command(app)
def diff(
    before: Annotated[Path, typer.Argument(help="results folder or results.json", metavar="BEFORE")],
    after: Annotated[Path, typer.Argument(help="results folder or results.json", metavar="AFTER")],
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="end with 1 if a row got worse and fails, 2 if it is undecided now")
    ] = False,
) -> None:
    """Say which rows changed their verdict between two runs, and what else differs between them."""
    from holdfast.cli.diff import compare

    text, code = compare(before, after)
    typer.echo(text)
    raise typer.Exit(code if exit_code else 0)


command(app, context_settings=FLAGS_ARE_ITS_OWN)(relay)


# What a user can get wrong: the text of each is the sentence to print.
MISTAKES = (
    *(TargetError, CatalogueError, PlanError, OptionError, StreamError, StartError, ScheduleError, ReplayError),
    LoadError,
    OSError,
)


def main() -> None:
    """A user's mistake is a sentence and exit code 2, never a traceback."""
    try:
        code = app(standalone_mode=False)
    except MISTAKES as error:
        code = _refused(sentence(error))
    except UsageError as error:
        code = _refused(usage_sentence(error))
    except typer.Abort:
        code = 130
    sys.exit(code if isinstance(code, int) else 0)


def sentence(error: BaseException) -> str:
    """What a mistake is told as; of a file that can't be read or written its name comes first."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _refused(said: str) -> int:
    if said:
        typer.echo(f"holdfast: {said}", err=True)
    return 2
