"""What Kubernetes accepts as a name, a label key and a label value."""

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
    """Whether it is a label key: a name of up to 63 characters, perhaps after a DNS prefix."""
    return len(text) <= MAX_NAME + 1 + MAX_LABEL and _is_qualified_name(text)


@lru_cache(4096)
def _is_qualified_name(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    if slash and not is_subdomain(prefix):
        return False
    return 0 < len(name) <= MAX_LABEL and _LABEL_NAME.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """Whether it can be a label's value; the empty one can."""
    return not text or (len(text) <= MAX_LABEL and _LABEL_NAME.fullmatch(text) is not None)


def is_subdomain(text: str) -> bool:
    """Whether it is a DNS subdomain, as most objects' names are."""
    return 0 < len(text) <= MAX_NAME and _SUBDOMAIN.fullmatch(text) is not None


def is_dns_label(text: str) -> bool:
    """Whether it is one label of a DNS name, as the name of a namespace must be."""
    return len(text) <= MAX_LABEL and _ONE_LABEL.fullmatch(text) is not None


def is_object_name(text: str) -> bool:
    """Whether it can name any object: printable ASCII without `/` or `%`, as in a URL's path."""
    return _PATH_SEGMENT.fullmatch(text) is not None and text not in {".", ".."}
