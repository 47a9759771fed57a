"""String formats of OpenAPI schemas; unknown formats are ignored."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date, datetime
from email.utils import parseaddr
from urllib.parse import urlsplit

from bayplan.base.durations import DurationError, parse_duration
from bayplan.embedded.apiserver.validation.names import dns_label, subdomain

_MAX_LENGTH = 64 * 1024
_OF_NUMBERS = {"integer": ("int32", "int64"), "number": ("float", "double")}
_UUID = r"[0-9a-f]{8}-?[0-9a-f]{4}-?%s-?%s-?[0-9a-f]{12}"
_ANY, _VARIANT = "[0-9a-f]{4}", "[89ab][0-9a-f]{3}"
_HOST_LABEL = r"[^\W_](?:[^\W_]|-(?=[^\W_]|-)){0,62}"
_DATE_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:?[0-9]{2})",
    re.IGNORECASE,
)
_COLOUR = r"(?:[01]?[0-9]{1,2}|2[0-4][0-9]|25[0-5])"
_MAC = r"[0-9a-f]{2}([:-])(?:[0-9a-f]{2}\1){4,6}[0-9a-f]{2}|(?:[0-9a-f]{4}\.){2,3}[0-9a-f]{4}"


def is_known_format(name: str, kind: str) -> bool:
    """Return whether a format of a type is validated or needs no validation."""
    return name in _OF_NUMBERS.get(kind, ()) if kind in _OF_NUMBERS else _plain(name) in _FORMATS


def is_of_format(text: str, name: str) -> bool:
    """Return whether a string has a format; unknown formats accept every string."""
    check = _FORMATS.get(_plain(name))
    return check is None or (len(text) <= _MAX_LENGTH and check(text))


def _plain(name: str) -> str:
    return name.replace("-", "")


def _matching(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.IGNORECASE)
    return lambda text: compiled.fullmatch(text) is not None


def _reading(read: Callable[[str], object], *errors: type[Exception]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            read(text)
        except errors:
            return False
        return True

    return check


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return bool(text)


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_interface(text)
    except ValueError:
        return False
    return text.rpartition("/")[2].isdigit()


def _is_uri(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    sound = text.isprintable() and " " not in parts.netloc
    return sound and (bool(parts.scheme) or text.startswith("/"))


def _is_date_time(text: str) -> bool:
    matched = _DATE_TIME.fullmatch(text)
    return matched is not None and _reading(datetime.fromisoformat, ValueError)(matched[1].upper())


def _is_isbn(text: str) -> bool:
    return _is_isbn10(text) or _is_isbn13(text)


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    if not re.fullmatch(r"[0-9]{9}[0-9Xx]", digits):
        return False
    numbers = [10 if one in "Xx" else int(one) for one in digits]
    return sum((10 - place) * number for place, number in enumerate(numbers)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    if not re.fullmatch(r"[0-9]{13}", digits):
        return False
    return sum(int(one) * (3 if place % 2 else 1) for place, one in enumerate(digits)) % 10 == 0


_FORMATS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _matching("[0-9a-f]{24}"),
    "uri": _is_uri,
    "email": lambda text: "@" in parseaddr(text)[1] and " " not in parseaddr(text)[1],
    "hostname": lambda text: len(text) <= 255 and _is_hostname(text),
    "ipv4": _reading(ipaddress.IPv4Address, ValueError),
    "ipv6": _reading(ipaddress.IPv6Address, ValueError),
    "cidr": _is_network,
    "mac": _matching(_MAC),
    "uuid": _matching(_UUID % (_ANY, _ANY)),
    "uuid3": _matching(_UUID % ("3[0-9a-f]{3}", _ANY)),
    "uuid4": _matching(_UUID % ("4[0-9a-f]{3}", _VARIANT)),
    "uuid5": _matching(_UUID % ("5[0-9a-f]{3}", _VARIANT)),
    "isbn": _is_isbn,
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "ssn": _matching("[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}"),
    "hexcolor": _matching("#?(?:[0-9a-f]{3}|[0-9a-f]{6})"),
    "rgbcolor": _matching(rf"rgb\(\s*{_COLOUR}\s*,\s*{_COLOUR}\s*,\s*{_COLOUR}\s*\)"),
    "byte": _is_base64,
    "password": lambda _: True,
    "creditcard": lambda text: 12 < sum(map(str.isdigit, text)) < 20,
    "date": lambda text: len(text) == 10 and _reading(date.fromisoformat, ValueError)(text),
    "duration": _reading(parse_duration, DurationError),
    "datetime": _is_date_time,
    "k8sshortname": lambda text: not dns_label(text),
    "k8slongname": lambda text: not subdomain(text),
}


def _is_hostname(text: str) -> bool:
    labels = text.split(".")
    return all(re.fullmatch(_HOST_LABEL, label) for label in labels)
