"""Flags of a command, made from the record of options: each option is written once, in `holdfast.run.options`."""

import inspect
import typing
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from holdfast.cli.completion import ids
from holdfast.run.option_values import refuse_values
from holdfast.run.options import Option, RunOptions, options


def takes(*names: str, **other_defaults: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command a flag for each of these options; its parameter `options` gets them as one record.

    `other_defaults` hold for this command instead of the record's own.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = [each for each in inspect.signature(command).parameters.values() if each.name != "options"]

        @wraps(command)
        def call(**given: Any) -> None:
            said = {name: value for name in names if (value := given.pop(name)) is not None}
            asked = RunOptions(**{name: _plain(value) for name, value in said.items()})
            refuse_values(asked)
            command(**given, options=asked)

        known = options()
        flags = [_flag(known[name], other_defaults.get(name, known[name].default)) for name in names]
        arguments = [each for each in own if not isinstance(_info(each), type(typer.Option()))]
        rest = [each for each in own if each not in arguments]
        call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # read by typer
            [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*arguments, *flags, *rest)]
        )
        call.__annotations__ = {each.name: each.annotation for each in (*arguments, *flags, *rest)}
        return call

    return decorate


def _flag(option: Option, default: Any) -> inspect.Parameter:
    hint: Any = list[option.kind] if option.many else option.kind  # type: ignore[name-defined]  # a type at run time
    # A flag that is on or off has no second name `--no-…`; one that is a word of Python has another name as a field.
    names = [option.spelling] if option.kind is bool or option.name.endswith("_") else []
    offered = {"only": ids}.get(option.name)
    info = typer.Option(*names, help=option.flag.help, metavar=option.flag.metavar, autocompletion=offered)
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None if default == () else default,
        annotation=Annotated[hint if default is not None and default != () else hint | None, info],
    )


def _info(parameter: inspect.Parameter) -> Any:
    return next(iter(typing.get_args(parameter.annotation)[1:]), None)


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
