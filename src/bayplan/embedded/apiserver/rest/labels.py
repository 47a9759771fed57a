"""Label selectors as they stand in a query string: `a=b,c!=d,e in (f,g),!h`.

They are read token by token, so that what is wrong can be said as kube-apiserver says it.
"""

from __future__ import annotations

import re

from bayplan.embedded.apiserver.errors import ApiError, bad_request
from bayplan.embedded.apiserver.rest.requirements import LabelRequirements, whole_number
from bayplan.embedded.apiserver.validation.causes import bad_value
from bayplan.embedded.apiserver.validation.names import label_value, qualified_name

_TOKEN = re.compile(r"==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+")
_OPERATORS = {"=": "in", "==": "in", "!=": "notin", "in": "in", "notin": "notin"} | {
    ">": ">",
    "<": "<",
}
_SYMBOLS = frozenset(("==", "!=", "=", "!", "(", ")", ",", "<", ">", ""))
_BINARY = "in, notin, =, ==, !=, gt, lt"


class _BadRequirement(Exception):  # noqa: N818 - it becomes a refusal
    """What is wrong with one requirement."""


class _Tokens:
    """The pieces of a selector; empty at its end."""

    def __init__(self, text: str) -> None:
        self._items = _TOKEN.findall(text.partition("\0")[0])
        self._at = 0

    def peek(self) -> str:
        return self._items[self._at] if self._at < len(self._items) else ""

    def take(self) -> str:
        item = self.peek()
        self._at += 1
        return item


def parse_labels(text: str) -> LabelRequirements:
    """The requirements of a selector; 400 if it cannot be read."""
    tokens = _Tokens(text)
    found = LabelRequirements()
    while tokens.peek():
        if _is_symbol(tokens.peek(), besides="!"):
            raise _refusal(f"found '{tokens.peek()}', expected: !, identifier, or 'end of string'")
        try:
            _read_requirement(tokens, found)
        except _BadRequirement as problem:
            raise _refusal(f"unable to parse requirement: {problem}") from problem
        after = tokens.take()
        if after == ",":
            if _is_symbol(tokens.peek(), besides="!"):
                raise _refusal(f"found '{tokens.peek()}', expected: identifier after ','")
        elif after:
            raise _refusal(f"found '{after}', expected: ',' or 'end of string'")
    return found


def _refusal(message: str) -> ApiError:
    return bad_request(message)


def _is_symbol(token: str, besides: str | None = None) -> bool:
    return token in _SYMBOLS and token != besides


def _read_requirement(tokens: _Tokens, found: LabelRequirements) -> None:
    key = tokens.take()
    absent = key == "!"
    if absent:
        key = tokens.take()
    if _is_symbol(key):
        raise _BadRequirement(f"found '{key}', expected: identifier")
    problems = qualified_name(key)
    if problems:
        raise _BadRequirement(_invalid("<nil>", key, "; ".join(problems)))
    if tokens.peek() in ("", ","):
        found.add(key, "absent" if absent else "exists")
        return
    operator = tokens.take()
    if operator not in _OPERATORS:
        raise _BadRequirement(f"found '{operator}', expected: {_BINARY}")
    values = _set(tokens) if operator in ("in", "notin") else [_exact(tokens)]
    _check(key, operator, values)
    found.add(key, _OPERATORS[operator], values)


def _exact(tokens: _Tokens) -> str:
    if tokens.peek() in ("", ","):
        return ""
    value = tokens.take()
    if _is_symbol(value):
        raise _BadRequirement(f"found '{value}', expected: identifier")
    return value


def _set(tokens: _Tokens) -> list[str]:
    opening = tokens.take()
    if opening != "(":
        raise _BadRequirement(f"found '{opening}' expected: '('")
    values: list[str] = []
    if tokens.peek() == ")":
        tokens.take()
        return [""]
    if _is_symbol(tokens.peek(), besides=","):
        raise _BadRequirement(f"found '{tokens.peek()}', expected: ',', ')' or identifier")
    value = ""
    while True:
        token = tokens.take()
        if token in (",", ")"):
            values.append(value)
            value = ""
            if token == ")":  # noqa: S105
                return sorted(set(values))
        elif _is_symbol(token):
            raise _BadRequirement(f"found '{token}', expected: ',', or identifier")
        else:
            value = token
            if tokens.peek() not in (",", ")"):
                raise _BadRequirement(f"found '{tokens.peek()}', expected: ',' or ')'")


def _check(key: str, operator: str, values: list[str]) -> None:
    found = []
    for index, value in enumerate(values):
        if operator in ("<", ">") and whole_number(value) is None:
            why = "for 'Gt', 'Lt' operators, the value must be an integer"
            found.append(_invalid(f"values[{index}]", value, why))
        problems = label_value(value)
        if problems:
            found.append(_invalid(f"values[{index}][{key}]", value, "; ".join(problems)))
    if found:
        raise _BadRequirement(found[0] if len(found) == 1 else f"[{', '.join(found)}]")


def _invalid(field: str, value: str, why: str) -> str:
    return f"{field}: {bad_value(field, value, why).message}"
