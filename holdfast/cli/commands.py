"""How every command looks to its user: help without types of Python, and mistakes as one sentence with exit code 2."""

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

# typer brings its own copy of click, older ones use click itself: this is the class of mistakes in a command line of
# whichever it is.
UsageError: type[Any] = typer.BadParameter.__mro__[1]

EXIT_CODES = (
    "Exit codes. 0: every row of the profile was decided and none failed. 1: something failed. 2: could not judge, or "
    "the command or the descriptor is wrong, and one sentence says how."
)


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


def command(app: typer.Typer, *, judges: bool = False, **more: Any) -> Callable[[Callable[..., Any]], Any]:
    """Adds a command to the application; the help of one that judges ends with the exit codes."""
    return app.command(cls=Command, epilog=EXIT_CODES if judges else None, **more)


def usage_sentence(error: Any) -> str:
    """A mistake in the command line as one sentence, with the command whose help says more; empty if help was shown."""
    if type(error).__name__ == "NoArgsIsHelpError":
        return ""
    said = " ".join(str(error.format_message()).split()).rstrip(".")
    called = error.ctx.command_path if error.ctx else "holdfast"
    return f"{said}; see {called} --help"
