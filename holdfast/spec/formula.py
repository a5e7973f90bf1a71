"""Arithmetic on named durations (`grace + 2*slack`): the catalogue's [formulas] and the planned waiting of a check.

A formula is parsed as a Python expression and then walked by hand, never evaluated as code: names, numbers, the four
operations, `max` and `min` are all there is. The value of a name comes from the caller. So one text can be evaluated
twice, with the spec's own seconds for the catalogue and with the scaled seconds of a run.
"""

import ast
import contextlib
import functools
import operator
from collections.abc import Callable, Iterator

_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_TRIES = 20
_CALLS: dict[str, Callable[..., float]] = {"max": max, "min": min}


class FormulaError(ValueError):
    """Raised for a formula that is not made of names, numbers, + - * /, max and min."""


def names_in(formula: str) -> Iterator[str]:
    """Yields the names of the durations and limits that the formula uses."""
    for node in ast.walk(_parse(formula)):
        if isinstance(node, ast.Name) and node.id not in _CALLS:
            yield node.id


def evaluate(formula: str, value_of: Callable[[str], float]) -> float:
    """Returns the value of the formula; `value_of` gives the value of each name. Raises FormulaError."""
    return _value(_parse(formula), value_of)


@functools.cache
def _parse(formula: str) -> ast.expr:
    for _ in range(_TRIES):
        # CPython 3.11 counts the depth of syntax trees for all threads together: another one that parses confuses it.
        with contextlib.suppress(SystemError):
            return _parsed(formula)
    return _parsed(formula)


def _parsed(formula: str) -> ast.expr:
    try:
        return ast.parse(formula, mode="eval").body
    except SyntaxError as error:
        raise FormulaError(f"{formula!r} is not a formula: {error.msg}") from error


def _value(node: ast.expr, value_of: Callable[[str], float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name(id=name):
            return value_of(name)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, value_of), _value(right, value_of))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _CALLS:
            return _CALLS[name](*(_value(arg, value_of) for arg in args))
        case _:
            raise FormulaError(
                f"{ast.unparse(node)!r} is not allowed in a formula; use names, numbers, + - * /, max and min"
            )
