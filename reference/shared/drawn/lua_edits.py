"""The mutation operators for Lua: every change that can be drawn in the body of one named function.

They work on tokens and lines. That is enough for the Lua of the references, where a file holds one function and every
statement begins a line of its own. The condition of a `while` is not negated, and no `break` dropped: a script without
an end stops Redis for everybody, which is another fault than a wrong rule.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.reference.shared.drawn.edit import Edit, Words, other_numbers, other_words, replaced

_TOKEN = re.compile(
    r"(?P<comment>--[^\n]*)|(?P<text>'(?:\\.|[^'\\\n])*')|(?P<number>\d+(?:\.\d+)?)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>==|~=|<=|>=|\.\.\.|\.\.|[^\s\w'])"
)
_SIGNATURE = re.compile(r"^local function \w+\(.*\)\n", re.MULTILINE)
_COMPARED = {"==": "~=", "~=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*"}
_BOOLEAN = {"and": "or", "or": "and", "true": "false", "false": "true"}
_OPENS, _CLOSES = frozenset("([{"), frozenset(")]}")
_GOES_ON = frozenset({"and", "or", "not", "..", "=", ",", ".", *_COMPARED, *_ARITHMETIC, *_OPENS})
_KEYWORDS = frozenset({"if", "then", "else", "elseif", "end", "for", "while", "do", "local", "break", "in", "function"})


class Token(NamedTuple):
    kind: str
    text: str
    start: int
    first: bool
    """Whether it is the first of its line."""

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def is_value(self) -> bool:
        return self.kind in {"number", "text"} or self.text in _CLOSES or (self.kind == "name" and not self.is_word)

    @property
    def is_word(self) -> bool:
        return self.text in _KEYWORDS or self.text in {"and", "or", "not", "return"}


@dataclass(frozen=True)
class _Statement:
    """A call, an assignment or a `return`; `block` is how deep it is nested, `place` its number in the function."""

    tokens: Sequence[Token]
    block: int
    place: int

    @property
    def start(self) -> int:
        return self.tokens[0].start

    @property
    def end(self) -> int:
        return self.tokens[-1].end


def body_of(source: str) -> tuple[int, int]:
    """Returns where the body of the file's function begins and ends."""
    signature = _SIGNATURE.search(source)
    if signature is None:
        raise ValueError(f"No signature of the form 'local function name(…)' in: {source}")
    return signature.end(), source.rindex("end")


def tokens_of(source: str, start: int, end: int) -> list[Token]:
    """Returns the tokens of a part of the source, without comments."""
    found = []
    for match in _TOKEN.finditer(source, start, end):
        first = not source[source.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
        if match.lastgroup != "comment":
            found.append(Token(str(match.lastgroup), match.group(0), match.start(), first))
    return found


def words_of(source: str) -> list[str]:
    """Returns the texts of all tokens of a function: two functions that differ in form only have the same."""
    return [token.text for token in tokens_of(source, *body_of(source))]


def edits_of(source: str, words: Words) -> list[Edit]:
    """Returns every edit of the function's body, in the order of the text."""
    start, end = body_of(source)
    tokens = tokens_of(source, start, end)
    found = [*_of_tokens(tokens, words), *_of_guards(source, tokens), *_of_statements(source, tokens)]
    return sorted(found, key=lambda edit: (edit.start, edit.end, edit.kind, edit.text))


def _of_tokens(tokens: Sequence[Token], words: Words) -> Iterator[Edit]:
    for before, token in zip([None, *tokens], tokens, strict=False):
        text = token.text
        if text in _COMPARED:
            yield replaced(token.start, text, _COMPARED[text], "comparison")
        elif text in _ARITHMETIC and before is not None and before.is_value:
            yield replaced(token.start, text, _ARITHMETIC[text], "arithmetic")
        elif text in _BOOLEAN:
            yield replaced(token.start, text, _BOOLEAN[text], "boolean")
        elif text == "not":
            yield Edit(token.start, token.end + 1, "", "negated guard", "not is removed")
        elif token.kind == "number":
            for number in other_numbers(float(text) if "." in text else int(text)):
                yield replaced(token.start, text, f"{number}", "constant")
        elif token.kind == "text":
            for word in other_words(text[1:-1], words):
                yield replaced(token.start, text, f"'{word}'", "word")


def _of_guards(source: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    for place, token in enumerate(tokens):
        if token.text not in {"if", "elseif"}:
            continue
        then = next(each for each in tokens[place:] if each.text == "then")
        start, end = tokens[place + 1].start, then.start - 1
        test = source[start:end]
        if tokens[place + 1].text != "not":
            yield Edit(start, end, f"not ({test})", "negated guard", f"{test} becomes not ({test})")
        yield Edit(start, end, f"({test}) and false", "ignored guard", f"{test} never holds")
        yield Edit(start, end, f"({test}) or true", "ignored guard", f"{test} always holds")


def _of_statements(source: str, tokens: Sequence[Token]) -> Iterator[Edit]:
    statements = list(_statements(tokens))
    for place, one in enumerate(statements):
        returns = one.tokens[0].text == "return"
        if not returns or one.block:
            start, end = source.rindex("\n", 0, one.start) + 1, source.index("\n", one.end) + 1
            yield Edit(start, end, "", _dropped(one), f"{_line(source[one.start : one.end])} is dropped")
        if place + 1 < len(statements) and not returns:
            yield from _swapped(source, one, statements[place + 1])


def _dropped(one: _Statement) -> str:
    if one.tokens[0].text == "return":
        return "dropped return"
    if one.tokens[0].text in {"write", "redis"}:
        return "dropped write"
    return "dropped assignment" if any(token.text == "=" for token in one.tokens[:8]) else "dropped call"


def _swapped(source: str, one: _Statement, other: _Statement) -> Iterator[Edit]:
    if other.tokens[0].text == "return" or other.place != one.place + 1 or other.block != one.block:
        return
    first, second = source[one.start : one.end], source[other.start : other.end]
    if first == second:
        return
    text = second + source[one.end : other.start] + first
    yield Edit(one.start, other.end, text, "swapped statements", f"{_line(second)} comes before {_line(first)}")


def _statements(tokens: Sequence[Token]) -> Iterator[_Statement]:
    """Yields calls, assignments and returns. Whatever else begins a line moves `place` on, so it separates them."""
    block, place, index = 0, 0, 0
    while index < len(tokens):
        token = tokens[index]
        end = _end_of(tokens, index)
        if token.first and token.kind == "name" and token.text not in _KEYWORDS:
            yield _Statement(tokens[index:end], block, place)
            place += 1
        else:
            place += 2
            block += sum(_depth(each.text) for each in tokens[index:end])
        index = end


def _depth(word: str) -> int:
    return {"then": 1, "do": 1, "end": -1, "elseif": -1, "else": 0}.get(word, 0)


def _end_of(tokens: Sequence[Token], index: int) -> int:
    """Returns where the statement or block line that begins at `index` ends: before a token that begins another."""
    open_ones = 0
    for place in range(index, len(tokens)):
        token = tokens[place]
        goes_on = place > index and (tokens[place - 1].text in _GOES_ON or token.text in _GOES_ON - {"not"} - _OPENS)
        if place > index and token.first and not open_ones and not goes_on:
            return place
        open_ones += (token.text in _OPENS) - (token.text in _CLOSES)
    return len(tokens)


def _line(text: str, most: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
