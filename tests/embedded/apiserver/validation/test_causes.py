"""Causes use kube-apiserver's words, value by value."""

from __future__ import annotations

import pytest

from bayplan.embedded.apiserver.jsontypes import JsonValue
from bayplan.embedded.apiserver.validation import causes


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", '"plain"'),
        ('say "hi"\n\x01\x7f\u00e9\u200b', '"say \\"hi\\"\\n\\x01\\x7f\u00e9\\u200b"'),
        (3, "3"),
        (True, "true"),
        (None, "null"),
        (0.5, "0.5"),
        (2.0, "2"),
        (1e20, "1e+20"),
        (1234567.0, "1.234567e+06"),
        (123456.0, "123456"),
        (1e21, "1e+21"),
        (1e-5, "1e-05"),
        ({"a": ["<b>"]}, '{"a":["\\u003cb\\u003e"]}'),
    ],
)
def test_values_are_shown_as_go_shows_them(value: JsonValue, text: str) -> None:
    assert causes.shown(value) == text


def test_each_problem_has_its_reason_and_head() -> None:
    found = [
        causes.bad_value("f", "x", "is wrong"),
        causes.bad_type("f", 1, "must be a string"),
        causes.immutable("f", "x"),
        causes.required("f"),
        causes.required("f", "must be given"),
        causes.forbidden_field("f", "may not change"),
        causes.not_supported("f", "x", ("A", "B")),
        causes.duplicate("f", "x"),
        causes.missing("f", "x"),
        causes.too_long("f", 1),
        causes.too_long("f", 64, "character"),
        causes.too_short("f", 2),
        causes.too_many("f", 5, 3),
        causes.internal("f", "broke"),
        causes.bad_value("f", causes.OMITTED, "is wrong"),
    ]
    assert [(one.reason, one.message) for one in found] == [
        ("FieldValueInvalid", 'Invalid value: "x": is wrong'),
        ("FieldValueTypeInvalid", "Invalid value: 1: must be a string"),
        ("FieldValueInvalid", 'Invalid value: "x": field is immutable'),
        ("FieldValueRequired", "Required value"),
        ("FieldValueRequired", "Required value: must be given"),
        ("FieldValueForbidden", "Forbidden: may not change"),
        ("FieldValueNotSupported", 'Unsupported value: "x": supported values: "A", "B"'),
        ("FieldValueDuplicate", 'Duplicate value: "x"'),
        ("FieldValueNotFound", 'Not found: "x"'),
        ("FieldValueTooLong", "Too long: may not be more than 1 byte"),
        ("FieldValueTooLong", "Too long: may not be more than 64 characters"),
        ("FieldValueTooShort", "Too short: must be at least 2 characters"),
        ("FieldValueTooMany", "Too many: 5: must have at most 3 items"),
        ("InternalError", "Internal error: broke"),
        ("FieldValueInvalid", "Invalid value: is wrong"),
    ]
