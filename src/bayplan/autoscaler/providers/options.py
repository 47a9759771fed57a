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
    """The cloud: aws, clusterapi, externalgrpc, or simulated for the one of `bayplan up`."""
    cloud_config: Path | None = None
    """How to reach the cloud: a file as Cluster Autoscaler takes it, or a socket; for clusterapi,
    the management cluster's kubeconfig."""
    nodes: tuple[str, ...] = ()
    """A group and its bounds, as MIN:MAX:NAME; may be repeated."""
    node_group_auto_discovery: tuple[str, ...] = ()
    """Which groups to look for, as asg:tag=KEY,KEY=VALUE or
    clusterapi:namespace=NAME,clusterName=NAME,LABEL=VALUE; may be repeated."""
    clusterapi_cloud_config_authoritative: bool = False
    """Without --cloud-config, Cluster API's objects are in the cluster that this runs in, and not
    in the one that is scaled."""
    node_groups: Path | None = None
    """A file that declares templates, CSI limits and bounds over what the cloud says."""
