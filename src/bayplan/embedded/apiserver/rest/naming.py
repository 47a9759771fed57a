"""Which names, labels and annotations are well formed."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from bayplan.embedded.apiserver.errors import Cause, bad_value
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.kube.names import is_label_value, is_qualified_name, is_subdomain

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
NAME_TRIES = 8
_ANNOTATIONS_LIMIT = 256 * 1024

NameRule = Callable[[str], str]
"""Says what is wrong with a name, or ""."""


def subdomain(name: str) -> str:
    """Most names: DNS-1123 subdomains."""
    if is_subdomain(name):
        return ""
    return (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
        "'.', and must start and end with an alphanumeric character"
    )


def dns_label(name: str) -> str:
    """Namespaces, and whatever becomes part of a host name: DNS-1123 labels."""
    if len(name) <= 63 and _LABEL.match(name):
        return ""
    return (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
        "must start and end with an alphanumeric character"
    )


def path_segment(name: str) -> str:
    """RBAC: whatever can stand in a URL."""
    if name in {".", ".."}:
        return f"may not be '{name}'"
    return "may not contain '/' or '%'" if "/" in name or "%" in name else ""


def suffixed(prefix: str, rng: Random) -> str:
    """A name made from `generateName`."""
    return prefix[:58] + "".join(rng.choices(_SUFFIX_LETTERS, k=5))


def free_name(prefix: str, rng: Random, is_taken: Callable[[str], bool]) -> str:
    """A name made from `generateName` that nobody has, as far as a few tries find one."""
    name = suffixed(prefix, rng)
    for _ in range(NAME_TRIES - 1):
        if not is_taken(name):
            break
        name = suffixed(prefix, rng)
    return name


def label_problems(labels: JsonObject, field: str) -> list[Cause]:
    """What is wrong with labels."""
    problems = []
    for key, value in labels.items():
        if not is_qualified_name(key):
            problems.append(bad_value(field, key, "name part must be a qualified name"))
        if not is_label_value(value):
            problems.append(bad_value(field, value, "a valid label must be a qualified name"))
    return problems


def annotation_problems(annotations: JsonObject, field: str) -> list[Cause]:
    """What is wrong with annotations."""
    problems = [
        bad_value(field, key, "name part must be a qualified name")
        for key in annotations
        if not is_qualified_name(key.lower())
    ]
    total = sum(len(key) + len(value) for key, value in annotations.items())
    if total > _ANNOTATIONS_LIMIT:
        problems.append(
            Cause(
                "FieldValueTooLong",
                f"Too long: may not be more than {_ANNOTATIONS_LIMIT} bytes",
                field,
            )
        )
    return problems
