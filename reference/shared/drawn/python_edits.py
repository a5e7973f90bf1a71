"""The mutation operators for Python: every change that can be drawn in one function.

Found in the syntax tree, made in the text: an edit replaces the characters of one node, so the rest of the file keeps
its form and the diff shows one change. Left alone is what no client can see or what only breaks the start: docstrings,
annotations, defaults, decorators, assertions, texts for people, calls that only log (`quiet`). In `__init__` nothing
is dropped or swapped, because a component without its attributes is not a broken rule but no component.

Loops without an end are avoided where that is easy: the condition of a `while` is not negated, and no `break` dropped.
"""

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.reference.shared.drawn.edit import Edit, Words, other_numbers, other_words, replaced

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_COMPARED = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
_COMPARISON = re.compile(r"is\s+not\b|not\s+in\b|\bis\b|\bin\b|[<>=!]=|<|>")
_ARITHMETIC = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "*"}
_OPERATOR = re.compile(r"//|[-+*/%]")
_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.Delete)


@dataclass(frozen=True)
class Hints:
    """What the operators have to know of a spec: calls that only log, and the words that it has for one thing."""

    quiet: Collection[str] = ()
    words: Words = ()


def functions_of(tree: ast.Module) -> dict[str, FunctionNode]:
    """Returns the functions of a module and the methods of its classes by qualified name, but those defined twice."""
    found: dict[str, list[FunctionNode]] = {}
    for prefix, body in _scopes(tree):
        for node in body:
            if isinstance(node, FunctionNode):
                found.setdefault(prefix + node.name, []).append(node)
    return {name: nodes[0] for name, nodes in found.items() if len(nodes) == 1}


def _scopes(tree: ast.Module) -> Iterator[tuple[str, list[ast.stmt]]]:
    yield "", tree.body
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield f"{node.name}.", node.body


def numeric_constants(tree: ast.Module) -> frozenset[str]:
    """Returns the names of the module's own constants that are plain numbers."""
    return frozenset(
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and _is_number(node.value)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id.isupper()
    )


def edits_of(source: str, tree: ast.Module, function: FunctionNode, hints: Hints) -> list[Edit]:
    """Returns every edit of the function's body, in the order of the text."""
    finder = _Finder(_Text(source), hints, numeric_constants(tree), constructor=function.name == "__init__")
    finder.function(function)
    return sorted(finder.found, key=lambda edit: (edit.start, edit.end, edit.kind, edit.text))


@dataclass(frozen=True)
class _Tail:
    """What ends with the last statement of a block. `whole`: the block is the function's own, not one inside it."""

    function: bool = False
    loop: bool = False
    whole: bool = False


_NO_TAIL, _LOOP = _Tail(), _Tail(loop=True)


class _Text:
    """The source, with places of the tree (line, and column in bytes) as offsets."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._starts = [0]
        self._lines = source.splitlines(keepends=True)
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def offset(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.AST) -> tuple[int, int]:
        place: Any = node  # expressions and statements have places
        return self.offset(place.lineno, place.col_offset), self.offset(place.end_lineno, place.end_col_offset)

    def of(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.source[start:end]


@dataclass
class _Finder(ast.NodeVisitor):
    text: _Text
    hints: Hints
    constants: frozenset[str]
    constructor: bool
    found: list[Edit] = field(default_factory=list)

    def function(self, node: FunctionNode) -> None:
        body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
        if not self.constructor:
            if _returns_nothing(node):
                self._early_returns(body)
            self._statements(body, _Tail(function=True, whole=True))
        for statement in body:
            self.visit(statement)

    def _add(self, node: ast.AST, new: str, kind: str, says: str = "") -> None:
        start, end = self.text.span(node)
        old = self.text.source[start:end]
        self.found.append(Edit(start, end, new, kind, says or f"{_short(old)} becomes {_short(new)}"))

    def _between(self, left: ast.AST, right: ast.AST, pattern: re.Pattern[str], new: str, kind: str) -> None:
        """Replaces the operator between two nodes."""
        start, end = self.text.span(left)[1], self.text.span(right)[0]
        if operator := pattern.search(self.text.source, start, end):
            self.found.append(replaced(operator.start(), operator.group(0), new, kind))

    # Statements.

    def _early_returns(self, body: Sequence[ast.stmt]) -> None:
        for statement in body[1:]:
            start, _ = self.text.span(statement)
            indent = " " * statement.col_offset
            if not self._is_quiet(statement) and not isinstance(statement, ast.Return):
                self.found.append(Edit(start, start, f"return\n{indent}", "early return", "returns early"))

    def _statements(self, body: Sequence[ast.stmt], tail: _Tail) -> None:
        """Drops and swaps statements of a block and of those inside it; `tail` says what ends where the block ends."""
        for place, statement in enumerate(body):
            mine = tail if place == len(body) - 1 else _NO_TAIL
            if kind := self._droppable(statement, mine):
                self._add(statement, "pass", kind, f"{_short(self.text.of(statement))} is dropped")
            if place + 1 < len(body) and self._swappable(statement, body[place + 1]):
                self._swap(statement, body[place + 1])
            inner = _LOOP if isinstance(statement, ast.For | ast.AsyncFor | ast.While) else replace(mine, whole=False)
            for block in _blocks(statement):
                self._statements(block, inner)

    def _droppable(self, statement: ast.stmt, tail: _Tail) -> str:
        """Returns the kind of the edit that drops the statement, empty for one that is kept."""
        kind = ""
        match statement:
            case ast.Expr(value=ast.Await()):
                kind = "skipped await"
            case ast.Expr(value=ast.Call()) if not self._is_quiet(statement):
                kind = "dropped call"
            case ast.Assign(targets=targets) if all(map(_is_stored, targets)):
                kind = "dropped assignment"
            case ast.AugAssign() | ast.Delete():
                kind = "dropped assignment"
            case ast.Raise():
                kind = "removed raise"
            case ast.Return(value=value) if not tail.whole and (value is not None or not tail.function):
                kind = "dropped return"
            case ast.Continue() if not tail.loop:
                kind = "dropped continue"
        return kind

    def _swappable(self, first: ast.stmt, second: ast.stmt) -> bool:
        """Whether the order may matter and both orders can run: each has an effect, neither binds what one reads."""
        if not all(isinstance(each, _SIMPLE) and _has_effect(each) for each in (first, second)):
            return False
        if self._is_quiet(first) or self._is_quiet(second) or ast.dump(first) == ast.dump(second):
            return False
        bound, read = _names(first), _names(second)
        return not (bound[0] & (read[0] | read[1]) or read[0] & bound[1])

    def _swap(self, first: ast.stmt, second: ast.stmt) -> None:
        (start, stop), (begin, end) = self.text.span(first), self.text.span(second)
        source = self.text.source
        text = source[begin:end] + source[stop:begin] + source[start:stop]
        says = f"{_short(source[begin:end])} comes before {_short(source[start:stop])}"
        self.found.append(Edit(start, end, text, "swapped statements", says))

    # What is inside statements. A method that does not go on to `generic_visit` leaves its node alone.

    def visit_Expr(self, node: ast.Expr) -> None:
        if not self._is_quiet(node):
            self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leaves texts with values in them alone: what is inside has no place of its own before Python 3.12."""

    def visit_Assert(self, node: ast.Assert) -> None: ...

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.function(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.body)

    def visit_If(self, node: ast.If) -> None:
        self._negate(node.test)
        test = self.text.of(node.test)
        self._add(node.test, f"({test}) and False", "ignored guard", f"{_short(test)} never holds")
        self._add(node.test, f"({test}) or True", "ignored guard", f"{_short(test)} always holds")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._negate(test)
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if isinstance(node.value, ast.Compare | ast.BoolOp):
            self._negate(node.value)
        self.generic_visit(node)

    def _negate(self, test: ast.expr) -> None:
        if not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)):
            self._add(test, f"not ({self.text.of(test)})", "negated guard")

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._add(node, f"({self.text.of(node.operand)})", "negated guard")
        self.generic_visit(node)

    def visit_With(self, node: ast.With) -> None:
        self._without(node)

    def visit_AsyncWith(self, node: ast.AsyncWith) -> None:
        self._without(node)

    def _without(self, node: ast.With | ast.AsyncWith) -> None:
        """Runs the block without its lock, timeout or suppression."""
        if len(node.items) == 1 and node.items[0].optional_vars is None and not self.constructor:
            start, (_, end) = self.text.span(node)[0], self.text.span(node.items[0].context_expr)
            says = f"{_short(self.text.source[start:end])} is skipped"
            self.found.append(Edit(start, end, "if True", "skipped with", says))
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for place, operator in enumerate(node.ops):
            self._between(sides[place], sides[place + 1], _COMPARISON, _COMPARED[type(operator)], "comparison")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between(left, right, re.compile(rf"\b{old}\b"), new, "boolean")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = any(isinstance(side, ast.JoinedStr) or _is_text(side) for side in (node.left, node.right))
        if not texts and (new := _ARITHMETIC.get(type(node.op))):
            self._between(node.left, node.right, _OPERATOR, new, "arithmetic")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if not _is_text(node.value) and (new := _ARITHMETIC.get(type(node.op))):
            self._between(node.target, node.value, _OPERATOR, new, "arithmetic")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._add(node, str(not value), "boolean")
        elif isinstance(value, int | float):
            for other in other_numbers(value):
                self._add(node, _literal(other), "constant")
        elif isinstance(value, str):
            for word in other_words(value, self.hints.words):
                self._add(node, f'"{word}"', "word")

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in self.constants and isinstance(node.ctx, ast.Load):
            for other in (f"({node.id} + 1)", f"({node.id} - 1)", f"({node.id} * 2)", "0"):
                self._add(node, other, "constant")

    def _is_quiet(self, statement: ast.stmt) -> bool:
        value = statement.value if isinstance(statement, ast.Expr) else None
        call = value.value if isinstance(value, ast.Await) else value
        name = call.func if isinstance(call, ast.Call) else None
        return isinstance(name, ast.Attribute) and name.attr in self.hints.quiet


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    if isinstance(statement, FunctionNode | ast.ClassDef):
        return
    for name in ("body", "orelse", "finalbody"):
        if block := getattr(statement, name, None):
            yield block
    for handler in [*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())]:
        yield handler.body


def _returns_nothing(node: FunctionNode) -> bool:
    nothing = isinstance(node.returns, ast.Constant) and node.returns.value is None
    return nothing and not any(isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(node))


def _is_stored(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple):
        return all(map(_is_stored, target.elts))
    return isinstance(target, ast.Attribute | ast.Subscript)


def _has_effect(statement: ast.stmt) -> bool:
    stores = any(isinstance(each, ast.Attribute | ast.Subscript) and _is_store(each) for each in ast.walk(statement))
    return stores or any(isinstance(each, ast.Call) for each in ast.walk(statement))


def _is_store(node: ast.Attribute | ast.Subscript) -> bool:
    return isinstance(node.ctx, ast.Store | ast.Del)


def _names(statement: ast.stmt) -> tuple[set[str], set[str]]:
    """Returns the local names that a statement binds, and those that it reads."""
    names = [each for each in ast.walk(statement) if isinstance(each, ast.Name)]
    bound = {each.id for each in names if isinstance(each.ctx, ast.Store)}
    return bound, {each.id for each in names} - bound


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _literal(value: float) -> str:
    return f"({value!r})" if value < 0 else repr(value)


def _short(text: str, most: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
