"""Which cloud, and which of its groups: Cluster Autoscaler's flags, by its names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class ProviderOptionError(ValueError):
    """An option of the cloud that makes no sense, and why."""


@dataclass(frozen=True)
class ProviderOptions:
    """Which cloud, and which of its groups."""

    cloud_provider: str = ""
    """The cloud: externalgrpc, or simulated for the one of `bayplan up`."""
    cloud_config: Path | None = None
    """How to reach the cloud: a file as Cluster Autoscaler takes it, or a socket."""
    node_groups: Path | None = None
    """A file that declares templates, CSI limits and bounds over what the cloud says."""
