"""Configuration of the CRI service: containerd's file, with a table of our own.

Read from containerd's tables (its file's versions 2 and 3): the runtimes with their guest
platforms (`guest_platform`, else `runtime_platforms`), `default_runtime_name`,
`registry.config_path`, `max_concurrent_downloads` and the sandbox image, which is pinned. Ours:

    [plugins."io.bayplan.images"]
      pinned_images = ["registry.example/pause:3.10"]
      docker_config = "/var/lib/kubelet/config.json"

Unknown tables and fields are containerd's and are skipped.
"""

import tomllib
from pathlib import Path

import msgspec

from bayplan.images.handlers import GuestPlatform, RuntimeHandlers, RuntimeTable, build_handlers
from bayplan.images.platforms import Platform, parse_platform
from bayplan.images.registry.credentials import Keyring, RegistryCredentials, read_docker_config
from bayplan.images.registry.errors import MalformedReferenceError, image_to_pull

_DOWNLOADS = 3


class _Containerd(msgspec.Struct):
    """The runtime handlers."""

    default_runtime_name: str = ""
    """The handler of requests without one."""
    runtimes: dict[str, RuntimeTable] = {}
    """Handlers, by name."""


class _Registry(msgspec.Struct):
    """The registries' hosts."""

    config_path: str = ""
    """Directories, separated by colons; the first has one with a hosts.toml for each registry."""


class _RuntimePlatform(msgspec.Struct):
    """The platform of a handler, in containerd 2."""

    platform: str = ""
    """Such as windows(10.0.17763)/amd64."""


class _Cri(msgspec.Struct):
    """The table of version 2; version 3 splits it into a runtime and an image table."""

    containerd: _Containerd = msgspec.field(default_factory=_Containerd)
    """The handlers."""
    registry: _Registry = msgspec.field(default_factory=_Registry)
    """The registries."""
    sandbox_image: str = ""
    """The image of pod sandboxes, which is pinned."""
    pinned_images: dict[str, str] = {}
    """Images that are never removed, by purpose."""
    runtime_platforms: dict[str, _RuntimePlatform] = {}
    """The platform of a handler that has no guest_platform."""
    max_concurrent_downloads: int = 0
    """The number of concurrent downloads; 0 for 3."""


class _Ours(msgspec.Struct, forbid_unknown_fields=True):
    """A table of our own."""

    pinned_images: list[str] = []
    """Images that are never removed."""
    docker_config: str = ""
    """A Docker config.json, for requests without credentials."""


class _Plugins(msgspec.Struct):
    """The tables that are read."""

    second: _Cri = msgspec.field(default_factory=_Cri, name="io.containerd.grpc.v1.cri")
    """All of it, in version 2."""
    runtime: _Cri = msgspec.field(default_factory=_Cri, name="io.containerd.cri.v1.runtime")
    """The table of the runtimes, in version 3."""
    images: _Cri = msgspec.field(default_factory=_Cri, name="io.containerd.cri.v1.images")
    """The table of the images, in version 3."""
    ours: _Ours = msgspec.field(default_factory=_Ours, name="io.bayplan.images")
    """Our own settings."""


class ContainerdFile(msgspec.Struct):
    """The parts of containerd's file that images depend on; the rest is skipped."""

    plugins: _Plugins = msgspec.field(default_factory=_Plugins)
    """Tables by plugin."""


class CriSettings(msgspec.Struct, frozen=True):
    """The settings of the CRI service."""

    handlers: RuntimeHandlers
    pinned: frozenset[str] = frozenset()
    hosts_directory: Path | None = None
    keyring: Keyring[RegistryCredentials] = Keyring()
    downloads: int = _DOWNLOADS


def load_settings(path: Path | None, host: Platform) -> CriSettings:
    """Read the configuration file; without one there is a single handler for the host."""
    if path is None:
        return CriSettings(build_handlers("", {}, host, "no configuration"))
    try:
        file = msgspec.convert(tomllib.loads(path.read_text()), ContainerdFile)
        return _settings(file.plugins, host, str(path))
    except (msgspec.ValidationError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from error


def _settings(plugins: _Plugins, host: Platform, place: str) -> CriSettings:
    both = [plugins.second, plugins.runtime, plugins.images]
    runtimes = plugins.second.containerd.runtimes | plugins.runtime.containerd.runtimes
    _add_platforms(runtimes, plugins.images.runtime_platforms, place)
    default = next(filter(None, (half.containerd.default_runtime_name for half in both)), "")
    hosts = next(filter(None, (half.registry.config_path for half in both)), "")
    downloads = next(filter(None, (half.max_concurrent_downloads for half in both)), _DOWNLOADS)
    if downloads < 1:
        raise ValueError(f"{place}: max_concurrent_downloads is {downloads}, not at least 1")
    pinned = [half.sandbox_image for half in both if half.sandbox_image]
    pinned += [name for half in both for name in half.pinned_images.values()]
    return CriSettings(
        build_handlers(default, runtimes, host, place),
        _references([*pinned, *plugins.ours.pinned_images], place),
        _hosts_directory(hosts),
        _keyring(plugins.ours.docker_config),
        downloads,
    )


def _add_platforms(
    runtimes: dict[str, RuntimeTable], platforms: dict[str, _RuntimePlatform], place: str
) -> None:
    """Apply containerd's `runtime_platforms`, where there is no guest_platform."""
    for name, table in platforms.items():
        if not table.platform:
            continue
        if name not in runtimes:
            raise ValueError(f"{place}: runtime_platforms names {name!r}, which is not a runtime")
        if runtimes[name].guest_platform is None:
            runtimes[name].guest_platform = _guest_platform(table.platform, place)


def _guest_platform(text: str, place: str) -> GuestPlatform:
    try:
        platform = parse_platform(text)
    except ValueError as error:
        raise ValueError(f"{place}: runtime_platforms: {error}") from error
    return GuestPlatform(
        os=platform.os,
        architecture=platform.architecture,
        variant=platform.variant,
        os_version=platform.os_version,
    )


def _hosts_directory(path: str) -> Path | None:
    """Return the first of containerd's colon-separated directories."""
    return Path(path.split(":", maxsplit=1)[0]) if path else None


def _references(names: list[str], place: str) -> frozenset[str]:
    try:
        return frozenset(str(image_to_pull(name)) for name in names)
    except MalformedReferenceError as error:
        raise ValueError(f"{place}: a pinned image: {error}") from error


def _keyring(path: str) -> Keyring[RegistryCredentials]:
    return Keyring.of(read_docker_config(Path(path).read_bytes(), path)) if path else Keyring()
