"""IP addresses and CIDRs, as strictly as Kubernetes validates them."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from typing import NamedTuple

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.validation.causes import bad_value, internal

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_ZEROS = re.compile(r"(?<![0-9a-fA-F])0+(?=[0-9])")
_SHAPE = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def parse_address(text: str) -> Address | None:
    """Parse an address, also one with leading zeros, as old Go did."""
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


def address_problems(text: str, at: str, kept: Sequence[str] = ()) -> list[FieldCause]:
    """Return the problems of an address; existing ones are accepted."""
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
    """Return whether there are addresses of both families."""
    parsed = [parse_address(one) for one in addresses]
    return {_plain(one).version for one in parsed if one is not None} == {4, 6}


def address_warnings(text: str, at: str) -> list[str]:
    """Return the warnings about an address that is not in canonical form."""
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


_ZEROS_IN_RANGE = re.compile(r"(?<![0-9a-fA-F:])0+(?=[0-9])")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class _Range(NamedTuple):
    """A CIDR as it was written."""

    address: ipaddress.IPv4Address | ipaddress.IPv6Address
    network: Network


def _read(text: str) -> _Range | None:
    address, _, bits = text.partition("/")
    if not re.fullmatch("[0-9]+", bits) or "%" in address:
        return None
    if ":" not in address:
        address = _ZEROS_IN_RANGE.sub("", address)
    try:
        found = ipaddress.ip_interface(f"{address}/{int(bits)}")
    except ValueError:
        return None
    return _Range(found.ip, found.network)


def cidr_problems(text: str, field: str) -> list[FieldCause]:
    """Return the problems of a CIDR, by the rules for fields that were once lax."""
    found = _read(text)
    detail = ""
    if found is None:
        detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
    elif _has_leading_zeros(text):
        detail = "must not have leading 0s in IP or prefix length"
    elif getattr(found.address, "ipv4_mapped", None) is not None:
        detail = "must not have an IPv4-mapped IPv6 address"
    elif found.address != found.network.network_address:
        detail = "must not have bits set beyond the prefix length"
    return [bad_value(field, text, detail)] if detail else []


def _has_leading_zeros(text: str) -> bool:
    address, _, bits = text.partition("/")
    lax = ":" not in address and _ZEROS_IN_RANGE.search(address) is not None
    return lax or (len(bits) > 1 and bits.startswith("0"))


def dual_stack_problems(texts: list[str], field: str) -> list[FieldCause]:
    """Several ranges must be two, one of each family."""
    ranges, found = [_read(text) for text in texts], list[FieldCause]()
    for index, (text, one) in enumerate(zip(texts, ranges, strict=True)):
        if one is None:
            detail = f"invalid CIDR[{index}]: <nil> (invalid CIDR address: {text})"
            message = f"invalid PodCIDRs. failed to check with dual stack with error:{detail}"
            found.append(internal(field, message))
            break
    families = {one.network.version for one in ranges if one is not None}
    if None in ranges or len(families) < 2 or len(texts) > 2:
        detail = "may specify no more than one CIDR for each IP family"
        found.append(bad_value(field, texts, detail))
    return found


def cidr_warnings(text: str, field: str) -> list[str]:
    """Return the warnings about a CIDR that is not in canonical form."""
    found = _read(text)
    if found is None or found.network.version == 4 or str(found.network) == text:
        return []
    detail = f'should be in RFC 5952 canonical format ("{found.network}")'
    return [f'{field}: IPv6 CIDR value "{text}" {detail}']
