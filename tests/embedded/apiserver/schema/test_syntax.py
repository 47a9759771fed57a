"""Errors of JSON syntax are those of Go's decoder."""

from __future__ import annotations

import pytest

from bayplan.embedded.apiserver.schema.syntax import syntax_problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "unexpected end of JSON input"),
        (b"[{]", "invalid character ']' looking for beginning of object key string"),
        (b'{"a": v}', "invalid character 'v' looking for beginning of value"),
        (b'{"a":01}', "invalid character '1' after object key:value pair"),
        (b'["a" "b"]', "invalid character '\"' after array element"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b"trux", "invalid character 'x' in literal true (expecting 'e')"),
        (b'"a\nb"', "invalid character '\\n' in string literal"),
        (b"{}x", "invalid character 'x' after top-level value"),
        (b"-x", "invalid character 'x' in numeric literal"),
        (b"[" * 10_001, "exceeded max depth"),
        (b'{"a":{"b":[1,2.5e3,{}]}}', ""),
    ],
)
def test_syntax_is_judged_in_go_s_words(text: bytes, problem: str) -> None:
    assert syntax_problem(text) == problem
