"""Rules for names use kube-apiserver's words."""

from __future__ import annotations

import pytest

from bayplan.embedded.apiserver.validation import names

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_WORD = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_WORDS = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character"
)


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
