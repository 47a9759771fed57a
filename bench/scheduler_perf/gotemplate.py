"""Go's text/template, as far as Kubernetes' benchmark templates use it.

Fields (`.Index`), variables (`$n := …`), calls with arguments and parentheses, pipelines, `if`,
`else if`, `else`, `range` over numbers and lists, comparisons, and `-` at a brace to trim the space
around it. What is not understood raises TemplateError; nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import ge, gt, le, lt, mul
from typing import Any

import msgspec

_TAG = re.compile(r'\{\{(- )?((?:"(?:[^"\\]|\\.)*"|.)*?)( -)?\}\}', re.DOTALL)
_WORD = re.compile(
    r'\s*(?:(?P<text>"(?:[^"\\]|\\.)*"|`[^`]*`)|(?P<number>-?\d+(?:\.\d+)?)'
    r"|(?P<field>\$?\.\w*(?:\.\w+)*)|(?P<variable>\$\w*)|(?P<mark>:=|[=|(),])|(?P<name>\w+))"
)
Functions = Mapping[str, Callable[..., Any]]


class TemplateError(ValueError):
    """A template that uses what is not understood here."""


@dataclass(slots=True)
class _Block:
    """A stretch of a template: text, values, and blocks with a condition or a list."""

    kind: str
    head: str = ""
    body: list[_Block | str] = field(default_factory=list)
    otherwise: list[_Block | str] = field(default_factory=list)


class Template:
    """A template ready to be filled."""

    def __init__(self, text: str, functions: Functions | None = None) -> None:
        self._body = _parse(text)
        self._functions = {**_FUNCTIONS, **(functions or {})}

    def render(self, values: Mapping[str, Any]) -> str:
        """The text with the values filled in."""
        return "".join(_render(self._body, _Scope(values, {"$": values}, self._functions)))


@dataclass(slots=True)
class _Scope:
    dot: Any
    variables: dict[str, Any]
    functions: Functions


def _parse(text: str) -> list[_Block | str]:
    root = _Block("root")
    stack: list[tuple[_Block, list[_Block | str]]] = [(root, root.body)]
    for piece in _pieces(text):
        if isinstance(piece, str):
            stack[-1][1].append(piece)
            continue
        word = piece.head.split(" ", 1)[0]
        rest = piece.head[len(word) :].strip()
        if word in {"if", "range"}:
            block = _Block(word, rest)
            stack[-1][1].append(block)
            stack.append((block, block.body))
        elif word == "else":
            block = stack[-1][0]
            stack[-1] = (block, block.otherwise)
            if rest.startswith("if "):
                # `else if` is an `if` within the else that ends together with it.
                inner = _Block("if", rest[3:])
                block.otherwise.append(inner)
                stack[-1] = (inner, inner.body)
        elif word == "end":
            stack.pop()
        elif not word.startswith("/*"):
            stack[-1][1].append(piece)
    if len(stack) != 1:
        raise TemplateError("an if or range without its end")
    return root.body


def _pieces(text: str) -> Iterator[_Block | str]:
    at = 0
    trim = False
    for tag in _TAG.finditer(text):
        before = text[at : tag.start()]
        before = before.lstrip() if trim else before
        yield before.rstrip() if tag[1] else before
        yield _Block("value", tag[2].strip())
        trim, at = bool(tag[3]), tag.end()
    yield text[at:].lstrip() if trim else text[at:]


def _render(body: list[_Block | str], scope: _Scope) -> Iterator[str]:
    for piece in body:
        if isinstance(piece, str):
            yield piece
        elif piece.kind == "if":
            chosen = piece.body if _value(piece.head, scope) else piece.otherwise
            yield from _render(chosen, scope)
        elif piece.kind == "range":
            yield from _each(piece, scope)
        else:
            found = _value(piece.head, scope)
            yield "" if found is None else _shown(found)


def _each(block: _Block, scope: _Scope) -> Iterator[str]:
    names, assigned, source = block.head.partition(":=")
    over = _value(source if assigned else block.head, scope)
    items = list(range(over)) if isinstance(over, int) else list(over)
    wanted = [name.strip() for name in names.split(",")] if assigned else []
    for index, item in enumerate(items):
        inner = _Scope(item, dict(scope.variables), scope.functions)
        for name, value in zip(wanted, (index, item)[-len(wanted) :], strict=False):
            inner.variables[name] = value
        yield from _render(block.body, inner)
    if not items:
        yield from _render(block.otherwise, scope)


def _value(text: str, scope: _Scope) -> Any:
    """The value of what stands between braces; None for an assignment."""
    words = _words(text)
    if len(words) > 1 and words[1] in {":=", "="}:
        scope.variables[words[0]] = _pipeline(words[2:], scope)
        return None
    return _pipeline(words, scope)


def _words(text: str) -> list[str]:
    words, at = [], 0
    while text[at:].strip():
        found = _WORD.match(text, at)
        if found is None:
            raise TemplateError(f"cannot read {text.strip()[:80]!r}")
        words.append(found[0].strip())
        at = found.end()
    return words


def _pipeline(words: list[str], scope: _Scope) -> Any:
    """Commands between bars, each given what came out of the one before as its last argument."""
    given: list[Any] = []
    for command in _split(words):
        given = [_command(command, given, scope)]
    return given[0]


def _split(words: list[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    depth = 0
    for word in words:
        depth += (word == "(") - (word == ")")
        if word == "|" and depth == 0:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _command(words: list[str], given: list[Any], scope: _Scope) -> Any:
    head, *rest = words
    if head in scope.functions:
        return scope.functions[head](*_arguments(rest, scope), *given)
    values = _arguments(words, scope)
    if callable(values[0]):
        return values[0](*values[1:], *given)
    if len(values) != 1:
        raise TemplateError(f"{head!r} is no function that is known here")
    return values[0]


def _arguments(words: list[str], scope: _Scope) -> list[Any]:
    values: list[Any] = []
    at = 0
    while at < len(words):
        if words[at] == "(":
            end = _closing(words, at)
            values.append(_pipeline(words[at + 1 : end], scope))
            at = end
        else:
            values.append(_operand(words[at], scope))
        at += 1
    return values


def _closing(words: list[str], at: int) -> int:
    depth = 0
    for index in range(at, len(words)):
        depth += (words[index] == "(") - (words[index] == ")")
        if depth == 0:
            return index
    raise TemplateError("a parenthesis without its end")


def _operand(word: str, scope: _Scope) -> Any:
    if word.startswith((".", "$.")):
        whose = scope.dot if word.startswith(".") else scope.variables["$"]
        return reduce(_member, [name for name in word.lstrip("$").split(".") if name], whose)
    if word.startswith("$"):
        if word not in scope.variables:
            raise TemplateError(f"there is no variable {word}")
        return scope.variables[word]
    if word.startswith(('"', "`")):
        return msgspec.json.decode(word) if word.startswith('"') else word[1:-1]
    if word in {"true", "false"}:
        return word == "true"
    if re.fullmatch(r"-?\d+", word):
        return int(word)
    if re.fullmatch(r"-?\d+\.\d+", word):
        return float(word)
    raise TemplateError(f"{word[:80]!r} is not understood")


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _number(value: Any) -> float:
    return float(value)


def _sum(*numbers: Any) -> float:
    return sum(map(_number, numbers))


def _product(*numbers: Any) -> float:
    return reduce(mul, map(_number, numbers), 1.0)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "AddFloat": _sum,
    "AddInt": lambda *numbers: int(_sum(*numbers)),
    "DivideFloat": lambda i, j: _number(i) / _number(j),
    "DivideInt": lambda i, j: int(_number(i) / _number(j)),
    "Int": lambda value: int(_number(value)),
    "JSON": lambda value: msgspec.json.encode(value).decode(),
    "Mod": lambda i, j: int(_number(i)) % int(_number(j)),
    "MultiplyFloat": _product,
    "MultiplyInt": lambda *numbers: int(_product(*numbers)),
    "SubtractFloat": lambda i, j: _number(i) - _number(j),
    "SubtractInt": lambda i, j: int(_number(i) - _number(j)),
    "and": lambda *values: next((value for value in values if not value), values[-1]),
    "or": lambda *values: next((value for value in values if value), values[-1]),
    "not": lambda value: not value,
    "eq": lambda first, *others: any(first == other for other in others),
    "ne": lambda first, other: first != other,
    "lt": lt,
    "le": le,
    "gt": gt,
    "ge": ge,
    "len": len,
    "printf": lambda text, *values: text.replace("%v", "{}").replace("%d", "{}").format(*values),
}
