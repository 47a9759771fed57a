"""Validity of names, label keys and label values, as Kubernetes checks them."""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_DNS_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_LABEL_NAME = re.compile(_WORD)
_ONE_LABEL = re.compile(_DNS_LABEL)
_SUBDOMAIN = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*")

_PATH_SEGMENT = re.compile(r"[!-$&-.0-~]{1,253}")

MAX_NAME = 253
MAX_LABEL = 63


def is_qualified_name(text: str) -> bool:
    """Return whether a text is a label key: up to 63 characters, with an optional DNS prefix."""
    return len(text) <= MAX_NAME + 1 + MAX_LABEL and _is_qualified_name(text)


@lru_cache(4096)
def _is_qualified_name(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    if slash and not is_subdomain(prefix):
        return False
    return 0 < len(name) <= MAX_LABEL and _LABEL_NAME.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """Return whether a text is a label value, which may be empty."""
    return not text or (len(text) <= MAX_LABEL and _LABEL_NAME.fullmatch(text) is not None)


def is_subdomain(text: str) -> bool:
    """Return whether a text is a DNS subdomain, as the names of most objects are."""
    return 0 < len(text) <= MAX_NAME and _SUBDOMAIN.fullmatch(text) is not None


def is_dns_label(text: str) -> bool:
    """Return whether a text is a DNS label, as the name of a namespace must be."""
    return len(text) <= MAX_LABEL and _ONE_LABEL.fullmatch(text) is not None


def is_object_name(text: str) -> bool:
    """Return whether a text can be a path segment, as every object name: no `/` or `%`."""
    return _PATH_SEGMENT.fullmatch(text) is not None and text not in {".", ".."}
