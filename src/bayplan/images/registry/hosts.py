"""Where a registry's content is asked for: its mirrors in turn, then the registry itself.

Mirrors are written as containerd's `hosts.toml` has them, one directory a registry (`_default` for
all others):

    server = "https://registry.example"
    [host."https://mirror.example"]
      capabilities = ["pull", "resolve"]

Without a file a registry is asked over HTTPS, and one on this machine over plain HTTP.
"""

import ipaddress
import re
import tomllib
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from bayplan.kube.imagereferences import DEFAULT_REGISTRY

_HUB_HOST = "registry-1.docker.io"
_CAPABILITIES = frozenset(("pull", "resolve"))


class Host(msgspec.Struct, frozen=True):
    """One place to ask."""

    base: str  # scheme://host[:port]/v2, or what the operator overrode it with
    capabilities: frozenset[str] = _CAPABILITIES
    mirror: bool = False
    skip_verify: bool = False
    ca: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def authority(self) -> str:
        """The host with its port; credentials belong to it."""
        return urlsplit(self.base).netloc

    @property
    def default_port(self) -> str:
        """The port that goes without saying, as a name would end with it."""
        return ":80" if self.base.startswith("http://") else ":443"


_Capability = Literal["pull", "resolve", "push"]


class _HostTable(msgspec.Struct):
    """One place that has a registry's images, and how it is asked."""

    capabilities: tuple[_Capability, ...] = ("pull", "resolve", "push")
    """What it is asked for: digests (pull), tags (resolve); push is nothing to us."""
    ca: str | list[str] = []
    """Files with the authorities that vouch for it."""
    skip_verify: bool = False
    """Believe any certificate."""
    override_path: bool = False
    """The address is whole: no /v2 is added."""
    header: dict[str, str | list[str]] = {}
    """Headers that it is sent."""


class HostsFile(_HostTable):
    """A registry's hosts.toml: mirrors in the order in which they stand, then the registry."""

    server: str = ""
    """The registry itself, if it is not what its name says."""
    host: dict[str, _HostTable] = {}
    """Mirrors, by address."""


def hosts_for(registry: str, directory: Path | None = None) -> list[Host]:
    """List where to ask for a registry's content, in order."""
    path = _hosts_file(registry, directory)
    if path is None:
        return [_plain_host(registry)]
    table = _read(path)
    mirrors = [
        _host(_checked(url, path), entry, path, mirror=True) for url, entry in table.host.items()
    ]
    own = _host(_checked(table.server, path), table, path) if table.server else None
    return [*mirrors, own or _plain_host(registry)]


def _plain_host(registry: str) -> Host:
    scheme = "http" if is_loopback(registry) else "https"
    return Host(f"{scheme}://{_HUB_HOST if registry == DEFAULT_REGISTRY else registry}/v2")


def is_loopback(host: str) -> bool:
    """Say whether a registry's host is this machine, which speaks plain HTTP."""
    name = host.rpartition(":")[0] if re.search(r":\d+$", host) else host
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return name == "localhost"


def _hosts_file(registry: str, directory: Path | None) -> Path | None:
    if directory is None:
        return None
    candidates = [directory / name / "hosts.toml" for name in (registry, "_default")]
    return next((path for path in candidates if path.is_file()), None)


def _read(path: Path) -> HostsFile:
    try:
        return msgspec.convert(tomllib.loads(path.read_text()), HostsFile)
    except (msgspec.ValidationError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from error


def _checked(url: str, path: Path) -> str:
    full = url if "://" in url else f"https://{url}"
    parts = urlsplit(full)
    if parts.scheme not in {"http", "https"} or not parts.netloc or "@" in parts.netloc:
        raise ValueError(f"{path}: {url!r} is not the URL of a registry")
    return full.rstrip("/")


def _host(url: str, table: _HostTable, path: Path, *, mirror: bool = False) -> Host:
    files = [table.ca] if isinstance(table.ca, str) else table.ca
    headers = [
        (name, value)
        for name, values in table.header.items()
        for value in ([values] if isinstance(values, str) else values)
    ]
    return Host(
        url if table.override_path or url.endswith("/v2") else f"{url}/v2",
        frozenset(table.capabilities) & _CAPABILITIES,
        mirror,
        table.skip_verify,
        tuple(str(path.parent / name) for name in files),
        tuple(headers),
    )
