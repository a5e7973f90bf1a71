"""How every command looks to its user: help without types of Python, and mistakes as one sentence with exit code 2."""

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

# typer brings its own copy of click, older ones use click itself: this is the class of mistakes in a command line of
# whichever it is.
UsageError: type[Any] = typer.BadParameter.__mro__[1]

_WRONG = "the command or a file that it reads is wrong, and one sentence says how."
EXIT_CODES = (
    "Exit codes. 0: every row of the profile was decided and none failed. 1: something failed. 2: could not judge, or "
    f"{_WRONG}"
)
# Commands that do something else than judging rows.
_OTHER_CODES = {
    "mutants": "Exit codes. 0: every mutant was killed, and no copy without one raised an alarm; with --drawn: 90 % or "
    f"more were killed. 1: not so. 2: could not judge, or {_WRONG}",
    "load": "Exit codes. 0: every campaign kept its budgets, counts and rules. 1: one did not. 2: could not judge, or "
    f"{_WRONG}",
    "doctor": "Exit codes. 0: all that was tried works. 1: something does not. 2: no run against it makes sense, or "
    f"{_WRONG}",
    "diff": "Exit codes. 0: compared. With --exit-code 1: a row got worse and fails; 2: one is undecided now. 2 also: "
    f"{_WRONG}",
    "report": f"Exit codes. That of the run whose reports are written; 2 also: {_WRONG}",
    "serve": f"Exit codes. 0: stopped by a signal. 2: nothing was served, because {_WRONG}",
}
_DONE = f"Exit codes. 0: done. 2: {_WRONG}"
_JUDGING = frozenset({"run", "chaos", "walk"})


def _no_type(*_given: Any, **_named: Any) -> str:
    return ""


def _without_types(params: list[Any]) -> list[Any]:
    """A flag that is on or off takes no value, and `list[str]` means nothing to who calls the command."""
    for param in params:
        if param.param_type_name == "argument" or getattr(param, "is_flag", False):
            vars(param)["display_type_rich"] = _no_type
    return params


class Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types(super().get_params(ctx))


class Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types(super().get_params(ctx))


def command(app: typer.Typer, **more: Any) -> Callable[[Callable[..., Any]], Any]:
    """Adds a command to the application; its help ends with its exit codes."""

    def add(function: Callable[..., Any]) -> Any:
        name = function.__name__
        codes = EXIT_CODES if name in _JUDGING else _OTHER_CODES.get(name, _DONE)
        return app.command(cls=Command, epilog=codes, **more)(function)

    return add


def usage_sentence(error: Any) -> str:
    """A mistake in the command line as one sentence, with the command whose help says more; empty if help was shown."""
    if type(error).__name__ == "NoArgsIsHelpError":
        return ""
    said = " ".join(str(error.format_message()).split()).rstrip(".")
    called = error.ctx.command_path if error.ctx else "holdfast"
    return f"{said}; see {called} --help"
