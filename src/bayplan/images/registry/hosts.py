"""The hosts of a registry: its mirrors in order, then the registry itself.

Mirrors are configured by containerd's `hosts.toml`, with a directory per registry (`_default` for
all others):

    server = "https://registry.example"
    [host."https://mirror.example"]
      capabilities = ["pull", "resolve"]

Without a file a registry is reached over HTTPS, and one on this machine over plain HTTP.
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


class RegistryHost(msgspec.Struct, frozen=True):
    """A host that serves a registry's content."""

    base: str  # scheme://host[:port]/v2, or as overridden in hosts.toml
    capabilities: frozenset[str] = _CAPABILITIES
    mirror: bool = False
    skip_verify: bool = False
    ca: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def authority(self) -> str:
        """The host with its port, which credentials are for."""
        return urlsplit(self.base).netloc

    @property
    def default_port(self) -> str:
        """The default port, with its colon."""
        return ":80" if self.base.startswith("http://") else ":443"


_Capability = Literal["pull", "resolve", "push"]


class _HostTable(msgspec.Struct):
    """A host of a registry's images, and how it is reached."""

    capabilities: tuple[_Capability, ...] = ("pull", "resolve", "push")
    """What it is used for: digests (pull), tags (resolve); push is ignored."""
    ca: str | list[str] = []
    """Files with its certificate authorities."""
    skip_verify: bool = False
    """Accept any certificate."""
    override_path: bool = False
    """The URL is complete: no /v2 is added."""
    header: dict[str, str | list[str]] = {}
    """Additional request headers."""


class HostsFile(_HostTable):
    """A registry's hosts.toml: mirrors in order, then the registry."""

    server: str = ""
    """The registry's URL, if it differs from its name."""
    host: dict[str, _HostTable] = {}
    """Mirrors, by URL."""


def hosts_for(registry: str, directory: Path | None = None) -> list[RegistryHost]:
    """Return the hosts of a registry's content, in order."""
    path = _hosts_file(registry, directory)
    if path is None:
        return [_plain_host(registry)]
    table = _read(path)
    mirrors = [
        _host(_checked(url, path), entry, path, mirror=True) for url, entry in table.host.items()
    ]
    own = _host(_checked(table.server, path), table, path) if table.server else None
    return [*mirrors, own or _plain_host(registry)]


def _plain_host(registry: str) -> RegistryHost:
    scheme = "http" if is_loopback(registry) else "https"
    return RegistryHost(f"{scheme}://{_HUB_HOST if registry == DEFAULT_REGISTRY else registry}/v2")


def is_loopback(host: str) -> bool:
    """Return whether a registry's host is this machine, which is reached over plain HTTP."""
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


def _host(url: str, table: _HostTable, path: Path, *, mirror: bool = False) -> RegistryHost:
    files = [table.ca] if isinstance(table.ca, str) else table.ca
    headers = [
        (name, value)
        for name, values in table.header.items()
        for value in ([values] if isinstance(values, str) else values)
    ]
    return RegistryHost(
        url if table.override_path or url.endswith("/v2") else f"{url}/v2",
        frozenset(table.capabilities) & _CAPABILITIES,
        mirror,
        table.skip_verify,
        tuple(str(path.parent / name) for name in files),
        tuple(headers),
    )
