"""Runtime handlers, and the platform each one's images are for.

The configuration file is containerd's own, so one file serves both:

    [plugins."io.containerd.grpc.v1.cri".containerd]
      default_runtime_name = "runhcs-wcow-process"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runhcs-wcow-hypervisor]
        [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runhcs-wcow-hypervisor.guest_platform]
          OS = "windows"
          Architecture = "amd64"
          OSVersion = "10.0.17763"
        [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runhcs-wcow-hypervisor.options]
          SandboxIsolation = 1

A handler without `guest_platform` takes images for the host. `SandboxIsolation = 1` means Hyper-V.
An empty handler is the default one; an unknown one is an error that lists the known ones.
"""

import msgspec

from bayplan.images.platforms import Isolation, Platform, PlatformMatcher, normalise, parse_version

DEFAULT_HANDLER = "runc"
_HYPERVISOR = 1


class UnknownHandlerError(Exception):
    """The request's runtime handler is not configured."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"unknown runtime handler {name!r}; known are: {', '.join(known)}")


class GuestPlatform(msgspec.Struct):
    """A platform in containerd's configuration."""

    os: str = msgspec.field(default="", name="OS")
    """The operating system; the host's by default."""
    architecture: str = msgspec.field(default="", name="Architecture")
    """The processor; the host's by default."""
    variant: str = msgspec.field(default="", name="Variant")
    """The processor's variant, such as v8."""
    os_version: str = msgspec.field(default="", name="OSVersion")
    """The build of Windows, such as 10.0.17763."""
    os_features: list[str] = msgspec.field(default_factory=list, name="OSFeatures")
    """Features that an image may require, such as win32k."""


class RuntimeOptions(msgspec.Struct):
    """The runtime's options that images depend on."""

    isolation: int = msgspec.field(default=0, name="SandboxIsolation")
    """1 for Hyper-V."""


class RuntimeTable(msgspec.Struct):
    """The table of a runtime handler."""

    guest_platform: GuestPlatform | None = None
    """The platform of its images, in place of the host's."""
    options: RuntimeOptions = msgspec.field(default_factory=RuntimeOptions)
    """The runtime's options."""


class RuntimeHandler(msgspec.Struct, frozen=True):
    """A runtime handler and what its images must match."""

    name: str
    matcher: PlatformMatcher


class RuntimeHandlers:
    """The handlers of this node."""

    def __init__(self, default: str, handlers: list[RuntimeHandler]) -> None:
        self.default = default
        self._handlers = {handler.name: handler for handler in handlers}
        if default not in self._handlers:
            raise ValueError(f"the default runtime handler {default!r} is not among the runtimes")

    def names(self) -> list[str]:
        """Return the handlers' names, the default first."""
        return sorted(self._handlers, key=lambda name: (name != self.default, name))

    def get(self, name: str) -> RuntimeHandler:
        """Return a handler; the empty name is the default one."""
        try:
            return self._handlers[name or self.default]
        except KeyError:
            raise UnknownHandlerError(name, self.names()) from None

    def cri_name(self, name: str) -> str:
        """Return a handler's name in the CRI: the default one's is empty."""
        return "" if name == self.default else name


def build_handlers(
    default: str, runtimes: dict[str, RuntimeTable], host: Platform, place: str
) -> RuntimeHandlers:
    """Return the handlers of the configuration's tables."""
    default = default or DEFAULT_HANDLER
    tables = runtimes or {default: RuntimeTable()}
    handlers = [
        RuntimeHandler(
            name,
            PlatformMatcher(_platform(table, host, f"{place}: runtime {name!r}"), _mode(table)),
        )
        for name, table in tables.items()
    ]
    return RuntimeHandlers(default, handlers)


def _mode(table: RuntimeTable) -> Isolation:
    hypervisor = table.options.isolation == _HYPERVISOR
    return Isolation.HYPERV if hypervisor else Isolation.PROCESS


def _platform(table: RuntimeTable, host: Platform, place: str) -> Platform:
    guest = table.guest_platform
    if guest is None or guest == GuestPlatform():
        return host
    platform = normalise(
        Platform(
            os=guest.os or host.os,
            architecture=guest.architecture or host.architecture,
            variant=guest.variant,
            os_version=guest.os_version,
            os_features=tuple(guest.os_features),
        )
    )
    version = platform.os_version
    if platform.os == "windows" and version and parse_version(version) is None:
        raise ValueError(f"{place}: guest_platform.OSVersion {version!r} is not a Windows version")
    return platform
