"""Where a registry may send us: redirects, token servers, and addresses of foreign layers.

A registry is data from strangers as much as an image is. It may send us on to whom it likes in the
open net, but not from a private connection into the open, not with a name and password that it
chose, and not to this machine or its network's own services (loopback and link-local addresses,
where agents and the cloud's metadata listen) unless it is there itself.
"""

import ipaddress
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

from bayplan.images.registry.errors import PullError

_PORTS = {"http": 80, "https": 443}


class Origin(NamedTuple):
    """Whom a connection is to: what credentials belong to."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def origin_of(url: str) -> Origin:
    """Say whom a URL is for; a port that goes without saying is the same as one that is said."""
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError:
        raise PullError(f"{url[:200]!r} is not a URL") from None
    if parts.scheme not in _PORTS or not host:
        raise PullError(f"{url[:200]!r} is not a URL of HTTP")
    return Origin(parts.scheme, host, _PORTS[parts.scheme] if port is None else port)


def redirected(url: str, location: str) -> str:
    """Follow a redirect from one URL to the next, if it may be followed."""
    try:
        target = urljoin(url, location)
    except ValueError:
        raise PullError(f"{origin_of(url)} redirects to no URL: refused") from None
    reject_detour(url, target)
    return target


def reject_detour(url: str, target: str, *, in_the_open: bool = False) -> None:
    """Refuse to go where whoever answers at a URL may not send us."""
    here = origin_of(url)
    scheme = target.partition(":")[0].lower()
    downgrade = here.scheme == "https" and scheme == "http"
    if scheme not in _PORTS or (downgrade and not in_the_open):
        raise PullError(f"{here} redirects to {scheme[:20]}: refused")
    there = origin_of(target)
    if "@" in urlsplit(target).netloc:
        raise PullError(f"{here} redirects to {there} with a password in the address: refused")
    if _is_internal(there.host) and not _is_internal(here.host):
        raise PullError(f"{here} redirects to {there}, which is this machine's own: refused")


def _is_internal(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return mapped.is_loopback or mapped.is_link_local or mapped.is_unspecified
