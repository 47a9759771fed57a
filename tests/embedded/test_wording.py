"""Refusals and name rules speak kube-apiserver's words, value by value."""

from __future__ import annotations

import pytest

from bayplan.embedded.apiserver.jsontypes import JsonValue
from bayplan.embedded.apiserver.validation import causes, names

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_WORD = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_WORDS = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character"
)


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


@pytest.mark.parametrize(
    ("rule", "good"),
    [
        (names.subdomain, "a.b-c.1"),
        (names.dns_label, "1-a"),
        (names.dns1035_label, "a-1"),
        (names.path_segment, "system:a b"),
        (names.qualified_name, "example.com/My_Name.1"),
        (names.label_value, ""),
        (names.config_key, "a.B_c-1"),
        (names.as_prefix(names.subdomain), "job-"),
    ],
)
def test_well_formed_names_are_left_alone(rule: names.NameRule, good: str) -> None:
    assert rule(good) == []


@pytest.mark.parametrize(
    ("rule", "bad", "words"),
    [
        (
            names.subdomain,
            "A" * 254,
            [
                "must be no more than 253 characters",
                (
                    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
                    "characters, '-' or '.', and must start and end with an alphanumeric character "
                    f"(e.g. 'example.com', regex used for validation is '{_LABEL}(\\.{_LABEL})*')"
                ),
            ],
        ),
        (names.dns_label, "a.b", ["must not contain dots"]),
        (
            names.dns_label,
            "-a",
            [
                (
                    "a lowercase RFC 1123 label must consist of lower case "
                    "alphanumeric characters or "
                    "'-', and must start and end with an alphanumeric character "
                    "(e.g. 'my-name',  or "
                    f"'123-abc', regex used for validation is '{_LABEL}')"
                )
            ],
        ),
        (
            names.dns1035_label,
            "1a",
            [
                (
                    "a DNS-1035 label must consist of lower case alphanumeric "
                    "characters or '-', start "
                    "with an alphabetic character, and end with an alphanumeric character (e.g. "
                    "'my-name',  or 'abc-123', regex used for validation is "
                    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
                )
            ],
        ),
        (names.path_segment, "a/b%", ["may not contain '/'", "may not contain '%'"]),
        (names.path_segment, "..", ["may not be '..'"]),
        (
            names.qualified_name,
            "/" + "a" * 64,
            ["prefix part must be non-empty", "name part must be no more than 63 bytes"],
        ),
        (
            names.qualified_name,
            "a/b/c",
            [
                (
                    f"a valid label key {_WORDS} (e.g. 'MyName',  or 'my.name',  "
                    "or '123-abc', regex "
                    f"used for validation is '{_WORD}') with an optional DNS "
                    "subdomain prefix and '/' "
                    "(e.g. 'example.com/MyName')"
                )
            ],
        ),
        (
            names.label_value,
            "a b",
            [
                (
                    "a valid label must be an empty string or consist of alphanumeric characters, "
                    "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
                    "'MyValue',  or 'my_value',  or '12345', regex used for validation is "
                    f"'({_WORD})?')"
                )
            ],
        ),
        (names.config_key, "..a", ["must not start with '..'"]),
    ],
)
def test_what_is_wrong_with_a_name_is_said_in_full(
    rule: names.NameRule, bad: str, words: list[str]
) -> None:
    assert rule(bad) == words
