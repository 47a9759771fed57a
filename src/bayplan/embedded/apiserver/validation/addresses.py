"""IP addresses: which are well formed, as strictly as Kubernetes takes them today."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.validation.causes import bad_value

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_ZEROS = re.compile(r"(?<![0-9a-fA-F])0+(?=[0-9])")
_SHAPE = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def parse_address(text: str) -> Address | None:
    """An address, also one with zeros before its numbers, as old Go took it."""
    try:
        if "." in text:
            head, colon, tail = text.rpartition(":")
            text = f"{head}{colon}{_ZEROS.sub('', tail)}"
        return None if "%" in text else ipaddress.ip_address(text)
    except ValueError:
        return None


def _plain(address: Address) -> Address:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return address if mapped is None else mapped


def address_problems(text: str, at: str, kept: Sequence[str] = ()) -> list[Cause]:
    """What is wrong with an address; what was there before may stay."""
    if text in kept:
        return []
    address = parse_address(text)
    if address is None:
        return [bad_value(at, text, _SHAPE)]
    if not _is_strict(text):
        return [bad_value(at, text, "must not have leading 0s")]
    if _plain(address) is not address:
        return [bad_value(at, text, "must not be an IPv4-mapped IPv6 address")]
    return []


def _is_strict(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def is_dual_stack(addresses: Sequence[str]) -> bool:
    """Whether there are addresses of both families."""
    parsed = [parse_address(one) for one in addresses]
    return {_plain(one).version for one in parsed if one is not None} == {4, 6}


def address_warnings(text: str, at: str) -> list[str]:
    """What should be written otherwise."""
    address = parse_address(text)
    if address is None:
        return []
    plain = _plain(address)
    if not _is_strict(text) or plain is not address:
        return [f'{at}: non-standard IP address "{text}" is invalid: use "{plain}"']
    if address.version == 6 and str(address) != text:
        shape = f'should be in RFC 5952 canonical format ("{address}")'
        return [f'{at}: IPv6 address "{text}" {shape}']
    return []
