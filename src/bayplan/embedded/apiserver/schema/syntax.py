"""Syntax errors of JSON, in the words of Go's scanner.

Only called for text that could not be parsed.
"""

from __future__ import annotations

import re
from typing import NoReturn

_MAX_DEPTH = 10_000
_SPACE = re.compile(r"[ \t\r\n]*")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_WORDS = {"t": "true", "f": "false", "n": "null"}


class _SyntaxProblem(Exception):  # noqa: N818 - an outcome, not an error
    """The error at which the scanner stops."""


def syntax_problem(body: bytes) -> str:
    """Return the scanner's error for a body; empty if there is none."""
    try:
        _Scanner(body.decode("latin-1")).document()
    except _SyntaxProblem as problem:
        return str(problem)
    return ""


def quoted(letter: str) -> str:
    """Return a character as the scanner shows it."""
    if letter in "'\"":
        return "'\\''" if letter == "'" else "'\"'"
    if letter.isprintable():
        return f"'{letter}'"
    named = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", "\v": "\\v"}
    return "'" + (named.get(letter) or _escaped(letter)) + "'"


def _escaped(letter: str) -> str:
    return f"\\x{ord(letter):02x}" if letter < "\x80" else f"\\u{ord(letter):04x}"


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def document(self) -> None:
        """Scan one value, and nothing after it."""
        closers: list[str] = []
        self._value(closers)
        while closers:
            self._after_element(closers)
        self._skip()
        if self._at < len(self._text):
            self._stop("after top-level value")

    def _value(self, closers: list[str]) -> None:
        """Scan a value, or the beginning of one that is not empty."""
        while True:
            letter = self._next("looking for beginning of value")
            if letter not in "{[":
                self._literal(letter)
                return
            closers.append("}" if letter == "{" else "]")
            if len(closers) > _MAX_DEPTH:
                raise _SyntaxProblem("exceeded max depth")
            self._skip()
            if self._peek() == closers[-1]:
                self._at += 1
                closers.pop()
                return
            if letter == "{":
                self._key()

    def _after_element(self, closers: list[str]) -> None:
        in_object = closers[-1] == "}"
        context = "after object key:value pair" if in_object else "after array element"
        letter = self._next(context)
        if letter == closers[-1]:
            closers.pop()
        elif letter == ",":
            if in_object:
                self._key()
            self._value(closers)
        else:
            self._at -= 1
            self._stop(context)

    def _key(self) -> None:
        context = "looking for beginning of object key string"
        if self._next(context) != '"':
            self._at -= 1
            self._stop(context)
        self._string()
        if self._next("after object key") != ":":
            self._at -= 1
            self._stop("after object key")

    def _literal(self, letter: str) -> None:
        if letter == '"':
            self._string()
        elif letter == "-" or letter.isdigit():
            self._number(letter)
        elif letter in _WORDS:
            word = _WORDS[letter]
            for expected in word[1:]:
                if self._peek() != expected:
                    self._stop(f"in literal {word} (expecting '{expected}')")
                self._at += 1
        else:
            self._at -= 1
            self._stop("looking for beginning of value")

    def _string(self) -> None:
        while True:
            found = _PLAIN.match(self._text, self._at)
            self._at = found.end() if found else self._at
            letter = self._peek()
            if letter == '"':
                self._at += 1
                return
            if letter != "\\":
                self._stop("in string literal")
            self._at += 1
            self._escape()

    def _escape(self) -> None:
        letter = self._peek()
        if not letter or letter not in '"\\/bfnrtu':
            self._stop("in string escape code")
        self._at += 1
        for _ in range(4 if letter == "u" else 0):
            if self._peek() not in tuple("0123456789abcdefABCDEF"):
                self._stop("in \\u hexadecimal character escape")
            self._at += 1

    def _number(self, letter: str) -> None:
        if letter == "-":
            letter = self._peek()
            if not letter.isdigit():
                self._stop("in numeric literal")
            self._at += 1
        if letter != "0":
            self._digits()
        if self._peek() == ".":
            self._at += 1
            self._some_digits("after decimal point in numeric literal")
        if self._peek() in ("e", "E"):
            self._at += 1
            if self._peek() in ("+", "-"):
                self._at += 1
            self._some_digits("in exponent of numeric literal")

    def _some_digits(self, context: str) -> None:
        if not self._peek().isdigit():
            self._stop(context)
        self._digits()

    def _digits(self) -> None:
        while self._peek().isdigit():
            self._at += 1

    def _skip(self) -> None:
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found else self._at

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _next(self, context: str) -> str:
        self._skip()
        letter = self._peek()
        if not letter:
            self._stop(context)
        self._at += 1
        return letter

    def _stop(self, context: str) -> NoReturn:
        letter = self._peek()
        if not letter:
            raise _SyntaxProblem("unexpected end of JSON input")
        raise _SyntaxProblem(f"invalid character {quoted(letter)} {context}")
