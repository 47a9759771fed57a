"""Which proxy to go through: the kubeconfig's, or else the one that the environment names.

HTTPS_PROXY or HTTP_PROXY by the server's scheme, in either case of letters; NO_PROXY lists what is
reached directly: host names, with everything under them, addresses, networks such as 10.0.0.0/8, or
`*`. This machine itself is always reached directly.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from bayplan.client.errors import ConfigError


def proxy_for(server: str, named: str, environment: Mapping[str, str]) -> str | None:
    """The proxy's address, if there is one between us and that server."""
    proxy = named or _from_environment(server, environment)
    if not proxy:
        return None
    if web_address(proxy) is None:
        raise ConfigError("proxy: only http and https proxies are spoken to")
    return proxy


def web_address(text: str) -> SplitResult | None:
    """The parts of an http or https address; None if it is none."""
    try:
        parts = urlsplit(text)
        sound = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:  # half an IPv6 address, or a port that is none
        return None
    return parts if sound and text.isprintable() and " " not in text else None


def _from_environment(server: str, environment: Mapping[str, str]) -> str:
    parts = urlsplit(server)
    host = parts.hostname or ""
    proxy = _either_case(environment, f"{parts.scheme}_proxy")
    direct = _either_case(environment, "no_proxy").split(",")
    if not proxy or _is_here(host) or any(_covers(entry.strip(), host) for entry in direct):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _either_case(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.upper(), "")


def _is_here(host: str) -> bool:
    return host == "localhost" or _within(host, "127.0.0.0/8") or host == "::1"


def _covers(entry: str, host: str) -> bool:
    if not entry:
        return False
    domain = entry.lstrip("*").lstrip(".")
    return not domain or host == domain or host.endswith(f".{domain}") or _within(host, entry)


def _within(host: str, network: str) -> bool:
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False
