"""Rules for names, labels, annotations and file paths.

Each rule returns the problems of a string with kube-apiserver's messages; an empty list if it is
valid.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import bad_value, required, too_long
from bayplan.kube.names import MAX_LABEL, MAX_NAME, is_label_value, is_qualified_name, is_subdomain

ANNOTATIONS_BYTES = 256 * 1024

NameRule = Callable[[str], list[str]]
"""Returns the problems of a string."""

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_WELL_FORMED_LABEL = re.compile(_LABEL)
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_WORD = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_ENDS = "must start and end with an alphanumeric character"
_WORDS = f"must consist of alphanumeric characters, '-', '_' or '.', and {_ENDS}"


def unmatched(detail: str, pattern: str, *examples: str) -> str:
    """Return the message for a string that does not match a pattern, with valid examples."""
    if not examples:
        return f"{detail} (regex used for validation is '{pattern}')"
    listed = " or ".join(f"'{example}', " for example in examples)
    return f"{detail} (e.g. {listed}regex used for validation is '{pattern}')"


def too_many_letters(most: int, unit: str = "characters") -> str:
    """Return the message for a string that is too long."""
    return f"must be no more than {most} {unit}"


def _is_longer(text: str, most: int) -> bool:
    return len(text.encode("utf-8", "replace")) > most


def _rule(text: str, pattern: str, most: int, complaint: str, unit: str) -> list[str]:
    found = [too_many_letters(most, unit)] if _is_longer(text, most) else []
    return found if re.fullmatch(pattern, text) else [*found, complaint]


def subdomain(name: str, unit: str = "characters") -> list[str]:
    """Validate a DNS-1123 subdomain: most names."""
    if is_subdomain(name):
        return []
    detail = (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
        f"'.', and {_ENDS}"
    )
    return _rule(name, _SUBDOMAIN, MAX_NAME, unmatched(detail, _SUBDOMAIN, "example.com"), unit)


def dns_label(name: str) -> list[str]:
    """Validate a DNS-1123 label: namespaces, and parts of host names."""
    if len(name) <= MAX_LABEL and _WELL_FORMED_LABEL.fullmatch(name):
        return []
    detail = (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
        f"{_ENDS}"
    )
    complaint = unmatched(detail, _LABEL, "my-name", "123-abc")
    if re.fullmatch(_SUBDOMAIN, name):
        complaint = "must not contain dots"
    return _rule(name, _LABEL, MAX_LABEL, complaint, "characters")


def dns1035_label(name: str) -> list[str]:
    """Validate a DNS-1035 label, which begins with a letter: services, versions of CRDs."""
    detail = (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
        "alphabetic character, and end with an alphanumeric character"
    )
    complaint = unmatched(detail, _LABEL_1035, "my-name", "abc-123")
    return _rule(name, _LABEL_1035, MAX_LABEL, complaint, "characters")


def path_segment(name: str) -> list[str]:
    """Validate a path segment: names of RBAC objects."""
    if name in {".", ".."}:
        return [f"may not be '{name}'"]
    return [f"may not contain '{part}'" for part in "/%" if part in name]


def qualified_name(key: str) -> list[str]:
    """Validate a qualified name, such as a label key, with an optional domain prefix."""
    if is_qualified_name(key):
        return []
    hint = unmatched(_WORDS, _WORD, "MyName", "my.name", "123-abc")
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        more = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {hint} {more}"]
    found = [f"prefix part {detail}" for detail in _prefix_problems(prefix)] if slash else []
    if not name:
        found.append("name part must be non-empty")
    elif _is_longer(name, MAX_LABEL):
        found.append(f"name part {too_many_letters(MAX_LABEL, 'bytes')}")
    return found if re.fullmatch(_WORD, name) else [*found, f"name part {hint}"]


def _prefix_problems(prefix: str) -> list[str]:
    return subdomain(prefix, "bytes") if prefix else ["must be non-empty"]


def label_value(value: str) -> list[str]:
    """Validate a label value."""
    if is_label_value(value):
        return []
    detail = f"a valid label must be an empty string or {_WORDS.removeprefix('must ')}"
    complaint = unmatched(detail, f"({_WORD})?", "MyValue", "my_value", "12345")
    return _rule(value, f"({_WORD})?", MAX_LABEL, complaint, "bytes")


def config_key(key: str) -> list[str]:
    """Validate a key of a config map or secret."""
    detail = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
    complaint = unmatched(detail, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name")
    found = _rule(key, _CONFIG_KEY, MAX_NAME, complaint, "characters")
    if key in {".", ".."}:
        return [*found, f"must not be '{key}'"]
    return [*found, "must not start with '..'"] if key.startswith("..") else found


def as_prefix(rule: NameRule) -> NameRule:
    """Return the rule for `generateName`, which may end with a dash."""

    def check(prefix: str) -> list[str]:
        if len(prefix) > 1 and prefix.endswith("-"):
            prefix = f"{prefix[:-2]}a"
        return rule(prefix)

    return check


def name_problems(rule: NameRule, text: str, field: str) -> list[FieldCause]:
    """Return the problems of a field's value by a name rule."""
    return [bad_value(field, text, detail) for detail in rule(text)]


def domain_prefixed_path_problems(text: str, field: str) -> list[FieldCause]:
    """Return the problems of a path that begins with a domain, such as `acme.io/foo`."""
    if not text:
        return [required(field)]
    host, _, path = text.partition("/")
    if not host or not path:
        return [bad_value(field, text, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    found = name_problems(subdomain, host, field)
    if re.fullmatch(_HTTP_PATH, path):
        return found
    return [*found, bad_value(field, path, unmatched("Invalid path", _HTTP_PATH))]


def label_problems(labels: JsonObject, field: str) -> list[FieldCause]:
    """Return the problems of labels."""
    found: list[FieldCause] = []
    for key, value in labels.items():
        if not (is_qualified_name(key) and is_label_value(value)):
            found += name_problems(qualified_name, key, field)
            found += name_problems(label_value, value, field)
    return found


def annotation_problems(annotations: JsonObject, field: str) -> list[FieldCause]:
    """Return the problems of annotations, whose keys are compared in lower case."""
    found = [
        bad_value(field, key, detail)
        for key in annotations
        for detail in qualified_name(key.lower())
    ]
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    return [*found, too_long(field, ANNOTATIONS_BYTES)] if size > ANNOTATIONS_BYTES else found


def backstep_problems(path: str, at: str) -> list[FieldCause]:
    """Refuse paths with `..`."""
    return [bad_value(at, path, "must not contain '..'")] if ".." in path.split("/") else []


def descending_problems(path: str, at: str) -> list[FieldCause]:
    """Refuse absolute paths and paths with `..`."""
    found = [bad_value(at, path, "must be a relative path")] if path.startswith("/") else []
    return found + backstep_problems(path, at)


def local_path_problems(path: str, at: str) -> list[FieldCause]:
    """Refuse absolute paths, `..` and names that begin with it."""
    found = descending_problems(path, at)
    if path.startswith("..") and not path.startswith("../"):
        found.append(bad_value(at, path, "must not start with '..'"))
    return found
